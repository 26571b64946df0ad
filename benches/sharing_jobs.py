"""The jobs of secret sharing that are compared, and who does each of them.

One user's shares for two aggregators, many users' shares for each other, and sums of shares. NumPy
does the same arithmetic with its default generator, which is not cryptographic, and does not pack.
Flower's SecAgg+ hides vectors by masks that cancel: the making of one mask from a seed is compared,
as a client makes it for each neighbour. libprio-rs is compared in the Rust benches
(``benches/sharing.rs``): its shares carry proofs.
"""

from __future__ import annotations

import importlib
import secrets
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs import Job, Layout, Target
from machine import Cost
from measurement import Contender

USERS = 1000
SIZES = (30, 1000, 100_000)
MODULUS = 1009
ROWS = 1000
ROUND_USERS = 10**6

PEER = "flwr"
REFERENCE = "NumPy"
LAYOUT = Layout(
    columns=("turnout", REFERENCE, PEER),
    ratios={REFERENCE: "ratio to NumPy"},
    limited=True,
)
TITLE = f"Secret sharing modulo {MODULUS}, time of a call"
NOTES = [
    "turnout: each call takes a new key from the operating system. The elements are exactly "
    "uniform, and take 10 bits each.",
    "flwr: a call makes one mask of SecAgg+ of the same length, and no shares. Its generator is "
    "the Mersenne Twister, which gets 32 bits of the seed.",
]

Elements = npt.NDArray[Any]


def load_peer() -> tuple[ModuleType | None, dict[str, str]]:
    """Return Flower's mask generator, or None and why it is not to be had."""
    try:
        return importlib.import_module("flwr.common.secure_aggregation.secaggplus_utils"), {}
    except ImportError as error:
        return None, {PEER: f"not installed: {error}"}


def build(turnout: ModuleType | None, peer: ModuleType | None) -> list[Job]:
    """Return the jobs with a contender for every package at hand.

    Parameters
    ----------
    turnout
        The package ``turnout``, or None to measure the others alone.
    peer
        Flower's module with ``pseudo_rand_gen``, or None if it is not installed.
    """
    field = None
    if turnout is not None:
        own = importlib.import_module(f"{turnout.__name__}.distributed")
        field = own.PrimeField(MODULUS)
    return [
        *(_one_user(field, peer, size) for size in SIZES),
        _users_as_parties(field),
        _sum(field),
        _round(turnout),
    ]


def _one_user(field: Any, peer: ModuleType | None, size: int) -> Job:
    vector = np.zeros(size, np.uint32)
    vector[size // 2] = 1
    contenders = []
    if field is not None:

        def accept(result: tuple[list[bytes], bytes]) -> bool:
            shares = [field._expand(result[0][0], size), field._unpack(result[1], size)]
            return bool((field.reconstruct(shares) == vector).all())

        call: Callable[[], object] = partial(field._share_compressed, vector, 2)
        contenders.append(Contender("turnout", "share_compressed", 1, call, accept))
    generator = np.random.default_rng()
    call = partial(_numpy_share, generator, vector)
    contenders.append(Contender(REFERENCE, "integers", 1, call, _adds_up_to(vector)))
    if peer is not None:
        seed = secrets.token_bytes(32)
        call = partial(peer.pseudo_rand_gen, seed, MODULUS, [(size,)])
        contenders.append(
            Contender(PEER, "pseudo_rand_gen", 1, call, lambda masks: masks[0].size == size)
        )
    target = Target(seconds=2e-6) if size == USERS else Target()
    # Half a word for each element of the share that a seed stands for, after a key for the seed.
    cost = Cost(bytes=4.0 * size + size * 10 / 8, words=size / 2, calls=1, alone=True)
    name = f"one user's shares, 2 aggregators, N={size:,}"
    return Job(name, contenders, target, timed=True, cost=cost)


def _numpy_share(generator: np.random.Generator, vector: Elements) -> tuple[Elements, Elements]:
    first = generator.integers(0, MODULUS, vector.size, np.uint32)
    return first, (vector + MODULUS - first) % MODULUS


def _adds_up_to(vector: Elements) -> Callable[[Any], bool]:
    return lambda shares: bool(((shares[0] + shares[1]) % MODULUS == vector).all())


def _users_as_parties(field: Any) -> Job:
    size = SIZES[0]
    codes = np.random.default_rng(0).integers(0, size, USERS).astype(np.uint32)
    held = np.bincount(codes, minlength=size)
    contenders = []
    if field is not None:
        call: Callable[[], object] = partial(
            field._core.share_one_hot, codes, 1.0, size, USERS, False
        )

        def accept(result: tuple[Elements, int, int]) -> bool:
            return bool((field.reconstruct(result[0]) == held).all())

        contenders.append(Contender("turnout", "share_one_hot", 1, call, accept))
    call = partial(_numpy_parties, codes, size)
    contenders.append(
        Contender(
            REFERENCE, "user by user", 1, call, lambda sums: bool((_total(sums) == held).all())
        )
    )
    name = f"{USERS:,} users as parties, N={size}"
    return Job(name, contenders, timed=True, nobody=frozenset({PEER}))


def _numpy_parties(codes: Elements, size: int) -> npt.NDArray[np.uint64]:
    generator = np.random.default_rng()
    sums = np.zeros((len(codes), size), np.uint64)
    for code in codes:
        drawn = generator.integers(0, MODULUS, (len(codes) - 1, size), np.uint32)
        sums[:-1] += drawn
        last = -drawn.sum(axis=0, dtype=np.int64)
        last[code] += 1
        sums[-1] += (last % MODULUS).astype(np.uint64)
    return sums % np.uint64(MODULUS)


def _total(sums: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return sums.sum(axis=0) % np.uint64(MODULUS)


def _sum(field: Any) -> Job:
    size = SIZES[1]
    rows = np.random.default_rng(0).integers(0, MODULUS, (ROWS, size), np.uint32)
    expected = rows.sum(axis=0, dtype=np.uint64) % MODULUS

    def accept(result: Elements) -> bool:
        return bool((result == expected).all())

    contenders = []
    if field is not None:
        call: Callable[[], object] = partial(field._core.sum, rows)
        contenders.append(Contender("turnout", "sum", rows.size, call, accept))
    call = partial(_numpy_sum, rows)
    contenders.append(Contender(REFERENCE, "sum", rows.size, call, accept))
    name = f"sum of {ROWS:,} shares, N={size:,}, elements"
    return Job(name, contenders, Target(), timed=False, nobody=frozenset({PEER}))


def _numpy_sum(rows: Elements) -> npt.NDArray[np.uint64]:
    total: npt.NDArray[np.uint64] = rows.sum(axis=0, dtype=np.uint64) % np.uint64(MODULUS)
    return total


def _round(turnout: ModuleType | None) -> Job:
    """Return the job of a whole round, every share drawn; nobody else has one that compares."""
    size = SIZES[1]
    codes = np.random.default_rng(0).integers(0, size, ROUND_USERS).astype(np.uint32)
    contenders = []
    if turnout is not None:
        own = importlib.import_module(f"{turnout.__name__}.distributed")
        domain = turnout.Domain.from_integers(size)
        aggregation = own.NoisyAggregation(domain, users=ROUND_USERS, epsilon=1.0)
        call: Callable[[], object] = partial(aggregation.run, codes)

        def accept(result: Any) -> bool:
            return bool(abs(result.estimate.frequencies.sum() - 1.0) < 0.01)

        variant = "NoisyAggregation.run"
        contenders.append(Contender("turnout", variant, 1, call, accept, once=True))
    name = f"round of {ROUND_USERS:,} users, 3 aggregators, N={size:,}"
    return Job(name, contenders, timed=True, nobody=frozenset({REFERENCE, PEER}))
