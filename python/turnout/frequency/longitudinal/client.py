"""The side of one person in a longitudinal collection."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Hashable
from typing import Any

import numpy as np

from turnout import _arguments
from turnout.errors import (
    BudgetExceededError,
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
    UnsupportedVersionError,
)
from turnout.frequency.longitudinal.memoized import SECRET_BYTES, Memoized

__all__ = ["MemoizedClient"]

_MAGIC = b"turnout-client\x00"
_VERSION = 1


class MemoizedClient:
    """Reports one person's answers, round after round, and limits what they tell.

    Made by :meth:`Memoized.client`. The state (:meth:`to_bytes`) holds the secret and which answers
    were given: it belongs where the answers themselves would be kept, and nowhere else. It changes
    only when an answer is given for the first time. If it is lost, permanent answers are drawn anew
    from a new secret, and the budget of the old ones is spent once more.

    A client must not be used by two threads at once.
    """

    __slots__ = ("_given", "_memoized", "_most", "_secret")

    def __init__(
        self, memoized: Memoized, secret: bytes | None = None, *, max_values: int = 1
    ) -> None:
        self._memoized = _arguments.instance("memoized", memoized, Memoized, "a Memoized oracle")
        if secret is None:
            secret = secrets.token_bytes(SECRET_BYTES)
        if not isinstance(secret, (bytes, bytearray)):
            raise InvalidTypeError(f"secret must be bytes, got {type(secret).__name__}")
        if len(secret) != SECRET_BYTES:
            raise InvalidValueError(f"secret must have {SECRET_BYTES} bytes, got {len(secret)}")
        self._secret = bytes(secret)
        size = memoized.domain.size
        self._most = _arguments.integer("max_values", max_values, least=1, most=size)
        self._given: frozenset[int] = frozenset()

    @property
    def memoized(self) -> Memoized:
        """The oracle."""
        return self._memoized

    @property
    def values_given(self) -> int:
        """How many different answers were given so far."""
        return len(self._given)

    @property
    def max_values(self) -> int:
        """How many different answers may be given."""
        return self._most

    @property
    def spent(self) -> float:
        """The budget spent so far: :meth:`Memoized.spent` of the answers given."""
        return self._memoized.spent(len(self._given))

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
        codes = self._memoized.domain._to_codes([value])
        code = int(codes[0])
        if code not in self._given and len(self._given) >= self._most:
            raise BudgetExceededError(
                f"this client may give {self._most} different answer(s) and has given "
                f"{len(self._given)}: one more would spend "
                f"{self._memoized.spent(len(self._given) + 1):.6g}"
            )
        secret = np.frombuffer(self._secret, dtype=np.uint8).reshape(1, SECRET_BYTES)
        answer = self._memoized.permanent_answers([value], secret)
        report = self._memoized.report(answer, seed=seed).codes[0]
        self._given |= {code}
        return report if isinstance(report, np.ndarray) else int(report)

    def to_bytes(self) -> bytes:
        """Write the state: secret, limit and the answers given, with a checksum.

        Returns
        -------
        bytes
            To be kept as secret as the answers.
        """
        state = {
            "version": _VERSION,
            "context": self._memoized.context.hex(),
            "secret": self._secret.hex(),
            "max_values": self._most,
            "given": sorted(self._given),
        }
        body = json.dumps(state, sort_keys=True, separators=(",", ":")).encode()
        return _MAGIC + hashlib.sha256(body).digest() + body

    @classmethod
    def from_bytes(cls, memoized: Memoized, data: bytes) -> MemoizedClient:
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
        >>> memoized = Memoized(tn.DirectEncoding(4.0, 3), first_epsilon=1.0)
        >>> client = memoized.client()
        >>> _ = client.report(2)
        >>> MemoizedClient.from_bytes(memoized, client.to_bytes()).values_given
        1
        """
        _arguments.instance("memoized", memoized, Memoized, "a Memoized oracle")
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise InvalidTypeError(f"data must be bytes, got {type(data).__name__}")
        data = bytes(data)
        head, digest = data[: len(_MAGIC)], data[len(_MAGIC) : len(_MAGIC) + 32]
        body = data[len(_MAGIC) + 32 :]
        if head != _MAGIC or hashlib.sha256(body).digest() != digest:
            raise CorruptDataError("not the state of a client, or it was altered or cut")
        match json.loads(body):
            case {"version": version} if version != _VERSION:
                raise UnsupportedVersionError(
                    f"the state has version {_arguments.shown(version)}; this release of turnout "
                    f"reads {_VERSION}"
                )
            case {
                "context": str(context),
                "secret": str(secret),
                "max_values": int(most),
                "given": list(given),
            }:
                if context != memoized.context.hex():
                    raise PlanMismatchError(
                        "data was made for permanent answers of another oracle, domain or question"
                    )
                client = cls(memoized, bytes.fromhex(secret), max_values=most)
                client._given = frozenset(given)
                return client
        raise CorruptDataError("not the state of a client")

    def __repr__(self) -> str:
        """Show what was spent; neither the secret nor the answers."""
        return (
            f"MemoizedClient({self._memoized!r}, {self.values_given} of {self._most} different "
            "answers given)"
        )
