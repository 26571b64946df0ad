"""Series over time: order, gaps, tables, and what the pictures show."""

import datetime
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.collecting.groups.series_pictures import runs
from turnout.errors import InvalidValueError
from turnout.frequency.groups import GroupedTally, Series

ORACLE = tn.DirectEncoding(3.0, tn.Domain(["no", "yes"]))


def tally(yes: int, nodes: int = 1000, seed: int = 1) -> tn.Tally:
    return ORACLE.simulate([nodes - yes, yes], seed=seed)


@pytest.fixture
def grouped() -> GroupedTally:
    start = datetime.date(2026, 2, 26)
    tallies = {}
    for country, days in (("DE", (0, 1, 2, 5, 6)), ("FR", (1, 2))):
        for day in days:
            tallies[country, start + datetime.timedelta(day)] = tally(100 * day, seed=day)
    tallies["FR", start] = tally(0, 0)
    return GroupedTally(["country", "day"], tallies)


def test_times_are_in_order_and_other_columns_make_panels(grouped: GroupedTally) -> None:
    series = grouped.estimate().series()
    assert series.time == "day"
    assert series.names == ("country",)
    assert series.panels == [("DE",), ("FR",)]
    assert series.times == [
        datetime.date(2026, month, day)
        for month, day in ((2, 26), (2, 27), (2, 28), (3, 3), (3, 4))
    ]
    assert series.received("DE").tolist() == [1000] * 5
    assert series.received("FR").tolist() == [0, 1000, 1000, 0, 0]
    shares = series.numbers("FR")
    assert np.isnan(shares[:, 0]).tolist() == [True, False, False, True, True]
    assert np.array_equal(shares[1], grouped["FR", series.times[1]].estimate().frequencies)
    limits = series.estimate.interval(simultaneous="sidak")
    low, high = series._picked(limits.low, "FR"), series._picked(limits.high, "FR")
    assert np.isnan(low[0]).all()
    assert (low[1] < high[1]).all()
    assert "5 times of 'day', 2 series" in repr(series)


def test_numbers_are_ordered_as_numbers_and_texts_as_texts() -> None:
    numbers = GroupedTally(["week"], {week: tally(5) for week in (10, 9, 2)})
    assert numbers.estimate().series().times == [2, 9, 10]
    texts = GroupedTally(["week"], {week: tally(5) for week in ("10", "9", "2")})
    assert texts.estimate().series().times == ["10", "2", "9"]


def test_groups_without_a_time_are_in_the_table_only() -> None:
    grouped = GroupedTally(["day"], {None: tally(5), 2: tally(6), 1: tally(7)})
    series = grouped.estimate().series()
    assert series.times == [1, 2]
    assert [row["group"]["day"] for row in series.to_records()][::2] == [None, 1, 2]


def test_records_go_series_by_series(grouped: GroupedTally) -> None:
    series = grouped.over("day", "country").estimate().series("day")
    order = [tuple(row["group"].values()) for row in series.to_records()][::2]
    assert [country for _, country in order] == ["DE"] * 5 + ["FR"] * 3
    assert [day for day, _ in order[:5]] == series.times


@pytest.mark.parametrize(
    ("positions", "known", "expected"),
    [
        ([], [], []),
        ([1.0], [True], [(0, 1)]),
        ([1.0], [False], []),
        ([1, 2, 3, 5, 6], [True] * 5, [(0, 3), (3, 5)]),
        ([1, 2, 3, 4], [True, False, True, True], [(0, 1), (2, 4)]),
        ([0, 31, 59, 90, 120], [True] * 5, [(0, 5)]),
        ([0, 31, 59, 120], [True] * 4, [(0, 3), (3, 4)]),
        ([0, 365, 731], [False, True, True], [(1, 3)]),
    ],
)
def test_runs_break_where_something_is_missing(
    positions: list[float], known: list[bool], expected: list[tuple[int, int]]
) -> None:
    assert [(run.start, run.stop) for run in runs(positions, np.array(known, bool))] == expected


def test_the_time_must_be_clear(grouped: GroupedTally) -> None:
    with pytest.raises(InvalidValueError, match="time must be one of the columns"):
        grouped.estimate().series("hour")
    unclear = GroupedTally(["a", "b"], {(1, 2): tally(5)})
    with pytest.raises(InvalidValueError, match="several could be the time"):
        unclear.estimate().series()
    assert isinstance(unclear.estimate().series("b"), Series)
    for panel in (None, "IT", ("DE", 1)):
        with pytest.raises(InvalidValueError, match="panel"):
            grouped.estimate().series().numbers(panel)


@pytest.fixture
def close_figures() -> Any:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_the_lines_are_broken_where_there_are_no_reports(
    grouped: GroupedTally, close_figures: Any
) -> None:
    figure = grouped.select(country="DE").over("day").estimate().series().plot()
    figure.canvas.draw()
    top, bottom = figure.axes
    lines = [line.get_ydata() for line in top.get_lines() if len(line.get_ydata()) > 1]
    pieces = [len(line) for line in lines if not np.array_equal(line, [0, 0])]
    assert pieces == [3, 2, 3, 2]
    assert [bar.get_height() for bar in bottom.patches] == [1000.0] * 5
    assert all(bar.get_width() == pytest.approx(0.7) for bar in bottom.patches)
    assert bottom.get_xlabel() == "day"
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["no", "yes"]
    assert "5,000 reports" in figure.get_suptitle()


@pytest.mark.parametrize(
    "times",
    [
        [1, 2, 4],
        [0.5, 1.5],
        ["a", "b" * 50],
        [datetime.time(1), datetime.time(2)],
        [datetime.datetime(2026, 1, 1, hour) for hour in range(5)],
        [datetime.datetime(2026, 1, 1, hour, tzinfo=datetime.timezone.utc) for hour in range(3)],
        [datetime.date(2026, 1, 1)],
        [True, False],
        list(range(100)),
        [f"version {number}" for number in range(80)],
    ],
)
def test_any_kind_of_time_can_be_drawn(times: list[Any], close_figures: Any) -> None:
    grouped = GroupedTally(["t"], {time: tally(10, 50) for time in times})
    figure = grouped.estimate().series().plot(simultaneous="bonferroni", over="groups")
    figure.canvas.draw()
    assert "all groups of an answer at once" in figure.get_suptitle()


def test_many_series_groups_and_answers_are_cut_with_a_word(close_figures: Any) -> None:
    oracle = tn.DirectEncoding(3.0, 30)
    many = GroupedTally(
        ["g", "t"],
        {
            (group, time): oracle.simulate([10 + group] * 30, seed=group)
            for group in range(50)
            for time in range(2)
        },
    )
    figure = many.estimate().series("t").plot()
    assert len(figure.axes) == 16
    assert "8 largest of 50 series, 6 of 30 answers" in figure.get_suptitle()
    groups = many.over("g").estimate().plot()
    assert "40 largest of 50 groups, 12 of 30 answers" in groups.get_suptitle()
    assert len(groups.axes[0].get_yticks()) == 40


def test_groups_are_drawn_with_their_intervals(grouped: GroupedTally, close_figures: Any) -> None:
    countries = grouped.over("country") + GroupedTally(["country"], {"NL": tally(0, 0)})
    estimate = countries.estimate()
    figure = estimate.plot(labels=["yes"])
    figure.canvas.draw()
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        "DE  (5,000)",
        "FR  (2,000)",
        "NL  (0)",
    ]
    points = next(line for line in axes.get_lines() if line.get_marker() == "o")
    assert np.array_equal(points.get_xdata(), estimate.frequencies[:2, 1])
    assert [text.get_text() for text in axes.texts] == ["no reports"]
    assert axes.get_title(loc="left") == "yes"


def test_a_biased_estimate_is_drawn_without_intervals(close_figures: Any) -> None:
    oracle = tn.DirectEncoding(3.0, 2)
    half = {t: oracle.simulate([500, 500], participation=0.5, seed=1) for t in (1, 2)}
    estimate = GroupedTally(["t"], half).estimate("c")
    for figure in (estimate.plot(), estimate.series().plot()):
        figure.canvas.draw()
        assert "biased: no intervals" in figure.get_suptitle()


def test_nothing_to_draw_is_refused(close_figures: Any) -> None:
    none = GroupedTally(["t"], {}, plan=tally(1).plan).estimate()
    for draw in (none.plot, none.series().plot):
        with pytest.raises(
            InvalidValueError, match=r"the (series has no times|estimate has no groups) to draw"
        ):
            draw()
    some = GroupedTally(["t"], {1: tally(1)}).estimate()
    with pytest.raises(ValueError, match="maybe"):
        some.plot(labels=["maybe"])
    with pytest.raises(InvalidValueError, match="at least one answer"):
        some.series().plot(labels=[])


@pytest.mark.parametrize(
    ("times", "steps"),
    [
        (["2024-01-31", "2024-02-01", "2024-02-04"], [1, 3]),
        (["2024-01", "2024-02", "2024-04"], [31, 60]),
        (["2001", "2002", "2005"], [1, 3]),
    ],
)
def test_texts_of_dates_and_years_stand_where_they_are(
    close_figures: Any, times: list[str], steps: list[int]
) -> None:
    tallies = {("DE", time): ORACLE.simulate([100, 200], seed=1) for time in times}
    grouped = GroupedTally(["country", "year"], tallies)
    bottom = grouped.estimate().series().plot().axes[1]
    assert np.diff([bar.get_center()[0] for bar in bottom.patches]).tolist() == steps


def test_the_panels_of_groups_have_one_scale(close_figures: Any) -> None:
    tallies = {country: ORACLE.simulate([900, 20], seed=1) for country in ("DE", "FR")}
    figure = GroupedTally(["country"], tallies).estimate().plot()
    assert len({axes.get_xlim() for axes in figure.axes}) == 1
