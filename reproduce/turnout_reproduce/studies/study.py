"""What every study gives: records, as a table and a picture."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from turnout import _arguments
from turnout._extras import require
from turnout._tables import Listing
from turnout._types import Axes
from turnout.errors import InvalidValueError
from turnout_reproduce.curves import Curve, count_on_top, draw, panels_of

Record = TypeVar("Record")

#: Of more curves in a panel the legend stands beside it, or below if there are several panels.
_MANY = 6


@dataclasses.dataclass(frozen=True)
class Picture:
    """What the picture of a study shows.

    Attributes
    ----------
    curves
        What is drawn, with axes for each panel.
    x, y
        What the axes are called.
    log
        Which of them are on a logarithmic scale: ``""``, ``"x"``, ``"y"`` or ``"xy"``.
    title
        What stands above, where there is one panel.
    top
        What a share of the whole is called above the axes, and the whole.
    names
        What the whole numbers along x stand for, if they stand for something.
    """

    curves: tuple[Curve, ...]
    x: str
    y: str = ""
    log: str = ""
    title: str = ""
    top: tuple[str, float] | None = None
    names: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, repr=False)
class Study(Listing, Generic[Record]):
    """What a study found.

    Attributes
    ----------
    records
        One for each setting; the function that made the study says what is in it.
    settings
        What all records share: sizes, repeats, methods.
    picture
        What :meth:`plot` draws.

    Examples
    --------
    >>> from turnout_reproduce.studies import compare_rates
    >>> study = compare_rates([700, 300], epsilons=[1.0], participations=[0.5, 1.0], seed=1)
    >>> study.find(rate=1.0).expected_reports
    1000.0
    >>> study.settings["method"]
    'hajek'
    """

    records: tuple[Record, ...]
    settings: Mapping[str, Any]
    picture: Picture

    @property
    def _columns(self) -> tuple[str, ...]:  # type: ignore[override]
        """Name the columns of the tables: what is shown of a record, and what follows from it."""
        kind: Any = type(self.records[0])
        shown = (each.name for each in dataclasses.fields(kind) if each.repr)
        derived = (name for name, value in vars(kind).items() if isinstance(value, property))
        return (*shown, *derived)

    def find(self, **values: Any) -> Record:
        """Find the first record that has some values.

        Raises
        ------
        InvalidValueError
            If there is none.
        """
        for record in self.records:
            if all(getattr(record, name) == value for name, value in values.items()):
                return record
        raise InvalidValueError(f"the study has no record with {_arguments.shown(values)}")

    def table(self) -> str:
        """Format the records as a plain-text table.

        Returns
        -------
        str
            A line for each record, without columns in which no record has anything; a number that
            has a standard error is followed by it.
        """
        rows = self.to_records()
        known = [name for name in self._columns if any(_known(row[name]) for row in rows)]
        errors = {f"{name}_error" for name in known} & set(known)
        lines = []
        for name in (name for name in known if name not in errors):
            error = f"{name}_error"
            cells = [_cell(row[name], row[error] if error in errors else None) for row in rows]
            cells.insert(0, name.replace("_", " "))
            width = max(map(len, cells))
            words = isinstance(rows[0][name], (str, tuple))
            lines.append([cell.ljust(width) if words else cell.rjust(width) for cell in cells])
        return "\n".join("  ".join(line).rstrip() for line in zip(*lines, strict=True))

    def plot(self, ax: Any = None) -> list[Axes]:
        """Draw the picture: a curve for each series of records, bars of two standard errors.

        Parameters
        ----------
        ax
            Matplotlib axes to draw on, one for each panel; new ones by default.

        Returns
        -------
        list of matplotlib.axes.Axes
            The axes.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidTypeError
            If ``ax`` is not as many axes as there are panels.
        """
        picture = self.picture
        number = len(panels_of(picture.curves))
        beside = number == 1 and len(picture.curves) > _MANY
        axes = _axes(ax, number, 2.6 if beside else 0.0, shared=bool(picture.y))
        draw(picture.curves, axes, x=picture.x, y=picture.y, log=picture.log)
        if beside:
            axes[-1].legend(frameon=False, fontsize="small", loc="center left",
                            bbox_to_anchor=(1.0, 0.5))  # fmt: skip
        elif number > 1:
            _below(axes)
        if number == 1 and picture.title:
            axes[0].set_title(picture.title, fontsize="medium")
        if picture.names:
            words: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
            for one in axes:
                one.set_xticks(range(len(picture.names)), picture.names, fontsize="small", **words)
        if picture.top is not None:
            count_on_top(axes[0], *picture.top)
        return axes

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={_arguments.shown(v)}" for name, v in self.settings.items())
        return f"Study({len(self.records)} records, {settings})"


def grouped(records: Iterable[Record], name: str) -> Iterator[tuple[Any, list[Record]]]:
    """Give each value of an attribute with the records that have it, in their order."""
    found: dict[Any, list[Record]] = {}
    for record in records:
        found.setdefault(getattr(record, name), []).append(record)
    yield from found.items()


def curve_of(label: str, records: Sequence[Any], x: str, y: str, panel: str = "") -> Curve:
    """Make a curve of two attributes of records, with the errors if they have some.

    What is not finite is not drawn.
    """
    drawn = [row for row in records if all(math.isfinite(getattr(row, name)) for name in (x, y))]
    rows = sorted(drawn, key=lambda row: float(getattr(row, x)))
    columns = [tuple(float(getattr(row, name)) for row in rows) for name in (x, y)]
    error = None
    if all(hasattr(row, f"{y}_error") for row in rows):
        error = tuple(float(getattr(row, f"{y}_error")) for row in rows)
    return Curve(label, columns[0], columns[1], error, panel)


def mean_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Give the interval of the mean of some repeats, by Student's t; all numbers for one repeat.

    Examples
    --------
    >>> low, high = mean_interval([1.0, 2.0, 3.0])
    >>> round(low, 3), round(high, 3)
    (-0.484, 4.484)
    """
    from scipy import special  # noqa: PLC0415 (slow)

    count = len(values)
    if count < 2:
        return -math.inf, math.inf
    mean, error = float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(count)
    half = float(special.stdtrit(count - 1, (1.0 + level) / 2.0)) * error
    return mean - half, mean + half


def _below(axes: list[Any]) -> None:
    """Put the legends of several panels below them, if one would cover its curves."""
    if max(len(one.get_legend_handles_labels()[1]) for one in axes) > _MANY:
        for one in axes:
            one.legend(frameon=False, fontsize="small", loc="upper center", ncols=2,
                       bbox_to_anchor=(0.5, -0.13))  # fmt: skip


def _axes(ax: Any, number: int, beside: float, *, shared: bool) -> list[Any]:
    """Take as many axes as there are panels, or make them, with room for a legend beside."""
    if ax is None:
        pyplot = require("matplotlib.pyplot", "plot")
        size = (2.0 + 4.8 * number + beside, 4.6)
        _, made = pyplot.subplots(
            1, number, figsize=size, layout="constrained", squeeze=False, sharey=shared
        )
        return list(made[0])
    given = list(ax) if isinstance(ax, (list, tuple, np.ndarray)) else [ax]
    if len(given) != number or not all(hasattr(one, "errorbar") for one in given):
        raise _arguments.mistyped(f"ax must be matplotlib axes, one for each of {number}", ax)
    return given


def _known(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _cell(value: Any, error: Any = None) -> str:
    """Write a value, and its error if it has one."""
    if not _known(value):
        return "-"
    if isinstance(value, (tuple, list)):
        return " ".join(map(_cell, value))
    if isinstance(value, (str, bool)):
        return str(value)
    whole = isinstance(value, int) or 1000.0 <= abs(value) < math.inf
    text = f"{value:,.0f}" if whole else f"{value:.4g}"
    return f"{text} ± {error:.1g}" if _known(error) else text
