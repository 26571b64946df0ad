"""Figure 3 and Table 1 of the fair paper: two-stage sampling, its error and what it costs."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Final

import numpy as np

from turnout._seeds import derived
from turnout._types import Figure, Integers
from turnout.accounting import TwoStageCountSampling
from turnout.distributed import (
    AggregationMechanism,
    Costs,
    SamplingAggregation,
    TwoStageSampling,
)
from turnout.domain import Domain
from turnout_reproduce.curves import Curve
from turnout_reproduce.fair import claims
from turnout_reproduce.fair.shared import (
    BARS,
    ERROR,
    REPEATS,
    Measured,
    experiment,
    legend_below,
    lemma,
    measure,
    read_datasets,
    repeats_of,
)
from turnout_reproduce.outcome import Finding, Outcome, Scale
from turnout_reproduce.pictures import panels

_USERS: Final = 1000
_ALPHA: Final = 0.4
_RATES: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
#: The paper's log gamma, which it does not print; None is uniform reporting.
_LEVELS: Final = (None, 1.0, 2.0)

#: Of Table 1, for which the paper names no sizes.
_ITEMS: Final = 30
_RATE: Final = 0.5
_LOG_GAMMA: Final = 2.0


def _two_stage(
    counts: Integers, rate: float, level: float | None, elected: int | None = None
) -> TwoStageSampling:
    return TwoStageSampling(
        Domain.from_integers(counts.size),
        int(counts.sum()),
        reported=round(_ALPHA * counts.size),
        gamma=None if level is None else math.exp(level),
        rate=rate,
        floor=int(counts.min()),
        elected=elected,
    )


def _label(level: float | None) -> str:
    return "uniform sets (US)" if level is None else f"adaptive sets (AS), eps* = {level:g}"


def _errors(scale: Scale) -> Outcome:
    data = read_datasets(scale)
    curves: list[Curve] = []
    findings: list[Finding] = []
    measured: list[Measured] = []
    for place, (name, counts) in enumerate(data.samples(_USERS)):
        exact = []
        for number, level in enumerate(_LEVELS):
            # Two elected users for each item, not hundreds: the sums are the same.
            found = [
                measure(_two_stage(counts, rate, level, 2), counts, scale, (3, place, number, part))
                for part, rate in enumerate(_RATES)
            ]
            means, errors, right = (tuple(part) for part in zip(*found, strict=True))
            curves.append(Curve(_label(level), _RATES, means, errors, name))
            exact.append(np.array(right))
            measured += found
        findings += [
            _smaller(f"{name}: uniform over adaptive sets", exact[0] / exact[1]),
            _smaller(f"{name}: eps* = 1 over eps* = 2", exact[1] / exact[2]),
        ]
        findings += _privacy(name, counts)
    findings.append(lemma("Theorem 3.5, the error is (1 - q_chi)/(n q_chi)", measured, scale))
    settings = {
        "users": _USERS,
        "rates": list(_RATES),
        "alpha": _ALPHA,
        "eps*": [level for level in _LEVELS if level is not None],
        "elected": 2,
        "repeats": repeats_of(scale),
        "paper_repeats": REPEATS,
        "error": ERROR,
    }
    words = f"{data.words} Sets have round(0.4 N) items. The paper does not print its eps*."
    return Outcome(tuple(findings), tuple(curves), settings, words)


def _smaller(name: str, ratios: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Finding:
    least = float(ratios.min())
    return Finding.claimed(
        f"{name}: least exact ratio of the errors over all rates",
        least,
        least > 1.0,
        why="at one rate the error is not smaller",
    )


def _privacy(name: str, counts: Integers) -> list[Finding]:
    """Judge what Theorems 3.3 and 3.4 say, at the rate 1/2 and the larger eps*."""
    mechanism = _two_stage(counts, _RATE, _LOG_GAMMA)
    share = mechanism.reporting_epsilon / _LOG_GAMMA
    accounting = mechanism.accounting
    assert isinstance(accounting, TwoStageCountSampling)
    claimed = float(claims.theorem_3_4_delta(1.0, accounting.rate, accounting.floor))
    bound = float(accounting.delta(1.0))
    return [
        Finding.claimed(
            f"{name}: sets keep eps* = {_LOG_GAMMA:g} (Theorem 3.3): exact over claimed, rate 0.5",
            share,
            share <= 1.0 + 1e-9,
            why="a set says more",
        ),
        Finding.alone(
            f"{name}: delta at epsilon = 1 by Theorem 3.4, for who sees no set, rate 0.5", claimed
        ),
        Finding.alone(
            f"{name}: bound of delta at epsilon = 1 for who sees sets and counts, rate 0.5", bound
        ),
    ]


#: What parties do, by the name in the costs, the sign in the table and a word.
_KINDS: Final = {
    "additions": "field additions (FA)",
    "draws": "field elements drawn (FS)",
    "coins": "Bernoulli trials (BS)",
    "sets": "sets drawn (aS)",
}
_WRONG: Final = (
    "an item is in alpha n sets on average, not in p_chi n, however adaptive the sets are: every "
    "user reports alpha N items"
)


def _costs(scale: Scale) -> Outcome:
    counts = np.full(_ITEMS, _USERS // _ITEMS)
    counts[: _USERS % _ITEMS] += 1
    everyone = SamplingAggregation(
        Domain.from_integers(_ITEMS),
        _USERS,
        rate=_RATE,
        floor=int(counts.min()),
        parties="users",
        compressed=False,
    )
    mechanisms: dict[str, AggregationMechanism] = {
        "DPDS": everyone,
        "TSS, uniform sets": _two_stage(counts, _RATE, None),
        f"TSS, adaptive sets, eps* = {_LOG_GAMMA:g}": _two_stage(counts, _RATE, _LOG_GAMMA),
    }
    findings: list[Finding] = []
    curves: list[Curve] = []
    users: dict[str, dict[str, tuple[float, float]]] = {}
    repeats = REPEATS if scale.full else 5
    for place, (name, mechanism) in enumerate(mechanisms.items()):
        runs = [
            _run(mechanism, counts, derived(scale.seed, 4, place, run)) for run in range(repeats)
        ]
        shown: list[tuple[float, float, float]] = []
        for role, formula in mechanism.paper_costs().items():
            for kind in _KINDS:
                printed = float(getattr(formula, kind))
                if not printed:
                    continue
                ours, error = _mean([float(getattr(run[role], kind)) for run in runs])
                findings.append(
                    Finding.compared(
                        f"{name}, one {role}: {_KINDS[kind]}",
                        ours,
                        printed,
                        error=error,
                        tolerance=_slack(role, printed),
                        wrong=_WRONG if "adaptive" in name else "",
                    )
                )
                if role == "user":
                    users.setdefault(name, {})[kind] = ours, error
                if printed > 1.0:
                    shown.append((printed, ours, error))
            ours, error = _mean([run[role].bytes for run in runs])
            if formula.bytes:
                what = f"{name}, one {role}: bytes sent, with headers and rosters"
                findings.append(Finding.alone(what, ours, error=error))
                findings.append(
                    Finding.alone(f"{name}, one {role}: bytes by the formula", formula.bytes)
                )
        x, y, errors = zip(*shown, strict=True)
        curves.append(Curve(name, x, y, errors))
        if isinstance(mechanism, TwoStageSampling):
            # Not in paper_costs: numbers of users, not field elements.
            ours, error = _mean([run["reporting server"].additions for run in runs])
            findings.append(
                Finding.compared(
                    f"{name}, one reporting server: additions of numbers (nA)",
                    ours,
                    (_USERS - 1.0) * _ITEMS,
                    error=error,
                    tolerance=_slack("server", 0.0),
                )
            )
    findings += _saving(users, mechanisms)
    ends = tuple(sorted(place for curve in curves for place in (min(curve.x), max(curve.x))))
    curves.append(Curve("measured = printed", (ends[0], ends[-1]), (ends[0], ends[-1])))
    settings = {
        "users": _USERS,
        "items": _ITEMS,
        "alpha": _ALPHA,
        "rate": _RATE,
        "gamma": math.exp(_LOG_GAMMA),
        "repeats": repeats,
    }
    words = "Data: 1000 users, 30 items held equally often; the paper's table has formulas only."
    return Outcome(tuple(findings), tuple(curves), settings, words)


def _run(mechanism: AggregationMechanism, counts: Integers, seed: int | None) -> dict[str, Costs]:
    """Run a round; give the mean costs of one party of each role."""
    ledger = mechanism.run(np.repeat(np.arange(counts.size), counts), seed).costs
    return {role: ledger.average(role) for role in ledger.totals}


def _mean(values: list[float]) -> tuple[float, float]:
    array = np.array(values)
    return float(array.mean()), float(array.std(ddof=1) / math.sqrt(array.size))


def _slack(role: str, printed: float) -> float:
    """Give how much a count may differ: the table counts roughly.

    The server here adds the first share of an item to zero, one addition more. A user's formula
    puts the mean number of sets with an item where its mean square belongs: half a percent.
    """
    return float(_ITEMS) if role == "server" else 0.005 * printed


def _saving(
    users: dict[str, dict[str, tuple[float, float]]], mechanisms: dict[str, AggregationMechanism]
) -> list[Finding]:
    """Compare how much less a user of two stages does with the 1/(p_chi alpha) of the text."""
    dpds = users["DPDS"]["draws"][0]
    findings = []
    for name, mechanism in mechanisms.items():
        if not isinstance(mechanism, TwoStageSampling):
            continue
        draws, error = users[name]["draws"]
        ratio = dpds / draws
        printed = 1.0 / (mechanism.own_probability * _ALPHA)
        findings.append(
            Finding.compared(
                f"{name}: how many times less a user draws than with DPDS (1/(p_chi alpha))",
                ratio,
                printed,
                error=ratio * error / draws,
                tolerance=0.01 * printed,
                wrong=f"{_WRONG}, so that the factor is 1/alpha^2",
            )
        )
    return findings


def _separate_points(figure: Figure) -> None:
    containers: Any = figure.axes[0].containers
    for container in containers:
        container.lines[0].set_linestyle("none")
        container.lines[0].set_markersize(6)
    figure.axes[0].legend(frameon=False, fontsize="small", loc="upper left")


EXPERIMENTS: Final = (
    experiment(
        "Figure 3",
        "Two-stage sampling: uniform and adaptive sets",
        _errors,
        partial(
            panels,
            title="Fair paper, Figure 3: two-stage sampling, 1000 users, alpha = 0.4",
            x="sampling probability p", y=ERROR, log="y", caption=BARS, finish=legend_below,
        ),
    ),
    experiment(
        "Table 1",
        "What DPDS and two-stage sampling cost each party",
        _costs,
        partial(
            panels,
            title="Fair paper, Table 1: what one party does in a round, n = 1000, N = 30",
            x="by the table's formula", y="counted in a round", finish=_separate_points,
            caption="Field additions and drawn elements of users and servers.",
        ),
    ),
)  # fmt: skip
