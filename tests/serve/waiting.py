"""Waiting for events, however slow the machine is, and ports for who cannot take any."""

from __future__ import annotations

import contextlib
import random
import socket
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Seconds after which a test gives up: far more than anything takes, on a busy machine too.
PATIENCE = 300.0


def until(so: Callable[[], T | None], said: Callable[[], object] = str) -> T:
    """Wait until something is so, and give it; ``said`` tells what there is if it never is so."""
    end = time.monotonic() + PATIENCE
    while not (found := so()):
        assert time.monotonic() < end, said()
        time.sleep(0.02)
    return found


def free_port() -> int:
    """Find a port on which nobody listens.

    Systems give those from 32768 on to whoever asks for any. This is a lower one: no other test
    gets it before its server listens, or while the server is down.
    """
    while True:
        port = random.SystemRandom().randrange(10_000, 32_768)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
