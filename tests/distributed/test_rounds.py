"""Rounds in one process: reproducible, and with the costs and the law of rounds with messages."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import turnout as tn
import turnout.distributed as td
from turnout.distributed import two_stage as two_stage_module
from turnout.distributed.roles.elections import Election
from turnout.distributed.rounds import exchange, ledger
from turnout.errors import InvalidTypeError, InvalidValueError, UnknownLabelError

VALUES = [0, 1, 1, 2, 2, 2, 3, 0, 1, 1, 2, 3]

Kwargs = dict[str, Any]

DEPLOYMENTS: list[Kwargs] = [
    {},
    {"parties": 2, "compressed": False},
    {"parties": 5},
    {"parties": "users"},
    {"parties": "users", "compressed": False, "max_colluding_users": 2},
]
MECHANISMS: list[tuple[Any, Kwargs]] = [
    *((td.SamplingAggregation, {"rate": 0.6, "floor": 3} | more) for more in DEPLOYMENTS),
    *((td.SamplingAggregation, {"rate": 0.6, "dummies": 4} | more) for more in DEPLOYMENTS),
    *((td.NoisyAggregation, {"parameter": 2.5} | more) for more in DEPLOYMENTS),
    *(
        (td.NoisyAggregation, {"parameter": 2.5, "source": "parties", "noise": "skellam"} | more)
        for more in DEPLOYMENTS
    ),
]
TWO_STAGE: list[Kwargs] = [
    {"reported": 2, "floor": 1},
    {"reported": 3, "dummies": 3},
    {"reported": 2, "floor": 1, "gamma": 3.0},
    {"reported": 2, "floor": 3, "elected": 3, "max_colluding_users": 1},
    {"reported": 2, "floor": 1, "elected": 2},
    {"reported": 1, "dummies": 3, "collusion_bound": 5, "max_colluding_users": 1},
    {"reported": 4, "floor": 1},
    # Here nobody reports some items.
    {"reported": 1, "dummies": 3, "users": 3},
]


def two_stage(arguments: Kwargs) -> td.TwoStageSampling:
    return td.TwoStageSampling(4, **({"users": 12, "rate": 0.6} | arguments))


# Seeds.


@pytest.mark.parametrize(("make", "arguments"), MECHANISMS)
def test_seeds_make_rounds_repeatable(make: Any, arguments: Kwargs) -> None:
    mechanism = make(4, 12, **arguments)
    one, two, other = (mechanism.run(VALUES, seed=seed) for seed in (7, 7, 8))
    assert one.sums.tolist() == two.sums.tolist()
    assert one.costs == two.costs
    drawn = {tuple(mechanism.run(VALUES, seed=seed).sums.tolist()) for seed in range(12)}
    fresh = {tuple(mechanism.run(VALUES).sums.tolist()) for _ in range(12)}
    assert len(drawn) > 3
    assert len(fresh) > 3
    assert other.costs == one.costs


PROGRAM = """
import numpy as np
import turnout.distributed as td
values = np.random.default_rng(3).integers(0, 5, 20_000)
small = values[:700]
for mechanism, data in (
    (td.SamplingAggregation(5, 20_000, rate=0.4, dummies=9), values),
    (td.SamplingAggregation(5, 700, rate=0.4, floor=9, parties="users"), small),
    (td.NoisyAggregation(5, 20_000, parameter=3.0, max_missing_users=3), values),
    (td.NoisyAggregation(5, 700, parameter=0.5, noise="discrete_gaussian"), small),
    (td.NoisyAggregation(5, 20_000, parameter=30.0, noise="skellam", source="parties"), values),
    (td.TwoStageSampling(5, 700, reported=2, rate=0.4, floor=4, elected=9), small),
):
    result = mechanism.run(data, seed=2**64 - 1)
    print(result.sums.tolist(), result.costs.totals)
"""


def test_the_number_of_threads_changes_nothing() -> None:
    found = set()
    for threads in ("1", "2", "5"):
        environment = os.environ | {"RAYON_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
        found.add(done.stdout)
    (printed,) = found
    assert printed.count("[") == 6


# Costs.


def as_dictionary(costs: td.CostLedger) -> dict[str, dict[str, float]]:
    return {role: dataclasses.asdict(total) for role, total in costs.totals.items()}


@pytest.mark.parametrize(("make", "arguments"), MECHANISMS)
def test_the_costs_of_a_study_are_those_measured_with_messages(
    make: Any, arguments: Kwargs
) -> None:
    mechanism = make(4, 12, **arguments)
    studied = mechanism.run(VALUES, seed=1).costs
    measured = exchange(td.Round.start(mechanism), VALUES).costs
    assert as_dictionary(studied) == as_dictionary(measured)
    assert studied.parties == measured.parties
    assert studied.formulas == measured.formulas == mechanism.paper_costs()


@pytest.mark.parametrize("arguments", TWO_STAGE)
def test_the_costs_of_two_stages_are_those_measured_with_messages(
    arguments: Kwargs, monkeypatch: pytest.MonkeyPatch, harness: ModuleType
) -> None:
    """The study is given the sets and elections of a round with messages."""
    mechanism = two_stage(arguments)
    users = mechanism.users
    for attempt in range(5):
        network = harness.Network(td.Round.start(mechanism))
        network.report(VALUES[:users])
        sets = np.array([network.user(index)._set for index in range(users)], np.uint32)
        first = network.roles[td.Party(td.Role.REPORTING_SERVER)]
        network.deliver()
        elections = first.close()
        public = elections[-1].payload
        elected = list(Election.unpack(public, users, 4, None).elected)
        network.deliver(elections)
        drawn = (np.ones(users, np.uint8), sets)
        with monkeypatch.context() as patch:
            patch.setattr(td.TwoStageSampling, "_draw_sets", lambda *_, drawn=drawn: drawn)
            patch.setattr(
                "turnout.distributed.two_stage._choose", lambda *_, elected=elected: elected
            )
            studied = mechanism.run(VALUES[:users], seed=attempt).costs
        measured = ledger(network.roles.values(), mechanism)
        assert as_dictionary(studied) == as_dictionary(measured)
        assert studied.parties == measured.parties


@pytest.mark.parametrize(
    ("arguments", "sizes", "sets"),
    [
        ({"floor": 1}, [3, 2, 2, 2], 0),
        ({"floor": 1, "collusion_bound": 0}, [3, 2, 2, 2], 0),
        ({"floor": 1, "collusion_bound": 3}, [4, 4, 4, 4], 0),
        ({"floor": 1, "elected": 2}, [2, 2, 2, 2], 0),
        ({"dummies": 9}, [3, 2, 2, 2], 2),
        ({"dummies": 9, "honest_aggregators": 2}, [3, 3, 3, 3], 3),
        ({"dummies": 9, "max_colluding_users": 3, "elected": 5}, [5, 5, 5, 5], 4),
    ],
)
def test_a_study_elects_two_users_at_least_for_every_item(
    arguments: Kwargs, sizes: list[int], sets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three and two report two items, nobody the others; all coins show heads."""
    mechanism = td.TwoStageSampling(4, 5, reported=1, rate=1 - 1e-12, **arguments)
    drawn = (np.ones(5, np.uint8), np.array([[0], [0], [0], [1], [1]], np.uint32))
    chosen: list[Any] = []
    choose = two_stage_module._choose
    monkeypatch.setattr(td.TwoStageSampling, "_draw_sets", lambda *_: drawn)
    monkeypatch.setattr(two_stage_module, "_choose", lambda *a: chosen.extend(choose(*a)) or chosen)
    result = mechanism.run([0, 0, 3, 1, 2], seed=3)
    assert [len(set(users.tolist())) for users in chosen] == sizes
    assert result.costs.totals["server"].additions == sum(sizes)
    assert result.sums.tolist() == [2 + 9 * sets, 1 + 9 * sets, 9 * sets, 9 * sets]


def test_bytes_are_those_on_the_wire(harness: ModuleType) -> None:
    for mechanism in (harness.silent(4, 12, parties=3), two_stage(TWO_STAGE[0])):
        network = harness.Network(td.Round.start(mechanism))
        sent: dict[Any, list[int]] = {}
        network.report(VALUES)
        pending = list(network.waiting)
        closed = False
        while pending or not closed:
            if not pending:
                pending = [m for collector in network.collectors for m in collector.close()]
                closed = True
            message = pending.pop()
            data = message.to_bytes()
            sent.setdefault(message.sender, []).append(len(data))
            pending += network.roles[message.recipient].receive(data)
        for party, role in network.roles.items():
            lengths = sent.get(party, [])
            assert (role.costs.messages, role.costs.bytes) == (len(lengths), sum(lengths))


def test_costs_of_one_stage_are_those_of_the_layout() -> None:
    # 1000 users, 30 items, q = 1009 of 10 bits: 38 packed bytes; 3 aggregators.
    mechanism = td.SamplingAggregation(30, 1000, rate=0.5, floor=33)
    costs = mechanism.run(np.arange(1000) % 30, seed=1).costs
    assert costs.parties == {"user": 1000, "aggregator": 3, "server": 1}
    user, aggregator = costs.average("user"), costs.average("aggregator")
    assert (user.messages, user.bytes) == (3, 3 * 61 + 2 * 32 + 38)
    assert (user.draws, user.additions, user.coins) == (60, 60, 1)
    # Two rosters of 125 and 8000 bytes, and a sum.
    assert (aggregator.messages, aggregator.bytes) == (3, 2 * (52 + 8125) + 52 + 20 + 38)
    assert aggregator.additions == 999 * 30
    assert aggregator.draws == 20_000
    assert costs.average("server").additions == 60
    lines = str(costs).splitlines()
    assert [line.split()[0] for line in lines] == ["one", "user", "aggregator", "server"]


def test_the_formulas_are_those_of_table_1() -> None:
    n, size = 1000, 30
    mechanism = td.SamplingAggregation(size, n, rate=0.5, floor=33, parties="users")
    assert mechanism.field.modulus == 1009
    user, server = (mechanism.paper_costs()[role] for role in ("user", "server"))
    assert user.additions == 2 * (n - 1) * size
    assert user.draws == (n - 1) * size
    assert user.bytes == (2 * n * size + size) * 10 / 8
    assert (user.coins, server.additions) == (1, (n - 1) * size)
    mechanism = td.TwoStageSampling(size, n, reported=12, rate=0.5, floor=33, gamma=3.0)
    alpha, own = 0.4, 0.4 * 3 / (0.4 * 3 + 0.6)
    found = mechanism.paper_costs()
    assert found["user"].additions == pytest.approx((own * n - 1) * (own + alpha) * size)
    assert found["user"].draws == pytest.approx((own * n - 1) * alpha * size)
    # N bits; alpha N (1 + p n) items of 5 bits and elements of 10.
    sent = alpha * size * (1 + own * n)
    assert found["user"].bytes == pytest.approx((size + sent * 5 + sent * 10) / 8)
    first = (alpha * n * size * (n + 1) * 10 + (n + 1) * size * 5) / 8
    assert found["reporting server"].bytes == pytest.approx(first)
    assert found["server"].additions == pytest.approx((alpha * n - 1) * size)
    assert (found["user"].coins, found["user"].sets) == (1, 1)
    for other in (
        td.SamplingAggregation(size, n, rate=0.5, floor=33),
        td.TwoStageSampling(size, n, reported=12, rate=0.5, floor=33, elected=5),
    ):
        assert other.paper_costs() == {}


def test_measured_costs_of_users_as_parties_are_those_of_table_1() -> None:
    mechanism = td.SamplingAggregation(
        30, 200, rate=0.5, floor=3, parties="users", compressed=False
    )
    found = mechanism.run(np.arange(200) % 30, seed=1).costs
    user, paper = found.average("user"), found.formulas["user"]
    assert (user.draws, user.additions, user.coins) == (paper.draws, paper.additions, paper.coins)
    assert found.average("server").additions == found.formulas["server"].additions
    # q = 211: elements of a byte each. The paper counts elements alone, and each user's sum to all.
    assert paper.bytes == 2 * 200 * 30 + 30
    assert user.bytes == 200 * (61 + 30) + 199 * (52 + 16) + (52 + 20 + 30)
    assert "by the paper's Table 1" in str(found)


# The same law as with messages.


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (td.SamplingAggregation, {"rate": 0.5, "dummies": 3}),
        (td.SamplingAggregation, {"rate": 0.5, "dummies": 3, "parties": "users"}),
        (td.NoisyAggregation, {"parameter": 1.5, "max_missing_users": 4}),
        (td.NoisyAggregation, {"parameter": 2.0, "noise": "skellam", "max_missing_users": 4}),
        (td.NoisyAggregation, {"parameter": 0.4, "noise": "discrete_gaussian"}),
        (td.NoisyAggregation, {"parameter": 1.5, "source": "parties"}),
        (td.TwoStageSampling, {"rate": 0.8, "reported": 2, "dummies": 2}),
    ],
)
def test_studies_and_rounds_with_messages_have_one_law(
    make: Any, arguments: Kwargs, statistical: ModuleType
) -> None:
    mechanism = make(4, 12, **arguments)
    studied = np.array([mechanism.run(VALUES, seed=seed).sums for seed in range(200)])
    exchanged = np.array([exchange(td.Round.start(mechanism), VALUES).sums for _ in range(200)])
    for item in range(4):
        lowest = int(min(studied[:, item].min(), exchanged[:, item].min()))
        statistical.check_same_law(studied[:, item] - lowest, exchanged[:, item] - lowest)


def test_a_trusted_server_does_all_itself() -> None:
    mechanism = td.SamplingAggregation(4, 12, rate=0.6, dummies=3, central=True)
    one, two = (mechanism.run(VALUES, seed=5) for _ in range(2))
    assert one.sums.tolist() == two.sums.tolist()
    assert one.costs.parties == {"server": 1}
    assert one.costs.totals == {"server": td.Costs(coins=12 + 3 * 4)}
    assert (one.sums <= np.bincount(VALUES) + 3).all()


def test_results_are_estimates_of_the_domain() -> None:
    domain = tn.Domain(["no", "yes"])
    mechanism = td.NoisyAggregation(domain, 50, epsilon=1.0)
    result = mechanism.run(["yes"] * 40 + ["no"] * 10, seed=1)
    estimate = result.estimate
    assert isinstance(estimate, tn.FrequencyEstimate)
    assert estimate.domain == domain
    assert (estimate.nodes, estimate.received) == (50, 50)
    assert estimate.frequencies.tolist() == pytest.approx((result.sums / 50).tolist())
    assert estimate.interval(0.99).contains([0.2, 0.8]).all()
    assert [record["label"] for record in estimate.to_records()] == ["no", "yes"]


@pytest.mark.parametrize("run", ["run", "exchange"])
def test_bad_values_are_refused(run: str) -> None:
    mechanism = td.NoisyAggregation(tn.Domain(["no", "yes"]), 3, epsilon=1.0)

    def go(values: Any) -> Any:
        if run == "run":
            return mechanism.run(values)
        return exchange(td.Round.start(mechanism), values)

    for values in (["no"] * 2, ["no"] * 4, []):
        with pytest.raises(InvalidValueError, match=f"3 users, got {len(values)}"):
            go(values)
    with pytest.raises(UnknownLabelError, match=r"not labels.* at values\[[01]\]"):
        go(["no", "maybe", "yes"])
    for values in ("no", None, 3):
        with pytest.raises(InvalidTypeError, match="values"):
            go(values)
    for seed, error in (
        (-1, InvalidValueError),
        (2**64, InvalidValueError),
        (1.5, InvalidTypeError),
    ):
        with pytest.raises(error, match="seed"):
            mechanism.run(["no"] * 3, seed=seed)  # type: ignore[arg-type]


def test_studies_that_would_take_too_much_are_refused_before_they_start() -> None:
    crowd = td.TwoStageSampling(3000, 100_000, reported=2500, rate=0.5, floor=5)
    with pytest.raises(InvalidValueError, match="users and reported must be at most"):
        crowd.run(np.zeros(100_000, np.int64), seed=1)
    many = td.TwoStageSampling(4, 200_000, reported=4, rate=0.5, floor=5)
    with pytest.raises(InvalidValueError, match="elected must be given for so many users"):
        many.run(np.zeros(200_000, np.int64), seed=1)
