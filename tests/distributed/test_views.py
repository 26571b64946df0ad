"""What the roles draw and send in real rounds is what the guarantees speak of, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import turnout.distributed as td
from turnout.distributed import PrimeField, Role, payloads
from turnout.distributed.messages import MessageKind
from turnout.distributed.roles.elections import Election

#: Coins that all show heads.
ALWAYS = 1 - 2.0**-50

REPORTING: dict[str, dict[str, Any]] = {
    "uniform": {},
    "adaptive": {"gamma": 2.5},
}

NOISES: dict[str, float] = {"discrete_laplace": 0.8, "skellam": 1.25, "discrete_gaussian": 0.7}


# What the roles draw and send.


ONE_STAGE: dict[str, tuple[Any, tuple[str, tuple[Any, ...]], int]] = {
    "dummies": (
        td.SamplingAggregation(3, 4, rate=0.5, dummies=40),
        ("bernoulli_counts", (40, 0.5)),
        3,
    ),
    "dummies by users": (
        td.SamplingAggregation(
            3, 4, rate=0.5, dummies=40, parties="users", max_colluding_users=1, compressed=False
        ),
        ("bernoulli_counts", (40, 0.5)),
        2,
    ),
    "noise by parties": (
        td.NoisyAggregation(
            3, 4, noise="skellam", parameter=50.0, source="parties", honest_aggregators=2
        ),
        ("skellam", (25.0,)),
        3,
    ),
    "noise by users": (
        td.NoisyAggregation(3, 4, parameter=9.0, max_colluding_users=1, compressed=False),
        ("discrete_laplace_piece", (9.0, 3)),
        0,
    ),
    "gaussian noise by users": (
        td.NoisyAggregation(3, 4, noise="discrete_gaussian", parameter=30.0),
        ("discrete_gaussian", (30.0,)),
        0,
    ),
}


@pytest.mark.parametrize(
    ("mechanism", "drawn", "contributors"), ONE_STAGE.values(), ids=ONE_STAGE.keys()
)
def test_roles_of_one_stage_send_shares_rosters_and_sums_and_nothing_else(
    views: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    mechanism: Any,
    drawn: tuple[str, tuple[Any, ...]],
    contributors: int,
) -> None:
    marks = views.Marks(monkeypatch)
    values = [2, 0, 2, 1]
    wire = views.Wire(td.Round.start(mechanism)).run(values)
    field, size, parties = mechanism.field, mechanism.domain.size, mechanism._number_of_parties
    shares, rosters = wire.of(MessageKind.SHARE), wire.of(MessageKind.ROSTER)
    sums = wire.of(MessageKind.SUM)
    assert len(shares) == 4 * parties
    assert len(rosters) == parties * (parties - 1)
    assert len(sums) == parties
    assert len(wire.sent) == len(shares) + len(rosters) + len(sums)
    assert {message.recipient.role for message in sums} == {Role.SERVER}
    # All users' messages look the same, whatever they hold.
    assert len({(one._size, one.recipient) for one in shares}) == parties
    own = marks.of(drawn[0], *drawn[1])
    by_users = drawn[0] in ("discrete_laplace_piece", "discrete_gaussian")
    assert len(own) == (4 if by_users else contributors)
    assert mechanism._contributors == contributors
    # A user's shares make its item, and its own piece of noise if there is one.
    for user, value in enumerate(values):
        mine = [one for one in shares if one.sender.index == user]
        vector = field._sum([views.elements_of_share(one.payload, mechanism) for one in mine])
        expected = np.zeros(size, np.int64)
        expected[value] = 1
        if by_users:
            expected += own[user]
        assert vector.tolist() == expected.tolist()
    # A party's sum is that of its shares, and its own contribution if it is one of those.
    contributed = iter([] if by_users else own)
    for message in sums:
        index = message.sender.index
        received, _, total = payloads.unpack_party_sum(message.payload, field, size)
        assert received == 4
        mine = [one for one in shares if one.recipient.index == index]
        expected = field._sum([views.elements_of_share(one.payload, mechanism) for one in mine])
        if index < contributors:
            expected = field._add(expected, field._reduce(next(contributed)))
        assert total.tolist() == expected.tolist()
    counts = np.bincount(values, minlength=size)
    assert wire.sums == tuple(counts + sum(own))


def test_missing_users_take_their_noise_with_them(
    views: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = views.Marks(monkeypatch)
    mechanism = td.NoisyAggregation(2, 5, parameter=9.0, max_missing_users=2, parties=2)
    wire = views.Wire(td.Round.start(mechanism)).run([0, 1, 0, 0, 1], absent=(1, 3))
    own = marks.of("discrete_laplace_piece", 9.0, 3)
    assert len(own) == 3 == mechanism._required_pieces
    assert wire.sums == tuple(np.array([2, 1]) + sum(own))


def test_roles_of_two_stages_show_sets_committees_and_sums_and_nothing_else(
    views: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = views.Marks(monkeypatch)
    mechanism = td.TwoStageSampling(
        3, 6, reported=2, rate=ALWAYS, dummies=50, max_colluding_users=1, elected=5
    )
    values = [0, 0, 1, 1, 1, 2]
    wire = views.Wire(td.Round.start(mechanism)).run(values)
    field, size = mechanism.field, 3
    sets = {
        message.sender.index: payloads.unpack_bits(message.payload, size, "a set")
        for message in wire.of(MessageKind.SET)
    }
    assert len(sets) == 6
    assert all(one.sum() == 2 for one in sets.values())
    assert {message.recipient.role for message in wire.of(MessageKind.SET)} == {
        Role.REPORTING_SERVER
    }
    # The first server gets the sets, and of who is elected that nothing is missing.
    known = [one for one in wire.sent if one.recipient.role is Role.REPORTING_SERVER]
    assert {one.kind for one in known} == {MessageKind.SET, MessageKind.ROSTER}
    told = [one for one in known if one.kind is MessageKind.ROSTER]
    assert {one.payload for one in told} == {bytes(4)}
    assert {one.kind for one in wire.sent} == {
        MessageKind.SET,
        MessageKind.ELECTION,
        MessageKind.ITEM_SHARES,
        MessageKind.ROSTER,
        MessageKind.SUM,
    }
    to_server = [one for one in wire.of(MessageKind.ELECTION) if one.recipient.role is Role.SERVER]
    election = Election.unpack(to_server[0].payload, 6, size, None)
    assert all(len(members) == 5 for members in election.elected)
    # Every bundle goes from a reporter to an elected user, with an element for each common item.
    received: dict[int, np.ndarray[Any, Any]] = {}
    for message in wire.of(MessageKind.ITEM_SHARES):
        sender, recipient = message.sender.index, message.recipient.index
        items, elements = payloads.unpack_item_shares(message.payload[4:], field, size)
        common = [
            item
            for item in range(size)
            if sets[sender][item] and recipient in election.elected[item]
        ]
        assert items.tolist() == common
        total = received.setdefault(recipient, np.zeros(size, field._dtype))
        total[items] = field._add(total[items], elements)
    # A sum of an elected user who reports none of its items is that of what came, and its dummies
    # where it is one of the first two.
    drawn = marks.of("bernoulli_counts", 50, ALWAYS)
    assert sum(map(len, drawn)) == 2 * size
    hits = [
        [sets[user][item] and values[user] == item for user in range(6)] for item in range(size)
    ]
    plain = np.sum(hits, axis=1)
    assert sum(wire.sums) == plain.sum() + sum(int(marked.sum()) for marked in drawn)
    checked = 0
    for message in wire.of(MessageKind.SUM):
        user = message.sender.index
        assert message.recipient.role is Role.SERVER
        items, elements = payloads.unpack_item_shares(message.payload[4:], field, size)
        for item, element in zip(items.tolist(), elements.tolist(), strict=True):
            assert user in election.elected[item]
            if not sets[user][item]:
                place = election.elected[item].tolist().index(user)
                difference = (element - int(received[user][item])) % field.modulus
                assert (difference in (1, 2, 3)) == (place < 2)
                assert place < 2 or difference == 0
                checked += 1
    assert checked


# The joint law of what real rounds show.


def check_view(statistical: ModuleType, law: dict[Any, Fraction], seen: Sequence[Any]) -> None:
    """Compare recorded views with their law."""
    counted = Counter(seen)
    assert set(counted) <= set(law), set(counted) - set(law)
    outcomes = sorted(law, key=repr)
    observed = [counted[outcome] for outcome in outcomes]
    statistical.check_law(observed, [float(law[outcome]) for outcome in outcomes])


ROUNDS = 3000


def test_real_rounds_of_sampling_show_the_law_that_is_accounted(
    views: ModuleType, statistical: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two aggregators colludes with the server, and one user."""
    mechanism = td.SamplingAggregation(2, 3, rate=0.625, dummies=1, parties=2)
    own: list[Any] = []
    coins: list[Any] = []
    draw, toss = td.SamplingAggregation._contribution, td.SamplingAggregation._user_vector

    def contribution(self: Any, *arguments: Any) -> Any:
        own.append(draw(self, *arguments))
        return own[-1]

    def user_vector(self: Any, *arguments: Any) -> Any:
        coins.append(toss(self, *arguments))
        return coins[-1]

    monkeypatch.setattr(td.SamplingAggregation, "_contribution", contribution)
    monkeypatch.setattr(td.SamplingAggregation, "_user_vector", user_vector)
    seen = []
    for _ in range(ROUNDS):
        own.clear()
        coins.clear()
        wire = views.Wire(td.Round.start(mechanism)).run([0, 1, 1])
        known = (None, int(coins[1].sum()), None, None, tuple(own[1].tolist()))
        seen.append((wire.sums, known))
    law = views.sampled(mechanism, 0, [1, 1], colluding=(0,))
    check_view(statistical, law, seen)


@pytest.mark.parametrize("reporting", REPORTING.values(), ids=REPORTING.keys())
def test_real_rounds_of_two_stages_show_the_law_that_is_accounted(
    views: ModuleType, statistical: ModuleType, reporting: dict[str, Any]
) -> None:
    mechanism = td.TwoStageSampling(2, 3, reported=1, rate=0.625, dummies=1, elected=2, **reporting)
    field = mechanism.field
    seen = []
    # For each published count, what the first of two elected users sends to the server.
    parts = {count: np.zeros(field.modulus, np.int64) for count in range(6)}
    for _ in range(ROUNDS):
        wire = views.Wire(td.Round.start(mechanism)).run([0, 1, 1])
        sets = {
            message.sender.index: payloads.unpack_bits(message.payload, 2, "a set")
            for message in wire.of(MessageKind.SET)
        }
        shown = tuple(tuple(np.flatnonzero(sets[user]).tolist()) for user in range(3))
        seen.append((wire.sums, shown))
        public = wire.of(MessageKind.ELECTION)[-1]
        elected = Election.unpack(public.payload, 3, 2, None).elected
        for message in wire.of(MessageKind.SUM):
            items, elements = payloads.unpack_item_shares(message.payload[4:], field, 2)
            for item, element in zip(items.tolist(), elements.tolist(), strict=True):
                if (item,) in shown and elected[item][0] == message.sender.index:
                    parts[wire.sums[item]][element] += 1
    # Nobody tells its dummies here.
    law: Counter[Any] = Counter()
    for (sums, known), mass in views.in_two_stages(mechanism, 0, [1, 1]).items():
        law[sums, known[:3]] += mass
    check_view(statistical, law, seen)
    for cells in parts.values():
        if cells.sum():
            statistical.check_law(cells, np.full(cells.size, 1 / cells.size))


@pytest.mark.parametrize("noise", NOISES)
def test_real_rounds_of_noise_hide_the_pieces_of_the_honest_users_who_are_there(
    views: ModuleType, statistical: ModuleType, monkeypatch: pytest.MonkeyPatch, noise: str
) -> None:
    """One user is missing, one tells its piece: two pieces are left, whose law is accounted."""
    mechanism = td.NoisyAggregation(
        2,
        4,
        noise=noise,
        parameter=NOISES[noise],
        parties=2,
        max_colluding_users=1,
        max_missing_users=1,
    )
    told: list[Any] = []
    draw = td.NoisyAggregation._contribution

    def piece(self: Any, items: int | None = None, seed: int | None = None) -> Any:
        drawn = draw(self, items, seed)
        told.append(drawn.copy())
        return drawn

    monkeypatch.setattr(td.NoisyAggregation, "_contribution", piece)
    hidden = []
    for _ in range(ROUNDS):
        told.clear()
        wire = views.Wire(td.Round.start(mechanism)).run([0, 1, 1, 0], absent=(2,))
        hidden.extend(np.array(wire.sums) - np.array([2, 1]) - told[1])
    law = views.piece_law(mechanism, 20).times(2)
    observed = np.bincount(np.clip(hidden, -20, 20) + 20, minlength=41)
    probabilities = np.array([float(mass) for mass in law.masses])
    statistical.check_law(observed, probabilities / probabilities.sum())


# All shares but one.


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("honest", [0, 2])
def test_sums_of_all_parties_but_one_are_uniform_whatever_the_data(
    statistical: ModuleType, compressed: bool, honest: int
) -> None:
    """What two of three aggregators can compute together is uniform, and says nothing of the sum.

    2,500 cells; 30,000 rounds show a bias of 1/2 in any tenth of them.
    """
    field = PrimeField(5)
    rate, size, rounds = 0.625, 2, 30_000
    for codes in ([0, 0, 1], [1, 1, 1]):
        users = np.array(codes, np.uint32)
        cells = np.zeros((field.modulus,) * 4 + (4,), np.int64)
        for seed in range(rounds):
            sums, *_ = field._core.share_one_hot(users, rate, size, 3, compressed, seed)
            held = np.delete(sums, honest, axis=0).ravel()
            total = sums.sum(axis=0, dtype=np.int64) % field.modulus
            assert total[0] <= codes.count(0)
            cells[(*held, total[1])] += 1
        ones = codes.count(1)
        kept = [float(mass) for mass in np.polynomial.polynomial.polypow([1 - rate, rate], ones)]
        expected = np.multiply.outer(
            np.full((field.modulus,) * 4, field.modulus**-4.0), [*kept, *[0.0] * (3 - ones)]
        )
        statistical.check_law(cells.ravel(), expected.ravel())


@pytest.mark.parametrize("compressed", [False, True])
def test_shares_of_a_real_user_are_uniform_at_all_parties_but_one(
    views: ModuleType, statistical: ModuleType, compressed: bool
) -> None:
    mechanism = td.SamplingAggregation(2, 2, rate=0.5, dummies=1, parties=3, compressed=compressed)
    q = mechanism.field.modulus
    round_ = td.Round.start(mechanism)
    for honest, value in ((2, 0), (0, 1), (1, 1)):
        cells = np.zeros((q,) * 4, np.int64)
        for _ in range(25_000):
            messages = round_.user(0).report(value)
            held = [
                views.elements_of_share(message.payload, mechanism)
                for message in messages
                if message.recipient.index != honest
            ]
            cells[tuple(np.concatenate(held).tolist())] += 1
        statistical.check_law(cells.ravel(), np.full(cells.size, 1 / cells.size))
