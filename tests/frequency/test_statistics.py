"""Random results of the whole library against exact formulas, at one named error rate.

The harness of ``tests/statistical.py`` shares ``ALPHA`` among all numbers that a check compares;
the numbers of repeats come from the smallest error that a test must see.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pytest

import turnout as tn

Floats = npt.NDArray[np.float64]

UNBIASED = ("g", "c_hat", "T", "horvitz_thompson", "hajek")
METHODS = ("c", *UNBIASED)

COUNTS = [300, 180, 108, 12]
NODES = sum(COUNTS)
VALUES = np.repeat(np.arange(4, dtype=np.uint8), COUNTS)
TRUTH = np.array(COUNTS) / NODES
RATE = 0.35
ORACLE = tn.DirectEncoding(1.5, 4)
REPEATS = 20_000

PATHS: dict[str, Callable[[int], tn.Tally]] = {
    "collect": lambda seed: ORACLE.collect(VALUES, participation=tn.Bernoulli(RATE), seed=seed),
    "simulate": lambda seed: ORACLE.simulate(COUNTS, participation=tn.Bernoulli(RATE), seed=seed),
}


@dataclass(frozen=True)
class Runs:
    """Repeated collections: the counts, and the estimated counts by method."""

    support: Floats
    received: Floats
    counts: dict[str, Floats]


def run(tallies: Sequence[tn.Tally], methods: Sequence[str]) -> Runs:
    return Runs(
        np.array([tally.support for tally in tallies], dtype=np.float64),
        np.array([tally.received for tally in tallies], dtype=np.float64),
        {
            method: np.array([tally.estimate(method).counts for tally in tallies])
            for method in methods
        },
    )


@pytest.fixture(scope="module")
def runs() -> dict[str, Runs]:
    return {
        path: run([make(seed) for seed in range(REPEATS)], METHODS) for path, make in PATHS.items()
    }


@pytest.fixture(params=tuple(PATHS))
def runs_of_a_path(request: pytest.FixtureRequest, runs: dict[str, Runs]) -> Runs:
    return runs[request.param]


def variance(method: str) -> Floats:
    return tn.estimator_variance(ORACLE, tn.Bernoulli(RATE), method=method, true_counts=COUNTS)


@pytest.mark.parametrize("method", UNBIASED)
def test_the_mean_estimate_is_the_true_count(
    method: str, runs_of_a_path: Runs, statistical: ModuleType
) -> None:
    statistical.check_mean(runs_of_a_path.counts[method], COUNTS)


@pytest.mark.parametrize("method", METHODS)
def test_the_variance_of_the_estimates_is_the_exact_formula(
    method: str, runs_of_a_path: Runs, statistical: ModuleType
) -> None:
    statistical.check_variance(runs_of_a_path.counts[method], variance(method))


def test_c_is_biased_by_just_its_formula_when_participation_is_below_one(
    runs_of_a_path: Runs, statistical: ModuleType
) -> None:
    p, q = ORACLE.support_probabilities
    expected = RATE * np.array(COUNTS) - NODES * q * (1 - RATE) / (p - q)
    statistical.check_mean(runs_of_a_path.counts["c"], expected)
    bias = np.abs(expected - COUNTS)
    for shift, spread in zip(bias, np.sqrt(variance("c")), strict=True):
        assert statistical.repeats_to_detect(shift, spread, len(COUNTS)) < 100
    with pytest.raises(AssertionError, match="mean"):
        statistical.check_mean(runs_of_a_path.counts["c"], COUNTS)


def test_c_hat_has_the_smaller_variance_of_the_same_tallies_the_reverse_of_theorem_3_5(
    runs_of_a_path: Runs, statistical: ModuleType
) -> None:
    g, c_hat = ((runs_of_a_path.counts[method] - COUNTS) ** 2 for method in ("g", "c_hat"))
    statistical.check_mean(g - c_hat, variance("g") - variance("c_hat"))
    with pytest.raises(AssertionError, match="mean"):
        statistical.check_mean(g - c_hat, 0.0)
    assert (c_hat.mean(axis=0) < g.mean(axis=0)).all()


def test_support_and_reports_have_the_covariances_of_independent_nodes(
    runs_of_a_path: Runs, statistical: ModuleType
) -> None:
    """Cov(C_i, C_j) = -sum of pi^2 r_i r_j for i != j, and Cov(C_i, S) = sum of pi (1 - pi) r_i."""
    p, q = ORACLE.support_probabilities
    size = len(COUNTS)
    given = q + (p - q) * np.eye(size)
    covariance = -(RATE**2) * np.einsum("v,vi,vj->ij", COUNTS, given, given)
    covariance += RATE * np.diag(COUNTS @ given)
    full = np.zeros((size + 1, size + 1))
    full[:size, :size] = covariance
    full[size, :size] = full[:size, size] = RATE * (1 - RATE) * (COUNTS @ given)
    full[size, size] = NODES * RATE * (1 - RATE)
    samples = np.column_stack([runs_of_a_path.support, runs_of_a_path.received])
    statistical.check_covariance(samples, full)


@pytest.mark.parametrize("answer", range(4))
def test_both_paths_count_by_one_law(
    answer: int, runs: dict[str, Runs], statistical: ModuleType
) -> None:
    one, other = (runs[path].support[:, answer] for path in PATHS)
    statistical.check_same_law(one, other)
    with pytest.raises(AssertionError, match="chi-square"):
        statistical.check_same_law(one, other + 1)


def exact_law(
    oracle: tn.DirectEncoding, values: Sequence[int], rates: Sequence[float]
) -> dict[tuple[int, ...], float]:
    """The joint law of all support counts, one node after the other."""
    p, q = oracle.support_probabilities
    size = oracle.domain.size
    law = {(0,) * size: 1.0}
    for value, rate in zip(values, rates, strict=True):
        after: dict[tuple[int, ...], float] = {}
        for counts, mass in law.items():
            after[counts] = after.get(counts, 0.0) + mass * (1 - rate)
            for code in range(size):
                more = tuple(count + (code == at) for at, count in enumerate(counts))
                chance = mass * rate * (p if code == value else q)
                after[more] = after.get(more, 0.0) + chance
        law = after
    return law


def check_joint_law(
    statistical: ModuleType, tallies: Sequence[tn.Tally], law: dict[tuple[int, ...], float]
) -> None:
    cells = {counts: position for position, counts in enumerate(law)}
    observed = np.zeros(len(cells))
    for tally in tallies:
        observed[cells[tuple(tally.support.tolist())]] += 1
    statistical.check_law(observed, list(law.values()))


TINY = [0, 0, 1, 2]


@pytest.mark.parametrize("rate", [0.25, 0.6, 1.0])
@pytest.mark.parametrize("path", ["randomize", "collect", "simulate"])
def test_the_joint_law_of_a_tiny_collection_is_the_exact_one(
    path: str, rate: float, statistical: ModuleType
) -> None:
    oracle, participation = tn.DirectEncoding(1.0, 3), tn.Bernoulli(rate)
    make: dict[str, Callable[[int], tn.Tally]] = {
        "randomize": lambda seed: oracle.tally(
            oracle.randomize(TINY, participation=participation, seed=seed)
        ),
        "collect": lambda seed: oracle.collect(TINY, participation=participation, seed=seed),
        "simulate": lambda seed: oracle.simulate([2, 1, 1], participation=participation, seed=seed),
    }
    tallies = [make[path](seed) for seed in range(REPEATS // 2)]
    check_joint_law(statistical, tallies, exact_law(oracle, TINY, [rate] * 4))
    with pytest.raises(AssertionError, match=r"chi-square|cannot happen"):
        check_joint_law(statistical, tallies, exact_law(oracle, [0, 1, 1, 2], [rate] * 4))


def test_the_joint_law_of_a_tiny_personal_collection_is_the_exact_one(
    statistical: ModuleType,
) -> None:
    oracle, rates = tn.DirectEncoding(1.0, 3), [0.2, 0.9, 0.5, 1.0]
    tallies = [
        oracle.collect(TINY, participation=tn.Personalized(rates), seed=seed)
        for seed in range(REPEATS // 2)
    ]
    check_joint_law(statistical, tallies, exact_law(oracle, TINY, rates))
    with pytest.raises(AssertionError, match=r"chi-square|cannot happen"):
        check_joint_law(statistical, tallies, exact_law(oracle, TINY, rates[::-1]))


CORRELATED = tn.Personalized(np.choose(VALUES, [0.2, 0.5, 0.9, 0.6]))


@pytest.fixture(scope="module")
def correlated_runs() -> Runs:
    """Nodes whose participation depends on what they hold."""
    return run(
        [
            ORACLE.collect(VALUES, participation=CORRELATED, seed=seed)
            for seed in range(REPEATS // 2)
        ],
        ("c", "T", "horvitz_thompson", "hajek"),
    )


def personal_variance(method: str) -> Floats:
    return tn.estimator_variance(ORACLE, CORRELATED, method=method, values=VALUES)


def test_participation_that_depends_on_the_value_does_not_bias_horvitz_thompson_or_hajek(
    correlated_runs: Runs, statistical: ModuleType
) -> None:
    statistical.check_mean(correlated_runs.counts["horvitz_thompson"], COUNTS)
    # The bias of a ratio is of the order of one node, however many there are.
    statistical.check_mean(correlated_runs.counts["hajek"], COUNTS, slack=1.0)


def test_participation_that_depends_on_the_value_biases_estimator_t_to_the_weighted_frequency(
    correlated_runs: Runs, statistical: ModuleType
) -> None:
    weighted = np.bincount(VALUES, weights=CORRELATED.probabilities)
    expected = NODES * weighted / weighted.sum()
    statistical.check_mean(correlated_runs.counts["T"], expected)
    with pytest.raises(AssertionError, match="mean"):
        statistical.check_mean(correlated_runs.counts["T"], COUNTS)


@pytest.mark.parametrize(
    ("method", "slack"), [("c", 0.0), ("T", 0.0), ("horvitz_thompson", 0.0), ("hajek", 0.03)]
)
def test_the_variance_with_personal_probabilities_is_its_formula_for_hajek_to_first_order(
    method: str, slack: float, correlated_runs: Runs, statistical: ModuleType
) -> None:
    statistical.check_variance(
        correlated_runs.counts[method], personal_variance(method), slack=slack
    )


def covered(
    oracle: tn.DirectEncoding,
    counts: Sequence[int],
    rate: float,
    repeats: int,
    *,
    estimator: str = "hajek",
    kind: str = "score",
    simultaneous: str | None = None,
) -> npt.NDArray[np.bool_]:
    """Whether the 95 % interval of each answer covers, for each repeat."""
    truth = np.array(counts) / sum(counts)
    tallies = (
        oracle.simulate(counts, participation=tn.Bernoulli(rate), seed=seed)
        for seed in range(repeats)
    )
    return np.array(
        [
            tally.estimate(estimator)
            .interval(0.95, method=kind, simultaneous=simultaneous)
            .contains(truth)
            for tally in tallies
        ]
    )


@pytest.mark.parametrize("estimator", UNBIASED)
@pytest.mark.parametrize("kind", ["normal", "score"])
def test_95_percent_intervals_cover_with_95_percent_for_common_and_rare_answers(
    estimator: str, kind: str, statistical: ModuleType
) -> None:
    """About 1,000 reports, of which some 85 support a rare answer by chance alone."""
    counts = [5000, 3000, 1000, 500, 400, 60, 30, 9, 1, 0]
    hits = covered(tn.DirectEncoding(1.0, 10), counts, 0.1, 5000, estimator=estimator, kind=kind)
    width = {"normal": 0.01, "score": 0.005}[kind]
    statistical.check_share(hits.sum(axis=0), len(hits), 0.95 - width, 0.95 + width)


@pytest.mark.parametrize(
    ("epsilon", "counts", "normal", "score"),
    [
        (1.0, [995, 5] + [0] * 8, (0.965, 0.98), (0.945, 0.957)),
        (5.0, [980, 20] + [0] * 8, (0.91, 0.925), (0.955, 0.97)),
        (5.0, [9800, 200] + [0] * 998, (0.85, 0.865), (0.955, 0.97)),
    ],
)
def test_score_intervals_cover_a_rare_answer_better_than_normal_ones(
    epsilon: float,
    counts: list[int],
    normal: tuple[float, float],
    score: tuple[float, float],
    statistical: ModuleType,
) -> None:
    """The bands enclose coverages that were computed with 200,000 repeats outside the library."""
    oracle, repeats = tn.DirectEncoding(epsilon, len(counts)), 5000
    shares = []
    for kind, band in (("normal", normal), ("score", score)):
        hits = covered(oracle, counts, 0.1, repeats, kind=kind)[:, 1]
        statistical.check_share(hits.sum(), repeats, *band)
        shares.append(abs(hits.mean() - 0.95))
    assert shares[1] < shares[0]


@pytest.mark.parametrize("kind", ["normal", "score"])
@pytest.mark.parametrize("simultaneous", ["bonferroni", "sidak"])
def test_simultaneous_intervals_cover_all_answers_at_once_at_least_at_their_level(
    kind: str, simultaneous: str, statistical: ModuleType
) -> None:
    counts = [200_000, 100_000, 50_000, 30_000, 10_000, 5_000, 3_000, 1_000, 1_000, 0]
    hits = covered(
        tn.DirectEncoding(1.0, 10), counts, 0.1, 5000, kind=kind, simultaneous=simultaneous
    )
    statistical.check_share(hits.all(axis=1).sum(), len(hits), 0.95, 1.0)
    # Without the correction the same collections are not covered at once.
    single = covered(tn.DirectEncoding(1.0, 10), counts, 0.1, 2000, kind=kind)
    with pytest.raises(AssertionError, match="shares"):
        statistical.check_share(single.all(axis=1).sum(), len(single), 0.95, 1.0)


@pytest.mark.parametrize(("epsilon", "size", "held"), [(7.0, 50, 2), (5.0, 1000, 2), (9.0, 20, 2)])
def test_default_simultaneous_intervals_cover_many_answers_that_nobody_holds(
    epsilon: float, size: int, held: int, statistical: ModuleType
) -> None:
    counts = [10_000 // held] * held + [0] * (size - held)
    truth = np.array(counts) / sum(counts)
    oracle, repeats = tn.DirectEncoding(epsilon, size), 1000
    hits = 0
    for seed in range(repeats):
        tally = oracle.simulate(counts, participation=tn.Bernoulli(0.1), seed=seed)
        hits += bool(tally.estimate().interval(simultaneous="sidak").contains(truth).all())
    statistical.check_share(hits, repeats, 0.95, 1.0)


def personal_coverage(
    estimator: str,
    oracle: tn.DirectEncoding,
    counts: Sequence[int],
    probabilities: Floats,
    repeats: int,
) -> npt.NDArray[np.int64]:
    """How often the 95 % intervals cover, when the answers are assigned to nodes at random."""
    generator = np.random.default_rng(1)
    values = np.repeat(np.arange(len(counts)), counts)
    truth = np.array(counts) / values.size
    participation = tn.Personalized(probabilities)
    hits = np.zeros(len(counts), dtype=np.int64)
    for seed in range(repeats):
        shuffled = generator.permutation(values)
        tally = oracle.collect(shuffled, participation=participation, seed=seed)
        if tally.received or estimator != "hajek":
            hits += tally.estimate(estimator).interval(0.95).contains(truth)
    return hits


def uneven(nodes: int) -> Floats:
    return np.where(np.arange(nodes) % 2 == 0, 0.1, 1.0)


@pytest.mark.parametrize("estimator", ["horvitz_thompson", "hajek"])
def test_intervals_cover_with_uneven_personal_probabilities_and_many_reports(
    estimator: str, statistical: ModuleType
) -> None:
    hits = personal_coverage(
        estimator, tn.DirectEncoding(3.0, 3), [1000, 800, 200], uneven(2000), 2000
    )
    statistical.check_share(hits, 2000, 0.93, 0.97)


@pytest.mark.parametrize("epsilon", [3.0, 40.0])
def test_intervals_of_estimator_t_cover_when_participation_does_not_depend_on_the_values(
    epsilon: float, statistical: ModuleType
) -> None:
    hits = personal_coverage(
        "T", tn.DirectEncoding(epsilon, 3), [1000, 800, 200], uneven(2000), 2000
    )
    statistical.check_share(hits, 2000, 0.94, 0.97)


def test_intervals_of_personal_hajek_cover_with_few_reports(statistical: ModuleType) -> None:
    probabilities = np.random.default_rng(1).uniform(0.05, 0.3, 40)
    hits = personal_coverage("hajek", tn.DirectEncoding(3.0, 3), [20, 18, 2], probabilities, 2000)
    statistical.check_share(hits, 2000, 0.93, 1.0)


@pytest.mark.parametrize(
    ("nodes", "least", "most", "held"),
    [(40, 0.05, 0.3, [20, 18, 2]), (2000, 0.01, 0.2, [1000, 990, 10])],
)
def test_intervals_of_personal_horvitz_thompson_cover_rare_answers(
    nodes: int, least: float, most: float, held: list[int], statistical: ModuleType
) -> None:
    probabilities = np.random.default_rng(1).uniform(least, most, nodes)
    hits = personal_coverage(
        "horvitz_thompson", tn.DirectEncoding(4.0, 3), held, probabilities, 2000
    )
    statistical.check_share(hits, 2000, 0.92, 1.0)


@pytest.mark.parametrize("estimator", ["horvitz_thompson", "hajek"])
def test_intervals_cover_when_those_who_hold_a_rare_answer_seldom_report(
    estimator: str, statistical: ModuleType
) -> None:
    """Participation falls with the value: equal weights would make the rare one too certain."""
    values = np.repeat(np.arange(3), [1000, 800, 200])
    participation = tn.Personalized(np.choose(values, [0.9, 0.5, 0.05]))
    oracle, truth = tn.DirectEncoding(3.0, 3), np.array([0.5, 0.4, 0.1])
    hits = np.zeros(3, dtype=np.int64)
    for seed in range(2000):
        tally = oracle.collect(values, participation=participation, seed=seed)
        hits += tally.estimate(estimator).interval(0.95).contains(truth)
    statistical.check_share(hits, 2000, 0.925, 1.0)


@pytest.mark.parametrize("method", METHODS)
def test_the_mean_plug_in_variance_is_the_exact_variance(
    method: str, statistical: ModuleType
) -> None:
    """Large frequencies, so that none is cut to [0, 1] before it is plugged in."""
    oracle, counts, rate = tn.DirectEncoding(2.0, 3), [2000, 1500, 1500], 0.4
    tallies = (
        oracle.simulate(counts, participation=tn.Bernoulli(rate), seed=seed) for seed in range(4000)
    )
    plug_in = np.array(
        [(tally.nodes * tally.estimate(method).standard_errors) ** 2 for tally in tallies]
    )
    exact = tn.estimator_variance(oracle, tn.Bernoulli(rate), method=method, true_counts=counts)
    statistical.check_mean(plug_in, exact, slack=0.002 * exact.max())


def test_the_harness_refuses_errors_of_the_size_that_it_names(statistical: ModuleType) -> None:
    generator = np.random.default_rng(0)
    repeats = statistical.repeats_to_detect(0.1, 1.0, 3)
    samples = generator.normal(0.0, 1.0, (repeats, 3))
    statistical.check_mean(samples, 0.0)
    statistical.check_variance(samples, 1.0)
    statistical.check_covariance(samples, np.eye(3))
    for wrong in ([0.1, 0.0, 0.0], [0.0, 0.0, -0.1]):
        with pytest.raises(AssertionError, match="mean"):
            statistical.check_mean(samples, wrong)
    with pytest.raises(AssertionError, match="variance"):
        statistical.check_variance(samples, 1.3)
    with pytest.raises(AssertionError, match="mean"):
        statistical.check_covariance(samples, np.eye(3) + 0.2)
    with pytest.raises(AssertionError, match="shares"):
        statistical.check_share(880, 1000, 0.95, 1.0)
    with pytest.raises(AssertionError, match="shares"):
        statistical.check_share([950, 995], 1000, 0.0, 0.96)
    with pytest.raises(AssertionError, match="cannot happen"):
        statistical.check_law([10, 1], [1.0, 0.0])


def test_the_harness_refuses_right_results_as_rarely_as_it_says(
    statistical: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ALPHA at 1 in 20, about 1 in 20 right results are refused."""
    generator = np.random.default_rng(3)
    monkeypatch.setattr(statistical, "ALPHA", 0.05)
    refused = 0
    for _ in range(2000):
        try:
            statistical.check_mean(generator.normal(size=(200, 4)), 0.0)
        except AssertionError:
            refused += 1
    assert 60 < refused < 150


def test_reports_of_nodes_with_one_answer_are_pairwise_uncorrelated(
    statistical: ModuleType,
) -> None:
    """Noise of neighbouring nodes, and of one node under successive seeds, is independent."""
    oracle = tn.DirectEncoding(0.5, 2)
    kept = [
        oracle.randomize(np.zeros(200_000, dtype=np.uint8), seed=seed).codes.astype(np.float64)
        for seed in (1, 2)
    ]
    for one, other in [(kept[0][:-1], kept[0][1:]), *itertools.combinations(kept, 2)]:
        product = (one - one.mean()) * (other - other.mean())
        statistical.check_mean(product, 0.0)
