"""Shared parts of pictures: axes, tick labels, intervals, titles and legends."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from turnout._extras import require
from turnout._label_texts import label_words, number_of
from turnout._types import Axes, Figure, Floats, Integers
from turnout.errors import InvalidTypeError, InvalidValueError

if TYPE_CHECKING:
    from matplotlib.axis import Axis


#: The colours of what is estimated, of what is known to be true, and of what all together are.
ESTIMATE: Final = "#1f6f8b"
TRUTH: Final = "#d1495b"
TOTAL: Final = "0.45"

#: Labels of more letters are cut, and those of several answers, whose parts are cut.
_LONGEST_NAME, _LONGEST_NAMES = 30, 40

#: The height of names along an axis and what is between two of them, in points; and how many lines
#: they may have.
_HEIGHT, _BETWEEN, _LINES = 12.0, 4.0, 3

#: Letters that take less room than others, and more.
_NARROW, _WIDE = frozenset("ijlt fr.,:;'|!()[]"), frozenset("mwMW%@…—")

#: How much room the marker of a legend takes, with what is around it.
_MARKER = 36.0

#: How much of the width that axes have at first stays theirs.
_SURE = 0.95


def new_axes(ax: Any, width: float = 7.0, height: float = 4.2) -> Axes:
    """Return the axes to draw on; create them if none are given.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InvalidTypeError
        If ``ax`` is not matplotlib axes.
    """
    pyplot = require("matplotlib.pyplot", "plot")
    if ax is None:
        _, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    elif not hasattr(ax, "errorbar"):
        raise InvalidTypeError(f"ax must be matplotlib axes, got {ax!r}")
    result: Axes = ax
    return result


def known_truth(truth: Any, size: int, each: str) -> Floats | None:
    """Check the true values, if given: one number for each entry that is drawn."""
    if truth is None:
        return None
    known = np.atleast_1d(np.asarray(truth, np.float64))
    if known.shape != (size,):
        raise InvalidValueError(f"truth must have one {each.format(size)}, got shape {known.shape}")
    return known


def panels(draw: Mapping[str, Callable[..., Any]], height: float = 3.6) -> Figure:
    """Draw panels in a column, each with its name before its title.

    Parameters
    ----------
    draw
        The function that draws each panel, by name. It gets the axes as ``ax``.
    height
        The height of each panel, in inches.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    pyplot = require("matplotlib.pyplot", "plot")
    figure, axes = pyplot.subplots(
        len(draw), 1, figsize=(8.4, height * len(draw)), layout="constrained", squeeze=False
    )
    for axis, (name, each) in zip(axes[:, 0], draw.items(), strict=True):
        each(ax=axis)
        axis.set_title(f"{name}: {axis.get_title(loc='left')}", fontsize=10, loc="left", pad=22)
    result: Figure = figure
    return result


def finish(axes: Axes, title: str, *, legend: str = "best", first: str = "") -> None:
    """Write the title and the legend, and hide the top and right spines.

    A legend ``"above"`` or ``"beside"`` the axes covers nothing, and its markers cannot be mistaken
    for points. Matplotlib lists lines before bars; ``first`` names an entry to put first.
    """
    axes.spines[["top", "right"]].set_visible(False)
    place: dict[str, Any] = {"loc": legend}
    lines = 0
    found = zip(*axes.get_legend_handles_labels(), strict=True)
    entries = sorted(found, key=lambda entry: entry[1] != first)
    if legend == "above":
        place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0, "ncols": 2}
        lines = -(-len(entries) // 2)
    elif legend == "beside":
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0}
    axes.legend(*zip(*entries, strict=True), frameon=False, fontsize=9, **place)
    axes.set_title(title, loc="left", fontsize=10, pad=6 + 16 * lines, wrap=True)


def name_answers(axes: Axes, positions: Floats | Integers, labels: Iterable[Any]) -> float:
    """Label the answers below the axis: broken into lines or rotated where space is short.

    Parameters
    ----------
    axes
        The axes to label.
    positions
        The position of each answer, ascending.
    labels
        The answers.

    Returns
    -------
    float
        The height of the names beyond one line, in inches.
    """
    names = list(map(short_label, labels))
    step = float(np.diff(positions).min()) if len(names) > 1 else 1.0
    ends = positions[0] - 0.5, positions[-1] + 0.5
    axes.set_xlim(*ends)
    width = 72 * axes.bbox.width / axes.figure.dpi * _SURE
    slot = width * step / (ends[1] - ends[0])
    lines = _in_lines(names, slot - _BETWEEN)
    if lines is not None:
        axes.set_xticks(positions, lines)
        return _HEIGHT / 72 * max(line.count("\n") for line in lines)
    axes.set_xticks(positions, names)
    angle = 40 if slot >= _HEIGHT / np.sin(np.radians(40)) else 90
    for name in axes.get_xticklabels():
        name.set(rotation=angle, ha="right", rotation_mode="anchor")
        name.set_verticalalignment("center" if angle == 90 else "top")
    return float(max(map(_width, names)) * np.sin(np.radians(angle)) - _HEIGHT) / 72


def heighten(axes: Axes, inches: float) -> None:
    """Heighten a picture that turnout created, so that names do not shrink the axes."""
    figure: Any = axes.figure
    figure.set_figheight(figure.get_figheight() + inches)


def _in_lines(names: Sequence[str], room: float) -> list[str] | None:
    """Break names into lines of a limited width in points; return None if this is impossible."""
    found = []
    for name in names:
        for letters in range(len(name), 0, -1):
            lines = textwrap.wrap(name, letters, break_long_words=False, break_on_hyphens=False)
            if len(lines) <= _LINES and all(_width(line) <= room for line in lines):
                found.append("\n".join(lines))
                break
            if len(lines) > _LINES:
                return None
        else:
            if name:
                return None
            found.append(name)
    return found


def _width(name: str) -> float:
    """Return the approximate width of a name in points."""
    return sum(map(_width_of_letter, name))


def _width_of_letter(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "FW":
        return 10.0
    if letter in _NARROW:
        return 3.8
    if letter in _WIDE:
        return 9.6
    return 7.0 if letter.isupper() else 6.1


def legend_columns(names: Sequence[str], figure: Any) -> int:
    """Return the number of legend columns that fit below a picture, at most six."""
    longest = max(map(_width, names)) + _MARKER
    return max(1, min(len(names), 6, int(72 * figure.get_figwidth() / longest)))


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Label the rows, the first at the top."""
    axes.set_yticks(range(len(names)), list(map(short, names)))
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)


def draw_intervals(
    axes: Axes,
    places: Floats | Integers,
    limits: tuple[Floats, Floats],
    *,
    colour: str = ESTIMATE,
    thin: bool = False,
    down: bool = False,
) -> None:
    """Draw the finite intervals, side by side or one below the other.

    They are drawn apart from the estimates: an estimate may be outside its interval, which is cut
    to [0, 1].
    """
    low, high = (np.where(np.isfinite(limit), limit, np.nan) for limit in limits)
    middle, half = (low + high) / 2, (high - low) / 2
    look: dict[str, Any] = {"elinewidth": 0.8} if thin else {"elinewidth": 1.6, "capsize": 3}
    if down:
        axes.errorbar(middle, places, xerr=half, fmt="none", ecolor=colour, **look)
    else:
        axes.errorbar(places, middle, yerr=half, fmt="none", ecolor=colour, **look)


def draw_rows(
    names: Sequence[str],
    values: Floats,
    limits: tuple[Floats, Floats],
    *,
    title: str,
    note: str,
    ax: Any = None,
    truth: Floats | None = None,
    total: float | None = None,
    quantity: str = "mean",
) -> Axes:
    """Draw numbers with their intervals in rows, the first name at the top.

    Parameters
    ----------
    names
        The name of each number.
    values
        The numbers; a nan is not drawn.
    limits
        The lower and the upper limits; an interval with an infinite limit is not drawn.
    title
        The title of the picture.
    note
        The meaning of the bars, for the legend.
    ax
        The axes to draw on; a new picture by default.
    truth
        The true numbers, if they are known.
    total
        The overall number, drawn as a line.
    quantity
        The label of the axis of the numbers.

    Returns
    -------
    matplotlib.axes.Axes
        The picture, with labels and a legend.
    """
    axes = new_axes(ax, width=7.2, height=min(12.0, 1.7 + 0.34 * len(names)))
    name_rows(axes, names)
    places = np.arange(len(names))
    if total is not None:
        axes.axvline(total, color=TOTAL, linewidth=1.2, linestyle="--", label="all together")
    draw_intervals(axes, places, limits, down=True)
    axes.plot(values, places, "o", markersize=5, color=ESTIMATE, label=note)
    if truth is not None:
        axes.plot(truth, places, "D", markersize=5, color=TRUTH, label="truth", zorder=3)
    axes.set_xlabel(quantity)
    finish(axes, title, legend="above")
    return axes


def largest(sizes: Any, most: int) -> list[int]:
    """Return the indices of the largest values to draw, in their original order.

    Examples
    --------
    >>> largest([5, 1, 7], 2), largest([5, 1, 7], 9)
    ([0, 2], [0, 1, 2])
    """
    found = np.argsort(-np.asarray(sizes, np.float64), kind="stable")[:most]
    return np.sort(found).tolist()  # type: ignore[no-any-return]


def plain_logarithmic(axis: Axis) -> None:
    """Label a logarithmic axis with a few plain numbers that do not overlap: .01, .02, .05."""
    ticker = require("matplotlib.ticker", "plot")
    axis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(ticker.NullLocator())


def answered(received: int, nodes: int) -> str:
    """Write how many of the people who count answered.

    Examples
    --------
    >>> answered(500, 1000), answered(1000, 1000)
    ('500 of 1,000 people answered', '1,000 people answered')
    >>> answered(1, 1), answered(0, 1)
    ('1 person answered', '0 of 1 person answered')
    """
    some = "" if received == nodes else f"{received:,} of "
    return f"{some}{number_of(nodes, 'person', 'people')} answered"


def interval_words(level: float, simultaneous: str | None) -> str:
    """Write what the bars mean.

    Examples
    --------
    >>> interval_words(0.95, None), interval_words(0.9, "sidak")
    ('95 % intervals', '90 % intervals (all at once)')
    """
    together = " (all at once)" if simultaneous else ""
    return f"{100 * level:.4g} % intervals{together}"


def short(name: str, most: int = _LONGEST_NAME) -> str:
    """Shorten a long label, and keep it from being empty or read as a formula."""
    cut = name if len(name) <= most else f"{name[: most - 1]}…"
    # Matplotlib takes what stands between dollars for a formula; halves of pairs of UTF-16 are no
    # text.
    return cut.replace("$", r"\$").encode("utf-8", "replace").decode("utf-8")


def short_label(label: Any) -> str:
    """Shorten an answer; of a combination, shorten each part.

    Examples
    --------
    >>> short_label("often"), short_label(("f", "a very long answer to the second question"))
    ('often', 'f, a very long answe…')
    """
    if not isinstance(label, tuple):
        return short(label_words(label))
    words = list(map(str, label))
    if len(", ".join(words)) > _LONGEST_NAMES:
        most = max(4, _LONGEST_NAMES // len(words) - 2)
        words = [word if len(word) <= most else f"{word[: most - 1]}…" for word in words]
    return short(", ".join(words), _LONGEST_NAMES)
