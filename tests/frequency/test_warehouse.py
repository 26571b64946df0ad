"""Tallies from counts of a database equal those of the reports, and contradictions are refused."""

import re
import sqlite3
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.collecting.report_files import write_reports
from turnout.errors import CodeOutsideDomainError, InvalidTypeError, InvalidValueError
from turnout.frequency.attributes.padded import PaddedOracle
from turnout.frequency.choice import registered
from turnout.frequency.oracles.unary_encoding import BitRowOracle

LABELS = tn.Domain(["never", "once", "often", "daily", 'it\'s "more"'])
HALF = tn.Bernoulli(0.5)
COUNTED = [
    "direct_encoding",
    "hadamard_count_mean_sketch",
    "hadamard_response",
    "projective_geometry_response",
    "optimized_unary_encoding",
    "subset_selection",
    "symmetric_unary_encoding",
    "threshold_histogram_encoding",
]


def reported(name: str, domain: Any = LABELS) -> tuple[Any, tn.Reports]:
    oracle = registered()[name](1.0, domain)
    values = np.random.default_rng(3).integers(0, oracle.domain.size, 2000)
    return oracle, oracle.randomize(oracle.domain.decode(values), participation=HALF, seed=5)


def bits(reports: tn.Reports, size: int) -> np.ndarray[Any, Any]:
    """Unpack reports of bits by their documented layout."""
    codes = np.arange(size)
    words = reports.codes[:, codes // 64]
    result: np.ndarray[Any, Any] = (words >> (codes % 64).astype(np.uint64)) & np.uint64(1)
    return result


@pytest.mark.parametrize("name", sorted(registered()))
def test_counts_computed_here_give_the_same_tally(name: str) -> None:
    oracle, reports = reported(name)
    expected = oracle.tally(reports)
    arguments: dict[str, Any] = {"nodes": 2000, "participation": HALF}
    if name == "summation_histogram_encoding":
        counts = reports.codes.sum(axis=0)
        made = oracle.tally_from_counts(counts, received=len(reports), **arguments)
    elif isinstance(oracle, BitRowOracle):
        counts = bits(reports, 5).sum(axis=0)
        made = oracle.tally_from_counts(counts, received=len(reports), **arguments)
    elif name in COUNTED:
        keys, counts = np.unique(reports.codes, return_counts=True)
        made = oracle.tally_from_counts(dict(zip(keys, counts, strict=True)), **arguments)
    else:
        for call in (
            lambda: oracle.tally_from_counts({}, **arguments),
            lambda: oracle.tally_sql("reports"),
        ):
            with pytest.raises(InvalidValueError, match=r"hash function.*oracle\.tally\(reports\)"):
                call()
        return
    assert made == expected


@pytest.mark.parametrize("name", ["direct_encoding", "optimized_unary_encoding"])
def test_padded_reports_are_counted_as_those_of_the_oracle_that_makes_them(name: str) -> None:
    inner = registered()[name](1.0, LABELS)
    padded = PaddedOracle(1.0, LABELS, oracle=inner, own_probability=0.5)
    reports = padded.randomize(["once"] * 500, seed=1)
    counts = inner.tally(tn.Reports(inner, tn.Everyone(), reports.codes, 500)).support
    made = padded.tally_from_counts(counts, nodes=500, received=500)
    assert made == padded.tally(reports)
    assert padded.tally_sql("reports") == inner.tally_sql("reports")


def test_hash_functions_that_all_reports_share_can_be_counted() -> None:
    oracle = tn.OptimizedLocalHashing(1.0, LABELS, hashes=20)
    reports = oracle.randomize(["once"] * 500, participation=HALF, seed=1)
    keys, counts = np.unique(reports.codes, return_counts=True)
    pairs = list(zip(keys.tolist(), counts.tolist(), strict=True))
    made = oracle.tally_from_counts(pairs, nodes=500, participation=HALF)
    assert made == oracle.tally(reports)


def test_large_counts_are_exact() -> None:
    oracle = tn.HadamardResponse(1.0, 6)
    huge = {0: 2**50 + 1, 3: 2**33 - 1, 5: 1}
    expected = [
        sum(count for report, count in huge.items() if bin(report & (code + 1)).count("1") % 2 == 0)
        for code in range(6)
    ]
    made = oracle.tally_from_counts(huge, nodes=2**51, participation=HALF)
    assert made.support.tolist() == expected
    assert made.received == sum(huge.values())


@pytest.mark.parametrize("size", [5, 64, 70])
@pytest.mark.parametrize("name", COUNTED)
def test_duckdb_counts_report_files(name: str, size: int, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    oracle, reports = reported(name, LABELS if size == 5 else tn.Domain.from_integers(size))
    file = tmp_path / "it's.parquet"
    write_reports(reports, file)
    query = oracle.tally_sql(str(file))
    expected = oracle.tally(reports)
    with duckdb.connect() as connection:
        arguments: dict[str, Any] = {"nodes": 2000, "participation": HALF}
        result = connection.sql(query)
        assert oracle.tally_from_counts(result, **arguments) == expected
        rows = connection.sql(query).fetchall()
        assert oracle.tally_from_counts(rows, **arguments) == expected
        table = connection.sql(query).to_arrow_table()
        assert oracle.tally_from_counts(table, **arguments) == expected
        received = len(reports)
        assert oracle.tally_from_counts(table, received=received, **arguments) == expected
        connection.sql(
            f'CREATE TABLE "my ""reports""" AS SELECT report AS "r""" '
            f"FROM read_parquet('{str(file).replace(chr(39), chr(39) * 2)}')"
        )
        named = oracle.tally_sql('main.my "reports"', column='r"')
        assert oracle.tally_from_counts(connection.sql(named), **arguments) == expected


def test_any_database_counts_direct_encoding() -> None:
    oracle, reports = reported("direct_encoding")
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE reports (report INTEGER)")
    connection.executemany("INSERT INTO reports VALUES (?)", [(int(x),) for x in reports.codes])
    rows = connection.execute(oracle.tally_sql("reports")).fetchall()
    connection.close()
    made = oracle.tally_from_counts(rows, nodes=2000, participation=HALF)
    assert made == oracle.tally(reports)


def test_counts_in_every_form() -> None:
    import pandas
    import polars
    import pyarrow

    oracle = tn.DirectEncoding(1.0, LABELS)
    expected = oracle.tally_from_counts([5, 0, 3, 0, 2], nodes=10)
    codes, counts = [2, 0, 4], [3, 5, 2]
    labels = [LABELS.labels[code] for code in codes]
    column = pandas.Series([0, 0, 0, 0, 0, 2, 2, 2, 4, 4]).value_counts()
    assert column.tolist() == [5, 3, 2]
    for given in (
        dict(zip(codes, counts, strict=True)),
        list(zip(codes, counts, strict=True)),
        [[2, 3, 10], [0, 5, 10], [4, 2, 10]],
        np.array([5, 0, 3, 0, 2], np.uint8),
        np.array([5.0, 0, 3, 0, 2]),
        {2: Decimal(3), 0: Decimal("5.0"), 4: 2.0},
        pyarrow.table({"code": codes, "n": counts}),
        pandas.DataFrame({"code": codes, "n": counts}),
        polars.DataFrame({"code": codes, "n": counts}),
        column,
        # The key of a group-by is the index; an index without a name says nothing.
        pandas.DataFrame({"n": counts}, index=pandas.Index(codes, name="code")),
        pandas.DataFrame({"code": codes, "n": counts}).sort_values("n"),
    ):
        assert oracle.tally_from_counts(given, nodes=10) == expected
    by_label = {"label": labels, "n": counts}
    for given in (dict(zip(labels, counts, strict=True)), pandas.DataFrame(by_label)):
        assert oracle.tally_from_counts(given, nodes=10, by="label") == expected
    # Integers that are labels are not taken for codes.
    years = tn.DirectEncoding(1.0, tn.Domain([2, 1, 0]))
    assert years.tally_from_counts({0: 3}, nodes=3).support.tolist() == [3, 0, 0]
    assert years.tally_from_counts({0: 3}, nodes=3, by="label").support.tolist() == [0, 0, 3]


@pytest.mark.parametrize(
    ("counts", "error", "message"),
    [
        ({5: 1}, CodeOutsideDomainError, "code 5: expected an integer from 0 to 4"),
        ({-1: 1}, CodeOutsideDomainError, "code -1"),
        ([(1, 2), (1, 3)], InvalidValueError, "the duplicate code 1"),
        ({1: -2}, InvalidValueError, r"counts\[1\] must be a whole number from 0"),
        ({1: 2**64}, InvalidValueError, r"counts\[1\] must be a whole number"),
        ({1: 1.5}, InvalidValueError, "whole number"),
        ({1: float("nan")}, InvalidValueError, "whole number"),
        ({1: Decimal("inf")}, InvalidValueError, "whole number"),
        ({1: 2.0**60}, InvalidValueError, "exact"),
        ({1: None}, InvalidTypeError, "whole number"),
        ({None: 1}, InvalidTypeError, "the code of counts None"),
        ({"never": 1}, InvalidTypeError, "the code of counts 'never'"),
        ({1: True}, InvalidTypeError, "whole number"),
        ([1, 2, 3], InvalidValueError, "one count for each of the 5 codes"),
        ("12345", InvalidTypeError, "counts must be"),
        (3, InvalidTypeError, "counts must be"),
        ([(0, 3, 3), (1, 3, 4)], InvalidValueError, "third column"),
        ([(0, 3, 7)], InvalidValueError, "add up to the number of reports 7, got 3"),
        ({0: 11}, InvalidValueError, "at most|from 0 to 10"),
        ({0: 9}, InvalidValueError, "everyone takes part"),
    ],
)
def test_counts_that_cannot_be_are_refused(counts: Any, error: Any, message: str) -> None:
    oracle = tn.DirectEncoding(1.0, LABELS)
    with pytest.raises(error, match=message):
        oracle.tally_from_counts(counts, nodes=10)


def test_numbers_that_contradict_each_other_are_refused() -> None:
    direct = tn.DirectEncoding(1.0, LABELS)
    with pytest.raises(InvalidValueError, match="add up to the number of reports 4, got 3"):
        direct.tally_from_counts({0: 3}, received=4, nodes=4)
    with pytest.raises(InvalidValueError, match="third column of counts says, 3, got 4"):
        direct.tally_from_counts([(0, 3, 3)], received=4, nodes=4)
    unary = tn.OptimizedUnaryEncoding(1.0, LABELS)
    with pytest.raises(InvalidValueError, match="received must be given for Optimized"):
        unary.tally_from_counts({0: 3}, nodes=4)
    with pytest.raises(InvalidValueError, match=re.escape("support[0] must be at most the 2")):
        unary.tally_from_counts({0: 3}, received=2, nodes=4, participation=HALF)
    with pytest.raises(InvalidValueError, match="received must be an integer from 0 to 2"):
        unary.tally_from_counts({0: 3}, received=3, nodes=2, participation=HALF)
    subsets = tn.SubsetSelection(0.5, LABELS)
    assert subsets.subset_size == 2
    with pytest.raises(InvalidValueError, match="add up to 2 times the number of reports, got 3"):
        subsets.tally_from_counts({0: 2, 1: 1}, nodes=4, participation=HALF)
    with pytest.raises(InvalidValueError, match="2 times the number of reports 3, got 4"):
        subsets.tally_from_counts({0: 2, 1: 2}, received=3, nodes=4, participation=HALF)
    with pytest.raises(InvalidValueError):
        tn.ProjectiveGeometryResponse(1.0, 5).tally_from_counts({255: 1}, nodes=1)
    with pytest.raises(InvalidValueError, match="weight of its own"):
        direct.tally_from_counts({0: 3}, nodes=3, participation=tn.Personalized([0.5] * 3))
    with pytest.raises(InvalidValueError, match="by must be 'code'"):
        tn.HadamardResponse(1.0, LABELS).tally_from_counts({0: 3}, nodes=3, by="label")
    with pytest.raises(InvalidValueError, match="by must be one of"):
        direct.tally_from_counts({0: 3}, nodes=3, by="name")
    with pytest.raises(ValueError, match="'seldom'"):
        direct.tally_from_counts({"seldom": 3}, nodes=3, by="label")
    with pytest.raises(InvalidTypeError, match="source"):
        direct.tally_sql(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="SQL cannot add up"):
        tn.SummationHistogramEncoding(1.0, LABELS).tally_sql("reports")
