"""The roles of a round: state machines that exchange messages.

A role takes the bytes of a message with ``receive`` and gives the messages to send on. It refuses
what does not fit, and is then as it was before; it never opens a connection and knows no clock.
``close`` says that no more users will come; ``give_up`` ends a round that lost a party, names it,
and forgets everything.
"""

from turnout.distributed.roles.server import AggregatingServer
from turnout.distributed.roles.staged import ReportingServer
from turnout.distributed.roles.user import User
from turnout.distributed.roles.vectors import Aggregator

__all__ = ["AggregatingServer", "Aggregator", "ReportingServer", "User"]
