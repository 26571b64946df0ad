"""``turnout account counts`` and ``shuffle``: what sampled people and shuffled reports hide in."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import typer

from turnout import Bernoulli, DirectEncoding, Everyone
from turnout._progress import doing
from turnout._search import first_at_most
from turnout.accounting import CountSampling, GaussianMechanism, Shuffled, calibrate_noise
from turnout.cli.account.shared import Delta, Epsilon, down, given_of, one_of, up
from turnout.cli.account.training import checked
from turnout.cli.options import AsJson, print_json
from turnout.cli.running import check_positive, check_rate, refusing
from turnout.cli.tables import table, tell
from turnout.reporting.words import number, percent

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


@refusing
def shuffle(
    *,
    local_epsilon: Annotated[float, typer.Option("--epsilon-local", callback=check_positive)],
    domain_size: Annotated[int, typer.Option("--domain-size", "-k", min=2)],
    nodes: Annotated[int, typer.Option("--nodes", "-n", min=1)],
    participation: Annotated[
        float, typer.Option("--participation", "-p", callback=check_rate)
    ] = 1.0,
    delta: Delta = None,
    epsilon: Epsilon = None,
    as_json: AsJson = False,
) -> None:
    r"""Account for shuffled reports of direct encoding.

    A shuffler passes the reports on in an order that says nothing of who sent them. Whoever sees
    only its output learns much less of a person than from the report beside its sender: the
    guarantee is for replacing one person's answer. Both bounds are shown; the upper one is the
    guarantee. The Gaussian noise is what a trusted curator would add to every count for the same
    epsilon and delta.

    Give --delta to get epsilon, or --epsilon to get delta.

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
        How many people there are; honest ones only.
    participation
        Probability that a person reports, hidden by the shuffler.
    """
    one_of(delta, epsilon)
    oracle = DirectEncoding(local_epsilon, domain_size)
    who = Everyone() if participation == 1 else Bernoulli(participation)
    mechanism = Shuffled(oracle, nodes, who)
    lower_epsilon = lower_delta = None
    with doing("shuffling"):
        if delta is not None:
            upper_epsilon, upper_delta = mechanism.epsilon(delta), delta
            lower_epsilon = _lower_epsilon(mechanism, delta, upper_epsilon)
        else:
            upper_epsilon = epsilon or 0.0
            upper_delta = mechanism.delta(upper_epsilon)
            lower_delta = float(mechanism.lower_delta(upper_epsilon))
        noise = _gaussian(upper_epsilon, upper_delta)
    deviation = math.sqrt(2.0) * noise
    if as_json:
        print_json(
            {
                "local_epsilon": local_epsilon,
                "realized_epsilon": oracle.realized_epsilon,
                "domain_size": domain_size,
                "nodes": nodes,
                "participation": participation,
                "epsilon": upper_epsilon,
                "delta": upper_delta,
                "lower_epsilon": lower_epsilon,
                "lower_delta": lower_delta,
                "gaussian": {"noise_multiplier": noise, "standard_deviation": deviation},
            }
        )
        return
    if lower_epsilon is not None:
        found = [
            ("delta", number(upper_delta)),
            ("epsilon", f"{up(upper_epsilon)}, and at least {down(lower_epsilon)}"),
        ]
    else:
        found = [
            ("epsilon", number(upper_epsilon)),
            ("delta", f"{up(upper_delta)}, and at least {down(lower_delta or 0.0)}"),
        ]
    gaussian = (
        "none reaches a delta of 0"
        if math.isinf(deviation)
        else f"standard deviation {up(deviation)} on each count, by a trusted curator"
    )
    hidden = "everyone" if participation == 1 else f"{percent(participation)}, hidden"
    rows = [
        ("nodes", f"{nodes:,}"),
        ("participation", hidden),
        ("domain", f"{domain_size:,} labels"),
        ("one report", f"epsilon {number(local_epsilon)}, without the shuffler"),
        ("neighbours", "the answer of one person is another"),
        *found,
        ("equal Gaussian", gaussian),
    ]
    tell("Shuffled reports of direct encoding", rows)


def _lower_epsilon(mechanism: Shuffled, delta: float, upper: float) -> float:
    """Find where the lower bound of delta falls to delta, rounded down."""

    def lower(epsilon: float) -> float:
        return float(mechanism.lower_delta(epsilon))

    if lower(0.0) <= delta or math.isinf(upper):
        return 0.0
    return first_at_most(lower, delta, 0.0, upper, 1e-9) * (1.0 - 1e-9)


def _gaussian(epsilon: float, delta: float) -> float:
    """Give the noise multiplier of the Gaussian mechanism; infinite where none will do."""
    if delta <= 0.0:
        return math.inf
    return calibrate_noise(GaussianMechanism(1.0), epsilon, delta)
