"""A column of numbers is read, refused and collected like a column of answers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib import pyplot

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.pipeline import scan
from turnout.pipeline.running import randomize_to_file

AGES = tn.mean.Piecewise(3.0, bounds=(0, 100))


def read(values: Any, **options: Any) -> list[float]:
    """The numbers that are randomized of a column."""
    source = values if isinstance(values, Path) else pa.table({"age": values})
    answers = scan(source, "age", **options)
    blocks = [answers._encoder(AGES.domain)(block) for block in answers._all_blocks(AGES.domain)]
    return [float(number) for block in blocks for number in block.codes]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([3, 100, 0], pa.int8()),
        pa.array([3, 100, 0], pa.uint64()),
        pa.array([3.0, 100.0, 0.0], pa.float32()),
        pa.array([Decimal("3"), Decimal("100"), Decimal("0")]),
        pa.array(["3", " 1e2", "0.0 "]),
        pa.array(["3", "100", "0"]).dictionary_encode(),
        pa.array(["3", "100", "0"], pa.string_view()),
    ],
    ids=str,
)
def test_columns_of_every_type_hold_numbers(column: Any) -> None:
    assert read(column) == [3.0, 100.0, 0.0]


def test_texts_of_a_file_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("age,country\n3.5,DE\n?,FR\n -0,NL\nnan,NL\n-9,DE\n,DE\n")
    assert read(path, missing="drop", missing_values=["?", "-9"]) == [3.5, 0.0]
    assert read(path, missing=50, missing_values=["?", "-9"]) == [3.5, 50, 0, 50, 50, 50]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, None, 2.0], r"1 of 3 answers are missing \(row 2\): empty 1 time. Pass missing"),
        ([1.0, float("nan")], r"1 of 2 answers are missing \(row 2\)"),
        ([1.0, 101.0, -1.0], r"2 values are not within the bounds \(0.0, 100.0\) \(rows 2, 3\)"),
        ([float("inf")], r"1 values are not within the bounds"),
        (["1", "x", "1_0"], r"2 values are not numbers \(rows 2, 3\)"),
        (["1", "\uff11\uff12"], r"1 values are not numbers \(row 2\)"),
    ],
)
def test_what_is_no_number_within_the_bounds_is_refused(values: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=f"column 'age': {message}"):
        read(values)


def test_what_holds_no_numbers_is_refused() -> None:
    with pytest.raises(InvalidTypeError, match="column 'age' has type bool, expected numbers"):
        read([True, False])
    with pytest.raises(InvalidValueError, match="column 'age': missing must be 'drop' or a"):
        read([1.0], missing=-1)
    with pytest.raises(InvalidTypeError, match="column 'age': missing must be a real number"):
        read([1.0], missing="none")
    several = tn.mean.Duchi(1.0, dimensions=2)
    with pytest.raises(InvalidValueError, match="pass them as an array"):
        several.collect(scan(pa.table({"age": [1.0]}), "age"))


@pytest.mark.parametrize("oracle", [AGES, tn.mean.Duchi(1.0, (0, 100))], ids=repr)
def test_one_seed_gives_one_tally_by_every_path(tmp_path: Path, oracle: Any) -> None:
    ages = np.random.default_rng(5).uniform(0, 100, 3000).round(1)
    rates = np.random.default_rng(6).uniform(0.2, 1.0, 3000)
    table = pa.table({"age": ages, "rate": rates})
    for own in (False, True):
        answers = scan(table, "age", probability_column="rate" if own else None)
        options: dict[str, Any] = {"seed": 7}
        if not own:
            options["participation"] = tn.Bernoulli(0.4)
        collected = tn.pipeline.collect(answers, oracle, **options)
        assert collected.nodes == 3000
        assert abs(float(collected.estimate().mean) - ages.mean()) < 20
        reports = tn.pipeline.randomize(answers, oracle, tmp_path / f"job{own}", **options)
        assert reports.tally() == oracle.tally(reports) == collected
        single = tmp_path / f"{own}.parquet"
        randomize_to_file(answers, oracle, single, **options)
        assert oracle.tally(tn.pipeline.open_reports(single)) == collected


def test_groups_hold_the_numbers_of_their_own_nodes(tmp_path: Path) -> None:
    ages = np.repeat([10.0, 90.0], 4000)
    table = pa.table({"age": ages, "country": np.repeat(["DE", "FR"], 4000)})
    answers = scan(table, "age", group_by="country")
    grouped = tn.pipeline.collect(answers, AGES, seed=1)
    assert tn.GroupedTally.from_bytes(grouped.to_bytes()) == grouped
    assert grouped.total == tn.pipeline.randomize(answers, AGES, tmp_path / "job", seed=1).tally()
    estimate = grouped.estimate()
    for key, mean in (("DE", 10.0), ("FR", 90.0)):
        assert estimate[key].interval(1 - 1e-6).contains(mean)
    table = estimate.to_arrow(simultaneous="sidak")
    assert table.column_names[:5] == ["country", "nodes", "received", "left_out", "coordinate"]
    assert table["low"].to_pylist()[0] < 10.0 < table["high"].to_pylist()[0]
    axes = estimate.plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == ["DE", "FR"]
    pyplot.close(axes.figure)


@pytest.mark.parametrize("rate", [0.3, "rate"])
@pytest.mark.parametrize("oracle", [AGES, tn.mean.Duchi(3.0, (0, 100))], ids=repr)
def test_who_takes_part_reports_the_own_number_to_the_own_group(oracle: Any, rate: Any) -> None:
    ages = np.tile([10.0, 90.0], 5000)
    rates = np.random.default_rng(8).uniform(0.1, 1.0, 10_000)
    table = pa.table({"age": ages, "country": np.tile(["DE", "FR"], 5000), "rate": rates})
    own = rate == "rate"
    answers = scan(table, "age", group_by="country", probability_column="rate" if own else None)
    grouped = tn.pipeline.collect(answers, oracle, participation=None if own else rate, seed=3)
    for key, mean in (("DE", 10.0), ("FR", 90.0)):
        assert grouped.estimate()[key].interval(1 - 1e-6).contains(mean)


@pytest.mark.parametrize("low", [2**53, 2**63, -(2**60)])
def test_integers_that_floats_do_not_hold_are_refused(tmp_path: Path, low: int) -> None:
    oracle = tn.mean.Duchi(1.0, bounds=(low, low + 2**20))
    inside = oracle.domain
    held, wrong = [low, low + 2**15], [low, low + 1]
    path = tmp_path / "numbers.csv"
    for make in (np.array, list):
        assert inside.to_codes(make(held)).tolist() == [float(each) for each in held]
        with pytest.raises(InvalidValueError, match=r"values\[1\]: float64"):
            inside.to_codes(make(wrong))
    with pytest.raises(InvalidValueError, match=r"values\[0\]: float64"):
        inside.to_codes([wrong[1], float(low)])
    for values in (held, wrong):
        path.write_text("\n".join(["age", *map(str, values), "NA"]), encoding="utf-8")
        integers = pa.array([*values, None], pa.uint64() if low > 0 else pa.int64())
        decimals = pa.array([*map(Decimal, values), None], pa.decimal128(30, 2))
        for source in (pa.table({"age": integers}), pa.table({"age": decimals}), path):
            answers = scan(source, "age", missing="drop")
            if values is held:
                oracle.collect(answers, seed=1)
                continue
            with pytest.raises(InvalidValueError, match=r"a value \(row 2\): float64"):
                oracle.collect(answers, seed=1)
    sentinel = pa.table({"age": pa.array([5, 2**63 - 1, 2**63 - 1], pa.int64())})
    assert len(read(sentinel["age"], missing=7, missing_values=[str(2**63 - 1)])) == 3
