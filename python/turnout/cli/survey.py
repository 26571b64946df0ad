"""``turnout survey``: a table of answers in, a table of shares with intervals out."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from turnout import Bounds, Everyone, GroupedTally, Plan
from turnout.cli.answers import (
    ColumnName,
    Labels,
    LabelsFile,
    Missing,
    MissingValues,
    check_labels,
    read_labels,
)
from turnout.cli.estimate import Top
from turnout.cli.running import check_epsilon, check_level, check_rate, output, refusing
from turnout.cli.scans import Sources, in_domain, scanned, settled
from turnout.cli.showing import showing
from turnout.cli.showing.shown import Simultaneous, Wish
from turnout.mean import Duchi
from turnout.surveying import survey_answers

__all__ = ["survey"]


def _bounds(text: str) -> tuple[float, float]:
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not LOW:HIGH, two numbers") from error


@refusing
def survey(
    sources: Sources,
    *,
    column: ColumnName,
    epsilon: Annotated[
        float,
        typer.Option(
            "--epsilon",
            "-e",
            callback=check_epsilon,
            help="Privacy of one report; less is more.",
        ),
    ],
    by: Annotated[
        list[str] | None,
        typer.Option("--by", help="A column of groups, which are not protected; repeatable."),
    ] = None,
    participation: Annotated[
        float,
        typer.Option(
            "--participation",
            "-p",
            callback=check_rate,
            help="Probability that a person reports.",
        ),
    ] = 1.0,
    labels: Labels = None,
    labels_file: LabelsFile = None,
    mean: Annotated[
        Any,
        typer.Option(
            "--mean", metavar="LOW:HIGH", parser=_bounds, help="The mean of a column of numbers."
        ),
    ] = None,
    missing: Missing = None,
    missing_value: MissingValues = None,
    level: Annotated[
        float,
        typer.Option("--interval", callback=check_level, help="Confidence level of the intervals."),
    ] = 0.95,
    simultaneous: Annotated[
        Simultaneous | None,
        typer.Option("--simultaneous", help="Make the level hold for many intervals at once."),
    ] = None,
    top: Top = "20",
    as_json: Annotated[bool, typer.Option("--json", help="Print one object for programs.")] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", min=0, help="For tests only: whoever knows the seed can undo the noise."
        ),
    ] = None,
) -> None:
    """Randomize the answers of a column and show how often each is given, with intervals.

    Each answer is randomized by itself, by the oracle of smallest error; only the reports are
    counted, and none is written to a file. To hand reports over, see turnout randomize.

    Without --labels the labels are those of the data, which are then taken to be public.

    [bold]Examples:[/]

        turnout survey answers.csv -c vote -e 1 --by region

        turnout survey people.parquet -c age -e 2 --mean 0:120
    """
    check_labels(labels, labels_file)
    if mean is not None and (labels is not None or labels_file is not None):
        raise typer.BadParameter("is for numbers, which have no labels", param_hint="--mean")
    stated = read_labels(labels, labels_file)
    answers = scanned(sources, column, missing=missing, missing_values=missing_value, group_by=by)
    domain: Any = mean
    if mean is None:
        answers, domain = settled(answers, labels, labels_file, missing, say=False)
    else:
        # What a missing number is read as does not depend on the mechanism.
        answers = in_domain(answers, Plan(Duchi(epsilon, mean), Everyone()), missing)
    result = survey_answers(
        answers,
        domain if mean is None else Bounds.from_pair(mean),
        epsilon=epsilon,
        participation=participation,
        seed=seed,
        labels_of_data=mean is None and stated is None,
    )
    wish = Wish("hajek", level, simultaneous, "all", "none", "frequency", top, frozenset())
    kind = showing(result.tally.plan)
    make = kind.estimate_groups if isinstance(result.tally, GroupedTally) else kind.estimate
    shown = make(result.tally, wish)
    if as_json:
        typer.echo(json.dumps({**shown.record, "notes": list(result.notes)}))
        return
    console = output()
    console.print(result.explain(), markup=False, highlight=False)
    console.print()
    shown.body(console)
