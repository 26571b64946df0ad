"""Records of people as a job: nobody is drawn twice, whatever happens in between."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

import turnout as tn
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError, PlanMismatchError
from turnout.pipeline import records
from turnout.pipeline.job import Job

COLUMNS: dict[str, Any] = {"age": (17, 91), "sex": ["f", "m"]}
SAMPLER = tn.samplers.TableSampler(3.0, COLUMNS)


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_PEOPLE", 4)


def people(number: int = 11) -> tuple[pd.DataFrame, list[int]]:
    generator = np.random.default_rng(1)
    rows = pd.DataFrame({"age": generator.integers(17, 91, 5 * number), "sex": "f"})
    return rows, [row % number for row in range(len(rows))]


class Killed(BaseException):
    """What nobody catches, as a signal is."""


def killed_after(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End the work when so many parts have been written."""
    write = records._RecordsTask._write

    def once(self: Any, some: Any, drawn: Any) -> None:
        if some.number >= number:
            raise Killed
        write(self, some, drawn)

    monkeypatch.setattr(records._RecordsTask, "_write", once)


def test_a_job_is_the_same_with_any_number_of_workers(tmp_path: Path) -> None:
    rows, users = people()
    found = [
        tn.pipeline.sample(SAMPLER, rows, users, tmp_path / f"{workers}", seed=7, workers=workers)
        for workers in (1, 3)
    ]
    assert found[0].draws.equals(found[1].draws)
    assert found[0].users.tolist() == list(range(11))
    assert sorted(path.name for path in (tmp_path / "1").glob("part*")) == [
        f"part-0000{number}.parquet" for number in range(3)
    ]
    assert pq.read_table(tmp_path / "1" / "part-00001.parquet").column_names == [
        "user",
        "age",
        "sex",
    ]
    frame = tn.pipeline.sample(SAMPLER, pl.DataFrame(rows), users, tmp_path / "polars", seed=7)
    assert isinstance(frame.draws, pl.DataFrame)
    assert frame.draws.rows() == [tuple(row) for row in found[0].draws.itertuples(index=False)]


def test_nobody_is_drawn_twice_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, users = people()
    folder = tmp_path / "records"
    with monkeypatch.context() as patch:
        killed_after(1, patch)
        with pytest.raises(Killed):
            tn.pipeline.sample(SAMPLER, rows, users, folder, workers=1)
    first = (folder / "part-00000.parquet").read_bytes()
    state = folder / "_turnout" / "job.json"
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    job = Job.read(folder)
    assert job is not None
    assert job.noise is not None
    # What the killed run would have drawn is what the next one draws.
    worker = SAMPLER._prepared()
    own = np.array([users]) == 5
    codes = np.array([[c.encode("x", rows[c.name].tolist())[row] for c in worker._public().columns]
                      for row in np.flatnonzero(own[0])])  # fmt: skip
    expected = worker._record_of(codes, job.noise.block(0).part(5))
    with pytest.raises(InvalidValueError, match="is unfinished: pass resume=True, or --resume"):
        tn.pipeline.sample(SAMPLER, rows, users, folder)
    done = tn.pipeline.sample(SAMPLER, rows, users, folder, resume=True)
    assert (folder / "part-00000.parquet").read_bytes() == first
    assert done.draws.iloc[5].to_dict() == {name: values[0] for name, values in expected.items()}
    # The secret is gone, and the same call gives the same records.
    assert json.loads(state.read_text())["noise"] is None
    again = tn.pipeline.sample(SAMPLER, rows, users, folder, resume=True)
    assert again.draws.equals(done.draws)
    with pytest.raises(InvalidValueError, match="holds a job, which is complete"):
        tn.pipeline.sample(SAMPLER, rows, users, folder)


def test_a_job_goes_on_with_the_same_data_and_sampler_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, users = people()
    folder = tmp_path / "records"
    with monkeypatch.context() as patch:
        killed_after(1, patch)
        with pytest.raises(Killed):
            tn.pipeline.sample(SAMPLER, rows, users, folder, workers=1)
    other = rows.assign(age=[*rows["age"][:-1], 17 if rows["age"].iloc[-1] > 50 else 90])
    for given, whose in (
        (other, users),
        (rows, users[::-1]),
        (rows, [str(user) for user in users]),
    ):
        with pytest.raises(InvalidValueError, match="has changed since the job began"):
            tn.pipeline.sample(SAMPLER, given, whose, folder, resume=True)
    public = tn.samplers.TableSampler(3.0, COLUMNS, reference=rows)
    for sampler in (
        tn.samplers.TableSampler(2.0, COLUMNS),
        tn.samplers.TableSampler(3.0, {**COLUMNS, "age": (16, 91)}),
        public,
    ):
        with pytest.raises(PlanMismatchError, match="was begun with records of age, sex"):
            tn.pipeline.sample(sampler, rows, users, folder, resume=True)
    tn.pipeline.sample(SAMPLER, rows, users, folder, resume=True)


def test_a_job_that_ends_before_its_first_part_is_withdrawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, users = people()
    folder = tmp_path / "records"
    with monkeypatch.context() as patch:
        killed_after(0, patch)
        with pytest.raises(Killed):
            tn.pipeline.sample(SAMPLER, rows, users, folder, workers=1)
    assert not list(folder.iterdir())
    assert len(tn.pipeline.sample(SAMPLER, rows, users, folder)) == 11


def test_parts_of_others_and_lost_parts_are_refused(tmp_path: Path) -> None:
    rows, users = people()
    folder, other = tmp_path / "records", tmp_path / "other"
    for place in (folder, other):
        tn.pipeline.sample(SAMPLER, rows, users, place)
    part = "part-00002.parquet"
    (folder / part).write_bytes((other / part).read_bytes())
    with pytest.raises(CorruptDataError, match="is not part 2 of the job"):
        tn.pipeline.sample(SAMPLER, rows, users, folder, resume=True)
    (folder / part).write_bytes(b"PAR1")
    with pytest.raises(CorruptDataError, match="not a part of a job of records"):
        tn.pipeline.sample(SAMPLER, rows, users, folder, resume=True)
    (folder / part).unlink()
    with pytest.raises(CorruptDataError, match="was there and is gone"):
        tn.pipeline.sample(SAMPLER, rows, users, folder, resume=True)


def test_wrong_arguments_leave_nothing_behind(tmp_path: Path) -> None:
    rows, users = people()
    folder = tmp_path / "records"
    with pytest.raises(InvalidTypeError, match="TableSampler"):
        tn.pipeline.sample(tn.samplers.MollifiedDensity(1.0), rows, users, folder)  # type: ignore
    wrong = rows.assign(age=[*rows["age"][:3], 99, *rows["age"][4:]])
    with pytest.raises(InvalidValueError, match=r"no draw for user 3: .*'age'"):
        tn.pipeline.sample(SAMPLER, wrong, users, folder)
    assert not folder.exists()


def test_reports_and_records_are_told_apart(tmp_path: Path) -> None:
    rows, users = people()
    folder = tmp_path / "records"
    tn.pipeline.sample(SAMPLER, rows, users, folder)
    with pytest.raises((InvalidValueError, CorruptDataError)):
        tn.pipeline.tally(folder)
    reports = tmp_path / "reports"
    answers = tn.pipeline.scan(rows, "sex")
    tn.pipeline.randomize(answers, tn.DirectEncoding(1.0, ["f", "m"]), reports)
    with pytest.raises(PlanMismatchError):
        tn.pipeline.sample(SAMPLER, rows, users, reports, resume=True)
