"""Incoming connections: their limits, and the parties that each may send for."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import inspect
import logging
import math
import socket
import ssl
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from turnout import _arguments
from turnout.distributed.messages import Party
from turnout.distributed.transport.courier import Address
from turnout.distributed.transport.frames import (
    Watch,
    close_writer,
    frame,
    read_frame,
)
from turnout.errors import ProtocolError

_LOGGER = logging.getLogger(__name__)

#: A frame or handshake may take so many seconds before one of an equal right takes its place.
_GRACE = 5.0

#: For how many seconds no connection is accepted after the operating system had no room for one.
_PAUSE = 0.05

#: Tells whether the owner of a certificate may send messages in the name of a party.
Admits = Callable[[Party, dict[str, Any]], bool]

_BACKLOG = 1024
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Line:
    """One incoming connection.

    Attributes
    ----------
    certificate
        That of the other side, as :meth:`ssl.SSLSocket.getpeercert` gives it; empty without one.
    """

    def __init__(self, host: str, accepted: socket.socket) -> None:
        self.host = host
        #: The socket, until :meth:`open` takes it.
        self.accepted: socket.socket | None = accepted
        self.certificate: dict[str, Any] = {}
        self.task: asyncio.Task[None] | None = None
        #: Since when nothing useful came.
        self.since = asyncio.get_running_loop().time()
        #: Whether nothing is lost with it: it is between two frames, or at its end.
        self.resting = False
        #: Whether it was broken: its place is free.
        self.leaving = False
        #: Whether nothing but its end is waited for.
        self.closing = False
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._watch: Watch | None = None

    async def open(self, tls: ssl.SSLContext | None, idle_within: float) -> None:
        """Start the conversation, with TLS if there is a context."""
        accepted, self.accepted = self.accepted, None
        assert accepted is not None
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            accepted,
            ssl=tls,
            ssl_handshake_timeout=None if tls is None else idle_within,
        )
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        self._streams = reader, writer
        self.certificate = writer.get_extra_info("peercert") or {}
        self._watch = Watch(idle_within, self.end)
        self._watch.moved()

    def end(self) -> None:
        """Break the connection."""
        self.leaving = True
        if self._streams is not None:
            self._streams[1].transport.abort()
        elif self.task is not None:
            self.task.cancel()

    async def read(self, largest: int, look: Callable[[bytes], None]) -> bytes | None:
        """Read the next frame; return None after the last one. See :func:`read_frame`."""
        assert self._streams is not None
        self.resting = True
        content = await read_frame(self._streams[0], largest, look=look, moved=self._moved)
        # What was received before the connection was broken can no longer be acknowledged.
        return None if self.leaving else content

    def _moved(self) -> None:
        assert self._watch is not None
        self.resting = False
        self._watch.moved()

    async def answer(self, content: bytes) -> None:
        """Send a frame."""
        assert self._streams is not None
        self._streams[1].write(frame(content))
        await self._streams[1].drain()
        self._moved()

    def served(self) -> None:
        """Record that a useful message came."""
        self.since = asyncio.get_running_loop().time()

    async def close(self) -> None:
        """End the connection in order, by force if the other side does not cooperate."""
        self.closing = self.resting = True
        self.since = -math.inf
        if self._watch is not None:
            self._watch.stop()
        if self._streams is not None:
            await close_writer(self._streams[1])


class Listener:
    """A listener that serves each incoming connection in its own task.

    If there is no more room, the host with the most connections loses one: the connection that was
    useless for the longest time, of those between two frames if there are any. A connection within
    a frame or a handshake ends only if its host has at least as many connections as the new one's
    host, or after a few seconds. Otherwise the new connection is refused. So a host that opens many
    connections takes places only from itself.

    Parameters
    ----------
    serve
        Talks on one connection until it ends.
    tls
        The context of a TLS server, or None.
    connections, connections_per_host
        The largest number of connections, in all and from one host. None for half of the files that
        the process may open, at most 1,000, and for a quarter of that.
    idle_within
        For how many seconds a connection may not move.
    """

    def __init__(
        self,
        serve: Callable[[Line], Awaitable[None]],
        *,
        tls: ssl.SSLContext | None,
        connections: int | None,
        connections_per_host: int | None,
        idle_within: float,
    ) -> None:
        self._serve = serve
        self._tls = tls
        if connections is None:
            connections = _half_of_all_files()
        self._most = _arguments.integer("connections", connections, least=1)
        if connections_per_host is None:
            connections_per_host = max(1, self._most // 4)
        self._most_of_host = _arguments.integer(
            "connections_per_host", connections_per_host, least=1
        )
        self._idle_within = _arguments.seconds("idle_within", idle_within)
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._lines: set[Line] = set()
        self._warned = False

    async def open(self, host: str, port: int) -> None:
        """Start listening.

        Raises
        ------
        OSError
            If the port cannot be used.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, _, _, _, place in dict.fromkeys(found):
                if family == socket.AF_INET or (family == socket.AF_INET6 and socket.has_ipv6):
                    listening = socket.create_server(place, family=family, backlog=_BACKLOG)
                    listening.setblocking(False)
                    self._sockets.append(listening)
        except OSError:
            self._close_sockets()
            raise
        self._accepting = [loop.create_task(self._accept(each)) for each in self._sockets]

    @property
    def address(self) -> Address | None:
        """The host and the port at which it listens; None if it does not listen."""
        if not self._sockets:
            return None
        host, port = self._sockets[0].getsockname()[:2]
        return host, port

    async def close(self) -> None:
        """Accept no more connections, and close the existing ones."""
        for task in self._accepting:
            task.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        self._close_sockets()
        while self._lines:
            for line in self._lines:
                if line.task is not None and not line.closing:
                    line.task.cancel()
            await asyncio.wait([line.task for line in self._lines if line.task is not None])

    def _close_sockets(self) -> None:
        for listening in self._sockets:
            listening.close()
        self._sockets.clear()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except OSError as error:
                # The connection is gone again, or the process has no room for another.
                self._warn(f"a connection could not be taken: {error}")
                if error.errno in _NO_ROOM and (crowd := self._crowd()):
                    self._longest_waiting(crowd).end()
                await asyncio.sleep(_PAUSE)
                continue
            host = _host(listening.family, address)
            if self._makes_room_for(host):
                line = Line(host, accepted)
                self._lines.add(line)
                line.task = loop.create_task(self._host(line))
                line.task.add_done_callback(functools.partial(self._left, line))
            else:
                self._warn("connections are turned away: as many as may be are open")
                accepted.close()
            # A broken connection is closed before the next is taken.
            await asyncio.sleep(0)

    def _left(self, line: Line, task: asyncio.Task[None]) -> None:
        self._lines.discard(line)
        if line.accepted is not None:  # cancelled before it began
            line.accepted.close()

    def _warn(self, text: str) -> None:
        level = logging.DEBUG if self._warned else logging.WARNING
        _LOGGER.log(level, "%s", text)
        self._warned = True

    # Room.

    def _staying(self) -> list[Line]:
        return [line for line in self._lines if not line.leaving]

    def _crowd(self) -> list[Line]:
        """Return the connections of the hosts that have the most."""
        lines = self._staying()
        held = Counter(line.host for line in lines)
        most = max(held.values(), default=0)
        return [line for line in lines if held[line.host] == most]

    @staticmethod
    def _longest_waiting(lines: list[Line]) -> Line:
        return min(lines, key=lambda line: line.since)

    def _makes_room_for(self, host: str) -> bool:
        lines = self._staying()
        held = Counter(line.host for line in lines)
        if held[host] >= self._most_of_host:
            candidates = [line for line in lines if line.host == host]
        elif len(lines) >= self._most:
            candidates = self._crowd()
        else:
            return True
        resting = [line for line in candidates if line.resting]
        leaving = self._longest_waiting(resting or candidates)
        waited = asyncio.get_running_loop().time() - leaving.since
        if not resting and held[leaving.host] <= held[host] + 1 and waited < _GRACE:
            return False
        leaving.end()
        return True

    async def _host(self, line: Line) -> None:
        try:
            await line.open(self._tls, self._idle_within)
            await self._serve(line)
        except (OSError, asyncio.CancelledError):
            pass
        except Exception as error:
            _LOGGER.warning("a connection ended: %s", type(error).__name__)
        finally:
            await line.close()


def _host(family: int, address: Any) -> str:
    """Return the host of a connection; all addresses of one IPv6 network count as one host."""
    name = str(address[0])
    if family == socket.AF_INET6:
        with contextlib.suppress(OSError):
            return socket.inet_pton(family, name.partition("%")[0])[:8].hex()
    return name


def _half_of_all_files() -> int:
    try:
        import resource  # noqa: PLC0415
    except ImportError:  # Windows has no such limit
        return 1000
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 1000 if limit == resource.RLIM_INFINITY else max(1, min(1000, limit // 2))


@dataclass(frozen=True)
class Admission:
    """A check by the caller's function of certificates, which may come from anybody.

    Parameters
    ----------
    admits
        The function; None believes every sender.

    Raises
    ------
    InvalidTypeError
        If it is no function, or an asynchronous one: what that gives would count as true.
    """

    admits: Admits | None

    def __post_init__(self) -> None:
        admits = self.admits
        if admits is not None and (not callable(admits) or inspect.iscoroutinefunction(admits)):
            raise _arguments.mistyped(
                "admits must be a function of a party and a certificate that gives True or False",
                admits,
            )

    def check(self, sender: Party, certificate: dict[str, Any]) -> None:
        """Refuse a sender for which the certificate does not speak.

        Raises
        ------
        ProtocolError
            If the function gives anything but True, or raises.
        """
        if self.admits is None:
            return
        try:
            admitted: object = self.admits(sender, certificate)
        except Exception as error:
            # The certificate must not end the round. What the error says may be from it, and is
            # not logged.
            last = traceback.extract_tb(error.__traceback__)[-1]
            _LOGGER.warning(
                "a message is refused: admits raised %s (%s, line %s)",
                type(error).__name__,
                last.filename,
                last.lineno,
            )
            raise ProtocolError(
                f"cannot tell whether the certificate of the connection speaks for {sender}"
            ) from error
        if admitted is True:
            return
        if admitted is not False:
            _LOGGER.warning(
                "a message is refused: admits must give True or False, got an object of type %s",
                type(admitted).__name__,
            )
        raise ProtocolError(f"the certificate of the connection does not speak for {sender}")
