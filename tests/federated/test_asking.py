"""The calls for gradients in a round: every element once, in calls that fit in the caches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from turnout.errors import InvalidValueError
from turnout.federated import SGD, InProcessEngine, RandomParticipationSGD, sums
from turnout.federated.asking import ahead, together


def sampled_of(counts: list[int]) -> dict[int, Any]:
    return {3 * client: np.arange(count) * 2 for client, count in enumerate(counts)}


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(
    "counts", [[5], [0, 0], [0, 31, 1, 0], [40, 1, 70, 32, 0, 3], [16] * 9, [1] * 100]
)
def test_every_element_is_asked_for_once(counts: list[int], whole: bool) -> None:
    sampled = sampled_of(counts)
    ((first, calls),) = together(sampled, 100_000, whole).items()
    assert first == 0
    clients = np.concatenate([who for who, _, _ in calls])
    elements = np.concatenate([which for _, which, _ in calls])
    np.testing.assert_array_equal(clients, np.repeat([*sampled], counts))
    np.testing.assert_array_equal(elements, np.concatenate([*sampled.values()]))
    for who, which, parts in calls:
        assert sum(parts) == who.size == which.size
        assert who.size <= 32 or (whole and len(set(who.tolist())) == 1)
    if whole:
        assert [part for _, _, parts in calls for part in parts] == counts
    else:
        # All calls but the last are full, for which JAX compiles once.
        assert all(who.size == 32 for who, _, _ in calls[:-1])


def test_nobody_is_asked_for_nothing() -> None:
    assert together({}, 10, True) == {}


@pytest.mark.parametrize(("parameters", "most"), [(1, 1 << 22), (3, 1 << 20), (10**9, 16)])
def test_a_call_has_as_many_elements_as_the_caches_hold(parameters: int, most: int) -> None:
    calls = together(sampled_of([most + 1]), parameters, False)[0]
    assert [who.size for who, _, _ in calls] == [most, 1]


class Computed:
    """An array that may still be computed, as JAX's are."""

    def is_ready(self) -> bool:
        return False


def test_the_next_call_is_made_before_an_answer_that_is_still_computed_is_used() -> None:
    events = []

    def answers() -> Iterator[tuple[Any, list[int]]]:
        for number, answer in enumerate(
            [np.ones(1), {"a": Computed()}, [Computed(), (Computed(),)], [Computed(), np.ones(1)]]
        ):
            events.append(f"call {number}")
            yield answer, [number]

    for _, (number,) in ahead(answers()):
        events.append(f"use {number}")
    expected = "call 0, use 0, call 1, call 2, use 1, call 3, use 2, use 3"
    assert ", ".join(events) == expected


@pytest.mark.parametrize("batched", [False, True])
def test_jax_computes_the_same_model_ahead(plan_of: Any, batched: bool) -> None:
    jnp = pytest.importorskip("jax").numpy
    random = np.random.default_rng(0)
    data = random.normal(size=(5, 40, 140_000)).astype(np.float32) / 500
    plan = plan_of(client_rate=0.9, sample_rate=0.5, local_size=40)

    def trained(convert: Any) -> Any:
        def gradients(model: Any, who: Any, which: Any) -> Any:
            return convert(np.float32(model) - data[who, which])

        engine = InProcessEngine(
            plan, np.zeros(140_000), gradients, 40, SGD(0.3), clients=5, batched=batched
        )
        return engine.run(2)

    np.testing.assert_array_equal(trained(jnp.asarray), trained(np.asarray))


@pytest.mark.parametrize("mode", ["trusted_server", "always_send"])
def test_a_sum_of_many_calls_that_64_bits_do_not_hold_is_refused_or_split(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each gradient is up to 2^40 steps long, so 45 bits hold 32 of them; a call is for 16.
    monkeypatch.setattr(sums, "_ROOM", 2.0**45)
    plan = RandomParticipationSGD(
        1.0, 1.0, clip=1.0, noise_multiplier=2.0**-4, grid_bits=36, local_size=80, mode=mode
    )
    parameters = np.zeros(1 << 18, np.float32)
    row = np.zeros((16, parameters.size), np.float32)
    row[:, 0] = 1.0
    engine = InProcessEngine(
        plan,
        parameters,
        lambda model, client, elements: row[: elements.size],
        80,
        SGD(1.0),
        clients=1,
        batched=True,
    )
    if mode == "always_send":
        with pytest.raises(InvalidValueError, match=r"must fit 64 bits .* got 48"):
            engine.run(1)
    else:
        assert engine.run(1)[0] == pytest.approx(-1.0, abs=0.01)
