"""Experiments and theorems of the private-sampling paper.

Husain, Balle, Cranko, Nock, "Local differential privacy for sampling", in a summary that prints no
result as a number, and neither epsilons nor how many rounds and records there were; the verdicts
are on what it says in words, and on its theorems.
"""

from typing import Final

from turnout_reproduce.outcome import Experiment
from turnout_reproduce.private_sampling import studies, theorems

__all__ = ["EXPERIMENTS"]

#: The three distributions, then the theorems.
EXPERIMENTS: Final[tuple[Experiment, ...]] = (*studies.EXPERIMENTS, *theorems.EXPERIMENTS)
