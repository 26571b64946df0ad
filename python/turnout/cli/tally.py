"""``turnout tally``: files of reports in, one tally out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from turnout import GroupedTally
from turnout._atomic import atomic_write
from turnout.cli.running import output, refuse_overwriting_inputs, refusing
from turnout.cli.showing import showing
from turnout.cli.showing.shown import describe_participation
from turnout.cli.tables import file_size, number, properties
from turnout.cli.tallies import ALLOW_EQUAL, REPORT_SUFFIXES, Counts, merged, read_tallies
from turnout.collecting.report_files import MAX_MEMORY
from turnout.errors import InvalidValueError
from turnout.pipeline import ReportSet, open_reports

__all__ = ["tally"]


def _check_memory(value: float) -> float:
    if not 1e-9 <= value < 1e9:
        raise typer.BadParameter(f"{value} is not a number of gigabytes (10^9 bytes)")
    return value


@refusing
def tally(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="REPORTS...",
            help=(
                "Report files (.parquet, .arrow), folders of them, quoted patterns, and tallies "
                "made earlier, of one plan."
            ),
        ),
    ],
    *,
    target: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="File for the tally.")
    ],
    group_by: Annotated[
        list[str] | None,
        typer.Option(
            "--group-by",
            help="Keep a tally for each group: a column of the reports or a folder NAME=VALUE.",
        ),
    ] = None,
    duplicates: Annotated[
        str | None,
        typer.Option(
            "--duplicates",
            metavar="refuse|first",
            help="Look for second reports with one pseudonym, and refuse them or leave them out.",
        ),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Take what is there of a job that is not complete.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Files read at once; default: processors."),
    ] = None,
    allow_equal: Annotated[bool, typer.Option("--allow-equal", help=ALLOW_EQUAL)] = False,
    max_memory: Annotated[
        float,
        typer.Option(
            "--max-memory",
            metavar="GB",
            callback=_check_memory,
            help="Memory that the counts of a file may take up.",
        ),
    ] = MAX_MEMORY / 10**9,
) -> None:
    """Count the reports of many files into one small tally.

    All files must have been made under the same plan: the same epsilon, labels and participation.
    A file that was truncated or altered is refused, and so is a copy of another one. A tally holds
    as many counts as there are labels, whatever the number of people; tallies can be tallied again,
    so each region may count its own files. Files are read batch by batch, several at once.

    With --group-by the tally holds one for each group, and turnout estimate makes a table of them.

    [bold]Examples:[/]

        turnout tally monday.parquet tuesday.parquet -o week.tally

        turnout tally reports/ --group-by country --group-by day -o countries.tally
    """
    if duplicates not in (None, "refuse", "first"):
        raise typer.BadParameter(
            f"{duplicates!r} is none of refuse, first", param_hint="--duplicates"
        )
    made, reports = _sorted_out(sources, partial)
    refuse_overwriting_inputs(target, [*made, *(reports.paths if reports is not None else ())])
    if duplicates is not None and made:
        raise InvalidValueError(
            f"--duplicates: {next(iter(made))} is a tally, in which no pseudonyms are left"
        )
    names = tuple(group_by or ())
    found = read_tallies(made, allow_equal=allow_equal)
    parts = [(str(path), _regrouped(path, tally, names)) for path, tally in found]
    if reports is not None:
        counted = reports.tally(
            group_by=names or None,
            duplicates=duplicates,  # type: ignore[arg-type]
            workers=workers,
            progress=True,
            max_memory=round(max_memory * 10**9),
        )
        parts.insert(0, (str((reports.paths or [Path(sources[0])])[0]), counted))
    result = merged(parts)
    with atomic_write(target) as temporary:
        temporary.write_bytes(result.to_bytes())
    files = len(made) + (0 if reports is None else len(reports))
    output().print(properties(f"Tally in {target}", _summary(result, target, files)))


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


def _summary(result: Counts, target: Path, files: int) -> list[tuple[str, str]]:
    groups = []
    if isinstance(result, GroupedTally):
        groups = [("groups", f"{len(result):,} of {', '.join(result.names)}")]
    total = result.total if isinstance(result, GroupedTally) else result
    oracle = result.plan.oracle
    return [
        ("files", f"{files:,}"),
        *groups,
        ("nodes", f"{total.nodes:,}"),
        ("reports", f"{total.received:,}"),
        ("participation", describe_participation(result.plan)),
        ("oracle", oracle.name.replace("_", " ")),
        showing(result.plan).asked(oracle.domain),
        ("epsilon", number(oracle.epsilon)),
        ("file", file_size(target.stat().st_size)),
    ]
