"""Running a collection without reports: answers to tallies, whoever does the work."""

from __future__ import annotations

import contextlib
import functools
import operator
from dataclasses import dataclass

from turnout._progress import track
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.kind import Kind
from turnout.collecting.plan import Plan
from turnout.collecting.tally import BaseTally
from turnout.participation import Participation
from turnout.pipeline.answers import Answers
from turnout.pipeline.flight import Executor, Part
from turnout.pipeline.processing import (
    JobNoise,
    Totals,
    collect_block,
    in_parts,
    of_nobody,
    plan_of,
)
from turnout.pipeline.running import Secrets, number_of_parts, observe_rows

AnyTally = BaseTally | GroupedTally


def collect(
    answers: Answers,
    oracle: Kind,
    *,
    participation: Participation | float | None = None,
    seed: int | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> BaseTally | GroupedTally:
    """Randomize and tally answers block by block, with no reports on disk or in memory.

    Each call draws new noise: a second one of the same persons, or one after
    :func:`turnout.pipeline.randomize`, costs each of them epsilon again.

    Parameters
    ----------
    answers, oracle, participation, seed, workers, progress
        As for :func:`turnout.pipeline.randomize`. For the same seed the result is the tally of its
        reports.

    Returns
    -------
    Tally or GroupedTally
        One tally, or one for each group if the answers are grouped.

    Raises
    ------
    TurnoutError, OSError
        As :func:`turnout.pipeline.randomize`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import turnout as tn
    >>> table = pa.table({"answer": [0, 1, 1, 1], "country": ["DE", "FR", "DE", "FR"]})
    >>> answers = tn.pipeline.scan(table, "answer", group_by="country")
    >>> tn.pipeline.collect(answers, tn.DirectEncoding(1.0, 2))["DE"].nodes
    2
    """
    executor = Executor(workers, progress)
    return run_collection(executor, answers, oracle, participation=participation, seed=seed)


def run_collection(
    executor: Executor,
    answers: Answers,
    oracle: Kind,
    *,
    participation: Participation | float | None,
    seed: int | None,
) -> AnyTally:
    """Do what :func:`collect` does, wherever the work is done."""
    plan = plan_of(answers, oracle, participation)
    secrets = Secrets.of(JobNoise.made(seed), answers.pseudonym_key)
    answers._persons(progress=executor.progress)
    collecting = _Collecting(answers._with_key(None), plan)
    stretches = in_parts(answers._all_blocks(plan.domain), executor.stretch)
    parts = (Part(number, list(blocks)) for number, blocks in stretches)
    with (
        executor.merging() as total,
        contextlib.closing(executor.results(collecting, parts, secrets, into=total)) as each,
    ):
        number = number_of_parts(answers, executor.stretch)
        for _, done in track(each, "collecting", executor.progress, number):
            observe_rows(done)
    found: AnyTally | None = total.result()
    return of_nobody(plan, answers.group_by) if found is None else found._of_new_origin()


@dataclass(frozen=True, eq=False)
class _Collecting:
    """How blocks become a tally."""

    answers: Answers
    plan: Plan

    def __call__(self, secrets: Secrets, part: Part) -> tuple[Totals, AnyTally]:
        answers, plan, names = secrets.unlocked(self.answers), self.plan, self.answers.group_by
        done = Totals()
        tallies: list[AnyTally] = []
        for block in part.blocks or ():
            encoded = answers._encoded(block, plan.domain)
            done += Totals.of_block(encoded)
            tallies.append(collect_block(plan, encoded, secrets.noise, names))
        return done, functools.reduce(operator.add, tallies)
