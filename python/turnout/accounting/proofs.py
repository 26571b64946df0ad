"""Proofs that releases fit a budget, without a new composition for each of them.

A client of a training of thousands of rounds spends one round at a time. Fewer rounds of the same
mechanisms never spend more: making only a part of the releases reveals no more than making all and
discarding the other results. So one composition that fits a budget proves all smaller ones. With
proofs ahead, the number of compositions grows like the logarithm of the number of rounds.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import NamedTuple

from turnout.accounting.mechanism import Mechanism, compose
from turnout.accounting.values import MOST_ROUNDS

Parts = tuple[tuple[Mechanism, int], ...]
Counts = tuple[int, ...]


class Budget(NamedTuple):
    """The budget of compositions."""

    epsilon: float
    delta: float
    adjacency: str


#: Searches for epsilon end this close to the best one. So if a calibrated mechanism spends the
#: whole budget, the total may exceed the budget by this much. Delta at the budget then decides.
_CLOSE = 1e-6

#: The largest factor, of what was spent since the last proof, that is proven ahead.
_AHEAD = 3.0

#: How many proofs and refutations are remembered for the same mechanisms.
_KEPT = 16

#: How many times more rounds are tried at once.
_LONGEST_JUMP = 32.0


def extended(parts: Parts, mechanism: Mechanism, rounds: int) -> Parts:
    """Add rounds of a mechanism, to its existing part or as a last part."""
    counts = dict(parts)
    counts[mechanism] = counts.get(mechanism, 0) + rounds
    return tuple(counts.items())


@functools.lru_cache(maxsize=4096)
def composed(parts: Parts, budget: Budget) -> float:
    """Return an upper bound of a composition's epsilon: the budget itself where it is one."""
    if not parts:
        return 0.0
    most, delta, adjacency = budget
    composition = compose(parts, adjacency)
    total = composition.epsilon(delta)
    if most < total <= most * (1.0 + _CLOSE) and composition.delta(most) <= delta:
        return most
    return total


@dataclasses.dataclass(eq=False)
class Proofs:
    """The known results on compositions of some mechanisms within a budget.

    The mechanisms have a fixed order. Counts of rounds are *covered* if some composition with at
    least as many rounds of each mechanism was found to fit. Threads may share an object: a result
    that one thread overwrites is computed again.
    """

    mechanisms: tuple[Mechanism, ...]
    budget: Budget
    _proven: tuple[Counts, ...] = dataclasses.field(default=(), init=False)
    _refuted: tuple[Counts, ...] = dataclasses.field(default=(), init=False)

    def covers(self, counts: Counts) -> bool:
        """Return whether known results prove that these rounds fit."""
        return any(_within(counts, proven) for proven in self._proven)

    def fits(self, counts: Counts) -> bool:
        """Return whether these rounds fit; compose them if that is not known."""
        if self.covers(counts):
            return True
        parts = tuple(zip(self.mechanisms, counts, strict=True))
        if composed(parts, self.budget) <= self.budget.epsilon:
            others = (known for known in self._proven if not _within(known, counts))
            self._proven = (*others, counts)[-_KEPT:]
            return True
        others = (known for known in self._refuted if not _within(counts, known))
        self._refuted = (*others, counts)[-_KEPT:]
        return False

    def prove_ahead(self, counts: Counts, since: Counts, place: int) -> bool:
        """Try to prove larger counts, in the direction in which the counts have grown.

        Parameters
        ----------
        counts
            The counts to start from; they are not covered.
        since
            Smaller counts, in the same order; the growth since then is assumed to continue.
        place
            The index of the mechanism in use.

        Returns
        -------
        bool
            Whether the counts are covered now. If not, at most one composition was computed.
        """
        grown = tuple(count - before for count, before in zip(counts, since, strict=True))
        alone = tuple(step if position == place else 0 for position, step in enumerate(grown))
        for direction in (grown, alone):
            factor = min(_AHEAD, self._room(counts, direction) / 2.0)
            steps = [math.floor(factor * step) for step in direction]
            if steps[place] > 0:
                ahead = zip(counts, steps, strict=True)
                return self.fits(tuple(min(count + step, MOST_ROUNDS) for count, step in ahead))
        return False

    def _room(self, counts: Counts, direction: Counts) -> float:
        """Return how far a direction leads before it meets a known refutation."""
        distances = [
            max(
                (
                    (limit - count) / step if step else (0.0 if count >= limit else math.inf)
                    for limit, count, step in zip(refuted, counts, direction, strict=True)
                ),
                default=math.inf,
            )
            for refuted in self._refuted
        ]
        return max(0.0, min(distances, default=math.inf))


@functools.lru_cache(maxsize=1024)
def proofs_for(mechanisms: tuple[Mechanism, ...], budget: Budget) -> Proofs:
    """Return the proofs that all ledgers with the same budget and mechanisms share."""
    return Proofs(mechanisms, budget)


def _within(smaller: Counts, larger: Counts) -> bool:
    return all(few <= many for few, many in zip(smaller, larger, strict=True))


def largest_within(total: Callable[[int], float], budget: float) -> int:
    """Find the largest number of rounds whose total is within a budget.

    Parameters
    ----------
    total
        A function that gives the total of at least one round; it grows with the rounds.
    budget
        A number above 0.

    Returns
    -------
    int
        A number from 0 to 10^9 whose total is within the budget, and that of one more is not.

    Examples
    --------
    >>> largest_within(lambda rounds: 0.3 * rounds**0.5, 3.0)
    100
    """
    low, low_total = 0, 0.0
    high, high_total = 1, total(1)
    while high_total <= budget:
        if high == MOST_ROUNDS:
            return high
        further = 2 * high
        if 0.0 < low_total < high_total:
            # Epsilon is close to a power of the number of rounds, seldom below the square root.
            power = math.log(high_total / low_total) / math.log(high / low)
            factor = min((budget / high_total) ** (1.0 / max(power, 0.5)), _LONGEST_JUMP)
            further = max(further, math.ceil(high * factor))
        low, low_total = high, high_total
        high = min(further, MOST_ROUNDS)
        high_total = total(high)
    step = 0
    while high - low > 1:
        step += 1
        middle = (low + high) // 2
        if step % 3 and low_total > 0.0 and math.isfinite(high_total):
            share = math.log(budget / low_total) / math.log(high_total / low_total)
            middle = math.floor(low * (high / low) ** share)
        middle = min(max(middle, low + 1), high - 1)
        found = total(middle)
        if found <= budget:
            low, low_total = middle, found
        else:
            high, high_total = middle, found
    return low
