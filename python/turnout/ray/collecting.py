"""Randomizing, collecting and tallying on a cluster."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import turnout
from turnout import _arguments
from turnout._extras import require
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.kind import Kind
from turnout.collecting.origin import PIECE
from turnout.collecting.plan import Plan
from turnout.collecting.report_files import MAX_MEMORY
from turnout.collecting.report_files.reading import reported
from turnout.collecting.tally import BaseTally, read_tally
from turnout.errors import InvalidTypeError, InvalidValueError, TurnoutError
from turnout.participation import Participation, taking_part_in
from turnout.pipeline.answers import Answers
from turnout.pipeline.columns import digested
from turnout.pipeline.flight import Part
from turnout.pipeline.report_set import Duplicates, ReportSet, open_reports, tally_files
from turnout.pipeline.running import run_collection, run_job
from turnout.pipeline.scanning import scan
from turnout.pipeline.sources import BLOCK, open_source
from turnout.pipeline.sources.frames import in_order
from turnout.ray.cluster import FAN_IN, Cluster, connected, merged, prepare_worker
from turnout.ray.datasets import DatasetSource

_LOGGER = logging.getLogger(__name__)


def randomize(
    dataset: Any,
    column: str,
    oracle: Kind,
    participation: Participation | float | None = None,
    *,
    output: str | os.PathLike[str],
    seed: int | None = None,
    resume: bool = False,
    address: str | None = None,
    workers: int | None = None,
    progress: bool = False,
    **options: Any,
) -> ReportSet:
    """Randomize answers into a folder of report files on a Ray cluster, in parts.

    The folder, its files and their reports are the same as with :func:`turnout.pipeline.randomize`.
    The same rows in the same order with the same seed give the same reports, and each function can
    resume a job that the other began. All noise of a job comes from its secret, and each block has
    its own streams. If a worker dies or a result is lost, the part is made again, bit by bit the
    same. So nobody is ever randomized twice. The first finished file of a part is kept.

    The driver sends the secret to the workers as an argument of each task. Encrypt the cluster's
    connections (``RAY_USE_TLS``) unless its network is your own.

    Parameters
    ----------
    dataset
        A ``ray.data.Dataset``, or any data that :func:`turnout.pipeline.scan` accepts. The tasks
        themselves read Parquet and Arrow files, which must be visible to all machines of the
        cluster. The driver reads data that only it can read, such as CSV files. A data set is
        computed once, in the order of its rows, and stays in the object store until the end: a
        shuffle or a sample is drawn before any noise.
    column
        The column of answers, one row for each person.
    oracle
        The oracle that randomizes answers.
    participation
        Who takes part: everyone (default) or a common rate. Omit it if there is a
        ``probability_column``.
    output
        The folder for the reports, on storage that all machines of the cluster share: a new or an
        empty one, or the folder of the job to resume.
    seed
        For tests and simulations only: an integer in [0, 2^64) that makes the reports reproducible.
    resume
        Whether to resume the job in the folder, if there is one. The answers must be the same; a
        data set of Ray is compared row by row.
    address
        The address of a running cluster. The default is the cluster that this process is connected
        to, or the one of ``RAY_ADDRESS``. If there is neither, Ray starts on this machine until the
        call returns.
    workers
        The number of tasks in flight; by default twice the number of CPUs of the cluster.
    progress
        Whether work that takes more than two seconds shows a bar on standard error.
    **options
        The other arguments of :func:`turnout.pipeline.scan`: ``missing``, ``id_column``,
        ``group_by`` and so on. With ``id_column`` the driver reads that column once to find the
        persons with several rows.

    Returns
    -------
    ReportSet
        The reports that were written.

    Raises
    ------
    UnknownLabelError, CodeOutsideDomainError
        If an answer is not in the domain.
    InvalidValueError
        If the folder contains something else, or a job with other answers; if it is not shared; if
        an answer is refused; if this process is connected to another cluster.
    PlanMismatchError
        If the job in the folder has another plan.
    InvalidTypeError
        If an argument is of the wrong type.
    CorruptDataError
        If a file was altered, or Ray recomputed lost rows and they differ.
    WorkerLostError
        If the worker of a task died repeatedly.
    MissingExtraError
        If Ray is not installed.
    OSError
        If a file cannot be read or written.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
    >>> reports = tn.ray.randomize(
    ...     "answers/*.parquet", "answer", oracle, tn.Bernoulli(0.1), output="/shared/reports"
    ... )  # doctest: +SKIP
    >>> tn.ray.tally(reports).estimate()  # doctest: +SKIP
    """
    with connected(address) as ray:
        cluster = Cluster(ray, workers, progress)
        answers = _opened(cluster, dataset, column, options)
        return run_job(
            cluster, answers, oracle, output, participation=participation, seed=seed, resume=resume
        )


def collect(
    dataset: Any,
    column: str,
    oracle: Kind,
    participation: Participation | float | None = None,
    *,
    seed: int | None = None,
    address: str | None = None,
    workers: int | None = None,
    progress: bool = False,
    **options: Any,
) -> BaseTally | GroupedTally:
    """Randomize and tally answers on a Ray cluster, without storing reports on disk or in memory.

    Parameters
    ----------
    dataset, column, oracle, participation, seed, address, workers, progress, **options
        As in :func:`randomize`. For the same seed the result is the tally of its reports, and
        equals that of :func:`turnout.pipeline.collect`.

    Returns
    -------
    Tally or GroupedTally
        One tally, or one for each group if the answers are grouped. Tallies of blocks are merged
        on the cluster, sixteen at a time.

    Raises
    ------
    TurnoutError, OSError
        As in :func:`randomize`.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
    >>> tn.ray.collect("answers/*.parquet", "answer", oracle, group_by="day")  # doctest: +SKIP
    """
    with connected(address) as ray:
        cluster = Cluster(ray, workers, progress)
        answers = _opened(cluster, dataset, column, options)
        return run_collection(cluster, answers, oracle, participation=participation, seed=seed)


def _opened(cluster: Cluster, dataset: Any, column: str, options: dict[str, Any]) -> Answers:
    """Open the answers; a data set of Ray is computed before any noise is drawn."""
    block_rows = options.pop("block_rows", BLOCK)
    if not isinstance(dataset, require("ray.data", "ray").Dataset):
        return scan(open_source(dataset, block_rows=block_rows), column, **options)
    source = DatasetSource(dataset, block_rows=block_rows)
    answers = scan(source, column, **options)
    source.materialise(answers.columns, progress=cluster.progress)
    parts = (Part(block.index, [block]) for block in source.blocks(source.columns))
    source.remember({part.number: digest for part, digest in cluster.results(_digest, parts)})
    _LOGGER.info("%s: %d rows computed", source.name, source.rows)
    return answers


def _digest(_secrets: object, part: Part) -> bytes:
    """Digest the rows of a block on the machine that holds them."""
    blocks: Iterable[Any] = part.blocks or ()
    [rows] = [block.whole() for block in blocks]
    return digested(rows)


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
    same_people: bool = True,
) -> Any:
    """Tally reports on a Ray cluster.

    Each task tallies a file, or a block of a data set. Tallies are merged on the cluster, sixteen
    at a time, and the driver receives one.

    Parameters
    ----------
    reports
        Files of reports, folders of them or patterns, as :func:`turnout.pipeline.open_reports`
        accepts them, or the :class:`turnout.pipeline.ReportSet` that :func:`turnout.ray.randomize`
        returned. The tasks read them. Or a ``ray.data.Dataset`` from any source, with a column
        ``report`` as in report files; it does not contain the headers of such files.
    oracle
        The oracle that made the reports of a data set. For files you may omit it; otherwise it must
        match theirs.
    participation
        Who took part, for a data set; everyone by default.
    nodes
        The number of persons who could have taken part, for a data set; needed unless everyone did.
    group_by
        Columns of groups in the files, or names of folders ``name=value`` that contain them.
    duplicates
        The rule for a second report with the same pseudonym: ``"refuse"`` or ``"first"``. The
        driver compares pseudonyms.
    partial
        Whether to accept a folder whose job is not complete, with its existing parts.
    address, workers, progress
        As in :func:`turnout.ray.randomize`.
    max_memory, same_people
        As in :func:`turnout.pipeline.tally`. A data set is one round: nobody is in it twice.

    Returns
    -------
    Tally or GroupedTally
        The same tally as from :func:`turnout.pipeline.tally`.

    Raises
    ------
    PlanMismatchError
        If files have different plans, or a plan with another oracle than ``oracle``.
    CorruptDataError
        If a file was altered.
    InvalidValueError
        If a file is duplicated, if a data set needs an argument that files would state, if
        ``oracle`` cannot have made a report, or if this process is connected to another cluster.
    InvalidTypeError
        If an argument is of the wrong type.
    MemoryLimitError
        If a file requires more memory than allowed or available.
    WorkerLostError
        If the worker of a task died repeatedly.
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
        cluster = Cluster(ray, workers, progress)
        if isinstance(reports, require("ray.data", "ray").Dataset):
            if group_by is not None or duplicates is not None or partial:
                raise InvalidValueError(
                    "group_by, duplicates and partial are for files of reports; a data set does "
                    "not say how many persons each group has"
                )
            plan = _plan_of(oracle, participation)
            return _with_nodes(_of_dataset(ray, reports, plan, progress), nodes)
        if participation is not None or nodes is not None:
            raise InvalidValueError("participation and nodes are in the files of reports")
        found = (
            reports if isinstance(reports, ReportSet) else open_reports(reports, partial=partial)
        )
        if oracle is not None:
            plan = found.plan
            Plan(oracle, plan.participation)._check_same(plan, "reports")
        return tally_files(
            cluster, found, group_by, duplicates, max_memory=max_memory, same_people=same_people
        )


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
    """Tally a data set block by block while it is computed."""
    total: BaseTally = plan.oracle.tally_type.empty(plan)
    counting = functools.partial(_count_batch, version=turnout.__version__, plan=plan)
    with in_order(dataset.context, progress), _unwrapped(ray):
        columns = list(dataset.columns() or ())
        if columns and "report" not in columns:
            raise InvalidValueError(
                f"the Ray data set has no column 'report'; its columns are {columns}"
            )
        counted = dataset.map_batches(
            counting, batch_format="pyarrow", batch_size=None, zero_copy_batch=True
        ).map_batches(_merge_tables, batch_format="pyarrow", batch_size=FAN_IN)
        for row in counted.iter_rows():
            total += read_tally(row["tally"])
    return total._of_new_origin()


def _count_batch(table: Any, *, version: str, plan: Plan) -> Any:
    prepare_worker(version)
    pa = require("pyarrow", "ray")
    batches = table.combine_chunks().to_batches()
    empty = pa.RecordBatch.from_pylist([], schema=table.schema)
    found = reported(batches[0] if batches else empty, plan.oracle)
    plan.oracle.check_reports(found)
    counts = plan.oracle.count_reports(found)
    counted = plan.oracle.tally_type.of(plan, counts, len(found), origin=PIECE)
    return pa.table({"tally": pa.array([counted.to_bytes()], pa.large_binary())})


def _merge_tables(table: Any) -> Any:
    pa = require("pyarrow", "ray")
    found = [read_tally(row) for row in table["tally"].to_pylist()]
    rows = [merged(*found).to_bytes()] if found else []
    return pa.table({"tally": pa.array(rows, pa.large_binary())})


def _with_nodes(counted: BaseTally, nodes: int | None) -> BaseTally:
    if nodes is None:
        if counted.participation.uniform_rate != 1.0:
            raise InvalidValueError(
                "nodes must be given with a data set: how many persons could have taken part"
            )
        return counted
    return replace(counted, nodes=nodes)


@contextlib.contextmanager
def _unwrapped(ray: Any) -> Iterator[None]:
    """Raise the error of a function that Ray Data has wrapped."""
    try:
        yield
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, TurnoutError):
            raise error.cause from None
        raise
