"""Training and collection with random participation in Flower (extra ``flower``).

Training: :func:`participation_mod` for the ``ClientApp`` of any Flower project, or
:func:`client_app` around one function; :class:`RandomParticipationStrategy` for its ``ServerApp``,
or :func:`server_app`. Collection: :func:`frequency_client_app` and :func:`frequency_server_app`.
Both use Flower's Message API and run in its simulation and in deployment.
"""

from turnout._extras import require

require("flwr", "flower")

from turnout.federated.flower.client import LocalData, client_app, participation_mod  # noqa: E402
from turnout.federated.flower.frequency import (  # noqa: E402
    collect_frequencies,
    frequency_client_app,
    frequency_server_app,
)
from turnout.federated.flower.records import pack, sampled_elements, unpack  # noqa: E402
from turnout.federated.flower.strategy import (  # noqa: E402
    RandomParticipationStrategy,
    server_app,
)

__all__ = [
    "LocalData",
    "RandomParticipationStrategy",
    "client_app",
    "collect_frequencies",
    "frequency_client_app",
    "frequency_server_app",
    "pack",
    "participation_mod",
    "sampled_elements",
    "server_app",
    "unpack",
]
