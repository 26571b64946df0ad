"""Thousands of single spends need few compositions, and every one is decided as by composing it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from turnout.accounting import GaussianMechanism, LocalSampling, Mechanism, compose, proofs
from turnout.accounting.ledger import LedgerEntry, PrivacyLedger
from turnout.errors import BudgetExceededError, InvalidValueError

QUERY = GaussianMechanism(noise_multiplier=300.0)
TRAINING = LocalSampling(0.01, 2.0)
THIRD = GaussianMechanism(noise_multiplier=400.0)


def forget() -> None:
    proofs.composed.cache_clear()
    proofs.proofs_for.cache_clear()


@pytest.fixture
def compositions(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Every composition that a ledger makes, in a process that knows none."""
    made: list[Any] = []

    def counted(parts: Any, adjacency: str) -> Any:
        made.append(parts)
        return compose(parts, adjacency)

    monkeypatch.setattr(proofs, "compose", counted)
    forget()
    yield made
    forget()


class Priced:
    """A composition whose epsilon is a price, so that thousands can be made."""

    def __init__(self, parts: Any, _: str) -> None:
        self.parts = dict(parts)

    def epsilon(self, _: float) -> float:
        prices = {QUERY: 1.0, TRAINING: 7.0, THIRD: 0.01}
        return math.sqrt(sum(prices[part] * rounds for part, rounds in self.parts.items()))

    def delta(self, _: float) -> float:
        return 1.0


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    made: list[Any] = []

    def counted(parts: Any, adjacency: str) -> Any:
        made.append(parts)
        return Priced(parts, adjacency)

    monkeypatch.setattr(proofs, "compose", counted)
    forget()
    yield made
    forget()


def exhaust(
    ledger: PrivacyLedger, pattern: Callable[[int], Mechanism], label: str | None = None
) -> tuple[int, str]:
    for number in range(10**6):
        try:
            ledger.spend(pattern(number), label=label)
        except BudgetExceededError as error:
            return number, str(error)
    raise AssertionError("the budget did not end")


def test_five_thousand_rounds_need_few_compositions(compositions: list[Any]) -> None:
    ledger = PrivacyLedger(0.86, 1e-5)
    rounds, message = exhaust(ledger, lambda _: QUERY, "night")
    assert len(compositions) < 40
    assert ledger.entries == (LedgerEntry(QUERY, rounds, "night"),)
    forget()
    assert rounds == PrivacyLedger(0.86, 1e-5).affordable_rounds(QUERY)
    assert rounds > 4000
    assert ledger.spent() == compose([(QUERY, rounds)]).epsilon(1e-5) <= 0.86
    assert compose([(QUERY, rounds + 1)]).epsilon(1e-5) > 0.86
    forget()
    at_once = PrivacyLedger(0.86, 1e-5)
    at_once.spend(QUERY, rounds, "night")
    assert at_once == ledger
    with pytest.raises(BudgetExceededError) as refused:
        at_once.spend(QUERY)
    assert str(refused.value) == message


def test_a_release_of_its_own_is_composed_once(compositions: list[Any]) -> None:
    PrivacyLedger(1.0, 1e-5).spend(TRAINING, 100)
    assert len(compositions) == 1
    # And not again by another ledger, nor for fewer rounds.
    PrivacyLedger(1.0, 1e-5).spend(TRAINING, 100)
    PrivacyLedger(1.0, 1e-5).spend(TRAINING, 99)
    assert len(compositions) == 1
    PrivacyLedger(1.0, 1e-6).spend(TRAINING, 99)
    PrivacyLedger(1.1, 1e-5).spend(TRAINING, 99)
    PrivacyLedger(1.0, 1e-5, "add").spend(TRAINING, 99)
    assert len(compositions) == 4


def test_rounds_that_were_found_affordable_cost_nothing_more(compositions: list[Any]) -> None:
    ledger = PrivacyLedger(0.3, 1e-5)
    rounds = ledger.affordable_rounds(QUERY)
    made = len(compositions)
    for _ in range(rounds):
        ledger.spend(QUERY)
    assert len(compositions) == made
    assert not ledger.can_spend(QUERY)


PATTERNS: list[Callable[[int], Mechanism]] = [
    lambda _: QUERY,
    lambda number: (QUERY, TRAINING)[number % 2],
    lambda number: TRAINING if number % 10 else QUERY,
    lambda number: (QUERY, TRAINING)[number // 300 % 2],
    lambda number: (QUERY, TRAINING, THIRD)[number % 3],
    lambda number: (QUERY, TRAINING, THIRD)[number * number % 3],
    lambda number: (THIRD, QUERY)[number > 1000],
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_mechanisms_that_take_turns_need_few_compositions(
    pattern: Callable[[int], Mechanism], priced: list[Any]
) -> None:
    ledger = PrivacyLedger(100.0, 1e-5)
    rounds, _ = exhaust(ledger, pattern)
    assert rounds > 1000
    assert len(priced) < 120
    # The round at which it stops, by adding up prices.
    spent: dict[Mechanism, int] = {}
    for number in range(rounds + 1):
        spent[pattern(number)] = spent.get(pattern(number), 0) + 1
    assert Priced(spent, "").epsilon(0.0) > 100.0
    spent[pattern(rounds)] -= 1
    assert Priced(spent, "").epsilon(0.0) == ledger.spent() <= 100.0
    assert sum(entry.rounds for entry in ledger.entries) == rounds


def test_mechanisms_that_take_turns_end_where_composition_does(compositions: list[Any]) -> None:
    ledger = PrivacyLedger(0.5, 1e-5)
    rounds, _ = exhaust(ledger, PATTERNS[1])
    assert rounds > 300
    assert len(compositions) < 40
    halves = [(QUERY, (rounds + 1) // 2), (TRAINING, rounds // 2)]
    assert ledger.spent() == compose(halves).epsilon(1e-5) <= 0.5
    place = rounds % 2
    halves[place] = (halves[place][0], halves[place][1] + 1)
    assert compose(halves).epsilon(1e-5) > 0.5


def test_any_spends_are_decided_as_if_each_were_composed(priced: list[Any]) -> None:
    generator = random.Random(5)
    for _ in range(60):
        budget = generator.choice([3.0, 10.0, 40.0])
        ledgers = [PrivacyLedger(budget, 1e-5) for _ in range(2)]
        spent: list[dict[Mechanism, int]] = [{}, {}]
        for _ in range(80):
            which = generator.randrange(2)
            ledger, own = ledgers[which], spent[which]
            mechanism = generator.choice([QUERY, TRAINING, THIRD])
            rounds = generator.choice([1, 1, 1, 2, 5, 40, 1000])
            after = {**own, mechanism: own.get(mechanism, 0) + rounds}
            fits = Priced(after, "").epsilon(0.0) <= budget
            if generator.random() < 0.3:
                assert ledger.can_spend(mechanism, rounds) == fits
            if fits:
                ledger.spend(mechanism, rounds)
                spent[which] = after
            else:
                with pytest.raises(BudgetExceededError, match="would bring epsilon to"):
                    ledger.spend(mechanism, rounds)
            if generator.random() < 0.05:
                ledgers[which] = PrivacyLedger._from_json(ledger._to_json())
            assert ledgers[which].spent() == Priced(spent[which], "").epsilon(0.0)
            affordable = ledgers[which].affordable_rounds(THIRD)
            assert ledgers[which].can_spend(THIRD, affordable + 1) is False
    assert priced


def test_threads_share_proofs(priced: list[Any]) -> None:
    ledgers = [PrivacyLedger(50.0, 1e-5) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(lambda ledger: exhaust(ledger, lambda _: QUERY)[0], ledgers))
    assert ends == [2500] * 8
    assert len(priced) < 400


def test_like_releases_share_an_entry() -> None:
    ledger = PrivacyLedger(1.0, 1e-5)
    for label in ("a", "a", None, None, "a"):
        ledger.spend(QUERY, 2, label)
    ledger.spend(THIRD, 1, "a")
    ledger.spend(THIRD, 1, "a")
    assert ledger.entries == (
        LedgerEntry(QUERY, 4, "a"),
        LedgerEntry(QUERY, 4, None),
        LedgerEntry(QUERY, 2, "a"),
        LedgerEntry(THIRD, 2, "a"),
    )
    assert PrivacyLedger._from_json(ledger._to_json()) == ledger


def test_a_ledger_counts_to_a_billion() -> None:
    idle = TRAINING.replace(sample_rate=0.0)
    ledger = PrivacyLedger(1.0, 1e-5)
    ledger.spend(idle, 10**9 - 2)
    assert ledger.affordable_rounds(idle) == 2
    ledger.spend(idle)
    ledger.spend(idle)
    assert ledger.affordable_rounds(idle) == 0
    for attempt in (ledger.spend, ledger.can_spend):
        with pytest.raises(InvalidValueError, match="rounds must add up to at most 1000000000"):
            attempt(idle)
    assert ledger.entries == (LedgerEntry(idle, 10**9),)
