"""``turnout serve``: a collection that runs."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from turnout._files import check_regular
from turnout._progress import endless
from turnout._secrets import read_secret_file, write_secret_file
from turnout.cli import options
from turnout.cli.commands import command
from turnout.cli.running import messages
from turnout.errors import InvalidValueError
from turnout.serve.collection import Collection, check_plans
from turnout.serve.counters import Counters
from turnout.serve.invitations import Invitations
from turnout.serve.results import LEAST
from turnout.serve.storage.opening import open_store
from turnout.serve.tasks.files import HelperFile, LeaderFile, read_aggregator
from turnout.serve.web.app import Server, Settings
from turnout.serve.web.running import Tls, listening
from turnout.serve.web.running import serve as run
from turnout.serve.web.several import serving, task_servers


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
        How many connections may be open at once. Beyond that, the server closes an idle one.
    request_seconds
        Seconds that a client may take to send a request.
    tls_certificate
        Use TLS with this certificate (PEM file, with any intermediate certificates).
    tls_key
        The key of that certificate (PEM file).
    """

    host: str = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8080
    connections: Annotated[int, typer.Option(min=1)] = 4096
    request_seconds: Annotated[float, typer.Option(min=0.1, max=3600)] = 20.0
    tls_certificate: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE")] = None

    def __post_init__(self) -> None:
        """Refuse half of what TLS needs."""
        alone = (self.tls_certificate is None) != (self.tls_key is None)
        options.refuse_if((alone, "--tls-certificate", "and --tls-key belong together"))

    @property
    def tls(self) -> Tls | None:
        """What the server shows of itself."""
        if self.tls_certificate is None or self.tls_key is None:
            return None
        for path in (self.tls_certificate, self.tls_key):
            check_regular(path)
        return Tls(self.tls_certificate, self.tls_key)

    @property
    def bounds(self) -> dict[str, Any]:
        """What clients may take."""
        return {"connections": self.connections, "request_seconds": self.request_seconds}

    def socket(self) -> socket.socket:
        """Begin to listen."""
        return listening(self.host, self.port)

    def address(self, port: int) -> str:
        """Write the address of the page."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'http' if self.tls is None else 'https'}://{host}:{port}"


@dataclass(frozen=True, kw_only=True)
class Showing:
    """What the pages of a server show, and to whom.

    Attributes
    ----------
    title
        The question, as the page asks it.
    results
        Who may see results: everybody, or people with the key.
    key
        The file of that key; the server creates it if it does not exist.
    least
        Hide the results of a group, or of a collection, with fewer reports than this.
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


@dataclass(frozen=True, kw_only=True)
class Aggregator:
    """Of which tasks the server is an aggregator.

    Attributes
    ----------
    task
        Act as leader or helper of a task: the file leader.json or helper.json that turnout task new
        wrote; repeatable.
    ca
        With --task: the certificates (PEM) that must have issued the helper's; by default the
        system's.
    """

    task: Annotated[list[Path] | None, typer.Option(metavar="FILE")] = None
    ca: Annotated[Path | None, typer.Option(metavar="FILE")] = None

    def read(self) -> list[LeaderFile | HelperFile]:
        """Read the files of the tasks.

        Raises
        ------
        TurnoutError
            If a file is no such file.
        OSError
            If it cannot be read.
        """
        if self.ca is not None:
            check_regular(self.ca)
        files = [read_aggregator(path) for path in self.task or ()]
        names = [file.task.name for file in files]
        if len(set(names)) < len(names):
            raise InvalidValueError(
                "--task must name each task once: both aggregators of a task need servers of "
                "their own, and stores"
            )
        return files


#: What belongs to a collection, and not to a task.
_OF_A_COLLECTION = (
    *("keep", "title", "results", "key", "least"),
    *("invitations", "public_key"),
)


@command
def serve(
    context: typer.Context,
    plan: Annotated[Path | None, typer.Argument(metavar="PLAN")] = None,
    *,
    store: Annotated[str, typer.Option(metavar="FILE|ADDRESS")],
    keep: Literal["messages", "tally"] = "messages",
    showing: Showing,
    invitations: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    public_key: options.PublicKey = None,
    aggregator: Aggregator,
    listening: Listening,
) -> None:
    """Run a server that collects messages, keeps tallies and shows results.

    Devices and browsers randomize each answer before they send it. The server acknowledges a
    message when it is on the disk, and counts it once. It keeps nothing about who sent it.

    A folder holds the plans of a collection, one for each day or round. Devices get the unexpired
    plan that expires first; if several expire together, the one with the largest serial. The server
    finds plans that you add while it runs. turnout rounds close adds the plan of the next round.

    With --task, the server is an aggregator of a task: it receives shares of answers with proofs,
    verifies them with the other aggregator, and adds them up. One server can serve several tasks,
    with or without a collection.

    If other machines should reach the server, put a reverse proxy with TLS in front, or pass
    --tls-certificate.

    [bold]Examples:[/]

        turnout serve plan.json --store reports.db --title "How often do you travel?"

        turnout serve plans/ --store reports.db --keep tally --results key --key results.key

        turnout serve --task task/leader.json --store leader.db --port 8001

    Parameters
    ----------
    plan
        The plan file, or a folder of plan files (.json).
    store
        Where the server keeps messages and tallies, or the state of an aggregator: an SQLite file,
        which it creates if there is none, or for several servers a PostgreSQL database,
        postgresql://user@host/name.
    keep
        What to keep of a message besides the tally: the whole message, or only a hash, so that it
        does not count twice.
    invitations
        Accept one message from each invited person: the file ending in .json that turnout invite
        wrote. The number of invitations counts as the number of people asked, unless you record
        another with turnout store asked. Without this option, anybody can answer as often as they
        like.
    """
    tasked = bool(aggregator.task)
    options.refuse_if(
        (plan is None and not tasked, "--task", "say PLAN, or --task, or both"),
        (not tasked and aggregator.ca is not None, "--ca", "belongs to --task"),
    )
    if plan is None:
        options.refuse_given(context, _OF_A_COLLECTION, "belongs to a PLAN, and not to --task")
    settings = Settings(
        title=showing.title,
        key=None if showing.key is None else _key(showing.key),
        least=showing.least,
        invitations=None if invitations is None else Invitations.read(invitations),
        **listening.bounds,
    )
    # What is wrong with a file is found before a store is made.
    told = aggregator.read()
    if plan is not None:
        check_plans(plan, public_key)
    opened = open_store(store, "tally" if plan is None else keep)
    try:
        counters, collection = Counters(), None
        tasks = task_servers(told, counters, opened, aggregator.ca, **listening.bounds)
        if plan is not None:
            asked = None if settings.invitations is None else settings.invitations.number
            taken = Collection(plan, opened, public_key, asked)
            collection = Server(taken, opened, settings, counters)
        server = serving(collection, tasks, counters)
        bound = listening.socket()
        address = listening.address(bound.getsockname()[1])

        def ready() -> None:
            messages().print(f"Serving {address}", soft_wrap=True)

        with endless():
            run(server, bound, ready, listening.tls)
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
