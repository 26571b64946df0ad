"""The page of known limits is true: each limit that runs in no time is tried."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

import turnout as tn
from turnout.errors import EstimatorError, ImplausibleSumsError, InvalidValueError

ROOT = Path(__file__).parents[1]


def words(path: str) -> str:
    """A page without its line breaks."""
    return " ".join((ROOT / path).read_text(encoding="utf-8").split())


LIMITS = words("docs/reference/limits.rst")


def test_the_device_refuses_what_both_pages_say() -> None:
    """What it makes reports of is compared for every kind in ``test_device_questions.py``."""
    assert "of every kind, permanent answers included" in LIMITS
    assert "It refuses personal probabilities" in LIMITS
    devices = words("docs/topics/devices.rst")
    assert "Personal probabilities are refused: a plan does not hold them" in devices
    assert "participation is personal" in words("tests/test_device.py")
    assert "with permanent answers" in words("tests/test_device_permanent.py")


def test_votes_that_move_are_not_found_out_and_large_changes_are() -> None:
    assert "votes that move from one item to another, are not found out" in LIMITS
    mechanism = tn.distributed.NoisyAggregation(3, users=40, epsilon=2.0)
    mechanism.estimate([20, 10, 10])
    mechanism.estimate([10, 20, 10])
    with pytest.raises(ImplausibleSumsError):
        mechanism.estimate([90, 10, 10])


def test_a_joint_table_has_so_many_cells_at_most() -> None:
    assert "up to 2^20 of them" in LIMITS
    columns = {"a": tn.Domain.from_integers(2**10), "b": tn.Domain.from_integers(2**10)}
    assert tn.JointTable(1.0, columns).domain.size == 2**20
    with pytest.raises(InvalidValueError):
        tn.JointTable(1.0, columns | {"b": tn.Domain.from_integers(2**10 + 1)})


def test_densities_of_draws_are_for_one_and_two_features() -> None:
    assert "for one and two features" in LIMITS
    reference = tn.samplers.StandardNormal(3)
    with pytest.raises(EstimatorError, match="3 dimensions"):
        tn.samplers.PopulationEstimate(np.zeros((5, 3)), reference, (-1.0, 1.0))


def test_optimizers_are_those_that_are_named() -> None:
    assert "Optimizers are SGD with momentum and schedules; there is no Adam" in LIMITS
    kinds = {
        name
        for name in tn.federated.__all__
        if inspect.isclass(kind := getattr(tn.federated, name))
        and issubclass(kind, tn.federated.Optimizer)
    }
    assert kinds == {"Optimizer", "SGD"}
