"""A ledger of what was spent of a privacy budget."""

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
    """A privacy budget that refuses releases which exceed it.

    The total is the composition of all entries, not the sum of their epsilons. Each client can keep
    its own ledger without knowing anything about the others: its spending depends only on the use
    of its own data.

    The computation of a mechanism may depend on earlier results. The choice of mechanisms and their
    parameters must not, since composition bounds only fixed choices. Stopping early is always
    allowed.

    Parameters
    ----------
    epsilon
        The budget, finite and above 0.
    delta
        The delta of the budget, at least 0 and below 1.
    adjacency
        The neighbouring data sets: ``"add_or_remove"`` (also if None), ``"add"``, ``"remove"`` or
        ``"replace"``. Every mechanism in the ledger must know this adjacency.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    Methods that need a total compose all entries. This takes some tenths of a second (for shuffled
    reports some seconds and more) for each total that was not computed before in this process, in
    proportion to the number of *different* mechanisms. Spending round by round costs far less.
    Fewer rounds never spend more, so a composition that fits proves all smaller ones. The ledger
    composes ahead about as often as the number of rounds doubles. Ledgers share totals and proofs,
    so a thousand clients with one history cost as much as one.

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
        """The delta of the budget."""
        return self._budget.delta

    @property
    def adjacency(self) -> str:
        """The neighbouring data sets."""
        return self._budget.adjacency

    @property
    def entries(self) -> tuple[LedgerEntry, ...]:
        """The recorded releases, in order."""
        return self._entries

    def spend(self, mechanism: Mechanism, rounds: int = 1, label: str | None = None) -> None:
        """Record a release *before* you make it.

        A release of the same mechanism and label as the last entry adds to its rounds.

        Parameters
        ----------
        mechanism
            The mechanism that you are about to use.
        rounds
            The number of times, from 1 to 10^9.
        label
            A text that the entry keeps, such as the name of a training run.

        Raises
        ------
        BudgetExceededError
            If the total would exceed the budget. Then nothing is recorded, and you must not make
            the release.
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
        """Return whether :meth:`spend` would succeed, without spending.

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
        """Return the largest number of rounds of a mechanism that still fits.

        The number at least doubles until it no longer fits. Then interpolation and bisection narrow
        the bracket. This usually takes about ten compositions, some seconds. Spending the result
        then costs nothing more.

        Parameters
        ----------
        mechanism
            The mechanism that you want to use.

        Returns
        -------
        int
            A number from 0 to 10^9, the most that a ledger counts.

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
        """Return an upper bound of the total epsilon, at the budget's delta.

        Returns
        -------
        float
            0 if nothing was spent. It is at most the budget, except in a ledger that was read from
            a file. There it can be a relative 1e-6 above if no proof of more rounds is available,
            and any amount above if a ledger did not write the entries.
        """
        parts = parts_of(self._entries)
        total = composed(parts, self._budget)
        if total > self.epsilon and self._proofs(parts).covers(counts_of(parts)):
            # More rounds were found to fit: the search for this total ended a little above.
            return self.epsilon
        return total

    def remaining(self) -> float:
        """Return the budget minus the spent epsilon.

        This says nothing about a further release, because epsilons do not add up. A release of this
        epsilon at the same delta may not fit, and many releases of larger epsilons may fit. Call
        :meth:`can_spend` or :meth:`affordable_rounds` instead.

        Returns
        -------
        float
            The budget minus :meth:`spent`.
        """
        return max(0.0, self.epsilon - self.spent())

    def composition(self) -> Composition:
        """Return the composition of all entries, for any other epsilon or delta.

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
            Dictionaries with ``label``, ``mechanism`` (as text) and ``rounds``.

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
        """Return a JSON description of the ledger."""
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

        Nothing is composed, so a description may hold entries that exceed its budget. Such a ledger
        refuses every release, and :meth:`spent` returns what its entries spend.

        Parameters
        ----------
        description
            The result of :meth:`to_dict`, possibly after a JSON round trip.

        Returns
        -------
        PrivacyLedger
            An equal ledger.

        Raises
        ------
        UnsupportedVersionError
            If this release does not read the ledger's version.
        CorruptDataError
            If it is not a ledger.
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
            it. The checksum finds accidents; anyone who can write the text can also recompute it.
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
            An equal ledger.

        Raises
        ------
        UnsupportedVersionError
            If this release does not read the ledger's version.
        CorruptDataError
            If it is not a ledger, or was altered or truncated.
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
            The file; an existing one is replaced.

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
            An equal ledger.

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
        """Show the budget and the numbers of entries and rounds."""
        rounds = sum(entry.rounds for entry in self._entries)
        return (
            f"PrivacyLedger(epsilon={self.epsilon!r}, delta={self.delta!r}, "
            f"adjacency={self.adjacency!r}; {len(self._entries)} entries, {rounds} rounds)"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the ledger without its lock."""
        return _restored, self._state()

    def _state(self) -> tuple[Budget, tuple[LedgerEntry, ...]]:
        return self._budget, self._entries

    def _fits(self, parts: Parts, mechanism: Mechanism) -> bool:
        """Return whether parts fit; prove ahead if the mechanism is being repeated."""
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
