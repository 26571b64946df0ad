"""``turnout aggregate``: one column of files in, frequencies with intervals out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import typer

from turnout._progress import doing
from turnout.cli import options
from turnout.cli.aggregate.mechanisms import Protection, floor_holds, mechanism_of
from turnout.cli.aggregate.results import (
    costs_table,
    json_object,
    page_notes,
    show_comparison,
    summary,
)
from turnout.cli.answers import settled, tell_of_labels
from turnout.cli.commands import command
from turnout.cli.input import Input
from turnout.cli.output import Intervals, Listing, Processing
from turnout.cli.page import Page, say_written
from turnout.cli.question import OneList
from turnout.cli.running import note
from turnout.cli.showing.estimates import Wish, show_estimate
from turnout.distributed import recommend
from turnout.pipeline import Answers
from turnout.pipeline.in_memory import Columns, read_columns
from turnout.reporting.frequencies import SHARES

#: Options that are of a round, and not of a comparison.
_OF_A_ROUND = (
    *("seed", "level", "simultaneous", "project", "shrink", "clip", "order"),
    *("page", "title", "overwrite"),
)


@dataclass(frozen=True, kw_only=True)
class _Question(OneList):
    """What is asked."""

    column: options.Column

    def settle(self, data: Input) -> tuple[Answers, Columns, Any]:
        """Read the answers: the files, their codes, and the labels.

        Raises
        ------
        InvalidValueError
            If they cannot be used.
        OSError
            If a file cannot be read.
        """
        stated = self.stated
        answers = data.scan([self.column])
        given = {} if stated is None else {self.column: stated}
        answers, domains, found = settled(answers, given)
        way = "turnout survey --mean LOW:HIGH asks for their mean"
        tell_of_labels(answers, domains, found, way)
        return answers, read_columns(answers, domains), domains[self.column]


@command
def aggregate(
    context: typer.Context,
    *,
    question: _Question,
    protection: Protection,
    data: Input,
    intervals: Intervals,
    processing: Processing,
    listing: Listing,
    page: Page,
    plot: options.PictureFile = None,
    as_json: options.AsJson = False,
    seed: options.Seed = None,
) -> None:
    r"""Count answers under secret sharing, so that no server sees one, and the counts are private.

    Every person's answer is split into shares among several parties, of which one must be honest;
    only the sum is seen. Hidden coins ([bold]sampling[/], [bold]two-stage[/]) or noise that no
    party knows ([bold]discrete-laplace[/], [bold]discrete-gaussian[/], [bold]skellam[/]) make the
    sum private. With [bold]verified[/] every answer carries a proof that it is one vote.
    [bold]recommend[/] compares all of them by computed error.

    This command runs all parties in one process, to see what a mechanism gives and costs before it
    is deployed: whoever runs it has all the answers. turnout.distributed.transport runs the parties
    on machines of their own.

    Labels are taken from the column unless --labels or --labels-file states them; they are then
    treated as public, and stand in the output.

    --report writes the page for people, as turnout survey does, with the sentence to publish.

    --json prints what estimate --json prints, and guarantee, parameters (what was calibrated),
    expected_error (the root mean squared error of a frequency), floor_holds (whether these answers
    keep the --floor; null if nothing rests on one) and costs (an object for each role: parties, and
    means for one party).

    [bold]Examples:[/]

        turnout aggregate adult.csv -c occupation -m discrete-laplace --epsilon 1

        turnout aggregate adult.csv -c occupation -m sampling --epsilon 1 --delta 1e-5 \
            --dummies 100 --plot occupations.png

        turnout aggregate adult.csv -c occupation -m skellam -e 1 -d 1e-6 --report jobs.html

        turnout aggregate adult.csv -c occupation -m verified --epsilon 1

        turnout aggregate adult.csv -c occupation -m recommend --epsilon 1
    """
    arguments = protection.arguments(context)
    compared = protection.mechanism == "recommend"
    _refuse_contradictions(context, compared, processing, page)
    page.check(data)
    if plot is not None:
        options.refuse_overwriting_inputs(plot, data.paths)
    answers, read, domain = question.settle(data)
    [codes], users = read.codes, read.groups.size
    if compared:
        with doing("comparing mechanisms"):
            comparison = recommend(users, domain, **arguments)
        holds = floor_holds(arguments, domain, codes, "what holds for data with the floor")
        show_comparison(comparison, floor_holds=holds, plot=plot, as_json=as_json)
        return
    with doing("calibrating"):
        chosen = mechanism_of(protection.mechanism, domain, users, arguments)
    holds = floor_holds(arguments, domain, codes, "the guarantee")
    if seed is not None:
        note("made with --seed: fit for tests only, the noise can be computed again")
    with doing(f"a round of {users:,} users"):
        result = chosen.run(domain.decode(codes), seed=seed)
    top = None if as_json else listing.top
    wish = Wish(
        "hajek", **vars(intervals), order=listing.order, top=top, postprocessing=processing.name
    )
    estimate = wish.made(replace(result.estimate, left_out=read.left_out))
    shown = show_estimate(estimate, wish, SHARES, summary(chosen, read.left_out))
    page.write(
        replace(result, estimate=estimate),
        **{**vars(intervals), "order": listing.order, "top": listing.top},
        notes=page_notes(seed, holds),
    )
    more = {**json_object(chosen, result.costs), "floor_holds": holds}
    replace(
        shown,
        make_record=lambda: {**shown.make_record(), **more},
        below=[*shown.below, costs_table(result.costs)],
    ).deliver(f"Aggregate of {answers.name}", plot=plot, target=None, as_json=as_json)
    if not as_json:
        say_written("page", page.page)


def _refuse_contradictions(
    context: typer.Context, compared: bool, processing: Processing, page: Page
) -> None:
    """Refuse options of a round where none is run, and a page of shares that were changed."""
    if compared:
        reason = "belongs to a round, and --mechanism recommend runs none"
        options.refuse_given(context, _OF_A_ROUND, reason)
    options.refuse_if(
        (
            page.page is not None and processing.name != "none",
            "--report",
            "shows the shares as they were counted: leave out --project and --shrink",
        )
    )
