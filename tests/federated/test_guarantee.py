"""What a training says that it protects is what its accounting gives, and names its conditions."""

from __future__ import annotations

from typing import Any

import pytest

from turnout.federated import RandomParticipationSGD

TARGET = {"noise_multiplier": None, "epsilon": 1.5, "delta": 1e-5, "rounds": 20}


@pytest.mark.parametrize("mode", ["trusted_server", "always_send", "participants_only"])
def test_the_target_is_reached_by_the_mechanism_that_is_named(plan_of: Any, mode: str) -> None:
    guarantee = plan_of(mode=mode, **TARGET).guarantee
    assert (guarantee.epsilon, guarantee.delta, guarantee.rounds) == (1.5, 1e-5, 20)
    spent = guarantee.mechanism.compose(guarantee.rounds)
    assert spent.adjacency == guarantee.adjacency
    assert 1.49 < spent.epsilon(guarantee.delta) <= 1.5
    assert "epsilon = 1.5, delta = 1e-05 in 20 rounds, each by" in str(guarantee)
    records = guarantee.to_records()
    assert [record["assumption"] for record in records] == list(guarantee.assumptions)
    assert {record["rounds"] for record in records} == {20}


def test_without_a_target_it_names_the_mechanism_of_a_round(plan_of: Any) -> None:
    guarantee = plan_of().guarantee
    assert (guarantee.epsilon, guarantee.delta, guarantee.rounds) == (None, None, 1)
    assert str(guarantee).startswith("RandomParticipation(client_rate=0.3,")
    assert "every round that is opened is paid, also one that is given up" in str(guarantee)


def test_without_noise_there_is_none(plan_of: Any) -> None:
    assert plan_of(noise="none", noise_multiplier=None).guarantee is None


def test_a_description_that_promises_too_much_is_not_believed(plan_of: Any) -> None:
    described = plan_of(**TARGET).to_dict()
    described["noise_multiplier"] /= 2
    guarantee = RandomParticipationSGD.from_dict(described).guarantee
    assert guarantee is not None
    assert guarantee.epsilon is not None
    assert guarantee.epsilon > 3.0
    assert guarantee.mechanism.compose(20).delta(guarantee.epsilon) <= 1e-5 * (1 + 1e-9)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mode": "trusted_server"}, "the server keeps to itself what clients send and who takes"),
        ({"mode": "always_send"}, "at a time that does not tell whether it takes part"),
        ({"mode": "participants_only"}, "the server may see who takes part"),
        ({}, "no client has more than 6 elements"),
        ({}, "the gradient of an element depends, to the last bit, on it and the model alone"),
        ({"batch_slack": 0.01}, "all others together by at most 0.01 times the clip"),
        ({"noise": "float"}, "nobody uses the low bits of the noise"),
        ({"seed": 7}, "nobody knows the seed"),
        (TARGET, "at most 20 rounds are opened, those that are given up included"),
    ],
)
def test_it_names_what_it_rests_on(plan_of: Any, changes: Any, said: str) -> None:
    assert said in str(plan_of(**changes).guarantee)


def test_it_names_nothing_that_it_does_not_rest_on(plan_of: Any) -> None:
    plain = str(plan_of(seed=None, mode="participants_only").guarantee)
    for word in ("no client has more than", "seed", "low bits", "times the clip", "epsilon ="):
        assert word not in plain
    nominal = str(plan_of(local_size=None, nominal_local_size=6).guarantee)
    assert "no client has more than" not in nominal
    assert "WeakClientSampling" in nominal
