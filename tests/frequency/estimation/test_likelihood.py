"""Maximum likelihood, against general optimisers on the whole channel matrix."""

from __future__ import annotations

import itertools
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize

import turnout as tn
from turnout._values import settle
from turnout.errors import EstimatorError, InvalidTypeError, InvalidValueError
from turnout.frequency.choice import registered
from turnout.frequency.estimation.likelihood import (
    LikelihoodEstimate,
    _spectral,
    maximum_likelihood,
)
from turnout.frequency.estimation.likelihoods import (
    DenseLikelihood,
    Likelihood,
    SupportLikelihood,
    likelihood_of,
)

Floats = npt.NDArray[np.float64]

P, Q = 0.5, 1 / (np.e + 1)
RATIO = P * (1 - Q) / (Q * (1 - P))


def patterns(size: int) -> npt.NDArray[np.int64]:
    """All rows of bits."""
    return np.array(list(itertools.product([0, 1], repeat=size)))


def unary_channel(bits: npt.NDArray[Any], p: float = P, q: float = Q) -> Floats:
    """The probability of each row of bits under each answer, as a product over the bits."""
    size = bits.shape[1]
    channel = np.empty(bits.shape)
    for answer in range(size):
        ones = np.where(np.arange(size) == answer, p, q)
        channel[:, answer] = np.where(bits == 1, ones, 1 - ones).prod(axis=1)
    return channel


def words(bits: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Pack rows of bits, 64 to a word."""
    octets = np.packbits(bits.astype(np.uint8), axis=1, bitorder="little")
    padded = np.zeros((len(bits), -(-bits.shape[1] // 64) * 8), np.uint8)
    padded[:, : octets.shape[1]] = octets
    return padded.view("<u8").astype(np.uint64)


def unary_likelihood(bits: npt.NDArray[Any], counts: Floats) -> SupportLikelihood:
    return SupportLikelihood(words(bits), RATIO, bits.shape[1], weights=counts, squares=counts)


def optimum(channel: Floats, counts: Floats) -> tuple[Floats, float]:
    """The likeliest distribution by a general optimiser, from several starts."""
    size = channel.shape[1]
    best, least = np.full(size, 1 / size), np.inf

    def loss(f: Floats) -> float:
        return -float(counts @ np.log(np.maximum(channel @ f, 1e-300))) / counts.sum()

    def slope(f: Floats) -> Floats:
        return -((counts / np.maximum(channel @ f, 1e-300)) @ channel) / counts.sum()

    for seed in range(4):
        found = optimize.minimize(
            loss,
            np.random.default_rng(seed).dirichlet(np.ones(size)),
            jac=slope,
            bounds=[(0, 1)] * size,
            constraints={"type": "eq", "fun": lambda f: f.sum() - 1, "jac": np.ones_like},
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 500},
        )
        if found.fun < least:
            best, least = np.clip(found.x, 0, 1), float(found.fun)
    return best / best.sum(), least


def reach(likelihood: Likelihood, size: int, tolerance: float = 1e-10) -> tuple[Floats, float]:
    """Run the accelerated iteration until the mean log-likelihood is that close."""
    for point in _spectral(likelihood, np.full(size, 1 / size)):
        if point.gap <= tolerance or point.iterations > 500:
            break
    return point.frequencies, point.gap


@pytest.mark.parametrize("seed", range(6))
def test_the_maximum_for_unary_reports_is_that_of_the_channel_over_all_patterns(seed: int) -> None:
    bits = patterns(4)
    channel = unary_channel(bits)
    generator = np.random.default_rng(seed)
    # With few reports the maximum is on the boundary, with many inside.
    truth = generator.dirichlet(np.ones(4))
    counts = generator.multinomial(10 ** (2 + seed % 3), channel @ truth).astype(np.float64)
    expected, _ = optimum(channel, counts)
    found, gap = reach(unary_likelihood(bits, counts), 4)
    assert gap <= 1e-10
    np.testing.assert_allclose(found, expected, atol=2e-5)
    value = counts @ np.log(channel @ found)
    assert value >= counts @ np.log(channel @ expected) - 1e-7


def test_a_unary_report_is_the_ratio_times_as_likely_under_the_answers_that_it_supports() -> None:
    p, q = Fraction(5, 8), Fraction(3, 16)
    ratio = p * (1 - q) / (q * (1 - p))
    for bits in itertools.product([0, 1], repeat=4):
        likelihoods = []
        for answer in range(4):
            ones = [p if place == answer else q for place in range(4)]
            product = Fraction(1)
            for bit, one in zip(bits, ones, strict=True):
                product *= one if bit else 1 - one
            likelihoods.append(product / (ratio if bits[answer] else 1))
        assert len(set(likelihoods)) == 1


@pytest.mark.parametrize("rate", [1.0, 0.4])
def test_inside_the_simplex_the_maximum_of_direct_encoding_is_the_inverse_of_the_channel(
    rate: float,
) -> None:
    oracle = tn.DirectEncoding(2.0, 5)
    values = np.repeat(np.arange(5), [4000, 3000, 1500, 1000, 500])
    reports = oracle.randomize(values, participation=tn.Bernoulli(rate), seed=3)
    estimate = maximum_likelihood(reports, tolerance=1e-7)
    assert estimate.converged
    inverse = oracle.tally(reports).estimate()
    np.testing.assert_allclose(estimate.frequencies, inverse.frequencies, atol=1e-7)
    # Both have one law, too: that of the multinomial reports.
    assert estimate._is_interior
    np.testing.assert_allclose(estimate.standard_errors, inverse.standard_errors, rtol=0.01)
    np.testing.assert_allclose(estimate.covariance.sum(axis=0), 0.0, atol=1e-12)


def test_outside_the_simplex_the_maximum_of_direct_encoding_is_that_of_the_channel() -> None:
    oracle = tn.DirectEncoding(1.0, 6)
    p, q = oracle.support_probabilities
    channel = np.full((6, 6), q) + (p - q) * np.eye(6)
    for seed in range(4, 9):
        reports = oracle.randomize([0] * 150 + [1] * 50, seed=seed)
        counts = oracle.tally(reports).support.astype(np.float64)
        assert oracle.tally(reports).estimate().frequencies.min() < 0
        estimate = maximum_likelihood(reports, tolerance=1e-7)
        np.testing.assert_allclose(estimate.frequencies, optimum(channel, counts)[0], atol=2e-5)
        assert estimate.frequencies.min() == 0.0
        assert not estimate._is_interior
        assert np.isnan(estimate.standard_errors).all()
        with pytest.raises(EstimatorError, match="on the boundary"):
            estimate.interval()


def test_the_likelihood_rises_and_the_gap_bounds_what_is_missing() -> None:
    bits = patterns(5)
    channel = unary_channel(bits)
    counts = (
        np.random.default_rng(1).multinomial(300, channel @ [0.7, 0.2, 0.1, 0, 0]).astype(float)
    )
    likelihood = unary_likelihood(bits, counts)
    best, _ = reach(likelihood, 5, 1e-12)
    largest = likelihood.step(best)[1]
    last = -np.inf
    for point in itertools.islice(_spectral(likelihood, np.full(5, 0.2)), 40):
        assert point.value >= last - 2e-12
        assert largest - point.value <= point.gap + 1e-12
        assert point.frequencies.sum() == pytest.approx(1.0, abs=1e-12)
        assert point.frequencies.min() >= 0.0
        last = point.value


def test_the_gap_is_all_that_is_missing_where_the_likelihood_is_nearly_a_plane() -> None:
    """Reports that say almost nothing, all for the answer that the frequencies leave out."""
    ones = np.ones(1)
    support = np.array([[0b10]], dtype=np.uint64)
    likelihood = SupportLikelihood(support, 1.0001, 2, weights=ones, squares=ones)
    point = next(_spectral(likelihood, np.array([1.0, 0.0])))
    missing = likelihood.step(np.array([0.0, 1.0]))[1] - point.value
    assert missing <= point.gap
    assert missing == pytest.approx(point.gap, rel=1e-3)


def test_the_first_step_is_a_bayesian_update_the_mean_of_the_posteriors() -> None:
    bits = patterns(3)
    channel = unary_channel(bits)
    counts = np.arange(1.0, 9.0)
    start = np.array([0.5, 0.3, 0.2])
    updates = _spectral(unary_likelihood(bits, counts), start)
    assert next(updates).frequencies is start
    posterior = start * channel / (channel @ start)[:, None]
    np.testing.assert_allclose(
        next(updates).frequencies, counts @ posterior / counts.sum(), rtol=1e-14
    )


def test_the_maximum_is_where_expectation_maximisation_ends() -> None:
    oracle = tn.DirectEncoding(1.5, 4)
    reports = oracle.randomize([0] * 300 + [1] * 200 + [2] * 100, seed=5)
    p, q = oracle.support_probabilities
    channel = np.full((4, 4), q) + (p - q) * np.eye(4)
    counts = oracle.tally(reports).support.astype(np.float64)
    updated = np.array([0.1, 0.1, 0.1, 0.7])
    for _ in range(20_000):
        updated *= (counts / (channel @ updated)) @ channel / counts.sum()
    found = maximum_likelihood(reports, tolerance=1e-6)
    np.testing.assert_allclose(found.frequencies, updated, atol=1e-4)
    assert found.iterations < 100


def test_equal_reports_are_put_together_and_count_as_often() -> None:
    oracle = tn.DirectEncoding(1.0, 70)
    codes = np.random.default_rng(2).integers(0, 70, size=500)
    together = likelihood_of(tn.Reports(oracle, tn.Everyone(), codes, nodes=500))
    assert isinstance(together, SupportLikelihood)
    assert len(together.weights) < 71
    frequencies = np.random.default_rng(3).dirichlet(np.ones(70))
    single = np.zeros((500, 70), np.int64)
    single[np.arange(500), codes] = 1
    ratio = float(oracle.realized_ratio)
    apart = SupportLikelihood(words(single), ratio, 70, weights=np.ones(500), squares=np.ones(500))
    np.testing.assert_allclose(
        together.step(frequencies)[0], apart.step(frequencies)[0], rtol=1e-12
    )
    assert together.step(frequencies)[1] == pytest.approx(apart.step(frequencies)[1], rel=1e-12)
    for one, other in zip(
        together.information(frequencies), apart.information(frequencies), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_with_personal_probabilities_reports_count_inversely_and_hajek_is_the_maximum() -> None:
    oracle = tn.DirectEncoding(3.0, 3)
    generator = np.random.default_rng(4)
    values = generator.choice(3, size=20_000, p=[0.5, 0.3, 0.2])
    taking_part = tn.Personalized(np.where(values == 0, 0.2, 0.8))
    reports = oracle.randomize(values, participation=taking_part, seed=1)
    estimate = maximum_likelihood(reports, tolerance=1e-7)
    hajek = oracle.tally(reports).estimate()
    np.testing.assert_allclose(estimate.frequencies, hajek.frequencies, atol=1e-6)
    exact = tn.estimator_variance(oracle, taking_part, values=values)
    np.testing.assert_allclose(estimate.standard_errors * 20_000, np.sqrt(exact), rtol=0.05)


def test_standard_errors_for_unary_reports_are_those_of_repeated_experiments(
    statistical: ModuleType,
) -> None:
    """All nodes report; the values are fixed, so sampling them is not part of the error."""
    held = np.array([900, 600, 300, 200])
    truth = held / held.sum()
    bits = patterns(4)
    channel = unary_channel(bits)
    generator = np.random.default_rng(6)
    estimates, variances = [], []
    for _ in range(1500):
        counts = sum(
            generator.multinomial(number, channel[:, answer]) for answer, number in enumerate(held)
        )
        likelihood = unary_likelihood(bits, np.asarray(counts, dtype=np.float64))
        found, _ = reach(likelihood, 4, 1e-9)
        estimates.append(found)
        if len(variances) < 50:
            estimate = LikelihoodEstimate(None, "", 2000, 2000, found, 0.0, 0.0, 1, True)
            settle(estimate, _likelihood=likelihood)
            variances.append(information_variances(estimate, 4))
    statistical.check_mean(estimates, truth, slack=0.002)
    statistical.check_variance(estimates, np.mean(variances, axis=0), slack=0.05)


def information_variances(estimate: Any, size: int) -> Floats:
    """Invert the bordered information matrix: a second way to stay on the simplex."""
    curvature, _ = estimate._likelihood.information(estimate.frequencies)
    bordered = np.zeros((size + 1, size + 1))
    bordered[:size, :size] = curvature
    bordered[size, :size] = bordered[:size, size] = 1.0
    f = estimate.frequencies
    return np.diag(np.linalg.inv(bordered)[:size, :size]) - f * (1 - f) / estimate.nodes


def test_covariances_are_those_of_the_bordered_information_matrix() -> None:
    reports = tn.DirectEncoding(1.0, 4).randomize([0] * 2500 + [1] * 2500 + [2, 3] * 2500, seed=2)
    estimate = maximum_likelihood(reports, tolerance=1e-8)
    np.testing.assert_allclose(
        np.diag(estimate.covariance), information_variances(estimate, 4), rtol=1e-6
    )


def test_more_reports_bring_the_maximum_to_the_truth(statistical: ModuleType) -> None:
    truth = np.array([0.4, 0.3, 0.2, 0.1, 0.0])
    bits = patterns(5)
    channel = unary_channel(bits)
    generator = np.random.default_rng(8)
    last = np.inf
    for reports in (10**3, 10**5, 10**7):
        errors = []
        for _ in range(20):
            counts = generator.multinomial(reports, channel @ truth).astype(np.float64)
            found, _ = reach(unary_likelihood(bits, counts), 5)
            errors.append(np.abs(found - truth).max())
        assert np.mean(errors) < last / 5
        last = float(np.mean(errors))
    assert last < 1e-3


def test_support_counts_taken_for_a_multinomial_sample_give_another_answer() -> None:
    """The stand-in: shares of the support counts, as if each report supported one answer."""
    bits = patterns(4)
    channel = unary_channel(bits)
    truth = np.array([0.7, 0.2, 0.1, 0.0])
    counts = np.random.default_rng(9).multinomial(2000, channel @ truth).astype(np.float64)
    likelihood = unary_likelihood(bits, counts)
    found, _ = reach(likelihood, 4)
    support = counts @ bits
    stand_in, _ = optimum((Q + (P - Q) * np.eye(4)) / (P + 3 * Q), support)
    assert np.abs(stand_in - found).max() > 0.002
    missing = counts.sum() * (likelihood.step(found)[1] - likelihood.step(stand_in)[1])
    assert missing > 0.002
    # Two sets of reports with the same support counts have different maxima: which answers a report
    # supports together matters.
    together = np.array([[1, 1, 0], [0, 0, 1], [0, 0, 0]])
    apart = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    one, _ = reach(unary_likelihood(together, np.array([30.0, 20.0, 30.0])), 3)
    other, _ = reach(unary_likelihood(apart, np.array([30.0, 30.0, 20.0])), 3)
    np.testing.assert_array_equal(np.array([30, 20, 30]) @ together, np.array([30, 30, 20]) @ apart)
    assert np.abs(one - other).max() > 0.01


def test_scores_with_laplace_noise_have_the_likelihood_of_the_whole_histogram() -> None:
    ratio, size = np.e, 3
    generator = np.random.default_rng(10)
    decay = ratio ** (-1 / 2)
    values = generator.choice(size, size=400, p=[0.6, 0.3, 0.1])
    noise = generator.geometric(1 - decay, (400, size)) - generator.geometric(
        1 - decay, (400, size)
    )
    scores = noise + (values[:, None] == np.arange(size))
    ones = np.ones(400)
    likelihood = DenseLikelihood.of_scores(scores, ratio, weights=ones, squares=ones)
    channel = np.empty((400, size))
    for answer in range(size):
        residual = scores - (np.arange(size) == answer)
        channel[:, answer] = (decay ** np.abs(residual) * (1 - decay) / (1 + decay)).prod(axis=1)
    found, gap = reach(likelihood, size)
    assert gap < 1e-10
    np.testing.assert_allclose(found, optimum(channel, ones)[0], atol=2e-5)
    # No report is more than the ratio likelier under one answer than under another.
    assert (
        likelihood.matrix.max(axis=1) / likelihood.matrix.min(axis=1)
    ).max() <= ratio * 1.0000001
    exact = (channel / (channel @ found)[:, None]).T @ (channel / (channel @ found)[:, None])
    np.testing.assert_allclose(likelihood.information(found)[0], exact, rtol=1e-10)


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, id=name) for name, kind in registered().items()],
)
def test_reports_of_every_oracle_have_a_maximum_near_the_truth(
    kind: type[tn.FrequencyOracle],
) -> None:
    oracle = kind(2.0, 5)
    values = np.repeat(np.arange(5), [40_000, 30_000, 20_000, 9_000, 1_000])
    reports = oracle.randomize(values, participation=tn.Bernoulli(0.5), seed=1)
    estimate = maximum_likelihood(reports)
    assert estimate.converged
    tally = oracle.tally(reports).estimate()
    truth = np.bincount(values) / values.size
    # The tally's estimate is unbiased with these errors, and the maximum has no larger ones.
    assert (np.abs(estimate.frequencies - truth) < 5 * tally.standard_errors).all()
    assert (estimate.standard_errors < 1.02 * tally.standard_errors).all()
    likelihood = likelihood_of(reports)
    value = likelihood.step(estimate.frequencies)[1]
    projected = tally.project("simplex").frequencies
    for other in (truth, projected, np.full(5, 0.2)):
        assert likelihood.step(other)[1] <= value + estimate.gap


def test_what_cannot_be_maximised_is_refused() -> None:
    reports = tn.DirectEncoding(1.0, 3).randomize([0, 1, 2], seed=1)
    with pytest.raises(InvalidTypeError, match="reports must be a Reports object"):
        maximum_likelihood([0, 1])  # type: ignore[arg-type]
    for tolerance in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InvalidValueError, match="tolerance must be"):
            maximum_likelihood(reports, tolerance=tolerance)
    with pytest.raises(InvalidValueError, match="max_iterations"):
        maximum_likelihood(reports, max_iterations=0)
    none = tn.DirectEncoding(1.0, 3).randomize([0] * 5, participation=tn.Bernoulli(1e-9), seed=1)
    with pytest.raises(EstimatorError, match="no reports"):
        maximum_likelihood(none)
    padded = tn.SampledAttribute(1.0, {"a": 3, "b": 2}, padding="fake")
    fake = padded.by_attribute(padded.randomize({"a": [0, 1, 2], "b": [0, 1, 1]}, seed=1))["a"]
    with pytest.raises(EstimatorError, match="does not follow from the answers they support"):
        maximum_likelihood(fake)
    one = maximum_likelihood(reports, max_iterations=1, tolerance=1e-12)
    assert one.iterations == 1
    with pytest.raises(ValueError, match="read-only"):
        one.frequencies[0] = 1.0
    assert "3 reports of 3 nodes" in repr(one)
