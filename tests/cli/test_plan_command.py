"""``turnout plan``, and the choice of an oracle in ``turnout randomize``."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import csv as arrow_csv

import turnout as tn
from turnout.collecting.report_files import read_reports
from turnout.frequency.choice import registered
from turnout.planning.choice import choose_oracle
from turnout.planning.planner import plan as make_plan

Run = Callable[..., Any]

SETTING = ("--epsilon", 1, "--domain-size", 50, "--nodes", 1_000_000)


def test_the_summary_says_what_to_do(turnout: Run) -> None:
    proposal = make_plan(epsilon=1.0, domain_size=50, nodes=10**6, value=0.01)
    result = turnout("plan", *SETTING, "--value", 0.01)
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    for words in (
        proposal.oracle.name,
        f"{100 * proposal.rate:.6g} % of the people",
        f"{proposal.expected_reports:,.0f} of 1,000,000 people",
        "0.01: root mean squared error of a frequency",
        "why",
    ):
        assert words in text
    assert "→" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    "setting",
    [
        ("-e", ".5:4", "-k", 50, "-v", 0.01, "--target", "max_error", "--budget", 200_000),
        ("-e", 1, "-k", 1_000_000),
    ],
)
def test_the_choice_is_marked_and_no_number_is_cut(setting: tuple[Any, ...], turnout: Run) -> None:
    result = turnout("plan", "-n", 1_000_000, *setting)
    assert result.exit_code == 0
    assert sum(line.startswith(" → ") for line in result.stdout.splitlines()) == 1
    assert "…" not in result.stdout
    assert "1,000,000" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_programs_get_everything(turnout: Run) -> None:
    given = ("--target", "max_error", "--value", 0.05, "--confidence", 0.9, "--cost-per-bit", 0.5)
    result = turnout("plan", *SETTING, *given, "--check", 20, "--seed", 1, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    proposal = make_plan(
        epsilon=1.0, domain_size=50, nodes=10**6, target="max_error", value=0.05, confidence=0.9,
        cost_per_bit=0.5,
    )  # fmt: skip
    check = proposal.simulate(20, seed=1)
    assert found == {
        "oracle": proposal.oracle.name,
        "epsilon": 1.0,
        "report_bits": proposal.oracle.report_bits,
        "participation": proposal.rate,
        "nodes": 10**6,
        "domain_size": 50,
        "target": "max_error",
        "value": 0.05,
        "budget": None,
        "confidence": 0.9,
        "error": proposal.error,
        "errors": proposal.errors,
        "expected_reports": proposal.expected_reports,
        "expected_bits": proposal.expected_bits,
        "cost": proposal.cost,
        "candidates": found["candidates"],
        "check": {
            "measured": check.measured, "standard_error": check.standard_error, "runs": 20,
        },
        "plan_file": None,
    }  # fmt: skip
    assert {each["oracle"] for each in found["candidates"]} == set(registered())
    best = found["candidates"][0]
    assert (best["oracle"], best["cost"], best["remark"]) == (
        proposal.oracle.name, proposal.cost, None,
    )  # fmt: skip


def test_epsilon_is_a_number_a_range_or_a_list(turnout: Run) -> None:
    setting = ("-k", 20, "-n", 100_000, "-v", 0.01, "--json")
    listed = json.loads(turnout("plan", "-e", "0.5,2,1", *setting).stdout)
    assert listed["epsilon"] == 2.0
    assert {each["epsilon"] for each in listed["candidates"]} == {0.5, 1.0, 2.0}
    ranged = json.loads(turnout("plan", "-e", "0.5:4", "-b", 20_000, *setting).stdout)
    assert 0.5 < ranged["epsilon"] < 4.0
    assert ranged["cost"] <= 20_000
    for wrong in ("one", "1:2:3", "1,", ""):
        result = turnout("plan", "-e", wrong, *setting)
        assert result.exit_code == 2
        assert "--epsilon" in result.stderr


def test_a_plan_of_a_stated_participation_goes_from_the_file_to_the_estimate(
    tmp_path: Path, turnout: Run
) -> None:
    file, answers = tmp_path / "plan.json", tmp_path / "answers.csv"
    setting = ("-e", 3, "-n", 20_000, "--labels", "no,yes", "--participation", 0.2)
    result = turnout("plan", *setting, "-o", file)
    assert result.exit_code == 0
    assert "20 % of the people" in " ".join(result.stdout.split())
    written = tn.Plan.read(file)
    assert written.participation == tn.Bernoulli(0.2)
    best = make_plan(epsilon=3.0, domain=["no", "yes"], nodes=20_000, participation=0.2)
    assert written == best.collection_plan
    found = json.loads(turnout("plan", *setting, "--json").stdout)
    assert (found["participation"], found["error"]) == (0.2, best.error)
    answers.write_text("vote\n" + "no\n" * 14_000 + "yes\n" * 6_000)
    made = ("--plan", file, "--seed", 1, "-o", tmp_path / "reports.parquet")
    assert turnout("randomize", answers, "-c", "vote", *made).exit_code == 0
    turnout("tally", tmp_path / "reports.parquet", "-o", tmp_path / "votes.tally")
    shown = json.loads(turnout("estimate", tmp_path / "votes.tally", "--json").stdout)
    assert shown["nodes"] == 20_000
    assert abs(shown["received"] - 4000) < 5 * 3200**0.5
    (yes,) = (each for each in shown["estimates"] if each["label"] == "yes")
    assert abs(yes["frequency"] - 0.3) < 5 * best.error


def test_the_picture_is_saved(tmp_path: Path, turnout: Run) -> None:
    for name in ("plan.png", "plan.svg", "plan.pdf"):
        result = turnout("plan", *SETTING, "--value", 0.01, "--plot", tmp_path / name)
        assert result.exit_code == 0
        assert (tmp_path / name).stat().st_size > 5000
    assert turnout("plan", *SETTING, "--plot", tmp_path / "plan.txt").exit_code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan.pdf", "plan.png", "plan.svg"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--value", 1e-9), 1, "value must be at least"),
        (("--value", 0.0), 1, "value must be a finite number above 0"),
        (("--value", 0.01, "--budget", 30), 1, "budget must be at least"),
        (
            ("--report-bits", 1, "--oracle", "direct_encoding"),
            1,
            "-bits must be at least 6",
        ),
        (("--oracle", "rappor"), 2, "'rappor' is none of binary-local-hashing,"),
        (("--oracle", "auto"), 2, "'auto' is none of binary-local-hashing,"),
        (("--labels", "a,b"), 1, "--domain-size is 50, but there are 2 labels"),
        (("--labels", "a,b", "--labels-file", "none.txt"), 2, "not both"),
        (("--labels-file", "none.txt"), 1, "none.txt: No such file"),
        (("--sign", "none.key"), 2, "needs --output: there is no plan file to sign"),
        (("--sign", "none.key", "-o", "none.json"), 1, "none.key: No such file"),
        (("--cost-per-report", 0), 1, "must not both be 0"),
        (("--cost-per-report", -1), 2, "--cost-per-report"),
        (("--confidence", 1), 2, "--confidence"),
        (("--target", "mse"), 2, "--target"),
        (("--check", 1), 2, "--check"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(
    turnout: Run, arguments: tuple[Any, ...], code: int, message: str
) -> None:
    result = turnout("plan", *SETTING, *arguments)
    assert result.exit_code == code
    assert message in " ".join(result.stderr.split())
    assert result.stdout == ""
    if code == 1:
        assert len(result.stderr.splitlines()) == 1


def test_only_named_oracles_are_compared(turnout: Run) -> None:
    result = turnout("plan", *SETTING, "--oracle", "direct-encoding", "--json")
    assert [each["oracle"] for each in json.loads(result.stdout)["candidates"]] == [
        "direct_encoding"
    ]


# turnout plan --output


def test_the_plan_file_is_that_of_the_proposal(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "plan.json"
    result = turnout("plan", *SETTING, "--value", 0.01, "--output", path)
    assert result.exit_code == 0
    assert f"The plan file: {path}\n" in result.stdout
    proposal = make_plan(epsilon=1.0, domain_size=50, nodes=10**6, value=0.01)
    assert tn.Plan.read(path) == proposal.collection_plan
    assert tn.Plan.read(path).domain == tn.Domain.from_integers(50)


@pytest.mark.parametrize("where", ["option", "file"])
def test_the_labels_stand_in_the_plan_file(where: str, tmp_path: Path, turnout: Run) -> None:
    path, labels = tmp_path / "plan.json", ["never", "once", "often", "\u00e9"]
    listed = tmp_path / "labels.txt"
    listed.write_text("\n".join(labels) + "\n", encoding="utf-8")
    given = ("--labels", ",".join(labels)) if where == "option" else ("--labels-file", listed)
    options = ("-e", 1, "-n", 10_000, "-v", 0.05, "--check", 10, "-o", path, "--json")
    for size in ((), ("-k", 4)):
        result = turnout("plan", *options, *given, *size)
        assert result.exit_code == 0, result.stderr
        plan = tn.Plan.read(path)
        assert plan.domain.labels == tuple(labels)
        found = json.loads(result.stdout)
        assert found["domain_size"] == 4
        assert found["oracle"] == plan.oracle.name
        assert found["plan_file"] == {
            "path": str(path),
            "fingerprint": plan.fingerprint,
            "public_key": None,
        }


def test_a_plan_file_is_signed(tmp_path: Path, turnout: Run) -> None:
    path, key = tmp_path / "plan.json", tmp_path / "plans.key"
    assert turnout("key", "new", key).exit_code == 0
    public_key = turnout("key", "public", key).stdout.strip()
    result = turnout("plan", *SETTING, "-v", 0.01, "-o", path, "--sign", key)
    assert result.exit_code == 0
    assert f"The plan file: {path}, signed by {public_key}\n" in result.stdout
    assert tn.Plan.read(path, public_key=public_key).oracle.epsilon == 1.0
    result = turnout("plan", *SETTING, "-v", 0.01, "-o", path, "--sign", key, "--json")
    assert json.loads(result.stdout)["plan_file"]["public_key"] == public_key


def test_a_plan_file_has_a_serial_and_ends(tmp_path: Path, turnout: Run) -> None:
    path, key = tmp_path / "plan.json", tmp_path / "plans.key"
    turnout("key", "new", key)
    for text in ("2031-06-30T22:00:00Z", "2031-07-01T00:00:00+02:00"):
        terms = ("--serial", 3, "--expires", text)
        result = turnout("plan", *SETTING, "-v", 0.01, "-o", path, "--sign", key, *terms, "--json")
        assert result.exit_code == 0, result.stderr
        plan = tn.Plan.read(path, least_serial=3)
        assert (plan.serial, plan.expires) == (3, datetime(2031, 6, 30, 22, tzinfo=timezone.utc))
        assert json.loads(result.stdout)["plan_file"]["fingerprint"] == plan.fingerprint
    for text in ("2031-06-30", "2031-06-30T22:00:00", "tomorrow", ""):
        result = turnout("plan", *SETTING, "-o", path, "--expires", text)
        assert result.exit_code == 2
        assert "2030-12-31T00:00:00Z" in result.stderr
    for terms in (("--serial", 3), ("--expires", "2031-06-30T22:00:00Z")):
        result = turnout("plan", *SETTING, *terms)
        assert result.exit_code == 2
        assert "needs --output, which writes" in " ".join(result.stderr.split())


def test_nobody_is_randomized_under_a_plan_that_has_expired(tmp_path: Path, turnout: Run) -> None:
    path, answers = tmp_path / "plan.json", tmp_path / "answers.csv"
    answers.write_text("answer\na\nb\n")
    end = datetime(2001, 1, 1, tzinfo=timezone.utc)
    oracle = tn.DirectEncoding(1.0, tn.Domain(["a", "b"]))
    tn.Plan(oracle, tn.Everyone(), expires=end).write(path)
    result = turnout(
        "randomize", answers, "-o", tmp_path / "r.parquet", "--plan", path, "-c", "answer"
    )
    assert result.exit_code == 1
    assert "the plan expired at 2001-01-01" in result.stderr
    assert not (tmp_path / "r.parquet").exists()


def test_a_plan_file_is_written_whole_or_not_at_all(tmp_path: Path, turnout: Run) -> None:
    key = tmp_path / "plans.key"
    turnout("key", "new", key)
    before = key.read_bytes()
    result = turnout("plan", *SETTING, "-o", key, "--sign", key)
    assert result.exit_code == 1
    assert "is an input" in result.stderr
    assert turnout("plan", *SETTING, "-v", 1e-9, "-o", tmp_path / "plan.json").exit_code == 1
    key.write_bytes(before[:-2])
    result = turnout("plan", *SETTING, "-o", tmp_path / "plan.json", "--sign", key)
    assert result.exit_code == 1
    assert "not a signing key of turnout" in result.stderr
    assert json.loads(before)["secret"] not in result.stderr
    assert list(tmp_path.iterdir()) == [key]


def test_the_answers_must_be_named_or_counted(turnout: Run) -> None:
    result = turnout("plan", "-e", 1, "-n", 1000)
    assert result.exit_code == 2
    assert "--domain-size, --labels or" in result.stderr


def test_no_plan_file_is_null(turnout: Run) -> None:
    assert json.loads(turnout("plan", *SETTING, "--json").stdout)["plan_file"] is None


# turnout randomize --oracle


@pytest.mark.parametrize("name", sorted(registered()))
def test_every_oracle_can_randomize(name: str, people: Path, tmp_path: Path, turnout: Run) -> None:
    target = tmp_path / "out.parquet"
    result = turnout(
        "randomize", people, "-c", "answer", "-e", 1, "--oracle", name.replace("_", "-"),
        "--labels", "never,once,often", "-o", target,
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert name.replace("_", " ") in " ".join(result.stdout.split())
    reports = read_reports(target)
    assert reports.oracle == registered()[name](1.0, tn.Domain(["never", "once", "often"]))
    assert len(reports) == 600


def test_auto_takes_the_best_and_says_so(people: Path, tmp_path: Path, turnout: Run) -> None:
    # A CSV file does not say how many rows it has.
    typed, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(arrow_csv.read_csv(people), typed)
    options = ("-c", "answer", "-e", 1, "--labels", "never,once,often", "-o", target)
    result = turnout("randomize", typed, *options, "--oracle", "auto")
    assert result.exit_code == 0
    choice = choose_oracle(1.0, tn.Domain(["never", "once", "often"]))
    assert f"--oracle auto: {choice.oracle.name}" in result.stderr
    assert read_reports(target).oracle == choice.oracle


def test_an_unknown_oracle_is_refused_before_anything_is_read(tmp_path: Path, turnout: Run) -> None:
    result = turnout(
        "randomize", tmp_path / "none.csv", "-c", "answer", "-e", 1, "--oracle", "rappor",
        "-o", tmp_path / "out.parquet",
    )  # fmt: skip
    assert result.exit_code == 2
    assert "'rappor' is none of auto, binary-local-hashing" in " ".join(
        result.stderr.replace("│", " ").split()
    )


def test_reports_of_gigabytes_are_announced(
    people: Path, tmp_path: Path, turnout: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turnout.cli.randomize._LARGE", 600 * 96 // 8)
    # A CSV file does not say how many rows it has.
    typed, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pq.write_table(arrow_csv.read_csv(people), typed)
    options = ("-c", "answer", "-e", 1, "--labels", "never,once,often", "-o", target)
    result = turnout("randomize", typed, *options, "--oracle", "summation-histogram-encoding")
    assert result.exit_code == 0
    assert (
        "600 reports of 96 bits are 7.2 kB: turnout plan --report-bits 64 finds oracles"
        in " ".join(result.stderr.split())
    )
    assert "of 2 bits" not in turnout("randomize", typed, *options).stderr


def test_what_cannot_be_chosen_stands_in_one_line_for_each_reason(turnout: Run) -> None:
    given = ("-e", 1, "-k", 20, "-n", 10_000, "-v", 0.02, "--budget", 9350, "--report-bits", 200)
    text = " ".join(turnout("plan", *given).stdout.split())
    found = json.loads(turnout("plan", *given, "--json").stdout)["candidates"]
    refused = [each for each in found if each["remark"] is not None]
    assert len(refused) == 9
    groups: dict[str, list[str]] = {}
    for each in refused:
        if each["report_bits"] > 200:
            reason = "reports of more than 200 bits"
        elif each["error"] > 0.02:
            reason = "error above 0.02, also if everyone reports"
        else:
            assert each["cost"] > 9350
            reason = "cost above the budget of 9,350"
        groups.setdefault(reason, []).append(each["oracle"].replace("_", " "))
    assert len(groups) == 3
    for reason, names in groups.items():
        assert f"{reason}: {', '.join(names)}" in text
        assert text.count(reason) == 1
    assert "at best, with all nodes" not in text


def test_an_oracle_that_is_not_to_be_had_says_why(turnout: Run) -> None:
    shown = turnout("plan", "-e", 1, "-k", 2**21, "-n", 10**7)
    assert "symmetric unary encoding: domain must have at most" in " ".join(shown.stdout.split())
