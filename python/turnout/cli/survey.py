"""``turnout survey``: a table of answers in, a table of shares with intervals out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal

import typer

from turnout.cli import options
from turnout.cli.answers import by_column, scanned, settled, stated_labels
from turnout.cli.numbers import read_bounds
from turnout.cli.running import output, refusing
from turnout.cli.showing.estimates import Shown, Wish, print_told, show, show_estimate
from turnout.cli.tables import print_json, printable
from turnout.collecting.keys import shown_part
from turnout.reporting.frequencies import SHARES
from turnout.reporting.telling import Row, Told, json_group, json_record
from turnout.reporting.words import decimals, limits, percent, rounded
from turnout.surveying import NumberEstimate, NumberGroups, ShareGroups, SurveyResults
from turnout.surveying.asking import QUANTILES, survey_columns
from turnout.surveying.local import question_of

#: So many labels are shown.
_TOP: Final = 20


_check_delta = options.accepting(lambda value: 0 <= value <= 1, "between 0 and 1")


def _shares(text: str) -> tuple[float, ...]:
    try:
        shares = tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not A,B,C, shares between 0 and 1") from error
    if not all(0.0 < share < 1.0 for share in shares):
        raise typer.BadParameter(f"{text!r} is not A,B,C, shares between 0 and 1")
    return shares


@refusing
def survey(
    sources: options.Sources,
    *,
    column: Annotated[list[str], typer.Option("--column", "-c")],
    epsilon: options.Epsilon,
    by: list[str] | None = None,
    participation: options.Participation = 1.0,
    labels: options.LabelsByColumn = None,
    labels_file: options.LabelsFile = None,
    bounds: Annotated[list[str] | None, typer.Option(metavar="[COLUMN=]LOW:HIGH")] = None,
    mean: Annotated[list[str] | None, typer.Option(metavar="[COLUMN=]LOW:HIGH")] = None,
    quantiles: Annotated[Any, typer.Option(metavar="A,B,C", parser=_shares)] = None,
    missing: options.Missing = None,
    missing_value: options.MissingValues = None,
    trim: options.Trim = False,
    trust: Literal["local", "aggregators"] = "local",
    delta: Annotated[float | None, typer.Option(callback=_check_delta)] = None,
    parties: Annotated[int | None, typer.Option(min=2)] = None,
    level: options.Level = 0.95,
    simultaneous: options.Simultaneous = None,
    clip: options.Clip = False,
    top: options.Top = str(_TOP),
    as_json: options.AsJson = False,
    seed: options.Seed = None,
) -> None:
    """Randomize the answers of columns and show how often each is given, with intervals.

    Each answer is randomized by itself, by the oracle of smallest error; only the reports are
    counted, and none is written to a file. To hand reports over, see turnout randomize. Of several
    columns each person answers one, drawn at random, or all with parts of epsilon, whichever has
    the smaller error.

    Without --labels the labels are those of the data, which are then taken to be public.

    [bold]Examples:[/]

        turnout survey answers.csv -c vote -e 1 --by region

        turnout survey people.parquet -c age -e 2 --bounds 0:120

        turnout survey answers.csv -c vote -c age -e 2 --bounds age=0:120

    Parameters
    ----------
    column
        Column with the answers; repeatable.
    epsilon
        Privacy of all that a person reports; less is more.
    by
        A column of groups, which are not protected; repeatable.
    participation
        Probability that a person reports.
    bounds
        Mean and quantiles of a column of numbers; repeatable.
    mean
        The mean alone of a column of numbers, more precisely; repeatable.
    quantiles
        With --bounds: which quantiles, the quartiles if not given.
    trust
        local: nobody; aggregators: count under secret sharing, with far less error.
    delta
        With --trust aggregators: the guarantee may have a delta.
    parties
        With --trust aggregators: how many add up; 3.
    simultaneous
        Make the level hold for many intervals at once.
    """
    if len(set(column)) < len(column):
        raise typer.BadParameter("names a column twice", param_hint="--column")
    given: dict[str, dict[str, Any]] = {
        "--labels": stated_labels(labels, labels_file, column),
        "--bounds": by_column("--bounds", bounds, column, read_bounds),
        "--mean": by_column("--mean", mean, column, read_bounds),
    }
    _refuse_contradictions(given, column)
    shares = not {*column} <= {*given["--bounds"], *given["--mean"]}
    options.refuse_if(
        (
            quantiles is not None and not given["--bounds"],
            "--quantiles",
            "are of numbers: needs --bounds",
        ),
        (clip and not shares, "--clip", "is for shares, and no column has any"),
        (top != _TOP and not shares, "--top", "is for labels, and no column has any"),
        (
            simultaneous is not None and {*column} <= {*given["--bounds"]},
            "--simultaneous",
            "is for shares and means alone",
        ),
    )
    asked = {name: bounds for each in given.values() for name, bounds in each.items()}
    answers = scanned(
        sources, column, missing=missing, missing_values=missing_value, trim=trim, group_by=by
    )
    answers, domains, found = settled(answers, asked)
    quantiles = quantiles or QUANTILES
    questions = {
        name: question_of(
            answers,
            name,
            domain,
            quantiles if name in given["--bounds"] else (),
            found.get(name),
        )
        for name, domain in domains.items()
    }
    result = survey_columns(
        answers,
        questions,
        epsilon=epsilon,
        participation=participation,
        trust=trust,
        delta=delta,
        parties=parties,
        seed=seed,
    )
    shown = None if as_json else top
    wish = Wish("hajek", level, simultaneous, top=shown, clip=clip)
    if clip:
        result = result.clip_intervals()
    several = result if isinstance(result, SurveyResults) else {column[0]: result}
    if as_json:
        records = {
            name: {**_shown(one, wish).make_record(), "notes": list(one.notes)}
            for name, one in several.items()
        }
        if result is several:
            whole = {
                "statement": list(result.statement),
                "notes": list(result.notes),
                "left_out": result.left_out.to_dict(),
            }
            print_json({**whole, "columns": records})
        else:
            print_json(records[column[0]])
        return
    console = output()
    console.print(result.explain(), markup=False, highlight=False)
    for name, one in several.items():
        console.print()
        if result is several:
            console.print(printable(name), style="bold", markup=False, highlight=False)
        for part in _shown(one, wish).below:
            part(console) if callable(part) else console.print(part)


def _refuse_contradictions(given: Mapping[str, Mapping[str, Any]], columns: Sequence[str]) -> None:
    numbers = {**given["--bounds"], **given["--mean"]}
    for name in columns:
        if name in given["--bounds"] and name in given["--mean"]:
            raise typer.BadParameter(f"{name!r} has --bounds too", param_hint="--mean")
        if name in numbers and name in given["--labels"]:
            option = "--mean" if name in given["--mean"] else "--bounds"
            raise typer.BadParameter("is for numbers, which have no labels", param_hint=option)


def _shown(result: Any, wish: Wish) -> Shown:
    """Show a column as other commands show its kind."""
    estimate = result.estimate
    if isinstance(estimate, (NumberEstimate, NumberGroups)):
        return Shown(
            lambda: _numbers(result, wish),
            result.to_arrow,
            [],
            [lambda console: print_told(console, _told(result, wish.level), wish)],
            result.plot,
        )
    if isinstance(estimate, ShareGroups):
        return Shown(
            lambda: _share_groups(result, wish),
            result.to_arrow,
            [],
            [lambda console: print_told(console, SHARES.told(estimate, wish), wish)],
            result.plot,
        )
    if result.mechanism is None:
        return show(result.tally, wish)
    shown = show_estimate(estimate, wish, SHARES, [])
    guarantee = {"guarantee": str(result.mechanism.guarantee)}
    return replace(shown, make_record=lambda: {**shown.make_record(), **guarantee})


def _numbers(result: Any, wish: Wish) -> dict[str, Any]:
    tally = result.tally
    return {
        "column": result.column,
        "level": wish.level,
        "nodes": tally.nodes,
        "received": tally.received,
        "left_out": tally.left_out.to_dict(),
        "plan": tally.plan.to_dict(),
        "estimates": [json_record(each) for each in result.to_records(wish.level)],
    }


def _told(result: Any, level: float) -> Told:
    """Tell mean and quantiles."""
    records = result.to_records(level)
    digits = decimals(each["standard_error"] for each in records if each["standard_error"])
    rows = []
    for each in records:
        value, error = (
            "" if each[name] is None else rounded(each[name], digits)
            for name in ("value", "standard_error")
        )
        cells = [each["statistic"], value, error, limits(each["low"], each["high"], digits)]
        group = tuple(map(shown_part, each.get("group", {}).values()))
        rows.append(Row(cells, group, each.get("received"), each.get("reason")))
    head = ["statistic", "value", "std. error", f"{percent(level)} interval"]
    return Told("Mean and quantiles", head, rows, 1, result.by)


def _share_groups(result: Any, wish: Wish) -> dict[str, Any]:
    groups = [
        {
            "group": json_group(dict(zip(result.by, key, strict=True))),
            "nodes": one.nodes,
            "received": one.received,
            "left_out": one.left_out.to_dict(),
            "plan": result.mechanism[key].to_dict(),
            "guarantee": str(result.mechanism[key].guarantee),
        }
        for key, one in result.estimate.items()
    ]
    return {
        "column": result.column,
        "level": wish.level,
        "simultaneous": wish.simultaneous,
        "nodes": sum(group["nodes"] for group in groups),
        "received": sum(group["received"] for group in groups),
        "left_out": result.left_out.to_dict(),
        "epsilon": next(iter(result.mechanism.values())).epsilon,
        "groups": groups,
        **SHARES.values(result.estimate, wish),
    }
