"""Distributed aggregation without a trusted server.

Users split their messages into additive shares. Aggregators that do not all collude learn only the
sum. Hidden coins, or noise that no single party knows, make the sum private.

>>> import turnout as tn
>>> domain = tn.Domain(["never", "once", "often"])
>>> mechanism = tn.distributed.NoisyAggregation(domain, users=500, epsilon=1.0)
>>> answers = ["never"] * 300 + ["once"] * 150 + ["often"] * 50
>>> estimate = mechanism.run(answers, seed=1).estimate
>>> estimate.interval(0.99).contains([0.6, 0.3, 0.1])
array([ True,  True,  True])
"""

from turnout._public import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
