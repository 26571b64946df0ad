"""``turnout sample``: shares of users with one value, public references, and what records keep."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

Run = Callable[..., Any]

#: How many users hold each label.
HELD = {"w": 10, "x": 60, "y": 30}


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rows = [label for label, number in HELD.items() for _ in range(number)]
    path = tmp_path / "people.csv"
    path.write_text("who,kind\n" + "".join(f"{who},{kind}\n" for who, kind in enumerate(rows)))
    return path


def answer(turnout: Run, *arguments: object) -> dict[str, Any]:
    result = turnout("sample", *arguments, "--seed", 2, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_shares_are_estimated_where_every_user_holds_one_value(people: Path, turnout: Run) -> None:
    options = (people, "-c", "kind", "--method", "mollifier", "-e", 3, "--rows-are", "who")
    assert "estimates" not in answer(turnout, *options)
    found = answer(turnout, *options, "--assume", "one-value")["estimates"]
    for row in found:
        assert row["low"] < HELD[row["label"]] / 100 < row["high"]
        assert row["high"] - row["low"] < 0.3
    text = turnout("sample", *options, "--assume", "one-value", "-o", people.with_name("r.csv"))
    assert "95 % interval" in text.stdout
    several = people.with_name("several.csv")
    several.write_text(people.read_text() + "0,x\n0,y\n1,w\n")
    said = turnout("sample", several, *options[1:], "--assume", "one-value", "--seed", 1).stderr
    assert "note: --assume one-value: 1 users hold more than one" in said


def test_rows_that_are_users_hold_one_value_in_the_picture(
    people: Path, turnout: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from turnout.samplers import PopulationDraws

    assumed = []
    real = PopulationDraws.estimate

    def estimate(self: Any, **options: Any) -> Any:
        assumed.append(options.get("assume"))
        return real(self, **options)

    monkeypatch.setattr(PopulationDraws, "estimate", estimate)
    for more in ((), ("--rows-are", "who")):
        picture = people.with_name("picture.png")
        options = ("-c", "kind", "--method", "mollifier", "-e", 3, "--plot", picture, *more)
        assert turnout("sample", people, *options).exit_code == 0
        assert picture.exists()
    assert assumed == ["one_value", None]


def test_public_rows_are_what_records_are_drawn_around(
    people: Path, turnout: Run, tmp_path: Path
) -> None:
    public = tmp_path / "public.csv"
    public.write_text("kind\n" + "w\n" * 97 + "x\ny\n")
    options = (people, "-c", "kind", "--method", "mollifier", "-e", 0.01, "--rows-are", "who")
    found = answer(turnout, *options, "--reference", public)
    kinds = [row["kind"] for row in found["records"]]
    assert kinds.count("w") > 85
    assert found["method"] == "mollifier"
    numbers = tmp_path / "numbers.csv"
    numbers.write_text("x\n" + "".join(f"{value}\n" for value in np.linspace(99, 101, 60)))
    own = tmp_path / "own.csv"
    own.write_text("x\n" + "5\n" * 30)
    drawn = answer(
        turnout, own, "-c", "x", "--method", "density", "-e", 0.1, "--reference", numbers
    )["records"]
    assert all(90 < row["x"] < 110 for row in drawn)
    public.write_text("kind\nother\nw\n")
    refused = turnout("sample", *options, "--reference", public)
    assert refused.exit_code == 1
    assert "--reference" in refused.stderr
    for wrong in (("--method", "minimax"), ("--bounds", "x=0:9")):
        assert turnout("sample", *options, "--reference", public, *wrong).exit_code == 2
    assert (
        turnout(
            "sample", own, "-c", "x", "--method", "density", "-e", 1, "--assume", "one-value"
        ).exit_code
        == 2
    )


def test_what_records_keep_is_told_to_whoever_holds_the_rows(people: Path, turnout: Run) -> None:
    more = people.with_name("more.csv")
    # Users count once, however many rows they have.
    more.write_text(people.read_text() + "0,w\n" * 400)
    found = answer(
        turnout,
        more,
        "-c",
        "kind",
        "--method",
        "mollifier",
        "-e",
        3,
        "--rows-are",
        "who",
        "--quality",
    )
    own = {row["label"]: row["own"] for row in found["quality"]["labels"]}
    assert own == {label: pytest.approx(number / 100) for label, number in HELD.items()}
    kinds = [row["kind"] for row in found["records"]]
    drawn = {label: kinds.count(label) / 100 for label in HELD}
    distance = sum(abs(own[label] - drawn[label]) for label in HELD) / 2
    assert found["quality"]["total_variation"] == pytest.approx(distance)
    numbers = people.with_name("numbers.csv")
    numbers.write_text("who,x\n1,0.5\n1,0.5\n2,0.25\n3,0.75\n")
    options = (
        numbers,
        "-c",
        "x",
        "--method",
        "density",
        "-e",
        3,
        "--bounds",
        "x=0:1",
        "--rows-are",
        "who",
        "--quality",
    )
    (column,) = answer(turnout, *options)["quality"]["columns"]
    assert column["own"] == {"mean": pytest.approx(0.5), "deviation": pytest.approx(6**-0.5 / 2)}
    text = turnout("sample", *options, "-o", people.with_name("r.csv")).stdout
    assert "this protects nobody" in text
