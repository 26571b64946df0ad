"""Which mechanism is best at equal privacy: order, reasons, table, picture; on real data too."""

from __future__ import annotations

import csv
import dataclasses
import os
from collections import Counter
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import turnout as tn
import turnout.distributed as td
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.choice import registered

mpl.use("Agg")

TARGET = (1.0, 1e-5)


@pytest.fixture(scope="module")
def found() -> td.Recommendation:
    """The setting of the paper: 1000 users, 30 items."""
    return td.recommend(1000, 30, *TARGET, floor=33)


@pytest.fixture(scope="module")
def cells() -> list[str]:
    """The most visited cell of 675 Gowalla users."""
    given = os.environ.get("TURNOUT_DATA")
    folder = Path(given) if given else Path(__file__).parents[2].parent / "shared" / "data"
    path = folder / "gowalla1000_user_cell.csv"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in {folder}: set TURNOUT_DATA to the folder that has it")
    with path.open(newline="", encoding="utf-8") as file:
        return [row["cell"] for row in csv.DictReader(file)]


def test_records_are_ordered_by_error_and_reach_the_target(found: td.Recommendation) -> None:
    assert len(found.records) == 14
    errors = [record.rmse for record in found.records]
    assert errors == sorted(errors)
    for record in found.records:
        assert 0.0 <= record.delta <= TARGET[1]
        if record.mechanism is None:
            continue
        assert record.rmse == record.mechanism.expected_error()
        assert record.delta == record.mechanism.accounting.delta(TARGET[0])
        assert (record.mechanism.epsilon, record.mechanism.delta) == TARGET or record.delta == 0.0
        assert record.conditional == (getattr(record.mechanism, "dummies", 1) == 0)


def test_every_kind_of_mechanism_is_compared(found: td.Recommendation) -> None:
    titles = [record.title for record in found.records] + [title for title, _ in found.refused]
    assert sorted(titles) == sorted(
        [
            *(
                f"{noise} noise by {who}"
                for noise in ("discrete laplace", "discrete gaussian", "skellam")
                for who in ("users", "aggregators")
            ),
            "votes with proofs, noise by aggregators",
            "sampling",
            "sampling with dummies",
            *(
                f"two-stage sampling, {reporting}{dummies}"
                for reporting in ("uniform", "adaptive")
                for dummies in ("", ", with dummies")
            ),
            "subset selection (local, no aggregators)",
        ]
    )
    assert found.refused == ()


def test_the_order_is_that_of_the_notes(found: td.Recommendation) -> None:
    """Trace errors of science.md B3."""
    traces = {record.title: 30 * record.rmse**2 for record in found.records}
    assert traces["discrete laplace noise by users"] == pytest.approx(2.4e-4, abs=7e-6)
    assert traces["skellam noise by users"] == pytest.approx(7.9e-4, abs=7e-6)
    assert traces["sampling"] == pytest.approx(1.13e-3, abs=7e-6)
    assert found.records[0].title == "discrete laplace noise by users"
    assert found.records[0].mechanism is found.best
    assert found.records[0].delta == 0.0
    assert found.records[-1].rmse > 5 * found.records[0].rmse


def test_the_best_is_unconditional_and_distributed(found: td.Recommendation) -> None:
    by_title = {record.title: record for record in found.records}
    first = [by_title[title] for title in ("sampling", "subset selection (local, no aggregators)")]
    last = by_title["skellam noise by users"]
    asked = dataclasses.replace(found, records=(*first, last))
    assert asked.best is last.mechanism
    with pytest.raises(InvalidValueError, match="no distributed mechanism reaches the target"):
        _ = dataclasses.replace(found, records=tuple(first)).best


def test_a_floor_adds_rows_and_changes_none() -> None:
    without, with_floor = (td.recommend(300, 5, *TARGET, floor=floor) for floor in (0, 40))
    rows = {record.title: record for record in without.records}
    more = {record.title: record for record in with_floor.records}
    assert not any(record.conditional for record in without.records)
    added = {"sampling", "two-stage sampling, uniform", "two-stage sampling, adaptive"}
    refused = {title for title, _ in with_floor.refused}
    assert set(more) - set(rows) | (refused & added) == added
    for title, record in rows.items():
        assert more[title].rmse == record.rmse
        assert more[title].mechanism == record.mechanism


def test_what_does_not_reach_the_target_is_refused_with_the_reason() -> None:
    pure = td.recommend(300, 5, 1.0, 0.0, floor=40)
    assert {record.title for record in pure.records} == {
        "discrete laplace noise by users",
        "discrete laplace noise by aggregators",
        "votes with proofs, noise by aggregators",
        "direct encoding (local, no aggregators)",
    }
    refused = dict(pure.refused)
    assert len(refused) == len(pure.refused) == 10
    assert set(refused.values()) == {"needs a delta above 0"}
    # It is so: nobody makes them with delta 0.
    with pytest.raises(InvalidValueError, match=r"delta must be above 0, got 0\.0"):
        td.SamplingAggregation(5, 300, epsilon=1.0, delta=0.0, dummies=1000)
    for noise in ("skellam", "discrete_gaussian"):
        with pytest.raises(InvalidValueError, match=r"delta must be above 0, got 0\.0"):
            td.NoisyAggregation(5, 300, noise=noise, epsilon=1.0, delta=0.0)
    # Here even the whole floor may collude.
    bare = td.recommend(300, 5, *TARGET, floor=3, max_colluding_users=3)
    assert "no hidden coin" in dict(bare.refused)["sampling"]


def test_without_a_delta_what_needs_one_is_not_compared() -> None:
    bare, pure = td.recommend(1000, 30, 1.0), td.recommend(1000, 30, 1.0, 0.0)
    assert bare == pure
    assert bare.delta == 0.0
    assert bare.best.delta == 0.0
    assert all(record.delta == 0.0 for record in bare.records)
    with_delta = {record.title: record for record in td.recommend(1000, 30, *TARGET).records}
    for record in bare.records:
        assert record == with_delta[record.title]
    (line,) = bare._not_compared()
    assert line.startswith("not compared (needs a delta above 0): discrete gaussian noise by users")
    assert line.count(";") + 1 == len(bare.refused) == len(with_delta) - len(bare.records)
    table = str(bare)
    assert " ".join(table.splitlines()[len(bare.records) + 2 :]) == line
    assert max(map(len, table.splitlines())) <= 100


def test_the_local_row_is_the_best_oracle() -> None:
    for users, items, epsilon in [(1000, 30, 1.0), (300, 5, 1.0), (1000, 2, 3.0), (500, 300, 2.0)]:
        compared = td.recommend(users, items, epsilon)
        (row,) = [record for record in compared.records if record.mechanism is None]
        counts = np.full(items, users // items, np.uint64)
        counts[: users % items] += np.uint64(1)
        errors = {}
        for name, factory in registered().items():
            try:
                oracle = factory(epsilon, tn.Domain.from_integers(items))
            except tn.errors.TurnoutError:
                continue
            variances = tn.estimator_variance(oracle, tn.Everyone(), true_counts=counts)
            errors[name] = float(np.sqrt(variances.mean())) / users
        # Of oracles within half a per cent (of the variance) the smallest report is taken.
        assert row.rmse <= min(errors.values()) * 1.0026
        assert row.oracle is not None
        assert row.rmse == pytest.approx(errors[row.oracle.name])
        assert row.title == f"{row.oracle.name.replace('_', ' ')} (local, no aggregators)"
    assert {type(row.oracle) for row in compared.records} == {type(None), type(row.oracle)}


def test_the_margins_of_trust_cost_accuracy() -> None:
    plain = {row.title: row.rmse for row in td.recommend(300, 5, *TARGET).records}
    careful = td.recommend(
        300, 5, *TARGET, honest_aggregators=1, max_colluding_users=100, max_missing_users=50
    )
    for record in careful.records:
        mechanism = record.mechanism
        if isinstance(mechanism, td.NoisyAggregation) and mechanism.source == "users":
            assert mechanism._required_pieces == 150
            assert record.rmse > 1.2 * plain[record.title]
        elif mechanism is not None:
            assert mechanism.max_colluding_users == 100
            assert record.rmse >= plain[record.title]


def test_where_users_add_whole_noise_two_of_them_do() -> None:
    """Twice the noise of science.md B3: of two, each knows its own."""
    rows = {row.title: row for row in td.recommend(1000, 30, *TARGET, parties="users").records}
    for noise, single in (("discrete laplace", 7.84), ("skellam", 26.3)):
        row = rows[f"{noise} noise by elected users"]
        assert 30 * 1000**2 * row.rmse**2 == pytest.approx(30 * 2 * single, rel=0.01)
    for row in rows.values():
        if isinstance(row.mechanism, td.NoisyAggregation) and row.mechanism.source == "users":
            assert row.mechanism._contributors == 0
        elif row.mechanism is not None:
            assert row.mechanism._contributors == 2


def test_a_floor_that_no_data_can_keep_is_refused() -> None:
    kept = td.recommend(300, 5, *TARGET, floor=60)
    assert sum(record.conditional for record in kept.records) == 3
    with pytest.raises(InvalidValueError, match="floor must be at most 60, got 61"):
        td.recommend(300, 5, *TARGET, floor=61)


def test_the_number_of_dummies_is_the_best_of_those_tried(found: td.Recommendation) -> None:
    record = next(row for row in found.records if row.title == "sampling with dummies")
    for dummies in (5, 10, 20, 33, 50, 100, 200, 333, 500, 1000, 2000):
        other = td.SamplingAggregation(
            30, 1000, epsilon=TARGET[0], delta=TARGET[1], dummies=dummies
        )
        assert record.rmse <= other.expected_error() * (1 + 1e-12)


def test_bytes_are_those_of_shares_without_headers(found: td.Recommendation) -> None:
    for record in found.records:
        if record.mechanism is None:
            assert record.oracle is not None
            assert record.share_bytes == -(-record.oracle.report_bits // 8)
        elif isinstance(record.mechanism, td.TwoStageSampling):
            assert record.share_bytes is None
        else:
            costs = record.mechanism.run(np.arange(1000) % 30, seed=1).costs.average("user")
            # Three messages, with 52 bytes around the payload and nine for the report and the form.
            around = 52 if isinstance(record.mechanism, td.VerifiedAggregation) else 61
            assert record.share_bytes == costs.bytes - 3 * around


def test_the_table_lists_every_mechanism(found: td.Recommendation) -> None:
    lines = str(found).splitlines()
    assert len(lines) == 1 + len(found.records)
    assert lines[0].split() == ["mechanism", "rmse", "delta", "share", "bytes", "holds", "for"]
    for line, record in zip(lines[1:], found.records, strict=True):
        assert line.startswith(record.title)
        assert f"{record.rmse:.3g}" in line
        assert ("data with the floor" in line) == record.conditional
        assert ("any data" in line) != record.conditional
    assert len({line.index("  ", 45) > 0 for line in lines}) == 1


def test_the_picture_names_every_mechanism(found: td.Recommendation) -> None:
    from matplotlib import pyplot as plt

    axes = found.plot()
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == [record.title for record in found.records]
    points = sorted(
        (float(y), float(x)) for line in axes.lines for x, y in zip(*line.get_data(), strict=True)
    )
    assert [x for _, x in reversed(points)] == [record.rmse for record in found.records]
    shown = {text.get_text() for text in axes.get_legend().get_texts()}
    assert shown == {"for any data", "for data with the floor", "local, no aggregators"}
    assert "mean squared error" in axes.get_xlabel()
    for part in ("1,000 users", "30 items", "epsilon = 1", "delta = 1e-05"):
        assert part in axes.get_title(loc="left")
    assert axes.get_xscale() == "log"
    other = plt.figure().subplots()
    assert td.recommend(50, 3, *TARGET).plot(other) is other
    assert {text.get_text() for text in other.get_legend().get_texts()} == shown - {
        "for data with the floor"
    }
    plt.close("all")


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"users": 0}, InvalidValueError, "users"),
        ({"users": 2.5}, InvalidTypeError, "users"),
        ({"domain": 1}, InvalidValueError, "domain"),
        ({"epsilon": -1.0}, InvalidValueError, "epsilon"),
        ({"epsilon": float("nan")}, InvalidValueError, "epsilon"),
        ({"epsilon": "1"}, InvalidTypeError, "epsilon"),
        ({"delta": 1.5}, InvalidValueError, "delta"),
        ({"delta": -0.1}, InvalidValueError, "delta"),
        ({"delta": "none"}, InvalidTypeError, "delta"),
        ({"floor": -1}, InvalidValueError, "floor"),
        ({"floor": 301}, InvalidValueError, "floor"),
        ({"parties": 1}, InvalidValueError, "parties"),
        ({"parties": "all"}, InvalidValueError, "parties"),
        ({"honest_aggregators": 4}, InvalidValueError, "honest_aggregators"),
        ({"max_colluding_users": 300}, InvalidValueError, "max_colluding_users"),
        ({"reported": 0}, InvalidValueError, "reported"),
        ({"reported": 6}, InvalidValueError, "reported"),
        ({"reported": "all"}, InvalidTypeError, "reported"),
        ({"gamma": 1.0}, InvalidValueError, "gamma"),
        ({"gamma": "x"}, InvalidTypeError, "gamma"),
        ({"adjacency": "swap"}, InvalidValueError, "adjacency"),
    ],
)
def test_bad_arguments_are_refused(
    arguments: dict[str, Any], error: type[Exception], match: str
) -> None:
    good: dict[str, Any] = {"users": 300, "domain": 5, "epsilon": 1.0, "delta": 1e-5}
    with pytest.raises(error, match=match):
        td.recommend(**(good | arguments))


def test_large_epsilon_and_adding_or_removing_are_compared_too() -> None:
    for epsilon, adjacency in ((12.0, "replace"), (1.0, "add_or_remove"), (0.01, "replace")):
        compared = td.recommend(200, 4, epsilon, 1e-6, adjacency=adjacency)
        assert len(compared.records) >= 7
        assert isinstance(compared.best, td.NoisyAggregation)
        for record in compared.records:
            if record.mechanism is not None:
                assert record.mechanism.accounting.delta(epsilon, adjacency) <= 1e-6


# Real data.


def test_the_best_for_gowalla_estimates_gowalla(cells: list[str]) -> None:
    counts = Counter(cells)
    domain = tn.Domain(sorted(counts))
    compared = td.recommend(len(cells), domain, *TARGET, floor=min(counts.values()))
    truth = np.array([counts[label] for label in domain.labels]) / len(cells)
    best = compared.best
    assert isinstance(best, td.NoisyAggregation)
    assert best.noise == "discrete_laplace"
    result = best.run(cells, seed=5)
    low, high = (getattr(result.estimate.interval(0.999999, simultaneous="bonferroni"), side)
                 for side in ("low", "high"))  # fmt: skip
    assert ((low <= truth) & (truth <= high)).all()
    # The computed error is that of many rounds, within what 200 of them tell.
    for record in compared.records:
        if record.mechanism is None or isinstance(record.mechanism, td.TwoStageSampling):
            continue
        errors = [
            record.mechanism.run(cells, seed=seed).estimate.distance(truth, "rmse") ** 2
            for seed in range(200)
        ]
        deviation = np.std(errors, ddof=1) / np.sqrt(len(errors))
        expected = record.mechanism.expected_error(truth) ** 2
        assert abs(np.mean(errors) - expected) < 5.5 * deviation


def test_numbers_are_compared_with_local_randomization() -> None:
    found = td.recommend(400, tn.Bounds(0, 50), epsilon=1.0, adjacency="add_or_remove")
    aggregated, local = found.records
    assert isinstance(found.best, td.VerifiedSum)
    assert found.best == td.VerifiedSum(
        (0, 50), 400, epsilon=1.0, delta=0.0, aggregators=3, adjacency="add_or_remove"
    )
    assert aggregated.rmse == found.best.estimate([9000]).standard_error
    assert aggregated.share_bytes == found.best._share_bytes
    # The largest variance of a report is where the number is an end, or in the middle.
    oracle = local.oracle
    assert isinstance(oracle, tn.mean.Hybrid)
    assert local.rmse == pytest.approx(np.sqrt(oracle.worst_variance / 400))
    assert found.plot().get_xlabel() == "root mean squared error of the mean"
    with pytest.raises(tn.errors.InvalidValueError, match="parties must be a number"):
        td.recommend(400, tn.Bounds(0, 50), epsilon=1.0, parties="users")
