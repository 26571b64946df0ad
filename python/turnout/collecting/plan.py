"""The plan of a collection: which oracle, which participation."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cached_property
from typing import Any, Generic, Literal

from turnout import _arguments, _core, _kinds
from turnout._documents import canonical, parsed
from turnout._files import atomic_write, read_bytes
from turnout._values import settle
from turnout.collecting.keys import Key
from turnout.collecting.plan_file import differences, plan_file_schema, plan_file_text
from turnout.collecting.public_groups import (
    checked_groups,
    groups_of_text,
    groups_text,
    key_among,
)
from turnout.collecting.randomizer import R_co, Randomizer
from turnout.collecting.report_messages import check_fresh, device_of, gather, make_message
from turnout.errors import (
    CorruptDataError,
    InvalidValueError,
    PlanExpiredError,
    PlanMismatchError,
    UnsupportedVersionError,
)
from turnout.participation import Participation, stated_participation
from turnout.signing import SigningKey, public_key_bytes

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Plan(Generic[R_co]):
    """What reports and tallies carry, so that they are never mixed up.

    Parameters
    ----------
    oracle
        The randomizer, with its epsilon and domain.
    participation
        How nodes take part. Of personal probabilities the plan keeps only that they are personal:
        they travel with the reports.
    serial
        A number below 2^53 that grows whenever the plan of a collection is published anew, so that
        a device that knows a later one refuses this one; None by default.
    expires
        The moment, of whole seconds and with a time zone, from which on nobody reports under the
        plan; never by default.
    groups
        Public columns that each message carries beside the report, with the values that each may
        have: ``{"region": ["north", "south"]}``. Everybody who sees a message sees its group; only
        the answer is protected. None by default.

    Raises
    ------
    InvalidTypeError
        If the arguments are not an oracle and a participation, an integer, a moment and a mapping.
    InvalidValueError
        If the serial is out of range, or the moment before 1970, without a time zone, or has
        fractions of a second, or a column of groups has no value or one twice.

    Notes
    -----
    Serial, expiry and groups say how a plan is used, not what reports mean. Its text, fingerprint
    and signature cover them, and so do messages; plans that differ in nothing else are equal, and
    their reports and tallies go together.

    Examples
    --------
    >>> import turnout as tn
    >>> plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Bernoulli(0.5))
    >>> tn.Plan.from_json(plan.to_json()) == plan
    True
    >>> from datetime import datetime, timezone
    >>> end = datetime(2001, 1, 1, tzinfo=timezone.utc)
    >>> tn.Plan(plan.oracle, plan.participation, serial=3, expires=end).report(0)
    Traceback (most recent call last):
        ...
    turnout.errors.PlanExpiredError: the plan expired at 2001-01-01T00:00:00+00:00
    """

    oracle: R_co
    participation: Participation
    serial: int | None = field(default=None, kw_only=True, compare=False)
    expires: datetime | None = field(default=None, kw_only=True, compare=False)
    groups: Any = field(default=None, kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the fields; leave out the probabilities of single nodes."""
        _arguments.instance("oracle", self.oracle, Randomizer, "an oracle")
        taking_part = stated_participation(self.participation)
        if taking_part.uniform_rate is None and self.oracle._one_rate_because:
            raise InvalidValueError(
                f"participation must be Everyone() or Bernoulli(...), got {taking_part!r}: "
                f"{self.oracle._one_rate_because}"
            )
        settle(self, participation=taking_part._in_plan())
        if self.serial is not None:
            settle(
                self,
                serial=_arguments.integer("serial", self.serial, least=0, most=_core.MOST_SERIAL),
            )
        if self.expires is not None:
            expires = _arguments.moment("expires", self.expires)
            if expires.microsecond or expires < _EPOCH:
                raise _arguments.invalid(
                    "expires must be a moment of whole seconds from 1970 on", self.expires
                )
            settle(self, expires=expires)
        settle(self, groups=checked_groups("groups", self.groups))

    @property
    def domain(self) -> Any:
        """The answers that can be given: a :class:`turnout.Domain`, or :class:`turnout.Bounds`."""
        return self.oracle.domain

    @property
    def _everyone_reports(self) -> bool:
        """Whether there is a report of each node that is asked."""
        return self.participation.uniform_rate == 1.0 and not self.oracle.silent

    @cached_property
    def _described(self) -> _core.Plan:
        seconds = None if self.expires is None else (self.expires - _EPOCH) // timedelta(seconds=1)
        return _core.Plan(
            canonical(self.oracle.to_dict()),
            canonical(self.participation.to_dict()),
            self.serial,
            seconds,
            groups_text(self.groups),
        )

    @classmethod
    def _of(cls, described: _core.Plan) -> Plan:
        """Make the plan that the core read."""
        expires = described.expires
        return cls(
            _kinds.from_dict(parsed(described.question)),
            Participation.from_dict(parsed(described.participation)),
            serial=described.serial,
            expires=None if expires is None else _EPOCH + timedelta(seconds=expires),
            groups=groups_of_text(described.groups),
        )

    def to_dict(self) -> dict[str, Any]:
        """Describe the plan in terms of JSON."""
        described: dict[str, Any] = parsed(self.to_json())
        return described

    def to_json(self) -> str:
        """Describe the plan as canonical JSON: keys sorted, no spaces, ASCII only.

        Returns
        -------
        str
            The same text for equal plans of equal serial and expiry, in every process.

        Raises
        ------
        InvalidTypeError
            If a label of the domain cannot be written to a file.
        """
        return self._described.text

    @classmethod
    def from_dict(cls, description: Any) -> Plan:
        """Rebuild a plan from :meth:`to_dict`.

        Raises
        ------
        UnsupportedVersionError
            If it is a plan of a version that this release does not read.
        CorruptDataError
            If it is no plan.
        """
        try:
            text = canonical(description)
        except (TypeError, ValueError, RecursionError) as error:
            raise CorruptDataError(f"not a plan of turnout: {error}") from error
        return cls.from_json(text)

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """Rebuild a plan from :meth:`to_json`.

        Raises
        ------
        UnsupportedVersionError
            If it is a plan of a version that this release does not read.
        CorruptDataError
            If it is no plan.
        InvalidTypeError
            If ``text`` is not text.
        """
        _arguments.instance("text", text, (str, bytes, bytearray), "the JSON text of a plan")
        try:
            data = text.encode() if isinstance(text, str) else bytes(text)
        except UnicodeEncodeError as error:
            raise CorruptDataError("not a plan of turnout: it is no Unicode text") from error
        return cls._of(_core.Plan.described(data))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of :meth:`to_json`, in hexadecimal."""
        return self._described.fingerprint

    @cached_property
    def _device(self) -> _core.Device | None:
        return device_of(self)

    def _check_current(self, at: datetime | None = None) -> None:
        """Refuse to go on under a plan that has expired.

        :meth:`report`, :meth:`gather` and the ``message`` of a client call it. Reading a plan does
        not, so that what was collected under it can still be looked at. The moment that counts is
        ``at``, with a time zone, or now by this machine's clock.
        """
        moment = None if at is None else _arguments.moment("at", at)
        if self.expires is None:
            return
        if (moment or datetime.now(timezone.utc)) >= self.expires:
            raise PlanExpiredError(f"the plan expired at {self.expires.isoformat()}")

    def write(self, path: str | os.PathLike[str], *, signing_key: SigningKey | None = None) -> None:
        """Write a plan file, ``plan.json``, by which devices can be driven.

        Parameters
        ----------
        path
            The file; it is replaced if it exists, whole or not at all.
        signing_key
            A :class:`turnout.signing.SigningKey` that signs the plan.

        Raises
        ------
        InvalidTypeError
            If an argument is of the wrong type, or a label of the domain cannot be written to a
            file.
        InvalidValueError
            If a label is no Unicode text.
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import turnout as tn
        >>> plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Bernoulli(0.5))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     plan.write(pathlib.Path(folder, "plan.json"))
        ...     tn.Plan.read(pathlib.Path(folder, "plan.json")) == plan
        True
        """
        text = plan_file_text(self._described, signing_key)
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="ascii", newline="\n")

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        public_key: str | None = None,
        least_serial: int | None = None,
    ) -> Plan:
        """Read a plan file, checking everything that it says.

        Parameters
        ----------
        path
            The file.
        public_key
            Whose signature the file must have, 64 hexadecimal digits. Without it any valid
            signature is taken, and none.
        least_serial
            The serial that the plan must have at least, such as that of the last plan that a device
            used; by default any, and none.

        Returns
        -------
        Plan
            The plan; it may have expired, and then makes and takes no messages.

        Raises
        ------
        PlanExpiredError
            If the plan's serial is smaller, or it has none.
        UnsupportedVersionError
            If the file or its plan is of a version that this release does not read.
        CorruptDataError
            If it is no plan file, was altered or formatted anew, or its signature is missing or
            not valid.
        InvalidTypeError, InvalidValueError
            If ``public_key`` is no public key, or ``least_serial`` no serial.
        OSError
            If the file cannot be read.
        """
        if least_serial is not None:
            least_serial = _arguments.integer(
                "least_serial", least_serial, least=0, most=_core.MOST_SERIAL
            )
        if public_key is not None:
            public_key = public_key_bytes("public_key", public_key).hex()
        name, data = os.fspath(path), read_bytes(path)
        try:
            plan = cls._of_file(data, public_key)
        except (UnsupportedVersionError, CorruptDataError) as error:
            raise type(error)(f"{name}: {error}") from error
        if least_serial is not None and (plan.serial is None or plan.serial < least_serial):
            found = "no serial" if plan.serial is None else f"serial {plan.serial}"
            raise PlanExpiredError(
                f"{name}: the plan has {found}, expected {least_serial} or a later one"
            )
        return plan

    @classmethod
    def _of_file(cls, data: bytes, public_key: str | None) -> Plan:
        key = None if public_key is None else bytes.fromhex(public_key)
        described = _core.Plan.of_file(data, key)
        plan = cls._of(described)
        if plan.to_json() != described.text:
            raise CorruptDataError("the plan is not written in its canonical form")
        return plan

    @staticmethod
    def schema() -> dict[str, Any]:
        """Describe plan files as a JSON Schema, draft 2020-12.

        A schema cannot say everything: what it refuses is refused by :meth:`read`, which refuses
        more (a wrong fingerprint, a bad signature, equal labels).

        Returns
        -------
        dict
            The schema, with the oracles of this process and what each takes.

        Examples
        --------
        >>> import turnout as tn
        >>> tn.Plan.schema()["$schema"]
        'https://json-schema.org/draft/2020-12/schema'
        """
        return plan_file_schema()

    def _group_key(self, argument: str, group: Any) -> Key:
        """Take the group of one person: one of those that :attr:`groups` lists.

        Parameters
        ----------
        argument
            What messages call it.
        group
            Values by the names of the columns, or a tuple of them in their order; of one column
            also its value by itself. None, or ``()``, where the plan has no groups.

        Raises
        ------
        InvalidValueError
            If it is not listed.
        InvalidTypeError
            If a value is of another type.
        """
        return key_among(argument, self.groups, group)

    def report(self, value: Any, *, group: Any = None, seed: int | None = None) -> bytes | None:
        """Make the one message of one person.

        Every call draws anew, and what two messages of a person say adds up: send one, and where
        sending fails send that message again. It has sixteen random bytes of its own, by which
        :meth:`gather` counts it once.

        Parameters
        ----------
        value
            The person's answer.
        group
            The person's group, where the plan has :attr:`groups`: values by the names of the
            columns, or a tuple of them in their order. It is not protected.
        seed
            For tests and simulations only, as in :meth:`turnout.FrequencyOracle.randomize`. The
            sixteen bytes are the operating system's whatever it is.

        Returns
        -------
        bytes or None
            A line of JSON without its end (:doc:`/reference/formats`), or None if this person
            does not take part: then nothing is sent.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError
            If the answer is not in the domain, whether the person takes part or not.
        PlanExpiredError
            If the plan has expired.
        InvalidValueError
            If participation is personal, the group is none of the plan, or permanent answers are
            to be kept (:meth:`turnout.frequency.longitudinal.MemoizedClient.message` does).

        Examples
        --------
        >>> import turnout as tn
        >>> plan = tn.Plan(tn.DirectEncoding(1.0, tn.Domain(["no", "yes"])), tn.Everyone())
        >>> messages = [plan.report(answer) for answer in ["no", "yes", "yes"]]
        >>> plan.gather(messages).nodes
        3
        """
        check_fresh(self)
        return make_message(self, self._device, value, group, seed)

    def gather(
        self,
        messages: Iterable[bytes | str],
        nodes: int | None = None,
        *,
        on_bad: Literal["refuse", "count"] = "refuse",
        received: datetime | None = None,
    ) -> Any:
        """Put the messages of many people together.

        A message that is there twice, because sending seemed to fail, counts once; how many there
        were is logged, said to the hooks of :mod:`turnout.metrics`, and stands in what ``"count"``
        returns. A message does not say who sent it: two that one person made are two, unless the
        transport sees to it.

        Parameters
        ----------
        messages
            What :meth:`report` made, or for permanent answers the ``message`` of a client, one of
            each person who took part, as bytes or text; the end of a line is no part of it, so a
            file that is open for reading will do.
        nodes
            How many people were asked, silent ones included. If everyone takes part it can be left
            out, and otherwise equals the number of different messages; of messages that are left
            out each may have been of one of these people, or of nobody.
        on_bad
            What happens if a message is not one of this plan: ``"refuse"`` refuses all, ``"count"``
            leaves it out and counts it. What is left out counts like somebody who said nothing, or
            where everyone takes part like somebody who was not asked: if that depends on the
            answers, the estimates are biased.
        received
            When the last of the messages came in, with a time zone; now by default. A plan that had
            expired by then is refused.

        Returns
        -------
        Reports or Gathered
            The reports in the order of the messages; with ``"count"`` a
            :class:`turnout.collecting.report_messages.Gathered` with these and the number of
            refusals of each kind.

        Raises
        ------
        PlanExpiredError
            If the plan had expired when the messages came in.
        PlanMismatchError
            If a message was made under another plan, or the same with another serial or expiry;
            names the position.
        UnsupportedVersionError
            If a message is of a version that this release does not read.
        CorruptDataError
            If a message is malformed, holds what the oracle cannot have reported, or has the
            sixteen bytes of another message and not its report.
        InvalidValueError
            If ``nodes`` does not fit the messages, or participation is personal.
        InvalidTypeError
            If an argument is of the wrong type.

        Examples
        --------
        >>> import turnout as tn
        >>> plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Bernoulli(0.5))
        >>> made = [plan.report(code) for code in [0, 1, 2, 2] * 100]
        >>> reports = plan.gather([each for each in made if each], nodes=400)
        >>> reports.oracle.tally(reports).nodes
        400
        """
        return gather(self, messages, nodes, on_bad, received)

    def _check_same(self, other: Plan, what: str, first: object = None) -> None:
        """Refuse another plan, naming what differs, and what was made under it.

        If ``first`` is given, it names what was made under this one.
        """
        if self != other:
            found = "; ".join(differences(self, other)) or "they differ"
            raise PlanMismatchError(
                f"{what} was made under another plan: {found}"
                if first is None
                else f"{first} and {what} were made under different plans: {found}"
            )
