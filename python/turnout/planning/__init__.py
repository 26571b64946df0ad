"""Planning: which oracle, how many reports, and who should send them.

:func:`choose_oracle` picks the oracle of smallest variance, :func:`plan` the cheapest collection that
meets a target, :func:`optimal_participation` the best participation where nodes differ in epsilon
and cost.
"""

from turnout.planning.choice import OracleCandidate, OracleChoice, choose_oracle
from turnout.planning.planner import plan
from turnout.planning.proposal import PlanCandidate, PlanCheck, PlanProposal
from turnout.planning.tradeoff import TradeOff, TradeOffCurve

__all__ = [
    "OracleCandidate",
    "OracleChoice",
    "PlanCandidate",
    "PlanCheck",
    "PlanProposal",
    "TradeOff",
    "TradeOffCurve",
    "choose_oracle",
    "plan",
]
