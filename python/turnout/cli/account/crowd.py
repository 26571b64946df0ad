"""``turnout account counts`` and ``shuffle``: what sampled people and shuffled reports hide in."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import typer

from turnout import DirectEncoding, accounting
from turnout._progress import doing
from turnout._rounding import written_down, written_up
from turnout.cli import options
from turnout.cli.account import shared
from turnout.cli.commands import command
from turnout.cli.tables import print_json, table, tell
from turnout.participation import taking_part_in
from turnout.reporting.words import number, percent

Neighbours = Literal["replace", "remove", "add", "add_or_remove"]

_WORDS = ("replace", "remove", "add")
_MEANINGS = {
    "replace": "one person's item is another",
    "remove": "one person less",
    "add": "one person more",
    "add_or_remove": "one person more or less",
}


@command
def counts(
    *,
    rate: Annotated[float | None, typer.Option("--rate", "-p", callback=options.check_rate)] = None,
    floor: Annotated[int | None, typer.Option("--floor", "-m", min=0)] = None,
    delta: shared.Delta = None,
    epsilon: shared.Epsilon = None,
    parameter: Annotated[Literal["rate", "floor"] | None, typer.Option("--calibrate")] = None,
    adjacency: Neighbours = "replace",
    as_json: options.AsJson = False,
) -> None:
    """Account for counts of sampled people, published without noise.

    Each person is kept with the given probability, and nobody sees who is. The counts of the kept
    people are published. The guarantee holds if [bold]every item is held by at least as many people
    as the floor[/], before and after one person changes. If you add that many dummy people to every
    item, it holds for all data.

    Pass --epsilon to get delta, or --delta to get epsilon. With --calibrate, pass both, and leave
    out the parameter to find: the largest rate or the smallest floor.

    --json prints rate, floor, calibrated (rate, floor or null) and neighbours: an object with an
    epsilon and a delta for each of replace, remove and add (epsilon is null if there is none). With
    --calibrate, the deltas are those at the value found, and target is an object with epsilon,
    delta and adjacency. Otherwise target is null.

    [bold]Examples:[/]

        turnout account counts --rate .5 --floor 100 --epsilon 1

        turnout account counts --floor 100 --epsilon 1 --delta 1e-5 --calibrate rate

    Parameters
    ----------
    rate
        Probability that a person is kept.
    floor
        The least number of honest people, real or dummy, that hold every item.
    parameter
        Find this parameter; needs the other one, --epsilon and --delta.
    adjacency
        The neighbours that --calibrate protects.
    """
    given: dict[str, Any] = {"rate": rate, "floor": floor}
    target: dict[str, Any] | None = None
    if parameter is None:
        question = shared.Question(delta, epsilon)
        if None in given.values():
            raise typer.BadParameter(
                "give --rate and --floor, or say with --calibrate which one to find"
            )
    elif epsilon is None or delta is None:
        raise typer.BadParameter("--calibrate needs --epsilon and --delta")
    else:
        question = shared.Question(None, epsilon)
        target = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency}
        shared.refuse_unsettled(given, parameter, "rate", "floor")
        # What is searched for has no value yet; any will do.
        trial = accounting.CountSampling(rate=rate or 0.5, floor=floor or 0)
        with doing(f"looking for the {parameter}"):
            given[parameter], _ = shared.calibrated(trial, parameter, **target)
    mechanism = accounting.CountSampling(**given)
    records = {}
    for word in _WORDS:
        answer = question.answered(mechanism.compose(1, word))
        records[word] = {name: answer[name] for name in ("epsilon", "delta")}
    if as_json:
        found = {"calibrated": parameter, "target": target, "neighbours": records}
        print_json({**given, **found})
        return
    largest = ": the largest, rounded down" if parameter == "rate" else ""
    smallest = ": the smallest" if parameter == "floor" else ""
    rows = [
        ("rate", f"{number(mechanism.rate)}{largest}"),
        ("floor", f"{mechanism.floor:,} people on every item{smallest}"),
    ]
    if target is not None:
        asked = f"epsilon {number(target['epsilon'])} at delta {number(target['delta'])}"
        rows.append(("target", f"{asked}, {_MEANINGS[adjacency]}"))
    rows += [
        question.given,
        ("guarantee", "only if every item has as many people as the floor, whoever changes"),
    ]
    wanted = question.wanted
    cells = [[word, written_up(records[word][wanted]), _MEANINGS[word]] for word in _WORDS]
    tell("Counts of sampled people", rows, table(["neighbours", wanted, ""], cells, right=(1,)))


@command
def shuffle(
    *,
    local_epsilon: Annotated[
        float, typer.Option("--epsilon-local", callback=options.check_positive)
    ],
    domain_size: Annotated[int, typer.Option("--domain-size", "-k", min=2)],
    nodes: Annotated[int, typer.Option("--nodes", "-n", min=1)],
    participation: Annotated[
        float, typer.Option("--participation", "-p", callback=options.check_rate)
    ] = 1.0,
    question: shared.Question,
    as_json: options.AsJson = False,
) -> None:
    r"""Account for shuffled reports of direct encoding.

    A shuffler passes the reports on in an order that reveals nothing about who sent them. Somebody
    who sees only its output learns much less about a person than from a report with its sender. The
    guarantee is for replacing one person's answer. The command shows two bounds; the upper one is
    the guarantee. It also shows the Gaussian noise that a trusted curator would add to every count
    for the same epsilon and delta.

    Pass --delta to get epsilon, or --epsilon to get delta.

    --json prints local_epsilon, realized_epsilon, domain_size, nodes, participation; epsilon and
    delta, the guarantee; lower_epsilon or lower_delta (the other is null); and gaussian, an object
    with noise_multiplier (over the sensitivity, the square root of 2) and standard_deviation (of
    the noise on each count).

    [bold]Example:[/]

        turnout account shuffle --epsilon-local 1 --domain-size 10 --nodes 100000 \
            --participation .5 --delta 1e-6

    Parameters
    ----------
    local_epsilon
        Privacy of one report by itself.
    domain_size
        How many answers there are.
    nodes
        The number of honest people.
    participation
        Probability that a person reports, hidden by the shuffler.
    """
    oracle = DirectEncoding(local_epsilon, domain_size)
    mechanism = accounting.Shuffled(oracle, nodes, taking_part_in(participation))
    with doing("shuffling"):
        found = question.answered(mechanism.compose(1))
        noise = math.inf
        if found["delta"] > 0.0:
            plain = accounting.GaussianMechanism(1.0)
            noise = accounting.calibrate_noise(plain, found["epsilon"], found["delta"])
    deviation = math.sqrt(2.0) * noise
    if as_json:
        del found["reached"]
        print_json(
            {
                "local_epsilon": local_epsilon,
                "realized_epsilon": oracle.realized_epsilon,
                "domain_size": domain_size,
                "nodes": nodes,
                "participation": participation,
                **found,
                "gaussian": {"noise_multiplier": noise, "standard_deviation": deviation},
            }
        )
        return
    gaussian = (
        "none reaches a delta of 0"
        if math.isinf(deviation)
        else f"standard deviation {written_up(deviation)} on each count, by a trusted curator"
    )
    hidden = "everyone" if participation == 1 else f"{percent(participation)}, hidden"
    wanted = question.wanted
    upper, lower = written_up(found[wanted]), written_down(found[f"lower_{wanted}"])
    rows = [
        ("nodes", f"{nodes:,}"),
        ("participation", hidden),
        ("domain", f"{domain_size:,} labels"),
        ("one report", f"epsilon {number(local_epsilon)}, without the shuffler"),
        ("neighbours", "the answer of one person is another"),
        question.given,
        (wanted, f"{upper}, and at least {lower}"),
        ("equal Gaussian", gaussian),
    ]
    tell("Shuffled reports of direct encoding", rows)
