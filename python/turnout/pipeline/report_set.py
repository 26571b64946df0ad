"""Many files of reports: checked together, tallied file by file with flat memory."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from turnout import _arguments
from turnout._progress import track
from turnout._types import Integers
from turnout.collecting.groups.tally import GroupedTally, in_one_round
from turnout.collecting.kind import Kind, ReportsElsewhere
from turnout.collecting.left_out import LeftOut
from turnout.collecting.plan import Plan
from turnout.collecting.report_files import MAX_MEMORY, ReportFile
from turnout.collecting.report_files.reading import ReportBatch
from turnout.collecting.tally import BaseTally
from turnout.errors import InvalidValueError
from turnout.metrics import observe
from turnout.pipeline.encoding import Totals
from turnout.pipeline.flight import Executor
from turnout.pipeline.identity import RepeatFinder
from turnout.pipeline.job import Job
from turnout.pipeline.randomizing import of_nobody
from turnout.pipeline.report_counting import FileCounter, PlacedFile, placed_files

_LOGGER = logging.getLogger(__name__)

Duplicates = Literal["refuse", "first"]


@dataclass(frozen=True, eq=False, repr=False)
class ReportSet(ReportsElsewhere):
    """Files of reports of one plan; :func:`open_reports` makes it.

    Nothing is read before it is asked for; then every byte of a file is checked.

    Attributes
    ----------
    files
        The files with the values of the folders that they are in, in order.
    jobs
        The jobs that wrote them.
    name
        What messages call them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import turnout as tn
    >>> from turnout.collecting.report_files import write_reports
    >>> oracle = tn.DirectEncoding(1.0, 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for day in ("2026-11-21", "2026-11-22"):
    ...         path = pathlib.Path(folder, f"day={day}")
    ...         path.mkdir()
    ...         write_reports(oracle.randomize([0, 1, 2]), path / "reports.parquet")
    ...     reports = tn.pipeline.open_reports(folder)
    ...     reports.tally().nodes, len(reports.tally(group_by="day"))
    (6, 2)
    """

    files: Sequence[PlacedFile]
    jobs: Sequence[Job]
    name: str

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, in order."""
        return tuple(file.path for file in self.files)

    @property
    def plan(self) -> Plan:
        """The plan of the first file, or of the job if it has none.

        Raises
        ------
        InvalidValueError
            If there is neither.
        """
        if not self.files:
            return self.jobs[0].plan
        with ReportFile(self.files[0].path) as file:
            return file.header.plan

    @property
    def totals(self) -> Totals | None:
        """What the jobs that wrote the files did together; None if one file is of no job."""
        found = [job.totals for job in self.jobs if job.totals is not None]
        folders = {job.folder.resolve() for job in self.jobs}
        if not found or any(file.path.parent.resolve() not in folders for file in self.files):
            return None
        total = Totals()
        for each in found:
            total += each
        return total

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self.files)

    def __repr__(self) -> str:
        """Show where the files are and how many there are."""
        return f"<ReportSet: {self.name}, {len(self)} file(s)>"

    def batches(
        self, rows: int | None = None, *, max_memory: int = MAX_MEMORY
    ) -> Iterator[ReportBatch]:
        """Read the reports of all files, in order, batch by batch.

        Parameters
        ----------
        rows
            The most reports of a batch; by default a million, or fewer if they are wide.
        max_memory
            Bytes of memory that a piece of a file may take up, as for :meth:`tally`.

        Raises
        ------
        PlanMismatchError
            If files have different plans.
        InvalidValueError
            If a file is a copy of another.
        CorruptDataError
            If a file was altered.
        MemoryLimitError
            If a file asks for more memory than it may, or than there is.
        """
        first: Plan | None = None
        seen: dict[str, Path] = {}
        for file in self.files:
            with ReportFile(file.path, max_memory=max_memory) as opened:
                refuse_twice(seen, file.path, opened.header.identity)
                first = first or opened.header.plan
                first._check_same(opened.header.plan, str(file.path), self.files[0].path)
                yield from opened.batches(rows)

    def tally(
        self,
        *,
        group_by: str | Sequence[str] | None = None,
        duplicates: Duplicates | None = None,
        workers: int | None = None,
        progress: bool = False,
        max_memory: int = MAX_MEMORY,
        same_people: bool = True,
    ) -> Any:
        """Tally the reports, several files at once, with memory for a batch of each.

        Parameters
        ----------
        group_by
            Columns of groups in the files, or names of folders ``name=value`` that they are in.
        duplicates
            What happens to a second report with the same pseudonym: ``"refuse"`` or ``"first"``
            (the first in the order of the files counts). By default nobody looks.
        workers
            How many files, or stretches of a file, are read at once; by default as many as there
            are processors.
        progress
            Whether work that takes more than two seconds shows a bar on standard error.
        max_memory
            Bytes of memory that the counts of a file may take up: a file of a few bytes can name
            very many answers and groups. Eight times the size of the file is allowed in any case.
        same_people
            Whether people of one file may be in another too, with the permanent answers that they
            keep: as for :meth:`turnout.Tally.merge`. Each file is one round of them.

        Returns
        -------
        Tally or GroupedTally
            The tally of all reports, or one for each group.

        Raises
        ------
        PlanMismatchError
            If files have different plans.
        CorruptDataError
            If a file was altered.
        InvalidValueError
            If a file is there twice, be it as a copy of another name, has no such group, or no
            pseudonyms where they are needed, or if a pseudonym is there twice and that is refused.
        MemoryLimitError
            If a file asks for more memory than it may, or than there is.
        OSError
            If a file cannot be read, or is no regular file.
        """
        return tally_files(
            Executor(workers, progress),
            self,
            group_by,
            duplicates,
            max_memory=max_memory,
            same_people=same_people,
        )

    def _tallied_by(self, oracle: Kind) -> BaseTally:
        """Tally the reports if an oracle made them: what :meth:`Kind.tally` does.

        Raises
        ------
        PlanMismatchError
            If another oracle made them; before the files are read, which may take long.
        TurnoutError, OSError
            As :meth:`tally`.
        """
        given = self.plan
        Plan(oracle, given.participation)._check_same(given, "reports")
        tally: BaseTally = self.tally()
        return tally


def tally_files(
    executor: Executor,
    reports: ReportSet,
    group_by: str | Sequence[str] | None,
    duplicates: Duplicates | None,
    *,
    max_memory: int,
    same_people: bool = True,
) -> Any:
    """Do what :meth:`ReportSet.tally` does, wherever the work is done."""
    names, files = group_names(group_by), reports.files
    max_memory = _arguments.integer("max_memory", max_memory, least=1)
    _arguments.choice("duplicates", duplicates, ("refuse", "first", None))
    _arguments.instance("same_people", same_people, bool, "True or False")
    left_out: Iterator[Integers | None] = itertools.repeat(None, len(files))
    if duplicates is not None:
        left_out = _left_out(reports, duplicates, max_memory)
    counter = FileCounter(names, max_memory, executor.spare(len(files)))
    work = zip(files, left_out, strict=True)
    seen: dict[str, Path] = {}
    first: PlacedFile | None = None
    # Fingerprints of plans that are equal to that of the first file: serial number and end, which
    # do not change a report, may be others.
    alike: set[str] = set()
    rows: Counter[str] = Counter()
    with (
        executor.merging() as total,
        contextlib.closing(executor.results(counter, work, into=total)) as each,
    ):
        for (file, _), facts in track(each, "tallying", executor.progress, len(files)):
            observe("file_tallied", reports=facts.reports, seconds=facts.seconds)
            refuse_twice(seen, file.path, facts.identity)
            first = first or file
            if alike and facts.plan not in alike:
                one, other = sorted([first.path, file.path])
                with ReportFile(one) as some, ReportFile(other) as others:
                    some.header.plan._check_same(others.header.plan, str(other), one)
            alike.add(facts.plan)
            rows[facts.job] += facts.rows
    found = total.result()
    found = of_nobody(reports.plan, names) if found is None else found
    if not same_people:
        found = in_one_round(found)
    return _with_absent(found, sum(_absent(job, rows[job.name]) for job in reports.jobs))


def _absent(job: Job, counted: int) -> int:
    """Tell how many rows of a job are in parts that are not there."""
    known = job.answers.get("rows") if job.totals is None else job.totals.rows
    if not isinstance(known, int):
        _LOGGER.warning(
            "job %s: is not complete, and how many rows are not counted is not known", job.name
        )
        return 0
    return max(known - counted, 0)


def _with_absent(found: Any, number: int) -> Any:
    """Say in a tally, or in one of groups, how many rows are not there."""
    if not number:
        return found
    if isinstance(found, GroupedTally):
        nobody = GroupedTally(found.names, {}, plan=found.plan, of_no_group=LeftOut(absent=number))
        return found + nobody
    return replace(found, left_out=found.left_out + LeftOut(absent=number))


def _left_out(
    reports: ReportSet, duplicates: Duplicates, max_memory: int
) -> Iterator[Integers | None]:
    """Find for each file the places of reports whose pseudonym was there before."""
    finder, starts = RepeatFinder(), [0]
    key = secrets.token_bytes(16)
    words = np.frombuffer(key, np.uint64)
    for file in reports.files:
        start = starts[-1]
        with ReportFile(file.path, max_memory=max_memory) as opened:
            if not opened.header.pseudonyms:
                raise InvalidValueError(
                    f"duplicates: {file.path} has no pseudonyms, so that nobody can tell "
                    "whether a person reported twice"
                )
            for batch in opened.batches():
                assert batch.pseudonyms is not None
                digests = np.ascontiguousarray(batch.pseudonyms).view(np.uint64)
                finder.add(digests ^ words, start)
                start += len(batch)
        starts.append(start)
    # The rows may lie in a file of the folder, which is there as long as this is.
    persons, rows, _folder = finder.finish()
    if duplicates == "refuse" and persons:
        raise InvalidValueError(
            f"{reports.name}: {persons:,} pseudonym(s) have more than one report "
            f"({rows.size:,} too many); duplicates='first' counts the first of each"
        )
    for start, end in itertools.pairwise(starts):
        low, high = np.searchsorted(rows, [start, end])
        yield np.array(rows[low:high]) - start


def open_reports(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    partial: bool = False,
    by_file: str | None = None,
) -> ReportSet:
    """Open files of reports.

    Parameters
    ----------
    paths
        Files that end in ``.parquet``, ``.arrow``, ``.ipc`` or ``.feather``, folders of them, which
        are searched through, or patterns (``"reports/2026-*/*.parquet"``); one or several.
    partial
        Whether a folder whose job is not complete is taken with the parts that are there. The rows
        of the others are left out, and the tally says how many they are.
    by_file
        The name of a column that each file has beside its groups: what the file is called, without
        its ending, or for the parts of a job its folder. Names that are all dates, or all numbers,
        are these. ``tally(group_by=...)`` then takes it.

    Returns
    -------
    ReportSet
        The files; nothing has been read but the states of jobs.

    Raises
    ------
    InvalidValueError
        If there is no such file, a file is given twice, or the job of a folder is not complete or
        lacks parts.
    InvalidTypeError
        If ``paths`` is no path.
    FileNotFoundError
        If a path does not exist.

    Examples
    --------
    >>> import turnout as tn
    >>> tn.pipeline.open_reports("nowhere/*.parquet")
    Traceback (most recent call last):
        ...
    turnout.errors.InvalidValueError: paths: 'nowhere/*.parquet' holds no file of reports
    """
    one = isinstance(paths, (str, os.PathLike))
    given: list[Any] = [paths] if one else list(_arguments.items("paths", paths, "a path or paths"))
    if not given:
        raise InvalidValueError("paths must name at least one file of reports, got none")
    for each in given:
        _arguments.instance("paths", each, (str, os.PathLike), "paths")
    if by_file is not None:
        _arguments.instance("by_file", by_file, str, "the name of a column")
    places = [os.fspath(each) for each in given]
    files, jobs = placed_files(places, partial=partial, by_file=by_file)
    names = ", ".join(places[:3]) + (", ..." if len(places) > 3 else "")
    return ReportSet(files, jobs, names)


def tally(
    paths: Any,
    *,
    group_by: str | Sequence[str] | None = None,
    duplicates: Duplicates | None = None,
    workers: int | None = None,
    progress: bool = False,
    partial: bool = False,
    max_memory: int = MAX_MEMORY,
    same_people: bool = True,
) -> Any:
    """Tally files of reports.

    Parameters
    ----------
    paths, partial
        As for :func:`open_reports`; also a :class:`ReportSet`.
    group_by, duplicates, workers, progress, max_memory, same_people
        As for :meth:`ReportSet.tally`.

    Returns
    -------
    Tally or GroupedTally
        The tally of all reports, or one for each group.

    Raises
    ------
    TurnoutError, OSError
        As :func:`open_reports` and :meth:`ReportSet.tally`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import turnout as tn
    >>> from turnout.collecting.report_files import write_reports
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "monday.parquet")
    ...     write_reports(tn.DirectEncoding(1.0, 3).randomize([0, 1, 2]), path)
    ...     tn.pipeline.tally(folder).received
    3
    """
    reports = paths if isinstance(paths, ReportSet) else open_reports(paths, partial=partial)
    return reports.tally(
        group_by=group_by,
        duplicates=duplicates,
        workers=workers,
        progress=progress,
        max_memory=max_memory,
        same_people=same_people,
    )


def group_names(group_by: Any) -> tuple[str, ...]:
    """Take the names of groups: none, one or several."""
    if group_by is None:
        return ()
    names = _arguments.names("group_by", group_by, "groups")
    if not names:
        raise _arguments.mistyped("group_by must be a name or names of groups", group_by)
    return names


def refuse_twice(seen: dict[str, Path], path: Path, identity: str) -> None:
    """Refuse two copies of a file: their persons would count twice.

    Raises
    ------
    InvalidValueError
        If a file of this identity was seen before.
    """
    same = seen.setdefault(identity, path)
    if same is not path:
        raise InvalidValueError(
            f"{path}: holds the reports of {same}, or is a copy of it: they would count twice; "
            "leave one of the files out"
        )
