"""Joint tables on the command line: from columns to reports, tallies and shares."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import turnout as tn
from turnout.collecting.report_files import read_reports
from turnout.frequency.joint import ProductDomain
from turnout.pipeline.sources import open_source

Run = Callable[..., Any]
ROWS = [("f", "no"), ("f", "yes"), ("m", "no"), ("m", "yes"), ("m", "yes")]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    lines = [f"{sex},{vote},7" for sex, vote in ROWS * 400]
    path.write_text("\n".join(["sex,vote,other", *lines, "f,,1"]) + "\n", encoding="utf-8")
    return path


def test_columns_go_into_one_report_and_come_back_as_a_joint_table(
    table: Path, tmp_path: Path, turnout: Run
) -> None:
    target = tmp_path / "joint.parquet"
    options = ("-c", "sex", "--joint", "vote", "-e", 3, "--missing", "drop", "--seed", 5)
    result = turnout("randomize", table, *options, "-o", target)
    assert result.exit_code == 0, result.stderr
    assert "the labels of 'sex', 'vote' were taken from the data" in " ".join(result.stderr.split())
    tally = tmp_path / "joint.tally"
    assert turnout("tally", target, "-o", tally).exit_code == 0
    answer = json.loads(turnout("estimate", tally, "--json", "--sort", "domain").stdout)
    joint = tn.JointTable(3.0, ProductDomain({"sex": ["f", "m"], "vote": ["no", "yes"]}))
    expected = joint.collect(ROWS * 400, seed=5).estimate()
    assert [row["frequency"] for row in answer["estimates"]] == expected.frequencies.tolist()
    assert [row["label"] for row in answer["estimates"]][1] == ["f", "yes"]
    shown = turnout("estimate", tally).stdout
    assert "joint table" in shown
    given = json.loads(
        turnout("estimate", tally, "--json", "--given", "sex", "--sort", "domain").stdout
    )
    shares = expected.conditional("vote", given="sex")
    assert [row["share"] for row in given["estimates"]] == shares.shares.ravel().tolist()
    assert given["estimates"][3]["group"] == {"sex": "m"}
    assert given["estimates"][3]["low"] == shares["m", "yes"].low
    picture = tmp_path / "shares.png"
    drawn = turnout("estimate", tally, "--given", "sex", "--of", "vote", "--plot", picture)
    assert "of vote given sex" in drawn.stdout
    assert "95 %, Fieller's, for each share by itself" in drawn.stdout
    assert picture.exists()
    plan = tmp_path / "plan.json"
    tn.Plan(joint, tn.Everyone()).write(plan)
    again = tmp_path / "again.parquet"
    by_plan = ("-c", "sex", "--joint", "vote", "--plan", plan, "--missing", "drop", "--seed", 5)
    assert turnout("randomize", table, *by_plan, "-o", again).exit_code == 0
    assert read_reports(again) == read_reports(target)


def test_what_is_missing_differs_by_column_in_a_joint_table_too(
    tmp_path: Path, turnout: Run
) -> None:
    path, target = tmp_path / "people.csv", tmp_path / "joint.parquet"
    path.write_text("sex,vote,year\n" + 50 * "f,,1\nm,no,2\n,yes,1\nf,yes,\n")
    data = open_source(path)
    options = ("-c", "sex", "--joint", "vote", "--joint", "year", "-e", 3, "--seed", 5)
    rules = {"sex": "drop", "vote": "none", "year": 0}
    texts = [option for name, rule in rules.items() for option in ("--missing", f"{name}={rule}")]
    answers = tn.pipeline.scan(data, list(rules), missing=rules)
    oracle = tn.JointTable(3.0, answers.domains())
    assert oracle.domain.columns["year"].labels == (1, 2, 0)
    for given in ((), ("--labels", "vote=no,yes,none", "--labels", "year=1,2,0")):
        result = turnout("randomize", path, *options, *texts, *given, "-o", target, "--overwrite")
        assert result.exit_code == 0, result.stderr
        assert "50 without an answer" in result.stdout
        assert read_reports(target) == oracle.randomize(answers, seed=5)
    plan = tmp_path / "plan.json"
    for kind in (tn.SampledAttribute, tn.SplitBudget):
        tn.Plan(kind(3.0, answers.domains()), tn.Everyone()).write(plan)
        planned = [*options[:6], *options[8:], "--plan", plan, "-o", target, "--overwrite"]
        assert turnout("randomize", path, *planned, *texts).exit_code == 0
        expected = kind(3.0, answers.domains()).randomize(answers, seed=5)
        assert read_reports(target) == expected
    for wrong, code in (("drop", 0), ("none", 1)):
        found = turnout(
            "randomize", path, *options, "--missing", wrong, "-o", target, "--overwrite"
        )
        assert found.exit_code == code, wrong
    assert "column 'sex': --missing must be a label" in " ".join(found.stderr.split())


def test_columns_that_do_not_go_together_are_refused(
    table: Path, tmp_path: Path, turnout: Run
) -> None:
    target = tmp_path / "joint.parquet"
    start = ("randomize", table, "-o", target, "--missing", "drop", "-c")
    one, two = ("sex", "-e", 1), ("sex", "--joint", "vote")
    for given, message in (
        ((*two, "-e", 1, "--labels", "f,m"), "'f,m' does not begin with a column and ="),
        ((*two, "-e", 1, "--missing", "none"), "does not begin with a column and =, nor"),
        ((*two, "-e", 1, "--mean", "0:1"), "applies to one question"),
        (("sex", "--joint", "sex", "-e", 1), "--joint: names a column twice"),
        (("sex", "--joint", "height", "-e", 1), "height"),
    ):
        result = turnout(*start, *given)
        assert result.exit_code != 0
        assert message in " ".join(result.stderr.split())
    plan = tmp_path / "plan.json"
    for oracle, columns, message in (
        (tn.DirectEncoding(1.0, ["f", "m"]), two, "column must name one column"),
        (
            tn.JointTable(1.0, {"vote": ["no", "yes"], "sex": ["f", "m"]}),
            two,
            "--joint must name the questions of the plan in their order",
        ),
        (tn.JointTable(1.0, {"sex": ["f", "m"], "vote": ["no", "yes"]}), one[:1], "questions"),
    ):
        tn.Plan(oracle, tn.Everyone()).write(plan)
        result = turnout(*start, *columns, "--plan", plan)
        assert result.exit_code == 1
        assert message in " ".join(result.stderr.split())
    for more in (("--epsilon", 1), ("--plan", plan, "--joint", "vote")):
        result = turnout("randomize", table, "-o", target, *more)
        assert result.exit_code == 2
        assert "--column: is missing: name the column" in " ".join(result.stderr.split())
    tn.Plan(tn.SplitBudget(1.0, {"sex": ["f", "m"], "vote": ["no", "yes"]}), tn.Everyone()).write(
        plan
    )
    of_one = ("randomize", table, "-o", target, "--missing", "yes", "-c", *two, "--plan", plan)
    refused = " ".join(turnout(*of_one).stderr.split())
    assert "column 'sex': --missing must be a label of the domain or 'drop', got 'yes'" in refused
    assert not target.exists()


def test_shares_among_others_need_a_joint_table(tmp_path: Path, turnout: Run) -> None:
    tally = tmp_path / "plain.tally"
    tally.write_bytes(tn.DirectEncoding(1.0, 2).simulate([3, 4]).to_bytes())
    result = turnout("estimate", tally, "--given", "sex")
    assert result.exit_code == 1
    needed = "--given needs the tally of a joint table or of tables of two questions"
    assert needed in " ".join(result.stderr.split())
    alone = " ".join(turnout("estimate", tally, "--marginal", "sex").stderr.split())
    assert "--marginal needs the tally of several questions, got one of Direct" in alone
    three = tn.JointTable(1.0, {"a": 2, "b": 2, "c": 2}).simulate([5] * 8)
    tally.write_bytes(three.to_bytes())
    for options, message in (
        (("--given", "a"), "must name one question: 'b', 'c'"),
        (("--given", "z"), "--given must be one of 'a', 'b', 'c', got 'z'"),
        (("--given", "a", "--of", "a"), "--of must be one of 'b', 'c', got 'a'"),
        (("--given", "a", "--given", "a", "--of", "b"), "--given must name different questions"),
        (
            ("--given", "a", "--given", "b", "--given", "c"),
            "--given must leave out a question, whose shares are wanted",
        ),
        (("--of", "a"), "needs --given"),
        (("--given", "a", "--shrink"), "conflicts with --shrink"),
        (("--given", "a", "--marginal", "b"), "conflicts with --given: choose one of them"),
        (("--consistent",), "--consistent needs the tally of tables of two questions (PairTables)"),
        (("--marginal", "a", "--marginal", "a"), "--marginal must name different questions"),
        (("--marginal", "z"), "--marginal must be one of 'a', 'b', 'c', got 'z'"),
        (
            ("--marginal", "a", "--marginal", "b", "--marginal", "c"),
            "--marginal must leave out a question, got 'a', 'b', 'c'",
        ),
    ):
        result = turnout("estimate", tally, *options)
        assert result.exit_code != 0
        assert message in " ".join(result.stderr.split())


def test_tables_of_joint_shares_and_of_shares_given_others_by_group_too(
    tmp_path: Path, turnout: Run
) -> None:
    joint = tn.JointTable(3.0, {"sex": ["f", "m"], "vote": ["no", "some", "yes"]})
    one, same = (joint.simulate([400, 300, 100, 50, 200, 600], seed=1) for _ in range(2))
    nobody = joint.tally_type.empty(one.plan)
    grouped = tn.GroupedTally(["sex"], {"A": one, "B": nobody, "C": same})
    plain, groups = tmp_path / "one.tally", tmp_path / "groups.tally"
    plain.write_bytes(one.to_bytes())
    groups.write_bytes(grouped.to_bytes())
    table = tmp_path / "table.csv"
    for tally, rows in ((plain, 6), (groups, 18)):
        for command in ("estimate", "report"):
            assert turnout(command, tally, "-o", table).exit_code == 0
            lines = table.read_text(encoding="utf-8").splitlines()
            assert lines[0].split(",")[:1] == ['"sex"']
            assert '"vote"' in lines[0]
            assert len(lines) == 1 + rows
    means = tmp_path / "means.tally"
    means.write_bytes(tn.mean.Duchi(1.0).collect([0.5] * 9, seed=1).to_bytes())
    refused = turnout("report", means, "-o", tmp_path / "means.csv", "--clip")
    assert "--clip applies to intervals of shares" in " ".join(refused.stderr.split())
    options = ("--given", "sex", "--simultaneous", "bonferroni")
    found = json.loads(turnout("estimate", groups, "--json", *options).stdout)["estimates"]
    assert found[8]["reason"] == "the group has no nodes"
    assert found[0]["group"] == {"sex": "A", "given.sex": "f"}
    # Six shares in each of two groups with an estimate: so many intervals hold together.
    shares = one.estimate().conditional("vote", given="sex")
    alone = shares.to_records(1 - 0.05 / 12)
    place = next(place for place in range(3) if found[0]["label"] == alone[place]["label"])
    assert found[0]["low"] == pytest.approx(alone[place]["low"], abs=1e-12)
    assert [row["share"] for row in found[:3]] == sorted(shares.shares[0].tolist(), reverse=True)
    shown = turnout(
        "estimate", groups, "--given", "sex", "--top", 1, "--sort", "label", "--clip", "-o", table
    )
    assert "2 of 3 labels are left out in each group" in shown.stdout
    assert "cut to 0 and 1" in shown.stdout
    assert "some" not in shown.stdout
    assert table.read_text(encoding="utf-8").count("\n") == 19
    alone_shown = turnout("estimate", plain, "--given", "sex", "--top", 1).stdout
    assert "some" not in alone_shown
    before = table.read_bytes()
    drawn = turnout(
        "estimate", groups, "--given", "sex", "--top", "1", "-o", table,
        "--plot", tmp_path / "x.png",
    )  # fmt: skip
    assert drawn.exit_code == 1
    refused = " ".join(drawn.stderr.split())
    assert "--plot draws one group when some of several questions are shown" in refused
    assert table.read_bytes() == before


def test_tables_of_two_come_back_from_a_plan_file(tmp_path: Path, turnout: Run) -> None:
    columns = {"sex": ["f", "m"], "age": 3, "vote": ["no", "yes"]}
    tn.Plan(tn.PairTables(2.0, columns), tn.Everyone()).write(tmp_path / "plan.json")
    rows = [f"{'fm'[place % 2]},{place % 3},{('no', 'yes')[place % 5 < 2]}" for place in range(400)]
    (tmp_path / "people.csv").write_text("\n".join(["sex,age,vote", *rows]), encoding="utf-8")
    drawn, tally = tmp_path / "drawn.parquet", tmp_path / "one.tally"
    made = turnout("randomize", tmp_path / "people.csv", "--column", "sex", "--joint", "age",
                   "--joint", "vote", "--plan", tmp_path / "plan.json", "-o", drawn)  # fmt: skip
    assert made.exit_code == 0, made.stderr
    assert turnout("tally", drawn, "-o", tally).exit_code == 0
    shown = turnout("estimate", tally)
    assert shown.exit_code == 0, shown.stderr
    assert "sex × vote" in shown.stdout
    page = tmp_path / "page.html"
    assert turnout("report", tally, "-o", page).exit_code == 0
    assert "age × vote" in page.read_text(encoding="utf-8")


@pytest.fixture
def pairs(tmp_path: Path) -> tuple[Path, Any]:
    """A tally of tables of two, and the tally."""
    columns = {"sex": ["f", "m"], "age": 3, "vote": ["no", "yes"]}
    people = {name: [labels[place // step % len(labels)] for place in range(3000)]
              for step, (name, labels) in enumerate(
                  {"sex": "fm", "age": range(3), "vote": ["no", "yes"]}.items(), 1)}  # fmt: skip
    tally = tn.PairTables(2.0, columns).collect(people, seed=3)
    path = tmp_path / "pairs.tally"
    path.write_bytes(tally.to_bytes())
    return path, tally


def test_tables_of_two_are_shown_in_agreement_and_in_part(
    pairs: tuple[Path, Any], tmp_path: Path, turnout: Run
) -> None:
    path, tally = pairs
    estimate = tally.estimate()

    def found(*options: object) -> Any:
        result = turnout("estimate", path, "--json", "--sort", "domain", *options)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    for options, made in (
        (["--consistent"], estimate.consistent()),
        (["--consistent", "--shrink"], estimate.consistent().shrink()),
        (["--consistent", "--project", "simplex"], estimate.consistent().project("simplex")),
    ):
        answer = found(*options)
        shares = [row["frequency"] for row in answer["estimates"]]
        assert shares == [row["frequency"] for row in made.to_records()]
        assert answer["postprocessing"] == made.postprocessing
        two = found(*options, "--marginal", "vote", "--marginal", "sex")
        assert [row["frequency"] for row in two["estimates"]] == made[
            "sex", "vote"
        ].frequencies.tolist()
        assert two["marginal"] == ["sex", "vote"]
    for options, one in (
        ([], estimate.marginal("vote")),
        (["--shrink"], estimate.marginal("vote").shrink()),
    ):
        answer = found("--marginal", "vote", *options)
        assert answer["marginal"] == ["vote"]
        assert [row["frequency"] for row in answer["estimates"]] == one.frequencies.tolist()
        assert [row["low"] for row in answer["estimates"]] == one.interval().low.tolist()
    given = found("--given", "sex", "--of", "vote")
    shares = estimate.conditional("vote", given="sex")
    assert [row["share"] for row in given["estimates"]] == shares.shares.ravel().tolist()
    assert [row["high"] for row in given["estimates"]] == shares.interval().high.ravel().tolist()
    picture, table = tmp_path / "x.png", tmp_path / "x.csv"
    shown = turnout("estimate", path, "--consistent", "--shrink", "--plot", picture, "-o", table)
    assert picture.exists()
    assert "consistent tables (intervals are from before this step)" in shown.stdout
    assert "empirical Bayes (intervals are from before this step)" in shown.stdout
    assert table.read_text(encoding="utf-8").count("\n") == 1 + 6 + 4 + 6
    assert (
        "of vote, whatever the other answers are"
        in turnout("estimate", path, "--marginal", "vote", "--plot", picture).stdout
    )
    for wrong, message in (
        (("--marginal", "vote", "--consistent"), "has no effect on the shares of one question"),
        (("--marginal", "age", "--marginal", "age"), "one question, or two different ones"),
        (("--given", "sex", "--given", "age"), "--given must name one question, got 'sex', 'age'"),
        (("--given", "sex"), "--of must name one question: 'age', 'vote'"),
        (
            ("--given", "sex", "--of", "age", "--consistent"),
            "conflicts with --shrink, --project and",
        ),
    ):
        refused = turnout("estimate", path, *wrong)
        assert refused.exit_code != 0
        assert message in " ".join(refused.stderr.replace("│", " ").split()), wrong


def test_some_of_several_questions_by_group(
    pairs: tuple[Path, Any], tmp_path: Path, turnout: Run
) -> None:
    _, tally = pairs
    oracle = tally.plan.oracle
    few = oracle.collect({"sex": ["f"], "age": [0], "vote": ["no"]}, seed=1)
    # C has equal counts of other people.
    groups = {"A": tally, "B": few, "C": replace(tally, origin=None)}
    grouped = tn.GroupedTally(["place"], groups)
    path, table = tmp_path / "groups.tally", tmp_path / "x.csv"
    path.write_bytes(grouped.to_bytes())
    made = tally.estimate()
    for options, expected in (
        (["--marginal", "vote"], made.marginal("vote")),
        (["--marginal", "vote", "--project", "simplex"], made.marginal("vote").project("simplex")),
        (
            ["--marginal", "sex", "--marginal", "vote", "--consistent", "--shrink"],
            made.consistent().shrink()["sex", "vote"],
        ),
    ):
        result = turnout("estimate", path, "--json", "--sort", "domain", *options, "-o", table)
        assert result.exit_code == 0, result.stderr
        rows = json.loads(result.stdout)["estimates"]
        size = expected.domain.size
        assert [row["frequency"] for row in rows[:size]] == expected.frequencies.tolist()
        assert rows[-1]["group"] == {"place": "C"}
        assert rows[size]["reason"] == "the group has no reports of some questions"
        assert rows[size]["frequency"] is None
        assert table.read_text(encoding="utf-8").count("\n") == 1 + 3 * size
    # Two answers in each of two groups with an estimate.
    options = ("--marginal", "vote", "--simultaneous", "bonferroni")
    rows = json.loads(turnout("estimate", path, "--json", *options).stdout)["estimates"]
    place = made.domain.columns["vote"].labels.index(rows[0]["label"])
    alone = made.marginal("vote").interval(1 - 0.05 / 4)
    assert rows[0]["low"] == pytest.approx(alone.low[place], abs=1e-12)
    whole = turnout("estimate", path, "--given", "sex", "--of", "vote", "--top", 1)
    assert "no reports of" in " ".join(whole.stdout.split())
    for wrong, message in (
        (("--consistent",), "do not apply to groups of several questions"),
        (("--marginal", "vote", "--shrink", "--across"), "--across does not apply"),
        (("--marginal", "vote", "--plot", tmp_path / "x.png"), "--plot draws one group"),
    ):
        refused = turnout("estimate", path, *wrong)
        assert refused.exit_code == 1
        assert message in " ".join(refused.stderr.split())


def test_one_question_of_several_that_were_sampled(tmp_path: Path, turnout: Run) -> None:
    sampled = tn.SampledAttribute(2.0, {"sex": ["f", "m"], "age": 3})
    tally = sampled.collect({"sex": ["f", "m"] * 600, "age": [0, 1, 2] * 400}, seed=1)
    path = tmp_path / "one.tally"
    path.write_bytes(tally.to_bytes())
    answer = json.loads(turnout("estimate", path, "--json", "--marginal", "sex").stdout)
    assert answer["estimates"][0]["frequency"] == max(tally["sex"].estimate().frequencies)
    refused = turnout("estimate", path, "--marginal", "sex", "--marginal", "age")
    assert "must name one question, got 'sex', 'age'" in " ".join(refused.stderr.split())
    refused = turnout("estimate", path, "--given", "sex")
    assert "--given needs the tally of a joint table or of" in " ".join(refused.stderr.split())


def test_a_report_has_sections_on_some_of_several_questions(
    pairs: tuple[Path, Any], tmp_path: Path, turnout: Run
) -> None:
    path, tally = pairs
    page, folder = tmp_path / "page.html", tmp_path / "pictures"
    options = ("--given", "sex", "--of", "vote", "--marginal", "age", "--consistent")
    result = turnout("report", path, "-o", page, "--pictures", folder, *options)
    assert result.exit_code == 0, result.stderr
    text = page.read_text(encoding="utf-8")
    assert "Vote given sex" in text
    assert "Answers to age alone" in text
    names = {file.stem for file in folder.iterdir()}
    assert names == {"estimate", "marginal", "conditional"}
    share = tally.estimate().conditional("vote", given="sex")["f", "no"].share
    assert f"{100 * share:.1f} %" in text
    agreeing = tally.estimate().consistent()["sex", "vote"].frequencies[0]
    assert f"{100 * agreeing:.1f} %" in text
    for wrong, message in (
        (("--of", "vote"), "--of needs --given"),
        (("--given", "sex"), "--of must name one question"),
        (("--marginal", "nobody"), "--marginal must be one of"),
    ):
        refused = turnout("report", path, "-o", page, *wrong)
        assert refused.exit_code == 1
        assert message in " ".join(refused.stderr.split())
    table = turnout("report", path, "-o", tmp_path / "x.csv", "--given", "sex")
    assert table.exit_code == 2
    said = " ".join(table.stderr.replace("│", "").split())
    assert "pass these options to turnout estimate" in said
    plain = tmp_path / "plain.tally"
    plain.write_bytes(tn.DirectEncoding(1.0, 2).simulate([3, 4]).to_bytes())
    for option in (("--consistent",), ("--marginal", "sex"), ("--given", "sex")):
        refused = turnout("report", plain, "-o", page, *option)
        assert refused.exit_code == 1
        assert f"{option[0]} needs the tally of" in " ".join(refused.stderr.split())


def test_cells_are_words_on_terminals_and_pages(table: Path, tmp_path: Path, turnout: Run) -> None:
    target, tally, page = (tmp_path / name for name in ("a.parquet", "a.tally", "a.html"))
    options = ("-c", "sex", "--joint", "vote", "-e", 3, "--missing", "drop", "--seed", 5)
    turnout("randomize", table, *options, "-o", target)
    turnout("tally", target, "-o", tally)
    assert " f, yes " in turnout("estimate", tally).stdout
    assert turnout("report", tally, "-o", page, "--given", "sex").exit_code == 0
    text = page.read_text(encoding="utf-8")
    row = "".join(f'<th scope="row">{answer}</th>' for answer in ("m", "yes"))
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("sex", "vote"))
    assert row in text
    assert heads in text
    assert "(&#x27;" not in text
    assert "questions: sex, vote" in text
