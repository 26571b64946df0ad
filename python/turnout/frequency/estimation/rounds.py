"""The noise that rounds share if people keep permanent answers."""

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
    """A bound ``v0 + v1 f`` of the variance that shared noise adds to a frequency ``f``.

    Parameters
    ----------
    v0, v1
        The numbers.
    """

    v0: float
    v1: float

    def at(self, frequencies: Floats) -> Floats:
        """Return the bound at some frequencies, which are cut to [0, 1]."""
        added: Floats = self.v0 + self.v1 * np.clip(frequencies, 0.0, 1.0)
        return added


def shared_noise(
    rounds: Rounds,
    covariances: tuple[float, float],
    answers: int,
    *,
    weights: tuple[float, float] | None = None,
) -> SharedNoise:
    """Bound the variance that shared noise of rounds adds to an estimated frequency.

    Two reports of one person, as ``(1[report supports] - q*) / (p* - q*)``, have a covariance ``H``
    if the person holds the answer and ``O`` if not, and 0 if their answers differ. There are at
    most ``S = sum 2 (t - 1) n_t`` pairs of reports of one person, with ``n_t`` the sizes of the
    rounds in descending order. Holders of the answer have at most ``(R - 1) n f`` pairs, with ``R``
    the number of rounds and ``n`` that of all nodes. So the sum of the covariances is at most
    ``min(H, O) S`` plus the excess of the larger one over the smaller one, times its own pairs; and
    at most ``max(H, O) S``. If all rounds have the same people with the same answers, the first
    bound is exact.

    Parameters
    ----------
    rounds
        The rounds.
    covariances
        ``H`` and ``O``.
    answers
        The number of answers; of the two bounds, the one with the smaller total is used.
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
    """Add the variances from noise that rounds share, if any.

    If an oracle does not know what its reports share, the variance of several rounds is at most
    their number times the variance without shared noise. This is Cauchy's inequality, for each
    person.

    Parameters
    ----------
    estimation
        The frequencies and their law, as if all reports were drawn afresh.
    tally
        The tally of the estimate.
    method
        The name of the estimator.
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
    """Return an estimation with multiplied variances."""
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
    """Return the contexts of the permanent answers behind an estimate, from its plan."""
    several = getattr(plan, "plans", None)
    if several is not None:
        return frozenset().union(*map(permanent_contexts, several))
    context = getattr(getattr(plan, "oracle", None), "_permanent_context", None)
    return frozenset() if context is None else frozenset([context])


def sharing(plans: Sequence[Any]) -> list[int]:
    """Count for each plan the plans that share permanent answers with it, including itself.

    The errors of estimates may be correlated in any way. By Cauchy's inequality, the variance of
    their sum is at most that of uncorrelated estimates whose variances are this many times as
    large.

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
