"""What the processes of a round share: options, TLS, and a few lines of JSON.

A process that hosts a role prints where it listens, and then how its round ended. On its standard
input it gets the address book, and then commands, one a line. In a deployment the addresses are
fixed, and files or a directory service take the place of these pipes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import ssl
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from turnout.distributed import Party, Role, Round
from turnout.distributed.transport import Address
from turnout.errors import MissingPartyError, TurnoutError

Book = list[dict[str, Any]]


def options(description: str) -> argparse.ArgumentParser:
    """Make the options that every process has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--round", type=Path, required=True, help="file with the round")
    parser.add_argument("--certificates", type=Path, help="folder with certificates, for TLS")
    parser.add_argument("--collect-within", type=float, default=600.0, metavar="SECONDS")
    parser.add_argument("--finish-within", type=float, default=600.0, metavar="SECONDS")
    parser.add_argument("--step-within", type=float, metavar="SECONDS")
    parser.add_argument("--connect-within", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--answer-within", type=float, default=60.0, metavar="SECONDS")
    return parser


def read_round(path: Path) -> Round:
    """Read the round from the file that everybody got."""
    return Round.from_bytes(path.read_bytes())


def say(event: str, **content: Any) -> None:
    """Print one line of JSON."""
    print(json.dumps({"event": event, **content}), flush=True)


def place(role: Role, first: int, count: int, address: Address) -> dict[str, Any]:
    """Describe where some parties are."""
    return {"role": int(role), "first": first, "count": count, "address": list(address)}


def addresses(book: Book) -> dict[Party, Address]:
    """Read the address book."""
    return {
        Party(Role(entry["role"]), index): (entry["address"][0], entry["address"][1])
        for entry in book
        for index in range(entry["first"], entry["first"] + entry["count"])
    }


# TLS. The common name of a certificate says for whom it speaks: "aggregator 2", "server",
# "users 0 1000" for the devices 0 to 999.


def contexts(folder: Path | None, name: str) -> tuple[ssl.SSLContext | None, ssl.SSLContext | None]:
    """Make the contexts of a server and of a client; both sides must show a certificate."""
    if folder is None:
        return None, None
    authority, own = folder / "authority.pem", folder / f"{name}.pem"
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority)
    server.verify_mode = ssl.CERT_REQUIRED
    client = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=authority)
    for context in (server, client):
        context.load_cert_chain(own)
    return server, client


def speaks_for(sender: Party, certificate: dict[str, Any]) -> bool:
    """Decide whether a certificate speaks for the sender of a message."""
    subject = dict(pair for group in certificate.get("subject", ()) for pair in group)
    name = subject.get("commonName", "")
    if sender.role is Role.USER:
        match name.split(" "):
            case ["users", first, last] if first.isdecimal() and last.isdecimal():
                return int(first) <= sender.index < int(last)
        return False
    return name == own_name(sender)


def own_name(party: Party) -> str:
    """Name the certificate of an aggregator or a server."""
    return str(party).removeprefix("the ")


# The course of a process.


class Control:
    """The lines of standard input: the address book first, then commands."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._book: asyncio.Future[Book] = self._loop.create_future()
        self._commands: dict[str, Callable[[], None]] = {}
        threading.Thread(target=self._read, daemon=True).start()

    async def book(self) -> dict[Party, Address]:
        """Wait for the address book."""
        return addresses(await self._book)

    def on(self, command: str, action: Callable[[], None]) -> None:
        """Do something when a command comes."""
        self._commands[command] = action

    def _read(self) -> None:
        # Unbuffered, because a lock on standard input would outlive the interpreter.
        with contextlib.suppress(RuntimeError), os.fdopen(os.dup(0), "rb", 0) as lines:
            if book := lines.readline():
                self._loop.call_soon_threadsafe(self._book.set_result, json.loads(book))
            for line in lines:
                self._loop.call_soon_threadsafe(self._obey, line.decode().strip())
            # Whoever started this process is gone.
            if self._task is not None:
                self._loop.call_soon_threadsafe(self._task.cancel)

    def _obey(self, command: str) -> None:
        action = self._commands.get(command)
        if action is not None:
            action()


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a process; a lost round is one line of JSON, and exit code 1."""
    try:
        asyncio.run(main)
    except TurnoutError as error:
        parties = error.parties if isinstance(error, MissingPartyError) else ()
        say(
            "failed",
            error=type(error).__name__,
            text=str(error),
            parties=[str(party) for party in parties],
        )
        sys.exit(1)
    except asyncio.CancelledError:
        sys.exit(1)
