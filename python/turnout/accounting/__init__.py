"""Privacy accounting: what random participation, sampling, shuffling and noise cost.

A :class:`Mechanism` is one release; it gives delta at an epsilon and epsilon at a delta. Mechanisms
:func:`compose`; a :class:`PrivacyLedger` keeps the composition of what was spent within a budget;
:func:`calibrate` finds the parameter that just reaches a target; :func:`plot` draws several on one
axis. Every number is on the safe side, but for :mod:`turnout.accounting.paper`, which keeps
published expressions that are no bounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout._public import imported_later, listing

if TYPE_CHECKING:
    from turnout.accounting import paper
    from turnout.accounting.batches import FixedSizeBatches, RandomCheckIns, ShuffledBatches
    from turnout.accounting.calibration import calibrate, calibrate_noise
    from turnout.accounting.composition import Composition
    from turnout.accounting.counts import CountSampling, TwoStageCountSampling
    from turnout.accounting.histories import from_flower, from_opacus
    from turnout.accounting.integer_noise import (
        DiscreteGaussianNoise,
        DiscreteLaplaceNoise,
        SkellamNoise,
        SummedDiscreteGaussianNoise,
    )
    from turnout.accounting.ledger import PrivacyLedger
    from turnout.accounting.ledger_entries import LedgerEntry
    from turnout.accounting.mechanism import Mechanism, compose
    from turnout.accounting.participation import (
        CentralShuffling,
        GaussianMechanism,
        LocalSampling,
        RandomParticipation,
        WeakClientSampling,
        participation_delta,
    )
    from turnout.accounting.pictures import plot
    from turnout.accounting.registry import mechanism_from_dict
    from turnout.accounting.shuffling import Shuffled
    from turnout.accounting.thresholded import SampleAndThreshold
    from turnout.accounting.values import Bracket
    from turnout.accounting.variation import VariationRatio

__all__ = [
    "Bracket",
    "CentralShuffling",
    "Composition",
    "CountSampling",
    "DiscreteGaussianNoise",
    "DiscreteLaplaceNoise",
    "FixedSizeBatches",
    "GaussianMechanism",
    "LedgerEntry",
    "LocalSampling",
    "Mechanism",
    "PrivacyLedger",
    "RandomCheckIns",
    "RandomParticipation",
    "SampleAndThreshold",
    "Shuffled",
    "ShuffledBatches",
    "SkellamNoise",
    "SummedDiscreteGaussianNoise",
    "TwoStageCountSampling",
    "VariationRatio",
    "WeakClientSampling",
    "calibrate",
    "calibrate_noise",
    "compose",
    "from_flower",
    "from_opacus",
    "mechanism_from_dict",
    "paper",
    "participation_delta",
    "plot",
]

#: What is imported when it is first used: an oracle needs little of the accounting.
_NAMES = {
    "turnout.accounting.batches": ["FixedSizeBatches", "RandomCheckIns", "ShuffledBatches"],
    "turnout.accounting.calibration": ["calibrate", "calibrate_noise"],
    "turnout.accounting.composition": ["Composition"],
    "turnout.accounting.counts": ["CountSampling", "TwoStageCountSampling"],
    "turnout.accounting.histories": ["from_flower", "from_opacus"],
    "turnout.accounting.integer_noise": [
        "DiscreteGaussianNoise",
        "DiscreteLaplaceNoise",
        "SkellamNoise",
        "SummedDiscreteGaussianNoise",
    ],
    "turnout.accounting.ledger": ["PrivacyLedger"],
    "turnout.accounting.ledger_entries": ["LedgerEntry"],
    "turnout.accounting.mechanism": ["Mechanism", "compose"],
    "turnout.accounting.participation": [
        "CentralShuffling",
        "GaussianMechanism",
        "LocalSampling",
        "RandomParticipation",
        "WeakClientSampling",
        "participation_delta",
    ],
    "turnout.accounting.pictures": ["plot"],
    "turnout.accounting.registry": ["mechanism_from_dict"],
    "turnout.accounting.shuffling": ["Shuffled"],
    "turnout.accounting.thresholded": ["SampleAndThreshold"],
    "turnout.accounting.values": ["Bracket"],
    "turnout.accounting.variation": ["VariationRatio"],
}

if not TYPE_CHECKING:
    __getattr__ = imported_later(__name__, _NAMES, __all__)
__dir__ = listing(__all__)
