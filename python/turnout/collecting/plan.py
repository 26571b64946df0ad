"""The plan of a collection: its oracle and its participation."""

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
    """The oracle together with the participation: what is asked and who takes part.

    Parameters
    ----------
    oracle
        The randomizer, with its epsilon and domain.
    participation
        How nodes take part. The plan does not hold personal probabilities, only the fact that they
        are personal: they travel with the reports.
    serial
        A number below 2^53 that grows whenever the plan of a collection is published anew. A device
        that knows a later plan refuses this one. None by default.
    expires
        The moment from which nobody reports under the plan, in whole seconds and with a time zone;
        never by default.
    groups
        Public columns that each message carries beside the report, with the allowed values of each:
        ``{"region": ["north", "south"]}``. Anyone who sees a message sees its group; only the
        answer is protected. None by default.

    Raises
    ------
    InvalidTypeError
        If the arguments are not an oracle and a participation, an integer, a moment and a mapping.
    InvalidValueError
        If the serial is out of range. If the moment is before 1970, has no time zone, or has
        fractions of a second. If a column of groups has no values or duplicates.

    Notes
    -----
    Reports and tallies carry their plan, so that they are never mixed up. Serial, expiry and groups
    say how a plan is used, not what reports mean. The text, the fingerprint and the signature of
    the plan cover them, and so do messages. Plans that differ in nothing else are equal, and their
    reports and tallies can be combined.

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
        """The possible answers: a :class:`turnout.Domain`, or :class:`turnout.Bounds`."""
        return self.oracle.domain

    @property
    def _everyone_reports(self) -> bool:
        """Whether every node that is asked reports."""
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
        """Build the plan that the core read."""
        expires = described.expires
        return cls(
            _kinds.from_dict(parsed(described.question)),
            Participation.from_dict(parsed(described.participation)),
            serial=described.serial,
            expires=None if expires is None else _EPOCH + timedelta(seconds=expires),
            groups=groups_of_text(described.groups),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the plan."""
        described: dict[str, Any] = parsed(self.to_json())
        return described

    def to_json(self) -> str:
        """Write the plan as canonical JSON: keys sorted, no spaces, ASCII only.

        Returns
        -------
        str
            The text, which is the same in every process for equal plans with equal serial and
            expiry.

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
            If this release does not read the plan's version.
        CorruptDataError
            If it is not a plan.
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
            If this release does not read the plan's version.
        CorruptDataError
            If it is not a plan.
        InvalidTypeError
            If ``text`` is not text.
        """
        _arguments.instance("text", text, (str, bytes, bytearray), "the JSON text of a plan")
        try:
            data = text.encode() if isinstance(text, str) else bytes(text)
        except UnicodeEncodeError as error:
            raise CorruptDataError("not a plan of turnout: it is not Unicode text") from error
        return cls._of(_core.Plan.described(data))

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of :meth:`to_json`, in hexadecimal."""
        return self._described.fingerprint

    @cached_property
    def _device(self) -> _core.Device | None:
        return device_of(self)

    def _check_current(self, at: datetime | None = None) -> None:
        """Refuse to continue under an expired plan.

        :meth:`report`, :meth:`gather` and the ``message`` of a client call it. Reading a plan does
        not, so that data collected under it remains readable. The plan must not have expired at
        ``at``, with a time zone, or now by this machine's clock.
        """
        moment = None if at is None else _arguments.moment("at", at)
        if self.expires is None:
            return
        if (moment or datetime.now(timezone.utc)) >= self.expires:
            raise PlanExpiredError(f"the plan expired at {self.expires.isoformat()}")

    def write(self, path: str | os.PathLike[str], *, signing_key: SigningKey | None = None) -> None:
        """Write a plan file, ``plan.json``, for devices.

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
            If a label is not Unicode text.
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
        """Read a plan file, and check its whole content.

        Parameters
        ----------
        path
            The file.
        public_key
            The key that must have signed the file, 64 hexadecimal digits. Without it any valid
            signature is accepted, and a missing one too.
        least_serial
            The least serial of the plan, such as that of the last plan that a device used. By
            default any serial is accepted, and a missing one too.

        Returns
        -------
        Plan
            The plan. An expired plan makes and accepts no messages.

        Raises
        ------
        PlanExpiredError
            If the plan's serial is smaller, or it has none.
        UnsupportedVersionError
            If this release does not read the version of the file or its plan.
        CorruptDataError
            If it is not a plan file, was altered or reformatted, or its signature is missing or
            invalid.
        InvalidTypeError, InvalidValueError
            If ``public_key`` is not a public key, or ``least_serial`` is not a serial.
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
        """Return the JSON Schema of plan files, draft 2020-12.

        A schema cannot express everything. :meth:`read` refuses whatever the schema refuses, and
        more: a wrong fingerprint, a bad signature, equal labels.

        Returns
        -------
        dict
            The schema, with the oracles of this process and their parameters.

        Examples
        --------
        >>> import turnout as tn
        >>> tn.Plan.schema()["$schema"]
        'https://json-schema.org/draft/2020-12/schema'
        """
        return plan_file_schema()

    def _group_key(self, argument: str, group: Any) -> Key:
        """Return the group of one person, which :attr:`groups` must list.

        Parameters
        ----------
        argument
            The name of the argument in errors.
        group
            Values by column name, or a tuple of values in the order of the columns; for one column
            also its bare value. None, or ``()``, if the plan has no groups.

        Raises
        ------
        InvalidValueError
            If it is not a listed group.
        InvalidTypeError
            If a value is of another type.
        """
        return key_among(argument, self.groups, group)

    def report(self, value: Any, *, group: Any = None, seed: int | None = None) -> bytes | None:
        """Randomize one person's answer and return the message to send.

        Every call draws anew, and two messages of a person reveal more than one. Send one message;
        if sending fails, send the same message again. Its nonce of sixteen random bytes lets
        :meth:`gather` count it once.

        Parameters
        ----------
        value
            The person's answer.
        group
            The person's group, if the plan has :attr:`groups`: values by column name, or a tuple of
            values in the order of the columns. It is not protected.
        seed
            For tests and simulations only, as in :meth:`turnout.FrequencyOracle.randomize`. The
            nonce always comes from the operating system.

        Returns
        -------
        bytes or None
            A line of JSON without the line end (:doc:`/reference/formats`), or None if this person
            does not take part: then send nothing.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError
            If the answer is not in the domain, whether the person takes part or not.
        PlanExpiredError
            If the plan has expired.
        InvalidValueError
            If participation is personal, the group is not one of the plan, or the plan keeps
            permanent answers (use :meth:`turnout.frequency.longitudinal.MemoizedClient.message`).

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
        """Combine the messages of many people into reports.

        A repeated message, sent again because sending seemed to fail, counts once. The number of
        repeats is logged, passed to the hooks of :mod:`turnout.metrics`, and included in the result
        of ``"count"``. A message does not say who sent it: two messages made by one person count
        twice, unless the transport prevents it.

        Parameters
        ----------
        messages
            The messages from :meth:`report`, or for permanent answers from the ``message`` of a
            client: one of each person who took part, as bytes or text. Line ends are ignored, so an
            open file works too.
        nodes
            The number of people asked, including silent ones. If everyone takes part you can omit
            it; if given, it must equal the number of distinct messages. A message that is left out
            may be from one of these people, or from nobody.
        on_bad
            What to do if a message does not belong to this plan: ``"refuse"`` refuses all messages,
            ``"count"`` leaves it out and counts it. A message that is left out counts like a silent
            person; if everyone takes part, like a person who was not asked. If that depends on the
            answers, the estimates are biased.
        received
            When the last of the messages arrived, with a time zone; now by default. A plan that had
            expired by then is refused.

        Returns
        -------
        Reports or Gathered
            The reports in the order of the messages. With ``"count"``, a
            :class:`turnout.collecting.report_messages.Gathered` with the reports and the number of
            refusals of each kind.

        Raises
        ------
        PlanExpiredError
            If the plan had expired when the messages arrived.
        PlanMismatchError
            If a message was made under another plan, or with another serial or expiry. The error
            gives the position.
        UnsupportedVersionError
            If this release does not read a message's version.
        CorruptDataError
            If a message is malformed, holds a report that the oracle cannot have made, or has the
            nonce of another message but a different report.
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
        """Refuse a different plan; the error names the differences and what was made under it.

        ``first`` names what was made under this plan.
        """
        if self != other:
            found = "; ".join(differences(self, other)) or "they differ"
            raise PlanMismatchError(
                f"{what} was made under another plan: {found}"
                if first is None
                else f"{first} and {what} were made under different plans: {found}"
            )
