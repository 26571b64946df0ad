"""Known distributions to study samplers on, and what is between no sampler and the best one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Floats
from turnout.samplers._arguments import points
from turnout.samplers.adapters import Mixture, as_reference, log_density_of
from turnout.samplers.mollifier import Projection
from turnout.samplers.reference import Normal
from turnout_reproduce.measures.metrics import MeanLoss, negative_log_likelihood


class PublicReference:
    """The reference itself, in a study: what costs nothing and knows nothing.

    Parameters
    ----------
    reference
        Anything that :func:`as_reference` takes.
    """

    def __init__(self, reference: Any = None) -> None:
        self.reference = reference

    def fit(self, X: Any, y: None = None) -> PublicReference:
        """Take the number of features, and nothing else, from the records."""
        self._reference_ = as_reference(self.reference, np.shape(X)[1])
        return self

    def score_samples(self, X: Any) -> Floats:
        """Give the reference's log-density."""
        return self._reference_.log_density(np.asarray(X, dtype=np.float64))


class FloorOfMollifier:
    """The projection of the true density onto the mollifier, in a study.

    No sampler whose law stays in the mollifier has a smaller negative log-likelihood in the mean.

    Parameters
    ----------
    epsilon
        Privacy of one draw.
    reference
        Anything that :func:`as_reference` takes.
    """

    def __init__(self, epsilon: float, reference: Any = None) -> None:
        self.epsilon = epsilon
        self.reference = reference

    def fit_target(self, target: Any) -> FloorOfMollifier:
        """Project the truth, which no sampler knows."""
        reference = as_reference(self.reference, target.dimensions)
        self._projection_ = Projection(reference, log_density_of("target", target), self.epsilon)
        return self

    def score_samples(self, X: Any) -> Floats:
        """Give the projection's log-density."""
        result: Floats = self._projection_.log_density(np.asarray(X, dtype=np.float64))
        return result


class GaussianMixtureTarget:
    """A mixture of round Gaussians.

    Parameters
    ----------
    means
        Of shape (n_modes, d), or (n_modes,) on the line.
    deviations
        The standard deviation of each mode, or one for all.
    weights
        Of the modes; equal by default.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument cannot be used.

    Examples
    --------
    >>> target = GaussianMixtureTarget([-1.0, 1.0], 0.5)
    >>> target.sample(3, seed=1).shape
    (3, 1)
    >>> target.log_density([[0.0]]).round(4)
    array([-2.2258])
    """

    def __init__(self, means: Any, deviations: Any, weights: Any = None) -> None:
        given = np.asarray(means)
        self.means = points("means", given[:, None] if given.ndim == 1 else given)
        count, dimension = self.means.shape
        each = np.ravel(deviations)
        each = np.repeat(each, count) if each.size == 1 else each
        self.deviations = _arguments.frequencies("deviations", each, count)
        if not (self.deviations > 0).all():
            raise _arguments.invalid("deviations must be above 0", deviations)
        modes = [
            Normal(mean, np.full(dimension, deviation**2))
            for mean, deviation in zip(self.means, self.deviations, strict=True)
        ]
        self._mixture = Mixture(modes, weights)
        self.weights = self._mixture.weights

    @property
    def dimensions(self) -> int:
        """The number of features."""
        return self._mixture.dimensions

    @property
    def bounds(self) -> Floats:
        """A box of shape (d, 2) that holds all but about 1e-9 of the distribution."""
        reach = 6.0 * self.deviations[:, None]
        return np.column_stack([(self.means - reach).min(0), (self.means + reach).max(0)])

    def log_density(self, points_: Any) -> Floats:
        """Give the log-density at points of shape (n, d).

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If they are no such points.
        """
        return self._mixture.log_density(points("points", points_))

    def sample(self, n_samples: int = 1, *, seed: int | None = None) -> Floats:
        """Draw records of shape (n_samples, d).

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is out of range.
        """
        count = _arguments.integer("n_samples", n_samples, least=1)
        return self._mixture.draw(count, seed=_arguments.seed(seed))

    def entropy(self, n_samples: int = 1_000_000, *, seed: int | None = 0) -> MeanLoss:
        """Estimate the entropy in nats: no likelihood can be better in the mean.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is out of range.
        """
        return negative_log_likelihood(self, self.sample(n_samples, seed=seed))

    def __repr__(self) -> str:
        count, dimension = self.means.shape
        return f"GaussianMixtureTarget({count} modes, {dimension} features)"


def seed_mixture() -> GaussianMixtureTarget:
    """Make the private-sampling paper's mixture 1/3 (N(.3, .01) + N(.5, .1) + N(.7, .1)).

    The second numbers are read as standard deviations; the paper does not say.

    Returns
    -------
    GaussianMixtureTarget
        On the line.

    Examples
    --------
    >>> -0.84 < seed_mixture().entropy().value < -0.83
    True
    """
    return GaussianMixtureTarget([0.3, 0.5, 0.7], [0.01, 0.1, 0.1])


def ring_of_gaussians(
    modes: int = 8, *, radius: float = 4.0, deviation: float = 0.3
) -> GaussianMixtureTarget:
    """Make equal Gaussians on a circle in the plane.

    Parameters
    ----------
    modes
        How many.
    radius
        Of the circle around the origin.
    deviation
        The standard deviation of each.

    Returns
    -------
    GaussianMixtureTarget
        In the plane.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is out of range.

    Examples
    --------
    >>> ring_of_gaussians(4).means.round(6).tolist()
    [[4.0, 0.0], [0.0, 4.0], [-4.0, 0.0], [-0.0, -4.0]]
    """
    count = _arguments.integer("modes", modes, least=1, most=65_536)
    size = _arguments.number("radius", radius)
    angles = math.tau * np.arange(count) / count
    means = size * np.column_stack([np.cos(angles), np.sin(angles)])
    return GaussianMixtureTarget(means, _arguments.number("deviation", deviation))


def random_gaussians_1d(
    seed: int | None = None,
    modes: int = 3,
    *,
    spread: float = 2.0,
    deviation: float = 0.2,
) -> GaussianMixtureTarget:
    """Make equal Gaussians at random places on the line.

    Parameters
    ----------
    seed
        Of the places.
    modes
        How many.
    spread
        The means are uniform on [-spread, spread].
    deviation
        The standard deviation of each.

    Returns
    -------
    GaussianMixtureTarget
        On the line.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is out of range.

    Examples
    --------
    >>> random_gaussians_1d(1).means.shape
    (3, 1)
    """
    count = _arguments.integer("modes", modes, least=1)
    reach = _arguments.number("spread", spread)
    generator = np.random.default_rng(_arguments.seed(seed))
    means = generator.uniform(-abs(reach), abs(reach), count)
    return GaussianMixtureTarget(means, _arguments.number("deviation", deviation))
