"""The entries of a ledger, and its text: canonical JSON with a version and a checksum.

One object, keys sorted, no spaces, ASCII only: ``format`` (``"turnout-ledger"``), ``version`` (1),
``epsilon``, ``delta``, ``adjacency``, ``entries`` (a list of objects with ``mechanism``, ``rounds``
and ``label``), and ``sha256``, the SHA-256 in hexadecimal of the same text without that key. The
checksum finds accidents; anyone who can write the text can also recompute it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from turnout import _arguments
from turnout._documents import SealedDocument
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.proofs import Parts
from turnout.accounting.registry import mechanism_from_dict
from turnout.accounting.values import MOST_ROUNDS
from turnout.errors import CorruptDataError, InvalidValueError

LEDGER: Final = SealedDocument("ledger", "turnout-ledger", 1)


@dataclass(frozen=True)
class LedgerEntry:
    """One entry of a ledger.

    Attributes
    ----------
    mechanism
        The mechanism that was used.
    rounds
        The number of times.
    label
        The text given with it, or None.
    """

    mechanism: Mechanism
    rounds: int
    label: str | None = None

    def _to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the entry."""
        return {**vars(self), "mechanism": self.mechanism.to_dict()}


def checked_entry(adjacency: str, mechanism: Any, rounds: Any, label: Any) -> LedgerEntry:
    """Check and create an entry of a ledger with this adjacency.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or the mechanism does not know the
        adjacency.
    """
    _arguments.instance("mechanism", mechanism, Mechanism, "a mechanism of turnout.accounting")
    if adjacency not in mechanism.adjacencies:
        known = ", ".join(repr(word) for word in mechanism.adjacencies)
        raise InvalidValueError(
            f"mechanism must know the ledger's adjacency {adjacency!r}; "
            f"{_arguments.shown(mechanism)} knows {known}"
        )
    times = _arguments.integer("rounds", rounds, least=1, most=MOST_ROUNDS)
    if not (label is None or isinstance(label, str)):
        raise _arguments.mistyped("label must be text or None", label)
    try:
        (label or "").encode()
    except UnicodeEncodeError as error:
        raise _arguments.invalid(
            "label must be text that can be written to a file", label
        ) from error
    return LedgerEntry(mechanism, times, label)


def described_entry(adjacency: str, description: Any) -> LedgerEntry:
    """Rebuild an entry from its description.

    Raises
    ------
    CorruptDataError, InvalidTypeError, InvalidValueError
        If it does not describe an entry.
    """
    match description:
        case {"mechanism": mechanism, "rounds": rounds, "label": label, **rest} if not rest:
            return checked_entry(adjacency, mechanism_from_dict(mechanism), rounds, label)
    raise CorruptDataError(f"no entry of a ledger: {_arguments.shown(description)}")


def written(entries: tuple[LedgerEntry, ...], entry: LedgerEntry) -> tuple[LedgerEntry, ...]:
    """Add an entry; an entry that repeats the last one adds to its rounds."""
    if entries:
        last = entries[-1]
        if (last.mechanism, last.label) == (entry.mechanism, entry.label):
            return (*entries[:-1], replace(last, rounds=last.rounds + entry.rounds))
    return (*entries, entry)


def parts_of(entries: tuple[LedgerEntry, ...]) -> Parts:
    """Count the rounds of each mechanism, in the order of their first entries.

    Raises
    ------
    InvalidValueError
        If there are more rounds than can be composed.
    """
    counts: dict[Mechanism, int] = {}
    for entry in entries:
        counts[entry.mechanism] = counts.get(entry.mechanism, 0) + entry.rounds
    for mechanism, rounds in counts.items():
        if rounds > MOST_ROUNDS:
            raise InvalidValueError(
                f"rounds must add up to at most {MOST_ROUNDS} for each mechanism of a ledger, got "
                f"{rounds} of {_arguments.shown(mechanism)}"
            )
    return tuple(counts.items())


def counts_of(parts: Parts) -> tuple[int, ...]:
    """Return only the numbers of rounds."""
    return tuple(rounds for _, rounds in parts)
