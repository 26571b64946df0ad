"""Answers of a data set to report files, and to tallies, on a cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from typing import Any

from turnout._extras import require
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.kind import Kind
from turnout.collecting.tally import BaseTally
from turnout.participation import Participation
from turnout.pipeline.answers import Answers
from turnout.pipeline.collection import run_collection
from turnout.pipeline.columns import digested
from turnout.pipeline.flight import Part
from turnout.pipeline.report_set import ReportSet
from turnout.pipeline.running import run_job
from turnout.pipeline.scanning import scan
from turnout.pipeline.sources import BLOCK, open_source
from turnout.ray.cluster import Cluster
from turnout.ray.datasets import DatasetSource
from turnout.ray.tasks import connected

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
    """Randomize answers into a folder of report files, part by part, on a Ray cluster.

    The folder, its files and the reports in them are those of :func:`turnout.pipeline.randomize`:
    for the same rows in the same order and the same seed the same reports, and a job that one of
    the two began, the other can go on with. All noise of a job comes from its secret, and each
    block has streams of its own. So a part that is made again, because its worker died or its
    result was lost, is the same part bit by bit, and nobody is ever randomized twice. The first
    finished file of a part is kept.

    The secret goes from the driver to the workers as an argument of each task: encrypt the
    cluster's connections (``RAY_USE_TLS``) unless its network is your own.

    Parameters
    ----------
    dataset
        A ``ray.data.Dataset``, or whatever :func:`turnout.pipeline.scan` takes. Parquet and Arrow
        files are read by the tasks themselves and must be where all machines of the cluster see
        them; what only the driver can read, such as CSV files, goes through it. A data set is
        computed once, in the order of its rows, and stays in the object store until the end: a
        shuffle or a sample is drawn before any noise is.
    column
        The column of answers, one row a person.
    oracle
        How answers are randomized.
    participation
        Who takes part: everyone (default) or a common rate. Left out if there is a
        ``probability_column``.
    output
        The folder for the reports, on storage that all machines of the cluster share: a new or an
        empty one, or that of the job to go on with.
    seed
        For tests and simulations only: an integer in [0, 2^64) that makes the reports reproducible.
    resume
        Whether to go on with the job in the folder, if there is one. It must hold the same answers;
        a data set of Ray is compared row by row.
    address
        The address of a running cluster. By default the one that this process is connected to, or
        that of ``RAY_ADDRESS``; if there is neither, Ray is started on this machine until the call
        returns.
    workers
        How many tasks are in flight; by default twice as many as the cluster has CPUs.
    progress
        Whether work that takes more than two seconds shows a bar on standard error.
    **options
        The other arguments of :func:`turnout.pipeline.scan`: ``missing``, ``id_column``,
        ``group_by`` and so on. With ``id_column`` the driver reads that column once and finds the
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
        If the folder holds something else, or a job with other answers; if it is not shared; if an
        answer is refused; if this process is connected to another cluster.
    PlanMismatchError
        If the job in the folder has another plan.
    InvalidTypeError
        If an argument is of the wrong type.
    CorruptDataError
        If a file was altered, or Ray made lost rows again and they are not the same.
    WorkerLostError
        If the worker of a task died time and again.
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
    """Randomize and tally answers on a Ray cluster, with no reports on disk or in memory.

    Parameters
    ----------
    dataset, column, oracle, participation, seed, address, workers, progress, **options
        As for :func:`randomize`. For the same seed the result is the tally of its reports, and that
        of :func:`turnout.pipeline.collect`.

    Returns
    -------
    Tally or GroupedTally
        One tally, or one for each group if the answers are grouped. Tallies of blocks are merged
        on the cluster, sixteen at a time.

    Raises
    ------
    TurnoutError, OSError
        As :func:`randomize`.

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
    """Open what is collected; a data set of Ray is computed, before any noise is drawn."""
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
    """Digest the rows of a block, where they are."""
    blocks: Iterable[Any] = part.blocks or ()
    [rows] = [block.whole() for block in blocks]
    return digested(rows)
