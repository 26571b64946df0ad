"""The side of one person in a longitudinal collection."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from turnout import _arguments
from turnout._documents import SealedDocument
from turnout._files import atomic_write, read_bytes, turn
from turnout._secrets import HiddenBytes
from turnout.collecting.plan import Plan
from turnout.collecting.report_messages import message_of, refuse_personal
from turnout.errors import (
    BudgetExceededError,
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
    UnsupportedVersionError,
)
from turnout.frequency.longitudinal.permanent import MOST_PHASES, SECRET_BYTES, PermanentAnswers
from turnout.participation import Everyone, Participation

if TYPE_CHECKING:
    from turnout.collecting.reports import Reports


_STATE: Final = SealedDocument("state of a client", "turnout-client", 1)
_SECRET = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Past:
    """What a client has given: its different answers in order of code, or those of its phases.

    Examples
    --------
    >>> Past("answer").after(2).after(1).after(2).given
    (1, 2)
    >>> Past("phase").after(2).after(2).after(1).after(2).given
    (2, 1, 2)
    """

    per: str
    given: tuple[int, ...] = ()

    def after(self, code: int) -> Past:
        """Give what it is after one more report."""
        if self.per == "phase":
            same = self.given[-1:] == (code,)
            return self if same else Past(self.per, (*self.given, code))
        return self if code in self.given else Past(self.per, tuple(sorted({*self.given, code})))

    def knows(self, other: Past) -> bool:
        """Say whether another past comes before this one, or is the same."""
        if self.per == "phase":
            return self.given[: len(other.given)] == other.given
        return set(other.given) <= set(self.given)

    def is_possible(self, size: int, most: Any) -> bool:
        """Say whether a client that is allowed so many of so many answers can have it."""
        return (
            type(most) is int
            and all(type(code) is int and 0 <= code < size for code in self.given)
            and max(1, len(self.given)) <= most <= self.limit(size)
            and all(self.follows(*pair) for pair in zip(self.given, self.given[1:], strict=False))
        )

    def follows(self, before: int, after: int) -> bool:
        """Say whether one code can stand behind another."""
        return before != after if self.per == "phase" else before < after

    def limit(self, size: int) -> int:
        """Give the most that a client of a domain may be allowed."""
        return MOST_PHASES if self.per == "phase" else size


class MemoizedClient:
    """Reports one person's answers, round after round, and limits what they tell.

    Made by :meth:`Memoized.client`. The state (:meth:`to_bytes`) holds the secret and which answers
    were given: it belongs where the answers themselves would be kept, and nowhere else. It changes
    only when a permanent answer is used for the first time. If it is lost, permanent answers are
    drawn anew from a new secret, and the budget of the old ones is spent once more.

    A client must not be used by two threads at once, and cannot be copied or pickled: two with one
    secret could spend twice what one may. Its state is stored, and read when the client is gone.
    """

    __slots__ = ("_memoized", "_most", "_past", "_secret")

    def __init__(
        self, memoized: PermanentAnswers, secret: bytes | None = None, *, max_values: int = 1
    ) -> None:
        self._memoized = _arguments.instance(
            "memoized", memoized, PermanentAnswers, "a Memoized oracle"
        )
        if secret is None:
            secret = secrets.token_bytes(SECRET_BYTES)
        if not isinstance(secret, (bytes, bytearray)):
            raise InvalidTypeError(f"secret must be bytes, got {type(secret).__name__}")
        if len(secret) != SECRET_BYTES:
            raise InvalidValueError(f"secret must have {SECRET_BYTES} bytes, got {len(secret)}")
        self._secret = HiddenBytes(secret)
        self._past = Past(memoized.permanent_per)
        most = self._past.limit(memoized.domain.size)
        self._most = _arguments.integer("max_values", max_values, least=1, most=most)

    @property
    def memoized(self) -> PermanentAnswers:
        """The oracle."""
        return self._memoized

    @property
    def values_given(self) -> int:
        """How many permanent answers were used so far: different answers, or phases."""
        return len(self._past.given)

    @property
    def max_values(self) -> int:
        """How many permanent answers may be used: different answers, or phases."""
        return self._most

    @property
    def spent(self) -> float:
        """The budget spent so far: :meth:`Memoized.spent` of the permanent answers used.

        Given which reports share a permanent answer. Who does not know that can find it out by and
        by: :meth:`Memoized.spent_by_reports` of all reports bounds that.
        """
        return self._memoized.spent(self.values_given)

    def report(self, value: Hashable, *, seed: int | None = None) -> Any:
        """Make the report of this round.

        Store :meth:`to_bytes` before the report of a new answer leaves, so that the limit holds
        whatever happens afterwards.

        Parameters
        ----------
        value
            The answer of this round.
        seed
            For tests only: of the instantaneous noise. The permanent answer takes none.

        Returns
        -------
        int or numpy.ndarray
            A code, or a row of bits: an entry of ``codes`` of :class:`turnout.Reports`.

        Raises
        ------
        BudgetExceededError
            If it would be one different answer too many; nothing is reported then.
        UnknownLabelError, CodeOutsideDomainError
            If the answer is not in the domain.
        """
        self._past, reports = self._round(value, Everyone(), seed)
        report = reports.codes[0]
        return report if isinstance(report, np.ndarray) else int(report)

    def message(
        self,
        plan: Plan,
        value: Hashable,
        *,
        state: str | os.PathLike[str] | None = None,
        seed: int | None = None,
    ) -> bytes | None:
        """Make the message of this round: what :meth:`turnout.Plan.report` makes of fresh reports.

        Make one in a round and keep it, or that there is none; where sending fails, send that
        message again.

        Parameters
        ----------
        plan
            The plan of the collection; its oracle must be that of this client.
        value
            The answer of this round.
        state
            A file for the state. It is written before the message is returned, unless it holds the
            state already: whole or not at all, and a new one readable by its owner only; then it is
            only read. Threads and processes with one file take turns, and one whose client does not
            know what the file says is refused. Who keeps the state elsewhere stores
            :meth:`to_bytes` before the message of a new answer leaves.
        seed
            For tests only: of the coin and of the instantaneous noise, not of the message's nonce.

        Returns
        -------
        bytes or None
            A line of JSON without its end (:doc:`/reference/formats`) for
            :meth:`turnout.Plan.gather`, or None if this person does not take part in this round:
            then nothing is sent, and nothing is spent.

        Raises
        ------
        PlanMismatchError
            If the plan is of another oracle, or ``state`` a file of other permanent answers. Where
            only ``first_epsilon`` or the instantaneous stage of the plan is another, permanent
            answers stay the same: read the state again with its oracle, :meth:`from_bytes`.
        PlanExpiredError
            If the plan has expired.
        BudgetExceededError
            If it would be one different answer too many, whether the person takes part or not.
        UnknownLabelError, CodeOutsideDomainError
            If the answer is not in the domain, whether the person takes part or not.
        InvalidValueError
            If participation is personal, or ``state`` is the file of another client, or of one
            that may give another number of answers.
        CorruptDataError, UnsupportedVersionError
            If ``state`` is a file that is no state of a client, or one of another version.
        InvalidTypeError
            If an argument is of the wrong type.
        OSError
            If the state cannot be written. After any error there is no message, and nothing is
            spent.

        Notes
        -----
        Who takes part is a coin of the plan, tossed anew in each round, that knows nothing of the
        answer: silence says nothing about it. Nor does it protect: participation lowers neither
        :attr:`Memoized.lifetime_epsilon` nor what one report spends, it only saves reports. A
        device that falls silent after :class:`~turnout.errors.BudgetExceededError`, though, shows
        in time that its answer changed. One that repeats its last answer does not.

        Examples
        --------
        >>> import turnout as tn
        >>> from turnout.frequency.longitudinal import Memoized
        >>> memoized = Memoized(tn.DirectEncoding(4.0, 3), first_epsilon=1.0)
        >>> plan = tn.Plan(memoized, tn.Everyone())
        >>> clients = [memoized.client() for person in range(100)]
        >>> days = [[client.message(plan, 2) for client in clients] for day in range(2)]
        >>> [len(plan.gather(messages)) for messages in days]
        [100, 100]
        >>> clients[0].spent <= 4.0
        True
        """
        _arguments.instance("plan", plan, Plan, "a Plan")
        if state is not None and not isinstance(state, (str, os.PathLike)):
            raise _arguments.mistyped("state must be the path of a file", state)
        refuse_personal(plan)
        plan._check_same(Plan(self._memoized, plan.participation), "this client")
        plan._check_current()
        after, reports = self._round(value, plan.participation, seed)
        message = message_of(plan, reports.codes)
        if message is not None:
            before = self._past
            self._past = after
            if state is not None:
                try:
                    self._keep(Path(state))
                except BaseException:
                    self._past = before
                    raise
        return message

    def _keep(self, path: Path) -> None:
        """See to it that a file holds the state; refuse one that says what this client does not."""
        # A file that holds it already needs neither a turn nor leave to write.
        if _there(path) != self.to_bytes():
            with turn(path):
                self._write(path)

    def _write(self, path: Path) -> None:
        data, there = self.to_bytes(), _there(path)
        if there == data:
            return
        if there:
            try:
                kept = MemoizedClient.from_bytes(self._memoized, there)
            except (CorruptDataError, PlanMismatchError, UnsupportedVersionError) as error:
                raise type(error)(f"state {os.fspath(path)!r}: {error}") from error
            if kept._secret != self._secret or not self._past.knows(kept._past):
                raise InvalidValueError(
                    f"state must be the file of this client, got {os.fspath(path)!r}, which holds "
                    "another secret or answers that this client has not given: begin with "
                    "MemoizedClient.from_bytes of what is there"
                )
            if kept._most != self._most:
                raise InvalidValueError(
                    f"state must be the file of this client, got {os.fspath(path)!r}, which allows "
                    f"{kept._most} {self._what}, not max_values = {self._most}: what was promised "
                    "for a lifetime stays"
                )
        with atomic_write(path, private=True) as temporary:
            temporary.write_bytes(data)

    def _round(
        self, value: Hashable, participation: Participation, seed: int | None
    ) -> tuple[Past, Reports]:
        """Make the past after a round and its report, or none, and leave the state as it is."""
        after = self._past.after(int(self._memoized.domain.to_codes([value])[0]))
        used = len(after.given)
        if used > self._most:
            raise BudgetExceededError(
                f"this client may give {self._most} {self._what} and has given "
                f"{self.values_given}: one more would spend {self._memoized.spent(used):.6g}"
            )
        secret = np.frombuffer(self._secret, dtype=np.uint8).reshape(1, SECRET_BYTES)
        phase = used - 1 if after.per == "phase" else None
        answer = self._memoized.permanent_answers([value], secret, phases=phase)
        return after, self._memoized.report(answer, participation=participation, seed=seed)

    @property
    def _what(self) -> str:
        return "phase(s)" if self._past.per == "phase" else "different answer(s)"

    def to_bytes(self) -> bytes:
        """Write the state: secret, limit and the answers given, with a checksum.

        Returns
        -------
        bytes
            To be kept as secret as the answers.
        """
        state = {
            "format": _STATE.format,
            "version": _STATE.version,
            "context": self._memoized.context.hex(),
            "secret": self._secret.hex(),
            "max_values": self._most,
            "given": list(self._past.given),
        }
        return _STATE.text(state).encode("ascii")

    @classmethod
    def from_bytes(cls, memoized: PermanentAnswers, data: bytes) -> MemoizedClient:
        """Read what :meth:`to_bytes` wrote.

        Parameters
        ----------
        memoized
            The oracle; its permanent answers must be those of the state.
        data
            The state.

        Returns
        -------
        MemoizedClient
            The same client.

        Raises
        ------
        PlanMismatchError
            If the state belongs to permanent answers of another oracle, domain or question.
        UnsupportedVersionError, CorruptDataError
            If the bytes are of another version, truncated, altered, or no state.
        InvalidTypeError
            If ``data`` is not bytes.

        Examples
        --------
        >>> import turnout as tn
        >>> from turnout.frequency.longitudinal import Memoized
        >>> memoized = Memoized(tn.DirectEncoding(4.0, 3), first_epsilon=1.0)
        >>> client = memoized.client()
        >>> _ = client.report(2)
        >>> MemoizedClient.from_bytes(memoized, client.to_bytes()).values_given
        1
        """
        _arguments.instance("memoized", memoized, PermanentAnswers, "a Memoized oracle")
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise InvalidTypeError(f"data must be bytes, got {type(data).__name__}")
        match _STATE.read(bytes(data)):
            case {
                "format": _STATE.format,
                "version": int(),
                "context": str(context),
                "secret": str(secret),
                "max_values": int(most),
                "given": list(given),
                **rest,
            } if not rest:
                if context != memoized.context.hex():
                    raise PlanMismatchError(
                        "data was made for permanent answers of another oracle, domain or question"
                    )
                past = Past(memoized.permanent_per, tuple(given))
                if _SECRET.fullmatch(secret) and past.is_possible(memoized.domain.size, most):
                    client = cls(memoized, bytes.fromhex(secret), max_values=most)
                    client._past = past
                    return client
        # Nothing of it is shown: it may hold a secret.
        raise CorruptDataError("not the state of a client")

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: each of two clients would keep to the limit alone."""
        raise InvalidTypeError(
            "a MemoizedClient cannot be copied or pickled, two with one secret could spend twice "
            "what one may: keep its state in a file, message(..., state=path), or where to_bytes() "
            "is stored, and read it with MemoizedClient.from_bytes when the first is gone"
        )

    def __repr__(self) -> str:
        """Show what was spent; neither the secret nor the answers."""
        return (
            f"MemoizedClient({self._memoized!r}, {self.values_given} of {self._most} {self._what} "
            "given)"
        )


def _there(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except FileNotFoundError:
        return b""
