"""Train and collect with random participation in Flower (extra ``flower``).

Training: on the client, :func:`participation_mod` for the ``ClientApp`` of any Flower project, or
:func:`client_app` around one function. On the server, :class:`RandomParticipationStrategy` for its
``ServerApp``, or :func:`server_app`. Collection: :func:`frequency_client_app` and
:func:`frequency_server_app`. Both use Flower's Message API and run in its simulation and in
deployment.
"""

from turnout._extras import require
from turnout._public import named_in_stub

require("flwr", "flower")
__all__, __getattr__, __dir__ = named_in_stub(__name__, __file__)
