"""Mechanisms survive their descriptions, copies and pickles, and cannot be changed."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from fractions import Fraction
from typing import Any

import pytest

import turnout as tn
from turnout.accounting import (
    CentralShuffling,
    CountSampling,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    FixedSizeBatches,
    GaussianMechanism,
    LocalSampling,
    Mechanism,
    NoisySums,
    RandomCheckIns,
    RandomParticipation,
    SampleAndThreshold,
    Shuffled,
    ShuffledBatches,
    SkellamNoise,
    SummedDiscreteGaussianNoise,
    TwoStageCountSampling,
    VariationRatio,
    WeakClientSampling,
)
from turnout.accounting.registry import mechanism_from_dict
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

LABELLED = tn.DirectEncoding(1.0, tn.Domain(["never", "once", "often"]))
RATIO = VariationRatio(Fraction(3), Fraction(1, 3), Fraction(2))
BLANKET = VariationRatio(Fraction(3), Fraction(1, 3), Fraction(3), blanket=Fraction(1, 2))

MECHANISMS: list[Mechanism] = [
    RandomParticipation(0.001, 0.1, local_size=30, noise_multiplier=2.5),
    WeakClientSampling(0.5, 0.1, 1.0),
    CentralShuffling(0.5, 0.1, 1.0),
    LocalSampling(1 / 3, 1e-3),
    GaussianMechanism(0.1),
    FixedSizeBatches(10, 300, 1.5),
    ShuffledBatches(30, 1.5),
    RandomCheckIns(0.25, 30, 1.5),
    CountSampling(0.3, 12),
    SampleAndThreshold(0.25, 20),
    DiscreteLaplaceNoise(2.5),
    DiscreteGaussianNoise(1.1),
    SkellamNoise(7.0),
    SummedDiscreteGaussianNoise(0.2, pieces=90),
    NoisySums("discrete_laplace", 2.5),
    NoisySums("discrete_gaussian", 2.5, rate=0.3, largest=4),
    NoisySums("discrete_laplace", 2.5, rate=0.3, none_counted=True),
    TwoStageCountSampling(0.3, 20, 5, gamma=2.5, floor=12, dummies=3),
    Shuffled(LABELLED, 1000),
    Shuffled(tn.DirectEncoding(0.5, 7), 10, tn.Bernoulli(0.3)),
    Shuffled(RATIO, 10_000),
    Shuffled(BLANKET, 100, tn.Bernoulli(0.25)),
    Shuffled(VariationRatio._of_any(2.718281828459045), 100),
]


def described(mechanism: Mechanism) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(json.dumps(mechanism.to_dict(), allow_nan=False))
    return result


def test_every_public_mechanism_is_looked_at() -> None:
    public = {
        value
        for name in tn.accounting.__all__
        if isinstance(value := getattr(tn.accounting, name), type) and issubclass(value, Mechanism)
    }
    assert public - {Mechanism} == {type(mechanism) for mechanism in MECHANISMS}


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_a_description_through_json_gives_an_equal_mechanism(mechanism: Mechanism) -> None:
    again = mechanism_from_dict(described(mechanism))
    assert type(again) is type(mechanism)
    assert again == mechanism
    assert hash(again) == hash(mechanism)
    assert repr(again) == repr(mechanism)
    assert again.to_dict() == mechanism.to_dict()
    assert again.delta(0.1) == mechanism.delta(0.1)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_copies_and_pickles_are_equal(mechanism: Mechanism) -> None:
    copies = [copy.copy(mechanism), copy.deepcopy(mechanism)]
    copies += [
        pickle.loads(pickle.dumps(mechanism, protocol))
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
    ]
    for again in copies:
        assert again == mechanism
        assert hash(again) == hash(mechanism)
        assert again.delta(0.1) == mechanism.delta(0.1)


def test_mechanisms_are_equal_by_kind_and_parameters_only() -> None:
    assert len(set(MECHANISMS)) == len(MECHANISMS)
    assert WeakClientSampling(0.5, 0.1, 1.0) != CentralShuffling(0.5, 0.1, 1.0)
    assert GaussianMechanism(1) == GaussianMechanism(1.0)
    assert hash(GaussianMechanism(1)) == hash(GaussianMechanism(1.0))
    assert DiscreteLaplaceNoise(2.0) != DiscreteGaussianNoise(2.0)
    assert Shuffled(LABELLED, 1000) != Shuffled(tn.DirectEncoding(1.0, 3), 1000)
    assert Shuffled(LABELLED, 9, tn.Bernoulli(0.5)) != Shuffled(LABELLED, 9)
    assert GaussianMechanism(1.0) != 1.0


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_what_a_mechanism_shows_makes_an_equal_one(mechanism: Mechanism) -> None:
    names = {
        **{kind.__name__: kind for kind in map(type, MECHANISMS)},
        **{name: getattr(tn, name) for name in ("DirectEncoding", "Domain", "Everyone")},
        "Bernoulli": tn.Bernoulli,
        "VariationRatio": VariationRatio,
        "Fraction": Fraction,
    }
    if isinstance(mechanism, Shuffled) and mechanism.oracle == LABELLED:
        assert repr(mechanism).startswith("Shuffled(oracle=DirectEncoding(epsilon=1.0, domain=")
    else:
        assert eval(repr(mechanism), names) == mechanism


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_parameters_cannot_be_changed_in_place(mechanism: Mechanism) -> None:
    for field in dataclasses.fields(mechanism):  # type: ignore[arg-type]
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(mechanism, field.name, 1)
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(mechanism, field.name)


def test_replace_changes_a_copy_and_checks_it() -> None:
    training = RandomParticipation(0.001, 0.1, 30, 2.5)
    changed = training.replace(local_size=5, noise_multiplier=3)
    assert changed == RandomParticipation(0.001, 0.1, 5, 3.0)
    assert training == RandomParticipation(0.001, 0.1, 30, 2.5)
    assert training.replace() == training
    shuffled = Shuffled(LABELLED, 1000).replace(participation=tn.Bernoulli(0.5))
    assert shuffled == Shuffled(LABELLED, 1000, tn.Bernoulli(0.5))
    with pytest.raises(InvalidValueError, match=r"parameter must be one of .*'sigma'"):
        training.replace(sigma=1.0)
    with pytest.raises(InvalidValueError, match=r"sample_rate must be .*1\.5"):
        training.replace(sample_rate=1.5)
    with pytest.raises(InvalidTypeError, match="local_size must be"):
        training.replace(local_size=1.5)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_every_missing_or_additional_entry_is_refused(mechanism: Mechanism) -> None:
    whole = described(mechanism)
    for name in whole:
        with pytest.raises(CorruptDataError, match="not the description of a"):
            mechanism_from_dict({key: value for key, value in whole.items() if key != name})
    for name in ("rounds", "Mechanism", ""):
        with pytest.raises(CorruptDataError, match="not the description of a"):
            mechanism_from_dict({**whole, name: 1})


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("wrong", [None, "1.0", [], {}, -1, True, 1e400, "1/0"], ids=repr)
def test_an_entry_that_is_no_parameter_is_refused(mechanism: Mechanism, wrong: Any) -> None:
    whole = described(mechanism)
    # Votes have no largest number, and whether none is counted is yes or no.
    right = {"largest"} if wrong is None else {"none_counted"} if wrong is True else set()
    for name in whole.keys() - right:
        with pytest.raises(CorruptDataError, match="not the description of a"):
            mechanism_from_dict({**whole, name: wrong})


@pytest.mark.parametrize(
    "description",
    [
        None, 3, "GaussianMechanism", [], {}, b"{}", {"mechanism": None},
        {"mechanism": "Mechanism"},
        {"mechanism": "mechanism_from_dict", "description": {}},
        {"mechanism": ["GaussianMechanism"], "noise_multiplier": 1.0},
        {"noise_multiplier": 1.0}, {"mechanism": "GaussianMechanism", 1: 1.0},
        {"mechanism": "GaussianMechanism", "noise_multiplier": 0.0},
        {"mechanism": "CountSampling", "rate": 0.5, "floor": 1.5},
        {"mechanism": "LocalSampling", "sample_rate": 1.5, "noise_multiplier": 1.0},
    ],
    ids=repr,
)  # fmt: skip
def test_what_describes_no_mechanism_is_refused(description: Any) -> None:
    with pytest.raises(CorruptDataError, match="not the description of a mechanism"):
        mechanism_from_dict(description)


@pytest.mark.parametrize(
    "oracle",
    [
        {"ratio": "3", "total_variation": "1/3"},
        {"ratio": "3", "total_variation": "1/3", "blanket_ratio": 2},
        {"ratio": "3", "total_variation": "1/3", "blanket_ratio": "1/0"},
        {"ratio": "three", "total_variation": "1/3", "blanket_ratio": "2"},
        {"ratio": "1", "total_variation": "1/3", "blanket_ratio": "1"},
        {"ratio": "nan", "total_variation": "1/3", "blanket_ratio": "1"},
        {"ratio": "3", "total_variation": "2/3", "blanket_ratio": "2"},
        {"ratio": "3", "total_variation": "1/3", "blanket_ratio": "2", "blanket": None},
        {"ratio": "3", "total_variation": "1/3", "blanket_ratio": "2", "blanket": "2"},
        {"ratio": "3", "total_variation": "1/3", "blanket_ratio": "2", "other": "1"},
        {"name": "unheard_of", "epsilon": 1.0, "domain": tn.Domain(["a", "b"]).to_dict()},
        {**LABELLED.to_dict(), "epsilon": -1.0},
        {**LABELLED.to_dict(), "domain": None},
        {**LABELLED.to_dict(), "seed": 1},
    ],
    ids=repr,
)
def test_a_broken_oracle_is_refused(oracle: dict[str, Any]) -> None:
    with pytest.raises(CorruptDataError, match="not the description of a"):
        mechanism_from_dict({**described(Shuffled(RATIO, 10)), "oracle": oracle})


@pytest.mark.parametrize(
    "participation",
    [
        {"kind": "nobody"}, {"kind": "everyone", "rate": 1.0}, {"kind": "bernoulli"},
        {"kind": "bernoulli", "rate": 0.0}, {"kind": "bernoulli", "rate": 1.5},
        {"kind": "bernoulli", "rate": "0.5"}, {"kind": "personalized"},
    ],
    ids=repr,
)  # fmt: skip
def test_a_participation_that_cannot_be_accounted_for_is_refused(
    participation: dict[str, Any],
) -> None:
    with pytest.raises(CorruptDataError, match="not the description of a"):
        mechanism_from_dict({**described(Shuffled(RATIO, 10)), "participation": participation})
