"""Draw privately from any density estimate, projected onto the mollifier."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._extras import require
from turnout._one_thread import one_thread
from turnout._seeds import derived
from turnout._types import Array, Floats
from turnout.samplers._arguments import copy_of, random_state_of
from turnout.samplers.adapters import as_reference, log_density_of
from turnout.samplers.base import PointSampler
from turnout.samplers.drawing import usable_proposals
from turnout.samplers.mollifier import Projection
from turnout.samplers.normalizer import LogNormalizer
from turnout.samplers.reference import Reference, check_support

#: Fewer records than this get a kernel estimate.
_FEW = 20

_COMPONENTS = 8

#: The number of components is chosen on so many records.
_MOST = 5000


@dataclass(eq=False, repr=False)
class ProjectedSampler(PointSampler):
    """A sampler of draws from a density estimate of a person's records, clipped into a band."""

    epsilon: float = 1.0
    _: KW_ONLY
    reference: Any = None
    estimator: Any = None
    proposals: int | None = None
    random_state: int | None = None

    _projection_: Projection = field(init=False)
    _reference_: Reference = field(init=False)
    _estimator_: Any = field(init=False)

    def _base(self) -> float | None:
        """Return the least density of a draw over the reference; None means e^(-epsilon/2)."""
        return None

    def _fit(self, records: Floats) -> None:
        self._seen = usable_proposals(self.proposals, self._epsilon_)
        self._reference_ = as_reference(self.reference, records.shape[1])
        check_support("X", records, self._reference_)
        # The mixture that is chosen takes small steps; how others compute is their own matter.
        with one_thread() if self.estimator is None else contextlib.nullcontext():
            self._estimator_ = _fitted(
                self.estimator, records, self._reference_, random_state_of(self.random_state)
            )
        found = log_density_of("density", self._estimator_)
        self._projection_ = Projection(self._reference_, found, self._epsilon_, base=self._base())

    def _draw(self, count: int, seed: int | None) -> Array:
        return self._projection_.sample(count, proposals=self._seen, seed=seed)

    def _log_density(self, records: Floats) -> Floats:
        return self._projection_.log_density(records)


class MollifiedDensity(ProjectedSampler):
    """A sampler of private draws from a density estimate of a person's own records.

    The estimate P may be anything: it is clipped into the band ``[Q0 e^(-epsilon/2),
    Q0 e^(epsilon/2)]`` around the public reference Q0, which gives the closest member of the
    mollifier (equation (8)). The clipping is done in integers on the proposals of each draw
    (mollified resampling), so that a draw is epsilon-locally differentially private for the *whole*
    data set, whatever the estimate returns.

    Parameters
    ----------
    epsilon
        Privacy of one draw: above 0, at most 42.
    reference
        The public reference Q0: anything that :func:`as_reference` takes; standard normal if None.
        It must not depend on the person's data.
    estimator
        A density estimator with ``fit`` and ``score_samples`` (scikit-learn's ``KernelDensity`` or
        ``GaussianMixture``, another sampler of larger epsilon, ...); a copy is fitted.
        If None, a Gaussian mixture of as many components as BIC prefers, or a kernel estimate for
        fewer than 20 records.
    proposals
        How many proposals a draw sees; chosen by epsilon if None (1,024 up to epsilon = 2.7, 3,119
        at 5).
    random_state
        Seeds the default estimator; draws are not affected.

    Attributes
    ----------
    projection_
        The projected density. No budget pays for draws that you take from it directly.
    reference_
        The reference.
    estimator_
        The fitted estimate: private, like the whole fitted sampler.
    certificate_
        A proven bound of ``|log Q/Q0|`` for the law Q of a draw: ``epsilon / 2``.
    budget_
        The budget that pays for draws if you give no other; it allows one draw.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        From ``fit``, if a parameter or the data cannot be used. A record outside the support of the
        reference is refused.
    MissingExtraError
        From ``fit``, if scikit-learn is needed and not installed.

    Notes
    -----
    ``score_samples`` gives the projection of the estimate, which is normalised (to about 1e-4 in
    one or two dimensions, 1e-2 in more). The law of a draw differs from it by the error of the
    constant C, which is computed on as many points as there are proposals. The law is exactly in
    the mollifier, and close to the projection.

    The number of proposals is fixed; the time of ``fit`` and of a draw depends on the number of
    records and on the estimate. If somebody can measure that time, release draws at a fixed hour.

    References
    ----------
    Husain, Balle, Cranko, Nock, "Local differential privacy for sampling" (AISTATS 2020), equation
    (8).

    Examples
    --------
    >>> import numpy as np
    >>> records = np.random.default_rng(1).normal(0.5, 0.1, size=(200, 1))
    >>> sampler = MollifiedDensity(epsilon=2.0).fit(records)
    >>> sampler.sample(1).shape
    (1, 1)
    >>> sampler.sample(1)
    Traceback (most recent call last):
    ...
    turnout.errors.BudgetExceededError: this costs epsilon = 2.0, and 0 of 2.0 is left
    """

    @property
    def certificate_(self) -> float:
        """A proven bound of ``|log Q/Q0|`` for the law Q of a draw."""
        self._check_fitted()
        return self._epsilon_ / 2.0

    def _log_normalizer(
        self, *, points: int = 2**17, confidence: float = 1.0 - 1e-9, seed: int | None = None
    ) -> LogNormalizer:
        """Integrate the stated density: zero up to a small error, with proven bounds.

        Parameters
        ----------
        points, confidence, seed
            As for :func:`log_normalizer`.

        Returns
        -------
        LogNormalizer
            The logarithm of the integral of ``exp(score_samples)``.
        """
        self._check_fitted()
        return self._projection_._log_normalizer(points=points, confidence=confidence, seed=seed)


def _fitted(estimator: Any, records: Floats, reference: Reference, seed: int | None) -> Any:
    """Fit a copy of a density estimator, or the default estimator if there is none."""
    if estimator is None:
        return _automatic_estimate(records, reference, seed)
    missing = [
        name for name in ("fit", "score_samples") if not callable(getattr(estimator, name, None))
    ]
    if missing or isinstance(estimator, type):
        raise _arguments.mistyped(
            "estimator must be a density estimator with fit and score_samples", estimator
        )
    copied = copy_of(estimator)
    copied.fit(records)
    return copied


@dataclass(frozen=True, eq=False, repr=False)
class ScaledEstimate:
    """A density estimate of records that were divided by the spread of the reference."""

    estimate: Any
    center: Floats
    scale: Floats

    def score_samples(self, points: Floats) -> Floats:
        """Return the log-density at points of shape (n, d)."""
        scaled = (points - self.center) / self.scale
        result: Floats = self.estimate.score_samples(scaled) - float(np.log(self.scale).sum())
        return result


def _automatic_estimate(records: Floats, reference: Reference, seed: int | None) -> ScaledEstimate:
    """Estimate a density: a Gaussian mixture chosen by BIC, or a kernel estimate for few records.

    Parameters
    ----------
    records
        Of shape (n, d).
    reference
        Its spread is the unit of length.
    seed
        Of the initial components.

    Returns
    -------
    ScaledEstimate
        With ``score_samples``.
    """
    typical = reference.draw(1024, seed=0)
    with np.errstate(all="ignore"):
        center, scale = typical.mean(axis=0), typical.std(axis=0)
    usable = np.isfinite(center) & np.isfinite(scale) & (scale > 0.0)
    center, scale = np.where(usable, center, 0.0), np.where(usable, scale, 1.0)
    scaled = (records - center) / scale
    count = len(scaled)
    if count < _FEW:
        return ScaledEstimate(_kernels(scaled), center, scale)
    mixture = require("sklearn.mixture", "samplers").GaussianMixture
    most = max(1, min(_COMPONENTS, count // 10))
    random_state = None if seed is None else (derived(seed, 5) or 0) % 2**32
    # BIC's choice needs no more records than this; the chosen mixture is fitted to all.
    few = scaled
    if count > _MOST:
        few = np.random.default_rng(random_state).choice(scaled, _MOST, replace=False)
    # Identical or proportional columns have no covariance: the least one is relative to the spread.
    least = 1e-6 * max(1.0, float(scaled.var(axis=0).max()))

    def fitted(components: int, part: Floats) -> Any:
        with contextlib.suppress(ValueError):
            return mixture(components, reg_covar=least, random_state=random_state).fit(part)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = filter(None, (fitted(components, few) for components in range(1, most + 1)))
        chosen = min(found, key=lambda estimate: float(estimate.bic(few)), default=None)
        if chosen and few is not scaled:
            chosen = fitted(chosen.n_components, scaled)
    return ScaledEstimate(chosen or _kernels(scaled), center, scale)


def _kernels(scaled: Floats) -> Any:
    count, dimensions = scaled.shape
    # Scott's rule; one record says nothing of its spread, so a tenth of the reference's is taken.
    spread = float(np.sqrt(scaled.var(axis=0).mean())) if count > 1 else 0.1
    width = max(spread * count ** (-1.0 / (dimensions + 4)), 0.01)
    return require("sklearn.neighbors", "samplers").KernelDensity(bandwidth=width).fit(scaled)
