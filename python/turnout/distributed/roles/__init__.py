"""The roles of a round: state machines that exchange messages.

A role takes the bytes of a message with ``receive`` and returns the messages to send next. It
refuses an invalid message without changing its state. It never opens a connection and does not use
a clock. ``close`` announces that no more users will come. ``give_up`` ends a round that lost a
party, names the party, and forgets everything.
"""

from turnout.distributed.roles.reporting import ReportingServer
from turnout.distributed.roles.server import AggregatingServer
from turnout.distributed.roles.user import User
from turnout.distributed.roles.vectors import Aggregator

__all__ = ["AggregatingServer", "Aggregator", "ReportingServer", "User"]
