"""Counts of sampled people above a threshold, released by a trusted party."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Hashable
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._binomial import at_least, first
from turnout._public import listing
from turnout._tables import WithIntervals, records_of
from turnout._types import Array, Floats, Integers
from turnout.accounting.calibration import calibrate
from turnout.accounting.ledger import PrivacyLedger
from turnout.accounting.thresholded import SampleAndThreshold
from turnout.accounting.values import target_delta
from turnout.errors import InvalidValueError

__all__ = ["ThresholdedCount", "ThresholdedCounts"]
__dir__ = listing(__all__)


#: True counts above this are not told apart.
_MOST = 2**53


@dataclasses.dataclass(frozen=True)
class ThresholdedCount:
    """A release's result for one item.

    Attributes
    ----------
    label
        The item.
    kept
        The number of kept people who hold it; None if fewer than the threshold, so not published.
    estimate
        ``kept`` divided by the rate; None if it was not published.
    low, high
        Limits of the number of people who hold it, kept or not.
    """

    label: Hashable
    kept: int | None
    estimate: float | None
    low: int
    high: int


class ThresholdedCounts(WithIntervals):
    """The published items and their counts among the kept people.

    :func:`sample_and_threshold` returns it. Everything in it is public.

    Notes
    -----
    An estimate is the count of kept people divided by the rate. Over all releases it is biased: an
    item is published only if its count is large enough. Estimates near the threshold are therefore
    too large on average, and unpublished items are missing in every sum of estimates. The intervals
    are valid all the same, published or not: whatever the true count of an item, the interval of
    :meth:`count_of` contains it with probability at least ``level``.
    """

    _columns = tuple(field.name for field in dataclasses.fields(ThresholdedCount))

    def __init__(self, mechanism: SampleAndThreshold, counts: dict[Hashable, int]) -> None:
        self._mechanism = _arguments.instance(
            "mechanism", mechanism, SampleAndThreshold, "a SampleAndThreshold"
        )
        for label, count in counts.items():
            if _arguments.integer("counts", count, least=0) < mechanism.threshold:
                raise InvalidValueError(
                    f"counts must be at least the threshold {mechanism.threshold}, got {count} of "
                    f"{_arguments.shown(label)}"
                )
        # In an order that says nothing about whose answers came first.
        self._counts = dict(
            sorted(
                ((label, int(count)) for label, count in counts.items()),
                key=lambda pair: (-pair[1], type(pair[0]).__name__, repr(pair[0])),
            )
        )

    @property
    def mechanism(self) -> SampleAndThreshold:
        """The mechanism, which gives the privacy cost."""
        return self._mechanism

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The published items, the most frequent first."""
        return tuple(self._counts)

    @property
    def counts(self) -> Integers:
        """The number of kept people who hold each published item."""
        return np.array(list(self._counts.values()), dtype=np.int64)

    @property
    def estimates(self) -> Floats:
        """The estimated number of people who hold each published item: ``counts / rate``."""
        return self.counts / self._mechanism.rate

    def interval(self, level: float = 0.95) -> tuple[Integers, Integers]:
        """Return confidence limits for each published item.

        Parameters
        ----------
        level
            The least probability that an interval contains the truth, for each interval separately.

        Returns
        -------
        tuple of numpy.ndarray
            The lower and the upper limits, in the order of :attr:`labels`.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``level`` is not a level between 0 and 1.
        """
        return self._limits(self.counts, level)

    def _limits(self, counts: Integers, level: float) -> tuple[Integers, Integers]:
        """Return limits of the number of people who hold items, given the numbers kept."""
        rate, tail = self._mechanism.rate, 0.5 * (1.0 - _arguments.confidence("level", level))
        low = first(lambda people: at_least(people, counts, rate) > tail, counts.size, _MOST - 1)
        # The fewest that are too many.
        over = first(
            lambda people: 1.0 - at_least(people, counts + 1, rate) <= tail, counts.size, _MOST
        )
        return low, over - 1

    def below(self, level: float = 0.95) -> int:
        """Return an upper confidence limit for an item that was not published.

        Parameters
        ----------
        level
            As for :meth:`interval`.

        Returns
        -------
        int
            The largest number of people that a count below the threshold allows.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``level`` is not a level between 0 and 1.
        """
        _, most = self._limits(np.array([self._mechanism.threshold - 1]), level)
        return int(most[0])

    def count_of(self, label: Hashable, level: float = 0.95) -> ThresholdedCount:
        """Return the count and the limits of an item, published or not.

        Parameters
        ----------
        label
            The item; one that was not published need not exist.
        level
            As for :meth:`interval`.

        Returns
        -------
        ThresholdedCount
            Estimate and limits.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``label`` cannot be an item, or ``level`` is not a level between 0 and 1.

        Examples
        --------
        >>> release = ThresholdedCounts(SampleAndThreshold(0.25, 20), {"often": 240})
        >>> release.count_of("often")
        ThresholdedCount(label='often', kept=240, estimate=960.0, low=858, high=1072)
        >>> release.count_of("seldom")
        ThresholdedCount(label='seldom', kept=None, estimate=None, low=0, high=113)
        """
        _check_label(label)
        kept = self._counts.get(label)
        if kept is None:
            return ThresholdedCount(label, None, None, 0, self.below(level))
        low, high = self._limits(np.array([kept]), level)
        return ThresholdedCount(label, kept, kept / self._mechanism.rate, int(low[0]), int(high[0]))

    def chance_of_publication(self, people: int) -> float:
        """Return the probability that an item is published, given how many people hold it.

        Parameters
        ----------
        people
            The number of people who hold it.

        Returns
        -------
        float
            A probability.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If it is not a number of people.

        Examples
        --------
        >>> release = ThresholdedCounts(SampleAndThreshold(0.25, 20), {})
        >>> [round(release.chance_of_publication(people), 3) for people in (40, 80, 120)]
        [0.001, 0.543, 0.989]
        """
        number = _arguments.integer("people", people, least=0, most=_MOST)
        mechanism = self._mechanism
        return float(at_least(number, mechanism.threshold, mechanism.rate))

    def to_records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """List the published items with estimates and limits, for tables and JSON.

        Parameters
        ----------
        level
            As for :meth:`interval`.

        Returns
        -------
        list of dict
            One dictionary for each item, with the names of :class:`ThresholdedCount`.
        """
        limits = self.interval(level)
        return records_of(self._columns, self.labels, self.counts, self.estimates, *limits)

    def __len__(self) -> int:
        """Return the number of published items."""
        return len(self._counts)

    def __eq__(self, other: object) -> bool:
        """Compare mechanisms and counts."""
        return isinstance(other, ThresholdedCounts) and (
            (self._mechanism, self._counts) == (other._mechanism, other._counts)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Show the mechanism and the number of published items."""
        return f"<ThresholdedCounts: {len(self)} items, {self._mechanism!r}>"


def sample_and_threshold(
    values: Any,
    *,
    threshold: int,
    rate: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: str | None = None,
    ledger: PrivacyLedger | None = None,
    seed: int | None = None,
) -> ThresholdedCounts:
    """Publish the counts of items that at least ``threshold`` of the sampled people hold.

    Whoever runs this is trusted with the answers. Its result may be given to anyone. It is
    (epsilon, delta)-private for each person, without noise, and names only items that enough people
    hold.

    Parameters
    ----------
    values
        One item for each person: any values that can be compared and hashed. They need not be known
        beforehand.
    threshold
        The smallest published count, from 1 to 10^5.
    rate
        The probability that a person is kept, above 0. Alternatively, pass:
    epsilon, delta
        The privacy limits of the release; the largest rate that meets them is used.
    adjacency
        The neighbours that ``epsilon`` and ``delta`` compare: ``"add_or_remove"`` a person
        (default) or ``"replace"`` a person's item.
    ledger
        The ledger that records the release before it is drawn, if any.
    seed
        For tests and simulations only: anyone who knows the seed knows who was kept.

    Returns
    -------
    ThresholdedCounts
        The published counts, with estimates and intervals.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, neither or both of a rate and a target
        are given, or an item is missing (None, NaN) or cannot be hashed.
    BudgetExceededError
        If the ledger's budget is too small; nothing was drawn then.

    Notes
    -----
    Each person holds one item. For a person with several items the cost is that of a composition.
    People who collude do not count towards the threshold.

    Examples
    --------
    >>> words = ["tea"] * 3000 + ["coffee"] * 2000 + ["a secret"]
    >>> release = sample_and_threshold(words, threshold=20, epsilon=1.0, delta=1e-8, seed=1)
    >>> release.labels
    ('tea', 'coffee')
    >>> round(release.mechanism.rate, 4), release.mechanism.delta(1.0) <= 1e-8
    (0.2514, True)
    >>> low, high = release.interval(0.99)
    >>> bool(low[0] <= 3000 <= high[0]), release.below(0.99)
    (True, 125)
    """
    mechanism = _mechanism(threshold, rate, epsilon, delta, adjacency)
    items = _items(values)
    checked = _arguments.seed(seed)
    if ledger is not None:
        _arguments.instance("ledger", ledger, PrivacyLedger, "a PrivacyLedger").spend(mechanism)
    kept = _core.select_bernoulli(len(items), mechanism.rate, checked)
    counts = _counted(items, kept)
    least = mechanism.threshold
    return ThresholdedCounts(
        mechanism, {label: count for label, count in counts.items() if count >= least}
    )


def _mechanism(
    threshold: Any, rate: Any, epsilon: Any, delta: Any, adjacency: str | None
) -> SampleAndThreshold:
    if (rate is None) == (epsilon is None) or (epsilon is None) != (delta is None):
        raise InvalidValueError(
            "rate must be given, or epsilon and delta instead of it, got "
            f"rate = {_arguments.shown(rate)}, epsilon = {_arguments.shown(epsilon)}, "
            f"delta = {_arguments.shown(delta)}"
        )
    if rate is None:
        # Its own rate does not matter.
        mechanism = SampleAndThreshold(0.5, threshold)
        chance = target_delta(delta)
        found = calibrate(mechanism, "rate", epsilon, chance, adjacency=adjacency)
        return SampleAndThreshold(found, threshold)
    if adjacency is not None:
        raise InvalidValueError("adjacency is for epsilon and delta: give it without a rate")
    made = SampleAndThreshold(rate, threshold)
    if not made.rate > 0.0:
        raise _arguments.invalid("rate must be above 0", rate)
    return made


def _items(values: Any) -> list[Any] | Array:
    """Return one item for each person; check all, so that errors do not reveal who was kept."""
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InvalidValueError(
            f"values must hold one item for each person, got an array of shape {values.shape}"
        )
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufUS":
        if values.dtype.kind == "f" and np.isnan(values).any():
            place = int(np.isnan(values).argmax())
            raise InvalidValueError(f"values[{place}] must be an item, got NaN")
        return values
    # The scalars of Arrow know their column; a list has plain values.
    given = values.to_pylist() if hasattr(values, "to_pylist") else values
    items = _arguments.items("values", given, "one item for each person", private=True)
    for position, item in enumerate(items):
        _check_label(item, f"values[{position}]")
    return items


def _check_label(label: Any, argument: str = "label") -> None:
    """Refuse a value that cannot be an item."""
    try:
        hash(label)
    except TypeError:
        raise _arguments.mistyped(
            f"{argument} must be an item that can be hashed", _arguments.Private(label)
        ) from None
    if label is None or (isinstance(label, (float, np.floating)) and math.isnan(label)):
        raise _arguments.invalid(f"{argument} must be an item", label)


def _counted(items: Any, kept: Integers) -> dict[Hashable, int]:
    if isinstance(items, np.ndarray):
        labels, counts = np.unique(items[kept], return_counts=True)
        return dict(zip(labels.tolist(), counts.tolist(), strict=True))
    return collections.Counter(items[place] for place in kept.tolist())
