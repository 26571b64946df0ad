"""What estimates promise: no bias, exact variances, intervals that cover; who can collude."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from fractions import Fraction
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

import turnout as tn
import turnout.distributed as td
from turnout.distributed import Party, Role
from turnout.distributed.messages import MessageKind
from turnout.distributed.roles.elections import Election
from turnout.distributed.rounds import exchange
from turnout.errors import InvalidTypeError, InvalidValueError

Floats = npt.NDArray[np.float64]

COUNTS = [28, 9, 3, 0]
USERS = 40
TRUTH = np.array(COUNTS) / USERS
LEVEL = 0.9

SAMPLING: dict[str, dict[str, Any]] = {
    "floor": {"rate": 0.6, "floor": 1},
    "dummies": {"rate": 0.3, "dummies": 8},
    "users": {"rate": 0.6, "dummies": 4, "parties": "users", "max_colluding_users": 2},
    "users, nobody colludes": {"rate": 0.6, "dummies": 4, "parties": "users"},
    "central": {"rate": 0.6, "dummies": 4, "central": True},
}
NOISY: dict[str, dict[str, Any]] = {
    f"{noise} by {source}, {margin} may miss": {
        "noise": noise,
        "parameter": parameter,
        "source": source,
        "max_missing_users": margin,
    }
    for noise, source, parameter in (
        ("discrete_laplace", "users", 1.7),
        ("discrete_laplace", "parties", 1.7),
        ("skellam", "users", 6.0),
        ("skellam", "parties", 6.0),
        ("discrete_gaussian", "users", 9.0 / USERS),
        ("discrete_gaussian", "parties", 9.0),
    )
    for margin in (0, 7)
}
NOISY["discrete_laplace by elected users"] = {
    "parameter": 1.7, "source": "parties", "parties": "users", "honest_aggregators": 2,
}  # fmt: skip
TWO_STAGE: dict[str, dict[str, Any]] = {
    "uniform": {"reported": 2, "rate": 0.8, "floor": 1},
    "uniform, dummies": {"reported": 3, "rate": 0.5, "dummies": 6},
    "adaptive": {"reported": 2, "rate": 0.8, "floor": 1, "gamma": 4.0},
    "adaptive, elected": {
        "reported": 1, "rate": 0.7, "dummies": 5, "gamma": 2.5,
        "elected": 4, "honest_aggregators": 2,
    },
}  # fmt: skip
CASES: list[tuple[Any, dict[str, Any]]] = [
    *((td.SamplingAggregation, case) for case in SAMPLING.values()),
    *((td.NoisyAggregation, case) for case in NOISY.values()),
    *((td.TwoStageSampling, case) for case in TWO_STAGE.values()),
]
NAMES = [*SAMPLING, *NOISY, *TWO_STAGE]
#: The case whose law is tested every day.
EVERYDAY = "skellam by users, 0 may miss"


def binomial(trials: int, probability: float) -> Floats:
    return stats.binom.pmf(np.arange(trials + 1), trials, probability)


def own_probability(size: int, reported: int, gamma: float) -> Fraction:
    """Add up the weights of the sets that hold the own item, set by set."""
    weight = Fraction(gamma)
    sets = list(itertools.combinations(range(size), reported))
    held = sum(weight for chosen in sets if 0 in chosen)
    return held / (held + sum(1 for chosen in sets if 0 not in chosen))


def piece_law(mechanism: td.NoisyAggregation) -> tuple[Floats, int]:
    """The law of one piece on -reach..reach."""
    parameter, parts = mechanism.parameter, mechanism._required_pieces
    reach = 200
    grid = np.arange(-reach, reach + 1)
    if mechanism.noise == "discrete_laplace":
        masses = stats.nbinom.pmf(np.arange(reach + 1), 1 / parts, 1 - math.exp(-1 / parameter))
        return np.convolve(masses, masses[::-1]), reach
    if mechanism.noise == "skellam":
        return stats.skellam.pmf(grid, parameter / parts, parameter / parts), reach
    weights = np.exp(-(grid**2) / (2 * parameter))
    return weights / weights.sum(), reach


def total_noise(mechanism: td.NoisyAggregation) -> Floats:
    """Convolve the pieces of all that add one, and cut to -200..200."""
    law, reach = piece_law(mechanism)
    number = USERS if mechanism.source == "users" else mechanism._contributors
    total = np.ones(1)
    for _ in range(number):
        total = np.convolve(total, law)
        middle = len(total) // 2
        total = total[max(middle - reach, 0) : middle + reach + 1]
    return total


def moments(mechanism: td.AggregationMechanism, count: int) -> tuple[float, float]:
    """The mean and variance of the published sum of an item, from its law by convolution."""
    if isinstance(mechanism, td.NoisyAggregation):
        law = total_noise(mechanism)
        grid = np.arange(len(law)) - len(law) // 2 + count
    else:
        rate = own = mechanism.rate
        if isinstance(mechanism, td.TwoStageSampling):
            gamma = 1.0 if mechanism.gamma is None else mechanism.gamma
            own = rate * float(own_probability(4, mechanism.reported, gamma))
        dummies = mechanism._contributors * mechanism.dummies
        law = np.convolve(binomial(count, own), binomial(dummies, rate))
        grid = np.arange(len(law))
    assert law.sum() == pytest.approx(1, abs=1e-12)
    mean = float(law @ grid)
    return mean, float(law @ (grid - mean) ** 2)


@pytest.mark.parametrize(("make", "arguments"), CASES, ids=NAMES)
def test_variances_are_those_of_the_law_by_convolution(
    make: Any, arguments: dict[str, Any]
) -> None:
    mechanism = make(4, USERS, **arguments)
    found = mechanism.variances(TRUTH)
    means, variances = np.transpose([moments(mechanism, count) for count in COUNTS])
    # The estimate is linear in the sums: its slope is that between two sums.
    first, second = (mechanism._estimate_sums(np.full(4, s), USERS).frequencies[0] for s in (0, 1))
    slope = second - first
    assert found == pytest.approx(variances * slope**2, rel=1e-9)
    assert slope * (means - means[-1]) == pytest.approx(TRUTH, rel=1e-9)
    assert mechanism.expected_error(TRUTH) == pytest.approx(math.sqrt(found.mean()), rel=1e-12)
    assert mechanism.expected_error() == pytest.approx(mechanism.expected_error(TRUTH), rel=1e-9)


def simulate(mechanism: td.AggregationMechanism, repeats: int) -> tuple[Floats, Floats]:
    """Give estimates, and whether their intervals cover, of many rounds."""
    values = np.repeat(np.arange(4), COUNTS)
    estimates = [mechanism.run(values, seed=seed).estimate for seed in range(repeats)]
    covered = [estimate.interval(LEVEL).contains(TRUTH) for estimate in estimates]
    return np.array([estimate.frequencies for estimate in estimates]), np.array(covered)


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.everyday] * (name == EVERYDAY))
        for case, name in zip(CASES, NAMES, strict=True)
    ],
)
def test_estimates_have_no_bias_their_variance_and_intervals_that_cover(
    make: Any, arguments: dict[str, Any], statistical: ModuleType
) -> None:
    mechanism = make(4, USERS, **arguments)
    frequencies, covered = simulate(mechanism, 1200)
    statistical.check_mean(frequencies, TRUTH)
    statistical.check_variance(frequencies, mechanism.variances(TRUTH))
    # Score intervals are those of the normal law: exact ones where a count is small.
    low = LEVEL if make is td.NoisyAggregation else LEVEL - 0.03
    statistical.check_share(covered.sum(axis=0), len(covered), low, 1.0)


@pytest.mark.parametrize("name", ["uniform", "adaptive"])
def test_two_stages_with_all_messages_have_the_law_of_the_study(
    name: str, statistical: ModuleType
) -> None:
    counts = [5, 2, 1]
    arguments = TWO_STAGE[name]
    mechanism = td.TwoStageSampling(3, 8, **arguments)
    values = np.repeat(np.arange(3), counts).tolist()
    results = [exchange(td.Round.start(mechanism), values) for _ in range(200)]
    own = float(own_probability(3, 2, arguments.get("gamma", 1.0)))
    q = arguments["rate"] * own
    truth = np.array(counts) / 8
    assert mechanism.variances(truth) == pytest.approx(truth * (1 - q) / (8 * q))
    for item, count in enumerate(counts):
        seen = np.bincount([result.sums[item] for result in results], minlength=count + 1)
        statistical.check_law(seen, binomial(count, q))
    for result in results[:20]:
        assert result.estimate.frequencies == pytest.approx(result.sums / (8 * q))


@pytest.mark.parametrize(("users", "size", "reported"), [(1000, 30, 12), (50, 4, 1)])
@pytest.mark.parametrize("gamma", [None, 1.5, 8.0])
def test_the_trace_of_two_stage_sampling_is_that_of_theorem_3_5(
    users: int, size: int, reported: int, gamma: float | None
) -> None:
    mechanism = td.TwoStageSampling(size, users, reported=reported, rate=0.4, floor=5, gamma=gamma)
    alpha, weight = Fraction(reported, size), Fraction(1 if gamma is None else gamma)
    own = alpha * weight / (alpha * weight + 1 - alpha)
    assert mechanism.own_probability == pytest.approx(float(own), rel=1e-12)
    q = Fraction(0.4) * own
    shape = np.random.default_rng(1).dirichlet(np.ones(size))
    assert mechanism.variances(shape).sum() == pytest.approx(float((1 - q) / (users * q)))
    each = [f * float((1 - q) / (users * q)) for f in shape]
    assert mechanism.variances(shape) == pytest.approx(each)
    # Exact eps* (science.md B7), below the paper's log gamma.
    spread = alpha * weight + 1 - alpha
    rate = Fraction(0.4)
    exact = math.log((rate * weight + (1 - rate) * spread) / (rate + (1 - rate) * spread))
    assert mechanism.reporting_epsilon == pytest.approx(exact, abs=1e-12)
    assert exact - 1e-15 <= mechanism.reporting_epsilon <= math.log(weight) + 1e-15


def test_errors_at_equal_privacy_are_those_of_the_notes() -> None:
    target = {"epsilon": 1.0, "delta": 1e-5}
    uniform = np.full(30, 1 / 30)

    def trace(mechanism: td.AggregationMechanism) -> float:
        return float(mechanism.variances(uniform).sum())

    assert trace(td.SamplingAggregation(30, 1000, floor=33, **target)) == pytest.approx(
        1.13e-3, abs=7e-6
    )
    # Of one noise variable on each count; two honest aggregators add half of it each.
    printed = {
        ("discrete_laplace", "users"): (2.4e-4, 7.84),
        ("skellam", "users"): (7.9e-4, 26.3),
        ("skellam", "parties"): (7.9e-4, 26.3),
        ("discrete_gaussian", "parties"): (8.4e-4, 27.8),
        ("discrete_laplace", "parties"): (2.4e-4, 7.84),
    }
    for (noise, source), (error, single) in printed.items():
        mechanism = td.NoisyAggregation(
            30, 1000, noise=noise, source=source, parties=2, honest_aggregators=2, **target
        )
        assert trace(mechanism) == pytest.approx(error, abs=7e-6)
        assert mechanism.law().variance == pytest.approx(single, abs=0.06)
    # Pieces of a thousandth are nearly always -1, 0 or 1: close to Skellam noise.
    small = td.NoisyAggregation(30, 1000, noise="discrete_gaussian", **target)
    assert 26.25 <= small.law().variance <= 27.85


def intervals(estimate: tn.FrequencyEstimate) -> list[list[float]]:
    found = [estimate.interval(level) for level in (0.5, 0.95, 0.999)]
    found += [estimate.interval(0.95, simultaneous="sidak")]
    return [limits.tolist() for one in found for limits in (one.low, one.high)]


@pytest.mark.parametrize(("make", "arguments"), CASES, ids=NAMES)
def test_estimates_can_be_pickled_and_copied(make: Any, arguments: dict[str, Any]) -> None:
    estimate = make(4, USERS, **arguments).run(np.repeat(np.arange(4), COUNTS), seed=1).estimate
    for again in (pickle.loads(pickle.dumps(estimate)), copy.deepcopy(estimate)):
        assert intervals(again) == intervals(estimate)
        assert again.plan == estimate.plan
        assert again.standard_errors.tolist() == estimate.standard_errors.tolist()


@pytest.mark.parametrize(("make", "arguments"), CASES, ids=NAMES)
def test_sums_that_cannot_be_are_refused_or_have_limits(
    make: Any, arguments: dict[str, Any]
) -> None:
    """A malicious user can make any sum."""
    mechanism = make(4, USERS, **arguments)
    for sums in ([1, 2, 3], [1, 2, 3, 4, 5], [1, 2, 3, 4.5], [1, 2, 3, math.nan], 7, [[1] * 4]):
        with pytest.raises((InvalidValueError, InvalidTypeError), match="sums"):
            mechanism.estimate(sums)
    for received in (0, USERS + 1, 1.5):
        with pytest.raises((InvalidValueError, InvalidTypeError), match="received"):
            mechanism.estimate([1, 2, 3, 4], received)
    largest = mechanism.field.modulus - 1
    for wrong in (-1, -USERS, USERS + 500, largest):
        for received in (USERS, 33):
            try:
                estimate = mechanism.estimate([5, wrong, 3, 4], received)
            except InvalidValueError as error:
                assert "sums" in str(error)  # noqa: PT017
            else:
                assert np.isfinite(intervals(estimate)).all()


# Committees.


def fixed_sets(harness: ModuleType, round_: td.Round, reporters: int) -> Any:
    """Let the first users report item 0, and all others item 1; give the committees."""
    first = round_.reporting_server()
    for user in range(round_.mechanism.users):
        payload = b"\x01" if user < reporters else b"\x02"
        party = Party(Role.USER, user)
        first.receive(harness.forged(round_, MessageKind.SET, party, first.party, payload))
    payload = first.close()[-1].payload
    return Election.unpack(payload, round_.mechanism.users, 2, None).elected


def test_committees_that_could_collude_or_that_cannot_be_are_refused() -> None:
    target = {"rate": 0.5, "epsilon": 1.0, "delta": 0.009}
    make = partial(td.TwoStageSampling, domain=4, users=100, reported=2, floor=20, **target)
    make()
    for arguments, match in (
        ({"max_colluding_users": 3, "collusion_bound": 2}, "collusion_bound must be at least"),
        ({"max_colluding_users": 3, "elected": 3}, "elected above it"),
        ({"collusion_bound": 2, "elected": 4}, "must not both"),
        ({"max_colluding_users": 2}, "all 2 users elected for an item might collude"),
        ({"dummies": 5, "elected": 2, "honest_aggregators": 2}, "elected must be at least 3"),
        (
            {"dummies": 5, "elected": 3, "max_colluding_users": 2, "honest_aggregators": 2},
            "elected must be at least 4",
        ),
        ({"dummies": 5, "users": 80, "honest_aggregators": 80}, "users must be at least 81"),
        ({"elected": 100, "max_missing_users": 1}, "users must be at least 101"),
        ({"gamma": 1.0}, "gamma must be a finite number above 1"),
        ({"gamma": math.inf}, "gamma must be a finite number above 1"),
    ):
        with pytest.raises(InvalidValueError, match=match):
            make(**arguments)
    for arguments, least in (
        ({}, 2),
        ({"collusion_bound": 0}, 2),
        ({"collusion_bound": 99}, 100),
        ({"elected": 2}, 2),
        ({"elected": 100}, 100),
        ({"max_colluding_users": 1}, 2),
        ({"dummies": 5}, 2),
        ({"max_colluding_users": 3, "collusion_bound": 3}, 4),
        ({"max_colluding_users": 3, "elected": 4}, 4),
        ({"dummies": 5, "honest_aggregators": 2}, 3),
        ({"dummies": 5, "honest_aggregators": 2, "elected": 3}, 3),
        ({"dummies": 5, "max_colluding_users": 3, "collusion_bound": 7}, 8),
    ):
        assert make(**arguments)._least_elected == least


@pytest.mark.parametrize(
    ("colluding", "reporters"), [(3, 2), (4, 1), (1, 1), (4, 0), (2, 3), (8, 5)]
)
def test_collusion_is_as_likely_as_computed(
    colluding: int, reporters: int, harness: ModuleType, statistical: ModuleType
) -> None:
    mechanism = td.TwoStageSampling(2, 8, reported=1, rate=0.5, floor=2)
    found = mechanism.collusion_probability(colluding, reporters)
    committees = list(itertools.combinations(range(8), max(reporters, 2)))
    exact = sum(max(who) < colluding for who in committees) / len(committees)
    assert found == pytest.approx(exact, rel=1e-12)
    seen = sum(
        bool((fixed_sets(harness, td.Round.start(mechanism), reporters)[0] < colluding).all())
        for _ in range(500)
    )
    statistical.check_share(seen, 500, exact, exact)


@pytest.mark.parametrize("phi", [0, 1, 3])
def test_a_collusion_bound_makes_collusion_impossible(phi: int, harness: ModuleType) -> None:
    mechanism = td.TwoStageSampling(2, 8, reported=1, rate=0.5, floor=2, collusion_bound=phi)
    for reporters in range(9):
        assert mechanism.collusion_probability(phi, reporters) == 0.0
        assert mechanism._committee_size(reporters) == max(reporters, phi + 1, 2)
    fewest = max(phi + 1, 2)
    for reporters in (0, 1):
        found = mechanism.collusion_probability(fewest, reporters)
        assert found == pytest.approx(1 / math.comb(8, fewest))
        for _ in range(200):
            elected = fixed_sets(harness, td.Round.start(mechanism), reporters)[0]
            assert len(set(elected.tolist())) == fewest
            assert (elected >= phi).any()


def test_two_are_elected_also_for_what_one_or_nobody_reports() -> None:
    mechanism = td.TwoStageSampling(2, 8, reported=1, rate=0.5, floor=2)
    assert [mechanism._committee_size(count) for count in range(9)] == [2, 2, 2, 3, 4, 5, 6, 7, 8]
    for reporters in (0, 1):
        assert mechanism.collusion_probability(8, reporters) == 1.0
        # Nobody alone is all that are elected.
        assert mechanism.collusion_probability(1, reporters) == 0.0
    assert mechanism.collusion_probability(0, 3) == 0.0
    fixed = td.TwoStageSampling(2, 8, reported=1, rate=0.5, floor=2, elected=3)
    assert fixed._committee_size(0) == fixed._committee_size(8) == 3
    for wrong in ((9, 1), (-1, 1), (1, 9), (1, -1)):
        with pytest.raises(ValueError, match="must be an integer from 0 to 8"):
            mechanism.collusion_probability(*wrong)


# Whose dummies and noise stay hidden.

# How many users collude, how many that add are honest, and how many have to add.
TRUST = [(0, 1, 2), (1, 1, 2), (3, 1, 4), (0, 2, 3), (1, 2, 3), (3, 2, 5)]
ALWAYS = 1 - 1e-12
WHOLE_SETS: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "sampling": (
        td.SamplingAggregation,
        {"rate": ALWAYS, "dummies": 5, "parties": "users"},
        lambda honest: tn.accounting.CountSampling(ALWAYS, 5 * honest),
    ),
    "noise": (
        td.NoisyAggregation,
        {"noise": "discrete_gaussian", "parameter": 2.0, "source": "parties", "parties": "users"},
        lambda honest: tn.accounting.SummedDiscreteGaussianNoise(2.0, honest),
    ),
    "two-stage": (
        td.TwoStageSampling,
        {"rate": ALWAYS, "dummies": 5, "reported": 1, "collusion_bound": 3},
        lambda honest: tn.accounting.TwoStageCountSampling(ALWAYS, 3, 1, 1.0, 0, 5 * honest),
    ),
}


@pytest.mark.parametrize("trust", TRUST)
@pytest.mark.parametrize("name", WHOLE_SETS)
def test_enough_of_what_users_add_is_hidden_from_those_that_know_their_own(
    name: str, trust: tuple[int, int, int], harness: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    colluding, honest, adding = trust
    make, arguments, accounting = WHOLE_SETS[name]
    mechanism = make(3, 7, max_colluding_users=colluding, honest_aggregators=honest, **arguments)
    assert mechanism._contributors == adding
    network = harness.Network(td.Round.start(mechanism))
    acting: list[int] = []
    for party, role in network.roles.items():
        for step in {"receive", "close"} & set(dir(role)):
            act = getattr(role, step)
            monkeypatch.setattr(
                role, step, lambda *a, i=party.index, act=act: (acting.append(i), act(*a))[1]
            )
    drawn: dict[int, Any] = {}
    contribute = make._contribution

    def contribution(self: Any, items: Any = None, seed: Any = None) -> Any:
        found = contribute(self, items, seed)
        if len(found):
            assert acting[-1] not in drawn
            drawn[acting[-1]] = found
        return found

    monkeypatch.setattr(make, "_contribution", contribution)
    values = np.array([0, 1, 1, 2, 2, 2, 2])
    network.report(values.tolist())
    network.deliver()
    elected = [np.arange(7)] * 3
    if name == "two-stage":
        values = values[[value in network.user(i)._set for i, value in enumerate(values)]]
        elections = network.roles[Party(Role.REPORTING_SERVER)].close()
        elected = Election.unpack(elections[-1].payload, 7, 3, None).elected
        network.deliver(elections)
    else:
        network.close()
    monkeypatch.undo()
    # What each user added, and so knows, of each item; and whether it did.
    known, adds = np.zeros((7, 3), np.int64), np.zeros((7, 3), np.int64)
    for user, vector in drawn.items():
        items = [item for item in range(3) if user in elected[item][:adding]]
        known[user, items], adds[user, items] = vector, 1
    added = network.server.sums - np.bincount(values, minlength=3)
    assert added.tolist() == known.sum(axis=0).tolist()
    # Whoever knows its own dummies or noise, alone or colluding, misses those of so many.
    groups = itertools.combinations(range(7), max(colluding, 1))
    hidden = np.array([adds.sum(axis=0) - adds[list(group)].sum(axis=0) for group in groups])
    assert hidden.min(axis=0).tolist() == [honest] * 3
    assert mechanism.accounting == accounting(honest)
    costs = mechanism.run([0, 1, 1, 2, 2, 2, 2], seed=1).costs.totals["user"]
    assert (costs.coins, costs.noise) == (
        (0, 3 * adding) if name == "noise" else (7 + 15 * adding, 0)
    )
