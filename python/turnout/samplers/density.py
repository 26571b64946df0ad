"""Private draws from any density estimate, projected onto the mollifier."""

from __future__ import annotations

import contextlib
from typing import Any

from turnout import _arguments
from turnout._one_thread import one_thread
from turnout._types import Floats
from turnout.samplers.adapters import as_reference
from turnout.samplers.base import PointSampler, random_state_of
from turnout.samplers.drawing import automatic_proposals
from turnout.samplers.estimators import automatic_estimate, copy_of
from turnout.samplers.mollifier import Projection, log_density_of
from turnout.samplers.normalizer import LogNormalizer
from turnout.samplers.reference import Reference, check_support


class MollifiedDensity(PointSampler):
    """A private draw from a density estimate of a person's own records.

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
        ``GaussianMixture``, a :class:`MollifiedBoosting` of larger epsilon, ...); a copy is fitted.
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
        The projected density. Draws from it are not paid for.
    reference_
        The reference.
    estimator_
        The fitted estimate: private, like the whole fitted sampler.
    certificate_
        A proven bound of ``|log Q/Q0|`` for the law Q of a draw: ``epsilon / 2``.
    budget_
        What pays for draws where no other budget is given: one draw.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        From ``fit``, if a parameter or the data cannot be used: a record outside the support
        of the reference is refused.
    MissingExtraError
        From ``fit``, if scikit-learn is needed and not installed.

    Notes
    -----
    ``score_samples`` gives the projection of the estimate; :meth:`log_normalizer` says how well it
    is normalised (to about 1e-4 in one or two dimensions, 1e-2 in more). The law of a draw differs
    from it by the error of the constant C on as many points as there are proposals: it is in the
    mollifier exactly, and close to the projection.

    The number of proposals is fixed; the time of ``fit`` and of a draw depends on the number of
    records and on the estimate. Where somebody can time it, release draws at a fixed hour.

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

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        reference: Any = None,
        estimator: Any = None,
        proposals: int | None = None,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.reference = reference
        self.estimator = estimator
        self.proposals = proposals
        self.random_state = random_state

    projection_: Projection
    reference_: Reference
    estimator_: Any

    @property
    def certificate_(self) -> float:
        """A proven bound of ``|log Q/Q0|`` for the law Q of a draw."""
        self.check_fitted()
        return self._half_width

    def _fit(self, records: Floats) -> None:
        proposals = self.proposals
        if proposals is not None:
            proposals = _arguments.integer("proposals", proposals, least=2, most=2**30)
        self.reference_ = as_reference(self.reference, records.shape[1])
        check_support("X", records, self.reference_)
        # The mixture that is chosen takes small steps; how others compute is their own matter.
        with one_thread() if self.estimator is None else contextlib.nullcontext():
            self.estimator_ = fitted_estimate(
                self.estimator, records, self.reference_, random_state_of(self.random_state)
            )
        self.projection_ = Projection(
            self.reference_, log_density_of(self.estimator_), self.epsilon_
        )
        self._seen = proposals or automatic_proposals(self.epsilon_)
        self._half_width = self.epsilon_ / 2.0

    def _draw(self, count: int, seed: int | None) -> Floats:
        return self.projection_.sample(count, proposals=self._seen, seed=seed)

    def _log_density(self, records: Floats) -> Floats:
        return self.projection_.log_density(records)

    def log_normalizer(
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
        self.check_fitted()
        return self.projection_.log_normalizer(points=points, confidence=confidence, seed=seed)


def fitted_estimate(estimator: Any, records: Floats, reference: Reference, seed: int | None) -> Any:
    """Fit a copy of a density estimator, or the one that is chosen where there is none.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is no estimator, or the seed of the one that is chosen is none.
    """
    if estimator is None:
        return automatic_estimate(records, reference, seed)
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
