"""Theorem 4 of the private-sampling paper: what MBDE keeps with clipped scores, and without."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from turnout._progress import track
from turnout._seeds import derived
from turnout._types import Figure, Floats
from turnout.reproduce.outcome import Curve, Experiment, Finding, Outcome, Scale
from turnout.reproduce.pictures import panels, readable
from turnout.reproduce.private_sampling.exact import boosted, line
from turnout.reproduce.private_sampling.shared import SOURCE
from turnout.samplers.boosting import MollifiedBoosting, boosting_weights, score_bound
from turnout.samplers.networks import DenseNetwork
from turnout.samplers.study.targets import seed_mixture

_EPSILONS: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
_ROUNDS: Final = 20
#: How sure a weak learner is that tells two opposite data sets apart.
_SURE: Final = 0.99
#: Where the network is looked at: all but 6e-5 of the reference.
_NEAR: Final = 4.0


def logits(records: int, seed: int | None) -> Floats:
    """Train the paper's network to tell records from Q0; give its log-odds on the line.

    That is the first round of boosting, and the same for every epsilon.
    """
    sampler = MollifiedBoosting(1.0, n_rounds=1, random_state=seed)
    sampler.fit(seed_mixture().sample(records, seed=derived(seed, 1)))
    network = sampler.score_.learners[0]
    assert isinstance(network, DenseNetwork)
    return network.logits(line().points)


def reach_of(epsilon: float, scores: Floats) -> float:
    """Give the largest ``|log Q_1/Q0|`` at the points looked at: the supremum is no smaller."""
    on = line()
    score = boosting_weights(epsilon, 1)[0] * scores
    ratio = score - math.log(on.q @ np.exp(score))
    return float(np.abs(ratio[np.abs(on.points[:, 0]) <= _NEAR]).max())


def opposite(epsilon: float, share: float, log_odds: float) -> tuple[float, float]:
    """Compute what a learner with two values gives away after twenty rounds.

    One person's data are all in a set A of mass ``share`` under Q0, another's are all outside. In
    each round the learner says which is which with log-odds of one size.

    Returns
    -------
    tuple of float
        The largest ``|log Q/Q0|``, and the epsilon that one draw really has: the largest
        ``|log Q/Q'|`` of the two persons.
    """
    total = sum(boosting_weights(epsilon, _ROUNDS)) * log_odds
    reference = np.array([share, 1.0 - share])
    laws = [reference * np.exp(np.array([sign, -sign]) * total) for sign in (1.0, -1.0)]
    one, other = (np.log(law / law.sum()) for law in laws)
    base = np.log(reference)
    reach = max(np.abs(one - base).max(), np.abs(other - base).max())
    return float(reach), float(np.abs(one - other).max())


def _run(scale: Scale) -> Outcome:
    records, repeats = (10_000, 20) if scale.full else (500, 4)
    sure = math.log(_SURE / (1.0 - _SURE))
    trained = [
        logits(records, derived(scale.seed, 40, repeat))
        for repeat in track(range(repeats), "networks", scale.progress)
    ]
    reached = np.array([[reach_of(epsilon, scores) for epsilon in _EPSILONS] for scores in trained])
    means, errors = reached.mean(axis=0), reached.std(axis=0, ddof=1) / math.sqrt(repeats)
    certified = [
        2.0 * score_bound(epsilon, boosting_weights(epsilon, _ROUNDS)) for epsilon in _EPSILONS
    ]
    best = [float(boosted(epsilon, _ROUNDS).reach[-1]) for epsilon in _EPSILONS]
    two = [opposite(epsilon, 0.5, sure)[0] for epsilon in _EPSILONS]
    half = [epsilon / 2.0 for epsilon in _EPSILONS]
    lines = {
        "not clipped: a learner 99 % sure": two,
        "epsilon / 2: the bound of Theorem 4": half,
        "clipped: best classifiers": best,
    }
    curves = [
        Curve(
            "not clipped: the network, one round",
            _EPSILONS,
            tuple(means.tolist()),
            tuple(errors.tolist()),
        ),
        *(Curve(label, _EPSILONS, tuple(values)) for label, values in lines.items()),
    ]
    place = _EPSILONS.index(1.0)
    kept = max(value / bound for value, bound in zip(certified, half, strict=True))
    ratios = means / half
    worst = int(ratios.argmin())
    breach = "the proof needs |c| <= log 2, and the logarithm of a sigmoid's odds has no bound"
    real = opposite(1.0, 0.5, sure)[1]
    findings = [
        Finding.claimed(
            "Theorem 4 with clipped scores: largest certificate over epsilon/2",
            kept,
            kept <= 1.0,
            why="it is larger",
        ),
        Finding.alone(
            "largest |log Q/Q0| with clipped scores and the best classifiers, epsilon = 1",
            best[place],
        ),
        Finding.claimed(
            "Theorem 4 for log-odds of the network that are not clipped, one round: least of "
            "|log Q/Q0| over epsilon/2 among the epsilons",
            float(ratios[worst]),
            bool(ratios[worst] - 3.0 * errors[worst] / half[worst] <= 1.0),
            error=float(errors[worst] / half[worst]),
            why=breach,
        ),
        Finding.alone(
            "the same at epsilon = 1: |log Q/Q0|", float(means[place]), error=float(errors[place])
        ),
        Finding.claimed(
            "a draw is 1-private for two opposite persons, learner 99 % sure and not clipped: the "
            "epsilon it really has",
            real,
            real <= 1.0,
            why=breach,
        ),
        Finding.alone(
            "the same with scores clipped to log 2: the epsilon it really has",
            opposite(1.0, 0.5, math.log(2.0))[1],
        ),
    ]
    return Outcome(
        tuple(findings),
        tuple(curves),
        {
            "epsilons": list(_EPSILONS),
            "records": records,
            "repeats": repeats,
            "rounds": _ROUNDS,
            "sure": _SURE,
        },
        f"Data: 1/3 (N(.3, .01) + N(.5, .1) + N(.7, .1)), {records:,} records for the network; "
        "for the learner 99 % sure two opposite persons, Q0(A) = 1/2. Q0 = N(0, 1).",
    )


def _draw(outcome: Outcome) -> Figure:
    figure = panels(
        outcome,
        "Private-sampling paper, Theorem 4: with clipped scores, and without",
        x="epsilon",
        y="largest |log Q/Q0|",
        log=True,
        caption="Bars: two standard errors.",
    )
    axes = figure.axes[0]
    axes.set_xscale("log")
    readable(axes.xaxis)
    axes.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.set_size_inches(9.2, 4.6)
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    return figure


EXPERIMENTS: Final = (
    Experiment(
        "private-sampling/theorem-4",
        "What a draw of MBDE gives away, with clipped scores and without",
        f"{SOURCE}, Theorem 4",
        _run,
        _draw,
    ),
)
