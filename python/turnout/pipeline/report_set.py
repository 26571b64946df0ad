"""Many files of reports: checked together, tallied file by file with flat memory."""

from __future__ import annotations

import datetime
import errno
import glob
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from turnout import _arguments, metrics
from turnout._progress import track
from turnout.collection import Plan
from turnout.errors import InvalidTypeError, InvalidValueError, PlanMismatchError
from turnout.frequency.groups import GroupedTally, tally_by_group
from turnout.frequency.groups.keys import Key, Part
from turnout.frequency.reports import Reports
from turnout.frequency.sums import DesignSums, WeightedSums
from turnout.frequency.tally import Tally
from turnout.pipeline.flight import checked_workers, in_flight, sized
from turnout.pipeline.job import STATE_FOLDER, Job, Totals
from turnout.pipeline.repeats import RepeatFinder
from turnout.report_files import Groups, Header, ReportBatch, ReportFile

__all__ = ["ReportSet", "check_plans", "empty_reports", "empty_tally", "open_reports", "tally"]

_SUFFIXES: Final = (".parquet", ".arrow", ".ipc", ".feather")
_PARTITION: Final = re.compile(r"([^=/]+)=([^/]*)")
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")

Repeats = Literal["refuse", "first"]


@dataclass(frozen=True)
class _File:
    path: Path
    #: Values of the folders ``name=value`` on the way to the file.
    partitions: tuple[tuple[str, Part], ...]


class ReportSet:
    """Files of reports of one plan; :func:`open_reports` makes it.

    Nothing is read before it is asked for; then every byte of a file is checked.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import turnout as tn
    >>> from turnout.report_files import write_reports
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

    def __init__(self, files: Sequence[_File], jobs: Sequence[Job], name: str) -> None:
        self._files, self._jobs, self._name = tuple(files), tuple(jobs), name

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, in order."""
        return tuple(file.path for file in self._files)

    @property
    def plan(self) -> Plan:
        """The plan of the first file, or of the job if it has none.

        Raises
        ------
        InvalidValueError
            If there is neither.
        """
        if not self._files:
            return self._jobs[0].plan
        with ReportFile(self._files[0].path) as file:
            return file.header.plan

    @property
    def totals(self) -> Totals | None:
        """What the jobs that wrote the files did together; None if one file is of no job."""
        found = [job.totals for job in self._jobs if job.totals is not None]
        folders = {job.folder.resolve() for job in self._jobs}
        if not found or any(file.path.parent.resolve() not in folders for file in self._files):
            return None
        total = Totals()
        for each in found:
            total += each
        return total

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self._files)

    def __repr__(self) -> str:
        """Show where the files are and how many there are."""
        return f"<ReportSet: {self._name}, {len(self)} file(s)>"

    def batches(self, rows: int = 2**20) -> Iterator[ReportBatch]:
        """Read the reports of all files, in order, batch by batch.

        Raises
        ------
        PlanMismatchError
            If files have different plans.
        CorruptDataError
            If a file was altered.
        """
        first: Plan | None = None
        for file in self._files:
            with ReportFile(file.path) as opened:
                first = first or opened.header.plan
                check_plans(self._files[0].path, first, file.path, opened.header.plan)
                yield from opened.batches(rows)

    def tally(
        self,
        *,
        group_by: str | Sequence[str] | None = None,
        repeats: Repeats | None = None,
        workers: int | None = None,
        progress: bool = False,
    ) -> Any:
        """Tally the reports, several files at once, with memory for a batch of each.

        Parameters
        ----------
        group_by
            Columns of groups in the files, or names of folders ``name=value`` that they are in.
        repeats
            What happens to a second report with the same pseudonym: ``"refuse"`` or ``"first"``
            (the first in the order of the files counts). By default nobody looks.
        workers
            How many files are read at once; by default as many as there are processors.
        progress
            Whether work that takes more than two seconds shows a bar on standard error.

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
            If a file is there twice, has no such group, or no pseudonyms where they are needed, or
            if a pseudonym is there twice and that is refused.
        OSError
            If a file cannot be read.
        """
        names = _names(group_by)
        left_out = self._repeats(repeats) if repeats is not None else None
        counter = _Counter(names, left_out)
        starts = left_out.starts if left_out is not None else [0] * len(self._files)
        work = list(zip(self._files, starts, strict=True))
        total: Any = None
        seen: dict[tuple[str, int], Path] = {}
        counted = in_flight(lambda item: counter.count(*item), work, checked_workers(workers))
        for file, (header, tally) in zip(
            self._files, track(sized(counted, len(work)), "tallying", progress), strict=True
        ):
            _refuse_twice(seen, file.path, header)
            if total is None:
                total = tally
                continue
            check_plans(self._files[0].path, total.plan, file.path, tally.plan)
            total = total.merge(tally)
        if total is not None:
            return total
        return GroupedTally(names, {}, plan=self.plan) if names else empty_tally(self.plan)

    def _repeats(self, repeats: Repeats) -> _LeftOut:
        """Find the reports whose pseudonym was there before."""
        _arguments.choice("repeats", repeats, ("refuse", "first"))
        finder, starts, start = RepeatFinder(), [], 0
        key = secrets.token_bytes(16)
        words = np.frombuffer(key, np.uint64)
        for file in self._files:
            starts.append(start)
            with ReportFile(file.path) as opened:
                if not opened.header.pseudonyms:
                    raise InvalidValueError(
                        f"repeats: {file.path} has no pseudonyms, so that nobody can tell whether "
                        "a person reported twice"
                    )
                for batch in opened.batches():
                    assert batch.pseudonyms is not None
                    digests = np.ascontiguousarray(batch.pseudonyms).view(np.uint64)
                    finder.add(digests ^ words, start)
                    start += len(batch)
        persons, rows, folder = finder.finish()
        if repeats == "refuse" and persons:
            raise InvalidValueError(
                f"{self._name}: {persons:,} pseudonym(s) have more than one report "
                f"({rows.size:,} too many); repeats='first' counts the first of each"
            )
        return _LeftOut(starts, rows, folder)


@dataclass
class _LeftOut:
    starts: list[int]
    rows: Any
    #: Holds the file that the rows are in.
    folder: Any


class _Counter:
    """Counts one file."""

    def __init__(self, names: tuple[str, ...], left_out: _LeftOut | None) -> None:
        self._names, self._left_out = names, left_out

    def count(self, file: _File, start: int) -> tuple[Header, Tally | GroupedTally]:
        began = time.perf_counter()
        with ReportFile(file.path) as opened:
            header = opened.header
            wanted = [name for name in self._names if name not in dict(file.partitions)]
            known = header.groups.names if header.groups is not None else ()
            for name in wanted:
                if name not in known:
                    raise InvalidValueError(
                        f"group_by: {file.path} has no group {name!r}, and is in no folder "
                        f"'{name}=...'; its groups are {list(known)}"
                    )
            batches = self._batches(opened, start)
            tally: Tally | GroupedTally
            if wanted and header.groups is not None:
                tally = _grouped(header, header.groups, batches)
            else:
                tally = _plain(header, batches)
        if self._names:
            tally = _regrouped(tally, self._names, dict(file.partitions))
        metrics.observe("file_tallied", reports=header.reports, seconds=time.perf_counter() - began)
        return header, tally

    def _batches(self, opened: ReportFile, start: int) -> Iterator[ReportBatch]:
        for batch in opened.batches():
            end = start + len(batch)
            yield batch if self._left_out is None else _without(batch, self._left_out, start, end)
            start = end


def _without(batch: ReportBatch, left_out: _LeftOut, start: int, end: int) -> ReportBatch:
    low, high = np.searchsorted(left_out.rows, [start, end])
    if low == high:
        return batch
    keep = np.ones(len(batch), bool)
    keep[left_out.rows[low:high] - start] = False
    parts = (batch.reports, batch.probabilities, batch.groups, batch.pseudonyms)
    return ReportBatch(*(None if part is None else part[keep] for part in parts))  # type: ignore[arg-type]


def _plain(header: Header, batches: Iterable[ReportBatch]) -> Tally:
    """Tally all reports of a file."""
    plan = header.plan
    oracle = plan.oracle
    total = empty_tally(plan)
    support, received, weights = total.support.copy(), 0, total.weights
    for batch in batches:
        received += len(batch)
        if batch.probabilities is None:
            support += oracle._kernel.tally(batch.reports)
            continue
        counts, *sums = oracle._kernel.tally_personalized(batch.reports, batch.probabilities)
        support += counts
        weights = WeightedSums(*sums) + weights if weights is not None else None
    nodes, design = _nodes(plan, header.nodes, header.reports - received, header.design)
    return Tally(plan, support, received, nodes, weights=weights, design=design)


def _nodes(
    plan: Plan, nodes: int, left_out: int, design: DesignSums | None
) -> tuple[int, DesignSums | None]:
    """Leave out the nodes of repeated reports, where everyone reports."""
    if not left_out:
        return nodes, design
    if plan.participation.uniform_rate == 1.0:
        return nodes - left_out, design
    raise InvalidValueError(
        "repeats='first' needs a collection in which everyone takes part: of a random part of the "
        "persons nobody can tell how many are there twice; leave out repeated persons before the "
        "reports are made, with id_column"
    )


def _grouped(header: Header, groups: Groups, batches: Iterable[ReportBatch]) -> GroupedTally:
    """Tally the reports of each group of a file."""
    plan = header.plan
    number = len(groups.keys)
    total = GroupedTally(groups.names, {}, plan=plan)
    received = np.zeros(number, np.int64)
    before = 0
    for batch in batches:
        assert batch.groups is not None
        counts = np.bincount(batch.groups, minlength=number)
        received += counts
        before += len(batch)
        total = total.merge(_of_batch(plan, groups, batch, counts))
    left_out = header.reports - before
    _nodes(plan, header.nodes, left_out, header.design)
    tallies = {}
    for position, key in enumerate(groups.keys):
        counted = total[key] if key in total else empty_tally(plan)
        everyone = plan.participation.uniform_rate == 1.0
        nodes = counted.received if everyone and left_out else groups.nodes[position]
        tallies[key] = Tally(
            plan,
            counted.support,
            counted.received,
            nodes,
            weights=counted.weights,
            design=None if groups.designs is None else groups.designs[position],
        )
    return GroupedTally(groups.names, tallies, plan=plan)


def _of_batch(plan: Plan, groups: Groups, batch: ReportBatch, counts: Any) -> GroupedTally:
    """Tally a batch as if its nodes had been those that reported."""
    assert batch.groups is not None
    design = designs = None
    if batch.probabilities is not None:
        order = np.argsort(batch.groups, kind="stable")
        pieces = np.split(batch.probabilities[order], np.cumsum(counts)[:-1])
        designs = [DesignSums.of(np.ascontiguousarray(piece)) for piece in pieces]
        design = DesignSums.of(np.ascontiguousarray(batch.probabilities))
    reports = Reports._made(
        plan.oracle, plan.participation, batch.reports, len(batch), batch.probabilities, design
    )
    return tally_by_group(
        reports, batch.groups, counts, names=groups.names, keys=groups.keys, designs=designs
    )


def _regrouped(
    tally: Tally | GroupedTally, names: tuple[str, ...], partitions: dict[str, Part]
) -> GroupedTally:
    """Give a tally of a file the groups that are wanted, in their order."""
    if isinstance(tally, Tally):
        parts: list[tuple[dict[str, Part], Tally]] = [({}, tally)]
    else:
        kept = [name for name in names if name in tally.names]
        over = tally.over(*kept) if kept != list(tally.names) else tally
        parts = [(dict(zip(over.names, key, strict=True)), part) for key, part in over.items()]
    tallies: dict[Key, Tally] = {}
    for known, part in parts:
        key = tuple((partitions | known)[name] for name in names)
        tallies[key] = tallies[key].merge(part) if key in tallies else part
    return GroupedTally(names, tallies, plan=tally.plan)


def open_reports(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], *, partial: bool = False
) -> ReportSet:
    """Open files of reports.

    Parameters
    ----------
    paths
        Files that end in ``.parquet``, ``.arrow``, ``.ipc`` or ``.feather``, folders of them, which
        are searched through, or patterns (``"reports/2026-*/*.parquet"``); one or several.
    partial
        Whether a folder whose job is not complete is taken with the parts that are there.

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
    turnout.errors.InvalidValueError: paths: no file of reports fits 'nowhere/*.parquet'
    """
    files: list[_File] = []
    jobs: list[Job] = []
    given: list[Any] = (
        [paths]
        if isinstance(paths, (str, os.PathLike))
        else _arguments.items("paths", paths, "a path or paths")
    )
    if not given:
        raise InvalidValueError("paths must name at least one file of reports, got none")
    for each in given:
        if not isinstance(each, (str, os.PathLike)):
            raise InvalidTypeError(f"paths must be paths, got {_arguments.shown(each)}")
        found, of_jobs = _found(os.fspath(each), partial)
        files += found
        jobs += of_jobs
    real: dict[Path, Path] = {}
    for file in files:
        same = real.setdefault(file.path.resolve(), file.path)
        if same is not file.path:
            raise InvalidValueError(f"{file.path}: given twice; its reports would count twice")
    names = ", ".join(os.fspath(each) for each in given[:3]) + (", ..." if len(given) > 3 else "")
    return ReportSet(files, jobs, names)


def _found(text: str, partial: bool) -> tuple[list[_File], list[Job]]:
    path = Path(text)
    if path.is_dir():
        return _in_folder(path, partial)
    if path.exists() or not glob.has_magic(text):
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), text)
        return [_File(path, _partitions(path.parts[:-1]))], []
    # Path.glob takes no absolute pattern.
    places = sorted(map(Path, glob.glob(text, recursive=True)))  # noqa: PTH207
    files: list[_File] = []
    jobs: list[Job] = []
    for place in places:
        if place.is_dir():
            more, of_jobs = _in_folder(place, partial)
            files += more
            jobs += of_jobs
        elif place.suffix.lower() in _SUFFIXES:
            files.append(_File(place, _partitions(place.parts[:-1])))
    if not files and not jobs:
        raise InvalidValueError(f"paths: no file of reports fits {text!r}")
    return files, jobs


def _in_folder(folder: Path, partial: bool) -> tuple[list[_File], list[Job]]:
    files: list[_File] = []
    jobs: list[Job] = []
    for place, folders, names in os.walk(folder):
        here = Path(place)
        if STATE_FOLDER in folders:
            job = Job.read(here)
            if job is not None:
                _check_job(job, names, partial)
                jobs.append(job)
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for name in sorted(names):
            if Path(name).suffix.lower() in _SUFFIXES and not name.startswith((".", "_")):
                files.append(_File(here / name, _partitions(here.parts)))
    if not files and not jobs:
        raise InvalidValueError(f"paths: {str(folder)!r} holds no file of reports")
    return files, jobs


def _check_job(job: Job, names: Sequence[str], partial: bool) -> None:
    if not job.complete:
        if partial:
            return
        raise InvalidValueError(
            f"paths: the job in {str(job.folder)!r} is unfinished: resume goes on with it "
            "(partial=True takes the parts that are there)"
        )
    there = {name for name in names if name.startswith("part-")}
    wanted = {f"part-{number:05d}.parquet" for number in range(job.parts or 0)}
    if there != wanted and not partial:
        missing, more = sorted(wanted - there), sorted(there - wanted)
        problem = f"has {(more or missing)[0]}, which is not of its job"
        if missing:
            problem = (
                f"lacks {missing[0]}, which its job wrote: bring it back, it cannot be made again "
                "(partial=True takes the parts that are there)"
            )
        raise InvalidValueError(f"paths: {str(job.folder)!r} {problem}")


def _partitions(parts: Sequence[str]) -> tuple[tuple[str, Part], ...]:
    found = (_PARTITION.fullmatch(part) for part in parts)
    return tuple((match[1], _value(match[2])) for match in found if match is not None)


def _value(text: str) -> Part:
    if text == "__HIVE_DEFAULT_PARTITION__":
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        return datetime.date.fromisoformat(text) if len(text) == 10 else text
    except ValueError:
        return text


def tally(
    paths: Any,
    *,
    group_by: str | Sequence[str] | None = None,
    repeats: Repeats | None = None,
    workers: int | None = None,
    progress: bool = False,
    partial: bool = False,
) -> Any:
    """Tally files of reports.

    Parameters
    ----------
    paths, partial
        As for :func:`open_reports`; also a :class:`ReportSet`.
    group_by, repeats, workers, progress
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
    >>> from turnout.report_files import write_reports
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "monday.parquet")
    ...     write_reports(tn.DirectEncoding(1.0, 3).randomize([0, 1, 2]), path)
    ...     tn.pipeline.tally(folder).received
    3
    """
    reports = paths if isinstance(paths, ReportSet) else open_reports(paths, partial=partial)
    return reports.tally(group_by=group_by, repeats=repeats, workers=workers, progress=progress)


def empty_tally(plan: Plan) -> Tally:
    """Give the tally of nobody."""
    size = plan.domain.size
    support = np.zeros(size, plan.oracle.support_dtype)
    if plan.participation.uniform_rate is not None:
        return Tally(plan, support, 0, 0)
    zeros = np.zeros((size + 1, 2), np.uint64)
    weights = WeightedSums(zeros, zeros.copy())
    return Tally(plan, support, 0, 0, weights=weights, design=DesignSums(0, 0))


def empty_reports(plan: Plan) -> Reports:
    """Give the reports of nobody."""
    oracle = plan.oracle
    codes = np.empty((0, *oracle.report_shape), oracle.report_dtype)
    if plan.participation.uniform_rate is not None:
        return Reports._made(oracle, plan.participation, codes, 0)
    return Reports._made(oracle, plan.participation, codes, 0, np.empty(0), DesignSums(0, 0))


def _names(group_by: Any) -> tuple[str, ...]:
    if group_by is None:
        return ()
    names = (group_by,) if isinstance(group_by, str) else tuple(group_by)
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidTypeError(
            f"group_by must be a name or several, got {_arguments.shown(group_by)}"
        )
    return names


def _refuse_twice(seen: dict[tuple[str, int], Path], path: Path, header: Header) -> None:
    """Refuse two copies of a part: their persons would count twice."""
    if header.part is None:
        return
    same = seen.setdefault((header.part.job, header.part.number), path)
    if same is not path:
        raise InvalidValueError(f"{path}: holds the reports of {same}, which would count twice")


def check_plans(first: object, plan: Plan, second: object, other: Plan) -> None:
    """Refuse two files, or tallies, of different plans.

    Raises
    ------
    PlanMismatchError
        If the plans differ.
    """
    try:
        plan.check_same(other, str(second))
    except PlanMismatchError as error:
        difference = str(error).partition(" was made under another plan: ")[2]
        raise PlanMismatchError(
            f"{first} and {second} were made under different plans: {difference}"
        ) from None
