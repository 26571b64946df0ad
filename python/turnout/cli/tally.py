"""``turnout tally``: files of reports in, one tally out."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from turnout import GroupedTally, Plan, metrics
from turnout._files import atomic_write, open_regular
from turnout.cli import options
from turnout.cli.running import note, refusing
from turnout.cli.tables import print_json, tell
from turnout.cli.tallies import REPORT_SUFFIXES, Counts, merged, read_tallies, refuse_repeats
from turnout.collecting.report_files import MAX_MEMORY
from turnout.collecting.tally import BaseTally
from turnout.errors import InvalidValueError, PlanExpiredError, TurnoutError
from turnout.pipeline import ReportSet, open_reports
from turnout.reporting import words
from turnout.reporting.telling import telling
from turnout.reporting.words import file_size, number

#: What names of files of messages end in.
_MESSAGE_SUFFIXES = (".jsonl", ".ndjson")

OnBad = Literal["count", "refuse"]

_check_memory = options.accepting(
    lambda value: 1e-9 <= value < 1e9, "a number of gigabytes (10^9 bytes)"
)


@refusing
def tally(
    context: typer.Context,
    sources: Annotated[list[str], typer.Argument(metavar="REPORTS...")],
    *,
    target: Annotated[Path, typer.Option("--output", "-o", metavar="OUT")],
    group_by: list[str] | None = None,
    duplicates: Annotated[
        Literal["refuse", "first"] | None, typer.Option(metavar="refuse|first")
    ] = None,
    partial: Annotated[bool, typer.Option("--partial")] = False,
    workers: Annotated[int | None, typer.Option(min=1)] = None,
    plan_file: Annotated[Path | None, typer.Option("--plan", metavar="FILE")] = None,
    public_key: options.PublicKey = None,
    nodes: Annotated[int | None, typer.Option("--nodes", "-n", min=0)] = None,
    on_bad: OnBad = "count",
    received: Annotated[Any, typer.Option(metavar="TIME", parser=options.moment)] = None,
    as_json: options.AsJson = False,
    allow_equal: options.AllowEqual = False,
    max_memory: Annotated[float, typer.Option(metavar="GB", callback=_check_memory)] = MAX_MEMORY
    / 10**9,
) -> None:
    """Count the reports of many files into one small tally.

    All files must have been made under the same plan: the same epsilon, labels and participation.
    A file that was truncated or altered is refused, and so is a copy of another one. A tally holds
    as many counts as there are labels, whatever the number of people; tallies can be tallied again,
    so each region may count its own files. Files are read batch by batch, several at once.

    With --group-by the tally holds one for each group, and turnout estimate makes a table of them.

    A file of messages (.jsonl) has one a line, as devices send them. --plan says under which plan;
    where not everyone takes part, --nodes says how many people were asked. A message that is there
    twice, in one file or in several, counts once; messages that are none of the plan are left out
    and counted.

    --json prints output, files, nodes, received, left_out (rows and messages that do not count, by
    reason), plan, groups (null, or their columns and number), improbable (reports of the files that
    count and an honest node hardly ever sends), and messages
    (null, or read, counted, repeated, refusals by kind, and improbable: those that count and an
    honest device hardly ever sends).

    [bold]Examples:[/]

        turnout tally monday.parquet tuesday.parquet -o week.tally

        turnout tally reports/ --group-by country --group-by day -o countries.tally

        turnout tally day.jsonl --plan plan.json --nodes 100000 -o day.tally

    Parameters
    ----------
    sources
        Report files (.parquet, .arrow), folders of them, quoted patterns, files of messages
        (.jsonl), and tallies made earlier, of one plan.
    target
        File for the tally.
    group_by
        Keep a tally for each group: a column of the reports or a folder NAME=VALUE.
    duplicates
        Look for second reports with one pseudonym, and refuse them or leave them out.
    partial
        Take what is there of a job that is not complete.
    workers
        Files read at once; default: processors.
    plan_file
        The plan of all of them; files of messages need it.
    nodes
        How many people were asked for messages, silent ones included.
    on_bad
        Leave bad messages out and count them, or refuse all.
    received
        When the last message came in; default: now.
    max_memory
        Memory that the counts of a file may take up.
    """
    sent = [Path(source) for source in sources if _is_messages(source)]
    if plan_file is None:
        if sent:
            raise InvalidValueError(
                f"{sent[0]}: is a file of messages, which do not say what they mean: --plan FILE "
                "does"
            )
        options.refuse_given(context, ("public_key",), "needs --plan")
    if not sent:
        options.refuse_given(
            context, ("nodes", "received"), "is for files of messages (.jsonl) only"
        )
    names = tuple(group_by or ())
    if names and sent:
        raise InvalidValueError(
            f"--group-by: {sent[0]} is a file of messages, which say nothing of groups; tally the "
            "messages of each group by themselves"
        )
    others = [source for source in sources if not _is_messages(source)]
    made, reports = _sorted_out(others, partial)
    inputs = [*made, *sent, *(reports.paths if reports is not None else ())]
    options.refuse_overwriting_inputs(target, inputs if plan_file is None else [*inputs, plan_file])
    if duplicates is not None and (made or sent):
        kind = "a tally" if made else "a file of messages"
        raise InvalidValueError(
            f"--duplicates: {[*made, *sent][0]} is {kind}, in which there are no pseudonyms"
        )
    plan = None if plan_file is None else Plan.read(plan_file, public_key=public_key)
    counted = [
        (str(path), _regrouped(path, one, names))
        for path, one in read_tallies(made, allow_equal=allow_equal)
    ]
    fresh: list[tuple[str, Counts]] = []
    improbable, messages = 0, None
    if reports is not None:
        one, improbable = _counted(
            reports,
            group_by=names or None,
            duplicates=duplicates,
            workers=workers,
            max_memory=round(max_memory * 10**9),
        )
        fresh.append((str((reports.paths or [Path(sources[0])])[0]), one))
    if plan is not None and sent:
        refuse_repeats(sent)
        put, messages = _gathered(sent, plan, nodes, on_bad, received)
        fresh.append((str(sent[0]), put))
    if plan is not None:
        for name, part in [*fresh, *counted]:
            plan.check_same(part.plan, name)
    _refuse_own(counted, fresh, allow_equal=allow_equal)
    result = merged([*fresh, *counted])
    with atomic_write(target) as temporary:
        temporary.write_bytes(result.to_bytes())
    files = len(made) + len(sent) + (0 if reports is None else len(reports))
    if as_json:
        counts = {"improbable": improbable, "messages": messages}
        print_json({"output": str(target), "files": files, **_described(result), **counts})
        return
    rows = _summary(result, target, files)
    if messages is not None:
        rows[1:1] = _rows_of_messages(messages)
    if improbable:
        words = f"{improbable:,} of the files' reports, which count and honest nodes hardly send"
        rows.insert(-1, ("improbable", words))
    tell(f"Tally in {target}", rows)


def _counted(reports: ReportSet, **how: Any) -> tuple[Counts, int]:
    """Count files of reports, and how many of these are improbable."""
    improbable = 0.0

    def hook(event: str, values: dict[str, float]) -> None:
        nonlocal improbable
        if event == "reports_improbable":
            improbable += values["reports"]

    stop = metrics.subscribe(hook)
    try:
        return reports.tally(**how, progress=True), int(improbable)
    finally:
        stop()


def _refuse_own(
    counted: Sequence[tuple[str, Counts]], fresh: Sequence[tuple[str, Counts]], *, allow_equal: bool
) -> None:
    """Refuse a tally beside the reports that it was made of, and say what is not found out."""
    if not (counted and fresh):
        return
    for (path, tally), (name, part) in itertools.product(counted, fresh):
        if part.nodes and _total(tally) == _total(part) and not allow_equal:
            raise InvalidValueError(
                f"{path}: holds the same counts as the reports of {name}: they would count "
                "twice; --allow-equal adds up two collections whose counts are equal by chance"
            )
    note(
        "tallies and reports are added up: whether the reports of a tally are among the others, "
        "and count twice, nobody can tell"
    )


def _total(tally: Counts) -> Any:
    return tally.total if isinstance(tally, GroupedTally) else tally


def _is_messages(source: str) -> bool:
    return Path(source).suffix.lower() in _MESSAGE_SUFFIXES


def _sorted_out(sources: Sequence[str], partial: bool) -> tuple[list[Path], ReportSet | None]:
    """Tell tallies from reports."""
    made = [
        path
        for path in map(Path, sources)
        if path.is_file() and path.suffix.lower() not in REPORT_SUFFIXES
    ]
    reports = [source for source in sources if Path(source) not in made]
    return made, open_reports(reports, partial=partial) if reports else None


def _regrouped(path: Path, found: Counts, names: tuple[str, ...]) -> Counts:
    """Keep the groups of a tally that are wanted."""
    if not names:
        return found
    if not isinstance(found, GroupedTally):
        raise InvalidValueError(f"--group-by: {path} is a tally without groups")
    return found if names == found.names else found.over(*names)


def _described(result: Counts) -> dict[str, Any]:
    groups = None
    if isinstance(result, GroupedTally):
        groups = {"columns": list(result.names), "number": len(result)}
    return {
        "nodes": result.nodes,
        "received": result.received,
        "left_out": result.left_out.to_dict(),
        "plan": result.plan.to_dict(),
        "groups": groups,
    }


def _summary(result: Counts, target: Path, files: int) -> list[tuple[str, str]]:
    groups = []
    if isinstance(result, GroupedTally):
        groups = [("groups", f"{len(result):,} of {', '.join(result.names)}")]
    total = _total(result)
    oracle = result.plan.oracle
    return [
        ("files", f"{files:,}"),
        *groups,
        ("nodes", f"{total.nodes:,}"),
        *words.left_out(total.left_out),
        ("reports", f"{total.received:,}"),
        ("participation", words.participation(result.plan)),
        ("oracle", oracle.name.replace("_", " ")),
        telling(result.plan).asked(oracle.domain),
        ("epsilon", number(oracle.epsilon)),
        ("file", file_size(target.stat().st_size)),
    ]


def _rows_of_messages(counted: dict[str, Any]) -> list[tuple[str, str]]:
    """Say what became of messages, one name and value an entry: see :func:`_gathered`."""
    refusals = counted["refusals"]
    kinds = [f"{count:,} {kind.replace('_', ' ')}" for kind, count in refusals.items() if count]
    why = f": {', '.join(kinds)}" if kinds else ""
    return [
        ("messages", f"{counted['read']:,}"),
        ("repeated", f"{counted['repeated']:,}, which were sent again and count once"),
        ("refused", f"{sum(refusals.values()):,}{why}"),
        ("improbable", f"{counted['improbable']:,}, which count and honest devices hardly send"),
    ]


def _gathered(
    paths: Sequence[Path],
    plan: Plan,
    nodes: int | None,
    on_bad: OnBad,
    received: datetime | None,
) -> tuple[BaseTally, dict[str, Any]]:
    """Put the messages of some files together: one that is there twice counts once.

    Returns
    -------
    tally, counted
        The tally; how many messages were ``read``, ``counted`` and ``repeated``, the ``refusals``
        by kind, and how many that count are ``improbable``: an honest device hardly ever sends
        them.

    Raises
    ------
    TurnoutError
        As :meth:`turnout.Plan.gather`; the position of a message counts the lines of all files.
    OSError
        If a file cannot be read.
    """
    if nodes is None and plan.participation.uniform_rate not in (None, 1.0):
        raise InvalidValueError(
            f"{paths[0]}: --nodes must say how many people were asked: under "
            f"{plan.participation!r} silent ones send nothing"
        )
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open_regular(path)) for path in paths]
        lines = list(itertools.chain.from_iterable(files))
    try:
        found = plan.gather(lines, nodes, on_bad="count", received=received)
        if on_bad == "refuse" and found.refused:
            plan.gather(lines, nodes, on_bad="refuse", received=received)
    except PlanExpiredError as error:
        raise PlanExpiredError(
            f"{_named(paths)}: {error}: --received says when the messages came in"
        ) from error
    except TurnoutError as error:
        raise type(error)(f"{_named(paths)}: {error}") from error
    counted = {
        "read": len(lines),
        "counted": len(found.reports),
        "repeated": found.repeated,
        "refusals": found.refusals,
        "improbable": found.improbable,
    }
    return plan.oracle.tally(found.reports), counted


def _named(paths: Sequence[Path]) -> str:
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
