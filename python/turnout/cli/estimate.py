"""``turnout estimate``: a tally in, frequencies with intervals out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from turnout import FrequencyEstimate, Tally
from turnout._atomic import atomic_write
from turnout._extras import require
from turnout.cli.running import check_level, note, output, refuse_overwriting_inputs, refusing
from turnout.cli.tables import estimates_table, number, percent, properties
from turnout.cli.tally import describe_participation
from turnout.errors import CorruptDataError, EstimatorError

__all__ = [
    "Order",
    "Projection",
    "Simultaneous",
    "describe_interval",
    "estimate",
    "interval_rows",
    "ordered",
]

Method = Literal["hajek", "horvitz_thompson", "c_hat", "g", "T", "c"]
Simultaneous = Literal["bonferroni", "sidak"]
Projection = Literal["none", "simplex", "norm_sub", "clip_normalize"]
Order = Literal["frequency", "label", "domain"]

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
) -> None:
    """Estimate how often each answer is given, with honest intervals.

    The noise of the reports is taken out, so a rare answer can come out below zero; --project
    repairs that at the price of a small bias. Intervals belong to the estimate before projection.

    [bold]Examples:[/]

        turnout estimate week.tally --interval 0.9 --sort label

        turnout estimate week.tally --project simplex --plot answers.png

        turnout estimate week.tally --json | jq '.estimates[0]'
    """
    _check_plot(plot)
    tally = _read(source)
    result = tally.estimate(method).project(project)
    records = ordered(result.to_records(level, simultaneous=simultaneous), order)
    interval = describe_interval(result, level, simultaneous)
    if plot is not None:
        refuse_overwriting_inputs(plot, [source])
        _save_plot(result, plot, level, simultaneous)
    if as_json:
        typer.echo(json.dumps(_json_object(result, records, interval)))
        return
    console = output()
    console.print(properties(f"Estimates from {source}", _summary(result, interval)))
    console.print()
    console.print(estimates_table(records, level=level, width=console.width))
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
    if result.postprocessing != "none":
        rows.append(("projected", f"{result.postprocessing} (intervals are from before it)"))
    return rows


def _save_plot(
    result: FrequencyEstimate, plot: Path, level: float, simultaneous: str | None
) -> None:
    require("matplotlib", "cli").use("Agg")
    axes = result.plot(level=level, simultaneous=simultaneous)
    figure: Any = axes.figure
    try:
        with atomic_write(plot) as temporary:
            figure.savefig(temporary, format=_PICTURES[plot.suffix.lower()], dpi=150)
    finally:
        require("matplotlib.pyplot", "cli").close(figure)


def _read(source: Path) -> Tally:
    try:
        return Tally.from_bytes(source.read_bytes())
    except CorruptDataError as error:
        raise type(error)(f"{source}: {error}") from error


def _check_plot(plot: Path | None) -> None:
    if plot is not None and plot.suffix.lower() not in _PICTURES:
        known = ", ".join(_PICTURES)
        raise typer.BadParameter(f"{plot} does not end in {known}", param_hint="--plot")
