"""Which files, in what order, with what partitions; and what is refused."""

from __future__ import annotations

import gzip
import os
import pickle
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import turnout as tn
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    UnknownLabelError,
)
from turnout.pipeline import scan
from turnout.pipeline.sources import Source, columnar, open_source
from turnout.pipeline.sources.columnar import FileBlock
from turnout.pipeline.sources.files import find_files


def write(path: Path, column: Any = ("a", "b"), **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"answer": column, **columns})
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    else:
        pyarrow.feather.write_feather(table, path)
    return path


def column(source: Source, name: str = "answer", **options: Any) -> list[Any]:
    tables = [block.read().select([name]) for block in source.blocks([name], **options)]
    return [value for table in tables for value in table.column(0).to_pylist()]


def test_natural_order_whatever_the_list(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"part-{i}.parquet", [str(i)]) for i in (10, 9, 1, 2)]
    for data in (paths, paths[::-1], tmp_path, str(tmp_path / "part-*.parquet")):
        assert column(open_source(data)) == ["1", "2", "9", "10"]


def test_a_list_of_folders_and_globs(tmp_path: Path) -> None:
    write(tmp_path / "a" / "x.parquet", ["1"])
    write(tmp_path / "b" / "deep" / "x.parquet", ["2"])
    source = open_source([tmp_path / "b", str(tmp_path / "a" / "*")])
    assert column(source) == ["1", "2"]
    assert source.name == f"{tmp_path / 'b'}, ... (2 files)"
    assert column(open_source(str(tmp_path / "**" / "*.parquet"))) == ["1", "2"]
    assert column(open_source(str(tmp_path / "?"))) == ["1", "2"]


def test_hidden_files_and_others_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", ["1"])
    for name in ("_b.parquet", ".c.parquet", "_temporary/d.parquet", ".e/f.parquet"):
        write(tmp_path / name, ["2"])
    (tmp_path / "readme.txt").write_text("x")
    assert column(open_source(tmp_path)) == ["1"]
    assert column(open_source(str(tmp_path / "*.parquet"))) == ["1"]
    assert column(open_source(tmp_path / "_b.parquet")) == ["2"]


def test_a_file_that_looks_like_a_glob(tmp_path: Path) -> None:
    assert column(open_source(write(tmp_path / "a[1].parquet", ["1"]))) == ["1"]


def test_links_in_a_circle(tmp_path: Path) -> None:
    write(tmp_path / "in" / "a.parquet", ["1"])
    (tmp_path / "in" / "again").symlink_to(tmp_path / "in")
    assert column(open_source(tmp_path)) == ["1"]


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".arrow"])
@pytest.mark.parametrize(
    ("one", "two"),
    [("1", "2"), ("1", "x"), ("007", "-2"), ("99999999999", "1"), ("x%20y", "ü")],
)
def test_partitions_as_pyarrow_reads_them(tmp_path: Path, ending: str, one: str, two: str) -> None:
    for key, name in ((one, "a"), (two, "b")):
        write(tmp_path / f"key={key}" / "day=2020-01-01" / f"{name}{ending}", [name, name])
    kind = {".parquet": "parquet", ".csv": "csv", ".arrow": "ipc"}[ending]
    expected = pyarrow.dataset.dataset(tmp_path, format=kind, partitioning="hive")
    source = open_source(tmp_path, block_rows=3)
    for name in ("key", "day"):
        field = source.schema.field(name)
        values = expected.to_table().column(name)
        # Dates are text for pyarrow.
        assert field.type == (pa.date32() if name == "day" else values.type)
        wanted = sorted(values.cast(field.type).to_pylist(), key=str)
        assert sorted(column(source, name), key=str) == wanted
        assert sorted(column(source, name, categories={name}), key=str) == wanted
    blocks = list(source.blocks(["day", "answer", "key"]))
    assert blocks[0].read().column_names == ["day", "answer", "key"]
    assert [block.rows for block in blocks] == [3, 1]


def test_partitions_of_globs_and_inner_folders(tmp_path: Path) -> None:
    write(tmp_path / "country=DE" / "version=1" / "a.parquet", ["1"])
    write(tmp_path / "country=__HIVE_DEFAULT_PARTITION__" / "version=1" / "b.parquet", ["2"])
    assert column(open_source(tmp_path), "country") == ["DE", None]
    assert column(open_source(tmp_path), "version") == [1, 1]
    glob = str(tmp_path / "country=*" / "*" / "*.parquet")
    assert column(open_source(glob), "country") == ["DE", None]
    assert column(open_source(tmp_path / "country=DE"), "country") == ["DE"]
    file = tmp_path / "country=DE" / "version=1" / "a.parquet"
    assert column(open_source(file), "country") == ["DE"]


def test_rows_are_counted_where_only_partitions_are_read(tmp_path: Path) -> None:
    for ending in (".parquet", ".csv", ".arrow"):
        write(tmp_path / ending / "k=7" / f"a{ending}", ["1", "2", "3"])
        source = open_source(tmp_path / ending, block_rows=2)
        assert column(source, "k") == [7] * 3


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_types_that_go_together(tmp_path: Path, ending: str) -> None:
    texts = ["no", "yes"]
    kinds = [
        pa.array(texts),
        pa.array(texts, pa.large_string()),
        pa.array(texts).dictionary_encode(),
        pa.array([None, None]),
    ]
    for number, values in enumerate(kinds):
        write(tmp_path / f"{number}{ending}", values)
    found = column(open_source(tmp_path, block_rows=3))
    assert found == [*texts, *texts, *texts, None, None]
    for number, kind in enumerate([pa.int32(), pa.int64(), pa.uint8(), pa.int8()]):
        write(tmp_path / f"{number}{ending}", pa.array([1, 2], kind))
    assert column(open_source(tmp_path, block_rows=3)) == [1, 2] * 4


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
@pytest.mark.parametrize(
    "other", [pa.array([1, 2]), pa.array([True, False]), pa.array([0, 0], pa.date32())]
)
def test_types_that_do_not(tmp_path: Path, ending: str, other: pa.Array) -> None:
    write(tmp_path / f"a{ending}")
    write(tmp_path / f"b{ending}", other)
    with pytest.raises(
        InvalidTypeError, match=f"type string in .*a{ending} and type {re.escape(str(other.type))}"
    ):
        scan(tmp_path, "answer")


def test_unsigned_of_64_bits_and_negative(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", pa.array([1, 2], pa.uint64()))
    write(tmp_path / "b.parquet", pa.array([1, 2], pa.int8()))
    with pytest.raises(InvalidTypeError, match="uint64"):
        scan(tmp_path, "answer")


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".arrow"])
def test_columns_that_are_not_there(tmp_path: Path, ending: str) -> None:
    write(tmp_path / f"a{ending}", extra=[1, 2])
    write(tmp_path / f"b{ending}")
    with pytest.raises(InvalidValueError, match=r"no column 'other'; its columns are 'answer'"):
        scan(tmp_path, "other")
    with pytest.raises(InvalidValueError, match=rf"b{ending}: no column 'extra'"):
        scan(tmp_path, "answer", group_by="extra")


def test_columns_twice(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,a\n1,2,3\n")
    with pytest.raises(InvalidValueError, match="2 columns are named 'a'"):
        scan(tmp_path / "a.csv", "a")
    assert column(open_source(tmp_path / "a.csv"), "b") == ["2"]
    write(tmp_path / "answer=x" / "a.parquet")
    with pytest.raises(InvalidValueError, match="2 columns are named 'answer'"):
        scan(tmp_path / "answer=x", "answer")


def test_nested_columns(tmp_path: Path) -> None:
    for ending in (".parquet", ".arrow"):
        write(tmp_path / f"a{ending}", [[1], [2]])
        with pytest.raises(InvalidTypeError, match="expected one value a row"):
            scan(tmp_path / f"a{ending}", "answer")


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ("nowhere.parquet", FileNotFoundError, "no such file or folder"),
        ("empty", InvalidValueError, "has no file that ends in"),
        ("*.parquet", InvalidValueError, "has no file that ends in"),
        ("note.txt", InvalidValueError, "must end in"),
        ("mixed", InvalidValueError, "files of one format"),
        ("s3://bucket/x", InvalidValueError, "is an address"),
        ([], InvalidValueError, "at least one file"),
        (["x.csv", 3], InvalidTypeError, "data must be paths"),
        (7, InvalidTypeError, "data must be paths"),
        (b"x.csv", InvalidTypeError, "data must be"),
        (None, InvalidTypeError, "data must be"),
    ],
)
def test_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Any, error: type[Exception], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "note.txt").write_text("x")
    write(tmp_path / "mixed" / "a.parquet")
    write(tmp_path / "mixed" / "a.csv")
    with pytest.raises(error, match=message):
        open_source(data)


def test_a_file_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    os.link(path, tmp_path / "hard.parquet")  # another name of the file, on purpose not detected
    (tmp_path / "soft.parquet").symlink_to(path)
    with pytest.raises(InvalidValueError, match="data has a duplicate file,"):
        open_source([path, path])
    with pytest.raises(InvalidValueError, match="data has a duplicate file,"):
        open_source([path, str(tmp_path / "s*.parquet")])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.parquet", b"PAR1 this is not Parquet PAR1"),
        ("a.parquet", b""),
        ("a.arrow", b"ARROW1\0\0 and then nothing"),
        ("a.ipc", b"neither file nor stream"),
        ("a.csv", b""),
        ("a.csv", b"\n\n"),
        ("a.csv.gz", b"this is not gzip"),
        ("a.csv", b"answer\xff\n1\n"),
    ],
)
def test_damaged_when_opened(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorruptDataError, match=name):
        scan(tmp_path / name, "answer")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", b"answer,b\nx,y\nx\n"),
        ("a.csv", b"answer,b\nx\xff,y\n"),
        ("a.csv.gz", gzip.compress(b"answer,b\n" + b"x,y\n" * 1000, mtime=0)[:-9]),
    ],
)
def test_damaged_when_read(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorruptDataError, match=name):
        column(open_source(tmp_path / name))


def test_a_damaged_page(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", ["a", "b"] * 1000)
    blocks = list(open_source(path).blocks(["answer"]))
    content = bytearray(path.read_bytes())
    content[4:40] = bytes(36)
    status = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(CorruptDataError, match=r"a\.parquet"):
        blocks[0].read()


@pytest.mark.parametrize(
    "content", ["answer\n", "answer", "answer,b\n", "answer,b", '"answer","b"']
)
def test_a_header_alone(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.csv").write_text(content)
    assert column(open_source(tmp_path / "a.csv")) == []


def test_a_file_that_changes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet")
    source = open_source(path)
    before = source.fingerprint
    assert before == open_source(path).fingerprint
    assert before != open_source(path, block_rows=7).fingerprint
    blocks = list(source.blocks(["answer"]))
    write(path, ["a", "c", "d"])
    assert before != open_source(path).fingerprint
    with pytest.raises(CorruptDataError, match="was changed while it was being read"):
        blocks[0].read()


@pytest.mark.parametrize("stream", [False, True])
def test_an_arrow_file_that_is_cut_while_it_is_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    path = write(tmp_path / "a.arrow", [str(i) for i in range(20_000)])
    # However long a batch is, it is not mapped: the process would end when somebody cuts the file.
    monkeypatch.setattr(pa, "memory_map", lambda _: pytest.fail("mapped"))
    if stream:
        whole = pyarrow.feather.read_table(path, memory_map=False)
        with pa.ipc.new_stream(str(path), whole.schema) as writer:
            writer.write_table(whole)
    [block] = open_source(path).blocks(["answer"])
    opened = columnar._open_ipc

    def cut(*given: Any, **named: Any) -> Any:
        os.truncate(path, 5000)
        return opened(*given, **named)

    monkeypatch.setattr(columnar, "_open_ipc", cut)
    with pytest.raises(CorruptDataError, match="cannot be read"):
        block.read()


def test_blocks_are_read_by_others(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", [str(i) for i in range(10)])
    blocks = list(open_source(tmp_path, block_rows=4).blocks(["answer"], skip={0}))
    assert all(isinstance(block, FileBlock) for block in blocks)
    copies = pickle.loads(pickle.dumps(blocks))
    assert [copy.read().column(0).to_pylist() for copy in copies] == [list("4567"), list("89")]
    assert [copy.start for copy in copies] == [4, 8]


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
@pytest.mark.parametrize("skip", [(), (0, 3), (1, 2)])
def test_long_row_groups_are_read_in_order(tmp_path: Path, ending: str, skip: Any) -> None:
    values = [str(i) for i in range(100)]
    write(tmp_path / f"a{ending}", values)
    write(tmp_path / f"b{ending}", ["x"])
    source = open_source(tmp_path, block_rows=9)
    blocks = list(source.blocks(["answer"], skip=skip))
    assert [block.index for block in blocks] == [i for i in range(12) if i not in skip]
    expected = [*values, "x"]
    for block in blocks:
        assert block.read().column(0).to_pylist() == expected[9 * block.index :][:9]
        copy = pickle.loads(pickle.dumps(block))
        assert copy.read().equals(block.read())
        assert (copy.index, copy.rows, copy.start) == (block.index, block.rows, block.start)


def test_a_block_in_memory_is_pickled_without_its_table() -> None:
    source = open_source(pa.table({"answer": range(100_000)}), block_rows=10)
    block = next(iter(source.blocks(["answer"])))
    assert len(pickle.dumps(block)) < 2_000


def test_csv_missing_and_rows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('answer,b\r\n"x\r\ny",1\r\n,2\r\n"",3\r\nNA,4\r\n\r\nz,5\r\n')
    assert column(open_source(tmp_path / "a.csv")) == ["x\r\ny", None, None, "NA", "z"]
    (tmp_path / "b.csv").write_text("answer\nx\n\ny\n")
    assert column(open_source(tmp_path / "b.csv")) == ["x", None, "y"]


def test_columns_in_another_order(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("answer,b\n1,2\n")
    (tmp_path / "b.csv").write_text("b,answer\n3,4\n")
    assert column(open_source(tmp_path)) == ["1", "4"]


def test_names_for_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.parquet", ["a", "x"])
    source = open_source("a.parquet")
    assert repr(source) == "<ColumnarSource: a.parquet, 2 rows>"
    answers = scan(source, "answer")
    [block] = answers._all_blocks()
    with pytest.raises(UnknownLabelError, match=r"^a\.parquet: column 'answer': 1 .*row 2"):
        answers._encoder(tn.Domain(["a", "b"]))(block)
    assert [file.shown for file in find_files("*.parquet")[1]] == ["a.parquet"]


def test_compressed_files_of_several_members(tmp_path: Path) -> None:
    content = gzip.compress(b"answer,b\nx,1\n", mtime=0) + gzip.compress(b"y,2\n")
    (tmp_path / "a.csv.gz").write_bytes(content)
    assert column(open_source(tmp_path)) == ["x", "y"]
