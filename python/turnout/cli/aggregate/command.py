"""``turnout aggregate``: one column of files in, frequencies with intervals out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import typer

from turnout._progress import doing
from turnout.cli import options
from turnout.cli.aggregate.mechanisms import (
    Protection,
    check_numbers,
    floor_holds,
    mechanism_of,
)
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
from turnout.cli.numbers import Mean, record_of_sum, rows_of_sum
from turnout.cli.output import Intervals, Listing, Processing
from turnout.cli.page import Page, say_written
from turnout.cli.question import OneList
from turnout.cli.running import note_seed
from turnout.cli.showing.estimates import Wish, show_estimate
from turnout.distributed import recommend
from turnout.pipeline import Answers
from turnout.pipeline.in_memory import Columns, read_columns
from turnout.reporting.frequencies import SHARES
from turnout.reporting.means import Means
from turnout.reporting.telling import Telling

#: Options that are of a round, and not of a comparison.
_OF_A_ROUND = (
    *("seed", "level", "simultaneous", "project", "shrink", "clip", "order"),
    *("page", "title", "overwrite"),
)


@dataclass(frozen=True, kw_only=True)
class _Question(OneList):
    """What is asked."""

    column: options.Column
    mean: Mean = None

    def __post_init__(self) -> None:
        """Refuse labels of numbers."""
        super().__post_init__()
        named = self.labels is not None or self.labels_file is not None
        options.refuse_if(
            (self.mean is not None and named, "--mean", "conflicts with --labels: choose one")
        )

    @property
    def telling(self) -> Telling:
        """How estimates are told."""
        return SHARES if self.mean is None else Means()

    def check(self, context: typer.Context, mechanism: str) -> None:
        """Refuse what does not go together with numbers, where a mean is asked for.

        Raises
        ------
        InvalidValueError, typer.BadParameter
            If something does not.
        """
        if self.mean is None:
            return
        check_numbers(mechanism)
        names = ("project", "shrink", "clip", "order", "top")
        given = {name for name in names if options.was_given(context, name)}
        self.telling.check({f"--{name.replace('order', 'sort')}" for name in given}, "hajek")

    def sums(self, estimate: Any, wish: Wish) -> tuple[list[tuple[str, str]], dict[str, Any]]:
        """Say the sum of numbers, if they are asked for: to people, and to programs."""
        if self.mean is None:
            return [], {}
        scope = wish.scope_of(estimate)
        return rows_of_sum(estimate, scope), record_of_sum(estimate, scope)

    def settle(self, data: Input) -> tuple[Answers, Columns, Any]:
        """Read the answers: the files, their codes, and the labels.

        Raises
        ------
        InvalidValueError
            If they cannot be used.
        OSError
            If a file cannot be read.
        """
        stated: Any = self.stated if self.mean is None else self.mean
        answers = data.scan([self.column])
        given = {} if stated is None else {self.column: stated}
        answers, domains, found = settled(answers, given)
        way = "--mean LOW:HIGH with --mechanism verified asks for their mean"
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
    r"""Count answers under secret sharing, so that no server sees any answer.

    Every person's answer is split into shares among several parties, at least one of which must be
    honest. They see only the sum. Hidden coins ([bold]sampling[/], [bold]two-stage[/]) or noise
    that no party knows ([bold]discrete-laplace[/], [bold]discrete-gaussian[/], [bold]skellam[/])
    make the sum private. With [bold]verified[/], every answer has a proof that it is one vote. With
    verified and --mean, the proof says that it is one number within the bounds, and the result is
    the mean. [bold]recommend[/] compares all mechanisms by computed error.

    This command runs all parties in one process, so it needs all the answers. Use it to see what a
    mechanism gives and costs before you deploy it. turnout.distributed.transport runs the parties
    on separate machines.

    Without --labels or --labels-file, the labels are taken from the column. They are then treated
    as public, and are part of the output.

    --report writes a page for people, as turnout survey does, with the sentence to publish.

    --json prints what estimate --json prints, and guarantee, parameters (the calibrated values),
    expected_error (the root mean squared error of a frequency, or of the mean), floor_holds
    (whether these answers reach the --floor; null if the mechanism needs none) and costs (an object
    for each role: parties, and means for one party). With --mean it also prints sum: an object with
    value, low and high.

    [bold]Examples:[/]

        turnout aggregate adult.csv -c occupation -m discrete-laplace --epsilon 1

        turnout aggregate adult.csv -c occupation -m sampling --epsilon 1 --delta 1e-5 \
            --dummies 100 --plot occupations.png

        turnout aggregate adult.csv -c occupation -m skellam -e 1 -d 1e-6 --report jobs.html

        turnout aggregate adult.csv -c occupation -m verified --epsilon 1

        turnout aggregate adult.csv -c hours_per_week --mean 0:99 -m verified --epsilon 1

        turnout aggregate adult.csv -c occupation -m recommend --epsilon 1
    """
    arguments = protection.arguments(context)
    compared = protection.mechanism == "recommend"
    _refuse_contradictions(context, compared, processing, page)
    question.check(context, protection.mechanism)
    page.check(data.paths)
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
        numbers = question.mean is not None
        chosen = mechanism_of(protection.mechanism, domain, users, arguments, numbers=numbers)
    holds = floor_holds(arguments, domain, codes, "the guarantee")
    _note_seed(seed)
    with doing(f"a round of {users:,} users"):
        result = chosen.run(codes if numbers else domain.decode(codes), seed=seed)
    top = None if as_json else listing.top
    wish = Wish(
        "hajek", **vars(intervals), order=listing.order, top=top, postprocessing=processing.name
    )
    estimate = wish.made(replace(result.estimate, left_out=read.left_out))
    said, sums = question.sums(estimate, wish)
    head = [*summary(chosen, read.left_out), *said]
    shown = show_estimate(estimate, wish, question.telling, head)
    page.write(
        replace(result, estimate=estimate),
        **{**vars(intervals), "order": listing.order, "top": listing.top},
        notes=page_notes(chosen, seed, holds),
    )
    more = {**json_object(chosen, result.costs), "floor_holds": holds, **sums}
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


def _note_seed(seed: int | None) -> None:
    """Say what a seed is for."""
    note_seed(seed, "remove the noise")
