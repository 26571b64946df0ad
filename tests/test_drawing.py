"""What pictures share: names of answers, intervals, titles and legends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout._drawing import draw_intervals, draw_rows, finish, name_answers, new_axes

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def no_figure_stays() -> Iterator[None]:
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


def test_pictures_are_as_wide_as_they_have_answers() -> None:
    widths = [
        tn.DirectEncoding(1.0, size).simulate([100] * size).estimate().plot().figure.bbox.width
        for size in (3, 10, 60)
    ]
    assert widths == sorted(widths)
    assert widths[0] < widths[2] / 2


def test_names_that_have_no_room_for_a_line_have_several_or_are_turned() -> None:
    for labels, rotation, text in (
        (["yes", "no"], 0, "yes"),
        (["a longer name of an answer"] * 4, 0, "a longer name of\nan answer"),
        (["a_longer_name_of_an_answer"] * 4, 40, "a_longer_name_of_an_answer"),
        (["a name"] * 30, 90, "a name"),
        ([("f", 30), ("m", 40)], 0, "f, 30"),
    ):
        axes: Any = new_axes(None)
        name_answers(axes, np.arange(len(labels)), labels)
        assert {label.get_rotation() for label in axes.get_xticklabels()} == {rotation}
        assert axes.get_xticklabels()[0].get_text() == text
        assert axes.get_xlim() == (-0.5, len(labels) - 0.5)


def test_names_that_have_room_stay_in_one_line() -> None:
    for labels in (
        ["very poor", "poor", "fair", "good", "very good"],
        ["walk", "bicycle", "tram", "bus", "train", "car"],
    ):
        axes: Any = tn.DirectEncoding(3.0, labels).simulate([100] * len(labels)).estimate().plot()
        assert [name.get_text() for name in axes.get_xticklabels()] == labels
        assert {name.get_rotation() for name in axes.get_xticklabels()} == {0}


LONG = [f"sometimes pressed, {number}" for number in range(200)]
WORDS = ["never pressed", "sometimes pressed", "often pressed", "prefer not to say"]


def overlaps(axes: Any) -> bool:
    """Whether two names next to each other have letters in the same place."""
    axes.figure.canvas.draw()
    names = axes.get_xticklabels()
    boxes = [name.get_window_extent() for name in names]
    if not names[0].get_rotation():
        return any(one.x1 > two.x0 for one, two in pairwise(boxes))
    # Turned names are as far from each other as they are high.
    high = 10 / 72 * axes.figure.dpi
    apart = np.diff(axes.transData.transform([(x, 0) for x in axes.get_xticks()])[:, 0]).min()
    return bool(apart * np.sin(np.radians(names[0].get_rotation())) < high)


@pytest.mark.parametrize("size", [2, 4, 6, 9, 20, 39])
@pytest.mark.parametrize("words", ["short", "long", "wide"])
def test_names_of_answers_do_not_overlap(size: int, words: str) -> None:
    labels = [text[:4] + text[18:] for text in LONG] if words == "short" else LONG
    if words == "wide":
        labels = [f"{'W' * 9} {text}" for text in LONG]
    estimate = tn.DirectEncoding(3.0, labels[:size]).simulate([100] * size).estimate()
    assert not overlaps(estimate.plot())


@pytest.mark.parametrize("three", [False, True])
def test_names_below_joint_tables_do_not_overlap(three: bool) -> None:
    questions = {"sex": ["female", "male", "another"], "vote": WORDS}
    if three:
        questions["site"] = ["North Hall", "South", "West"]
    table = tn.JointTable(3.0, questions)
    estimate = table.simulate([100] * table.domain.size, seed=1).estimate()
    axes: Any = estimate.plot()
    assert not overlaps(axes)
    assert not any("(" in name.get_text() for name in axes.get_xticklabels())
    assert not overlaps(estimate.marginal("vote").plot())
    assert not overlaps(estimate.conditional("vote", given="sex").plot())


def test_the_legend_of_a_series_stays_in_its_picture() -> None:
    table = tn.JointTable(3.0, {"sex": ["female", "another"], "vote": WORDS})
    days = {f"2026-03-0{day + 1}": table.simulate([100] * 8, seed=day) for day in (1, 2, 3)}
    figure: Any = tn.GroupedTally(["day"], days).estimate().series().plot()
    figure.canvas.draw()
    [legend] = figure.legends
    assert "female, sometimes pressed" in [text.get_text() for text in legend.get_texts()]
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    # Few days are named each, and nothing between them is.
    names = [name.get_text() for name in figure.axes[1].get_xticklabels()]
    assert [name.rpartition("-")[2] for name in names] == ["02", "03", "04"]


@pytest.mark.parametrize("down", [False, True])
def test_intervals_are_drawn_where_they_are_finite(down: bool) -> None:
    axes: Any = new_axes(None)
    limits = np.array([0.1, -np.inf, 0.3]), np.array([0.2, np.inf, 0.5])
    draw_intervals(axes, np.arange(3), limits, down=down)
    paths = [path for each in axes.collections for path in each.get_paths()]
    drawn = [path.vertices[:, 0 if down else 1] for path in paths if len(path.vertices) == 2]
    drawn = [ends for ends in drawn if np.isfinite(ends).all()]
    np.testing.assert_allclose(drawn, [[0.1, 0.2], [0.3, 0.5]])


def test_rows_stand_from_the_top_and_the_largest_name_is_cut() -> None:
    nothing = np.full(2, np.nan)
    axes: Any = draw_rows(
        ["first", "x" * 80], np.array([1.0, 2.0]), (nothing, nothing), title="t", note="n"
    )
    low, high = axes.get_ylim()
    assert low > high
    assert [len(label.get_text()) for label in axes.get_yticklabels()] == [5, 30]


def test_a_legend_above_or_beside_covers_nothing() -> None:
    for place in ("above", "beside"):
        axes: Any = new_axes(None)
        axes.plot([0, 1], [0, 1], label="a line")
        finish(axes, "a title " * 30, legend=place)
        axes.figure.canvas.draw()
        box = axes.get_legend().get_window_extent()
        within = axes.get_window_extent()
        assert box.y0 > within.y1 - 1 if place == "above" else box.x0 > within.x1 - 1
        title = axes._left_title.get_window_extent()
        assert title.x1 <= axes.figure.bbox.x1
        assert not title.overlaps(box)


def test_a_legend_of_rows_covers_none_of_them() -> None:
    limits = np.zeros(3), np.full(3, 2.0)
    means: Any = draw_rows(["a", "b", "c"], np.ones(3), limits, title="t", note="n", total=1.0)
    wave = tn.SquareWave(1.0, (0, 8), bins=8)
    tallies = [wave.collect(np.full(500, number), seed=number) for number in (2, 3, 6)]
    groups = [("a",), ("b",), ("c",)]
    grouped = tn.GroupedTally(["g"], dict(zip(groups, tallies, strict=True))).estimate()
    medians: Any = grouped.plot()
    for axes in (means, medians):
        axes.figure.canvas.draw()
        assert axes.get_legend().get_window_extent().y0 > axes.get_window_extent().y1 - 1
