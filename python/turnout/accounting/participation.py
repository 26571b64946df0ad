"""Random participation in federated learning, and comparable schemes."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout._rounding import rounded_up
from turnout._types import Floats
from turnout.accounting.loss_grid import EXACT, Real
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.reached import clients
from turnout.accounting.values import (
    Divergence,
    Reached,
    directions,
    divergences,
    numbers,
    shaped,
    surely,
)
from turnout.errors import InvalidTypeError

#: The largest number of other elements of a client.
_LARGEST_LOCAL_SIZE = 10**10


#: An epsilon that is less is zero but for rounding.
_NEXT_TO_ZERO = 1e-300

#: Rates and noise within which it is known how close upper values are to the exact ones. Rates that
#: are rarer are rounded up; tails of Gaussians that are closer cancel each other.
_LEAST_RATE, _LEAST_NOISE, _MOST_NOISE = 1e-75, 1e-5, 1e5


def sampled_gaussian(
    epsilon: Floats, noise: float, sample_rate: float, client_rate: float = 1.0
) -> dict[str, Divergence]:
    """Evaluate Gaussian noise on sampled elements of a client whose participation is known."""
    columns = _core.poisson_sampling(epsilon, noise, sample_rate, client_rate)
    return divergences(columns, "remove", "add")


class _Noisy(Mechanism):
    """Base class of rounds with Gaussian noise."""

    noise_multiplier: float

    @property
    def _slack(self) -> float:
        """The relative amount by which delta may exceed that of the worst data."""
        # Ten times what was found, and more.
        return max(EXACT, 1e-11 * self.noise_multiplier, 1e-13 / self.noise_multiplier)

    def _reached(self) -> tuple[Real, ...]:
        """Return the mechanism itself, if it is known how tight its delta is."""
        return (self,) if self._close() else ()

    def _close(self) -> bool:
        rates = [getattr(self, name, 1.0) for name in ("client_rate", "sample_rate")]
        usual = all(rate >= _LEAST_RATE or rate <= 0.0 for rate in rates)
        return usual and _LEAST_NOISE <= self.noise_multiplier <= _MOST_NOISE


@dataclasses.dataclass(frozen=True)
class RandomParticipation(_Noisy):
    """One round of federated learning in which clients take part at random, unseen.

    A client takes part with probability ``client_rate``; if it does, each of its elements is
    sampled with probability ``sample_rate``. Gradients are clipped to norm C, and Gaussian noise of
    standard deviation ``noise_multiplier * C`` is added to their sum. Who takes part stays hidden
    from the adversary. The guarantee is for one element of one client.

    Parameters
    ----------
    client_rate
        The probability p that a client takes part, in [0, 1].
    sample_rate
        The probability q that an element of a client that takes part is sampled, in [0, 1].
    local_size
        A public upper bound d of the number of a client's elements besides the protected one. If no
        bound is known, use :class:`WeakClientSampling`, the limit for large d.
    noise_multiplier
        The standard deviation of the noise over the clipping norm, finite and above 0.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range.

    Notes
    -----
    Hasircioglu and Gunduz, "Privacy Amplification via Random Participation in Federated Learning".
    Their Theorem 4.1 is not an upper bound (:func:`turnout.accounting.paper.theorem_4_1_delta`);
    this class has a sound one. It first uses joint convexity over the sampled set, with the best
    share of the absent client for each set. Then it takes the worst gradients for each term, which
    are aligned and of full norm. Lower values of :meth:`compose` are those of possible clients,
    which they name.

    It is :class:`CentralShuffling` at ``local_size=0``, :class:`LocalSampling` at
    ``client_rate=1``, and tends to :class:`WeakClientSampling` as ``local_size`` grows.

    Examples
    --------
    >>> mechanism = RandomParticipation(0.001, 0.1, local_size=30, noise_multiplier=2.3733)
    >>> mechanism.delta(0.015) <= 1e-6
    True
    >>> round(mechanism.epsilon(1e-6), 4)
    0.015
    """

    client_rate: float
    sample_rate: float
    local_size: int
    noise_multiplier: float

    _calibrated: ClassVar[dict[str, bool]] = {
        "noise_multiplier": True,
        "client_rate": False,
        "sample_rate": False,
        "local_size": False,
    }

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        columns = _core.random_participation(
            epsilon, self.noise_multiplier, self.client_rate, self.sample_rate, self.local_size
        )
        return divergences(columns, "remove", "add")

    def _reached(self) -> tuple[Real, ...]:
        """Return the laws of possible clients: aligned, oblique, orthogonal or no gradients."""
        if self.local_size == 0 or self.client_rate >= 1.0:
            return super()._reached()
        return clients(self.client_rate, self.sample_rate, self.local_size, self.noise_multiplier)

    def _reached_delta(self, epsilon: float, word: str) -> Reached:
        """Return a delta that a possible client has; the bound itself where it is attained."""
        best = super()._reached_delta(epsilon, word)
        if best.exact or not self._close():
            return best
        attained = _core.random_participation_attained(
            epsilon, self.noise_multiplier, self.client_rate, self.sample_rate, self.local_size
        )
        known = self._divergence(np.array([epsilon]))
        for forward, _ in directions(word):
            name = "all other gradients opposed" if forward == "add" else "all others aligned"
            if epsilon < _NEXT_TO_ZERO:
                # What others hide from the client that stays away counts for nothing.
                name = "all other gradients zero"
            upper = float(known[forward].delta[0])
            found = surely(upper, self._slack, name)
            if attained[forward == "add"] and found.value > best.value:
                best = found._replace(exact=upper >= float(self.delta(epsilon, word)))
        return best


@dataclasses.dataclass(frozen=True)
class LocalSampling(_Noisy):
    """Only local sampling (OLS): every client takes part, each element is sampled.

    This is Poisson sampling with the Gaussian mechanism, the accounting of ordinary private
    training.

    Parameters
    ----------
    sample_rate
        The probability q that an element is sampled, in [0, 1].
    noise_multiplier
        The standard deviation of the noise over the clipping norm, finite and above 0.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range.

    Notes
    -----
    Hasircioglu and Gunduz, Theorem 5.1 (whose equation (8) is misprinted: it needs
    ``log(1 + q (e^eps' - 1))``); Balle, Barthe, Gaboardi 2018, Theorem 8.

    Examples
    --------
    >>> round(LocalSampling(sample_rate=0.1, noise_multiplier=1.0).delta(0.5), 5)
    0.00203
    """

    sample_rate: float
    noise_multiplier: float

    _calibrated: ClassVar[dict[str, bool]] = {"noise_multiplier": True, "sample_rate": False}

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        return sampled_gaussian(epsilon, self.noise_multiplier, self.sample_rate)


@dataclasses.dataclass(frozen=True)
class _ClientSampling(_Noisy):
    """Base class of schemes with both rates and no local size."""

    client_rate: float
    sample_rate: float
    noise_multiplier: float

    _calibrated: ClassVar[dict[str, bool]] = {
        "noise_multiplier": True,
        "client_rate": False,
        "sample_rate": False,
    }


@dataclasses.dataclass(frozen=True)
class WeakClientSampling(_ClientSampling):
    """Weak client sampling (WCS): the adversary learns which clients take part.

    ``delta = client_rate * delta of LocalSampling``. It is the bound for random participation if
    the number of elements of a client is unknown, or if only participating clients send a message
    to an untrusted server.

    Parameters
    ----------
    client_rate
        The probability p that a client takes part, in [0, 1].
    sample_rate
        The probability q that an element of a client that takes part is sampled, in [0, 1].
    noise_multiplier
        The standard deviation of the noise over the clipping norm, finite and above 0.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range.

    Notes
    -----
    Hasircioglu and Gunduz, Theorem 5.2.

    Examples
    --------
    >>> weak, local = WeakClientSampling(0.5, 0.1, 1.0), LocalSampling(0.1, 1.0)
    >>> round(weak.delta(0.5) / local.delta(0.5), 9)
    0.5
    """

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        return sampled_gaussian(epsilon, self.noise_multiplier, self.sample_rate, self.client_rate)


@dataclasses.dataclass(frozen=True)
class CentralShuffling(_ClientSampling):
    """Central shuffling (CS): each element is sampled separately, at the product of the rates.

    **It is not a guarantee for the federated setting.** There, all elements of a client are present
    or absent together, and Poisson sampling at the product rate is a lower bound of the loss. It is
    a guarantee if the elements of all clients are pooled and shuffled before each round.

    Parameters
    ----------
    client_rate, sample_rate
        The probabilities p and q, in [0, 1]; only their product matters.
    noise_multiplier
        The standard deviation of the noise over the clipping norm, finite and above 0.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range.

    Notes
    -----
    Hasircioglu and Gunduz, Corollary 5.3 (misprinted: it needs ``p q`` instead of ``q``).

    Examples
    --------
    >>> CentralShuffling(0.1, 0.1, 1.0).delta(0.1) == LocalSampling(0.1 * 0.1, 1.0).delta(0.1)
    True
    """

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        product = Fraction(self.client_rate) * Fraction(self.sample_rate)
        return sampled_gaussian(epsilon, self.noise_multiplier, rounded_up(product))


@dataclasses.dataclass(frozen=True)
class GaussianMechanism(_Noisy):
    """Gaussian noise on a sum whose L2 sensitivity is 1.

    The sensitivity is that of your adjacency, so every adjacency gives the same values.

    Parameters
    ----------
    noise_multiplier
        The standard deviation of the noise over the sensitivity, finite and above 0.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the parameter is of the wrong type or out of range.

    Notes
    -----
    Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy" (2018), Theorem 8.

    Examples
    --------
    >>> round(GaussianMechanism(noise_multiplier=1.0).epsilon(1e-5), 3)
    4.377
    """

    noise_multiplier: float

    adjacencies: ClassVar[tuple[str, ...]] = ("add_or_remove", "add", "remove", "replace")
    _calibrated: ClassVar[dict[str, bool]] = {"noise_multiplier": True}

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        both = sampled_gaussian(epsilon, self.noise_multiplier, 1.0)
        return {**both, "replace": both["remove"]}


def participation_delta(
    epsilon: npt.ArrayLike,
    noise_multiplier: npt.ArrayLike,
    client_rate: npt.ArrayLike,
    sample_rate: npt.ArrayLike,
    local_size: npt.ArrayLike,
    *,
    adjacency: str = "add_or_remove",
) -> Floats | float:
    """Bound delta of random participation on a grid of parameters, in parallel.

    Parameters
    ----------
    epsilon, noise_multiplier, client_rate, sample_rate, local_size
        Numbers or arrays that broadcast against each other; see :class:`RandomParticipation`.
    adjacency
        ``"add_or_remove"``, ``"add"`` or ``"remove"``.

    Returns
    -------
    float or numpy.ndarray
        Delta, float64, in the broadcast shape.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or shapes do not broadcast.

    Examples
    --------
    >>> grid = participation_delta([[0.01], [0.1]], [1.0, 2.0, 4.0], 0.001, 0.1, 30)
    >>> grid.shape
    (2, 3)
    """
    word = _arguments.choice("adjacency", adjacency, RandomParticipation.adjacencies)
    sizes = numbers("local_size", local_size)
    if not ((sizes >= 0) & (sizes <= _LARGEST_LOCAL_SIZE) & (sizes == np.floor(sizes))).all():
        raise _arguments.invalid("local_size must hold integers from 0 to 10^10", local_size)
    named = {
        "epsilon": epsilon,
        "noise_multiplier": noise_multiplier,
        "client_rate": client_rate,
        "sample_rate": sample_rate,
    }
    given = [*(numbers(name, value) for name, value in named.items()), sizes]
    try:
        arrays = np.broadcast_arrays(*given)
    except ValueError as error:
        shapes = ", ".join(str(array.shape) for array in given)
        raise InvalidTypeError(f"the arguments must broadcast, got shapes {shapes}") from error
    points, noise, client, sample, size = (np.ascontiguousarray(a).ravel() for a in arrays)
    whole = size.astype(np.uint64)
    columns = _core.random_participation_grid(points, noise, client, sample, whole)
    both = divergences(columns, "remove", "add")
    result = np.maximum.reduce([both[forward].delta for forward, _ in directions(word)])
    return shaped(result, arrays[0])
