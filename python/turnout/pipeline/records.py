"""Jobs that draw records of people into files, so that nobody is drawn twice."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import logging
import os
import secrets as randomness
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout._documents import parsed
from turnout._extras import require
from turnout._files import atomic_write
from turnout._one_thread import one_thread
from turnout._progress import track
from turnout._types import Array, Integers
from turnout.errors import CorruptDataError
from turnout.metrics import observe
from turnout.pipeline.encoding import Totals
from turnout.pipeline.flight import Executor
from turnout.pipeline.job import Job
from turnout.pipeline.parts import PartFiles, begin_or_take_up, folder_of, part_path
from turnout.pipeline.randomizing import JobNoise, Secrets
from turnout.samplers import PopulationDraws, TableSampler
from turnout.samplers.population.draws import codes_of_people, frame_of_people, grouped
from turnout.samplers.tables.frames import rows_of_frame, table_of
from turnout.samplers.tables.plan import TablePlan

#: So many people make a part: some seconds of work.
_PEOPLE: Final = 256

#: Where a part says of which job it is.
_FACTS: Final = b"turnout-records"

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class _People:
    """The people of one part, each with one record.

    Attributes
    ----------
    number
        Which part of all.
    first
        The place of the first of them among all people.
    names
        Who they are.
    codes
        The cells of each one's records; None if the part is there.
    """

    number: int
    first: int
    names: Any = field(repr=False)
    codes: list[Integers] | None = field(repr=False)


@dataclass(frozen=True)
class _RecordsTask(PartFiles):
    """The recipe for the files of a job, without the secret of its noise; can be pickled."""

    sampler: TableSampler

    def __call__(self, secrets: Secrets, people: _People) -> Totals:
        """Draw the records of some people unless their file exists; return their number.

        Raises
        ------
        InvalidValueError
            If the folder is not there.
        CorruptDataError
            If there is a file that is not this part.
        OSError
            If the file cannot be written.
        """
        self._check_folder()
        found = self.find(people.number)
        if found is not None or people.codes is None:
            if found is None:
                raise CorruptDataError(f"{part_path(self.folder, people.number)}: is gone")
            return found
        streams = secrets.noise.block(0)
        with one_thread():
            drawn = [
                self.sampler._record_of(codes, streams.part(people.first + place))
                for place, codes in enumerate(people.codes)
            ]
        # Of two that made the part at once the first one's file is there: both drew the same.
        try:
            self._write(people, drawn)
        except (FileExistsError, FileNotFoundError):
            found = self.find(people.number)
            if found is None:
                raise
        return Totals(len(drawn), len(drawn))

    def _write(self, people: _People, drawn: list[dict[str, list[Any]]]) -> None:
        pa, parquet = require("pyarrow", "cli"), require("pyarrow.parquet", "cli")
        columns = self.sampler._public().columns
        values = {
            column.name: [value for one in drawn for value in one[column.name]]
            for column in columns
        }
        table = table_of(columns, values)
        table = table.add_column(0, id_name(table.column_names), pa.array(people.names))
        facts = json.dumps({"job": self.job, "number": people.number})
        table = table.replace_schema_metadata({_FACTS: facts.encode()})
        path = part_path(self.folder, people.number)
        with atomic_write(path, replace=False, before=self._begun) as temporary:
            parquet.write_table(table, temporary)

    def find(self, number: int) -> Totals | None:
        """Return the number of records in the file of a part; None if there is no file.

        Raises
        ------
        CorruptDataError
            If it is not this part of this job.
        """
        path = part_path(self.folder, number)
        if not path.exists():
            return None
        parquet = require("pyarrow.parquet", "cli")
        try:
            metadata = parquet.read_metadata(path)
            facts = parsed((metadata.metadata or {})[_FACTS])
        except (OSError, ValueError, KeyError, require("pyarrow", "cli").ArrowException) as error:
            raise CorruptDataError(f"{path}: is not a part of a job of records") from error
        if facts != {"job": self.job, "number": number}:
            raise CorruptDataError(f"{path}: is not part {number} of the job in this folder")
        return Totals(metadata.num_rows, metadata.num_rows)


def id_name(columns: Collection[str]) -> str:
    """Return the name of the column that identifies the user of each record."""
    name = "user"
    while name in columns:
        name += "_"
    return name


def sample(
    sampler: TableSampler,
    data: Any,
    users: Any,
    output: str | os.PathLike[str],
    *,
    seed: int | None = None,
    resume: bool = False,
    workers: int | None = None,
    progress: bool = False,
) -> PopulationDraws:
    """Draw one private record for each user into a folder of Parquet files, in parts.

    To continue a job that was killed, pass ``resume=True``. Existing parts are kept, and the others
    are drawn from the secret that the job began with, so nobody is ever drawn twice. The folder
    contains the secret, readable only by its owner, until the job is complete. Until then keep the
    folder as safe as the data. A job that ends before its first part exists is withdrawn.

    Parameters
    ----------
    sampler
        The sampler to fit on the rows of each user; it is not changed.
    data
        The rows of all users: a frame of pandas, polars or pyarrow.
    users
        The user of each row, as in :func:`turnout.samplers.sample_population`.
    output
        The folder for the records: a new or an empty one, or the folder of the job to resume.
    seed
        For tests and simulations only: an integer in [0, 2^64).
    resume
        Whether to resume the job in the folder, if there is one. Sampler and data must be the same.
    workers
        The number of parts to process at once; by default the number of processors.
    progress
        Whether work that takes more than two seconds shows a bar on standard error.

    Returns
    -------
    PopulationDraws
        The users and one draw of each, as in the files: first a column of users, ``user``, then the
        columns of the sampler.

    Raises
    ------
    InvalidValueError
        If the folder contains something else, or a job with other data; if a row is refused.
    PlanMismatchError
        If the job in the folder has another sampler.
    InvalidTypeError
        If an argument is of the wrong type.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import pandas as pd
    >>> import turnout as tn
    >>> rows = pd.DataFrame({"age": [30, 31, 60, 61], "sex": ["f", "f", "m", "m"]})
    >>> sampler = tn.samplers.TableSampler(2.0, {"age": (17, 91), "sex": ["f", "m"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path, whose = pathlib.Path(folder, "records"), ["ann", "ann", "bob", "bob"]
    ...     first = tn.pipeline.sample(sampler, rows, whose, path)
    ...     again = tn.pipeline.sample(sampler, rows, whose, path, resume=True)
    >>> first.draws.equals(again.draws)
    True
    """
    executor = Executor(workers, progress)
    return run_sample(executor, sampler, data, users, output, seed=seed, resume=resume)


def run_sample(
    executor: Executor,
    sampler: TableSampler,
    data: Any,
    users: Any,
    output: str | os.PathLike[str],
    *,
    seed: int | None,
    resume: bool,
) -> PopulationDraws:
    """Perform :func:`sample` with any executor."""
    _arguments.instance("sampler", sampler, TableSampler, "a TableSampler")
    rows = rows_of_frame("data", data)
    names, places = grouped(users, len(rows))
    model = sampler.__sklearn_clone__()
    worker = model._prepared()
    codes, library = codes_of_people(worker, rows, names, places)
    folder, plan = folder_of(output), TablePlan.of(worker)
    fresh = Job(
        folder, randomness.token_hex(16), plan, {"part_people": _PEOPLE}, JobNoise.made(seed)
    )

    def digest(secret: bytes) -> str:
        return _digest(secret, names, places, codes)

    job = begin_or_take_up(Job.read(folder), fresh, digest, resume=resume, source="data")
    task = _RecordsTask(folder, job.name, worker)
    if not job.complete:
        with job._at_work():
            parts, total = _made(executor, job, task, names, [codes[own] for own in places])
            job._finished(parts, total, {})
        _LOGGER.info("job %s: complete, %d parts", job.name, parts)
    return _read(task, job.parts or -(-len(names) // _PEOPLE), model, library)


def _made(
    executor: Executor, job: Job, task: _RecordsTask, names: Array, codes: list[Integers]
) -> tuple[int, Totals]:
    """Make all parts of a job; return the numbers of parts and records."""
    assert job.noise is not None
    hidden = Secrets.of(job.noise, None)
    items = list(_parts(task, names, codes))
    total = Totals()
    # A bar of people, for a part takes long.
    with contextlib.closing(
        executor.results(replace(task, folder=task.folder.absolute()), iter(items), hidden)
    ) as each:
        for people, made in _shown(each, executor.progress, len(names)):
            executor.wait_for(part_path(task.folder, people.number))
            observe("part_written", rows=made.nodes, reports=made.reports)
            total += made
    return len(items), total


def _shown(each: Any, wanted: bool, number: int) -> Iterator[tuple[_People, Totals]]:
    """Show from the start how many people are done."""

    def people() -> Iterator[tuple[_People, Totals] | None]:
        for item, made in each:
            yield item, made
            for _ in range(made.nodes - 1):
                yield None

    for found in track(people(), "drawing", wanted, number):
        if found is not None:
            yield found


def _parts(task: _RecordsTask, names: Array, codes: list[Integers]) -> Iterator[_People]:
    for number, first in enumerate(range(0, len(names), _PEOPLE)):
        own = slice(first, first + _PEOPLE)
        there = part_path(task.folder, number).exists()
        yield _People(number, first, names[own].tolist(), None if there else codes[own])


def _digest(secret: bytes, names: Array, places: list[Any], codes: Integers) -> str:
    """Digest, under the secret, the user and the value of each cell."""
    found = hmac.new(secret, digestmod=hashlib.sha256)
    for name, own in zip(names.tolist(), places, strict=True):
        found.update(f"{name!r} {len(own)}\n".encode())
        found.update(np.ascontiguousarray(codes[own], "<i8").tobytes())
    return found.hexdigest()


def _read(task: _RecordsTask, parts: int, model: TableSampler, library: Any) -> PopulationDraws:
    """Read the records of all parts."""
    pa, parquet = require("pyarrow", "cli"), require("pyarrow.parquet", "cli")
    for number in range(parts):
        if task.find(number) is None:
            raise CorruptDataError(f"{part_path(task.folder, number)}: was there and is gone")
    table = pa.concat_tables(
        [parquet.read_table(part_path(task.folder, number)) for number in range(parts)]
    )
    names, values = table.column(0).to_pylist(), table.drop_columns([table.column_names[0]])
    drawn = [{name: values[name].to_pylist() for name in values.column_names}]
    users = np.array(names) if len({type(name) for name in names}) == 1 else np.array(names, object)
    return PopulationDraws(users, frame_of_people(task.sampler, library, drawn), model)
