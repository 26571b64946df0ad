"""``turnout tally``: files of reports in, one tally out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from turnout import Plan, Tally
from turnout._atomic import atomic_write
from turnout.cli.running import messages, output, refuse_overwriting_inputs, refusing
from turnout.cli.tables import file_size, number, percent, properties
from turnout.errors import CorruptDataError, InvalidValueError, PlanMismatchError
from turnout.report_files import read_reports

__all__ = ["describe_participation", "plan_difference", "tally"]

_REPORT_SUFFIXES = (".parquet", ".arrow", ".ipc", ".feather")
_PATIENCE = 2.0


@refusing
def tally(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="REPORTS",
            help="Report files (.parquet, .arrow), and tallies made earlier, of one plan.",
        ),
    ],
    *,
    target: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="File for the tally.")
    ],
) -> None:
    """Count the reports of many files into one small tally.

    All files must have been made under the same plan: the same epsilon, labels and participation.
    A file that was truncated or altered is refused. A tally holds as many counts as there are
    labels, whatever the number of people; tallies can be tallied again, so each region may count
    its own files.

    [bold]Example:[/]

        turnout tally monday.parquet tuesday.parquet -o week.tally
    """
    _refuse_repeats(sources)
    refuse_overwriting_inputs(target, sources)
    result: Tally | None = None
    for source in _with_progress(sources):
        part = _read(source)
        if result is None:
            result = part
            continue
        if part.plan != result.plan:
            raise PlanMismatchError(
                f"{sources[0]} and {source} were made under different plans: "
                f"{plan_difference(result.plan, part.plan)}"
            )
        result = result.merge(part)
    assert result is not None  # typer asks for at least one file
    with atomic_write(target) as temporary:
        temporary.write_bytes(result.to_bytes())
    output().print(properties(f"Tally in {target}", _summary(result, target, len(sources))))


def _read(source: Path) -> Tally:
    if source.suffix.lower() in _REPORT_SUFFIXES:
        reports = read_reports(source)
        return reports.oracle.tally(reports)
    try:
        return Tally.from_bytes(source.read_bytes())
    except CorruptDataError as error:
        raise type(error)(f"{source}: {error}") from error


def _refuse_repeats(sources: Sequence[Path]) -> None:
    """Refuse a file given twice: its people would count twice."""
    seen: dict[Path, Path] = {}
    for source in sources:
        real = source.resolve()
        if real in seen:
            raise InvalidValueError(f"{source}: given twice; its reports would count twice")
        seen[real] = source


def _with_progress(sources: Sequence[Path]) -> Iterator[Path]:
    """Pass the files on; show a bar on a terminal once the work has taken a while."""
    console = messages()
    started = time.monotonic()
    progress = Progress(
        TextColumn("tallying"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("files"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    task = progress.add_task("tallying", total=len(sources))
    showing = False
    try:
        for source in sources:
            if not showing and console.is_terminal and time.monotonic() - started > _PATIENCE:
                progress.start()
                showing = True
            yield source
            progress.advance(task)
    finally:
        if showing:
            progress.stop()


def describe_participation(plan: Plan) -> str:
    """Say who takes part under a plan.

    Examples
    --------
    >>> import turnout as tn
    >>> describe_participation(tn.Plan(tn.DirectEncoding(1.0, 2), tn.Bernoulli(0.25)))
    '25 % of the nodes, at random'
    """
    rate = plan.participation.uniform_rate
    if rate is None:
        return "each node with its own probability"
    return "everyone" if rate == 1 else f"{percent(rate)} of the nodes, at random"


def plan_difference(first: Plan, second: Plan) -> str:
    """Say in words what differs between two plans.

    Examples
    --------
    >>> import turnout as tn
    >>> one = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone())
    >>> plan_difference(one, tn.Plan(tn.DirectEncoding(2.0, 3), tn.Bernoulli(0.5)))
    'epsilon 1 and 2; participation everyone and 50 % of the nodes, at random'
    """
    differences: list[str] = []
    one, other = first.oracle, second.oracle
    if type(one) is not type(other):
        differences.append(f"oracle {type(one).__name__} and {type(other).__name__}")
    if one.epsilon != other.epsilon:
        differences.append(f"epsilon {number(one.epsilon)} and {number(other.epsilon)}")
    if one.domain != other.domain:
        differences.append(_domain_difference(one.domain.labels, other.domain.labels))
    texts = describe_participation(first), describe_participation(second)
    if texts[0] != texts[1]:
        differences.append("participation {} and {}".format(*texts))
    return "; ".join(differences) or "their parameters differ"


def _domain_difference(one: Sequence[object], other: Sequence[object]) -> str:
    if len(one) != len(other):
        sizes = f"domain of {len(one)} and of {len(other)} labels"
    else:
        sizes = f"domain of {len(one)} labels"
    only_one = [label for label in one if label not in set(other)]
    only_other = [label for label in other if label not in set(one)]
    if not only_one and not only_other:
        return f"{sizes} in another order"
    parts = [sizes]
    for name, labels in (("first", only_one), ("second", only_other)):
        if labels:
            more = ", ..." if len(labels) > 3 else ""
            parts.append(f"only in the {name}: {', '.join(map(repr, labels[:3]))}{more}")
    return ", ".join(parts)


def _summary(result: Tally, target: Path, files: int) -> list[tuple[str, str]]:
    return [
        ("files", f"{files:,}"),
        ("nodes", f"{result.nodes:,}"),
        ("reports", f"{result.received:,}"),
        ("participation", describe_participation(result.plan)),
        ("oracle", result.oracle.name.replace("_", " ")),
        ("domain", f"{result.oracle.domain.size} labels"),
        ("epsilon", number(result.oracle.epsilon)),
        ("file", file_size(target.stat().st_size)),
    ]
