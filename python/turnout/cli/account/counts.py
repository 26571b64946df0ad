"""``turnout account counts``: what counts of sampled people protect."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from turnout._progress import doing
from turnout.accounting import CountSampling
from turnout.cli.account.calibrate import checked
from turnout.cli.account.shared import Delta, Epsilon, given_of, one_of, up
from turnout.cli.options import AsJson, print_json
from turnout.cli.running import check_rate, refusing
from turnout.cli.tables import number, table, tell

Neighbours = Literal["replace", "remove", "add", "add_or_remove"]

_WORDS = ("replace", "remove", "add")
_MEANINGS = {
    "replace": "one person's item is another",
    "remove": "one person less",
    "add": "one person more",
    "add_or_remove": "one person more or less",
}


@refusing
def counts(
    *,
    rate: Annotated[float | None, typer.Option("--rate", "-p", callback=check_rate)] = None,
    floor: Annotated[int | None, typer.Option("--floor", "-m", min=0)] = None,
    delta: Delta = None,
    epsilon: Epsilon = None,
    parameter: Annotated[Literal["rate", "floor"] | None, typer.Option("--calibrate")] = None,
    adjacency: Neighbours = "replace",
    as_json: AsJson = False,
) -> None:
    """Account for counts of sampled people, published without noise.

    Every person is kept with the probability given, unseen, and the counts of the kept ones are
    published. The guarantee holds where [bold]every item is held by at least as many people as
    the floor[/], also after the change of one; that many dummy people on every item make it hold
    for all data.

    Give --epsilon to get delta, or --delta to get epsilon; with --calibrate give both and leave out
    what is wanted: the largest rate or the smallest floor.

    --json prints rate, floor, calibrated (rate, floor or null) and neighbours: an object with an
    epsilon and a delta for each of replace, remove and add (epsilon null where there is none). With
    --calibrate the deltas are those at the value, and target is an object with epsilon, delta and
    adjacency; else it is null.

    [bold]Examples:[/]

        turnout account counts --rate .5 --floor 100 --epsilon 1

        turnout account counts --floor 100 --epsilon 1 --delta 1e-5 --calibrate rate

    Parameters
    ----------
    rate
        Probability that a person is kept.
    floor
        People, real or dummy, that hold every item at least; honest ones only.
    parameter
        Find this one; needs the other, --epsilon and --delta.
    adjacency
        The neighbours that --calibrate protects.
    """
    mechanism = _mechanism({"rate": rate, "floor": floor}, epsilon, delta, parameter, adjacency)
    target = None
    if parameter is not None:
        target = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency}
    records: dict[str, dict[str, Any]] = {}
    for word in _WORDS:
        if epsilon is not None:
            records[word] = {"epsilon": epsilon, "delta": mechanism.delta(epsilon, word)}
        elif delta is not None:
            records[word] = {"epsilon": mechanism.epsilon(delta, word), "delta": delta}
    if as_json:
        print_json(
            {
                "rate": mechanism.rate,
                "floor": mechanism.floor,
                "calibrated": parameter,
                "target": target,
                "neighbours": records,
            }
        )
        return
    largest = ": the largest, rounded down" if parameter == "rate" else ""
    smallest = ": the smallest" if parameter == "floor" else ""
    rows = [
        ("rate", f"{number(mechanism.rate)}{largest}"),
        ("floor", f"{mechanism.floor:,} people on every item{smallest}"),
    ]
    if parameter is not None:
        asked = f"epsilon {number(epsilon or 0.0)} at delta {number(delta or 0.0)}"
        rows.append(("target", f"{asked}, {_MEANINGS[adjacency]}"))
    rows += [
        given_of(delta if epsilon is None else None, epsilon),
        ("guarantee", "only where every item has as many people as the floor, whoever changes"),
    ]
    wanted = "epsilon" if epsilon is None else "delta"
    cells = [[word, up(records[word][wanted]), _MEANINGS[word]] for word in _WORDS]
    tell("Counts of sampled people", rows, table(["neighbours", wanted, ""], cells, right=(1,)))


def _mechanism(
    given: dict[str, Any],
    epsilon: float | None,
    delta: float | None,
    parameter: str | None,
    adjacency: str,
) -> CountSampling:
    """Check what is given, and calibrate what is not."""
    left_out = [name for name, value in given.items() if value is None]
    if parameter is None:
        one_of(delta, epsilon)
        if left_out:
            raise typer.BadParameter(
                "give --rate and --floor, or say with --calibrate which one to find"
            )
        return CountSampling(**given)
    if epsilon is None or delta is None:
        raise typer.BadParameter("--calibrate needs --epsilon and --delta")
    if parameter not in left_out:
        raise typer.BadParameter(f"leave out --{parameter}: it is what --calibrate looks for")
    if len(left_out) > 1:
        other = "floor" if parameter == "rate" else "rate"
        raise typer.BadParameter(f"--{other} is needed to calibrate the {parameter}")
    # What is searched for has no value yet; any will do.
    mechanism = CountSampling(**given | {parameter: 0.5 if parameter == "rate" else 0})
    with doing(f"looking for the {parameter}"):
        value, _ = checked(mechanism, parameter, epsilon=epsilon, delta=delta, adjacency=adjacency)
    return mechanism.replace(**{parameter: value})
