"""Batches of other trainings: of a fixed size, shuffled, or from random check-ins."""

from __future__ import annotations

import dataclasses
import functools
from fractions import Fraction
from typing import ClassVar

import numpy as np

from turnout._rounding import rounded_up
from turnout._types import Floats
from turnout.accounting import slots as one_of
from turnout.accounting.composition import WORST
from turnout.accounting.loss_grid import EXACT, Real
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.participation import sampled_gaussian
from turnout.accounting.values import WHOLE, Divergence, Reached, smaller, surely
from turnout.errors import InvalidValueError

#: Sums over more slots than this lose their digits.
MOST_SLOTS = WHOLE["slots"][1]

#: Rates and noise within which it is known how close upper values are to the exact ones.
_LEAST_RATE, _LEAST_NOISE, _MOST_NOISE = 1e-75, 1e-4, 1e5

#: No mean of ratios is beyond this with a probability that is a number.
_LARGEST_STRIKE = 1e150

#: Up to these epsilons differences of masses are computed.
_FAR_UP = (300.0, 2.0, 0.5, 0.1, 0.02, 0.005, 0.001, 0.0002)

#: A lower value of at least this part of the upper one is that of the worst data.
_CLOSE = 0.999

_OPPOSED = "all other gradients opposed to the one"


def share_of(part: int, whole: int) -> float:
    """Divide whole numbers, and round up."""
    return rounded_up(Fraction(part, whole))


def _known(noise: float) -> bool:
    return _LEAST_NOISE <= noise <= _MOST_NOISE


@dataclasses.dataclass(frozen=True)
class Opposed:
    """Data in which all other gradients of a batch are opposed to the one that changes.

    The adversary sees a Gaussian; in a batch with the changed record, its mean is two away.
    """

    rate: float
    noise_multiplier: float
    #: Which of the two laws the data set has that replaces the other.
    replaced: tuple[str, str] = ("remove", "add")
    #: The data in words.
    name: str = _OPPOSED

    #: The directions in which no data lose more.
    attains: ClassVar[tuple[str, ...]] = ("remove", "add")

    def _tail(self, direction: str, epsilon: Floats) -> Divergence:
        """Evaluate one direction at epsilons of at least 0."""
        if direction == "replace":
            direction = self.replaced[0]
        known = sampled_gaussian(epsilon, 0.5 * self.noise_multiplier, self.rate)[direction]
        return known._replace(delta=known.delta * (1.0 - EXACT))


@dataclasses.dataclass(frozen=True)
class FixedSizeBatches(Mechanism):
    """A batch of a fixed size, drawn without replacement, and Gaussian noise on its sum.

    Every batch of ``batch_size`` of the ``records`` is equally likely. Gradients are clipped to
    norm C, and Gaussian noise of standard deviation ``noise_multiplier * C`` is added to their sum.
    Records may be clients: then this is a round that calls a fixed number of clients.

    Parameters
    ----------
    batch_size
        The number of records in a batch, at least 1.
    records
        The number of all records, more than in a batch, at most 10^10. With ``"replace"`` it is
        public; with ``"add"`` and ``"remove"`` it includes the record that is added or removed.
    noise_multiplier
        The standard deviation of the noise on the sum over the clipping norm, finite and above 0.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range.

    Notes
    -----
    **A record that is not drawn makes room for another one.** So the sums of a batch with it and of
    one without it differ by two gradients, which may be opposed. The distance is 2, not 1, for
    every adjacency. Delta is that of Poisson sampling at the rate ``batch_size / records`` and
    *half* the noise multiplier: Balle, Barthe, Gaboardi, "Privacy Amplification by Subsampling"
    (2018), Theorems 8 to 11. It is reached if all other gradients are opposed to this one. Two
    other ways of accounting give too small a loss: sampling without replacement as if a replacement
    moved the sum by one norm, and Poisson sampling at the same rate and noise.

    The values of one release are exact for all adjacencies, and so is the composition for ``"add"``
    and ``"remove"``. In a composition for ``"replace"``, either of the two data sets may stand out
    in a round; the bound takes the worse of both for every loss.

    Examples
    --------
    >>> from turnout.accounting import LocalSampling
    >>> mechanism = FixedSizeBatches(batch_size=100, records=10_000, noise_multiplier=2.0)
    >>> mechanism.delta(0.5) == LocalSampling(0.01, 1.0).delta(0.5)
    True
    >>> round(mechanism.compose(1000).epsilon(1e-5), 2)
    2.2
    """

    batch_size: int
    records: int
    noise_multiplier: float

    adjacencies: ClassVar[tuple[str, ...]] = ("replace", "add_or_remove", "add", "remove")
    _calibrated: ClassVar[dict[str, bool]] = {
        "noise_multiplier": True,
        "batch_size": False,
        "records": True,
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size >= self.records:
            raise InvalidValueError(
                f"batch_size must be less than the {self.records} records, got "
                f"{self.batch_size}: to use all records in each step, use "
                "GaussianMechanism"
            )

    @property
    def _rate(self) -> float:
        """The probability that a record is in a batch, rounded up."""
        return share_of(self.batch_size, self.records)

    def _whole_range(self, parameter: str) -> tuple[int, int] | None:
        """Return the range of a number in a calibration."""
        if parameter == "records":
            return self.batch_size + 1, WHOLE["records"][1]
        return (1, self.records - 1) if parameter == "batch_size" else None

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        both = sampled_gaussian(epsilon, 0.5 * self.noise_multiplier, self._rate)
        return {**both, "replace": both["remove"]}

    def _reached(self) -> tuple[Real, ...]:
        """Return the two data sets, either of which may stand out."""
        if not _known(self.noise_multiplier):
            return ()
        turned = (("remove", "add"), ("add", "remove"))
        return tuple(Opposed(self._rate, self.noise_multiplier, ways) for ways in turned)

    def _reached_delta(self, epsilon: float, word: str) -> Reached:
        """Return delta itself, which opposed gradients reach."""
        if not _known(self.noise_multiplier):
            return Reached(0.0, "", False)
        return surely(float(self.delta(epsilon, word)), EXACT, _OPPOSED)


@dataclasses.dataclass(frozen=True)
class OneSlot:
    """Data with one person's gradient in at most one of many sums, and nothing else in them.

    Bounds from below (:mod:`turnout.accounting.slots`).
    """

    rate: float
    slots: int
    noise_multiplier: float
    name: str
    #: Which of the two laws the data set has that replaces the other.
    replaced: tuple[str, str] = ("remove", "add")

    def _tail(self, direction: str, epsilon: Floats) -> Divergence:
        """Evaluate one direction at epsilons of at least 0."""
        way = self.replaced[0] if direction == "replace" else direction
        known = _one_slot(self, way, epsilon, upper=False)
        # Both directions are one law: they meet at zero.
        delta = known.delta * self._shares[way] * (1.0 - EXACT)
        return known._replace(delta=np.clip(delta, 0.0, 1.0))

    @functools.cached_property
    def _shares(self) -> dict[str, float]:
        """Return factors that make the two directions agree at zero."""
        zero = np.zeros(1)
        at_zero = {
            way: float(_one_slot(self, way, zero, upper=False).delta[0])
            for way in ("remove", "add")
        }
        least = min(at_zero.values())
        return {way: least / value if value > 0.0 else 0.0 for way, value in at_zero.items()}


def _one_slot(
    law: OneSlot | RandomCheckIns, way: str, epsilon: Floats, *, upper: bool
) -> Divergence:
    """Bound the divergence between a person in one of many sums and nobody in any sum."""
    p = law.rate
    with np.errstate(over="ignore"):
        beyond = np.expm1(epsilon) / p if p > 0.0 else np.full(epsilon.shape, np.inf)
    if way == "remove":
        bound = one_of.calls if upper else one_of.real_calls
        strikes = np.minimum(1.0 + beyond, _LARGEST_STRIKE)
        value, own, without = bound(strikes, law.noise_multiplier, law.slots)
        return Divergence(p * value, (1.0 - p) * without + p * own, without)
    # E[(1 - a R)_+] with R = 1 - p + p times the mean of the ratios.
    with np.errstate(over="ignore"):
        strikes = 1.0 - (-np.expm1(-epsilon) / p if p > 0.0 else np.full(epsilon.shape, np.inf))
    bound = one_of.puts if upper else one_of.real_puts
    inside = strikes > 0.0
    value, own, without = bound(np.maximum(strikes, 0.0), law.noise_multiplier, law.slots)
    with np.errstate(over="ignore", invalid="ignore"):
        delta = np.where(inside, np.exp(epsilon) * p * value, 0.0)
    # At no rate above it is anything certain to be seen.
    with_it = np.where(inside, (1.0 - p) * without + p * own, 0.0)
    return Divergence(delta, np.where(inside, without, 0.0), with_it)


@dataclasses.dataclass(frozen=True)
class RandomCheckIns(Mechanism):
    """Each person takes part at random in one of many noisy sums, and nobody sees in which.

    A person checks in with probability ``rate``, in one of ``slots`` equally likely sums. The sums
    are published one after the other, each with Gaussian noise of standard deviation
    ``noise_multiplier * C``. A person's contribution has norm at most C and may depend on all
    earlier sums. The guarantee is for all sums of one pass together. It stays hidden who takes
    part, and when. People choose independently, so the numbers of people in the sums vary. The same
    bound holds for batches to which each record is assigned independently at random ("balls and
    bins").

    Parameters
    ----------
    rate
        The probability that a person takes part, in [0, 1].
    slots
        The number of sums, from 1 to 10^6.
    noise_multiplier
        The standard deviation of the noise over the clipping norm, finite and above 0.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range.

    Notes
    -----
    Given the earlier sums, a gradient of full norm is visible only along its direction, and a
    shorter one is one of full norm with more noise. So, for any gradients, delta is at most the
    divergence between ``(1 - p) N(0) + p/m sum_j N(e_j)`` and ``N(0)``, in either direction;
    gradients that always have full norm reach it. It is the mean of a function of the sum of m
    independent log-normal ratios, computed by Fourier transforms. The possible errors of the grid
    and of rounding are added to upper values and subtracted from lower ones. Below about 1e-11, and
    for almost no noise, the bound falls back to that of a person whose slot is known.

    Balle, Kairouz, McMahan, Thakkar, Thakurta, "Privacy Amplification via Random Check-Ins" (2020)
    have a server that takes *one* of the people who check in to a slot. Then a person's update
    replaces another person's, at a distance of 2: half the noise multiplier gives a bound. Chua,
    Ghazi, Harrison, Leeman, Kamath, Kumar, Manurangsi, Sinha, Zhang, "Balls-and-Bins Sampling for
    DP-SGD" (2025) evaluate the same pair of laws by simulation.

    Examples
    --------
    >>> mechanism = RandomCheckIns(rate=0.5, slots=1000, noise_multiplier=1.0)
    >>> round(mechanism.epsilon(1e-6), 2)
    0.08
    >>> bounds = mechanism.compose(1).delta_bounds(0.05)
    >>> 0.9 < bounds.low / bounds.high <= 1.0
    True
    """

    rate: float
    slots: int
    noise_multiplier: float

    _calibrated: ClassVar[dict[str, bool]] = {
        "noise_multiplier": True,
        "rate": False,
        "slots": True,
    }

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        # With the slot known it is local sampling: joint convexity.
        told = sampled_gaussian(epsilon, self.noise_multiplier, self.rate)
        if not _known(self.noise_multiplier) or self.slots == 1:
            return told
        return {
            way: functools.reduce(
                smaller,
                # Delta falls; far up rounding is multiplied.
                [_one_slot(self, way, np.minimum(epsilon, most), upper=True) for most in _FAR_UP],
                known,
            )
            for way, known in told.items()
        }

    def _reached(self) -> tuple[Real, ...]:
        """Return the law of a person whose gradients have full norm."""
        if not _known(self.noise_multiplier):
            return ()
        return (OneSlot(self.rate, self.slots, self.noise_multiplier, WORST),)

    def _reached_delta(self, epsilon: float, word: str) -> Reached:
        """Return a delta that is reached: delta itself, up to the grid."""
        found = super()._reached_delta(epsilon, word)
        upper = float(self.delta(epsilon, word))
        return found._replace(exact=found.value >= _CLOSE * upper > 0.0)


@dataclasses.dataclass(frozen=True)
class ShuffledBatches(Mechanism):
    """One pass over shuffled batches, with Gaussian noise on each sum.

    Most trainings read their data this way: all records in a random order, cut into batches.
    Gradients are clipped to norm C, and Gaussian noise of standard deviation ``noise_multiplier *
    C`` is added to the sum of each batch. The guarantee is for one replaced record and all batches
    of one pass; compose the passes.

    Parameters
    ----------
    batches
        The number of batches of equal size in a pass, from 1 to 10^6. The upper bound does not
        depend on it; the lower value does.
    noise_multiplier
        The standard deviation of the noise on a sum over the clipping norm, finite and above 0.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range.

    Notes
    -----
    The bound is that of a known order: a record is in one batch, whose sum changes by up to 2.
    **The bound does not use that the order is secret.** A record that moves to another batch makes
    room for one from there, and no sound bound is known that is much smaller for the usual noise.
    The loss is known not to be that of Poisson sampling at the rate 1 / batches, which other
    packages compute. The lower value is the loss of data in which all other gradients are opposed
    to the replaced one, so that one of the sums stands out in one data set and none in the other.
    Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha, Zhang, "How Private are DP-SGD Implementations?"
    (2024) found the same.

    Examples
    --------
    >>> from turnout.accounting import LocalSampling
    >>> one_pass = ShuffledBatches(batches=1000, noise_multiplier=1.0)
    >>> bounds = one_pass.compose(1).epsilon_bounds(1e-6)
    >>> poisson = LocalSampling(1 / 1000, 1.0).compose(1000).epsilon(1e-6)
    >>> round(poisson, 2), round(bounds.low, 2), round(bounds.high, 2)
    (0.19, 4.11, 11.0)
    >>> bounds.reached
    'all other gradients opposed to the one'
    """

    batches: int
    noise_multiplier: float

    adjacencies: ClassVar[tuple[str, ...]] = ("replace",)
    _calibrated: ClassVar[dict[str, bool]] = {"noise_multiplier": True}

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        return {"replace": sampled_gaussian(epsilon, 0.5 * self.noise_multiplier, 1.0)["remove"]}

    def _reached(self) -> tuple[Real, ...]:
        """Return the two data sets, either of which may stand out."""
        if not _known(self.noise_multiplier):
            return ()
        noise = 0.5 * self.noise_multiplier
        turned = (("remove", "add"), ("add", "remove"))
        return tuple(OneSlot(1.0, self.batches, noise, _OPPOSED, ways) for ways in turned)
