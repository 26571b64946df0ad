"""Reports to tallies, on a cluster."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import turnout
from turnout import _arguments, metrics
from turnout._extras import require
from turnout._progress import track
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.kind import Kind
from turnout.collecting.plan import Plan
from turnout.collecting.report_files import MAX_MEMORY, ReportFile
from turnout.collecting.report_files.reading import reported
from turnout.collecting.tally import BaseTally, read_tally
from turnout.errors import InvalidTypeError, InvalidValueError, TurnoutError
from turnout.participation import Participation, taking_part_in
from turnout.pipeline.processing import of_nobody
from turnout.pipeline.report_counting import Counter, LeftOut
from turnout.pipeline.report_set import (
    Duplicates,
    ReportSet,
    check_plans,
    group_names,
    open_reports,
    refuse_twice,
)
from turnout.pipeline.sources.frames import in_order
from turnout.ray.tasks import RETRIES, MergeTree, connected, flight_of, prepare_worker, results
from turnout.ray.work import merged


def tally(
    reports: Any,
    oracle: Kind | None = None,
    participation: Participation | float | None = None,
    *,
    nodes: int | None = None,
    group_by: str | Sequence[str] | None = None,
    duplicates: Duplicates | None = None,
    partial: bool = False,
    address: str | None = None,
    workers: int | None = None,
    progress: bool = False,
    max_memory: int = MAX_MEMORY,
) -> Any:
    """Tally reports on a Ray cluster.

    A task tallies a file, or a block of a data set; tallies are merged on the cluster, sixteen at
    a time, and one comes to the driver.

    Parameters
    ----------
    reports
        Files of reports, folders of them or patterns, as :func:`turnout.pipeline.open_reports`
        takes them, or the :class:`turnout.pipeline.ReportSet` that :func:`turnout.ray.randomize`
        returned: they are read by the tasks. Or a ``ray.data.Dataset`` with a column ``report`` as
        in report files, from wherever; what such files say of themselves is then not there.
    oracle
        What the reports of a data set were made by. With files it must be theirs, if it is given.
    participation
        Who took part in what a data set holds; everyone by default.
    nodes
        How many persons could have taken part in what a data set holds; needed unless everyone did.
    group_by
        Columns of groups in the files, or names of folders ``name=value`` that they are in.
    duplicates
        What happens to a second report with the same pseudonym: ``"refuse"`` or ``"first"``. The
        driver looks for them.
    partial
        Whether a folder whose job is not complete is taken with the parts that are there.
    address, workers, progress
        As for :func:`turnout.ray.randomize`.
    max_memory
        As for :func:`turnout.pipeline.tally`.

    Returns
    -------
    Tally or GroupedTally
        What :func:`turnout.pipeline.tally` gives.

    Raises
    ------
    PlanMismatchError
        If files have different plans, or another one than ``oracle`` has.
    CorruptDataError
        If a file was altered.
    InvalidValueError
        If a file is there twice, if something that files say is missing of a data set, if a report
        cannot be one of ``oracle``, or if this process is connected to another cluster.
    InvalidTypeError
        If an argument is of the wrong type.
    MemoryLimitError
        If a file asks for more memory than it may, or than there is.
    WorkerLostError
        If the worker of a task died time and again.
    MissingExtraError
        If Ray is not installed.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> import turnout as tn
    >>> tn.ray.tally("/shared/reports", group_by="day")  # doctest: +SKIP
    """
    if oracle is not None:
        _arguments.instance("oracle", oracle, Kind, "an oracle")
    with connected(address) as ray:
        flight = flight_of(ray, workers)
        if isinstance(reports, require("ray.data", "ray").Dataset):
            if group_by is not None or duplicates is not None or partial:
                raise InvalidValueError(
                    "group_by, duplicates and partial are for files of reports; a data set does "
                    "not say how many persons each group has"
                )
            plan = _plan_of(oracle, participation)
            return _with_nodes(_of_dataset(ray, reports, plan, progress), nodes)
        if participation is not None or nodes is not None:
            raise InvalidValueError("participation and nodes stand in the files of reports")
        found = (
            reports if isinstance(reports, ReportSet) else open_reports(reports, partial=partial)
        )
        limit = _arguments.integer("max_memory", max_memory, least=1)
        options: dict[str, Any] = {"max_memory": limit, "flight": flight, "progress": progress}
        return _of_files(ray, found, oracle, group_by, duplicates, **options)


@dataclass(frozen=True)
class _Facts:
    """What a file says of itself, but for what all files say alike."""

    identity: str
    fingerprint: str
    reports: int
    seconds: float


def _of_files(
    ray: Any,
    reports: ReportSet,
    oracle: Kind | None,
    group_by: Any,
    duplicates: Duplicates | None,
    *,
    max_memory: int,
    flight: int,
    progress: bool,
) -> Any:
    names = group_names(group_by)
    files = [replace(file, path=file.path.absolute()) for file in reports.files]
    if oracle is not None:
        plan = reports.plan
        Plan(oracle, plan.participation).check_same(plan, "reports")
    left_out = (
        [None] * len(files) if duplicates is None else _left_out(reports, duplicates, max_memory)
    )
    count = ray.remote(num_cpus=1, max_retries=RETRIES, num_returns=2)(_count)
    tree: MergeTree[BaseTally | GroupedTally] = MergeTree(
        ray, ray.remote(num_cpus=1, max_retries=RETRIES)(merged)
    )

    def submit(item: tuple[Any, Any]) -> Any:
        facts, counted = count.remote(turnout.__version__, names, max_memory, *item)
        tree.add(counted)
        return facts

    seen: dict[str, Any] = {}
    first: Any = None
    # Fingerprints of plans that are equal to that of the first file: serial number and end, which
    # do not change a report, may be others.
    alike: set[str] = set()
    work = zip(files, left_out, strict=True)
    with tree, contextlib.closing(results(ray, submit, work, flight)) as each:
        for (file, _), facts in track(each, "tallying", progress, len(files)):
            metrics.observe("file_tallied", reports=facts.reports, seconds=facts.seconds)
            refuse_twice(seen, file.path, facts.identity)
            first = first or file.path
            if alike and facts.fingerprint not in alike:
                _check_plans(*sorted([first, file.path]))
            alike.add(facts.fingerprint)
    total = tree.result()
    return of_nobody(reports.plan, names) if total is None else total


def _left_out(reports: ReportSet, duplicates: Duplicates, max_memory: int) -> Iterator[Any]:
    """Say for each file which of its reports do not count."""
    found = reports.duplicate_reports(duplicates, max_memory=max_memory)
    ends = [*found.starts[1:], np.iinfo(np.int64).max]
    for start, end in zip(found.starts, ends, strict=True):
        low, high = np.searchsorted(found.rows, [start, end])
        # Rows lie in a file that only the driver has.
        yield LeftOut([start], np.array(found.rows[low:high]), None)


def _check_plans(first: Any, second: Any) -> None:
    with ReportFile(first) as one, ReportFile(second) as other:
        check_plans(first, one.header.plan, second, other.header.plan)


def _count(
    version: str, names: tuple[str, ...], max_memory: int, file: Any, left_out: Any
) -> tuple[_Facts, BaseTally | GroupedTally]:
    prepare_worker(version)
    began = time.perf_counter()
    start = 0 if left_out is None else left_out.starts[0]
    header, counted = Counter(names, left_out, max_memory).count(file, start)
    seconds = time.perf_counter() - began
    return _Facts(header.identity, header.plan.fingerprint, header.reports, seconds), counted


def _plan_of(oracle: Kind | None, participation: Participation | float | None) -> Plan:
    if oracle is None:
        raise InvalidTypeError("oracle must be given with a data set, which does not name it")
    plan = Plan(oracle, taking_part_in(participation))
    if plan.participation.uniform_rate is None:
        raise InvalidValueError(
            "participation must be Everyone() or Bernoulli(...) with a data set, got "
            f"{_arguments.shown(participation)}: the sums of all persons' probabilities stand in "
            "files of reports only"
        )
    return plan


def _of_dataset(ray: Any, dataset: Any, plan: Plan, progress: bool) -> BaseTally:
    """Tally a data set as it is computed, block by block."""
    counting = functools.partial(_count_batch, version=turnout.__version__, plan=plan)
    with in_order(dataset.context, progress), _unwrapped(ray):
        columns = list(dataset.columns() or ())
        if columns and "report" not in columns:
            raise InvalidValueError(
                f"the Ray data set has no column 'report'; its columns are {columns}"
            )
        counted = dataset.map_batches(
            counting, batch_format="pyarrow", batch_size=None, zero_copy_batch=True
        ).materialize()
        tree: MergeTree[Any] = MergeTree(
            ray, ray.remote(num_cpus=1, max_retries=RETRIES)(_merge_tables)
        )
        for reference in counted.to_arrow_refs():
            tree.add(reference)
        table = tree.result()
    found = None if table is None else _sum_of([table])
    return plan.oracle.tally_type.empty(plan) if found is None else found


def _count_batch(table: Any, *, version: str, plan: Plan) -> Any:
    prepare_worker(version)
    pa = require("pyarrow", "ray")
    found = reported(table, plan.oracle)
    plan.oracle.check_reports(found)
    counts = plan.oracle.count_reports(found)
    counted = plan.oracle.tally_type.of(plan, counts, len(found))
    return pa.table({"tally": pa.array([counted.to_bytes()], pa.large_binary())})


def _merge_tables(*tables: Any) -> Any:
    pa = require("pyarrow", "ray")
    total = _sum_of(tables)
    rows = [] if total is None else [total.to_bytes()]
    return pa.table({"tally": pa.array(rows, pa.large_binary())})


def _sum_of(tables: Sequence[Any]) -> BaseTally | None:
    rows = [row for table in tables if table.num_rows for row in table["tally"].to_pylist()]
    return merged(*map(read_tally, rows)) if rows else None


def _with_nodes(counted: BaseTally, nodes: int | None) -> BaseTally:
    if nodes is None:
        if counted.participation.uniform_rate != 1.0:
            raise InvalidValueError(
                "nodes must be given with a data set: how many persons could have taken part"
            )
        return counted
    return counted.under(counted.plan, nodes=nodes)


@contextlib.contextmanager
def _unwrapped(ray: Any) -> Iterator[None]:
    """Raise what a function raised, which Ray Data wraps."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, TurnoutError):
            raise error.cause from None
        raise
