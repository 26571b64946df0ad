"""The device of ``examples/device`` with permanent answers: its state is Python's."""

from __future__ import annotations

import stat
from itertools import product
from pathlib import Path

import pytest
from tests.devices import Device, gathered

import turnout as tn
from turnout.errors import BudgetExceededError
from turnout.frequency.longitudinal import Memoized, MemoizedClient

LABELS = ["never", "once", "é"]
UNARY = ["symmetric_unary_encoding", "optimized_unary_encoding"]
STAGES = [("direct_encoding", "direct_encoding"), *product(UNARY, UNARY)]


def memoized(stages: tuple[str, str], per: str = "answer", size: int = 3) -> Memoized:
    """A question with permanent answers, of which one report says less."""
    labels = LABELS if size == 3 else [f"label {code}" for code in range(size)]
    return Memoized(
        3.0,
        labels,
        first_epsilon=1.0,
        permanent=stages[0],
        instantaneous=stages[1],
        question="how é?",
        permanent_per=per,
    )


@pytest.mark.parametrize("stages", STAGES, ids="-".join)
@pytest.mark.parametrize("size", [3, 70])
def test_rounds_and_states_are_those_of_python(
    stages: tuple[str, str], size: int, device: Device, tmp_path: Path
) -> None:
    for per, participation in product(("answer", "phase"), (tn.Everyone(), tn.Bernoulli(0.5))):
        plan = tn.Plan(memoized(stages, per, size), participation)
        client = plan.oracle.client(secret=bytes(range(32)), max_values=3)
        labels = plan.oracle.domain.labels
        path = tmp_path / f"state {per} {participation!r}"
        path.write_bytes(client.to_bytes())
        for seed, code in enumerate([2, 2, 0, 2, 0, 1] if per == "answer" else [2, 0, 0, 2, 2]):
            made = client.message(plan, labels[code], seed=seed)
            done = device(plan, "--state", path, "--seed", seed, lines=f"{labels[code]}\n")
            sent = gathered(plan, done, 1)
            assert sent == plan.gather([made] if made else [], nodes=1)
            assert path.read_bytes() == client.to_bytes()


def test_a_new_state_is_private_and_its_limit_holds(device: Device, tmp_path: Path) -> None:
    plan, path = tn.Plan(memoized(STAGES[0]), tn.Everyone()), tmp_path / "state"
    done = device(plan, "--state", path, "--max-values", 2, lines="once\nonce\nnever\n")
    assert len(gathered(plan, done, 3)) == 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("state")] == ["state"]
    kept = path.read_bytes()
    done = device(plan, "--state", path, lines="é\n")
    assert (done.returncode, done.stdout, path.read_bytes()) == (1, "", kept)
    assert "may use 2 permanent answer(s)" in done.stderr
    client = MemoizedClient.from_bytes(plan.oracle, kept)
    assert (client.values_given, client.max_values) == (2, 2)
    with pytest.raises(BudgetExceededError):
        client.message(plan, "é")


def test_other_states_are_refused_and_not_shown(device: Device, tmp_path: Path) -> None:
    plan, path = tn.Plan(memoized(STAGES[0]), tn.Everyone()), tmp_path / "state"
    assert device(plan, "once", "--state", path).returncode == 0
    text = path.read_text()
    secret = text.partition('"secret":"')[2][:64]
    for altered in [text[:-1], text.replace('"max_values":1', '"max_values":2'), f"[{text}]", ""]:
        path.write_text(altered)
        done = device(plan, "once", "--state", path)
        assert (done.returncode, done.stdout, path.read_text()) == (1, "", altered)
        assert secret not in done.stderr
    path.write_text(text)
    other = tn.Plan(memoized(STAGES[1]), tn.Everyone())
    assert "another question" in device(other, "once", "--state", path).stderr
    assert "permanent answers need --state" in device(plan, "once").stderr
