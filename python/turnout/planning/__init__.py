"""Planning: which oracle, how many reports, and who should send them.

:func:`choose_oracle` picks the oracle of smallest variance, :func:`plan` the cheapest collection
that meets a target, :func:`optimal_participation` the best participation where nodes differ in
epsilon and cost, :func:`estimate_mixed` adds up what such nodes reported.
"""

from turnout._public import listing
from turnout.frequency.choice import OracleCandidate
from turnout.planning.choice import OracleChoice, choose_oracle
from turnout.planning.participation import (
    MixedPlan,
    ParticipationPlan,
    estimate_mixed,
    optimal_participation,
)
from turnout.planning.planner import plan
from turnout.planning.proposal import PlanCandidate, PlanCheck, PlanProposal
from turnout.planning.tradeoff import TradeOff, TradeOffCurve

__all__ = [
    "MixedPlan",
    "OracleCandidate",
    "OracleChoice",
    "ParticipationPlan",
    "PlanCandidate",
    "PlanCheck",
    "PlanProposal",
    "TradeOff",
    "TradeOffCurve",
    "choose_oracle",
    "estimate_mixed",
    "optimal_participation",
    "plan",
]

__dir__ = listing(__all__)
