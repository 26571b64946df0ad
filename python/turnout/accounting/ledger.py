"""A privacy budget, and what was spent of it."""

from __future__ import annotations

import math
import os
import threading
from typing import Any

from turnout import _arguments
from turnout._files import atomic_write, read_bytes
from turnout._tables import Tabular
from turnout.accounting.composition import Composition
from turnout.accounting.ledger_entries import (
    LEDGER,
    LedgerEntry,
    checked_entry,
    counts_of,
    described_entry,
    parts_of,
    written,
)
from turnout.accounting.mechanism import Mechanism, compose
from turnout.accounting.proofs import (
    Budget,
    Parts,
    Proofs,
    composed,
    extended,
    largest_within,
    proofs_for,
)
from turnout.accounting.values import MOST_ROUNDS, positive
from turnout.errors import BudgetExceededError, CorruptDataError, InvalidValueError, TurnoutError

_ADJACENCIES = ("add_or_remove", "add", "remove", "replace")


class PrivacyLedger(Tabular):
    """A privacy budget that refuses what it cannot pay for.

    The total is the composition of all entries, not the sum of their epsilons. Each client can keep
    a ledger of its own and needs to know nothing of the others: what it spends depends on what is
    done with its own data only.

    What a mechanism computes may depend on earlier results. Which mechanisms are used and with
    which parameters must not, since that is what composition bounds; stopping early is always
    allowed.

    Parameters
    ----------
    epsilon
        The budget, finite and above 0.
    delta
        The delta at which epsilon is meant, at least 0 and below 1.
    adjacency
        What neighbouring data sets are: ``"add_or_remove"`` (also if None), ``"add"``,
        ``"remove"`` or ``"replace"``. Every mechanism that is spent must know it.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    Methods that need a total compose all entries: some tenths of a second (of shuffled reports some
    seconds and more) for each total that was not computed before in this process, in proportion to
    the number of *different* mechanisms.
    What is spent round by round costs far less: fewer rounds never spend more, so a composition
    that fits proves all smaller ones, and one is made ahead now and then, about as often as the
    number of rounds doubles. Totals and proofs are shared between ledgers, so a thousand clients
    with one history cost as much as one.

    Threads may share a ledger; processes that share its file must take turns.

    Examples
    --------
    >>> from turnout.accounting import LocalSampling
    >>> ledger = PrivacyLedger(epsilon=1.0, delta=1e-5)
    >>> training = LocalSampling(sample_rate=0.01, noise_multiplier=1.0)
    >>> ledger.spend(training, rounds=100, label="first night")
    >>> round(ledger.spent(), 2)
    0.72
    >>> ledger.can_spend(training, rounds=1000)
    False
    >>> ledger.entries[0].rounds, ledger.entries[0].label
    (100, 'first night')
    """

    _columns = ("label", "mechanism", "rounds")

    def __init__(self, epsilon: float, delta: float, adjacency: str | None = None) -> None:
        most, chance = positive("epsilon", epsilon), _arguments.number("delta", delta)
        if not 0.0 <= chance < 1.0:
            raise _arguments.invalid("delta must be a number of at least 0 and below 1", delta)
        word = _ADJACENCIES[0] if adjacency is None else adjacency
        self._budget = Budget(most, chance, _arguments.choice("adjacency", word, _ADJACENCIES))
        self._entries: tuple[LedgerEntry, ...] = ()
        # What was spent when proofs were made, oldest first; all of the same mechanisms.
        self._marks: tuple[Parts, ...] = ()
        self._lock = threading.Lock()

    @property
    def epsilon(self) -> float:
        """The budget."""
        return self._budget.epsilon

    @property
    def delta(self) -> float:
        """The delta at which the budget is meant."""
        return self._budget.delta

    @property
    def adjacency(self) -> str:
        """What neighbouring data sets are."""
        return self._budget.adjacency

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """What was spent, in order."""
        return self._entries

    def spend(self, mechanism: Mechanism, rounds: int = 1, label: str | None = None) -> None:
        """Write down a release *before* it is made.

        A release like that of the last entry, with the same label, adds to its rounds.

        Parameters
        ----------
        mechanism
            What is about to be used.
        rounds
            How many times, from 1 to 10^9.
        label
            A text that is kept with the entry, such as the name of a training run.

        Raises
        ------
        BudgetExceededError
            If the total would exceed the budget. Nothing is written down then, and the release must
            not be made.
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range, or the mechanism does not know the
            ledger's adjacency.
        """
        entry = checked_entry(self.adjacency, mechanism, rounds, label)
        with self._lock:
            parts = parts_of((*self._entries, entry))
            if not self._fits(parts, mechanism):
                raise BudgetExceededError(
                    f"{entry.rounds} round{'s' if entry.rounds > 1 else ''} of "
                    f"{_arguments.shown(mechanism)} would bring epsilon to "
                    f"{composed(parts, self._budget):.6g} at delta = {self.delta}: the budget is "
                    f"{self.epsilon}, and {self.spent():.6g} of it is spent"
                )
            self._entries = written(self._entries, entry)

    def can_spend(self, mechanism: Mechanism, rounds: int = 1) -> bool:
        """Say whether :meth:`spend` would succeed, without spending.

        Parameters
        ----------
        mechanism, rounds
            As for :meth:`spend`.

        Returns
        -------
        bool
            Whether the total would stay within the budget.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            As for :meth:`spend`.
        """
        entry = checked_entry(self.adjacency, mechanism, rounds, None)
        parts = parts_of((*self._entries, entry))
        return self._proofs(parts).fits(counts_of(parts))

    def affordable_rounds(self, mechanism: Mechanism) -> int:
        """Find the largest number of rounds of a mechanism that still fits.

        The number at least doubles until it no longer fits, then the bracket is narrowed by
        interpolation and bisection. About ten compositions as a rule, some seconds; spending the
        answer costs nothing more.

        Parameters
        ----------
        mechanism
            What is to be used.

        Returns
        -------
        int
            From 0 to 10^9, the most that a ledger counts.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            As for :meth:`spend`.

        Examples
        --------
        >>> from turnout.accounting import GaussianMechanism
        >>> ledger = PrivacyLedger(epsilon=1.0, delta=1e-5)
        >>> query = GaussianMechanism(noise_multiplier=20.0)
        >>> rounds = ledger.affordable_rounds(query)
        >>> ledger.can_spend(query, rounds), ledger.can_spend(query, rounds + 1)
        (True, False)
        """
        checked_entry(self.adjacency, mechanism, 1, None)
        parts = parts_of(self._entries)

        def total(rounds: int) -> float:
            more = extended(parts, mechanism, rounds)
            return math.inf if max(counts_of(more)) > MOST_ROUNDS else composed(more, self._budget)

        rounds = largest_within(total, self.epsilon)
        if rounds:
            more = extended(parts, mechanism, rounds)
            self._proofs(more).fits(counts_of(more))
        return rounds

    def spent(self) -> float:
        """Bound the epsilon of everything together, at the budget's delta, from above.

        Returns
        -------
        float
            0 if nothing was spent. Not above the budget, but in a ledger that was read from a file:
            by a relative 1e-6 where no proof of more rounds is at hand, and by any amount if its
            entries are not those of a ledger.
        """
        parts = parts_of(self._entries)
        total = composed(parts, self._budget)
        if total > self.epsilon and self._proofs(parts).covers(counts_of(parts)):
            # More rounds were found to fit: the search for this total ended a little above.
            return self.epsilon
        return total

    def remaining(self) -> float:
        """Subtract what is spent from the budget.

        By itself this promises nothing about a further release: epsilons do not add up. A release
        of this epsilon at the same delta may not fit, and many releases of more may. Ask
        :meth:`can_spend` or :meth:`affordable_rounds`.

        Returns
        -------
        float
            The budget minus :meth:`spent`.
        """
        return max(0.0, self.epsilon - self.spent())

    def composition(self) -> Composition:
        """Give the composition of all entries, for any other epsilon or delta.

        Raises
        ------
        InvalidValueError
            If nothing was spent.
        """
        if not self._entries:
            raise InvalidValueError("the ledger has no entries to compose")
        return compose([(entry.mechanism, entry.rounds) for entry in self._entries], self.adjacency)

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each entry, for tables and programs.

        Returns
        -------
        list of dict
            With ``label``, ``mechanism`` (as text) and ``rounds``.

        Examples
        --------
        >>> from turnout.accounting import LocalSampling
        >>> ledger = PrivacyLedger(epsilon=1.0, delta=1e-5)
        >>> ledger.spend(LocalSampling(sample_rate=0.01, noise_multiplier=1.0), rounds=5)
        >>> ledger.to_records()[0]["rounds"]
        5
        """
        return [
            {"label": entry.label, "mechanism": repr(entry.mechanism), "rounds": entry.rounds}
            for entry in self._entries
        ]

    def to_dict(self) -> dict[str, Any]:
        """Describe the ledger in terms of JSON."""
        return {
            "format": LEDGER.format,
            "version": LEDGER.version,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency,
            "entries": [entry._to_dict() for entry in self._entries],
        }

    @classmethod
    def from_dict(cls, description: Any) -> PrivacyLedger:
        """Rebuild a ledger from :meth:`to_dict`.

        Nothing is composed: a description may hold entries that its budget does not pay for. Such a
        ledger refuses every release, and :meth:`spent` says what its entries spend.

        Parameters
        ----------
        description
            What :meth:`to_dict` gave, perhaps through JSON.

        Returns
        -------
        PrivacyLedger
            Equal to the one that was described.

        Raises
        ------
        UnsupportedVersionError
            If it is a ledger of a version that this release does not read.
        CorruptDataError
            If it is no ledger.
        """
        LEDGER.check_version(description)
        match description:
            case {
                "format": "turnout-ledger",
                "version": int(),
                "epsilon": epsilon,
                "delta": delta,
                "adjacency": str(adjacency),
                "entries": list(entries),
                **rest,
            } if not rest:
                try:
                    budget = cls(epsilon, delta, adjacency)._budget
                    return _restored(budget, tuple(described_entry(adjacency, e) for e in entries))
                except TurnoutError as error:
                    raise CorruptDataError(f"not a ledger of turnout: {error}") from error
        raise CorruptDataError(f"not a ledger of turnout: {_arguments.shown(description)}")

    def _to_json(self) -> str:
        """Write the ledger as canonical JSON with a checksum: keys sorted, no spaces, ASCII only.

        Returns
        -------
        str
            One object: :meth:`to_dict`, and as ``"sha256"`` the SHA-256 of the same text without
            it. The checksum finds accidents; whoever can write the text can also compute it again.
        """
        return LEDGER.text(self.to_dict())

    @classmethod
    def _from_json(cls, text: str | bytes) -> PrivacyLedger:
        """Rebuild a ledger from :meth:`_to_json`.

        Parameters
        ----------
        text
            The text, unchanged to the last character.

        Returns
        -------
        PrivacyLedger
            Equal to the one that was written.

        Raises
        ------
        UnsupportedVersionError
            If it is a ledger of a version that this release does not read.
        CorruptDataError
            If it is no ledger, or was altered or cut.
        InvalidTypeError
            If ``text`` is not text.

        Examples
        --------
        >>> ledger = PrivacyLedger(epsilon=2.0, delta=1e-6)
        >>> PrivacyLedger._from_json(ledger._to_json()) == ledger
        True
        """
        return cls.from_dict(LEDGER.read(text))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the ledger to a file, which appears whole or not at all.

        Parameters
        ----------
        path
            The file; an earlier one is replaced.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        data = self._to_json().encode("ascii")
        with atomic_write(path) as temporary:
            temporary.write_bytes(data)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PrivacyLedger:
        """Read a ledger from a file.

        Parameters
        ----------
        path
            A file that :meth:`write` wrote.

        Returns
        -------
        PrivacyLedger
            Equal to the one that was saved.

        Raises
        ------
        UnsupportedVersionError, CorruptDataError
            As for :meth:`_from_json`; the message names the file.
        OSError
            If the file cannot be read.
        """
        try:
            return cls._from_json(read_bytes(path))
        except CorruptDataError as error:
            raise type(error)(f"{os.fspath(path)}: {error}") from error

    def __eq__(self, other: object) -> bool:
        """Compare budgets and entries."""
        return isinstance(other, PrivacyLedger) and self._state() == other._state()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Show the budget and how much was written down."""
        rounds = sum(entry.rounds for entry in self._entries)
        return (
            f"PrivacyLedger(epsilon={self.epsilon!r}, delta={self.delta!r}, "
            f"adjacency={self.adjacency!r}; {len(self._entries)} entries, {rounds} rounds)"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the lock behind when the ledger is copied or pickled."""
        return _restored, self._state()

    def _state(self) -> tuple[Budget, tuple[LedgerEntry, ...]]:
        return self._budget, self._entries

    def _fits(self, parts: Parts, mechanism: Mechanism) -> bool:
        """Say whether parts fit; prove ahead if the mechanism is being repeated."""
        counts, proofs = counts_of(parts), self._proofs(parts)
        if proofs.covers(counts):
            return True
        # A mechanism that comes for the first time may also come for the last time.
        first = not self._marks or len(parts) > len(self._marks[0])
        place = [known for known, _ in parts].index(mechanism)
        if not first and proofs.prove_ahead(counts, counts_of(self._marks[0]), place):
            # As many as there are mechanisms: those that take turns are proven ahead together.
            self._marks = (*self._marks, parts)[-len(parts) :]
            return True
        fitting = proofs.fits(counts)
        if fitting and first:
            self._marks = (parts,)
        return fitting

    def _proofs(self, parts: Parts) -> Proofs:
        mechanisms = tuple(mechanism for mechanism, _ in parts)
        return proofs_for(mechanisms, self._budget)


def _restored(budget: Budget, entries: tuple[LedgerEntry, ...]) -> PrivacyLedger:
    ledger = PrivacyLedger(*budget)
    ledger._entries = entries
    ledger._marks = (parts_of(entries),) if entries else ()
    return ledger
