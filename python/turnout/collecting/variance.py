"""The error of an estimate, computed before anybody is asked."""

from __future__ import annotations

from typing import Any

from turnout import _arguments
from turnout.collecting.randomizer import Randomizer
from turnout.participation import Participation, stated_participation


def estimator_variance(
    oracle: Any,
    participation: Participation | float,
    *,
    method: str = "hajek",
    true_counts: Any = None,
    values: Any = None,
) -> Any:
    """Compute the exact variance of an estimator for a given population.

    The answers are fixed. Participation and perturbation are random, and so is the choice of the
    hash functions that all reports share.

    Parameters
    ----------
    oracle
        The randomizer: a frequency oracle, a mechanism for a mean, or a collection of several
        attributes.
    participation
        Who takes part; a number is the rate of all nodes.
    method
        The estimator, as in ``estimate`` of its tallies.
    true_counts
        The number of nodes that hold each answer; sufficient for a common rate. For several
        attributes, a mapping from their names to such counts.
    values
        The answers of all nodes; required for personal probabilities and for a mean.

    Returns
    -------
    float, numpy.ndarray or dict
        For a frequency oracle, one variance for the count of each answer, float64, in squared
        nodes. For a mean, one float, or one variance for each coordinate. For several attributes, a
        dictionary of these. For ``"hajek"`` the variance is conditional on at least one report:
        exact for a common rate, that of the linearised ratio for personal probabilities.

    Raises
    ------
    InvalidValueError
        If both or neither of ``true_counts`` and ``values`` are given, if there are no nodes, or if
        the estimator does not apply to personal probabilities.
    InvalidTypeError
        If an argument is of the wrong type, or this variance is not known for the randomizer.

    Examples
    --------
    >>> import turnout as tn
    >>> oracle = tn.DirectEncoding(1.0, 10)
    >>> counts = [500] * 10
    >>> def variance(method):
    ...     rate = tn.Bernoulli(0.3)
    ...     return tn.estimator_variance(oracle, rate, method=method, true_counts=counts)[0]
    >>> bool(variance("c_hat") < variance("g"))
    True
    >>> held = [0.2, 0.4, 0.6] * 100
    >>> round(tn.estimator_variance(tn.mean.Duchi(1.0), tn.Everyone(), values=held) * 300, 3)
    4.496
    """
    _arguments.instance("oracle", oracle, Randomizer, "a randomizer")
    return oracle._estimator_variance(
        stated_participation(participation), method, true_counts, values
    )
