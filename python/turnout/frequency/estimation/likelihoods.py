"""The likelihood of reports as a function of the frequencies of the answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from turnout import _core
from turnout._types import Array, Floats, Unsigned
from turnout.errors import EstimatorError

if TYPE_CHECKING:
    from turnout.collecting.reports import Reports


#: Numbers of a piece of a matrix: 64 MiB.
_PIECE = 2**23

#: Rows that are looked at for duplicates before all are sorted.
_LOOK = 4096


@dataclass(frozen=True, eq=False)
class Likelihood(ABC):
    """Weighted reports, with equal ones merged, and their likelihoods under each answer.

    Parameters
    ----------
    weights
        The weight of each row: the sum over its reports.
    squares
        The sum of the squared weights of its reports.
    """

    weights: Floats = field(kw_only=True)
    squares: Floats = field(kw_only=True)

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    @abstractmethod
    def step(self, frequencies: Floats) -> tuple[Floats, float]:
        """Compute the gradient of the mean log-likelihood, and the mean log-likelihood."""

    @abstractmethod
    def piece(self, rows: slice) -> Floats:
        """Return the likelihoods of some rows under each answer, each row up to a factor."""

    def information(self, frequencies: Floats) -> tuple[Floats, Floats]:
        """Sum the products of the scores: with the weights, and with their squares."""
        size = frequencies.size
        curvature, scores = np.zeros((size, size)), np.zeros((size, size))
        same = bool((self.weights == self.squares).all())
        length = max(1, _PIECE // size)
        for start in range(0, self.weights.size, length):
            rows = slice(start, start + length)
            matrix = self.piece(rows)
            ratios = matrix / (matrix @ frequencies)[:, None]
            curvature += ratios.T @ (self.weights[rows, None] * ratios)
            if not same:
                scores += ratios.T @ (self.squares[rows, None] * ratios)
        return curvature, curvature if same else scores


@dataclass(frozen=True, eq=False)
class SupportLikelihood(Likelihood):
    """Reports that are ``ratio`` times as likely under the answers that they support.

    Parameters
    ----------
    support
        Which answers each row supports: bits, 64 to a uint64 word.
    ratio
        The likelihood ratio.
    size
        The number of answers.
    weights, squares
        As for :class:`Likelihood`.

    Examples
    --------
    >>> support = np.array([[0b01], [0b10]], dtype=np.uint64)
    >>> counts = np.array([30.0, 10.0])
    >>> likelihood = SupportLikelihood(support, 3.0, 2, weights=counts, squares=counts)
    >>> gradient, value = likelihood.step(np.array([1.0, 0.0]))
    >>> gradient, round(value, 6)  # three quarters of ln 3
    (array([1., 1.]), 0.823959)
    """

    support: Unsigned
    ratio: float
    size: int

    def step(self, frequencies: Floats) -> tuple[Floats, float]:
        """Compute the gradient of the mean log-likelihood, and the mean log-likelihood."""
        return _core.likelihood_step(frequencies, self.support, self.weights, self.ratio)

    def piece(self, rows: slice) -> Floats:
        """Return ``ratio`` for the answers that a row supports, and 1 for the others."""
        octets = self.support[rows].astype("<u8").view(np.uint8)
        bits = np.unpackbits(octets, axis=1, count=self.size, bitorder="little")
        return 1.0 + (self.ratio - 1.0) * bits.astype(np.float64)


@dataclass(frozen=True, eq=False)
class DenseLikelihood(Likelihood):
    """Reports whose likelihoods under the answers are any numbers.

    Parameters
    ----------
    matrix
        The likelihoods, float64, a row for each report and a column for each answer; each row up to
        a factor.
    weights, squares
        As for :class:`Likelihood`.
    """

    matrix: Floats

    @classmethod
    def of_scores(
        cls, scores: Array, ratio: float, *, weights: Floats, squares: Floats
    ) -> DenseLikelihood:
        """Return the likelihood of histograms with discrete Laplace noise on every entry.

        A node adds one to the entry of its answer, and noise with mass in proportion to
        ``ratio^(-|z| / 2)`` to all: a report ``y`` has likelihood in proportion to
        ``ratio^((|y_x| - |y_x - 1|) / 2)`` under answer ``x``.
        """
        whole = scores.astype(np.float64)
        exponent = (np.abs(whole) - np.abs(whole - 1.0)) / 2.0
        return cls(np.exp(np.log(ratio) * exponent), weights=weights, squares=squares)

    def step(self, frequencies: Floats) -> tuple[Floats, float]:
        """Compute the gradient of the mean log-likelihood, and the mean log-likelihood."""
        likelihoods = self.matrix @ frequencies
        gradient = (self.weights / likelihoods) @ self.matrix
        value = float(self.weights @ np.log(likelihoods))
        return gradient / self.total, value / self.total

    def piece(self, rows: slice) -> Floats:
        """Return the rows."""
        return self.matrix[rows]


def likelihood_of(reports: Reports) -> Likelihood:
    """Return the likelihood of an oracle's reports, with equal reports merged.

    Raises
    ------
    EstimatorError
        If the likelihood of a report is not a matter of which answers it supports.
    """
    oracle = reports.oracle
    if not getattr(oracle, "_two_valued", False):
        raise EstimatorError(
            f"the likelihood of reports of {oracle!r} does not follow from the "
            "answers they support: use the estimate of their tally"
        )
    codes, weights, squares = _distinct(reports)
    ratio = float(oracle.realized_ratio)
    if oracle._counted_by == "scores":
        return DenseLikelihood.of_scores(codes, ratio, weights=weights, squares=squares)
    support = support_of(oracle, codes)
    return SupportLikelihood(support, ratio, oracle.domain.size, weights=weights, squares=squares)


def support_of(oracle: Any, codes: Array) -> Unsigned:
    """Return which answers each report supports: bits, 64 to a word.

    Raises
    ------
    EstimatorError
        If reports are about numbers, not about categories.
    """
    if not hasattr(oracle, "supports"):
        raise EstimatorError(
            f"reports of {oracle!r} are about numbers, not about answers that they support: use "
            "the estimate of their tally"
        )
    return np.ascontiguousarray(oracle.supports(codes))


def _distinct(reports: Reports) -> tuple[Array, Floats, Floats]:
    """Return the different reports, and the sums of their weights and of the squares of these."""
    codes = reports.codes
    weights = None if reports.probabilities is None else 1.0 / reports.probabilities
    if codes.ndim == 2 and not _repetitive(codes):
        given = np.ones(len(codes)) if weights is None else weights
        return codes, given, given * given
    if codes.ndim == 1:
        distinct, place, number = np.unique(codes, return_inverse=True, return_counts=True)
    else:
        rows = np.ascontiguousarray(codes)
        whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
        found, place, number = np.unique(whole, return_inverse=True, return_counts=True)
        distinct = found.view(rows.dtype).reshape(-1, rows.shape[1])
    place = place.ravel()
    if weights is None:
        times = number.astype(np.float64)
        return distinct, times, times
    sums, squares = np.zeros(len(distinct)), np.zeros(len(distinct))
    np.add.at(sums, place, weights)
    np.add.at(squares, place, weights * weights)
    return distinct, sums, squares


def _repetitive(codes: Array) -> bool:
    """Return whether some of the first rows are equal: then sorting them all may pay."""
    first = np.ascontiguousarray(codes[:_LOOK])
    return len({row.tobytes() for row in first}) < 0.9 * len(first)
