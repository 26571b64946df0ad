"""Labels that are taken from the data: what is odd about them is said before they cost anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import turnout as tn
from turnout.collecting.report_files import read_reports
from turnout.errors import InvalidValueError, UnknownLabelError
from turnout.pipeline.found import alike_labels

Run = Callable[..., Any]


def csv(path: Path, *answers: object) -> Path:
    path.write_text("answer\n" + "".join(f"{each}\n" for each in answers))
    return path


def refused(result: Any) -> str:
    assert result.exit_code in (1, 2), result.stdout
    return " ".join(result.stderr.replace("│", " ").split())


COMMANDS = [
    ("survey",),
    ("randomize", "-o", "OUT.parquet"),
    ("aggregate", "-m", "discrete-laplace"),
]


@pytest.fixture(params=COMMANDS, ids=[name for name, *_ in COMMANDS])
def ask(request: Any, turnout: Run, tmp_path: Path) -> Run:
    """Ask the column of a file in one of the commands."""
    name, *more = request.param

    def run(source: Path, *options: object) -> Any:
        fixed = [str(each).replace("OUT", str(tmp_path / "out")) for each in more]
        return turnout(name, source, "-c", "answer", "-e", 1, *fixed, *options)

    return run


def test_the_refusal_names_the_texts_that_were_read_as_missing(tmp_path: Path, ask: Run) -> None:
    source = csv(tmp_path / "a.csv", *["None"] * 46, *["A little"] * 40, *["A lot"] * 12, "n/a", "")
    words = refused(ask(source))
    assert "48 of 100 answers are missing" in words
    assert "'None' 46 times, 'n/a' 1 time, empty 1 time" in words
    assert "if one of these texts is an answer, --labels states it with the others" in words
    # Stated labels that leave it out refuse it in the same words.
    words = refused(ask(source, "--labels", "A little,A lot"))
    assert "'None' 46 times" in words
    assert "--labels" in words
    labels = tmp_path / "labels.txt"
    labels.write_text("None\nA little\nA lot\nn/a\n")
    words = refused(ask(source, "--labels-file", labels))
    assert "1 of 100 answers are missing (row 100): empty 1 time." in words


def test_texts_that_are_dropped_are_named_too(tmp_path: Path, turnout: Run) -> None:
    source = csv(tmp_path / "a.csv", *["None"] * 46, *["A little"] * 40, *["A lot"] * 12, "?", "")
    options = ("-c", "answer", "-e", 1, "--missing", "drop", "--missing-value", "?")
    shown = " ".join(turnout("survey", source, *options).stdout.split())
    assert "column 'answer': read as no answer: 'None' 46 times. If one" in shown
    made = turnout("randomize", source, *options, "-o", tmp_path / "out.parquet")
    assert "read as no answer: 'None' 46 times" in " ".join(made.stderr.split())
    found = tn.survey(source, "answer", epsilon=1.0, missing="drop", missing_values=["?"])
    assert any("'None' 46 times" in note for note in found.notes)
    # What was stated, and what is empty, surprises nobody.
    stated = tn.survey(source, "answer", epsilon=1.0, missing="drop", missing_values=["?", "None"])
    assert not any("read as no answer" in note for note in stated.notes)


def test_a_group_that_is_read_as_missing_is_named(tmp_path: Path) -> None:
    table = pa.table({"vote": ["yes", "no"] * 50, "country": ["DE", "NA"] * 50})
    with pytest.raises(
        InvalidValueError, match=r"50 rows have no group .*: 'NA' 50 times; pass miss"
    ):
        tn.survey(table, "vote", epsilon=1.0, by="country")
    found = tn.survey(table, "vote", epsilon=1.0, by="country", missing={"country": "NA"})
    assert list(found.tally) == [("DE",), ("NA",)]


def test_labels_that_hardly_differ_are_said(tmp_path: Path, turnout: Run) -> None:
    answers = ["a"] * 30 + ["a "] * 30 + ["Yes"] * 30 + ["yes"] * 30 + ["b"] * 30
    source = csv(tmp_path / "a.csv", *answers)
    options = ("-c", "answer", "-e", 1)
    said = "labels that differ only by white space or case are counted apart: 'a', 'a ' and 'Yes', "
    shown = " ".join(turnout("survey", source, *options).stdout.split())
    assert said in shown
    assert "trim (--trim) takes white space off" in shown
    made = turnout("randomize", source, *options, "-o", tmp_path / "out.parquet")
    assert said in " ".join(made.stderr.split())
    trimmed = tmp_path / "trimmed.parquet"
    made = turnout("randomize", source, *options, "--trim", "-o", trimmed)
    assert "'a'" not in made.stderr
    assert read_reports(trimmed).oracle.domain.labels == ("Yes", "a", "b", "yes")
    found = tn.survey(source, "answer", epsilon=8.0, trim=True, seed=1)
    assert found.estimate["a"].frequency == pytest.approx(60 / 150, abs=0.05)
    assert alike_labels(["x", "y", 1, None]) == []


def test_spaces_are_taken_off_answers_groups_and_what_is_missing(tmp_path: Path) -> None:
    rows = {"vote": ["yes ", " no", " NA ", "yes"] * 25, "g": ["N", "N ", " S", " "] * 25}
    table = pa.table(rows)
    for made in (table, table.cast(pa.schema([("vote", pa.large_string()), ("g", pa.string())]))):
        found = tn.survey(made, "vote", epsilon=1.0, by="g", trim=True, missing="drop", seed=1)
        assert list(found.tally) == [("N",), ("S",)]
        assert found.left_out == tn.LeftOut(unanswered=25, ungrouped=25)
        assert found.estimate.domain.labels == ("no", "yes")
        stated = tn.survey(
            made, "vote", epsilon=1.0, by="g", trim=True, missing="drop", seed=1,
            labels=["no", "yes"],
        )  # fmt: skip
        assert stated.tally == found.tally
    answers = tn.pipeline.scan(table, "vote", missing="drop", trim=True)
    assert answers.describe()["trim"] is True
    assert answers.domain().labels == ("no", "yes")


def test_unknown_labels_say_what_would_make_them_known(tmp_path: Path, ask: Run) -> None:
    source = csv(tmp_path / "a.csv", *["yes"] * 50, *["no "] * 50)
    assert "--trim takes white space off, and some are labels then" in refused(
        ask(source, "--labels", "yes,no")
    )
    source = csv(tmp_path / "b.csv", *["yes"] * 50, *["NO"] * 50)
    assert "some differ from a label only by case" in refused(ask(source, "--labels", "yes,no"))
    source = csv(tmp_path / "c.csv", *["yes"] * 50, *["no "] * 50)
    assert ask(source, "--labels", "yes,no", "--trim").exit_code == 0


def test_a_comma_in_a_label_names_the_option_for_it(tmp_path: Path, ask: Run) -> None:
    source = csv(tmp_path / "a.csv", *['"Yes, often"'] * 50, *["No"] * 50)
    words = refused(ask(source, "--labels", "Yes, often,No"))
    assert (
        "a label with a comma in it is one for --labels-file, which takes a label a line" in words
    )
    words = refused(ask(source, "--labels", "Yes, often,Yes, rarely,No"))
    assert "'Yes' is duplicated; to use labels that contain commas, pass --labels-file" in words
    labels = tmp_path / "labels.txt"
    labels.write_text("Yes, often\nNo\n")
    assert ask(source, "--labels-file", labels).exit_code == 0


NAMES = [f"person {number}" for number in range(400)]
AGES = np.random.default_rng(1).integers(18, 90, 5000).tolist()


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (NAMES, "looks like identifiers or free text: 400 different answers of 400 people"),
        (range(400), "looks like numbers or identifiers: 400 different ones of 400 people"),
        (AGES, "looks like numbers: 72 different ones of 5,000 people"),
        ([f'"{each},5"' for each in AGES], "looks like numbers: 72 different ones"),
        ([*AGES, *["don't know"] * 50], "looks like numbers: 73 different ones of 5,050"),
    ],
)
def test_what_is_no_label_costs_nothing(
    tmp_path: Path, ask: Run, answers: list[Any], said: str
) -> None:
    source = csv(tmp_path / "a.csv", *answers)
    words = refused(ask(source))
    assert said in words
    assert "--labels-file" in words
    assert (" asks for their mean" in words) == ("numbers" in said)
    # Nothing was randomized.
    assert not (tmp_path / "out.parquet").exists()
    labels = tmp_path / "labels.txt"
    labels.write_text("\n".join(str(each).strip('"') for each in dict.fromkeys(answers)))
    assert ask(source, "--labels-file", labels).exit_code == 0


@pytest.mark.parametrize("case", ["shared", "few numbers", "few people"])
def test_many_shared_answers_and_few_numbers_are_labels(
    tmp_path: Path, ask: Run, case: str
) -> None:
    codes = np.random.default_rng(1).integers(0, 300, 5000)
    answers = {
        "shared": [f"A{code}" for code in codes],
        "few numbers": codes % 50,
        "few people": NAMES[:50],
    }
    result = ask(csv(tmp_path / "a.csv", *answers[case]))
    assert result.exit_code == 0, result.stderr


def test_python_says_the_same(tmp_path: Path) -> None:
    table = pa.table({"age": AGES})
    with pytest.raises(InvalidValueError, match=r"looks like numbers.* bounds \(--bounds\) asks"):
        tn.survey(table, "age", epsilon=1.0)
    assert tn.survey(table, "age", epsilon=1.0, bounds=(0, 120)).left_out == tn.LeftOut()
    with pytest.raises(UnknownLabelError, match="takes white space off"):
        tn.survey(pa.table({"v": ["a", "b "]}), "v", epsilon=1.0, labels=["a", "b"])


def test_sample_speaks_of_rows_and_of_what_columns_hold(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "a.csv"
    path.write_text("kind,size\n" + "a,1\nb,2\n,3\n" * 20)
    words = refused(turnout("sample", path, "-c", "kind", "-e", 1, "--method", "minimax"))
    assert "'drop' to leave these rows out" in words
    words = refused(turnout("sample", path, "-c", "kind,size", "-e", 1, "-m", "density"))
    assert "column 'kind' holds text, but --method density is for numbers" in words
    path.write_text("kind,size\n" + "a,1\na ,2\nb,3\n" * 20)
    drawn = turnout(
        "sample", path, "-c", "kind", "-e", 1, "--method", "minimax", "--trim", "--json"
    )
    assert drawn.exit_code == 0, drawn.stderr
    assert json.loads(drawn.stdout)
