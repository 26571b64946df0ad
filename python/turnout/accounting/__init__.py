"""Privacy accounting: what random participation, sampling, shuffling and noise cost.

A :class:`Mechanism` is one release; it gives delta at an epsilon and epsilon at a delta. Mechanisms
:func:`compose`; a :class:`PrivacyLedger` keeps the composition of what was spent within a budget;
:func:`calibrate` finds the parameter that just reaches a target; :func:`plot_delta` and its kin
draw several on one axis. Every number is on the safe side, but for
:mod:`turnout.accounting.paper`, which keeps published expressions that are no bounds.
"""

from __future__ import annotations

from turnout._public import listing
from turnout.accounting import paper
from turnout.accounting.calibration import calibrate, calibrate_noise
from turnout.accounting.composition import Composition, compose
from turnout.accounting.counts import CountSampling
from turnout.accounting.integer_noise import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    SkellamNoise,
    SummedDiscreteGaussianNoise,
)
from turnout.accounting.ledger import LedgerEntry, PrivacyLedger
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.participation import (
    CentralShuffling,
    GaussianMechanism,
    LocalSampling,
    RandomParticipation,
    WeakClientSampling,
    participation_delta,
)
from turnout.accounting.pictures import (
    plot_delta,
    plot_delta_against_noise,
    plot_epsilon_against_noise,
    plot_epsilon_against_rounds,
    plot_epsilon_against_sample_rate,
)
from turnout.accounting.registry import mechanism_from_dict
from turnout.accounting.shuffling import Shuffled
from turnout.accounting.two_stage import TwoStageCountSampling
from turnout.frequency.variation import VariationRatio

__all__ = [
    "CentralShuffling",
    "Composition",
    "CountSampling",
    "DiscreteGaussianNoise",
    "DiscreteLaplaceNoise",
    "GaussianMechanism",
    "LedgerEntry",
    "LocalSampling",
    "Mechanism",
    "PrivacyLedger",
    "RandomParticipation",
    "Shuffled",
    "SkellamNoise",
    "SummedDiscreteGaussianNoise",
    "TwoStageCountSampling",
    "VariationRatio",
    "WeakClientSampling",
    "calibrate",
    "calibrate_noise",
    "compose",
    "mechanism_from_dict",
    "paper",
    "participation_delta",
    "plot_delta",
    "plot_delta_against_noise",
    "plot_epsilon_against_noise",
    "plot_epsilon_against_rounds",
    "plot_epsilon_against_sample_rate",
]

__dir__ = listing(__all__)
