"""The page of a collection of numbers: mean, bounds, groups, time."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.reporting import report
from turnout.reporting.contents import Contents
from turnout.reporting.telling import View

pytest.importorskip("matplotlib")

HOURS = tn.mean.Piecewise(2.0, (0, 24))
HALF = tn.Bernoulli(0.5)


def words_of(tally: Any, tmp_path: Path, **options: Any) -> str:
    path = tmp_path / "page.html"
    report(tally, path, **options)
    return path.read_text(encoding="utf-8")


def grouped(mechanism: Any = HOURS) -> tn.GroupedTally:
    tallies = {}
    for country, nodes in (("DE", 2000), ("<b>FR", 500), ("NL", 0)):
        for day in (1, 2, 3):
            values = np.full((nodes, mechanism.dimensions), 6.5 + day)
            tallies[country, datetime.date(2026, 3, day)] = mechanism.collect(
                values[:, 0] if mechanism.dimensions == 1 else values, participation=HALF, seed=day
            )
    return tn.GroupedTally(["country", "day"], tallies)


def test_a_mean_is_told_with_its_interval_and_the_bounds(tmp_path: Path) -> None:
    tally = HOURS.collect([7.0, 8.0] * 1000, participation=HALF, seed=1)
    source = words_of(tally, tmp_path, title="How long do you sleep?", level=0.9)
    limits = tally.estimate().interval(0.9)
    assert "<h1>How long do you sleep?</h1>" in source
    assert "<strong>numbers</strong><span>from 0 to 24</span>" in source
    assert (
        f"is estimated as {tally.estimate().mean:.2f}: between {limits.low:.2f} and "
        f"{limits.high:.2f}, with 90 % confidence."
    ) in source
    assert "e^" not in source
    assert f"{HOURS.report_bits:,} bits" in source
    assert source.count("<img") == 1
    assert "answer</th>" not in source


def test_means_of_groups_and_over_time_are_on_the_page(tmp_path: Path) -> None:
    tally = grouped()
    source = words_of(tally, tmp_path, simultaneous="sidak")
    assert source.count("<img") == 4
    assert "By country" in source
    assert "Over time: day" in source
    assert "&lt;b&gt;FR" in source
    assert "<b>" not in source
    assert "the group has no nodes" in source
    assert "all means of all groups at once (Šidák)" in source
    limits = tally.over("country").estimate().interval(simultaneous="sidak")
    assert f"{limits.low[0, 0]:.2f} – {limits.high[0, 0]:.2f}" in source


def test_several_coordinates_are_rows(tmp_path: Path) -> None:
    points = tn.mean.Piecewise(4.0, (0, 24), dimensions=2)
    tally = grouped(points).total
    source = words_of(tally, tmp_path, simultaneous="bonferroni")
    assert "coordinate</th>" in source
    assert '<th scope="row">1</th>' in source
    assert "<strong>numbers</strong><span>2 of each person, from 0 to 24</span>" in source
    assert "for all 2 coordinates at once (Bonferroni)" in source
    contents = Contents.of(grouped(points), View("hajek", 0.9))
    # Groups of several numbers have a table, and lines over time.
    names = [part.name for part in contents.parts if part.drawn]
    assert names == ["estimate", "series", "series_by_group"]


def test_a_collection_of_numbers_without_reports_has_no_mean(tmp_path: Path) -> None:
    source = words_of(HOURS.collect([], participation=HALF), tmp_path)
    assert "There is no estimate" in source
