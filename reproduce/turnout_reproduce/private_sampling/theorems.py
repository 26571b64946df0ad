"""The theorems of the private-sampling paper, on MBDE computed without chance.

Theorem 4: what MBDE keeps with clipped scores, and without. Theorems 5 to 7: how fast it gets
closer to the data. The weak learner is Bayes-optimal on the mixture on the line, but where the
paper's network is looked at.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from turnout._progress import track
from turnout._seeds import derived
from turnout._types import Figure, Floats
from turnout.samplers.mollifier import Projection
from turnout.samplers.reference import StandardNormal
from turnout_reproduce.boosting.networks import DenseNetwork
from turnout_reproduce.boosting.sampler import MollifiedBoosting, boosting_weights, score_bound
from turnout_reproduce.boosting.weak_learner import LOG_TWO, clipped
from turnout_reproduce.curves import Curve, readable
from turnout_reproduce.measures.targets import seed_mixture
from turnout_reproduce.outcome import Experiment, Finding, Outcome, Scale
from turnout_reproduce.pictures import legend_beside, panels
from turnout_reproduce.private_sampling.shared import SOURCE

_ROUNDS: Final = 20

#: Midpoints of cells on [-9, 9]: the narrowest mode has 36 cells to a standard deviation.
_CELLS: Final = 2**16
_REACH: Final = 9.0

_EPSILONS_4: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0)
#: How sure a weak learner is that tells two opposite data sets apart.
_SURE: Final = 0.99
#: Where the network is looked at: all but 6e-5 of the reference.
_NEAR: Final = 4.0

_EPSILONS_6: Final = (1.0, 5.0)
#: So many rounds that more cannot be told from it.
_MANY: Final = 60


@dataclass(frozen=True)
class Line:
    """The mixture P and the reference Q0 = N(0, 1) on midpoints of cells.

    Attributes
    ----------
    points
        The midpoints, of shape (n, 1).
    log_ratio
        log P/Q0.
    p, q
        The masses of the cells.
    """

    points: Floats
    log_ratio: Floats
    p: Floats
    q: Floats


@dataclass(frozen=True)
class ExactBoosting:
    """What each round did; arrays over rounds.

    Attributes
    ----------
    weights
        theta_t.
    edges
        gamma_P and gamma_Q of the rounds, of shape (rounds, 2).
    gains
        Delta(Q_t) = KL(P, Q0) - KL(P, Q_t).
    reach
        The largest ``|log Q_t/Q0|``.
    masses
        The masses of the cells after the last round.
    """

    weights: Floats
    edges: Floats
    gains: Floats
    reach: Floats
    masses: Floats


@functools.cache
def line() -> Line:
    """Evaluate the mixture and the reference."""
    side = 2.0 * _REACH / _CELLS
    points: Floats = -_REACH + side * (np.arange(_CELLS, dtype=np.float64) + 0.5)[:, None]
    log_p = seed_mixture().log_density(points)
    log_q = StandardNormal(1).log_density(points)
    return Line(points, log_p - log_q, np.exp(log_p) * side, np.exp(log_q) * side)


def boosted(epsilon: float, rounds: int, on: Line | None = None) -> ExactBoosting:
    """Run Algorithm 1 with the clipped log-odds of the best classifier of P from Q_t.

    Parameters
    ----------
    epsilon
        Privacy of one draw.
    rounds
        How many.
    on
        Where; the seed mixture on the line by default.

    Returns
    -------
    ExactBoosting
        The rounds.
    """
    on = line() if on is None else on
    score = np.zeros(on.p.size)
    normalizer = 0.0
    edges, gains, reach = [], [], []
    weights = boosting_weights(epsilon, rounds)
    for weight in weights:
        learner = clipped(on.log_ratio - score + normalizer)
        before = on.q * np.exp(score - normalizer)
        edges.append((float(on.p @ learner) / LOG_TWO, -float(before @ learner) / LOG_TWO))
        score = score + weight * learner
        normalizer = float(np.log(on.q @ np.exp(score)))
        gains.append(float(on.p @ score) - normalizer)
        reach.append(float(np.abs(score - normalizer).max()))
    return ExactBoosting(
        np.array(weights),
        np.array(edges),
        np.array(gains),
        np.array(reach),
        on.q * np.exp(score - normalizer),
    )


def floor_gain(epsilon: float) -> float:
    """Compute Delta of the projection of P: no member of the mollifier has a larger one."""
    on = line()
    ratio = Projection(StandardNormal(1), seed_mixture().log_density, epsilon)._log_ratio(on.points)
    # The constant of the projection is solved for on fewer points: what it misses is taken out.
    return float(on.p @ ratio - np.log(on.q @ np.exp(ratio)))


# Theorem 4


def logits(records: int, seed: int | None) -> Floats:
    """Train the paper's network to tell records from Q0; give its log-odds on the line.

    That is the first round of boosting, and the same for every epsilon.
    """
    sampler = MollifiedBoosting(1.0, n_rounds=1, random_state=seed)
    sampler.fit(seed_mixture().sample(records, seed=derived(seed, 1)))
    network = sampler._score_.learners[0]
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


def _run_theorem_4(scale: Scale) -> Outcome:
    records, repeats = (10_000, 20) if scale.full else (500, 4)
    sure = math.log(_SURE / (1.0 - _SURE))
    trained = [
        logits(records, derived(scale.seed, 40, repeat))
        for repeat in track(range(repeats), "networks", scale.progress)
    ]
    reached = np.array(
        [[reach_of(epsilon, scores) for epsilon in _EPSILONS_4] for scores in trained]
    )
    means, errors = reached.mean(axis=0), reached.std(axis=0, ddof=1) / math.sqrt(repeats)
    certified = [
        2.0 * score_bound(epsilon, boosting_weights(epsilon, _ROUNDS)) for epsilon in _EPSILONS_4
    ]
    best = [float(boosted(epsilon, _ROUNDS).reach[-1]) for epsilon in _EPSILONS_4]
    two = [opposite(epsilon, 0.5, sure)[0] for epsilon in _EPSILONS_4]
    half = [epsilon / 2.0 for epsilon in _EPSILONS_4]
    lines = {
        "not clipped: a learner 99 % sure": two,
        "epsilon / 2: the bound of Theorem 4": half,
        "clipped: best classifiers": best,
    }
    curves = [
        Curve(
            "not clipped: the network, one round",
            _EPSILONS_4,
            tuple(means.tolist()),
            tuple(errors.tolist()),
        ),
        *(Curve(label, _EPSILONS_4, tuple(values)) for label, values in lines.items()),
    ]
    place = _EPSILONS_4.index(1.0)
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
            "epsilons": list(_EPSILONS_4),
            "records": records,
            "repeats": repeats,
            "rounds": _ROUNDS,
            "sure": _SURE,
        },
        f"Data: 1/3 (N(.3, .01) + N(.5, .1) + N(.7, .1)), {records:,} records for the network; "
        "for the learner 99 % sure two opposite persons, Q0(A) = 1/2. Q0 = N(0, 1).",
    )


def _finish_theorem_4(figure: Figure) -> None:
    axes = figure.axes[0]
    axes.set_xscale("log")
    readable(axes.xaxis)
    figure.set_size_inches(9.2, 4.6)
    legend_beside(figure)


# Theorems 5 to 7


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


def _run_theorem_6(scale: Scale) -> Outcome:
    numbers = tuple(float(number) for number in range(1, _ROUNDS + 1))
    curves: list[Curve] = []
    findings: list[Finding] = []
    for epsilon in _EPSILONS_6:
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
        {"epsilons": list(_EPSILONS_6), "rounds": _ROUNDS, "exact": True},
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


def _finish_theorem_6(figure: Figure) -> None:
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


EXPERIMENTS: Final = (
    Experiment(
        "private-sampling/theorem-4",
        "What a draw of MBDE gives away, with clipped scores and without",
        f"{SOURCE}, Theorem 4",
        _run_theorem_4,
        functools.partial(
            panels,
            title="Private-sampling paper, Theorem 4: with clipped scores, and without",
            x="epsilon",
            y="largest |log Q/Q0|",
            log="y",
            caption="Bars: two standard errors.",
            finish=_finish_theorem_4,
        ),
    ),
    Experiment(
        "private-sampling/theorem-6",
        "How much closer than Q0 the rounds of MBDE get, exactly, and Theorems 5 to 7",
        f"{SOURCE}, Theorems 5, 6 and 7",
        _run_theorem_6,
        functools.partial(
            panels,
            title="Private-sampling paper, Theorem 6: how much closer than Q0",
            x="rounds T",
            y="Delta(Q_T) over epsilon/2",
            finish=_finish_theorem_6,
        ),
    ),
)
