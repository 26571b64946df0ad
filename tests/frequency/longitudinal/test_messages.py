"""Messages of clients with permanent answers: the coin of the plan, the state, and refusals."""

from __future__ import annotations

import concurrent.futures
import datetime
import json
import math
import os
import pathlib
import stat
import threading
import time
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout import _files
from turnout.errors import (
    BudgetExceededError,
    CodeOutsideDomainError,
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    PlanExpiredError,
    PlanMismatchError,
)
from turnout.frequency.longitudinal import MemoizedClient

DIRECT = tn.Memoized(tn.DirectEncoding(3.0, 4), first_epsilon=1.0)
UNARY = tn.Memoized(tn.OptimizedUnaryEncoding(3.0, 70), first_epsilon=1.0)
ALL, HALF = tn.Plan(DIRECT, tn.Everyone()), tn.Plan(DIRECT, tn.Bernoulli(0.5))


def secret(number: int) -> bytes:
    return bytes(np.random.default_rng(number).integers(0, 256, 32, np.uint8))


@pytest.mark.parametrize("oracle", [DIRECT, UNARY], ids=["codes", "rows"])
@pytest.mark.parametrize("who", [tn.Everyone(), tn.Bernoulli(0.5)], ids=repr)
def test_messages_hold_the_reports_of_a_population(
    oracle: tn.Memoized, who: tn.Participation
) -> None:
    plan = tn.Plan(oracle, who)
    keys = [secret(number) for number in range(40)]
    messages = [
        oracle.client(key).message(plan, number % 4, seed=number) for number, key in enumerate(keys)
    ]
    rounds = []
    for number, key in enumerate(keys):
        row = np.frombuffer(key, np.uint8).reshape(1, 32)
        answers = oracle.permanent_answers([number % 4], row)
        rounds.append(oracle.report(answers, participation=who, seed=number))
    assert [each is None for each in messages] == [not len(each) for each in rounds]
    gathered = plan.gather([each for each in messages if each is not None], nodes=40)
    assert gathered == tn.Reports.concatenate(rounds)


def test_a_message_is_the_line_of_a_plan() -> None:
    client = DIRECT.client(secret(1))
    made = client.message(ALL, 2, seed=7)
    report = DIRECT.client(secret(1)).report(2, seed=7)
    assert made is not None
    nonce = json.loads(made)["nonce"]
    assert made == (
        b'{"format":"turnout-report","version":1,"plan":"%s","nonce":"%s","report":%d}'
        % (ALL.fingerprint.encode(), nonce.encode(), report)
    )
    # The oracle that a device reads from the file of a plan makes the same message.
    read = tn.Plan.from_json(ALL.to_json())
    assert isinstance(read.oracle, tn.Memoized)
    again = read.oracle.client(secret(1)).message(read, 2, seed=7)
    assert again is not None
    assert {**json.loads(again), "nonce": nonce} == json.loads(made)
    assert json.loads(again)["nonce"] != nonce


def test_the_coin_knows_nothing_of_the_answer_and_rounds_are_drawn_anew() -> None:
    clients = [DIRECT.client(secret(1), max_values=4) for _ in range(4)]
    silent = [
        [client.message(HALF, code, seed=seed) is None for seed in range(300)]
        for code, client in enumerate(clients)
    ]
    assert silent[0] == silent[1] == silent[2] == silent[3]
    client = DIRECT.client()
    sent = sum(client.message(HALF, 1) is not None for _ in range(2000))
    # 1000 +- 22.4: 4.9 standard deviations at 1e-6.
    assert abs(sent - 1000) < 110
    made = [client.message(ALL, 1) or b"" for _ in range(200)]
    assert len(set(made)) == 200
    assert len({json.loads(each)["report"] for each in made}) == 4


def test_the_law_of_messages(statistical: ModuleType) -> None:
    first, second = DIRECT._stages()
    own = first[0] * second[0] + 3 * first[1] * second[1]
    law = [(1 - own) / 3] * 4
    law[1] = own
    assert own == Fraction(DIRECT._through()[0])
    counts = np.zeros(4, np.int64)
    for _ in range(4000):
        message = DIRECT.client().message(ALL, 1)
        assert message is not None
        counts[json.loads(message)["report"]] += 1
    statistical.check_law(counts, [float(each) for each in law])


def test_silence_spends_nothing() -> None:
    rare = tn.Plan(DIRECT, tn.Bernoulli(1e-12))
    client = DIRECT.client()
    assert [client.message(rare, code) for code in range(4)] == [None] * 4
    assert (client.values_given, client.spent) == (0, 0.0)
    assert client.message(ALL, 3) is not None
    assert client.values_given == 1
    # Refused whether somebody takes part or not: else silence would be told from a refusal.
    with pytest.raises(BudgetExceededError, match="may give 1 different"):
        client.message(rare, 0)
    with pytest.raises(CodeOutsideDomainError):
        client.message(rare, 4)


def test_participation_changes_no_budget() -> None:
    spent = []
    for plan in (ALL, HALF):
        client = DIRECT.client(max_values=2)
        for code in [0] * 50 + [1] * 50:
            client.message(plan, code)
        spent.append(client.spent)
    assert spent == [DIRECT.spent(2)] * 2
    assert math.isclose(spent[0], 6.0)


def test_the_state_is_kept_before_a_message_leaves(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "state"
    client = DIRECT.client(max_values=2)
    assert client.message(tn.Plan(DIRECT, tn.Bernoulli(1e-12)), 1, state=path) is None
    assert not path.exists()
    client.message(ALL, 1, state=path)
    assert path.read_bytes() == client.to_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.stat().st_mtime_ns, path.stat().st_ino
    client.message(ALL, 1, state=str(path))
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before
    client.message(ALL, 2, state=path)
    again = MemoizedClient.from_bytes(DIRECT, path.read_bytes())
    assert again.values_given == 2
    with pytest.raises(BudgetExceededError):
        again.message(ALL, 0, state=path)
    # An answer that was given without a file is in the file once there is one.
    path.unlink()
    client.message(ALL, 1, state=path)
    assert path.read_bytes() == client.to_bytes()


def test_a_state_that_stays_is_only_read(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    client = DIRECT.client(max_values=2)
    client.message(ALL, 1, state=path)
    for other in tmp_path.iterdir():
        if other != path:
            other.unlink()

    def written(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    # Access that this process lacks: as root it has all.
    monkeypatch.setattr("os.open", _reading(os.open, written))
    assert client.message(ALL, 1, state=path) is not None
    with pytest.raises(PermissionError):
        client.message(ALL, 2, state=path)
    assert client.values_given == 1


def _reading(original: Any, refused: Any) -> Any:
    def opened(path: Any, flags: int, *rest: Any) -> Any:
        return refused() if flags & (os.O_WRONLY | os.O_RDWR) else original(path, flags, *rest)

    return opened


def test_where_the_state_cannot_be_kept_nothing_is_sent_or_spent(tmp_path: pathlib.Path) -> None:
    client = DIRECT.client(secret(1), max_values=2)
    with pytest.raises(OSError, match="none"):
        client.message(ALL, 1, state=tmp_path / "none" / "state")
    assert client.spent == 0.0
    other = tmp_path / "other"
    for data, error in [
        (DIRECT.client().to_bytes(), InvalidValueError),
        (b"notes", CorruptDataError),
        (UNARY.client().to_bytes(), PlanMismatchError),
    ]:
        other.write_bytes(data)
        with pytest.raises(error, match="state ") as refusal:
            client.message(ALL, 1, state=other)
        assert repr(str(other)) in str(refusal.value)
        assert other.read_bytes() == data
        assert client.spent == 0.0
    stale = MemoizedClient.from_bytes(DIRECT, client.to_bytes())
    path = tmp_path / "state"
    client.message(ALL, 1, state=path)
    with pytest.raises(InvalidValueError, match="answers that this client has not given"):
        stale.message(ALL, 2, state=path)
    assert (stale.values_given, path.read_bytes()) == (0, client.to_bytes())
    # The same secret with a higher limit would spend more than the file allows.
    raised = DIRECT.client(secret(1), max_values=3)
    with pytest.raises(InvalidValueError, match=r"allows 2 different answer\(s\), not max_values"):
        raised.message(ALL, 1, state=path)
    assert (raised.spent, path.read_bytes()) == (0.0, client.to_bytes())


@pytest.mark.parametrize("there", [True, False])
def test_clients_with_one_state_do_not_answer_differently(
    there: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = DIRECT.client(secret(1), max_values=1)
    path = tmp_path / "state"
    if there:
        path.write_bytes(first.to_bytes())
    clients = [MemoizedClient.from_bytes(DIRECT, first.to_bytes()) for _ in range(4)]
    synchronise, together = _files._synchronise_file, threading.Barrier(4)

    def slowly(file: pathlib.Path) -> None:
        time.sleep(0.02)
        synchronise(file)

    def send(code: int) -> bytes | None:
        together.wait()
        try:
            return clients[code].message(ALL, code, state=path)
        except InvalidValueError:
            return None

    monkeypatch.setattr(_files, "_synchronise_file", slowly)
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        messages = list(threads.map(send, range(4)))
    assert sum(each is not None for each in messages) == 1
    assert [each is not None for each in messages] == [bool(each.values_given) for each in clients]
    assert {each.to_bytes() for each in clients if each.values_given} == {path.read_bytes()}


@pytest.mark.parametrize(
    ("oracle", "words"),
    [
        (tn.DirectEncoding(3.0, 4), "oracle memoized instead of direct_encoding"),
        (tn.Memoized(2.5, 4, first_epsilon=1.0), "epsilon 3.0 instead of 2.5"),
        (tn.Memoized(3.0, 5, first_epsilon=1.0), "domain Domain.from_integers(4) instead of"),
        (tn.Memoized(3.0, 4, first_epsilon=0.5), "first_epsilon 1.0 instead of 0.5"),
        (tn.Memoized(3.0, 4, first_epsilon=1.0, question="x"), "question '' instead of 'x'"),
    ],
)
def test_a_plan_of_another_oracle_is_refused(oracle: tn.FrequencyOracle, words: str) -> None:
    client = DIRECT.client()
    with pytest.raises(PlanMismatchError) as error:
        client.message(tn.Plan(oracle, tn.Everyone()), 1)
    assert str(error.value).startswith(f"this client was made under another plan: {words}")
    assert client.spent == 0.0


def test_an_expired_plan_makes_no_message_and_spends_nothing() -> None:
    client = DIRECT.client()
    past = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
    with pytest.raises(PlanExpiredError, match="the plan expired at 2020-01-01"):
        client.message(tn.Plan(DIRECT, tn.Everyone(), serial=1, expires=past), 1)
    assert client.spent == 0.0
    future = past.replace(year=9000)
    assert client.message(tn.Plan(DIRECT, tn.Everyone(), serial=1, expires=future), 1) is not None


def test_a_smaller_epsilon_of_one_report_keeps_the_permanent_answers() -> None:
    client = DIRECT.client(secret(3))
    client.message(ALL, 2)
    less = tn.Memoized(3.0, 4, first_epsilon=0.5)
    again = MemoizedClient.from_bytes(less, client.to_bytes())
    assert again.message(tn.Plan(less, tn.Everyone()), 2) is not None
    assert again.values_given == 1


def test_other_arguments_are_refused() -> None:
    client = DIRECT.client()
    with pytest.raises(InvalidTypeError, match="plan must be a Plan"):
        client.message(DIRECT, 1)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="participation must be Everyone"):
        client.message(tn.Plan(DIRECT, tn.Personalized([0.5])), 1)
    bad: Any = -1
    with pytest.raises(InvalidValueError, match="seed must be"):
        client.message(ALL, 1, seed=bad)
    # Whether somebody takes part or not.
    for plan in (ALL, tn.Plan(DIRECT, tn.Bernoulli(1e-12))):
        for bad in (3, b"file", ["file"]):
            with pytest.raises(InvalidTypeError, match="state must be the path of a file, got"):
                client.message(plan, 1, state=bad)
    assert client.spent == 0.0
