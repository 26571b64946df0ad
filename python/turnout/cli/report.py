"""``turnout report``: tallies in, a page for people out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from turnout.cli import options
from turnout.cli.commands import command
from turnout.cli.output import Intervals, Listing, Together
from turnout.cli.tables import TABLE_SUFFIXES, Whole, tell, write_table
from turnout.cli.tallies import merged, read_tallies
from turnout.reporting import report as write_report
from turnout.reporting import write_pictures
from turnout.reporting.telling import View
from turnout.reporting.words import file_size, left_out


@command
def report(
    sources: Annotated[list[str], typer.Argument(metavar="TALLY")],
    *,
    target: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            callback=options.ending_in(".html", ".htm", *TABLE_SUFFIXES),
        ),
    ] = None,
    pictures: Annotated[Path | None, typer.Option(metavar="FOLDER")] = None,
    title: str | None = None,
    method: options.Method = None,
    intervals: Intervals,
    over: options.Over = "all",
    together: Together,
    time: Annotated[str | None, typer.Option(metavar="COLUMN")] = None,
    listing: Listing,
    different_people: options.DifferentPeople = False,
) -> None:
    """Write a report about a collection, as a page for people.

    The page shows what was collected, in plain words how people are protected, the estimates with
    intervals, what the collection cost, and who was left out. A grouped tally is shown by group and
    over time. The page needs no other file and no network, and prints on A4.

    [bold]Examples:[/]

        turnout report week.tally -o week.html --title "How often do you travel?"

        turnout report north.tally south.tally -o shares.csv

        turnout report joint.tally -o joint.html --given sex

    Parameters
    ----------
    sources
        Tallies of one plan, grouped or not, or stores of turnout serve (files, or
        postgresql://user@host/name). Several are added up.
    target
        The page, a file ending in .html; or the table alone, ending in .csv, .parquet or .arrow.
    pictures
        Also save each picture as PDF, SVG and PNG.
    title
        The heading: the question that was asked.
    time
        The group column that contains the time.
    """
    if target is None and pictures is None:
        raise typer.BadParameter("pass --output, --pictures or both, to say where to write")
    if target is not None:
        options.refuse_overwriting_inputs(target, list(map(Path, sources)))
    tally = merged(read_tallies(sources), same_people=not different_people)
    view = View(method, over=over, time=time, **vars(intervals), **vars(listing), **together.view)
    rows = [("nodes", f"{tally.nodes:,}"), *left_out(tally.left_out)]
    rows.append(("reports", f"{tally.received:,}"))
    if target is not None and target.suffix.lower() in TABLE_SUFFIXES:
        if together != Together():
            raise typer.BadParameter(
                f"{target} contains one table; pass these options to turnout estimate "
                "--output instead",
                param_hint="--given, --of, --marginal or --consistent",
            )
        estimate = tally.estimate(method or tally.plan.oracle.tally_type._default_method)
        write_table(target, view.cut(estimate).to_arrow(**view.scope_of(estimate)))
        rows.append(("table", Whole(f"{target}, {file_size(target.stat().st_size)}")))
    elif target is not None:
        write_report(tally, target, title=title, **vars(view))
        rows.append(("page", Whole(f"{target}, {file_size(target.stat().st_size)}")))
    if pictures is not None:
        drawn = {name: value for name, value in vars(view).items() if name not in ("order", "top")}
        written = write_pictures(tally, pictures, **drawn)
        rows.append(("pictures", Whole(f"{len(written)} files in {pictures}")))
    tell("Report", rows)
