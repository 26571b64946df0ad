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

import importlib
import logging
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

from turnout import accounting, errors, frequency, participation
from turnout.collection import Plan
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
from turnout.participation import Bernoulli, Everyone, Participation, Personalized

if TYPE_CHECKING:
    from turnout import (
        datasets,
        distributed,
        federated,
        mean,
        metrics,
        pipeline,
        planning,
        ray,
        reporting,
        reproduce,
        samplers,
        weighting,
    )
    from turnout.frequency.adaptive import TwoRoundCollection
    from turnout.frequency.attributes import SampledAttribute, SplitBudget
    from turnout.frequency.estimation.likelihood import maximum_likelihood
    from turnout.frequency.groups import GroupedTally
    from turnout.frequency.heavy_hitters import HeavyHitters
    from turnout.frequency.longitudinal import Memoized
    from turnout.frequency.ordered import ordered
    from turnout.frequency.ordered.hierarchy import HierarchicalCollection
    from turnout.planning import choose_oracle, estimate_mixed, optimal_participation, plan

__version__ = _version("turnout")

# Whoever runs the program says what is shown of the log; without that nothing is.
logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "Bernoulli",
    "BinaryLocalHashing",
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
    "Memoized",
    "OptimizedLocalHashing",
    "OptimizedUnaryEncoding",
    "Participation",
    "Personalized",
    "Plan",
    "ProjectiveGeometryResponse",
    "Reports",
    "SampledAttribute",
    "SplitBudget",
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
    "samplers",
    "weighting",
]

#: Modules that are imported when they are first used, so that ``import turnout`` stays quick.
_LATER = (
    "datasets",
    "distributed",
    "federated",
    "mean",
    "metrics",
    "pipeline",
    "planning",
    "ray",
    "reporting",
    "reproduce",
    "samplers",
    "weighting",
)

#: The modules of names that are imported when they are first used.
_NAMES_LATER = {
    "GroupedTally": "turnout.frequency.groups",
    "HeavyHitters": "turnout.frequency.heavy_hitters",
    "HierarchicalCollection": "turnout.frequency.ordered.hierarchy",
    "Memoized": "turnout.frequency.longitudinal",
    "SampledAttribute": "turnout.frequency.attributes",
    "SplitBudget": "turnout.frequency.attributes",
    "TwoRoundCollection": "turnout.frequency.adaptive",
    "choose_oracle": "turnout.planning",
    "estimate_mixed": "turnout.planning",
    "maximum_likelihood": "turnout.frequency.estimation.likelihood",
    "optimal_participation": "turnout.planning",
    "ordered": "turnout.frequency.ordered",
    "plan": "turnout.planning",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return importlib.import_module(f"turnout.{name}")
    if name in _NAMES_LATER:
        return getattr(importlib.import_module(_NAMES_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_NAMES_LATER})
