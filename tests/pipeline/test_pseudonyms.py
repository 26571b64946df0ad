"""Pseudonyms, groups and probabilities beside the answers."""

from __future__ import annotations

import datetime
import inspect
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout as tn
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    UnknownLabelError,
    UnsupportedVersionError,
)
from turnout.frequency.longitudinal import Memoized, MemoizedClient
from turnout.pipeline import Answers, PseudonymKey, scan
from turnout.pipeline.encoding import EncodedBlock
from turnout.pipeline.randomizing import JobNoise, Secrets
from turnout.pipeline.sources import open_source
from turnout.signing import SigningKey

DOMAIN = tn.Domain(["no", "yes"])


def only(answers: Answers) -> EncodedBlock:
    [block] = answers._all_blocks()
    return answers._encoder(DOMAIN)(block)


def test_pseudonyms_tell_persons_apart_in_one_context() -> None:
    key = PseudonymKey.generate()
    table = pa.table({"a": ["no", "yes", None, "no"], "id": ["anna", "bert", "carl", "anna"]})
    options: dict[str, Any] = {"missing": "drop", "id_column": "id", "duplicates": None}
    answers = scan(table, "a", pseudonym_key=key, **options)
    found = only(answers._in_context("one")).pseudonyms
    assert found is not None
    assert (found.dtype, found.shape) == (np.uint8, (3, 16))
    assert np.array_equal(found[0], found[2])
    assert not np.array_equal(found[0], found[1])
    again = only(scan(table, "a", pseudonym_key=key, pseudonym_context="one", **options)).pseudonyms
    assert np.array_equal(found, again)
    for other in (
        only(answers._in_context("two")),
        only(scan(table, "a", pseudonym_key=PseudonymKey.generate(), **options)._in_context("one")),
    ):
        assert other.pseudonyms is not None
        assert not {row.tobytes() for row in other.pseudonyms} & {row.tobytes() for row in found}
    assert b"anna" not in found.tobytes()


def test_a_context_is_named_once_and_needed() -> None:
    table = pa.table({"a": ["no"], "id": [1]})
    answers = scan(table, "a", id_column="id", pseudonym_key=PseudonymKey(bytes(32)))
    with pytest.raises(InvalidValueError, match="pseudonym_context must name the collection"):
        only(answers)
    persons = answers._persons()
    named = answers._in_context("one")
    assert named._persons() is persons
    assert named._in_context("two").pseudonym_context == "one"
    assert scan(table, "a")._in_context("one").pseudonym_context is None


def test_key_files(tmp_path: Path) -> None:
    key, path = PseudonymKey.generate(), tmp_path / "key"
    key.write(path)
    assert oct(path.stat().st_mode)[-3:] == "600"
    assert PseudonymKey.read(path) == key
    assert hash(PseudonymKey.read(path)) == hash(key)
    assert PseudonymKey.generate() != key
    with pytest.raises(FileExistsError):
        key.write(path)
    path.chmod(0o640)
    with pytest.raises(InvalidValueError, match="other users can read this key: run chmod 600"):
        PseudonymKey.read(path)


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    secret = bytes(range(32))
    key = PseudonymKey(secret)
    table = pa.table({"a": ["no"], "id": [1]})
    answers = scan(table, "a", id_column="id", pseudonym_key=key, pseudonym_context="c")
    shown = repr(key) + repr(answers) + json.dumps(answers.describe()) + key.identifier
    assert secret.hex()[:8] not in shown
    assert str(secret)[2:10] not in shown


def test_a_key_is_not_pickled_be_it_that_of_an_encoder() -> None:
    key = PseudonymKey(bytes(range(32)))
    answers = scan(pa.table({"a": ["no"], "id": [1]}), "a", id_column="id", pseudonym_key=key)
    encoder = answers._encoder(DOMAIN)
    for secretive in (key, encoder):
        with pytest.raises(InvalidTypeError, match="a PseudonymKey cannot be pickled"):
            pickle.dumps(secretive)
    assert pickle.loads(pickle.dumps(encoder.with_key(None))).id_column == "id"


def test_what_ray_sends_to_tasks_has_the_key_and_shows_nothing_of_it() -> None:
    key = PseudonymKey(bytes(range(32)))
    answers = scan(pa.table({"a": ["no"], "id": [1]}), "a", id_column="id")
    for kept in (key, None):
        sent = pickle.loads(pickle.dumps(Secrets.of(JobNoise.made(None), kept)))
        assert sent.unlocked(answers._encoder(DOMAIN)).key == kept


@pytest.mark.parametrize(
    "secretive",
    [
        PseudonymKey(bytes(range(65, 97))),
        SigningKey(bytes(range(65, 97))),
        JobNoise.made(None),
        MemoizedClient(Memoized(4.0, 8, first_epsilon=1.0), bytes(range(65, 97))),
        Secrets.of(JobNoise.made(None), PseudonymKey(bytes(range(65, 97)))),
    ],
    ids=lambda secretive: type(secretive).__name__,
)
def test_no_list_of_the_members_of_an_object_shows_its_secret(secretive: object) -> None:
    # Errors of Ray hold such a list, and tracebacks that show variables.
    members = [
        value
        for _, value in inspect.getmembers(secretive)
        if isinstance(value, bytes) and len(value) >= 16
    ]
    assert members
    for value in members:
        plain = bytes.__repr__(value)
        assert all(plain not in shown for shown in (f"{value}", str(value), repr([value])))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("", CorruptDataError),
        ("{}", CorruptDataError),
        ('{"format": "turnout-pseudonym-key", "version": 1, "key": "zz"}', CorruptDataError),
        ('{"format": "turnout-pseudonym-key", "version": 1, "key": "00"}', CorruptDataError),
        ('{"format": "turnout-pseudonym-key", "version": 2}', UnsupportedVersionError),
        ("[" * 100_000, CorruptDataError),
    ],
)
def test_files_that_hold_no_key(tmp_path: Path, content: str, error: type[Exception]) -> None:
    path = tmp_path / "key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(error):
        PseudonymKey.read(path)


def test_arguments_of_keys() -> None:
    with pytest.raises(InvalidTypeError, match="secret must be bytes"):
        PseudonymKey("x" * 32)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="32 bytes, got 3"):
        PseudonymKey(b"abc")


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["yes", "no", None]),
            st.sampled_from(["DE", "FR", "", None]),
            st.sampled_from([1, 2, None]),
        ),
        max_size=50,
    ),
    block_rows=st.sampled_from([3, 16, 100]),
    pieces=st.integers(1, 20),
)
def test_groups(rows: list[tuple[Any, ...]], block_rows: int, pieces: int) -> None:
    schema = pa.schema([("a", pa.string()), ("c", pa.string()), ("v", pa.int16())])
    whole = pa.table(list(zip(*rows, strict=True)) if rows else [[], [], []], schema=schema)
    table = pa.concat_tables(
        [whole.slice(i, pieces) for i in range(0, len(rows), pieces)] or [whole]
    )
    source = open_source(table, block_rows=block_rows)
    answers = scan(source, "a", missing="drop", group_by=["c", "v"])
    for block in answers._all_blocks():
        encoded = answers._encoder(DOMAIN)(block)
        assert encoded.groups is not None
        mine = rows[block.start : block.start + block.rows]
        grouped = [row for row in mine if all(row[1:])]
        expected = [row[1:] for row in grouped if row[0]]
        silent = [row[1:] for row in grouped if not row[0]]
        assert encoded.left_out == tn.LeftOut(len(silent), len(mine) - len(grouped))
        assert encoded.groups.keys == list(dict.fromkeys(row[1:] for row in grouped))
        assert encoded.unanswered is not None
        assert encoded.unanswered.tolist() == list(map(silent.count, encoded.groups.keys))
        assert [encoded.groups.keys[i] for i in encoded.groups.index] == expected
        assert encoded.groups.index.dtype == np.int32


@pytest.mark.parametrize(
    ("values", "keys"),
    [
        ([True, False, None, True], [(True,), (False,), (None,)]),
        ([1.5, math.nan, None, 1.5], [(1.5,), (None,)]),
        ([0.0, -0.0, 1.0, 0.0], [(0.0,), (1.0,)]),
        (
            pa.array([0, 1, 0, None], pa.date32()),
            [(datetime.date(1970, 1, 1),), (datetime.date(1970, 1, 2),), (None,)],
        ),
        (pa.array([0, 0, 0, 1], pa.timestamp("ns")), [(datetime.datetime(1970, 1, 1),)]),
        (pa.nulls(4), [(None,)]),
        (pa.array(["x", "x", "y", None]).dictionary_encode(), [("x",), ("y",), (None,)]),
        (pa.array(["x", "x", "y", None], pa.string_view()), [("x",), ("y",), (None,)]),
        (
            pa.DictionaryArray.from_arrays([1, 2, 0, None], ["y", "x", "x"]),
            [("x",), ("y",), (None,)],
        ),
    ],
)
def test_keys_of_groups(values: Any, keys: list[tuple[Any, ...]]) -> None:
    if isinstance(values, pa.Array) and pa.types.is_timestamp(values.type):
        values = pa.array([0] * 4, values.type)
    table = pa.table({"a": ["no"] * 4, "g": values})
    kept = only(scan(table, "a", missing="drop", group_by="g"))
    groups, gaps = kept.groups, kept.left_out.people
    assert groups is not None
    assert (gaps > 0) == ((None,) in keys)
    keys = [key for key in keys if key != (None,)]
    assert groups.keys == keys
    assert len(groups.index) == 4 - gaps
    # One of the groups, of the same type as it is.
    stated = groups.keys[0][0] if groups.keys else "x"
    named = only(scan(table, "a", missing={"g": stated}, group_by="g"))
    assert named.groups is not None
    assert sorted(named.groups.keys) == sorted(groups.keys or [("x",)])
    assert len(named.groups.index) == 4
    if gaps:
        with pytest.raises(
            InvalidValueError, match=rf"{gaps} rows? (has|have) no group in 'g' .*'drop'"
        ):
            only(scan(table, "a", group_by="g"))
    assert [type(key[0]) for key in groups.keys] == [type(key[0]) for key in keys]


def test_many_groups_of_many_columns() -> None:
    rng = np.random.default_rng(3)
    columns = {f"g{i}": rng.integers(0, 3000, 4000) for i in range(7)}
    table = pa.table({"a": ["no"] * 4000, **columns})
    groups = only(scan(table, "a", group_by=list(columns))).groups
    assert groups is not None
    rows = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    assert [groups.keys[i] for i in groups.index] == rows
    assert groups.keys == list(dict.fromkeys(rows))
    with pytest.raises(InvalidValueError, match=r"more than 100 groups \(column 'g0'\)"):
        only(scan(table, "a", group_by=list(columns), max_groups=100))


def test_probabilities(tmp_path: Path) -> None:
    table = pa.table({"a": ["no", None, "yes"], "p": [0.5, 7.0, 2.0**-30]})
    found = only(scan(table, "a", missing="drop", probability_column="p")).probabilities
    assert found is not None
    assert found.tolist() == [0.5, 2.0**-30]
    (tmp_path / "a.csv").write_text("a,p\nno,0.25\nyes,1\n")
    found = only(scan(tmp_path / "a.csv", "a", probability_column="p")).probabilities
    assert found is not None
    assert found.tolist() == [0.25, 1.0]


@pytest.mark.parametrize("wrong", [0.0, 2.0**-31, 1.5, math.nan, None, -1.0, math.inf])
def test_probabilities_out_of_range(wrong: float | None) -> None:
    table = pa.table({"a": [None, "no", "no"], "p": [0.5, 0.5, wrong]})
    answers = scan(table, "a", missing="drop", probability_column="p")
    with pytest.raises(InvalidValueError, match=r"'p': 1 values are missing or not in .*\(row 3\)"):
        only(answers)


@pytest.mark.parametrize("values", [[True], pa.array([0], pa.date32()), pa.array([b"1"])])
def test_what_is_no_probability(values: Any) -> None:
    with pytest.raises(InvalidTypeError, match="expected numbers"):
        only(scan(pa.table({"a": ["no"], "p": values}), "a", probability_column="p"))


def test_no_probability_in_a_csv_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,p\nno,often\n")
    with pytest.raises(InvalidValueError, match=r"'p': 1 values are not numbers \(row 1\)"):
        only(scan(tmp_path / "a.csv", "a", probability_column="p"))


def test_unknown_and_missing_answers_are_named_with_their_rows() -> None:
    values = ["no"] * 30
    values[11] = values[22] = "maybe"
    values[25] = "never"
    answers = scan(open_source(pa.table({"a": values}), block_rows=10), "a")
    blocks = list(answers._all_blocks())
    assert answers._encoder(DOMAIN)(blocks[0]).codes.tolist() == [0] * 10
    with pytest.raises(UnknownLabelError, match=r"1 values .* 2 labels of the domain \(row 12\)"):
        answers._encoder(DOMAIN)(blocks[1])
    with pytest.raises(UnknownLabelError, match=r"2 values .* domain \(rows 23, 26\)"):
        answers._encoder(DOMAIN)(blocks[2])
    answers = scan(pa.table({"a": ["no", None, "?"]}), "a", missing_values=["?"])
    with pytest.raises(InvalidValueError, match=r"2 of 3 answers are missing \(rows 2, 3\)"):
        only(answers)
    with pytest.raises(InvalidValueError, match=r"\(rows 2, 3\): empty 1 time, '\?' 1 time\."):
        answers.domain()


def test_a_label_for_missing_answers() -> None:
    table = pa.table({"a": ["no", None]})
    with pytest.raises(UnknownLabelError, match="missing must be a label of the domain"):
        only(scan(table, "a", missing="unknown"))
    assert scan(table, "a", missing="unknown").domain().labels == ("no", "unknown")
    assert only(scan(table, "a", missing="yes")).codes.tolist() == [0, 1]
    numbers = pa.table({"a": pa.array([2, None], pa.uint8())})
    answers = scan(numbers, "a", missing=0)
    assert answers._encoder(tn.Domain.from_integers(3))(
        next(answers._all_blocks())
    ).codes.tolist() == [
        2,
        0,
    ]


def test_labels_that_are_written_alike(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\ntrue\n")
    answers = scan(tmp_path / "a.csv", "a")
    [block] = answers._all_blocks()
    assert answers._encoder(tn.Domain([1, "true"]))(block).codes.tolist() == [
        0,
        1,
    ]
    with pytest.raises(InvalidValueError, match="look the same in a CSV file"):
        answers._encoder(tn.Domain([1, "1"]))(block)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"column": 3}, InvalidTypeError, "column must be a name or names"),
        ({"id_column": 3}, InvalidTypeError, "id_column must be the name"),
        ({"id_column": "a"}, InvalidValueError, "column of answers"),
        ({"probability_column": "a"}, InvalidValueError, "column of answers"),
        ({"group_by": "a"}, InvalidValueError, "groups are written unprotected"),
        (
            {"group_by": ["id"], "id_column": "id"},
            InvalidValueError,
            "groups are written unprotected",
        ),
        ({"group_by": ["g", "g"]}, InvalidValueError, "different columns"),
        ({"group_by": [3]}, InvalidTypeError, "group_by must be"),
        ({"group_by": 3}, InvalidTypeError, "group_by must be"),
        ({"duplicates": "last"}, InvalidValueError, "duplicates must be one of"),
        ({"pseudonym_key": PseudonymKey(bytes(32))}, InvalidValueError, "needs id_column"),
        ({"pseudonym_key": bytes(32), "id_column": "id"}, InvalidTypeError, "a PseudonymKey"),
        ({"missing": ["x"]}, InvalidTypeError, "missing must be None, 'drop' or a label"),
        ({"missing_values": "?"}, InvalidTypeError, "missing_values must be"),
        ({"missing_values": [3]}, InvalidTypeError, "missing_values must be"),
        ({"max_groups": 0}, InvalidValueError, "max_groups must be"),
        ({"probability_column": "nowhere"}, InvalidValueError, "no column 'nowhere'"),
    ],
)
def test_arguments_of_scan(options: dict[str, Any], error: type[Exception], message: str) -> None:
    table = pa.table({"a": ["no"], "id": [1], "g": ["x"]})
    with pytest.raises(error, match=message):
        scan(table, **{"column": "a", **options})


def test_description(tmp_path: Path) -> None:
    table = pa.table({"a": ["secret"], "id": ["anna"], "g": ["x"], "p": [0.5]})
    key = PseudonymKey.generate()
    answers = scan(
        table, "a", id_column="id", group_by="g", probability_column="p", pseudonym_key=key
    )
    described = json.dumps(answers.describe())
    assert "secret" not in described
    assert "anna" not in described
    assert answers.describe()["pseudonym_key"] == key.identifier
    assert answers.columns == ("a", "id", "p", "g")
    assert repr(answers) == "<Answers: the table: column 'a', 1 rows>"
    assert (answers.rows, answers.source.block_rows, answers.source.fingerprint) == (1, 2**20, None)


def test_too_many_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnout.pipeline.found._MOST", 10)
    with pytest.raises(InvalidValueError, match="more than 10 different values"):
        scan(pa.table({"a": range(11)}), "a").distinct()


@pytest.mark.parametrize(
    ("text", "labels", "gaps"),
    [
        ("3\n1\n3\n", (1, 3), False),
        ("3\nnan\n1\n", (1, 3), True),
        ("3.5\n1\nNaN\n", ("1", "3.5"), True),
        ("x\ny\nnan\nNA\n", ("x", "y"), True),
        ("07\n1\n", ("07", "1"), False),
    ],
)
def test_domain_of_a_csv_file(
    tmp_path: Path, text: str, labels: tuple[Any, ...], gaps: bool
) -> None:
    (tmp_path / "a.csv").write_text(f"a\n{text}")
    answers = scan(tmp_path / "a.csv", "a", missing="drop")
    domain = answers.domain()
    assert domain.labels == labels
    [block] = answers._all_blocks()
    if isinstance(labels[0], int) or not gaps:
        assert answers._encoder(domain)(block).left_out.people == gaps
