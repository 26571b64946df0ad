"""Columns of groups of every Arrow type: kept as they are, or refused before a job begins."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import turnout as tn
from turnout import errors
from turnout.collecting.report_files import ReportFile
from turnout.collecting.report_files.header import Groups
from turnout.collecting.report_files.writing import ReportWriter
from turnout.pipeline import running
from turnout.pipeline.job import Job

ORACLE = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))


def numbers(kind: pa.DataType, *values: int) -> pa.Array:
    """Make a column of a type from the numbers that it stores."""
    stored = pa.int32() if kind.bit_width == 32 else pa.int64()
    return pa.array(values, stored).view(kind)


def moments(unit: str, *values: int, tz: str | None = None) -> pa.Array:
    return numbers(pa.timestamp(unit, tz), *values)


UTC = dt.timezone.utc
FIRST, LAST = dt.datetime.min, dt.datetime.max
#: Microseconds from 1970 to the first moment of the year 1, and to the last of the year 9999.
START, END = -62_135_596_800 * 10**6, 253_402_300_800 * 10**6 - 1

KEPT: dict[str, tuple[pa.Array, list[Any]]] = {
    "bool": (pa.array([True, False]), [True, False]),
    "int8": (pa.array([1, -2], pa.int8()), [1, -2]),
    "uint32": (pa.array([1, 2**32 - 1], pa.uint32()), [1, 2**32 - 1]),
    "int64": (pa.array([-(2**63), 2**63 - 1]), [-(2**63), 2**63 - 1]),
    "uint64": (pa.array([2**63, 2**64 - 1], pa.uint64()), [2**63, 2**64 - 1]),
    "float16": (pa.array(np.array([0.5, 2.0], np.float16)), [0.5, 2.0]),
    "float64": (pa.array([0.1, -1e300]), [0.1, -1e300]),
    "decimal128": (pa.array([Decimal("1.5"), Decimal(2)], pa.decimal128(5, 2)), ["1.50", "2.00"]),
    "string": (pa.array(["a", "b"]), ["a", "b"]),
    "string_view": (pa.array(["a", "b"], pa.string_view()), ["a", "b"]),
    "binary": (pa.array([b"a", b"b"]), ["a", "b"]),
    "fixed": (pa.array([b"ab", b"cd"], pa.binary(2)), ["ab", "cd"]),
    "date32": (numbers(pa.date32(), -719_162, 2_932_896), [FIRST.date(), LAST.date()]),
    "date64": (
        numbers(pa.date64(), -719_162 * 86_400_000, 2_932_896 * 86_400_000),
        [FIRST.date(), LAST.date()],
    ),
    "time32": (numbers(pa.time32("s"), 1, 2), ["00:00:01", "00:00:02"]),
    "time64": (numbers(pa.time64("ns"), 1, 2), ["00:00:00.000000001", "00:00:00.000000002"]),
    "seconds": (moments("s", START // 10**6, 0), [FIRST, dt.datetime(1970, 1, 1)]),
    "milliseconds": (
        moments("ms", 1, 0),
        [dt.datetime(1970, 1, 1, 0, 0, 0, 1000), dt.datetime(1970, 1, 1)],
    ),
    "microseconds": (moments("us", START, END), [FIRST, LAST]),
    "nanoseconds": (
        moments("ns", -(2**63) + 808, 2**63 - 808),
        [
            dt.datetime(1677, 9, 21, 0, 12, 43, 145225),
            dt.datetime(2262, 4, 11, 23, 47, 16, 854775),
        ],
    ),
    "zone": (
        moments("us", START, END, tz="Europe/Berlin"),
        [FIRST.replace(tzinfo=UTC), LAST.replace(tzinfo=UTC)],
    ),
    "offset": (
        moments("ns", 1000, 0, tz="+05:30"),
        [dt.datetime(1970, 1, 1, 0, 0, 0, 1, UTC), dt.datetime(1970, 1, 1, tzinfo=UTC)],
    ),
    "unknown zone": (
        moments("s", 1, 0, tz="No/Where"),
        [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), dt.datetime(1970, 1, 1, tzinfo=UTC)],
    ),
    "duration": (numbers(pa.duration("s"), 1, 2), ["1", "2"]),
    "bool8": (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8())), [1, 0])
    if hasattr(pa, "bool8")
    else (pa.array([1, 0]), [1, 0]),
}

YEARS = "a date outside the years 1 to 9999"
FINE = "a moment that is not of whole microseconds"

#: Columns whose first value is no group, with what is said of it.
REFUSED: dict[str, tuple[pa.Array, str]] = {
    "date32 late": (numbers(pa.date32(), 2_932_897, 0), YEARS),
    "date32 early": (numbers(pa.date32(), -719_163, 0), YEARS),
    "date32 least": (numbers(pa.date32(), -(2**31), 0), YEARS),
    "date64 late": (numbers(pa.date64(), 2_932_897 * 86_400_000, 0), YEARS),
    "date64 odd": (numbers(pa.date64(), 86_400_001, 0), "a date that is not a whole day"),
    "seconds": (moments("s", 2**63 - 1, 0), YEARS),
    "seconds, a little": (moments("s", END // 10**6 + 1, 0), YEARS),
    "milliseconds": (moments("ms", -(2**63), 0), YEARS),
    "microseconds late": (moments("us", END + 1, 0), YEARS),
    "microseconds early": (moments("us", START - 1, 0, tz="UTC"), YEARS),
    "nanoseconds": (moments("ns", 1, 0), FINE),
    "nanoseconds, greatest": (moments("ns", 2**63 - 1, 0, tz="Europe/Berlin"), FINE),
    "infinite": (pa.array([float("inf"), 0.0]), "a number that is not finite"),
    "infinite float16": (
        pa.array(np.array([-np.inf, 0], np.float16)),
        "a number that is not finite",
    ),
}


def plain(column: pa.Array) -> pa.Array:
    return column


def coded(column: pa.Array) -> pa.Array:
    """Make a dictionary, whose last value stands for nobody."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    values = pa.concat_arrays([column, column.slice(0, 1)])
    return pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.uint8()), values)


def table_of(column: pa.Array) -> pa.Table:
    return pa.table({"answer": ["no", "yes"], "g": column})


def survey(data: Any) -> list[Any]:
    found = tn.survey(data, "answer", labels=["no", "yes"], epsilon=1.0, by="g")
    return [row["group"]["g"] for row in found.to_records() if row["label"] == "no"]


def collected(data: Any) -> list[Any]:
    answers = tn.pipeline.scan(data, "answer", group_by="g")
    return [key for (key,) in tn.pipeline.collect(answers, ORACLE)]


def job(folder: Path, data: Any) -> list[Any]:
    answers = tn.pipeline.scan(data, "answer", group_by="g")
    reports = tn.pipeline.randomize(answers, ORACLE, folder / "reports")
    return [key for (key,) in reports.tally(group_by="g")]


def one_file(folder: Path, data: Any) -> list[Any]:
    answers = tn.pipeline.scan(data, "answer", group_by="g")
    running.randomize_to_file(answers, ORACLE, folder / "reports.parquet")
    return [key for (key,) in tn.pipeline.tally(folder / "reports.parquet", group_by="g")]


def ways(folder: Path) -> list[Callable[[Any], list[Any]]]:
    return [survey, collected, partial(job, folder), partial(one_file, folder)]


@pytest.mark.parametrize("form", [plain, coded])
@pytest.mark.parametrize("name", KEPT)
def test_groups_of_every_type_are_kept_as_they_are(
    tmp_path: Path, name: str, form: Callable[[pa.Array], pa.Array]
) -> None:
    column, wanted = KEPT[name]
    for way in ways(tmp_path):
        assert sorted(way(table_of(form(column))), key=repr) == sorted(wanted, key=repr)


@pytest.mark.parametrize("form", [plain, coded])
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_group_is_refused_by_its_row_and_leaves_nothing(
    tmp_path: Path,
    name: str,
    form: Callable[[pa.Array], pa.Array],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    column, what = REFUSED[name]
    monkeypatch.setattr(Job, "_begin", lambda _: pytest.fail("a job began"))
    for way in ways(tmp_path):
        with pytest.raises(errors.InvalidValueError) as refused:
            way(table_of(form(column)))
        text = str(refused.value)
        assert f"column 'g': 1 row has {what} (row 1)" in text
        # No digits but those of the number of rows and of the row.
        assert re.sub("[^0-9]", "", text.split("column 'g'")[1].replace(what, "")) == "11"
    assert list(tmp_path.iterdir()) == []


def test_a_type_that_has_no_groups_is_refused(tmp_path: Path) -> None:
    made = pa.array([(1, 2, 3), (4, 5, 6)], pa.month_day_nano_interval())
    for column in (made, pa.array([[1], [2]]), pa.array([{"a": 1}, {"a": 2}])):
        for way in ways(tmp_path):
            with pytest.raises(errors.InvalidTypeError, match="column 'g' has type"):
                way(table_of(column))
    assert list(tmp_path.glob("reports/*")) == []


def test_a_date_far_down_a_file_is_refused_before_the_job_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = np.zeros(100_000, np.int32)
    days[[70_000, 90_000]] = 10**7
    rows = pa.table({"answer": ["no"] * 100_000, "g": numbers(pa.date32(), *days.tolist())})
    pq.write_table(rows, tmp_path / "in.parquet", row_group_size=10_000)
    monkeypatch.setattr(Job, "_begin", lambda _: pytest.fail("a job began"))
    with pytest.raises(errors.InvalidValueError, match=r"2 rows have .* \(rows 70,001, 90,001\)"):
        job(tmp_path, tmp_path / "in.parquet")


def test_a_date_in_a_stream_withdraws_the_job(tmp_path: Path) -> None:
    rows = table_of(numbers(pa.date32(), 10**7, 0))
    with pytest.raises(errors.InvalidValueError, match="1 row has a date outside"):
        job(tmp_path, iter(rows.to_batches()))
    assert list((tmp_path / "reports").iterdir()) == []


def test_a_group_for_who_has_none_must_be_one(tmp_path: Path) -> None:
    rows = table_of(pa.array([1.0, None]))
    with pytest.raises(errors.InvalidValueError, match=r"missing\['g'\] must be 'drop' or a group"):
        tn.pipeline.scan(rows, "answer", group_by="g", missing={"g": float("inf")})
    answers = tn.pipeline.scan(rows, "answer", group_by="g", missing={"g": 2.0})
    assert set(tn.pipeline.collect(answers, ORACLE)) == {(1.0,), (2.0,)}


# Parquet itself holds no such seconds, and no date of 64 bits.
@pytest.mark.parametrize("name", sorted(REFUSED.keys() - {"seconds", "date64 odd"}))
def test_report_files_from_elsewhere_with_such_groups_are_corrupt(
    tmp_path: Path, name: str
) -> None:
    column, what = REFUSED[name]
    path = tmp_path / "reports.parquet"
    with ReportWriter(path, tn.Plan(ORACLE, tn.Everyone()), group_types={"g": column.type}) as file:
        file.add(ORACLE.randomize(["no", "yes"]).codes, groups=[column])
        file.close(2, groups=Groups(("g",), ((1,), (2,)), (1, 1)))
    with ReportFile(path) as opened, pytest.raises(errors.CorruptDataError, match=what):
        list(opened.batches())
