"""Planning: which oracle, how many reports, and who should send them.

:func:`choose_oracle` picks the oracle of smallest variance, :func:`plan` the cheapest collection
that meets a target, :func:`optimal_participation` the best participation where nodes differ in
epsilon and cost, :func:`estimate_mixed` adds up what such nodes reported.
"""

from turnout._public import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
