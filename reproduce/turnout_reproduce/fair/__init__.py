"""Figures and tables of the fair paper.

Yang, Tjuawinata, Lam, Zhu, Zhao, "Fair and differentially private distributed frequency
estimation". What it calls the mean squared error, and defines as a mean over items, is a sum over
items in its numbers; so it is here.
"""

from typing import Final

from turnout_reproduce.fair import single, two_stage, weighted
from turnout_reproduce.outcome import Experiment

__all__ = ["EXPERIMENTS"]

#: Figures first, then tables.
EXPERIMENTS: Final[tuple[Experiment, ...]] = tuple(
    sorted(
        (*single.EXPERIMENTS, *two_stage.EXPERIMENTS, *weighted.EXPERIMENTS),
        key=lambda experiment: experiment.name,
    )
)
