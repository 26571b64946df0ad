"""Guarantees end to end: exact laws of what an adversary sees, against the accounting.

Laws come from the definitions of the protocols (``views.py``), and never from the library. That the
roles draw and send just this is tested with real rounds.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from mpmath import mpf

import turnout.distributed as td
from turnout.accounting import CountSampling, TwoStageCountSampling
from turnout.accounting.mechanism import Mechanism

EPSILONS = (0.0, 0.2, 0.7, 1.5, 3.0)

#: How far below its claim an exact delta may be: the accounting rounds up.
TIGHT = 1e-9

#: Coins that all show heads.
ALWAYS = 1 - 2.0**-50

#: What the window of a law of noise leaves out.
WINDOW = 1e-20


def worst(views: ModuleType, pairs: Iterable[tuple[Any, Any]]) -> list[Any]:
    """Give the largest divergence of neighbours, in both directions, at every epsilon."""
    found = [mpf(0)] * len(EPSILONS)
    for one, other in pairs:
        for first, second in ((one, other), (other, one)):
            deltas = views.divergences(first, second, EPSILONS)
            found = [max(known, new) for known, new in zip(found, deltas, strict=True)]
    return found


def claimed(accounting: Mechanism, adjacency: str) -> list[float]:
    """Give what is promised at every epsilon."""
    return [accounting.delta(epsilon, adjacency) for epsilon in EPSILONS]


def check(found: Sequence[Any], promised: Sequence[float], *, attained: bool = False) -> None:
    """Fail if a promise is broken, or, where it is attained, if it is too large."""
    for epsilon, delta, promise in zip(EPSILONS, found, promised, strict=True):
        assert delta <= mpf(promise), f"delta {delta} > {promise} at epsilon {epsilon}"
        if attained:
            assert delta >= mpf(promise) * (1 - TIGHT), f"{delta} < {promise} at {epsilon}"


def exceeds(found: Sequence[Any], promised: Sequence[float]) -> bool:
    """Whether a delta is above a promise somewhere."""
    return any(delta > promise for delta, promise in zip(found, promised, strict=True))


# Sampling.


@pytest.mark.parametrize(
    ("rate", "floor", "size"), [(0.5, 1, 2), (0.625, 2, 2), (0.9, 2, 3), (0.125, 3, 2)]
)
def test_published_sums_of_sampling_with_a_floor(
    views: ModuleType, rate: float, floor: int, size: int
) -> None:
    mechanism = td.SamplingAggregation(size, size * floor + 1, rate=rate, floor=floor)
    held = views.others([floor] * size)
    pair = [views.sampled(mechanism, item, held) for item in (0, 1)]
    promised = claimed(mechanism.guarantee.mechanism, "replace")
    check(worst(views, [tuple(pair)]), promised, attained=True)
    none = views.sampled(mechanism, None, held)
    promised = claimed(mechanism.guarantee.mechanism, "add_or_remove")
    check(worst(views, [(pair[0], none)]), promised, attained=True)
    # With more holders it is less.
    larger = td.SamplingAggregation(size, size * floor + 3, rate=rate, floor=floor)
    for more in itertools.combinations_with_replacement(range(size), 2):
        two = tuple(views.sampled(larger, item, [*held, *more]) for item in (0, 1))
        check(worst(views, [two]), claimed(larger.guarantee.mechanism, "replace"))


@pytest.mark.parametrize(("colluding", "missing"), [(1, 0), (0, 1), (1, 1), (2, 0), (2, 1)])
def test_users_who_tell_their_coins_or_stay_away_are_not_counted_in_the_floor(
    views: ModuleType, colluding: int, missing: int
) -> None:
    floor, rate = 4, 0.75
    mechanism = td.SamplingAggregation(
        2, 9, rate=rate, floor=floor, max_colluding_users=colluding, max_missing_users=missing
    )
    held = views.others([floor, floor])
    promised = claimed(mechanism.guarantee.mechanism, "replace")
    careless = claimed(CountSampling(rate, floor), "replace")
    pairs = []
    for away in itertools.combinations((0, 1, 4, 5), colluding + missing):
        arguments: dict[str, Any] = {"colluding": away[:colluding], "missing": away[colluding:]}
        pairs.append(tuple(views.sampled(mechanism, item, held, **arguments) for item in (0, 1)))
    found = worst(views, pairs)
    check(found, promised)
    assert exceeds(found, careless)


SOME_DUMMIES: dict[str, dict[str, Any]] = {
    "two aggregators": {"parties": 2, "dummies": 2},
    "one honest of three": {"parties": 3, "dummies": 1},
    "two honest of three": {"parties": 3, "dummies": 1, "honest_aggregators": 2},
    "users": {"parties": "users", "dummies": 2, "max_colluding_users": 1},
    "users on their own": {"parties": "users", "dummies": 2},
    "central": {"central": True, "dummies": 3, "honest_aggregators": 2},
    "colluding users": {"parties": 2, "dummies": 2, "max_colluding_users": 2},
}


@pytest.mark.parametrize("arguments", SOME_DUMMIES.values(), ids=SOME_DUMMIES.keys())
def test_whoever_knows_its_own_dummies_sees_no_more_than_is_promised(
    views: ModuleType, arguments: dict[str, Any]
) -> None:
    rate = 0.625
    mechanism = td.SamplingAggregation(2, 4, rate=rate, **arguments)
    colluding = tuple(range(mechanism.max_colluding_users))
    # Nobody else holds anything: an item of no others is the worst.
    pair = tuple(views.sampled(mechanism, item, [None] * 3, colluding=colluding) for item in (0, 1))
    promised = claimed(mechanism.guarantee.mechanism, "replace")
    check(worst(views, [pair]), promised, attained=True)
    for held in itertools.combinations_with_replacement(range(2), 3):
        pair = tuple(views.sampled(mechanism, item, held, colluding=colluding) for item in (0, 1))
        check(worst(views, [pair]), promised)
    if mechanism._contributors > mechanism.honest_aggregators:
        everyone = CountSampling(rate, mechanism._contributors * mechanism.dummies)
        pair = tuple(views.sampled(mechanism, item, [None] * 3) for item in (0, 1))
        assert exceeds(worst(views, [pair]), claimed(everyone, "replace"))


def test_a_floor_and_dummies_together(views: ModuleType) -> None:
    mechanism = td.SamplingAggregation(
        2, 5, rate=0.75, floor=2, dummies=1, parties=2, max_colluding_users=1
    )
    held = views.others([2, 2])
    promised = claimed(mechanism.guarantee.mechanism, "replace")
    pairs = [
        tuple(views.sampled(mechanism, item, held, colluding=(who,)) for item in (0, 1))
        for who in range(4)
    ]
    check(worst(views, pairs), promised)


# Two stages.


REPORTING: dict[str, dict[str, Any]] = {
    "uniform": {},
    "adaptive": {"gamma": 2.5},
}


@pytest.mark.parametrize("reporting", REPORTING.values(), ids=REPORTING.keys())
@pytest.mark.parametrize(("reported", "dummies"), [(1, 2), (2, 1), (2, 2), (3, 1)])
def test_all_sets_and_counts_with_dummies(
    views: ModuleType, reporting: dict[str, Any], reported: int, dummies: int
) -> None:
    mechanism = td.TwoStageSampling(
        3, 2, reported=reported, rate=0.625, dummies=dummies, **reporting
    )
    # Not even a user on its own knows all dummies.
    assert mechanism._contributors == 2
    # The other one holds what neither neighbour does.
    laws = [views.in_two_stages(mechanism, item, [2]) for item in (0, 1, None)]
    accounting = mechanism.guarantee.mechanism
    found = worst(views, [(laws[0], laws[1])])
    check(found, claimed(accounting, "replace"), attained=True)
    found = worst(views, [(laws[0], laws[2])])
    check(found, claimed(accounting, "add_or_remove"), attained=True)
    for other in (0, 1):
        pair = tuple(views.in_two_stages(mechanism, item, [other]) for item in (0, 1))
        check(worst(views, [pair]), claimed(accounting, "replace"))


@pytest.mark.parametrize("reporting", REPORTING.values(), ids=REPORTING.keys())
@pytest.mark.parametrize(
    ("size", "reported", "floor"), [(2, 1, 2), (2, 1, 3), (2, 2, 2), (3, 1, 1), (3, 2, 1)]
)
def test_all_sets_and_counts_with_a_floor(
    views: ModuleType, reporting: dict[str, Any], size: int, reported: int, floor: int
) -> None:
    mechanism = td.TwoStageSampling(
        size, size * floor + 1, reported=reported, rate=0.625, floor=floor, **reporting
    )
    held = views.others([floor] * size)
    laws = [views.in_two_stages(mechanism, item, held) for item in (0, 1, None)]
    accounting = mechanism.guarantee.mechanism
    # Sets with two items are bounded by the smaller number of reporters of both.
    alone = reported in (1, size)
    check(worst(views, [(laws[0], laws[1])]), claimed(accounting, "replace"), attained=alone)
    promised = claimed(accounting, "add_or_remove")
    check(worst(views, [(laws[0], laws[2])]), promised, attained=True)
    if reported < size and floor > 1:
        # Not what a server sees that is shown no set.
        one_stage = claimed(CountSampling(0.625, floor), "replace")
        assert exceeds(worst(views, [(laws[0], laws[1])]), one_stage)


@pytest.mark.parametrize("reporting", REPORTING.values(), ids=REPORTING.keys())
@pytest.mark.parametrize(("size", "reported"), [(2, 1), (3, 1), (3, 2)])
def test_a_server_that_is_shown_no_set_sees_what_one_stage_shows(
    views: ModuleType, reporting: dict[str, Any], size: int, reported: int
) -> None:
    """Theorem 3.4 of the fair paper: of the counts and of how many report each item."""
    mechanism = td.TwoStageSampling(
        size, size + 1, reported=reported, rate=0.625, floor=1, **reporting
    )
    laws = []
    for item in (0, 1):
        law: dict[Any, Fraction] = defaultdict(Fraction)
        for (sums, sets), mass in views.in_two_stages(mechanism, item, range(size)).items():
            reporters = Counter(one for shown in sets for one in shown)
            law[sums, tuple(reporters[one] for one in range(size))] += mass
        laws.append(law)
    check(worst(views, [(laws[0], laws[1])]), claimed(CountSampling(0.625, 1), "replace"))


@pytest.mark.parametrize("reporting", REPORTING.values(), ids=REPORTING.keys())
@pytest.mark.parametrize(("colluding", "missing"), [(1, 0), (0, 1), (1, 1)])
def test_colluding_and_missing_users_of_two_stages(
    views: ModuleType, reporting: dict[str, Any], colluding: int, missing: int
) -> None:
    floor = 3
    arguments: dict[str, Any] = {"collusion_bound": colluding} if colluding else {}
    mechanism = td.TwoStageSampling(
        2,
        7,
        reported=1,
        rate=0.75,
        floor=floor,
        max_colluding_users=colluding,
        max_missing_users=missing,
        **arguments,
        **reporting,
    )
    held = views.others([floor, floor])
    pairs = []
    for away in itertools.permutations((0, 1, 3), colluding + missing):
        known: dict[str, Any] = {"colluding": away[:colluding], "missing": away[colluding:]}
        pairs.append(tuple(views.in_two_stages(mechanism, item, held, **known) for item in (0, 1)))
    found = worst(views, pairs)
    check(found, claimed(mechanism.guarantee.mechanism, "replace"))
    gamma = 1.0 if mechanism.gamma is None else mechanism.gamma
    careless = TwoStageCountSampling(0.75, 2, 1, gamma, floor)
    assert exceeds(found, claimed(careless, "replace"))


def test_colluding_elected_users_know_their_dummies(views: ModuleType) -> None:
    mechanism = td.TwoStageSampling(
        3, 3, reported=1, rate=0.625, dummies=1, max_colluding_users=1, collusion_bound=1
    )
    assert mechanism._contributors == 2
    pair = tuple(views.in_two_stages(mechanism, item, [2, 2], colluding=(0,)) for item in (0, 1))
    promised = claimed(mechanism.guarantee.mechanism, "replace")
    check(worst(views, [pair]), promised, attained=True)


@pytest.mark.parametrize("reported", [1, 2])
@pytest.mark.parametrize("rate", [0.125, 0.75])
def test_sets_alone_are_locally_private(views: ModuleType, rate: float, reported: int) -> None:
    """The exact eps* of science: the largest ratio of probabilities of a set, by enumeration."""
    mechanism = td.TwoStageSampling(3, 9, reported=reported, gamma=4.0, rate=rate, floor=1)
    laws = []
    for item in (0, 1):
        law: Counter[Any] = Counter()
        for mass, _, shown in views.set_and_coin(
            3, item, views.exact(rate), (reported, Fraction(4))
        ):
            law[shown] += mass
        laws.append(law)
    largest = max(laws[0][one] / laws[1][one] for one in laws[0])
    expected = float(np.log(float(largest)))
    assert mechanism.reporting_epsilon == pytest.approx(expected, rel=1e-12)


# Noise.


REACH = 40
NOISES: dict[str, float] = {"discrete_laplace": 0.8, "skellam": 1.25, "discrete_gaussian": 0.7}


def check_noise(views: ModuleType, mechanism: td.NoisyAggregation, hidden: int) -> None:
    """Compare what so many hidden pieces hide with what is promised, and fewer and more."""
    law = views.piece_law(mechanism, REACH).times(hidden)
    accounting = mechanism.guarantee.mechanism
    for epsilon in (0.2, 0.9, 1.6):
        for adjacency, changed in (("add_or_remove", 1), ("replace", 2)):
            delta = views.noise_divergence(law, epsilon, changed)
            promise = accounting.delta(epsilon, adjacency)
            assert delta <= promise
            assert delta >= promise * (1 - TIGHT) - WINDOW


WHO_IS_AWAY = [(0, 0), (1, 0), (0, 1), (2, 1)]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("colluding", "missing"), WHO_IS_AWAY)
def test_noise_by_users_is_that_of_the_honest_ones_who_are_there(
    views: ModuleType, noise: str, colluding: int, missing: int
) -> None:
    users = 5
    mechanism = td.NoisyAggregation(
        2,
        users,
        noise=noise,
        parameter=NOISES[noise],
        parties=2,
        max_colluding_users=colluding,
        max_missing_users=missing,
    )
    check_noise(views, mechanism, users - colluding - missing)
    # One less does not suffice: the margins are needed, and no larger than needed.
    fewer = views.piece_law(mechanism, REACH).times(users - colluding - missing - 1)
    promise = mechanism.guarantee.mechanism.delta(0.9, "replace")
    assert views.noise_divergence(fewer, 0.9, 2) > promise


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(
    ("parties", "honest", "colluding"), [(3, 1, 0), (3, 2, 0), ("users", 2, 1), ("users", 1, 0)]
)
def test_noise_by_parties_is_that_of_the_honest_ones(
    views: ModuleType, noise: str, parties: int | str, honest: int, colluding: int
) -> None:
    mechanism = td.NoisyAggregation(
        2,
        4,
        noise=noise,
        parameter=NOISES[noise],
        source="parties",
        parties=parties,
        honest_aggregators=honest,
        max_colluding_users=colluding,
    )
    assert mechanism._contributors == (3 if parties == 3 else honest + max(colluding, 1))
    check_noise(views, mechanism, honest)


TARGET: dict[str, Any] = {"epsilon": 1.0, "delta": 0.05}
TARGETED: dict[str, Any] = {
    "sampling": td.SamplingAggregation(2, 5, floor=2, **TARGET),
    "dummies": td.SamplingAggregation(2, 3, dummies=3, max_colluding_users=1, **TARGET),
    "two stages": td.TwoStageSampling(2, 5, reported=1, floor=2, **TARGET),
    "two stages, dummies": td.TwoStageSampling(3, 2, reported=1, gamma=1.5, dummies=2, **TARGET),
}
TARGETED |= {
    noise: td.NoisyAggregation(2, 4, noise=noise, max_colluding_users=2, **TARGET)
    for noise in NOISES
}


@pytest.mark.parametrize("mechanism", TARGETED.values(), ids=TARGETED.keys())
def test_what_was_calibrated_reaches_its_target_and_no_more(
    views: ModuleType, mechanism: Any
) -> None:
    if isinstance(mechanism, td.NoisyAggregation):
        law = views.piece_law(mechanism, REACH).times(2)
        delta = views.noise_divergence(law, 1.0, 2)
    else:
        show = views.sampled if mechanism.name == "sampling" else views.in_two_stages
        held = [0, 0, 1, 1] if mechanism.floor else [None] * (mechanism.users - 1)
        one, other = (show(mechanism, item, held) for item in (0, 1))
        delta = max(views.divergences(*pair, [1.0])[0] for pair in ((one, other), (other, one)))
    assert TARGET["delta"] * (1 - 1e-5) <= delta <= TARGET["delta"]


def test_laplace_pieces_add_up_to_a_discrete_laplace_number(views: ModuleType) -> None:
    ratio = np.exp(-1 / 0.8)
    whole = views.laplace_piece(0.8, 3, REACH).times(3)
    for number in range(-10, 11):
        expected = (1 - ratio) / (1 + ratio) * ratio ** abs(number)
        assert float(whole[number]) == pytest.approx(expected, rel=1e-12)


def test_a_piece_of_skellam_noise_is_not_rounded_down(views: ModuleType) -> None:
    for parameter, users in itertools.product((0.1, 1.3, 26.3, 1e3), (3, 7, 10, 999)):
        mechanism = td.NoisyAggregation(2, users, noise="skellam", parameter=parameter)
        assert views.exact(mechanism.law().mean) * users >= views.exact(parameter)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("source", ["users", "parties"])
def test_parties_draw_pieces_of_the_law_that_is_accounted(
    views: ModuleType, statistical: ModuleType, noise: str, source: str
) -> None:
    mechanism = td.NoisyAggregation(
        2,
        4,
        noise=noise,
        parameter=NOISES[noise],
        source=source,
        honest_aggregators=2,
        max_colluding_users=1,
        max_missing_users=1,
    )
    law = views.piece_law(mechanism, 20)
    drawn = mechanism._contribution(200_000, seed=11)
    observed = np.bincount(np.clip(drawn, -20, 20) + 20, minlength=41)
    probabilities = np.array([float(mass) for mass in law.masses])
    statistical.check_law(observed, probabilities / probabilities.sum())
