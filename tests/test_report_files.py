"""Report files: round trips, and refusal of every truncation and of every altered byte."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

import turnout as tn
from turnout._seal import SEAL_MARKER, new_placeholder, seal_file
from turnout.collecting.report_files import FileFormat, file_format, read_reports, write_reports
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    UnsupportedVersionError,
)

SUFFIXES = ["parquet", "arrow"]
LABELS = ["never", "once", "often"]


def make_reports(participation: Any = None, nodes: int = 40, seed: int = 3) -> tn.Reports:
    oracle = tn.DirectEncoding(epsilon=1.0, domain=tn.Domain(LABELS))
    values = [LABELS[node % 3] for node in range(nodes)]
    who = tn.Everyone() if participation is None else participation
    return oracle.randomize(values, participation=who, seed=seed)


def personalized(nodes: int = 40) -> tn.Personalized:
    return tn.Personalized(np.linspace(0.1, 0.9, nodes))


def assert_same(one: tn.Reports, other: tn.Reports) -> None:
    assert one.plan == other.plan
    assert one.nodes == other.nodes
    assert one.codes.dtype == other.codes.dtype
    np.testing.assert_array_equal(one.codes, other.codes)
    assert (one.probabilities is None) == (other.probabilities is None)
    if one.probabilities is not None:
        np.testing.assert_array_equal(one.probabilities, other.probabilities)
    assert one.design == other.design
    assert one.oracle.tally(one) == other.oracle.tally(other)


PARTICIPATIONS: list[Callable[[], Any]] = [tn.Everyone, lambda: tn.Bernoulli(0.3), personalized]


@pytest.mark.parametrize("suffix", [*SUFFIXES, "ipc", "feather", "PARQUET"])
@pytest.mark.parametrize("participation", PARTICIPATIONS, ids=["all", "rate", "own"])
def test_what_is_written_is_read(
    tmp_path: Path, suffix: str, participation: Callable[[], Any]
) -> None:
    path = tmp_path / f"reports.{suffix}"
    reports = make_reports(participation())
    write_reports(reports, path)
    assert_same(reports, read_reports(path))
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("size", [2, 256, 257, 70_000])
def test_every_width_of_codes_is_kept(tmp_path: Path, suffix: str, size: int) -> None:
    path = tmp_path / f"reports.{suffix}"
    reports = tn.DirectEncoding(1.0, size).randomize(np.arange(1000) % size, seed=1)
    write_reports(reports, path)
    assert_same(reports, read_reports(path))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_reports_at_all_are_kept(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"reports.{suffix}"
    reports = make_reports(tn.Bernoulli(1e-12))
    assert len(reports) == 0
    write_reports(reports, path)
    assert_same(reports, read_reports(path))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_labels_of_every_kind_are_kept(tmp_path: Path, suffix: str) -> None:
    labels = ["é\n\"'\\", 1, 2.5, True, None, ("a", 2), SEAL_MARKER, "\t" + SEAL_MARKER + "0" * 64]
    labels.remove(True)  # equal to 1
    oracle = tn.DirectEncoding(epsilon=1.0, domain=tn.Domain(labels))
    path = tmp_path / f"reports.{suffix}"
    reports = oracle.randomize(labels, seed=1)
    write_reports(reports, path)
    assert read_reports(path).oracle.domain.labels == tuple(labels)
    assert_same(reports, read_reports(path))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_other_readers_see_plain_columns_and_the_plan(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"reports.{suffix}"
    reports = make_reports()
    write_reports(reports, path)
    table = pq.read_table(path) if suffix == "parquet" else ipc.open_file(str(path)).read_all()
    np.testing.assert_array_equal(table.column("report").to_numpy(), reports.codes)
    header = json.loads(table.schema.metadata[b"turnout"])
    assert (header["format"], header["version"]) == ("turnout-reports", 2)
    assert (header["nodes"], header["reports"]) == (40, 40)
    assert tn.Plan.from_json(json.dumps(header["plan"])) == reports.plan


def test_codes_are_packed_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "reports.parquet"
    reports = tn.DirectEncoding(1.0, 14).randomize(np.arange(100_000) % 14)
    write_reports(reports, path)
    assert path.stat().st_size < 100_000 * 4 / 8 + 4096


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("participation", PARTICIPATIONS, ids=["all", "rate", "own"])
def test_a_file_cut_at_any_byte_is_refused(
    tmp_path: Path, suffix: str, participation: Callable[[], Any]
) -> None:
    path = tmp_path / f"reports.{suffix}"
    write_reports(make_reports(participation()), path)
    data = path.read_bytes()
    for end in range(len(data)):
        path.write_bytes(data[:end])
        with pytest.raises(CorruptDataError):
            read_reports(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(CorruptDataError):
        read_reports(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("participation", PARTICIPATIONS, ids=["all", "rate", "own"])
def test_a_changed_bit_at_any_byte_is_refused(
    tmp_path: Path, suffix: str, participation: Callable[[], Any]
) -> None:
    path = tmp_path / f"reports.{suffix}"
    write_reports(make_reports(participation()), path)
    data = path.read_bytes()
    for position in range(len(data)):
        # Bit 5 makes capitals of hexadecimal letters: the checksum must not accept those.
        for change in (0x20, 1 << random.randrange(8), random.randrange(1, 256)):
            altered = bytearray(data)
            altered[position] ^= change
            path.write_bytes(altered)
            with pytest.raises(CorruptDataError):
                read_reports(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_moved_inserted_and_repeated_bytes_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"reports.{suffix}"
    write_reports(make_reports(), path)
    data = path.read_bytes()
    half = len(data) // 2
    for altered in (
        data[half:] + data[:half],
        data[:half] + b"\0" + data[half:],
        data + data,
        data[1:],
        b"\0" * len(data),
        b"",
    ):
        path.write_bytes(altered)
        with pytest.raises(CorruptDataError):
            read_reports(path)


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "reports.parquet"
    pq.write_table(pa.table({"report": [1, 2]}), path)
    with pytest.raises(CorruptDataError, match="not a turnout file, or its end is missing"):
        read_reports(path)


def forge(
    path: Path,
    columns: dict[str, Any] | None = None,
    participation: Any = None,
    metadata: str | None = None,
    **header: Any,
) -> Path:
    """Write a file with a right checksum and a content of the test's choice."""
    genuine = make_reports(participation)
    write_reports(genuine, path)
    table = ipc.open_file(str(path)).read_all()
    text = json.loads(table.schema.metadata[b"turnout"])
    text.update(header)
    text = {key: value for key, value in text.items() if value is not ...}
    placeholder = new_placeholder()
    table = (table if columns is None else pa.table(columns)).replace_schema_metadata(
        {
            "turnout": json.dumps(text) if metadata is None else metadata,
            "turnout.checksum": placeholder,
        }
    )
    with ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    seal_file(path, placeholder)
    return path


CODES = np.zeros(40, np.uint8)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"columns": {"report": CODES + 3}}, r"codes\[0\] is not a code"),
        ({"columns": {"report": CODES.astype(np.int64)}}, "column 'report' has type int64"),
        ({"columns": {"report": CODES.astype(np.uint64)}}, "column 'report' has type uint64"),
        ({"columns": {"report": CODES.astype(float)}}, "column 'report' has type double"),
        ({"columns": {"report": pa.array([None] * 40, pa.uint8())}}, "has 40 nulls"),
        ({"columns": {"report": CODES[:39]}}, "39 rows, but the metadata says 40"),
        (
            {"columns": {"reports": CODES}},
            "expected the columns \\['report'\\], found \\['reports'\\]",
        ),
        ({"columns": {"report": CODES, "probability": CODES / 2}}, "expected the columns"),
        ({"participation": "own", "columns": {"report": CODES}}, "expected the columns"),
        (
            {"participation": "own", "columns": {"report": CODES, "probability": CODES}},
            "column 'probability' has type uint8",
        ),
        (
            {"participation": "own", "columns": {"report": CODES, "probability": CODES + 1.5}},
            "probabilit",
        ),
        (
            {"participation": "own", "columns": {"report": CODES, "probability": CODES * np.nan}},
            "probabilit",
        ),
        ({"participation": "own", "design": ...}, "must have sums of probabilities if each node"),
        ({"participation": "own", "design": {}}, None),
        ({"participation": "own", "design": 7}, None),
        ({"nodes": 39}, "nodes must be at least"),
        ({"nodes": 41}, "nodes must equal"),
        ({"nodes": -1}, "nodes of a report file must be an integer from 0 .*, got -1"),
        ({"nodes": 40.0}, "nodes of a report file must be an integer from 0 .*, got 40.0"),
        ({"nodes": True}, "nodes of a report file must be an integer from 0 .*, got true"),
        (
            {"nodes": 2**64},
            "nodes of a report file must be an integer from 0 .*, got 18446744073709551616",
        ),
        ({"nodes": ...}, "lacks 'nodes'"),
        ({"reports": "40"}, "reports of a report file must be an integer"),
        ({"plan": ...}, "lacks 'plan'"),
        ({"plan": []}, r"the plan of a report file must be a plan, got \[\]"),
        ({"plan": {}}, None),
        ({"format": "other"}, "its format is not 'turnout-reports'"),
        ({"more": 1}, "has unknown members 'more'"),
        ({"pseudonyms": False}, "pseudonyms of a report file must be true"),
        ({"id": "7" * 31}, "id of a report file must be 32 hexadecimal digits"),
        ({"left_out": dict.fromkeys(tn.LeftOut().to_dict(), 0)}, "left_out of a report file"),
        ({"metadata": "{"}, "not a report file of turnout: no name of a member at byte 1"),
        ({"metadata": "[]"}, "its format is not 'turnout-reports'"),
        ({"metadata": "[" * 100_000}, "nested too deep"),
    ],
)
def test_a_right_checksum_does_not_excuse_a_wrong_content(
    tmp_path: Path, content: dict[str, Any], message: str | None
) -> None:
    content = dict(content)
    if content.get("participation") == "own":
        content["participation"] = tn.Personalized(np.ones(40))
    path = forge(tmp_path / "forged.arrow", **content)
    with pytest.raises(CorruptDataError, match=message) as caught:
        read_reports(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("version", [0, 1, 3, "2", None, 2.0, True])
def test_unknown_versions_are_refused_by_name(tmp_path: Path, version: object) -> None:
    path = forge(tmp_path / "forged.arrow", version=version)
    with pytest.raises(UnsupportedVersionError, match=f"version {json.dumps(version)}; .* reads 2"):
        read_reports(path)


def test_unknown_versions_of_the_plan_are_refused_by_name(tmp_path: Path) -> None:
    plan = json.loads(make_reports().plan.to_json())
    plan["version"] = 99
    path = forge(tmp_path / "forged.arrow", plan=plan)
    with pytest.raises(UnsupportedVersionError, match="99"):
        read_reports(path)


def test_what_parsers_refuse_is_corrupt_data(tmp_path: Path) -> None:
    for name, start in (("a.parquet", b"PAR1"), ("a.arrow", b"ARROW1\0\0"), ("a", b"")):
        path, placeholder = tmp_path / name, new_placeholder()
        path.write_bytes(start + placeholder.encode())
        seal_file(path, placeholder)
        with pytest.raises(CorruptDataError):
            read_reports(path)


def test_wrong_arguments_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    reports = make_reports()
    with pytest.raises(InvalidTypeError, match=r"reports: expected turnout\.Reports, got list"):
        write_reports([1, 2], tmp_path / "a.parquet")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match=r"suffix '\.csv'"):
        write_reports(reports, tmp_path / "a.csv")
    with pytest.raises(InvalidValueError, match="format: expected 'parquet' or 'arrow', got 'x'"):
        write_reports(reports, tmp_path / "a.parquet", format="x")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="suffix ''"):
        file_format("reports")
    assert list(tmp_path.iterdir()) == []


def test_the_format_can_be_named_and_is_read_from_the_content(tmp_path: Path) -> None:
    reports = make_reports()
    formats: list[FileFormat] = ["parquet", "arrow"]
    for chosen in formats:
        path = tmp_path / "reports.data"
        write_reports(reports, path, format=chosen)
        assert_same(reports, read_reports(path))


def test_labels_that_cannot_be_stored_leave_no_file(tmp_path: Path) -> None:
    oracle = tn.DirectEncoding(epsilon=1.0, domain=tn.Domain([frozenset({1}), frozenset({2})]))
    reports = oracle.randomize([frozenset({1})])
    with pytest.raises(tn.errors.TurnoutError):
        write_reports(reports, tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_while_writing_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "reports.parquet"
    write_reports(make_reports(), path)
    before = path.read_bytes()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("turnout.collecting.report_files.writing.seal_file", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_reports(make_reports(seed=4), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_first_error_of_a_full_disk_is_told_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    def closed(writer: Any) -> None:
        writer.writer.close()
        writer.is_open = False
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_batch", full)
    monkeypatch.setattr("pyarrow.parquet.ParquetWriter.close", closed)
    with pytest.raises(OSError, match="No space"):
        write_reports(make_reports(), tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


def test_missing_files_and_folders_are_oserrors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_reports(tmp_path / "nowhere.parquet")
    with pytest.raises(FileNotFoundError):
        write_reports(make_reports(), tmp_path / "no" / "a.parquet")
