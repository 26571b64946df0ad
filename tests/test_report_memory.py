"""A report file costs memory in proportion to its size, or as much as was allowed."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc
from tests.decoding import sealed_again

import turnout as tn
from turnout import _seal
from turnout._seal import new_placeholder, seal_file, verify_seal
from turnout.collecting.report_files import MAX_MEMORY, ReportFile, read_reports, write_reports
from turnout.collecting.report_files.containers import message_bytes, open_container
from turnout.collecting.report_files.header import Groups
from turnout.collecting.report_files.reading import most_memory
from turnout.collecting.report_files.writing import ReportWriter
from turnout.errors import CorruptDataError, InvalidValueError, MemoryLimitError
from turnout.pipeline import open_reports, scan

UNARY = tn.SymmetricUnaryEncoding(1.0, 2**15)
ROW = 2**15 // 8


def equal_reports(rows: int, oracle: tn.FrequencyOracle = UNARY) -> tn.Reports:
    one = oracle.randomize([0], seed=1).codes
    codes = np.repeat(one, rows, axis=0)
    return tn.Reports(oracle, tn.Everyone(), codes, rows)


def resealed(path: Path, table: Any, **options: Any) -> Path:
    """Write a table as a report file with a right checksum, in a way of the test's choice."""
    placeholder = new_placeholder()
    metadata = {**table.schema.metadata, b"turnout.checksum": placeholder}
    metadata.pop(b"ARROW:schema", None)
    schema = table.schema.remove_metadata()
    with pq.ParquetWriter(path, schema, store_schema=False, **options) as writer:
        writer.write_table(table.replace_schema_metadata(None))
        writer.add_key_value_metadata(metadata)
    seal_file(path, placeholder)
    return path


def table_of(path: Path) -> Any:
    """Read a Parquet file of reports as a table, its metadata with it."""
    with pq.ParquetFile(path) as file:
        metadata = file.metadata.metadata
        return file.read().replace_schema_metadata(metadata)


@contextlib.contextmanager
def arrow_within(size: int) -> Iterator[None]:
    """Check that Arrow takes up no more than so many bytes at any time."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        yield
    finally:
        pa.set_memory_pool(before)
    assert pool.max_memory() <= size


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_batch_of_wide_reports_has_few_of_them(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    write_reports(equal_reports(12_000), path)
    assert path.stat().st_size < 30_000
    reports = open_reports(path)
    # All of them are 49 MB.
    with arrow_within(36_000_000):
        sizes = [len(batch) for batch in reports.batches()]
    assert sum(sizes) == 12_000
    assert max(sizes) == 2**24 // ROW
    with arrow_within(36_000_000):
        assert reports.tally().received == 12_000


def test_a_batch_of_narrow_reports_is_as_long_as_a_block(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_reports(equal_reports(2**20 + 5, tn.DirectEncoding(1.0, 2)), path)
    with ReportFile(path) as file:
        assert [len(batch) for batch in file.batches()] == [2**20, 5]


@pytest.mark.parametrize("personal", [False, True])
def test_a_file_that_names_very_many_answers_is_refused(
    tmp_path: Path, personal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = tn.Personalized([0.5]) if personal else tn.Everyone()
    path = tmp_path / "a.parquet"
    oracle = tn.DirectEncoding(1.0, 2**27)
    write_reports(oracle.randomize([5], participation=who, seed=1), path)
    # Before the counts are made, be they all zero.
    monkeypatch.setattr(oracle.tally_type, "empty", None)
    with pytest.raises(MemoryLimitError, match=r"counts of 134,217,728 answers.*max_memory") as no:
        open_reports(path).tally()
    assert os.fspath(path) in str(no.value)


def test_the_limit_is_an_option(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_reports(tn.DirectEncoding(1.0, 2**16).randomize([5], seed=1), path)
    reports = open_reports(path)
    with pytest.raises(MemoryLimitError, match=r"but a file of .* bytes may use 1,000,000"):
        reports.tally(max_memory=10**6)
    assert reports.tally(max_memory=10**7).received == 1
    assert tn.pipeline.tally(path, max_memory=10**7).received == 1
    with pytest.raises(InvalidValueError, match="max_memory"):
        reports.tally(max_memory=0)


def test_groups_count_with_the_answers_of_each(tmp_path: Path) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, 1000), tn.Everyone())
    path = tmp_path / "a.parquet"
    with ReportWriter(path, plan, group_types={"who": pa.int64()}) as writer:
        writer.add(np.zeros(500, np.uint16), groups=[pa.array(range(500))])
        keys = tuple((number,) for number in range(500))
        writer.close(500, groups=Groups(("who",), keys, (1,) * 500))
    reports = open_reports(path)
    assert reports.tally(max_memory=10**6).received == 500
    with pytest.raises(MemoryLimitError, match="1,000 answers in each of 500 groups"):
        reports.tally(group_by="who", max_memory=10**6)
    assert len(reports.tally(group_by="who", max_memory=10**7)) == 500


def test_reports_in_memory_are_limited_by_their_number(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_reports(equal_reports(3000), path)
    with pytest.raises(MemoryLimitError, match=r"3,000 reports would need 12,288,000 bytes"):
        read_reports(path, max_memory=10**7)
    assert len(read_reports(path, max_memory=2 * 10**7)) == 3000


def test_eight_times_the_size_of_the_file_is_allowed_in_any_case(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_reports(tn.DirectEncoding(1e-6, 2).randomize(np.zeros(50_000, int), seed=1), path)
    assert len(read_reports(path, max_memory=1)) == 50_000


def test_a_page_that_is_large_when_it_is_no_longer_compressed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_reports(equal_reports(3000), path)
    resealed(
        path,
        table_of(path),
        compression="zstd",
        use_dictionary=False,
        data_page_size=2**30,
        write_batch_size=10_000,
    )
    assert path.stat().st_size < 30_000
    with pytest.raises(MemoryLimitError, match="a block of 12,288,000 bytes"):
        open_reports(path).tally(max_memory=2 * 10**6)
    assert open_reports(path).tally(max_memory=2 * 10**7).received == 3000


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_page_of_answers_that_is_large_when_it_is_no_longer_compressed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"a": ["no"] * 100_000, "b": ["no"] * 100_000}),
        path,
        compression="zstd",
        use_dictionary=["b"],
        data_page_size=2**30,
        write_batch_size=100_000,
        data_page_version=version,
    )
    assert path.stat().st_size < 12_000
    oracle = tn.DirectEncoding(1.0, ["no", "yes"])
    monkeypatch.setattr(most_memory, "__defaults__", (100_000,))
    with (
        arrow_within(400_000),
        pytest.raises(MemoryLimitError, match=r"of column 'a' has 1\d\d,\d* bytes") as no,
    ):
        oracle.collect(scan(path, "a"))
    assert os.fspath(path) in str(no.value)
    # Columns that nobody reads may be of any size, and what is within the limit is read.
    assert oracle.collect(scan(path, "b")).nodes == 100_000
    monkeypatch.setattr(most_memory, "__defaults__", (10**6,))
    assert oracle.collect(scan(path, "a")).nodes == 100_000


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_pages_of_every_kind_are_read_and_those_with_little_for_much_are_refused(
    tmp_path: Path, version: str
) -> None:
    path = tmp_path / "a.parquet"
    write_reports(equal_reports(3000), path)
    table = table_of(path)
    for options in ({}, {"use_dictionary": False}, {"compression": "none"}, {"data_page_size": 1}):
        resealed(path, table, data_page_version=version, write_page_checksum=True, **options)
        assert open_reports(path).tally().received == 3000
    resealed(
        path,
        table,
        data_page_version=version,
        use_dictionary=False,
        column_encoding={"report": "DELTA_BYTE_ARRAY"},
    )
    with pytest.raises(CorruptDataError, match=r"a page has an encoding other than"):
        open_reports(path).tally()


def test_a_record_batch_that_is_large_when_it_is_no_longer_compressed_is_refused(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.arrow"
    write_reports(equal_reports(3000), path)
    with ipc.open_file(os.fspath(path)) as file:
        table = file.read_all()
    placeholder = new_placeholder()
    metadata = {**table.schema.metadata, b"turnout.checksum": placeholder}
    table = table.replace_schema_metadata(metadata)
    for compression in ("zstd", "lz4", None):
        most = 2 * 10**6
        options = ipc.IpcWriteOptions(compression=compression)
        with ipc.new_file(os.fspath(path), table.schema, options=options) as writer:
            writer.write_table(table.combine_chunks())
        seal_file(path, placeholder)
        if compression is not None:
            with pytest.raises(MemoryLimitError, match="a block of 12,288,000 bytes"):
                open_reports(path).tally(max_memory=most)
        # What is not compressed takes up no more than the file.
        enough = most if compression is None else 10 * most
        assert open_reports(path).tally(max_memory=enough).received == 3000


def test_a_long_name_of_a_group_is_there_once_for_all_rows(tmp_path: Path) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, 2), tn.Everyone())
    path, rows, name = tmp_path / "a.parquet", 1000, "x" * 100_000
    with ReportWriter(path, plan, group_types={"who": pa.string()}) as writer:
        column = pa.array([name, None]).take(pa.array([0, 1] * (rows // 2)))
        writer.add(np.zeros(rows, np.uint8), groups=[column])
        writer.close(rows, groups=Groups(("who",), ((name,), (None,)), (rows // 2,) * 2))
    reports = open_reports(path)
    # In all rows it takes up 50 MB.
    with arrow_within(10_000_000):
        tallies = reports.tally(group_by="who")
    assert [part.received for part in tallies.values()] == [rows // 2] * 2


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (pa.binary(), CorruptDataError),
        (pa.large_binary(), CorruptDataError),
        (pa.list_(pa.uint8()), CorruptDataError),
        (pa.binary(2**19), MemoryLimitError),
    ],
)
def test_a_long_report_that_stands_once_is_not_repeated_for_every_row(
    tmp_path: Path, kind: Any, error: type[Exception]
) -> None:
    path = tmp_path / "a.parquet"
    write_reports(tn.DirectEncoding(1.0, 2).randomize(np.zeros(3000, np.int64), seed=1), path)
    table = table_of(path)
    report = pa.array([b"\0" * 2**19], pa.binary(2**19))
    if not pa.types.is_fixed_size_binary(kind):
        report = pa.array(
            [list(b"\0" * 2**10)] if pa.types.is_list(kind) else [b"\0" * 2**19], kind
        )
    rows = pa.DictionaryArray.from_arrays(pa.array([0] * 3000, pa.int8()), report)
    column = rows if not pa.types.is_list(kind) else pa.chunked_array([report.take([0] * 3000)])
    table = table.set_column(0, pa.field("report", column.type, nullable=False), column)
    resealed(path, table)
    assert path.stat().st_size < 2_500_000
    with arrow_within(50_000_000), pytest.raises(error, match=r"a.parquet"):
        read_reports(path)


def test_too_little_memory_is_an_error_that_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("malloc of size 1 failed")

    path = tmp_path / "a.parquet"
    write_reports(equal_reports(3), path)
    readers = [
        ("collecting.report_files.reading.reported", lambda: read_reports(path)),
        ("collecting.tally.BaseTally.merge", lambda: open_reports(path).tally()),
    ]
    for place, read in readers:
        with monkeypatch.context() as patched:
            patched.setattr(f"turnout.{place}", fail)
            with pytest.raises(MemoryLimitError, match=r"a.parquet: there is not enough memory"):
                read()


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_file_that_is_cut_while_it_is_read_is_an_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    oracle = tn.DirectEncoding(1e-6, 2**31)
    write_reports(oracle.randomize(np.zeros(100_000, int), seed=1), path)
    with ReportFile(path) as file:
        batches = file.batches(rows=1000)
        assert len(next(batches)) == 1000
        os.truncate(path, 4096)
        with pytest.raises(CorruptDataError, match=f"a.{suffix}: "):
            list(batches)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_file_that_is_written_on_while_it_is_read_is_an_error(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"a.{suffix}"
    write_reports(equal_reports(3), path)
    with ReportFile(path) as file:
        with path.open("ab") as end:
            end.write(b"more")
        with pytest.raises(CorruptDataError, match="was changed while it was being read"):
            list(file.batches())


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_two_may_read_one_file_at_a_time(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    reports = tn.DirectEncoding(1.0, 2**12).randomize(np.arange(3000), seed=1)
    write_reports(reports, path)
    with ReportFile(path) as file:
        pairs = zip(file.batches(rows=7), file.batches(rows=7), strict=True)
        for number, (one, other) in enumerate(pairs):
            np.testing.assert_array_equal(one.reports, reports.codes[7 * number :][:7])
            np.testing.assert_array_equal(one.reports, other.reports)


@pytest.mark.parametrize("stretch", [79, 80, 113, 2**20])
def test_a_seal_is_found_wherever_the_stretches_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stretch: int
) -> None:
    path, placeholder = tmp_path / "a", new_placeholder()
    for start in range(0, 200, 7):
        path.write_text("x" * start + placeholder + "y" * (200 - start) + placeholder + "z" * start)
        monkeypatch.setattr(_seal, "_STRETCH", stretch)
        seal_file(path, placeholder)
        monkeypatch.setattr(_seal, "_STRETCH", 2**20)
        with path.open("rb") as file:
            verify_seal(file)
        data = path.read_bytes()
        monkeypatch.setattr(_seal, "_STRETCH", stretch)
        verify_seal(io.BytesIO(data))
        for wrong in (data[:-1] + b"!", b"!" + data[1:], data.replace(b"y", b"x", 1)):
            if wrong != data:
                with pytest.raises(CorruptDataError):
                    verify_seal(io.BytesIO(wrong))


def test_headers_of_pages_that_are_none_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    write_reports(equal_reports(3), path)
    data = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    for _ in range(300):
        wrong = bytearray(data)
        for place in rng.integers(4, 40, 3):
            wrong[place] = rng.integers(256)
        try:
            container = open_container(partial(io.BytesIO, wrong))
            stretches = container._stretches(2, MAX_MEMORY)
            pieces = [container.batches(2, MAX_MEMORY, each) for each in stretches]
            for table in itertools.chain(*pieces):
                table.validate(full=True)
        except (CorruptDataError, MemoryLimitError, pa.ArrowException, OSError):
            pass


def test_a_record_batch_of_zeros_is_refused() -> None:
    class Message:
        metadata = struct.pack("<I", 8) + bytes(60)
        body = b""

    with pytest.raises(CorruptDataError, match="a record batch does not state its length"):
        message_bytes(Message)


def test_the_limit_holds_where_duplicates_are_looked_for_and_batches_are_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.parquet"
    plan = tn.Plan(UNARY, tn.Everyone())
    with ReportWriter(path, plan, pseudonyms=True) as writer:
        rows = equal_reports(3000).codes
        names = np.arange(6000, dtype=np.uint64).view(np.uint8).reshape(3000, 16)
        writer.add(rows, pseudonyms=names)
        writer.close(3000)
    reports = open_reports(path)
    # A page of equal rows is small in the file, and large when it is read.
    with pytest.raises(MemoryLimitError):
        reports.tally(duplicates="refuse", max_memory=1)
    with pytest.raises(MemoryLimitError):
        list(reports.batches(max_memory=1))
    assert sum(len(batch) for batch in reports.batches()) == 3000


READ_ALL = """
import sys
import turnout as tn
from turnout.collecting.report_files import read_reports
from turnout.errors import TurnoutError
from turnout.pipeline import scan

def peak():
    # Not ru_maxrss, which a process takes over from the one that started it.
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])

def refused(read, path):
    try:
        read(path)
    except TurnoutError as error:
        return path in str(error)
    return False

def count(path):
    tn.DirectEncoding(1.0, 5).collect(scan(path, "a"), seed=1)

answers, reports, *bad = sys.argv[1:]
assert not refused(count, answers) and not refused(read_reports, reports)
before = peak()
for path in bad:
    assert refused(count, path) and refused(read_reports, path), path
print(peak() - before)
"""


def added_memory(folder: Path, alter: Callable[[bytes], list[bytes]]) -> int:
    """Read altered files of answers and of reports; how many KiB that adds to a process."""
    paths = [folder / "answers.parquet", folder / "reports.parquet"]
    pq.write_table(pa.table({"a": [1, 2, 3]}), paths[0])
    write_reports(equal_reports(3), paths[1])
    bad = [sealed_again(data) for path in paths for data in alter(path.read_bytes())]
    for number, data in enumerate(bad):
        paths.append(folder / f"{number}.parquet")
        paths[-1].write_bytes(data)
    command = [sys.executable, "-c", READ_ALL, *map(str, paths)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_a_list_of_the_footer_is_no_longer_than_the_footer(tmp_path: Path) -> None:
    def alter(data: bytes) -> list[bytes]:
        length, bad = int.from_bytes(data[-8:-4], "little"), []
        million = bytes([0xFC, 0xBF, 0x84, 0x3D])
        stated = struct.pack("<I", length + len(million) - 1) + b"PAR1"
        # Wherever a list of structs might begin: its type is 9, that of its elements 12.
        for place in range(len(data) - 7 - length, len(data) - 8):
            if data[place - 1] & 15 == 9 and data[place] & 15 == 12:
                bad.append(data[:place] + million + data[place + 1 : -8] + stated)
        assert len(bad) > 4
        return bad

    # Without the limit 700,000.
    assert added_memory(tmp_path, alter) < 20_000


def test_a_page_is_no_longer_than_its_file(tmp_path: Path) -> None:
    def alter(data: bytes) -> list[bytes]:
        # Behind the mark, in the compact protocol of Thrift: a type, and the two lengths of a page.
        head = re.match(rb"PAR1\x15.\x15[\x80-\xff]*[\0-\x7f]\x15", data, re.DOTALL)
        assert head is not None
        rest = re.sub(rb"\A[\x80-\xff]*[\0-\x7f]", b"", data[head.end() :])
        # 2^30 - 1 bytes.
        return [head[0] + b"\xfe\xff\xff\xff\x07" + rest]

    # Without the limit a million.
    assert added_memory(tmp_path, alter) < 20_000
