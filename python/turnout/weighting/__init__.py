"""One estimate from groups of users with different privacy levels.

Users choose how much privacy they want. Each group estimates the same quantity; less private groups
estimate it better. Weights in inverse proportion to the variances give the best combined estimate,
and cost no privacy: fair paper (Yang, Tjuawinata, Lam, Zhu, Zhao, "Fair and differentially private
distributed frequency estimation"), section 3.2.

>>> import turnout as tn
>>> domain = tn.Domain(["no", "yes"])
>>> groups = [
...     tn.DirectEncoding(epsilon, domain).simulate([5000, 5000], seed=1).estimate()
...     for epsilon in (0.1, 0.4, 0.7, 1.0)
... ]
>>> combined = tn.weighting.combine(groups)
>>> bool(combined.standard_errors[0] < min(group.standard_errors[0] for group in groups))
True
"""

from turnout._public import listing
from turnout.weighting.combination import WeightedPlan, combine
from turnout.weighting.weights import combined_variance, weights

__all__ = [
    "WeightedPlan",
    "combine",
    "combined_variance",
    "weights",
]

__dir__ = listing(__all__)
