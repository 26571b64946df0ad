"""What no plan can meet, and what is no question for a plan."""

from __future__ import annotations

import math
from typing import Any

import pytest

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.planning.planner import plan


def test_what_a_stated_participation_cannot_meet_says_what_can() -> None:
    given: dict[str, Any] = {"epsilon": 1.0, "domain_size": 50, "nodes": 100_000}
    words = r"value must be at least 0\.\d+, the rmse if 20 % of the 100,000 nodes report"
    with pytest.raises(InvalidValueError, match=words) as caught:
        plan(**given, participation=0.2, value=0.001)
    named = float(str(caught.value).split()[5].rstrip(","))
    assert plan(**given, participation=0.2, value=named).error <= named
    with pytest.raises(InvalidValueError, match="budget must be at least 20000, for 20,000 exp"):
        plan(**given, participation=0.2, budget=100)
    assert plan(**given, participation=0.2, budget=20_000).cost <= 20_000
    with pytest.raises(InvalidValueError, match=r"participation must be at least 0\.00025, for 25"):
        plan(**given, participation=1e-4)
    assert plan(**given, participation=0.00025).expected_reports == 25


def test_what_cannot_be_met_says_what_can() -> None:
    given: dict[str, Any] = {"epsilon": 1.0, "domain_size": 50, "nodes": 1000}
    best = plan(**given).error
    with pytest.raises(InvalidValueError, match="value must be at least") as caught:
        plan(**given, value=0.001)
    named = float(str(caught.value).split()[5].rstrip(","))
    assert best <= named <= best * 1.001
    assert plan(**given, value=named).error <= named
    with pytest.raises(InvalidValueError, match="budget must be at least") as caught:
        plan(**given, value=named * 1.2, budget=30)
    enough = float(str(caught.value).split()[5])
    assert plan(**given, value=named * 1.2, budget=enough).cost <= enough
    with pytest.raises(InvalidValueError, match="budget must be at least 25, for 25 reports"):
        plan(**given, budget=10)
    with pytest.raises(InvalidValueError, match="budget must be at least 20, for 20 reports"):
        plan(**{**given, "nodes": 20}, budget=10)
    with pytest.raises(InvalidValueError, match=r"report_bits must be at least \d+ \("):
        plan(**given, report_bits=1, oracles="direct_encoding")
    with pytest.raises(InvalidValueError, match="no oracle takes epsilon and domain_size"):
        plan(**{**given, "epsilon": 100.0}, oracles="direct_encoding")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": 0.0}, InvalidValueError, "epsilon must be a finite number above 0"),
        ({"epsilon": "1"}, InvalidTypeError, "epsilon must be a number, a tuple"),
        ({"epsilon": []}, InvalidValueError, "epsilon must hold a number"),
        (
            {"epsilon": (1.0, 2.0, 3.0)},
            InvalidValueError,
            r"epsilon as a range must be \(low",
        ),
        ({"epsilon": (2.0, 1.0)}, InvalidValueError, "epsilon as a range"),
        ({"epsilon": [1.0, "2"]}, InvalidTypeError, "epsilon must be a real number"),
        ({"domain_size": 1}, InvalidValueError, "domain_size must be an integer from 2"),
        ({"nodes": 0}, InvalidValueError, "nodes must be an integer from 1"),
        ({"nodes": 1e6}, InvalidTypeError, "nodes must be an integer"),
        ({"participation": 1.5}, InvalidValueError, "participation must be"),
        ({"participation": "all"}, InvalidTypeError, "participation must be"),
        (
            {"participation": tn.Personalized([0.5, 0.5])},
            InvalidValueError,
            "participation must be one rate for all nodes",
        ),
        ({"target": "mse"}, InvalidValueError, "target must be one of 'rmse', 'max_error'"),
        ({"value": 0.0}, InvalidValueError, "value must be a finite number above 0"),
        ({"value": math.nan}, InvalidValueError, "value must be a finite"),
        ({"budget": -1}, InvalidValueError, "budget must be a finite number above 0"),
        ({"cost_per_report": -1}, InvalidValueError, "cost_per_report must be a number"),
        ({"cost_per_report": 0.0}, InvalidValueError, "must not both be 0"),
        ({"cost_per_bit": math.inf}, InvalidValueError, "cost_per_bit must be .* finite"),
        ({"confidence": 1.0}, InvalidValueError, "confidence must be a level"),
        ({"report_bits": 0}, InvalidValueError, "report_bits must be"),
        ({"frequencies": [0.5, 0.5]}, InvalidValueError, "frequencies must have one number"),
        ({"frequencies": [0.5] * 3}, InvalidValueError, "frequencies must add up to one"),
        ({"frequencies": [-0.5, 1, 0.5]}, InvalidValueError, r"frequencies\[0\] must be at l"),
        ({"oracles": [None]}, InvalidTypeError, r"oracles\[0\] must be the class"),
    ],
)
def test_bad_input_is_refused_by_name(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        plan(**{"epsilon": 1.0, "domain_size": 3, "nodes": 1000, **arguments})


def test_bad_checks_are_refused() -> None:
    proposal = plan(epsilon=1.0, domain_size=3, nodes=1000)
    with pytest.raises(InvalidValueError, match="runs must be"):
        proposal.simulate(1)
    with pytest.raises(InvalidValueError, match="seed must be"):
        proposal.simulate(10, seed=-1)
    with pytest.raises(InvalidValueError, match="rate must be a probability"):
        proposal._error_at(0.0, proposal.oracle)
