"""The page that compares intervals with the truth, and the program that writes it."""

from __future__ import annotations

import csv
from pathlib import Path
from types import ModuleType

import pytest
from tests.loading import load

FOLDER = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def program() -> ModuleType:
    return load(FOLDER / "coverage.py", "coverage_page")


def test_the_page_has_every_kind_on_every_road_and_no_interval_that_is_too_short(
    program: ModuleType,
) -> None:
    page = program.PAGE.read_text(encoding="utf-8")
    rows = list(csv.reader(line[3:] for line in page.splitlines() if line.startswith("   ")))
    firsts = [row[0] for row in rows if row]
    assert [f"``{name}``" for name in program.ASKED] == firsts[3:][: len(program.ASKED)]
    roads = [f"{road.words} ({road.trials:,} trials)" for road in program.ROADS]
    assert ["kind", *roads] in rows
    for name, first in zip(program.mechanisms(), firsts[-len(program.mechanisms()) :], strict=True):
        assert first.startswith(f"``{name.split(',')[0]}``")
    numbers = [
        cell for row in rows for cell in row[1:] if cell[0].isdigit() and "trials" not in cell
    ]
    assert len(numbers) > 100
    assert all(90.0 < float(cell) <= 100.0 for cell in numbers)


def test_every_cell_is_made_by_a_run(program: ModuleType) -> None:
    for place, road in enumerate(program.ROADS):
        for name, asked in program.ASKED.items():
            found = program.counted(place, name, 1)
            taken = (asked.table or not road.for_table) and (asked.page or not road.for_page)
            assert (found is not None) == taken, (road.words, name)
            if found is not None:
                assert 0 <= found[0] <= found[1]
    for name in program.mechanisms():
        assert program.aggregated(name, 1)[1] == 4


def test_a_road_whose_intervals_are_too_short_is_marked(program: ModuleType) -> None:
    assert program.shown((950, 1000), 1000, 100) == "95.0"
    assert program.shown((860, 1000), 1000, 100) == "86.0 **!**"
    # As the days of permanent answers were before their tallies knew of each other.
    assert "!" in program.shown(program.naive(150), 150, 150)
