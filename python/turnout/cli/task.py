"""``turnout task``: rounds with proofs, on the protocol of DAP."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import typer

from turnout._progress import doing
from turnout.cli import options
from turnout.cli.commands import command
from turnout.cli.output import Intervals, Listing
from turnout.cli.page import Page, say_written
from turnout.cli.running import note
from turnout.cli.showing.estimates import Wish, show_estimate
from turnout.cli.tables import print_json, tell
from turnout.cli.task_asked import Answer, Asked, kind_of
from turnout.errors import ProtocolError
from turnout.serve.tasks.client import Client
from turnout.serve.tasks.collector import Collected, Collector
from turnout.serve.tasks.files import ClientFile, CollectorFile, Question
from turnout.serve.tasks.making import BATCH_SECONDS, NAMES, Batches, new_task, write_task
from turnout.serve.tasks.task import Task

CA = Annotated[
    Path | None,
    typer.Option(
        "--ca",
        metavar="FILE",
        help="Certificates (PEM) that sign those of the servers. Default: the system's.",
    ),
]
AsFile = Annotated[Path, typer.Argument(metavar="FILE")]


@dataclass(frozen=True, kw_only=True)
class _Batching:
    """How reports become batches.

    Attributes
    ----------
    batches
        How reports become batches: the leader fills one batch after another, or the collector
        asks for the reports of a time.
    batch_reports
        A batch waits for this many reports. Default: one for each user.
    batch_seconds
        After this many seconds, a batch with at least --min-batch reports does not wait for more.
        Default: a day; with --expires or time-interval, when the time is over.
    min_batch
        Give no result for fewer reports. Default: half of --batch-reports.
    time_precision
        The step, in seconds, of the times that reports state.
    expires
        When the task stops accepting reports, such as 2030-12-31T00:00:00Z. Rounded up to a
        multiple of --time-precision.
    """

    batches: Literal["leader-selected", "time-interval"] = "leader-selected"
    batch_reports: Annotated[int | None, typer.Option(min=1)] = None
    batch_seconds: Annotated[int | None, typer.Option(min=1)] = None
    min_batch: Annotated[int | None, typer.Option(min=1)] = None
    time_precision: Annotated[int, typer.Option(min=1)] = 3600
    expires: Annotated[Any, typer.Option(metavar="TIME", parser=options.moment)] = None

    def made(self) -> Batches:
        """Give them as a task takes them."""
        return Batches(
            mode=self.batches.replace("-", "_"),
            reports=self.batch_reports,
            seconds=self.batch_seconds,
            least=self.min_batch,
            time_precision=self.time_precision,
        )

    def said(self, users: int, least: int, *, janus: bool) -> str:
        """Say when a batch is complete."""
        if janus and self.batches == "leader-selected":
            return f"{self.batches}, of {least:,} reports, as Janus makes them"
        number = f"{self.batches}, of {self.batch_reports or users:,} reports"
        timed = self.batches == "time-interval" or self.expires is not None
        if timed and self.batch_seconds is None:
            return f"{number}, or of {least:,} or more when the time is over"
        seconds = self.batch_seconds or BATCH_SECONDS
        return f"{number}, or of {least:,} or more after {seconds:,} s"


def _roles(text: str) -> tuple[str, ...]:
    """Read roles, comma-separated."""
    roles = tuple(text.split(","))
    for role in roles:
        if role not in NAMES:
            raise typer.BadParameter(f"{role!r} is none of {', '.join(NAMES)}")
    return roles


@command
def new(
    *,
    asked: Asked,
    leader: Annotated[str, typer.Option(metavar="URL")],
    helper: Annotated[str, typer.Option(metavar="URL")],
    batching: _Batching,
    janus: Annotated[Any, typer.Option(metavar="ROLE,...", parser=_roles)] = None,
    target: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER")],
) -> None:
    """Make a task: the files of its leader, helper, clients and collector, with their keys.

    Each person's answer is split into two shares, with a proof that it is one answer or none. Two
    servers with different operators verify the proofs and add up the shares. Each adds its own
    noise, so one honest server is enough. A person who cheats changes the result by one answer at
    most. With --mean, answers are whole numbers within bounds, and the result is their mean and
    their sum.

    Give leader.json and helper.json to the operators of the two servers, client.json to everybody,
    and collector.json to the person who may see results. All files except client.json hold secrets:
    send each so that only its owner can read it, and delete your copies.

    Janus is another implementation of the protocol. For roles named with --janus, the command
    writes the files that Janus's programs read: leader.yaml and helper.yaml for janus_cli
    provision-tasks, collector.env for collect, and client.env for programs that use its client.

    [bold]Examples:[/]

        turnout task new --labels yes,no --users 100 --epsilon 1 --leader
        https://leader.example.org/ --helper https://helper.example.net/ -o task

        turnout task new --mean 0:60 --users 100 --epsilon 1 --leader
        https://leader.example.org/ --helper https://helper.example.net/ -o hours

    Parameters
    ----------
    leader
        The address of the server that receives reports.
    helper
        The address of the other server, which another operator runs.
    janus
        Which of leader, helper, client and collector are Janus, comma-separated.
    target
        The new folder of the files.
    """
    theirs: tuple[str, ...] = janus or ()
    with doing("calibrating"):
        mechanism = asked.mechanism(janus=bool(theirs))
    files = new_task(
        mechanism,
        leader=leader,
        helper=helper,
        batches=batching.made(),
        expires=batching.expires,
        janus=theirs,
    )
    paths = write_task(files, target, theirs)
    task = files[0].task
    end = _end(task)
    for url in (task.leader, task.helper):
        parts = urlsplit(url)
        if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            note(
                f"{url} is without TLS: somebody between a client and the servers can give it "
                "other keys and read its answer, change reports, and see tokens. Use https://"
            )
    tell(
        "Task",
        [
            ("task", task.name),
            kind_of(mechanism).telling.asked(mechanism.domain),
            *_protection(mechanism),
            ("proofs", task.vdaf.kind),
            (
                "batches",
                batching.said(mechanism.users, task.min_batch_size, janus="leader" in theirs),
            ),
            *([] if end is None else [("expires", _moment(end))]),
        ],
        *(f"The file of the {role}: {path}" for role, path in paths.items()),
    )


@command
def upload(file: AsFile, *, answer: Answer, ca: CA = None, as_json: options.AsJson = False) -> None:
    """Send an answer to a task, as shares with a proof that it is one valid answer.

    Neither server sees the answer. If --participation of the task is below 1, neither sees whether
    there is an answer. A person who sends twice is counted twice.

    --json prints accepted, and refused: an object with the number of each error.

    [bold]Examples:[/]

        turnout task upload task/client.json --value yes

        turnout task upload hours/client.json --value 38

        turnout task upload task/client.json people.csv --column vote

    Parameters
    ----------
    file
        The file client.json of the task.
    """
    told = ClientFile.read(file)
    given = answer.measured(told.question)
    if (end := _end(told.task)) is not None and time.time() >= end:
        raise ProtocolError(f"this task accepted reports until {_moment(end)}: it is over")
    with doing(f"sending {len(given):,} reports"):
        outcomes = Client(told, ca).upload(given)
    accepted = outcomes.pop("accepted", 0)
    if as_json:
        print_json({"accepted": accepted, "refused": dict(outcomes)})
    else:
        refused = [(word.replace("_", " "), f"{number:,}") for word, number in outcomes.items()]
        tell("Reports", [("accepted", f"{accepted:,}"), *refused])
    if outcomes:
        number = sum(outcomes.values())
        raise ProtocolError(f"{number:,} report{'s were' if number > 1 else ' was'} refused")


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """Which batch is wanted, and how long to wait for it.

    Attributes
    ----------
    wait
        Seconds to wait.
    after
        Give up the batch with this name, and ask for the next: of tasks whose leader selects
        batches. A result shows the name of its batch.
    start
        The beginning of the batch: of tasks with batches of times. A multiple of --time-precision.
    end
        The end of the batch. A multiple of --time-precision.
    """

    wait: Annotated[float, typer.Option(min=0.0)] = 60.0
    after: Annotated[str | None, typer.Option(metavar="BATCH")] = None
    start: Annotated[Any, typer.Option(metavar="TIME", parser=options.moment)] = None
    end: Annotated[Any, typer.Option(metavar="TIME", parser=options.moment)] = None

    def interval(self, task: Task) -> tuple[int, int] | None:
        """Give the interval of the batch, if it is one of a time."""
        timed, step = task.batch_mode == "time_interval", task.time_precision
        options.refuse_if(
            ((self.start is None) != (self.end is None), "--start", "needs --end"),
            (timed and self.start is None, "--start", "this task has batches of times: say which"),
            (not timed and self.start is not None, "--start", "the leader selects the batches"),
            (
                timed and self.after is not None,
                "--after",
                "the leader of this task selects no batches",
            ),
            (
                self.after is not None and re.fullmatch("[0-9a-f]{8}", self.after) is None,
                "--after",
                "must be the 8 digits and letters that a result shows as its batch",
            ),
            (timed and self.start is not None and self.start >= self.end, "--end", "is too early"),
            *(
                # Rounded, it would take reports of other batches along.
                (
                    timed and moment is not None and moment.timestamp() % step != 0,
                    name,
                    f"must be a multiple of {step:,} seconds, the time precision of the task",
                )
                for name, moment in (("--start", self.start), ("--end", self.end))
            ),
        )
        return (int(self.start.timestamp()), int(self.end.timestamp())) if timed else None


@command
def result(
    context: typer.Context,
    file: AsFile,
    *,
    batch: _Batch,
    ca: CA = None,
    intervals: Intervals,
    listing: Listing,
    page: Page,
    plot: options.PictureFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Get the result of a batch, with intervals.

    The two servers encrypt their parts of the sum to this file's key, so nobody else sees the
    result. A batch is collected once; asking again gives the same result. --report writes a page
    for people, with the sentence to publish.

    --json prints what estimate --json prints, and batch, reports, start, end, sums and guarantee.
    For numbers it also prints sum: an object with value, low and high.

    [bold]Examples:[/]

        turnout task result task/collector.json

        turnout task result task/collector.json --report hours.html --title "How long?"

        turnout task result task/collector.json --after 5f0c82d1 --wait 600

    Parameters
    ----------
    file
        The file collector.json of the task.
    """
    told = CollectorFile.read(file)
    kind = kind_of(told.question)
    kind.telling.check(
        frozenset(
            f"--{name.replace('order', 'sort')}"
            for name in ("clip", "order", "top")
            if options.was_given(context, name)
        ),
        "hajek",
    )
    interval = batch.interval(told.task)
    page.check([file])
    if plot is not None:
        options.refuse_overwriting_inputs(plot, [file])
    with doing("waiting for the batch"):
        found = Collector(told, ca).collect(
            seconds=batch.wait, interval=interval, after=batch.after or ""
        )
    top = None if as_json else listing.top
    wish = Wish("hajek", **vars(intervals), order=listing.order, top=top)
    head = [
        ("batch", found.batch),
        ("reports", f"{found.reports:,}"),
        ("from", _moment(found.start)),
        ("to", _moment(found.start + found.duration)),
        *_protection(told.question),
        *kind.rows(found.estimate, wish),
    ]
    shown = show_estimate(wish.made(found.estimate), wish, kind.telling, head)
    page.write(
        found.estimate,
        **vars(intervals),
        order=listing.order,
        top=listing.top,
        notes=_batch_notes(found),
    )
    more = {**_facts(found, told.question), **kind.more(found.estimate, wish)}
    replace(shown, make_record=lambda: {**shown.make_record(), **more}).deliver(
        f"Result of the task {told.task.name}", plot=plot, target=None, as_json=as_json
    )
    if not as_json:
        say_written("page", page.page)


def _protection(mechanism: Question) -> Sequence[tuple[str, str]]:
    """Say what protects a person's answer."""
    promise = mechanism.guarantee
    said = f"epsilon {promise.epsilon:g}, delta {promise.delta:g}, for one report"
    return [("users", f"{mechanism.users:,}"), ("privacy", said), *mechanism._told()]


def _end(task: Task) -> int | None:
    """Return when the task stops accepting reports, in seconds since 1970; None if never."""
    return None if task.interval is None else sum(task.interval) * task.time_precision


def _facts(found: Collected, mechanism: Question) -> dict[str, Any]:
    promise = mechanism.guarantee
    return {
        "batch": found.batch,
        "reports": found.reports,
        "start": _moment(found.start),
        "end": _moment(found.start + found.duration),
        "sums": list(found.sums),
        "guarantee": {
            "epsilon": promise.epsilon,
            "delta": promise.delta,
            "adjacency": promise.adjacency,
            "assumptions": list(promise.assumptions),
        },
    }


def _batch_notes(found: Collected) -> list[str]:
    """Say on a page from when the reports are."""
    start, end = _moment(found.start), _moment(found.start + found.duration)
    return [f"The reports are from {start} to {end}."]


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat().replace("+00:00", "Z")
