"""``turnout reproduce``: figures and tables of the papers, computed again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from turnout._progress import doing
from turnout.cli.commands import command
from turnout.cli.running import note, output
from turnout.errors import InvalidValueError
from turnout_reproduce import EXPERIMENTS, Experiment, Finding, Outcome, Scale, chosen
from turnout_reproduce import reproduce as run_all

_COLORS = {"agrees": "green", "differs": "yellow", "paper is wrong": "red", "not printed": "dim"}


@command
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME...]")] = None,
    *,
    listed: Annotated[bool, typer.Option("--list")] = False,
    full: Annotated[bool, typer.Option("--full/--quick")] = False,
    target: Annotated[Path, typer.Option("--output", "-o", metavar="DIR")] = Path("reproduction"),
    data: Annotated[Path | None, typer.Option(metavar="DIR")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 1,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Reproduce figures and tables of the papers, each with a verdict.

    For each a table is printed: what the paper prints, what we find with its standard error, and
    whether they agree, by how much they differ, or why the paper is wrong. A picture of each, and
    results.json with all numbers, versions and the seed, are saved in the output folder.

    [bold]Examples:[/]

        turnout reproduce --list

        turnout reproduce sampling/figure-1 -o figures

        turnout reproduce all --full

    Parameters
    ----------
    names
        What to run: sampling/figure-1, all of a paper (sampling), or all.
    listed
        Name the figures and tables, and run nothing.
    full
        Sizes and repeats of the papers where they say, or smaller ones.
    target
        Folder for pictures and results.
    data
        Folder with real data sets.
    seed
        Makes the results reproducible.
    as_json
        Print what results.json holds and nothing else.
    """
    if listed:
        _print_list(output())
        return
    if not names:
        raise typer.BadParameter("give a name, all, or --list", param_hint="NAME")
    try:
        experiments = chosen(names)
    except InvalidValueError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from error
    scale = Scale(full=full, seed=seed, data=data, progress=True)
    console = output()

    def told(experiment: Experiment, outcome: Outcome, seconds: float) -> None:
        if not as_json:
            console.print(_table(experiment, outcome, seconds))
            console.print()

    with doing("computing"):
        results = run_all(experiments, target, scale=scale, told=told)
    if as_json:
        typer.echo(json.dumps(results))
        return
    note(f"pictures and results.json are in {target}")


def _print_list(console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("what it shows")
    for experiment in EXPERIMENTS:
        table.add_row(experiment.name, experiment.title)
    console.print(table)


def _table(experiment: Experiment, outcome: Outcome, seconds: float) -> Table:
    """Show the findings of an experiment."""
    table = Table(
        title=f"{experiment.name}: {experiment.title} ({seconds:.1f} s)",
        title_justify="left",
        caption=outcome.data or None,
        caption_justify="left",
    )
    table.add_column("what", ratio=1)
    table.add_column("paper", justify="right", no_wrap=True)
    table.add_column("ours", justify="right", no_wrap=True)
    table.add_column("verdict")
    for finding in outcome.findings:
        table.add_row(
            finding.what,
            "-" if finding.paper is None else f"{finding.paper:.4g}",
            _ours(finding),
            f"[{_COLORS[finding.verdict]}]{finding.verdict}[/]"
            + (f": {finding.why}" if finding.why else ""),
        )
    return table


def _ours(finding: Finding) -> str:
    if finding.error is None:
        return f"{finding.ours:.4g}"
    return f"{finding.ours:.4g} ± {finding.error:.1g}"
