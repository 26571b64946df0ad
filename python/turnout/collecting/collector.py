"""A collector that accepts messages one at a time or in batches, as a server does."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

import numpy as np

from turnout import _arguments
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.keys import Key, times_in
from turnout.collecting.left_out import LeftOut
from turnout.collecting.message_reading import ERRORS, Batch, Reader, Seen
from turnout.collecting.origin import Origin
from turnout.collecting.plan import Plan
from turnout.collecting.report_messages import refuse_personal, tell
from turnout.collecting.rounds import Rounds
from turnout.collecting.tally import BaseTally
from turnout.errors import InvalidValueError, PlanExpiredError, PlanMismatchError

#: How many messages wait before they are counted.
_WAITING = 2**16

Outcome = Literal["accepted", "repeated", "refused"]


@dataclass(frozen=True)
class Receipt:
    """The outcome of one message.

    Attributes
    ----------
    outcome
        ``"accepted"``: it counts. ``"repeated"``: it arrived before, and counts once.
        ``"refused"``: it does not count.
    kind
        The kind of refusal, as in :attr:`Receipts.refusals`; None if it was not refused.
    reason
        Why it was refused; the text does not show the report.

    Examples
    --------
    >>> import turnout as tn
    >>> plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone())
    >>> tn.Collector(plan).accept(b"hello").kind
    'malformed'
    """

    outcome: Outcome
    kind: str | None = None
    reason: str | None = None


_ACCEPTED, _REPEATED = Receipt("accepted"), Receipt("repeated")


@dataclass(frozen=True)
class Receipts:
    """The outcomes of many messages.

    Attributes
    ----------
    accepted
        The number of messages that count.
    repeated
        The number of messages that had arrived before, in this call or an earlier one.
    refusals
        The number of refused messages of each kind. ``"malformed"``, ``"other_version"`` and
        ``"other_plan"`` say what they are. ``"impossible"``: the randomizer cannot have made the
        report. ``"contradictory"``: it has the nonce of another message but a different report.
        ``"expired"``: its plan had expired.
    """

    accepted: int = 0
    repeated: int = 0
    refusals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ERRORS, 0))

    @property
    def refused(self) -> int:
        """The number of all refused messages."""
        return sum(self.refusals.values())

    def __add__(self, other: Receipts) -> Receipts:
        """Add the outcomes of two calls."""
        refusals = {kind: self.refusals[kind] + other.refusals[kind] for kind in self.refusals}
        return Receipts(self.accepted + other.accepted, self.repeated + other.repeated, refusals)


class Collector:
    """A collector of a plan's messages: it leaves out repeats and keeps the tally.

    Parameters
    ----------
    *plans
        The plan, or several plans that ask the same and differ in serial, expiry or signature.
        Messages under any of them are accepted, and their reports are added up.
    seen
        Where accepted messages are remembered: an object with the methods of
        :class:`turnout.collecting.message_reading.Seen`. The default keeps them in memory. A server
        keeps them in its database.

    Raises
    ------
    PlanMismatchError
        If the plans ask different questions, or have different groups.
    InvalidValueError
        If there is no plan, or participation is personal, since messages carry no probability.
    InvalidTypeError
        If an argument is of the wrong type.

    Notes
    -----
    Under a plan with permanent answers (:class:`turnout.Memoized`) a collector handles one round:
    one message of each person. Use a new collector for the next round, or :meth:`drain` it between
    rounds, so that the tallies know that the people may be the same.

    Several threads may use a collector. It holds uncounted messages, the tally, and with the
    default ``seen`` about 150 bytes for each message.

    Examples
    --------
    >>> import turnout as tn
    >>> plan = tn.Plan(tn.DirectEncoding(4.0, ["no", "yes"]), tn.Bernoulli(0.5))
    >>> collector = tn.Collector(plan)
    >>> messages = [plan.report(answer) for answer in ["no", "yes"] * 100]
    >>> sent = [message for message in messages if message is not None]
    >>> collector.accept(sent[0]).outcome, collector.accept(sent[0]).outcome
    ('accepted', 'repeated')
    >>> receipts = collector.accept_many([*sent, b"hello"])
    >>> receipts.accepted == len(sent) - 1, receipts.refusals["malformed"]
    (True, 1)
    >>> collector.ask(200)
    >>> collector.tally().nodes
    200
    """

    def __init__(self, *plans: Plan, seen: Any = None) -> None:
        if not plans:
            raise InvalidValueError("plans must be at least one plan, got none")
        for position, plan in enumerate(plans):
            _arguments.instance(f"plans[{position}]", plan, Plan, "a Plan")
            plans[0]._check_same(plan, f"plans[{position}]")
            if plan.groups != plans[0].groups:
                raise PlanMismatchError(
                    f"plans[{position}] must have the groups of plans[0], {plans[0].groups}, got "
                    f"{plan.groups}"
                )
            refuse_personal(plan)
        self._plans = tuple(plans)
        self._reader = Reader(self._plans)
        self._seen = Seen() if seen is None else seen
        self._lock = threading.Lock()
        self._asked: dict[Key, int] = {}
        self._accepted = self._repeated = 0
        self._refusals = dict.fromkeys(ERRORS, 0)
        self._improbable = 0
        self._refused = 0
        self._waiting: list[Batch] = []
        self._number_waiting = 0
        self._tallies: dict[Key, BaseTally] = {}
        self._round = secrets.token_hex(16)

    @property
    def plan(self) -> Plan:
        """The first of the plans."""
        return self._plans[0]

    @property
    def receipts(self) -> Receipts:
        """The outcomes of all messages so far."""
        with self._lock:
            return Receipts(self._accepted, self._repeated, dict(self._refusals))

    @property
    def asked(self) -> int | None:
        """The number of people asked, from :meth:`ask`; None if it was never called."""
        return sum(self._asked.values()) if self._asked else None

    @property
    def improbable(self) -> int:
        """The number of reports that an honest device hardly ever sends; they count."""
        with self._lock:
            self._count()
            return self._improbable

    def ask(self, people: int, group: Any = ()) -> None:
        """Record that more people were asked, including silent ones.

        Parameters
        ----------
        people
            The number of additional people.
        group
            Their group, where the plan has groups: one value for each of its columns.

        Raises
        ------
        InvalidValueError
            If ``people`` is negative, or the plan has no such group.
        InvalidTypeError
            If ``people`` is not an integer.
        """
        number = _arguments.integer("people", people, least=0, most=2**64 - 1)
        key = self.plan._group_key("group", group)
        with self._lock:
            self._asked[key] = self._asked.get(key, 0) + number

    def accept(self, message: bytes | str, *, received: datetime | None = None) -> Receipt:
        """Accept or refuse one message.

        Parameters
        ----------
        message
            The message from a device: one line of JSON, with or without the line end.
        received
            When it arrived, with a time zone; now by default.

        Returns
        -------
        Receipt
            Whether it counts, and if not, why.

        Raises
        ------
        InvalidTypeError
            If it is neither bytes nor text, or ``received`` is not a moment.
        """
        batch, repeated = self._taken([message], received)
        for refusal in batch.refusals.values():
            return Receipt("refused", refusal.kind, str(refusal))
        return _REPEATED if repeated else _ACCEPTED

    def accept_many(
        self, messages: Iterable[bytes | str], *, received: datetime | None = None
    ) -> Receipts:
        """Accept or refuse many messages, or an open file with one message a line.

        Parameters
        ----------
        messages
            The messages from devices.
        received
            When they arrived; now by default.

        Returns
        -------
        Receipts
            How many count, and the outcomes of the others.

        Raises
        ------
        InvalidTypeError
            If a message is neither bytes nor text; then none of them was accepted.
        """
        batch, repeated = self._taken(messages, received)
        return Receipts(len(batch), repeated, batch.refusals_by_kind(ERRORS))

    def _taken(self, messages: Any, received: datetime | None) -> tuple[Batch, int]:
        moment = None if received is None else _arguments.moment("received", received)
        batch = self._reader.read(messages)
        for number, plan in enumerate(self._plans):
            if plan.expires is not None:
                try:
                    plan._check_current(moment)
                except PlanExpiredError as error:
                    batch.leave_out_expired(number, str(error))
        with self._lock:
            repeated = batch.leave_out_repeated(self._seen)
            self._accepted += len(batch)
            self._repeated += repeated
            for refusal in batch.refusals.values():
                self._refusals[refusal.kind] += 1
            self._refused += len(batch.refusals)
            self._waiting.append(batch)
            self._number_waiting += len(batch)
            if self._number_waiting >= _WAITING:
                self._count()
        if batch.refusals or repeated:
            tell(len(batch.refusals), repeated)
        return batch, repeated

    def tally(self) -> Any:
        """Return the tally of all messages that count.

        Returns
        -------
        BaseTally or GroupedTally
            The tally, by group where the plan has groups. Its nodes are the people who were asked.
            Where everyone who is asked reports, they are the people who reported.

        Raises
        ------
        InvalidValueError
            If fewer people were asked than reported, or silent people send nothing and :meth:`ask`
            was never called.
        """
        with self._lock:
            self._count()
            found = {key: self._with_asked(key, tally) for key, tally in self._tallies.items()}
            for key in self._asked.keys() - found.keys():
                found[key] = self._with_asked(key, self._none())
            refused = self._refused
        return self._put_together(found, refused)

    def drain(self) -> Any:
        """Return the tally of the messages since the last call, and reset it.

        Use it if you store tallies elsewhere and add them up there. The nodes are those that
        reported; store the number of people asked elsewhere too.

        Returns
        -------
        BaseTally or GroupedTally
            As :meth:`tally`.
        """
        with self._lock:
            self._count()
            found, self._tallies = self._tallies, {}
            self._round = secrets.token_hex(16)
            refused, self._refused = self._refused, 0
        return self._put_together(found, refused)

    def _put_together(self, found: dict[Key, BaseTally], refused: int) -> Any:
        # Of which group a message was that is refused nobody can tell.
        left_out = LeftOut(refused=refused)
        if self.plan.groups:
            names = list(self.plan.groups)
            return GroupedTally(names, found, plan=self.plan, of_no_group=left_out)
        tally = found.get((), self._none())
        return replace(tally, left_out=tally.left_out + left_out)

    def _none(self) -> BaseTally:
        tally: BaseTally = self.plan.oracle.tally_type.empty(self.plan)
        return tally

    def _with_asked(self, key: Key, tally: BaseTally) -> BaseTally:
        """Return a tally with the number of people asked."""
        asked = self._asked.get(key)
        where = f" of the group {key}" if key else ""
        if asked is None:
            if self.plan._everyone_reports:
                return tally
            raise InvalidValueError(
                f"pass to ask(...) how many people{where} were asked: under "
                f"{self.plan.participation!r} people who stay silent send nothing"
            )
        if asked < tally.received:
            raise InvalidValueError(
                f"{tally.received} people{where} reported, but ask(...) was told that the "
                f"number asked is {asked}"
            )
        if self.plan._everyone_reports:
            # Whoever is missing has not answered yet.
            return replace(tally, left_out=LeftOut(unanswered=asked - tally.received))
        return replace(tally, nodes=asked)

    def _count(self) -> None:
        """Count the messages that are not counted yet."""
        together, number = self._waiting, self._number_waiting
        self._waiting, self._number_waiting = [], 0
        if not number:
            return
        oracle, groups = self.plan.oracle, tuple(self.plan.groups or ())
        for key, codes, nonces in self._reader.by_group(together):
            self._improbable += int(np.count_nonzero(oracle.improbable(codes)))
            counts = oracle.count_reports(codes)
            # What is taken in between two calls of drain() is one round, whatever came in together.
            rounds = Rounds.named(self._round, len(codes)).within(times_in(groups, key))
            origin = Origin.of_messages(nonces).with_rounds(rounds)
            counted = oracle.tally_type.of(self.plan, counts, len(codes), origin=origin)
            earlier = self._tallies.get(key)
            self._tallies[key] = counted if earlier is None else earlier.merge(counted)
