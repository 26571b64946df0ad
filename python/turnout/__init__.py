"""Private statistics when only some people take part.

>>> import turnout as tn
>>> domain = tn.Domain(["never", "once", "often"])
>>> oracle = tn.DirectEncoding(epsilon=1.0, domain=domain)
>>> answers = ["never"] * 6000 + ["once"] * 3000 + ["often"] * 1000
>>> tally = oracle.collect(answers, participation=tn.Bernoulli(0.5), seed=7)
>>> estimate = tally.estimate()
>>> estimate.interval(0.99).contains([0.6, 0.3, 0.1])
array([ True,  True,  True])
"""

import importlib
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
    HadamardResponse,
    Interval,
    OptimizedUnaryEncoding,
    ProjectiveGeometryResponse,
    HadamardCountMeanSketch,
    Interval,
    OptimizedLocalHashing,
    Reports,
    SubsetSelection,
    SymmetricUnaryEncoding,
    Tally,
    ThresholdHistogramEncoding,
    compare,
    estimator_variance,
)
from turnout.participation import Bernoulli, Everyone, Participation, Personalized

if TYPE_CHECKING:
    from turnout import distributed, mean, samplers, weighting

__version__ = _version("turnout")

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
    "HadamardResponse",
    "Interval",
    "OptimizedUnaryEncoding",
    "HadamardCountMeanSketch",
    "Interval",
    "OptimizedLocalHashing",
    "Participation",
    "Personalized",
    "Plan",
    "ProjectiveGeometryResponse",
    "Reports",
    "SubsetSelection",
    "SymmetricUnaryEncoding",
    "Tally",
    "ThresholdHistogramEncoding",
    "TurnoutError",
    "__version__",
    "accounting",
    "compare",
    "distributed",
    "errors",
    "estimator_variance",
    "frequency",
    "mean",
    "participation",
    "samplers",
    "weighting",
]

#: Modules that are imported when they are first used, so that ``import turnout`` stays quick.
_LATER = ("distributed", "mean", "samplers", "weighting")


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return importlib.import_module(f"turnout.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
