r"""Messages: what one device sends, and a server puts together.

.. code-block:: text

   {"format":"turnout-report","version":1,"plan":"32e0...a7d2","nonce":"8f3b...04c1","report":2}

A message is one line of JSON in UTF-8, an object with these five members in any order and no
others:

* ``plan`` is the fingerprint of the plan, 64 hexadecimal digits: what was made under another plan
  is refused.
* ``nonce`` is the message's own: 16 bytes from the operating system's generator, never from a
  seed, in lower-case hexadecimal. A message that is sent again keeps them, and counts once; one
  that has those of another message and not its report is refused. They say nothing about the
  person or the answer.
* ``report`` is what the oracle reported: an integer for oracles whose report is one (with up to
  64 bits, more than the 53 that some readers of JSON take for granted), and otherwise, for rows
  of integers, the little-endian bytes of the row in lower-case hexadecimal. What these numbers
  mean is the oracle's (``report_dtype``, ``report_shape``, and the notes of its class).

A person who does not take part sends nothing. A message holds no identity and no checksum: who
sent it, that nobody makes two, and that nobody else can write into it, is for the transport to
see to.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout._documents import decoder
from turnout._types import Array
from turnout.collecting.randomizer import tell_improbable
from turnout.errors import (
    CorruptDataError,
    InvalidValueError,
    PlanMismatchError,
    TurnoutError,
    UnsupportedVersionError,
)
from turnout.metrics import observe

_FORMAT = "turnout-report"
_VERSION = 1
_MEMBERS = {"format", "version", "plan", "nonce", "report"}
_NONCE_BYTES = 16
_NONCE = re.compile("[0-9a-f]{32}")
_LOGGER = logging.getLogger(__name__)

#: The kinds of refusals, and what is raised where they are not counted.
_ERRORS: Final[dict[str, type[TurnoutError]]] = {
    "malformed": CorruptDataError,
    "other_version": UnsupportedVersionError,
    "other_plan": PlanMismatchError,
    "impossible": CorruptDataError,
    "contradictory": CorruptDataError,
}
REFUSALS: Final = tuple(_ERRORS)


@dataclass(frozen=True)
class Gathered:
    """Reports, and how many messages were left out.

    Made by :meth:`turnout.Plan.gather` with ``on_bad="count"``.

    Attributes
    ----------
    reports
        The reports of the messages that are good.
    refusals
        How many were refused as ``"malformed"``, of ``"other_version"``, of ``"other_plan"``,
        ``"impossible"``: what the oracle cannot have reported, or ``"contradictory"``: with the
        nonce of an earlier message and another report.
    repeated
        How many were left out because an earlier message is the same: they were sent again.
    improbable
        How many of the reports an honest device sends with negligible chance only
        (:meth:`turnout.FrequencyOracle.improbable`). They are in ``reports``, and count.

    Examples
    --------
    >>> import turnout as tn
    >>> plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Bernoulli(0.5))
    >>> gathered = plan.gather([b"hello"], nodes=2, on_bad="count")
    >>> gathered.refused, gathered.refusals["malformed"], len(gathered.reports)
    (1, 1, 0)
    """

    reports: Any
    refusals: dict[str, int]
    repeated: int = 0
    improbable: int = 0

    @property
    def refused(self) -> int:
        """How many messages were refused in all."""
        return sum(self.refusals.values())


class _RefusedError(Exception):
    """A message is refused."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def make_message(plan: Any, value: Any, seed: int | None) -> bytes | None:
    """Make the message of :meth:`turnout.Plan.report`."""
    refuse_personal(plan)
    plan.check_current()
    oracle = plan.oracle
    if not oracle.fresh:
        raise InvalidValueError(
            f"oracle must draw every report afresh, got {oracle!r}, whose permanent answers must "
            "be kept: client(...).message(plan, value) does"
        )
    reports = oracle.randomize([value], participation=plan.participation, seed=seed)
    return message_of(plan, reports.codes)


def message_of(plan: Any, codes: Array) -> bytes | None:
    """Write the message of one person's reports under a plan: one, or none."""
    if not len(codes):
        return None
    record = {
        "format": _FORMAT,
        "version": _VERSION,
        "plan": plan.fingerprint,
        # Not of the seed: two messages must never share it.
        "nonce": secrets.token_hex(_NONCE_BYTES),
        "report": _written(codes[0]),
    }
    return json.dumps(record, separators=(",", ":")).encode("ascii")


def _written(report: Any) -> int | str:
    if report.ndim == 0:
        return int(report)
    return bytes(report.astype(report.dtype.newbyteorder("<")).tobytes()).hex()


def gather(
    plan: Any,
    messages: Iterable[bytes | str],
    nodes: int | None,
    on_bad: str,
    received: datetime | None,
) -> Any:
    """Put messages together as :meth:`turnout.Plan.gather` does."""
    _arguments.choice("on_bad", on_bad, ("refuse", "count"))
    refuse_personal(plan)
    plan.check_current(None if received is None else _arguments.moment("received", received))
    if nodes is not None:
        nodes = _arguments.integer("nodes", nodes, least=0, most=2**64 - 1)
    elif not plan.everyone_reports:
        raise InvalidValueError(
            "nodes must say how many people were asked: under "
            f"{plan.participation!r} silent ones send nothing"
        )
    if isinstance(messages, (str, bytes)):
        raise _arguments.mistyped("messages must be an iterable of messages", messages)
    given = _arguments.items("messages", messages, "an iterable of messages")
    return _Gathering(plan, on_bad == "count").of(given, nodes)


def refuse_personal(plan: Any) -> None:
    """Refuse a plan whose people have probabilities of their own: messages carry none."""
    if plan.participation.uniform_rate is None:
        raise InvalidValueError(
            "participation must be Everyone() or Bernoulli(...) where each person sends one "
            f"message, got {plan.participation!r}: a message does not carry its probability"
        )


class _Gathering:
    """Messages of one plan."""

    def __init__(self, plan: Any, counting: bool) -> None:
        self._plan, self._counting = plan, counting
        self._fingerprint = plan.fingerprint
        self._refusals = dict.fromkeys(REFUSALS, 0)
        oracle = plan.oracle
        self._dtype, self._shape = oracle.report_dtype, oracle.report_shape
        limits = np.iinfo(self._dtype)
        self._least, self._most = int(limits.min), int(limits.max)
        self._digits = 2 * self._dtype.itemsize * (self._shape[0] if self._shape else 0)
        self._decoder = decoder()

    def of(self, messages: list[Any], nodes: int | None) -> Any:
        kept: dict[str, int | bytes] = {}
        positions: list[int] = []
        repeated = 0
        for position, message in enumerate(messages):
            if not isinstance(message, (str, bytes, bytearray)):
                raise _arguments.mistyped(f"messages[{position}] must be bytes or text", message)
            try:
                nonce, report = self._parsed(message)
                if nonce not in kept:
                    kept[nonce] = report
                    positions.append(position)
                elif kept[nonce] == report:
                    repeated += 1
                else:
                    reason = "has the nonce of an earlier message and another report"
                    raise _RefusedError("contradictory", reason)
            except _RefusedError as refusal:
                self._refuse(refusal, position)
        codes = self._array(list(kept.values()))
        impossible = self._impossible(codes, 0, only_first=not self._counting)
        for index in impossible:
            reason = f"holds no report of {self._plan.oracle.name} that its parameters allow"
            self._refuse(_RefusedError("impossible", reason), positions[index])
        codes = np.delete(codes, impossible, axis=0)
        nodes = self._nodes(nodes, len(codes))
        reports = self._plan.oracle.reports(self._plan.participation, codes, nodes)
        if refused := sum(self._refusals.values()):
            observe("messages_refused", messages=refused)
        if repeated:
            observe("messages_repeated", messages=repeated)
            _LOGGER.warning("messages that were there before and count once: %d", repeated)
        improbable = tell_improbable(self._plan.oracle, codes)
        if not self._counting:
            return reports
        return Gathered(reports, self._refusals, repeated, improbable)

    def _nodes(self, nodes: int | None, good: int) -> int:
        """Check the number of people against that of good messages; bad ones may be anybody's."""
        refused = sum(self._refusals.values())
        everyone = self._plan.everyone_reports
        if nodes is not None and (good > nodes or (everyone and nodes > good + refused)):
            bound = "equal the number" if everyone else "be at least the number"
            bad = f", or that and some of {refused} bad ones" if everyone and refused else ""
            raise InvalidValueError(f"nodes must {bound} of messages {good}{bad}, got {nodes}")
        # Who is refused has no report: where all report there is no node without one.
        return good if everyone or nodes is None else nodes

    def _refuse(self, refusal: _RefusedError, position: int) -> None:
        if not self._counting:
            raise _ERRORS[refusal.kind](f"messages[{position}] {refusal}") from None
        self._refusals[refusal.kind] += 1

    def _parsed(self, message: str | bytes | bytearray) -> tuple[str, int | bytes]:
        """Parse one message: its nonce and its report."""
        try:
            text = message if isinstance(message, str) else message.decode("utf-8")
            members = self._decoder.decode(text)
        except (ValueError, RecursionError):
            raise _malformed(message) from None
        if not isinstance(members, dict) or members.get("format") != _FORMAT:
            raise _malformed(message)
        version = members.get("version")
        if type(version) is not int or version != _VERSION:
            raise _RefusedError(
                "other_version",
                f"has version {_arguments.shown(version)}; this release of turnout reads "
                f"{_VERSION}",
            )
        if members.keys() != _MEMBERS:
            raise _malformed(message)
        if members["plan"] != self._fingerprint:
            raise _RefusedError(
                "other_plan",
                f"was made under the plan {_arguments.shown(members['plan'])}, not under "
                f"{self._fingerprint!r}",
            )
        nonce = members["nonce"]
        if not (isinstance(nonce, str) and _NONCE.fullmatch(nonce)):
            raise _RefusedError(
                "malformed",
                f"must have a nonce of {2 * _NONCE_BYTES} hexadecimal digits, got "
                f"{_arguments.shown(nonce)}",
            )
        return nonce, self._value(members["report"])

    def _value(self, report: Any) -> int | bytes:
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
        raise _RefusedError(
            "malformed", f"must have a report of {expected}, got {_arguments.shown(report)}"
        )

    def _array(self, kept: list[Any]) -> Array:
        if not self._shape:
            return np.array(kept, dtype=self._dtype)
        rows = np.frombuffer(b"".join(kept), self._dtype.newbyteorder("<"))
        return rows.reshape(-1, self._shape[0]).astype(self._dtype)

    def _impossible(self, codes: Array, start: int, *, only_first: bool) -> list[int]:
        """Find the positions of reports that the oracle cannot have made, by halves."""
        try:
            self._plan.oracle.check_reports(codes)
        except InvalidValueError:
            if len(codes) == 1:
                return [start]
        else:
            return []
        middle = len(codes) // 2
        found = self._impossible(codes[:middle], start, only_first=only_first)
        if not (found and only_first):
            found += self._impossible(codes[middle:], start + middle, only_first=only_first)
        return found


def _malformed(message: object) -> _RefusedError:
    return _RefusedError("malformed", f"is no message of turnout: {_arguments.shown(message)}")
