"""``turnout tally``: files of reports in, one tally out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from turnout import GroupedTally, Plan, metrics
from turnout._files import atomic_write
from turnout.cli import options
from turnout.cli.commands import command
from turnout.cli.messages import Messages, count_messages, is_messages
from turnout.cli.question import PlanFile
from turnout.cli.running import note
from turnout.cli.tables import print_json, tell
from turnout.cli.tallies import REPORT_SUFFIXES, Counts, merged, read_store, read_tallies
from turnout.collecting.keys import Key
from turnout.collecting.left_out import NOTHING
from turnout.collecting.report_files import MAX_MEMORY
from turnout.errors import InvalidValueError
from turnout.pipeline import ReportSet, open_reports
from turnout.pipeline.report_counting import PlacedFile, named_files
from turnout.pipeline.sources.files import searched
from turnout.reporting import words
from turnout.reporting.telling import telling
from turnout.reporting.words import file_size, number
from turnout.serve.storage.opening import POSTGRESQL, place_of

_check_memory = options.accepting(
    lambda value: 1e-9 <= value < 1e9, "a number of gigabytes (1 GB is 10^9 bytes)"
)


@dataclass(frozen=True, kw_only=True)
class _Groups:
    """Which groups have a tally of their own.

    Attributes
    ----------
    group_by
        Keep a tally for each group of this column, or of folders NAME=VALUE; repeatable.
    by_file
        Make each file a group, in a column with this name.
    """

    group_by: list[str] | None = None
    by_file: Annotated[str | None, typer.Option(metavar="COLUMN")] = None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the groups."""
        return (*(self.group_by or ()), *((self.by_file,) if self.by_file is not None else ()))


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """How files of reports are read.

    Attributes
    ----------
    duplicates
        Find duplicate reports of a pseudonym, and refuse or drop them.
    partial
        Count the finished parts of a job that is not complete.
    workers
        Files read at once. Default: the number of processors.
    max_memory
        Memory that the counts of one file may use.
    """

    duplicates: Annotated[
        Literal["refuse", "first"] | None, typer.Option(metavar="refuse|first")
    ] = None
    partial: Annotated[bool, typer.Option("--partial")] = False
    workers: Annotated[int | None, typer.Option(min=1)] = None
    max_memory: Annotated[float, typer.Option(metavar="GB", callback=_check_memory)] = (
        MAX_MEMORY / 10**9
    )

    def count(
        self, reports: ReportSet, names: Sequence[str], same_people: bool
    ) -> tuple[Counts, int]:
        """Count files of reports, and how many of these are improbable."""
        improbable = 0.0

        def hook(event: str, values: dict[str, float]) -> None:
            nonlocal improbable
            if event == "reports_improbable":
                improbable += values["reports"]

        stop = metrics.subscribe(hook)
        try:
            tally = reports.tally(
                group_by=names or None,
                duplicates=self.duplicates,
                workers=self.workers,
                max_memory=round(self.max_memory * 10**9),
                progress=True,
                same_people=same_people,
            )
        finally:
            stop()
        return tally, int(improbable)


@dataclass
class _Counted:
    """What was counted: tallies with the names of their files, and what is said beside them."""

    parts: list[tuple[str, Counts]] = field(default_factory=list)
    improbable: int = 0
    messages: dict[str, Any] | None = None


@command
def tally(
    context: typer.Context,
    sources: Annotated[list[str], typer.Argument(metavar="REPORTS...")],
    *,
    target: Annotated[Path, typer.Option("--output", "-o", metavar="OUT")],
    groups: _Groups,
    reading: _Reading,
    planned: PlanFile,
    messages: Messages,
    different_people: options.DifferentPeople = False,
    as_json: options.AsJson = False,
) -> None:
    """Count reports or messages into one small tally.

    All files must have the same plan: the same epsilon, labels and participation. The command
    refuses a truncated or altered file, and a copy of another file. A tally has one count for each
    label, whatever the number of people. You can tally tallies, so each region may count its own
    files. Files are read batch by batch, several at once.

    With --group-by, the tally has a tally for each group, and turnout estimate shows them in one
    table. With --by-file, each file is a group: --by-file day makes a series from files named by
    their day, such as 2026-03-02.jsonl. The files may be messages, reports or tallies. The reports
    of a job take the name of its folder.

    A store of turnout serve (a file, or postgresql://...) is read as the tally that it contains. If
    it has several questions, --plan selects one.

    By default, people with permanent answers may be the same in all inputs, so intervals hold for
    several days of the same people. Pass --different-people if nobody is in two inputs, as in
    regions of a country.

    A file of messages (.jsonl) has one message on each line, as devices send them. Pass their plan
    with --plan. If not everyone takes part, pass with --nodes how many people were asked: in total,
    or with --by-file for each file, where --nodes NAME=NUMBER is for one file. A duplicate message,
    in one file or in several, counts once, in the first. Messages that do not fit the plan are left
    out, and their number is shown.

    --json prints output, files, nodes, received, left_out (rows and messages that do not count, by
    reason), plan, groups (null, or their columns and number), improbable (counted reports that an
    honest node hardly ever sends), and messages (null, or read, counted, repeated, refusals by
    kind, and improbable: counted messages that an honest device hardly ever sends).

    [bold]Examples:[/]

        turnout tally monday.parquet tuesday.parquet -o week.tally

        turnout tally reports/ --group-by country --group-by day -o countries.tally

        turnout tally day.jsonl --plan plan.json --nodes 100000 -o day.tally

        turnout tally messages/ --plan plan.json --nodes 100000 --by-file day -o days.tally

        turnout tally monday.tally tuesday.tally --by-file day -o week.tally

    Parameters
    ----------
    sources
        Report files (.parquet, .arrow), files of messages (.jsonl), earlier tallies, stores,
        folders of one such kind, and quoted patterns; all of the same plan.
    target
        File for the tally.
    plan_file
        The plan of all inputs; files of messages need it.
    """
    given = _sorted_out(sources, groups.by_file, reading.partial)
    _refuse_contradictions(context, given, planned, reading)
    inputs = [*given.paths, *([] if planned.plan_file is None else [planned.plan_file])]
    options.refuse_overwriting_inputs(target, inputs)
    plan = planned.read()
    how = _How(groups, reading, messages, same_people=not different_people)
    counted = _counted(given, plan, how)
    result = merged(counted.parts, plan, same_people=how.same_people)
    with atomic_write(target) as temporary:
        temporary.write_bytes(result.to_bytes())
    files = len(given.paths)
    if as_json:
        counts = {"improbable": counted.improbable, "messages": counted.messages}
        print_json({"output": str(target), "files": files, **_described(result), **counts})
        return
    rows = _summary(result, target, files)
    if counted.messages is not None:
        rows[1:1] = _rows_of_messages(counted.messages)
    if counted.improbable:
        of_files = "counted reports that honest nodes hardly ever send"
        rows.insert(-1, ("improbable", f"{counted.improbable:,} {of_files}"))
    tell(f"Tally in {target}", rows)


@dataclass(frozen=True)
class _How:
    """How what is given is counted.

    Attributes
    ----------
    groups, reading, messages
        What the options say of groups, of files of reports, and of messages.
    same_people
        Whether people of one input may be in another too.
    """

    groups: _Groups
    reading: _Reading
    messages: Messages
    same_people: bool


def _counted(given: _Given, plan: Plan | None, how: _How) -> _Counted:
    """Count what is given: reports, then messages; tallies are counted already."""
    groups, same_people = how.groups, how.same_people
    files = [file.path for file in given.tallies]
    tallies = [
        (str(file.path), _regrouped(file, one, groups))
        for file, (_, one) in zip(given.tallies, read_tallies(files, plan), strict=True)
    ]
    tallies += [(place_of(address), read_store(address, plan)) for address in given.databases]
    counted = _Counted()
    if given.reports is not None:
        one, counted.improbable = how.reading.count(given.reports, groups.names, same_people)
        counted.parts.append((given.reports_name, one))
    if plan is not None and given.messages:
        one, counted.messages = count_messages(
            given.messages, plan, groups.names, how.messages, same_people=same_people
        )
        counted.parts.append((str(given.messages[0].path), one))
        if tallies:
            note(
                "adding a tally and messages: a message in both counts twice. The "
                "command notices this only if the tally is of exactly these messages"
            )
    counted.parts += tallies
    return counted


@dataclass(frozen=True)
class _Given:
    """What is counted: tallies, databases, files of messages, and files of reports."""

    databases: Sequence[str]
    tallies: Sequence[PlacedFile]
    messages: Sequence[PlacedFile]
    reports: ReportSet | None
    reports_name: str

    @property
    def paths(self) -> list[Path]:
        """All files."""
        reports = () if self.reports is None else self.reports.paths
        return [*(file.path for file in (*self.tallies, *self.messages)), *reports]


def _sorted_out(sources: Sequence[str], by_file: str | None, partial: bool) -> _Given:
    """Tell tallies, messages and reports from each other.

    Raises
    ------
    InvalidValueError
        If a folder or a pattern holds both reports and messages, or nothing that can be counted.
    """
    databases, tallies, messages, reports = [], [], [], []
    for source in sources:
        if source.startswith(POSTGRESQL):
            databases.append(source)
            continue
        path = Path(source)
        found = [path] if path.is_file() else _files_at(source)
        of_messages = any(map(is_messages, found))
        of_reports = any(map(_is_reports, found))
        if of_messages and of_reports:
            raise InvalidValueError(
                f"{source}: contains both report files and message files, which may be of "
                "the same people. Name the files to count"
            )
        if of_messages:
            messages.append(source)
        elif found and not of_reports and (path.is_file() or any(map(_is_tally, found))):
            tallies.append(source)
        else:
            reports.append(source)
    found_reports = open_reports(reports, partial=partial, by_file=by_file) if reports else None
    return _Given(
        databases,
        named_files(tallies, _is_tally, by_file),
        named_files(messages, is_messages, by_file),
        found_reports,
        # A job without reports has no file.
        str([*(found_reports.paths if found_reports else ()), *map(Path, sources)][0]),
    )


def _files_at(source: str) -> list[Path]:
    return [path for _, _, files in searched("paths", source, Path.is_file) for path in files]


def _is_reports(path: Path) -> bool:
    return path.suffix.lower() in REPORT_SUFFIXES


def _is_tally(path: Path) -> bool:
    return path.suffix.lower() == ".tally"


def _refuse_contradictions(
    context: typer.Context, given: _Given, planned: PlanFile, reading: _Reading
) -> None:
    """Refuse options that say nothing of what is counted."""
    if planned.plan_file is None and given.messages:
        raise InvalidValueError(
            f"{given.messages[0].path}: messages need their plan: pass --plan FILE"
        )
    if not given.messages:
        options.refuse_given(
            context, ("nodes", "received"), "applies only to files of messages (.jsonl)"
        )
    if reading.duplicates is not None and (given.tallies or given.messages):
        kind = "a tally" if given.tallies else "a file of messages"
        raise InvalidValueError(
            f"--duplicates: {given.paths[0]} is {kind}, which has no pseudonyms"
        )


def _total(tally: Counts) -> Any:
    return tally.total if isinstance(tally, GroupedTally) else tally


def _regrouped(file: PlacedFile, found: Counts, groups: _Groups) -> Counts:
    """Keep the groups of a tally that are wanted; the file's own name and folders are some."""
    names = groups.names
    values = dict(file.partitions)
    own = found.names if isinstance(found, GroupedTally) else ()
    if own and names == (groups.by_file,):
        # All groups that there are, in each file.
        names = (*own, *names)
    if not names or names == own:
        return found
    inner = tuple(name for name in names if name not in values)
    if inner and not isinstance(found, GroupedTally):
        raise InvalidValueError(f"--group-by: {file.path} is a tally without groups")
    parts: dict[Key, Any] = {(): _total(found)}
    of_no_group = NOTHING
    if isinstance(found, GroupedTally) and inner:
        of_no_group = found.of_no_group
        parts = dict((found if inner == own else found.over(*inner)).items())
    tallies = {}
    for key, one in parts.items():
        known = values | dict(zip(inner, key, strict=True))
        tallies[tuple(known[name] for name in names)] = one
    return GroupedTally(names, tallies, plan=found.plan, of_no_group=of_no_group)


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
    """Say what became of messages, one name and value an entry: see :func:`count_messages`."""
    refusals = counted["refusals"]
    kinds = [f"{count:,} {kind.replace('_', ' ')}" for kind, count in refusals.items() if count]
    why = f": {', '.join(kinds)}" if kinds else ""
    return [
        ("messages", f"{counted['read']:,}"),
        ("repeated", f"{counted['repeated']:,}, sent again; each counts once"),
        ("refused", f"{sum(refusals.values()):,}{why}"),
        (
            "improbable",
            f"{counted['improbable']:,} counted messages that honest devices hardly ever send",
        ),
    ]
