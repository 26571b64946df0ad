"""Adding up groups of nodes that were collected in different ways."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from turnout import _arguments
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation
from turnout.frequency.tally import Tally


@dataclass(frozen=True)
class MixedPlan:
    """What an estimate of several groups was collected by.

    Attributes
    ----------
    domain
        The answers.
    epsilons
        The privacy of a report in each group.
    """

    domain: Domain
    epsilons: tuple[float, ...]


def estimate_mixed(tallies: Iterable[Tally], method: str = "horvitz_thompson") -> FrequencyEstimate:
    """Estimate the frequencies of a population that was collected in groups.

    Each node belongs to one group, with an epsilon and participation of its own. Every group
    estimates its own counts, and the counts add up: right also where the groups hold different
    answers. (Weights in place of sums, :func:`turnout.weighting.combine`, give less noise where all
    groups are alike, and another mean where they are not.)

    Parameters
    ----------
    tallies
        One for each group, of one domain: what :meth:`ParticipationPlan.collect` gives.
    method
        The estimator of every group, as in :meth:`turnout.Tally.estimate`. A group without a report
        has no ``"hajek"`` estimate; that of ``"horvitz_thompson"`` is 0, as it must be.

    Returns
    -------
    FrequencyEstimate
        Of all nodes, with normal intervals.

    Raises
    ------
    InvalidTypeError
        If one is no tally.
    InvalidValueError
        If there are none, their domains differ, or an estimator does not apply or is biased.

    Examples
    --------
    >>> import turnout as tn
    >>> cautious = tn.DirectEncoding(1.0, 3).simulate([100, 200, 700])
    >>> open_minded = tn.DirectEncoding(4.0, 3).simulate([500, 500, 0])
    >>> estimate_mixed([cautious, open_minded]).nodes
    2000
    """
    groups = _arguments.items("tallies", tallies, "an iterable of tallies")
    if not groups:
        raise InvalidValueError("tallies must hold a tally, got none")
    for position, tally in enumerate(groups):
        if not isinstance(tally, Tally):
            raise _arguments.mistyped(f"tallies[{position}] must be a Tally", tally)
        if tally.oracle.domain != groups[0].oracle.domain:
            raise InvalidValueError(
                f"tallies[{position}] must be of the domain of tallies[0], "
                f"{groups[0].oracle.domain!r}, got {tally.oracle.domain!r}"
            )
    estimates = [tally.estimate(method) for tally in groups]
    biased = next((each.estimation.bias for each in estimates if each.estimation.bias), None)
    if biased is not None:
        raise InvalidValueError(f"method must be unbiased: {biased}")
    nodes = sum(each.nodes for each in estimates)
    counts = np.sum([each.counts for each in estimates], axis=0)
    variances = np.sum([each.count_standard_errors**2 for each in estimates], axis=0)
    return FrequencyEstimate.from_estimation(
        MixedPlan(groups[0].oracle.domain, tuple(tally.oracle.epsilon for tally in groups)),
        method,
        nodes,
        sum(each.received for each in estimates),
        Estimation(counts / nodes, variances / float(nodes) ** 2),
    )
