"""Pictures of estimates: intervals by themselves, words, and room for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import turnout as tn
from turnout.distributed import SamplingAggregation

mpl.use("Agg")


@pytest.fixture(autouse=True)
def no_figure_stays() -> Iterator[None]:
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


def sampled(seed: int = 0) -> Any:
    mechanism = SamplingAggregation(
        tn.Domain.from_integers(3), 30, epsilon=1.0, delta=1e-5, dummies=100
    )
    return mechanism.run([0] * 30, seed=seed).estimate


@pytest.mark.parametrize("postprocessing", ["none", "simplex"])
def test_intervals_are_drawn_where_they_are_and_points_where_they_are(postprocessing: str) -> None:
    raw = sampled()
    interval = raw.interval(0.95)
    assert np.any((raw.frequencies < interval.low) | (raw.frequencies > interval.high))
    estimate = raw.project(postprocessing)
    axes: Any = estimate.plot()
    interval = estimate.interval(0.95)
    (arms,) = (found.get_segments() for found in axes.collections)
    drawn = np.array([segment[:, 1] for segment in arms])
    np.testing.assert_allclose(drawn, np.column_stack([interval.low, interval.high]))
    points = [line for line in axes.lines if line.get_marker() == "o"]
    np.testing.assert_array_equal(points[0].get_ydata(), estimate.frequencies)


def test_the_words_are_those_of_the_plan() -> None:
    axes: Any = sampled().plot()
    assert axes.get_title("left") == "30 users, sampling"
    assert axes.get_ylabel() == "share of all users"
    estimate = tn.DirectEncoding(1.0, 3).simulate([10, 20, 70], seed=1).estimate()
    axes = estimate.plot()
    assert axes.get_title("left") == "100 people answered, ε = 1"
    assert axes.get_ylabel() == "share of all people"
    biased = tn.DirectEncoding(1.0, 3).simulate([10, 20, 70], participation=0.5, seed=1)
    shown: Any = biased.estimate("c").plot()
    found = f"{biased.received} of 100 people answered, ε = 1, estimator c"
    assert shown.get_title("left") == found


def test_of_many_answers_the_most_frequent_are_named() -> None:
    labels = [f"place {number}" for number in range(300)]
    counts = [900 - number for number in range(300)]
    estimate = tn.DirectEncoding(9.0, labels).simulate(counts, seed=1).estimate()
    axes: Any = estimate.plot()
    axes.figure.draw_without_rendering()
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert shown == [record["label"] for record in sorted(
        estimate.to_records(), key=lambda record: -record["frequency"]
    )[:40]]  # fmt: skip
    assert axes.get_xlabel() == "answer, the 40 most frequent of 300"


def test_many_numbers_stand_where_they_are() -> None:
    ages = [*range(90, 17, -1)]
    axes: Any = tn.DirectEncoding(9.0, ages).simulate([10] * 73, seed=1).estimate().plot()
    drawn = [line for line in axes.lines if line.get_marker() == "."]
    np.testing.assert_array_equal(drawn[0].get_xdata(), range(18, 91))
    assert axes.get_xlabel() == "answer"


@pytest.mark.parametrize("size", [3, 100])
def test_the_legend_is_between_the_title_and_the_axes(size: int) -> None:
    estimate = tn.DirectEncoding(1.0, size).simulate([10] * size, seed=1).estimate()
    axes: Any = estimate.plot([1 / size] * size)
    axes.figure.draw_without_rendering()
    legend = axes.get_legend()
    box = legend.get_window_extent()
    assert box.y0 >= axes.bbox.y1
    title = axes._left_title
    assert title.get_window_extent().y0 >= box.y1
    assert [text.get_text() for text in legend.get_texts()] == ["truth", "estimate, 95 % intervals"]


def test_long_labels_are_cut() -> None:
    names = [f"{'a long label ' * 6}{index}" for index in range(3)] + ["x" * 30]
    estimate = tn.DirectEncoding(1.0, tn.Domain(names)).simulate([9, 9, 9, 9], seed=1).estimate()
    axes: Any = estimate.plot()
    # A layout without room for the labels warns, which is an error here.
    axes.figure.draw_without_rendering()
    shown = [label.get_text() for label in axes.get_xticklabels()]
    assert [len(name) for name in shown] == [30] * 4
    assert [name[-1] for name in shown] == ["…", "…", "…", "x"]
    assert all(name.startswith(cut[:29]) for name, cut in zip(names, shown, strict=True))


def test_labels_are_no_formulas() -> None:
    names = ["$5 to $10", "$\\frac$", "half \ud800"]
    estimate = tn.DirectEncoding(1.0, tn.Domain(names)).simulate([9, 9, 9], seed=1).estimate()
    axes: Any = estimate.plot()
    axes.figure.draw_without_rendering()
    shown = [label.get_text().replace(r"\$", "$") for label in axes.get_xticklabels()]
    assert shown == [*names[:2], "half ?"]
