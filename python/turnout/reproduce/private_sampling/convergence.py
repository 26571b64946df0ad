"""Theorems 5 to 7 of the private-sampling paper: how fast MBDE gets closer to the data."""

from __future__ import annotations

from typing import Final

import numpy as np

from turnout._types import Figure, Floats
from turnout.reproduce.outcome import Curve, Experiment, Finding, Outcome, Scale
from turnout.reproduce.pictures import panels
from turnout.reproduce.private_sampling.exact import ExactBoosting, Line, boosted, floor_gain, line
from turnout.reproduce.private_sampling.shared import SOURCE
from turnout.samplers.weak_learner import LOG_TWO

_EPSILONS: Final = (1.0, 5.0)
_ROUNDS: Final = 20
#: So many rounds that more cannot be told from it.
_MANY: Final = 60


def theorem_6(epsilon: float, found: ExactBoosting) -> Floats:
    """Give the right side of (13) for 1, 2, ... rounds, with the least edges until then."""
    least = np.minimum.accumulate(found.edges).sum(axis=1) / 2.0
    result: Floats = epsilon / 2.0 * least * (1.0 - found.weights)
    return result


def hoeffding(found: ExactBoosting) -> Floats:
    """Bound Delta(Q_t) from below as (13) does, with what it leaves out.

    The logarithm of the mean of exp(theta c) is at most theta times the mean of c, and
    theta^2 (log 2)^2 / 2, by Hoeffding's lemma.
    """
    steps = found.weights * LOG_TWO * found.edges.sum(axis=1)
    result: Floats = np.cumsum(steps - (found.weights * LOG_TWO) ** 2 / 2.0)
    return result


def promised(epsilon: float, found: ExactBoosting, on: Line | None = None) -> tuple[float, float]:
    """Find the largest mass that Theorem 7 promises to any set B that meets (14).

    Of all sets of enough mass under P, those where P/Q0 is smallest are promised most.

    Returns
    -------
    tuple of float
        The promise, and the mass that B has under Q_T; minus infinity if no set meets (14).
    """
    on = line() if on is None else on
    order = np.argsort(on.log_ratio, kind="stable")
    mass = np.cumsum(on.p[order])
    divergence = np.cumsum((on.p * on.log_ratio)[order])
    kept = np.cumsum(found.masses[order])
    rounds, edges = found.weights.size, float(found.edges.min(axis=0).sum())

    def h(x: float) -> float:
        return epsilon + 2.0 * x

    best = (-np.inf, 0.0)
    for alpha in np.linspace(0.0, 1.0, 101):
        needed = epsilon * h((2.0 - edges) * rounds) / (h(alpha) * h(rounds))
        meets = int(np.searchsorted(mass, needed))
        if meets < mass.size:
            promise = ((1.0 - alpha) * mass - divergence)[meets:]
            place = int(promise.argmax())
            if promise[place] > best[0]:
                best = (float(promise[place]), float(kept[meets + place]))
    return best


def _run(scale: Scale) -> Outcome:
    numbers = tuple(float(number) for number in range(1, _ROUNDS + 1))
    curves: list[Curve] = []
    findings: list[Finding] = []
    for epsilon in _EPSILONS:
        found, limit = boosted(epsilon, _ROUNDS), floor_gain(epsilon)
        panel = f"epsilon = {epsilon:g}"
        stated = theorem_6(epsilon, found)
        lines = {
            "floor: the most that any member can have": np.full(_ROUNDS, limit),
            "MBDE, best classifiers": found.gains,
            "Theorem 6, said to be below MBDE": stated,
            "the same with Hoeffding's term": hoeffding(found),
        }
        curves += [
            Curve(label, numbers, tuple((values / (epsilon / 2.0)).tolist()), None, panel)
            for label, values in lines.items()
        ]
        findings += _findings(panel, epsilon, found, limit, stated)
    last = [float(boosted(epsilon, _ROUNDS).gains[-1]) for epsilon in (0.1, 1.0, 2.0, 5.0, 10.0)]
    least = float(np.diff(last).min())
    what = "MBDE gets closer to P as epsilon grows, from 0.1 to 10: least fall of KL(P, Q_20)"
    findings.append(Finding.claimed(what, least, least > 0.0, why="it does not"))
    return Outcome(
        tuple(findings),
        tuple(curves),
        {"epsilons": list(_EPSILONS), "rounds": _ROUNDS, "exact": True},
        "1/3 (N(.3, .01) + N(.5, .1) + N(.7, .1)), s a standard deviation, Q0 = N(0, 1); "
        "integrals on a grid.",
    )


def _findings(
    begin: str, epsilon: float, found: ExactBoosting, limit: float, stated: Floats
) -> list[Finding]:
    own = line()
    start = float(own.p @ own.log_ratio)
    drops = np.diff(found.gains, prepend=0.0)
    many = float(boosted(epsilon, _MANY).gains[-1])
    promise, kept = promised(epsilon, found)
    ratio = float(found.gains[0] / stated[0])
    jensen = (
        "by Jensen's inequality a round lowers KL by no more than theta log 2 (gamma_P + gamma_Q), "
        "which is what (13) adds up; with theta^2 (log 2)^2 / 2 less for each round it is true"
    )
    result = [
        Finding.alone(f"{begin}: KL(P, Q0)", start),
        Finding.alone(f"{begin}: KL(P, Q) of the floor", start - limit),
        Finding.alone(
            f"{begin}: KL(P, Q_20) of MBDE with the best classifiers", start - found.gains[-1]
        ),
        Finding.claimed(
            f"{begin}: Theorem 5 has KL(P, Q_t) fall in each round, by what is not printed: least "
            "fall",
            float(drops.min()),
            bool(drops.min() > 0.0),
            why="it does not",
        ),
        Finding.claimed(
            f"{begin}: Theorem 6 has Delta at most epsilon/2: that of the floor over it",
            limit / (epsilon / 2.0),
            limit <= epsilon / 2.0 * (1.0 + 1e-9),
            why="it is larger",
        ),
        Finding.claimed(
            f"{begin}: Theorem 6 has Delta(Q_T) at least (13): ratio after one round",
            ratio,
            ratio >= 1.0,
            why=jensen,
        ),
        Finding.alone(
            f"{begin}: the same ratio after 20 rounds, with the least edges of them",
            float(found.gains[-1] / stated[-1]),
        ),
        Finding.claimed(
            f"{begin}: more rounds approach the information-theoretic limit: share of its Delta "
            f"that MBDE misses after {_MANY}",
            1.0 - many / limit,
            abs(1.0 - many / limit) < 0.01,
            why="the weights add up to less than epsilon / (4 log 2), so that later rounds change "
            "nothing, and the best classifiers of this P do not have edges near 1",
        ),
        Finding.alone(
            f"{begin}: Theorem 7 with T = {_ROUNDS}: the largest mass that it promises to any set "
            "that meets (14); below 0 is nothing",
            promise,
        ),
    ]
    if promise > 0.0:
        what = f"{begin}: Theorem 7: what that set has, less the promise"
        result.append(Finding.claimed(what, kept - promise, kept >= promise, why="it has less"))
    return result


def _draw(outcome: Outcome) -> Figure:
    figure = panels(
        outcome,
        "Private-sampling paper, Theorem 6: how much closer than Q0",
        x="rounds T",
        y="Delta(Q_T) over epsilon/2",
    )
    for ax in figure.axes:
        if (legend := ax.get_legend()) is not None:
            legend.remove()
        ax.set_ylim(0.0, 1.05)
        ax.set_xticks([1, 5, 10, 15, 20])
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.set_size_inches(9.2, 5.0)
    figure.tight_layout(rect=(0, 0.15, 1, 1))
    figure.legend(
        handles, names, frameon=False, fontsize="small", ncols=2, loc="lower center",
        bbox_to_anchor=(0.5, 0.04),
    )  # fmt: skip
    return figure


EXPERIMENTS: Final = (
    Experiment(
        "private-sampling/theorem-6",
        "How much closer than Q0 the rounds of MBDE get, exactly, and Theorems 5 to 7",
        f"{SOURCE}, Theorems 5, 6 and 7",
        _run,
        _draw,
    ),
)
