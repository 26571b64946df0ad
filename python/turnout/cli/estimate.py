"""``turnout estimate``: a tally in, estimates with intervals out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from turnout import GroupedTally
from turnout.cli import options
from turnout.cli.commands import command
from turnout.cli.showing.estimates import Wish, show
from turnout.cli.showing.joint import show_conditional, show_marginal
from turnout.cli.tallies import read_tally
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimate import ACROSS, SHRUNK
from turnout.frequency.joint.chosen import check_consistent
from turnout.reporting.telling import telling


@command
def estimate(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="TALLY")],
    *,
    method: options.Method = None,
    level: options.Level = 0.95,
    simultaneous: options.Simultaneous = None,
    project: options.Projection = "none",
    shrink: Annotated[bool, typer.Option("--shrink")] = False,
    across: Annotated[bool, typer.Option("--across")] = False,
    target: options.TableFile = None,
    plot: options.PictureFile = None,
    as_json: options.AsJson = False,
    clip: options.Clip = False,
    order: options.Order = "frequency",
    top: options.Top = "20",
    by: Annotated[list[str] | None, typer.Option(metavar="COLUMN")] = None,
    given: options.Given = None,
    of: options.Of = None,
    marginal: options.Marginal = None,
    consistent: options.Consistent = False,
    over: options.Over = "all",
) -> None:
    """Estimate how often each answer is given, or the mean of numbers, with honest intervals.

    The noise of the reports is taken out, so a rare answer can come out below zero; --project
    repairs that at the price of a small bias, and --shrink makes the error over all answers
    together smaller still. Intervals belong to the estimate before either.

    Of a tally of numbers the mean is shown; --json prints an object with mean, standard_error, low
    and high, lists of them if each person gave several numbers. Of a tally of a distribution the
    mean and quantiles are shown; --json has the share of each bin too.

    Of several questions --marginal shows one alone, --given the shares of one among those who gave
    each answer to another (--json: a list of objects with group, label, share, standard_error, low
    and high), and --consistent makes tables of two agree before --project or --shrink.

    Of a grouped tally each group is estimated by itself, and --plot draws lines over time if a
    column of the groups holds dates.

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
        A file that turnout tally wrote.
    simultaneous
        Make the level hold for all labels at once, not for each.
    project
        Make the frequencies a distribution: no negative ones, a sum of 1.
    shrink
        Make a distribution of them by what the answers have in common: the smallest error over all
        answers together (empirical Bayes).
    across
        With --shrink, of a grouped tally: groups that are alike learn from each other, too.
    order
        Order of the labels.
    by
        Of a grouped tally: the columns to group by; repeatable. All by default.
    over
        Of a grouped tally: what --simultaneous holds for at once.
    """
    made = shrink or project != "none"
    options.refuse_if(
        (
            shrink and project != "none",
            "--shrink",
            f"--project {project} makes another distribution",
        ),
        (of is not None and not given, "--of", "belongs to --given"),
        (
            bool(given) and (made or consistent),
            "--given",
            "takes no --shrink, --project or --consistent: these shares are made before any",
        ),
        (bool(given and marginal), "--marginal", "--given shows other shares: take one of them"),
        (
            consistent and len(marginal or "ab") < 2,
            "--consistent",
            "changes nothing in the shares of one question: they are those that tables agree on",
        ),
        (across and not shrink, "--across", "belongs to --shrink"),
    )
    tally = read_tally(source)
    for path in filter(None, (plot, target)):
        options.refuse_overwriting_inputs(path, [source])
    top = None if as_json else top
    named = frozenset(
        f"--{name.replace('order', 'sort')}"
        for name in ("project", "shrink", "across", "clip", "order", "top")
        if options.was_given(context, name)
    )
    chosen = method or tally.plan.oracle.tally_type.default_method
    processing = project if not shrink else ACROSS if across else SHRUNK
    telling(tally.plan).check(named, options.method_word(chosen))
    wish = Wish(
        chosen, level, simultaneous, over, order, top, clip, consistent,
        given or (), of, marginal or (), postprocessing=processing,
    )  # fmt: skip
    if across and not isinstance(tally, GroupedTally):
        raise InvalidValueError(f"{source}: is not grouped, so --across has no groups")
    if consistent:
        check_consistent(tally.plan.oracle)
    if by:
        tally = _over(source, tally, by)
    if given:
        shown = show_conditional(tally, wish)
    elif marginal:
        shown = show_marginal(tally, wish)
    else:
        shown = show(tally, wish)
    shown.deliver(f"Estimates from {source}", plot=plot, target=target, as_json=as_json)


def _over(source: Path, tally: Any, by: list[str]) -> Any:
    """Group by fewer columns."""
    if not isinstance(tally, GroupedTally):
        raise InvalidValueError(f"{source}: is not grouped, so it has no column {by[0]!r}")
    return tally.over(*by)
