"""Weights of groups, and the variance of the weighted estimate."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Floats
from turnout.errors import InvalidValueError

#: The ways to choose weights.
METHODS = ("inverse_variance", "numerical", "unweighted")


def weights(
    variances: npt.ArrayLike,
    sizes: npt.ArrayLike | None = None,
    *,
    method: str = "inverse_variance",
) -> Floats:
    """Compute the weights of groups.

    With ``sizes``, every user of group ``j`` gives an unbiased value with variance ``V_j``, and the
    estimate is ``sum_j w_j (sum of the group's values) / sum_j n_j w_j``: the fair paper's setting.
    Without ``sizes``, every group gives one estimate with variance ``V_j``.

    Parameters
    ----------
    variances
        ``V_j``: positive; a group with an infinite variance gets no weight.
    sizes
        ``n_j``: the number of users in each group.
    method
        ``"inverse_variance"``: the closed form, equation (4) (Solution 2). ``"numerical"``: the
        combined variance minimised over the simplex (Solution 1), by BFGS in the logarithms.
        ``"unweighted"``: equal weights. The first two agree.

    Returns
    -------
    numpy.ndarray
        float64, one non-negative weight for each group; they add up to one.

    Raises
    ------
    InvalidValueError
        If there are no groups, a variance is not positive, a size is not a positive whole number,
        all variances are infinite, or the method does not exist.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    Setting s1 of the paper's Table 2: four groups, sampled with ``p = 1 - e^-eps``.

    >>> variances = sampling_variance([0.1, 0.4, 0.7, 1.0])
    >>> weights(variances, [250] * 4).round(4)
    array([0.0316, 0.1477, 0.3045, 0.5162])
    """
    spread, users = _groups(variances, sizes)
    _arguments.choice("method", method, METHODS)
    if method == "unweighted":
        return np.full(spread.size, 1.0 / spread.size)
    finite = np.isfinite(spread)
    if not finite.any():
        raise InvalidValueError("variances must hold a finite one: no group has any information")
    # Relative to the least: nothing over- or underflows on the way.
    with np.errstate(over="ignore"):
        relative = spread / spread[finite].min()
    finite = np.isfinite(relative)
    relative = relative[finite]
    chosen = np.zeros(spread.size)
    chosen[finite] = (
        1 / relative if method == "inverse_variance" else _minimum(relative, users[finite])
    )
    result: Floats = chosen / chosen.sum()
    return result


def _minimum(variances: Floats, users: Floats) -> Floats:
    """Minimise ``sum n w^2 V / (sum n w)^2`` over positive weights.

    In the variables ``z = w sqrt(n V)`` it is ``|z|^2 / (a z)^2`` with ``a = sqrt(n / V)``. This
    form is well conditioned for any variances, and has no other minima.
    """
    from scipy import optimize  # noqa: PLC0415

    slope = np.sqrt(users / variances)
    slope = slope / np.linalg.norm(slope)
    scale = np.sqrt(users * variances)

    def objective(z: Floats) -> tuple[float, Floats]:
        square, total = float(z @ z), float(slope @ z)
        value = float(np.log(square) - 2 * np.log(total))
        return value, 2 * (z / square - slope / total)

    start = scale / np.linalg.norm(scale)
    found = optimize.minimize(
        objective, start, jac=True, method="BFGS", options={"gtol": 1e-12, "maxiter": 10_000}
    )
    result: Floats = np.maximum(found.x / scale, 0.0)
    return result


def combined_variance(
    weights: npt.ArrayLike, variances: npt.ArrayLike, sizes: npt.ArrayLike | None = None
) -> float:
    """Compute the variance of the combined estimate for any weights.

    ``sum_j n_j w_j^2 V_j / (sum_j n_j w_j)^2``; without sizes ``n_j = 1``.

    Parameters
    ----------
    weights
        One non-negative weight for each group, not all zero; their sum does not matter.
    variances, sizes
        As for :func:`weights`.

    Returns
    -------
    float
        The variance.

    Raises
    ------
    InvalidValueError
        If the lengths differ, or a number is out of range.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> combined_variance([0.5, 0.5], [1.0, 3.0]), combined_variance([0.75, 0.25], [1.0, 3.0])
    (1.0, 0.75)
    """
    spread, users = _groups(variances, sizes)
    given = _arguments.vector("weights", weights, "one weight for each group").astype(np.float64)
    if given.size != spread.size:
        raise InvalidValueError(
            f"weights and variances must have the same length, got {given.size} and {spread.size}"
        )
    wrong = ~((given >= 0) & np.isfinite(given))
    _arguments.refuse_entries("weights", given, wrong, "at least 0")
    if not given.any():
        raise InvalidValueError("weights must not all be zero")
    used = given > 0
    shares = users[used] * given[used] / given.max()
    shares = shares / shares.sum()
    return float((shares**2 * spread[used] / users[used]).sum())


def consistent_privacy(epsilons: npt.ArrayLike) -> float:
    """Return the smallest epsilon, which respects the choice of every group.

    This is the fair paper's consistent privacy aggregation (CPA): all users get the privacy of the
    most private group, and no weights are needed.

    Parameters
    ----------
    epsilons
        The privacy levels of the groups.

    Returns
    -------
    float
        The smallest epsilon.

    Raises
    ------
    InvalidValueError
        If there are no epsilons, or one is not a finite number above 0.
    InvalidTypeError
        If ``epsilons`` is not a sequence of numbers.

    Examples
    --------
    >>> consistent_privacy([0.7, 0.1, 1.0])
    0.1
    """
    return float(positive("epsilons", epsilons, finite=True).min())


def sampling_variance(epsilons: npt.ArrayLike) -> Floats:
    """Compute ``V = (1 - p) / p = 1 / (e^eps - 1)`` for sampling with ``p = 1 - e^-eps``.

    It is the variance, summed over items, of one sampled user's estimate of their own indicator.
    This relation of p and epsilon is the fair paper's. It is not a privacy guarantee by itself:
    :class:`turnout.accounting.CountSampling` computes one.

    Parameters
    ----------
    epsilons
        The privacy levels of the groups.

    Returns
    -------
    numpy.ndarray
        float64, one variance for each epsilon.

    Raises
    ------
    InvalidValueError
        If there are no epsilons, or one is not a finite number above 0.
    InvalidTypeError
        If ``epsilons`` is not a sequence of numbers.

    Examples
    --------
    >>> sampling_variance([0.1, 1.0]).round(3)
    array([9.508, 0.582])
    """
    given = positive("epsilons", epsilons, finite=True)
    # 1 / (e^x - 1) without overflow; it underflows to zero.
    with np.errstate(under="ignore"):
        result: Floats = np.exp(-given) / -np.expm1(-given)
    return result


def positive(argument: str, values: Any, *, finite: bool) -> Floats:
    """Return at least one positive number, as float64."""
    array = _arguments.vector(argument, values, "a sequence of positive numbers").astype(np.float64)
    if array.size == 0:
        raise InvalidValueError(f"{argument} must hold at least one number, got none")
    wrong = ~(array > 0) | (finite & ~np.isfinite(array))
    expected = "a finite number above 0" if finite else "above 0"
    _arguments.refuse_entries(argument, array, wrong, expected)
    return array


def whole(argument: str, values: Any, groups: int) -> Floats:
    """Return a positive whole number for each group, as float64."""
    array = positive(argument, values, finite=True)
    if array.size != groups:
        raise InvalidValueError(
            f"{argument} must have one number for each of the {groups} groups, got {array.size}"
        )
    _arguments.refuse_entries(argument, array, array != np.floor(array), "a whole number")
    return array


def _groups(variances: Any, sizes: Any) -> tuple[Floats, Floats]:
    spread = positive("variances", variances, finite=False)
    users = np.ones(spread.size) if sizes is None else whole("sizes", sizes, spread.size)
    return spread, users
