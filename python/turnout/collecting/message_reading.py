"""Reading of messages: which a plan accepts, which are repeated, and why others are refused.

:mod:`turnout.collecting.report_messages` describes the layout of a message; the core reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, Final

import numpy as np

from turnout import _arguments, _core
from turnout._types import Array
from turnout.collecting.keys import Key
from turnout.collecting.public_groups import Groups
from turnout.errors import (
    CorruptDataError,
    InvalidValueError,
    PlanExpiredError,
    PlanMismatchError,
    TurnoutError,
    UnsupportedVersionError,
)

#: The kinds of refusals, and what is raised where they are not counted.
ERRORS: Final[dict[str, type[TurnoutError]]] = {
    "malformed": CorruptDataError,
    "other_version": UnsupportedVersionError,
    "other_plan": PlanMismatchError,
    "impossible": CorruptDataError,
    "contradictory": CorruptDataError,
    "expired": PlanExpiredError,
}
#: Those of messages that are put together at once, under a plan that had not expired.
REFUSALS: Final = tuple(kind for kind in ERRORS if kind != "expired")


class RefusedError(Exception):
    """The refusal of one message: its kind and its reason."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class Seen:
    """A memory of the messages that arrived, by their nonces of sixteen bytes.

    Any object with the same two methods can replace it, such as a table of a database.

    Examples
    --------
    >>> seen = Seen()
    >>> seen.remember([b"first", b"second", b"first"], [b"yes", b"no", b"yes"])
    [None, None, b'yes']
    >>> len(seen)
    2
    """

    def __init__(self) -> None:
        self._contents: dict[bytes, bytes] = {}

    def __len__(self) -> int:
        """Return the number of distinct messages."""
        return len(self._contents)

    def remember(self, nonces: Sequence[bytes], contents: Sequence[bytes]) -> list[bytes | None]:
        """Remember new messages.

        Parameters
        ----------
        nonces
            The nonce of each message.
        contents
            The content of each message, or its digest, in at most 16 bytes.

        Returns
        -------
        list of bytes or None
            For each message the content of the earlier one with the same nonce, in this call too;
            None if it is the first.
        """
        known = self._contents
        found: list[bytes | None] = []
        for nonce, content in zip(nonces, contents, strict=True):
            earlier = known.get(nonce)
            found.append(earlier)
            if earlier is None:
                known[nonce] = content
        return found


class Batch:
    """Messages that were read: those that a plan accepts, and the refusals of the others.

    Attributes
    ----------
    size
        The number of messages that were read.
    positions, plans, nonces, contents, groups, codes
        Of each accepted message its position, the index of its plan, its nonce, its content in at
        most 16 bytes, the indices of its group's values, and its report.
    refusals
        The refusals of the others, by position.
    """

    def __init__(self, reader: Reader, messages: list[Any]) -> None:
        found = reader.core.read(messages)
        self._reader = reader
        self.size = len(messages)
        self.positions, self.plans, self.nonces, self.contents, self.groups = found[:5]
        self.codes = reader.codes(found[5])
        self.refusals: dict[int, RefusedError] = {
            place: RefusedError(kind, reason) for place, kind, reason in found[6]
        }
        self._leave_out_impossible()

    def __len__(self) -> int:
        """Return the number of accepted messages."""
        return len(self.nonces)

    def _leave_out_impossible(self) -> None:
        """Refuse the reports that the oracle cannot have made."""
        if not len(self):
            return
        oracle = self._reader.oracle
        impossible = _impossible(oracle, self.codes, 0)
        reason = f"holds no report of {oracle.name} that its parameters allow"
        self._refuse(dict.fromkeys(impossible, ("impossible", reason)))

    def leave_out_expired(self, plan: int, reason: str) -> None:
        """Refuse the messages under a plan that had expired."""
        late = np.flatnonzero(self.plans == plan).tolist()
        self._refuse(dict.fromkeys(late, ("expired", reason)))

    def leave_out_repeated(self, seen: Any) -> int:
        """Leave out repeated messages and count them; refuse contradictory ones."""
        repeated = set()
        contradictory = {}
        for place, earlier in enumerate(seen.remember(self.nonces, self.contents)):
            if earlier is None:
                continue
            if earlier == self.contents[place]:
                repeated.add(place)
            else:
                reason = "has the nonce of an earlier message and another report"
                contradictory[place] = ("contradictory", reason)
        self._refuse(contradictory, repeated)
        return len(repeated)

    def leave_out(self, refused: Mapping[int, tuple[str, str]]) -> None:
        """Refuse accepted messages by index, each with its kind and reason."""
        self._refuse(refused)

    def refusals_by_kind(self, kinds: Iterable[str] = REFUSALS) -> dict[str, int]:
        """Count the refusals of each kind."""
        found = dict.fromkeys(kinds, 0)
        for refusal in self.refusals.values():
            found[refusal.kind] += 1
        return found

    def _refuse(
        self, refused: Mapping[int, tuple[str, str]], left_out: Collection[int] = ()
    ) -> None:
        """Remove accepted messages, with or without a refusal."""
        if not (refused or left_out):
            return
        for place, (kind, reason) in refused.items():
            self.refusals[int(self.positions[place])] = RefusedError(kind, reason)
        kept = np.ones(len(self), bool)
        kept[[*refused, *left_out]] = False
        self.positions, self.plans = self.positions[kept], self.plans[kept]
        self.groups = self.groups[kept] if self._reader.groups else self.groups
        self.codes = self.codes[kept]
        self.nonces = list(compress(self.nonces, kept))
        self.contents = list(compress(self.contents, kept))


class Reader:
    """A reader of the messages of some plans; it remembers no earlier messages.

    Parameters
    ----------
    plans
        Plans that ask the same of the same groups, with distinct fingerprints.
    """

    def __init__(self, plans: Sequence[Any]) -> None:
        self.oracle = plans[0].oracle
        self.groups: Groups = plans[0].groups
        self._dtype, self._shape = self.oracle.report_dtype, self.oracle.report_shape
        described = [plan._described for plan in plans]
        self.core = _core.MessageReader(described, *layout_of(self.oracle))

    def read(self, messages: Iterable[bytes | str]) -> Batch:
        """Read messages and check that their reports are possible.

        Raises
        ------
        InvalidTypeError
            If they are not an iterable of bytes or text.
        """
        if isinstance(messages, (str, bytes)):
            raise _arguments.mistyped(
                "messages must be an iterable of messages", _arguments.Private(messages)
            )
        expected = "an iterable of messages"
        return Batch(self, _arguments.items("messages", messages, expected, private=True))

    def codes(self, rows: Array) -> Array:
        """Put the bytes of reports into an array."""
        little = rows.view(self._dtype.newbyteorder("<"))
        codes: Array = little.astype(self._dtype, copy=False).reshape(-1, *self._shape)
        return codes

    def by_group(self, batches: Sequence[Batch]) -> Iterator[tuple[Key, Array, list[bytes]]]:
        """Return the reports of each group, and the nonces of their messages."""
        codes = np.concatenate([batch.codes for batch in batches])
        nonces = [nonce for batch in batches for nonce in batch.nonces]
        if not self.groups:
            yield (), codes, nonces
            return
        rows = np.concatenate([batch.groups for batch in batches])
        for row in np.unique(rows, axis=0):
            values = zip(self.groups.values(), row.tolist(), strict=True)
            inside = (rows == row).all(axis=1)
            key = tuple(of[number] for of, number in values)
            yield key, codes[inside], list(compress(nonces, inside))


def layout_of(oracle: Any) -> tuple[int, bool, int | None]:
    """Return the layout of a report in a message: bytes, sign and number of its integers.

    Examples
    --------
    >>> import turnout as tn
    >>> layout_of(tn.DirectEncoding(1.0, 3)), layout_of(tn.OptimizedUnaryEncoding(1.0, 100))
    ((1, False, None), (8, False, 2))
    """
    dtype, shape = oracle.report_dtype, oracle.report_shape
    return dtype.itemsize, dtype.kind == "i", shape[0] if shape else None


def _impossible(oracle: Any, codes: Array, start: int) -> list[int]:
    """Find the positions of reports that the oracle cannot have made, by bisection."""
    try:
        oracle.check_reports(codes)
    except InvalidValueError:
        if len(codes) == 1:
            return [start]
    else:
        return []
    middle = len(codes) // 2
    first = _impossible(oracle, codes[:middle], start)
    return first + _impossible(oracle, codes[middle:], start + middle)
