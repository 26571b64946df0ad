"""Trainings that go on from a checkpoint: to the same model, with everything that was paid."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turnout.accounting import LocalSampling, PrivacyLedger, compose
from turnout.errors import (
    BudgetExceededError,
    CorruptDataError,
    PlanMismatchError,
    ProtocolError,
)
from turnout.federated import SGD, InProcessEngine, Server


@pytest.mark.parametrize("rounds", [1, 3, 7])
def test_a_checkpoint_goes_on_to_the_same_model(
    problem: Any, plan_of: Any, tmp_path: Path, rounds: int
) -> None:
    plan = plan_of(noise_multiplier=None, epsilon=9.0, delta=1e-5, rounds=10)
    whole = problem.engine(plan)
    expected = whole.run(10)
    path = tmp_path / "training.npz"
    first = problem.engine(plan, checkpoint=path, checkpoint_every=rounds)
    assert not first.resume()
    first.run(8)
    second = problem.engine(plan, checkpoint=path)
    assert second.resume()
    assert second.server.round == 8 - 8 % rounds
    np.testing.assert_array_equal(second.run(10), expected)
    assert second.server.ledger == whole.server.ledger
    assert problem.engine(plan, checkpoint=path).resume()


def test_rounds_after_the_last_checkpoint_stay_paid_without_a_seed(
    problem: Any, plan_of: Any, tmp_path: Path
) -> None:
    plan, path = plan_of(seed=None), tmp_path / "training.npz"
    ledger = PrivacyLedger(90.0, 1e-5)
    first = problem.engine(plan, checkpoint=path, checkpoint_every=4, ledger=ledger)
    first.run(6)
    second = problem.engine(
        plan, checkpoint=path, checkpoint_every=4, ledger=PrivacyLedger(90.0, 1e-5)
    )
    assert second.resume()
    assert second.server.ledger == ledger
    # Clients have answered rounds 4 and 5 and would refuse to answer them again.
    assert second.server.round == 6
    before = problem.engine(plan, checkpoint=tmp_path / "b.npz", checkpoint_every=9,
        ledger=PrivacyLedger(90.0, 1e-5),
    )  # fmt: skip
    before.run(2)
    again = problem.engine(plan, checkpoint=tmp_path / "b.npz", ledger=PrivacyLedger(90.0, 1e-5))
    assert again.resume()
    assert again.server.round == 2


@pytest.mark.parametrize("changes", [{}, {"noise": "none", "noise_multiplier": None}])
def test_no_round_is_opened_twice_without_a_ledger(
    problem: Any, plan_of: Any, tmp_path: Path, changes: dict[str, Any]
) -> None:
    plan, path = plan_of(seed=None, **changes), tmp_path / "training.npz"

    def started() -> Server:
        server = Server(plan, problem.start(), SGD(0.1), checkpoint=path, checkpoint_every=3)
        known = path.exists()
        assert server.resume() == known
        return server

    # Each is killed with an open round, which clients have answered: the first one, too.
    for number in range(5):
        server = started()
        assert server.open(available=40) == number
    server = started()
    for _ in range(4):
        server.open(available=40)
        model = server.close()
    assert started().round == server.round == 9
    # A round that was open has no step, and the steps before it are kept.
    server.open(available=40)
    np.testing.assert_array_equal(started().parameters, model)
    assert started().round == 10


def test_a_training_whose_model_was_lost_is_not_gone_on_with(
    problem: Any, plan_of: Any, tmp_path: Path
) -> None:
    path = tmp_path / "training.npz"
    journal = tmp_path / "training.npz.ledger.json"

    def engine() -> InProcessEngine:
        ledger = PrivacyLedger(90.0, 1e-5)
        return problem.engine(
            plan_of(seed=None), checkpoint=path, checkpoint_every=4, ledger=ledger
        )

    for rounds in (2, 20):
        begun = engine()
        begun.run(rounds)
        # From the first round on there is a model beside the ledger.
        kept = path.read_bytes()
        path.unlink()
        with pytest.raises(CorruptDataError, match=r"training\.npz is missing, and .*\.json has"):
            engine().resume()
        # Whoever knows what it paid may train anew.
        anew = problem.engine(
            plan_of(seed=None), checkpoint=path, ledger=PrivacyLedger.read(journal)
        )
        assert not anew.resume()
        path.write_bytes(kept)
        paid = journal.read_bytes()
        journal.unlink()
        with pytest.raises(
            CorruptDataError, match=r"training\.npz\.ledger\.json, the record of what was paid"
        ):
            engine().resume()
        journal.write_bytes(paid)
        again = engine()
        assert again.resume()
        assert again.server.round == rounds
        assert again.server.ledger == begun.server.ledger
        np.testing.assert_array_equal(
            again.server.parameters,
            problem.start() if rounds == 2 else begun.server.parameters,
        )
        path.unlink()
        journal.unlink()


def test_another_ledger_does_not_stand_for_one_whose_model_was_lost(
    problem: Any, plan_of: Any, tmp_path: Path
) -> None:
    path, plan = tmp_path / "training.npz", plan_of(seed=None)
    problem.engine(plan, checkpoint=path, ledger=PrivacyLedger(90.0, 1e-5)).run(2)
    path.unlink()
    other = PrivacyLedger(90.0, 1e-5)
    other.spend(LocalSampling(0.01, 9.0), 5)
    with pytest.raises(CorruptDataError, match=r"training\.npz is missing"):
        problem.engine(plan, checkpoint=path, ledger=other).resume()


def test_a_saved_copy_is_gone_on_from_elsewhere(problem: Any, plan_of: Any, tmp_path: Path) -> None:
    path, copy, plan = tmp_path / "a.npz", tmp_path / "b.npz", plan_of(seed=None)
    ledgers = [PrivacyLedger(90.0, 1e-5) for _ in range(2)]
    first = problem.engine(plan, checkpoint=path, ledger=ledgers[0])
    first.run(2)
    first.server.write(copy)
    second = problem.engine(plan, checkpoint=copy, ledger=ledgers[1])
    assert second.resume()
    assert (second.server.round, second.server.ledger) == (2, ledgers[0])


def test_a_training_saved_before_its_first_round_is_gone_on_with(
    problem: Any, plan_of: Any, tmp_path: Path
) -> None:
    plan, path = plan_of(seed=None), tmp_path / "training.npz"
    first = problem.engine(plan, checkpoint=path, ledger=PrivacyLedger(90.0, 1e-5))
    first.server.write(path)
    second = problem.engine(plan, checkpoint=path, ledger=PrivacyLedger(90.0, 1e-5))
    assert second.resume()
    assert second.server.round == 0


def test_a_round_that_cannot_be_paid_leaves_no_files(
    problem: Any, plan_of: Any, tmp_path: Path
) -> None:
    engine = problem.engine(
        plan_of(seed=None), checkpoint=tmp_path / "a", ledger=PrivacyLedger(1e-9, 1e-5)
    )
    with pytest.raises(BudgetExceededError):
        engine.run(1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", [None, 11])
def test_ledgers_of_clients_hold_what_was_spent_before_a_training_went_on(
    problem: Any, plan_of: Any, tmp_path: Path, seed: int | None
) -> None:
    plan, path = plan_of(noise_multiplier=4.0, seed=seed), tmp_path / "training.npz"
    engines = [
        problem.engine(plan, checkpoint=path, ledger=PrivacyLedger(20.0, 1e-5)) for _ in range(2)
    ]
    engines[0].run(3, available=lambda number: [number])
    assert engines[1].resume()
    engines[1].run(5, available=lambda number: [7])
    # Who was available before is not known: nobody has spent more than is counted.
    for index, rounds in ((0, 3), (5, 3), (7, 5)):
        expected = compose([(plan.mechanism, rounds)]).epsilon(1e-5)
        assert engines[1]._client_ledger(index).spent() == expected
        assert engines[0]._client_ledger(index).spent() <= expected


def test_an_earlier_training_is_not_written_over(
    problem: Any, plan_of: Any, tmp_path: Path
) -> None:
    path = tmp_path / "training.npz"
    problem.engine(plan_of(), checkpoint=path).run(2)
    before = path.read_bytes()
    ledger = PrivacyLedger(90.0, 1e-5)
    again = problem.engine(plan_of(seed=12), checkpoint=path, ledger=ledger)
    with pytest.raises(
        ProtocolError, match=r"training\.npz already exists from an earlier training: call resume"
    ):
        again.run(1)
    assert path.read_bytes() == before
    assert ledger.entries == ()
    unseeded = plan_of(seed=None)
    path = tmp_path / "lost.npz"
    begun = problem.engine(
        unseeded, checkpoint=path, checkpoint_every=9, ledger=PrivacyLedger(90.0, 1e-5)
    )
    begun.run(1)
    path.unlink()
    again = problem.engine(unseeded, checkpoint=path, ledger=PrivacyLedger(90.0, 1e-5))
    with pytest.raises(ProtocolError, match=r"lost\.npz\.ledger\.json already exists"):
        again.run(1)


def test_checkpoints_of_another_training_are_refused(
    problem: Any, plan_of: Any, tmp_path: Path
) -> None:
    path = tmp_path / "training.npz"
    problem.engine(plan_of(), checkpoint=path).run(2)
    with pytest.raises(PlanMismatchError, match="another plan: seed = 11, this has 12"):
        problem.engine(plan_of(seed=12), checkpoint=path).resume()
    with pytest.raises(PlanMismatchError, match="has no ledger"):
        problem.engine(plan_of(), checkpoint=path, ledger=PrivacyLedger(1.0, 1e-5)).resume()
    plan = plan_of()
    with pytest.raises(PlanMismatchError, match="another model"):
        Server(plan, np.zeros(4), SGD(0.1), checkpoint=path).resume()
    with pytest.raises(PlanMismatchError, match=r"optimizer: .*; momentum = 0\.5, this has 0\.0"):
        Server(plan, np.zeros(3), SGD(0.1), checkpoint=path).resume()
    with pytest.raises(ProtocolError, match="no checkpoint was named"):
        Server(plan, np.zeros(3), SGD(0.1)).resume()
    begun = problem.engine(plan, checkpoint=tmp_path / "other.npz")
    begun.run(1)
    with pytest.raises(ProtocolError, match="the training has begun"):
        begun.resume()
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    with pytest.raises(CorruptDataError, match=r"training\.npz"):
        problem.engine(plan, checkpoint=path).resume()
    budget = plan_of(noise_multiplier=9.0)
    other = tmp_path / "budget.npz"
    problem.engine(budget, checkpoint=other, ledger=PrivacyLedger(9.0, 1e-5)).run(1)
    with pytest.raises(PlanMismatchError, match=r"epsilon = 9\.0"):
        problem.engine(budget, checkpoint=other, ledger=PrivacyLedger(8.0, 1e-5)).resume()


def test_a_ledger_that_knows_more_than_the_file_is_not_forgotten(
    problem: Any, plan_of: Any, tmp_path: Path
) -> None:
    plan, other = plan_of(seed=None), LocalSampling(0.01, 9.0)
    for every in (1, 9):
        path, shared = tmp_path / f"{every}.npz", PrivacyLedger(90.0, 1e-5)
        shared.spend(other, 2)
        first = problem.engine(plan, checkpoint=path, checkpoint_every=every, ledger=shared)
        first.run(3)
        # What was there before the training is in the file.
        before = PrivacyLedger(90.0, 1e-5)
        before.spend(other, 2)
        second = problem.engine(plan, checkpoint=path, ledger=before)
        assert second.resume()
        assert (second.server.round, second.server.ledger) == (3, shared)
        # What another use has paid since is not: more of it than the training has rounds, or less.
        for more in (1, 20):
            since = PrivacyLedger(90.0, 1e-5)
            since.spend(other, 2 + more)
            with pytest.raises(PlanMismatchError, match="which would be forgotten"):
                problem.engine(plan, checkpoint=path, ledger=since).resume()


SCRIPT = """
    import sys, time
    import numpy as np
    from turnout.federated import SGD, InProcessEngine, RandomParticipationSGD

    path, rounds, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    done = 0
    random = np.random.default_rng(0)
    data = random.normal(size=(50, 4, 6))

    def gradients(model, client, elements):
        if done == last:
            print("held", flush=True)
            time.sleep(3600)
        return model - data[client, elements]

    plan = RandomParticipationSGD(
        0.2, 0.5, 1.0, epsilon=5.0, delta=1e-5, rounds=rounds, local_size=4, seed=3
    )
    engine = InProcessEngine(
        plan, np.zeros(6), gradients, 4, SGD(0.1, momentum=0.9), clients=50,
        checkpoint=path, checkpoint_every=2,
    )
    engine.resume()

    def tell(number, model):
        global done
        done += 1
        print(number, flush=True)

    model = engine.run(rounds, callback=tell)
    np.save(path + ".model.npy", model)
    engine.server.ledger.write(path + ".ledger")
"""


def test_killed_in_the_middle_it_ends_with_the_model_of_an_uninterrupted_run(
    tmp_path: Path,
) -> None:
    def command(path: Path, last: int = 40) -> list[str]:
        return [sys.executable, "-c", textwrap.dedent(SCRIPT), str(path), "40", str(last)]

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    subprocess.run(command(whole), check=True, timeout=600, stdout=subprocess.DEVNULL)
    with subprocess.Popen(command(broken, 7), stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert "held\n" in running.stdout
        os.kill(running.pid, signal.SIGKILL)
    assert broken.exists()
    assert not Path(f"{broken}.model.npy").exists()
    finished = subprocess.run(
        command(broken), check=True, timeout=600, stdout=subprocess.PIPE, text=True
    )
    assert 2 < int(finished.stdout.split()[0]) < 40
    np.testing.assert_array_equal(np.load(f"{broken}.model.npy"), np.load(f"{whole}.model.npy"))
    ledgers = [json.loads(Path(f"{path}.ledger").read_text()) for path in (broken, whole)]
    assert ledgers[0] == ledgers[1]


class Interrupted(SGD):
    """An optimizer that the user stops once."""

    stopped = False

    def step(self, *arguments: Any) -> Any:
        if not Interrupted.stopped:
            Interrupted.stopped = True
            raise KeyboardInterrupt
        return super().step(*arguments)


def test_a_training_that_is_stopped_in_a_step_goes_on(problem: Any, plan_of: Any) -> None:
    engine = InProcessEngine(
        plan_of(), problem.start(), problem.gradients, 6, Interrupted(0.1),
        clients=40, ledger=PrivacyLedger(80.0, 1e-5),
    )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        engine.run(3)
    assert engine.server.round == 1
    engine.run(3)
    assert [row["step"] for row in engine.server.history.to_records()] == [False, True, True]
    assert engine.server.ledger.entries[0].rounds == 3


def test_a_close_that_is_stopped_gives_no_second_sum(
    problem: Any, plan_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(plan_of(seed=None), problem.start(), SGD(0.1))

    def stopped(opened: Any) -> Any:
        raise KeyboardInterrupt

    server.open(available=3)
    monkeypatch.setattr(server, "_told", stopped)
    with pytest.raises(KeyboardInterrupt):
        server.close()
    np.testing.assert_array_equal(server.parameters, problem.start())
    with pytest.raises(ProtocolError, match="no round is open"):
        server.close()
