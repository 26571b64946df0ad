"""What every study can do with its records."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import matplotlib as mpl
import pytest

from turnout.errors import InvalidTypeError, InvalidValueError
from turnout_reproduce.curves import Curve, count_on_top
from turnout_reproduce.studies.study import Picture, Study, curve_of, grouped

mpl.use("agg")

from matplotlib import pyplot as plt


@dataclass(frozen=True)
class Row:
    name: str
    size: int
    rmse: float
    rmse_error: float
    unknown: float | None = None
    draws: tuple[float, ...] = field(default=(), repr=False)

    @property
    def half(self) -> float:
        return self.rmse / 2


ROWS = (
    Row("b", 2000, 0.5, 0.01, draws=(1.0,)),
    Row("a", 10, 0.25, math.nan),
    Row("a", 5, math.inf, 0.02),
)
PICTURE = Picture((Curve("a", (1.0,), (2.0,), panel="p"), Curve("b", (1.0,), (2.0,))), "x")
STUDY = Study(ROWS, {"repeats": 3}, PICTURE)


def test_the_table_has_what_is_known_of_the_records() -> None:
    assert STUDY.table().splitlines() == [
        "name   size        rmse   half",
        "b     2,000  0.5 ± 0.01   0.25",
        "a        10        0.25  0.125",
        "a         5  inf ± 0.02    inf",
    ]


def test_records_are_tables_of_programs_too() -> None:
    columns = ["name", "size", "rmse", "rmse_error", "unknown", "half"]
    assert STUDY.to_arrow().column_names == columns
    assert STUDY.to_pandas().shape == STUDY.to_polars().shape == (3, len(columns))
    assert STUDY._repr_html_().count("<tr>") == 4
    assert repr(STUDY) == "Study(3 records, repeats=3)"


def test_a_record_is_found_by_what_it_has() -> None:
    assert STUDY.find(name="a", size=5) is ROWS[2]
    with pytest.raises(InvalidValueError, match=r"no record with \{'name': 'c'\}"):
        STUDY.find(name="c")


def test_curves_are_sorted_and_have_the_errors_of_their_records() -> None:
    assert [(name, len(rows)) for name, rows in grouped(ROWS, "name")] == [("b", 1), ("a", 2)]
    curve = curve_of("all", ROWS, "size", "rmse")
    assert curve.x == (10.0, 2000.0)
    assert curve.y == (0.25, 0.5)
    assert curve.error is not None
    assert curve.error[1] == 0.01
    assert curve_of("half", ROWS, "size", "half").error is None


def test_a_picture_has_axes_for_each_panel() -> None:
    axes = STUDY.plot()
    assert [each.get_title(loc="left") for each in axes] == ["p", ""]
    assert STUDY.plot(axes) == axes
    with pytest.raises(InvalidTypeError, match="ax must be matplotlib axes, one for each of 2"):
        STUDY.plot(axes[0])
    plt.close(axes[0].figure)


@pytest.mark.parametrize("number", [3, 13])
def test_every_curve_has_a_colour_of_its_own(number: int) -> None:
    curves = tuple(Curve(f"{place}", (0.1, 1.0), (1.0, place)) for place in range(number))
    (axes,) = Study(ROWS, {}, Picture(curves, "x")).plot()
    assert len({mpl.colors.to_hex(line.get_color()) for line in axes.get_lines()}) == number
    plt.close("all")


def test_numbers_above_axes_have_separators() -> None:
    _, axes = plt.subplots()
    axes.set_xlim(0.0, 1.0)
    count_on_top(axes, "reports", 100_000)
    axes.figure.canvas.draw()
    (top,) = axes.child_axes
    assert "20,000" in [text.get_text() for text in top.get_xticklabels()]
    plt.close("all")
