"""Planning of collections: which oracle, how many reports, and who should send them.

:func:`choose_oracle` chooses the oracle of smallest variance, :func:`plan` the cheapest collection
that meets a target, and :func:`optimal_participation` the best participation if nodes differ in
epsilon and cost. :func:`estimate_mixed` adds up the reports of such nodes.
"""

from turnout._public import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
