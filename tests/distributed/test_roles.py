"""The state machines of the roles: what they refuse, what they forget, and what the sums are."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import turnout as tn
import turnout.distributed as td
from turnout.distributed import Message, Party, Role
from turnout.distributed.messages import MessageKind
from turnout.distributed.roles.base import State
from turnout.distributed.roles.elections import Election
from turnout.errors import (
    InvalidTypeError,
    InvalidValueError,
    MalformedMessageError,
    MissingPartyError,
    ProtocolError,
    TurnoutError,
)

USER, AGGREGATOR = Role.USER, Role.AGGREGATOR
SERVER, FIRST_SERVER = Party(Role.SERVER), Party(Role.REPORTING_SERVER)
VALUES = [0, 1, 1, 2, 2, 2]

#: The number of a report, as shares and rosters carry it.
REPORT = b"\x01" + bytes(7)


def check_refused(
    harness: ModuleType,
    role: Any,
    data: bytes,
    match: str,
    error: type[TurnoutError] = ProtocolError,
) -> None:
    before = harness.state_of(role)
    with pytest.raises(error, match=match) as caught:
        role.receive(data)
    assert not isinstance(caught.value, MissingPartyError)
    assert harness.state_of(role) == before


def shares(harness: ModuleType, **arguments: Any) -> tuple[Any, list[Message]]:
    """Start a round of 6 users and give its network and one user's messages."""
    network = harness.Network(td.Round.start(harness.silent(3, 6, **arguments)))
    return network, network.user(0).report(0)


# Messages that every role refuses.


def all_roles(harness: ModuleType) -> list[Any]:
    one = harness.Network(td.Round.start(harness.silent(3, 6)))
    two = td.TwoStageSampling(3, 6, reported=2, rate=harness.ALWAYS, floor=1)
    network = harness.Network(td.Round.start(two))
    network.user(0).report(0)
    chosen = [network.roles[party] for party in (SERVER, FIRST_SERVER, Party(USER, 0))]
    return [one.server, one.aggregator(0), one.user(0), *chosen, network.user(1)]


def test_every_role_refuses_other_rounds_other_recipients_and_damage(harness: ModuleType) -> None:
    for role in all_roles(harness):
        payload, sender = b"\x00" * 33, Party(USER, 1)
        for kind in MessageKind:
            good = Message(kind, role.round_id, sender, role.party, payload)
            other = Message(kind, bytes(16), sender, role.party, payload)
            check_refused(harness, role, other.to_bytes(), "messages of round")
            for party in (Party(USER, 5), Party(AGGREGATOR, 1), Party(role.party.role, 9)):
                wrong = Message(kind, role.round_id, sender, party, payload)
                check_refused(harness, role, wrong.to_bytes(), f"for {party}")
            data = good.to_bytes()
            check_refused(harness, role, data[:-1], "truncated", MalformedMessageError)
            check_refused(harness, role, data + b"\x00", "follows", MalformedMessageError)
            altered = data[:40] + bytes([data[40] ^ 1]) + data[41:]
            check_refused(harness, role, altered, "altered", MalformedMessageError)
        check_refused(harness, role, "text", "bytes", InvalidTypeError)


def test_every_role_refuses_kinds_that_are_not_for_it(harness: ModuleType) -> None:
    takes = {
        "VectorUser": set(),
        "SetUser": {MessageKind.ELECTION, MessageKind.ITEM_SHARES, MessageKind.ROSTER},
        "Aggregator": {MessageKind.SHARE, MessageKind.ROSTER},
        "ReportingServer": {MessageKind.SET, MessageKind.ROSTER},
        "VectorServer": {MessageKind.SUM},
        "ElectedServer": {MessageKind.SUM, MessageKind.ELECTION},
    }
    for role in all_roles(harness):
        allowed = takes[type(role).__name__]
        for kind in set(MessageKind) - allowed:
            data = Message(kind, role.round_id, Party(USER, 1), role.party, b"").to_bytes()
            check_refused(harness, role, data, "of kind", MalformedMessageError)


@pytest.mark.parametrize(
    "mechanism",
    [
        td.NoisyAggregation(3, 6, parties=3, parameter=0.02),
        td.NoisyAggregation(40, 6, parties=2, parameter=0.02, compressed=False),
        td.SamplingAggregation(40, 6, parties="users", rate=0.5, dummies=1),
        td.TwoStageSampling(5, 6, reported=2, rate=0.5, dummies=1),
        td.TwoStageSampling(5, 6, reported=5, rate=0.5, dummies=1, elected=6),
    ],
)
def test_no_message_of_a_round_is_larger_than_its_recipient_says(
    mechanism: td.AggregationMechanism, harness: ModuleType
) -> None:
    network = harness.Network(td.Round.start(mechanism))
    largest: dict[tuple[type, MessageKind], tuple[int, int]] = {}
    waiting = [each for user in range(6) for each in network.user(user).report(user % 3)]
    collectors = network.collectors
    while waiting or collectors:
        if not waiting:
            waiting += collectors.pop().close()
            continue
        message = waiting.pop()
        role, kind, length = network.roles[message.recipient], message.kind, len(message.payload)
        assert length <= role._takes[kind]
        seen = largest.get((type(role), kind), (0, 0))
        largest[type(role), kind] = max(seen, (length, role._takes[kind]))
        waiting += role.receive(message.to_bytes())
    assert network.server.received == 6
    # They are no larger than they have to be.
    for (_, kind), (length, limit) in largest.items():
        two_stage = isinstance(mechanism, td.TwoStageSampling)
        random = two_stage and kind in (
            MessageKind.ELECTION,
            MessageKind.ITEM_SHARES,
            MessageKind.SUM,
        )
        # The largest roster is of one who misses more users than may be lost.
        roster = two_stage and limit == 4 * (2 + mechanism.max_missing_users)
        assert random or roster or length == limit


@pytest.mark.parametrize("elected", [None, 3])
def test_the_largest_election_is_that_of_users_who_all_report_the_same(elected: int | None) -> None:
    mechanism = td.TwoStageSampling(5, 6, reported=2, rate=0.5, dummies=1, elected=elected)
    reporters = [6, 0, 6, 0, 0]
    sizes = [min(mechanism._committee_size(count), 6) for count in reporters]
    users = np.arange(6)
    election = Election(6, np.array(reporters), tuple(users[:size] for size in sizes), {})
    duties = [(item, users[:count]) for item, count in enumerate(reporters)]
    public = election.public_part()
    whole = public + election.duty_part(duties)
    Election.unpack(whole, 6, 5, 0).check(mechanism)
    round_ = td.Round.start(mechanism)
    assert round_.server()._takes[MessageKind.ELECTION] == len(public)
    assert round_.user(0)._takes[MessageKind.ELECTION] == len(whole)


def test_rounds_of_another_plan_or_use_never_mix(harness: ModuleType) -> None:
    nonce = bytes(16)
    plans = [
        harness.silent(3, 6),
        harness.silent(3, 6, parties=2),
        harness.silent(4, 6),
        harness.silent(3, 7),
        harness.silent(tn.Domain(["a", "b", "c"]), 6),
        td.NoisyAggregation(3, 6, parameter=0.03),
        td.SamplingAggregation(3, 6, rate=0.5, floor=1),
    ]
    rounds = [td.Round(plan, nonce) for plan in plans] + [td.Round.start(plans[0])]
    assert len({round_.identifier for round_ in rounds}) == len(rounds)
    aggregator = rounds[0].aggregator(0)
    for round_ in rounds[1:]:
        label = round_.mechanism.domain.labels[0]
        message = round_.user(0).report(label)[0]
        check_refused(harness, aggregator, message.to_bytes(), "messages of round")
    assert aggregator.receive(td.Round(plans[0], nonce).user(0).report(0)[0].to_bytes()) == []


def test_two_rounds_at_once_have_their_own_sums(harness: ModuleType) -> None:
    mechanism = harness.silent(3, 6)
    one, two = (harness.Network(td.Round.start(mechanism)) for _ in range(2))
    for index, (first, second) in enumerate(zip(VALUES, [2] * 6, strict=True)):
        one.waiting += one.user(index).report(first)
        two.waiting += two.user(index).report(second)
    for message in list(one.waiting):
        check_refused(harness, two.roles[message.recipient], message.to_bytes(), "of round")
    one.deliver()
    two.deliver()
    one.close()
    two.close()
    assert one.server.sums.tolist() == [1, 2, 3]
    assert two.server.sums.tolist() == [0, 0, 6]


# Users and aggregators.


def test_unknown_users_are_refused_by_aggregators(harness: ModuleType) -> None:
    network, (message, *_) = shares(harness)
    aggregator = network.aggregator(0)
    for sender in (Party(USER, 6), Party(USER, 2**32 - 1), Party(AGGREGATOR, 1), SERVER):
        data = harness.forged(
            network.round_, MessageKind.SHARE, sender, aggregator.party, message.payload
        )
        check_refused(harness, aggregator, data, "no part")
    for sender in (Party(USER, 1), Party(AGGREGATOR, 3), SERVER):
        data = harness.forged(network.round_, MessageKind.ROSTER, sender, aggregator.party, b"\x3f")
        check_refused(harness, aggregator, data, "no part")
    own = harness.forged(
        network.round_, MessageKind.ROSTER, aggregator.party, aggregator.party, b"\x3f"
    )
    check_refused(harness, aggregator, own, "its own")


def test_repeated_shares_rosters_and_sums_are_refused(harness: ModuleType) -> None:
    network, _ = shares(harness)
    network = harness.Network(network.round_)
    network.report(VALUES)
    for message in network.waiting:
        role = network.roles[message.recipient]
        role.receive(message.to_bytes())
        check_refused(harness, role, message.to_bytes(), "already has")
    # Another share of the same user is a repetition too.
    again = network.round_.user(0).report(2)[0]
    check_refused(harness, network.aggregator(0), again.to_bytes(), "already has")
    rosters = network.aggregator(1).close()
    first = network.aggregator(0)
    first.receive(rosters[0].to_bytes())
    check_refused(harness, first, rosters[0].to_bytes(), "already has")
    sums = [message for index in (0, 2) for message in network.aggregator(index).close()]
    pending = [message for message in [*rosters[1:], *sums] if message.kind is MessageKind.ROSTER]
    totals = [message for message in sums if message.kind is MessageKind.SUM]
    for message in pending:
        totals += network.roles[message.recipient].receive(message.to_bytes())
    assert len(totals) == 3
    network.server.receive(totals[0].to_bytes())
    check_refused(harness, network.server, totals[0].to_bytes(), "already has")
    network.server.receive(totals[1].to_bytes())
    network.server.receive(totals[2].to_bytes())
    check_refused(harness, network.server, totals[2].to_bytes(), "too late")
    assert network.server.sums.tolist() == [1, 2, 3]


def test_a_party_has_a_plain_integer_for_its_index() -> None:
    round_ = td.Round.start(td.NoisyAggregation(2, 3, parties=2, epsilon=1.0))
    for party in (round_.aggregator(np.int64(1)).party, round_.user(np.int64(1)).party):
        assert type(party.index) is int
    for index in (2, -1, True, 1.0, "1"):
        with pytest.raises((InvalidTypeError, InvalidValueError), match="index must be an integer"):
            round_.aggregator(index)  # type: ignore[arg-type]


def test_malformed_shares_rosters_and_sums_are_refused(harness: ModuleType) -> None:
    network, _ = shares(harness)
    field = network.round_.mechanism.field
    largest = 2**field.bits - 1
    assert largest >= field.modulus
    packed = field._pack([1, 2, 3])
    bad = largest | 1 << field.bits  # an element that is none
    padded = bytes([*packed[:-1], packed[-1] | 0x80])
    assert 3 * field.bits % 8
    aggregator = network.aggregator(0)
    start = REPORT + b"\x01"
    for payload in (
        b"",
        REPORT,
        REPORT + bytes(32),
        REPORT + bytes(34),
        bytes(8 + 33),
        REPORT + b"\x02" + packed,
        start + packed[:-1],
        start + packed + b"\x00",
        start + padded,
        start + bad.to_bytes(len(packed), "little"),
    ):
        data = harness.forged(
            network.round_, MessageKind.SHARE, Party(USER, 2), aggregator.party, payload
        )
        check_refused(harness, aggregator, data, "share|elements|report", MalformedMessageError)
    all_six = b"\x3f" + 6 * REPORT
    for payload in (b"", b"\x3f", all_six[:-1], all_six + b"\x00", b"\x7f" + 7 * REPORT, bytes(49)):
        data = harness.forged(
            network.round_, MessageKind.ROSTER, Party(AGGREGATOR, 1), aggregator.party, payload
        )
        check_refused(harness, aggregator, data, "roster", MalformedMessageError)
    head = (6).to_bytes(4, "little") + bytes(16)
    sums = [
        b"",
        head,
        head + padded,
        head + packed[:-1],
        head + bad.to_bytes(len(packed), "little"),
    ]
    sums += [users.to_bytes(4, "little") + bytes(16) + packed for users in (0, 5, 7, 2**32 - 1)]
    for payload in sums:
        data = harness.forged(
            network.round_, MessageKind.SUM, Party(AGGREGATOR, 1), SERVER, payload
        )
        check_refused(harness, network.server, data, "sum|elements|added", MalformedMessageError)


@pytest.mark.parametrize("compressed", [False, True])
def test_shares_travel_as_the_plan_says(compressed: bool, harness: ModuleType) -> None:
    network, sent = shares(harness, compressed=compressed)
    field = network.round_.mechanism.field
    forms = {True: REPORT + b"\x00" + bytes(32), False: REPORT + b"\x01" + field._pack([1, 2, 3])}
    for index in range(3):
        aggregator, seeded = network.aggregator(index), compressed and index < 2
        assert len(sent[index].payload) == len(forms[seeded])
        for form, payload in forms.items():
            data = harness.forged(
                network.round_, MessageKind.SHARE, Party(USER, 2 + form), aggregator.party, payload
            )
            if form == seeded:
                assert aggregator.receive(data) == []
            else:
                check_refused(harness, aggregator, data, "the plan expects", MalformedMessageError)


def test_late_shares_and_rosters_are_refused(harness: ModuleType) -> None:
    network, late = shares(harness, max_missing_users=1)
    for index in range(1, 6):
        network.deliver(network.user(index).report(VALUES[index]))
    rosters = [message for index in range(3) for message in network.aggregator(index).close()]
    check_refused(harness, network.aggregator(0), late[0].to_bytes(), "too late")
    network.deliver(rosters)
    assert {network.aggregator(index).state for index in range(3)} == {State.DONE}
    for message in (late[0], rosters[2]):
        role = network.roles[message.recipient]
        check_refused(harness, role, message.to_bytes(), "too late")
    assert network.server.received == 5
    assert network.server.sums.tolist() == [0, 2, 3]


def test_closing_twice_and_reporting_twice_are_refused(harness: ModuleType) -> None:
    network, _ = shares(harness)
    before = harness.state_of(network.user(0))
    with pytest.raises(ProtocolError, match="reported in this round already"):
        network.user(0).report(1)
    assert harness.state_of(network.user(0)) == before
    two = td.Round.start(td.TwoStageSampling(3, 2, reported=1, rate=0.5, dummies=1))
    user, server = two.user(0), two.reporting_server()
    server.receive(user.report(0)[0].to_bytes())
    server.receive(two.user(1).report(1)[0].to_bytes())
    with pytest.raises(ProtocolError, match="reported in this round already"):
        user.report(0)
    aggregator = td.Round.start(harness.silent(3, 6, max_missing_users=5)).aggregator(0)
    aggregator.receive(
        Message(MessageKind.SHARE, aggregator.round_id, Party(USER, 0), aggregator.party,
                REPORT + bytes(33)).to_bytes()
    )  # fmt: skip
    assert aggregator.close()
    before = harness.state_of(aggregator)
    with pytest.raises(ProtocolError, match="it is already closed"):
        aggregator.close()
    assert harness.state_of(aggregator) == before
    # The reporting server asks who is missing, and then goes on without them.
    assert {message.kind for message in server.close()} == {MessageKind.ELECTION}
    assert {message.kind for message in server.close()} == {MessageKind.ROSTER}
    with pytest.raises(MissingPartyError, match="user 0, user 1"):
        server.close()
    with pytest.raises(ProtocolError, match="it is already closed"):
        server.close()


@pytest.mark.parametrize("value", [3, -1, "x", None, [0], 0.5, np.array([0, 1])])
def test_values_outside_the_domain_are_refused_and_can_be_mended(
    value: Any, harness: ModuleType
) -> None:
    two_stage = td.TwoStageSampling(3, 6, reported=2, rate=0.5, floor=1)
    for mechanism in (harness.silent(3, 6), two_stage):
        user = td.Round.start(mechanism).user(0)
        before = harness.state_of(user)
        with pytest.raises((InvalidValueError, InvalidTypeError)):
            user.report(value)
        assert harness.state_of(user) == before
        assert user.report(2)
