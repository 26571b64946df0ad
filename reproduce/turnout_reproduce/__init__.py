"""The figures and tables of the papers, computed again, with verdicts.

Each experiment is one small module: data, run, picture, verdict. Results are computed, never
typed in; what a paper prints stands beside them. ``turnout reproduce --list`` names what there is.

>>> from turnout_reproduce import Scale, chosen
>>> experiment = chosen(["sampling/figure-3"])[0]
>>> outcome = experiment.run(Scale())
>>> {finding.verdict for finding in outcome.findings} <= {"agrees", "paper is wrong", "not printed"}
True
"""

from turnout._public import listing
from turnout_reproduce.curves import Curve
from turnout_reproduce.outcome import Experiment, Finding, Outcome, Scale
from turnout_reproduce.registry import EXPERIMENTS, chosen, reproduce

__all__ = [
    "EXPERIMENTS",
    "Curve",
    "Experiment",
    "Finding",
    "Outcome",
    "Scale",
    "chosen",
    "reproduce",
]

__dir__ = listing(__all__)
