"""What was found, which prefixes stand out, and how frequent a value must be to be among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._tables import WithSimultaneous, records_of
from turnout._types import Floats, Integers
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.plan import Plan
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.intervals import Interval
from turnout.frequency.estimation.models import ScoreMoments
from turnout.frequency.tally import Tally
from turnout.participation import Bernoulli

#: How many standard deviations more rivals than expected may stand above a level.
_LUCK = 3.0


@dataclass(frozen=True)
class Bar:
    """What the estimate of a prefix must exceed in a round, and how it varies.

    Attributes
    ----------
    level
        The frequency that the estimate of a prefix must exceed to be kept; of a confirming round,
        which keeps all, zero.
    standard_error
        The standard error of the frequency of a candidate that nobody holds.
    variance_growth
        What is added to its square for each unit of frequency, at most.
    """

    level: float
    standard_error: float
    variance_growth: float

    def _passes(self, frequency: float) -> float:
        """Give how likely a prefix of this frequency is kept, by the normal law."""
        from scipy import special  # noqa: PLC0415

        spread = np.sqrt(self.standard_error**2 + self.variance_growth * frequency)
        return float(special.ndtr((frequency - self.level) / spread))


def errors_of(scores: ScoreMoments, reports: float) -> tuple[float, float]:
    """Give the variance of an estimate of frequency zero, and what a unit adds to it, at most.

    That who is in the group is itself drawn is counted: ``f (1 - f)`` is at most ``f``.
    """
    unit = scores.difference**2
    own, other = scores.own_variance / unit, scores.other_variance / unit
    return other / reports, (max(own - other, 0.0) + 1.0) / reports


def noise_level(scores: ScoreMoments, reports: float, candidates: int, error: float) -> float:
    """Find what the estimates of no candidates that nobody holds exceed, but with this chance."""
    from scipy import special  # noqa: PLC0415

    if scores.is_pure:
        count = _fewest(max(1, round(reports)), scores.other, error / candidates)
        return ((count - 0.5) / reports - scores.other) / scores.difference
    deviation = np.sqrt(scores.other_variance / reports) / scores.difference
    return float(-special.ndtri(error / candidates) * deviation)


def most_rivals(level: float, noise: float, growth: float, candidates: int) -> float:
    """Bound how many candidates exceed a level, however the values are spread.

    So many as have the share ``g`` are at most ``1 / g``, and each exceeds the level with some
    probability: the worst ``g`` counts, those that nobody holds come on top, and three standard
    deviations more.
    """
    from scipy import special  # noqa: PLC0415

    shares = np.geomspace(1.0 / candidates, 1.0, 400)
    spread = np.sqrt(noise + growth * shares)
    rivals = float((special.ndtr((shares - level) / spread) / shares).max())
    rivals += candidates * float(special.ndtr(-level / np.sqrt(noise)))
    return min(rivals + _LUCK * float(np.sqrt(rivals)), float(candidates))


def crowd_level(noise: float, growth: float, candidates: int, keep: int) -> float:
    """Find a level that fewer than ``keep`` rivals exceed, however the values are spread."""
    if candidates <= keep:
        return 0.0
    low, high = 0.0, 1.0 + 10.0 * float(np.sqrt(noise + growth))
    for _ in range(60):
        middle = (low + high) / 2
        crowded = most_rivals(middle, noise, growth, candidates) + 1 > keep
        low, high = (middle, high) if crowded else (low, middle)
    return high


def detectable(bars: Sequence[Bar], power: float) -> float:
    """Find the smallest frequency whose prefixes pass all rounds with this probability.

    Infinite if none does.
    """
    target = log(power)

    def chance(frequency: float) -> float:
        with np.errstate(divide="ignore"):
            return float(sum(np.log(bar._passes(frequency)) for bar in bars))

    low = 0.0
    high = 1.0 + max(bar.level for bar in bars) + 10 * max(bar.variance_growth for bar in bars)
    while chance(high) < target:
        high *= 2.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) >= target else (middle, high)
    return high


def outstanding(estimate: FrequencyEstimate, error: float) -> tuple[Integers, float]:
    """Choose the candidates above their noise, and say above which frequency they are.

    The last code is "other". The chance that one is chosen that nobody holds is at most ``error``:
    by the binomial law where supporting reports are such a count, else by the normal law or
    Student's.
    """
    from scipy import special  # noqa: PLC0415

    estimation = estimate.estimation
    frequencies = estimate.frequencies[:-1]
    tail = error / frequencies.size
    model, statistic = estimation.model, estimation.statistic
    if model is not None and statistic is not None and model.trials is not None:
        count = _fewest(model.trials, model.a / model.trials, tail)
        level = float(model.frequency(np.array(count - 0.5)))
    elif model is not None:
        level = -float(special.ndtri(tail)) * float(np.sqrt(model.variance(np.array(0.0))))
    else:
        degrees = estimation.degrees
        z = -float(special.ndtri(tail) if degrees is None else special.stdtrit(degrees, tail))
        errors = np.sqrt(estimation.variances[:-1])
        above = (frequencies > z * errors) & (frequencies > 0.0)
        return np.flatnonzero(above).astype(np.int64), z * float(np.median(errors))
    return np.flatnonzero(frequencies > level).astype(np.int64), level


def _fewest(trials: int, chance: float, tail: float) -> int:
    """Find the least count that is reached with probability ``tail`` at most."""
    from scipy import special  # noqa: PLC0415

    low, high = 0, trials + 1
    while high - low > 1:
        middle = (low + high) // 2
        # The chance of so many or more.
        if special.bdtrc(middle - 1, trials, chance) <= tail:
            high = middle
        else:
            low = middle
    return high


@dataclass(frozen=True)
class RoundRecord(Bar):
    """What happened in one round.

    Attributes
    ----------
    number
        Which round, counted from 0.
    bits
        How many bits the candidates had.
    candidates, kept
        How many there were, and how many were kept.
    nodes, received
        The size of the group, and how many of it reported.
    level, standard_error, variance_growth
        The frequency that the estimate of a prefix had to exceed to be kept; of a confirming round,
        which keeps all, zero. The standard error of the frequency of a candidate that nobody holds,
        and what is added to its square for each unit of frequency, at most.
    cut
        How many prefixes stood out and were left out all the same, because ``keep`` was reached.
    realized_epsilon
        What a report cost.
    left_out
        How many rows or messages do not count.
    """

    number: int
    bits: int
    candidates: int
    kept: int
    nodes: int
    received: int
    cut: int
    realized_epsilon: float
    left_out: LeftOut = NOTHING


@dataclass(frozen=True, eq=False)
class HeavyHitterResult(WithSimultaneous):
    """The values that were found, the most frequent first.

    Attributes
    ----------
    values
        The values.
    nodes
        The number of nodes of the groups that were asked, reporting or not: all nodes, unless
        nothing was left to ask for.
    rounds
        What happened in each round.
    confirmed
        Whether the frequencies come from a group of their own, which had no part in the choice of
        the values.
    estimate
        The frequencies of the last round's candidates and of ``"other"`` among all nodes.
    """

    values: tuple[int | str, ...]
    nodes: int
    rounds: tuple[RoundRecord, ...]
    confirmed: bool
    estimate: FrequencyEstimate

    _columns = ("value", "count", "frequency", "standard_error", "low", "high")

    @cached_property
    def _codes(self) -> Integers:
        """Where the values stand among the candidates of the last round."""
        return self.estimate.domain.encode(self.values).astype(np.int64)

    @property
    def frequencies(self) -> Floats:
        """The estimated share of all nodes that hold each value."""
        return self.estimate.frequencies[self._codes]

    @property
    def standard_errors(self) -> Floats:
        """The standard errors of the frequencies; the sampling of the group is in them."""
        return self.estimate.standard_errors[self._codes]

    @property
    def counts(self) -> Floats:
        """The estimated number of nodes that hold each value."""
        return self.frequencies * self.nodes

    @property
    def realized_epsilon(self) -> float:
        """What the protocol cost each node: the largest of the rounds, for it answers one."""
        return max(record.realized_epsilon for record in self.rounds)

    @property
    def left_out(self) -> LeftOut:
        """How many rows or messages do not count, of all rounds."""
        return sum((record.left_out for record in self.rounds), NOTHING)

    @property
    def cut(self) -> int:
        """How many prefixes stood out and were left out, because ``keep`` was reached.

        If it is not 0, frequent values can be missing: :meth:`detectable_frequency` says from which
        frequency on they are not, and a larger ``keep`` finds more.
        """
        return sum(record.cut for record in self.rounds)

    def detectable_frequency(self, power: float = 0.9) -> float:
        """Say which frequency a value needed to be found in this search.

        Parameters
        ----------
        power
            The probability that a value of that frequency passes every round.

        Returns
        -------
        float
            The frequency, from what had to be exceeded in each round, the bound on memory
            included; above 1 if none was enough.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the power is no number between 0 and 1.

        Examples
        --------
        >>> from turnout.frequency.heavy_hitters import HeavyHitters
        >>> found = HeavyHitters(4.0, bits=8).collect([7] * 900 + [9] * 100, seed=1)
        >>> found.cut, found.detectable_frequency() < 0.5
        (0, True)
        """
        chance = _arguments.confidence("power", power)
        rounds = self.rounds[:-1] if self.confirmed else self.rounds
        return detectable(rounds, chance)

    def interval(self, level: float = 0.95, *, simultaneous: str | None = None) -> Interval:
        """Confidence intervals of the frequencies of the values.

        With a confirming group each holds at its level, as of values that were known beforehand.
        Without one the values were chosen for their high estimates in the same data: then the
        level is made to hold for all candidates of the round at once (Bonferroni), so that it
        holds for those that were chosen, too.

        Parameters
        ----------
        level
            The confidence level, between 0 and 1.
        simultaneous
            As for :meth:`turnout.FrequencyEstimate.interval`.

        Returns
        -------
        Interval
            Limits, one for each value.

        Raises
        ------
        InvalidValueError
            If an argument is none of the allowed values.
        """
        if simultaneous is None and not self.confirmed:
            simultaneous = "bonferroni"
        every = self.estimate.interval(level, simultaneous=simultaneous)
        return Interval(
            every.low[self._codes],
            every.high[self._codes],
            level,
            every.method,
            simultaneous,
            self.values,
        )

    def clip_intervals(self) -> HeavyHitterResult:
        """Cut intervals to [0, 1]: see :meth:`turnout.FrequencyEstimate.clip_intervals`."""
        return replace(self, estimate=self.estimate.clip_intervals())

    def to_records(
        self, level: float = 0.95, *, simultaneous: str | None = None
    ) -> list[dict[str, Any]]:
        """List one dictionary for each value, the most frequent first, for tables and programs.

        Parameters
        ----------
        level, simultaneous
            As for :meth:`interval`.

        Returns
        -------
        list of dict
            With ``value``, ``count``, ``frequency``, ``standard_error``, ``low`` and ``high``.

        Raises
        ------
        InvalidValueError
            If an argument is none of the allowed values.
        """
        limits = self.interval(level, simultaneous=simultaneous)
        numbers = (self.counts, self.frequencies, self.standard_errors, limits.low, limits.high)
        return records_of(self._columns, self.values, *numbers)

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self.values)

    def __repr__(self) -> str:
        """Show how many values were found, and the first."""
        first = ", ".join(map(repr, self.values[:5])) + (", ..." if len(self.values) > 5 else "")
        cut = f", {self.cut} prefixes cut" if self.cut else ""
        return f"HeavyHitterResult({len(self.values)} values of {self.nodes} nodes{cut}: {first})"


def among_all(tally: Tally, nodes: int) -> FrequencyEstimate:
    """Estimate frequencies among all nodes from the tally of a group that is a random part.

    With a common rate those who report are a simple random sample of all nodes, given their
    number. With personal probabilities the variance within the group is as it was, and that of the
    group among all nodes is added.
    """
    rate = tally.participation.uniform_rate
    if nodes == tally.nodes:
        return tally.estimate()
    if rate is not None:
        plan = Plan(tally.oracle, Bernoulli(rate * tally.nodes / nodes))
        return Tally(plan, tally.support, tally.received, nodes).estimate()
    within = tally.estimate()
    estimation = within.estimation
    inside = np.clip(estimation.frequencies, 0.0, 1.0)
    between = inside * (1 - inside) * (1 / tally.nodes - 1 / nodes)
    return FrequencyEstimate._from_estimation(
        tally.plan,
        "hajek",
        nodes,
        tally.received,
        replace(estimation, variances=estimation.variances + between),
    )
