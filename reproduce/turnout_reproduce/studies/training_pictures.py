"""Pictures of trainings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from turnout import _arguments
from turnout._extras import require
from turnout._types import Floats

_COLOURS = {
    "none": "0.35",
    "sound": "#1f6f8b",
    "wcs": "#c9822b",
    "ols": "#7a5195",
    "unsound": "#d1495b",
}


class Line(NamedTuple):
    """One arm of a panel.

    Attributes
    ----------
    name
        The arm's, which decides on the colour.
    label
        What the legend says.
    rounds, means, errors
        Mean accuracies after so many rounds, and their standard errors.
    broken
        Whether it keeps no guarantee.
    """

    name: str
    label: str
    rounds: Sequence[int]
    means: Floats
    errors: Floats
    broken: bool


class Panel(NamedTuple):
    """One scenario: a title and a line for each arm."""

    title: str
    lines: Sequence[Line]


def plot_study(panels: Sequence[Panel], axes: Any = None) -> Any:
    """Draw test accuracy against rounds: a panel for each scenario, a line for each arm.

    Lines are means over the seeds, bands one standard error to either side. What keeps no
    guarantee is dashed. :meth:`ParticipationStudy.plot` draws a study.

    Parameters
    ----------
    panels
        The title of each scenario and its lines.
    axes
        One of matplotlib's axes for each panel; a new figure if None.

    Returns
    -------
    numpy.ndarray
        The axes.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed: extra ``plot``.
    InvalidValueError
        If there are not as many axes as panels.
    """
    pyplot = require("matplotlib.pyplot", "plot")
    number = len(panels)
    if axes is None:
        _, axes = pyplot.subplots(
            1, number, figsize=(5.2 * number, 5.4), sharey=True, layout="constrained", squeeze=False
        )
    places = np.ravel(np.asarray(axes, dtype=object))
    if places.size != number:
        raise _arguments.invalid(f"axes must be one for each of {number} scenarios", axes)
    for place, panel in zip(places, panels, strict=True):
        for line in panel.lines:
            _draw(line, place)
        place.set_title(panel.title, fontsize=10)
        place.set_xlabel("rounds")
        place.set_ylim(0.0, 1.0)
        place.set_xlim(left=0)
        place.grid(color="#e8e8e8", linewidth=0.7)
        place.set_axisbelow(True)
        place.spines[["top", "right"]].set_visible(False)
        # Below the panel it covers no line.
        place.legend(frameon=False, fontsize=8.5, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    places[0].set_ylabel("test accuracy")
    return places


def _draw(line: Line, axes: Any) -> None:
    style: dict[str, Any] = {"linewidth": 1.8, "zorder": 3}
    if line.broken:
        style = {"linewidth": 1.4, "dashes": (4, 2.5), "zorder": 4}
    elif line.name == "wcs":
        # What the sound bound tends to with more data a client: both are seen where they meet.
        style = {"linewidth": 4.5, "alpha": 0.45, "zorder": 2}
    colour = _COLOURS.get(line.name, "0.6")
    axes.plot(line.rounds, line.means, color=colour, label=line.label, **style)
    if np.isfinite(line.errors).all():
        low, high = line.means - line.errors, line.means + line.errors
        axes.fill_between(line.rounds, low, high, color=colour, alpha=0.18, linewidth=0)
