"""Tests for reports that an honest node makes only with negligible probability."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from turnout._types import Array, Integers, Truths

#: An honest node sends one of the reports that are found here with at most this chance.
NEGLIGIBLE: Final = 2.0**-40

_EACH_SIDE: Final = math.log(2 / NEGLIGIBLE)

#: Bytes of reports that are looked at together.
_CHUNK: Final = 2**24


def rows_of_bits(words: Array, size: int, other: float) -> Truths:
    """Return which rows of bits have far too many or too few ones.

    Parameters
    ----------
    words
        uint64 of shape (n, w): rows of ``size`` bits. All bits except one are independent and are
        one with the same probability.
    size
        The number of bits, at least 2.
    other
        This probability.

    Returns
    -------
    numpy.ndarray
        One truth value for each row.

    Notes
    -----
    A row has the ones of ``size - 1`` independent bits, and at most one more. For the independent
    bits the bound of Chernoff and Hoeffding holds, ``P[ones >= m x] <= exp(-m KL(x, other))``.

    Examples
    --------
    >>> rows_of_bits(np.array([[2**60 - 1], [2**30 - 1], [0]], np.uint64), 60, 0.5)
    array([ True, False,  True])
    """
    trials, ones = size - 1, np.arange(size + 1)
    most, least = np.maximum(ones - 1, 0) / trials, np.minimum(ones, trials) / trials
    too_many = (most > other) & (trials * _divergence(most, other) > _EACH_SIDE)
    too_few = (least < other) & (trials * _divergence(least, other) > _EACH_SIDE)
    found: Truths = (too_many | too_few)[_ones(words)]
    return found


def rows_of_noise(scores: Array, rate: float) -> Truths:
    """Return which rows of noisy scores are far too large or too small in total.

    Parameters
    ----------
    scores
        int32 of shape (n, k): independent discrete Laplace noise ``P[x] ~ e^(-|x| rate)`` in each
        entry, plus one in one of them.
    rate
        The rate of the noise.

    Returns
    -------
    numpy.ndarray
        One truth value for each row.

    Notes
    -----
    The sum of ``|x|`` over a row differs from that of the noise by at most one. With ``M(t) = E
    e^(t |x|)`` the bounds of Chernoff are ``P[sum >= s] <= e^(-t s) M(t)^k`` for every t between 0
    and the rate, and ``P[sum <= s] <= e^(t s) M(-t)^k``. The best of a few t is used.

    Examples
    --------
    >>> rows_of_noise(np.array([[100] * 50, [1, -1] * 25, [1] + [0] * 49], np.int32), 0.5)
    array([ True, False,  True])
    """
    entries = scores.shape[1]
    shares = np.array([1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4])
    up, down = rate * shares, rate * 64 * shares
    most = ((entries * _log_moment(up, rate) + _EACH_SIDE) / up).min()
    least = ((-entries * _log_moment(-down, rate) - _EACH_SIDE) / down).max()
    sums = np.empty(len(scores), np.int64)
    step = max(_CHUNK // scores[:1].nbytes, 1) if len(scores) else 1
    for start in range(0, len(scores), step):
        # The smallest number of 32 bits has no absolute value among them.
        part = np.abs(scores[start : start + step], dtype=np.int64)
        sums[start : start + step] = part.sum(axis=1)
    found: Truths = (sums > most + 1) | (sums < least - 1)
    return found


def _divergence(shares: Array, other: float) -> Array:
    """Return the Kullback-Leibler divergence of coins with these probabilities from one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ones = np.where(shares > 0, shares * np.log(shares / other), 0.0)
        zeros = np.where(shares < 1, (1 - shares) * np.log((1 - shares) / (1 - other)), 0.0)
    divergence: Array = ones + zeros
    return divergence


def _log_moment(tilts: Array, rate: float) -> Array:
    """Return the logarithm of ``E e^(tilt |x|)`` under ``P[x] ~ e^(-|x| rate)``."""
    rates = np.append(rate - tilts, rate)
    # The sum of e^(-|x| r) over all integers, of which there is one at 0 and two beyond.
    sums = np.log1p(-2 * np.exp(-rates) / np.expm1(-rates))
    found: Array = sums[:-1] - sums[-1]
    return found


def _ones(words: Array) -> Integers:
    """Count the ones of each row."""
    totals = np.empty(len(words), np.int64)
    count = getattr(np, "bitwise_count", None)
    step = max(_CHUNK // words[:1].nbytes, 1) if len(words) else 1
    for start in range(0, len(words), step):
        part = words[start : start + step]
        if count is not None:
            totals[start : start + step] = count(part).sum(axis=1)
        else:
            # NumPy before 2.0.
            bits = np.unpackbits(np.ascontiguousarray(part).view(np.uint8), axis=1)
            totals[start : start + step] = bits.sum(axis=1, dtype=np.int64)
    return totals
