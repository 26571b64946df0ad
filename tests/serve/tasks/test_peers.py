"""Servers that break off, or send and take as slowly as they can: no request waits for long."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from tests.serve.waiting import PATIENCE

from turnout.serve.tasks.peers import Answer, Peer, PeerUnavailableError

#: What a request may take where it is ended, and the rest between two bits of a slow server.
SECONDS, REST = 0.5, 0.1
#: How many bits a slow server takes or sends: a minute of them.
BITS = 600

Serving = Callable[..., Peer]


def take(connection: socket.socket) -> None:
    """Take a whole request. Head and body may come apart, and what is left unread resets."""
    taken = b""
    while b"\r\n\r\n" not in taken:
        piece = connection.recv(2**16)
        if not piece:
            return
        taken += piece
    head, body = taken.split(b"\r\n\r\n", 1)
    length = re.search(rb"(?i)content-length: ([0-9]+)", head)
    left = int(length[1]) - len(body) if length else 0
    while left > 0:
        piece = connection.recv(left)
        if not piece:
            return
        left -= len(piece)


@pytest.fixture
def serving() -> Iterator[Serving]:
    """What starts a server that does one thing with every connection, and names it."""
    listening: list[socket.socket] = []

    def start(reply: Callable[[socket.socket], None], seconds: float = PATIENCE) -> Peer:
        server = socket.create_server(("127.0.0.1", 0))
        listening.append(server)

        def run() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection, contextlib.suppress(OSError):
                        reply(connection)

        threading.Thread(target=run, daemon=True).start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        return Peer(address, "helper", seconds=seconds)

    yield start
    for each in listening:
        each.close()


@pytest.mark.parametrize(
    "sent", [b"", b"abc"], ids=["before the first byte", "after the first bytes"]
)
def test_an_answer_that_breaks_off_is_none(serving: Serving, sent: bytes) -> None:
    # An upload whose list of refused reports is lost would look as if all were accepted, and a job
    # whose answer is cut would lose all its reports.
    def reply(connection: socket.socket) -> None:
        take(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + sent)

    peer = serving(reply)
    with pytest.raises(PeerUnavailableError, match="ended in the middle of the answer"):
        peer.request("POST", "tasks", b"a", "upload-req")


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    ids=["nothing", "a line", "a head", "the last head", "pieces"],
)
def test_an_answer_byte_by_byte_is_not_waited_for(serving: Serving, head: bytes) -> None:
    def reply(connection: socket.socket) -> None:
        take(connection)
        connection.sendall(head)
        for _ in range(BITS):
            connection.sendall(b"1")
            time.sleep(REST)

    with pytest.raises(PeerUnavailableError, match=r"helper at .* does not answer: timed out"):
        serving(reply, SECONDS).request("GET", "tasks")


def test_a_server_that_takes_a_request_bit_by_bit_is_not_waited_for(serving: Serving) -> None:
    def reply(connection: socket.socket) -> None:
        for _ in range(BITS):
            if not connection.recv(2**12):
                return
            time.sleep(REST)

    with pytest.raises(PeerUnavailableError, match=r"helper at .* does not answer: timed out"):
        serving(reply, SECONDS).request("POST", "tasks", bytes(2**24), "upload-req")


def test_a_request_and_its_answer_are_whole(serving: Serving) -> None:
    seen = bytearray()
    body = bytes(range(256)) * 1000

    def reply(connection: socket.socket) -> None:
        while not seen.endswith(body):
            seen.extend(connection.recv(2**16))
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)

    assert serving(reply).request("POST", "tasks", body, "upload-req").body == body
    assert bytes(seen).count(b"Content-Length: 256000\r\n") == 1
    assert b"Transfer-Encoding" not in seen


def test_what_a_server_says_is_shown_in_part(serving: Serving) -> None:
    def reply(connection: socket.socket) -> None:
        take(connection)
        connection.sendall(b"x" * 10_000 + b"\r\n")

    with pytest.raises(PeerUnavailableError) as found:
        serving(reply).request("GET", "tasks")
    assert len(str(found.value)) < 500


def test_a_server_that_wants_to_be_asked_at_once_is_asked_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def request(peer: Peer, *given: object) -> Answer:
        asked.append(given)
        return Answer(200, {"retry-after": "0"}, b"")

    monkeypatch.setattr(Peer, "request", request)
    peer = Peer("http://127.0.0.1:1/", "helper")
    with pytest.raises(PeerUnavailableError, match="was not ready in time"):
        peer.wait_for("tasks", Answer(200, {"retry-after": "0"}, b""), time.monotonic() + 0.5)
    assert len(asked) <= 10
