"""Train with random participation in a federation of clients.

Clients join a round at random and sample their data at random. Nobody sees which clients and data
take part, and the accounting relies on this. :class:`RandomParticipationSGD` holds the public
parameters, :class:`Client` and :class:`Server` are its two halves. :class:`InProcessEngine` runs
both in one process, and :mod:`turnout.federated.flower` (extra ``flower``) runs them in Flower.
"""

from turnout._public import named_in_stub

__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
