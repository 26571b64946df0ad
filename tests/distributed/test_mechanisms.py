"""Mechanisms: their arguments, the rates found, what protects, and how they travel."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest

import turnout as tn
import turnout.distributed as td
from turnout.distributed.mechanisms import mechanism_from_dict
from turnout.errors import (
    InvalidTypeError,
    InvalidValueError,
)

Sampling = partial(td.SamplingAggregation, 3, 100)
Noisy = partial(td.NoisyAggregation, 3, 100)
TwoStage = partial(td.TwoStageSampling, 4, 100)

# Arguments.

COMMON: list[tuple[str, Any, type[Exception]]] = [
    ("domain", 1, InvalidValueError),
    ("domain", -5, InvalidValueError),
    ("domain", 2.0, InvalidTypeError),
    ("domain", "abc", InvalidTypeError),
    ("domain", True, InvalidTypeError),
    ("domain", None, InvalidTypeError),
    ("users", 0, InvalidValueError),
    ("users", -1, InvalidValueError),
    ("users", 10.0, InvalidTypeError),
    ("users", 2**31, InvalidValueError),
    ("users", True, InvalidTypeError),
    ("epsilon", "1", InvalidTypeError),
    ("epsilon", math.nan, InvalidValueError),
    ("epsilon", -1.0, InvalidValueError),
    ("delta", "x", InvalidTypeError),
    ("delta", math.nan, InvalidValueError),
    ("delta", -1e-9, InvalidValueError),
    ("delta", 1.5, InvalidValueError),
    ("honest_aggregators", 0, InvalidValueError),
    ("honest_aggregators", 1.0, InvalidTypeError),
    ("max_colluding_users", -1, InvalidValueError),
    ("max_colluding_users", 100, InvalidValueError),
    ("max_missing_users", "2", InvalidTypeError),
    ("max_missing_users", 100, InvalidValueError),
    ("adjacency", "swap", InvalidValueError),
    ("adjacency", None, InvalidValueError),
]
DEPLOYED: list[tuple[str, Any, type[Exception]]] = [
    ("parties", 1, InvalidValueError),
    ("parties", 0, InvalidValueError),
    ("parties", "everyone", InvalidValueError),
    ("parties", 2.0, InvalidTypeError),
    ("compressed", 1, InvalidTypeError),
    ("honest_aggregators", 4, InvalidValueError),
]
DUMMIES: list[tuple[str, Any, type[Exception]]] = [
    ("rate", 0.0, InvalidValueError),
    ("rate", 1.0, InvalidValueError),
    ("rate", -0.1, InvalidValueError),
    ("rate", math.nan, InvalidValueError),
    ("rate", "half", InvalidTypeError),
    ("floor", -1, InvalidValueError),
    ("floor", 101, InvalidValueError),
    ("floor", 34, InvalidValueError),  # of 100 users with 3 items or more
    ("floor", 3.5, InvalidTypeError),
    ("dummies", -1, InvalidValueError),
    ("dummies", 10_000_001, InvalidValueError),
    ("dummies", 2.0, InvalidTypeError),
]
NOISY: list[tuple[str, Any, type[Exception]]] = [
    ("noise", "gaussian", InvalidValueError),
    ("noise", None, InvalidValueError),
    ("source", "server", InvalidValueError),
    ("parameter", 0.0, InvalidValueError),
    ("parameter", -1.0, InvalidValueError),
    ("parameter", math.nan, InvalidValueError),
    ("parameter", math.inf, InvalidValueError),
    ("parameter", "2", InvalidTypeError),
]
TWO_STAGE: list[tuple[str, Any, type[Exception]]] = [
    ("reported", 0, InvalidValueError),
    ("reported", 5, InvalidValueError),
    ("reported", 2.0, InvalidTypeError),
    ("gamma", 1.0, InvalidValueError),
    ("gamma", "3", InvalidTypeError),
    ("collusion_bound", -1, InvalidValueError),
    ("collusion_bound", 100, InvalidValueError),
    ("collusion_bound", 1.0, InvalidTypeError),
    ("elected", 0, InvalidValueError),
    ("elected", 1, InvalidValueError),  # who would see what is reported
    ("elected", 101, InvalidValueError),
    ("elected", "all", InvalidTypeError),
    ("max_colluding_users", 2, InvalidValueError),  # nobody else need be elected
    ("max_colluding_users", 3, InvalidValueError),
]
BASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "sampling": (
        td.SamplingAggregation,
        {"domain": 3, "users": 100, "rate": 0.5, "floor": 10, "epsilon": 9.0, "delta": 1e-3},
    ),
    "noisy": (
        td.NoisyAggregation,
        {"domain": 3, "users": 100, "parameter": 2.0, "delta": 1e-3, "epsilon": 1.0},
    ),
    "two-stage": (
        td.TwoStageSampling,
        {
            "domain": 4, "users": 100, "reported": 2, "rate": 0.5, "floor": 22, "delta": 1e-3,
            "epsilon": 9.0,
        },
    ),
}  # fmt: skip
BAD = [
    *((name, *case) for name in BASES for case in COMMON),
    *((name, *case) for name in ("sampling", "noisy") for case in DEPLOYED),
    *((name, *case) for name in ("sampling", "two-stage") for case in DUMMIES),
    *(("noisy", *case) for case in NOISY),
    *(("two-stage", *case) for case in TWO_STAGE),
]


@pytest.mark.parametrize(("name", "argument", "value", "error"), BAD)
def test_bad_arguments_are_refused_by_name_and_value(
    name: str, argument: str, value: Any, error: type[Exception]
) -> None:
    make, good = BASES[name]
    make(**good)
    with pytest.raises(error) as caught:
        make(**(good | {argument: value}))
    text = str(caught.value)
    assert argument in text
    assert str(value) in text


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"parties": "users", "max_missing_users": 1}, "every user is a party"),
        ({"parties": "users", "users": 1}, "at least 2"),
        ({"parties": "users", "max_colluding_users": 99, "honest_aggregators": 2}, "at most 1,"),
        ({"parties": "users", "max_colluding_users": 1, "honest_aggregators": 100}, "at most 99,"),
        ({"parties": "users", "honest_aggregators": 100}, "at most 99,"),
        ({"max_colluding_users": 60, "max_missing_users": 40}, "must leave at least one user"),
    ],
)
def test_arguments_that_exclude_each_other_are_refused(
    arguments: dict[str, Any], match: str
) -> None:
    for name in ("sampling", "noisy"):
        make, good = BASES[name]
        extra = {"dummies": 5, "floor": 0} if name == "sampling" else {}
        with pytest.raises(InvalidValueError, match=match):
            make(**(good | extra | arguments))


def test_a_trusted_server_has_everybody_and_no_messages() -> None:
    with pytest.raises(InvalidValueError, match="max_missing_users must be 0"):
        Sampling(rate=0.5, floor=9, central=True, max_missing_users=1)
    with pytest.raises(InvalidValueError, match="central"):
        td.Round.start(Sampling(rate=0.5, floor=9, central=True))
    with pytest.raises(InvalidTypeError, match="central"):
        Sampling(rate=0.5, floor=9, central=1)


@pytest.mark.parametrize(("size", "users"), [(3, 100), (3, 99), (4, 7), (2, 3), (5, 4)])
def test_floors_that_no_data_can_keep_are_refused(size: int, users: int) -> None:
    """The data that is most even has the largest floor."""
    largest = int(np.bincount(np.arange(users) % size, minlength=size).min())
    for make in (td.SamplingAggregation, partial(td.TwoStageSampling, reported=1)):
        good = make(size, users, rate=0.5, floor=largest, dummies=0 if largest else 1)
        assert good.floor == largest
        with pytest.raises(InvalidValueError, match=f"at most {largest}, got {largest + 1}: ") as e:
            make(size, users, rate=0.5, floor=largest + 1, dummies=1)
        for part in ("floor must be", f"{users} users", f"{size} items"):
            assert part in str(e.value)


@pytest.mark.parametrize("make", [Sampling, partial(TwoStage, reported=2)])
def test_sampling_without_a_floor_or_dummies_is_refused_with_the_reason(make: Any) -> None:
    for arguments in ({"rate": 0.1}, {"epsilon": 1.0, "delta": 1e-3}):
        with pytest.raises(InvalidValueError, match="floor or dummies must be given: without"):
            make(**arguments)
    for arguments in ({"max_missing_users": 7}, {"max_colluding_users": 3, "max_missing_users": 4}):
        bound = {"collusion_bound": 9} if make is not Sampling else {}
        with pytest.raises(InvalidValueError, match="otherwise no hidden coin is left"):
            make(rate=0.1, floor=7, **bound, **arguments)


def test_a_target_needs_epsilon_and_delta_and_must_be_reached() -> None:
    for make in (partial(Sampling, floor=10), partial(TwoStage, reported=2, floor=10)):
        with pytest.raises(InvalidValueError, match="epsilon and delta must be given, or rate"):
            make()
        for arguments in ({"epsilon": 1.0}, {"delta": 1e-5}):
            for rate in ({}, {"rate": 0.1}):
                with pytest.raises(InvalidValueError, match="must be given together"):
                    make(**arguments, **rate)
        with pytest.raises(InvalidValueError, match=r"rate = 0\.9 does not reach delta = 1e-05"):
            make(rate=0.9, epsilon=1.0, delta=1e-5)
    for noise in ("skellam", "discrete_gaussian"):
        with pytest.raises(InvalidValueError, match="must be given together"):
            Noisy(noise=noise, epsilon=1.0)
        with pytest.raises(InvalidValueError, match="does not reach"):
            Noisy(noise=noise, parameter=0.01, epsilon=1.0, delta=1e-5)
    with pytest.raises(InvalidValueError, match="epsilon and delta must be given"):
        Noisy()
    laplace = Noisy(epsilon=1.0)
    assert (laplace.delta, laplace.parameter) == (0.0, 2.0)
    assert laplace.accounting.delta(1.0) == 0.0


@pytest.mark.parametrize("kind", [td.VerifiedAggregation, td.VerifiedSum, td.NoisyAggregation])
def test_a_delta_that_the_answer_of_one_user_has_is_no_target(kind: Any) -> None:
    domain = (0, 3) if kind is td.VerifiedSum else 3
    with pytest.raises(InvalidValueError, match=r"below 1 over the number of people, 0\.01, got"):
        kind(domain, 100, epsilon=1.0, delta=0.01)
    with pytest.raises(InvalidValueError, match=r"delta must be a number .* below 1, got 1\.0"):
        kind(domain, 100, epsilon=1.0, delta=1.0)
    assert kind(domain, 100, epsilon=1.0, delta=0.0099).delta == 0.0099
    with pytest.raises(InvalidValueError, match="below 1 over the number of people"):
        td.recommend(100, domain if domain == 3 else tn.Bounds(0, 3), 1.0, 0.01)


def test_targets_out_of_reach_are_refused_and_lax_ones_taken() -> None:
    for make in (
        partial(Sampling, floor=33),
        partial(TwoStage, reported=2, dummies=40),
        partial(Noisy, noise="skellam"),
        partial(Noisy, noise="discrete_gaussian", source="parties"),
    ):
        with pytest.raises(InvalidValueError, match=r"delta must be above 0, got 0\.0"):
            make(epsilon=1.0, delta=0.0)
    with pytest.raises(InvalidValueError, match="epsilon"):
        Noisy(epsilon=0.0)
    for lax in (
        Noisy(epsilon=300.0),
        Noisy(noise="skellam", epsilon=300.0, delta=9e-3),
        Noisy(noise="discrete_gaussian", epsilon=300.0, delta=9e-3),
        TwoStage(reported=1, floor=3, epsilon=300.0, delta=9e-3),
        Sampling(floor=3, epsilon=300.0, delta=9e-3),
    ):
        assert lax.accounting.delta(lax.epsilon) <= lax.delta
        assert mechanism_from_dict(lax.to_dict()) == lax


# What protects.


def replaced_delta(rate: float, floor: int, epsilon: float) -> float:
    """Sum the hockey stick of Bin(m+1, p) x Bin(m, p) against the two exchanged."""
    m = floor

    def mass(n: int, x: int) -> float:
        return math.comb(n, x) * rate**x * (1 - rate) ** (n - x) if x <= n else 0.0

    more = [mass(m + 1, x) for x in range(m + 2)]
    less = [mass(m, x) for x in range(m + 2)]
    alpha = math.exp(epsilon)
    gaps = (a * d - alpha * b * c for a, b in zip(more, less, strict=True)
            for c, d in zip(more, less, strict=True))  # fmt: skip
    return math.fsum(gap for gap in gaps if gap > 0)


@pytest.mark.parametrize(
    ("floor", "rate"), [(10, 0.167), (33, 0.468), (100, 0.743), (333, 0.908), (1000, 0.968)]
)
def test_rates_are_the_largest_that_reach_the_target(floor: int, rate: float) -> None:
    by_floor = td.SamplingAggregation(3, 3000, epsilon=1.0, delta=1e-5, floor=floor)
    by_dummies = td.SamplingAggregation(3, 5, epsilon=1.0, delta=1e-5, dummies=floor)
    assert by_floor.rate == by_dummies.rate == pytest.approx(rate, abs=5.1e-4)
    if floor <= 333:
        assert replaced_delta(by_floor.rate, floor, 1.0) <= 1e-5
        assert replaced_delta(by_floor.rate * (1 + 1e-6), floor, 1.0) > 1e-5


@pytest.mark.parametrize(
    ("arguments", "hidden", "contributors"),
    [
        ({"floor": 20}, 20, 0),
        ({"floor": 20, "max_colluding_users": 4}, 16, 0),
        ({"floor": 20, "max_missing_users": 3}, 17, 0),
        ({"floor": 20, "max_colluding_users": 4, "max_missing_users": 3}, 13, 0),
        ({"dummies": 7}, 7, 3),
        ({"dummies": 7, "parties": 5}, 7, 5),
        ({"dummies": 7, "parties": 5, "honest_aggregators": 2}, 14, 5),
        ({"dummies": 7, "max_colluding_users": 4, "max_missing_users": 3}, 7, 3),
        ({"dummies": 7, "parties": "users"}, 7, 2),
        ({"dummies": 7, "parties": "users", "max_colluding_users": 1}, 7, 2),
        ({"dummies": 7, "parties": "users", "honest_aggregators": 3}, 21, 4),
        ({"dummies": 7, "parties": "users", "max_colluding_users": 4}, 7, 5),
        ({"dummies": 7, "parties": "users", "max_colluding_users": 4, "honest_aggregators": 3},
         21, 7),
        ({"dummies": 7, "floor": 20, "max_colluding_users": 4}, 23, 3),
        ({"dummies": 7, "floor": 3, "max_colluding_users": 4}, 7, 3),
        ({"dummies": 7, "central": True, "honest_aggregators": 2}, 7, 1),
    ],
)  # fmt: skip
def test_only_coins_that_nobody_knows_are_counted(
    arguments: dict[str, Any], hidden: int, contributors: int
) -> None:
    mechanism = Sampling(rate=0.25, **arguments)
    assert mechanism._hidden_floor == hidden
    assert mechanism._contributors == contributors
    assert mechanism.accounting == tn.accounting.CountSampling(0.25, hidden)
    if not arguments.get("central"):
        total = 100 + contributors * mechanism.dummies
        assert mechanism.field.modulus > total
        assert mechanism._decode(np.array([0, total], mechanism.field._dtype)).tolist() == [
            0,
            total,
        ]


@pytest.mark.parametrize(
    ("arguments", "pieces", "contributors"),
    [
        ({}, 100, 0),
        ({"max_colluding_users": 10, "max_missing_users": 5}, 85, 0),
        ({"source": "parties"}, 1, 3),
        ({"source": "parties", "honest_aggregators": 2, "parties": 4}, 2, 4),
        ({"source": "parties", "parties": "users"}, 1, 2),
        ({"source": "parties", "parties": "users", "max_colluding_users": 6}, 1, 7),
    ],
)
@pytest.mark.parametrize("noise", ["discrete_laplace", "skellam", "discrete_gaussian"])
def test_the_noise_of_honest_pieces_is_enough(
    noise: str, arguments: dict[str, Any], pieces: int, contributors: int
) -> None:
    mechanism = Noisy(noise=noise, epsilon=1.0, delta=1e-5, **arguments)
    assert mechanism._required_pieces == pieces
    assert mechanism._contributors == contributors
    assert mechanism.accounting.delta(1.0) <= 1e-5
    drawn = contributors if arguments.get("source") == "parties" else 100
    # All pieces together have drawn / pieces times the variance of those that are needed.
    accounted = mechanism.accounting
    needed = {
        "discrete_laplace": lambda: laplace_variance(accounted.scale),
        "skellam": lambda: 2 * accounted.mean,
        "discrete_gaussian": lambda: mechanism.law().variance * pieces / drawn,
    }[noise]()
    assert mechanism.law().variance == pytest.approx(needed * drawn / pieces, rel=1e-9)
    # The field holds every count with any noise that is not rarer than 2^-64.
    reach = mechanism.law().tail_bound(2.0**-64 / 3)
    assert mechanism.field.modulus > 100 + 2 * reach
    extremes = np.array([-reach, -1, 0, 50, 100, 100 + reach])
    assert mechanism._decode(mechanism.field._reduce(extremes)).tolist() == extremes.tolist()


def laplace_variance(scale: float) -> float:
    q = math.exp(-1 / scale)
    return 2 * q / (1 - q) ** 2


def test_guarantees_say_what_they_rest_on() -> None:
    cases: list[tuple[Any, list[str], list[str]]] = [
        (Sampling(epsilon=1.0, delta=1e-5, dummies=50),
         ["at least one of the 3 aggregators", "no other user", "the data may be anything",
          "follows the protocol", "epsilon = 1, delta = 1e-05"],
         ["is held by", "missing"]),
        (Sampling(rate=0.4, floor=20, max_colluding_users=2, max_missing_users=3),
         ["held by at least 20 users", "at most 2 other users", "at most 3 users are missing"],
         ["anything", "epsilon ="]),
        (Sampling(rate=0.4, dummies=9, parties=5, honest_aggregators=2),
         ["at least 2 of the 5 aggregators do not"], ["held by"]),
        (Sampling(rate=0.4, dummies=9, parties="users", max_colluding_users=3),
         ["one of the first 4 users, who add dummies or noise, keeps them to themselves",
          "at most 3 other users"], ["aggregators"]),
        (Sampling(rate=0.4, dummies=9, parties="users", honest_aggregators=2),
         ["at least 2 of the first 3 users, who add dummies or noise, keep them to themselves",
          "no other user exploits or discloses its own randomness"], ["aggregators"]),
        (Sampling(rate=0.4, floor=20, parties="users"),
         ["one other user does not share what it sees"], ["aggregators", "dummies", "the first"]),
        (Sampling(rate=0.4, floor=9, central=True), ["trusted"], ["aggregators"]),
        (Noisy(epsilon=1.0, max_missing_users=2, adjacency="add_or_remove"),
         ["one of the 3 parties that add up", "at most 2 users are missing", "anything",
          "one user that takes part holds an item or none"], ["held by"]),
        (Noisy(epsilon=1.0, source="parties", parties=4, honest_aggregators=3),
         ["at least 3 of the 4 aggregators"], []),
        (Noisy(epsilon=1.0, source="parties", parties="users"),
         ["one of the first 2 users, who add"], ["aggregators"]),
        (TwoStage(reported=2, rate=0.5, dummies=5, max_colluding_users=2, collusion_bound=4),
         ["at most 2 users give", "anything",
          "at least one of the 3 users that add"], ["held by"]),
        (TwoStage(reported=2, rate=0.5, floor=5, max_missing_users=1),
         ["no other user exploits or discloses its own randomness or shares",
          "at least 5 users", "at most 1 user is missing"], ["anything", "add dummies"]),
        (TwoStage(reported=2, rate=0.5, dummies=5),
         ["at least one of the 2 users that add dummies to an item keeps"], ["held by"]),
    ]  # fmt: skip
    for mechanism, said, unsaid in cases:
        guarantee = mechanism.guarantee
        text = str(guarantee)
        assert guarantee.mechanism == mechanism.accounting
        assert guarantee.adjacency == mechanism.adjacency
        assert [part for part in said if part not in text] == []
        assert [part for part in unsaid if part in text] == []
