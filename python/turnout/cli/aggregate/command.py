"""``turnout aggregate``: one column of a file in, frequencies with intervals out."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from turnout.cli.account.shared import (
    AsJson,
    PictureFile,
    check_delta,
    check_picture,
    print_json,
    save_picture,
    table,
    up,
)
from turnout.cli.aggregate.mechanisms import Name, Wanted, check_parties, parameters, rows
from turnout.cli.answers import (
    Answers,
    ColumnName,
    Labels,
    LabelsFile,
    Missing,
    MissingValues,
    Source,
    check_labels,
    read_answers,
)
from turnout.cli.estimate import (
    Order,
    Projection,
    Simultaneous,
    describe_interval,
    interval_rows,
    ordered,
)
from turnout.cli.running import (
    check_epsilon,
    check_level,
    messages,
    note,
    output,
    refuse_overwriting_inputs,
    refusing,
)
from turnout.cli.tables import estimates_table, number, properties
from turnout.distributed import (
    AggregationMechanism,
    CostLedger,
    Recommendation,
    RoundResult,
)
from turnout.frequency import FrequencyEstimate

__all__ = ["aggregate"]

_STUDY = "all parties in this process, to study the mechanism; not a deployment"


@refusing
def aggregate(
    source: Source,
    *,
    column: ColumnName,
    epsilon: Annotated[
        float,
        typer.Option(
            "--epsilon",
            "-e",
            callback=check_epsilon,
            help="Privacy of what is published; less is more.",
        ),
    ],
    mechanism: Annotated[
        Name,
        typer.Option(
            "--mechanism", "-m", help="How the counts are protected; recommend compares all."
        ),
    ],
    delta: Annotated[
        float | None,
        typer.Option(
            "--delta", "-d", callback=check_delta, help="Not needed for discrete-laplace."
        ),
    ] = None,
    floor: Annotated[
        int | None,
        typer.Option(
            "--floor", min=1, help="Sampling: every item has so many people, whatever happens."
        ),
    ] = None,
    dummies: Annotated[
        int | None,
        typer.Option(
            "--dummies",
            min=1,
            help="Sampling: people that do not exist, on every item; holds for any data.",
        ),
    ] = None,
    parties: Annotated[
        str | None,
        typer.Option(
            "--parties",
            metavar="M|users",
            callback=check_parties,
            help="Who adds up: so many aggregators, or the users. 3 if left out.",
        ),
    ] = None,
    noise_source: Annotated[
        Literal["users", "parties"] | None,
        typer.Option("--source", help="Noise: who adds it. The users if left out."),
    ] = None,
    honest_aggregators: Annotated[
        int, typer.Option("--honest-aggregators", min=1, help="How many do not collude, at least.")
    ] = 1,
    max_colluding_users: Annotated[
        int, typer.Option("--max-colluding-users", min=0, help="How many users may collude.")
    ] = 0,
    max_missing_users: Annotated[
        int, typer.Option("--max-missing-users", min=0, help="How many users may be missing.")
    ] = 0,
    adjacency: Annotated[
        Literal["replace", "add_or_remove"],
        typer.Option("--adjacency", help="What is hidden: a person's item, or the person."),
    ] = "replace",
    reported: Annotated[
        int | None, typer.Option("--reported", min=1, help="Two-stage: items that a user reports.")
    ] = None,
    reporting: Annotated[
        Literal["uniform", "adaptive"] | None,
        typer.Option("--reporting", help="Two-stage: how they are drawn. uniform if left out."),
    ] = None,
    gamma: Annotated[
        float | None,
        typer.Option("--gamma", help="Two-stage, adaptive: how much likelier the own item is."),
    ] = None,
    collusion_bound: Annotated[
        int | None,
        typer.Option(
            "--collusion-bound", min=0, help="Two-stage: elect more users than this for an item."
        ),
    ] = None,
    elected: Annotated[
        int | None,
        typer.Option("--elected", min=1, help="Two-stage: elect exactly so many for an item."),
    ] = None,
    labels: Labels = None,
    labels_file: LabelsFile = None,
    missing: Missing = None,
    missing_value: MissingValues = None,
    run: Annotated[
        bool, typer.Option("--run", help="Run what --mechanism recommend finds best.")
    ] = False,
    level: Annotated[
        float,
        typer.Option(
            "--interval",
            "--level",
            callback=check_level,
            help="Confidence level of the intervals.",
        ),
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
    plot: PictureFile = None,
    as_json: AsJson = False,
    order: Annotated[Order, typer.Option("--sort", help="Order of the labels.")] = "frequency",
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="For tests only: whoever knows it can undo the noise."),
    ] = None,
) -> None:
    """Count answers under secret sharing, so that no server sees one, and the counts are private.

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
    expected_error (the root mean squared error of a frequency) and costs (an object for each role:
    parties, and means for one party).

    [bold]Examples:[/]

        turnout aggregate adult.csv -c occupation -m discrete-laplace --epsilon 1

        turnout aggregate adult.csv -c occupation -m sampling --epsilon 1 --delta 1e-5
            --dummies 100 --plot occupations.png

        turnout aggregate adult.csv -c occupation -m recommend --epsilon 1 --delta 1e-5
    """
    check_labels(labels, labels_file)
    check_picture(plot)
    wanted = Wanted(
        mechanism,
        {
            "epsilon": epsilon,
            "delta": delta,
            "honest_aggregators": honest_aggregators,
            "max_colluding_users": max_colluding_users,
            "max_missing_users": max_missing_users,
            "adjacency": adjacency,
        },
        {
            "floor": floor,
            "dummies": dummies,
            "parties": parties,
            "source": noise_source,
            "reported": reported,
            "reporting": reporting,
            "gamma": gamma,
            "collusion_bound": collusion_bound,
            "elected": elected,
        },
    )
    wanted.check()
    if run and mechanism != "recommend":
        raise typer.BadParameter("belongs to --mechanism recommend", param_hint="--run")
    answers = read_answers(
        source,
        column,
        labels=labels,
        labels_file=labels_file,
        missing=missing,
        missing_values=missing_value,
    )
    if plot is not None:
        refuse_overwriting_inputs(plot, [source])
    users = len(answers.values)
    comparison: Recommendation | None = None
    if mechanism == "recommend":
        with messages().status("comparing mechanisms"):
            comparison = wanted.recommendation(answers.domain, users)
        if not run:
            _show_comparison(comparison, plot=plot, as_json=as_json)
            return
        chosen = comparison.best
    else:
        with messages().status("calibrating"):
            chosen = wanted.mechanism(answers.domain, users)
    with messages().status(f"a round of {users:,} users"):
        result = chosen.run(answers.values, seed=seed)
    if seed is not None:
        note("made with --seed: fit for tests only, the noise can be computed again")
    estimate = result.estimate.project(project)
    records = ordered(estimate.to_records(level, simultaneous=simultaneous), order)
    interval = describe_interval(estimate, level, simultaneous)
    if plot is not None:
        save_picture(plot, lambda: estimate.plot(level=level, simultaneous=simultaneous))
    if as_json:
        found = _json_object(result, estimate, records, interval)
        if comparison is not None:
            found["recommendation"] = _comparison_records(comparison)
        print_json({**found, "dropped": answers.dropped})
        return
    console = output()
    if comparison is not None:
        console.print(_comparison_table(comparison))
        console.print()
    title = f"Aggregate of {source}, column {column!r}"
    console.print(properties(title, _summary(chosen, answers, estimate, interval)))
    console.print()
    console.print(estimates_table(records, level=level, width=console.width))
    console.print()
    console.print(_costs_table(result.costs))
    if plot is not None:
        console.print(f"\nThe picture: {plot}", markup=False, soft_wrap=True)


def _summary(
    mechanism: AggregationMechanism,
    answers: Answers,
    estimate: FrequencyEstimate,
    interval: dict[str, Any],
) -> list[tuple[str, str]]:
    found = [("run", _STUDY), ("users", f"{mechanism.users:,}")]
    if answers.dropped:
        found.append(("dropped", f"{answers.dropped:,} without an answer"))
    return [
        *found,
        *rows(mechanism),
        ("error", f"{mechanism.expected_error():.3g} expected (root mean square of a frequency)"),
        *interval_rows(estimate, interval),
    ]


def _json_object(
    result: RoundResult,
    estimate: FrequencyEstimate,
    records: list[dict[str, Any]],
    interval: dict[str, Any],
) -> dict[str, Any]:
    mechanism: AggregationMechanism = estimate.plan
    promise = mechanism.guarantee
    return {
        "run": _STUDY,
        "nodes": estimate.nodes,
        "received": estimate.received,
        "method": estimate.method,
        "postprocessing": estimate.postprocessing,
        "interval": interval,
        "plan": mechanism.to_dict(),
        "guarantee": {
            "epsilon": promise.epsilon,
            "delta": promise.delta,
            "adjacency": promise.adjacency,
            "accounting": repr(promise.mechanism),
            "assumptions": list(promise.assumptions),
        },
        "parameters": parameters(mechanism),
        "expected_error": mechanism.expected_error(),
        "costs": {
            role: {
                "parties": result.costs.parties[role],
                **dataclasses.asdict(result.costs.average(role)),
            }
            for role in result.costs.totals
        },
        "estimates": records,
    }


def _costs_table(costs: CostLedger) -> Table:
    """Draw what one party of each role does."""
    columns = {
        "sent": "messages",
        "bytes": "bytes",
        "added": "additions",
        "drawn": "draws",
        "coins": "coins",
        "noise": "noise",
    }
    header = ["role", "parties", *columns]
    cells = []
    for role in costs.totals:
        mean = dataclasses.asdict(costs.average(role))
        shown = "first server" if role == "reporting server" else role
        amounts = (_amount(mean[name]) for name in columns.values())
        cells.append([shown, f"{costs.parties[role]:,}", *amounts])
    drawn = table(header, cells, right=range(1, len(header)))
    drawn.title = "What one party does: messages sent, field elements added and drawn"
    drawn.title_justify, drawn.title_style = "left", "bold"
    return drawn


def _amount(value: float) -> str:
    """Write a mean with few digits, and large ones with a unit."""
    for unit, size in (("G", 1e9), ("M", 1e6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.3g}"


def _comparison_table(comparison: Recommendation) -> Table:
    header = ["mechanism", "rms error", "delta", "bytes", "holds for"]
    cells = [
        [
            record.title,
            f"{record.rmse:.3g}",
            up(record.delta, 3),
            "varies" if record.share_bytes is None else f"{record.share_bytes:,}",
            "the floor" if record.conditional else "any data",
        ]
        for record in comparison.records
    ]
    drawn = table(header, cells, right=(1, 2, 3))
    drawn.title = (
        f"{comparison.users:,} users, {comparison.items} items, epsilon "
        f"{number(comparison.epsilon)}, delta {number(comparison.delta)}"
    )
    drawn.title_justify, drawn.title_style = "left", "bold"
    return drawn


def _show_comparison(comparison: Recommendation, *, plot: Path | None, as_json: bool) -> None:
    if plot is not None:
        save_picture(plot, comparison.plot)
    if as_json:
        print_json(
            {
                "users": comparison.users,
                "items": comparison.items,
                "epsilon": comparison.epsilon,
                "delta": comparison.delta,
                "recommendation": _comparison_records(comparison),
                "refused": [
                    {"title": title, "reason": reason} for title, reason in comparison.refused
                ],
            }
        )
        return
    console = output()
    console.print(_comparison_table(comparison))
    for title, reason in comparison.refused:
        console.print(f"refused: {title}: {reason}", markup=False, style="dim", soft_wrap=True)
    console.print(
        "\nThe error is that of one frequency; bytes are what a user sends. Nothing was run: "
        "--run runs the first that holds for any data.",
        markup=False,
    )
    if plot is not None:
        console.print(f"\nThe picture: {plot}", markup=False, soft_wrap=True)


def _comparison_records(comparison: Recommendation) -> list[dict[str, Any]]:
    return [
        {
            "title": record.title,
            "rmse": record.rmse,
            "delta": record.delta,
            "share_bytes": record.share_bytes,
            "conditional": record.conditional,
            "plan": None if record.mechanism is None else record.mechanism.to_dict(),
        }
        for record in comparison.records
    ]
