"""Tasks of numbers: what counts, what is refused, and what commands and Janus are told."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serve.tasks.rounds import HELPER, LEADER, Round
from tests.serve.tasks.test_task_command import URLS, run
from tests.serve.tasks.test_task_files import read_by_janus

import turnout as tn
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.serve.tasks.files import ClientFile, CollectorFile
from turnout.serve.tasks.making import new_task, write_task

HOURS = tn.distributed.VerifiedSum((-10, 40), 6, epsilon=1.0)
NEW = ["task", "new", "--mean", "-10:40", "--users", "6", "--epsilon", "1"]

#: How far they are above -10.
NUMBERS = [0, 50, 10, 10, 25, 37]


@pytest.mark.parametrize("as_vector", [False, True])
def test_a_round_adds_up_every_number_once(begin: Callable[..., Round], as_vector: bool) -> None:
    round_ = begin(mechanism=dataclasses.replace(HOURS, as_vector=as_vector))
    assert round_.task.vdaf.kind == ("Prio3SumVec" if as_vector else "Prio3Sum")
    assert round_.upload(NUMBERS) == {"accepted": 6}
    found = round_.collect()
    assert (found.reports, found.sums) == (6, (132,))
    assert found.estimate.mean == 12.0
    assert found.estimate.sum == 72.0


def test_a_second_batch_may_have_more_reports_than_users(begin: Callable[..., Round]) -> None:
    round_ = begin(mechanism=HOURS, reports=8)
    round_.upload([*NUMBERS, 0, 0])
    found = round_.collect()
    assert (found.reports, found.sums) == (8, (132,))
    assert found.estimate.mean == 6.5


def test_whoever_stays_away_sends_the_lower_bound_in_as_many_bytes(
    begin: Callable[..., Round],
) -> None:
    shy = dataclasses.replace(HOURS, users=200, participation=0.5, parameter=None)
    round_ = begin(mechanism=shy, users=200)
    assert round_.upload([50] * 200) == {"accepted": 200}
    (total,) = round_.collect().sums
    assert total % 50 == 0
    # Bin(200, .5) is within 35 of 100 but once in a million times.
    assert 65 * 50 < total < 135 * 50
    bodies = {len(round_.reports([number])[1]) for number in (0, 1, 37, 50)}
    assert len(bodies) == 1


def test_both_aggregators_add_noise(begin: Callable[..., Round]) -> None:
    mechanism = dataclasses.replace(HOURS, epsilon=1e-4, parameter=None)
    round_ = begin(mechanism=mechanism, noise=True)
    round_.upload(NUMBERS)
    found = round_.collect()
    # Two noises of the scale 500,000: they cancel with a probability of 5e-7, and are above 16
    # million with one below 1e-12.
    assert found.sums != (132,)
    assert abs(found.sums[0] - 132) < 16_000_000
    assert {file.noise.parameter for file in (round_.leader_file, round_.helper_file)} == {
        mechanism.parameter
    }


def test_honest_numbers_count_where_a_third_cheats(begin: Callable[..., Round]) -> None:
    round_ = begin(mechanism=HOURS, users=70, reports=70)
    for _ in range(10):
        _, mixed = round_.reports([0, 50, 25], mixed=True)
        _, replayed = round_.reports([50, 50, 50, 1, 1, 1, 0])
        assert round_.errors(mixed) == []
        assert round_.errors(replayed) == []
        assert round_.errors(replayed) == ["report_replayed"] * 7
    found = round_.collect()
    assert (found.reports, found.sums) == (70, (1530,))
    assert round_.refused("leader") == {"report_replayed": 70, "vdaf_verify_error": 30}


def test_a_file_says_what_is_asked(tmp_path: Path) -> None:
    files = new_task(HOURS, leader=LEADER, helper=HELPER)
    for file, kind in zip(files[2:], (ClientFile, CollectorFile), strict=True):
        file.write(tmp_path / f"{file.role}.json")
        assert kind.read(tmp_path / f"{file.role}.json").question == HOURS  # type: ignore[attr-defined]
    for wrong in (
        dataclasses.replace(HOURS, domain=tn.Bounds(-10, 41), parameter=None),
        dataclasses.replace(HOURS, as_vector=True),
        tn.distributed.VerifiedAggregation(51, 6, epsilon=1.0),
    ):
        path = tmp_path / "wrong.json"
        path.unlink(missing_ok=True)
        dataclasses.replace(files[2], question=wrong).write(path)  # type: ignore[call-arg]
        with pytest.raises(CorruptDataError, match="measures something else"):
            ClientFile.read(path)
    three = dataclasses.replace(HOURS, aggregators=3)
    path = tmp_path / "three.json"
    dataclasses.replace(files[2], question=three).write(path)  # type: ignore[call-arg]
    with pytest.raises(CorruptDataError, match="two aggregators"):
        ClientFile.read(path)


# Janus.


@pytest.mark.parametrize("participation", [1.0, 0.2])
def test_janus_is_asked_for_noise_of_the_scale_that_the_budget_needs(
    tmp_path: Path, participation: float
) -> None:
    asked = dataclasses.replace(HOURS, as_vector=True, participation=participation, parameter=None)
    files = new_task(asked, leader=LEADER, helper=HELPER, janus=("leader", "helper"))
    paths = write_task(files, tmp_path / "task", ("leader", "helper"))
    for role in ("leader", "helper"):
        told = read_by_janus(paths[role])["vdaf"]
        assert told["!"] == "Prio3SumVec"
        assert (told["length"], told["max_measurement"]) == (1, 50)
        assert told["chunk_length"] == dict(files[0].task.vdaf.parameters)["chunk_length"]
        digits = told["dp_strategy"]["budget"]["epsilon"]
        over, under = (sum(each << 32 * at for at, each in enumerate(one)) for one in digits)
        # Janus takes 63, the largest number of as many bits, for what moves the sum.
        assert Fraction(63) / Fraction(over, under) == Fraction(asked.parameter)  # type: ignore[arg-type]


def test_janus_adds_no_noise_to_single_sums() -> None:
    with pytest.raises(InvalidValueError, match=r"got Prio3Sum: pass .* as_vector=True of numbers"):
        new_task(HOURS, leader=LEADER, helper=HELPER, janus=("helper",))


# Commands.


def test_a_task_of_numbers_from_one_command_to_the_other(
    begin: Callable[..., Round], tmp_path: Path
) -> None:
    round_ = begin(mechanism=HOURS)
    client, collector = tmp_path / "client.json", tmp_path / "collector.json"
    round_.client_file.write(client)
    round_.collector_file.write(collector)
    code, shown, error = run("task", "upload", client, "--value=-7", "--json")
    assert (code, error) == (0, "")
    assert json.loads(shown) == {"accepted": 1, "refused": {}}
    table = tmp_path / "people.csv"
    table.write_text("hours\n40\n0\n12\n-10\n38\n")
    assert run("task", "upload", client, table, "--column", "hours")[0] == 0
    round_.step()
    code, _, error = run("task", "result", collector, "--wait", 0)
    assert code == 1, error
    round_.step()
    code, shown, error = run("task", "result", collector, "--json", "--interval", "0.9")
    assert (code, error) == (0, "")
    found: Any = json.loads(shown)
    assert (found["sums"], found["reports"], found["mean"]) == ([133], 6, pytest.approx(73 / 6))
    assert found["sum"]["value"] == pytest.approx(73)
    assert found["sum"]["low"] == pytest.approx(6 * found["low"])
    assert found["sum"]["high"] == pytest.approx(6 * found["high"])
    plot, page = tmp_path / "mean.svg", tmp_path / "mean.html"
    files = ["--plot", plot, "--report", page, "--title", "How long?"]
    code, shown, _ = run("task", "result", collector, *files)
    assert code == 0
    assert plot.exists()
    assert f"The page: {page}" in shown
    text = page.read_text(encoding="utf-8")
    for word in ("<h1>How long?</h1>", "6 people", "The reports are from 20", "To publish"):
        assert word in text
    code, _, error = run("task", "result", collector, "--report", page)
    assert (code, "already exists" in error) == (1, True)
    for word in ("reports", "epsilon 1", "sum", "73", "mean", "from -10 to 40"):
        assert word in shown
    for words in (["--top", 3], ["--sort", "label"], ["--clip"]):
        code, _, error = run("task", "result", collector, *words)
        assert (code, "a mean" in error) == (1, True), words


@pytest.mark.parametrize("value", ["41", "-11", "7.25", "nan", "inf", "seven"])
def test_numbers_that_are_none_are_refused_and_not_shown(tmp_path: Path, value: str) -> None:
    code, shown, _ = run(*NEW, *URLS, "-o", tmp_path / "task")
    assert code == 0
    assert "Prio3Sum" in shown
    client = tmp_path / "task" / "client.json"
    assert ClientFile.read(client).question == dataclasses.replace(HOURS)
    code, _, error = run("task", "upload", client, f"--value={value}")
    assert code == 1
    assert "a whole number from -10 to 40" in error
    assert value not in error
    table = tmp_path / "people.csv"
    table.write_text(f"hours\n3\n{value}\n")
    code, _, error = run("task", "upload", client, table, "--column", "hours")
    assert code == 1
    # A table may have "nan" where an answer is missing, and is told which words stand there.
    shown = error.replace(str(table), "").replace("(-10.0, 40.0)", "")
    assert value == "nan" or value not in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*NEW, "--labels", "a,b"], "conflicts with --labels"),
        ([*NEW[:2], *NEW[4:]], "say what can be answered"),
        ([*NEW[:3], "0:1.5", *NEW[4:]], "whole numbers"),
        ([*NEW[:3], "0", *NEW[4:]], "LOW:HIGH"),
        ([*NEW[:3], "0:100000000", *NEW[4:]], "numbers in larger units"),
    ],
)
def test_a_task_that_cannot_be_is_refused(tmp_path: Path, words: list[str], said: str) -> None:
    code, _, error = run(*words, *URLS, "-o", tmp_path / "task")
    assert code != 0
    assert said in error
    assert list(tmp_path.iterdir()) == []


def test_beside_janus_reports_are_vectors_of_one_number(tmp_path: Path) -> None:
    code, shown, _ = run(*NEW, *URLS, "--janus", "helper", "-p", 0.3, "-o", tmp_path / "task")
    assert code == 0
    assert "Prio3SumVec" in shown
    question = ClientFile.read(tmp_path / "task" / "client.json").question
    assert question == tn.distributed.VerifiedSum(
        (-10, 40), 6, epsilon=1.0, participation=0.3, noise="discrete_laplace", as_vector=True
    )
    assert np.isfinite(question.parameter or np.nan)
