"""Many files of reports: checked together, tallied one by one in constant memory."""

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
from turnout.samplers.tables.plan import TablePlan

_LOGGER = logging.getLogger(__name__)

Duplicates = Literal["refuse", "first"]


@dataclass(frozen=True, eq=False, repr=False)
class ReportSet(ReportsElsewhere):
    """Files of reports of one plan, as :func:`open_reports` returns them.

    Nothing is read until it is needed; then every byte of a file is checked.

    Attributes
    ----------
    files
        The files in order, with the values of their folders.
    jobs
        The jobs that wrote them.
    name
        The name of the files in messages.

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
        """The plan of the first file, or of the job if it has no files.

        Raises
        ------
        InvalidValueError
            If there is neither.
        """
        if not self.files:
            plan = self.jobs[0].plan
            if isinstance(plan, TablePlan):
                raise InvalidValueError(f"{self.name} holds drawn records, and no reports")
            return plan
        with ReportFile(self.files[0].path) as file:
            return file.header.plan

    @property
    def totals(self) -> Totals | None:
        """The totals of the jobs that wrote the files; None if a file belongs to no job."""
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
        """Show the location and the number of the files."""
        return f"<ReportSet: {self.name}, {len(self)} file(s)>"

    def batches(
        self, rows: int | None = None, *, max_memory: int = MAX_MEMORY
    ) -> Iterator[ReportBatch]:
        """Iterate over the reports of all files, in order, in batches.

        Parameters
        ----------
        rows
            The largest number of reports in a batch; by default a million, or fewer if they are
            wide.
        max_memory
            The largest number of bytes of memory for a piece of a file, as in :meth:`tally`.

        Raises
        ------
        PlanMismatchError
            If files have different plans.
        InvalidValueError
            If a file is a copy of another.
        CorruptDataError
            If a file was altered.
        MemoryLimitError
            If a file requires more memory than allowed or available.
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
        """Tally the reports of several files at once, with memory for one batch of each.

        Parameters
        ----------
        group_by
            Columns of groups in the files, or names of folders ``name=value`` that contain them.
        duplicates
            The rule for a second report with the same pseudonym: ``"refuse"`` or ``"first"`` (the
            first in the order of the files counts). By default pseudonyms are not compared.
        workers
            The number of files, or ranges of a file, to read at once; by default the number of
            processors.
        progress
            Whether work that takes more than two seconds shows a bar on standard error.
        max_memory
            The largest number of bytes of memory for the counts of a file, since a file of a few
            bytes can name very many answers and groups. Eight times the size of the file is always
            allowed.
        same_people
            Whether people of one file may also be in another, with their permanent answers, as in
            :meth:`turnout.Tally.merge`. Each file is then one round.

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
            If a file is duplicated, also as a copy with another name; if a file lacks the group, or
            the necessary pseudonyms; or if a pseudonym is duplicated and that is refused.
        MemoryLimitError
            If a file requires more memory than allowed or available.
        OSError
            If a file cannot be read, or is not a regular file.
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
    """Perform :meth:`ReportSet.tally` with any executor."""
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
    """Return the number of rows of a job in missing parts."""
    known = job.answers.get("rows") if job.totals is None else job.totals.rows
    if not isinstance(known, int):
        _LOGGER.warning(
            "job %s: is not complete, and how many rows are not counted is not known", job.name
        )
        return 0
    return max(known - counted, 0)


def _with_absent(found: Any, number: int) -> Any:
    """Record in a tally, or in one by groups, the number of missing rows."""
    if not number:
        return found
    if isinstance(found, GroupedTally):
        nobody = GroupedTally(found.names, {}, plan=found.plan, of_no_group=LeftOut(absent=number))
        return found + nobody
    return replace(found, left_out=found.left_out + LeftOut(absent=number))


def _left_out(
    reports: ReportSet, duplicates: Duplicates, max_memory: int
) -> Iterator[Integers | None]:
    """Find for each file the positions of reports whose pseudonym occurred before."""
    finder, starts = RepeatFinder(), [0]
    key = secrets.token_bytes(16)
    words = np.frombuffer(key, np.uint64)
    for file in reports.files:
        start = starts[-1]
        with ReportFile(file.path, max_memory=max_memory) as opened:
            if not opened.header.pseudonyms:
                raise InvalidValueError(
                    f"duplicates: {file.path} has no pseudonyms, so nobody can tell whether a "
                    "person reported twice"
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
    """Open files of reports, without reading their content.

    Parameters
    ----------
    paths
        Files that end in ``.parquet``, ``.arrow``, ``.ipc`` or ``.feather``; folders, which are
        searched for such files; or patterns (``"reports/2026-*/*.parquet"``); one or several.
    partial
        Whether to accept a folder whose job is not complete, with its existing parts. The rows of
        the other parts are left out, and the tally states their number.
    by_file
        The name of an additional column with the name of each file: without its ending, or for the
        parts of a job the name of the folder. If all names are dates, or all are numbers, the
        column contains dates or numbers. ``tally(group_by=...)`` then accepts it.

    Returns
    -------
    ReportSet
        The files. Only the states of jobs have been read.

    Raises
    ------
    InvalidValueError
        If no file matches, a file is named twice, or the job of a folder is not complete or lacks
        parts.
    InvalidTypeError
        If ``paths`` is not a path.
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
        As in :func:`open_reports`; also a :class:`ReportSet`.
    group_by, duplicates, workers, progress, max_memory, same_people
        As in :meth:`ReportSet.tally`.

    Returns
    -------
    Tally or GroupedTally
        The tally of all reports, or one for each group.

    Raises
    ------
    TurnoutError, OSError
        As in :func:`open_reports` and :meth:`ReportSet.tally`.

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
    """Return the names of groups as a tuple: none, one or several."""
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
            f"{path}: contains the reports of {same}, or is a copy of it, so they "
            "would count twice: leave out one of the files"
        )
