"""``turnout survey``: a table of answers in, a table of shares with intervals out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal

import typer
from rich.table import Table

from turnout import GroupedTally
from turnout.cli.answers import (
    LabelsByColumn,
    LabelsFile,
    Missing,
    MissingValues,
    Sources,
    by_column,
    scanned,
    settled,
    stated_labels,
)
from turnout.cli.estimate import Top
from turnout.cli.numbers import read_bounds
from turnout.cli.options import AsJson, Level, Seed
from turnout.cli.running import check_positive, check_rate, output, refuse_if, refusing
from turnout.cli.showing import showing
from turnout.cli.showing.frequencies import show_estimate
from turnout.cli.showing.shown import Clip, Simultaneous, Wish, json_group, json_record
from turnout.cli.tables import percent, printable, table
from turnout.frequency.estimation.answer import ordered
from turnout.surveying import NumberEstimate, NumberGroups, ShareGroups, SurveyResults
from turnout.surveying.asking import QUANTILES, Column, survey_columns

#: So many labels are shown.
_TOP: Final = 20


def _shares(text: str) -> tuple[float, ...]:
    try:
        shares = tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not A,B,C, shares between 0 and 1") from error
    if not all(0.0 < share < 1.0 for share in shares):
        raise typer.BadParameter(f"{text!r} is not A,B,C, shares between 0 and 1")
    return shares


def _delta(value: float | None) -> float | None:
    if value is not None and not 0.0 <= value <= 1.0:
        raise typer.BadParameter(f"{value} is not between 0 and 1")
    return value


@refusing
def survey(
    sources: Sources,
    *,
    column: Annotated[list[str], typer.Option("--column", "-c")],
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", callback=check_positive)],
    by: list[str] | None = None,
    participation: Annotated[
        float, typer.Option("--participation", "-p", callback=check_rate)
    ] = 1.0,
    labels: LabelsByColumn = None,
    labels_file: LabelsFile = None,
    bounds: Annotated[list[str] | None, typer.Option(metavar="[COLUMN=]LOW:HIGH")] = None,
    mean: Annotated[list[str] | None, typer.Option(metavar="[COLUMN=]LOW:HIGH")] = None,
    quantiles: Annotated[Any, typer.Option(metavar="A,B,C", parser=_shares)] = None,
    missing: Missing = None,
    missing_value: MissingValues = None,
    trust: Literal["local", "aggregators"] = "local",
    delta: Annotated[float | None, typer.Option(callback=_delta)] = None,
    parties: Annotated[int | None, typer.Option(min=2)] = None,
    level: Level = 0.95,
    simultaneous: Simultaneous | None = None,
    clip: Clip = False,
    top: Top = str(_TOP),
    as_json: AsJson = False,
    seed: Seed = None,
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
    refuse_if(
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
    answers = scanned(sources, column, missing=missing, missing_values=missing_value, group_by=by)
    answers, domains = settled(answers, asked, say=False)
    quantiles = quantiles or QUANTILES
    columns = {
        name: Column(
            domain,
            labels_of_data=name not in asked,
            quantiles=quantiles if name in given["--bounds"] else (),
        )
        for name, domain in domains.items()
    }
    result = survey_columns(
        answers,
        columns,
        epsilon=epsilon,
        participation=participation,
        trust=trust,
        delta=delta,
        parties=parties,
        seed=seed,
    )
    shown = None if as_json else top
    wish = Wish("hajek", level, simultaneous, "all", "none", "frequency", shown, frozenset(), clip)
    if clip:
        result = result.clip_intervals()
    several = result if isinstance(result, SurveyResults) else {column[0]: result}
    if as_json:
        records = {
            name: {**_shown(one, wish)[0](), "notes": list(one.notes)}
            for name, one in several.items()
        }
        if result is several:
            whole = {"statement": list(result.statement), "notes": list(result.notes)}
            typer.echo(json.dumps({**whole, "columns": records}))
        else:
            typer.echo(json.dumps(records[column[0]]))
        return
    console = output()
    console.print(result.explain(), markup=False, highlight=False)
    for name, one in several.items():
        console.print()
        if result is several:
            console.print(printable(name), style="bold", markup=False, highlight=False)
        for part in _shown(one, wish)[1]:
            part(console) if callable(part) else console.print(part)


def _refuse_contradictions(given: Mapping[str, Mapping[str, Any]], columns: Sequence[str]) -> None:
    numbers = {**given["--bounds"], **given["--mean"]}
    for name in columns:
        if name in given["--bounds"] and name in given["--mean"]:
            raise typer.BadParameter(f"{name!r} has --bounds too", param_hint="--mean")
        if name in numbers and name in given["--labels"]:
            option = "--mean" if name in given["--mean"] else "--bounds"
            raise typer.BadParameter("is for numbers, which have no labels", param_hint=option)


def _shown(result: Any, wish: Wish) -> tuple[Callable[[], dict[str, Any]], Sequence[Any]]:
    """Make the object of ``--json``, and what is printed, as other commands show its kind."""
    estimate = result.estimate
    if isinstance(estimate, ShareGroups):
        records = _shares_of_groups(result, wish)
        return partial(_share_groups, result, records, wish), [_table(result, records, wish)]
    if isinstance(estimate, (NumberEstimate, NumberGroups)):
        records = result.to_records(wish.level)
        return partial(_numbers, result, wish), [_table(result, records, wish)]
    if result.mechanism is not None:
        shown = show_estimate(estimate, wish, [])
        guarantee = {"guarantee": str(result.mechanism.guarantee)}
        return lambda: {**shown.record, **guarantee}, shown.below
    kind = showing(result.tally.plan)
    make = kind.estimate_groups if isinstance(result.tally, GroupedTally) else kind.estimate
    made = make(result.tally, wish)
    return made.make_record, made.below


def _numbers(result: Any, wish: Wish) -> dict[str, Any]:
    tally = result.tally
    return {
        "column": result.column,
        "level": wish.level,
        "nodes": tally.nodes,
        "received": tally.received,
        "plan": tally.plan.to_dict(),
        "estimates": [json_record(each) for each in result.to_records(wish.level)],
    }


def _share_groups(result: Any, records: list[dict[str, Any]], wish: Wish) -> dict[str, Any]:
    groups = [
        {
            "group": json_group(dict(zip(result.by, key, strict=True))),
            "nodes": one.nodes,
            "received": one.received,
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
        "epsilon": next(iter(result.mechanism.values())).epsilon,
        "groups": groups,
        "estimates": [json_record(each) for each in records],
    }


def _shares_of_groups(result: Any, wish: Wish) -> list[dict[str, Any]]:
    """List the shares of all groups, in the order that is wished for."""
    return [
        {"group": dict(zip(result.by, key, strict=True)), "nodes": one.nodes, **each}
        for key, one in result.estimate.items()
        for each in one.columns(
            ordered(one, wish.order, wish.top), wish.level, wish.simultaneous
        ).records()
    ]


def _table(result: Any, records: list[dict[str, Any]], wish: Wish) -> Table:
    """Draw the records of a result as they are."""
    hidden = ("group", "low", "high", "reason", "count", "received")
    names = [name for name in records[0] if name not in hidden]
    by = list(map(printable, result.by))
    head = [*by, *(name.replace("_", " ") for name in names), f"{percent(wish.level)} interval"]
    rows = []
    for each in records:
        parts = [_cell("", part) for part in each.get("group", {}).values()]
        limits = ""
        if each["low"] is not None:
            limits = f"{_cell('low', each['low'])} to {_cell('high', each['high'])}"
        rows.append([*parts, *(_cell(name, each[name]) for name in names), limits])
    words = {
        *range(len(by)),
        *(head.index(name) for name in ("statistic", "label") if name in names),
    }
    return table(head, rows, right={*range(len(head))} - words)


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and name:
        return f"{value:,.4g}"
    return f"{value:,}" if name == "nodes" else printable(str(value))
