"""Counting one file of reports, batch by batch."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from turnout import metrics
from turnout.collecting.drawing import Drawn
from turnout.collecting.groups.counting import tally_by_group
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.improbable import say_improbable
from turnout.collecting.keys import Key, Part
from turnout.collecting.plan import Plan
from turnout.collecting.report_files import MAX_MEMORY, Groups, Header, ReportBatch, ReportFile
from turnout.collecting.reports import Reports
from turnout.collecting.sums import DesignSums
from turnout.collecting.tally import BaseTally
from turnout.errors import InvalidValueError, MemoryLimitError
from turnout.pipeline.report_places import PlacedFile

__all__ = ["Counter", "LeftOut", "empty_reports"]

AnyTally = BaseTally | GroupedTally[Any]

#: How many arrays of counts there are at once while a file is counted.
_COPIES: Final = 4


@dataclass
class LeftOut:
    """Reports that do not count.

    Attributes
    ----------
    starts
        For each file the number of its first report among the reports of all files.
    rows
        The numbers of the reports that do not count, in order.
    folder
        What holds the file that the rows are in, if they are in one.
    """

    starts: list[int]
    rows: Any
    folder: Any


class Counter:
    """Counts one file after another.

    Parameters
    ----------
    names
        The groups that are wanted; none for one tally.
    left_out
        The reports that do not count, or None.
    max_memory
        Bytes of memory that a file may ask for.
    """

    def __init__(
        self, names: tuple[str, ...], left_out: LeftOut | None, max_memory: int = MAX_MEMORY
    ) -> None:
        self._names, self._left_out, self._max_memory = names, left_out, max_memory

    def count(self, file: PlacedFile, start: int) -> tuple[Header, AnyTally]:
        """Count the reports of a file, of which ``start`` is the number of the first.

        Raises
        ------
        InvalidValueError
            If the file has no such group.
        CorruptDataError
            If the file was altered.
        MemoryLimitError
            If its answers and groups take up more memory than they may, or than there is.
        """
        try:
            return self._counted(file, start)
        except MemoryLimitError:
            raise
        except MemoryError as error:
            raise MemoryLimitError(f"{file.path}: there is not enough memory: {error}") from error

    def _counted(self, file: PlacedFile, start: int) -> tuple[Header, AnyTally]:
        began = time.perf_counter()
        with ReportFile(file.path, max_memory=self._max_memory) as opened:
            header = opened.header
            wanted = [name for name in self._names if name not in dict(file.partitions)]
            known = header.groups.names if header.groups is not None else ()
            for name in wanted:
                if name not in known:
                    raise InvalidValueError(
                        f"group_by: {file.path} has no group {name!r}, and is in no folder "
                        f"'{name}=...'; its groups are {list(known)}"
                    )
            groups = len(header.groups.keys) if wanted and header.groups is not None else 0
            _check_memory(opened, groups)
            batches = self._batches(opened, start)
            tally: AnyTally
            if wanted and header.groups is not None:
                tally = _grouped(header, header.groups, batches)
            else:
                tally = _plain(header, batches)
        if self._names:
            tally = _regrouped(tally, self._names, dict(file.partitions))
        metrics.observe("file_tallied", reports=header.reports, seconds=time.perf_counter() - began)
        return header, tally

    def _batches(self, opened: ReportFile, start: int) -> Iterator[ReportBatch]:
        improbable = 0
        for batch in opened.batches():
            end = start + len(batch)
            kept = batch if self._left_out is None else _without(batch, self._left_out, start, end)
            improbable += int(opened.header.plan.oracle.improbable(kept.reports).sum())
            yield kept
            start = end
        say_improbable(improbable)


def _check_memory(opened: ReportFile, groups: int) -> None:
    """Refuse a file, be it of a few bytes, that names more answers and groups than fit."""
    plan = opened.header.plan
    what = f"counts of {plan.domain.size:,} answers"
    if groups:
        what += f" in each of {groups:,} groups"
    length = plan.oracle.tally_type.bytes_of_sums(plan)
    opened.check_memory((_COPIES + groups) * length, what)


def _without(batch: ReportBatch, left_out: LeftOut, start: int, end: int) -> ReportBatch:
    low, high = np.searchsorted(left_out.rows, [start, end])
    if low == high:
        return batch
    keep = np.ones(len(batch), bool)
    keep[left_out.rows[low:high] - start] = False
    parts = (batch.reports, batch.probabilities, batch.groups, batch.pseudonyms)
    return ReportBatch(*(None if part is None else part[keep] for part in parts))  # type: ignore[arg-type]


def _plain(header: Header, batches: Iterable[ReportBatch]) -> BaseTally:
    """Tally all reports of a file."""
    plan = header.plan
    total: BaseTally = plan.oracle.tally_type.empty(plan)
    for batch in batches:
        total = total.merge(_of_batch(plan, batch))
    left_out = header.reports - total.received
    nodes, design = _nodes(plan, header.nodes, left_out, header.design)
    return total.under(plan, nodes=nodes, design=design)


def _nodes(
    plan: Plan, nodes: int, left_out: int, design: DesignSums | None
) -> tuple[int, DesignSums | None]:
    """Leave out the nodes of repeated reports, where everyone reports."""
    if not left_out:
        return nodes, design
    if plan.everyone_reports:
        return nodes - left_out, design
    raise InvalidValueError(
        "duplicates='first' needs a collection in which everyone takes part: of a random part of "
        "the persons nobody can tell how many are there twice; leave out further rows of a person "
        "before the reports are made, with id_column"
    )


def _grouped(header: Header, groups: Groups, batches: Iterable[ReportBatch]) -> GroupedTally[Any]:
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
        total = total.merge(_groups_of_batch(plan, groups, batch, counts))
    left_out = header.reports - before
    _nodes(plan, header.nodes, left_out, header.design)
    tallies = {}
    for position, key in enumerate(groups.keys):
        counted = total[key] if key in total else plan.oracle.tally_type.empty(plan)
        everyone = plan.everyone_reports
        nodes = counted.received if everyone and left_out else groups.nodes[position]
        design = None if groups.designs is None else groups.designs[position]
        tallies[key] = counted.under(plan, nodes=nodes, design=design)
    return GroupedTally(groups.names, tallies, plan=plan)


def _of_batch(plan: Plan, batch: ReportBatch) -> BaseTally:
    """Tally a batch as if its nodes had been those that reported."""
    counts = plan.oracle.count_reports(batch.reports, batch.probabilities)
    tally: BaseTally = plan.oracle.tally_type.of(plan, counts, len(batch), _design(batch))
    return tally


def _groups_of_batch(
    plan: Plan, groups: Groups, batch: ReportBatch, counts: Any
) -> GroupedTally[Any]:
    """Tally each group of a batch as if its nodes had been those that reported."""
    assert batch.groups is not None
    designs = None
    if batch.probabilities is not None:
        order = np.argsort(batch.groups, kind="stable")
        pieces = np.split(batch.probabilities[order], np.cumsum(counts)[:-1])
        designs = [DesignSums.of(np.ascontiguousarray(piece)) for piece in pieces]
    drawn = Drawn(batch.reports, batch.probabilities)
    reports = Reports.made(plan.oracle, plan.participation, drawn, len(batch), _design(batch))
    return tally_by_group(
        reports, batch.groups, counts, names=groups.names, keys=groups.keys, designs=designs
    )


def _design(batch: ReportBatch) -> DesignSums | None:
    if batch.probabilities is None:
        return None
    return DesignSums.of(np.ascontiguousarray(batch.probabilities))


def _regrouped(
    tally: AnyTally, names: tuple[str, ...], partitions: dict[str, Part]
) -> GroupedTally[Any]:
    """Give a tally of a file the groups that are wanted, in their order."""
    if isinstance(tally, BaseTally):
        parts: list[tuple[dict[str, Part], BaseTally]] = [({}, tally)]
    else:
        kept = [name for name in names if name in tally.names]
        over = tally.over(*kept) if kept != list(tally.names) else tally
        parts = [(dict(zip(over.names, key, strict=True)), part) for key, part in over.items()]
    tallies: dict[Key, BaseTally] = {}
    for known, part in parts:
        key = tuple((partitions | known)[name] for name in names)
        tallies[key] = tallies[key].merge(part) if key in tallies else part
    return GroupedTally(names, tallies, plan=tally.plan)


def empty_reports(plan: Plan) -> Reports:
    """Give the reports of nobody."""
    oracle = plan.oracle
    codes = np.empty((0, *oracle.report_shape), oracle.report_dtype)
    if plan.participation.uniform_rate is not None:
        return Reports.made(oracle, plan.participation, Drawn(codes), 0)
    none = Drawn(codes, np.empty(0))
    return Reports.made(oracle, plan.participation, none, 0, DesignSums(0, 0))
