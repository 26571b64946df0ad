"""Files of reports: their locations, and counting each in batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from turnout._documents import canonical
from turnout._types import Integers
from turnout.collecting.groups.counting import counts_by_group
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.keys import Key, Part, key_to_json
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.origin import PIECE, Origin
from turnout.collecting.plan import Plan
from turnout.collecting.randomizer import say_improbable
from turnout.collecting.report_files import MAX_MEMORY, ReportFile
from turnout.collecting.report_files.containers import Stretch
from turnout.collecting.report_files.header import Groups, Header
from turnout.collecting.report_files.reading import ReportBatch
from turnout.collecting.sums import DesignSums
from turnout.collecting.tally import BaseTally
from turnout.errors import InvalidValueError, MemoryLimitError
from turnout.pipeline.encoding import Totals
from turnout.pipeline.job import Job
from turnout.pipeline.randomizing import designs_by_group
from turnout.pipeline.sources.files import (
    partition_types,
    partition_value,
    partitions_of,
    searched,
)
from turnout.pipeline.threads import in_flight

_SUFFIXES: Final = (".parquet", ".arrow", ".ipc", ".feather")


@dataclass(frozen=True)
class PlacedFile:
    """A file of reports.

    Attributes
    ----------
    path
        Where it is.
    partitions
        Names and values of the folders ``name=value`` on the way to it.
    """

    path: Path
    partitions: tuple[tuple[str, Part], ...]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the absolute path: other machines have other working folders."""
        return PlacedFile, (self.path.absolute(), self.partitions)


def placed_files(
    places: Sequence[str], *, partial: bool, by_file: str | None = None
) -> tuple[list[PlacedFile], list[Job]]:
    """Find the files of reports at some paths, in order, and the jobs that wrote them.

    Parameters
    ----------
    places
        Files, folders and patterns.
    partial
        Whether a folder whose job is not complete is taken with the parts that are there.
    by_file
        The name under which each file has its own name as a value, and a part of a job that of the
        job's folder.

    Raises
    ------
    InvalidValueError
        If there is no file, one is duplicated, or the job of a folder is not complete or lacks
        parts.
    OSError
        If a place does not exist, or a folder cannot be read.
    """
    partitions: dict[Path, Partitions] = {}
    jobs: list[Job] = []
    real: dict[Path, Path] = {}
    for text in places:
        empty = True
        for root, place, files in searched("paths", text, _holds_reports):
            job = None if place is None else Job.read(place)
            if job is not None:
                _check_job(job, partial)
                jobs.append(job)
            for path in files:
                _refuse_repeated(path, real)
                own = path.stem if job is None else job.folder.resolve().name
                partitions[path] = partitions_of(root, path) + _named_by_file(by_file, own)
            empty = empty and job is None and not files
        if empty:
            raise InvalidValueError(f"paths: {text!r} holds no file of reports")
    return placed(partitions), jobs


#: The names and texts of what a file is in.
Partitions = list[tuple[str, str | None]]


def placed(partitions: Mapping[Path, Partitions]) -> list[PlacedFile]:
    """Return the files with the values of their folders, as numbers or dates if all values are.

    Raises
    ------
    InvalidValueError
        If a file has two values of a name.
    """
    for path, pairs in partitions.items():
        names = [name for name, _ in pairs]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidValueError(
                f"{path}: {twice!r} is duplicated; by_file must differ from the names of "
                "folders NAME=VALUE"
            )
    kinds = partition_types(partitions.values())
    return [
        PlacedFile(
            path, tuple((name, partition_value(text, kinds[name]).as_py()) for name, text in pairs)
        )
        for path, pairs in partitions.items()
    ]


def named_files(
    places: Sequence[str], wanted: Callable[[Path], object], by_file: str | None
) -> list[PlacedFile]:
    """Find files of other formats at some paths, in order, each with its name as a value.

    Parameters
    ----------
    places
        Files, folders and patterns; in a folder, and of a pattern, only what is ``wanted``.
    wanted
        Says of a file whether it is one of these.
    by_file
        As of :func:`placed_files`.

    Raises
    ------
    InvalidValueError, OSError
        As :func:`placed_files`.
    """
    found: dict[Path, Partitions] = {}
    real: dict[Path, Path] = {}
    for text in places:
        for root, _, files in searched("paths", text, wanted):
            for path in files:
                _refuse_repeated(path, real)
                found[path] = partitions_of(root, path) + _named_by_file(by_file, path.stem)
    return placed(found)


def _refuse_repeated(path: Path, real: dict[Path, Path]) -> None:
    if real.setdefault(path.resolve(), path) is not path:
        raise InvalidValueError(f"{path}: is duplicated; its reports would count twice")


def _named_by_file(by_file: str | None, own: str) -> Partitions:
    return [] if by_file is None else [(by_file, own)]


def _holds_reports(path: Path) -> bool:
    return path.suffix.lower() in _SUFFIXES


def _check_job(job: Job, partial: bool) -> None:
    if not job.complete:
        if partial:
            return
        raise InvalidValueError(
            f"paths: the job in {str(job.folder)!r} is unfinished: pass resume to "
            "continue it, or partial to count the finished parts"
        )
    there = {path.name for path in job.folder.glob("part-*")}
    wanted = {f"part-{number:05d}.parquet" for number in range(job.parts or 0)}
    if there != wanted and not partial:
        missing, more = sorted(wanted - there), sorted(there - wanted)
        problem = f"has {(more or missing)[0]}, which is not of its job"
        if missing:
            problem = (
                f"lacks {missing[0]}, which its job wrote: restore it, because it cannot be made "
                "again (partial counts the parts that exist)"
            )
        raise InvalidValueError(f"paths: {str(job.folder)!r} {problem}")


AnyTally = BaseTally | GroupedTally[Any]

#: How many arrays of counts there are at once in each thread that counts a file.
_COPIES: Final = 4


@dataclass(frozen=True)
class Facts:
    """The header facts of a file that differ between files.

    Attributes
    ----------
    identity
        What tells it from all others, and not from its copies.
    plan
        The fingerprint of its plan.
    reports
        How many there are.
    seconds
        How long they took to count.
    job
        The name of the job of which the file is a part; empty if it is not part of a job.
    rows
        How many rows were read for it.
    """

    identity: str
    plan: str
    reports: int
    seconds: float
    job: str = ""
    rows: int = 0


@dataclass(frozen=True)
class FileCounter:
    """A counter of files of reports.

    Attributes
    ----------
    names
        The groups that are wanted; none for one tally.
    max_memory
        Bytes of memory that a file may ask for.
    threads
        How many stretches of a file are counted at once, if the memory allows it.
    """

    names: tuple[str, ...]
    max_memory: int = MAX_MEMORY
    threads: int = 1

    def __call__(
        self, _secrets: object, item: tuple[PlacedFile, Integers | None]
    ) -> tuple[Facts, AnyTally]:
        """Count the reports of a file, except those at some positions.

        Raises
        ------
        InvalidValueError
            If the file has no such group.
        CorruptDataError
            If the file was altered.
        MemoryLimitError
            If its answers and groups take up more memory than they may, or than there is.
        """
        file, left_out = item
        try:
            return self._counted(file, left_out)
        except MemoryLimitError:
            raise
        except MemoryError as error:
            raise MemoryLimitError(f"{file.path}: there is not enough memory: {error}") from error

    def _counted(self, file: PlacedFile, left_out: Integers | None) -> tuple[Facts, AnyTally]:
        began = time.perf_counter()
        with ReportFile(file.path, max_memory=self.max_memory) as opened:
            header = opened.header
            wanted = [name for name in self.names if name not in dict(file.partitions)]
            known = header.groups.names if header.groups is not None else ()
            for name in wanted:
                if name not in known:
                    raise InvalidValueError(
                        f"group_by: {file.path} has no group {name!r}, and is in no folder "
                        f"'{name}=...'; its groups are {list(known)}"
                    )
            groups, nowhere = header.groups, header.of_no_group
            if groups is None or not wanted:
                design = None if header.design is None else (header.design,)
                groups, nowhere = Groups((), ((),), (header.nodes,), design), NOTHING
                without = [header.left_out]
            else:
                without = list(groups.left_out())
            counted = self._stretches(opened, left_out, groups)
        tallies: dict[Key, BaseTally] = {}
        whole = Origin.named(header.identity)
        for place, one in _named(header, groups, counted, without):
            values = dict(file.partitions) | dict(zip(groups.names, place, strict=True))
            key = tuple(values[name] for name in self.names)
            own = whole if not groups.names else _of_group(header.identity, groups, place)
            tally = replace(one, origin=own)
            tallies[key] = tallies[key].merge(tally) if key in tallies else tally
        seconds = time.perf_counter() - began
        facts = Facts(
            header.identity,
            header.plan.fingerprint,
            header.reports,
            seconds,
            "" if header.part is None else header.part.job,
            Totals.of_header(header).rows,
        )
        if not self.names:
            return facts, tallies[()]
        more: dict[str, Any] = {"plan": header.plan, "of_no_group": nowhere}
        return facts, GroupedTally(self.names, tallies, origin=whole, **more)

    def _stretches(
        self, opened: ReportFile, left_out: Integers | None, groups: Groups
    ) -> list[BaseTally]:
        """Tally the reports of each group of a file as if all their nodes reported."""
        plan, stretches = opened.header.plan, opened._stretches()
        # First: a tally, be it an empty one, has room for all answers that the file names.
        threads = min(self.threads, len(stretches), _memory_for(opened, stretches, groups))
        empty: list[BaseTally] = [plan.oracle.tally_type.empty(plan)] * len(groups.keys)

        def count(stretch: Stretch) -> tuple[int, list[BaseTally]]:
            improbable, total, first = 0, empty, stretch.start
            for batch in opened.batches(stretch=stretch):
                end = first + len(batch)
                kept = _without(batch, left_out, first, end)
                improbable += int(np.count_nonzero(plan.oracle.improbable(kept.reports)))
                total, first = _merged(total, _of_batch(plan, groups, kept)), end
            return improbable, total

        improbable, total = 0, empty
        counted = in_flight(count, stretches, threads) if threads > 1 else map(count, stretches)
        for odd, tallies in counted:
            improbable, total = improbable + odd, _merged(total, tallies)
        say_improbable(improbable)
        return total


def _memory_for(opened: ReportFile, stretches: list[Stretch], groups: Groups) -> int:
    """Return the number of threads that may count a file, however small it is.

    Raises
    ------
    MemoryLimitError
        If it names more answers and groups than fit in any case.
    """
    plan, most = opened.header.plan, opened._most_memory
    what = f"counts of {plan.domain.size:,} answers"
    number = len(groups.keys) if groups.names else 0
    if number:
        what += f" in each of {number:,} groups"
    needed: int = (_COPIES + number) * plan.oracle.tally_type._bytes_of_sums(plan)
    opened._check_memory(needed, what)
    # What has been counted waits for its turn; each thread takes up pages of its own.
    largest = max((stretch.largest for stretch in stretches), default=0)
    return max(most // max(2 * needed, largest), 1)


def _without(batch: ReportBatch, left_out: Integers | None, start: int, end: int) -> ReportBatch:
    if left_out is None:
        return batch
    low, high = np.searchsorted(left_out, [start, end])
    if low == high:
        return batch
    keep = np.ones(len(batch), bool)
    keep[left_out[low:high] - start] = False
    parts = (batch.reports, batch.probabilities, batch.groups, batch.pseudonyms)
    return ReportBatch(*(None if part is None else part[keep] for part in parts))  # type: ignore[arg-type]


def _named(
    header: Header, groups: Groups, counted: Sequence[BaseTally], without: Sequence[LeftOut]
) -> Iterator[tuple[Key, BaseTally]]:
    """Set the numbers of the header in the tally of each group of a file."""
    plan, nodes = header.plan, groups.nodes
    if header.reports > sum(tally.received for tally in counted):
        if not plan._everyone_reports:
            raise InvalidValueError(
                "duplicates='first' needs a collection in which everyone takes part: "
                "with random participation, nobody can tell how many persons are "
                "duplicated. Drop duplicate rows before you make the reports, with "
                "id_column"
            )
        nodes = tuple(tally.received for tally in counted)
        further = [LeftOut(duplicates=a - b) for a, b in zip(groups.nodes, nodes, strict=True)]
        without = [one + more for one, more in zip(without, further, strict=True)]
    designs = groups.designs or (None,) * len(nodes)
    numbers = zip(nodes, designs, without, strict=True)
    for key, tally, (number, design, each) in zip(groups.keys, counted, numbers, strict=True):
        yield key, replace(tally, plan=plan, nodes=number, design=design, left_out=each)


def _of_group(identity: str, groups: Groups, key: Key) -> Origin:
    """Name the reports of a group of a file."""
    return Origin.named(identity, canonical(dict(zip(groups.names, key_to_json(key), strict=True))))


def _merged(some: Sequence[BaseTally], others: Sequence[BaseTally]) -> list[BaseTally]:
    return [one.merge(other) for one, other in zip(some, others, strict=True)]


def _of_batch(plan: Plan, groups: Groups, batch: ReportBatch) -> list[BaseTally]:
    """Tally each group of a batch as if its nodes had been those that reported."""
    oracle, index, probabilities = plan.oracle, batch.groups, batch.probabilities
    sizes: Any
    designs: Sequence[DesignSums | None]
    if not groups.names:
        sizes, designs = [len(batch)], [None]
        if probabilities is not None:
            designs = [DesignSums.of(np.ascontiguousarray(probabilities))]
        counts = [oracle.count_reports(batch.reports, probabilities)]
    else:
        assert index is not None
        number = len(groups.keys)
        sizes = np.bincount(index, minlength=number)
        designs = designs_by_group(probabilities, index, sizes) or [None] * number
        counts = counts_by_group(oracle, batch.reports, probabilities, index, sizes)
    of = oracle.tally_type.of
    each = zip(counts, map(int, sizes), designs, strict=True)
    return [of(plan, *counted, origin=PIECE) for counted in each]
