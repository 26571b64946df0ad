"""``turnout estimate``: a tally in, estimates with intervals out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from turnout import GroupedTally
from turnout.cli import options
from turnout.cli.commands import command
from turnout.cli.output import Intervals, Listing, Output, Processing, Together
from turnout.cli.showing.estimates import Wish, show
from turnout.cli.showing.joint import show_conditional, show_marginal
from turnout.cli.tallies import read_tally
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimate import ACROSS
from turnout.frequency.joint.chosen import check_consistent
from turnout.reporting.telling import telling
from turnout.serve.storage.opening import place_of


@dataclass(frozen=True, kw_only=True)
class _Processing(Processing):
    """How frequencies become a distribution.

    Attributes
    ----------
    across
        With --shrink, for a grouped tally: let similar groups learn from each other.
    """

    across: Annotated[bool, typer.Option("--across")] = False

    def __post_init__(self) -> None:
        """Refuse what goes with shrinking alone."""
        super().__post_init__()
        options.refuse_if((self.across and not self.shrink, "--across", "needs --shrink"))

    @property
    def name(self) -> str:
        """What is done to frequencies, as estimates call it."""
        return ACROSS if self.across else super().name


@command
def estimate(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="TALLY")],
    *,
    method: options.Method = None,
    intervals: Intervals,
    over: options.Over = "all",
    processing: _Processing,
    listing: Listing,
    by: Annotated[list[str] | None, typer.Option(metavar="COLUMN")] = None,
    together: Together,
    output: Output,
) -> None:
    """Estimate shares or means from a tally, with intervals.

    The command removes the noise of the reports on average, so the share of a rare answer can be
    negative. --project corrects that with a small bias. --shrink makes the total error over all
    answers smaller still. Intervals belong to the estimate before either step.

    For a tally of numbers, the mean is shown; --json prints an object with mean, standard_error,
    low and high, as lists if each person gave several numbers. For a tally of a distribution, the
    mean and quantiles are shown; --json also has the share of each bin.

    For joint questions, --marginal shows one question alone. --given shows the shares of one
    question among the people who gave each answer to another (--json: a list of objects with group,
    label, share, standard_error, low and high). --consistent makes tables of pairs consistent
    before --project or --shrink.

    For a grouped tally, each group is estimated separately. --plot draws lines over time if a group
    column contains dates.

    [bold]Examples:[/]

        turnout estimate week.tally --interval 0.9 --sort label

        turnout estimate week.tally --project simplex --plot answers.png

        turnout estimate airports.tally --shrink --top 100

        turnout estimate regions.tally --shrink --across

        turnout estimate week.tally -o shares.csv

        turnout estimate joint.tally --given sex --plot shares.png

        turnout estimate joint.tally --marginal vote

        turnout estimate pairs.tally --consistent --shrink

        turnout estimate week.tally --json | jq '.estimates[0]'

        turnout estimate countries.tally --by day --simultaneous sidak --plot days.png

    Parameters
    ----------
    source
        A file that turnout tally wrote, or a store of turnout serve: its file, or
        postgresql://user@host/name.
    by
        For a grouped tally: the columns to group by; repeatable. Default: all.
    """
    together.check(made=processing.name != "none")
    tally = read_tally(source)
    for path in filter(None, (output.plot, output.target)):
        options.refuse_overwriting_inputs(path, [Path(source)])
    source = place_of(source)
    named = frozenset(
        f"--{name.replace('order', 'sort')}"
        for name in ("project", "shrink", "across", "clip", "order", "top")
        if options.was_given(context, name)
    )
    chosen = method or tally.plan.oracle.tally_type._default_method
    telling(tally.plan).check(named, options.method_word(chosen))
    wish = Wish(
        chosen,
        over=over,
        order=listing.order,
        top=None if output.as_json else listing.top,
        postprocessing=processing.name,
        **vars(intervals),
        **together.view,
    )
    if processing.across and not isinstance(tally, GroupedTally):
        raise InvalidValueError(f"{source}: is not grouped; --across needs a grouped tally")
    if together.consistent:
        check_consistent(tally.plan.oracle)
    if by:
        tally = _over(source, tally, by)
    shown = show_conditional if together.given else show_marginal if together.marginal else show
    shown(tally, wish).deliver(f"Estimates from {source}", **vars(output))


def _over(source: str, tally: Any, by: list[str]) -> Any:
    """Group by fewer columns."""
    if not isinstance(tally, GroupedTally):
        raise InvalidValueError(f"{source}: is not grouped, so it has no column {by[0]!r}")
    return tally.over(*by)
