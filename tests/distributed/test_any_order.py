"""Messages in any order, and messages that are lost: the sums are right, or there are none."""

from __future__ import annotations

import contextlib
import copy
import random
from collections import Counter
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout.distributed as td
from turnout.distributed import Message, Party, Role
from turnout.distributed.messages import MessageKind
from turnout.distributed.roles.base import State
from turnout.errors import MissingPartyError, ProtocolError

VALUES = [0, 1, 1, 2, 2, 2]

# Rounds draw from the operating system, so an order is drawn from a seed, not step by step.
SEEDS = st.integers(0, 2**32)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.sampled_from([2, 3, "users"]), st.booleans())
def test_any_order_of_messages_gives_the_same_sums(
    harness: ModuleType, seed: int, parties: Any, compressed: bool
) -> None:
    chance = random.Random(seed)
    mechanism = harness.silent(3, 6, parties=parties, compressed=compressed)
    network = harness.Network(td.Round.start(mechanism))
    network.report(VALUES)
    network.finish_in_any_order(chance)
    assert network.server.sums.tolist() == [1, 2, 3]
    assert network.server.received == 6


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(0, 4))
def test_whatever_is_lost_the_sum_is_that_of_complete_users_or_there_is_none(
    harness: ModuleType, seed: int, margin: int
) -> None:
    chance = random.Random(seed)
    network = harness.Network(td.Round.start(harness.silent(3, 6, max_missing_users=margin)))
    network.report(VALUES)
    arrived = [message for message in network.waiting if chance.random() < 0.9]
    reached = Counter(message.sender.index for message in arrived)
    complete = [VALUES[user] for user in range(6) if reached[user] == 3]
    chance.shuffle(arrived)
    network.deliver(arrived)
    steps: list[Any] = [network.aggregator(index) for index in range(3)]
    while steps:
        step = steps.pop(chance.randrange(len(steps)))
        with contextlib.suppress(ProtocolError):
            if isinstance(step, Message):
                steps += network.roles[step.recipient].receive(step.to_bytes())
            else:
                steps += step.close()
    if 6 - len(complete) <= margin:
        assert network.server.sums.tolist() == np.bincount(complete, minlength=3).tolist()
        assert network.server.received == len(complete)
    else:
        with pytest.raises(MissingPartyError):
            network.server.estimate()
        for index in range(3):
            aggregator = network.aggregator(index)
            if aggregator.state is not State.FAILED:
                with pytest.raises(MissingPartyError, match="aggregator"):
                    aggregator.give_up()
            assert not harness.holds_data(aggregator)


@pytest.mark.parametrize("noise", ["discrete_laplace", "skellam", "discrete_gaussian"])
@pytest.mark.parametrize("source", ["users", "parties"])
def test_sums_are_exactly_what_was_drawn(
    noise: str, source: str, harness: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = td.NoisyAggregation(3, 6, noise=noise, parameter=9.0, source=source)
    drawn = np.zeros(3, np.int64)
    piece = td.NoisyAggregation._contribution

    def recorded(self: Any, *arguments: Any, **named: Any) -> Any:
        found = piece(self, *arguments, **named)
        drawn[:] += found
        return found

    monkeypatch.setattr(td.NoisyAggregation, "_contribution", recorded)
    network = harness.Network(td.Round.start(mechanism))
    network.report(VALUES)
    network.deliver()
    network.close()
    assert network.server.sums.tolist() == (drawn + np.array([1, 2, 3])).tolist()


def altered(message: Message, chance: random.Random) -> bytes:
    """Change some bytes of a payload, its length, the sender or the kind; with a valid checksum."""
    payload = bytearray(message.payload)
    change = chance.randrange(6)
    if change == 0:
        payload = payload[: chance.randrange(len(payload) + 1)]
    elif change == 1:
        payload += bytes(chance.choices(range(256), k=chance.randrange(1, 6)))
    elif change in (2, 3) and payload:
        for _ in range(chance.randrange(1, 4)):
            value = chance.choice([0, 1, 2, 3, 5, 6, 7, 128, 255])
            payload[chance.randrange(len(payload))] = value
    party, kind = message.sender, message.kind
    if change == 4:
        party = Party(chance.choice(list(Role)), chance.choice([0, 1, 5, 6, 2**32 - 1]))
    if change == 5:
        kind = chance.choice(list(MessageKind))
    return Message(kind, message.round_id, party, message.recipient, bytes(payload)).to_bytes()


PLANS = [
    td.NoisyAggregation(3, 6, parameter=0.02, max_missing_users=1),
    td.SamplingAggregation(3, 6, rate=0.5, dummies=4, parties="users", compressed=False),
    td.TwoStageSampling(3, 6, reported=2, rate=0.5, dummies=4, collusion_bound=2),
    td.TwoStageSampling(3, 6, reported=1, rate=0.5, floor=2, elected=4),
]


@pytest.mark.parametrize("plan", PLANS, ids=["noisy", "sampling", "two-stage", "elected"])
def test_altered_messages_are_taken_or_refused_without_a_trace(
    plan: td.AggregationMechanism, harness: ModuleType
) -> None:
    @settings(max_examples=15, deadline=None)
    @given(SEEDS)
    def check(seed: int) -> None:
        chance = random.Random(seed)
        network = harness.Network(td.Round.start(plan))
        network.report(VALUES)

        def deliver(message: Message) -> list[Message]:
            role = network.roles[message.recipient]
            for _ in range(3):
                # A copy takes it, so that the round goes on as if nothing had happened.
                kept = {id(plan): plan}
                victim = copy.deepcopy(role, kept)
                before = harness.state_of(victim)
                try:
                    victim.receive(altered(message, chance))
                except MissingPartyError:
                    assert victim.state is State.FAILED
                except ProtocolError:
                    assert harness.state_of(victim) == before
            return role.receive(message.to_bytes())

        waiting, collectors = list(network.waiting), list(network.collectors)
        while waiting or collectors:
            if not waiting:
                waiting += [message for role in collectors for message in role.close()]
                collectors = []
            waiting += deliver(waiting.pop(chance.randrange(len(waiting))))
        assert network.server.state is State.DONE
        assert network.server.estimate().received == 6

    check()
