"""The client of one person in a longitudinal collection."""

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
    """The past of a client: its different answers in order of code, or those of its phases.

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
        """Return the past after one more report."""
        if self.per == "phase":
            same = self.given[-1:] == (code,)
            return self if same else Past(self.per, (*self.given, code))
        return self if code in self.given else Past(self.per, tuple(sorted({*self.given, code})))

    def knows(self, other: Past) -> bool:
        """Return whether another past comes before this one, or is the same."""
        if self.per == "phase":
            return self.given[: len(other.given)] == other.given
        return set(other.given) <= set(self.given)

    def is_possible(self, size: int, most: Any) -> bool:
        """Return whether a client with a limit and a number of answers can have this past."""
        return (
            type(most) is int
            and all(type(code) is int and 0 <= code < size for code in self.given)
            and max(1, len(self.given)) <= most <= self.limit(size)
            and all(self.follows(*pair) for pair in zip(self.given, self.given[1:], strict=False))
        )

    def follows(self, before: int, after: int) -> bool:
        """Return whether one code can follow another."""
        return before != after if self.per == "phase" else before < after

    def limit(self, size: int) -> int:
        """Return the largest limit of a client of a domain."""
        return MOST_PHASES if self.per == "phase" else size


class MemoizedClient:
    """A client that reports one person's answers round after round, and limits what they reveal.

    :meth:`Memoized.client` returns it. The state (:meth:`to_bytes`) holds the secret and the
    answers given. Store it only where you would store the answers themselves. It changes only when
    a permanent answer is used for the first time. If it is lost, permanent answers are drawn anew
    from a new secret, and their budget is spent again.

    Two threads must not use a client at once. It cannot be copied or pickled: two clients with one
    secret could spend twice the limit of one. Store its state instead, and read it when the client
    is gone.
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
        """The number of permanent answers used so far: different answers, or phases."""
        return len(self._past.given)

    @property
    def max_values(self) -> int:
        """The largest number of permanent answers: different answers, or phases."""
        return self._most

    @property
    def spent(self) -> float:
        """The budget spent so far: :meth:`Memoized.spent` of the permanent answers used.

        It holds given which reports share a permanent answer. An observer who does not know this
        can find it out over time; :meth:`Memoized.spent_by_reports` of all reports bounds that.
        """
        return self._memoized.spent(self.values_given)

    def report(self, value: Hashable, *, seed: int | None = None) -> Any:
        """Return the report of this round.

        Store :meth:`to_bytes` before you send the report of a new answer, so that the limit holds
        whatever happens afterwards.

        Parameters
        ----------
        value
            The answer of this round.
        seed
            For tests only: the seed of the instantaneous noise. The permanent answer takes no seed.

        Returns
        -------
        int or numpy.ndarray
            A code, or a row of bits: an entry of ``codes`` of :class:`turnout.Reports`.

        Raises
        ------
        BudgetExceededError
            If the number of different answers would exceed the limit; then nothing is reported.
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
        """Return the message of this round, as :meth:`turnout.Plan.report` does for fresh reports.

        Make one message in a round and keep it, or the fact that the person does not take part. If
        sending fails, send that message again.

        Parameters
        ----------
        plan
            The plan of the collection; its oracle must be that of this client.
        value
            The answer of this round.
        state
            A file for the state. It is written before the message is returned, whole or not at all,
            and only its owner can read a new file. If it already holds the state, it is only read.
            Threads and processes with one file take turns. A client that does not know the state in
            the file is refused. If you keep the state elsewhere, store :meth:`to_bytes` before you
            send the message of a new answer.
        seed
            For tests only: the seed of the coin and of the instantaneous noise, not of the
            message's nonce.

        Returns
        -------
        bytes or None
            A line of JSON without the line end (:doc:`/reference/formats`) for
            :meth:`turnout.Plan.gather`, or None if this person does not take part in this round:
            then nothing is sent, and nothing is spent.

        Raises
        ------
        PlanMismatchError
            If the plan has another oracle, or ``state`` is a file of other permanent answers. If
            only ``first_epsilon`` or the instantaneous stage of the plan differs, permanent answers
            stay the same: read the state again with the plan's oracle, :meth:`from_bytes`.
        PlanExpiredError
            If the plan has expired.
        BudgetExceededError
            If the number of different answers would exceed the limit, whether the person takes part
            or not.
        UnknownLabelError, CodeOutsideDomainError
            If the answer is not in the domain, whether the person takes part or not.
        InvalidValueError
            If participation is personal, or ``state`` is the file of another client, or of a client
            with another limit.
        CorruptDataError, UnsupportedVersionError
            If ``state`` is not a file of a client's state, or has another version.
        InvalidTypeError
            If an argument is of the wrong type.
        OSError
            If the state cannot be written. After any error there is no message, and nothing is
            spent.

        Notes
        -----
        Participation is a coin of the plan that is tossed anew in each round, independently of the
        answer. So silence says nothing about the answer. Nor does participation protect: it lowers
        neither :attr:`Memoized.lifetime_epsilon` nor what one report spends; it only saves reports.
        However, a device that falls silent after :class:`~turnout.errors.BudgetExceededError` shows
        over time that its answer changed. A device that repeats its last answer does not.

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
        """Make a file hold the state; refuse a file with a state unknown to this client."""
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
                    f"state must be the file of this client, got {os.fspath(path)!r}, which "
                    "contains another secret, or answers that this client has not given: "
                    "start with MemoizedClient.from_bytes of the file"
                )
            if kept._most != self._most:
                raise InvalidValueError(
                    f"state must be the file of this client, got {os.fspath(path)!r}, which "
                    f"allows {kept._most} {self._what}, not max_values = {self._most}: the "
                    "promise for a lifetime cannot change"
                )
        with atomic_write(path, private=True) as temporary:
            temporary.write_bytes(data)

    def _round(
        self, value: Hashable, participation: Participation, seed: int | None
    ) -> tuple[Past, Reports]:
        """Return the past after a round and its report, or None, without changing the state."""
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
            The state, which must be kept as secret as the answers.
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
            The bytes of the state.

        Returns
        -------
        MemoizedClient
            The same client.

        Raises
        ------
        PlanMismatchError
            If the state belongs to permanent answers of another oracle, domain or question.
        UnsupportedVersionError, CorruptDataError
            If the bytes have another version, are truncated, altered, or not a state.
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
        """Refuse pickling and copying: two clients would each have the whole limit."""
        raise InvalidTypeError(
            "a MemoizedClient cannot be copied or pickled, because two clients with "
            "one secret could spend twice the budget. Keep its state in a file with "
            "message(..., state=path), or store to_bytes(), and read it with "
            "MemoizedClient.from_bytes when the first client is gone"
        )

    def __repr__(self) -> str:
        """Show what was spent, but neither the secret nor the answers."""
        return (
            f"MemoizedClient({self._memoized!r}, {self.values_given} of {self._most} {self._what} "
            "given)"
        )


def _there(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except FileNotFoundError:
        return b""
