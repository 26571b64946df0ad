"""``turnout estimate``: tables, JSON, pictures, options."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.texts import without_paths

import turnout as tn
from turnout.cli import tables
from turnout.cli.options import METHODS

Run = Callable[..., Any]
FIELDS = ["label", "count", "frequency", "standard_error", "low", "high"]


def as_json(turnout: Run, tally: Path, *options: object) -> dict[str, Any]:
    result = turnout("estimate", tally, "--json", *options)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == "" or result.stderr.startswith("note: each interval holds by itself")
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_json_is_one_object_with_plan_totals_and_estimates(tally_file: Path, turnout: Run) -> None:
    answer = as_json(turnout, tally_file)
    assert set(answer) == {
        "estimates", "interval", "left_out", "method", "nodes", "plan", "postprocessing",
        "received",
    }  # fmt: skip
    assert (answer["nodes"], answer["received"]) == (600, 600)
    assert (answer["method"], answer["postprocessing"]) == ("hajek", "none")
    assert answer["interval"]["level"] == 0.95
    assert answer["interval"]["simultaneous"] is None
    assert tn.Plan.from_json(json.dumps(answer["plan"])).oracle.epsilon == 2
    for record in answer["estimates"]:
        assert list(record) == FIELDS
        assert all(isinstance(record[field], float) for field in FIELDS[1:])
    tally = tn.Tally.from_bytes(tally_file.read_bytes())
    estimate = tally.estimate()
    by_label = {record["label"]: record for record in answer["estimates"]}
    for code, label in enumerate(("never", "once", "often")):
        assert by_label[label]["frequency"] == estimate.frequencies[code]
        assert by_label[label]["count"] == estimate.counts[code]
        assert by_label[label]["low"] == estimate.interval(0.95).low[code]


def test_labels_can_be_sorted(tally_file: Path, turnout: Run) -> None:
    def order(*options: str) -> list[str]:
        return [record["label"] for record in as_json(turnout, tally_file, *options)["estimates"]]

    assert order("--sort", "domain") == ["never", "once", "often"]
    assert order("--sort", "label") == sorted(order())
    records = as_json(turnout, tally_file)["estimates"]
    assert records == sorted(records, key=lambda record: -record["frequency"])


def test_levels_and_simultaneous_intervals_widen(tally_file: Path, turnout: Run) -> None:
    def width(*options: object) -> float:
        records = as_json(turnout, tally_file, *options)["estimates"]
        return float(sum(record["high"] - record["low"] for record in records))

    assert width("--interval", 0.5) < width() < width("--interval", 0.999)
    assert width() < width("--simultaneous", "sidak") < width("--simultaneous", "bonferroni")


@pytest.mark.parametrize("projection", ["simplex", "norm_sub", "clip_normalize"])
def test_projections_give_a_distribution_and_name_themselves(
    tally_file: Path, turnout: Run, projection: str
) -> None:
    answer = as_json(turnout, tally_file, "--project", projection)
    assert answer["postprocessing"] == projection
    frequencies = [record["frequency"] for record in answer["estimates"]]
    assert min(frequencies) >= 0
    assert sum(frequencies) == pytest.approx(1)
    text = turnout("estimate", tally_file, "--project", projection).stdout
    assert f"{projection} (intervals are from before this step)" in text


@pytest.mark.parametrize("word", [word for word in METHODS if word not in ("ems", "ml")])
def test_every_method_names_itself_by_its_word(tally_file: Path, turnout: Run, word: str) -> None:
    assert as_json(turnout, tally_file, "--method", word)["method"] == word
    papers = as_json(turnout, tally_file, "--method", METHODS[word])
    assert papers == as_json(turnout, tally_file, "--method", word.replace("_", "-"))


def test_a_biased_method_has_no_intervals_and_says_why(tmp_path: Path, turnout: Run) -> None:
    oracle = tn.DirectEncoding(epsilon=2.0, domain=tn.Domain(["a", "b"]))
    tally = oracle.collect(["a"] * 500 + ["b"] * 500, participation=tn.Bernoulli(0.5))
    path, picture = tmp_path / "half.tally", tmp_path / "half.png"
    path.write_bytes(tally.to_bytes())
    result = turnout("estimate", path, "--method", "everyone", "--json", "--plot", picture)
    assert result.exit_code == 0
    assert result.stderr.startswith("note: no interval around --method everyone covers")
    answer = json.loads(result.stdout)
    assert answer["interval"]["method"] is None
    assert [record["low"] for record in answer["estimates"]] == [None, None]
    assert picture.exists()
    assert "none" in turnout("estimate", path, "--method", "c").stdout


def test_the_table_fits_80_columns_without_colour(tally_file: Path, turnout: Run) -> None:
    result = turnout("estimate", tally_file)
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert max(map(len, without_paths(result.stdout))) <= 80
    for text in ("never", "once", "often", "95 % interval", "std. error", "600"):
        assert text in result.stdout


def test_labels_cannot_steer_the_terminal(tmp_path: Path, turnout: Run) -> None:
    oracle = tn.DirectEncoding(epsilon=2.0, domain=tn.Domain(["\x1b[2J", "two\nlines"]))
    path = tmp_path / "odd.tally"
    path.write_bytes(oracle.collect(["two\nlines"] * 9).to_bytes())
    text = turnout("estimate", path).stdout
    assert "\x1b" not in text
    assert "'two\\nlines'" in text


@pytest.mark.parametrize(
    ("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_pictures_are_saved(
    tally_file: Path, tmp_path: Path, turnout: Run, suffix: str, start: bytes
) -> None:
    picture = tmp_path / f"answers.{suffix}"
    result = turnout("estimate", tally_file, "--plot", picture)
    assert result.exit_code == 0, result.stderr
    assert picture.read_bytes().startswith(start)
    assert f"The picture: {picture}" in result.stdout


def test_json_stays_alone_on_standard_output_beside_a_picture(
    tally_file: Path, tmp_path: Path, turnout: Run
) -> None:
    assert as_json(turnout, tally_file, "--plot", tmp_path / "answers.png")["nodes"] == 600


def test_a_picture_that_cannot_be_written_leaves_nothing(
    tally_file: Path, tmp_path: Path, turnout: Run
) -> None:
    before = sorted(tmp_path.iterdir())
    picture = tmp_path / "no" / "answers.png"
    result = turnout("estimate", tally_file, "--plot", picture)
    assert result.exit_code == 1
    assert result.stderr == f"error: {picture}: No such file or directory\n"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "options",
    [
        ("--interval", "1"),
        ("--interval", "95"),
        ("--interval", "nan"),
        ("--method", "median"),
        ("--project", "unit"),
        ("--simultaneous", "scheffe"),
        ("--sort", "size"),
        ("--plot", "answers.gif"),
    ],
)
def test_wrong_usage_exits_with_2(tally_file: Path, turnout: Run, options: tuple[str, ...]) -> None:
    result = turnout("estimate", tally_file, *options)
    assert result.exit_code == 2
    assert result.stdout == ""


def test_a_report_file_is_no_tally(tally_file: Path, turnout: Run) -> None:
    result = turnout("estimate", tally_file.with_name("reports.parquet"))
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1


def test_no_reports_at_all_is_refused_in_one_line(tmp_path: Path, turnout: Run) -> None:
    oracle = tn.DirectEncoding(epsilon=1.0, domain=tn.Domain(["a", "b"]))
    tally = oracle.collect(["a"] * 3, participation=tn.Bernoulli(1e-9))
    path = tmp_path / "empty.tally"
    path.write_bytes(tally.to_bytes())
    result = turnout("estimate", path)
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("reports.parquet", "; turnout tally counts reports into a tally"),
        ("answers.csv", "; turnout randomize turns answers into reports"),
        ("folder", ": is a folder, not a tally; turnout tally counts reports into a tally"),
        ("other.txt", "are not those of one\n"),
    ],
)
def test_what_is_no_tally_is_refused_with_the_step_that_makes_one(
    tmp_path: Path, turnout: Run, name: str, said: str
) -> None:
    file = tmp_path / name
    if name == "folder":
        file.mkdir()
    else:
        file.write_text("something else")
    result = turnout("estimate", file)
    assert result.exit_code == 1
    assert said in result.stderr
    assert str(file) in result.stderr


@pytest.fixture
def many_file(tmp_path: Path) -> Path:
    """A tally of 1,100 labels, of which the later ones are more frequent."""
    oracle = tn.DirectEncoding(12.0, tn.Domain([f"label {code}" for code in range(1100)]))
    path = tmp_path / "many.tally"
    path.write_bytes(oracle.simulate(range(1100), seed=1).to_bytes())
    return path


def labels_of(text: str) -> list[str]:
    return re.findall(r"^ (label \d+) ", text, re.MULTILINE)


def test_the_labels_with_the_largest_shares_are_shown_and_the_others_counted(
    many_file: Path, turnout: Run
) -> None:
    everything = as_json(turnout, many_file)["estimates"]
    assert len(everything) == 1100
    best = [record["label"] for record in everything]
    text = turnout("estimate", many_file).stdout
    assert labels_of(text) == best[:20]
    assert "and 1,080 labels with smaller or equal shares; --top all" in text
    text = turnout("estimate", many_file, "--top", 3, "--sort", "label").stdout
    assert labels_of(text) == sorted(best[:3])
    text = turnout("estimate", many_file, "--top", 1099).stdout
    assert labels_of(text) == best[:1099]
    assert "and 1 label with smaller or equal shares" in text
    assert as_json(turnout, many_file, "--top", 3)["estimates"] == everything


def test_all_labels_are_shown_on_request_in_one_table(
    many_file: Path, turnout: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "_CHUNK", 30)
    text = turnout("estimate", many_file, "--top", "all", "--sort", "domain").stdout
    assert labels_of(text) == [f"label {code}" for code in range(1100)]
    assert "smaller or equal" not in text
    rows = [line for line in text.splitlines() if re.match(" label ", line)]
    # The rows that follow the table stand in its columns.
    ends = {[found.end() for found in re.finditer(" %", row)][1] for row in rows if "\u2013" in row}
    assert len(ends) == 1


@pytest.mark.parametrize("wrong", ["0", "-1", "some", "1.5", ""])
def test_a_number_of_labels_is_a_number_or_all(tally_file: Path, turnout: Run, wrong: str) -> None:
    result = turnout("estimate", tally_file, f"--top={wrong}")
    assert result.exit_code == 2
    assert "neither a number of labels nor all" in result.stderr


def test_shrinking_makes_a_distribution_and_says_where_it_may_mislead(
    tally_file: Path, turnout: Run
) -> None:
    result = turnout("estimate", tally_file, "--json", "--shrink")
    assert result.exit_code == 0, result.stderr
    assert "3 answers reveal little about each other" in " ".join(result.stderr.split())
    answer = json.loads(result.stdout)
    assert answer["postprocessing"] == "empirical_bayes"
    assert set(answer["shrinkage"]) == {"weights", "moved", "cautions"}
    assert sum(row["frequency"] for row in answer["estimates"]) == pytest.approx(1.0)
    shown = turnout("estimate", tally_file, "--shrink").stdout
    assert re.search(r"shrunk\s+empirical Bayes \(intervals are from before this step\)", shown)
    both = turnout("estimate", tally_file, "--shrink", "--project", "simplex")
    assert both.exit_code == 2
    assert "conflicts with --project" in " ".join(both.stderr.split())


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_the_whole_table_goes_to_a_file(many_file: Path, turnout: Run, suffix: str) -> None:
    target = many_file.with_suffix(suffix)
    shown = turnout("estimate", many_file, "--output", target, "--top", 3)
    assert f"The table: {target}" in shown.stdout
    read = pyarrow.csv.read_csv if suffix == ".csv" else pyarrow.parquet.read_table
    found = read(target).to_pylist()
    expected = tn.Tally.from_bytes(many_file.read_bytes()).estimate().to_records()
    assert found == [pytest.approx(record) for record in expected]
    assert turnout("estimate", many_file, "-o", many_file.with_suffix(".txt")).exit_code == 2


def test_of_many_labels_it_is_said_what_intervals_of_each_do(
    many_file: Path, tally_file: Path, turnout: Run
) -> None:
    said = turnout("estimate", many_file).stderr
    assert "about 55 of 1,100 intervals miss the truth" in said
    assert "pass --simultaneous sidak" in said
    assert not turnout("estimate", many_file, "--simultaneous", "sidak").stderr
    assert "outside of theirs" not in turnout("estimate", tally_file).stderr


def test_intervals_of_shares_are_cut_where_it_is_asked_for(tmp_path: Path, turnout: Run) -> None:
    oracle = tn.DirectEncoding(0.7, tn.Domain(["no", "some", "yes"]))
    tally = oracle.simulate([0, 5, 295], seed=1)
    (tmp_path / "a.tally").write_bytes(tally.to_bytes())
    for clip, low in (((), -1.0), (("--clip",), 0.0)):
        found = json.loads(turnout("estimate", tmp_path / "a.tally", *clip, "--json").stdout)
        assert (min(each["low"] for each in found["estimates"]) >= 0.0) is (low == 0.0)
    assert "cut to 0 and 1" in turnout("estimate", tmp_path / "a.tally", "--clip").stdout
    page = tmp_path / "a.html"
    assert turnout("report", tmp_path / "a.tally", "-o", page, "--clip").exit_code == 0
    assert "cut to 0 and 1" in page.read_text(encoding="utf-8")
    mean = tn.mean.Duchi(1.0, (0, 1)).collect([0.5] * 50, seed=1)
    (tmp_path / "m.tally").write_bytes(mean.to_bytes())
    assert "--clip does not apply" in turnout("estimate", tmp_path / "m.tally", "--clip").stderr


def test_the_glossary_has_the_words_of_every_method() -> None:
    page = Path(__file__).parents[2] / "docs" / "concepts" / "glossary.rst"
    rows = re.findall(r"^ +``(\w+)`` +``(\w+)``$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert dict(rows) == METHODS
