"""Votes with proofs from Python, beside the crate ``prio`` alone, and what a country costs.

The times of prio are those that criterion left (``benches/votes.rs``): its own functions in Rust,
which neither encode nor decode, on as many threads. turnout is called from Python, from votes to
the bytes that leave the devices, and from the bytes that arrive to the sums.
"""

from __future__ import annotations

import importlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from measurement import Contender, Timing
from measurement import measure as timed
from report import Figures, Row, duration, rate

ITEMS = 30
SHARED, VERIFIED, ROUND = 10_000, 100_000, 100_000
COUNTRY = 10**7
#: With --quick: of all but the country, this part.
QUICK = 100

TITLE = f"Votes with proofs, {ITEMS} items and two aggregators"
HEADINGS = ("job", "turnout, from Python", "prio, in Rust", "ratio to prio", "target", "met?")
NOTES = [
    "turnout: called from Python. To share is to turn votes into the bytes of reports. To verify "
    "is to turn these bytes into sums. turnout uses all cores if there is more than one report.",
    "prio: functions of the crate, called from Rust, on as many threads. They do not write or "
    "read the bytes of reports.",
]


@dataclass(frozen=True)
class _Job:
    """What is done, with how many reports; which bench of prio is beside it, and the goal."""

    name: str
    reports: int
    call: Callable[[], object]
    accept: Callable[[Any], bool]
    bench: tuple[str, str] | None = None
    least: float | None = None


def measure(
    turnout: ModuleType | None,
    prio: Mapping[tuple[str, str], float],
    *,
    seconds: float,
    quick: bool,
    show: Callable[[str], object],
) -> Figures:
    """Measure all jobs.

    Parameters
    ----------
    turnout
        The package ``turnout``, or None to measure nothing.
    prio
        The seconds of prio for one report, by the group of the bench and what is done in it.
    seconds
        The time for each job.
    quick
        Whether to take fewer reports.
    show
        Called with what is done.
    """
    rows: list[Row] = []
    notes = list(NOTES)
    if turnout is not None:
        rates = {}
        for job in _jobs(turnout, QUICK if quick else 1):
            show(job.name)
            contender = Contender("turnout", job.name, job.reports, job.call, job.accept)
            [timing] = timed([contender], seconds, lambda share: None)
            rows.append(_row(job, timing, prio.get(job.bench) if job.bench else None))
            if timing.problem is None:
                rates[job.name.split()[0]] = timing.rate
        if {"share", "verify"} <= rates.keys():
            notes.append(_costs(turnout, rates))
    return Figures("votes", TITLE, HEADINGS, rows, notes)


def _jobs(turnout: ModuleType, part: int) -> list[_Job]:
    own = importlib.import_module(f"{turnout.__name__}.distributed")
    core = importlib.import_module(f"{turnout.__name__}._core")
    prio3 = core.Prio3.multihot(ITEMS)
    context, key = b"bench", bytes(32)
    one = [int(item == 3) for item in range(ITEMS)]
    shared, verified, round_ = SHARED // part, VERIFIED // part, ROUND // part
    codes = np.arange(verified, dtype=np.int64) % ITEMS
    held = np.bincount(codes, minlength=ITEMS).tolist()
    nonces = secrets.token_bytes(16 * verified)
    made = prio3.shard_votes(context, codes, nonces)
    reports = [
        (nonces[16 * index : 16 * index + 16], public, shares)
        for index, (public, shares) in enumerate(made)
    ]
    country = own.VerifiedAggregation(ITEMS, users=COUNTRY, epsilon=1.0)
    few = own.VerifiedAggregation(ITEMS, users=round_, epsilon=1.0)
    values = np.arange(round_) % ITEMS
    counts = np.full(ITEMS, COUNTRY // ITEMS)

    def is_right(result: Any) -> bool:
        return bool(result.estimate.interval(1.0 - 1e-9).contains([1.0 / ITEMS] * ITEMS).all())

    return [
        _Job(
            "share one vote, a call",
            1,
            partial(prio3.shard, context, one, nonces[:16]),
            lambda report: len(report[1]) == 2,
            ("votes shared", "one"),
            1.0 / 1.2,
        ),
        _Job(
            f"share {shared:,} votes",
            shared,
            partial(prio3.shard_votes, context, codes[:shared], nonces[: 16 * shared]),
            lambda found: len(found) == shared,
            ("votes shared", "many"),
            1.0 / 1.2,
        ),
        _Job(
            f"verify {verified:,} reports",
            verified,
            partial(prio3.verify_together, key, context, reports),
            lambda found: bool(prio3.unshard(found[0]) == held),
            ("votes verified", "many"),
            0.9,
        ),
        _Job(
            f"a round of {round_:,} people, report by report",
            round_,
            partial(few.run, values),
            is_right,
        ),
        _Job(
            f"a round of {COUNTRY:,} people, by law", 1, partial(country.simulate, counts), is_right
        ),
    ]


def _row(job: _Job, timing: Timing, prio: float | None) -> Row:
    """Show a job: times of one call, or reports a second."""
    target = "-" if job.least is None else f">= {job.least:.2f}x prio"
    raw = {"job": job.name, "problem": timing.problem, "prio_seconds": prio}
    if timing.problem is not None:
        failed = timing.problem.split(":")[0]
        return Row((job.name, failed, "-", "-", target, "-"), f"{job.name}: {timing.problem}", raw)

    def shown(each: float) -> str:
        return duration(each) if job.reports == 1 else rate(1.0 / each)

    each = timing.best / job.reports
    raw["seconds"] = each
    cells = [job.name, shown(each), "-", "-", target, "-"]
    if prio is not None:
        raw["ratios"] = {"prio": prio / each}
        cells[2:4] = [shown(prio), f"{prio / each:.2f}x"]
        if job.least is not None:
            cells[5] = "yes" if prio / each >= job.least else "no"
    return Row(tuple(cells), "", raw)


def _costs(turnout: ModuleType, rates: Mapping[str, float]) -> str:
    """Say what a country of people costs, by the rates of its parts."""
    own = importlib.import_module(f"{turnout.__name__}.distributed")
    country = own.VerifiedAggregation(ITEMS, users=COUNTRY, epsilon=1.0)
    costs = country.simulate(np.full(ITEMS, COUNTRY // ITEMS), seed=1).costs
    sent = costs.average("user").bytes
    between = 2 * costs.average("aggregator").bytes / COUNTRY
    hours = COUNTRY / rates["verify"] / 3600.0
    return (
        f"What a vote of {COUNTRY:,} people costs: each of them sends {sent:,.0f} bytes, and the "
        f"aggregators send each other {between:,.0f} bytes for each report. At these rates, this "
        f"machine verifies the reports for both aggregators in {hours:.2g} hours."
    )
