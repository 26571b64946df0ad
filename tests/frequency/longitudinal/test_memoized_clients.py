"""Clients of permanent answers: what they keep, and what they refuse."""

from __future__ import annotations

import copy
import math
import pickle
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.frequency.longitudinal.chains import SYMMETRIC, chain, secrets

import turnout as tn
from turnout import FrequencyOracle
from turnout.errors import (
    BudgetExceededError,
    CodeOutsideDomainError,
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
)
from turnout.frequency.longitudinal import (
    Memoized,
    MemoizedClient,
)

# Permanence


def test_two_clients_of_one_secret_are_not_made_by_copying() -> None:
    # Each of them would keep to the limit, and both together spend twice what one may.
    client = chain("L-GRR").client()
    for clone in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidTypeError, match=r"from_bytes when the first client is gone"):
            clone(client)


def test_a_client_by_phase_draws_a_permanent_answer_for_each_change() -> None:
    memoized = Memoized(1.0, 6, first_epsilon=0.5, permanent_per="phase")
    answered = Memoized(1.0, 6, first_epsilon=0.5)
    assert (memoized.permanent_per, answered.permanent_per) == ("phase", "answer")
    assert FrequencyOracle.from_dict(memoized.to_dict()) == memoized != answered
    assert memoized.context != answered.context
    key = secrets(1)
    client = memoized.client(key[0].tobytes(), max_values=3)
    for number, (value, phase) in enumerate([(2, 0), (2, 0), (4, 1), (2, 2), (2, 2)]):
        permanent = memoized.permanent_answers([value], key, phases=phase)
        expected = memoized.report(permanent, seed=number).codes[0]
        assert client.report(value, seed=number) == expected
        client = MemoizedClient.from_bytes(memoized, client.to_bytes())
        assert client.values_given == phase + 1
    assert client.spent == memoized.spent(3)
    with pytest.raises(BudgetExceededError, match=r"may give 3 phase\(s\) and has given 3"):
        client.report(4)
    assert client.report(2) in range(6)
    with pytest.raises(PlanMismatchError):
        MemoizedClient.from_bytes(answered, client.to_bytes())


def test_permanent_answers_of_phases_are_independent(statistical: ModuleType) -> None:
    memoized = Memoized(1.0, 2, first_epsilon=0.5, permanent_per="phase")
    keys = secrets(40_000)
    zeros = np.zeros(40_000, np.int64)
    first, third = (memoized.permanent_answers(zeros, keys, phases=phase) for phase in (0, 2))
    p, q = memoized.stage_probabilities[0]
    observed = np.bincount(2 * first + third, minlength=4)
    statistical.check_law(observed, [p * p, p * q, q * p, q * q])
    mixed = memoized.permanent_answers(zeros, keys, phases=2 * (np.arange(40_000) % 2))
    assert np.array_equal(mixed, np.where(np.arange(40_000) % 2, third, first))


@pytest.mark.parametrize(
    ("phases", "error"),
    [(-1, InvalidValueError), (10**6, InvalidValueError), (0.5, InvalidTypeError),
     ([0, 1], InvalidTypeError)],
)  # fmt: skip
def test_phases_that_are_none_are_refused(phases: Any, error: type[Exception]) -> None:
    memoized = Memoized(1.0, 2, first_epsilon=0.5, permanent_per="phase")
    with pytest.raises(error, match="phases must be"):
        memoized.permanent_answers([0], secrets(1), phases=phases)
    with pytest.raises(InvalidValueError, match="phases must be None"):
        Memoized(1.0, 2, first_epsilon=0.5).permanent_answers([0], secrets(1), phases=0)
    with pytest.raises(InvalidValueError, match="permanent_per must be"):
        Memoized(1.0, 2, first_epsilon=0.5, permanent_per="month")


# Clients


def test_a_client_refuses_one_different_answer_too_many() -> None:
    memoized = chain("L-GRR")
    client = memoized.client(max_values=2)
    for value in (0, 1, 0, 1, 1):
        client.report(value)
    assert client.values_given == 2
    assert client.spent == memoized.spent(2)
    with pytest.raises(BudgetExceededError, match="may give 2 different"):
        client.report(3)
    assert client.values_given == 2
    again = MemoizedClient.from_bytes(memoized, client.to_bytes())
    with pytest.raises(BudgetExceededError):
        again.report(3)
    again.report(0)


def test_fresh_clients_differ_and_their_rounds_too() -> None:
    memoized = chain("L-SUE", size=64)
    one, other = memoized.client(), memoized.client()
    assert one.to_bytes() != other.to_bytes()
    rounds = {one.report(5).tobytes() for _ in range(10)}
    assert len(rounds) == 10


def test_the_state_is_read_back_or_refused() -> None:
    memoized = chain("L-GRR")
    state = memoized.client().to_bytes()
    for broken in (b"", state[:-1], state[:40] + b"x" + state[41:], b"y" + state[1:]):
        with pytest.raises(CorruptDataError):
            MemoizedClient.from_bytes(memoized, broken)
    with pytest.raises(PlanMismatchError):
        MemoizedClient.from_bytes(chain("L-GRR", 2.0), state)
    with pytest.raises(InvalidTypeError):
        MemoizedClient.from_bytes(memoized, "text")  # type: ignore[arg-type]
    assert "secret" not in repr(memoized.client())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"first_epsilon": 3.0}, InvalidValueError, "first_epsilon must be below"),
        ({"first_epsilon": 5.0}, InvalidValueError, "first_epsilon must be below"),
        ({"first_epsilon": 0.0}, InvalidValueError, "first_epsilon must be"),
        ({"first_epsilon": math.nan}, InvalidValueError, "first_epsilon must be"),
        ({"first_epsilon": "1"}, InvalidTypeError, "first_epsilon must be"),
        ({"instantaneous": SYMMETRIC}, InvalidValueError, "instantaneous must be one of"),
        ({"permanent": "subset_selection"}, InvalidValueError, "oracle must be one of"),
        ({"question": 3}, InvalidTypeError, "question must be"),
    ],
)
def test_bad_settings(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Memoized(3.0, 4, **({"first_epsilon": 1.0} | arguments))


def test_the_oracle_says_how_permanent_answers_are_made() -> None:
    for oracle in (
        tn.DirectEncoding(3.0, 4),
        tn.SymmetricUnaryEncoding(3.0, 4),
        tn.OptimizedUnaryEncoding(3.0, 4),
    ):
        memoized = Memoized(oracle, first_epsilon=1.0)
        assert memoized == Memoized(3.0, 4, first_epsilon=1.0, permanent=oracle.name)
        p, q = memoized.stage_probabilities[0]
        assert (p, q) == pytest.approx(oracle.support_probabilities, rel=1e-9)
        assert float(memoized._lifetime_ratio) == pytest.approx(float(oracle.realized_ratio))


def test_bad_arguments() -> None:
    memoized = chain("L-GRR")
    with pytest.raises(InvalidValueError, match="come from the oracle"):
        Memoized(tn.DirectEncoding(3.0, 4), 4, first_epsilon=1.0)
    with pytest.raises(InvalidTypeError, match="domain must be a Domain, a list of labels"):
        Memoized(3.0, first_epsilon=1.0)
    with pytest.raises(InvalidTypeError, match="oracle must be an oracle, or an epsilon"):
        Memoized(None, first_epsilon=1.0)  # type: ignore[arg-type]
    with pytest.raises(CodeOutsideDomainError):
        memoized.permanent_answers([4], secrets(1))
    with pytest.raises(InvalidValueError, match="secrets and values"):
        memoized.permanent_answers([1, 2], secrets(3))
    with pytest.raises(InvalidTypeError, match="secrets must be"):
        memoized.permanent_answers([1], secrets(1)[:, :16])
    with pytest.raises(InvalidTypeError, match="permanent_answers must be"):
        memoized.report(np.array([1.0]))
    with pytest.raises(CodeOutsideDomainError):
        memoized.report(np.array([4], np.uint32))
    with pytest.raises(InvalidValueError, match="is not a report of this oracle"):
        chain("L-SUE").report(np.array([[16]], np.uint64))
    with pytest.raises(InvalidValueError, match="secret must have 32 bytes"):
        memoized.client(b"short")
    with pytest.raises(InvalidTypeError, match="secret must be bytes"):
        memoized.client("x" * 32)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="max_values"):
        memoized.client(max_values=5)
