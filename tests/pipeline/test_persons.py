"""One person, one report: which rows count, from any source, in bounded memory."""

from __future__ import annotations

import logging
import pickle
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import turnout as tn
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.pipeline import Answers, identity, scan
from turnout.pipeline.sources import open_source
from turnout.pipeline.sources.frames import StreamSource

DOMAIN = tn.Domain.from_integers(1000)


def kept(answers: Answers, **options: Any) -> list[int]:
    blocks = list(answers._all_blocks(DOMAIN, **options))
    # In any order of work, and after a way through another process.
    encoder = pickle.loads(pickle.dumps(answers._encoder(DOMAIN)))
    found = {b.index: encoder(pickle.loads(pickle.dumps(b))) for b in blocks[::-1]}
    for block in blocks:
        encoded = found[block.index]
        assert (
            encoded.rows
            == encoded.codes.size + encoded.left_out.duplicates + encoded.left_out.people
        )
    return [code for block in blocks for code in found[block.index].codes.tolist()]


def first_of_each(ids: list[Any]) -> list[int]:
    seen: set[Any] = set()
    return [row for row, one in enumerate(ids) if not (one in seen or seen.add(one))]


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.string(), pa.binary(), "dictionary"])
@pytest.mark.parametrize("once", [False, True])
@settings(max_examples=30, deadline=None)
@given(ids=st.lists(st.integers(0, 12), max_size=60), block_rows=st.sampled_from([1, 4, 7, 100]))
def test_first_row_of_each(kind: Any, once: bool, ids: list[int], block_rows: int) -> None:
    texts = kind in (pa.string(), pa.binary(), "dictionary")
    column = pa.array(
        [str(i) for i in ids] if texts else ids, kind if kind != "dictionary" else None
    )
    column = column.dictionary_encode() if kind == "dictionary" and len(ids) else column
    table = pa.table({"row": pa.array(range(len(ids)), pa.int64()), "id": column})
    data = iter([table]) if once else table
    source = open_source(data, block_rows=block_rows)
    answers = scan(source, "row", id_column="id", duplicates="first")
    assert kept(answers) == first_of_each(ids)
    if not once:
        persons = answers._persons()
        assert persons is not None
        assert persons.left_out.size == len(ids) - len(set(ids))
        assert persons.repeated_persons == sum(ids.count(i) > 1 for i in set(ids))
        wanted = [row for row in first_of_each(ids) if row // block_rows != 1]
        assert kept(answers, skip={1}) == wanted


def test_skipped_blocks_of_a_stream_count_their_persons() -> None:
    table = pa.table({"row": range(6), "id": [1, 2, 1, 3, 2, 4]})
    answers = scan(
        open_source(iter([table]), block_rows=2), "row", id_column="id", duplicates="first"
    )
    assert kept(answers, skip={0}) == [3, 5]


@pytest.mark.parametrize("once", [False, True])
def test_refused_without_a_word_of_whom(once: bool) -> None:
    table = pa.table({"row": range(5), "id": ["anna", "bert", "anna", "anna", "bert"]})
    data = iter([table]) if once else table
    answers = scan(data, "row", id_column="id")
    with pytest.raises(InvalidValueError) as caught:
        list(answers._all_blocks())
    assert "anna" not in str(caught.value)
    assert "bert" not in str(caught.value)
    wanted = "3 row(s) of block 0" if once else "2 person(s) have more than one row, 3 row(s) more"
    assert wanted in str(caught.value)


def test_one_row_each_is_not_refused() -> None:
    table = pa.table({"row": range(5), "id": list("abcde")})
    assert kept(scan(table, "row", id_column="id")) == list(range(5))


def test_the_number_of_rows_left_out_is_told(caplog: pytest.LogCaptureFixture) -> None:
    table = pa.table({"row": range(5), "id": ["anna", "bert", "anna", "anna", "bert"]})
    answers = scan(table, "row", id_column="id", duplicates="first")
    with caplog.at_level(logging.INFO, "turnout.pipeline"):
        blocks = list(answers._all_blocks())
    assert "2 persons have more than one row; 3 rows are left out" in caplog.text
    assert "anna" not in caplog.text
    assert answers._encoder(DOMAIN)(blocks[0]).left_out.duplicates == 3


def test_the_first_row_counts_even_if_its_answer_is_missing() -> None:
    table = pa.table({"row": [None, 1, 2], "id": [7, 7, 8]})
    answers = scan(table, "row", id_column="id", duplicates="first", missing="drop")
    encoded = answers._encoder(DOMAIN)(next(answers._all_blocks()))
    assert (encoded.codes.tolist(), encoded.left_out.people, encoded.left_out.duplicates) == (
        [2],
        1,
        1,
    )


def test_rows_that_do_not_count_need_no_known_answer() -> None:
    table = pa.table({"row": [1, 5000, 2, 6000], "id": [7, 7, 8, 9]})
    answers = scan(table, "row", id_column="id", duplicates="first")
    with pytest.raises(tn.errors.CodeOutsideDomainError, match=r"1 values .* to 999 \(row 4\)"):
        answers._encoder(DOMAIN)(next(answers._all_blocks()))


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize(
    "ids", [["a", None, "b", None], pa.array(["a", None, "b", None]).dictionary_encode()]
)
def test_missing_identifiers(once: bool, ids: Any) -> None:
    table = pa.table({"row": range(4), "id": ids})
    data = iter([table]) if once else table
    answers = scan(open_source(data, block_rows=4), "row", id_column="id", duplicates="first")
    with pytest.raises(InvalidValueError, match=r"'id': 2 rows have no identifier \(rows 2, 4\)"):
        list(answers._all_blocks())


@pytest.mark.parametrize("ids", [[1.0, 2.0], [True, False], pa.array([0, 1], pa.date32())])
def test_what_is_no_identifier(ids: Any) -> None:
    answers = scan(pa.table({"row": [1, 2], "id": ids}), "row", id_column="id")
    with pytest.raises(InvalidTypeError, match="expected identifiers: text, integers or bytes"):
        list(answers._all_blocks())


def test_uuids() -> None:
    values = [uuid.UUID(int=i) for i in (1, 2, 1)]
    ids = pa.array([value.bytes for value in values], pa.binary(16))
    table = pa.table({"row": range(3), "id": ids})
    assert kept(scan(table, "row", id_column="id", duplicates="first")) == [0, 1]


def test_blocks_of_the_source_do_not_know_persons() -> None:
    table = pa.table({"row": range(3), "id": [1, 2, 1]})
    answers = scan(table, "row", id_column="id", duplicates="first")
    block = next(iter(answers.source.blocks(answers.columns)))
    with pytest.raises(InvalidValueError, match=r"must be one of the blocks of these answers"):
        answers._encoder(DOMAIN)(block)


def test_a_query_whose_order_changes_is_refused() -> None:
    tables = [
        pa.table({"row": [0, 1, 2], "id": [5, 5, 6]}),
        pa.table({"row": [2, 1, 0], "id": [6, 5, 5]}),
    ]
    runs = iter([*tables, tables[0]])
    source = StreamSource("the query", tables[0].schema, lambda names: [next(runs).select(names)])
    answers = scan(source, "row", id_column="id", duplicates="first")
    with pytest.raises(CorruptDataError, match="another order of rows"):
        list(answers._all_blocks())
    assert kept(answers) == [0, 2]


def test_integers_and_their_texts_are_one_person(tmp_path: Path) -> None:
    for number, kind in enumerate([pa.int32(), pa.int64()]):
        pq.write_table(
            pa.table({"row": [2 * number, 2 * number + 1], "id": pa.array([1, number], kind)}),
            tmp_path / f"{number}.parquet",
        )
    answers = scan(tmp_path, "row", id_column="id", duplicates="first")
    assert kept(answers) == [0, 1]
    key = bytes(32)
    one = identity.digests(pa.chunked_array([pa.array([12, -3])]), key, name="x")
    other = identity.digests(pa.chunked_array([pa.array(["12", "-3"])]), key, name="x")
    assert np.array_equal(one, other)


@settings(max_examples=25, deadline=None)
@given(
    words=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=300),
    memory=st.sampled_from([24, 240, 2400, 10**6]),
    step=st.integers(1, 60),
)
def test_finding_repeats(words: list[tuple[int, int]], memory: int, step: int) -> None:
    """Digests that share words, partitions on disk, row numbers sorted on disk."""
    # The partition is the first byte of the first word.
    digests = np.array([(a << 56, b) for a, b in words], np.uint64).reshape(-1, 2)
    finder = identity.RepeatFinder(memory)
    for start in range(0, len(words), step):
        finder.add(digests[start : start + step], start)
    repeated, left_out, folder = finder.finish()
    first = first_of_each(words)
    assert left_out.tolist() == [row for row in range(len(words)) if row not in set(first)]
    assert repeated == sum(words.count(word) > 1 for word in set(words))
    if folder is not None:
        assert isinstance(left_out, np.memmap)
        assert oct(folder.path.stat().st_mode)[-3:] == "700"
        place = folder.path
        assert [oct(path.stat().st_mode)[-3:] for path in place.iterdir()] == ["600"]
        del folder, finder
        assert not place.exists()


@settings(max_examples=40, deadline=None)
@given(
    words=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=200),
    step=st.integers(1, 30),
)
def test_repeats_in_a_stream(words: list[tuple[int, int]], step: int) -> None:
    digests = np.array(words, np.uint64).reshape(-1, 2)
    seen = identity.StreamPersons("x")
    found = [
        start + position
        for start in range(0, len(words), step)
        for position in seen.repeats(digests[start : start + step]).tolist()
    ]
    assert found == [row for row in range(len(words)) if row not in set(first_of_each(words))]


def test_too_many_persons_for_a_stream() -> None:
    seen = identity.StreamPersons("the column", most=5)
    words = np.arange(12, dtype=np.uint64).reshape(-1, 2)
    seen.repeats(words[:5])
    with pytest.raises(InvalidValueError, match="more than 5 persons"):
        seen.repeats(words)


def test_temporary_files_are_gone_after_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(identity, "RepeatFinder", partial(identity.RepeatFinder, 100))
    table = pa.table({"row": range(50), "id": [*range(49), None]})
    answers = scan(open_source(table, block_rows=10), "row", id_column="id", duplicates="first")
    with pytest.raises(InvalidValueError, match="no identifier"):
        list(answers._all_blocks())
    assert list(tmp_path.iterdir()) == []
    table = pa.table({"row": range(50), "id": [0, *range(49)]})
    answers = scan(open_source(table, block_rows=10), "row", id_column="id", duplicates="first")
    assert kept(answers) == [0, *range(2, 50)]
    assert list(tmp_path.iterdir()) == []


def test_left_out_beyond_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "RepeatFinder", partial(identity.RepeatFinder, 200))
    ids = [i % 7 for i in range(500)]
    table = pa.table({"row": range(500), "id": ids})
    answers = scan(open_source(table, block_rows=64), "row", id_column="id", duplicates="first")
    persons = answers._persons()
    assert persons is not None
    assert isinstance(persons.left_out, np.memmap)
    assert kept(answers) == list(range(7))


def test_identifiers_are_compared_by_all_128_bits() -> None:
    """Half of a digest in common is no person in common."""
    digests = np.array([[1, 2], [1, 3], [0, 2], [1, 2]], np.uint64)
    finder = identity.RepeatFinder()
    finder.add(digests, 10)
    assert finder.finish()[1].tolist() == [13]


@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(seed=st.integers(0, 1000))
def test_many_persons(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, 50_000, 100_000)
    table = pa.table({"row": np.zeros(ids.size, np.int64), "id": ids})
    answers = scan(open_source(table, block_rows=30_000), "row", id_column="id", duplicates="first")
    persons = answers._persons()
    assert persons is not None
    _, first = np.unique(ids, return_index=True)
    left_out = np.setdiff1d(np.arange(ids.size), first)
    assert np.array_equal(persons.left_out, left_out)
