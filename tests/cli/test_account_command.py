"""``turnout account``: random participation, calibration, shuffling and counts."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnout as tn
from turnout._rounding import written_down as down
from turnout._rounding import written_up as up
from turnout.accounting import (
    CentralShuffling,
    FixedSizeBatches,
    GaussianMechanism,
    LocalSampling,
    RandomCheckIns,
    RandomParticipation,
    Shuffled,
    ShuffledBatches,
    WeakClientSampling,
    calibrate,
)

Run = Callable[..., Any]

SETTING = ("--client-rate", 0.001, "--sample-rate", 0.1, "--local-size", 30)
RATES = ("-p", 0.001, "-q", 0.1)
COMMANDS = ("participation", "calibrate", "shuffle", "counts", "batches")
KEYS = {"epsilon", "delta", "lower_epsilon", "lower_delta"}


def as_json(turnout: Run, *arguments: object) -> dict[str, Any]:
    result = turnout("account", *arguments, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def schemes(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {record["scheme"]: record for record in answer["schemes"]}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(turnout: Run, command: str) -> None:
    result = turnout("account", command, "--help")
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert f"turnout account {command}" in result.stdout
    assert "--json prints" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_the_group_lists_its_commands_and_is_listed(turnout: Run) -> None:
    listed = turnout("account", "--help")
    assert listed.exit_code == 0
    assert all(command in listed.stdout for command in COMMANDS)
    assert "account" in turnout("--help").stdout


def test_one_round_at_a_delta_is_what_the_mechanisms_say(turnout: Run) -> None:
    answer = as_json(turnout, "participation", *SETTING, "--noise", 2.5, "--delta", 1e-6)
    ours = RandomParticipation(0.001, 0.1, 30, 2.5)
    assert {name: answer[name] for name in KEYS} == {
        "epsilon": ours.epsilon(1e-6),
        "delta": 1e-6,
        "lower_epsilon": ours.compose(1).epsilon_bounds(1e-6).low,
        "lower_delta": None,
    }
    assert answer["reached"] == "30 other gradients aligned with the new one"
    assert answer["bound"] == "random_participation"
    found = schemes(answer)
    for key, mechanism in {
        "random_participation": ours,
        "weak_client_sampling": WeakClientSampling(0.001, 0.1, 2.5),
        "only_local_sampling": LocalSampling(0.1, 2.5),
        "central_shuffling": CentralShuffling(0.001, 0.1, 2.5),
    }.items():
        assert found[key]["epsilon"] == mechanism.epsilon(1e-6)
        assert found[key]["guarantee"] is (key != "central_shuffling")
        assert set(found[key]) == KEYS | {"scheme", "guarantee", "reached"}


@pytest.mark.parametrize("word", ["add_or_remove", "add", "remove"])
def test_one_round_at_an_epsilon_is_what_the_mechanisms_say(turnout: Run, word: str) -> None:
    options = ("--noise", 2.5, "--epsilon", 0.015, "--adjacency", word)
    answer = as_json(turnout, "participation", *SETTING, *options)
    ours = RandomParticipation(0.001, 0.1, 30, 2.5)
    assert (answer["epsilon"], answer["delta"]) == (0.015, ours.delta(0.015, word))
    setting = {
        "client_rate": 0.001,
        "sample_rate": 0.1,
        "local_size": 30,
        "noise_multiplier": 2.5,
        "rounds": 1,
        "adjacency": word,
    }
    assert {name: answer[name] for name in setting} == setting


def test_rounds_are_composed_with_a_lower_value(turnout: Run) -> None:
    setting = ("-p", 0.1, "-q", 0.1, "--local-size", 3, "--noise", 1.5, "--rounds", 20)
    ours = RandomParticipation(0.1, 0.1, 3, 1.5).compose(20)
    answer = as_json(turnout, "participation", *setting, "--delta", 1e-5)
    assert (answer["lower_epsilon"], answer["epsilon"]) == ours.epsilon_bounds(1e-5)
    assert answer["lower_delta"] is None
    answer = as_json(turnout, "participation", *setting, "--epsilon", 0.8)
    assert (answer["lower_delta"], answer["delta"]) == ours.delta_bounds(0.8)
    assert answer["lower_epsilon"] is None
    order = ["central_shuffling", "random_participation"]
    order += ["weak_client_sampling", "only_local_sampling"]
    deltas = [schemes(answer)[key]["delta"] for key in order]
    assert deltas == sorted(deltas)


def test_composed_deltas_that_are_tiny_are_given_as_a_bound(turnout: Run) -> None:
    options = (*RATES, "--noise", 2.5, "--rounds", 1000, "--epsilon", 0.5)
    answer = schemes(as_json(turnout, "participation", *options))
    central, local = answer["central_shuffling"], answer["only_local_sampling"]
    assert central["lower_delta"] == 0.0 <= central["delta"] < 1e-14
    assert CentralShuffling(0.001, 0.1, 2.5).compose(1000).epsilon(1e-14) < 0.5
    assert 0.3 < local["lower_delta"] < local["delta"]


def test_without_a_local_size_weak_client_sampling_is_the_guarantee_and_said_so(
    turnout: Run,
) -> None:
    options = ("participation", *RATES, "--noise", 2.5, "--delta", 1e-6)
    answer = as_json(turnout, *options)
    assert answer["bound"] == "weak_client_sampling"
    assert answer["local_size"] is None
    assert answer["epsilon"] == WeakClientSampling(0.001, 0.1, 2.5).epsilon(1e-6)
    assert "random_participation" not in schemes(answer)
    text = turnout("account", *options).stdout
    assert "unknown: the guarantee is that of weak client sampling" in text
    assert "holds for any local size" in text


def test_the_table_of_participation_shows_every_scheme_and_fits(turnout: Run) -> None:
    options = ("--noise", 2.5, "--rounds", 3, "--delta", 1e-5)
    result = turnout("account", "participation", *SETTING, *options)
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in result.stdout
    for text in (
        "at most 30 elements",
        "one element of one client is added or removed",
        "at least",
    ):
        assert text in result.stdout
    rows = {line[:24].strip(): line for line in lines}
    assert "not a guarantee" in rows["central shuffling"]
    assert "if participation is hidden" in rows["random participation"]
    assert {"weak client sampling", "only local sampling"} <= set(rows)
    assert "At least: 30 other gradients aligned with the new one." in result.stdout


def test_printed_numbers_are_rounded_to_the_safe_side(turnout: Run) -> None:
    options = ("participation", *SETTING, "--noise", 2.3733, "--delta", 1e-6)
    exact = as_json(turnout, *options)["epsilon"]
    lines = turnout("account", *options).stdout.splitlines()
    (row,) = [line for line in lines if line.startswith(" random participation")]
    shown = float(row.split()[2])
    assert exact <= shown <= exact * 1.0001


@pytest.mark.parametrize(
    "value", [0.0, 1.0, 1 / 3, 2 / 3, 1e-300, 9.999999e-7, 123456.7, 7.66513, 5e-324, 1e17 / 3]
)
def test_upper_values_are_written_up_and_lower_ones_down(value: float) -> None:
    for digits in (1, 3, 6):
        assert float(down(value, digits)) <= value <= float(up(value, digits))
    assert float(up(value, 17)) == value == float(down(value, 17))
    assert up(math.inf) == "none"
    assert up(7.66513, 6) == down(7.66513, 6) == "7.66513"


def test_what_has_no_epsilon_is_null_and_none(turnout: Run) -> None:
    options = ("counts", "--rate", 1, "--floor", 10, "--delta", 1e-5)
    assert as_json(turnout, *options)["neighbours"]["replace"] == {"epsilon": None, "delta": 1e-5}
    assert "none" in turnout("account", *options).stdout


def test_noise_is_calibrated_rounded_up_and_checked(turnout: Run) -> None:
    answer = as_json(turnout, "calibrate", *SETTING, "--epsilon", 0.015, "--delta", 1e-6)
    ours = RandomParticipation(0.001, 0.1, 30, 1.0)
    best = calibrate(ours, "noise_multiplier", 0.015, 1e-6)
    assert answer["calibrated"] == "noise_multiplier"
    assert best <= answer["value"] <= best * 1.00001
    assert len(repr(answer["value"])) <= 7
    assert answer["noise_multiplier"] == answer["value"]
    assert answer["bound"] == "random_participation"
    reached = ours.replace(noise_multiplier=answer["value"]).delta(0.015)
    assert answer["delta_there"] == reached <= 1e-6
    noises = {key: record["noise_multiplier"] for key, record in schemes(answer).items()}
    # The values of science that the papers round down, rounded up.
    assert noises == {
        "random_participation": pytest.approx(2.37328, abs=1e-5),
        "weak_client_sampling": pytest.approx(7.66512, abs=2e-5),
        "only_local_sampling": pytest.approx(22.49746, abs=1e-4),
        "central_shuffling": pytest.approx(0.56737, abs=1e-5),
    }


@pytest.mark.parametrize(
    ("options", "field", "mechanism"),
    [
        (("-q", 0.1, "--noise", 2.5), "client_rate", RandomParticipation(1, 0.1, 30, 2.5)),
        (("-p", 0.001, "--noise", 2.5), "sample_rate", RandomParticipation(0.001, 1, 30, 2.5)),
    ],
)
def test_the_one_parameter_left_out_is_calibrated(
    turnout: Run, options: tuple[Any, ...], field: str, mechanism: RandomParticipation
) -> None:
    target = ("--local-size", 30, "--epsilon", 0.015, "--delta", 1e-6)
    answer = as_json(turnout, "calibrate", *options, *target)
    best = calibrate(mechanism, field, 0.015, 1e-6)
    assert answer["calibrated"] == field
    assert 0.99999 * best <= answer["value"] <= best
    assert answer["delta_there"] == mechanism.replace(**{field: answer["value"]}).delta(0.015)
    assert answer["delta_there"] <= answer["delta"] == 1e-6
    assert "schemes" not in answer


def test_a_local_size_is_calibrated_to_the_last_element(turnout: Run) -> None:
    options = (*RATES, "--noise", 2.5, "--calibrate", "local-size")
    answer = as_json(turnout, "calibrate", *options, "--epsilon", 0.015, "--delta", 1e-6)
    ours = RandomParticipation(0.001, 0.1, answer["value"], 2.5)
    assert isinstance(answer["value"], int)
    assert ours.delta(0.015) <= 1e-6 < ours.replace(local_size=answer["value"] + 1).delta(0.015)


def test_rounds_are_calibrated_to_the_last_one(turnout: Run) -> None:
    options = (*RATES, "--noise", 2.5, "--calibrate", "rounds", "--epsilon", 0.1, "--delta", 1e-5)
    answer = as_json(turnout, "calibrate", *options)
    weak = WeakClientSampling(0.001, 0.1, 2.5)
    assert answer["bound"] == "weak_client_sampling"
    assert answer["rounds"] == answer["value"] > 1
    assert weak.compose(answer["value"]).delta(0.1) == answer["delta_there"] <= 1e-5
    assert weak.compose(answer["value"] + 1).delta(0.1) > 1e-5
    text = turnout("account", "calibrate", *options).stdout
    assert f"rounds       {answer['value']:,}: the largest, rounded down" in text


def test_noise_for_many_rounds_is_calibrated(turnout: Run) -> None:
    options = (*RATES, "--rounds", 10, "--epsilon", 0.1, "--delta", 1e-5)
    answer = as_json(turnout, "calibrate", *options)
    weak = WeakClientSampling(0.001, 0.1, answer["value"])
    assert 0.999e-5 < weak.compose(10).delta(0.1) <= 1e-5
    assert "schemes" not in answer


def test_the_table_of_a_calibration_shows_value_target_and_check(turnout: Run) -> None:
    result = turnout("account", "calibrate", *SETTING, "-e", 0.015, "-d", 1e-6)
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    for text in (
        "2.37328: the least, rounded up",
        "epsilon 0.015 at delta 1e-06",
        "delta there",
        "22.4975",
        "not a guarantee",
    ):
        assert text in result.stdout


def test_a_target_that_every_value_meets_is_noted(turnout: Run) -> None:
    result = turnout(
        "account", "calibrate", "-q", 0.1, "--noise", 100, "--epsilon", 1, "--delta", 1e-5
    )
    assert result.exit_code == 0
    assert result.stderr == "note: the target is met by every client rate up to 1.0\n"


def test_a_target_out_of_reach_is_refused_in_one_line(turnout: Run) -> None:
    for options in (
        (*RATES, "--noise", 0.1, "--calibrate", "local-size", "-e", 0.01, "-d", 1e-9),
        (*RATES, "--noise", 0.01, "--calibrate", "rounds", "-e", 0.01, "-d", 1e-9),
    ):
        result = turnout("account", "calibrate", *options)
        assert result.exit_code == 1
        assert result.stdout == ""
        assert result.stderr.startswith("error: no ")
        assert len(result.stderr.splitlines()) == 1


def test_shuffled_reports_have_both_bounds_and_an_equal_gaussian(turnout: Run) -> None:
    setting = ("--epsilon-local", 1, "--domain-size", 2, "--nodes", 10_000, "-p", 0.5)
    shuffled = Shuffled(tn.DirectEncoding(1.0, 2), 10_000, tn.Bernoulli(0.5))
    answer = as_json(turnout, "shuffle", *setting, "--delta", 1e-6)
    assert answer["epsilon"] == shuffled.epsilon(1e-6)
    assert 0 < answer["lower_epsilon"] < answer["epsilon"]
    assert shuffled.lower_delta(answer["lower_epsilon"]) >= 1e-6
    assert shuffled.lower_delta(answer["lower_epsilon"] * 1.0001) < 1e-6
    assert answer["lower_delta"] is None
    assert answer["realized_epsilon"] <= 1.0
    noise = answer["gaussian"]["noise_multiplier"]
    assert GaussianMechanism(noise).delta(answer["epsilon"]) == pytest.approx(1e-6, rel=1e-9)
    assert answer["gaussian"]["standard_deviation"] == math.sqrt(2) * noise

    answer = as_json(turnout, "shuffle", *setting, "--epsilon", 0.03)
    assert answer["delta"] == shuffled.delta(0.03)
    assert answer["lower_delta"] == shuffled.lower_delta(0.03)
    assert 0 < answer["lower_delta"] < answer["delta"]
    assert answer["lower_epsilon"] is None


def test_the_table_of_shuffling_says_what_is_hidden(turnout: Run) -> None:
    setting = ("--epsilon-local", 1, "-k", 10, "-n", 100_000)
    result = turnout("account", "shuffle", *setting, "-p", 0.5, "--delta", 1e-6)
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    for text in ("50 %, hidden", "and at least", "by a trusted curator", "10 labels"):
        assert text in result.stdout
    beyond = turnout("account", "shuffle", *setting, "--epsilon", 2)
    assert beyond.exit_code == 0
    assert "everyone" in beyond.stdout


def test_where_delta_is_zero_no_gaussian_is_equal(turnout: Run) -> None:
    options = ("--epsilon-local", 1, "-k", 4, "-n", 100, "--epsilon", 5)
    answer = as_json(turnout, "shuffle", *options)
    assert answer["delta"] == 0.0
    assert answer["gaussian"] == {"noise_multiplier": None, "standard_deviation": None}
    assert "none reaches a delta of 0" in turnout("account", "shuffle", *options).stdout


def test_batches_are_accounted_for_in_every_way_they_are_drawn(turnout: Run) -> None:
    setting = ("batches", "-n", 300, "-b", 29, "--noise", 2, "--passes", 1)
    answer = as_json(turnout, *setting, "--delta", 1e-5)
    ways = answer.pop("ways")
    assert answer == {
        "records": 300, "batch_size": 29, "batches": 10, "noise_multiplier": 2.0, "passes": 1,
    }  # fmt: skip
    fixed = FixedSizeBatches(29, 300, 2.0)
    expected = [
        ("poisson", LocalSampling(29 / 300, 2.0).compose(10)),
        ("fixed_size", fixed.compose(10, "add_or_remove")),
        ("fixed_size", fixed.compose(10)),
        ("shuffled", ShuffledBatches(10, 2.0).compose(1)),
        ("dealt", RandomCheckIns(1.0, 10, 2.0).compose(1)),
    ]
    for way, (name, composition) in zip(ways, expected, strict=True):
        bounds = composition.epsilon_bounds(1e-5)
        assert (way["way"], way["neighbours"]) == (name, composition.adjacency)
        assert (way["lower_epsilon"], way["epsilon"]) == pytest.approx(tuple(bounds), rel=1e-7)
        assert (way["reached"], way["delta"]) == (bounds.reached, 1e-5)
    table = turnout("account", *setting, "--epsilon", 0.5).stdout
    assert max(map(len, table.splitlines())) <= 80
    for text in ("300, in 10 batches of 29", "dealt at random", "one record is another"):
        assert text in table
    for options in (("-b", 300), ("-n", 10**8, "-b", 2), ("--delta", 0.1, "--epsilon", 1)):
        refused = turnout("account", *setting, "--epsilon", 1, *options)
        assert refused.exit_code == 2


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_pictures_are_saved_beside_table_and_json(
    tmp_path: Path, turnout: Run, suffix: str, start: bytes
) -> None:
    picture = tmp_path / f"cost.{suffix}"
    options = ("participation", *SETTING, "--noise", 2.5, "--delta", 1e-6, "--plot", picture)
    assert as_json(turnout, *options)["delta"] == 1e-6
    assert picture.read_bytes().startswith(start)
    result = turnout("account", *options)
    assert result.stdout.endswith(f"The picture: {picture}\n")
    assert list(tmp_path.iterdir()) == [picture]


def test_a_picture_of_many_rounds_is_saved(tmp_path: Path, turnout: Run) -> None:
    picture = tmp_path / "rounds.png"
    options = ("--noise", 2.5, "--rounds", 2, "--epsilon", 0.1, "--plot", picture)
    result = turnout("account", "participation", *RATES, *options)
    assert result.exit_code == 0, result.stderr
    assert len(picture.read_bytes()) > 10_000


def test_ways_to_draw_batches_are_drawn_beside_each_other(tmp_path: Path, turnout: Run) -> None:
    picture = tmp_path / "ways.svg"
    setting = ("batches", "-n", 300, "-b", 30, "--noise", 2, "--epsilon", 0.5)
    result = turnout("account", *setting, "--plot", picture)
    assert result.stdout.endswith(f"The picture: {picture}\n"), result.stderr
    assert picture.read_bytes().startswith(b"<?xml")


def test_a_picture_that_cannot_be_written_leaves_nothing(tmp_path: Path, turnout: Run) -> None:
    picture = tmp_path / "no" / "cost.png"
    options = ("--noise", 2.5, "--delta", 1e-6, "--plot", picture)
    result = turnout("account", "participation", *RATES, *options)
    assert result.exit_code == 1
    assert result.stderr == f"error: {picture}: No such file or directory\n"
    assert list(tmp_path.iterdir()) == []


PARTICIPATION = ("participation", *RATES, "--noise", 1)
TARGET = ("-e", 1, "-d", 1e-5)


@pytest.mark.parametrize(
    "arguments",
    [
        (*PARTICIPATION,),
        (*PARTICIPATION, *TARGET),
        ("participation", *RATES, "--delta", 1e-5),
        ("participation", "-p", 0, "-q", 0.1, "--noise", 1, "--delta", 1e-5),
        ("participation", "-p", 1.5, "-q", 0.1, "--noise", 1, "--delta", 1e-5),
        ("participation", *RATES, "--noise", 0, "--delta", 1e-5),
        ("participation", *RATES, "--noise", "inf", "--delta", 1e-5),
        (*PARTICIPATION, "--delta", 0),
        (*PARTICIPATION, "--delta", 1),
        (*PARTICIPATION, "--delta", "nan"),
        (*PARTICIPATION, "--epsilon", 0),
        (*PARTICIPATION, "--epsilon", "inf"),
        (*PARTICIPATION, "--delta", 1e-5, "--rounds", 0),
        (*PARTICIPATION, "--delta", 1e-5, "--local-size", -1),
        (*PARTICIPATION, "--delta", 1e-5, "--adjacency", "replace"),
        (*PARTICIPATION, "--delta", 1e-5, "--plot", "cost.gif"),
        ("calibrate", *RATES, "-e", 1),
        ("calibrate", *RATES, "-d", 1e-5),
        ("calibrate", *RATES, "--noise", 1, *TARGET),
        ("calibrate", "-p", 0.1, *TARGET),
        ("calibrate", *RATES, "--noise", 1, *TARGET, "--calibrate", "noise"),
        ("calibrate", *RATES, *TARGET, "--calibrate", "rounds"),
        ("calibrate", *RATES, "--noise", 1, *TARGET, "--calibrate", "rounds", "--rounds", 2),
        ("calibrate", *RATES, *TARGET, "--calibrate", "epsilon"),
        ("shuffle", "--epsilon-local", 1, "-k", 10, "-n", 100),
        ("shuffle", "--epsilon-local", 1, "-k", 10, "-n", 100, *TARGET),
        ("shuffle", "--epsilon-local", 1, "-k", 1, "-n", 100, "-d", 1e-5),
        ("shuffle", "--epsilon-local", 0, "-k", 10, "-n", 100, "-d", 1e-5),
        ("shuffle", "--epsilon-local", 1, "-k", 10, "-n", 0, "-d", 1e-5),
        ("shuffle", "--epsilon-local", 1, "-k", 10, "-n", 100, "-p", 0, "-d", 1e-5),
        ("counts", "--rate", 0.5, "--floor", 10),
        ("counts", "--rate", 0.5, "--floor", 10, *TARGET),
        ("counts", "--rate", 0.5, "-e", 1),
        ("counts", "--floor", 10, "-e", 1),
        ("counts", "--rate", 2, "--floor", 10, "-e", 1),
        ("counts", "--rate", 0.5, "--floor", -1, "-e", 1),
        ("counts", "--rate", 0.5, "-e", 1, "--calibrate", "floor"),
        ("counts", "--rate", 0.5, "--floor", 10, *TARGET, "--calibrate", "floor"),
        ("counts", *TARGET, "--calibrate", "rate"),
        ("magic",),
    ],
)
def test_wrong_usage_exits_with_2(turnout: Run, arguments: tuple[Any, ...]) -> None:
    result = turnout("account", *arguments)
    assert result.exit_code == 2
    assert result.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        (*PARTICIPATION, "--delta", 1e-5, "--rounds", 10**9 + 1),
        (*PARTICIPATION, "--delta", 1e-5, "--local-size", 2**53 + 1),
        ("calibrate", *RATES, *TARGET, "--rounds", 10**9 + 1),
        ("shuffle", "--epsilon-local", 1, "-k", 10, "-n", 10**10 + 1, "-d", 1e-5),
        ("counts", "--rate", 0.5, "--floor", 10**7 + 1, "-e", 1),
    ],
)
def test_what_accounting_refuses_is_one_line(turnout: Run, arguments: tuple[Any, ...]) -> None:
    result = turnout("account", *arguments)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1


def test_the_example_of_the_documentation_runs_in_its_own_process(turnout_process: Run) -> None:
    result = turnout_process(
        *("account", "participation", "--client-rate", ".001", "--sample-rate", ".1"),
        *("--local-size", 30, "--noise", 2.5, "--rounds", 1000, "--delta", "1e-5"),
    )
    assert result.returncode == 0, result.stderr
    assert "random participation" in result.stdout
    # Where the machine is slow there are lines of progress.
    assert [line for line in result.stderr.splitlines() if not line.endswith(" s")] == []
