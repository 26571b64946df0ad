"""Figures of the sampling paper.

Biswas, Cormode, Maple, "Impact of sampling on locally differentially private data collection".

The paper gives 50,000 values of Bin(100, 0.5), and of the sum of Bin(50, 0.6) and Bin(50, 0.4), in
a "domain of size 100"; such variables have 101 values, 0 to 100, which are taken here. It does not
print the epsilons of its figures, nor any number of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

import turnout
from turnout._progress import track
from turnout._seeds import derived
from turnout._types import Figure, Floats, Unsigned
from turnout_reproduce.curves import Curve, count_on_top
from turnout_reproduce.outcome import Experiment, Finding, Outcome, Scale
from turnout_reproduce.pictures import legend_beside, panels

_NODES: Final = 50_000
_VALUES: Final = 101
#: Of Figures 1 and 2: an epsilon at which the shape can be seen at both rates.
_EPSILON: Final = 4.0
_RATES: Final = (0.1, 0.9)
#: Of Figure 3: from one at which nothing can be seen to one at which everything can.
_EPSILONS: Final = (1.0, 2.0, 4.0, 6.0)
_TRADE_OFF: Final = tuple(round(0.1 * tenth, 1) for tenth in range(1, 10))


def _counts(trials: tuple[tuple[int, float], ...], seed: int) -> Unsigned:
    """Draw the data: how many of the nodes hold each value of a sum of binomial variables."""
    random = np.random.default_rng(derived(seed, 0))
    values = sum(random.binomial(number, rate, _NODES) for number, rate in trials)
    return np.bincount(values, minlength=_VALUES).astype(np.uint64)


def _estimates(
    counts: Unsigned, epsilon: float, rate: float, method: str, *, repeats: range, scale: Scale
) -> Floats:
    """Estimate the frequencies in some collections, one a row."""
    oracle = turnout.DirectEncoding(epsilon, _VALUES)
    who = turnout.Bernoulli(rate)
    rows = [
        oracle.simulate(counts, participation=who, seed=derived(scale.seed, 1, repeat))
        .estimate(method)
        .frequencies
        for repeat in track(repeats, f"pi = {rate}", scale.progress)
    ]
    return np.array(rows)


def _distances(estimates: Floats, truth: Floats) -> tuple[float, float]:
    """Give the mean of the total variation distances, and its standard error."""
    distances = np.abs(estimates - truth).sum(axis=1) / 2.0
    return float(distances.mean()), float(distances.std(ddof=1) / np.sqrt(distances.size))


def _histogram(trials: tuple[tuple[int, float], ...], scale: Scale) -> Outcome:
    """Estimate one data set at a small and at a large rate, with g, as Figures 1 and 2 do."""
    counts = _counts(trials, scale.seed)
    truth = counts / _NODES
    repeats = 1000 if scale.full else 100
    codes = tuple(float(code) for code in range(_VALUES))
    curves, findings = [], []
    found = {}
    for number, rate in enumerate(_RATES):
        runs = range(number * repeats, (number + 1) * repeats)
        estimates = _estimates(counts, _EPSILON, rate, "g", repeats=runs, scale=scale)
        spread = estimates.std(axis=0, ddof=1)
        panel = f"pi = {rate}"
        curves.append(Curve("data", codes, tuple(truth.tolist()), panel=panel))
        one, bars = tuple(estimates[0].tolist()), tuple(spread.tolist())
        curves.append(Curve("g, one collection", codes, one, bars, panel))
        found[rate] = _distances(estimates, truth)
        findings.append(
            Finding.alone(f"TV distance of g at pi = {rate}", found[rate][0], error=found[rate][1])
        )
        # 101 normal variables: alpha = 1e-6 for the largest is 5.7.
        off = np.abs(estimates.mean(axis=0) - truth) / (spread / np.sqrt(repeats))
        findings.append(
            Finding.claimed(
                f"g is unbiased (Theorem 3.1) at pi = {rate}: largest error of a mean, in its "
                "standard errors",
                float(off.max()),
                bool(off.max() < 5.7),
            )
        )
    (small, small_error), (large, large_error) = found[0.1], found[0.9]
    ratio = small / large
    error = ratio * float(np.hypot(small_error / small, large_error / large))
    claim = "more nodes, better estimate: TV distance at 0.1 over that at 0.9"
    findings.append(Finding.claimed(claim, ratio, ratio > 1 + 3 * error, error=error))
    return Outcome(
        tuple(findings),
        tuple(curves),
        {
            "nodes": _NODES,
            "values": _VALUES,
            "epsilon": _EPSILON,
            "rates": list(_RATES),
            "repeats": repeats,
            "trials": [list(trial) for trial in trials],
        },
        "Data drawn as the paper says; its epsilon is not printed, 4 is ours.",
    )


def _trade_off(scale: Scale) -> Outcome:
    """Measure the TV distance of c_hat at rates from 0.1 to 0.9, as Figure 3 does."""
    counts = _counts(((100, 0.5),), scale.seed)
    truth = counts / _NODES
    repeats = 500 if scale.full else 40
    curves, findings = [], []
    shares = {}
    for place, epsilon in enumerate(_EPSILONS):
        found = []
        for number, rate in enumerate(_TRADE_OFF):
            first = (place * len(_TRADE_OFF) + number) * repeats
            runs = range(first, first + repeats)
            estimates = _estimates(counts, epsilon, rate, "c_hat", repeats=runs, scale=scale)
            found.append(_distances(estimates, truth))
        means, errors = zip(*found, strict=True)
        curves.append(Curve(f"epsilon = {epsilon:g}", _TRADE_OFF, means, errors))
        ends = ((0.1, *found[0]), (0.9, *found[-1]))
        findings += [
            Finding.alone(f"TV distance at epsilon = {epsilon:g}, pi = {rate}", mean, error=error)
            for rate, mean, error in ends
        ]
        middle = _TRADE_OFF.index(0.5)
        gain = (means[0] - means[middle], means[middle] - means[-1])
        shares[epsilon] = (gain[1] / gain[0], errors[-1] / gain[0])
    share, error = shares[_EPSILONS[-1]]
    findings.append(
        Finding.claimed(
            "beyond a point more nodes help little: gain from 0.5 to 0.9 over that from 0.1 to "
            f"0.5, at epsilon = {_EPSILONS[-1]:g}",
            share,
            share + 3 * error < 0.5,
            error=error,
        )
    )
    findings.append(_theorem(counts))
    return Outcome(
        tuple(findings),
        tuple(curves),
        {
            "nodes": _NODES,
            "values": _VALUES,
            "epsilons": list(_EPSILONS),
            "rates": list(_TRADE_OFF),
            "repeats": repeats,
        },
        "Data: Bin(100, 0.5), drawn as the paper says; its epsilons are not printed.",
    )


def _theorem(counts: Unsigned) -> Finding:
    """Compare the exact variances of g and c_hat, of which Theorem 3.5 says the opposite."""
    oracle, who = turnout.DirectEncoding(1.0, _VALUES), turnout.Bernoulli(0.3)

    def variance(method: str) -> float:
        found = turnout.estimator_variance(oracle, who, method=method, true_counts=counts)
        return float(found.sum())

    ratio = variance("c_hat") / variance("g")
    return Finding.claimed(
        "Theorem 3.5 has Var(c_hat) above Var(g): exact ratio at epsilon = 1, pi = 0.3",
        ratio,
        ratio > 1.0,
        why="the proof drops Cov(C(i), S) > 0: c_hat is never worse than g",
    )


def _add_cost(figure: Figure) -> None:
    count_on_top(figure.axes[0], "expected reports: the cost", _NODES)
    legend_beside(figure)


def _experiment(
    number: int, title: str, run: Callable[[Scale], Outcome], draw: Callable[[Outcome], Figure]
) -> Experiment:
    source = (
        "Biswas, Cormode, Maple: Impact of Sampling on Locally Differentially Private Data "
        f"Collection, Figure {number}"
    )
    return Experiment(f"sampling/figure-{number}", title, source, run, draw)


def _of_data(number: int, words: str, trials: tuple[tuple[int, float], ...]) -> Experiment:
    draw = partial(
        panels,
        title=f"Sampling paper, Figure {number}: {words}",
        x="value",
        y="share of the nodes",
        steps=True,
        caption="Bars: two standard deviations of one collection.",
    )
    title = f"Estimates of {words} at pi = 0.1 and 0.9"
    return _experiment(number, title, partial(_histogram, trials), draw)


EXPERIMENTS: Final = (
    _of_data(1, "Bin(100, 0.5)", ((100, 0.5),)),
    _of_data(2, "Bin(50, 0.6) + Bin(50, 0.4)", ((50, 0.6), (50, 0.4))),
    _experiment(
        3,
        "Total variation distance and cost against the participation rate",
        _trade_off,
        partial(
            panels,
            title="Sampling paper, Figure 3: error and cost",
            x="participation rate pi",
            y="total variation distance of c_hat",
            log="y",
            caption="Bars: two standard errors.",
            finish=_add_cost,
        ),
    ),
)
