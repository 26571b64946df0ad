"""Mechanisms and rounds as documents: what is read is what was written, or refused."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.distributed.test_mechanisms import Noisy, Sampling, TwoStage

import turnout as tn
import turnout.distributed as td
from turnout.distributed import parameters
from turnout.distributed.mechanisms import mechanism_from_dict
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    UnsupportedVersionError,
)

# What travels.


PLANS = [
    Sampling(epsilon=1.0, delta=1e-5, dummies=50, max_missing_users=2),
    Sampling(rate=0.4, floor=20, parties="users", compressed=False, adjacency="add_or_remove"),
    Noisy(epsilon=1.0),
    Noisy(noise="skellam", parameter=11.5, source="parties", parties=2, honest_aggregators=2),
    td.NoisyAggregation(tn.Domain(["é", "b", 3, None]), 9, parameter=1.5),
    TwoStage(reported=2, gamma=3.0, rate=0.3, floor=4, collusion_bound=6),
    TwoStage(reported=4, rate=0.3, dummies=4, elected=3, max_colluding_users=1),
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_mechanisms_and_rounds_survive_the_round_trip(plan: td.AggregationMechanism) -> None:
    description = json.loads(json.dumps(plan.to_dict()))
    again = mechanism_from_dict(description)
    assert again == plan
    assert type(again) is type(plan)
    assert again.fingerprint == plan.fingerprint
    assert again.accounting == plan.accounting
    round_ = td.Round.start(plan)
    read = td.Round.from_bytes(round_.to_bytes())
    assert read == round_
    assert read.identifier == round_.identifier
    assert td.Round.start(plan) != round_


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_altered_descriptions_are_refused(plan: td.AggregationMechanism) -> None:
    good = plan.to_dict()
    for name in good:
        with pytest.raises(CorruptDataError):
            mechanism_from_dict({key: value for key, value in good.items() if key != name})
    wrong: list[Any] = [{**good, "more": 1}, {**good, "mechanism": "noise"}, None, [], "sampling"]
    wrong += [{**good, "mechanism": None}, {**good, "domain": None}, {**good, "users": -1}]
    wrong += [{**good, "users": "9"}, {**good, "adjacency": 5}, {**good, "epsilon": [1]}]
    wrong += [{**good, "mechanism": ["sampling"]}, {**good, "domain": 4}]
    for description in wrong:
        with pytest.raises(CorruptDataError):
            mechanism_from_dict(description)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
def test_what_is_read_makes_nobody_search_for_a_parameter(
    plan: td.AggregationMechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "parameter" if isinstance(plan, td.NoisyAggregation) else "rate"
    good = json.loads(td.Round.start(plan).to_bytes())
    good["mechanism"] |= {name: None, "epsilon": 1e-6, "delta": 1e-5}

    def search(*arguments: Any, **named: Any) -> float:
        raise AssertionError

    # With Skellam noise it would take half a minute, and gigabytes.
    monkeypatch.setattr(parameters, "calibrate", search)
    with pytest.raises(CorruptDataError, match=f"its {name} must be given"):
        td.Round.from_bytes(json.dumps(good, sort_keys=True, separators=(",", ":")).encode())


def test_other_rounds_and_versions_are_refused() -> None:
    good = json.loads(td.Round.start(PLANS[2]).to_bytes())

    def data(**changes: Any) -> bytes:
        fields = {k: v for k, v in (good | changes).items() if v != "absent"}
        return json.dumps(fields).encode()

    for version in (0, 2, "1", None):
        with pytest.raises(UnsupportedVersionError, match="version"):
            td.Round.from_bytes(data(version=version))
    for changes in (
        {"format": "turnout-tally"}, {"format": "absent"}, {"nonce": "00"}, {"nonce": "x" * 32},
        {"nonce": 7}, {"nonce": "absent"}, {"mechanism": "absent"}, {"mechanism": {}},
        {"version": "absent"}, {"more": 1},
    ):  # fmt: skip
        with pytest.raises(CorruptDataError):
            td.Round.from_bytes(data(**changes))
    for raw in (b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b"1" * 5000):
        with pytest.raises(CorruptDataError):
            td.Round.from_bytes(raw)
    with pytest.raises(InvalidTypeError, match="data must be bytes"):
        td.Round.from_bytes("{}")  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 255))
def test_altered_rounds_are_refused_or_have_another_name(position: int, change: int) -> None:
    round_ = td.Round(PLANS[5], bytes(range(16)))
    data = bytearray(round_.to_bytes())
    data[position % len(data)] ^= change
    try:
        read = td.Round.from_bytes(data)
    except CorruptDataError:
        return
    assert (read.identifier == round_.identifier) == (read == round_)


def test_a_nonce_is_sixteen_bytes_and_a_round_has_its_parties_only() -> None:
    for nonce in (b"", b"short", "0" * 16, None, bytearray(16)):
        with pytest.raises(InvalidValueError, match="nonce must be 16 bytes"):
            td.Round(PLANS[0], nonce)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="mechanism"):
        td.Round("plan", bytes(16))  # type: ignore[arg-type]
    one, two = td.Round.start(PLANS[0]), td.Round.start(PLANS[5])
    for ask in (
        lambda: one.user(100), lambda: one.user(-1), lambda: one.aggregator(3),
    ):  # fmt: skip
        with pytest.raises((InvalidValueError, InvalidTypeError)):
            ask()
    with pytest.raises(InvalidTypeError, match="a round of two-stage has no aggregator"):
        two.aggregator(0)
    with pytest.raises(InvalidTypeError, match="has no reporting server"):
        one.reporting_server()


def test_noise_whose_pieces_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="parameter must allow drawing the noise"):
        td.NoisyAggregation(3, 1000, noise="skellam", parameter=1e-10)
    td.NoisyAggregation(3, 10, noise="skellam", parameter=1e-10)._user_vector(0)


@pytest.mark.parametrize("plan", [PLANS[0], PLANS[2], PLANS[5]])
def test_a_process_that_knows_nothing_else_reads_a_round(plan: Any) -> None:
    program = (
        "import sys; from turnout.distributed import Round; "
        "print(type(Round.from_bytes(sys.stdin.buffer.read()).mechanism).__name__)"
    )
    round_ = td.Round.start(plan)
    done = subprocess.run(
        [sys.executable, "-c", program], input=round_.to_bytes(), capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == type(plan).__name__


def test_errors_speak_of_numbers_and_not_of_items() -> None:
    mechanism = tn.distributed.VerifiedSum((0, 10), 3, epsilon=1.0)
    with pytest.raises(InvalidValueError, match="one number for each of the 3 users, got 2"):
        mechanism.run([1, 2])
    with pytest.raises(InvalidValueError, match="one count for each of the 2 values"):
        mechanism.simulate([1, 2], [3])
    with pytest.raises(InvalidValueError, match="one number for each of the 1 sums"):
        mechanism.estimate([1, 2])
