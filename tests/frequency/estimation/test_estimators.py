"""Estimators, variances and intervals against exact enumeration of all outcomes.

Every outcome of a tiny population (who takes part, and what each reports) has a rational
probability. Sums over all outcomes are the exact mean and variance, with no formula in between.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import fsum
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import turnout as tn
from turnout.collecting.sums import DesignSums
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.estimation.models import ScoreMoments, excess_model, ratio_model

METHODS = ("c", "g", "c_hat", "T", "horvitz_thompson", "hajek")

HALF, THIRD = Fraction(1, 2), Fraction(3, 8)

Floats = npt.NDArray[np.float64]
Reported = tuple[int | None, ...]


@dataclass(frozen=True)
class Population:
    """Nodes with their answers and probabilities; dyadic, so that floats hold them exactly."""

    epsilon: float
    size: int
    values: tuple[int, ...]
    probabilities: tuple[Fraction, ...]

    @cached_property
    def oracle(self) -> tn.DirectEncoding:
        return tn.DirectEncoding(self.epsilon, self.size)

    @cached_property
    def support(self) -> tuple[Fraction, Fraction]:
        """The support probabilities as exact numbers, from the exact likelihood ratio."""
        ratio = self.oracle.realized_ratio
        return ratio / (ratio + self.size - 1), 1 / (ratio + self.size - 1)

    @cached_property
    def participation(self) -> tn.Participation:
        if len(set(self.probabilities)) > 1:
            return tn.Personalized([float(one) for one in self.probabilities])
        if self.probabilities[0] == 1:
            return tn.Everyone()
        return tn.Bernoulli(float(self.probabilities[0]))

    @property
    def counts(self) -> list[int]:
        return [self.values.count(code) for code in range(self.size)]

    def outcomes(self) -> Iterator[tuple[Fraction, Reported]]:
        """All outcomes: the code that each node reports, or None."""
        p, q = self.support
        choices: Sequence[int | None] = (None, *range(self.size))
        for reported in itertools.product(choices, repeat=len(self.values)):
            weight = Fraction(1)
            for code, value, pi in zip(reported, self.values, self.probabilities, strict=True):
                weight *= 1 - pi if code is None else pi * (p if code == value else q)
            if weight:
                yield weight, reported

    def tally(self, reported: Reported) -> tn.Tally:
        """What the library counts when the nodes report this."""
        codes = [code for code in reported if code is not None]
        personal: dict[str, Any] = {}
        if isinstance(self.participation, tn.Personalized):
            probabilities = self.participation.probabilities
            present = [code is not None for code in reported]
            personal = {
                "probabilities": probabilities[present],
                "design": DesignSums.of(probabilities),
            }
        reports = tn.Reports(
            self.oracle,
            self.participation,
            np.array(codes, dtype=np.uint8),
            len(reported),
            **personal,
        )
        return self.oracle.tally(reports)

    def defined(self, method: str, reported: Reported, answer: int) -> Fraction:
        """The estimator of a count by its definition, node by node."""
        p, q = self.support
        n, rate = len(self.values), self.probabilities[0]
        total = sum(self.probabilities, Fraction(0))
        there = [node for node, code in enumerate(reported) if code is not None]
        supporting = sum(reported[node] == answer for node in there)
        weights = [1 / self.probabilities[node] for node in there]
        weighted = sum(
            (((reported[node] == answer) - q) * weight / (p - q))
            for node, weight in zip(there, weights, strict=True)
        )
        formulas: dict[str, Callable[[], Fraction | int]] = {
            "c": lambda: (supporting - n * q) / (p - q),
            "g": lambda: (supporting - n * rate * q) / (rate * (p - q)),
            "c_hat": lambda: (supporting - len(there) * q) / (rate * (p - q)),
            "T": lambda: n * (supporting - q * total) / ((p - q) * total),
            "horvitz_thompson": lambda: weighted,
            "hajek": lambda: n * weighted / sum(weights, Fraction(0)),
        }
        return Fraction(formulas[method]())


EVERYONE = Population(1.0, 3, (0, 0, 1), (Fraction(1),) * 3)
BERNOULLI = Population(1.0, 3, (0, 0, 1, 2), (THIRD,) * 4)
BINARY = Population(2.5, 2, (0, 1, 1, 1), (HALF,) * 4)
UNANIMOUS = Population(0.5, 2, (1, 1, 1), (Fraction(1, 4),) * 3)
SINGLE = Population(1.0, 3, (2,), (HALF,))
PERSONAL = Population(1.0, 3, (0, 0, 1, 2), (HALF, Fraction(1, 4), Fraction(1), THIRD))
CORRELATED = Population(
    2.0, 2, (0, 0, 1, 1), (Fraction(1, 8), Fraction(1, 8), Fraction(7, 8), Fraction(1))
)
COMMON_RATE = (EVERYONE, BERNOULLI, BINARY, UNANIMOUS, SINGLE)
PERSONAL_RATES = (PERSONAL, CORRELATED)
NAMES = {
    EVERYONE: "everyone",
    BERNOULLI: "bernoulli",
    BINARY: "binary",
    UNANIMOUS: "unanimous",
    SINGLE: "single node",
    PERSONAL: "personal",
    CORRELATED: "correlated",
}


def applicable(*populations: Population) -> list[Any]:
    """All pairs of an estimator and a population that it applies to."""
    return [
        pytest.param(method, population, id=f"{method}, {NAMES[population]}")
        for population in populations
        for method in METHODS
        if population not in PERSONAL_RATES or method not in {"g", "c_hat"}
    ]


@cache
def tallies(population: Population) -> list[tuple[float, Reported, tn.Tally]]:
    """All outcomes with their probabilities and tallies."""
    return [
        (float(weight), reported, population.tally(reported))
        for weight, reported in population.outcomes()
    ]


@cache
def estimates(
    population: Population, method: str
) -> list[tuple[float, Reported, tn.FrequencyEstimate]]:
    """All outcomes with their estimates; for Hajek given that there is a report."""
    found = [
        (weight, reported, tally.estimate(method))
        for weight, reported, tally in tallies(population)
        if method != "hajek" or tally.received > 0
    ]
    total = fsum(weight for weight, _, _ in found)
    return [(weight / total, reported, estimate) for weight, reported, estimate in found]


def moments(weighted: Sequence[tuple[float, Sequence[float]]]) -> tuple[Floats, Floats]:
    """Mean and variance over all outcomes, summed without rounding."""
    weights = [weight for weight, _ in weighted]
    means, variances = [], []
    for column in zip(*(entries for _, entries in weighted), strict=True):
        mean = fsum(w * x for w, x in zip(weights, column, strict=True))
        means.append(mean)
        variances.append(fsum(w * (x - mean) ** 2 for w, x in zip(weights, column, strict=True)))
    return np.array(means), np.array(variances)


@cache
def exact_moments(population: Population, method: str) -> tuple[Floats, Floats]:
    return moments(
        [
            (weight, estimate.counts.tolist())
            for weight, _, estimate in estimates(population, method)
        ]
    )


def library_variance(population: Population, method: str) -> Floats:
    return tn.estimator_variance(
        population.oracle, population.participation, method=method, values=list(population.values)
    )


@pytest.mark.parametrize(("method", "population"), applicable(*COMMON_RATE, *PERSONAL_RATES))
def test_an_estimate_follows_its_definition_on_every_outcome(
    method: str, population: Population
) -> None:
    for _, reported, estimate in estimates(population, method):
        defined = [
            float(population.defined(method, reported, answer)) for answer in range(population.size)
        ]
        np.testing.assert_allclose(estimate.counts, defined, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("population", COMMON_RATE, ids=NAMES.get)
@pytest.mark.parametrize("method", ["g", "c_hat", "T", "horvitz_thompson", "hajek"])
def test_the_exact_mean_is_the_true_count_for_a_common_rate(
    method: str, population: Population
) -> None:
    mean, _ = exact_moments(population, method)
    np.testing.assert_allclose(mean, population.counts, atol=1e-9)


@pytest.mark.parametrize("population", PERSONAL_RATES, ids=NAMES.get)
def test_horvitz_thompson_is_exactly_unbiased_for_personal_probabilities(
    population: Population,
) -> None:
    mean, _ = exact_moments(population, "horvitz_thompson")
    np.testing.assert_allclose(mean, population.counts, atol=1e-9)


@pytest.mark.parametrize("population", [*COMMON_RATE, *PERSONAL_RATES], ids=NAMES.get)
def test_the_exact_mean_of_c_is_the_shrunken_count_less_a_constant(population: Population) -> None:
    p, q = population.support
    mean, _ = exact_moments(population, "c")
    participants = [Fraction(0)] * population.size
    for value, pi in zip(population.values, population.probabilities, strict=True):
        participants[value] += pi
    absent = len(population.values) - sum(population.probabilities)
    expected = [float(kept - q * absent / (p - q)) for kept in participants]
    np.testing.assert_allclose(mean, expected, atol=1e-9)


@pytest.mark.parametrize("population", PERSONAL_RATES, ids=NAMES.get)
def test_the_exact_mean_of_estimator_t_is_the_count_weighted_by_the_probabilities(
    population: Population,
) -> None:
    mean, _ = exact_moments(population, "T")
    weighted = np.bincount(
        population.values,
        weights=[float(pi) for pi in population.probabilities],
        minlength=population.size,
    )
    n, total = len(population.values), float(sum(population.probabilities))
    np.testing.assert_allclose(mean, n * weighted / total, atol=1e-9)
    assert np.abs(mean - population.counts).max() > 0.1


@pytest.mark.parametrize(
    ("method", "population"),
    [
        *applicable(*COMMON_RATE),
        *(case for case in applicable(*PERSONAL_RATES) if case.values[0] != "hajek"),
    ],
)
def test_the_variance_formula_equals_the_enumerated_variance(
    method: str, population: Population
) -> None:
    _, variance = exact_moments(population, method)
    np.testing.assert_allclose(library_variance(population, method), variance, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("population", PERSONAL_RATES, ids=NAMES.get)
def test_the_variance_of_personal_hajek_is_that_of_the_linearised_ratio(
    population: Population,
) -> None:
    """HT - f sum(B / pi) is the first-order term of n HT / sum(B / pi)."""
    n = len(population.values)
    frequencies = [Fraction(count, n) for count in population.counts]
    linear = []
    for weight, reported in population.outcomes():
        estimated = [
            population.defined("horvitz_thompson", reported, code)
            for code in range(population.size)
        ]
        nodes = sum(
            1 / pi
            for code, pi in zip(reported, population.probabilities, strict=True)
            if code is not None
        )
        terms = [float(count - f * nodes) for count, f in zip(estimated, frequencies, strict=True)]
        linear.append((float(weight), terms))
    mean, variance = moments(linear)
    np.testing.assert_allclose(mean, 0.0, atol=1e-9)
    np.testing.assert_allclose(library_variance(population, "hajek"), variance, rtol=1e-9)


@pytest.mark.parametrize("population", PERSONAL_RATES, ids=NAMES.get)
def test_the_plug_in_variance_of_personal_horvitz_thompson_is_exactly_unbiased(
    population: Population,
) -> None:
    plug_in, _ = moments(
        [
            (weight, ((estimate.nodes * estimate.standard_errors) ** 2).tolist())
            for weight, _, estimate in estimates(population, "horvitz_thompson")
        ]
    )
    expected = library_variance(population, "horvitz_thompson")
    np.testing.assert_allclose(plug_in, expected, rtol=1e-9)


@pytest.mark.parametrize("population", [BERNOULLI, BINARY, SINGLE], ids=NAMES.get)
def test_the_hajek_model_is_exact_given_the_number_of_reports(population: Population) -> None:
    n = len(population.values)
    p, q = (float(one) for one in population.support)
    by_number: dict[int, list[tuple[float, list[float]]]] = {}
    for weight, reported, estimate in estimates(population, "hajek"):
        received = sum(code is not None for code in reported)
        by_number.setdefault(received, []).append((weight, estimate.frequencies.tolist()))
    for received, weighted in by_number.items():
        total = sum(weight for weight, _ in weighted)
        mean, variance = moments([(weight / total, entries) for weight, entries in weighted])
        truth = np.array(population.counts) / n
        np.testing.assert_allclose(mean, truth, atol=1e-9)
        model = ratio_model(n, received, ScoreMoments.pure(p, q))
        np.testing.assert_allclose(model.variance(truth), variance, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_standard_error_is_the_exact_one_where_the_estimate_hits_the_truth(method: str) -> None:
    """Supports of a fully informative collection: C = S (q + (p - q) f) with S = n pi."""
    oracle = tn.DirectEncoding(1.0, 3)
    p, q = oracle.support_probabilities
    nodes, rate, truth = 10**12, 0.25, np.array([0.5, 0.3, 0.2])
    received = int(nodes * rate)
    support = np.rint(received * (q + (p - q) * truth)).astype(np.uint64)
    support[0] += np.uint64(received) - support.sum()
    tally = tn.Tally(tn.Plan(oracle, tn.Bernoulli(rate)), support, received, nodes)
    exact = tn.estimator_variance(
        oracle, tn.Bernoulli(rate), method=method, true_counts=(truth * nodes).astype(np.int64)
    )
    np.testing.assert_allclose(
        nodes * tally.estimate(method).standard_errors, np.sqrt(exact), rtol=1e-6
    )


def assignments(population: Population) -> list[Population]:
    """The same answers given to the nodes in all distinct orders."""
    return [
        Population(population.epsilon, population.size, values, population.probabilities)
        for values in set(itertools.permutations(population.values))
    ]


@pytest.mark.parametrize("population", PERSONAL_RATES, ids=NAMES.get)
def test_estimator_t_is_unbiased_when_the_answers_are_assigned_to_the_probabilities_at_random(
    population: Population,
) -> None:
    means = [exact_moments(assigned, "T")[0] for assigned in assignments(population)]
    np.testing.assert_allclose(np.mean(means, axis=0), population.counts, atol=1e-9)


@pytest.mark.parametrize("population", PERSONAL_RATES, ids=NAMES.get)
def test_the_standard_error_of_estimator_t_counts_the_random_assignment_of_answers(
    population: Population,
) -> None:
    """The law of total variance over all assignments of the answers to the nodes."""
    n = len(population.values)
    each = [exact_moments(assigned, "T") for assigned in assignments(population)]
    within = np.mean([variance for _, variance in each], axis=0)
    between = np.var([mean for mean, _ in each], axis=0)
    # The model of the estimate itself, which holds the sums over the population.
    tally = population.tally((0,) * n)
    model = tally.estimate("T").estimation.model
    assert model is not None
    modelled = n**2 * model.variance(np.array(population.counts) / n)
    np.testing.assert_allclose(modelled, within + between, rtol=1e-9)


def uniform_tally(
    support: Sequence[int], nodes: int, *, epsilon: float = 1.0, rate: float = 0.5
) -> tn.Tally:
    participation = tn.Everyone() if rate == 1.0 else tn.Bernoulli(rate)
    plan = tn.Plan(tn.DirectEncoding(epsilon, len(support)), participation)
    return tn.Tally(plan, support, sum(support), nodes)


def test_a_single_node_has_a_proper_standard_error() -> None:
    for method in METHODS:
        estimate = uniform_tally([0, 1, 0], 1, rate=1.0).estimate(method)
        assert (estimate.standard_errors > 0.5).all()


def test_a_single_report_among_personal_probabilities_does_not_claim_certainty() -> None:
    population = Population(1.0, 3, (0, 0, 1, 2), (HALF, Fraction(1, 4), Fraction(1, 8), THIRD))
    estimate = population.tally((0, None, None, None)).estimate("hajek")
    uniform = uniform_tally([1, 0, 0], 4).estimate("hajek")
    assert (estimate.interval().width > 0.5 * uniform.interval().width).all()


def test_no_report_among_personal_probabilities_does_not_claim_certainty() -> None:
    tally = PERSONAL.tally((None,) * 4)
    try:
        width = tally.estimate("horvitz_thompson").interval().width
    except EstimatorError:
        return
    assert (width > 1.0).all()


@pytest.mark.parametrize("epsilon", [1e-15, 1e-17])
def test_an_epsilon_near_the_smallest_possible_either_works_or_is_refused(epsilon: float) -> None:
    try:
        oracle = tn.DirectEncoding(epsilon, 3)
    except InvalidValueError:
        return
    tally = tn.Tally(tn.Plan(oracle, tn.Everyone()), [600, 400, 200], 1200, 1200)
    gap = float((oracle.realized_ratio - 1) / (oracle.realized_ratio + 2))
    expected = np.array([1, 0, -1]) / (6 * gap)
    found = tally.estimate().project("none").frequencies
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6 / gap)


@pytest.mark.parametrize("method", ["g", "c_hat"])
def test_an_estimator_for_a_common_rate_refuses_personal_probabilities(method: str) -> None:
    tally = PERSONAL.tally((0, None, 1, 2))
    with pytest.raises(EstimatorError, match=f"'{method}' needs one participation rate"):
        tally.estimate(method)
    with pytest.raises(InvalidValueError, match="method must be one that takes personal"):
        library_variance(PERSONAL, method)


def test_hajek_refuses_a_tally_without_reports_and_names_the_alternatives() -> None:
    with pytest.raises(EstimatorError, match="no reports were received"):
        uniform_tally([0, 0], 10).estimate("hajek")


def test_all_unbiased_estimators_are_one_when_everyone_takes_part() -> None:
    tally = uniform_tally([50, 30, 20], 100, rate=1.0)
    for method in METHODS:
        estimate = tally.estimate(method)
        np.testing.assert_allclose(estimate.frequencies, tally.estimate("c").frequencies)
        np.testing.assert_allclose(estimate.standard_errors, tally.estimate("c").standard_errors)


def test_equal_personal_probabilities_give_the_estimates_of_a_common_rate() -> None:
    oracle, values = tn.DirectEncoding(1.0, 3), [0, 0, 0, 1, 1, 2] * 50
    personal = oracle.collect(values, participation=tn.Personalized([0.5] * 300), seed=4)
    common = tn.Tally(
        tn.Plan(oracle, tn.Bernoulli(0.5)), personal.support, personal.received, personal.nodes
    )
    for method in ("T", "horvitz_thompson", "hajek"):
        np.testing.assert_allclose(
            personal.estimate(method).frequencies, common.estimate(method).frequencies, rtol=1e-9
        )
        if method == "T":
            np.testing.assert_allclose(
                personal.estimate("T").standard_errors, common.estimate("g").standard_errors
            )
        np.testing.assert_allclose(
            tn.estimator_variance(
                oracle, tn.Personalized([0.5] * 300), method=method, values=values
            ),
            tn.estimator_variance(
                oracle, tn.Bernoulli(0.5), method=method, true_counts=[150, 100, 50]
            )
            if method != "hajek"
            else 300**2 * _large_sample_hajek(oracle, values, 0.5),
            rtol=1e-9,
        )


def _large_sample_hajek(oracle: tn.DirectEncoding, values: list[int], rate: float) -> Floats:
    """The linearised variance of the frequency: that of c_hat less f^2 (1 - rate) / (n rate)."""
    p, q = oracle.support_probabilities
    f = np.bincount(values, minlength=oracle.domain.size) / len(values)
    model = excess_model(len(values), rate, ScoreMoments.pure(p, q))
    return model.variance(f) - f**2 * (1 - rate) / (len(values) * rate)
