"""``turnout sample-reference``, and records that are drawn around what it collected."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import turnout as tn

Run = Callable[..., Any]

STATED = (
    "-c", "age,sex,town", "--bounds", "age=17:91", "--labels", "sex=f,m",
    "--labels", "town=A,B,C", "--rows-are", "who",
)  # fmt: skip
COLUMNS = {
    "age": {"bounds": (17, 91)},
    "sex": {"labels": ["f", "m"]},
    "town": {"labels": ["A", "B", "C"]},
}


def people(number: int, folder: Path, name: str = "people.csv") -> Path:
    """Everybody has two rows of their own sex; women are 30, men 60 years old."""
    each = np.repeat(np.arange(number), 2)
    frame = pd.DataFrame(
        {
            "who": [f"p{person}" for person in each],
            "age": np.where(each % 4 == 0, 30, 60),
            "sex": np.where(each % 4 == 0, "f", "m"),
            "town": np.array(["A", "B"])[each % 2],
        }
    )
    path = folder / name
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("pairs", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_records_are_drawn_around_what_people_reported(
    tmp_path: Path, turnout: Run, pairs: bool
) -> None:
    source, target = people(400, tmp_path), tmp_path / "around.json"
    words = ["sample-reference", source, *STATED, "-e", 0.5, "-o", target, "--seed", 3]
    done = turnout(*words, *(["--pairs"] if pairs else []))
    assert done.exit_code == 0, done.stderr
    said = " ".join(done.stdout.split())
    assert "people 400" in said
    assert ("two columns" if pairs else "one column") in said
    assert "use for tests only" in done.stderr
    frame = pd.read_csv(source)
    rows, whose = frame.drop(columns="who"), frame["who"]
    expected = tn.samplers.collect_reference(0.5, COLUMNS, rows, whose, pairs=pairs, seed=3)
    found = json.loads(target.read_text())
    assert (found["epsilon"], found["users"], len(found["pairs"])) == (0.5, 400, 3 if pairs else 0)
    assert found["marginals"] == [list(shares) for shares in expected.marginals.values()]
    # The same draws as in Python, with the seed and the reference in memory.
    answer = json.loads(
        turnout(
            "sample", source, *STATED, "-e", 1.5, "--reference", target, "--seed", 4, "--json"
        ).stdout
    )
    sampler = tn.samplers.TableSampler(1.5, COLUMNS, reference=expected)
    draws = tn.samplers.sample_population(sampler, rows, whose, seed=4)
    drawn = pd.DataFrame(answer["records"])
    assert drawn.drop(columns="who").equals(draws.draws.astype(drawn.dtypes[1:].to_dict()))
    assert answer["reference"] == str(target)
    assert "epsilon = 0.5 of each of 400 people" in answer["guarantee"]
    assert answer["guarantee"].endswith("spends 2.0 in total.")
    shown = turnout("sample", source, *STATED, "-e", 1.5, "--reference", target).stderr
    assert "the distribution that people reported, in" in " ".join(shown.split())


def test_a_job_goes_on_with_the_same_reference_alone(tmp_path: Path, turnout: Run) -> None:
    source, out = people(40, tmp_path), tmp_path / "records"
    files = [tmp_path / "one.json", tmp_path / "other.json"]
    for seed, file in enumerate(files):
        turnout("sample-reference", source, *STATED, "-e", 1, "-o", file, "--seed", seed)
    words = ["sample", source, *STATED, "-e", 1, "-o", out, "--resume", "--reference"]
    assert turnout(*words, files[0]).exit_code == 0
    again = turnout(*words, files[0])
    assert "nobody was drawn" in again.stderr
    assert turnout(*words, files[1]).exit_code == 1


@pytest.mark.slow
def test_an_attacker_knows_the_reference(tmp_path: Path, turnout: Run) -> None:
    pytest.importorskip("sklearn")
    source, around = people(40, tmp_path), tmp_path / "around.json"
    records = tmp_path / "records.csv"
    turnout("sample-reference", source, *STATED, "-e", 1, "-o", around)
    turnout("sample", source, *STATED, "-e", 2, "--reference", around, "-o", records)
    words = ["sample-report", source, records, *STATED, "-e", 2, "--reference", around, "--json"]
    assert 0.0 < json.loads(turnout(*words).stdout)["attack"]["right"] <= 1.0


def test_people_who_reported_are_not_asked_again_unnoticed(tmp_path: Path, turnout: Run) -> None:
    source, target = people(10, tmp_path), tmp_path / "around.json"
    words = ["sample-reference", source, *STATED, "-e", 1, "-o", target, "--json"]
    found = json.loads(turnout(*words).stdout)
    assert (found["people"], found["epsilon"], found["pairs"]) == (10, 1.0, False)
    assert found["columns"] == ["age", "sex", "town"]
    before = target.read_bytes()
    done = turnout(*words)
    assert (done.exit_code, "already exists" in done.stderr) == (1, True)
    assert target.read_bytes() == before
    assert turnout(*words, "--overwrite").exit_code == 0
    assert target.read_bytes() != before


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("--bounds", "age=17:90"), "was collected for other columns: 'age' differs"),
        (("--bins", "age=8"), "was collected for other columns: 'age' differs"),
        (("--labels", "sex=m,f"), "was collected for other columns: 'sex' differs"),
        (("--missing", "keep"), "'age', 'sex', 'town' differ;"),
        (("-c", "sex,age,town"), "was collected for other columns; pass the same columns in"),
    ],
)
def test_a_reference_of_other_columns_is_refused(
    tmp_path: Path, turnout: Run, changed: tuple[str, str], said: str
) -> None:
    source, target = people(10, tmp_path), tmp_path / "around.json"
    turnout("sample-reference", source, *STATED, "-e", 1, "-o", target)
    words = list(STATED)
    if changed[0] == "--labels":
        words[5] = changed[1]
    elif changed[0] in words:
        words[words.index(changed[0]) + 1] = changed[1]
    else:
        words += changed
    done = turnout("sample", source, *words, "-e", 1, "--reference", target)
    assert done.exit_code == 1
    assert said in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("-o", "around.csv"), 2, "around.csv does not end in .json"),
        (("-o", "a.json", "--round"), 2, "No such option"),
        (("-o", "a.json", "-c", "age,sex", "--pairs"), 2, "needs at least three columns"),
        (("-o", "nowhere/a.json"), 1, "nowhere"),
    ],
)
def test_what_cannot_be_is_refused(
    tmp_path: Path, turnout: Run, words: tuple[str, ...], code: int, said: str
) -> None:
    source = people(10, tmp_path)
    stated = STATED if "-c" not in words else (*STATED[2:6], *STATED[8:])
    done = turnout("sample-reference", source, *stated, "-e", 1, *words)
    assert done.exit_code == code, done.stderr
    assert said in " ".join(done.stderr.replace("│", " ").split())


def test_a_collected_reference_is_for_tables(tmp_path: Path, turnout: Run) -> None:
    source = people(10, tmp_path)
    words = ["sample", source, "-c", "sex", "--labels", "sex=f,m", "-e", 1, "--method", "mollifier"]
    done = turnout(*words, "--reference", tmp_path / "around.json")
    assert done.exit_code == 2
    assert "was collected for tables" in " ".join(done.stderr.replace("│", " ").split())
