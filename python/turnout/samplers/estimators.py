"""The density estimate that is made where the user names none."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from turnout._extras import require
from turnout._types import Floats
from turnout.samplers.randomness import derived, generator
from turnout.samplers.reference import Reference

#: Fewer records than this get a kernel estimate.
_FEW = 20

_COMPONENTS = 8

#: The number of components is chosen on so many records.
_MOST = 5000


class ScaledEstimate:
    """A density estimate of records that were divided by the spread of the reference."""

    def __init__(self, estimate: Any, center: Floats, scale: Floats) -> None:
        self.estimate = estimate
        self._center = center
        self._scale = scale
        self._log_scale = float(np.log(scale).sum())

    def score_samples(self, points: Floats) -> Floats:
        """Give the log-density at points of shape (n, d)."""
        scaled = (points - self._center) / self._scale
        result: Floats = self.estimate.score_samples(scaled) - self._log_scale
        return result


def automatic_estimate(records: Floats, reference: Reference, seed: int | None) -> ScaledEstimate:
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
        few = scaled[generator(random_state).choice(count, _MOST, replace=False)]
    # Identical or proportional columns have no covariance: the least one is relative to the spread.
    least = 1e-6 * max(1.0, float(scaled.var(axis=0).max()))

    def fitted(components: int, part: Floats) -> Any:
        try:
            return mixture(components, reg_covar=least, random_state=random_state).fit(part)
        except ValueError:
            return None

    best, lowest = 0, math.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for components in range(1, most + 1):
            found = fitted(components, few)
            criterion = math.inf if found is None else float(found.bic(few))
            if criterion < lowest:
                best, lowest, chosen = components, criterion, found
        if best and few is not scaled:
            chosen = fitted(best, scaled)
    return ScaledEstimate(
        chosen if best and chosen is not None else _kernels(scaled), center, scale
    )


def _kernels(scaled: Floats) -> Any:
    count, dimension = scaled.shape
    # Scott's rule; one record says nothing of its spread, so a tenth of the reference's is taken.
    spread = float(np.sqrt(scaled.var(axis=0).mean())) if count > 1 else 0.1
    width = max(spread * count ** (-1.0 / (dimension + 4)), 0.01)
    return require("sklearn.neighbors", "samplers").KernelDensity(bandwidth=width).fit(scaled)


def copy_of(estimator: Any) -> Any:
    """Copy an estimator without what it was fitted on."""
    if hasattr(estimator, "get_params"):
        clone: Callable[[Any], Any] = require("sklearn.base", "samplers").clone
        return clone(estimator)
    return copy.deepcopy(estimator)
