"""What other packages have written down of a training."""

from __future__ import annotations

import json
from typing import Any

import pytest

from turnout.accounting import (
    FixedSizeBatches,
    GaussianMechanism,
    LocalSampling,
    from_flower,
    from_opacus,
)
from turnout.errors import InvalidTypeError, InvalidValueError

#: What ``RDPAccountant.state_dict()`` of Opacus 1.5 gives, through JSON.
OPACUS = '{"history": [[1.1, 0.004266666666666667, 1000], [0.9, 0.01, 1]], "mechanism": "rdp"}'

FLOWER: dict[str, Any] = {
    "schema_version": 1,
    "backend": "rdp",
    "config": {
        "target_delta": 1e-5,
        "population_size": 1000,
        "neighboring_relation": "replace-one",
        "sampling_method": "without-replacement",
        "max_epsilon": None,
    },
    "orders": [2.0, 3.0],
    "compositions": [
        {
            "event": {"noise_multiplier": 2.0, "sample_size": 10, "population_size": 1000},
            "count": 100,
        },
        {
            "event": {"noise_multiplier": 3.0, "sample_size": 1000, "population_size": 1000},
            "count": 1,
        },
    ],
}


def changed(method: str, **event: Any) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(json.dumps(FLOWER))
    state["config"]["sampling_method"] = method
    state["compositions"][0]["event"].update(event)
    return state


def test_steps_of_opacus_are_poisson_sampling() -> None:
    state = json.loads(OPACUS)
    parts = ((LocalSampling(0.004266666666666667, 1.1), 1000), (LocalSampling(0.01, 0.9), 1))
    for given in (state, state["history"], [tuple(entry) for entry in state["history"]]):
        training = from_opacus(given)
        assert training.parts == parts
        assert training.adjacency == "add_or_remove"


def test_rounds_of_flower_are_what_is_done_in_them() -> None:
    fixed = from_flower(FLOWER)
    assert fixed.parts == (
        (FixedSizeBatches(10, 1000, 2.0), 100),
        # All are called: one that is replaced moves the sum by two norms.
        (GaussianMechanism(1.5), 1),
    )
    assert fixed.adjacency == "replace"
    poisson = from_flower(changed("poisson"))
    assert poisson.parts == ((LocalSampling(0.01, 2.0), 100), (LocalSampling(1.0, 3.0), 1))
    assert poisson.adjacency == "add_or_remove"
    alone = from_flower(changed("no-amplification"))
    assert alone.parts == ((GaussianMechanism(1.0), 100), (GaussianMechanism(1.5), 1))


def test_a_fixed_number_of_clients_makes_room_for_another_one() -> None:
    # Nine of ten clients: what Flower takes for granted, one norm, is too little.
    real = FixedSizeBatches(9, 10, 2.0).delta(0.5, "add_or_remove")
    assert GaussianMechanism(2.0).delta(0.5) < real < GaussianMechanism(1.0).delta(0.5)


@pytest.mark.parametrize("method", ["poisson", "without-replacement", "no-amplification"])
def test_states_of_flower_itself_are_read(method: str) -> None:
    types = pytest.importorskip("flwr.supercore.privacy_accounting")
    accountants = pytest.importorskip("flwr.supercore.privacy_accounting.rdp_accountant")
    relation = "replace-one" if method == "without-replacement" else "add-or-remove-one"
    config = types.PrivacyConfig(
        1e-5, 1000, types.NeighboringRelation(relation), types.SamplingMethod(method)
    )
    accountant = accountants.RdpAccountant(config)
    accountant.compose(types.GaussianPrivacyEvent(2.0, 10, 1000), 50)
    training = from_flower(accountant.state_dict())
    assert training.rounds == 50
    theirs, ours = accountant.get_epsilon(1e-5), training.epsilon_bounds(1e-5)
    if method == "poisson":
        assert 0.5 * theirs < ours.high < theirs
    else:
        # Theirs is below what data that can exist lose.
        assert theirs < ours.low


@pytest.mark.parametrize(
    ("history", "error", "message"),
    [
        ([], InvalidValueError, "history must hold at least one step"),
        ("rdp", InvalidTypeError, "history must be a list"),
        (3, InvalidTypeError, "history must be a list"),
        ({"mechanism": "rdp"}, InvalidValueError, "the key 'history'"),
        ([(1.0, 0.1)], InvalidTypeError, r"history\[0\] must be \(noise"),
        ([(1.0, 0.1, 5), "x"], InvalidTypeError, r"history\[1\] must be"),
        ([(1.0, 1.5, 5)], InvalidValueError, r"history\[0\]: sample_rate must be"),
        ([(0.0, 0.5, 5)], InvalidValueError, r"history\[0\]: noise_multiplier must be"),
        ([(1.0, 0.5, 0)], InvalidValueError, r"history\[0\]: steps must be"),
        ([(1.0, 0.5, 2.0)], InvalidTypeError, r"history\[0\]: steps must be"),
    ],
)
def test_histories_that_are_none_are_refused(
    history: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        from_opacus(history)


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        ([], InvalidTypeError, "state must be what state_dict"),
        ({}, InvalidValueError, "state must have the schema_version 1, got None"),
        ({**FLOWER, "config": None}, InvalidTypeError, r"state\['config'\] must be"),
        (changed("at-will"), InvalidValueError, r"state\['config'\]\['sampling_method'\] must be"),
        ({**FLOWER, "compositions": []}, InvalidValueError, "at least one round"),
        ({**FLOWER, "compositions": None}, InvalidTypeError, r"state\['compositions'\] must be"),
        ({**FLOWER, "compositions": [3]}, InvalidTypeError, r"\['compositions'\]\[0\] must be"),
        (changed("poisson", sample_size=1001), InvalidValueError, "sample_size must be at most"),
        (changed("poisson", sample_size="9"), InvalidTypeError, "sample_size must be"),
        (changed("poisson", noise_multiplier=0), InvalidValueError, "noise_multiplier must be"),
    ],
)
def test_states_that_are_none_are_refused(state: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        from_flower(state)
