"""A clip that follows a quantile: what it costs, and where it goes."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.federated import (
    SGD,
    AdaptiveClipping,
    Client,
    InProcessEngine,
    RandomParticipationSGD,
    Server,
)
from turnout.federated.checkpoint import read_checkpoint, write_checkpoint
from turnout.federated.clipping import Votes, covered
from turnout.federated.rounds import largest_update

SHARES = st.floats(1e-3, 0.5)


def plan_at(**changes: Any) -> RandomParticipationSGD:
    chosen: dict[str, Any] = {
        "client_rate": 0.5, "sample_rate": 0.5, "clip": 1.0, "noise_multiplier": 1.5,
        "local_size": 6, "seed": 3, "adaptive_clipping": AdaptiveClipping(),
    }  # fmt: skip
    return RandomParticipationSGD(**{**chosen, **changes})


@given(
    SHARES,
    st.floats(0.02, 0.98),
    st.floats(0.1, 50.0),
    st.floats(1e-6, 1e6),
    st.floats(-30.0, 30.0),
)
@example(0.01, 0.5, 1.0, 1.0, 0.0)
@example(0.5, 0.02, 0.1, 3.0, 30.0)
def test_gradient_and_vote_are_never_longer_than_what_is_accounted_for(
    share: float, quantile: float, noise: float, first: float, moved: float
) -> None:
    adaptive = AdaptiveClipping(quantile, 1.0, share)
    plan = plan_at(adaptive_clipping=adaptive, noise_multiplier=noise, clip=first)
    votes = plan._votes
    assert votes is not None
    # Exactly: the squared length in steps, against that of the accounting.
    most = Fraction(4) ** plan.grid_bits / Fraction(noise) ** 2
    clip = adaptive._moved(first * 2.0**moved, first, 0.0)
    grid = plan._grid_at(clip)
    assert grid is not None
    length = (Fraction(clip) / Fraction(grid.step)) ** 2 + Fraction(votes.longest) ** 2
    assert length <= most
    assert length >= most * (1 - Fraction(1, 1000))
    # And what the core really makes of a gradient that is clipped.
    rows = np.full((1, 5), 3.0 * clip)
    sent = Client(plan_at(adaptive_clipping=adaptive, noise_multiplier=noise, clip=first,
                          client_rate=1.0, sample_rate=1.0), 1, parameters=5)  # fmt: skip
    values = sent.update(sent.draw(0), rows, clip=clip).values
    assert sum(Fraction(int(value)) ** 2 for value in values) <= most
    assert values[-1] == -votes.above


def test_the_accounting_is_that_of_a_clip_that_stays() -> None:
    adaptive = plan_at()
    assert adaptive.mechanism == plan_at(adaptive_clipping=None).mechanism
    assert adaptive.grid is not None
    assert float(adaptive.grid.noise_multiplier) == pytest.approx(1.5 / np.sqrt(0.99))
    target = {"noise_multiplier": None, "epsilon": 2.0, "delta": 1e-5, "rounds": 20}
    same = plan_at(**target), plan_at(adaptive_clipping=None, **target)
    assert same[0].noise_multiplier == same[1].noise_multiplier


def test_the_slack_covers_votes_of_others() -> None:
    plan = plan_at(batch_slack=0.01)
    assert plan.mechanism is not None
    factor = 1.5 / plan.mechanism.noise_multiplier  # type: ignore[attr-defined]
    assert factor == pytest.approx(1.0 + 0.01 * (2.0 + 11.0 * 0.1))
    # What a relative change of norms really moves, over the longest vector of gradient and vote.
    votes = plan._votes
    assert votes is not None
    longest = 2.0**24 / 1.5
    for norm in np.linspace(0.85, 1.1, 101):
        before, after = (
            votes.count([np.array([[norm * (1.0 + way * 1e-4)]])], 1.0) for way in (-0.5, 0.5)
        )
        assert abs(before - after) <= 1.0 + 1.1 * longest * 1e-4


@pytest.mark.parametrize("share", [1e-6, 1e-4, 0.01, 0.5])
@pytest.mark.parametrize("parameters", [1, 10])
@pytest.mark.parametrize("change", [1e-12, 1e-6])
def test_the_slack_covers_votes_whose_rounding_flips(
    share: float, parameters: int, change: float
) -> None:
    """The worst that d others do to gradients and votes, all in steps of the grid, in fractions.

    The slack is chosen as the guide says: d times a relative change and the flips of parameters.
    """
    noise, bits, others = 1.5, 30, 30
    step = noise / 2.0**bits
    slack = others * (change + math.sqrt(parameters) * step)
    adaptive = AdaptiveClipping(budget_share=share)
    votes = Votes.of(adaptive, noise, bits)
    # A vote of a norm up to 1.1 clips moves with the norm, and by one step more.
    slope = 1.1 * (votes.within + votes.above) / 0.2 * change * step
    vote = Fraction(others) * (Fraction(slope) + Fraction(step))
    moved = math.sqrt(Fraction(slack) ** 2 + vote**2)
    assert covered(slack, adaptive) >= 1 + Fraction(moved)


def test_votes_of_a_row_do_not_depend_on_others() -> None:
    random = np.random.default_rng(0)
    parts = [
        random.normal(size=(50, 37)).astype(np.float32),
        np.asfortranarray(random.normal(size=(50, 3))),
    ]
    votes = Votes.of(AdaptiveClipping(), 1.0, 24)
    alone = [votes.count([part[row : row + 1] for part in parts], 6.3) for row in range(50)]
    assert votes.count(parts, 6.3) == sum(alone)
    assert len(set(alone)) > 3


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("mode", ["trusted_server", "always_send", "participants_only"])
@pytest.mark.parametrize("unit", ["element", "client"])
def test_the_clip_finds_the_quantile(mode: str, unit: str, batched: bool) -> None:
    random = np.random.default_rng(1)
    clients, size = 400, 6
    lengths = np.exp(random.normal(size=(clients, 1 if unit == "client" else size)))
    directions = random.normal(size=(clients, size, 4))
    if unit == "client":
        directions[:] = directions[:, :1]
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    table = directions * lengths[..., None]
    plan = plan_at(
        unit=unit, local_size=None if unit == "client" else size, mode=mode, clip=30.0,
        noise_multiplier=0.3 if mode == "trusted_server" else 0.02, client_rate=0.5,
        adaptive_clipping=AdaptiveClipping(0.75, 0.5, 0.05),
    )  # fmt: skip
    engine = InProcessEngine(
        plan, np.zeros(4), lambda model, client, elements: table[client, elements],
        size, SGD(1e-9), clients=clients, batched=batched,
    )  # fmt: skip
    engine.run(60)
    # Between the quantiles of 0.9 and 1.1 clips, and the noise of the votes.
    assert 0.65 < np.mean(lengths < engine.server.clip) < 0.85
    records = engine.server.history.to_records()
    assert records[0]["clip"] == 30.0
    assert records[0]["clipped"] < 0.1
    assert np.mean([row["clipped"] for row in records[-30:]]) == pytest.approx(0.25, abs=0.08)


@pytest.mark.parametrize("expected", [8, 16])
def test_without_noise_the_share_is_exact_for_as_many_elements_as_expected(expected: int) -> None:
    norms = np.array([0.5, 0.89, 0.95, 1.0, 1.05, 1.2, 7.0, 8.0])
    plan = plan_at(
        noise="none", noise_multiplier=None, client_rate=1.0, sample_rate=1.0, local_size=expected,
        adaptive_clipping=AdaptiveClipping(0.5, 0.0),
    )  # fmt: skip
    engine = InProcessEngine(
        plan, np.zeros(1), lambda model, client, elements: norms[elements, None], 8, SGD(0.1),
        clients=3,
    )  # fmt: skip
    engine.run(2)
    # Two within, three partly (.75, .5 and .25 of them), three above. With half as many elements as
    # expected, half as far from the quantile.
    shown = 0.5 + (0.5 - 3.5 / 8) * 8 / expected
    assert [row["clipped"] for row in engine.server.history.to_records()] == pytest.approx(
        [shown] * 2
    )
    assert engine.server.clip == 1.0


def test_a_clip_moves_as_published() -> None:
    adaptive = AdaptiveClipping(0.5, 0.2)
    assert adaptive._moved(3.0, 1.0, 0.25) == pytest.approx(3.0 * np.exp(-0.2 * 0.25))
    assert adaptive._moved(3.0, 1.0, 90.0) == pytest.approx(3.0 * np.exp(-0.2))
    assert adaptive._moved(2.0**64, 1.0, -1.0) == 2.0**64


def test_halves_agree_with_the_engine(problem: Any) -> None:
    plan = plan_at()
    engine = problem.engine(plan)
    server = Server(plan, problem.start(), engine.server._optimizer)
    clients = [Client(plan, 6, parameters=3, index=index) for index in range(40)]
    for _ in range(5):
        number = server.open(available=40)
        model = server.parameters
        for index, client in enumerate(clients):
            update = client.answer(
                number,
                lambda elements, index=index: problem.gradients(model, index, elements),  # noqa: B023
                clip=server.clip,
            )
            server.add(update, index)
        server.close()
    np.testing.assert_array_equal(engine.run(5), server.parameters)
    assert engine.server.clip == server.clip != 1.0


def test_a_training_goes_on_with_its_clip(problem: Any, tmp_path: Path) -> None:
    whole = problem.engine(plan_at())
    whole.run(7)
    path = tmp_path / "training.npz"
    problem.engine(plan_at(), checkpoint=path).run(4)
    again = problem.engine(plan_at(), checkpoint=path)
    assert again.resume()
    np.testing.assert_array_equal(again.run(7), whole.server.parameters)
    assert again.server.clip == whole.server.clip
    state = read_checkpoint(path)
    for wrong in ([], [np.array([1.0, 2.0])], [np.array([np.nan])], [np.array([1e99])]):
        arrays = [*state.optimizer_state[:-1], *wrong] if wrong else []
        write_checkpoint(path, type(state)(**{**vars(state), "optimizer_state": arrays}))
        with pytest.raises(CorruptDataError, match="holds no clip"):
            problem.engine(plan_at(), checkpoint=path).resume()


def test_a_server_takes_no_vote_that_is_too_long() -> None:
    plan = plan_at(local_size=1)
    votes = plan._votes
    assert votes is not None
    assert plan.grid is not None
    # The noise of the votes is one more number.
    apart = largest_update(plan_at(mode="always_send"), 3) - largest_update(plan_at(), 3)
    assert apart >= 2.0**plan.grid_bits * (2.0 + 9.41)
    longest = largest_update(plan, 3)
    assert longest == pytest.approx(np.hypot(plan.grid.radius, votes.longest), rel=1e-9)


@pytest.mark.parametrize(
    ("clip", "error", "text"),
    [
        (None, InvalidValueError, "clip must be the clip of the round"),
        (0.0, InvalidValueError, "clip must be from"),
        (np.nan, InvalidValueError, "clip must be"),
        (1e30, InvalidValueError, "clip must be from"),
        ("1", InvalidTypeError, "clip must be"),
    ],
)
def test_a_client_pays_for_no_clip_that_is_none(
    clip: Any, error: type[Exception], text: str
) -> None:
    target = {"noise_multiplier": None, "epsilon": 2.0, "delta": 1e-5, "rounds": 20}
    client = Client(plan_at(**target), 2, parameters=3)
    with pytest.raises(error, match=text):
        client.answer(0, lambda elements: pytest.fail("drawn"), clip=clip)
    assert client.ledger is not None
    assert client.ledger.spent() == 0.0
    other = Client(plan_at(adaptive_clipping=None), 2, parameters=3)
    with pytest.raises(InvalidValueError, match="clip must be None or 1"):
        other.answer(0, lambda elements: pytest.fail("drawn"), clip=2.0)


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"quantile": 0.0}, InvalidValueError, "quantile must be above 0"),
        ({"quantile": 1.0}, InvalidValueError, "quantile must be above 0"),
        ({"learning_rate": -0.1}, InvalidValueError, "learning_rate must be from 0"),
        ({"budget_share": 0.0}, InvalidValueError, "budget_share must be above 0"),
        ({"budget_share": 0.6}, InvalidValueError, "budget_share must be above 0"),
        ({"quantile": "half"}, InvalidTypeError, "quantile"),
    ],
)
def test_what_makes_no_sense_is_refused(
    changes: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        AdaptiveClipping(**changes)


def test_plans_refuse_what_does_not_fit() -> None:
    with pytest.raises(InvalidValueError, match="must be None with noise='float'"):
        plan_at(noise="float")
    with pytest.raises(InvalidValueError, match="or an infinite clip"):
        plan_at(noise="none", noise_multiplier=None, clip=np.inf)
    with pytest.raises(InvalidTypeError, match="adaptive_clipping must be an AdaptiveClipping"):
        plan_at(adaptive_clipping=0.5)
    with pytest.raises(InvalidValueError, match="grid_bits must be larger"):
        plan_at(grid_bits=8, noise_multiplier=2.0)
    plan = plan_at()
    assert RandomParticipationSGD.from_dict(plan.to_dict()) == plan
    for wrong in (3, {}, {"quantile": 2.0, "learning_rate": 0.1, "budget_share": 0.1}):
        with pytest.raises(CorruptDataError, match="not a plan of federated training"):
            RandomParticipationSGD.from_dict({**plan.to_dict(), "adaptive_clipping": wrong})


def test_whole_votes_are_added_up_exactly() -> None:
    """A vote of an odd number of steps beside so many that doubles would round their sum."""
    votes = Votes(within=2**45 + 1, above=2**45 + 3, whole=True)
    rows = [np.full((2**9 + 1, 1), 0.1)]
    assert votes.count(rows, 1.0) == (2**9 + 1) * (2**45 + 1)


def test_what_is_no_adaptive_clipping_is_refused() -> None:
    for mode in ({"noise_multiplier": 1.0}, {"epsilon": 1.0, "delta": 1e-5, "rounds": 3}):
        with pytest.raises(InvalidTypeError, match="adaptive_clipping must be an AdaptiveClipping"):
            RandomParticipationSGD(0.5, 0.5, clip=1.0, local_size=1, adaptive_clipping=True, **mode)  # type: ignore[arg-type]
