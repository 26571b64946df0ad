"""Questions that take rounds on the command line: state, plans, groups, what was found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import turnout as tn
from turnout.frequency.heavy_hitters import Search
from turnout.signing import SigningKey

Run = Callable[..., Any]
WORDS = ["abacab"] * 900 + ["cab"] * 700 + ["bb"] * 400 + [""]
SEARCH = {"length": 6, "alphabet": "abc", "step": 4, "keep": 64, "family-wise-error": 1e-9}
OPTIONS = [
    "-e", 8, "--oracle", "direct-encoding",
    *(part for name, value in SEARCH.items() for part in (f"--{name}", value)),
]  # fmt: skip


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    lines = [f"{person},{word}" for person, word in enumerate(WORDS)]
    path.write_text("\n".join(["user,word", *lines]) + "\n", encoding="utf-8")
    return path


def test_words_are_found_by_plans_files_and_tallies(
    people: Path, tmp_path: Path, turnout: Run
) -> None:
    state, key = tmp_path / "search.json", tmp_path / "plans.key"
    SigningKey.generate().write(key)
    begun = turnout("rounds", "hitters", *OPTIONS, "-n", 2000, "--sign", key, "-o", state, "--json")
    assert begun.exit_code == 0, begun.stderr
    found = json.loads(begun.stdout)
    protocol = Search.read(state).protocol
    given = {name.replace("-", "_"): value for name, value in SEARCH.items()}
    same = tn.HeavyHitters(8.0, oracle="direct_encoding", **given)  # type: ignore[arg-type]
    assert found["detectable_frequency"] == same.detectable_frequency(2000)
    # So that not to find a word is out of the question.
    assert same.detectable_frequency(2000, power=1 - 1e-9) < 400 / 2001
    assert (found["protocol"], found["round"], found["finished"]) == ("heavy_hitters", 0, False)
    again = turnout("rounds", "hitters", *OPTIONS, "-o", state)
    assert "already exists and may contain rounds in progress" in again.stderr
    groups = tmp_path / "groups"
    options = ("--column", "word", "--id-column", "user", "-o", groups, "--json")
    files = json.loads(turnout("rounds", "split", state, people, *options).stdout)["files"]
    assert len(files) == protocol.groups
    assert sum(file["rows"] for file in files) == len(WORDS)
    # Who a row is of is in no file.
    assert [pq.read_schema(file["path"]).names for file in files] == [["word"]] * len(files)
    twice = turnout("rounds", "split", state, people, *options)
    assert "people who are split again may be asked twice" in " ".join(twice.stderr.split())
    public = SigningKey.read(key).public_key
    plan, closed = found["plan_file"], None
    for number, file in enumerate(files):
        reports, tally = tmp_path / f"{number}.parquet", tmp_path / f"{number}.tally"
        by_plan = ("--plan", plan, "--column", "word", "--missing", "drop", "--public-key", public)
        made = turnout("randomize", file["path"], *by_plan, "--seed", number, "-o", reports)
        assert made.exit_code == 0, made.stderr
        assert "the group of this round alone" in " ".join(made.stdout.split())
        assert turnout("tally", reports, "-o", tally).exit_code == 0
        before = json.loads(turnout("rounds", "show", state, "--json").stdout)
        assert (before["round"], len(before["rounds"])) == (number, number)
        closed = json.loads(
            turnout("rounds", "close", state, tally, "--sign", key, "--json").stdout
        )
        plan = closed["plan_file"]
        kept = state.read_bytes()
        refused = turnout("rounds", "close", state, tally)
        assert refused.exit_code == 1
        assert state.read_bytes() == kept
    assert closed == {
        "protocol": "heavy_hitters", "finished": True, "round": len(files), "plan_file": None
    }  # fmt: skip
    table = tmp_path / "found.csv"
    shown = turnout("rounds", "show", state, "--clip", "-o", table)
    assert shown.exit_code == 0, shown.stderr
    assert "abacab" in shown.stdout
    assert "nothing was left out because of --keep" in " ".join(shown.stdout.split())
    record = json.loads(turnout("rounds", "show", state, "--json").stdout)
    result = Search.read(state).result
    assert [each["label"] for each in record["estimates"]] == list(result.values)
    assert result.values == ("abacab", "cab", "bb")
    assert [each["low"] for each in record["estimates"]] == result.interval().low.tolist()
    assert record["detectable_frequency"] == result.detectable_frequency()
    assert table.read_text().splitlines()[1].startswith('"abacab",')


def test_numbers_are_read_from_text_and_what_does_not_fit_is_refused(
    tmp_path: Path, turnout: Run
) -> None:
    state, people = tmp_path / "s.json", tmp_path / "people.csv"
    assert turnout("rounds", "hitters", "-e", 4, "--bits", 64, "-o", state).exit_code == 0
    plan = tmp_path / "s.round-0.json"
    largest = 2**64 - 1
    people.write_text(f"number\n{largest}\n0\n{largest}\n")
    target = tmp_path / "reports.parquet"
    options = ("--plan", plan, "--column", "number", "-o", target)
    made = turnout("randomize", people, *options)
    assert made.exit_code == 0, made.stderr
    people.write_text(f"number\n{largest + 1}\n-1\n2.5\n")
    refused = turnout("randomize", people, *options, "--overwrite")
    assert "3 values are not among whole numbers of 64 bits (rows 1, 2, 3)" in refused.stderr
    early = turnout("rounds", "show", state, "-o", tmp_path / "t.csv")
    assert "round 0 is still open, so there are no results for --output" in early.stderr
    assert "exactly one of" in turnout("rounds", "hitters", "-e", 4, "-o", tmp_path / "x").stderr
    bad = turnout("rounds", "hitters", "-e", 4, "--bits", 65, "-o", tmp_path / "x")
    assert "--bits must be an integer from 1 to 64, got 65" in bad.stderr
    other = tmp_path / "other.tally"
    other.write_bytes(tn.DirectEncoding(1.0, 2).collect([0, 1]).to_bytes())
    wrong = turnout("rounds", "close", state, other)
    assert "other.tally" in wrong.stderr
    assert "oracle direct_encoding instead of prefixes" in " ".join(wrong.stderr.split())


def test_what_stands_for_no_number_may_be_a_word(tmp_path: Path, turnout: Run) -> None:
    people, state = tmp_path / "people.csv", tmp_path / "s.json"
    people.write_text("name\nNan\nNAN\nnan\n")
    assert turnout("rounds", "hitters", "-e", 4, "--length", 3, "-o", state).exit_code == 0
    options = ("--plan", tmp_path / "s.round-0.json", "--column", "name", "--missing", "drop")
    made = turnout("randomize", people, *options, "-o", tmp_path / "reports.parquet")
    assert "1 without an answer" in made.stdout


def test_two_rounds_ask_more_of_who_holds_a_rare_answer(tmp_path: Path, turnout: Run) -> None:
    people, state = tmp_path / "people.csv", tmp_path / "two.json"
    groups = ["0"] * 4000 + ["A"] * 800 + ["AB"] * 200
    people.write_text("\n".join(["blood", *groups]) + "\n")
    rates = ("--first-rate", 0.2, "--second-rate", 0.2, "--low", 0.1, "--high", 0.8)
    begun = turnout("rounds", "rare", "-e", 7, "--labels", "0,A,AB", *rates, "-o", state)
    assert begun.exit_code == 0, begun.stderr
    parts = tmp_path / "groups"
    split = turnout("rounds", "split", state, people, "--column", "blood", "-o", parts, "--json")
    assert sum(file["rows"] for file in json.loads(split.stdout)["files"]) == len(groups)
    for number in (0, 1):
        plan, reports = tmp_path / f"two.round-{number}.json", tmp_path / f"{number}.parquet"
        by_plan = ("--column", "blood", "--plan", plan, "-o", reports)
        made = turnout("randomize", parts / f"round-{number}.parquet", *by_plan)
        assert made.exit_code == 0, made.stderr
        said = " ".join(made.stdout.split())
        assert ("epsilon includes that" in said) == (number == 1)
        assert ("participation by the answer" in said) == (number == 1)
        tally = tmp_path / f"{number}.tally"
        assert turnout("tally", reports, "-o", tally).exit_code == 0
        closed = turnout("rounds", "close", state, tally)
        assert closed.exit_code == 0, closed.stderr
    shown = turnout("rounds", "show", state)
    assert "the larger, as nobody reports twice" in " ".join(shown.stdout.split())
    record = json.loads(turnout("rounds", "show", state, "--json", "--interval", 1 - 1e-7).stdout)
    assert record["spent"]["total"] <= 7
    assert record["nodes"] == len(groups)
    for row in record["estimates"]:
        assert row["low"] <= groups.count(row["label"]) / len(groups) <= row["high"]
    page = tmp_path / "page.html"
    assert turnout("report", tmp_path / "1.tally", "-o", page).exit_code == 0
    assert "Whether a person reports depends on the answer" in page.read_text()
    refused = turnout("rounds", "rare", "-e", 0.1, "-k", 3, *rates, "-o", tmp_path / "x.json")
    assert "--second-rate must be from 0.08 to" in refused.stderr
    assert "the largest at which silence fits in epsilon" in refused.stderr
    assert not (tmp_path / "x.json").exists()


def test_people_are_split_once_and_a_second_row_of_one_is_left_out(
    tmp_path: Path, turnout: Run
) -> None:
    state, people, parts = tmp_path / "s.json", tmp_path / "people.csv", tmp_path / "parts"
    assert turnout("rounds", "hitters", "-e", 4, "--bits", 10, "-o", state).exit_code == 0
    options = ("--column", "word", "--id-column", "user", "-o", parts)
    people.write_text("user,word,other\n")
    assert "has no rows to split" in turnout("rounds", "split", state, people, *options).stderr
    people.write_text("user,word,other\n" + "".join(f"{n // 2},{n},9\n" for n in range(600)))
    twice = turnout("rounds", "split", state, people, *options)
    assert "300 person(s) have more than one row" in " ".join(twice.stderr.split())
    assert not parts.exists()
    assert list(tmp_path.glob(".*")) == []
    first = turnout("rounds", "split", state, people, *options, "--duplicates", "first")
    assert first.exit_code == 0, first.stderr
    assert parts.stat().st_mode & 0o077 == 0
    tables = [pq.read_table(file) for file in sorted(parts.iterdir())]
    # The first row of each person, and nothing of who that is.
    assert all(table.column_names == ["word"] for table in tables)
    words = [word for table in tables for word in table["word"].to_pylist()]
    assert sorted(map(int, words)) == list(range(0, 600, 2))


def test_what_was_found_has_a_picture(tmp_path: Path, turnout: Run) -> None:
    state, picture = tmp_path / "search.json", tmp_path / "found.svg"
    search = tn.HeavyHitters(4.0, bits=4, confirm=False).rounds()
    search.write(state)
    refused = turnout("rounds", "show", state, "--plot", picture)
    assert refused.exit_code == 1
    assert "no results for --plot" in refused.stderr
    while not search.finished:
        round_ = search.plan().oracle
        search.close(round_.collect([5] * 400 + [9] * 200, seed=search.number))
    search.write(state)
    result = turnout("rounds", "show", state, "--plot", picture)
    assert result.stdout.endswith(f"The picture: {picture}\n"), result.stderr
    assert picture.read_bytes().startswith(b"<?xml")
