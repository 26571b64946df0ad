"""What other packages have written down of a training."""

from __future__ import annotations

import json
from types import SimpleNamespace
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


#: Histories, and the epsilon at 1e-5 of Opacus's RDP and PRV accountants (Opacus 1.6.0).
OPACUS_SAID = [
    ([(1.1, 0.01, 1000)], 1.7117700912203435, 1.525472649316146),
    ([(1.1, 0.004266666666666667, 1000), (0.9, 0.01, 200)], 1.84814041139792, 1.3508841977855897),
    ([(2.0, 0.1, 300)], 4.564284140245151, 4.193546106335142),
]


@pytest.mark.parametrize(("history", "rdp", "prv"), OPACUS_SAID)
def test_it_agrees_with_what_accountants_of_opacus_said(
    history: Any, rdp: float, prv: float
) -> None:
    bounds = from_opacus(history).epsilon_bounds(1e-5)
    # PRV adds its error in epsilon, 0.01, and a little of delta; RDP is a looser bound.
    assert prv - 0.012 <= bounds.high <= prv < rdp
    assert 0.99 * bounds.high < bounds.low < bounds.high


def test_engines_and_accountants_of_opacus_are_taken_as_they_are() -> None:
    accountant = SimpleNamespace(history=[(1.1, 0.01, 100)])
    for given in (accountant, SimpleNamespace(accountant=accountant)):
        assert from_opacus(given).parts == ((LocalSampling(0.01, 1.1), 100),)


@pytest.mark.filterwarnings("ignore")  # those of Opacus and PyTorch
def test_a_real_training_of_opacus_is_read() -> None:
    torch = pytest.importorskip("torch")
    opacus = pytest.importorskip("opacus")
    data = torch.utils.data.TensorDataset(torch.ones(60, 4), torch.zeros(60, dtype=torch.int64))
    module = torch.nn.Linear(4, 2)
    engine = opacus.PrivacyEngine(accountant="prv")
    module, optimizer, loader = engine.make_private(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=6),
        noise_multiplier=1.3,
        max_grad_norm=1.0,
    )
    for _ in range(2):
        for rows, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(rows), labels).backward()
            optimizer.step()
    training = from_opacus(engine)
    assert training.parts == ((LocalSampling(0.1, 1.3), 20),)
    theirs = engine.get_epsilon(1e-5)
    assert theirs - 0.012 <= training.epsilon(1e-5) <= theirs


def strategy(**changes: Any) -> Any:
    return SimpleNamespace(**{"noise_multiplier": 2.0, "num_sampled_clients": 10, **changes})


def test_rounds_of_a_strategy_are_what_is_averaged_in_them() -> None:
    training = from_flower(strategy(), clients=1000, replies=[10, 10, 5, 0, 10])
    # Half of the replies: each weighs twice, under the same noise.
    assert training.parts == (
        (FixedSizeBatches(10, 1000, 2.0), 3),
        (FixedSizeBatches(10, 1000, 1.0), 1),
    )
    assert training.adjacency == "replace"
    everybody = from_flower(strategy(), clients=10, replies=[10])
    assert everybody.parts == ((GaussianMechanism(1.0), 1),)


@pytest.mark.parametrize("side", ["ServerSide", "ClientSide"])
def test_strategies_of_flower_itself_are_taken(side: str) -> None:
    strategies = pytest.importorskip("flwr.serverapp.strategy")
    inner = strategies.FedAvg()
    fixed = getattr(strategies, f"DifferentialPrivacy{side}FixedClipping")(inner, 2.0, 0.5, 10)
    assert from_flower(fixed, clients=50, replies=[10] * 7).parts == (
        (FixedSizeBatches(10, 50, 2.0), 7),
    )
    adaptive = getattr(strategies, f"DifferentialPrivacy{side}AdaptiveClipping")(inner, 0.8, 10)
    # It draws the noise of the model larger, to pay for the count.
    assert adaptive.noise_multiplier > 1.0
    ((mechanism, rounds),) = from_flower(adaptive, clients=50, replies=[10] * 7).parts
    assert rounds == 7
    assert mechanism.noise_multiplier == pytest.approx(0.8, rel=1e-12)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, InvalidValueError, "clients and replies must be given"),
        ({"clients": 9, "replies": [9]}, InvalidValueError, "clients must be"),
        ({"clients": 50, "replies": [11]}, InvalidValueError, r"replies\[0\] must be"),
        ({"clients": 50, "replies": [1.5]}, InvalidTypeError, r"replies\[0\] must be"),
        ({"clients": 50, "replies": 7}, InvalidTypeError, "replies must be"),
        ({"clients": 50, "replies": [0]}, InvalidValueError, "at least one round with an update"),
    ],
)
def test_strategies_without_rounds_are_refused(
    given: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        from_flower(strategy(), **given)
    with pytest.raises(InvalidValueError, match="noise_multiplier must be"):
        from_flower(strategy(noise_multiplier=0.0), clients=50, replies=[10])
    with pytest.raises(InvalidValueError, match="clients must be left out"):
        from_flower(FLOWER, clients=50)


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
