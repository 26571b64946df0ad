"""The Bernstein mechanism: a noisy polynomial density, as a baseline."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from turnout import _arguments, _core
from turnout._rounding import rounded_up
from turnout._types import Floats, Integers
from turnout.errors import InvalidValueError
from turnout_reproduce.baselines.released import ReleasedSampler, spread

#: A unit of a coefficient is about 2^-16 of the noise, so rounding adds nothing that counts.
_FINENESS = 2**16
_SMALLEST_EPSILON = 1e-5
_MOST_COEFFICIENTS = 2**17
_LARGEST_DEFAULT_DEGREE = 2000

#: Densities below it are computed from logarithms: a term may have been rounded to zero.
_FAINT = 1e-250


@dataclass(eq=False, repr=False)
class BernsteinSampler(ReleasedSampler):
    """Release a Bernstein polynomial density with Laplace noise, and draw from it.

    Discrete Laplace noise is added to the shares of records in (k + 1)^d equal cells of a public
    box, and the Bernstein polynomial with these coefficients is the released density: the Bernstein
    mechanism of Alda and Rubinstein (2017) on the estimate of Vitale (1975). The noisy coefficients
    are moved to the nearest that are not negative and sum to one: then it is a mixture of products
    of Beta distributions, which is drawn from exactly.

    It is a *baseline*. With ``unit="dataset"``, the protection that the mollified samplers give,
    the noise does not fall with the number of records, and little of the data is left below an
    epsilon of about 5. Unlike with them, one release pays for any number of draws.

    Parameters
    ----------
    epsilon
        What all draws together cost, from 1e-5 to 42.
    bounds
        The public box: one pair ``(low, high)`` for all features or a pair for each. They must not
        depend on the data. Records outside are refused.
    degree
        The degree k of the polynomial in each feature; there are (k + 1)^d coefficients. By default
        twice ``max(1, round(s^(4 / (2 + 3 d))))``, at most 2000, with the signal in units of the
        noise ``s``: epsilon / 2 for ``"dataset"``, and n_records * epsilon / 2 for ``"record"``.
        That balances the width ``k^(-1/2)`` of the polynomials with the noise for densities with
        one derivative.
    unit
        What is protected: ``"dataset"``, all records of the person and their number, or
        ``"record"``, one record that is replaced by another, the number being public.
    uniform_weight
        The share of the uniform distribution that is mixed in, by default ``(1 + s)^-2``. It keeps
        the density away from zero where there is little but noise.
    random_state
        A seed of the noise, for tests and simulations only: whoever knows it can take the noise
        away.

    Attributes
    ----------
    weights_
        The released weights of the Beta distributions, float64 of shape ``((degree_ + 1)^d,)``,
        in C order over features. Who hands them out has spent epsilon, as the first draw does.
    degree_
        The degree.
    sensitivity_
        The largest L1 distance between the integer statistics of two neighbouring data sets.
    scale_
        The realised scale of the noise, a :class:`fractions.Fraction`.
    realized_epsilon_
        ``sensitivity_ / scale_``, at most epsilon.
    n_features_in_
        The number of features.
    budget_
        What the release costs; the first call of ``sample`` spends it, or that of another budget.

    Notes
    -----
    The noise is exact. The statistics are integers of at least zero with a public sum, so those of
    two neighbouring data sets differ by at most twice that sum (``"dataset"``) or twice the share
    of one record (``"record"``) in L1, whatever floating-point numbers did before; disjoint data
    sets reach that. The noise is drawn by the integer sampler of the core, and its realised scale
    is a rational. Everything else is post-processing. The release takes place in ``fit``, and the
    fitted object holds nothing else of the data.

    At least one record is needed, and an error for a record outside the bounds is seen by the
    person alone: neither is hidden by noise.

    References
    ----------
    Alda, Rubinstein, "The Bernstein Mechanism: Function Release under Differential Privacy" (AAAI
    2017). Vitale, "A Bernstein Polynomial Approach to Density Function Estimation" (1975).

    Examples
    --------
    >>> records = np.linspace(0.2, 0.4, 1000)[:, None]
    >>> sampler = BernsteinSampler(epsilon=10.0, bounds=(0.0, 1.0), random_state=1).fit(records)
    >>> sampler.sample(1000, seed=2).shape
    (1000, 1)
    >>> sampler.budget_.spent
    10.0
    >>> bool(sampler.score(records) > 0.0)  # the uniform distribution has zero
    True
    """

    noise: ClassVar[str] = "discrete Laplace"

    _: KW_ONLY
    degree: int | None = None

    _degree_: int = field(init=False)
    sensitivity_: int = field(init=False)
    scale_: Fraction = field(init=False)

    def _check_epsilon(self) -> float:
        """Check the parameter ``epsilon``, and give it as a float.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If it is no number, or out of range.
        """
        epsilon = super()._check_epsilon()
        if epsilon < _SMALLEST_EPSILON:
            raise _arguments.invalid(
                f"epsilon must be at least {_SMALLEST_EPSILON:g} for {type(self).__name__}",
                self.epsilon,
            )
        return epsilon

    def _release(self, records: Floats, seed: int | None) -> tuple[Floats, float]:
        count, dimensions = records.shape
        epsilon = float(self.epsilon)
        whole = self.unit == "dataset"
        strength = 0.5 * epsilon * (1 if whole else count)
        self._degree_ = self._degree(strength, dimensions)
        # Units that the data set (or one record) is worth: the sum of its statistics.
        units = max(1, int(epsilon * _FINENESS)) if whole else 1
        statistics = self._statistics(records, units)
        self.sensitivity_ = 2 * units
        asked = rounded_up(Fraction(self.sensitivity_) / Fraction(epsilon))
        rate = Fraction(*_core.discrete_laplace_realized(asked))
        self.scale_ = 1 / rate
        self._realized_epsilon_ = rounded_up(self.sensitivity_ * rate)
        noisy = statistics + _core.discrete_laplace(asked, statistics.size, seed)
        return noisy / float(units if whole else count), strength

    def _degree(self, strength: float, dimensions: int) -> int:
        if self.degree is None:
            exponent = 4.0 / (2.0 + 3.0 * dimensions)
            degree = int(min(2 * max(1, round(strength**exponent)), _LARGEST_DEFAULT_DEGREE))
            while degree > 2 and (degree + 1) ** dimensions > _MOST_COEFFICIENTS:
                degree -= 2
        else:
            degree = _arguments.integer("degree", self.degree, least=1)
        if (degree + 1) ** dimensions > _MOST_COEFFICIENTS:
            raise InvalidValueError(
                f"degree must be so small that (degree + 1)^{dimensions}, the number of "
                f"coefficients, is at most {_MOST_COEFFICIENTS}, got {degree}"
            )
        return degree

    def _statistics(self, records: Floats, units: int) -> Integers:
        """Give integers of at least zero: the sum is ``units``, or the number of records."""
        count, dimensions = records.shape
        counts = self._box.counts(records, (self._degree_ + 1,) * dimensions)
        return spread(counts / count, units) if self.unit == "dataset" else counts

    def _default_share(self, strength: float) -> float:
        return (1.0 + strength) ** -2

    def _place(self, components: Integers, words: Floats) -> Floats:
        from scipy import special  # noqa: PLC0415

        shape = (self._degree_ + 1,) * words.shape[1]
        indices = np.stack(np.unravel_index(components, shape), axis=1)
        places = special.betaincinv(indices + 1.0, self._degree_ - indices + 1.0, words)
        return np.asarray(places, dtype=np.float64)

    def _unit_log_density(self, positions: Floats) -> Floats:
        size = self._degree_ + 1
        bases = [_log_basis(column, self._degree_) + math.log(size) for column in positions.T]
        # One feature after the other, from the last one.
        values = np.exp(bases[-1]) @ self._weights_.reshape(-1, size).T
        for basis in bases[-2::-1]:
            values = values.reshape(len(positions), -1, size)
            values = np.einsum("nij,nj->ni", values, np.exp(basis))
        density = values.reshape(len(positions))
        with np.errstate(divide="ignore"):
            result = np.log(density)
        faint = np.flatnonzero(density < _FAINT)
        if faint.size:
            result[faint] = self._faint_log_density([basis[faint] for basis in bases])
        return np.asarray(result)

    def _faint_log_density(self, bases: list[Floats]) -> Floats:
        """Give the log-density from logarithms, where terms of the sum may be too small."""
        from scipy import special  # noqa: PLC0415

        logs = np.zeros((len(bases[0]), 1))
        for basis in bases:
            logs = (logs[:, :, None] + basis[:, None, :]).reshape(len(basis), -1)
        with np.errstate(divide="ignore"):
            logs += np.log(self._weights_)
        # On a face all coefficients that count may be zero, and so is the density.
        return np.asarray(special.logsumexp(logs, axis=1))


def _log_basis(positions: Floats, degree: int) -> Floats:
    """Give the logarithms of the Bernstein polynomials, of shape (n, degree + 1)."""
    from scipy import stats  # noqa: PLC0415

    return np.asarray(stats.binom.logpmf(np.arange(degree + 1), degree, positions[:, None]))
