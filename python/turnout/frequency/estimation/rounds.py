"""What the reports of several rounds share where people keep permanent answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from turnout._types import Floats
from turnout.collecting.rounds import Rounds
from turnout.frequency.estimation.estimators import Estimation


@dataclass(frozen=True)
class SharedNoise:
    """A bound of what shared noise adds to the variance of a frequency ``f``: ``v0 + v1 f``.

    Parameters
    ----------
    v0, v1
        The numbers.
    """

    v0: float
    v1: float

    def at(self, frequencies: Floats) -> Floats:
        """Give it at some frequencies, which are cut to [0, 1]."""
        added: Floats = self.v0 + self.v1 * np.clip(frequencies, 0.0, 1.0)
        return added


def shared_noise(
    rounds: Rounds,
    covariances: tuple[float, float],
    answers: int,
    *,
    weights: tuple[float, float] | None = None,
) -> SharedNoise:
    """Bound what the noise that rounds share adds to the variance of an estimated frequency.

    Two reports of one person, as ``(1[report supports] - q*) / (p* - q*)``, have a covariance ``H``
    if the person holds the answer and ``O`` if not, and 0 if their answers differ. Of all pairs of
    reports of one person at most ``S = sum 2 (t - 1) n_t`` are there in all, ``n_t`` the sizes of
    the rounds from the largest on, and at most ``(R - 1) n f`` of the answer's holders, ``R`` the
    number of rounds and ``n`` that of all nodes. So the sum of the covariances is at most
    ``min(H, O) S`` and what the larger one exceeds the smaller one by, times its own pairs; and at
    most ``max(H, O) S``. Where all rounds are of the same people with the same answers, the first
    is what it is.

    Parameters
    ----------
    rounds
        The rounds.
    covariances
        ``H`` and ``O``.
    answers
        The number of answers: of the two bounds the one is taken that is smaller in all.
    weights
        The sums of what a node counts, at most 1, and of the squares, if that is not 1: of
        participation probabilities where reports are not weighted by their inverses.
    """
    total, squares = (float(rounds.nodes),) * 2 if weights is None else weights
    pairs = (rounds.number - 1) * squares
    most = min(float(rounds.shared_pairs), pairs)
    low, high = min(covariances), max(covariances)
    # Over all answers the frequencies add up to one.
    held = 1 if covariances[0] == high else answers - 1
    if held * pairs > answers * most:
        return SharedNoise(high * most / total**2, 0.0)
    slope = (high - low) * pairs / total**2
    constant = low * most / total**2
    if covariances[0] == high:
        return SharedNoise(constant, slope)
    return SharedNoise(constant + slope, -slope)


def with_rounds(estimation: Estimation, tally: Any, method: str) -> Estimation:
    """Add what the noise that rounds share adds to the variances, if they share any.

    Of an oracle that does not say what its reports share, the variance of several rounds is at most
    their number times as large as if they shared nothing: Cauchy's inequality, for each person.

    Parameters
    ----------
    estimation
        The frequencies and their law, as if all reports were drawn afresh.
    tally
        What they are estimated from.
    method
        The word for the estimator.
    """
    rounds: Rounds = tally.origin.rounds
    if rounds.number < 2:
        return estimation
    known = tally.oracle._permanent_covariances
    if known is None:
        return _times(estimation, float(rounds.number))
    weights = None
    if method == "T" and tally.design is not None:
        weights = tally.design.mean_received, tally.design.sum_of_squares
    shared = shared_noise(rounds, known, tally.domain.size, weights=weights)
    added = shared.at(estimation.frequencies)
    model, wide = estimation.model, estimation.interval_variances
    if model is not None:
        more = model.b**2 * np.array([shared.v0, shared.v1])
        larger = replace(model, v0=model.v0 + more[0], v1=model.v1 + more[1])
        ends = np.array([0.0, 1.0])
        effect = float((larger.statistic_variance(ends) / model.statistic_variance(ends)).max())
        model = replace(larger, effect=effect)
    return replace(
        estimation,
        variances=estimation.variances + added,
        model=model,
        interval_variances=None if wide is None else wide + added,
    )


def _times(estimation: Estimation, factor: float) -> Estimation:
    """Give variances that are so many times as large."""
    model, wide = estimation.model, estimation.interval_variances
    if model is not None:
        v0, v1, v2 = (factor * each for each in (model.v0, model.v1, model.v2))
        model = replace(model, v0=v0, v1=v1, v2=v2, effect=factor * model.effect)
    return replace(
        estimation,
        variances=factor * estimation.variances,
        model=model,
        interval_variances=None if wide is None else factor * wide,
    )


def permanent_contexts(plan: Any) -> frozenset[bytes]:
    """Tell which permanent answers an estimate is made from, by what it was collected by."""
    several = getattr(plan, "plans", None)
    if several is not None:
        return frozenset().union(*map(permanent_contexts, several))
    context = getattr(getattr(plan, "oracle", None), "_permanent_context", None)
    return frozenset() if context is None else frozenset([context])


def sharing(plans: Sequence[Any]) -> list[int]:
    """Count for each plan how many of all share permanent answers with it, itself included.

    A sum of estimates whose errors may be correlated in any way varies at most as if each variance
    were this many times as large and there were no correlations: Cauchy's inequality.

    Examples
    --------
    >>> import turnout as tn
    >>> kept = [tn.Memoized(3.0, 2, first_epsilon=each) for each in (1.0, 2.0)]
    >>> sharing([tn.Plan(one, tn.Everyone()) for one in (*kept, tn.DirectEncoding(1.0, 2))])
    [2, 2, 1]
    """
    each = [permanent_contexts(plan) for plan in plans]
    together: list[set[bytes]] = []
    for contexts in each:
        found = [one for one in together if not one.isdisjoint(contexts)]
        together = [one for one in together if one not in found]
        together.append(set(contexts).union(*found))
    whole = [
        next((one for one in together if contexts and contexts <= one), None) for contexts in each
    ]
    return [1 if one is None else sum(one is other for other in whole) for one in whole]
