"""As many rows are read as there are, or the file is refused: of every format, however damaged."""

from __future__ import annotations

import csv
import io
import json
import pickle
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from turnout.errors import CorruptDataError, TurnoutError
from turnout.pipeline.sources import open_source, row_text

TABLE = pa.table(
    {
        "answer": ["yes", "no", None, "yes"] * 3,
        "number": pa.array(range(12), pa.int32()),
        "group": pa.array(["a", "b"] * 6).dictionary_encode(),
    }
)


def rows(path: Any, name: str = "answer", **options: Any) -> list[Any]:
    source = open_source(path, **options)
    tables = [block.read() for block in source.blocks([name], categories={name})]
    assert sum(source.file_rows.values()) in (0, sum(table.num_rows for table in tables))
    return [value for table in tables for value in table.column(name).to_pylist()]


# Text ------------------------------------------------------------------------------------------


def read_by_csv(data: bytes, separator: str) -> list[list[str]] | None:
    """What Python's own reader gives, where it takes nothing odd; None where it refuses."""
    if b"\0" in data:
        return None
    text = io.StringIO(data.decode(), newline="")
    try:
        return list(csv.reader(text, delimiter=separator, strict=True))
    except csv.Error:
        return None


def line_ends(data: bytes, separator: str) -> set[bytes]:
    """How rows end: a second look at what is between quotes, and what is not."""
    found, quoted, begins = set(), False, True
    for place in range(len(data)):
        byte = data[place : place + 1]
        if byte == b'"' and (quoted or begins):
            quoted = not quoted
            # Two quotes within quotes open it again.
            begins = not quoted
            continue
        begins = byte in (b"\r", b"\n", separator.encode())
        if not quoted and byte == b"\n":
            found.add(b"\n")
        elif not quoted and byte == b"\r" and data[place + 1 : place + 2] != b"\n":
            found.add(b"\r")
    return found


FIELDS = st.one_of(
    st.sampled_from(["yes", "no", "", "1", "a b", 'say "no"', "a\nb", "x\r\ny", ",", ";", "ü"]),
    st.text(st.sampled_from('ab",;\n\r '), max_size=6),
)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[bytes, str, bool]:
    """A file as a program writes it, and then perhaps with some characters changed."""
    columns = draw(st.integers(1, 3))
    records = draw(st.lists(st.lists(FIELDS, min_size=columns, max_size=columns), max_size=12))
    separator = draw(st.sampled_from(",;\t"))
    text = io.StringIO(newline="")
    # Python quotes no line end that is not its own.
    all_of = draw(st.booleans()) or any({*"\r\n"} & {*field} for row in records for field in row)
    writer = csv.writer(
        text,
        delimiter=separator,
        lineterminator=draw(st.sampled_from(["\n", "\r\n", "\r"])),
        quoting=csv.QUOTE_ALL if all_of else csv.QUOTE_MINIMAL,
    )
    writer.writerows([["answer", "other", "more"][:columns], *records])
    data = list(text.getvalue())
    changes = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 400)), max_size=3))
    for kind, number in changes:
        place = number % (len(data) + 1)
        new = draw(st.sampled_from(['"', '"', "\n", "\r", ",", ";", "\0", "x"]))
        data[place : place + min(kind, 1)] = "" if kind == 2 else new
    return "".join(data).encode(), separator, not changes


@settings(
    max_examples=600,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(case=mutated(), chunk=st.sampled_from([1, 5, 64, 2**22]))
@example(case=(b'answer,other\nyes,1\nno,"2\nyes,3\n', ",", False), chunk=2**22)
@example(case=(b'answer,other\n"yes",1\n"no,2\n"yes",3\n', ",", False), chunk=2**22)
@example(case=(b'answer,other\nyes,"a"b\nno,2\n', ",", False), chunk=7)
@example(case=(b'answer\nyes\n\n""\nno', ",", True), chunk=3)
def test_as_many_rows_of_text_as_another_reader_finds_or_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[bytes, str, bool],
    chunk: int,
) -> None:
    data, separator, intact = case
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    monkeypatch.setattr(row_text, "CHUNK", chunk)
    expected = read_by_csv(data, separator)
    try:
        found = rows(path, separator=separator)
    except TurnoutError:
        found = None
    if expected is None:
        assert found is None
        return
    while expected and not expected[0]:
        expected.pop(0)
    header = expected.pop(0) if expected else []
    records = (
        [row for row in expected if row] if len(header) > 1 else [row or [""] for row in expected]
    )
    right = (
        header.count("answer") == 1
        and all(len(row) == len(header) for row in records)
        and len(line_ends(data, separator)) < 2
    )
    if not right:
        assert found is None
    else:
        place = header.index("answer")
        assert found == [row[place] or None for row in records]
    assert right or not intact


@pytest.mark.parametrize(
    "ending", [".csv", ".csv.gz", ".csv.bz2", ".csv.zst", ".csv.lz4", ".CSV.GZ"]
)
def test_compressed_text_that_is_cut_is_refused_and_in_several_pieces_is_read(
    tmp_path: Path, ending: str
) -> None:
    codec = {"gz": "gzip", "zst": "zstd", "csv": None}.get(
        ending.lower().split(".")[-1], ending[5:]
    )

    def packed(text: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.output_stream(sink, compression=codec) as stream:
            stream.write(text)
        return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]

    path = tmp_path / f"a{ending}"
    whole = packed(b"answer,other\n" + b"yes,1\nno,2\n" * 500)
    path.write_bytes(whole + packed(b"no,3\n" * 7))
    assert Counter(rows(path)) == {"yes": 500, "no": 507}
    if codec is None:
        return
    for cut in (1, 4, 8, len(whole) // 2):
        path.write_bytes(whole[:-cut])
        with pytest.raises(CorruptDataError, match="cannot be read"):
            rows(path)
    path.write_bytes(whole + b"and more")
    with pytest.raises(CorruptDataError, match="cannot be read"):
        rows(path)


# Columns ---------------------------------------------------------------------------------------


def parquet(path: Path, table: pa.Table = TABLE) -> Path:
    pq.write_table(table, path, row_group_size=5)
    return path


def arrow_file(path: Path, table: pa.Table = TABLE) -> Path:
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=5)
    return path


def arrow_stream(path: Path, table: pa.Table = TABLE) -> Path:
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=5)
    return path


def polars_file(path: Path, table: pa.Table = TABLE) -> Path:
    pytest.importorskip("polars").from_arrow(table).write_ipc(path)
    return path


def polars_stream(path: Path, table: pa.Table = TABLE) -> Path:
    pytest.importorskip("polars").from_arrow(table).write_ipc_stream(path)
    return path


WRITERS: dict[str, Callable[..., Path]] = {
    "a.parquet": parquet,
    "b.arrow": arrow_file,
    "c.arrow": arrow_stream,
    "d.arrow": polars_file,
    "e.arrow": polars_stream,
}


@pytest.mark.parametrize("name", WRITERS)
def test_several_files_in_one_are_refused(tmp_path: Path, name: str) -> None:
    path, write = tmp_path / name, WRITERS[name]
    first = write(path).read_bytes()
    assert rows(path) == TABLE["answer"].to_pylist()
    # As many rows, so that the places in the second file are places in the first one too.
    other = TABLE.set_column(1, "number", pa.array(range(100, 112), pa.int32()))
    for second in (other, TABLE.slice(0, 3), pa.concat_tables([TABLE] * 40), TABLE.slice(0, 0)):
        later = write(path, second).read_bytes()
        for data in (first + later, later + first):
            path.write_bytes(data)
            with pytest.raises(CorruptDataError, match=name):
                rows(path)


@pytest.mark.parametrize("name", WRITERS)
def test_columnar_files_that_are_cut_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    data = WRITERS[name](path).read_bytes()
    for end in range(len(data)):
        path.write_bytes(data[:end])
        with pytest.raises(CorruptDataError, match=name):
            rows(path)
    WRITERS[name](path, TABLE.slice(0, 0))
    assert rows(path) == []


def test_a_parquet_file_whose_numbers_contradict_each_other(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", pa.table({"answer": ["x"] * 1000}))
    data = path.read_bytes()
    # 1000 as a varint of Thrift, in the footer: 2000 in seven bits a byte.
    place = data.index(b"\xd0\x0f", len(data) - 8 - int.from_bytes(data[-8:-4], "little"))
    path.write_bytes(data[:place] + b"\xce\x0f" + data[place + 2 :])
    with pytest.raises(CorruptDataError, match="has 999 rows, and its row groups have 1,000"):
        open_source(path)


_CHANGED = """
import json, pickle, sys
from turnout.errors import TurnoutError
from turnout.pipeline.sources import open_source
path, data, changes = pickle.load(sys.stdin.buffer)
for place, byte in changes:
    path.write_bytes(data[:place] + bytes([byte]) + data[place + 1:])
    for columns in (["answer"], ["number", "group"]):
        try:
            blocks = open_source(path).blocks(columns, categories=columns)
            found = sum(block.read().num_rows for block in blocks)
        except TurnoutError:
            found = None
        print(json.dumps(found), flush=True)
"""


@pytest.mark.parametrize("name", ["a.parquet", "b.arrow", "c.arrow"])
def test_changed_bytes_cost_no_row(tmp_path: Path, name: str) -> None:
    path, chance = tmp_path / name, random.Random(7)
    data = WRITERS[name](path).read_bytes()
    changes = [(chance.randrange(len(data)), chance.randrange(256)) for _ in range(600)]
    found: list[int | None] = []
    for start in range(0, len(changes), 100):
        # By another process: Arrow itself ends it where it finds some contradictions in Parquet.
        done = subprocess.run(
            [sys.executable, "-c", _CHANGED],
            input=pickle.dumps((path, data, changes[start : start + 100])),
            capture_output=True,
            check=False,
        )
        assert done.returncode in (0, -6) or name != "a.parquet", done.stderr
        assert not done.returncode or name == "a.parquet", done.stderr
        found += map(json.loads, done.stdout.split())
    counts = Counter(found)
    assert set(counts) == {None, TABLE.num_rows}, counts
    assert min(counts.values()) > 100
    assert len(found) > 600


# Memory ----------------------------------------------------------------------------------------


def of_pandas(table: pa.Table) -> Any:
    return pytest.importorskip("pandas").DataFrame(table.to_pydict())


def of_polars(table: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


MEMORY: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "batches": lambda table: iter(table.to_batches(max_chunksize=3)),
    "pandas": of_pandas,
    "polars": of_polars,
    "lazy": lambda table: of_polars(table).lazy(),
    "dictionary": pa.Table.to_pydict,
    "arrays": lambda table: {name: table[name] for name in table.column_names},
    "dictionaries": pa.Table.to_pylist,
}


@pytest.mark.parametrize("kind", MEMORY)
@settings(max_examples=30, deadline=None)
@given(
    answers=st.lists(st.one_of(st.none(), st.sampled_from(["yes", "no", "a\nb", '"'])), min_size=1),
    block_rows=st.sampled_from([1, 4, 100]),
)
def test_as_many_rows_as_there_are_in_memory(
    kind: str, answers: list[str | None], block_rows: int
) -> None:
    table = pa.table({"answer": pa.array(answers, pa.string()), "n": range(len(answers))})
    source = open_source(MEMORY[kind](table), block_rows=block_rows)
    assert source.rows in (None, len(answers))
    found = [block.read()["answer"].to_pylist() for block in source.blocks(["answer"])]
    assert [value for block in found for value in block] == answers
    assert all(len(block) == block_rows for block in found[:-1])
