"""Which oracles there are to choose from, and how they are named."""

from __future__ import annotations

from typing import Any

import pytest

import turnout as tn
from turnout.errors import InvalidValueError
from turnout.frequency.choice import make_oracle
from turnout.frequency.ordered import HierarchicalCollection


def test_an_oracle_can_be_named_wherever_one_is_made() -> None:
    made = make_oracle("oracle", "subset_selection", 1.0, tn.Domain.from_integers(9))
    assert made == tn.SubsetSelection(1.0, 9)
    split = tn.SplitBudget(1.0, {"a": 4, "b": 9}, oracle={"a": "auto", "b": "hadamard_response"})
    assert isinstance(split.oracles["b"], tn.HadamardResponse)
    rounds: dict[str, Any] = {
        "epsilon": 6.0,
        "first_rate": 0.05,
        "second_rate": 0.05,
        "low": 0.02,
        "high": 0.5,
    }
    for make in (
        lambda name: tn.HeavyHitters(2.0, bits=8, oracle=name),
        lambda name: tn.SampledAttribute(1.0, {"a": 4, "b": 9}, oracle=name),
        lambda name: tn.TwoRoundCollection(4, **rounds, oracle=name),
    ):
        make("subset_selection")
        with pytest.raises(InvalidValueError, match=r"oracle must be one of .*'subset_selection'"):
            make("rappor")


def _at_five(_: float, domain: Any) -> tn.FrequencyOracle:
    return tn.DirectEncoding(5.0, domain)


@pytest.mark.parametrize(
    "use",
    [
        lambda: HierarchicalCollection(1.0, 16, oracle=_at_five),
        lambda: tn.TwoRoundCollection(
            4, epsilon=1.0, first_rate=0.1, second_rate=0.1, low=0.05, high=0.5, oracle=_at_five
        ),
        lambda: tn.HeavyHitters(1.0, bits=8, oracle=_at_five),
        lambda: tn.SplitBudget(2.0, {"a": 3, "b": 3}, oracle=_at_five),
        lambda: tn.plan(epsilon=1.0, domain_size=3, nodes=1000, oracles=[_at_five]),
    ],
    ids=["hierarchy", "two rounds", "heavy hitters", "split", "plan"],
)
def test_no_oracle_of_a_larger_epsilon_is_taken_from_a_function(use: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"must have at most the epsilon (1\.0|0\.5)"):
        use()
