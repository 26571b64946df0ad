"""What the error of an estimate will be, before anybody is asked."""

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
    """Compute the exact variance of what is estimated of a given population.

    The answers are fixed; participation and perturbation are random, and so is the choice of hash
    functions that all reports share.

    Parameters
    ----------
    oracle
        The randomizer: a frequency oracle, a mechanism for a mean, or a collection of several
        attributes.
    participation
        Who takes part; a number is the rate of all.
    method
        The estimator, as in ``estimate`` of its tallies.
    true_counts
        How many nodes hold each answer: enough for a common rate. Of several attributes a mapping
        from their names to such counts.
    values
        The answers of all nodes: needed for personal probabilities, and of a mean.

    Returns
    -------
    float, numpy.ndarray or dict
        Of a frequency oracle one variance for the count of each answer, float64, in squared nodes.
        Of a mean one float, or one variance for each coordinate. Of several attributes a dictionary
        of the former. For ``"hajek"`` given that there is a report: exact for a common rate, of the
        linearised ratio for personal probabilities.

    Raises
    ------
    InvalidValueError
        If both or none of ``true_counts`` and ``values`` are given, if there are no nodes, or if
        the estimator does not apply to personal probabilities.
    InvalidTypeError
        If an argument is of the wrong type, or no such variance is known of the randomizer.

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
