"""Counts of sampled people that are published only above a threshold."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import ClassVar

import numpy as np

from turnout._types import Floats
from turnout.accounting import privacy_loss
from turnout.accounting.composition import WORST
from turnout.accounting.loss_grid import EXACT, Real
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.values import (
    WHOLE,
    Asked,
    Divergence,
    Outcomes,
    Reached,
    by_loss,
    directions,
)

#: The largest threshold.
MOST_THRESHOLD = WHOLE["threshold"][1]

#: Added to every delta: what is rarer than floating point shows beside the likeliest count.
_LEAST = 1e-290

#: The unit of rounding, and the roundings of a step from one mass to its neighbour, with reserve.
_UNIT, _ROUNDINGS = 2.0**-53, 8.0

#: Exponents of less than this make a probability smaller than :data:`_LEAST`.
_NOTHING = 680.0

#: Beyond this no ratio of likelihoods lies, and e^epsilon may overflow.
_LARGEST_EPSILON = 600.0

#: The step of the grid on which two counts are put together, and the delta that may be added there.
_STEP, _FLOOR = 2.0**-11, 1e-40

#: The epsilons at which items are worst that lower values are computed of.
_EPSILONS = (0.0, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.5, 4.0)

#: Bounds are above the exact value by what rounding may have lost, or below it by twice as much.
_ABOVE, _BELOW = 1.0, -2.0

#: A lower value this close to the upper one, relatively, is that of the worst data.
_KNOWN = 1e-6

#: Of so many outcomes of one count lower values are computed; of two it is the square.
_MOST_OUTCOMES = 700

#: What is taken from lower values for rounding, relatively.
_SLACK = 1e-11


@dataclasses.dataclass(frozen=True)
class SampleAndThreshold(Mechanism):
    """Publish the counts of items that at least ``threshold`` of the sampled people hold.

    Every person is kept with probability ``rate``, unseen, and holds one item. A count of kept
    people is published unchanged if it reaches the threshold. Nothing is said about all other
    items, listed or not. No noise is added, and the data may be anything.

    Parameters
    ----------
    rate
        The probability that a person is kept, in [0, 1].
    threshold
        The smallest count that is published, from 1 to 10^5.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range.

    Notes
    -----
    Delta is the largest divergence, over all true counts a, between ``Bin(a + 1, p)`` and ``Bin(a,
    p)`` with the counts below the threshold K merged. With ``"remove"`` the event is a published
    count, ``Pr[Bin(a + 1, p) >= K] - e^eps Pr[Bin(a, p) >= K]``, which grows with a up to ``(K - 1)
    / q``, ``q = 1 - (1 - p) e^-eps``, and falls beyond it. With ``"add"`` the event is an
    unpublished count: the same with ``q = 1 - (1 - p) e^eps``, and zero if that is not positive.
    Both are the exact values, rounded up. ``"replace"`` moves a person from one item to another:
    two counts change, and the bound composes the two profiles. For a lone person one distinguishing
    count is enough: without a threshold (``threshold=1``) delta is the rate.

    Bharadwaj, Cormode, "Sample-and-threshold differential privacy: histograms and applications"
    (2022) bound delta from above. The exact value is far smaller, or the allowed rate larger
    (:doc:`/topics/sample_and_threshold`).

    Examples
    --------
    >>> mechanism = SampleAndThreshold(rate=0.105, threshold=20)
    >>> mechanism.delta(1.0) < 1e-14
    True
    >>> from turnout.accounting import calibrate
    >>> round(calibrate(mechanism, "rate", epsilon=1.0, delta=1e-8), 4)
    0.2514
    """

    rate: float
    threshold: int

    adjacencies: ClassVar[tuple[str, ...]] = ("add_or_remove", "add", "remove", "replace")
    _calibrated: ClassVar[dict[str, bool]] = {"rate": False, "threshold": True}

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        return Asked(lambda direction: self._tail(direction, epsilon))

    def _reached(self) -> tuple[Real, ...]:
        """Return items of several numbers of people: the worst number depends on epsilon."""
        if self.rate in (0.0, 1.0):
            return (self,)
        if self.rate <= _LEAST:
            return ()
        return self._items()

    def _reached_delta(self, epsilon: float, word: str) -> Reached:
        """Return a delta that is reached: for one person more or less, delta itself."""
        if self.rate in (0.0, 1.0):
            return super()._reached_delta(epsilon, word)
        if self.rate <= _LEAST:
            return Reached(0.0, "", False)
        if word != "replace":
            upper = float(self.delta(epsilon, word))
            below = max(
                _EVALUATED[way](epsilon, self.rate, self.threshold, _BELOW)[0]
                for way, _ in directions(word)
            )
            lower = min(below, upper * (1.0 - EXACT))
            return Reached(lower, WORST, lower >= upper * (1.0 - _KNOWN))
        point = np.array([epsilon])
        found = [
            (float(item._tail(word, point).delta[0]) * (1.0 - EXACT), item.name)
            for item in self._items()
        ]
        return Reached(*max(found), exact=False)

    def _items(self) -> tuple[Item, ...]:
        # With fewer others nothing is published; with so many a published count gives one away.
        least = self.threshold - 1
        items, other = [], least
        most = (10.0 * self.threshold + 100.0) / self.rate
        for epsilon in _EPSILONS:
            one = max(least, math.floor(_more(epsilon, self.rate, self.threshold)))
            fewer = _fewer(epsilon, self.rate, self.threshold)
            if fewer <= most:
                other = max(other, math.floor(fewer))
            items += [
                Item(self.rate, self.threshold, *pair) for pair in ((one, other), (other, one))
            ]
        return tuple(dict.fromkeys(items))

    def _tail(self, direction: str, epsilon: Floats) -> Divergence:
        """Evaluate one direction at epsilons of at least 0."""
        if direction == "replace":
            return _move(self, epsilon)
        evaluate = _EVALUATED[direction]
        rows = [evaluate(float(point), self.rate, self.threshold) for point in epsilon]
        return Divergence(*np.array(rows, dtype=np.float64).reshape(-1, 3).T)


@dataclasses.dataclass(frozen=True)
class Item:
    """Data of an item that some others hold, and an item to which a person may move."""

    rate: float
    threshold: int
    others: int
    elsewhere: int

    #: The person moves, or comes back: different laws where the items have different numbers.
    replaced: ClassVar[tuple[str, str]] = ("replace", "return")

    @property
    def name(self) -> str:
        """The data in words."""
        return f"{self.others:,} other people who hold the item"

    def _tail(self, direction: str, epsilon: Floats) -> Divergence:
        """Evaluate one direction at epsilons of at least 0."""
        seen = _outcomes(self, direction)
        sizes = self.others + 1, self.elsewhere + 1
        errors = [_error(size, self.rate, self.threshold) for size in sizes]
        return seen._tail(epsilon, _SLACK + 4.0 * sum(errors) + seen.loss.size * _UNIT, _LEAST)


@functools.lru_cache(maxsize=32)
def _outcomes(item: Item, direction: str) -> Outcomes:
    """Return the published outcomes of an item, and of the one to which a person may move."""
    more, fewer = _pair(item.others, item.rate, item.threshold)
    if direction in Item.replaced:
        there, here = _pair(item.elsewhere, item.rate, item.threshold)
        more, fewer, there, here = *_merged(more, fewer), *_merged(there, here)
        more, fewer = np.outer(more, here).ravel(), np.outer(fewer, there).ravel()
    return by_loss(more, fewer) if direction in ("remove", "replace") else by_loss(fewer, more)


def _merged(one: Floats, two: Floats) -> tuple[Floats, Floats]:
    """Merge neighbouring outcomes if there are many: a coarser view has a smaller loss."""
    starts = np.arange(0, one.size, math.ceil(one.size / _MOST_OUTCOMES))
    return np.add.reduceat(one, starts), np.add.reduceat(two, starts)


def _pair(others: int, p: float, threshold: int) -> tuple[Floats, Floats]:
    """Return the laws of the published count with one person more, and of the others alone."""
    laws = []
    for size in (others + 1, others):
        start, masses = _masses(size, p, threshold)
        place = min(max(threshold - start, 0), masses.size)
        laws.append((float(masses[:place].sum()), masses[place:], max(start, threshold)))
    top = max(start + masses.size for _, masses, start in laws)
    dense = np.zeros((2, top - threshold + 1))
    for row, (below, masses, start) in zip(dense, laws, strict=True):
        row[0] = below
        row[1 + start - threshold : 1 + start - threshold + masses.size] = masses
    return dense[0], dense[1]


def _more(epsilon: float, p: float, threshold: int) -> float:
    """Return the number of others at which one person more is easiest to detect."""
    growth = math.expm1(min(epsilon, _LARGEST_EPSILON))
    left = growth + p
    return (threshold - 1) * (1.0 + growth) / left if left > 0.0 else 0.0


def _fewer(epsilon: float, p: float, threshold: int) -> float:
    """Return the number of others at which one person less is easiest to detect."""
    left = p - math.expm1(min(epsilon, _LARGEST_EPSILON)) * (1.0 - p)
    return (threshold - 1) / left if left > 0.0 else math.inf


def _remove(
    epsilon: float, p: float, threshold: int, side: float = _ABOVE
) -> tuple[float, float, float]:
    """Bound the divergence of one person more from one less: delta, and both masses.

    One more person matters if ``K - 1`` others are counted: ``Pr[Bin(a + 1, p) >= K]`` is
    ``Pr[Bin(a, p) >= K] + p Pr[Bin(a, p) = K - 1]``. So there is no cancellation for a small
    epsilon.
    """
    if p <= _LEAST:
        # Delta is at most the rate.
        return _rounded(0.0, p, side), 0.0, 0.0
    growth = math.expm1(min(epsilon, _LARGEST_EPSILON))
    worst = _more(epsilon, p, threshold)
    best = (0.0, 0.0, 0.0)
    for size in _around(worst, threshold):
        _, published, before = _tails(size, p, threshold)
        error = side * _error(size, p, threshold)
        delta = p * before * (1.0 + error) - growth * published * (1.0 - error)
        best = max(best, (delta, published + p * before, published))
    return _rounded(best[0], p, side), best[1], best[2]


def _add(
    epsilon: float, p: float, threshold: int, side: float = _ABOVE
) -> tuple[float, float, float]:
    """Bound the divergence of one person less from one more."""
    growth = math.expm1(min(epsilon, _LARGEST_EPSILON))
    if p - growth * (1.0 - p) <= -8.0 * _UNIT * (1.0 + growth):
        return 0.0, 0.0, 0.0
    if p <= _LEAST:
        return _rounded(0.0, p, side), 0.0, 0.0
    worst = _fewer(epsilon, p, threshold)
    best = (0.0, 0.0, 0.0)
    # Where the worst count is as large as this, next to nobody is below the threshold.
    if worst * p - threshold < 1e9:
        for size in _around(worst, threshold):
            silent, _, before = _tails(size, p, threshold)
            error = side * _error(size, p, threshold)
            delta = (1.0 + growth) * p * before * (1.0 + error) - growth * silent * (1.0 - error)
            best = max(best, (delta, silent, max(0.0, silent - p * before)))
    return _rounded(best[0], p, side), best[1], best[2]


#: The two directions.
_EVALUATED = {"remove": _remove, "add": _add}


def _rounded(delta: float, p: float, side: float) -> float:
    return min(1.0, max(0.0, delta + side * _LEAST)) if p > 0.0 else 0.0


def _around(worst: float, threshold: int) -> range:
    """List the counts near the one that is worst up to rounding.

    The divergence is flat there. If rounding moves a large count by more than one, the divergence
    changes by far less than the error that is added to it.
    """
    middle = math.floor(worst)
    return range(max(threshold - 1, middle - 1), max(threshold - 1, middle + 1) + 1)


def _error(size: int, p: float, threshold: int) -> float:
    """Bound the relative error of tails, and of a product with one."""
    return (_steps(size, p, threshold) + 8.0) * _ROUNDINGS * _UNIT


def _steps(size: int, p: float, threshold: int) -> float:
    """Bound how far from the mode the masses are computed."""
    spread = math.sqrt(size * p * (1.0 - p))
    return 520.0 + 40.0 * spread + abs(size * p - threshold)


@functools.lru_cache(maxsize=1 << 16)
def _tails(size: int, p: float, threshold: int) -> tuple[float, float, float]:
    """Return the probabilities that a count is below, at least, and just below the threshold.

    Each is accurate to the relative error of its steps, up to :data:`_LEAST`. Masses are computed
    from their neighbours, outward from the mode; all terms are positive.
    """
    if threshold > size or p <= 0.0:
        return 1.0, 0.0, p**size if size == threshold - 1 else 0.0
    mean = size * p
    short = mean - (threshold - 1)
    if p >= 1.0 or (short > 0.0 and short * short > 2.0 * mean * _NOTHING):
        # Chernoff's bound: next to nobody is below.
        return 0.0, 1.0, 0.0
    start, masses = _masses(size, p, threshold)
    place = threshold - start
    return float(masses[:place].sum()), float(masses[place:].sum()), float(masses[place - 1])


def _masses(size: int, p: float, threshold: int) -> tuple[int, Floats]:
    """Return the first count of a window around the mode, and the masses from there on."""
    mode = min(size, math.floor((size + 1) * p))
    odds = p / (1.0 - p)
    reach = math.ceil(_steps(size, p, threshold))
    above = np.arange(mode + 1, min(size, mode + reach) + 1, dtype=np.float64)
    below = np.arange(mode, max(0, mode - reach), -1, dtype=np.float64)
    upward = np.cumprod((size - above + 1.0) / above * odds)
    downward = np.cumprod(below / (size - below + 1.0) / odds)
    masses = np.concatenate([downward[::-1], [1.0], upward])
    return mode - below.size, masses / masses.sum()


def _move(mechanism: SampleAndThreshold, epsilon: Floats) -> Divergence:
    """Bound the divergence of a move between two counts, which is the same in both directions."""
    seen, infinite = _moved(mechanism)
    first, second = seen.beyond(epsilon)
    some = second > 0.0
    paid = np.where(some, np.exp(np.where(some, epsilon, 0.0)) * second, 0.0)
    # Masses are sums of positive terms: what their difference may lose is added.
    lost = 2.0**-30 * np.maximum(0.0, first - paid) + 2.0**-36 * first
    delta = np.minimum(1.0, np.maximum(0.0, first - paid) + lost + infinite)
    return Divergence(delta, first + infinite, second)


@functools.lru_cache(maxsize=64)
def _moved(mechanism: SampleAndThreshold) -> tuple[Outcomes, float]:
    """Compose the profiles of leaving and joining: the losses, and the infinite mass."""
    ends = [
        privacy_loss.reach(mechanism._tail, direction, _FLOOR)[0] for direction in ("remove", "add")
    ]
    step = max(_STEP, max(ends) * _STEP / 8.0)
    leaving = privacy_loss.connect(
        mechanism._tail, ("remove", "add"), step, (ends[0], ends[1]), 512
    )
    joining = privacy_loss.connect(
        mechanism._tail, ("add", "remove"), step, (ends[1], ends[0]), 512
    )
    one, two = _dense(leaving), _dense(joining)
    masses: Floats = np.convolve(one, two) * (1.0 + 2.0**-30)
    start = int(leaving.index[0] + joining.index[0])
    losses: Floats = (start + np.arange(masses.size, dtype=np.float64)) * step
    kept = masses > 0.0
    masses, losses = masses[kept][::-1], losses[kept][::-1]
    # A second mass that is too small only raises delta.
    rarer = masses * np.exp(np.minimum(-losses, 700.0))
    first, second = (np.append(0.0, np.cumsum(law)) for law in (masses, rarer))
    return Outcomes(losses, first, second), min(1.0, leaving.infinite + joining.infinite)


def _dense(loss: privacy_loss.Loss) -> Floats:
    result = np.zeros(int(loss.index[-1] - loss.index[0]) + 1)
    result[loss.index - loss.index[0]] = loss.mass
    return result
