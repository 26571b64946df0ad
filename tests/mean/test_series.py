"""Means over time: in order, with gaps where nobody reported."""

import datetime
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.errors import InvalidValueError

HOURS = tn.mean.Piecewise(4.0, (0, 24))


def on(day: int) -> datetime.date:
    return datetime.date(2026, 3, day)


def grouped(mechanism: Any = HOURS) -> tn.GroupedTally:
    def collected(nodes: int, mean: float) -> Any:
        values = np.full((nodes, mechanism.dimensions), mean)
        return mechanism.collect(values[:, 0] if mechanism.dimensions == 1 else values, seed=1)

    return tn.GroupedTally(
        ["country", "day"],
        {
            ("DE", on(4)): collected(900, 9.0),
            ("DE", on(1)): collected(900, 6.0),
            ("FR", on(2)): collected(400, 7.0),
            ("FR", on(3)): collected(0, 7.0),
        },
    )


def test_means_stand_in_order_of_time_with_gaps() -> None:
    estimate = grouped().estimate()
    series = estimate.series()
    assert (series.time, series.names) == ("day", ("country",))
    assert series.times == [on(day) for day in (1, 2, 3, 4)]
    means = series.numbers("DE")
    assert np.isnan(means[[1, 2], 0]).all()
    assert means[0, 0] == estimate["DE", on(1)].mean
    assert means[3, 0] == estimate["DE", on(4)].mean
    limits = estimate.interval(0.9, simultaneous="sidak")
    low, high = series._picked(limits.low, "FR"), series._picked(limits.high, "FR")
    row = estimate.groups.index(("FR", on(2)))
    assert (low[1, 0], high[1, 0]) == (limits.low[row, 0], limits.high[row, 0])
    assert series.received("FR").tolist() == [0, 400, 0, 0]
    assert [row["group"]["day"] for row in series.to_records()] == [on(1), on(4), on(2), on(3)]
    assert repr(series) == "Series(4 times of 'day', 2 series)"


def test_several_coordinates_are_lines() -> None:
    pytest.importorskip("matplotlib")
    points = tn.mean.Piecewise(4.0, (0, 24), dimensions=2)
    series = grouped(points).estimate().series()
    assert series.numbers("DE").shape == (4, 2)
    figure = series.plot(simultaneous="sidak")
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["coordinate 0", "coordinate 1"]
    assert figure.axes[0].get_ylabel() == "mean"


def test_what_is_no_time_is_refused() -> None:
    estimate = grouped().estimate()
    with pytest.raises(InvalidValueError, match="time must be one of the columns"):
        estimate.series("week")
    with pytest.raises(InvalidValueError, match="panel must be one of"):
        estimate.series().numbers("NL")
    none = tn.GroupedTally(["day"], {}, plan=grouped().plan)
    with pytest.raises(InvalidValueError, match="the series has no times"):
        none.estimate().series().plot()
