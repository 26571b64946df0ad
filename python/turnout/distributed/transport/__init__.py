"""Rounds over sockets: asyncio streams, one message a frame, TLS if contexts are given.

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

What the other side does costs little more than what it sends: no frame is read that is larger than
the messages of the round are, a connection that does not move ends (``idle_within``,
``answer_within``), and one host takes a part of the places only (``connections_per_host``).

Messages are secret, and a role believes what a message says of its sender. So a deployment needs
TLS: contexts with certificates on both sides (``verify_mode = ssl.CERT_REQUIRED`` on that of the
server), and ``admits``, which says whom a certificate speaks for. Without them anybody can send
what counts as another's, or as too large for a user.
"""

from turnout.distributed.transport.courier import Address, Courier, Undelivered
from turnout.distributed.transport.station import Station

__all__ = ["Address", "Courier", "Station", "Undelivered"]
