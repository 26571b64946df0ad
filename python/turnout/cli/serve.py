"""``turnout serve``: a collection that runs."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from turnout._progress import endless
from turnout._secrets import read_secret_file, write_secret_file
from turnout.cli import options
from turnout.cli.commands import command
from turnout.cli.running import messages
from turnout.errors import InvalidValueError
from turnout.serve.collection import Collection
from turnout.serve.invitations import Invitations
from turnout.serve.results import LEAST
from turnout.serve.storage.opening import open_store
from turnout.serve.web.app import Settings
from turnout.serve.web.running import listening
from turnout.serve.web.running import serve as run


@dataclass(frozen=True, kw_only=True)
class Listening:
    """Where a server listens, and what clients may take.

    Attributes
    ----------
    host
        The address to listen on.
    port
        The port; 0 takes a free one.
    connections
        How many connections may be open at once; of more, one that waits is closed.
    request_seconds
        Seconds that a client may take to send a request.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8080
    connections: Annotated[int, typer.Option(min=1)] = 4096
    request_seconds: Annotated[float, typer.Option(min=0.1, max=3600)] = 20.0

    def socket(self) -> socket.socket:
        """Begin to listen."""
        return listening(self.host, self.port)

    def address(self, port: int) -> str:
        """Write the address of the page."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{port}"


@dataclass(frozen=True, kw_only=True)
class Showing:
    """What the pages of a server show, and to whom.

    Attributes
    ----------
    title
        The question, as the page asks it.
    results
        Who sees results: everybody, or who has the key.
    key
        The file of that key; it is made if it is not there.
    least
        Show nothing of a group, or of a collection, with fewer reports.
    """

    title: str = ""
    results: Literal["public", "key"] = "public"
    key: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    least: Annotated[int, typer.Option(min=1)] = LEAST

    def __post_init__(self) -> None:
        """Refuse a key that nobody needs, and results for who has a key that is not there."""
        needed = self.results == "key"
        options.refuse_if(
            (needed and self.key is None, "--results", "key needs --key FILE"),
            (not needed and self.key is not None, "--key", "belongs to --results key"),
        )


@command
def serve(
    plan: Annotated[Path, typer.Argument(metavar="PLAN")],
    *,
    store: Annotated[str, typer.Option(metavar="FILE|ADDRESS")],
    keep: Literal["messages", "tally"] = "messages",
    showing: Showing,
    invitations: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    public_key: options.PublicKey = None,
    listening: Listening,
) -> None:
    """Run a collection: take in messages, keep their tallies, and show results.

    What comes in is randomized already, on the device or in the browser. A message is acknowledged
    when it is on the disk, and counts once. Nothing about who sent it is kept.

    A folder is a collection of many plans, one for each day or round. Devices get the one that
    expires first of those that have not; of several that expire together, the one with the largest
    serial. Plans that are put into the folder are found while the server runs; turnout rounds close
    puts the plan of the next round there.

    Put a reverse proxy with TLS in front where others than this machine reach it.

    [bold]Examples:[/]

        turnout serve plan.json --store reports.db --title "How often do you travel?"

        turnout serve plans/ --store reports.db --keep tally --results key --key results.key

    Parameters
    ----------
    plan
        The plan file, or a folder of plan files (.json).
    store
        Where messages and tallies are kept: a file of SQLite, made if it is not there, or a
        database of PostgreSQL, postgresql://user@host/name, for several servers.
    keep
        What is kept of a message: all of it beside the tally, or nothing but a hash that keeps it
        from counting twice.
    invitations
        Take one message of each invited person: the file that turnout invite wrote. Their number is
        how many were asked, unless turnout store asked says another. Without it anybody can answer,
        as often as they like.
    """
    settings = Settings(
        title=showing.title,
        key=None if showing.key is None else _key(showing.key),
        least=showing.least,
        invitations=None if invitations is None else Invitations.read(invitations),
        connections=listening.connections,
        request_seconds=listening.request_seconds,
    )
    opened = open_store(store, keep)
    try:
        invited = settings.invitations
        collection = Collection(
            plan, opened, public_key, None if invited is None else invited.number
        )
        bound = listening.socket()
        address = listening.address(bound.getsockname()[1])

        def ready() -> None:
            messages().print(f"Serving {address}", soft_wrap=True)

        with endless():
            run(collection, opened, settings, bound, ready)
    finally:
        opened.close()


def _key(path: Path) -> str:
    """Read the key of results, or make one."""
    if not path.exists():
        write_secret_file(path, secrets.token_urlsafe(24) + "\n")
    key = read_secret_file(path).strip()
    if len(key) < 16 or not key.isascii():
        raise InvalidValueError(f"{path}: the key must be at least 16 ASCII characters")
    return key.decode()
