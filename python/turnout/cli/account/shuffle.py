"""``turnout account shuffle``: what hiding among other people's reports adds."""

from __future__ import annotations

import math
from typing import Annotated

import typer

from turnout import Bernoulli, DirectEncoding, Everyone
from turnout._progress import doing
from turnout._search import first_at_most
from turnout.accounting import GaussianMechanism, Shuffled, calibrate_noise
from turnout.cli.account.shared import Delta, Epsilon, down, one_of, up
from turnout.cli.options import AsJson, print_json
from turnout.cli.running import check_positive, check_rate, refusing
from turnout.cli.tables import number, percent, tell


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
