"""``turnout aggregate``: every mechanism, its table, its JSON, its refusals."""

from __future__ import annotations

import dataclasses
import html
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.texts import without_paths

import turnout as tn
from turnout.distributed import (
    NoisyAggregation,
    SamplingAggregation,
    TwoStageSampling,
    VerifiedAggregation,
    mechanism_from_dict,
    recommend,
)

Run = Callable[..., Any]
LABELS = ("never", "once", "often")
STATED = ("--labels", "never,once,often")
TRUTH = {"never": 300, "once": 200, "often": 100}
USERS = 600

#: The options of each mechanism, and what they should make.
MECHANISMS: dict[str, tuple[tuple[object, ...], Callable[[tn.Domain], Any]]] = {
    "sampling": (
        ("-d", 1e-5, "--dummies", 50, "--parties", 2),
        lambda domain: SamplingAggregation(
            domain, USERS, epsilon=1.0, delta=1e-5, dummies=50, parties=2
        ),
    ),
    "two-stage": (
        ("-d", 1e-3, "--floor", 90, "--reported", 2, "--gamma", 3,
         "--elected", 4, "--max-colluding-users", 2),
        lambda domain: TwoStageSampling(
            domain, USERS, epsilon=1.0, delta=1e-3, floor=90, reported=2, gamma=3.0,
            elected=4, max_colluding_users=2,
        ),
    ),
    "discrete-laplace": (
        ("--parties", 4, "--max-missing-users", 7),
        lambda domain: NoisyAggregation(
            domain, USERS, epsilon=1.0, parties=4, max_missing_users=7
        ),
    ),
    "discrete-gaussian": (
        ("-d", 1e-5, "--source", "parties", "--honest-aggregators", 2),
        lambda domain: NoisyAggregation(
            domain, USERS, noise="discrete_gaussian", epsilon=1.0, delta=1e-5, source="parties",
            honest_aggregators=2,
        ),
    ),
    "skellam": (
        ("-d", 1e-5, "--parties", "users", "--adjacency", "add_or_remove"),
        lambda domain: NoisyAggregation(
            domain, USERS, noise="skellam", epsilon=1.0, delta=1e-5, parties="users",
            adjacency="add_or_remove",
        ),
    ),
    "verified": (
        ("--aggregators", 3, "--participation", 0.5),
        lambda domain: VerifiedAggregation(
            domain, USERS, epsilon=1.0, aggregators=3, participation=0.5
        ),
    ),
}  # fmt: skip


def arguments(people: Path, name: str, *options: object) -> tuple[object, ...]:
    return ("aggregate", people, "-c", "answer", "-m", name, "-e", 1, *STATED, *options)


def as_json(turnout: Run, people: Path, name: str, *options: object) -> dict[str, Any]:
    result = turnout(*arguments(people, name, "--json", *options))
    assert result.exit_code == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_options_make_the_mechanism_and_its_round_is_published(
    people: Path, turnout: Run, name: str
) -> None:
    options, make = MECHANISMS[name]
    expected = make(tn.Domain(LABELS))
    answer = as_json(turnout, people, name, "--interval", 1 - 1e-6, *options)
    assert mechanism_from_dict(answer["plan"]) == expected
    assert (answer["nodes"], answer["received"]) == (USERS, USERS)
    assert not any(answer["left_out"].values())
    assert answer["method"] == expected.name
    assert "not a deployment" in answer["run"]
    assert answer["expected_error"] == expected.expected_error()
    for record in answer["estimates"]:
        assert list(record) == ["label", "count", "frequency", "standard_error", "low", "high"]
        assert record["low"] <= TRUTH[record["label"]] / USERS <= record["high"]
    promise = expected.guarantee
    assert answer["guarantee"] == {
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "adjacency": promise.adjacency,
        "accounting": repr(promise.mechanism),
        "assumptions": list(promise.assumptions),
    }


def test_what_was_calibrated_is_told(people: Path, turnout: Run) -> None:
    def found(name: str) -> dict[str, Any]:
        answer: dict[str, Any] = as_json(turnout, people, name, *MECHANISMS[name][0])
        return answer["parameters"]

    domain = tn.Domain(LABELS)
    sampling = MECHANISMS["sampling"][1](domain)
    assert found("sampling") == {
        "field": sampling.field.modulus, "rate": sampling.rate, "dummies_an_item": 100,
    }  # fmt: skip
    two_stage = MECHANISMS["two-stage"][1](domain)
    assert found("two-stage") == {
        "field": two_stage.field.modulus,
        "rate": two_stage.rate,
        "dummies_an_item": 0,
        "own_probability": two_stage.own_probability,
        "sampling_probability": two_stage.rate * two_stage.own_probability,
        "reporting_epsilon": two_stage.reporting_epsilon,
    }
    noisy = MECHANISMS["discrete-laplace"][1](domain)
    assert found("discrete-laplace") == {
        "field": noisy.field.modulus,
        "parameter": noisy.parameter,
        "noise_variance": noisy.law().variance,
    }


def test_the_costs_are_those_of_the_library(people: Path, turnout: Run) -> None:
    options, make = MECHANISMS["sampling"]
    answer = as_json(turnout, people, "sampling", *options)
    values = [label for label, count in TRUTH.items() for _ in range(count)]
    costs = make(tn.Domain(LABELS)).run(values).costs
    assert set(answer["costs"]) == {"user", "aggregator", "server"}
    for role, found in answer["costs"].items():
        assert found.pop("parties") == costs.parties[role]
        wanted = dataclasses.asdict(costs.average(role))
        assert set(found) == set(wanted)
        for name in ("messages", "bytes", "additions", "coins"):
            assert found[name] == pytest.approx(wanted[name])
        # The last draws of a share may be rejected.
        assert found["draws"] == pytest.approx(wanted["draws"], rel=0.2)


def test_a_seed_repeats_a_round_and_says_what_it_is_for(people: Path, turnout: Run) -> None:
    options = MECHANISMS["sampling"][0]

    def estimates(*more: object) -> Any:
        return as_json(turnout, people, "sampling", *options, *more)["estimates"]

    assert estimates("--seed", 5) == estimates("--seed", 5)
    assert estimates("--seed", 5) != estimates("--seed", 6)
    assert estimates() != estimates()
    result = turnout(*arguments(people, "sampling", *options, "--seed", 5))
    assert "use for tests only" in result.stderr


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_table_fits_80_columns_and_says_what_the_guarantee_rests_on(
    people: Path, turnout: Run, name: str
) -> None:
    options, make = MECHANISMS[name]
    result = turnout(*arguments(people, name, *options))
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    assert max(map(len, without_paths(result.stdout))) <= 80
    text = " ".join(result.stdout.split())
    assert "all parties in this process, to study the mechanism; not a deployment" in text
    for sentence in make(tn.Domain(LABELS)).guarantee.assumptions:
        assert sentence in text
    for word in (*LABELS, "95 % interval", "epsilon 1, delta", "What one party does"):
        assert word in text
    others = {"discrete-laplace": "0", "verified": "0", "two-stage": "0.001"}
    assert f"delta {others.get(name, '1e-05')}:" in text


def test_intervals_and_projections_are_those_of_the_estimate(people: Path, turnout: Run) -> None:
    def width(*options: object) -> float:
        records = as_json(turnout, people, "discrete-laplace", *options)["estimates"]
        # Limits are estimates plus and minus a half-width: equal ones differ in the last digits.
        return round(sum(record["high"] - record["low"] for record in records), 9)

    assert width("--interval", 0.5) < width() < width("--interval", 0.999)
    assert width() < width("--simultaneous", "sidak") <= width("--simultaneous", "bonferroni")
    answer = as_json(turnout, people, "discrete-laplace", "--project", "simplex")
    assert answer["postprocessing"] == "simplex"
    assert sum(record["frequency"] for record in answer["estimates"]) == pytest.approx(1)
    for order, labels in {"label": sorted(LABELS), "domain": list(LABELS)}.items():
        records = as_json(turnout, people, "discrete-laplace", "--sort", order)["estimates"]
        assert [record["label"] for record in records] == labels


def test_missing_answers_can_be_dropped(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "people.csv"
    path.write_text("answer,other\n" + "yes,1\nno,1\n?,1\n" * 50)
    fixed = ("aggregate", path, "-c", "answer", "-m", "discrete-laplace", "-e", 1)
    refused = turnout(*fixed, "--missing-value", "?")
    assert refused.exit_code == 1
    assert "50 answers are missing" in refused.stderr
    result = turnout(*fixed, "--missing-value", "?", "--missing", "drop")
    assert result.exit_code == 0, result.stderr
    assert "50 without an answer" in result.stdout
    answer = json.loads(
        turnout(*fixed, "--missing-value", "?", "--missing", "drop", "--json").stdout
    )
    assert (answer["left_out"]["unanswered"], answer["nodes"]) == (50, 100)
    assert "the 2 labels of the domain were taken from the data" in result.stderr


def test_pictures_are_saved(people: Path, tmp_path: Path, turnout: Run) -> None:
    for name, options in {
        "discrete-laplace": (),
        "recommend": ("-d", 1e-5),
    }.items():
        picture = tmp_path / f"{name}.png"
        result = turnout(*arguments(people, name, "--plot", picture, *options))
        assert result.exit_code == 0, result.stderr
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert f"The picture: {picture}" in result.stdout


def test_a_picture_never_overwrites_the_answers(people: Path, turnout: Run) -> None:
    link = people.with_suffix(".png")
    os.link(people, link)
    before = people.read_bytes()
    result = turnout(*arguments(people, "discrete-laplace", "--plot", link))
    assert result.exit_code == 1
    assert "is an input" in result.stderr
    assert people.read_bytes() == before


# A floor that the data at hand do not keep: 100 hold "often", 200 "once".


@pytest.mark.parametrize(
    ("name", "options", "what"),
    [
        ("sampling", ("-d", 1e-5), "the guarantee does not hold"),
        ("two-stage", ("-d", 1e-3, "--reported", 2), "the guarantee does not hold"),
        ("recommend", ("-d", 1e-5), "what holds for data with the floor does not hold"),
    ],
)
def test_a_floor_that_does_not_hold_is_told(
    people: Path, turnout: Run, name: str, options: tuple[object, ...], what: str
) -> None:
    result = turnout(*arguments(people, name, "--floor", 101, *options))
    assert result.exit_code == 0, result.stderr
    assert result.stderr.startswith("note: the floor of 101 does not hold here: 1 of 3 labels ")
    assert f"is held by fewer (often); {what} for this data" in result.stderr
    for floor, holds in ((100, True), (101, False)):
        assert as_json(turnout, people, name, "--floor", floor, *options)["floor_holds"] is holds
    assert turnout(*arguments(people, name, "--floor", 100, *options)).stderr == ""


def test_a_floor_on_which_nothing_rests_is_not_judged(people: Path, turnout: Run) -> None:
    dummies = ("-d", 1e-5, "--dummies", 50)
    for options in (dummies, (*dummies, "--floor", 150, "--max-colluding-users", 150)):
        result = turnout(*arguments(people, "sampling", "--json", *options))
        assert result.exit_code == 0, result.stderr
        assert result.stderr == ""
        assert json.loads(result.stdout)["floor_holds"] is None


# Comparing.


def test_what_is_below_a_threshold_has_no_standard_error(tmp_path: Path, turnout: Run) -> None:
    file = tmp_path / "answers.csv"
    file.write_text("answer\n" + "never\n" * 595 + "often\n" * 5, encoding="utf-8")
    options = ("-d", 1e-8, "--threshold", 20, "--seed", 1)
    found = as_json(turnout, file, "sampling", *options)
    rows = {row["label"]: row for row in found["estimates"]}
    assert rows["never"]["standard_error"] > 0.0
    assert [rows["often"][key] for key in ("count", "standard_error", "low")] == [0.0, None, 0.0]
    assert 5 / 600 < rows["often"]["high"] < 0.3
    shown = turnout(*arguments(file, "sampling", *options)).stdout
    assert "counts below 20 are not published" in " ".join(shown.split())
    assert "unknown" in shown


def test_recommend_compares_and_runs_nothing(people: Path, turnout: Run) -> None:
    answer = as_json(turnout, people, "recommend", "-d", 1e-5, "--floor", 90)
    expected = recommend(USERS, tn.Domain(LABELS), 1.0, 1e-5, floor=90)
    assert "estimates" not in answer
    assert [each["title"] for each in answer["recommendation"]] == [
        record.title for record in expected.records
    ]
    errors = [each["rmse"] for each in answer["recommendation"]]
    assert errors == sorted(errors)
    assert np.allclose(errors, [record.rmse for record in expected.records])
    assert any(each["conditional"] for each in answer["recommendation"])
    plans = [
        each["plan"] and mechanism_from_dict(each["plan"]) for each in answer["recommendation"]
    ]
    assert plans == [record.mechanism for record in expected.records]
    result = turnout(*arguments(people, "recommend", "-d", 1e-5))
    assert result.exit_code == 0
    assert max(map(len, without_paths(result.stdout))) <= 80
    text = " ".join(result.stdout.split())
    assert "run nothing: --mechanism names what is run" in text
    assert "discrete laplace noise by users" in text
    assert "std. error" not in text


def test_recommend_needs_no_delta(people: Path, turnout: Run) -> None:
    answer = as_json(turnout, people, "recommend")
    assert answer["delta"] == 0.0
    assert {each["delta"] for each in answer["recommendation"]} == {0.0}
    assert {each["reason"] for each in answer["refused"]} == {"needs a delta above 0"}
    result = turnout(*arguments(people, "recommend"))
    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    assert "epsilon 1 delta 0" in text
    assert (
        text.count("not compared (needs a delta above 0): discrete gaussian noise by users;") == 1
    )
    assert max(map(len, without_paths(result.stdout))) <= 80


# Refusals.


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("discrete-laplace", ("--floor", 3), "belongs to --mechanism sampling, two-stage"),
        ("skellam", ("-d", 1e-5, "--elected", 3), "belongs to --mechanism two-stage"),
        ("sampling", ("-d", 1e-5, "--source", "users", "--dummies", 9), "discrete-laplace"),
        ("two-stage", ("-d", 1e-5, "--parties", 3, "--reported", 2), "not to two-stage"),
        ("recommend", ("-d", 1e-5, "--dummies", 3), "not to recommend"),
        ("skellam", (), "needs --delta"),
        ("sampling", ("-d", 1e-5), "needs --floor or --dummies or --threshold"),
        ("two-stage", ("-d", 1e-5, "--reported", 2), "needs --floor or --dummies:"),
        ("two-stage", ("-d", 1e-5, "--threshold", 9), "belongs to --mechanism sampling"),
        ("sampling", ("-d", 1e-5, "--threshold", 9, "--dummies", 9),
         "--dummies: is not needed with --threshold"),
        ("two-stage", ("-d", 1e-5, "--floor", 9), "needs --reported"),
        ("two-stage", ("-d", 1e-5, "--floor", 9, "--reported", 2, "--elected", 9,
                       "--collusion-bound", 3), "give --elected or --collusion-bound, not both"),
        ("recommend", ("-d", 1e-5, "--seed", 4), "--seed: belongs to a round"),
        ("recommend", ("-d", 1e-5, "--project", "simplex"), "--project: belongs to a round"),
        ("recommend", ("-d", 1e-5, "--interval", 0.9), "--interval: belongs to a round"),
        ("discrete-laplace", ("--parties", "1"), "is not users"),
        ("discrete-laplace", ("--parties", "nobody"), "is not users"),
        ("discrete-laplace", ("--labels-file", "labels.txt"), "not both"),
        ("discrete-laplace", ("--plot", "answers.gif"), "does not end in"),
        ("discrete-laplace", ("--interval", "1"), "is not between 0 and 1"),
        ("discrete-laplace", ("-d", "2"), "is not between 0 and 1"),
        ("median", (), "median"),
    ],
)  # fmt: skip
def test_wrong_usage_exits_with_2(
    people: Path, turnout: Run, name: str, options: tuple[object, ...], text: str
) -> None:
    result = turnout(*arguments(people, name, *options))
    assert result.exit_code == 2
    assert result.stdout == ""
    shown = " ".join(result.stderr.replace("│", " ").split())
    assert text in shown


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_page_is_that_of_the_round(
    people: Path, turnout: Run, name: str, tmp_path: Path
) -> None:
    options, made = MECHANISMS[name]
    page = tmp_path / "page.html"
    asked = ("--report", page, "--title", "How often?", "--seed", 3, "--interval", 0.9)
    answer = as_json(turnout, people, name, *options, *asked)
    text = page.read_text(encoding="utf-8")
    assert "<h1>How often?</h1>" in text
    assert "To publish" in text
    assert "90 % interval" in text
    for each in answer["estimates"]:
        assert f"{each['label']}" in text
        assert any(f"{100 * each['frequency']:.{digits}f} %" in text for digits in (1, 2, 3))
    adders = {"two-stage": "elected users", "skellam": "all users", "verified": "3 aggregators"}
    parties = getattr(made(tn.Domain(LABELS)), "parties", None)
    assert adders.get(name, f"{parties} parties") in text
    for sentence in answer["guarantee"]["assumptions"]:
        assert sentence in html.unescape(text)
    notes = text.partition("What else to know")[2]
    assert "Made with a seed: use for tests only" in notes
    assert "All parties ran in this process, which saw the answers" in notes
    assert "does not hold for these answers" not in notes
    again = turnout(*arguments(people, name, *options, "--report", page))
    assert again.exit_code == 1
    assert "already exists" in again.stderr
    shown = turnout(*arguments(people, name, *options, "--report", page, "--overwrite"))
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.endswith(f"The page: {page}\n")
    assert page.read_text(encoding="utf-8") != text


def test_the_page_says_that_a_floor_does_not_hold(
    people: Path, turnout: Run, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    options = ("-d", 1e-5, "--floor", 150, "--report", page)
    assert turnout(*arguments(people, "sampling", *options)).exit_code == 0
    assert "does not hold for these answers" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "text", "code"),
    [
        (("--report", "a.pdf"), "a.pdf does not end in .html, .htm", 2),
        (("--title", "Vote?"), "--title: needs --report", 2),
        (("--overwrite",), "--overwrite: needs --report", 2),
        (("--report", "a.html", "--shrink"), "leave out --project and --shrink", 2),
        (("--report", "a.html", "-m", "recommend"), "belongs to a round", 2),
        (("--report", "nowhere/a.html"), "nowhere: the folder does not exist", 1),
    ],
)
def test_a_page_that_cannot_be_is_refused_before_the_round(
    people: Path, turnout: Run, options: tuple[object, ...], text: str, code: int
) -> None:
    result = turnout(*arguments(people, "skellam", "-d", 1e-5, *options))
    assert result.exit_code == code, result.stderr
    assert text in " ".join(result.stderr.replace("│", " ").split())
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("sampling", ("-d", 1e-5, "--threshold", 601), "threshold must be at most the 600 users"),
        ("two-stage", ("-d", 1e-5, "--floor", 9, "--reported", 4), "reported must be"),
        ("sampling", ("-d", 1e-5, "--floor", 601), "floor must be"),
        ("discrete-laplace", ("--honest-aggregators", 4), "--honest-aggregators must be"),
        ("discrete-laplace", ("--max-missing-users", 600), "must leave at least one user"),
        ("discrete-laplace", ("-c", "question"), "no column 'question'"),
        ("discrete-laplace", ("--labels", "never,once"), "not among the 2 labels"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line(
    people: Path, turnout: Run, name: str, options: tuple[object, ...], text: str
) -> None:
    result = turnout(*arguments(people, name, *options))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("error: ")
    assert text in result.stderr


def test_the_command_explains_itself_with_an_example(turnout: Run) -> None:
    result = turnout("aggregate", "--help")
    assert result.exit_code == 0
    assert "turnout aggregate adult.csv" in result.stdout
    assert max(map(len, without_paths(result.stdout))) <= 80


def test_counts_of_an_aggregation_are_shrunk_where_that_is_asked(
    turnout: Run, people: Path
) -> None:
    answer = as_json(turnout, people, "discrete-laplace", "--shrink", "--seed", 3)
    plain = as_json(turnout, people, "discrete-laplace", "--seed", 3)
    assert answer["postprocessing"] == "empirical_bayes"
    assert set(answer["shrinkage"]) == {"weights", "moved", "cautions"}
    assert sum(row["frequency"] for row in answer["estimates"]) == pytest.approx(1.0)
    low = [sorted(row["low"] for row in each["estimates"]) for each in (answer, plain)]
    assert low[0] == low[1]
    both = turnout(*arguments(people, "discrete-laplace", "--shrink", "--project", "simplex"))
    assert both.exit_code == 2
    assert "conflicts with --project" in " ".join(both.stderr.split())
