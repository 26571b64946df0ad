"""Groups that say of each other what they have in common."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import integrate

import turnout as tn
from turnout.errors import EstimatorError, InvalidTypeError
from turnout.frequency.estimation import shrinkage
from turnout.frequency.estimation.shrinkage import shared, shrunk

Floats = npt.NDArray[np.float64]


def errors(truth: Floats, deviation: float, repeats: int, seed: int) -> tuple[float, float, float]:
    """Root mean square errors of sharing, of each group alone, and of the rows as they are."""
    generator = np.random.default_rng(seed)
    variances = np.full(truth.shape, deviation**2)
    squares = np.zeros(3)
    for _ in range(repeats):
        rows = generator.normal(truth, deviation)
        together = np.array([made for made, _ in shared(rows, variances)])
        alone = np.array([shrunk(row, variances[0])[0] for row in rows])
        squares += [((each - truth) ** 2).sum() for each in (together, alone, rows)]
    first, second, third = np.sqrt(squares).tolist()
    return first, second, third


@pytest.mark.parametrize("k", [3, 20])
def test_groups_that_are_alike_have_a_smaller_error_and_others_next_to_none_more(k: int) -> None:
    shape = 1 / np.arange(1.0, k + 1)
    alike = np.tile(shape / shape.sum(), (6, 1))
    together, alone, _ = errors(alike, 0.02, 15 // k + 1, 1)
    assert together < 0.7 * alone
    generator = np.random.default_rng(2)
    unlike = np.array([generator.permutation(row) for row in alike])
    together, alone, _ = errors(unlike, 0.02, 15 // k + 1, 3)
    assert together < 1.05 * alone
    odd = alike.copy()
    odd[0] = odd[0, ::-1]
    generator = np.random.default_rng(4)
    rows = generator.normal(odd, 0.02)
    made = shared(rows, np.full(rows.shape, 0.02**2))
    assert made[0][1].weights.get(shrinkage.OTHERS, 0.0) < 0.05
    assert made[1][1].weights[shrinkage.OTHERS] > 0.2


def whole(power: int, value: float | None, error: float, centre: float, width: float) -> float:
    """Integrate a power of a frequency over the prior, times the law of the estimate if seen."""

    def density(f: float) -> float:
        prior = math.exp(-0.5 * (f - centre) ** 2 / width) / math.sqrt(2 * math.pi * width)
        if value is None:
            return prior
        seen = math.exp(-0.5 * ((value - f) / error) ** 2) / error / math.sqrt(2 * math.pi)
        return prior * f**power * seen

    return float(integrate.quad(density, 0, 2, points=[0.1, 0.5])[0])


def test_posterior_means_around_the_others_agree_with_integrals() -> None:
    values, noise = np.array([[0.05, -0.02, 0.4]]), np.array([[0.03, 0.02, 0.05]])
    centres, doubts = np.array([[0.03, 0.01, 0.2]]), np.array([[1e-4, 1e-5, 1e-3]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shrinkage, "_PEOPLE", np.array([20.0]))
        means, spread, evidence = shrinkage._deviations(
            values, noise, np.ones((1, 3), bool), centres, doubts
        )
    total = 0.0
    for place in range(3):
        value, centre, error = values[0, place], centres[0, place], noise[0, place]
        width = (centre + 0.1 / 3) / 20 + doubts[0, place] + 1e-6 * error**2

        mass = whole(0, value, error, centre, width)
        assert means[0, place] == pytest.approx(
            whole(1, value, error, centre, width) / mass, rel=1e-6
        )
        second = whole(2, value, error, centre, width) / mass
        assert spread[0, place] + means[0, place] ** 2 == pytest.approx(second, rel=1e-6)
        total += np.log(mass / whole(0, None, error, centre, width))
    assert evidence[0] == pytest.approx(total, rel=1e-6)


def test_every_group_is_a_distribution_whatever_is_known_of_it() -> None:
    generator = np.random.default_rng(5)
    for groups, k in ((1, 4), (2, 2), (3, 500)):
        rows = generator.normal(1 / k, 0.1, (groups, k))
        variances = generator.uniform(0.1, 2.0, rows.shape) * 1e-3
        variances[0, 0] = 0.0
        for made, how in shared(rows, variances):
            assert made.min() >= 0.0
            assert made.sum() == pytest.approx(1.0)
            assert sum(how.weights.values()) == pytest.approx(1.0, abs=0.01)


def test_grouped_estimates_share_where_that_is_asked_and_say_so() -> None:
    oracle = tn.DirectEncoding(1.0, ["no", "maybe", "yes"])
    days = {day: oracle.simulate([500, 300, 200], seed=day) for day in range(6)}
    days[9] = oracle.simulate([0, 0, 0])
    estimate = tn.GroupedTally(["day"], days).estimate()
    across = estimate.shrink(across=True)
    assert across.postprocessing == "empirical_bayes_across_groups"
    assert "shrunk by 'empirical_bayes_across_groups'" in repr(across[0])
    assert across[0].shrinkage is not None
    assert across[0].shrinkage.weights["other groups"] > 0.5
    assert across.reasons == estimate.reasons
    assert np.isnan(across.frequencies[6]).all()
    np.testing.assert_array_equal(across.standard_errors, estimate.standard_errors)
    np.testing.assert_array_equal(across[2].interval().low, estimate[2].interval().low)
    assert across.total.postprocessing == "empirical_bayes"
    assert estimate.shrink().postprocessing == "empirical_bayes"
    assert estimate.shrink()[0].shrinkage.weights.keys().isdisjoint({"other groups"})
    with pytest.raises(InvalidTypeError, match="across must be True or False, got 'yes'"):
        estimate.shrink(across="yes")  # type: ignore[arg-type]
    half = {1: oracle.simulate([50, 30, 20], participation=0.5, seed=1)}
    with pytest.raises(EstimatorError, match="'c' cannot be shrunk"):
        tn.GroupedTally(["day"], half).estimate("c").shrink(across=True)
