"""The process of a server: its sockets, its log, and how it ends."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn

from turnout.serve.collection import Collection
from turnout.serve.storage.interface import Store
from turnout.serve.web.app import Server, Settings
from turnout.serve.web.connections import connections_within

_LOGGER = logging.getLogger(__name__)

#: Seconds that requests in hand get to end.
_PATIENCE = 10


class _Lines(logging.Formatter):
    """Writes a record as one line of JSON: when, how grave, from where, and what."""

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


class _Process(uvicorn.Server):
    """Uvicorn's server, with a writer that begins before it and ends after it."""

    def __init__(self, config: uvicorn.Config, server: Server, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._server, self._ready = server, ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        self._server.writer.start()
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
    collection: Collection,
    store: Store,
    settings: Settings,
    bound: socket.socket,
    ready: Callable[[], None],
) -> None:
    """Answer requests until the process is told to end.

    Parameters
    ----------
    collection, store, settings
        As :class:`turnout.serve.web.app.Server` takes them.
    bound
        Where to listen.
    ready
        Called when requests are answered.
    """
    with contextlib.suppress(ImportError, OSError, ValueError):
        _raise_open_files()
    server = Server(collection, store, settings)
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
    )
    with _logged():
        _LOGGER.info(
            "%d plans, store %s, which keeps %s", len(collection.published), store.place, store.keep
        )
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
