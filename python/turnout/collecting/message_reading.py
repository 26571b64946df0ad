"""Messages as they are read: which a plan allows, which came in before, and why others are refused.

The layout of a message is that of :mod:`turnout.collecting.report_messages`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout._documents import canonical, parsed
from turnout._types import Array
from turnout.collecting.keys import Key, key_from_json
from turnout.collecting.public_groups import key_among
from turnout.errors import (
    CorruptDataError,
    InvalidValueError,
    PlanExpiredError,
    PlanMismatchError,
    TurnoutError,
    UnsupportedVersionError,
)

FORMAT: Final = "turnout-report"
VERSION: Final = 1
NONCE_BYTES: Final = 16

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

_MEMBERS = {"format", "version", "plan", "nonce", "report"}
_GROUPED = _MEMBERS | {"group"}
_NONCE = re.compile("[0-9a-f]{32}")
_CONTENT = 16


class RefusedError(Exception):
    """One message is refused: of which kind the refusal is, and why."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class Seen:
    """Remembers the messages that came in, in memory: by the sixteen bytes that each has.

    Any object with the same two methods will do, such as a table of a database.

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
        """Return the number of different messages."""
        return len(self._contents)

    def remember(self, nonces: Sequence[bytes], contents: Sequence[bytes]) -> list[bytes | None]:
        """Remember new messages.

        Parameters
        ----------
        nonces
            For each message its own bytes.
        contents
            For each what it says, or a digest of that, in at most 16 bytes.

        Returns
        -------
        list of bytes or None
            For each message what the earlier one with the same bytes says, also one of this call;
            None if there is none.
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
    """Messages that were read: those that a plan allows, and why the others are refused.

    Attributes
    ----------
    size
        How many messages were read.
    positions, plans, nonces, keys, reports
        Of each good message its place, the number of its plan, its own bytes, its group and its
        report.
    refusals
        The refusals of the others, by their places.
    """

    def __init__(self, layouts: Sequence[_Layout]) -> None:
        self._layouts = layouts
        self.size = 0
        self.positions: list[int] = []
        self.plans: list[int] = []
        self.nonces: list[bytes] = []
        self.keys: list[Key] = []
        self.reports: list[int | bytes] = []
        self.refusals: dict[int, RefusedError] = {}

    def __len__(self) -> int:
        """Return the number of good messages."""
        return len(self.reports)

    def add(self, position: int, parsed: tuple[int, bytes, Key, int | bytes]) -> None:
        """Add a good message: its plan, nonce, group and report."""
        plan, nonce, key, report = parsed
        self.positions.append(position)
        self.plans.append(plan)
        self.nonces.append(nonce)
        self.keys.append(key)
        self.reports.append(report)

    def codes(self) -> Array:
        """Give the reports, in the order of the messages; plans of one collector ask the same."""
        return self._layouts[0].array(self.reports)

    def by_group(self) -> Iterator[tuple[Key, Array]]:
        """Give the reports of each group."""
        codes = self.codes()
        places: dict[Key, list[int]] = {}
        for place, key in enumerate(self.keys):
            places.setdefault(key, []).append(place)
        if len(places) == 1:
            yield self.keys[0], codes
            return
        for key, own in places.items():
            yield key, codes[own]

    def take(self, other: Batch) -> None:
        """Add the good messages of another batch after these."""
        self.positions += other.positions
        self.plans += other.plans
        self.nonces += other.nonces
        self.keys += other.keys
        self.reports += other.reports

    def leave_out_impossible(self) -> None:
        """Refuse the reports that the oracle cannot have made."""
        if not self.reports:
            return
        layout = self._layouts[0]
        impossible = layout.impossible(self.codes(), 0)
        reason = f"holds no report of {layout.oracle.name} that its parameters allow"
        self._refuse(dict.fromkeys(impossible, ("impossible", reason)))

    def leave_out_expired(self, plan: int, reason: str) -> None:
        """Refuse the messages under a plan that had expired."""
        late = [place for place, of in enumerate(self.plans) if of == plan]
        self._refuse(dict.fromkeys(late, ("expired", reason)))

    def leave_out_repeated(self, seen: Any) -> int:
        """Leave out what came in before, refuse what contradicts it, and count the former."""
        contents = list(map(_content, self.keys, self.reports))
        repeated = set()
        contradictory = {}
        for place, earlier in enumerate(seen.remember(self.nonces, contents)):
            if earlier is not None and earlier == contents[place]:
                repeated.add(place)
            elif earlier is not None:
                reason = "has the nonce of an earlier message and another report"
                contradictory[place] = ("contradictory", reason)
        self._refuse(contradictory, repeated)
        return len(repeated)

    def refusals_by_kind(self) -> dict[str, int]:
        """Count the refusals of each kind."""
        kinds = dict.fromkeys(REFUSALS, 0)
        for refusal in self.refusals.values():
            kinds[refusal.kind] += 1
        return kinds

    def _refuse(
        self, refused: Mapping[int, tuple[str, str]], left_out: Collection[int] = ()
    ) -> None:
        """Take good messages out, with the kind of refusal and the reason or without a word."""
        if not (refused or left_out):
            return
        for place, (kind, reason) in refused.items():
            self.refusals[self.positions[place]] = RefusedError(kind, reason)
        kept = [place not in refused and place not in left_out for place in range(len(self.plans))]
        self.positions = list(compress(self.positions, kept))
        self.plans = list(compress(self.plans, kept))
        self.nonces = list(compress(self.nonces, kept))
        self.keys = list(compress(self.keys, kept))
        self.reports = list(compress(self.reports, kept))


def _content(key: Key, report: int | bytes) -> bytes:
    """Give at most 16 bytes that say what a message says."""
    if isinstance(report, int):
        report = report.to_bytes(9, "little", signed=True)
    if not key and len(report) <= _CONTENT:
        return report
    said = repr(key).encode() + report
    return hashlib.blake2b(said, digest_size=_CONTENT).digest()


class Reader:
    """Reads the messages of some plans, and knows nothing of those that came before.

    Parameters
    ----------
    plans
        Plans that ask the same; each has a fingerprint of its own.
    """

    def __init__(self, plans: Sequence[Any]) -> None:
        self._layouts = [_Layout(plan) for plan in plans]
        self._numbers = {plan.fingerprint: number for number, plan in enumerate(plans)}

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
        given = _arguments.items("messages", messages, "an iterable of messages", private=True)
        batch = Batch(self._layouts)
        batch.size = len(given)
        for position, message in enumerate(given):
            if not isinstance(message, (str, bytes, bytearray)):
                raise _arguments.mistyped(
                    f"messages[{position}] must be bytes or text", _arguments.Private(message)
                )
            try:
                batch.add(position, self._parsed(message))
            except RefusedError as refusal:
                batch.refusals[position] = refusal
        batch.leave_out_impossible()
        return batch

    def _parsed(self, message: str | bytes | bytearray) -> tuple[int, bytes, Key, int | bytes]:
        """Parse one message: the number of its plan, its nonce, its group and its report."""
        try:
            text = message if isinstance(message, str) else message.decode("utf-8")
            members = parsed(text)
        except ValueError:
            raise _malformed(message) from None
        if not isinstance(members, dict) or members.get("format") != FORMAT:
            raise _malformed(message)
        version = members.get("version")
        if type(version) is not int or version != VERSION:
            raise RefusedError(
                "other_version",
                f"has version {_arguments.shown(version)}; this release of turnout reads {VERSION}",
            )
        if members.keys() != _MEMBERS and members.keys() != _GROUPED:
            raise _malformed(message)
        plan = members["plan"]
        number = self._numbers.get(plan) if isinstance(plan, str) else None
        if number is None:
            raise RefusedError(
                "other_plan",
                f"was made under the plan {_arguments.shown(plan)}, not under "
                f"{' or '.join(map(repr, self._numbers))}",
            )
        nonce = members["nonce"]
        if not (isinstance(nonce, str) and _NONCE.fullmatch(nonce)):
            raise RefusedError(
                "malformed",
                f"must have a nonce of {2 * NONCE_BYTES} hexadecimal digits",
            )
        layout = self._layouts[number]
        if len(members) != len(layout.members):
            raise _malformed(message)
        key = layout.key(members["group"]) if layout.groups else ()
        return number, bytes.fromhex(nonce), key, layout.report(members["report"])


class _Layout:
    """How the reports of a plan stand in messages."""

    def __init__(self, plan: Any) -> None:
        self.oracle, self.groups = plan.oracle, plan.groups
        self.members = _GROUPED if plan.groups else _MEMBERS
        self._keys: dict[str, Key] = {}
        self._dtype, self._shape = plan.oracle.report_dtype, plan.oracle.report_shape
        limits = np.iinfo(self._dtype)
        self._least, self._most = int(limits.min), int(limits.max)
        self._digits = 2 * self._dtype.itemsize * (self._shape[0] if self._shape else 0)

    def key(self, group: Any) -> Key:
        """Take the group of a message.

        Raises
        ------
        RefusedError
            If the plan does not list it.
        """
        written = canonical(group)
        if written not in self._keys:
            try:
                key = key_from_json(group, len(self.groups))
                self._keys[written] = key_among("group", self.groups, key)
            except TurnoutError as error:
                raise RefusedError("malformed", f"has no group of the plan: {error}") from None
        return self._keys[written]

    def report(self, report: Any) -> int | bytes:
        """Take the report of a message.

        Raises
        ------
        RefusedError
            If it is not of this layout.
        """
        if not self._shape:
            if type(report) is int and self._least <= report <= self._most:
                return report
            expected = f"an integer from {self._least} to {self._most}"
        else:
            if isinstance(report, str) and len(report) == self._digits:
                # fromhex() skips spaces: the length of what it gives shows them.
                try:
                    data = bytes.fromhex(report)
                except ValueError:
                    data = b""
                if data.hex() == report:
                    return data
            expected = f"{self._digits} hexadecimal digits"
        raise RefusedError("malformed", f"must have a report of {expected}")

    def array(self, reports: list[Any]) -> Array:
        """Put reports into an array."""
        if not self._shape:
            return np.array(reports, dtype=self._dtype)
        rows = np.frombuffer(b"".join(reports), self._dtype.newbyteorder("<"))
        return rows.reshape(-1, self._shape[0]).astype(self._dtype)

    def impossible(self, codes: Array, start: int) -> list[int]:
        """Find the positions of reports that the oracle cannot have made, by halves."""
        try:
            self.oracle.check_reports(codes)
        except InvalidValueError:
            if len(codes) == 1:
                return [start]
        else:
            return []
        middle = len(codes) // 2
        first = self.impossible(codes[:middle], start)
        return first + self.impossible(codes[middle:], start + middle)


def _malformed(message: str | bytes | bytearray) -> RefusedError:
    # Nothing of it is shown: it may be a report, or somebody's answer.
    unit = "characters" if isinstance(message, str) else "bytes"
    return RefusedError("malformed", f"is no message of turnout, got {len(message)} {unit}")
