"""Which oracles there are to choose from, and how they are named."""

from __future__ import annotations

from typing import Any

import pytest

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency import compare_oracles
from turnout.frequency.attributes import PaddedOracle
from turnout.frequency.choice import make_oracle, registered
from turnout.frequency.ordered import HierarchicalCollection

COUNTS = [700, 200, 100]


def test_by_default_all_that_need_nothing_else_are_compared() -> None:
    # Padded and memoized oracles are registered too, once their modules are there.
    assert {PaddedOracle, tn.Memoized}.isdisjoint(registered().values())
    study = compare_oracles(COUNTS, epsilons=[1.0], repeats=2, seed=1)
    assert not study.refused
    assert {each.oracle for each in study.records} == {
        found.__name__ for found in registered().values()
    }


def test_names_and_classes_are_the_same() -> None:
    named, given = (
        compare_oracles(COUNTS, epsilons=[1.0], oracles=oracles, repeats=2, seed=1)
        for oracles in (["subset_selection"], [tn.SubsetSelection])
    )
    assert named.records == given.records


def test_what_an_oracle_refuses_is_left_out_and_said() -> None:
    study = compare_oracles(
        COUNTS, epsilons=[1.0, 50.0], oracles=[tn.DirectEncoding], repeats=2, seed=1
    )
    assert [each.epsilon for each in study.records] == [1.0]
    assert "at most 42" in study.refused["direct_encoding", 50.0]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilons": []}, InvalidValueError, "epsilons must hold a number, got none"),
        ({"epsilons": [0.0]}, InvalidValueError, "no oracle can be studied: epsilon must be"),
        ({"oracles": []}, InvalidValueError, "oracles must hold a class or a name"),
        ({"oracles": ["rappor"]}, InvalidValueError, r"oracles\[0\] must be one of"),
        ({"oracles": [3]}, InvalidTypeError, r"oracles\[0\] must be the class"),
        ({"oracles": [tn.Memoized]}, InvalidTypeError, "an epsilon and a domain alone"),
    ],
)
def test_bad_input_is_refused_by_name(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        compare_oracles(COUNTS, **arguments)


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
        lambda: tn.compare([5, 5], epsilons=[1.0], participations=[1.0], oracle=_at_five),
        lambda: tn.frequency.compare_shuffled([50, 50], epsilons=[1.0], oracle=_at_five),
        lambda: tn.planning.plan(epsilon=1.0, domain_size=3, nodes=1000, oracles=[_at_five]),
    ],
    ids=["hierarchy", "two rounds", "heavy hitters", "split", "study", "shuffled", "plan"],
)
def test_no_oracle_of_a_larger_epsilon_is_taken_from_a_function(use: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"must have at most the epsilon (1\.0|0\.5)"):
        use()
