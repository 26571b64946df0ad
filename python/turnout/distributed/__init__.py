"""Distributed aggregation without a trusted server.

Users split what they send into additive shares, so that aggregators that do not all collude learn
only the sum; hidden coins, or noise that no single party knows, make the sum private.

>>> import turnout as tn
>>> domain = tn.Domain(["never", "once", "often"])
>>> mechanism = tn.distributed.NoisyAggregation(domain, users=500, epsilon=1.0)
>>> answers = ["never"] * 300 + ["once"] * 150 + ["often"] * 50
>>> estimate = mechanism.run(answers, seed=1).estimate
>>> estimate.interval(0.99).contains([0.6, 0.3, 0.1])
array([ True,  True,  True])
"""

from turnout._public import listing
from turnout.distributed.aggregation import (
    AggregationMechanism,
    mechanism_from_dict,
)
from turnout.distributed.costs import CostLedger, Costs
from turnout.distributed.engine import exchange
from turnout.distributed.field import PrimeField
from turnout.distributed.messages import Kind, Message, Party, Role
from turnout.distributed.noisy import NoisyAggregation
from turnout.distributed.recommend import Recommendation, RecommendationRecord, recommend
from turnout.distributed.results import Guarantee, RoundResult
from turnout.distributed.roles import AggregatingServer, Aggregator, ReportingServer, User
from turnout.distributed.rounds import Round
from turnout.distributed.sampling import SamplingAggregation
from turnout.distributed.two_stage import TwoStageSampling

__all__ = [
    "AggregatingServer",
    "AggregationMechanism",
    "Aggregator",
    "CostLedger",
    "Costs",
    "Guarantee",
    "Kind",
    "Message",
    "NoisyAggregation",
    "Party",
    "PrimeField",
    "Recommendation",
    "RecommendationRecord",
    "ReportingServer",
    "Role",
    "Round",
    "RoundResult",
    "SamplingAggregation",
    "TwoStageSampling",
    "User",
    "exchange",
    "mechanism_from_dict",
    "recommend",
]

__dir__ = listing(__all__)
