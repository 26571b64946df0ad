"""The process of a server: its sockets, its log, and how it ends."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import uvicorn

from turnout.errors import InvalidValueError
from turnout.serve.limits import Limits
from turnout.serve.web.answers import Application
from turnout.serve.web.connections import connections_within

_LOGGER = logging.getLogger(__name__)

#: Seconds that requests in hand get to end.
_PATIENCE = 10


class _Lines(logging.Formatter):
    """A formatter that writes a record as one line of JSON: time, level, source and message."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        said = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "from": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return json.dumps(said)


class Serving(Protocol):
    """What a process serves: a collection, aggregators of tasks, or both."""

    @property
    def limits(self) -> Limits:
        """What requests may cost at the moment."""

    def application(self) -> Application:
        """Make the ASGI application."""

    def start(self) -> None:
        """Start the work beside requests; called in the event loop."""

    async def stop(self) -> None:
        """Stop the work beside requests, and store what waits."""

    def described(self) -> str:
        """State what is served, in a line for the log."""


@dataclass(frozen=True)
class Tls:
    """The certificate and the key of a server: files in PEM form.

    Attributes
    ----------
    certificate
        The certificate of the server, and those between it and the root.
    key
        The key of the certificate.
    """

    certificate: Path
    key: Path


class _Process(uvicorn.Server):
    """Uvicorn's server, with what begins before it and ends after it."""

    def __init__(self, config: uvicorn.Config, server: Serving, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._server, self._ready = server, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        self._server.start()
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more requests, answer those in hand, and store what they brought."""
        await super().shutdown(sockets)
        await self._server.stop()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End gracefully when told to, and without an error."""
        with super().capture_signals():
            try:
                yield
            finally:
                self._captured_signals.clear()


def listening(host: str, port: int) -> socket.socket:
    """Bind a socket.

    Raises
    ------
    OSError
        If the address cannot be used; the error names it.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise OSError(error.errno, error.strerror, f"{host}:{port}") from error


def serve(
    server: Serving, bound: socket.socket, ready: Callable[[], None], tls: Tls | None = None
) -> None:
    """Answer requests until the process is told to end.

    Parameters
    ----------
    server
        The server that answers.
    bound
        The socket to listen on.
    ready
        A function that is called once requests are answered.
    tls
        The certificate and the key of the server; None to speak without TLS.

    Raises
    ------
    InvalidValueError
        If the certificate or its key cannot be used.
    """
    with contextlib.suppress(ImportError, OSError, ValueError):
        _raise_open_files()
    config: Any = uvicorn.Config(
        server.application(),
        http=connections_within(lambda: server.limits),
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=round(server.limits.idle_seconds),
        timeout_graceful_shutdown=_PATIENCE,
        ssl_certfile=None if tls is None else tls.certificate,
        ssl_keyfile=None if tls is None else tls.key,
    )
    try:
        config.load()
    except ssl.SSLError as error:
        raise InvalidValueError(
            f"the certificate and its key cannot be used: {error.reason or error}"
        ) from None
    with _logged():
        _LOGGER.info("%s", server.described())
        _Process(config, server, ready).run(sockets=[bound])
        _LOGGER.info("ended; everything that was acknowledged is stored")


@contextlib.contextmanager
def _logged() -> Iterator[None]:
    """Write what turnout and uvicorn log to standard error, a line of JSON each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    loggers = [logging.getLogger("turnout.serve"), logging.getLogger("uvicorn")]
    loggers[1].setLevel(logging.WARNING)
    loggers[0].setLevel(logging.INFO)
    for each in loggers:
        each.addHandler(handler)
    try:
        yield
    finally:
        for each in loggers:
            each.removeHandler(handler)


def _raise_open_files() -> None:
    """Allow as many open connections as the system does."""
    import resource  # noqa: PLC0415 (not on Windows)

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
