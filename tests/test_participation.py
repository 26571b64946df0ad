"""Participation: who takes part, as values and in plans."""

from __future__ import annotations

import copy
import json
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

ALL = [tn.Everyone(), tn.Bernoulli(0.25), tn.Personalized([0.5, 1.0])]
NAMES = ["everyone", "bernoulli", "personalized"]


@pytest.mark.parametrize(("given", "name"), list(zip(ALL, NAMES, strict=True)), ids=NAMES)
def test_each_way_to_take_part_has_its_name(given: tn.Participation, name: str) -> None:
    assert isinstance(given, tn.Participation)
    assert given.name == name
    assert given.to_dict()["kind"] == name


def test_rates_are_what_was_given() -> None:
    assert tn.Everyone().rate == tn.Everyone().uniform_rate == 1.0
    assert tn.Bernoulli(0.3).rate == tn.Bernoulli(0.3).uniform_rate == 0.3
    assert tn.Personalized([0.3]).uniform_rate is None


@pytest.mark.parametrize(
    "rate", [1, 1.0, 0.25, 5e-324, np.float32(0.5), np.int64(1), Fraction(1, 3), np.array(0.5)]
)
def test_any_real_number_in_the_range_is_a_rate(rate: Any) -> None:
    kept = tn.Bernoulli(rate).rate
    assert type(kept) is float
    assert kept == float(rate)


def test_equality_and_hashes_follow_class_and_probabilities() -> None:
    groups: list[list[tn.Participation]] = [
        [tn.Everyone(), tn.Everyone()],
        [tn.Bernoulli(1), tn.Bernoulli(1.0), tn.Bernoulli(np.float64(1))],
        [tn.Bernoulli(0.5), tn.Bernoulli(np.float64(0.5))],
        [tn.Personalized([0.5, 1]), tn.Personalized(np.array([0.5, 1]))],
        [tn.Personalized([1, 0.5])],
        [tn.Personalized([0.5])],
        [tn.Personalized([])],
        [tn.Plan(tn.DirectEncoding(1.0, 2), tn.Personalized([0.5])).participation],
    ]
    for group in groups:
        for other_group in groups:
            for one in group:
                for other in other_group:
                    assert (one == other) == (group is other_group)
        assert len({hash(one) for one in group}) == 1
    assert tn.Everyone() != "everyone"


def test_each_shows_how_it_is_made() -> None:
    assert repr(tn.Everyone()) == "Everyone()"
    assert repr(tn.Bernoulli(0.1)) == "Bernoulli(0.1)"
    assert repr(tn.Personalized([0.25, 1, 0.5])) == "Personalized(3 nodes, 0.25 to 1)"
    assert repr(tn.Personalized([])) == "Personalized(0 nodes)"


def test_none_can_be_changed() -> None:
    for given, name in zip(ALL, ["rate", "rate", "probabilities"], strict=True):
        with pytest.raises(AttributeError):
            setattr(given, name, 0.5)
        with pytest.raises(AttributeError):
            given.anything = 1  # type: ignore[attr-defined]


def test_probabilities_are_copied_and_read_only() -> None:
    array = np.array([0.5, 1.0])
    personal = tn.Personalized(array)
    array[0] = 0.25
    assert personal.probabilities.tolist() == [0.5, 1.0]
    with pytest.raises(ValueError, match="read-only"):
        personal.probabilities[0] = 0.25


@pytest.mark.parametrize("kind", ["f2", "f4", ">f8", "i1", "u8", "O"])
def test_probabilities_of_every_real_type_become_native_floats(kind: str) -> None:
    personal = tn.Personalized(np.array([1, 9, 1, 9], dtype=kind)[::2])
    assert personal.probabilities.dtype == np.float64
    assert personal.probabilities.dtype.isnative
    assert personal.probabilities.flags.c_contiguous
    assert personal.probabilities.tolist() == [1.0, 1.0]


def test_the_smallest_probability_is_two_to_the_minus_thirty() -> None:
    smallest = tn.Personalized.minimum
    assert smallest == 2.0**-30
    assert tn.Personalized([smallest]).probabilities[0] == smallest
    with pytest.raises(InvalidValueError, match=r"probabilities\[1\] must be in \[2\^-30, 1\]"):
        tn.Personalized([1.0, np.nextafter(smallest, 0)])


@pytest.mark.parametrize("given", ALL, ids=NAMES)
@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_are_equal_and_as_frozen(given: tn.Participation, duplicate: Any) -> None:
    other = duplicate(given)
    assert other == given
    assert type(other) is type(given)
    if isinstance(other, tn.Personalized):
        assert not other.probabilities.flags.writeable


@pytest.mark.parametrize("given", ALL, ids=NAMES)
def test_plans_keep_all_but_the_probabilities_of_single_nodes(given: tn.Participation) -> None:
    description = json.loads(json.dumps(given.to_dict()))
    assert "probabilities" not in description
    rebuilt = tn.Participation.from_dict(description)
    assert rebuilt == given._in_plan()
    assert rebuilt.to_dict() == given.to_dict()
    if not isinstance(given, tn.Personalized):
        assert rebuilt == given


def test_a_plan_does_not_hold_the_probabilities() -> None:
    kept = tn.Personalized([0.5])._in_plan()
    assert kept.name == "personalized"
    assert kept.uniform_rate is None
    assert not hasattr(kept, "probabilities")
    assert kept == tn.Personalized([0.25, 1.0])._in_plan()
    assert repr(kept) == "Personalized(...)"


@pytest.mark.parametrize(
    "description",
    [
        None,
        "everyone",
        {},
        {"kind": "nobody"},
        {"kind": None},
        {"kind": ["everyone"]},
        {"kind": "everyone", "rate": 1.0},
        {"kind": "bernoulli"},
        {"kind": "bernoulli", "rate": None},
        {"kind": "bernoulli", "rate": "0.5"},
        {"kind": "bernoulli", "rate": True},
        {"kind": "bernoulli", "rate": 0.0},
        {"kind": "bernoulli", "rate": 1.5},
        {"kind": "bernoulli", "rate": float("nan")},
        {"kind": "bernoulli", "rate": 0.5, "more": 1},
        {"kind": "personalized", "probabilities": [0.5]},
        {"kind": 10**5000},
    ],
)
def test_anything_else_is_not_the_description_of_a_participation(description: Any) -> None:
    with pytest.raises(CorruptDataError, match="not the description of a participation"):
        tn.Participation.from_dict(description)


@pytest.mark.parametrize("rate", [0, 0.0, -0.0, -1, 1.0000001, 2, float("nan"), float("inf")])
def test_a_rate_outside_the_range_is_refused(rate: float) -> None:
    with pytest.raises(InvalidValueError, match=r"rate must be a probability in \(0, 1\], got"):
        tn.Bernoulli(rate)
    with pytest.raises(InvalidValueError, match=r"^participation must be a probability in"):
        tn.DirectEncoding(1.0, 2).collect([0, 1], participation=rate)


@pytest.mark.parametrize("rate", [None, "0.5", True, [0.5], 1j, np.array([0.5])])
def test_a_rate_that_is_no_number_is_refused(rate: Any) -> None:
    with pytest.raises(InvalidTypeError, match="rate must be a real number, got"):
        tn.Bernoulli(rate)
