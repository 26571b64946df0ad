"""Second computations of shuffled reports, from the definitions alone.

Nothing here looks at the library, as in ``references.py``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from scipy import signal, stats
from tests.accounting.references import Law, alpha_of, binomial_law, hockey_stick


def shuffled_pair(nodes: int, own: float, other: float, common: float) -> tuple[Law, Law]:
    """Return the two laws of the variation-ratio reduction (Wang et al. 2023), exactly.

    C ~ Bin(n - 1, common) others look like either value, A ~ Bin(C, 1/2) of them like the first;
    the changed node adds one to its own side with probability ``own``, to the wrong one with
    probability ``other``. P = (A + D1, C - A + D2), Q = (A + D2, C - A + D1).

    With ``own + other < 1`` this pair is no bound: whoever turns it into real reports must know
    whether the changed node's report is among the others, and cannot (the error of Lemma 3.5 of
    Feldman, McMillan, Talwar 2022, arXiv 2208.04591, errata). It is the exact law where reports of
    all others that look like neither value come from the same law as the changed node's.
    """
    first: Law = {}
    second: Law = {}
    sides = (
        (Fraction(own), 1, 0), (Fraction(other), 0, 1), (1 - Fraction(own) - Fraction(other), 0, 0),
    )  # fmt: skip
    for c, mass in enumerate(binomial_law(nodes - 1, common)):
        for a in range(c + 1):
            part = mass * math.comb(c, a) / 2**c
            for share, one, two in sides:
                for law, shift in ((first, (one, two)), (second, (two, one))):
                    outcome = (a + shift[0], c - a + shift[1])
                    law[outcome] = law.get(outcome, Fraction(0)) + part * share
    return first, second


def shuffled_bound(
    epsilon: float, nodes: int, own: Fraction, other: Fraction, common: Fraction
) -> Fraction:
    """Compute a bound that holds for all randomizers: told whether the node looks like neither.

    Then nothing is lost in that case, and in the other one the reduction has no third side.
    """
    shown = own + other
    pair = shuffled_pair(nodes, own / shown, other / shown, common)
    return shown * hockey_stick(*pair, alpha_of(epsilon))


def blanket_bound(
    epsilon: float, nodes: int, sides: tuple[float, float], common: float, neither: float
) -> float:
    """Compute the bound by the privacy blanket (Balle et al. 2019), in doubles.

    The changed node reports on its own side and on the wrong one with probabilities ``sides``, and
    else a report that is not told from those that the others send with probability at least
    ``neither``. M ~ Bin(n - 1, common + neither) others report like that; all else is told.
    """
    own, other = sides
    total, share = 0.0, common + neither
    for hidden in range(nodes):
        a, b = np.indices((hidden + 2, hidden + 2))
        rest = np.maximum(hidden - a - b, 0)
        odds = [common / share / 2, common / share / 2, neither / share]
        law = stats.multinomial.pmf(np.stack([a, b, rest], -1), hidden, odds)
        law = np.where(a + b <= hidden, law, 0.0)
        one, two = np.zeros_like(law), np.zeros_like(law)
        one[1:], two[:, 1:] = law[:-1], law[:, :-1]
        alpha = math.exp(epsilon)
        gaps = own * one + other * two - alpha * (other * one + own * two)
        gaps += (1 - alpha) * (1 - own - other) * law
        total += stats.binom.pmf(hidden, nodes - 1, min(share, 1.0)) * gaps[gaps > 0].sum()
    return float(total)


def data_set_delta(epsilon: float, counts: Sequence[int], keep: float, change: float) -> float:
    """Compute a value below the true delta of k-RR, in doubles, for moderate numbers of nodes.

    ``counts`` nodes besides the changed one hold its first value, its second, and any third; the
    adversary sees how many reports are of the first and of the second value.
    """
    law = np.ones((1, 1))
    for many, (one, two) in zip(
        counts, ((keep, change), (change, keep), (change, change)), strict=True
    ):
        a, b = np.indices((many + 1, many + 1))
        rest = np.maximum(many - a - b, 0)
        part = stats.multinomial.pmf(np.stack([a, b, rest], -1), many, [one, two, 1 - one - two])
        law = signal.convolve2d(law, np.where(a + b <= many, part, 0.0))
    shape = law.shape[0] + 1, law.shape[1] + 1
    first, second, none = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    first[1:, :-1], second[:-1, 1:], none[:-1, :-1] = law, law, law
    gaps = keep * first + change * second + (1 - keep - change) * none
    gaps -= math.exp(epsilon) * (change * first + keep * second + (1 - keep - change) * none)
    return float(gaps[gaps > 0].sum())


def shuffled_delta(epsilon: float, nodes: int, own: float, other: float, common: float) -> float:
    """Compute the divergence of that pair in doubles, as one plain double sum over an array."""
    size = nodes + 1
    a, b = np.indices((size, size))
    joint = stats.binom.pmf(a + b, nodes - 1, common) * stats.binom.pmf(a, a + b, 0.5)
    one, two = np.zeros_like(joint), np.zeros_like(joint)
    one[1:], two[:, 1:] = joint[:-1], joint[:, :-1]
    rest = (1 - own - other) * joint
    gaps = own * one + other * two + rest - math.exp(epsilon) * (other * one + own * two + rest)
    return float(gaps[gaps > 0].sum())


class Response(NamedTuple):
    """Randomized response over values 0..size-1, sent by a node that takes part.

    The report is the value with probability ``keep`` and each other one with probability
    ``change``; with probability 1 - ``rate`` a node sends none.
    """

    size: int
    keep: Fraction
    change: Fraction
    rate: Fraction = Fraction(1)

    def known_bound(self, epsilon: float, nodes: int) -> float:
        """Return the larger of two bounds that hold for all data: neither is always smaller."""
        own, other = float(self.rate * self.keep), float(self.rate * self.change)
        shown, neither = own + other, 1 - own - other
        told = shown * shuffled_delta(epsilon, nodes, own / shown, other / shown, 2 * other)
        return max(told, blanket_bound(epsilon, nodes, (own, other), 2 * other, neither))


def histogram_law(values: Sequence[int], response: Response) -> Law:
    """Return the exact law of the histogram of the shuffled reports of given values."""
    size, keep, change, rate = response
    law: Law = {(0,) * size: Fraction(1)}
    for value in values:
        following: Law = {}
        for counts, mass in law.items():
            following[counts] = following.get(counts, Fraction(0)) + mass * (1 - rate)
            for answer in range(size):
                more = (*counts[:answer], counts[answer] + 1, *counts[answer + 1 :])
                share = mass * rate * (keep if answer == value else change)
                following[more] = following.get(more, Fraction(0)) + share
        law = following
    return law


def worst_shuffled_delta(epsilon: float, nodes: int, response: Response) -> Fraction:
    """Enumerate all data sets of the other nodes; node one changes from value 0 to value 1."""
    alpha = alpha_of(epsilon)
    return max(
        hockey_stick(
            histogram_law((0, *others), response), histogram_law((1, *others), response), alpha
        )
        for others in itertools.combinations_with_replacement(range(response.size), nodes - 1)
    )
