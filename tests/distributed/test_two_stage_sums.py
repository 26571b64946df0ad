"""Sums of elected users in two-stage sampling: those of the election are taken, no others."""

from __future__ import annotations

from types import ModuleType

import numpy as np
from tests.distributed.test_two_stage_roles import (
    FIRST_SERVER,
    NUMBERED,
    SERVER,
    USER,
    VALUES,
    network_after_sets,
    refused,
)

import turnout.distributed as td
from turnout.distributed import Party, payloads
from turnout.distributed.messages import MessageKind
from turnout.distributed.roles.elections import Election


def test_sums_for_other_items_than_elected_for_are_refused(harness: ModuleType) -> None:
    network, elections = network_after_sets(harness, reported=3, elected=2, rate=harness.ALWAYS)
    server, field = network.server, network.round_.mechanism.field
    server.receive(elections[-1].to_bytes())
    read = Election.unpack(elections[-1].payload, 6, 3, None)
    for user in range(6):
        duties = [item for item, users in enumerate(read.elected) if user in users]
        for items in ([0], [1], [0, 1], [0, 1, 2]):
            if items != duties:
                payload = NUMBERED + payloads.pack_item_shares(
                    np.array(items, np.int64), field, field._elements([1] * len(items))
                )
                data = harness.forged(
                    network.round_, MessageKind.SUM, Party(USER, user), SERVER, payload
                )
                refused(harness, server, data, "items other than those of the election")
    network.deliver(elections[:-1])
    assert server.sums.tolist() == [1, 2, 3]


def test_a_stray_sum_before_the_election_does_not_lose_the_round(harness: ModuleType) -> None:
    # Of seven users at most six are elected.
    arguments = {"reported": 3, "elected": 2, "rate": harness.ALWAYS, "floor": 1}
    network = harness.Network(td.Round.start(td.TwoStageSampling(3, 7, **arguments)))
    network.report([*VALUES, 0])
    network.deliver()
    elections = network.roles[FIRST_SERVER].close()
    read = Election.unpack(elections[-1].payload, 7, 3, None)
    idle = next(user for user in range(7) if all(user not in users for users in read.elected))
    field = network.round_.mechanism.field
    payload = NUMBERED + payloads.pack_item_shares(np.array([0]), field, field._elements([1]))
    stray = harness.forged(network.round_, MessageKind.SUM, Party(USER, idle), SERVER, payload)
    network.server.receive(stray)
    network.deliver(elections)
    assert network.server.sums.tolist() == [2, 2, 3]
