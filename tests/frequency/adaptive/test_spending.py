"""The budget of two rounds against the enumeration of everything that a node lets see."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

import turnout as tn
from turnout.errors import InvalidValueError
from turnout.frequency.adaptive import Spending, TwoRoundCollection, second_round_ratios

Law = dict[object, Fraction]

#: The second has a silence that tells more than a report.
RATES = ([0.1, 0.3, 0.25, 0.2], [0.05, 0.99, 0.5, 0.4], [0.3, 0.3, 0.3, 0.3], [1.0] * 4)


def direct(oracle: tn.DirectEncoding, code: int) -> Law:
    own, other = oracle._core.words
    total = own + (oracle.domain.size - 1) * other
    words = [own if answer == code else other for answer in range(oracle.domain.size)]
    return {answer: Fraction(word, total) for answer, word in enumerate(words)}


def mixed(rate: float, law: Law, otherwise: Law) -> Law:
    share = Fraction(rate)
    keys = law.keys() | otherwise.keys()
    return {key: share * law.get(key, Fraction(0)) + (1 - share) * otherwise.get(key, Fraction(0))
            for key in keys}  # fmt: skip


def largest_ratio(laws: list[Law], *, silence: bool) -> Fraction:
    keys = [key for key in laws[0] if (key == "silence") == silence]
    pairs = itertools.permutations(laws, 2)
    ratios = [one[key] / other[key] for one, other in pairs for key in keys if other[key]]
    return max(ratios, default=Fraction(1))


@pytest.mark.parametrize("rates", RATES)
def test_visible_participation_by_enumeration(rates: list[float]) -> None:
    oracle = tn.DirectEncoding(1.2, 4)
    laws = [
        mixed(rate, direct(oracle, code), {"silence": Fraction(1)})
        for code, rate in enumerate(rates)
    ]
    assert all(sum(law.values()) == 1 for law in laws)
    report, silence = second_round_ratios(oracle.realized_ratio, rates)
    assert largest_ratio(laws, silence=False) == report
    assert largest_ratio(laws, silence=True) == silence


def test_silence_can_tell_more_than_a_report() -> None:
    report, silence = second_round_ratios(tn.DirectEncoding(1.2, 4).realized_ratio, RATES[1])
    assert silence > report


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0, 8.0, 12.0])
def test_the_total_holds_in_exact_numbers(epsilon: float) -> None:
    low, high = {0.5: (0.18, 0.22), 1.0: (0.1, 0.15), 3.0: (0.1, 0.3)}.get(epsilon, (0.1, 0.999))
    collection = TwoRoundCollection(
        4,
        epsilon=epsilon,
        first_rate=0.1,
        second_rate=0.12 if low == 0.1 else 0.19,
        low=low,
        high=high,
    )
    tallies = collection.simulate([500_000, 50_000, 5_000, 500], seed=1)
    spent, second = tallies.spent, tallies.second.round
    report, silence = second_round_ratios(second.oracle.realized_ratio, second.rates)
    worst = max(report, silence)
    # e^epsilon from its series, in rationals: a lower bound.
    exact, term = Fraction(1), Fraction(1)
    for index in range(1, 120):
        term = term * Fraction(epsilon) / index
        exact += term
    assert worst <= exact
    assert spent.total <= epsilon
    assert math.log(float(worst)) == pytest.approx(spent.second, rel=1e-12)
    # And not much of it is left over, unless silence limits the rates.
    assert spent.total > epsilon * (1 - 1e-9)


def test_spending_is_the_larger_of_the_rounds() -> None:
    spent = Spending(first=1.0, randomizer=0.4, report=1.2, silence=1.5)
    assert spent.total == spent.second == 1.5
    assert Spending(first=2.0, randomizer=0.4, report=1.2, silence=1.5).total == 2.0
    assert "nobody reports twice" in str(spent)


def test_certain_reports_beside_uncertain_ones_have_no_epsilon() -> None:
    with pytest.raises(InvalidValueError, match="cannot hold the answer with rate 1"):
        second_round_ratios(Fraction(3), [0.5, 1.0])
