"""Checks of random results with one named error rate.

A check fails by chance with probability at most ``ALPHA``, shared by Bonferroni's inequality among
all numbers that it compares. Seeds are fixed, so a test that passes passes always; ``ALPHA`` says
how little the choice of the seed has to do with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special, stats

#: The probability that one check of a right result fails.
ALPHA = 1e-6

#: The probability that a check of a wrong result passes, where a number of repeats is derived.
BETA = 1e-3

Floats = npt.NDArray[np.float64]


def quantile(comparisons: int = 1) -> float:
    """Two-sided quantile of the normal law for that many comparisons at ``ALPHA`` in all."""
    return float(-special.ndtri(ALPHA / (2 * comparisons)))


def repeats_to_detect(shift: float, deviation: float, comparisons: int = 1) -> int:
    """How many repeats show a shift of the mean of values with that standard deviation."""
    needed = (quantile(comparisons) - float(special.ndtri(BETA))) * deviation / shift
    return int(np.ceil(needed**2))


def check_mean(samples: npt.ArrayLike, expected: npt.ArrayLike, *, slack: float = 0.0) -> None:
    """Fail unless the mean over the first axis agrees; ``slack`` is a known absolute bias."""
    array, centre = _columns(samples, expected)
    errors = array.std(axis=0, ddof=1) / np.sqrt(len(array))
    _compare("mean", array.mean(axis=0), centre, errors, slack)


def check_variance(samples: npt.ArrayLike, expected: npt.ArrayLike, *, slack: float = 0.0) -> None:
    """Fail unless the variance over the first axis agrees; ``slack`` is relative.

    The error of a sample variance comes from the fourth moment, so no normal law is assumed.
    """
    array, variances = _columns(samples, expected)
    squares = (array - array.mean(axis=0)) ** 2
    errors = squares.std(axis=0, ddof=1) / np.sqrt(len(array))
    _compare("variance", array.var(axis=0, ddof=1), variances, errors, slack * np.abs(variances))


def check_covariance(samples: npt.ArrayLike, expected: npt.ArrayLike) -> None:
    """Fail unless all covariances between the columns agree."""
    array = np.asarray(samples, dtype=np.float64)
    deviations = array - array.mean(axis=0)
    products = deviations[:, :, None] * deviations[:, None, :]
    products = products.reshape(len(array), -1) * (len(array) / (len(array) - 1))
    check_mean(products, np.asarray(expected, dtype=np.float64).ravel())


def check_share(successes: npt.ArrayLike, trials: int, low: float, high: float) -> None:
    """Fail unless the observed numbers of successes fit some probability in ``[low, high]``."""
    counts = np.atleast_1d(np.asarray(successes, dtype=np.int64))
    level = ALPHA / (2 * counts.size)
    few = stats.binom.cdf(counts, trials, low) < level
    many = stats.binom.sf(counts - 1, trials, high) < level
    if (few | many).any():
        shown = ", ".join(f"{count / trials:.4f}" for count in counts)
        raise AssertionError(
            f"shares {shown} of {trials} trials are not between {low} and {high} at ALPHA = {ALPHA}"
        )


def check_law(observed: npt.ArrayLike, probabilities: npt.ArrayLike) -> None:
    """Fail unless the observed cell counts fit the probabilities: chi-square, rare cells pooled."""
    counts = np.asarray(observed, dtype=np.float64)
    expected = np.asarray(probabilities, dtype=np.float64) * counts.sum()
    if (counts[expected == 0] > 0).any():
        raise AssertionError("something happened that cannot happen")
    rare = expected < 10
    cells = np.append(counts[~rare], counts[rare].sum())
    means = np.append(expected[~rare], expected[rare].sum())
    _chi_square(float(((cells - means) ** 2 / np.where(means > 0, means, 1)).sum()), cells.size - 1)


def check_same_law(one: npt.ArrayLike, other: npt.ArrayLike) -> None:
    """Fail unless two samples of whole numbers can have one law: chi-square of homogeneity."""
    first, second = np.asarray(one, dtype=np.int64), np.asarray(other, dtype=np.int64)
    size = int(max(first.max(), second.max())) + 1
    table = np.stack([np.bincount(first, minlength=size), np.bincount(second, minlength=size)])
    rare = table.sum(axis=0) < 20
    pooled = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)]).astype(np.float64)
    pooled = pooled[:, pooled.sum(axis=0) > 0]
    expected = np.outer(pooled.sum(axis=1), pooled.sum(axis=0)) / pooled.sum()
    _chi_square(float(((pooled - expected) ** 2 / expected).sum()), pooled.shape[1] - 1)


def _chi_square(statistic: float, freedom: int) -> None:
    probability = float(stats.chi2.sf(statistic, freedom))
    if probability < ALPHA:
        raise AssertionError(
            f"chi-square {statistic:.1f} with {freedom} degrees of freedom has probability "
            f"{probability:.2g} < ALPHA = {ALPHA}"
        )


def _columns(samples: npt.ArrayLike, expected: npt.ArrayLike) -> tuple[Floats, Floats]:
    array = np.asarray(samples, dtype=np.float64)
    array = array.reshape(len(array), -1)
    return array, np.broadcast_to(np.asarray(expected, dtype=np.float64).ravel(), array.shape[1:])


def _compare(
    what: str, found: Floats, expected: Floats, errors: Floats, slack: npt.NDArray[Any] | float
) -> None:
    allowed = quantile(found.size) * errors + slack + 1e-9 * np.abs(expected)
    wrong = ~(np.abs(found - expected) <= allowed)
    if wrong.any():
        position = int(np.flatnonzero(wrong)[0])
        distance = (found[position] - expected[position]) / max(errors[position], 1e-300)
        raise AssertionError(
            f"{what} {found[position]:g} in column {position} is not {expected[position]:g}: "
            f"{distance:.1f} standard errors, {quantile(found.size):.1f} allowed"
        )
