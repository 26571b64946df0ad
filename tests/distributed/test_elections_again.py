"""Users who are lost in the middle of a two-stage round: another election, or they are named."""

from __future__ import annotations

import random
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
from turnout.distributed.roles.elections import (
    Election,
    Word,
    largest_roster,
    lost_users,
    pack_missing,
    pack_word,
)
from turnout.errors import MalformedMessageError, MissingPartyError, ProtocolError

SERVER, FIRST_SERVER = Party(Role.SERVER), Party(Role.REPORTING_SERVER)
VALUES = [0, 1, 1, 2, 2, 2, 0, 1, 0, 1, 2, 0, 2, 1, 0, 2]


def user(index: int) -> Party:
    return Party(Role.USER, index)


def certain(harness: ModuleType, **arguments: Any) -> td.TwoStageSampling:
    """A plan in which everyone takes part and reports all items, so that sums are counts."""
    given = {"reported": 3, "rate": harness.ALWAYS, "floor": 5, "elected": 3} | arguments
    return td.TwoStageSampling(3, len(VALUES), max_missing_users=4, **given)


class Play:
    """A round in which some users fall silent, carried until it is over."""

    def __init__(self, harness: ModuleType, mechanism: td.TwoStageSampling) -> None:
        self.network = harness.Network(td.Round.start(mechanism))
        self.first = self.network.roles[FIRST_SERVER]
        #: Users of whom nothing is heard, and to whom nothing gets through.
        self.silent: set[int] = set()
        #: Pairs of users between whom nothing gets through.
        self.cut: set[tuple[int, int]] = set()
        self.sent: list[Message] = []

    def lost(self, message: Message) -> bool:
        ends = [end.index for end in (message.sender, message.recipient) if end.role is Role.USER]
        return bool(self.silent.intersection(ends)) or tuple(ends) in self.cut

    def deliver(self, messages: list[Message], chance: random.Random | None = None) -> None:
        """Deliver messages and what follows from them, as far as it gets through."""
        waiting = list(messages)
        while waiting:
            message = waiting.pop(0 if chance is None else chance.randrange(len(waiting)))
            self.sent.append(message)
            if self.lost(message):
                continue
            try:
                waiting += self.network.roles[message.recipient].receive(message.to_bytes())
            except MissingPartyError:
                if message.recipient.role is not Role.USER:
                    raise
                # It was left out, and heard of it.
            except ProtocolError:
                assert message.kind is not MessageKind.SUM

    def begin(self, reporting: int = len(VALUES)) -> list[Message]:
        """Let users report; give the first elections."""
        self.network.report(VALUES[:reporting])
        self.deliver(self.network.waiting)
        return self.first.close()

    def finish(self, messages: list[Message], chance: random.Random | None = None) -> None:
        self.deliver(messages, chance)
        for _ in range(3 * len(VALUES)):
            if self.first.state is State.DONE:
                return
            self.deliver(self.first.close(), chance)
        raise AssertionError("the round does not end")

    def check(self, left: set[int]) -> None:
        """The sums are those of these users, all of them and nobody else."""
        counts = np.bincount([VALUES[index] for index in sorted(left)], minlength=3)
        assert self.network.server.sums.tolist() == counts.tolist()
        assert self.network.server.received == len(left)
        assert self.network.server.estimate().nodes == len(left)
        summed = [message for message in self.sent if message.kind is MessageKind.SUM]
        assert len({message.sender for message in summed}) == len(summed)
        assert len({message.payload[:4] for message in summed}) == 1


@pytest.fixture
def play(harness: ModuleType) -> Play:
    return Play(harness, certain(harness))


EVERYBODY = set(range(len(VALUES)))


@pytest.mark.parametrize("silent", [{0}, {3}, {1, 7}, {0, 2, 4, 6}])
@pytest.mark.parametrize("elected", [2, 3, 4])
def test_users_that_vanish_after_their_sets_are_left_out_and_others_are_elected(
    harness: ModuleType, silent: set[int], elected: int
) -> None:
    play = Play(harness, certain(harness, elected=elected))
    elections = play.begin()
    play.silent = silent
    play.finish(elections)
    play.check(EVERYBODY - silent)
    assert not any(harness.holds_data(play.network.user(index)) for index in EVERYBODY - silent)
    assert not harness.holds_data(play.first)


def test_an_elected_user_that_vanishes_with_its_shares_is_replaced(play: Play) -> None:
    elections = play.begin()
    read = Election.unpack(elections[-1].payload, len(VALUES), 3, None)
    gone = int(read.elected[1][0])
    held: list[Message] = []

    def lost(message: Message) -> bool:
        # It shared its own bits, and everybody's reached it; it says nothing of it.
        if message.sender == user(gone) and message.kind is not MessageKind.ITEM_SHARES:
            held.append(message)
            return True
        return False

    play.lost = lost  # type: ignore[method-assign]
    play.finish(elections)
    left = EVERYBODY - {gone}
    play.check(left)
    # It comes back: its roster is of an election that was replaced, and it was told to stop.
    with pytest.raises(ProtocolError, match=r"too late|in election"):
        play.first.receive(held[0].to_bytes())
    assert play.network.user(gone).state is State.FAILED
    again = Election.unpack(
        next(m for m in reversed(play.sent) if m.recipient == SERVER and m.sender == FIRST_SERVER
        ).payload, len(VALUES), 3, None,
    )  # fmt: skip
    assert again.number == 1
    assert all(gone not in users for users in again.elected)


def test_more_users_lost_than_may_be_are_named_and_nothing_is_published(
    harness: ModuleType, play: Play
) -> None:
    elections = play.begin(reporting=15)
    play.silent = {0, 2, 4, 6}
    with pytest.raises(MissingPartyError, match=r"5 of 16 users are missing") as caught:
        play.finish(elections)
    assert caught.value.parties == tuple(map(user, (0, 2, 4, 6, 15)))
    assert play.first.state is State.FAILED
    assert not harness.holds_data(play.first)
    assert not [message for message in play.sent if message.kind is MessageKind.SUM]
    with pytest.raises(MissingPartyError):
        play.network.server.estimate()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([2, 3, 5]))
def test_whoever_is_lost_whenever_the_sums_are_those_of_the_users_left_or_there_are_none(
    harness: ModuleType, seed: int, elected: int
) -> None:
    chance = random.Random(seed)
    play = Play(harness, certain(harness, elected=elected))
    elections = play.begin()
    pairs = [(one, two) for one in EVERYBODY for two in EVERYBODY if one != two]
    doomed = set(chance.sample(sorted(EVERYBODY), chance.randrange(4)))
    moments = chance.randrange(250)
    play.cut = set(chance.sample(pairs, chance.randrange(3)))
    whole = play.lost

    def lost(message: Message) -> bool:
        if len(play.sent) > moments and play.first.state is not State.DONE:
            play.silent = doomed
        return whole(message)

    play.lost = lost  # type: ignore[method-assign]
    try:
        play.finish(elections, chance)
    except MissingPartyError:
        assert play.first.state is State.FAILED
        with pytest.raises(MissingPartyError):
            play.network.server.estimate()
        return
    left = {index for index in EVERYBODY if play.network.user(index).state is State.DONE}
    if play.network.server.state is not State.DONE:
        # Lost after everyone was let go on: the server names those who sent no sum.
        assert {party.index for party in play.network.server.missing} <= doomed
        return
    received = play.network.server.received
    words = [m for m in play.sent if m.payload[4:] == bytes([Word.ADD_UP]) and m.sender.index == 0]
    among = {m.recipient.index for m in words if m.kind is MessageKind.ROSTER}
    assert left <= among
    assert received == len(among)
    play.check(among)


# Liars.


def test_somebody_who_says_that_many_are_missing_is_left_out_alone(play: Play) -> None:
    elections = play.begin()
    liar = int(Election.unpack(elections[-1].payload, len(VALUES), 3, None).elected[0][0])
    role = play.network.user(liar)
    role._roster = lambda: role._send(  # type: ignore[method-assign]
        MessageKind.ROSTER,
        FIRST_SERVER,
        pack_missing(play.network.round_.mechanism, 0, EVERYBODY - {liar}),
    )
    play.finish(elections)
    play.check(EVERYBODY - {liar})


def test_somebody_who_says_that_one_is_missing_takes_one_with_it(play: Play) -> None:
    elections = play.begin()
    liar = int(Election.unpack(elections[-1].payload, len(VALUES), 3, None).elected[0][0])
    victim = (liar + 1) % len(VALUES)
    role, mechanism = play.network.user(liar), play.network.round_.mechanism
    role._roster = lambda: role._send(  # type: ignore[method-assign]
        MessageKind.ROSTER, FIRST_SERVER, pack_missing(mechanism, 0, [victim])
    )
    play.finish(elections)
    play.check(EVERYBODY - {liar, victim})


def test_somebody_who_shares_with_some_only_is_left_out(play: Play) -> None:
    elections = play.begin()
    play.cut = {(5, other) for other in range(len(VALUES)) if other != 5}
    play.finish(elections)
    play.check(EVERYBODY - {5})


@pytest.mark.parametrize(
    ("silent", "rosters", "lost"),
    [
        ((), {0: [], 1: []}, set()),
        ((4,), {0: [4], 1: []}, {4}),
        ((), {0: [4], 1: [4], 2: [4]}, {4}),
        ((), {0: [1, 2, 3], 1: [], 2: []}, {0}),
        ((), {0: [1], 1: [], 2: []}, {0, 1}),
        ((), {0: [1], 1: [0]}, {0, 1}),
        ((), {0: [1], 2: [3]}, {0, 1, 2, 3}),
        ((9,), {0: [9, 5], 1: [5], 2: [5, 9], 3: [0, 1, 2]}, {9, 5, 3}),
    ],
)
def test_who_is_lost_is_told_from_what_is_missed(
    silent: tuple[int, ...], rosters: dict[int, list[int]], lost: set[int]
) -> None:
    given = {one: np.array(missing, np.int64) for one, missing in rosters.items()}
    assert lost_users(silent, given) == lost


def test_rosters_that_cannot_be_are_refused(harness: ModuleType, play: Play) -> None:
    play.deliver(play.begin()[-1:])
    mechanism, first = play.network.round_.mechanism, play.first
    elected = sorted(first._duties)
    one, other = elected[0], next(index for index in EVERYBODY if index not in elected)

    def roster(sender: Party, payload: bytes) -> bytes:
        return harness.forged(
            play.network.round_, MessageKind.ROSTER, sender, FIRST_SERVER, payload
        )

    number = (0).to_bytes(4, "little")
    two = [(index).to_bytes(4, "little") for index in sorted(EVERYBODY - {one})]
    before = harness.state_of(first)
    for sender, payload, error, match in (
        (user(16), number, ProtocolError, "no part"),
        (SERVER, number, ProtocolError, "no part"),
        (user(other), number, ProtocolError, "not elected"),
        (user(one), (1).to_bytes(4, "little"), ProtocolError, "is in election 0"),
        (user(one), b"", MalformedMessageError, "at least 4 bytes"),
        (user(one), number + b"\0", MalformedMessageError, "numbers"),
        (user(one), number + two[0] * 2, MalformedMessageError, "in order"),
        (user(one), number + two[1] + two[0], MalformedMessageError, "in order"),
        (user(one), number + one.to_bytes(4, "little"), MalformedMessageError, "who report"),
        (user(one), number + (16).to_bytes(4, "little"), MalformedMessageError, "below 16"),
        (user(one), number + b"".join(two[:6]), MalformedMessageError, "at most 6 numbers"),
    ):
        with pytest.raises(error, match=match):
            first.receive(roster(sender, payload))
        assert harness.state_of(first) == before
    assert largest_roster(mechanism) == 24 == len(number + b"".join(two[:5]))
    first.receive(roster(user(one), number + b"".join(two[:5])))
    # Somebody may have what was missing, and nothing is missing after that.
    first.receive(roster(user(one), number))
    for payload in (number, number + two[0]):
        with pytest.raises(ProtocolError, match="already has"):
            first.receive(roster(user(one), payload))


# What users do.


def test_shares_are_of_their_election_only(harness: ModuleType, play: Play) -> None:
    elections = play.begin()
    public = Election(
        15, np.full(3, 15), tuple(np.arange(3) for _ in range(3)), {}, number=1
    ).public_part()
    duties = Election.duty_part((item, np.arange(15)) for item in range(3))

    def election(to: int) -> bytes:
        payload = public + (duties if to < 3 else b"")
        kind = MessageKind.ELECTION
        return harness.forged(play.network.round_, kind, FIRST_SERVER, user(to), payload)

    # User 1 is in election 1 already; user 0 keeps what it sends, and refuses what is old then.
    zero, one = play.network.user(0), play.network.user(1)
    (new,) = (m for m in one.receive(election(1)) if m.recipient == user(0))
    assert zero.receive(new.to_bytes()) == []
    with pytest.raises(ProtocolError, match="already has"):
        zero.receive(new.to_bytes())
    zero.receive(election(0))
    assert user(1) not in zero.missing
    kind, payload = MessageKind.ITEM_SHARES, bytes(4) + new.payload[4:]
    stale = harness.forged(play.network.round_, kind, user(2), user(0), payload)
    with pytest.raises(ProtocolError, match="is in election 1, got elements"):
        zero.receive(stale)
    for data in (election(0), elections[0].to_bytes()):
        with pytest.raises(ProtocolError, match="already has election 1"):
            zero.receive(data)


def word(harness: ModuleType, play: Play, to: int, number: int, said: Word) -> bytes:
    payload = pack_word(number, said)
    return harness.forged(play.network.round_, MessageKind.ROSTER, FIRST_SERVER, user(to), payload)


def test_nobody_adds_up_before_all_is_there_nor_twice(harness: ModuleType, play: Play) -> None:
    elections = play.begin()
    elected = int(Election.unpack(elections[-1].payload, len(VALUES), 3, None).elected[0][0])
    role = play.network.user(elected)
    with pytest.raises(ProtocolError, match="is in election none"):
        role.receive(word(harness, play, elected, 0, Word.ADD_UP))
    shared = role.receive(next(m for m in elections if m.recipient == role.party).to_bytes())
    with pytest.raises(ProtocolError, match="still waits for shares"):
        role.receive(word(harness, play, elected, 0, Word.ADD_UP))
    with pytest.raises(ProtocolError, match="word of 1"):
        role.receive(word(harness, play, elected, 1, Word.ADD_UP))
    for payload in (b"", bytes(4), bytes(6), bytes(4) + b"\x03"):
        data = harness.forged(
            play.network.round_, MessageKind.ROSTER, FIRST_SERVER, role.party, payload
        )
        with pytest.raises(MalformedMessageError):
            role.receive(data)
    play.finish(shared + [m for m in elections if m.recipient != role.party])
    play.check(EVERYBODY)
    for data in (
        word(harness, play, elected, 0, Word.ADD_UP),
        next(m for m in elections if m.recipient == role.party).to_bytes(),
    ):
        with pytest.raises(ProtocolError, match="too late"):
            role.receive(data)


def test_a_user_that_is_left_out_says_so_and_forgets(harness: ModuleType, play: Play) -> None:
    elections = play.begin()
    role = play.network.user(2)
    role.receive(elections[2].to_bytes())
    with pytest.raises(MissingPartyError, match="goes on without user 2") as caught:
        role.receive(word(harness, play, 2, 1, Word.WITHOUT_YOU))
    assert caught.value.parties == (user(2),)
    assert not harness.holds_data(role)


def test_an_election_says_how_many_there_were_before_it(harness: ModuleType, play: Play) -> None:
    play.begin()
    for number, received, match in ((1, 16, "12 to 15 users"), (5, 12, "12 to 11 users")):
        reporters = np.full(3, received)
        election = Election(received, reporters, (np.arange(3),) * 3, {}, number)
        data = harness.forged(
            play.network.round_, MessageKind.ELECTION, FIRST_SERVER, SERVER, election.public_part()
        )
        with pytest.raises(MalformedMessageError, match=match):
            play.network.server.receive(data)


def test_bits_are_shared_anew_in_every_election(
    harness: ModuleType, statistical: ModuleType
) -> None:
    """What one of two who are elected sees, in one election and the next, says nothing together."""
    mechanism = td.TwoStageSampling(
        2, 6, reported=2, rate=harness.ALWAYS, floor=2, elected=2, max_missing_users=1
    )
    q = mechanism.field.modulus
    cells = np.zeros((q, q), np.int64)
    for _ in range(40 * q * q):
        role = td.Round.start(mechanism).user(0)
        role.report(0)
        seen = []
        for number in range(2):
            count = np.full(2, 6 - number)
            election = Election(6 - number, count, (np.array([1, 2]),) * 2, {}, number)
            data = harness.forged(
                td.Round(mechanism, bytes(16)), MessageKind.ELECTION, FIRST_SERVER, role.party,
                election.public_part(),
            )  # fmt: skip
            message = Message.from_bytes(data)
            data = Message(
                message.kind, role.round_id, FIRST_SERVER, role.party, message.payload
            ).to_bytes()
            sent = role.receive(data)
            elements = [mechanism.field._unpack(each.payload[16:], 2) for each in sent]
            assert [int(sum(map(int, pair))) % q for pair in zip(*elements, strict=True)] == [1, 0]
            seen.append(int(elements[0][0]))
        cells[tuple(seen)] += 1
    statistical.check_law(cells.ravel(), np.full(q * q, q**-2.0))
