"""``turnout task``: rounds with proofs, on the protocol of DAP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import numpy as np
import typer

from turnout import Domain
from turnout._progress import doing
from turnout._types import Integers
from turnout.cli import options
from turnout.cli.answers import in_domain, settled
from turnout.cli.commands import command
from turnout.cli.output import Intervals, Listing
from turnout.cli.question import OneList
from turnout.cli.running import note
from turnout.cli.showing.estimates import Wish, show_estimate
from turnout.cli.tables import print_json, tell
from turnout.distributed import VerifiedAggregation
from turnout.errors import InvalidValueError, ProtocolError
from turnout.pipeline import scan
from turnout.pipeline.in_memory import read_columns
from turnout.reporting.frequencies import SHARES
from turnout.serve.tasks.client import Client
from turnout.serve.tasks.collector import Collected, Collector
from turnout.serve.tasks.files import ClientFile, CollectorFile
from turnout.serve.tasks.making import Batches, new_task, write_task

CA = Annotated[
    Path | None,
    typer.Option(
        "--ca",
        metavar="FILE",
        help="Certificates (PEM) that those of the servers must come from; else the system's.",
    ),
]
AsFile = Annotated[Path, typer.Argument(metavar="FILE")]


@dataclass(frozen=True, kw_only=True)
class _Voting(OneList):
    """What is asked of whom, and what protects the answers.

    Attributes
    ----------
    users
        How many people are asked.
    epsilon
        Privacy of one report.
    delta
        The delta; 0 for noise without one.
    participation
        Probability that an answer takes part, which nobody sees.
    """

    users: Annotated[int, typer.Option("--users", "-n", min=1)]
    epsilon: options.Epsilon
    delta: Annotated[float, typer.Option("--delta", "-d", min=0.0, max=1.0)] = 0.0
    participation: Annotated[
        float, typer.Option("--participation", "-p", callback=options.check_rate)
    ] = 1.0

    def mechanism(self, noise: str | None = None) -> VerifiedAggregation:
        """Find the noise: of a law, or of the best one."""
        labels = self.stated
        options.refuse_if(
            (labels is None, "--labels", "say the possible answers: --labels or --labels-file")
        )
        assert labels is not None
        return VerifiedAggregation(
            Domain(labels),
            self.users,
            epsilon=self.epsilon,
            delta=self.delta,
            participation=self.participation,
            noise=noise,
        )


@dataclass(frozen=True, kw_only=True)
class _Batching:
    """How reports become batches.

    Attributes
    ----------
    batches
        Who says which reports are a batch: the leader fills one after another, or the collector
        asks for those of a time.
    batch_reports
        A batch waits for so many reports; as many as users if not given.
    batch_seconds
        It goes on without the others after so many seconds, if it has --min-batch; without end if
        not given.
    min_batch
        Of fewer reports no result is given; half of --batch-reports if not given.
    time_precision
        Reports say when they were made in steps of so many seconds.
    expires
        Until when reports are taken, such as 2030-12-31T00:00:00Z.
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
        if self.batch_seconds is not None:
            return f"{number}, or of {least:,} or more after {self.batch_seconds:,} s"
        if self.batches == "time-interval" or self.expires is not None:
            return f"{number}, or of {least:,} or more when the time is over"
        return f"{number}; without --batch-seconds each waits until all have come"


@command
def new(
    *,
    voting: _Voting,
    leader: Annotated[str, typer.Option(metavar="URL")],
    helper: Annotated[str, typer.Option(metavar="URL")],
    batching: _Batching,
    janus: Literal["leader", "helper", "both"] | None = None,
    target: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER")],
) -> None:
    """Make a task: the files of its leader, helper, clients and collector, keys included.

    Each person's answer is split into two shares with a proof that it is one answer or none. Two
    servers of different operators verify the proofs and add up; each adds noise of its own, so that
    one honest server is enough. A person who cheats changes the result by one answer at most.

    Give leader.json and helper.json to the operators of the two servers, client.json to everybody,
    and collector.json to whoever may see results. All but client.json hold secrets: send them on
    ways that only their owner reads, and delete the copies.

    With --janus the operator of that server runs Janus, another implementation of the protocol,
    and gets helper.yaml or leader.yaml for janus_cli provision-tasks.

    [bold]Example:[/]

        turnout task new --labels yes,no --users 100 --epsilon 1 --leader
        https://leader.example.org/ --helper https://helper.example.net/ -o task

    Parameters
    ----------
    leader
        The address of the server that takes reports in.
    helper
        The address of the other server, which another operator runs.
    janus
        Which servers are Janus.
    target
        The new folder of the files.
    """
    with doing("calibrating"):
        mechanism = voting.mechanism("discrete_laplace" if janus else None)
    theirs = ("leader", "helper") if janus == "both" else (janus,) if janus else ()
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
    for url in (task.leader, task.helper):
        parts = urlsplit(url)
        if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            note(f"{url} is without TLS: who is on the way can change reports and see tokens")
    tell(
        "Task",
        [
            ("task", task.name),
            ("labels", f"{mechanism.domain.size:,}"),
            *_protection(mechanism),
            ("proofs", task.vdaf.kind),
            (
                "batches",
                batching.said(mechanism.users, task.min_batch_size, janus="leader" in theirs),
            ),
        ],
        *(f"The file of the {role}: {path}" for role, path in paths.items()),
    )


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """Which answers are sent.

    Attributes
    ----------
    value
        The answer of one person.
    sources
        Files with a row for each person, for tests and simulations: one report for each.
    column
        The column of the files with the answers.
    """

    sources: Annotated[list[Path] | None, typer.Argument(metavar="[SOURCES]...")] = None
    value: Annotated[str | None, typer.Option(metavar="LABEL")] = None
    column: Annotated[str | None, typer.Option("--column", "-c")] = None

    def __post_init__(self) -> None:
        """Refuse no answer, and two ways to give one."""
        options.refuse_if(
            (
                (self.value is None) == (not self.sources),
                "--value",
                "say the answer of one person, or name files with --column",
            ),
            (
                bool(self.sources) != (self.column is not None),
                "--column",
                "name the column of the answers in the files; it belongs to files alone",
            ),
        )

    def codes(self, domain: Domain) -> Integers:
        """Give the codes of the answers.

        Raises
        ------
        InvalidValueError
            If one is no answer to the question.
        """
        if self.value is not None:
            labels = [str(label) for label in domain.labels]
            if self.value not in labels:
                # What a person answers is not shown.
                raise InvalidValueError(
                    f"--value must be one of the {domain.size:,} labels of the task, which stand "
                    "in its file; the answer is not repeated here"
                )
            return np.array([labels.index(self.value)])
        assert self.sources is not None
        assert self.column is not None
        answers = scan(self.sources, [self.column])
        stated = {self.column: [str(label) for label in domain.labels]}
        answers, domains, _ = settled(answers, stated)
        [codes] = read_columns(in_domain(answers, domains[self.column]), domains).codes
        return codes.astype(np.int64)


@command
def upload(
    file: AsFile, *, answer: _Answer, ca: CA = None, as_json: options.AsJson = False
) -> None:
    """Send an answer to a task: shares for both servers, with a proof that it is one answer.

    Neither server sees the answer, nor whether one was given where --participation of the task is
    below 1. Whoever sends twice is counted twice.

    --json prints accepted, and refused: an object with the number of each error.

    [bold]Examples:[/]

        turnout task upload task/client.json --value yes

        turnout task upload task/client.json people.csv --column vote

    Parameters
    ----------
    file
        The file client.json of the task.
    """
    told = ClientFile.read(file)
    codes = answer.codes(told.question.domain)
    with doing(f"sending {len(codes):,} reports"):
        outcomes = Client(told, ca).upload(codes)
    accepted = outcomes.pop("accepted", 0)
    if as_json:
        print_json({"accepted": accepted, "refused": dict(outcomes)})
    else:
        refused = [(word.replace("_", " "), f"{number:,}") for word, number in outcomes.items()]
        tell("Reports", [("accepted", f"{accepted:,}"), *refused])
    if outcomes:
        raise ProtocolError(f"{sum(outcomes.values()):,} reports were refused")


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """Which batch is wanted, and how long to wait for it.

    Attributes
    ----------
    wait
        Seconds to wait.
    another
        Give up the batch that was got before, and ask for the next: of tasks whose leader selects
        batches.
    start
        The beginning of the batch: of tasks with batches of times.
    end
        The end of the batch.
    """

    wait: Annotated[float, typer.Option(min=0.0)] = 60.0
    another: Annotated[bool, typer.Option("--next")] = False
    start: Annotated[Any, typer.Option(metavar="TIME", parser=options.moment)] = None
    end: Annotated[Any, typer.Option(metavar="TIME", parser=options.moment)] = None

    def interval(self, mode: str) -> tuple[int, int] | None:
        """Give the interval of the batch, if it is one of a time."""
        timed = mode == "time_interval"
        options.refuse_if(
            ((self.start is None) != (self.end is None), "--start", "needs --end"),
            (timed and self.start is None, "--start", "this task has batches of times: say which"),
            (not timed and self.start is not None, "--start", "the leader selects the batches"),
            (timed and self.another, "--next", "the leader of this task selects no batches"),
            (timed and self.start is not None and self.start >= self.end, "--end", "is too early"),
        )
        return (int(self.start.timestamp()), int(self.end.timestamp())) if timed else None


@command
def result(
    file: AsFile,
    *,
    batch: _Batch,
    ca: CA = None,
    intervals: Intervals,
    listing: Listing,
    plot: options.PictureFile = None,
    as_json: options.AsJson = False,
) -> None:
    """Get the result of a batch: shares with intervals.

    The two servers give their parts of the sum sealed for this file's key, so that nobody else
    sees the result. A batch is collected once; to ask again gives the same.

    --json prints what estimate --json prints, and reports, start, end, sums and guarantee.

    [bold]Examples:[/]

        turnout task result task/collector.json

        turnout task result task/collector.json --next --wait 600 --json

    Parameters
    ----------
    file
        The file collector.json of the task.
    """
    told = CollectorFile.read(file)
    interval = batch.interval(told.task.batch_mode)
    if plot is not None:
        options.refuse_overwriting_inputs(plot, [file])
    with doing("waiting for the batch"):
        found = Collector(told, ca).collect(
            seconds=batch.wait, interval=interval, another=batch.another
        )
    top = None if as_json else listing.top
    wish = Wish("hajek", **vars(intervals), order=listing.order, top=top)
    head = [
        ("reports", f"{found.reports:,}"),
        ("from", _moment(found.start)),
        ("to", _moment(found.start + found.duration)),
        *_protection(told.question),
    ]
    shown = show_estimate(wish.made(found.estimate), wish, SHARES, head)
    more = _facts(found, told.question)
    replace(shown, make_record=lambda: {**shown.make_record(), **more}).deliver(
        f"Result of the task {told.task.name}", plot=plot, target=None, as_json=as_json
    )


def _protection(mechanism: VerifiedAggregation) -> Sequence[tuple[str, str]]:
    """Say what protects a person's answer."""
    promise = mechanism.guarantee
    said = f"epsilon {promise.epsilon:g}, delta {promise.delta:g}, for one report"
    return [("users", f"{mechanism.users:,}"), ("privacy", said), *mechanism._told()]


def _facts(found: Collected, mechanism: VerifiedAggregation) -> dict[str, Any]:
    promise = mechanism.guarantee
    return {
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


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat().replace("+00:00", "Z")
