"""A server that stores the messages that it is sent and does nothing else.

::

    python benches/bare_handler.py bodies.db rows

It is a Starlette application on uvicorn, as turnout's server is, and stores in SQLite with the same
settings: a request is answered when its messages are on the disk, and all requests that wait are
in one transaction. It reads no message, counts none, and keeps no repeat out. With ``rows`` each
message is a row, which is the least if messages are to be known from one another; with
``requests`` the body of a request is one, which is the least at all.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import socket
import sqlite3
import sys
import threading
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

#: As turnout has them: the most rows of a transaction, pages of the log, kilobytes of memory.
MOST = 2**15
LOG_PAGES, CACHE = 16384, 65536

Waiting = queue.SimpleQueue[tuple[bytes, Any]]


def write(path: str, by_message: bool, waiting: Waiting) -> None:
    """Store what waits, one transaction after another."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
    connection.execute(f"PRAGMA cache_size = -{CACHE}")
    connection.execute("CREATE TABLE stored (number INTEGER PRIMARY KEY, bytes BLOB)")
    while True:
        work = [waiting.get()]
        rows = work[0][0].split(b"\n") if by_message else [work[0][0]]
        with contextlib.suppress(queue.Empty):
            while len(rows) < MOST:
                work.append(waiting.get_nowait())
                body = work[-1][0]
                rows += body.split(b"\n") if by_message else [body]
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO stored (bytes) VALUES (?)", [(one,) for one in rows])
        connection.execute("COMMIT")
        loop = work[0][1].get_loop()
        loop.call_soon_threadsafe(lambda work=work: [one.set_result(None) for _, one in work])


def main(path: str, unit: str) -> None:
    """Answer requests until the process is told to end."""
    waiting: Waiting = queue.SimpleQueue()

    async def reports(request: Request) -> Response:
        future = asyncio.get_running_loop().create_future()
        waiting.put((await request.body(), future))
        await future
        return Response(b'{"accepted": 1}', media_type="application/json")

    threading.Thread(target=write, args=(path, unit == "rows", waiting), daemon=True).start()
    bound = socket.create_server(("127.0.0.1", 0), backlog=2048)
    sys.stderr.write(f"Serving http://127.0.0.1:{bound.getsockname()[1]}\n")
    sys.stderr.flush()
    application = Starlette(routes=[Route("/reports", reports, methods=["POST"])])
    config = uvicorn.Config(application, access_log=False, log_level="error", lifespan="off")
    uvicorn.Server(config).run(sockets=[bound])


if __name__ == "__main__":
    main(*sys.argv[1:])
