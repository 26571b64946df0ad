"""The result of a search, the choice of prefixes, and detectable frequencies."""

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
        """Return the probability that a prefix of this frequency is kept, by the normal law."""
        from scipy import special  # noqa: PLC0415

        spread = np.sqrt(self.standard_error**2 + self.variance_growth * frequency)
        return float(special.ndtr((frequency - self.level) / spread))


def errors_of(scores: ScoreMoments, reports: float) -> tuple[float, float]:
    """Return the variance of an estimate of frequency zero, and its largest growth per unit.

    That who is in the group is itself drawn is counted: ``f (1 - f)`` is at most ``f``.
    """
    unit = scores.difference**2
    own, other = scores.own_variance / unit, scores.other_variance / unit
    return other / reports, (max(own - other, 0.0) + 1.0) / reports


def noise_level(scores: ScoreMoments, reports: float, candidates: int, error: float) -> float:
    """Return the level that estimates of unheld candidates exceed only with this probability."""
    from scipy import special  # noqa: PLC0415

    if scores.is_pure:
        count = _fewest(max(1, round(reports)), scores.other, error / candidates)
        return ((count - 0.5) / reports - scores.other) / scores.difference
    deviation = np.sqrt(scores.other_variance / reports) / scores.difference
    return float(-special.ndtri(error / candidates) * deviation)


def most_rivals(level: float, noise: float, growth: float, candidates: int) -> float:
    """Bound how many candidates exceed a level, however the values are spread.

    At most ``1 / g`` candidates have the share ``g``, and each exceeds the level with some
    probability. The bound is that of the worst ``g``, plus the candidates that nobody holds, plus
    three standard deviations.
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

    The last code is "other". With probability at most ``error``, a candidate that nobody holds is
    chosen. This uses the binomial law if the number of supporting reports is binomial, and
    otherwise the normal law or Student's.
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
    """The record of one round.

    Attributes
    ----------
    number
        The number of the round, counted from 0.
    bits
        The number of bits of the candidates.
    candidates, kept
        The numbers of candidates and of kept prefixes.
    nodes, received
        The size of the group, and the number of its reports.
    level, standard_error, variance_growth
        The frequency that the estimate of a prefix had to exceed to be kept; of a confirming round,
        which keeps all, zero. The standard error of the frequency of a candidate that nobody holds,
        and what is added to its square for each unit of frequency, at most.
    cut
        The number of prefixes that stood out but were left out, because ``keep`` was reached.
    realized_epsilon
        The realised epsilon of a report.
    left_out
        The rows or messages that do not count.
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
    """The found values, the most frequent first.

    Attributes
    ----------
    values
        The values.
    nodes
        The number of nodes of the groups that were asked, reporting or not: all nodes, unless the
        search ended early.
    rounds
        The records of the rounds.
    confirmed
        Whether the frequencies come from a separate group that did not influence the choice of the
        values.
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
        """The standard errors of the frequencies, including the sampling of the group."""
        return self.estimate.standard_errors[self._codes]

    @property
    def counts(self) -> Floats:
        """The estimated number of nodes that hold each value."""
        return self.frequencies * self.nodes

    @property
    def realized_epsilon(self) -> float:
        """The epsilon of the protocol for each node, which answers one round: the largest."""
        return max(record.realized_epsilon for record in self.rounds)

    @property
    def left_out(self) -> LeftOut:
        """How many rows or messages do not count, of all rounds."""
        return sum((record.left_out for record in self.rounds), NOTHING)

    @property
    def cut(self) -> int:
        """The number of prefixes that stood out but were left out, because ``keep`` was reached.

        If it is not 0, frequent values can be missing. :meth:`detectable_frequency` returns the
        frequency from which they are not, and a larger ``keep`` finds more.
        """
        return sum(record.cut for record in self.rounds)

    def detectable_frequency(self, power: float = 0.9) -> float:
        """Return the frequency that a value needed to be found in this search.

        Parameters
        ----------
        power
            The probability that a value of that frequency passes every round.

        Returns
        -------
        float
            The frequency, from the thresholds of all rounds, including the bound on memory; above 1
            if no frequency was enough.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the power is not a number between 0 and 1.

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
        """Return confidence intervals of the frequencies of the values.

        With a confirming group each interval holds at its level, as for values known beforehand.
        Without one, the values were chosen for their high estimates in the same data. Then the
        level holds for all candidates of the round simultaneously (Bonferroni), and so also for the
        chosen ones.

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
            If an argument is not one of the allowed values.
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
            Dictionaries with ``value``, ``count``, ``frequency``, ``standard_error``, ``low`` and
            ``high``.

        Raises
        ------
        InvalidValueError
            If an argument is not one of the allowed values.
        """
        limits = self.interval(level, simultaneous=simultaneous)
        numbers = (self.counts, self.frequencies, self.standard_errors, limits.low, limits.high)
        return records_of(self._columns, self.values, *numbers)

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self.values)

    def __repr__(self) -> str:
        """Show the number of found values, and the first."""
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
