"""How far estimates are off, at equal privacy and on the same data.

Frequencies of 100 answers of a Zipf population (everybody takes part; some do, whatever they
answer; those with the ten most frequent answers take part less often), and the histogram of a small
group. The population is fixed; every repeat draws participation and noise anew. The root mean
square error is over all answers and repeats.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

import accuracy_peers
from accuracy_peers import Codes, Collector, Estimator, Floats
from report import Figures, Row, duration

EPSILON = 1.0
NODES, DOMAIN_SIZE = 50_000, 100
RATE = 0.3
#: The rates of those with one of the ten most frequent answers, and of all others.
SHY, SHY_ANSWERS, OPEN = 0.15, 10, 0.45
USERS, ITEMS = 600, 30
MIN_REPEATS, MAX_REPEATS = 12, 200
#: Fewer repeats say little of their own spread.
FEW = 20

HEADINGS = (
    "program",
    "oracle",
    "estimator",
    "repeats",
    "RMSE, points",
    "against turnout",
    "bias at the top, points",
    "coverage",
    "time",
)
SMALL_HEADINGS = ("program", "mechanism", "trusted", "repeats", "RMSE, points", "time")
NOTES = [
    "RMSE: the root mean square error of all answers and repeats, in percentage points, with its "
    "standard error.",
    "repeats: how often a program collected. Slow programs have fewer repeats.",
    "time: the time of one collection and its estimate.",
    "against turnout: the RMSE divided by that of turnout's hajek estimate (first row). If an "
    "estimate is a distribution, it is divided by that of the second row, which is one too. Equal: "
    "the difference is within three standard errors.",
    "bias at the top: the mean error of the most frequent answer.",
    "coverage: the share of the 95 % intervals that hold the true frequency. '-' means that a "
    "program gives no interval.",
]


@dataclass(frozen=True)
class Scenario:
    """Who takes part."""

    name: str
    title: str
    rates: Floats
    participation: Callable[[ModuleType, Codes], Any]


@dataclass
class Record:
    """What the repeats of one estimator gave."""

    program: str
    oracle: str
    estimator: Estimator
    errors: list[Floats] = field(default_factory=list)
    covered: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def rmse(self) -> tuple[float, float]:
        """The root mean square error, and its standard error."""
        squares = np.square(self.errors)
        repeats, answers = squares.shape
        root = float(np.sqrt(squares.mean()))
        spread = float(squares.mean(axis=1).std(ddof=1)) / np.sqrt(repeats) / (2.0 * root)
        # Few repeats say little of their own spread: that of as many normal errors is the least.
        return root, max(spread, root / np.sqrt(2.0 * repeats * answers))

    @property
    def bias(self) -> tuple[float, float]:
        """The mean error of the first answer, and its standard error."""
        first = np.array([error[0] for error in self.errors])
        spread = float(first.std(ddof=1))
        if first.size < FEW:
            spread = max(spread, self.rmse[0])
        return float(first.mean()), spread / float(np.sqrt(first.size))


def zipf(nodes: int, k: int) -> Codes:
    """Return the codes of a population whose answers are as frequent as 1 / rank."""
    shares = 1.0 / np.arange(1.0, k + 1.0)
    counts = np.floor(nodes * shares / shares.sum()).astype(np.int64)
    counts[0] += nodes - counts.sum()
    return np.repeat(np.arange(k), counts)


def scenarios() -> list[Scenario]:
    """Return who takes part in the three tables of frequencies."""
    k = DOMAIN_SIZE
    by_answer = np.where(np.arange(k) < SHY_ANSWERS, SHY, OPEN)
    return [
        Scenario("everybody", "everybody takes part", np.ones(k), lambda tn, codes: tn.Everyone()),
        Scenario(
            "some",
            f"{RATE:.0%} take part, whatever they answer".replace("%", " %"),
            np.full(k, RATE),
            lambda tn, codes: tn.Bernoulli(RATE),
        ),
        Scenario(
            "by answer",
            f"holders of the {SHY_ANSWERS} most frequent answers take part with probability "
            f"{SHY:g}, others with {OPEN:g}",
            by_answer,
            lambda tn, codes: tn.Personalized(by_answer[codes]),
        ),
    ]


def measure(
    turnout: ModuleType | None, seconds: float, on_progress: Callable[[str], object]
) -> Iterator[Figures]:
    """Yield the tables of frequencies, then that of a small group.

    Parameters
    ----------
    turnout
        The package ``turnout``, or None to measure the others alone.
    seconds
        The time for each collector; at least four repeats are made.
    on_progress
        Called with what is measured next.
    """
    peers, problems = accuracy_peers.load(EPSILON, DOMAIN_SIZE)
    own = [] if turnout is None else accuracy_peers.own(turnout, EPSILON, DOMAIN_SIZE)
    codes = zipf(NODES, DOMAIN_SIZE)
    missing = [f"{name}: {problem}" for name, problem in problems.items()]
    for scenario in scenarios():
        records: list[Record] = []
        failed: list[str] = []
        for collector in (*own, *peers):
            on_progress(f"accuracy, {scenario.name}: {collector.program}, {collector.oracle}")
            try:
                records += repeated(turnout, collector, scenario, codes, seconds)
            except Exception as error:  # a broken peer must not end the comparison
                program = f"{collector.program}, {collector.oracle}"
                failed.append(f"{program} failed: {type(error).__name__}: {error}")
        title = f"{DOMAIN_SIZE} answers of {NODES:,} nodes, epsilon {EPSILON:g}: {scenario.title}"
        yield Figures(
            f"accuracy, {scenario.name}",
            title,
            HEADINGS,
            _rows(records),
            [*NOTES, *missing, *failed],
        )
    on_progress("accuracy of a small group")
    yield small_group(turnout, seconds)


def repeated(
    turnout: ModuleType | None,
    collector: Collector,
    scenario: Scenario,
    codes: Codes,
    seconds: float,
    *,
    repeats: tuple[int, int] = (MIN_REPEATS, MAX_REPEATS),
    k: int = DOMAIN_SIZE,
) -> list[Record]:
    """Collect again and again; return a record for each estimator.

    At least and at most so many times, and else for so many seconds.
    """
    everybody = bool((scenario.rates == 1.0).all())
    chosen = [
        one
        for one in collector.estimators
        if not (one.partial_only and (everybody or scenario.name == "by answer"))
    ]
    records = [Record(collector.program, collector.oracle, one) for one in chosen]
    truth = np.bincount(codes, minlength=k) / codes.size
    generator = np.random.default_rng(0)
    own = collector.program == "turnout"
    participation = scenario.participation(turnout, codes) if own and turnout else None
    collector.respond(codes[:100], None)  # compiles
    start, done = time.perf_counter(), 0
    least, most = repeats
    while done < least or (done < most and time.perf_counter() - start < seconds):
        some = codes
        if not own and not everybody:
            some = codes[generator.random(codes.size) < scenario.rates[codes]]
        begin = time.perf_counter()
        reports = collector.respond(some, participation)
        responding = time.perf_counter() - begin
        for record in records:
            begin = time.perf_counter()
            found, covered = record.estimator.estimate(reports, codes.size, truth)
            record.seconds.append(responding + time.perf_counter() - begin)
            record.errors.append(found - truth)
            if covered is not None:
                record.covered.append(covered)
        done += 1
    return records


def _rows(records: list[Record]) -> list[Row]:
    rows = []
    for record in records:
        reference = next(
            (
                other
                for other in records
                if other.program == "turnout"
                and other.estimator.distribution == record.estimator.distribution
            ),
            None,
        )
        (root, error), (bias, bias_error) = record.rmse, record.bias
        coverage = float(np.mean(record.covered)) if record.covered else None
        verdict = None if reference in (None, record) else beside(record, reference)
        cells = (
            record.program,
            record.oracle,
            record.estimator.name,
            str(len(record.errors)),
            f"{100 * root:.3f} ± {100 * error:.3f}",
            "-" if verdict is None else verdict,
            f"{100 * bias:+.3f} ± {100 * bias_error:.3f}",
            "-" if coverage is None else f"{100 * coverage:.1f} %",
            duration(min(record.seconds)),
        )
        raw = {
            "program": record.program,
            "oracle": record.oracle,
            "estimator": record.estimator.name,
            "distribution": record.estimator.distribution,
            "repeats": len(record.errors),
            "rmse": root,
            "rmse_standard_error": error,
            "bias": bias,
            "bias_standard_error": bias_error,
            "coverage": coverage,
            "best_seconds": min(record.seconds),
            "verdict": verdict,
        }
        rows.append(Row(cells, "", raw))
    return rows


def beside(record: Record, reference: Record) -> str:
    """Return the ratio to the reference, and whether it is larger, smaller or equal."""
    (root, error), (own, own_error) = record.rmse, reference.rmse
    ratio = root / own
    if abs(root - own) <= 3.0 * float(np.hypot(error, own_error)):
        return f"{ratio:.2f}x, equal"
    return f"{ratio:.2f}x, {'larger' if ratio > 1.0 else 'smaller'}"


# A small group -----------------------------------------------------------------------------------


def small_group(turnout: ModuleType | None, seconds: float) -> Figures:
    """Return the histogram of a small group: local noise, shares, and a trusted server."""
    codes = zipf(USERS, ITEMS)
    counts = np.bincount(codes, minlength=ITEMS)
    runs: list[tuple[str, str, str, Callable[[], Floats]]] = []
    if turnout is not None:
        runs += _own_group(turnout, codes)
    missing = []
    for name, make in (("opendp", _opendp_group), ("diffprivlib", _diffprivlib_group)):
        try:
            runs.append(make(codes, counts))
        except ImportError as error:
            missing.append(f"{name}: not installed: {error}")
        except Exception as error:  # a broken peer must not end the comparison
            missing.append(f"{name}: failed: {type(error).__name__}: {error}")
    rows = []
    for program, mechanism, trusted, run in runs:
        record = Record(program, mechanism, Estimator("", lambda *_: (counts, None)))
        start = time.perf_counter()
        while len(record.errors) < MIN_REPEATS or (
            len(record.errors) < 10 * MAX_REPEATS and time.perf_counter() - start < seconds
        ):
            begin = time.perf_counter()
            found = run()
            record.seconds.append(time.perf_counter() - begin)
            record.errors.append(found - counts / USERS)
        root, error = record.rmse
        cells = (
            program,
            mechanism,
            trusted,
            str(len(record.errors)),
            f"{100 * root:.3f} ± {100 * error:.3f}",
            duration(min(record.seconds)),
        )
        raw = {
            "program": program,
            "mechanism": mechanism,
            "trusted": trusted,
            "repeats": len(record.errors),
            "rmse": root,
            "rmse_standard_error": error,
            "best_seconds": min(record.seconds),
        }
        rows.append(Row(cells, "", raw))
    title = f"{ITEMS} items of {USERS} users, epsilon {EPSILON:g} where one user's item is changed"
    notes = [
        "OpenDP gets the true counts. Diffprivlib gets the true items and counts them. Its epsilon "
        f"is for a record that is added or removed, so it gets {EPSILON / 2:g}. It cuts off "
        "counts at 0.",
        "turnout's aggregation runs all users and three aggregators in one process.",
    ]
    return Figures("accuracy, small group", title, SMALL_HEADINGS, rows, notes + missing)


def _own_group(
    turnout: ModuleType, codes: Codes
) -> list[tuple[str, str, str, Callable[[], Floats]]]:
    distributed = importlib.import_module(f"{turnout.__name__}.distributed")
    oracle = turnout.choose_oracle(epsilon=EPSILON, domain_size=ITEMS).oracle
    domain = turnout.Domain.from_integers(ITEMS)
    aggregation = distributed.NoisyAggregation(domain, users=USERS, epsilon=EPSILON)
    local = f"{oracle.name}, every user by itself".replace("_", " ")
    return [
        ("turnout", local, "nobody", lambda: oracle.collect(codes).estimate().frequencies),
        (
            "turnout",
            "NoisyAggregation, discrete Laplace",
            "one of 3 aggregators",
            lambda: aggregation.run(codes).estimate.frequencies,
        ),
    ]


def _opendp_group(codes: Codes, counts: Codes) -> tuple[str, str, str, Callable[[], Floats]]:
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    laplace = dp.m.make_laplace(
        dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=2.0 / EPSILON
    )
    if laplace.map(2) > EPSILON:
        message = f"OpenDP's noise gives epsilon {laplace.map(2)}, not {EPSILON}"
        raise RuntimeError(message)
    exact = counts.tolist()
    return (
        "OpenDP",
        "make_laplace, discrete",
        "the server",
        lambda: np.asarray(laplace(exact)) / USERS,
    )


def _diffprivlib_group(codes: Codes, counts: Codes) -> tuple[str, str, str, Callable[[], Floats]]:
    tools = importlib.import_module("diffprivlib.tools")

    def run() -> Floats:
        made, _ = tools.histogram(codes, epsilon=EPSILON / 2, bins=ITEMS, range=(0, ITEMS))
        return made / USERS

    return ("diffprivlib", "tools.histogram, truncated geometric", "the server", run)
