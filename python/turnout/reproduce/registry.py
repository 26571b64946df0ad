"""All experiments, by name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from turnout.errors import InvalidValueError
from turnout.reproduce import (
    fair,
    participation,
    participation_noise,
    participation_training,
    private_sampling,
    sampling,
)
from turnout.reproduce.outcome import Experiment

#: In the order in which they are listed and run.
EXPERIMENTS: tuple[Experiment, ...] = (
    *sampling.EXPERIMENTS,
    *fair.EXPERIMENTS,
    *participation.EXPERIMENTS,
    *participation_training.EXPERIMENTS,
    *participation_noise.EXPERIMENTS,
    *private_sampling.EXPERIMENTS,
)


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Find experiments by name, by paper, or all of them.

    Parameters
    ----------
    names
        Names such as ``"sampling/figure-1"``, papers such as ``"sampling"``, or ``"all"``.

    Returns
    -------
    list of Experiment
        In the order of the list, each once.

    Raises
    ------
    InvalidValueError
        If there is no such experiment.

    Examples
    --------
    >>> [experiment.name for experiment in chosen(["sampling"])][:2]
    ['sampling/figure-1', 'sampling/figure-2']
    """
    wanted = set()
    for name in names:
        found = {
            experiment.name
            for experiment in EXPERIMENTS
            if name in ("all", experiment.paper, experiment.name)
        }
        if not found:
            known = [experiment.name for experiment in EXPERIMENTS]
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
            more = f"; did you mean {', '.join(near)}?" if near else ""
            raise InvalidValueError(f"names: there is no experiment {name!r}{more}")
        wanted |= found
    return [experiment for experiment in EXPERIMENTS if experiment.name in wanted]
