"""Private statistics when only some people take part.

>>> import turnout as tn
>>> domain = tn.Domain(["never", "once", "often"])
>>> oracle = tn.DirectEncoding(epsilon=1.0, domain=domain)
>>> answers = ["never"] * 6000 + ["once"] * 3000 + ["often"] * 1000
>>> tally = oracle.collect(answers, participation=tn.Bernoulli(0.5), seed=7)
>>> estimate = tally.estimate()
>>> estimate.interval(0.99).contains([0.6, 0.3, 0.1])
array([ True,  True,  True])

``tn.choose_oracle`` and ``tn.plan`` say which oracle, and how many must report, for an answer to be
good enough; :mod:`turnout.accounting` what participation and shuffling protect.
:mod:`turnout.federated` trains models with clients that take part at random.
"""

import logging
from typing import TYPE_CHECKING

from turnout._public import imported_later, listing

if TYPE_CHECKING:
    from turnout import (
        accounting,
        datasets,
        distributed,
        distribution,
        errors,
        federated,
        frequency,
        mean,
        metrics,
        participation,
        pipeline,
        planning,
        ray,
        reporting,
        reproduce,
        samplers,
        testing,
        thresholding,
        weighting,
    )
    from turnout._version import __version__
    from turnout.bounds import Bounds
    from turnout.collecting.plan import Plan
    from turnout.distribution import SquareWave
    from turnout.domain import Domain
    from turnout.errors import TurnoutError
    from turnout.frequency import (
        BinaryLocalHashing,
        Comparison,
        CountMeanSketch,
        DirectEncoding,
        FrequencyEstimate,
        FrequencyOracle,
        HadamardCountMeanSketch,
        HadamardResponse,
        Interval,
        OptimizedLocalHashing,
        OptimizedUnaryEncoding,
        ProjectiveGeometryResponse,
        Reports,
        SubsetSelection,
        SummationHistogramEncoding,
        SymmetricUnaryEncoding,
        Tally,
        ThresholdHistogramEncoding,
        compare,
        estimator_variance,
    )
    from turnout.frequency.adaptive import TwoRoundCollection
    from turnout.frequency.attributes import SampledAttribute, SplitBudget
    from turnout.frequency.estimation.likelihood import maximum_likelihood
    from turnout.frequency.groups import GroupedTally
    from turnout.frequency.heavy_hitters import HeavyHitters
    from turnout.frequency.joint import JointTable, PairTables
    from turnout.frequency.longitudinal import Memoized
    from turnout.frequency.ordered import ordered
    from turnout.frequency.ordered.levels import HierarchicalCollection
    from turnout.participation import Bernoulli, Everyone, Participation, Personalized
    from turnout.planning import choose_oracle, estimate_mixed, optimal_participation, plan
    from turnout.surveying import survey
    from turnout.thresholding import sample_and_threshold

# Whoever runs the program says what is shown of the log; without that nothing is.
logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "Bernoulli",
    "BinaryLocalHashing",
    "Bounds",
    "Comparison",
    "CountMeanSketch",
    "DirectEncoding",
    "Domain",
    "Everyone",
    "FrequencyEstimate",
    "FrequencyOracle",
    "GroupedTally",
    "HadamardCountMeanSketch",
    "HadamardResponse",
    "HeavyHitters",
    "HierarchicalCollection",
    "Interval",
    "JointTable",
    "Memoized",
    "OptimizedLocalHashing",
    "OptimizedUnaryEncoding",
    "PairTables",
    "Participation",
    "Personalized",
    "Plan",
    "ProjectiveGeometryResponse",
    "Reports",
    "SampledAttribute",
    "SplitBudget",
    "SquareWave",
    "SubsetSelection",
    "SummationHistogramEncoding",
    "SymmetricUnaryEncoding",
    "Tally",
    "ThresholdHistogramEncoding",
    "TurnoutError",
    "TwoRoundCollection",
    "__version__",
    "accounting",
    "choose_oracle",
    "compare",
    "datasets",
    "distributed",
    "distribution",
    "errors",
    "estimate_mixed",
    "estimator_variance",
    "federated",
    "frequency",
    "maximum_likelihood",
    "mean",
    "metrics",
    "optimal_participation",
    "ordered",
    "participation",
    "pipeline",
    "plan",
    "planning",
    "ray",
    "reporting",
    "reproduce",
    "sample_and_threshold",
    "samplers",
    "survey",
    "testing",
    "thresholding",
    "weighting",
]

#: What is imported when it is first used, so that ``import turnout`` is quick, as above: of each
#: module its names. The others are modules.
_NAMES = {
    "turnout._version": ["__version__"],
    "turnout.collecting.plan": ["Plan"],
    "turnout.bounds": ["Bounds"],
    "turnout.distribution": ["SquareWave"],
    "turnout.domain": ["Domain"],
    "turnout.errors": ["TurnoutError"],
    "turnout.frequency": [
        "BinaryLocalHashing",
        "Comparison",
        "CountMeanSketch",
        "DirectEncoding",
        "FrequencyEstimate",
        "FrequencyOracle",
        "HadamardCountMeanSketch",
        "HadamardResponse",
        "Interval",
        "OptimizedLocalHashing",
        "OptimizedUnaryEncoding",
        "ProjectiveGeometryResponse",
        "Reports",
        "SubsetSelection",
        "SummationHistogramEncoding",
        "SymmetricUnaryEncoding",
        "Tally",
        "ThresholdHistogramEncoding",
        "compare",
        "estimator_variance",
    ],
    "turnout.frequency.adaptive": ["TwoRoundCollection"],
    "turnout.frequency.attributes": ["SampledAttribute", "SplitBudget"],
    "turnout.frequency.estimation.likelihood": ["maximum_likelihood"],
    "turnout.frequency.groups": ["GroupedTally"],
    "turnout.frequency.heavy_hitters": ["HeavyHitters"],
    "turnout.frequency.joint": ["JointTable", "PairTables"],
    "turnout.frequency.longitudinal": ["Memoized"],
    "turnout.frequency.ordered": ["ordered"],
    "turnout.frequency.ordered.levels": ["HierarchicalCollection"],
    "turnout.participation": ["Bernoulli", "Everyone", "Participation", "Personalized"],
    "turnout.planning": ["choose_oracle", "estimate_mixed", "optimal_participation", "plan"],
    "turnout.thresholding": ["sample_and_threshold"],
    "turnout.surveying": ["survey"],
}

if not TYPE_CHECKING:  # a checker is to refuse names that are not above
    __getattr__ = imported_later(__name__, _NAMES, __all__)
__dir__ = listing(__all__)
