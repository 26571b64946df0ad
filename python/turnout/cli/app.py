"""The typer application: its commands and the option ``--version``."""

from __future__ import annotations

import inspect
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Annotated

import typer

from turnout import __version__
from turnout.cli.account import COMMANDS, account
from turnout.cli.aggregate import aggregate
from turnout.cli.demo import demo
from turnout.cli.estimate import estimate
from turnout.cli.key import COMMANDS as KEY_COMMANDS
from turnout.cli.key import key
from turnout.cli.plan import plan
from turnout.cli.randomize import randomize
from turnout.cli.report import report
from turnout.cli.reproduce import reproduce
from turnout.cli.running import output
from turnout.cli.sample import sample
from turnout.cli.tally import tally

__all__ = ["app", "run"]


def _reflowed(command: Callable[..., None]) -> str:
    """Make help of a docstring: a paragraph is one line, an indented one keeps its lines."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(
        inspect.cleandoc(text) if text.startswith(" ") else " ".join(text.split())
        for text in paragraphs
    )


app = typer.Typer(
    name="turnout",
    help=(
        "Private statistics when only some people take part.\n\n"
        "Three steps: [bold]randomize[/] turns people's answers into reports that protect each of "
        "them, [bold]tally[/] counts the reports of many files, [bold]estimate[/] computes how "
        "often each answer is given, with intervals, and [bold]report[/] writes a page about it. "
        "[bold]plan[/] says before how many reports that takes and writes the plan file that "
        "drives devices, which [bold]key[/] signs, and [bold]demo[/] shows it on a real survey. "
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


def _register(group: typer.Typer, *commands: Callable[..., None]) -> None:
    for command in commands:
        group.command(help=_reflowed(command))(command)


_register(app, plan, randomize, tally, estimate, report, aggregate, sample, reproduce, demo)
_register(account, *COMMANDS)
app.add_typer(account)
_register(key, *KEY_COMMANDS)
app.add_typer(key)


def _print_version(wanted: bool) -> None:
    if wanted:
        output().print(f"turnout {__version__}")
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
    app(prog_name="turnout")


def _terminate(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)
