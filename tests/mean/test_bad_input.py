"""Every bad argument of the mechanisms for means gets one exception that says what was expected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.errors import (
    CodeOutsideDomainError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
    TurnoutError,
)

BOTH = [tn.mean.Duchi, tn.mean.Piecewise]


@pytest.mark.parametrize("mechanism", BOTH)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be a finite number above 0"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": float("nan")}, "epsilon must be"),
        ({"epsilon": float("inf")}, "epsilon must be"),
        ({"epsilon": 43.0}, "at most 42"),
        ({"epsilon": 1e-12}, "epsilon must be at least 1e-9"),
        ({"epsilon": "1"}, "epsilon must be a real number"),
        ({"epsilon": 1.0, "bounds": (1.0, 1.0)}, "bounds must be two finite numbers"),
        ({"epsilon": 1.0, "bounds": (1.0, -1.0)}, "bounds must be"),
        ({"epsilon": 1.0, "bounds": (float("nan"), 1.0)}, "bounds must be"),
        ({"epsilon": 1.0, "bounds": (0.0, float("inf"))}, "bounds must be"),
        ({"epsilon": 1.0, "bounds": (-1.7e308, 1.7e308)}, "bounds must be"),
        ({"epsilon": 1.0, "bounds": (0.0,)}, "bounds must be a pair"),
        ({"epsilon": 1.0, "bounds": (0.0, 1.0, 2.0)}, "bounds must be a pair"),
        ({"epsilon": 1.0, "bounds": 3.0}, "bounds must be"),
        ({"epsilon": 1.0, "bounds": ("a", "b")}, "bounds must"),
        ({"epsilon": 1.0, "dimensions": 0}, "dimensions must be an integer from 1 to 65536"),
        ({"epsilon": 1.0, "dimensions": 2.0}, "dimensions must be an integer"),
        ({"epsilon": 1.0, "dimensions": True}, "dimensions must be an integer"),
        ({"epsilon": 1.0, "dimensions": 65_537}, "dimensions must be an integer"),
    ],
)
def test_parameters(mechanism: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        mechanism(**arguments)


@pytest.mark.parametrize("mechanism", BOTH)
@pytest.mark.parametrize("call", ["randomize", "collect", "variance"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.0, 1.5, 2.0], r"values\[1\] is not within the bounds \(-1.0, 1.0\) \(2 such"),
        ([0.0, float("nan")], r"values\[1\] is not within"),
        ([float("-inf")], r"values\[0\] is not within"),
        ([[0.0, 1.0]], "values must be one number for each node, got shape"),
        (0.5, "values must be one number"),
        (["0.5"], "values must be real numbers"),
        ([True, False], "values must be real numbers"),
        ([None], "values must be real numbers"),
        ([0.1j], "values must be real numbers"),
    ],
)
def test_values(mechanism: Any, call: str, values: Any, message: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        getattr(mechanism(1.0), call)(values)


@pytest.mark.parametrize("mechanism", BOTH)
def test_values_of_several_coordinates(mechanism: Any) -> None:
    made = mechanism(1.0, (0.0, 1.0), 3)
    rare = tn.Bernoulli(1e-9)
    with pytest.raises(InvalidValueError, match=r"values\[1, 2\] is not within the bounds"):
        made.collect([[0.0, 0.5, 1.0], [0.5, 0.5, 7.0]], participation=rare)
    with pytest.raises(InvalidValueError, match=r"values\[1, 2\] is not"):
        made.variance([[0.0, 0.5, 1.0], [0.5, 0.5, 7.0]])
    for values in ([0.0, 0.5, 1.0], [[0.0, 0.5]], np.zeros((2, 3, 1))):
        with pytest.raises(InvalidValueError, match="3 numbers for each node: shape"):
            made.collect(values)
    assert made.collect([]).nodes == 0
    assert made.collect(np.zeros((0, 3))).nodes == 0


@pytest.mark.parametrize("mechanism", BOTH)
def test_other_arguments(mechanism: Any) -> None:
    made = mechanism(1.0)
    with pytest.raises(InvalidTypeError, match="participation must be"):
        made.collect([0.0], participation="half")
    with pytest.raises(InvalidValueError, match="the same length, got 2 and 3"):
        made.collect([0.0] * 3, participation=tn.Personalized([0.5, 0.5]))
    for seed in (-1, 2**64):
        with pytest.raises(InvalidValueError, match="seed"):
            made.collect([0.0], seed=seed)
    with pytest.raises(InvalidTypeError, match="reports must be"):
        made.tally([0, 1])
    with pytest.raises(PlanMismatchError, match=r"epsilon 2.0 instead of 1.0"):
        made.tally(mechanism(2.0).randomize([0.0]))
    with pytest.raises(PlanMismatchError, match="participation"):
        made.collect([0.0]).merge(made.collect([0.0], participation=tn.Bernoulli(0.5)))
    with pytest.raises(InvalidTypeError, match="other must be a MeanTally"):
        made.collect([0.0]).merge(3)
    with pytest.raises(TypeError):
        made.collect([0.0]) + 3
    tally = made.collect([0.0, 0.5])
    with pytest.raises(InvalidValueError, match="method must be one of 'hajek'"):
        tally.estimate("median")
    estimate = tally.estimate()
    for level in (0.0, 1.0, float("nan")):
        with pytest.raises(InvalidValueError, match="level"):
            estimate.interval(level)
    with pytest.raises(InvalidValueError, match="method"):
        estimate.interval(method="exact")
    with pytest.raises(InvalidValueError, match="simultaneous"):
        estimate.interval(simultaneous="both")
    with pytest.raises(InvalidTypeError, match="truth must hold real numbers"):
        estimate.interval().contains("0")
    for arguments in (
        (made, tn.Everyone(), []),
        (made, tn.Everyone(), [2.0]),
        (made, tn.Personalized([0.5]), [0.0, 0.0]),
        (made, 3, [0.0]),
        (3, tn.Everyone(), [0.0]),
    ):
        with pytest.raises(TurnoutError):
            tn.estimator_variance(*arguments[:2], values=arguments[2])
    with pytest.raises(InvalidValueError, match="method"):
        tn.estimator_variance(made, tn.Everyone(), values=[0.0], method="T")
    with pytest.raises(InvalidValueError, match="values must be given for a mean"):
        tn.estimator_variance(made, tn.Everyone(), true_counts=[1])


def test_reports() -> None:
    bit, sampled = tn.mean.Duchi(1.0), tn.mean.Piecewise(6.0, dimensions=3)
    some = tn.Bernoulli(0.5)
    with pytest.raises(CodeOutsideDomainError, match=r"codes\[1\] must be a cell from 0 to 1"):
        tn.Reports(bit, some, [0, 2], 5)
    with pytest.raises(InvalidValueError, match=r"codes\[0\] is out of range"):
        tn.Reports(bit, some, [-1], 5)
    with pytest.raises(InvalidTypeError, match="codes must hold integers"):
        tn.Reports(bit, some, [0.5], 5)
    with pytest.raises(InvalidValueError, match="nodes must be at least the number of reports 2"):
        tn.Reports(bit, some, [0, 1], 1)
    with pytest.raises(InvalidValueError, match="nodes must equal the number of reports 2 when"):
        tn.Reports(bit, tn.Everyone(), [0, 1], 3)
    with pytest.raises(InvalidTypeError, match="codes must be an array of integers with rows of 4"):
        tn.Reports(sampled, some, [[0, 1]], 3)
    with pytest.raises(InvalidValueError, match=r"coordinates of codes\[0\] must be ascending"):
        tn.Reports(sampled, some, [[1, 1, 0, 1]], 3)
    with pytest.raises(CodeOutsideDomainError, match=r"codes\[0, 1\] must be a coordinate from 0"):
        tn.Reports(sampled, some, [[1, 3, 0, 1]], 3)
    with pytest.raises(CodeOutsideDomainError, match=r"codes\[0, 3\] must be a cell from 0"):
        tn.Reports(sampled, some, [[1, 2, 0, sampled.cells]], 3)
    with pytest.raises(InvalidValueError, match="belong to Personalized"):
        tn.Reports(bit, some, [0], 3, probabilities=[0.5])
    with pytest.raises(InvalidValueError, match="needed with personal participation"):
        tn.Reports(bit, tn.Personalized([0.5]), [0], 3)
    sums = bit.randomize([0.0], participation=tn.Personalized([1.0])).design
    with pytest.raises(InvalidValueError, match="one entry for each of the 1 reports"):
        tn.Reports(bit, tn.Personalized([0.5]), [0], 3, probabilities=[0.5, 0.5], design=sums)


@pytest.mark.parametrize(
    ("received", "nodes", "moments", "weighted"),
    [
        (3, 2, [(3, 1, 1)], None),
        (2, 2, [(1, 1, 1)], None),
        (2, 2, [(2, 3, 3)], None),
        (2, 2, [(2, 1, 0)], None),
        (2, 2, [(2, 1, 2)], None),
        (2, 2, [(2, 1)], None),
        (2, 2, [(2, 1, 1), (2, 1, 1)], None),
        (2, 2, [(2, -1, 1)], None),
        (2, 2, [(2, 1.0, 1)], None),
        (2, 2, 7, None),
        (2, 2, [(2, 1, 1)], [(0,) * 6]),
    ],
)
def test_tallies(received: int, nodes: int, moments: Any, weighted: Any) -> None:
    plan = tn.Plan(tn.mean.Duchi(1.0), tn.Bernoulli(0.5))
    with pytest.raises((InvalidValueError, InvalidTypeError)):
        tn.mean.MeanTally(plan, moments, received, nodes, weights=weighted)


def test_weighted_tallies() -> None:
    made = tn.mean.Duchi(1.0)
    drawn = made.collect([0.0], participation=tn.Personalized([1.0]))
    plan, design = tn.Plan(made, tn.Personalized([0.5])), drawn.design
    with pytest.raises(InvalidValueError, match="weights and design must be given"):
        tn.mean.MeanTally(plan, [(1, 1, 1)], 1, 1)
    with pytest.raises(InvalidValueError, match=r"weights\[0\] must be sums over 1 reports"):
        tn.mean.MeanTally(plan, [(1, 1, 1)], 1, 1, weights=[(1, 1, 1, 1, 1, 1)], design=design)
    unit = 1 << 33
    weights = [(unit, unit, unit, 2 * unit, 2 * unit, 2 * unit)]
    tally = tn.mean.MeanTally(plan, [(1, 1, 1)], 1, 1, weights=weights, design=design)
    assert tally.estimate("horvitz_thompson").mean == pytest.approx(2 * float(made._scale))


@pytest.mark.parametrize(
    ("place", "change"),
    [(0, -1), (0, 10**30), (1, 10**40), (2, 10**60), (4, 10**60), (5, 2**255)],
)
def test_impossible_weights_are_refused(place: int, change: int) -> None:
    nodes = tn.Personalized([0.5] * 40 + [0.25] * 60)
    for made in (tn.mean.Duchi(1.0), tn.mean.Piecewise(1.0)):
        tally = made.collect([0.5] * 100, participation=nodes, seed=1)
        row = list(tally.weights[0])
        row[place] = max(row[place] + change, 0)
        if place == 0 and change < 0:
            row[0] = (tally.sums[0][0] << 32) - 1
        with pytest.raises(InvalidValueError, match=r"weights\[0\] must be sums over"):
            tn.mean.MeanTally(
                tally.plan,
                tally.sums,
                tally.received,
                tally.nodes,
                weights=[row],
                design=tally.design,
            )


def test_truth_values_among_numbers_are_refused() -> None:
    one, two = tn.mean.Duchi(1.0, bounds=(0, 10)), tn.mean.Duchi(1.0, bounds=(0, 10), dimensions=2)
    for values in ([5.0, True], (5, np.True_)):
        with pytest.raises(InvalidTypeError, match=r"values\[1\] must be a number, got"):
            one.collect(values)
    with pytest.raises(InvalidTypeError, match=r"values\[1\]\[0\] must be a number, got a .* bool"):
        two.collect([[1.0, 2.0], [True, 3.0]])
    with pytest.raises(InvalidTypeError, match=r"values\[1\] must be a number, got a .* bool"):
        tn.DirectEncoding(1.0, 3).collect([1, True])
    with pytest.raises(
        InvalidTypeError, match=r"probabilities\[0\] must be a number, got a .* bool"
    ):
        tn.Personalized([True, 0.5])
