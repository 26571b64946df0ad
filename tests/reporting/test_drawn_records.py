"""The page of drawn records: what it says, and that it needs nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from turnout.errors import InvalidValueError
from turnout.reporting import report
from turnout.samplers import TableQuality, TableSampler, quality, sample_population

pytest.importorskip("sklearn")

COLUMNS = {"age <b>": (17, 91), "sex": ["f", "m"]}


@pytest.fixture(scope="module")
def found() -> TableQuality:
    generator = np.random.default_rng(1)
    frame = pd.DataFrame(
        {"age <b>": generator.integers(17, 91, 120), "sex": generator.choice(["f", "m"], 120)}
    )
    users = np.repeat(range(30), 4)
    return quality(frame, sample_population(TableSampler(1.0, COLUMNS), frame, users, seed=1),
                   users=users)  # fmt: skip


def test_the_page_has_all_that_was_found(found: TableQuality, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    report(found, path, title="Visits & records", notes=["Drawn on Monday."])
    text = path.read_text("utf-8")
    assert "<h1>Visits &amp; records</h1>" in text
    assert "age &lt;b&gt;" in text
    assert "age <b>" not in text
    for distance in found.total_variation.values():
        assert f">{distance:.3f}<" in text
    assert found.attack is not None
    assert f"{100 * found.attack['right']:.1f} %" in text
    assert "no attacker exceeds 73.1 %" in text
    assert "protects nobody" in text
    assert "Drawn on Monday." in text
    # A picture for each column, and of pairs, distances, models and the attacker.
    assert text.count("<img") == text.count("data:image/svg+xml;base64,") == 2 + 4
    assert not re.search(r"<script|https?://", text)
    again = tmp_path / "again.html"
    report(found, again, title="Visits & records", notes=["Drawn on Monday."])
    assert again.read_bytes() == path.read_bytes()


def test_a_page_without_people_says_what_an_attacker_takes(tmp_path: Path) -> None:
    frame = pd.DataFrame({"sex": ["f", "m", "f", "m"]})
    path = tmp_path / "page.html"
    report(quality(frame, frame, {"sex": ["f", "m"]}), path)
    text = path.read_text("utf-8")
    assert "Not measured" in text
    assert "Pairs of columns" not in text


def test_options_of_estimates_are_refused(found: TableQuality, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="takes no arguments except title and notes"):
        report(found, tmp_path / "page.html", level=0.9)
    assert not list(tmp_path.iterdir())
