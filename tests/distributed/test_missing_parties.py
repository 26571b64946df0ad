"""Rounds in which parties are missing, late or of another mind."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.distributed.test_roles import (
    AGGREGATOR,
    FIRST_SERVER,
    SERVER,
    USER,
    VALUES,
    check_refused,
)

import turnout.distributed as td
from turnout.distributed import Message, Party, payloads
from turnout.distributed.messages import MessageKind
from turnout.distributed.roles.base import State
from turnout.errors import (
    MalformedMessageError,
    MissingPartyError,
    ProtocolError,
)

# Missing parties.


@pytest.mark.parametrize("allowed", [1, 2])
def test_missing_users_within_the_margin_are_left_out(allowed: int, harness: ModuleType) -> None:
    network = harness.Network(td.Round.start(harness.silent(3, 6, max_missing_users=allowed)))
    network.report(VALUES[: 6 - allowed])
    network.deliver()
    network.close()
    assert network.server.received == 6 - allowed
    counts = np.bincount(VALUES[: 6 - allowed], minlength=3)
    assert network.server.sums.tolist() == counts.tolist()
    frequencies = counts / (6 - allowed)
    assert network.server.estimate().frequencies.tolist() == pytest.approx(frequencies.tolist())


def test_more_missing_users_lose_the_round_and_are_named(harness: ModuleType) -> None:
    network = harness.Network(td.Round.start(harness.silent(3, 6, max_missing_users=1)))
    network.report(VALUES[:4])
    network.deliver()
    aggregator = network.aggregator(0)
    with pytest.raises(MissingPartyError, match=r"2 of 6 users.*user 4, user 5") as caught:
        aggregator.close()
    assert caught.value.parties == (Party(USER, 4), Party(USER, 5))
    check_forgotten(harness, aggregator)
    check_refused(harness, aggregator, network.user(4).report(0)[0].to_bytes(), "accepts no more")
    with pytest.raises(ProtocolError):
        aggregator.close()
    two = td.TwoStageSampling(3, 6, reported=2, rate=0.5, floor=2, max_missing_users=1)
    network = harness.Network(td.Round.start(two))
    network.report(VALUES[:4])
    network.deliver()
    first = network.roles[FIRST_SERVER]
    with pytest.raises(MissingPartyError, match=r"user 4, user 5") as caught:
        first.close()
    assert caught.value.parties == (Party(USER, 4), Party(USER, 5))
    check_forgotten(harness, first)


def check_forgotten(harness: ModuleType, role: Any) -> None:
    """Nothing that came from others is left: no bytes, and no array with entries."""
    assert role.state is State.FAILED
    assert role.missing == ()
    assert not harness.holds_data(role)


@pytest.mark.parametrize("compressed", [True, False])
def test_users_that_reached_some_aggregators_only_are_in_no_sum(
    compressed: bool, harness: ModuleType
) -> None:
    mechanism = harness.silent(3, 6, max_missing_users=3, compressed=compressed)
    network = harness.Network(td.Round.start(mechanism))
    network.report(VALUES)
    # User 1 reaches the first aggregator only, user 3 all but the last, user 5 the last only.
    reached = {1: {0}, 3: {0, 1}, 5: {2}}
    network.deliver(
        message
        for message in network.waiting
        if message.recipient.index in reached.get(message.sender.index, {0, 1, 2})
    )
    network.close()
    assert network.server.received == 3
    assert network.server.sums.tolist() == [1, 1, 1]  # users 0, 2 and 4


def test_a_device_that_started_anew_is_in_no_sum(harness: ModuleType) -> None:
    """Its shares are of two reports with different randomness, and would not add up."""
    network = harness.Network(td.Round.start(harness.silent(3, 6, max_missing_users=1)))
    network.report(VALUES)
    again = network.round_.user(4).report(0)
    network.waiting = [
        again[message.recipient.index]
        if message.sender.index == 4 and message.recipient.index != 1
        else message
        for message in network.waiting
    ]
    network.deliver()
    network.close()
    assert network.server.received == 5
    assert network.server.sums.tolist() == [1, 2, 2]


def test_rosters_that_disagree_beyond_the_margin_lose_the_round(harness: ModuleType) -> None:
    network = harness.Network(td.Round.start(harness.silent(3, 6, max_missing_users=1)))
    network.report(VALUES)
    skipped = {(0, 0), (1, 1)}  # user 0 is not at aggregator 0, user 1 not at aggregator 1
    network.deliver(
        message
        for message in network.waiting
        if (message.sender.index, message.recipient.index) not in skipped
    )
    rosters = [message for index in range(3) for message in network.aggregator(index).close()]
    lost = []
    for message in rosters:
        try:
            assert network.roles[message.recipient].receive(message.to_bytes()) == []
        except MissingPartyError as error:
            lost.append((message.recipient.index, error.parties))
    assert sorted(lost) == [(index, (Party(USER, 0), Party(USER, 1))) for index in range(3)]
    for index in range(3):
        check_forgotten(harness, network.aggregator(index))
    with pytest.raises(MissingPartyError, match="aggregator 0"):
        network.server.estimate()


def test_sums_over_different_users_are_not_added(harness: ModuleType) -> None:
    mechanism = harness.silent(3, 6, parties=2, max_missing_users=2)
    network = harness.Network(td.Round.start(mechanism))
    server, field = network.server, mechanism.field
    rosters = [np.array(reports, np.uint64) for reports in ([7, 7, 7, 7, 7, 0], [7, 7, 7, 7, 8, 0])]
    sums = [
        payloads.pack_party_sum(roster, field, field._elements([1, 2, 3])) for roster in rosters
    ]
    one, two = Party(AGGREGATOR, 0), Party(AGGREGATOR, 1)
    server.receive(harness.forged(network.round_, MessageKind.SUM, one, SERVER, sums[0]))
    wrong = harness.forged(network.round_, MessageKind.SUM, two, SERVER, sums[1])
    check_refused(harness, server, wrong, "added up users other")
    with pytest.raises(MissingPartyError, match="waiting for aggregator 1"):
        _ = server.sums
    server.receive(harness.forged(network.round_, MessageKind.SUM, two, SERVER, sums[0]))
    assert server.sums.tolist() == [2, 4, 6]


def test_giving_up_names_the_missing_and_forgets_everything(harness: ModuleType) -> None:
    network = harness.Network(td.Round.start(harness.silent(3, 6)))
    network.report(VALUES[:5])
    sent = list(network.waiting)
    network.deliver()
    aggregator = network.aggregator(0)
    held = harness.bytes_in(harness.state_of(aggregator))
    assert all(message.payload[9:] in held for message in sent if message.recipient.index == 0)
    with pytest.raises(MissingPartyError, match="without user 5") as caught:
        aggregator.give_up()
    assert caught.value.parties == (Party(USER, 5),)
    check_forgotten(harness, aggregator)
    # Waiting for rosters.
    network = harness.Network(td.Round.start(harness.silent(3, 6)))
    network.report(VALUES)
    network.deliver()
    messages = network.aggregator(0).close()
    network.aggregator(1).receive(messages[0].to_bytes())
    network.aggregator(1).close()
    with pytest.raises(MissingPartyError, match="without aggregator 2") as caught:
        network.aggregator(1).give_up()
    assert caught.value.parties == (Party(AGGREGATOR, 2),)
    check_forgotten(harness, network.aggregator(1))
    # The server, with some sums.
    network = harness.Network(td.Round.start(harness.silent(3, 6)))
    network.report(VALUES)
    network.deliver()
    network.deliver([m for i in range(3) for m in network.aggregator(i).close()][:-1])
    with pytest.raises(MissingPartyError) as caught:
        network.server.give_up()
    missing = {f"aggregator {party.index}" for party in caught.value.parties}
    assert missing
    assert all(name in str(caught.value) for name in missing)
    check_forgotten(harness, network.server)
    for ask in (network.server.estimate, lambda: network.server.sums):
        with pytest.raises(MissingPartyError, match="round is lost"):
            ask()


def test_roles_that_are_done_have_nothing_to_give_up(harness: ModuleType) -> None:
    network = harness.Network(td.Round.start(harness.silent(3, 6)))
    network.report(VALUES)
    network.deliver()
    network.close()
    for role in network.roles.values():
        assert role.state is State.DONE
        assert role.missing == ()
        with pytest.raises(ProtocolError, match="nothing is missing"):
            role.give_up()
    assert network.server.sums.tolist() == [1, 2, 3]
    for index in range(3):
        assert not harness.holds_data(network.aggregator(index))


def test_users_as_parties_compare_digests_of_rosters() -> None:
    mechanism = td.NoisyAggregation(3, users=3, parameter=1.0, parties="users")
    round_ = td.Round.start(mechanism)
    parties = [round_.aggregator(index) for index in range(3)]
    sent = [round_.user(index).report(index) for index in range(3)]
    # User 0's device started anew: party 2 has a share of its second report.
    again = round_.user(0).report(0)
    sent[0][2] = again[2]
    for messages in sent:
        for message in messages:
            parties[message.recipient.index].receive(message.to_bytes())
    rosters = [message for party in parties for message in party.close()]
    assert {len(message.payload) for message in rosters} == {16}
    parties[0].receive(next(m for m in rosters if m.recipient.index == 0).to_bytes())
    with pytest.raises(MissingPartyError, match="aggregator 2 hold shares of other reports"):
        parties[0].receive([m for m in rosters if m.recipient.index == 0][1].to_bytes())
    short = Message(
        MessageKind.ROSTER, round_.identifier, parties[0].party, parties[1].party, bytes(15)
    )
    with pytest.raises(MalformedMessageError, match="16 bytes"):
        parties[1].receive(short.to_bytes())
