"""How far estimates of 100 answers are off in ten populations, beside the best of every peer.

Each population is fixed; every repeat draws the noise anew, at equal epsilon. What is compared are
estimates that are made a distribution, as most peers' are: turnout's ``shrink`` and its projection
onto the simplex, and each peer's estimator with its smallest error in that population.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np

import accuracy_jobs
import accuracy_peers
from accuracy_jobs import EPSILON, NODES, Record, Scenario
from accuracy_peers import Codes
from report import Figures, Row

#: People in each of the 42 answers to "native country" in the Adult data (UCI), in this order.
NATIVE_COUNTRY = (
    29170, 643, 583, 198, 137, 121, 114, 106, 100, 95, 90, 81, 80, 75, 73, 70, 67, 64, 62, 60, 59,
    51, 44, 43, 37, 34, 31, 29, 29, 28, 24, 20, 19, 19, 18, 18, 16, 14, 13, 13, 12, 1,
)  # fmt: skip
#: Answers of the other populations.
ANSWERS = 100
#: Few, for some peers take half a minute for one estimate.
FEWEST, MOST = 4, 40

HEADINGS = (
    "population",
    "turnout, shrunk",
    "turnout, onto the simplex",
    "best of the peers",
    "its RMSE, points",
    "against turnout, shrunk",
    "repeats",
)
NOTES = [
    "All errors are root mean square errors (RMSE) in percentage points, with their standard "
    "errors. Everybody takes part.",
    "against turnout, shrunk: the RMSE of the peer divided by that of turnout's shrink. equal: the "
    "difference is within three standard errors.",
    "Of the peers, the table has only estimates that are distributions (no share is negative, and "
    "they add up to 1). The error of their other estimates is at least that of turnout's hajek.",
]


def populations() -> dict[str, Codes]:
    """Return the codes of ten populations."""
    k = ANSWERS
    ranks = np.arange(1.0, k + 1.0)
    generator = np.random.default_rng(k)
    shapes = {
        "Zipf": 1 / ranks,
        "uniform": np.ones(k),
        "geometric": 0.9**ranks,
        "a tenth of the answers": (ranks <= k // 10).astype(np.float64),
        "half on one answer": np.r_[1.0, np.full(k - 1, 1 / (k - 1))],
        "bell": np.exp(-0.5 * ((ranks - (k + 1) / 2) / (k / 6)) ** 2),
        "Dirichlet(.5)": generator.gamma(0.5, size=k),
        "Dirichlet(1)": generator.gamma(1.0, size=k),
        "two levels": np.where(ranks <= k // 2, 3.0, 1.0),
        "native country in Adult": np.array(NATIVE_COUNTRY, np.float64),
    }
    return {
        name: np.repeat(np.arange(shape.size), np.floor(NODES * shape / shape.sum()).astype(int))
        for name, shape in shapes.items()
    }


def measure(
    turnout: ModuleType | None, seconds: float, on_progress: Callable[[str], object]
) -> Figures:
    """Return the table of all populations.

    Parameters
    ----------
    turnout
        The package ``turnout``, or None to measure the others alone.
    seconds
        The time for each collector in each population; at least four repeats are made.
    on_progress
        Called with what is measured next.
    """
    rows, failed = [], []
    scenario = Scenario(
        "everybody", "everybody takes part", np.ones(ANSWERS), lambda tn, _: tn.Everyone()
    )
    missing: dict[str, str] = {}
    for name, codes in populations().items():
        k = len(NATIVE_COUNTRY) if "Adult" in name else ANSWERS
        peers, missing = accuracy_peers.load(EPSILON, k)
        own = [] if turnout is None else accuracy_peers.own(turnout, EPSILON, k)[:1]
        records: list[Record] = []
        for collector in (*own, *peers):
            chosen = accuracy_peers.distributions(collector)
            if not chosen.estimators:
                continue
            on_progress(f"accuracy, {name}: {collector.program}, {collector.oracle}")
            try:
                records += accuracy_jobs.repeated(
                    turnout, chosen, scenario, codes, seconds, repeats=(FEWEST, MOST), k=k
                )
            except Exception as error:  # a broken peer must not end the comparison
                failed.append(
                    f"{name}: {collector.program} failed: {type(error).__name__}: {error}"
                )
        rows.append(_row(name, records))
    title = f"{ANSWERS} answers (of Adult 42) of {NODES:,} nodes, epsilon {EPSILON:g}"
    notes = [*NOTES, *(f"{name}: {problem}" for name, problem in missing.items()), *failed]
    return Figures("accuracy, populations", title, HEADINGS, rows, notes)


def _row(name: str, records: list[Record]) -> Row:
    own = {record.estimator.name: record for record in records if record.program == "turnout"}
    shrunk = next((one for key, one in own.items() if key.endswith("shrunk")), None)
    projected = next((one for key, one in own.items() if key.endswith("simplex")), None)
    peers = [record for record in records if record.program != "turnout"]
    best = min(peers, key=lambda record: record.rmse[0], default=None)
    verdict = None
    if best is not None and shrunk is not None:
        verdict = accuracy_jobs.beside(best, shrunk)
    cells = (
        name,
        _told(shrunk),
        _told(projected),
        "-" if best is None else f"{best.program}, {best.oracle}, {best.estimator.name}",
        _told(best),
        verdict or "-",
        "-" if best is None else str(len(best.errors)),
    )
    raw = {
        "population": name,
        "verdict": verdict,
        "errors": [
            {
                "program": record.program,
                "oracle": record.oracle,
                "estimator": record.estimator.name,
                "repeats": len(record.errors),
                "rmse": record.rmse[0],
                "rmse_standard_error": record.rmse[1],
            }
            for record in records
        ],
    }
    return Row(cells, "", raw)


def _told(record: Record | None) -> str:
    if record is None:
        return "-"
    root, error = record.rmse
    return f"{100 * root:.3f} ± {100 * error:.3f}"
