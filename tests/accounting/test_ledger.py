"""A ledger records what was spent, refuses what the budget cannot pay, and survives storage."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import pytest

import turnout as tn
from turnout.accounting import (
    CentralShuffling,
    CountSampling,
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    GaussianMechanism,
    LocalSampling,
    Mechanism,
    RandomParticipation,
    Shuffled,
    SkellamNoise,
    VariationRatio,
    WeakClientSampling,
    calibrate,
    compose,
)
from turnout.accounting.ledger import LedgerEntry, PrivacyLedger
from turnout.errors import (
    BudgetExceededError,
    InvalidTypeError,
    InvalidValueError,
)

TRAINING = RandomParticipation(0.001, 0.1, local_size=30, noise_multiplier=2.4903)
QUERY = GaussianMechanism(noise_multiplier=20.0)

ADD_OR_REMOVE: list[Mechanism] = [
    TRAINING,
    QUERY,
    LocalSampling(0.01, 2.0),
    WeakClientSampling(0.01, 0.1, 2.0),
    CentralShuffling(0.01, 0.1, 2.0),
    CountSampling(0.3, 100),
    DiscreteLaplaceNoise(30.0),
    DiscreteGaussianNoise(30.0),
    SkellamNoise(500.0),
]
REPLACE: list[Mechanism] = [
    QUERY,
    CountSampling(0.3, 100),
    SkellamNoise(500.0),
    Shuffled(tn.DirectEncoding(1.0, tn.Domain(["never", "once", "often"])), 1_000),
    Shuffled(tn.DirectEncoding(1.0, 3), 1_000, tn.Bernoulli(0.5)),
    Shuffled(VariationRatio(Fraction(3), Fraction(1, 3), Fraction(2)), 1_000),
]


def filled() -> PrivacyLedger:
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-5)
    ledger.spend(TRAINING, rounds=500, label="first night")
    ledger.spend(QUERY)
    return ledger


def test_an_empty_ledger_has_spent_nothing() -> None:
    ledger = PrivacyLedger(epsilon=0.5, delta=1e-6)
    assert (ledger.epsilon, ledger.delta, ledger.adjacency) == (0.5, 1e-6, "add_or_remove")
    assert ledger.entries == ()
    assert ledger.spent() == 0.0
    assert ledger.remaining() == 0.5
    with pytest.raises(InvalidValueError, match="no entries"):
        ledger.composition()


def test_the_total_is_the_composition_of_all_entries() -> None:
    ledger = filled()
    ledger.spend(TRAINING, rounds=500, label="second night")
    together = compose([(TRAINING, 1000), QUERY])
    assert ledger.spent() == together.epsilon(1e-5)
    assert ledger.remaining() == 1.0 - ledger.spent()
    assert ledger.composition().epsilon(1e-7) == together.epsilon(1e-7)
    assert ledger.entries == (
        LedgerEntry(TRAINING, 500, "first night"),
        LedgerEntry(QUERY, 1, None),
        LedgerEntry(TRAINING, 500, "second night"),
    )


def test_the_total_is_less_than_the_sum_of_epsilons() -> None:
    ledger = PrivacyLedger(epsilon=10.0, delta=1e-5)
    ledger.spend(QUERY, rounds=50)
    assert ledger.spent() < 50 * QUERY.epsilon(1e-5 / 50)


def test_what_would_exceed_the_budget_is_refused_and_changes_nothing() -> None:
    ledger = filled()
    before, text = ledger.entries, ledger._to_json()
    with pytest.raises(BudgetExceededError, match=r"100 rounds of Gauss.*budget is 1\.0.*spent"):
        ledger.spend(QUERY, rounds=100)
    assert ledger.entries is before
    assert ledger._to_json() == text
    ledger.spend(QUERY)
    assert [entry.rounds for entry in ledger.entries] == [500, 2]


def test_a_mechanism_that_has_no_epsilon_at_the_delta_is_refused() -> None:
    ledger = PrivacyLedger(epsilon=1e6, delta=0.0)
    with pytest.raises(BudgetExceededError, match="epsilon to inf"):
        ledger.spend(QUERY)
    assert not ledger.can_spend(QUERY)
    assert ledger.affordable_rounds(QUERY) == 0


def test_pure_privacy_adds_up_to_a_budget_without_delta() -> None:
    ledger = PrivacyLedger(epsilon=1.0, delta=0.0)
    noise = DiscreteLaplaceNoise(scale=8.0)
    assert ledger.affordable_rounds(noise) == 8
    ledger.spend(noise, rounds=8)
    assert ledger.spent() == 1.0
    assert ledger.remaining() == 0.0
    assert not ledger.can_spend(noise)


@pytest.mark.parametrize("spent", [0, 40])
@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [
        (TRAINING, 0.02),
        (QUERY, 1.0),
        (LocalSampling(0.01, 2.0), 1.0),
        (LocalSampling(0.1, 1.0), 9.0),
    ],
)
def test_affordable_rounds_fit_and_one_more_does_not(
    mechanism: Mechanism, epsilon: float, spent: int
) -> None:
    ledger = PrivacyLedger(epsilon, delta=1e-5)
    if spent:
        ledger.spend(GaussianMechanism(noise_multiplier=2000.0), rounds=spent)
    rounds = ledger.affordable_rounds(mechanism)
    assert rounds > 0
    assert not ledger.can_spend(mechanism, rounds + 1)
    ledger.spend(mechanism, rounds)
    assert ledger.affordable_rounds(mechanism) == 0
    assert ledger.spent() <= epsilon


def test_affordable_rounds_are_those_that_calibration_finds() -> None:
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-5)
    training = LocalSampling(0.01, 2.0)
    found = calibrate(training, "rounds", epsilon=1.0, delta=1e-5)
    assert abs(ledger.affordable_rounds(training) - found) <= 1


def test_what_reveals_nothing_can_be_repeated_without_end() -> None:
    idle = TRAINING.replace(client_rate=0.0)
    ledger = PrivacyLedger(epsilon=0.1, delta=1e-5)
    assert ledger.affordable_rounds(idle) == 10**9
    ledger.spend(idle, rounds=10**9)
    assert ledger.spent() == 0.0


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize(("mechanism", "rounds"), [(TRAINING, 1), (LocalSampling(0.01, 2.0), 100)])
def test_noise_that_was_calibrated_to_the_budget_fits(
    mechanism: Mechanism, rounds: int, epsilon: float
) -> None:
    # Two searches end within rounding of each other; neither may refuse the other's answer.
    noise = calibrate(mechanism, "noise_multiplier", epsilon, 1e-6, rounds=rounds)
    ledger = PrivacyLedger(epsilon, 1e-6)
    ledger.spend(mechanism.replace(noise_multiplier=noise), rounds)
    assert 0.999 * epsilon < ledger.spent() <= epsilon
    assert PrivacyLedger._from_json(ledger._to_json()) == ledger


def test_clients_account_for_themselves() -> None:
    clients = {name: PrivacyLedger(epsilon=0.17, delta=1e-5) for name in ("ann", "bob")}
    clients["ann"].spend(TRAINING, rounds=1000)
    assert not clients["ann"].can_spend(TRAINING, 1000)
    assert clients["bob"].can_spend(TRAINING, 1000)
    assert clients["bob"].spent() == 0.0


def test_threads_that_spend_at_once_stay_within_the_budget() -> None:
    ledger = PrivacyLedger(epsilon=0.5, delta=1e-5)
    affordable = ledger.affordable_rounds(QUERY)

    def spend(_: int) -> bool:
        try:
            ledger.spend(QUERY)
        except BudgetExceededError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        done = sum(pool.map(spend, range(affordable + 20)))
    assert done == affordable
    assert ledger.entries == (LedgerEntry(QUERY, affordable),)


def test_another_adjacency_is_composed_and_a_mechanism_that_lacks_it_refused() -> None:
    ledger = PrivacyLedger(epsilon=1.0, delta=1e-6, adjacency="replace")
    sampling = CountSampling(rate=0.3, floor=1000)
    ledger.spend(sampling, rounds=2)
    assert ledger.spent() == sampling.compose(2, "replace").epsilon(1e-6)
    with pytest.raises(InvalidValueError, match=r"knows 'add_or_remove', 'add', 'remove'"):
        ledger.spend(TRAINING)
    with pytest.raises(InvalidValueError, match="adjacency 'add_or_remove'"):
        PrivacyLedger(1.0, 1e-6).can_spend(REPLACE[-1])
    assert len(ledger.entries) == 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0.0, 1e-5), InvalidValueError, r"epsilon must be a finite number above 0, got 0\.0"),
        ((math.inf, 1e-5), InvalidValueError, "epsilon must be"),
        ((math.nan, 1e-5), InvalidValueError, "epsilon must be"),
        (("1", 1e-5), InvalidTypeError, "epsilon must be"),
        ((1.0, -1e-9), InvalidValueError, "delta must be .* below 1, got -1e-09"),
        ((1.0, 1.0), InvalidValueError, "delta must be"),
        ((1.0, math.nan), InvalidValueError, "delta must be"),
        ((1.0, None), InvalidTypeError, "delta must be"),
        ((1.0, 1e-5, "swap"), InvalidValueError, "adjacency must be one of .* got 'swap'"),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(
    arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        PrivacyLedger(*arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("gaussian",), InvalidTypeError, "mechanism must be a mechanism .* got 'gaussian'"),
        ((QUERY, 0), InvalidValueError, "rounds must be .* got 0"),
        ((QUERY, 10**9 + 1), InvalidValueError, "rounds must be"),
        ((QUERY, 1.0), InvalidTypeError, "rounds must be"),
        ((QUERY, True), InvalidTypeError, "rounds must be"),
        ((QUERY, 1, 7), InvalidTypeError, "label must be text or None, got 7"),
        ((QUERY, 1, "\ud83d"), InvalidValueError, "label must be text that can be written"),
    ],
)
def test_a_release_that_makes_no_sense_is_refused(
    arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    ledger = PrivacyLedger(1.0, 1e-5)
    with pytest.raises(error, match=message):
        ledger.spend(*arguments)
    assert ledger.entries == ()


def test_entries_cannot_be_changed() -> None:
    ledger = filled()
    with pytest.raises(AttributeError):
        ledger.entries[0].rounds = 1  # type: ignore[misc]
    with pytest.raises(AttributeError):
        ledger.entries = ()  # type: ignore[misc]
    with pytest.raises(TypeError):
        hash(ledger)


def test_a_ledger_shows_its_budget() -> None:
    assert repr(filled()) == (
        "PrivacyLedger(epsilon=1.0, delta=1e-05, adjacency='add_or_remove'; 2 entries, 501 rounds)"
    )


@pytest.mark.parametrize(
    ("mechanisms", "adjacency"), [(ADD_OR_REMOVE, "add_or_remove"), (REPLACE, "replace")]
)
def test_a_ledger_of_every_mechanism_survives_its_text(
    mechanisms: list[Mechanism], adjacency: str
) -> None:
    ledger = PrivacyLedger(epsilon=100.0, delta=1e-4, adjacency=adjacency)
    for mechanism in mechanisms:
        ledger.spend(mechanism, label='"turnout-ledger" \u03b5 \U0001f600 \x00')
    text = ledger._to_json()
    assert text.isascii()
    for form in (text, text.encode(), bytearray(text.encode())):
        again = PrivacyLedger._from_json(form)
        assert again == ledger
        assert again.entries == ledger.entries
        assert again.spent() == ledger.spent()
    assert PrivacyLedger.from_dict(json.loads(json.dumps(ledger.to_dict()))) == ledger


def test_ledgers_differ_by_budget_and_entries() -> None:
    ledger = filled()
    assert ledger == filled()
    assert ledger != PrivacyLedger(epsilon=1.0, delta=1e-5)
    assert PrivacyLedger(1.0, 1e-5) != PrivacyLedger(1.0, 1e-6)
    assert PrivacyLedger(1.0, 1e-5) != PrivacyLedger(1.0, 1e-5, "add")
    assert ledger != ledger.to_dict()
