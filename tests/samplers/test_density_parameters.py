"""Parameters of densities, copies of them, and their guarantee in words."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import stats
from tests.samplers.test_density import SIMULATION, Known, seed_mixture

from turnout.samplers import MollifiedDensity

pytest.importorskip("sklearn")
linear_model = pytest.importorskip("sklearn.linear_model")


def test_fitted_samplers_are_pickled_and_copied() -> None:
    sampler = MollifiedDensity(1.0, random_state=1).fit(seed_mixture(50, 3))
    at = seed_mixture(5, 4)
    for other in [pickle.loads(pickle.dumps(sampler)), copy.deepcopy(sampler)]:
        np.testing.assert_array_equal(other.score_samples(at), sampler.score_samples(at))
        np.testing.assert_array_equal(
            other.sample(2, budget=SIMULATION, seed=1), sampler.sample(2, budget=SIMULATION, seed=1)
        )
        assert other.budget_.remaining == 1.0


def test_parameters_follow_the_conventions() -> None:
    from sklearn.base import clone
    from sklearn.neighbors import KernelDensity

    sampler = MollifiedDensity(2.0, estimator=KernelDensity(), proposals=64)
    assert sampler.get_params(deep=False) == {
        "epsilon": 2.0,
        "estimator": sampler.estimator,
        "proposals": 64,
        "random_state": None,
        "reference": None,
    }
    assert sampler.get_params()["estimator__kernel"] == "gaussian"
    assert sampler.set_params(estimator__bandwidth=0.3, epsilon=1.0) is sampler
    assert (sampler.epsilon, sampler.estimator.bandwidth) == (1.0, 0.3)
    other = clone(sampler.fit([[0.0], [1.0]]))
    assert not hasattr(other, "budget_")
    assert other.estimator is not sampler.estimator
    assert repr(MollifiedDensity()) == "MollifiedDensity(epsilon=1.0)"
    assert repr(MollifiedDensity(2.0, proposals=9)) == "MollifiedDensity(epsilon=2.0, proposals=9)"


@pytest.mark.parametrize("epsilon", [1.0, 0.25])
def test_the_guarantee_is_a_sentence_with_its_numbers(epsilon: float) -> None:
    sampler = MollifiedDensity(epsilon, estimator=Known(stats.norm())).fit([[0.0]])
    assert f"{epsilon}-locally differentially private" in sampler.guarantee()
    assert "whole data set" in sampler.guarantee()
