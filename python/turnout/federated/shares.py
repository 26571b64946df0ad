"""Updates in shares: a client makes and seals them, aggregators add them up, the server combines.

Shares are of whole numbers modulo the prime 2^61 - 1. Those of all aggregators but the last are
seeds of 32 bytes, which expand to uniformly random numbers; the last aggregator gets the update
minus all of these. So the shares of any aggregators but one are uniformly random numbers, whatever
the update is. Each share is encrypted to its aggregator (HPKE, RFC 9180) for one purpose: the run,
the plan, the round, the sender and the list of aggregators. An aggregator opens it for no other.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from turnout import _arguments, _core
from turnout._types import Integers
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    MissingPartyError,
    TurnoutError,
)
from turnout.federated.plan import RandomParticipationSGD

_FIELD = _core.PrimeField(2**61 - 1)
_INFO = b"turnout federated share 1"


@dataclass(frozen=True)
class Purpose:
    """What the shares of a round are for.

    Attributes
    ----------
    run
        The run of the training, which the transport numbers.
    plan
        The fingerprint of the plan.
    round
        The number of the round.
    length
        The number of numbers in an update.
    keys
        The public keys of all aggregators, in their order.
    """

    run: int
    plan: str
    round: int
    length: int
    keys: tuple[str, ...]

    def sealed(self, values: Integers, client: int) -> list[bytes]:
        """Split the update of a client into shares, and encrypt each to its aggregator."""
        seeds, last = _FIELD.share_compressed(_FIELD.reduce(values), len(self.keys))
        pairs = zip(self.keys, [*seeds, last], strict=True)
        context = self._context(client)
        return [_core.seal_to(key_bytes(key), _INFO, context, share) for key, share in pairs]

    def added(
        self, key: _core.HpkeKey, plan: RandomParticipationSGD, sealed: Mapping[int, bytes]
    ) -> bytes | list[int]:
        """Return the sum of one aggregator's shares, or the clients whose shares do not open.

        Parameters
        ----------
        key
            The private key of the aggregator, of one of ``keys``.
        plan
            The plan of the round. Clients seal their shares for its fingerprint, so that nobody can
            exchange it for one that needs fewer senders.
        sealed
            One share of each client, sealed to this key.

        Raises
        ------
        MissingPartyError
            If there are shares of fewer clients than the plan needs.
        """
        least = 2 if plan.secure_sum is None else plan.secure_sum.least_senders
        if len(sealed) < least:
            raise MissingPartyError(
                f"the sum must be of the shares of at least {least} clients, got {len(sealed)}"
            )
        last = self.keys.index(key_text(key.config)) == len(self.keys) - 1
        total, refused = None, []
        for client, ciphertext in sealed.items():
            try:
                share = key.open(_INFO, self._context(client), ciphertext)
                # Only a client that sealed for this length makes room for it.
                total = total or _core.ShareSum(_FIELD, self.length)
                (total.add_packed if last else total.add_seed)(share)
            except (TurnoutError, ValueError):
                refused.append(client)
        return refused if refused or total is None else _FIELD.pack(total.finish())

    def _context(self, client: int) -> bytes:
        described = [self.run, self.plan, self.round, self.length, *self.keys, client]
        return json.dumps(described).encode("ascii")


def combined(sums: Sequence[bytes], length: int) -> Integers:
    """Return the sum of all updates, from the sums of all aggregators.

    Raises
    ------
    CorruptDataError
        If something is not a sum of shares of this length.
    """
    try:
        rows = np.stack([_FIELD.unpack(packed, length) for packed in sums])
    except (TurnoutError, ValueError) as error:
        raise CorruptDataError(f"not a sum of shares: {error}") from error
    return _FIELD.lift(_FIELD.sum(rows))


def key_text(config: bytes) -> str:
    """Return a public key as text.

    Examples
    --------
    >>> key = key_text(_core.HpkeKey.generate(0).config)
    >>> key_text(key_bytes(key)) == key
    True
    """
    return base64.urlsafe_b64encode(config).decode("ascii")


def key_bytes(key: str) -> bytes:
    """Return the public key that a text stands for.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the text does not stand for a key.
    """
    expected = "aggregators must be public keys, as new_aggregator returns them"
    if not isinstance(key, str):
        raise _arguments.mistyped(expected, key)
    try:
        config = base64.urlsafe_b64decode(key.encode("ascii"))
        _core.seal_to(config, b"", b"", b"")
    except (ValueError, binascii.Error, TurnoutError) as error:
        raise _arguments.invalid(expected, key) from error
    return config


def checked_keys(keys: object) -> tuple[str, ...]:
    """Return the public keys of the aggregators after a check: at least two, all different.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If they are not.
    """
    if isinstance(keys, str) or not isinstance(keys, Sequence):
        raise InvalidTypeError(
            "aggregators must be a list of public keys, as new_aggregator returns them, got "
            f"{_arguments.shown(keys)}"
        )
    for key in keys:
        key_bytes(key)
    if len(set(keys)) < max(2, len(keys)):
        raise InvalidValueError(
            "aggregators must be at least two public keys, each once: one aggregator alone would "
            f"see every update, got {len(keys)}"
        )
    return tuple(keys)
