"""Pictures of trainings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from turnout import _arguments
from turnout._extras import require
from turnout.errors import InvalidValueError

if TYPE_CHECKING:
    from turnout.federated.scenarios import Arm, Scenario
    from turnout.federated.study import ParticipationStudy

__all__ = ["plot_study"]

_COLOURS = {
    "none": "0.35",
    "sound": "#1f6f8b",
    "wcs": "#c9822b",
    "ols": "#7a5195",
    "unsound": "#d1495b",
}


def plot_study(study: ParticipationStudy, axes: Any = None) -> Any:
    """Draw test accuracy against rounds: a panel for each scenario, a line for each arm.

    Lines are means over the seeds, bands one standard error to either side. What keeps no
    guarantee is dashed, and labelled with the delta that is proven for its noise.

    Parameters
    ----------
    study
        What :func:`turnout.federated.study.run_study` gave.
    axes
        One of matplotlib's axes for each scenario; a new figure if None.

    Returns
    -------
    numpy.ndarray
        The axes.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed: extra ``plot``.
    InvalidValueError
        If there are not as many axes as scenarios.
    """
    pyplot = require("matplotlib.pyplot", "plot")
    number = len(study.scenarios)
    if axes is None:
        _, axes = pyplot.subplots(
            1, number, figsize=(5.2 * number, 5.4), sharey=True, layout="constrained", squeeze=False
        )
    panels = np.ravel(np.asarray(axes, dtype=object))
    if panels.size != number:
        raise InvalidValueError(
            f"axes must be one for each of {number} scenarios, got {_arguments.shown(axes)}"
        )
    for panel, (scenario, arms) in zip(panels, study.scenarios, strict=True):
        for arm in arms:
            _line(study, scenario, arm, panel)
        panel.set_title(
            f"{scenario.name}: {scenario.clients:,} clients with {scenario.local_size:,} examples\n"
            f"p = {scenario.client_rate:g}, q = {scenario.sample_rate:g}; "
            f"ε = {study.epsilon:g}, δ = {study.delta:g} a round",
            fontsize=10,
        )
        panel.set_xlabel("rounds")
        panel.set_ylim(0.0, 1.0)
        panel.set_xlim(left=0)
        panel.grid(color="#e8e8e8", linewidth=0.7)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)
        # Below the panel it covers no line.
        panel.legend(frameon=False, fontsize=8.5, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    panels[0].set_ylabel("test accuracy")
    return panels


def _line(study: ParticipationStudy, scenario: Scenario, arm: Arm, panel: Any) -> None:
    rounds, means, errors = study.table(scenario.name, arm.name)
    label = arm.label
    style: dict[str, Any] = {"linewidth": 1.8, "zorder": 3}
    if arm.name == "wcs":
        # What the sound bound tends to with more data a client: both are seen where they meet.
        style = {"linewidth": 4.5, "alpha": 0.45, "zorder": 2}
    if arm.noise_multiplier:
        label += f", σ = {arm.noise_multiplier:.2f}"
        if not arm.keeps_target:
            proven = scenario.delta(study.epsilon, arm.noise_multiplier)
            label += f" (proven: δ = {proven:.1e})"
            style = {"linewidth": 1.4, "dashes": (4, 2.5), "zorder": 4}
    colour = _COLOURS.get(arm.name, "0.6")
    panel.plot(rounds, means, color=colour, label=label, **style)
    if np.isfinite(errors).all():
        panel.fill_between(
            rounds, means - errors, means + errors, color=colour, alpha=0.18, linewidth=0
        )
