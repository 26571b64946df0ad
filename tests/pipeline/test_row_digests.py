"""Digests of rows, by which a job knows its source again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipeline.test_privacy import DOMAIN, ORACLE

import turnout as tn
from turnout import errors
from turnout.pipeline import parts, scan
from turnout.pipeline.columns import digested

# Digests of rows ---------------------------------------------------------------------------------


NUMBERS = np.arange(600)


WORDS = pa.array([str(number) for number in NUMBERS])


KINDS = [
    pa.array(NUMBERS),
    pa.array(NUMBERS % 7 == 0),
    pa.array(NUMBERS / 3, mask=NUMBERS % 5 == 0),
    pa.array(NUMBERS.astype("M8[ns]")),
    WORDS,
    WORDS.cast(pa.string_view()),
    WORDS.cast(pa.large_string()),
    pa.array([b"\xff%d" % number for number in NUMBERS]),
    pa.array([b"\xff%d" % number for number in NUMBERS]).cast(pa.binary_view()),
    pa.array([b"%04d" % number for number in NUMBERS], pa.binary(4)),
    pa.array([b"%016d" % number for number in NUMBERS], pa.uuid()),
    WORDS.dictionary_encode(),
    pa.DictionaryArray.from_arrays(NUMBERS % 3, pa.array(["a", None, "b"]).cast(pa.string_view())),
]


@pytest.mark.parametrize("column", KINDS, ids=lambda column: str(column.type))
def test_digests_are_of_the_rows_in_their_order(column: Any) -> None:
    table = pa.table({"c": column})
    whole = digested(table)
    assert digested(pa.concat_tables([table[:333], table[333:334], table[334:]])) == whole
    assert digested(pa.concat_tables([table[1:], table[:1]])) != whole
    assert digested(table[:599]) != whole


def test_a_job_of_a_frame_with_categories(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    values = polars.Series(["no", "yes"] * 500, dtype=polars.Categorical)
    frame = polars.DataFrame({"a": values, "g": [True, None] * 500})
    for name, data in (("frame", frame), ("query", frame.lazy())):
        answers = scan(data, "a", missing="drop", group_by="g")
        assert tn.pipeline.randomize(answers, ORACLE, tmp_path / name).tally().nodes == 500


def test_a_file_by_two_names_is_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"a": [0, 1]}), first)
    second.hardlink_to(first)
    with pytest.raises(errors.InvalidValueError, match="data has a duplicate file,"):
        scan(tmp_path, "a")


def test_a_job_that_somebody_else_went_on_with_is_not_withdrawn(tmp_path: Path) -> None:
    answers = scan(pa.table({"a": ["no"] * 10}), "a")
    job, task, answers = parts.open_job(answers, ORACLE, tmp_path / "reports")
    assert task is not None
    assert job.noise is not None
    task.write(0, [answers._encoder(DOMAIN)(block) for block in answers._all_blocks()], job.noise)
    job._withdraw()
    made = tn.pipeline.randomize(answers, ORACLE, tmp_path / "reports", resume=True)
    assert made.tally().nodes == 10
