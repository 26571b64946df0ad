"""The typer application: its commands and the option ``--version``."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from turnout import __version__
from turnout._progress import beating
from turnout.cli.commands import Application

app = typer.Typer(
    name="turnout",
    cls=Application,
    help=(
        "Private statistics when only some people take part.\n\n"
        "[bold]survey[/] goes from a table to shares with intervals in one call. "
        "Three steps: [bold]randomize[/] turns people's answers into reports that protect each of "
        "them, [bold]tally[/] counts the reports of many files, [bold]estimate[/] computes how "
        "often each answer is given, with intervals, and [bold]report[/] writes a page about it. "
        "[bold]plan[/] says before how many reports that takes and writes the plan file that "
        "drives devices, which [bold]key[/] signs, and [bold]demo[/] shows it on a real survey. "
        "[bold]rounds[/] asks some people first and others after them: frequent values that nobody "
        "can list, and rare answers. "
        "[bold]aggregate[/] counts answers under secret sharing instead. "
        "[bold]sample[/] draws one realistic record for each user. "
        "[bold]account[/] computes what random participation, shuffling and sampling protect. "
        "[bold]reproduce[/] computes figures of the papers again."
    ),
    epilog="Exit codes: 0 fine, 1 refused (one line on standard error says why), 2 wrong usage.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"turnout {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def run() -> None:
    """Run the application so that being terminated removes half-written files too."""
    signal.signal(signal.SIGTERM, _terminate)
    with beating(" ".join(["turnout", *sys.argv[1:2]])):
        app(prog_name="turnout")


def _terminate(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)
