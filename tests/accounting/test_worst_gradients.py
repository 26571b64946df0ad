"""The search for worse gradients measures what integration says, and finds what is known."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tests.loading import load

from turnout.accounting import RandomParticipation
from turnout.accounting.reached import Client


@pytest.fixture(scope="module")
def search() -> ModuleType:
    """The example."""
    pytest.importorskip("jax")
    script = Path(__file__).parents[2] / "examples" / "federated" / "worst_gradients.py"
    if not script.is_file():
        pytest.skip("the examples are not here")
    return load(script)


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_the_search_measures_what_integration_says(search: ModuleType, direction: str) -> None:
    import jax

    mechanism, epsilon = RandomParticipation(0.3, 0.4, 4, 1.2), 0.25
    # Two groups in three dimensions, all at 60 degrees and one way: known on a plane.
    one_way = np.array([math.cos(math.pi / 3), 0.6 * math.sqrt(0.75), 0.8 * math.sqrt(0.75)])
    task = search.problem(mechanism, epsilon, direction, [1, 3])
    random = np.random.default_rng(5)
    once = jax.jit(lambda raw, points: search.values(raw, points, task))
    value, error = search.measured(np.array([one_way, one_way]), task, once, random, 20_000)
    exact = Client(0.3, 0.4, 4, 1.2, 60.0)._tail(direction, np.array([epsilon])).delta[0]
    assert error < 0.06 * exact
    # Boxes lose up to half a percent.
    assert abs(value - exact) < 5.0 * error + 0.005 * exact
    assert value < mechanism.delta(epsilon, direction)


def test_the_search_finds_the_angle_that_is_known(search: ModuleType) -> None:
    mechanism, epsilon = RandomParticipation(0.01, 0.1, 10, 1.19532), 0.5
    task = search.problem(mechanism, epsilon, "remove", [10])
    effort = search.Effort(steps=25, points=400, climbs=1, final=20_000)
    value, error, _ = search.climbed(task, 2, np.random.default_rng(2), effort)
    known = mechanism.compose(1, "remove").delta_bounds(epsilon).low
    assert value > known - 4.0 * error
    assert value < mechanism.delta(epsilon, "remove")
