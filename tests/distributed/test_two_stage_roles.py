"""The roles of two-stage sampling: sets, elections, shares of items, and what is refused."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout.distributed as td
from turnout.distributed import Message, Party, Role, payloads
from turnout.distributed.messages import MessageKind
from turnout.distributed.roles.base import State
from turnout.distributed.roles.elections import Election
from turnout.errors import MalformedMessageError, MissingPartyError, ProtocolError

USER, ANY = Role.USER, "."
SERVER, FIRST_SERVER = Party(Role.SERVER), Party(Role.REPORTING_SERVER)
VALUES = [0, 1, 1, 2, 2, 2]

#: What stands before elements of election 0.
NUMBERED = bytes(4)

# Rounds draw from the operating system, so an order is drawn from a seed, not step by step.
SEEDS = st.integers(0, 2**32)

Items = npt.NDArray[np.int64]


class Recorded:
    """What users and contributors drew in a round."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.counts = np.zeros(0, np.int64)
        draw, contribute = td.TwoStageSampling._draw_sets, td.TwoStageSampling._contribution

        def draw_sets(mechanism: Any, codes: Any, seed: Any = None) -> Any:
            coins, sets = draw(mechanism, codes, seed)
            self.add(mechanism, [int(codes[0])] * int(coins[0] and codes[0] in sets[0]))
            return coins, sets

        patch.setattr(td.TwoStageSampling, "_draw_sets", draw_sets)
        self.dummies = 0

        def contribution(mechanism: Any, items: Any = None, seed: Any = None) -> Any:
            found = contribute(mechanism, items, seed)
            self.dummies += 0 if found is None else int(found.sum())
            return found

        patch.setattr(td.TwoStageSampling, "_contribution", contribution)

    def add(self, mechanism: Any, codes: list[int]) -> None:
        if not self.counts.size:
            self.counts = np.zeros(mechanism.domain.size, np.int64)
        self.counts += np.bincount(codes, minlength=mechanism.domain.size)


def refused(
    harness: ModuleType, role: Any, data: bytes, match: str, error: type[Exception] = ProtocolError
) -> None:
    before = harness.state_of(role)
    with pytest.raises(error, match=match) as caught:
        role.receive(data)
    assert not isinstance(caught.value, MissingPartyError)
    assert harness.state_of(role) == before


def plan(**arguments: Any) -> td.TwoStageSampling:
    fields: dict[str, Any] = {"reported": 2, "rate": 0.7, "floor": 1} | arguments
    return td.TwoStageSampling(3, 6, **fields)


def network_after_sets(harness: ModuleType, **arguments: Any) -> tuple[Any, list[Message]]:
    """Give the network of a round, and the elections."""
    network = harness.Network(td.Round.start(plan(**arguments)))
    network.report(VALUES)
    network.deliver()
    return network, network.roles[FIRST_SERVER].close()


PLANS: list[dict[str, Any]] = [
    {},
    {"gamma": 5.0},
    {"collusion_bound": 3},
    {"elected": 2},
    {"elected": 6},
    {"reported": 3},
    {"reported": 1},
]


@pytest.mark.parametrize("arguments", PLANS)
def test_any_order_of_messages_gives_the_same_sums(
    arguments: dict[str, Any], harness: ModuleType
) -> None:
    @settings(max_examples=12, deadline=None)
    @given(SEEDS)
    def check(seed: int) -> None:
        chance = random.Random(seed)
        with pytest.MonkeyPatch.context() as patch:
            recorded = Recorded(patch)
            network = harness.Network(td.Round.start(plan(**arguments)))
            network.report(VALUES)
            network.finish_in_any_order(chance)
            assert network.server.sums.tolist() == recorded.counts.tolist()
            assert network.server.received == 6
            for role in network.roles.values():
                assert role.state is State.DONE

    check()


@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize(
    ("arguments", "sets"),
    [
        ({}, 2),
        ({"reported": 1, "honest_aggregators": 2}, 3),
        ({"max_colluding_users": 1}, 2),
        ({"max_colluding_users": 2, "collusion_bound": 4}, 3),
        ({"max_colluding_users": 2, "elected": 3}, 3),
    ],
)
def test_dummies_are_added_once_by_each_contributor(
    arguments: dict[str, Any], sets: int, always: bool, harness: ModuleType
) -> None:
    rate = {"rate": harness.ALWAYS} if always else {}
    mechanism = plan(dummies=80, floor=0, **arguments, **rate)
    assert mechanism._contributors == sets
    with pytest.MonkeyPatch.context() as patch:
        recorded = Recorded(patch)
        network = harness.Network(td.Round.start(mechanism))
        network.report(VALUES)
        network.finish_in_any_order(random.Random(5))
        extra = network.server.sums - recorded.counts
        assert int(extra.sum()) == recorded.dummies
        if always:
            assert extra.tolist() == [80 * sets] * 3
        else:
            # 160 coins an item at rate .7 are above 80: less than that has probability 10^-7.
            assert ((extra > 80) & (extra <= 80 * sets)).all()
    coins = sum(role.costs.coins for role in network.roles.values())
    assert coins == 6 + 3 * 80 * sets


# Sets.


def test_sets_of_strangers_repeated_or_malformed_sets_are_refused(harness: ModuleType) -> None:
    network = harness.Network(td.Round.start(plan()))
    first = network.roles[FIRST_SERVER]
    (message,) = network.user(0).report(0)
    first.receive(message.to_bytes())
    refused(harness, first, message.to_bytes(), "already has")
    for sender in (Party(USER, 6), Party(Role.AGGREGATOR, 1), SERVER):
        data = harness.forged(network.round_, MessageKind.SET, sender, FIRST_SERVER, b"\x03")
        refused(harness, first, data, "no part")
    for payload in (b"", b"\x00", b"\x01", b"\x07", b"\x0b", b"\x83", b"\x03\x00"):
        data = harness.forged(
            network.round_, MessageKind.SET, Party(USER, 1), FIRST_SERVER, payload
        )
        refused(harness, first, data, "set", MalformedMessageError)


def test_late_sets_are_refused(harness: ModuleType) -> None:
    network = harness.Network(td.Round.start(plan(max_missing_users=1, floor=2)))
    late = network.user(5).report(2)
    network.report(VALUES[:5])
    network.deliver()
    elections = network.roles[FIRST_SERVER].close()
    assert {message.recipient.index for message in elections[:-1]} == set(range(5))
    refused(harness, network.roles[FIRST_SERVER], late[0].to_bytes(), "too late")
    network.deliver(elections)
    assert network.server.received == 5
    with pytest.raises(MissingPartyError) as caught:
        network.user(5).give_up()
    assert caught.value.parties == (FIRST_SERVER,)


# Elections.


def test_committees_are_distinct_present_and_of_the_size_of_the_plan(harness: ModuleType) -> None:
    for arguments in PLANS:
        network, elections = network_after_sets(harness, **arguments)
        mechanism = network.round_.mechanism
        read = Election.unpack(elections[-1].payload, 6, 3, None)
        sets = [network.user(index)._set for index in range(6)]
        reporters = np.bincount(np.concatenate(sets), minlength=3)
        assert read.received == 6
        assert read.reporters.tolist() == reporters.tolist()
        for count, users in zip(reporters.tolist(), read.elected, strict=True):
            assert len(users) == len(set(users.tolist())) == mechanism._committee_size(count) > 1
        for message in elections[:-1]:
            own = Election.unpack(message.payload, 6, 3, message.recipient.index)
            for item, users in own.duties.items():
                assert users.tolist() == [i for i in range(6) if item in sets[i]]


@pytest.mark.parametrize("reporters", [(6, 0, 0), (0, 5, 1), (1, 2, 3), (4, 0, 2)])
@pytest.mark.parametrize(
    ("arguments", "least"),
    [
        ({}, 2),
        ({"collusion_bound": 0}, 2),
        ({"collusion_bound": 1}, 2),
        ({"collusion_bound": 2}, 3),
        ({"dummies": 3}, 2),
        ({"dummies": 3, "honest_aggregators": 2}, 3),
        ({"dummies": 3, "max_missing_users": 3}, 2),
        ({"elected": 2}, None),
        ({"elected": 6}, None),
    ],
)
def test_two_users_at_least_are_elected_for_every_item(
    arguments: dict[str, Any], least: int | None, reporters: tuple[int, ...], harness: ModuleType
) -> None:
    """Also for what one or nobody reports, and only among those whose sets came."""
    mechanism = plan(reported=1, **arguments)
    round_ = td.Round.start(mechanism)
    first = round_.reporting_server()
    present = 6 - mechanism.max_missing_users
    chosen = np.repeat(np.arange(3), reporters)[:present]
    for user, item in enumerate(chosen.tolist()):
        payload = bytes([1 << item])
        first.receive(
            harness.forged(round_, MessageKind.SET, Party(USER, user), FIRST_SERVER, payload)
        )
    read = Election.unpack(first.close()[-1].payload, 6, 3, None)
    expected = [arguments.get("elected")] * 3
    if least is not None:
        expected = [max(int((chosen == item).sum()), least) for item in range(3)]
    assert [len(set(users.tolist())) for users in read.elected] == expected
    assert min(len(users) for users in read.elected) >= 2
    assert max(max(users.tolist()) for users in read.elected) < present


@pytest.mark.parametrize("present", [6, 4])
def test_committees_are_drawn_uniformly_among_those_present(
    present: int, harness: ModuleType, statistical: ModuleType
) -> None:
    mechanism = plan(elected=2, floor=0, dummies=1, max_missing_users=2)
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(600):
        round_ = td.Round.start(mechanism)
        first = round_.reporting_server()
        for user in range(present):
            first.receive(
                harness.forged(round_, MessageKind.SET, Party(USER, user), FIRST_SERVER, b"\x03")
            )
        election = Election.unpack(first.close()[-1].payload, 6, 3, None)
        for users in election.elected:
            seen[tuple(users.tolist())] += 1
    # In order: the first ones add dummies, so the order must be uniform too.
    pairs = list(itertools.permutations(range(present), 2))
    assert set(seen) <= set(pairs)
    probabilities = np.full(len(pairs), 1 / len(pairs))
    statistical.check_law([seen[pair] for pair in pairs], probabilities)


def test_repeated_and_foreign_elections_are_refused(harness: ModuleType) -> None:
    network, elections = network_after_sets(harness, elected=2)
    user, server = network.user(0), network.server
    for role in (user, server):
        for sender in (Party(USER, 1), SERVER, Party(Role.REPORTING_SERVER, 1)):
            data = harness.forged(
                network.round_, MessageKind.ELECTION, sender, role.party, elections[-1].payload
            )
            refused(harness, role, data, ANY)
        mine = next(message for message in elections if message.recipient == role.party)
        role.receive(mine.to_bytes())
        if role.state is State.DONE:
            refused(harness, role, mine.to_bytes(), "too late")
        else:
            refused(harness, role, mine.to_bytes(), "already has")


def election_for(harness: ModuleType, network: Any, recipient: Party, election: Election) -> bytes:
    duties = election.duty_part(sorted(election.duties.items()))
    data = election.public_part() + duties
    return harness.forged(network.round_, MessageKind.ELECTION, FIRST_SERVER, recipient, data)


def everybody(count: int) -> Items:
    return np.arange(count, dtype=np.int64)


def test_users_wrongly_listed_as_reporters_refuse_the_election(harness: ModuleType) -> None:
    """The user is elected for all items; the reporters of one of them cannot be right."""
    network = harness.Network(td.Round.start(plan(elected=2)))
    (message,) = network.user(0).report(0)
    chosen = payloads.unpack_bits(message.payload, 3, "a set")
    own = [0, 1, 2, 3]
    for wrong in range(3):
        listed = {item: own if chosen[item] else [1, 2, 3, 4] for item in range(3)}
        listed[wrong] = [2, 3, 4, 5] if chosen[wrong] else own
        duties = {item: np.array(users) for item, users in listed.items()}
        election = Election(6, np.array([4, 4, 4]), (np.array([0, 5]),) * 3, duties)
        data = election_for(harness, network, Party(USER, 0), election)
        refused(harness, network.user(0), data, "wrongly listed")


def test_elections_without_a_committee_for_a_reported_item_are_refused(
    harness: ModuleType,
) -> None:
    network = harness.Network(td.Round.start(plan(reported=1)))
    (message,) = network.user(0).report(0)
    chosen = int(np.flatnonzero(payloads.unpack_bits(message.payload, 3, "a set"))[0])
    nobody, pair = np.empty(0, np.int64), np.array([1, 2])
    for other in {0, 1, 2} - {chosen}:
        # All six are said to report another item, and nobody the own one.
        reporters = np.array([6 if item == other else 0 for item in range(3)])
        for few, match in ((nobody, "2 users must be elected"), (pair, "not counted among")):
            elected = tuple(everybody(6) if item == other else few for item in range(3))
            for duties, reason in (
                ({other: everybody(6)}, match),
                ({other: 1 + everybody(6)}, ANY),  # there is no user 6
            ):
                election = Election(6, reporters, elected, duties)
                data = election_for(harness, network, Party(USER, 0), election)
                refused(harness, network.user(0), data, reason)
    # And not even elected itself.
    network = harness.Network(td.Round.start(plan(reported=1, max_missing_users=1, floor=2)))
    (message,) = network.user(0).report(0)
    chosen = int(np.flatnonzero(payloads.unpack_bits(message.payload, 3, "a set"))[0])
    other = (chosen + 1) % 3
    reporters = np.array([5 if item == other else 0 for item in range(3)])
    for few, match in ((nobody, "2 users must be elected"), (pair, "not counted among")):
        elected = tuple(1 + everybody(5) if item == other else few for item in range(3))
        election = Election(5, reporters, elected, {})
        data = election_for(harness, network, Party(USER, 0), election)
        refused(harness, network.user(0), data, match)


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        ({}, 0), ({}, 1), ({}, 3), ({"elected": 2}, 1), ({"collusion_bound": 0}, 1),
        ({"collusion_bound": 2}, 1), ({"elected": 3}, 2), ({"elected": 3}, 4),
    ],
)  # fmt: skip
def test_committees_of_another_size_than_the_plan_says_are_refused(
    arguments: dict[str, Any], size: int, harness: ModuleType
) -> None:
    network = harness.Network(td.Round.start(plan(reported=1, **arguments)))
    (message,) = network.user(0).report(0)
    item = int(np.flatnonzero(payloads.unpack_bits(message.payload, 3, "a set"))[0])
    other, fixed = (item + 1) % 3, arguments.get("elected")
    # One size is wrong: of the own item, or of another one that as many report.
    for wrong, count in ((item, 2), (other, 2), (other, 1), (other, 0)):
        reporters = np.full(3, 2)
        reporters[[other, item]] = count, 4 - count
        least = max(arguments.get("collusion_bound", 0) + 1, 2)
        right = [fixed or max(int(number), least) for number in reporters]
        sizes = [size if i == wrong else right[i] for i in range(3)]
        elected = tuple(1 + everybody(number) for number in sizes)
        election = Election(6, reporters, elected, {})
        match = f"{right[wrong]} users must be elected for item {wrong}, got {size}"
        for role in (network.user(0), network.server):
            data = election_for(harness, network, role.party, election)
            refused(harness, role, data, match, MalformedMessageError)


def test_an_election_without_users_is_refused_by_the_server(harness: ModuleType) -> None:
    network = harness.Network(td.Round.start(plan()))
    nobody = np.empty(0, np.int64)
    election = Election(0, np.zeros(3, np.int64), (nobody, nobody, nobody), {})
    refused(harness, network.server, election_for(harness, network, SERVER, election), ANY)


# Shares of items.


def between_elections_and_sums(harness: ModuleType) -> tuple[Any, list[Message]]:
    """Everyone is elected for every item and has the election; the shares are on their way."""
    network, elections = network_after_sets(harness, reported=3, elected=6, rate=harness.ALWAYS)
    sent = [
        answer
        for message in elections
        for answer in network.roles[message.recipient].receive(message.to_bytes())
    ]
    return network, sent


def test_repeated_malformed_and_foreign_shares_are_refused(harness: ModuleType) -> None:
    network, sent = between_elections_and_sums(harness)
    assert len(sent) == 30
    field = network.round_.mechanism.field
    first = next(m for m in sent if m.recipient.index == 0 and m.sender.index == 1)
    user = network.user(0)
    user.receive(first.to_bytes())
    refused(harness, user, first.to_bytes(), "already has")
    good = NUMBERED + payloads.pack_item_shares(np.arange(3), field, field._elements([1, 2, 3]))
    for sender in (Party(USER, 6), SERVER, FIRST_SERVER):
        data = harness.forged(network.round_, MessageKind.ITEM_SHARES, sender, user.party, good)
        refused(harness, user, data, "no part")
    own = harness.forged(network.round_, MessageKind.ITEM_SHARES, user.party, user.party, good)
    refused(harness, user, own, ANY)
    bad = bytearray(good)
    bad[-2:] = b"\xff\xff"
    fewer = NUMBERED + payloads.pack_item_shares(np.arange(2), field, field._elements([1, 2]))
    items, elements = np.array([0, 0, 1]), field._elements([1, 2, 3])
    twice = NUMBERED + payloads.pack_item_shares(items, field, elements)
    foreign = NUMBERED + payloads.pack_item_shares(np.array([0, 1, 3]), field, elements)
    for payload in (b"", good[:-1], good + b"\x00", bytes(bad), fewer, twice, foreign):
        data = harness.forged(
            network.round_, MessageKind.ITEM_SHARES, Party(USER, 2), user.party, payload
        )
        refused(harness, user, data, ANY)
    network.deliver(message for message in sent if message is not first)
    assert network.server.sums.tolist() == [1, 2, 3]
    refused(harness, user, first.to_bytes(), "too late")


def test_shares_that_came_before_the_election_and_do_not_fit_are_dropped(
    harness: ModuleType,
) -> None:
    network, elections = network_after_sets(harness, reported=3, elected=6, rate=harness.ALWAYS)
    user, field = network.user(0), network.round_.mechanism.field
    for sender, items in ((1, [0]), (2, [0, 2]), (0, [0, 1, 2])):
        bundle = NUMBERED + payloads.pack_item_shares(
            np.array(items, np.int64), field, field._elements([1] * len(items))
        )
        early = harness.forged(
            network.round_, MessageKind.ITEM_SHARES, Party(USER, sender), user.party, bundle
        )
        try:
            user.receive(early)
        except ProtocolError:
            assert sender == 0
    network.deliver(elections)
    assert network.server.sums.tolist() == [1, 2, 3]


def test_a_lost_share_or_sum_is_named_and_nothing_is_kept(harness: ModuleType) -> None:
    network, sent = between_elections_and_sums(harness)
    lost = [(4, 0), (5, 0), (2, 3)]
    network.deliver(m for m in sent if (m.sender.index, m.recipient.index) not in lost)
    for index, missing in ((0, [4, 5]), (3, [2])):
        user = network.user(index)
        assert user.missing == tuple(Party(USER, other) for other in missing)
        with pytest.raises(MissingPartyError) as caught:
            user.give_up()
        assert caught.value.parties == tuple(Party(USER, other) for other in missing)
        assert not harness.holds_data(user)
    # Nobody adds up until all is there.
    first = network.roles[FIRST_SERVER]
    assert first.missing == (Party(USER, 0), Party(USER, 3))
    with pytest.raises(MissingPartyError) as caught:
        first.give_up()
    assert caught.value.parties == (Party(USER, 0), Party(USER, 3))
    assert not harness.holds_data(first)
    with pytest.raises(MissingPartyError, match=r"the reporting server, user 0.*and 2 more"):
        network.server.estimate()
    assert network.server.state is State.COLLECTING
    with pytest.raises(MissingPartyError) as caught:
        network.server.give_up()
    assert caught.value.parties == (FIRST_SERVER, *(Party(USER, index) for index in range(6)))
    assert not harness.holds_data(network.server)
