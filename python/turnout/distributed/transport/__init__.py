"""Rounds over sockets: asyncio streams, one message in each frame, TLS with given contexts.

A :class:`Station` hosts roles behind one listening socket; a :class:`Courier` sends messages to
stations. Aggregator 0, with an address book that says where the others are::

    async with Station([round_.aggregator(0)], addresses, port=9000) as station:
        await station.collect(within=60)
        await station.finish(within=30)

A process with the devices of many users::

    async with Courier(addresses) as courier:
        reports = (message for user, value in devices for message in user.report(value))
        undelivered = await courier.send_all(reports)

What travels is, from client to station, frames of one message each, and back, in the same order, an
acknowledgement for every frame:

==========  =======================================================================================
bytes       content
==========  =======================================================================================
4           the length of what follows, unsigned, little-endian
...         a message (:mod:`turnout.distributed.messages`); or, back: the byte 0 if it was
            accepted; the byte 1, the name of the error, a line feed, and its text in UTF-8 if it
            was refused
==========  =======================================================================================

Losing a connection loses nothing else. Messages without an acknowledgement are sent again over the
next connection, and a station counts a repeated message once. The messages of a role are sent until
the time of the round is over. Then the error names the parties that were not reached.

The other side cannot cause much more cost than the data it sends. No frame is read that is larger
than the messages of the round, an idle connection ends (``idle_within``, ``answer_within``), and
one host can take only some of the connections (``connections_per_host``).

Messages are secret, and a role believes the sender that a message names. So a deployment needs TLS:
contexts with certificates on both sides (``verify_mode = ssl.CERT_REQUIRED`` on the server's), and
``admits``, which decides which parties a certificate may send for. Without them anybody can send
messages in the name of others, or messages too large for a user.
"""

from turnout.distributed.transport.courier import Address, Courier, Undelivered
from turnout.distributed.transport.station import Station

__all__ = ["Address", "Courier", "Station", "Undelivered"]
