"""``turnout aggregate``: one column of files in, frequencies with intervals out."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import typer

from turnout._progress import doing
from turnout.cli import options
from turnout.cli.aggregate.mechanisms import (
    Name,
    arguments_of,
    check_parties,
    floor_holds,
    mechanism_of,
)
from turnout.cli.aggregate.results import (
    costs_table,
    json_object,
    show_comparison,
    summary,
)
from turnout.cli.answers import (
    check_labels,
    files_of,
    scanned,
    settled,
    stated_labels,
    tell_of_labels,
)
from turnout.cli.commands import command
from turnout.cli.running import note
from turnout.cli.showing.estimates import Wish, show_estimate
from turnout.distributed import recommend
from turnout.frequency.estimation.estimate import SHRUNK
from turnout.pipeline.in_memory import read_columns
from turnout.reporting.frequencies import SHARES

# The groups of options in the help.
_TRUST = "Who takes part"
_SAMPLING = "Sampling, in one stage or two"
_TWO_STAGE = "Two-stage sampling"
_NOISE = "Noise"

#: Options that are of a round, and not of a comparison.
_OF_A_ROUND = ("seed", "level", "simultaneous", "project", "shrink", "clip", "order")


@command
def aggregate(
    context: typer.Context,
    sources: options.Sources,
    *,
    column: options.Column,
    epsilon: options.Epsilon,
    mechanism: Annotated[Name, typer.Option("--mechanism", "-m", metavar="NAME")],
    delta: Annotated[
        float | None, typer.Option("--delta", "-d", callback=options.check_delta)
    ] = None,
    floor: Annotated[int | None, typer.Option(min=1, rich_help_panel=_SAMPLING)] = None,
    dummies: Annotated[int | None, typer.Option(min=1, rich_help_panel=_SAMPLING)] = None,
    threshold: Annotated[int | None, typer.Option(min=1, rich_help_panel=_SAMPLING)] = None,
    parties: Annotated[
        str | None, typer.Option(metavar="M|users", callback=check_parties, rich_help_panel=_TRUST)
    ] = None,
    source: Annotated[
        Literal["users", "parties"] | None, typer.Option(rich_help_panel=_NOISE)
    ] = None,
    honest_aggregators: Annotated[int, typer.Option(min=1, rich_help_panel=_TRUST)] = 1,
    max_colluding_users: Annotated[int, typer.Option(min=0, rich_help_panel=_TRUST)] = 0,
    max_missing_users: Annotated[int, typer.Option(min=0, rich_help_panel=_TRUST)] = 0,
    adjacency: Annotated[
        Literal["replace", "add_or_remove"], typer.Option(rich_help_panel=_TRUST)
    ] = "replace",
    reported: Annotated[int | None, typer.Option(min=1, rich_help_panel=_TWO_STAGE)] = None,
    gamma: Annotated[float | None, typer.Option(rich_help_panel=_TWO_STAGE)] = None,
    collusion_bound: Annotated[int | None, typer.Option(min=0, rich_help_panel=_TWO_STAGE)] = None,
    elected: Annotated[int | None, typer.Option(min=1, rich_help_panel=_TWO_STAGE)] = None,
    labels: options.Labels = None,
    labels_file: options.LabelsFile = None,
    missing: options.Missing = None,
    missing_value: options.MissingValues = None,
    trim: options.Trim = False,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    level: options.Level = 0.95,
    clip: options.Clip = False,
    simultaneous: options.Simultaneous = None,
    project: options.Projection = "none",
    shrink: Annotated[bool, typer.Option("--shrink")] = False,
    plot: options.PictureFile = None,
    as_json: options.AsJson = False,
    order: options.Order = "frequency",
    top: options.Top = "20",
    seed: options.Seed = None,
) -> None:
    r"""Count answers under secret sharing, so that no server sees one, and the counts are private.

    Every person's answer is split into shares among several parties, of which one must be honest;
    only the sum is seen. Hidden coins ([bold]sampling[/], [bold]two-stage[/]) or noise that no
    party knows ([bold]discrete-laplace[/], [bold]discrete-gaussian[/], [bold]skellam[/]) make the
    sum private. [bold]recommend[/] compares all of them by computed error.

    This command runs all parties in one process, to see what a mechanism gives and costs before it
    is deployed: whoever runs it has all the answers. turnout.distributed.transport runs the parties
    on machines of their own.

    Labels are taken from the column unless --labels or --labels-file states them; they are then
    treated as public, and stand in the output.

    --json prints what estimate --json prints, and guarantee, parameters (what was calibrated),
    expected_error (the root mean squared error of a frequency), floor_holds (whether these answers
    keep the --floor; null if nothing rests on one) and costs (an object for each role: parties, and
    means for one party).

    [bold]Examples:[/]

        turnout aggregate adult.csv -c occupation -m discrete-laplace --epsilon 1

        turnout aggregate adult.csv -c occupation -m sampling --epsilon 1 --delta 1e-5 \
            --dummies 100 --plot occupations.png

        turnout aggregate adult.csv -c occupation -m recommend --epsilon 1

    Parameters
    ----------
    epsilon
        Privacy of what is published; less is more.
    mechanism
        How the counts are protected; recommend compares all.
    delta
        Not needed for discrete-laplace; without it recommend compares what needs none.
    floor
        Every item has so many people, whatever happens.
    dummies
        People that do not exist, on every item; holds for any data.
    threshold
        Publish counts from here on only; holds for any data, the server is trusted.
    parties
        Who adds up: so many aggregators, or the users. 3 if left out.
    source
        Who adds it. The users if left out.
    honest_aggregators
        How many do not collude, at least.
    max_colluding_users
        How many users may collude.
    max_missing_users
        How many users may be missing.
    adjacency
        What is hidden: a person's item, or the person.
    reported
        Items that a user reports.
    gamma
        How much likelier the own item is. Uniform if left out.
    collusion_bound
        Elect more users than this for an item.
    elected
        Elect exactly so many for an item.
    level
        Confidence level of the intervals.
    simultaneous
        Make the level hold for all labels at once, not for each.
    project
        Make the frequencies a distribution: no negative ones, a sum of 1.
    shrink
        Make a distribution of them by what the labels have in common (empirical Bayes).
    order
        Order of the labels.
    """
    check_labels(labels, labels_file)
    arguments = arguments_of(context, mechanism)
    if shrink and project != "none":
        raise typer.BadParameter(
            f"--project {project} makes another distribution", param_hint="--shrink"
        )
    if mechanism == "recommend":
        reason = "belongs to a round, and --mechanism recommend runs none"
        options.refuse_given(context, _OF_A_ROUND, reason)
    if plot is not None:
        options.refuse_overwriting_inputs(plot, files_of(sources))
    answers = scanned(
        sources,
        [column],
        missing=missing,
        missing_values=missing_value,
        separator=separator,
        encoding=encoding,
        trim=trim,
    )
    stated = stated_labels(labels and [labels], labels_file, [column])
    answers, domains, found = settled(answers, stated)
    tell_of_labels(answers, domains, found, "turnout survey --mean LOW:HIGH asks for their mean")
    read = read_columns(answers, domains)
    [codes], users, domain = read.codes, read.groups.size, domains[column]
    if mechanism == "recommend":
        with doing("comparing mechanisms"):
            comparison = recommend(users, domain, **arguments)
        holds = floor_holds(arguments, domain, codes, "what holds for data with the floor")
        show_comparison(comparison, floor_holds=holds, plot=plot, as_json=as_json)
        return
    with doing("calibrating"):
        chosen = mechanism_of(mechanism, domain, users, arguments)
    holds = floor_holds(arguments, domain, codes, "the guarantee")
    if seed is not None:
        note("made with --seed: fit for tests only, the noise can be computed again")
    with doing(f"a round of {users:,} users"):
        result = chosen.run(domain.decode(codes), seed=seed)
    made = SHRUNK if shrink else project
    shown_top = None if as_json else top
    wish = Wish("hajek", level, simultaneous, "all", order, shown_top, clip, postprocessing=made)
    estimate = wish.made(replace(result.estimate, left_out=read.left_out))
    shown = show_estimate(estimate, wish, SHARES, summary(chosen, read.left_out))
    more = {**json_object(chosen, result.costs), "floor_holds": holds}
    replace(
        shown,
        make_record=lambda: {**shown.make_record(), **more},
        below=[*shown.below, costs_table(result.costs)],
    ).deliver(f"Aggregate of {answers.name}", plot=plot, target=None, as_json=as_json)
