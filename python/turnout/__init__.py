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

from importlib.metadata import version as _version

from turnout import accounting, distributed, errors, frequency, mean, participation, weighting
from turnout.domain import Domain
from turnout.errors import TurnoutError
from turnout.frequency import (
    Comparison,
    DirectEncoding,
    FrequencyEstimate,
    FrequencyOracle,
    Interval,
    Reports,
    Tally,
    compare,
    estimator_variance,
)
from turnout.participation import Bernoulli, Everyone, Participation, Personalized
from turnout.plan import Plan

__version__ = _version("turnout")

__all__ = [
    "Bernoulli",
    "Comparison",
    "DirectEncoding",
    "Domain",
    "Everyone",
    "FrequencyEstimate",
    "FrequencyOracle",
    "Interval",
    "Participation",
    "Personalized",
    "Plan",
    "Reports",
    "Tally",
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
    "weighting",
]
