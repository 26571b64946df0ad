"""How many messages a collection server takes in, beside a handler that only stores them.

Client and server are two processes of one machine. The server is ``turnout serve`` with SQLite: a
request is answered when its messages are checked, on the disk, counted, and kept from counting
twice. What only stores them is in ``bare_handler.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from report import Figures, Row, rate

TITLE = "A collection server, messages per second, client and server on the same cores"
HEADINGS = (
    *("job", "turnout", "bare, a row a message", "bare, a row a request"),
    *("ratio to a row a message", "to a row a request", "target", "met?"),
)
NOTES = [
    "turnout: turnout serve with SQLite. Before it answers a request, it has checked and counted "
    "the messages, made sure that none counts twice, and written all to the disk. With --keep "
    "messages it also stores the messages.",
    "bare: a handler on the same web server (uvicorn with Starlette), which only writes the bytes "
    "to SQLite and to the disk. It checks and counts nothing, and accepts repeated messages. "
    "Like turnout, it writes all requests that wait in one transaction.",
    "In each run, the servers work one after the other. A rate is the best of all runs. A ratio is "
    "the median of the ratios within a run.",
]
#: What turnout must reach: of what stores each message as a row, this part.
RATIO = 0.7
RUNS = 3


@dataclass(frozen=True)
class Load:
    """What clients send: messages of a request, connections, messages in all; and the goal."""

    name: str
    batch: int
    connections: int
    messages: int
    goal: int


LOADS = (
    Load("batches of 100", 100, 128, 300_000, 50_000),
    Load("one a request", 1, 256, 20_000, 2_500),
)


def measure(turnout: ModuleType | None, quick: bool, show: Callable[[str], object]) -> Figures:
    """Measure all servers under every load; ``quick`` sends a fiftieth, once."""
    rows: list[Row] = []
    if turnout is not None:
        plan = turnout.Plan(turnout.DirectEncoding(1.0, 10), turnout.Everyone())
        for load in LOADS:
            number = load.messages // 50 if quick else load.messages
            requests = requests_of(plan, load.batch, number)
            runs = []
            for run in range(1 if quick else RUNS):
                show(f"a server, {load.name}, {run + 1}")
                runs.append(run_of(plan, requests, load.connections, number))
            rows += [row_of(load, keep, runs) for keep in ("tally", "messages")]
    return Figures("serving", TITLE, HEADINGS, rows, NOTES)


def row_of(load: Load, keep: str, runs: Sequence[dict[str, float]]) -> Row:
    """Put the runs together: of each server the best, of ratios the median."""
    names = (keep, "rows", "requests")
    best = {name: max(run[name] for run in runs) for name in names}
    ratios = [statistics.median(run[keep] / run[name] for run in runs) for name in names[1:]]
    met = best[keep] >= load.goal and ratios[0] >= RATIO
    name = f"{load.name}, --keep {keep}"
    cells = (
        name,
        *(rate(best[each]) for each in names),
        *(f"{ratio:.2f}x" for ratio in ratios),
        f">= {rate(load.goal)}, {RATIO:g}x",
        "yes" if met else "no",
    )
    raw = {"job": name, "rates": best, "to_rows": ratios[0], "to_requests": ratios[1]}
    return Row(cells, "", raw)


def run_of(
    plan: Any, requests: Sequence[bytes], connections: int, messages: int
) -> dict[str, float]:
    """Send the same requests to each server, which begins with an empty store; gives the rates."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="turnout-bench-") as name:
        folder = Path(name)
        plan.write(folder / "plan.json")
        serve = ["-m", "turnout", "serve", folder / "plan.json", "--port", 0, "--store"]
        bare = Path(__file__).with_name("bare_handler.py")
        commands: dict[str, list[object]] = {
            "tally": [*serve, folder / "tally.db", "--keep", "tally"],
            "messages": [*serve, folder / "messages.db", "--keep", "messages"],
            "rows": [bare, folder / "rows.db", "rows"],
            "requests": [bare, folder / "requests.db", "requests"],
        }
        for server, command in commands.items():
            with process(command) as port:
                found[server] = messages / asyncio.run(send(port, requests, connections))
    return found


def requests_of(plan: Any, batch: int, messages: int) -> list[bytes]:
    """Make requests of new messages."""
    made = [plan.report(number % 10) for number in range(messages)]
    bodies = [b"\n".join(made[start : start + batch]) for start in range(0, messages, batch)]
    head = "POST /reports HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n"
    return [head.format(len(body)).encode() + body for body in bodies]


@contextlib.contextmanager
def process(command: Sequence[object]) -> Iterator[int]:
    """Run a server; gives its port."""
    words = [sys.executable, *map(str, command)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        said = []
        for line in server.stderr:
            said.append(line)
            if found := re.match(r"Serving http://127\.0\.0\.1:(\d+)", line):
                break
        else:
            message = f"the server did not begin: {''.join(said[-3:])}"
            raise RuntimeError(message)
        threading.Thread(target=server.stderr.read, daemon=True).start()
        try:
            yield int(found[1])
        finally:
            server.terminate()


class Client(asyncio.Protocol):
    """A connection that sends one request after another, and notes those that were answered."""

    def __init__(
        self, requests: Iterator[bytes], done: asyncio.Semaphore, answered: list[bool]
    ) -> None:
        self._requests, self._done, self._answered = requests, done, answered
        self._answer = b""

    def connection_made(self, transport: Any) -> None:
        """Send the first request."""
        self._transport = transport
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        """End, whether all was sent or the server went away."""
        self._done.release()

    def _send(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
        else:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        """Send the next request when one is answered."""
        self._answer += data
        if self._answer.endswith(b"}"):
            self._answered.append(self._answer.startswith(b"HTTP/1.1 200"))
            self._answer = b""
            self._send()


async def send(port: int, requests: Sequence[bytes], connections: int) -> float:
    """Send requests over so many connections; gives the seconds that it took."""
    loop, done, waiting = asyncio.get_running_loop(), asyncio.Semaphore(0), iter(requests)
    answered: list[bool] = []
    start = time.perf_counter()
    for _ in range(connections):
        await loop.create_connection(lambda: Client(waiting, done, answered), "127.0.0.1", port)
    for _ in range(connections):
        await done.acquire()
    seconds = time.perf_counter() - start
    if sum(answered) != len(requests):
        message = f"{sum(answered)} of {len(requests)} requests were answered"
        raise RuntimeError(message)
    return seconds
