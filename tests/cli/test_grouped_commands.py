"""``turnout estimate`` of grouped tallies, and ``turnout report``."""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest

import turnout as tn
from turnout.cli.showing import estimates
from turnout.collecting.report_files import write_reports

Run = Callable[..., Any]
ORACLE = tn.OptimizedUnaryEncoding(2.0, tn.Domain(["never", "once", "often"]))
HALF = tn.Bernoulli(0.5)


@pytest.fixture
def grouped() -> tn.GroupedTally:
    tallies = {}
    for country, nodes in (("DE", 3000), ("[red]FR", 1000), ("NL", 0)):
        for day in (1, 2, 4):
            counts = [nodes * day // 10, nodes // 10, nodes // 2]
            date = datetime.date(2026, 3, day)
            tallies[country, date] = ORACLE.simulate(counts, participation=HALF, seed=day)
    return tn.GroupedTally(["country", "day"], tallies)


@pytest.fixture
def grouped_file(grouped: tn.GroupedTally, tmp_path: Path) -> Path:
    path = tmp_path / "grouped.tally"
    path.write_bytes(grouped.to_bytes())
    return path


def test_json_has_the_group_of_each_estimate(
    grouped: tn.GroupedTally, grouped_file: Path, turnout: Run
) -> None:
    result = turnout("estimate", grouped_file, "--json", "--sort", "domain")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert set(answer) == {
        "estimates", "groups", "interval", "left_out", "method", "nodes", "plan", "postprocessing",
        "received",
    }  # fmt: skip
    assert answer["groups"] == ["country", "day"]
    assert answer["interval"] == {"level": 0.95, "simultaneous": None, "over": None}
    assert len(answer["estimates"]) == 27
    first = answer["estimates"][0]
    assert list(first) == [
        "group", "nodes", "received", "left_out", "label", "count", "frequency", "standard_error",
        "low", "high", "reason",
    ]  # fmt: skip
    assert first["group"] == {"country": "DE", "day": "2026-03-01"}
    estimate = grouped.estimate()["DE", datetime.date(2026, 3, 1)]
    assert first["frequency"] == estimate.frequencies[0]
    assert first["low"] == estimate.interval().low[0]
    silent = [row for row in answer["estimates"] if row["group"]["country"] == "NL"]
    assert len(silent) == 9
    assert all((row["frequency"], row["low"]) == (None, None) for row in silent)
    assert {row["reason"] for row in silent} == {"the group has no nodes"}


def test_columns_can_be_chosen(grouped: tn.GroupedTally, grouped_file: Path, turnout: Run) -> None:
    options = ("--by", "day", "--simultaneous", "sidak", "--over", "groups", "--interval", 0.9)
    answer = json.loads(turnout("estimate", grouped_file, "--json", *options).stdout)
    assert answer["interval"] == {"level": 0.9, "simultaneous": "sidak", "over": "groups"}
    expected = grouped.over("day").estimate().interval(0.9, simultaneous="sidak", over="groups")
    found = {(row["group"]["day"], row["label"]): row["high"] for row in answer["estimates"]}
    assert found["2026-03-04", "often"] == pytest.approx(expected.high[2, 2], rel=1e-12)
    two = json.loads(
        turnout("estimate", grouped_file, "--json", "--by", "day", "--by", "country").stdout
    )
    assert two["groups"] == ["day", "country"]
    result = turnout("estimate", grouped_file, "--by", "region")
    assert result.exit_code == 1
    assert "'region' is not a column of the groups" in result.stderr


def test_a_tally_without_groups_has_no_columns(tally_file: Path, turnout: Run) -> None:
    result = turnout("estimate", tally_file, "--by", "day")
    assert result.exit_code == 1
    assert "is not grouped, so it has no column 'day'" in result.stderr


def test_the_table_names_each_group_once(grouped_file: Path, turnout: Run) -> None:
    result = turnout("estimate", grouped_file, "--by", "country", "--simultaneous", "bonferroni")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert sum("[red]FR" in line for line in lines) == 1
    assert any("NL" in line and "(no nodes)" in line for line in lines)
    assert "for all answers of all groups at once (bonferroni)" in " ".join(result.stdout.split())
    assert "projected" not in result.stdout
    projected = turnout("estimate", grouped_file, "--by", "country", "--project", "simplex")
    assert "projected simplex (intervals are from before this step)" in " ".join(
        projected.stdout.split()
    )
    biased = turnout("estimate", grouped_file, "--method", "c")
    assert "biased" in biased.stderr or "no interval" in biased.stderr


def test_pictures_of_groups_and_of_time(grouped_file: Path, turnout: Run, tmp_path: Path) -> None:
    for options in (("--by", "country"), ("--by", "day"), ()):
        picture = tmp_path / "picture.svg"
        result = turnout("estimate", grouped_file, *options, "--plot", picture)
        assert result.exit_code == 0, result.stderr
        assert picture.read_bytes().startswith(b"<?xml")
        picture.unlink()
    result = turnout("estimate", grouped_file, "--plot", grouped_file)
    assert result.exit_code != 0
    assert tn.GroupedTally.from_bytes(grouped_file.read_bytes()).nodes > 0


def test_a_report_of_several_files(
    grouped: tn.GroupedTally, grouped_file: Path, turnout: Run, tmp_path: Path
) -> None:
    other = tmp_path / "other.tally"
    # Equal counts of other people.
    alike = {key: replace(one, origin=None) for key, one in grouped.select(country="DE").items()}
    other.write_bytes(tn.GroupedTally(grouped.names, alike).to_bytes())
    page, folder = tmp_path / "page.html", tmp_path / "pictures"
    result = turnout(
        "report", grouped_file, other, "-o", page, "--pictures", folder, "--title", "How <often>?",
        "--time", "day", "--simultaneous", "sidak", "--over", "labels",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    text = page.read_text(encoding="utf-8")
    assert "<h1>How &lt;often&gt;?</h1>" in text
    assert f"{grouped.nodes + grouped.select(country='DE').nodes:,}" in text
    assert len(list(folder.iterdir())) == 12


def test_reports_that_are_refused(
    grouped: tn.GroupedTally, grouped_file: Path, tally_file: Path, turnout: Run, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    single = tmp_path / "single.tally"
    single.write_bytes(grouped.total.to_bytes())
    days = tmp_path / "days.tally"
    days.write_bytes(grouped.over("day").to_bytes())
    nothing = tmp_path / "nothing.json"
    nothing.write_text("{}")
    for arguments, code, words in (
        ((grouped_file,), 2, "say where to write"),
        ((grouped_file, "-o", tmp_path / "page.pdf"), 2, "does not end in .html"),
        ((grouped_file, grouped_file, "-o", page), 1, "is duplicated"),
        ((grouped_file, single, "-o", page), 1, "is not grouped: they cannot be added up"),
        ((grouped_file, days, "-o", page), 1, "is grouped by day: they cannot be added up"),
        ((grouped_file, tally_file, "-o", page), 1, "different plans"),
        ((nothing, "-o", page), 1, "nothing.json: not a tally"),
        ((tmp_path / "missing", "-o", page), 1, "No such file"),
    ):
        result = turnout("report", *arguments)
        assert result.exit_code == code, result.stderr
        assert words in " ".join(result.stderr.replace("│", " ").split())
    assert not page.exists()


def test_the_first_labels_of_each_group_are_shown(grouped_file: Path, turnout: Run) -> None:
    rows = turnout("estimate", grouped_file).stdout.splitlines()
    found = turnout("estimate", grouped_file, "--top", 1).stdout
    assert len(found.splitlines()) < len(rows)
    assert re.search(r"\d of \d labels are left out in each group; --top all", found)
    whole = json.loads(turnout("estimate", grouped_file, "--json").stdout)
    assert json.loads(turnout("estimate", grouped_file, "--top", 1, "--json").stdout) == whole


def test_groups_are_shrunk_by_themselves_or_learn_from_each_other(
    grouped: tn.GroupedTally, grouped_file: Path, tmp_path: Path, turnout: Run
) -> None:
    for options, across in ((("--shrink",), False), (("--shrink", "--across"), True)):
        result = turnout("estimate", grouped_file, "--json", "--sort", "domain", *options)
        assert result.exit_code == 0, result.stderr
        answer = json.loads(result.stdout)
        expected = grouped.estimate().shrink(across=across)
        assert answer["postprocessing"] == expected.postprocessing
        shares = [row["frequency"] for row in answer["estimates"] if row["reason"] is None]
        assert shares == [share for share in expected.frequencies.ravel() if not math.isnan(share)]
    shown = turnout("estimate", grouped_file, "--shrink", "--across").stdout
    assert "empirical Bayes across groups" in shown
    alone = turnout("estimate", grouped_file, "--across")
    assert alone.exit_code == 2
    assert "needs --shrink" in alone.stderr
    plain = tmp_path / "plain.tally"
    plain.write_bytes(grouped.total.to_bytes())
    refused = turnout("estimate", plain, "--shrink", "--across")
    assert refused.exit_code == 1
    assert "is not grouped; --across needs a grouped tally" in " ".join(refused.stderr.split())


def test_cautions_of_shrinking_are_said_of_groups(grouped_file: Path, turnout: Run) -> None:
    said = turnout("estimate", grouped_file, "--by", "country", "--shrink").stderr
    assert "note: DE, [red]FR: 3 answers reveal little about each other" in said
    assert "reveal little" not in turnout("estimate", grouped_file, "--by", "country").stderr


def test_of_very_many_groups_the_first_are_shown(
    tmp_path: Path, turnout: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "_MOST_ROWS", 7)
    tallies = {place: ORACLE.simulate([10, 20, 30], seed=1) for place in range(9)}
    path = tmp_path / "many.tally"
    path.write_bytes(tn.GroupedTally(["place"], tallies).to_bytes())
    text = turnout("estimate", path).stdout
    assert "and 7 more of 9 groups; --output FILE.csv writes all" in text
    assert "more of 9 groups" not in turnout("estimate", path, "--top", "all").stdout


@pytest.mark.parametrize("command", ["estimate", "report"])
def test_a_table_of_groups_is_written(
    grouped: tn.GroupedTally, grouped_file: Path, turnout: Run, tmp_path: Path, command: str
) -> None:
    target = tmp_path / "shares.csv"
    result = turnout(command, grouped_file, "-o", target, "--simultaneous", "sidak")
    assert result.exit_code == 0, result.stderr
    found = pyarrow.csv.read_csv(target)
    expected = grouped.estimate().to_arrow(simultaneous="sidak")
    assert found.column_names == expected.column_names
    assert found["frequency"].to_pylist() == expected["frequency"].to_pylist()
    assert turnout(command, grouped_file, "-o", tmp_path / "shares.txt").exit_code == 2


DAYS = [datetime.date(2026, 3, day) for day in (2, 3, 4)]


def test_tallies_of_days_become_a_series(tmp_path: Path, turnout: Run) -> None:
    """As they lie about: one tally of each evening, counted from that day's reports."""
    expected = {}
    for number, day in enumerate(DAYS):
        reports = ORACLE.randomize(["never"] * 60 + ["once"] * (20 * number), seed=number)
        write_reports(reports, tmp_path / f"{day}.parquet")
        evening = ("tally", tmp_path / f"{day}.parquet", "-o", tmp_path / "days" / f"{day}.tally")
        (tmp_path / "days").mkdir(exist_ok=True)
        assert turnout(*evening).exit_code == 0
        expected[day] = ORACLE.tally(reports)
    series = tn.GroupedTally(["day"], expected)
    target = tmp_path / "series.tally"
    files = [tmp_path / "days" / f"{day}.tally" for day in DAYS]
    for sources in (files, [tmp_path / "days"], [tmp_path / "days" / "*.tally"]):
        result = turnout("tally", *sources, "--by-file", "day", "-o", target, "--json")
        assert result.exit_code == 0, result.stderr
        assert json.loads(result.stdout)["groups"] == {"columns": ["day"], "number": 3}
        assert tn.GroupedTally.from_bytes(target.read_bytes()) == series
    shown = json.loads(turnout("estimate", target, "--by", "day", "--json").stdout)
    assert shown["estimates"][0]["group"] == {"day": "2026-03-02"}
    page = tmp_path / "days.html"
    assert turnout("report", target, "-o", page).exit_code == 0
    assert "Day: 2026-03-02 to 2026-03-04" in page.read_text(encoding="utf-8")
    # The files of reports themselves, on the command line and in Python.
    result = turnout("tally", tmp_path / "*.parquet", "--by-file", "day", "-o", target)
    assert result.exit_code == 0, result.stderr
    assert tn.GroupedTally.from_bytes(target.read_bytes()) == series
    reports = tn.pipeline.open_reports(str(tmp_path / "*.parquet"), by_file="day")
    assert reports.tally(group_by="day") == series
    # Without it they add up.
    turnout("tally", *files, "-o", target)
    assert tn.Tally.from_bytes(target.read_bytes()) == series.total


def test_groups_of_tallies_are_kept_beside_their_days(
    grouped: tn.GroupedTally, tmp_path: Path, turnout: Run
) -> None:
    for day in (1, 2, 4):
        date = datetime.date(2026, 3, day)
        one = grouped.select(day=date).over("country")
        (tmp_path / f"{date}.tally").write_bytes(one.to_bytes())
    target = tmp_path / "all.bin"
    start = ("tally", tmp_path / "*.tally", "-o", target, "--by-file", "day")
    assert turnout(*start).exit_code == 0
    assert tn.GroupedTally.from_bytes(target.read_bytes()) == grouped
    assert turnout(*start, "--group-by", "country").exit_code == 0
    assert tn.GroupedTally.from_bytes(target.read_bytes()) == grouped
    refused = turnout("tally", tmp_path / "*.tally", "-o", target, "--by-file", "country")
    assert refused.exit_code == 1
    assert "country" in refused.stderr


def test_the_reports_of_a_job_are_called_by_its_folder(
    people: Path, tmp_path: Path, turnout: Run
) -> None:
    days = [tmp_path / "jobs" / str(day) for day in DAYS[:2]]
    (tmp_path / "jobs").mkdir()
    for folder in days:
        labels = ("--labels", "never,once,often")
        assert (
            turnout("randomize", people, "-c", "answer", "-e", 2, *labels, "-o", folder).exit_code
            == 0
        )
    target = tmp_path / "days.tally"
    for sources in (days, [tmp_path / "jobs"]):
        assert turnout("tally", *sources, "--by-file", "day", "-o", target).exit_code == 0
        found = tn.GroupedTally.from_bytes(target.read_bytes())
        assert {key: one.nodes for key, one in found.items()} == {(day,): 600 for day in DAYS[:2]}
    twice = tmp_path / "day=2026-03-02"
    days[0].rename(twice)
    refused = turnout("tally", twice, "--by-file", "day", "-o", target)
    assert refused.exit_code == 1
    assert "'day' is duplicated; --by-file must differ" in refused.stderr
