"""How many messages a collection server takes in, durable, beside a bare handler that stores bytes.

::

    pip install 'turnout[cli,serve]'
    python benches/serving.py --json serving.json

Client and server are two processes of one machine. The server is ``turnout serve`` with SQLite: a
request is answered when its messages are on the disk, counted, and kept from counting twice. The
bare handler is a Starlette application on the same uvicorn that stores the bytes of a request in
a table of the same SQLite, durable too, those of all requests that wait in one transaction: what
is left to take away is reading, counting and remembering messages.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import queue
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import turnout as tn

PLAN = tn.Plan(tn.DirectEncoding(1.0, 10), tn.Everyone())

#: Messages of a request, connections at once, and messages in all.
CASES = ((100, 128, 600_000), (1, 256, 40_000))


class Client(asyncio.Protocol):
    """A connection that sends one request after another."""

    def __init__(self, requests: Iterator[bytes], done: asyncio.Semaphore) -> None:
        self._requests, self._done, self._answer = requests, done, b""

    def connection_made(self, transport: Any) -> None:
        """Send the first request."""
        self._transport = transport
        self._send()

    def _send(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            self._done.release()
        else:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Send the next request when one is answered."""
        self._answer += data
        if self._answer.endswith(b"}"):
            assert self._answer.startswith(b"HTTP/1.1 200"), self._answer
            self._answer = b""
            self._send()


async def load(port: int, requests: Sequence[bytes], connections: int) -> float:
    """Send requests over so many connections; gives the seconds that it took."""
    loop, done, waiting = asyncio.get_running_loop(), asyncio.Semaphore(0), iter(requests)
    start = time.perf_counter()
    for _ in range(connections):
        await loop.create_connection(lambda: Client(waiting, done), "127.0.0.1", port)
    for _ in range(connections):
        await done.acquire()
    return time.perf_counter() - start


def requests_of(batch: int, messages: int) -> list[bytes]:
    """Make requests of new messages."""
    made = [PLAN.report(number % 10) for number in range(messages)]
    lines = [each for each in made if each is not None]
    bodies = [b"\n".join(lines[start : start + batch]) for start in range(0, messages, batch)]
    head = "POST /reports HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n"
    return [head.format(len(body)).encode() + body for body in bodies]


@contextlib.contextmanager
def process(command: Sequence[object]) -> Iterator[int]:
    """Run a server; gives its port."""
    words = [sys.executable, *map(str, command)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        for line in server.stderr:
            if found := re.match(r"Serving http://127\.0\.0\.1:(\d+)", line):
                break
        else:
            raise RuntimeError("the server did not begin")
        threading.Thread(target=server.stderr.read, daemon=True).start()
        try:
            yield int(found[1])
        finally:
            server.terminate()


def bare(path: str) -> None:
    """Store the bytes of requests, those that wait in one transaction."""
    waiting: queue.SimpleQueue[tuple[bytes, Any]] = queue.SimpleQueue()

    def write() -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE bodies (number INTEGER PRIMARY KEY, body BLOB)")
        while True:
            work = [waiting.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    work.append(waiting.get_nowait())
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(
                "INSERT INTO bodies (body) VALUES (?)", [(body,) for body, _ in work]
            )
            connection.execute("COMMIT")
            loop.call_soon_threadsafe(lambda work=work: [one.set_result(None) for _, one in work])

    async def reports(request: Request) -> Response:
        nonlocal loop
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        waiting.put((await request.body(), future))
        await future
        return Response(b'{"accepted": 1}', media_type="application/json")

    loop: Any = None
    threading.Thread(target=write, daemon=True).start()
    bound = socket.create_server(("127.0.0.1", 0), backlog=2048)
    sys.stderr.write(f"Serving http://127.0.0.1:{bound.getsockname()[1]}\n")
    sys.stderr.flush()
    application = Starlette(routes=[Route("/reports", reports, methods=["POST"])])
    config = uvicorn.Config(application, access_log=False, log_level="error", lifespan="off")
    uvicorn.Server(config).run(sockets=[bound])


def measured(batch: int, connections: int, messages: int, folder: Path) -> dict[str, float]:
    """Measure both servers."""
    requests = requests_of(batch, messages)
    PLAN.write(folder / "plan.json")
    store, bodies = folder / f"reports-{batch}.db", folder / f"bodies-{batch}.db"
    ours = ["-m", "turnout", "serve", folder / "plan.json", "--store", store, "--port", 0]
    theirs = [__file__, "--bare", bodies]
    found = {}
    for name, command in (("turnout", ours), ("bare", theirs)):
        with process(command) as port:
            seconds = asyncio.run(load(port, requests, connections))
        found[name] = messages / seconds
    return {"batch": batch, **found, "ratio": found["turnout"] / found["bare"]}


def main() -> None:
    """Measure, and print a line for each size of requests."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bare", metavar="FILE", help="run the bare handler")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the numbers")
    parser.add_argument("--quick", action="store_true", help="send a fiftieth")
    options = parser.parse_args()
    if options.bare:
        bare(options.bare)
        return
    rows = []
    for batch, connections, messages in CASES:
        with tempfile.TemporaryDirectory() as folder:
            number = messages // 50 if options.quick else messages
            rows.append(measured(batch, connections, number, Path(folder)))
        row = rows[-1]
        print(
            f"{batch:4} a request: {row['turnout']:9,.0f} messages/s, "
            f"bare {row['bare']:9,.0f}, ratio {row['ratio']:.2f}",
            flush=True,
        )
    if options.json is not None:
        options.json.write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
