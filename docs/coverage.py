"""Write ``reference/coverage.rst``: ``python docs/coverage.py``, ten minutes on two cores.

Every interval of 95 % is compared with the truth, on every road from an answer to a result.
``python docs/coverage.py 20 FILE`` takes 20 trials in place of all, and writes another file.
"""

from __future__ import annotations

import csv
import html
import io
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import stats
from typer.testing import CliRunner

import turnout as tn
from turnout.cli.app import app
from turnout.collecting.report_files import write_reports
from turnout.collecting.tally import read_tally
from turnout.frequency.groups import tally_by_group

PAGE = Path(__file__).parent / "reference" / "coverage.rst"

#: So many people, asked on so many days.
PEOPLE, DAYS = 400, 8

#: The probability that one of all cells is marked although its intervals hold in 95 %.
ALPHA = 1e-3

QUESTIONS = {"sex": ["f", "m"], "vote": ["no", "yes", "none"]}
ANSWERS = ["a", "b", "c", "d"]
SHARES = [0.45, 0.3, 0.2, 0.05]


def _answers(labels: Sequence[Any], shares: Sequence[float]) -> list[Any]:
    counts = np.rint(np.array(shares) * PEOPLE).astype(int)
    return [label for label, count in zip(labels, counts, strict=True) for _ in range(count)]


def _of_codes(estimate: Any) -> Any:
    return estimate.interval()


def _of_vote(estimate: Any) -> Any:
    return estimate["vote"].interval()


def _of_mean(estimate: Any) -> Any:
    return estimate.mean().interval(0.95)


def _of_means(estimate: Any) -> Any:
    return estimate.mean_interval()


@dataclass(frozen=True)
class Asked:
    """A kind of question, what people answer, and how its intervals are asked for."""

    oracle: Any
    values: list[Any]
    interval: Callable[[Any], Any]
    truth: Callable[[list[Any]], Any]
    table: bool = True
    page: bool = False


def _shares_of(labels: Sequence[Any], place: str | None = None) -> Callable[[list[Any]], Any]:
    def truth(values: list[Any]) -> Any:
        given = [each[place] for each in values] if place else values
        return np.array([given.count(label) for label in labels]) / len(given)

    return truth


def _mean_of(values: list[Any]) -> Any:
    return np.array([float(np.mean(values))])


def _asked() -> dict[str, Asked]:
    shares = _answers(ANSWERS, SHARES)
    rows = [
        {"sex": sex, "vote": vote}
        for sex in ("f", "m")
        for vote, count in (("no", PEOPLE // 4), ("yes", PEOPLE // 8), ("none", PEOPLE // 8))
        for _ in range(count)
    ]
    cells = [(sex, vote) for sex in QUESTIONS["sex"] for vote in QUESTIONS["vote"]]

    def joint(values: list[Any]) -> Any:
        given = [(each["sex"], each["vote"]) for each in values]
        return np.array([given.count(cell) for cell in cells]) / len(given)

    def of(oracle: Any) -> Asked:
        return Asked(oracle, shares, _of_codes, _shares_of(ANSWERS), page=True)

    domain = tn.Domain(ANSWERS)
    numbers = np.linspace(0, 10, PEOPLE) ** 2 / 10
    codes = [int(code) for code in numbers * 1.59]
    votes = _shares_of(QUESTIONS["vote"], "vote")
    unary = {"permanent": "optimized_unary_encoding", "instantaneous": "symmetric_unary_encoding"}
    return {
        "DirectEncoding": of(tn.DirectEncoding(1.5, domain)),
        "OptimizedUnaryEncoding": of(tn.OptimizedUnaryEncoding(1.5, domain)),
        "SubsetSelection": of(tn.SubsetSelection(1.5, domain)),
        "OptimizedLocalHashing": of(tn.OptimizedLocalHashing(1.5, domain)),
        "HadamardResponse": of(tn.HadamardResponse(1.5, domain)),
        "JointTable": Asked(tn.JointTable(2.0, QUESTIONS), rows, _of_codes, joint),
        "SplitBudget": Asked(tn.SplitBudget(3.0, QUESTIONS), rows, _of_vote, votes, table=False),
        "SampledAttribute": Asked(
            tn.SampledAttribute(2.0, QUESTIONS), rows, _of_vote, votes, table=False
        ),
        "HierarchicalCollection": Asked(
            tn.HierarchicalCollection(2.0, 16), codes, _of_mean, _mean_of, table=False
        ),
        "mean.Duchi": Asked(tn.mean.Duchi(1.5, (0, 10)), list(numbers), _of_codes, _mean_of),
        "mean.Piecewise": Asked(
            tn.mean.Piecewise(1.5, (0, 10)), list(numbers), _of_codes, _mean_of
        ),
        "SquareWave": Asked(
            tn.SquareWave(2.0, (0, 10), bins=20), list(numbers), _of_means, _mean_of, table=False
        ),
        "Memoized (L-GRR)": of(tn.Memoized(tn.DirectEncoding(3.0, domain), first_epsilon=2.0)),
        "Memoized (L-OSUE)": of(tn.Memoized(3.0, domain, first_epsilon=2.0, **unary)),
    }


ASKED = _asked()


# From people to reports and messages


def reports_of(asked: Asked, seed: int, day: int = 0, *, rate: float = 1.0) -> tn.Reports:
    """Make the reports of a day, of the same people with the permanent answers that they keep."""
    oracle, noise = asked.oracle, 1000 * seed + day
    if not isinstance(oracle, tn.Memoized):
        return oracle.randomize(asked.values, participation=rate, seed=noise)
    secrets = np.random.default_rng(seed).integers(0, 256, (PEOPLE, 32), np.uint8)
    answers = oracle.permanent_answers(asked.values, secrets)
    return oracle.report(answers, participation=rate, seed=noise)


def messages_of(asked: Asked, plan: tn.Plan, seed: int) -> list[bytes]:
    """Make a message of each person."""
    keys = np.random.default_rng(seed).integers(0, 256, (PEOPLE, 32), np.uint8)
    made = []
    for place, value in enumerate(asked.values):
        noise = PEOPLE * seed + place
        if isinstance(asked.oracle, tn.Memoized):
            client = asked.oracle.client(keys[place].tobytes())
            made.append(client.message(plan, value, seed=noise))
        else:
            made.append(plan.report(value, seed=noise))
    return [message for message in made if message is not None]


def turnout(*arguments: object) -> None:
    """Run a command."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exit_code:
        raise RuntimeError(f"turnout {' '.join(map(str, arguments))}: {result.output}")


# Roads: each gives which of the intervals of one trial hold


def held(asked: Asked, tally: Any, values: list[Any] | None = None) -> Any:
    """Compare the intervals of a tally with the truth."""
    limits = asked.interval(tally.estimate())
    low, high = limits if isinstance(limits, tuple) else (limits.low, limits.high)
    truth = asked.truth(asked.values if values is None else values)
    return (np.atleast_1d(low) <= truth) & (truth <= np.atleast_1d(high))


def in_memory(asked: Asked, seed: int, _folder: Path) -> Any:
    """Randomize and tally."""
    return held(asked, asked.oracle.tally(reports_of(asked, seed)))


def half(asked: Asked, seed: int, _folder: Path) -> Any:
    """Ask, and hear of half of the people, at random."""
    return held(asked, asked.oracle.tally(reports_of(asked, seed, rate=0.5)))


def through_files(asked: Asked, seed: int, folder: Path) -> Any:
    """Write a file of reports and a tally of it, and read that."""
    reports, counted = folder / f"{seed}.parquet", folder / f"{seed}.tally"
    write_reports(reports_of(asked, seed), reports)
    counted.write_bytes(tn.pipeline.tally(reports).to_bytes())
    return held(asked, read_tally(counted.read_bytes()))


def through_messages(asked: Asked, seed: int, folder: Path) -> Any:
    """Lines of messages, counted by the command."""
    plan, lines = tn.Plan(asked.oracle, tn.Everyone()), folder / f"{seed}.jsonl"
    document, counted = folder / f"{seed}.json", folder / f"{seed}.tally"
    plan.write(document)
    lines.write_bytes(b"".join(line + b"\n" for line in messages_of(asked, plan, seed)))
    turnout("tally", lines, "--plan", document, "-o", counted)
    return held(asked, read_tally(counted.read_bytes()))


def days_of_the_same(asked: Asked, seed: int, _folder: Path) -> Any:
    """Add days of the same people, with the same answers."""
    each = [asked.oracle.tally(reports_of(asked, seed, day)) for day in range(DAYS)]
    return held(asked, sum(each))


def days_of_others(asked: Asked, seed: int, _folder: Path) -> Any:
    """Add days, each of other people."""
    total = None
    for day in range(DAYS):
        tally = asked.oracle.tally(reports_of(asked, DAYS * seed + day))
        total = tally if total is None else total.merge(tally, same_people=False)
    return held(asked, total)


def groups(asked: Asked, seed: int, _folder: Path) -> Any:
    """Take one group of two."""
    index = np.arange(PEOPLE) % 2
    grouped = tally_by_group(
        reports_of(asked, seed), index, np.bincount(index), names="group", keys=["x", "y"]
    )
    return held(asked, grouped["x"], asked.values[::2])


def groups_over_days(asked: Asked, seed: int, _folder: Path) -> Any:
    """Add the days of one group of two."""
    index, total = np.arange(PEOPLE) % 2, None
    for day in range(DAYS):
        grouped = tally_by_group(
            reports_of(asked, seed, day), index, np.bincount(index), names="group", keys=["x", "y"]
        )
        total = grouped if total is None else total + grouped
    return held(asked, total["x"], asked.values[::2])


def table_of_days(asked: Asked, seed: int, folder: Path) -> Any:
    """Read the table that ``turnout report`` writes of days of the same people."""
    files = [folder / f"{seed}-{day}.tally" for day in range(3)]
    for day, file in enumerate(files):
        file.write_bytes(asked.oracle.tally(reports_of(asked, seed, day)).to_bytes())
    target = folder / f"{seed}.csv"
    turnout("report", *files, "-o", target)
    with target.open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["low"]]
    low, high = (np.array([float(row[name]) for row in rows]) for name in ("low", "high"))
    truth = asked.truth(asked.values)
    return (low <= truth) & (truth <= high)


#: Limits of a share, with a minus sign that is none of ASCII's.
_LIMITS = re.compile(r" (-?[\d.]+) % – (-?[\d.]+) % ")


def page_of_days(asked: Asked, seed: int, folder: Path) -> Any:
    """Read the first table of a page, of days of the same people."""
    days = {day: asked.oracle.tally(reports_of(asked, seed, day)) for day in range(3)}
    target = folder / f"{seed}.html"
    tn.reporting.report(tn.GroupedTally("day", days), target, order="domain")
    text = target.read_text(encoding="utf-8")
    plain = html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("\N{MINUS SIGN}", "-")
    words = re.sub(r"\s+", " ", plain)
    limits = [(float(low) / 100, float(high) / 100) for low, high in _LIMITS.findall(words)]
    low, high = np.array(limits[: len(ANSWERS)]).T
    truth = asked.truth(asked.values)
    return (low <= truth) & (truth <= high)


@dataclass(frozen=True)
class Road:
    """A road, in words, and how often it is taken."""

    words: str
    take: Callable[[Asked, int, Path], Any]
    trials: int
    for_table: bool = False
    for_page: bool = False


ROADS = [
    Road("in memory", in_memory, 1000),
    Road("half take part", half, 1000),
    Road("file of reports, tally file", through_files, 400),
    Road("messages, ``turnout tally``", through_messages, 200),
    Road(f"{DAYS} days of the same people", days_of_the_same, 600),
    Road(f"{DAYS} days of other people", days_of_others, 600),
    Road("one group", groups, 1000),
    Road(f"one group, {DAYS} days", groups_over_days, 600),
    Road("table of ``turnout report``, 3 days", table_of_days, 200, for_table=True),
    Road("page, 3 days", page_of_days, 100, for_page=True),
]


# Aggregation


def mechanisms() -> dict[str, Any]:
    """Every mechanism of :mod:`turnout.distributed`, of the same question."""
    domain, made = tn.Domain(ANSWERS), tn.distributed
    plain = {"users": PEOPLE, "epsilon": 1.0}
    return {
        "NoisyAggregation, discrete Laplace": made.NoisyAggregation(domain, **plain),
        "NoisyAggregation, Skellam": made.NoisyAggregation(
            domain, **plain, delta=1e-5, noise="skellam"
        ),
        "NoisyAggregation, discrete Gaussian": made.NoisyAggregation(
            domain, **plain, delta=1e-5, noise="discrete_gaussian"
        ),
        "SamplingAggregation": made.SamplingAggregation(domain, **plain, delta=1e-5, dummies=50),
        "TwoStageSampling": made.TwoStageSampling(
            domain, **plain, delta=1e-5, dummies=50, reported=2, elected=5
        ),
        "VerifiedAggregation": made.VerifiedAggregation(domain, **plain),
        "VerifiedAggregation, half take part": made.VerifiedAggregation(
            domain, **plain, participation=0.5
        ),
        "VerifiedAggregation, discrete Gaussian": made.VerifiedAggregation(
            domain,
            users=PEOPLE,
            participation=0.5,
            noise="discrete_gaussian",
            parameter=1.9961421289192156,
        ),
        "JanusTask, histogram": _Janus(made.JanusTask(1.0, domain)),
    }


@dataclass(frozen=True)
class _Janus:
    """A result of Janus: the noise of its aggregators, drawn by NumPy."""

    task: Any

    def run(self, values: list[Any], seed: int) -> Any:
        rng, scale = np.random.default_rng(seed), 2.0 / self.task.epsilon
        size = (2, 2, len(ANSWERS))
        drawn = rng.geometric(-np.expm1(-1.0 / scale), size)
        counts = np.array([values.count(answer) for answer in ANSWERS])
        sums = counts + (drawn[0] - drawn[1]).sum(axis=0)
        result = self.task.estimate(sums.tolist(), reports=len(values))
        return SimpleNamespace(estimate=result)


def aggregated(name: str, trials: int) -> tuple[int, int]:
    """Count intervals of a mechanism that hold, and all of them."""
    mechanism, values = mechanisms()[name], ASKED["DirectEncoding"].values
    truth, found = _shares_of(ANSWERS)(values), 0
    for seed in range(trials):
        limits = mechanism.run(values, seed).estimate.interval()
        found += int(((limits.low <= truth) & (truth <= limits.high)).sum())
    return found, trials * truth.size


# The page


def counted(place: int, name: str, trials: int) -> tuple[int, int] | None:
    """Count the intervals of a road and a kind that hold, and all of them; None for no road."""
    road, asked = ROADS[place], ASKED[name]
    if (road.for_table and not asked.table) or (road.for_page and not asked.page):
        return None
    found = total = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(trials):
            # Other noise on each road.
            held_here = road.take(asked, 100_000 * place + seed, Path(folder))
            found, total = found + int(held_here.sum()), total + held_here.size
            if seed % 50 == 49:
                for path in Path(folder).iterdir():
                    path.unlink()
    return found, total


def shown(counts: tuple[int, int] | None, trials: int, cells: int) -> str:
    """Write a share in percent, with a mark where chance does not explain how low it is."""
    if counts is None:
        return "—"
    share = counts[0] / counts[1]
    # Intervals of one trial hang together: as if a trial were one interval.
    low = stats.binom.cdf(int(share * trials), trials, 0.95) < ALPHA / cells
    return f"{100 * share:.1f}{' **!**' if low else ''}"


HEAD = """\
How often intervals hold
========================

.. This page is written by docs/coverage.py.

A simulation knows the truth. For each kind of question, and for each path from an answer to a
result, it counts how many 95 % intervals hold the truth. The table gives this count in percent, for
the intervals of all answers together. A number above 95 means that the intervals are wider than
they have to be. {people} people are asked, and all of them report unless the column says otherwise.
At {trials:,} trials, chance moves a number by about {chance:.1f}. A **!** marks a number that is
too low for chance (alpha {alpha:g}, for all cells together).

"""

MIDDLE = """
A dash means that the path does not give the shares or the mean of this kind.

Days of the same people have the same answers on each day. Fresh reports of different days are
independent of each other. Permanent answers are not: their days share noise, and the sum of their
tallies accounts for it (:doc:`/topics/longitudinal`). Without that, intervals of ``Memoized
(L-GRR)`` for {days} days of the same people would hold in {naive:.0f} %.

Counts among servers that do not collude
----------------------------------------

One round of {people} users, with secret shares, at epsilon 1:

"""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a table, whose first column is a heading."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([head, *rows])
    options = ".. csv-table::\n   :header-rows: 1\n   :stub-columns: 1\n\n"
    return options + textwrap.indent(text.getvalue(), "   ")


def naive(trials: int) -> tuple[int, int]:
    """Count as if days of the same people were of others."""
    asked, found, total = ASKED["Memoized (L-GRR)"], 0, 0
    for seed in range(trials):
        each = [asked.oracle.tally(reports_of(asked, seed, day)) for day in range(DAYS)]
        whole = each[0]
        for tally in each[1:]:
            whole = whole.merge(tally, same_people=False)
        here = held(asked, whole)
        found, total = found + int(here.sum()), total + here.size
    return found, total


def page(trials: int | None = None) -> str:
    """Make the page, with so many trials everywhere if a number is given."""
    names, several = list(ASKED), mechanisms()
    cells = len(names) * len(ROADS) + len(several)
    with ProcessPoolExecutor(2) as pool:
        numbers = [min(road.trials, trials or road.trials) for road in ROADS]
        work = {
            (place, name): pool.submit(counted, place, name, numbers[place])
            for place in range(len(ROADS))
            for name in names
        }
        most = trials or 2000
        rounds = {name: pool.submit(aggregated, name, most) for name in several}
        alone = pool.submit(naive, min(most, 500))
        rows = []
        for name in names:
            found = [
                shown(work[place, name].result(), numbers[place], cells)
                for place in range(len(ROADS))
            ]
            rows.append([f"``{name}``", *found])
        found_alone = alone.result()
        other = [
            [
                f"``{name.split(',')[0]}``{name[len(name.split(',')[0]) :]}",
                shown(rounds[name].result(), most, cells),
            ]
            for name in several
        ]
    heads = [
        f"{road.words} ({number:,} trials)" for road, number in zip(ROADS, numbers, strict=True)
    ]
    told = {"people": PEOPLE, "days": DAYS, "alpha": ALPHA, "trials": min(numbers)}
    chance = 100 * float(np.sqrt(0.95 * 0.05 / min(numbers)))
    share = 100 * found_alone[0] / found_alone[1]
    text = HEAD.format(**told, chance=chance) + table(["kind", *heads], rows)
    text += MIDDLE.format(**told, naive=share)
    return text + table(["mechanism", f"one round ({most:,} trials)"], other)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[2]).write_text(page(int(sys.argv[1])), encoding="utf-8")
    else:
        PAGE.write_text(page(), encoding="utf-8")
