"""``turnout estimate``: a tally in, frequencies with intervals out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from turnout import FrequencyEstimate, GroupedTally
from turnout._atomic import atomic_write
from turnout._extras import require
from turnout.cli.estimate_groups import (
    chosen_groups,
    draw_groups,
    groups_table,
    interval_of,
    json_records,
)
from turnout.cli.running import check_level, note, output, refuse_overwriting_inputs, refusing
from turnout.cli.tables import number, percent, print_estimates, properties
from turnout.cli.tallies import read_tally
from turnout.cli.tally import describe_participation
from turnout.errors import EstimatorError, InvalidValueError

__all__ = [
    "Method",
    "Order",
    "Over",
    "Projection",
    "Simultaneous",
    "Top",
    "describe_interval",
    "estimate",
    "interval_rows",
    "ordered",
]

Method = Literal["hajek", "horvitz_thompson", "c_hat", "g", "T", "c"]
Simultaneous = Literal["bonferroni", "sidak"]
Projection = Literal["none", "simplex", "norm_sub", "clip_normalize"]
Order = Literal["frequency", "label", "domain"]
Over = Literal["labels", "groups", "all"]


def top_of(text: str) -> int | None:
    """Read how many labels are shown; None for all."""
    if text == "all":
        return None
    if not re.fullmatch("[1-9][0-9]{0,17}", text, re.ASCII):
        raise typer.BadParameter(f"{text} is neither a number of labels nor all")
    return int(text)


Top = Annotated[
    Any,
    typer.Option(
        "--top",
        metavar="N|all",
        parser=top_of,
        help="Show the labels with the largest shares only; --json has all.",
    ),
]

_TOGETHER = {
    "labels": "labels of a group",
    "groups": "groups of a label",
    "all": "labels of all groups",
}

_PICTURES = {".png": "png", ".svg": "svg", ".pdf": "pdf"}


@refusing
def estimate(
    source: Annotated[
        Path, typer.Argument(metavar="TALLY", help="A file that turnout tally wrote.")
    ],
    *,
    method: Annotated[
        Method,
        typer.Option(
            "--method",
            help="Estimator. hajek suits every participation; c is biased unless everyone reports.",
        ),
    ] = "hajek",
    level: Annotated[
        float,
        typer.Option("--interval", callback=check_level, help="Confidence level of the intervals."),
    ] = 0.95,
    simultaneous: Annotated[
        Simultaneous | None,
        typer.Option(
            "--simultaneous", help="Make the level hold for all labels at once, not for each."
        ),
    ] = None,
    project: Annotated[
        Projection,
        typer.Option(
            "--project",
            help="Make the frequencies a distribution: no negative ones, a sum of 1.",
        ),
    ] = "none",
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Save a picture: .png, .svg or .pdf."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
    order: Annotated[Order, typer.Option("--sort", help="Order of the labels.")] = "frequency",
    top: Top = "20",
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="COLUMN",
            help="Of a grouped tally: the columns to group by; repeatable. All by default.",
        ),
    ] = None,
    over: Annotated[
        Over,
        typer.Option("--over", help="Of a grouped tally: what --simultaneous holds for at once."),
    ] = "all",
) -> None:
    """Estimate how often each answer is given, with honest intervals.

    The noise of the reports is taken out, so a rare answer can come out below zero; --project
    repairs that at the price of a small bias. Intervals belong to the estimate before projection.

    Of a grouped tally each group is estimated by itself, and --plot draws lines over time if a
    column of the groups holds dates.

    [bold]Examples:[/]

        turnout estimate week.tally --interval 0.9 --sort label

        turnout estimate week.tally --project simplex --plot answers.png

        turnout estimate airports.tally --top 100

        turnout estimate week.tally --json | jq '.estimates[0]'

        turnout estimate countries.tally --by day --simultaneous sidak --plot days.png
    """
    _check_plot(plot)
    tally = read_tally(source)
    if plot is not None:
        refuse_overwriting_inputs(plot, [source])
    if isinstance(tally, GroupedTally):
        grouped = chosen_groups(tally, by or [])
        _estimate_groups(
            source,
            grouped,
            (method, project, order),
            (level, simultaneous, over),
            top=None if as_json else top,
            plot=plot,
            as_json=as_json,
        )
        return
    if by:
        raise InvalidValueError(f"{source}: is not grouped, so it has no column {by[0]!r}")
    result = tally.estimate(method).project(project)
    top = None if as_json else top
    records = ordered(result.to_records(level, simultaneous=simultaneous, top=top), order)
    interval = describe_interval(result, level, simultaneous)
    if plot is not None:
        _save_plot(lambda: result.plot(level=level, simultaneous=simultaneous).figure, plot)
    if as_json:
        typer.echo(json.dumps(_json_object(result, records, interval)))
        return
    console = output()
    console.print(properties(f"Estimates from {source}", _summary(result, interval)))
    console.print()
    print_estimates(console, records, result.domain.size, level=level)
    if plot is not None:
        console.print(f"\nThe picture: {plot}", markup=False, soft_wrap=True)


def describe_interval(
    result: FrequencyEstimate, level: float, simultaneous: str | None
) -> dict[str, Any]:
    """Say how the intervals were made, or why there are none."""
    description: dict[str, Any] = {"level": level, "simultaneous": simultaneous}
    try:
        interval = result.interval(level, simultaneous=simultaneous)
    except EstimatorError as error:
        note(str(error))
        return {**description, "method": None}
    return {**description, "method": interval.method}


def ordered(records: list[dict[str, Any]], order: Order) -> list[dict[str, Any]]:
    """Sort the records of an estimate."""
    if order == "frequency":
        return sorted(records, key=lambda record: -record["frequency"])
    if order == "label":
        try:
            return sorted(records, key=lambda record: record["label"])
        except TypeError:  # labels of several types have no order; their texts do
            return sorted(records, key=lambda record: str(record["label"]))
    return records


def _json_object(
    result: FrequencyEstimate, records: list[dict[str, Any]], interval: dict[str, Any]
) -> dict[str, Any]:
    return {
        "nodes": result.nodes,
        "received": result.received,
        "method": result.method,
        "postprocessing": result.postprocessing,
        "interval": interval,
        "plan": result.plan.to_dict(),
        "estimates": records,
    }


def _summary(result: FrequencyEstimate, interval: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [
        ("nodes", f"{result.nodes:,}"),
        ("reports", f"{result.received:,}"),
        ("participation", describe_participation(result.plan)),
        ("oracle", result.plan.oracle.name.replace("_", " ")),
        ("epsilon", number(result.plan.oracle.epsilon)),
        ("method", result.method),
    ]
    return rows + interval_rows(result, interval)


def interval_rows(result: FrequencyEstimate, interval: dict[str, Any]) -> list[tuple[str, str]]:
    """Say what the intervals are, and what was done to the frequencies."""
    rows = []
    if interval["method"] is not None:
        together = f"all {result.domain.size} labels at once ({interval['simultaneous']})"
        scope = "each label by itself" if interval["simultaneous"] is None else together
        level = percent(interval["level"])
        rows.append(("interval", f"{level}, {interval['method']}, for {scope}"))
    return rows + _projection_rows(result.postprocessing)


def _projection_rows(postprocessing: str) -> list[tuple[str, str]]:
    if postprocessing == "none":
        return []
    return [("projected", f"{postprocessing} (intervals are from before it)")]


def _estimate_groups(
    source: Path,
    grouped: GroupedTally,
    estimated: tuple[Method, Projection, Order],
    limits: tuple[float, Simultaneous | None, Over],
    *,
    top: int | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Estimate each group, and print or draw the result."""
    (method, project, order), (level, simultaneous, over) = estimated, limits
    result = grouped.estimate(method).project(project)
    interval, reason = interval_of(result, level, simultaneous, over)
    if reason is not None:
        note(reason)
    records = result.to_records(level, simultaneous=simultaneous, over=over, top=top)
    size = min(top or grouped.domain.size, grouped.domain.size)
    records = [
        record
        for start in range(0, len(records), size)
        for record in ordered(records[start : start + size], order)
    ]
    if plot is not None:
        _save_plot(lambda: draw_groups(result, level, simultaneous, over), plot)
    if as_json:
        described = {
            "nodes": grouped.nodes,
            "received": grouped.received,
            "method": result.method,
            "postprocessing": result.postprocessing,
            "interval": interval,
            "plan": result.plan.to_dict(),
            "groups": list(grouped.names),
            "estimates": json_records(records),
        }
        typer.echo(json.dumps(described))
        return
    rows = [
        ("groups", f"{len(grouped):,} by {', '.join(grouped.names)}"),
        ("nodes", f"{grouped.nodes:,}"),
        ("reports", f"{grouped.received:,}"),
        ("participation", describe_participation(result.plan)),
        ("oracle", result.plan.oracle.name.replace("_", " ")),
        ("epsilon", number(result.plan.oracle.epsilon)),
        ("method", result.method),
    ]
    if reason is None:
        together = f"all {_TOGETHER[over]} at once ({simultaneous})"
        scope = "each by itself" if simultaneous is None else together
        rows.append(("interval", f"{percent(level)}, for {scope}"))
    rows += _projection_rows(result.postprocessing)
    console = output()
    console.print(properties(f"Estimates from {source}", rows))
    console.print()
    console.print(groups_table(grouped.names, records, level))
    if size < grouped.domain.size:
        rest = f"{grouped.domain.size - size:,} of {grouped.domain.size:,} labels"
        console.print(f"\n{rest} are left out in each group; --top all shows them", soft_wrap=True)
    if plot is not None:
        console.print(f"\nThe picture: {plot}", markup=False, soft_wrap=True)


def _save_plot(draw: Callable[[], Any], plot: Path) -> None:
    require("matplotlib", "cli").use("Agg")
    figure = draw()
    try:
        with atomic_write(plot) as temporary:
            figure.savefig(temporary, format=_PICTURES[plot.suffix.lower()], dpi=150)
    finally:
        require("matplotlib.pyplot", "cli").close(figure)


def _check_plot(plot: Path | None) -> None:
    if plot is not None and plot.suffix.lower() not in _PICTURES:
        known = ", ".join(_PICTURES)
        raise typer.BadParameter(f"{plot} does not end in {known}", param_hint="--plot")
