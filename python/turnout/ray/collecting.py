"""Collections of a data set on a cluster."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from turnout import _arguments
from turnout._extras import require
from turnout._progress import track
from turnout.frequency.groups import GroupedTally
from turnout.frequency.groups.tally import empty_tally
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.tally import Tally
from turnout.participation import Participation
from turnout.pipeline.answers import Answers, scan
from turnout.pipeline.processing import JobNoise, plan_of
from turnout.pipeline.sources import BLOCK, open_source
from turnout.ray.cluster import connected, cpus
from turnout.ray.datasets import DatasetSource
from turnout.ray.tasks import MergeTree, completed, get, results
from turnout.ray.work import Recipe, Tasks, stretches

__all__ = ["collect"]

_LOG = logging.getLogger(__name__)


def collect(
    dataset: Any,
    column: str,
    oracle: FrequencyOracle,
    participation: Participation | None = None,
    *,
    seed: int | None = None,
    address: str | None = None,
    workers: int | None = None,
    progress: bool = False,
    block_rows: int = BLOCK,
    **options: Any,
) -> Tally | GroupedTally:
    noise = JobNoise.made(_arguments.seed(seed))
    with connected(address) as ray:
        answers = opened(dataset, column, block_rows, options)
        plan = plan_of(answers, oracle, participation)
        limit = in_flight(ray, workers)
        tasks = Tasks(ray, Recipe(answers, plan), noise)
        look(ray, tasks, answers, limit, progress)
        tree: MergeTree[Any] = MergeTree(ray, tasks.merge)

        def submit(blocks: Any) -> Any:
            ended, tally = tasks.collect(blocks)
            tree.add(tally)
            return ended

        work = stretches(answers.blocks(oracle.domain))
        with contextlib.closing(results(ray, submit, work, limit)) as each:
            for _ in track(each, "tallying", progress):
                pass
        tally = tree.result()
    if tally is not None:
        return tally  # type: ignore[no-any-return]
    return GroupedTally(answers.group_by, {}, plan=plan) if answers.group_by else empty_tally(plan)


def opened(dataset: Any, column: str, block_rows: int, options: dict[str, Any]) -> Answers:
    """Open what is collected; data sets of Ray are not computed yet."""
    data = require("ray.data", "ray")
    if isinstance(dataset, data.Dataset):
        source = DatasetSource(dataset, block_rows=block_rows)
    else:
        source = open_source(dataset, block_rows=block_rows)
    return scan(source, column, **options)


def look(ray: Any, tasks: Tasks, answers: Answers, limit: int, progress: bool) -> None:
    """Compute a data set, before any noise is drawn, and remember what its blocks are."""
    source = answers.source
    if isinstance(source, DatasetSource):
        source.materialise(answers.columns, progress=progress)
        blocks = source.blocks(answers.columns)
        each = results(ray, tasks.digest, blocks, limit)
        source.remember({block.index: digest for block, digest in each})
