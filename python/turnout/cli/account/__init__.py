"""``turnout account``: what random participation, shuffling and sampling protect."""

from __future__ import annotations

import typer

from turnout.cli.account.calibrate import calibrate
from turnout.cli.account.counts import counts
from turnout.cli.account.participation import participation
from turnout.cli.account.shuffle import shuffle

__all__ = ["COMMANDS", "account"]

account = typer.Typer(
    name="account",
    help=(
        "Compute what a release protects: epsilon and delta.\n\n"
        "[bold]participation[/] accounts for rounds of federated learning with clients that take "
        "part at random, [bold]calibrate[/] finds the noise that they need, [bold]shuffle[/] "
        "accounts for shuffled reports, [bold]counts[/] for counts of sampled people. Printed "
        "numbers are rounded to the safe side."
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
)

COMMANDS = (participation, calibrate, shuffle, counts)
