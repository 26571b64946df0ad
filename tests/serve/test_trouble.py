"""Clients that mean harm, or are broken: refused in bounded time and memory, and others served."""

from __future__ import annotations

import contextlib
import gzip
import random
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.serve.waiting import PATIENCE, until

import turnout as tn
from turnout.serve.checking import check
from turnout.serve.storage.opening import open_store

PLAN = tn.Plan(tn.OptimizedUnaryEncoding(2.0, 40), tn.Everyone())


def message(value: int = 1) -> bytes:
    made = PLAN.report(value)
    assert made is not None
    return made


#: A server of these tests waits for a request for an hour: whoever had to wait until a client that
#: does harm is turned away would not be served while a test has patience.
PATIENT = ["--request-seconds", "3600"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, run: Callable[..., Any]) -> Iterator[Any]:
    yield from served(tmp_path_factory, run, PATIENT)


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory, run: Callable[..., Any]) -> Iterator[Any]:
    """A server that gives two seconds to send a request."""
    yield from served(tmp_path_factory, run, ["--request-seconds", "2"])


def served(
    factory: pytest.TempPathFactory, run: Callable[..., Any], options: list[str]
) -> Iterator[Any]:
    folder = factory.mktemp("server")
    PLAN.write(folder / "plan.json")
    running = run(folder / "plan.json", folder / "reports.db", options)
    yield running
    assert running.stop() == 0


def memory(server: Any) -> int:
    """The memory of the process, in bytes."""
    status = Path(f"/proc/{server.process.pid}/status")
    if not status.exists():
        pytest.skip("memory of a process is read in /proc")
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def honest(server: Any) -> None:
    """An honest client is served, on a connection of its own."""
    with httpx.Client(base_url=server.address, timeout=PATIENCE) as client:
        taken = client.post("/reports", content=message()).json()
    assert taken == {"accepted": 1, "duplicates": 0, "refused": {}}


def connected(server: Any) -> socket.socket:
    return socket.create_connection(server.host, timeout=PATIENCE)


def answer_of(connection: socket.socket) -> bytes:
    """All that comes until the server closes the connection."""
    found = b""
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        while piece := connection.recv(2**16):
            found += piece
    return found


HEAD = b"POST /reports HTTP/1.1\r\nhost: x\r\n"


def test_a_body_without_an_end_is_ended(server: Any) -> None:
    with connected(server) as connection:
        connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n")
        sent = 0
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            while sent < 10_000:
                connection.sendall(b"10000\r\n" + b"\n" * 2**16 + b"\r\n")
                sent += 1
        # What was on its way when the server closed the connection.
        assert sent < 1000
    honest(server)


def test_a_body_that_comes_slowly_is_ended(hasty: Any) -> None:
    with connected(hasty) as connection:
        connection.sendall(HEAD + b"content-length: 100000\r\n\r\n")
        with contextlib.suppress(ConnectionResetError, BrokenPipeError):
            until(lambda: connection.sendall(b"x"))
    assert hasty.client.get("/health").status_code == 200


class Attack(threading.Thread):
    """Does harm until told to end; when the server hangs up, on a new connection."""

    def __init__(
        self, server: Any, end: threading.Event, harm: Callable[[socket.socket], object]
    ) -> None:
        super().__init__(daemon=True)
        self._server, self._end, self._harm, self.times = server, end, harm, 0

    def run(self) -> None:
        while not self._end.is_set():
            with contextlib.suppress(OSError), connected(self._server) as connection:
                self._harm(connection)
            self.times += 1


@pytest.mark.slow
def test_honest_clients_are_served_while_others_attack(server: Any) -> None:
    bomb, end = gzip.compress(b"\n" * 10**7), threading.Event()
    lines = b"\n".join(malformed(random.Random(5), 500))

    def slow(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"content-length: 1000\r\n\r\n")
        while not end.wait(0.1):
            connection.sendall(b"x")

    def endless(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n")
        while True:
            connection.sendall(b"10000\r\n" + b"\n" * 2**16 + b"\r\n")

    def bombs(connection: socket.socket) -> None:
        head = HEAD + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(bomb)
        connection.sendall(head + bomb)
        connection.recv(2**16)
        time.sleep(0.02)

    def floods(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(lines) + lines)
        connection.recv(2**16)

    kinds = (endless, bombs, floods, floods, *[slow] * 100)
    attacks = [Attack(server, end, harm) for harm in kinds]
    for each in attacks:
        each.start()
    try:
        for _ in range(10):
            honest(server)
            time.sleep(0.2)
    finally:
        end.set()
        for each in attacks:
            each.join(PATIENCE)
    assert min(each.times for each in attacks) >= 1


def test_a_body_that_is_too_large_by_its_own_word_is_not_read(server: Any) -> None:
    with connected(server) as connection:
        connection.sendall(HEAD + b"content-length: 999999999999999\r\n\r\n")
        assert connection.recv(2**16).startswith(b"HTTP/1.1 413 ")


def test_who_sends_too_much_sees_the_answer(server: Any) -> None:
    # Without a length the server learns late that it is too much; with one, before it comes.
    large = b" " * 2**23
    for body in (iter([large]), large, iter([large]), large):
        assert server.client.post("/reports", content=body).status_code == 413
    # The connection is good for the next request.
    with connected(server) as connection:
        connection.sendall(HEAD + b"content-length: 5000000\r\n\r\n" + b" " * 1000)
        answer = b""
        while not answer.endswith(b"in one request\n"):
            answer += connection.recv(2**16)
        assert answer.startswith(b"HTTP/1.1 413 ")
        connection.sendall(b" " * (5_000_000 - 1000) + b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        assert connection.recv(2**16).startswith(b"HTTP/1.1 200 ")
    honest(server)


def silent(server: Any) -> list[socket.socket]:
    """Connect without saying all."""
    connections = [connected(server) for _ in range(200)]
    for number, each in enumerate(connections):
        each.sendall((HEAD + b"content-length: 5\r\n\r\nab")[: number // 4])
    return connections


def test_a_connection_that_says_nothing_is_closed(hasty: Any) -> None:
    for each in silent(hasty):
        assert answer_of(each)[:12] in (b"", b"HTTP/1.1 408")
        each.close()
    assert hasty.client.get("/health").status_code == 200


def test_connections_that_say_nothing_keep_nobody_waiting(server: Any) -> None:
    connections = silent(server)
    honest(server)
    for each in connections:
        each.close()


def test_who_has_sent_all_and_says_so_gets_the_answer(server: Any) -> None:
    for number in (1, 3):
        one = message()
        request = HEAD + b"content-length: %d\r\n\r\n" % len(one) + one
        with connected(server) as connection:
            connection.sendall(request * number)
            connection.shutdown(socket.SHUT_WR)
            answers = answer_of(connection)
        assert answers.count(b"HTTP/1.1 200 OK") == number
        assert answers.count(b'"accepted": 1') == 1
    # Of half a request there is nothing to say.
    with connected(server) as connection:
        connection.sendall(request[:-5])
        connection.shutdown(socket.SHUT_WR)
        assert answer_of(connection) == b""
    honest(server)


def test_a_head_without_an_end_is_refused(server: Any) -> None:
    for line in (b"a: b\r\n", b"a"):
        with connected(server) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n")
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                for _ in range(50):
                    connection.sendall(line * 2**10)
                    time.sleep(0.01)
            assert b" 431 " in answer_of(connection)[:20]
    with connected(server) as connection:
        connection.sendall(b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n")
        assert b" 431 " in answer_of(connection)[:20]
    honest(server)


def test_what_is_no_request_is_refused(server: Any) -> None:
    for junk in (b"\x16\x03\x01\x02", b"hello\r\n\r\n", b"POST /reports HTTP/1.1\r\n:\r\n\r\n"):
        with connected(server) as connection:
            connection.sendall(junk * 10)
            connection.shutdown(socket.SHUT_WR)
            assert answer_of(connection)[:12] in (b"", b"HTTP/1.1 400", b"HTTP/1.1 408")
    honest(server)


def test_a_bomb_is_not_opened(server: Any) -> None:
    before = memory(server)
    bomb = gzip.compress(b"\n" * 10**8)
    for coding in ("gzip", "br", "zstd", "identity, gzip", "GZIP"):
        answer = server.client.post("/reports", content=bomb, headers={"content-encoding": coding})
        assert answer.status_code == 415
    assert memory(server) - before < 50 * 10**6
    honest(server)


def malformed(source: random.Random, number: int) -> list[bytes]:
    """Messages that were good, each with something wrong."""
    found = []
    for _ in range(number):
        good = bytearray(message(source.randrange(40)))
        kind = source.randrange(6)
        if kind == 0:
            del good[source.randrange(len(good)) :]
        elif kind == 1:
            for _ in range(3):
                good[source.randrange(len(good))] = source.randrange(256)
        elif kind == 2:
            place = source.randrange(len(good))
            good[place:place] = source.randbytes(5)
        elif kind == 3:
            good = bytearray(b"[" * source.randrange(1, 400))
        elif kind == 4:
            good = bytearray(b'{"report":' + b"9" * source.randrange(400) + b"}")
        else:
            good = bytearray(source.randbytes(source.randrange(1, 200)))
        found.append(bytes(good).replace(b"\n", b" ") or b"x")
    return found


def attacked(server: Any, number: int) -> None:
    """Send so many malformed messages, and a good one now and then."""
    source = random.Random(number)
    before = memory(server)
    accepted = refused = 0
    for start in range(0, number, 500):
        lines = malformed(source, min(500, number - start))
        good = message()
        taken = server.send([*lines, good])
        assert taken.status_code == 200
        found = taken.json()
        assert found["duplicates"] == 0
        accepted += found["accepted"]
        refused += sum(found["refused"].values())
    honest(server)
    batches = -(-number // 500)
    # A digit of a report or of a nonce that became another one makes another good message.
    assert batches <= accepted < batches + number / 20
    assert refused > number * 0.9
    assert memory(server) - before < 60 * 10**6


@pytest.mark.everyday
def test_malformed_messages_are_refused(server: Any) -> None:
    attacked(server, 3000)


def test_a_hundred_thousand_malformed_messages_are_refused(server: Any) -> None:
    attacked(server, 10**5)


def test_clients_that_go_away_or_read_nothing_harm_nobody(server: Any) -> None:
    open_ones = []
    for _ in range(50):
        connection = connected(server)
        body = b"\n".join(message() for _ in range(20))
        connection.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body)
        connection.close()
        reader = connected(server)
        reader.sendall(b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 20)
        open_ones.append(reader)
    honest(server)
    for each in open_ones:
        each.close()


@pytest.mark.slow
def test_who_asks_for_much_and_reads_nothing_takes_little_memory(
    tmp_path: Path, run: Callable[..., Any]
) -> None:
    PLAN.write(tmp_path / "plan.json")
    server = run(tmp_path / "plan.json", tmp_path / "reports.db", PATIENT)
    honest(server)
    before = memory(server)
    # More than the buffers of the system hold: 16 MB for each.
    asked = b"GET /turnout.js HTTP/1.1\r\nhost: x\r\n\r\n"
    readers = []
    for _ in range(20):
        readers.append(connected(server))
        with contextlib.suppress(OSError):
            readers[-1].sendall(asked * 120)
    honest(server)
    time.sleep(1)
    assert memory(server) - before < 50 * 10**6
    honest(server)
    for each in readers:
        each.close()
    assert server.stop() == 0


@pytest.mark.slow
def test_bodies_that_never_end_fill_no_memory(tmp_path: Path, run: Callable[..., Any]) -> None:
    # Of so large messages, the body of a request may have 4 MB.
    large = tn.Plan(tn.OptimizedUnaryEncoding(2.0, 20_000), tn.Everyone())
    large.write(tmp_path / "plan.json")
    line = large.report(1)
    assert line is not None
    server = run(tmp_path / "plan.json", tmp_path / "reports.db", [])
    before = memory(server)
    head = HEAD + b"content-length: 3500001\r\n\r\n"
    with contextlib.ExitStack() as unending:
        for _ in range(80):
            connection = unending.enter_context(connected(server))
            with contextlib.suppress(OSError):
                connection.sendall(head + bytes(3_500_000))
        # 280 MB came, of which the server keeps 64, and it still serves others.
        assert httpx.post(f"{server.address}/reports", content=line, timeout=PATIENCE).is_success
        assert memory(server) - before < 160 * 10**6
    assert server.stop() == 0


def test_more_connections_than_allowed_close_those_that_wait(
    tmp_path: Path, run: Callable[..., Any]
) -> None:
    PLAN.write(tmp_path / "plan.json")
    server = run(tmp_path / "plan.json", tmp_path / "reports.db", ["--connections", "20"])
    waiting = []
    for _ in range(60):
        waiting.append(connected(server))
        waiting[-1].sendall(HEAD)
    honest(server)
    for each in waiting:
        each.close()
    assert server.stop() == 0


def test_a_locked_database_is_told_and_nothing_is_lost(
    tmp_path: Path, run: Callable[..., Any]
) -> None:
    PLAN.write(tmp_path / "plan.json")
    server = run(tmp_path / "plan.json", tmp_path / "reports.db", [])
    sent = [message() for _ in range(10)]
    server.send(sent[:3])
    other = sqlite3.connect(tmp_path / "reports.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answer = server.send(sent)
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert "send the same again" in answer.text
    assert server.client.get("/health").status_code == 503
    assert server.client.get("/results.json").status_code == 200
    other.execute("ROLLBACK")
    other.close()
    assert server.send(sent).json() == {"accepted": 7, "duplicates": 3, "refused": {}}
    assert server.client.get("/health").status_code == 200
    assert server.stop() == 0
    said = "".join(server.log)
    assert said.count("cannot be used") == said.count("can be used again") == 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limits of another process are Linux's")
@pytest.mark.parametrize("keep", ["messages", "tally"])
def test_a_disk_that_is_full_for_a_while_is_told_and_nothing_is_lost(
    tmp_path: Path, run: Callable[..., Any], keep: str
) -> None:
    import resource

    PLAN.write(tmp_path / "plan.json")
    server = run(tmp_path / "plan.json", tmp_path / "reports.db", ["--keep", keep])
    sent = [message() for _ in range(600)]
    assert server.send(sent[:3]).json()["accepted"] == 3
    # No file grows any more: the system says so of every write, whatever it is for.
    largest = max(path.stat().st_size for path in tmp_path.iterdir())
    _, most = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (largest, most))
    for _ in range(3):
        answer = server.send(sent)
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
    assert server.client.get("/health").status_code == 503
    assert server.client.get("/plan.json").status_code == 200
    assert server.client.get("/results.json").status_code == 200
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, most))
    assert server.send(sent).json() == {"accepted": 597, "duplicates": 3, "refused": {}}
    assert server.client.get("/health").status_code == 200
    until(lambda: server.results()["received"])  # an earlier one is kept for a moment
    assert server.results()["received"] == 600
    assert server.stop() == 0
    said = "".join(server.log)
    assert said.count("cannot be used") == said.count("can be used again") == 1
    store = open_store(str(tmp_path / "reports.db"))
    assert check(store).reports == 600
    store.close()


def test_memory_is_flat_in_the_number_of_messages(tmp_path: Path, run: Callable[..., Any]) -> None:
    PLAN.write(tmp_path / "plan.json")
    server = run(tmp_path / "plan.json", tmp_path / "reports.db", ["--keep", "tally"])

    def send(times: int) -> None:
        for _ in range(times):
            assert server.send([message() for _ in range(1000)]).json()["accepted"] == 1000

    send(30)
    before = memory(server)
    threads = [threading.Thread(target=send, args=(20,)) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    # 60,000 messages have 12 MB as they are sent, and 1.4 MB in the table, which is held in memory.
    assert memory(server) - before < 8 * 10**6
    assert server.results()["received"] == 90_000
    server.kill()
