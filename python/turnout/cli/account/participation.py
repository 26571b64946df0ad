"""``turnout account participation``: what rounds with random participation cost."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from turnout._types import Axes
from turnout.accounting.pictures import plot as plot_mechanisms
from turnout.cli.account.shared import (
    Adjacency,
    Delta,
    Epsilon,
    LocalSize,
    Scheme,
    Setting,
    bounds_table,
    given_of,
    one_of,
    schemes,
)
from turnout.cli.options import AsJson, PictureFile, print_json, save_picture
from turnout.cli.running import check_positive, check_rate, refusing
from turnout.cli.tables import tell

#: Pictures over rounds are drawn at no smaller delta.
_SMALLEST_DELTA = 1e-12


@refusing
def participation(
    *,
    client_rate: Annotated[float, typer.Option("--client-rate", "-p", callback=check_rate)],
    sample_rate: Annotated[float, typer.Option("--sample-rate", "-q", callback=check_rate)],
    noise: Annotated[float, typer.Option(callback=check_positive)],
    local_size: LocalSize = None,
    rounds: Annotated[int, typer.Option(min=1)] = 1,
    delta: Delta = None,
    epsilon: Epsilon = None,
    adjacency: Adjacency = "add_or_remove",
    plot: PictureFile = None,
    as_json: AsJson = False,
) -> None:
    r"""Account for federated learning with random participation.

    In each round a client takes part at random, unseen, and samples its elements. The guarantee is
    for one element of one client. Beside it stand weak client sampling (whoever takes part is
    seen), only local sampling (everyone takes part), and central shuffling, which treats a round as
    sampling at the product of both rates: a lower bound of the loss, [bold]not a guarantee[/].

    Give --delta to get epsilon, or --epsilon to get delta. "At least" is what data that can exist
    lose, which shows how tight the value is; the line below the table names the data. The local
    size must be a public upper bound; without it weak client sampling is the guarantee.

    --json prints client_rate, sample_rate, local_size, noise_multiplier, rounds, adjacency; bound
    (the scheme that is the guarantee) with its epsilon, delta, lower_epsilon and lower_delta (null
    where not computed or infinite) and reached, the data that lose at least the latter, in words;
    and schemes, a list of objects with scheme, guarantee and the same.

    --plot draws delta against epsilon for one round, and epsilon against rounds for more.

    [bold]Examples:[/]

        turnout account participation --client-rate .001 --sample-rate .1 \
            --local-size 30 --noise 2.5 --rounds 1000 --delta 1e-5

        turnout account participation -p .1 -q .001 --noise .9 --epsilon .015 --json

    Parameters
    ----------
    client_rate
        Probability that a client takes part.
    sample_rate
        Probability that an element of a client that takes part is sampled.
    noise
        Noise multiplier: standard deviation of the noise over the clipping norm.
    rounds
        How many rounds there are.
    adjacency
        What neighbouring data sets are.
    """
    one_of(delta, epsilon)
    listed = schemes(client_rate, sample_rate, local_size, noise)
    records = [
        {
            "scheme": scheme.key,
            "guarantee": scheme.guarantee,
            **scheme.bounds(rounds, adjacency, delta, epsilon),
        }
        for scheme in listed
    ]
    first, _, *bound = records[0].items()
    save_picture(plot, lambda: _draw(listed, rounds, records[0]["delta"], adjacency))
    setting = Setting(client_rate, sample_rate, local_size, noise, rounds, adjacency)
    if as_json:
        print_json({**vars(setting), "bound": first[1], **dict(bound), "schemes": records})
        return
    wanted = "epsilon" if epsilon is None else "delta"
    reached = records[0]["reached"]
    tell(
        "Random participation",
        [*setting.rows(), given_of(delta, epsilon)],
        bounds_table(listed, records, wanted, "scheme", "guarantee"),
        *([f"At least: {reached}."] if reached else []),
        picture=plot,
    )


def _draw(listed: list[Scheme], rounds: int, delta: float, adjacency: str) -> Axes:
    mechanisms = [scheme.mechanism for scheme in listed]
    if rounds == 1:
        return plot_mechanisms(mechanisms, adjacency=adjacency)
    points = np.unique(np.geomspace(1, rounds, min(7, rounds)).round())
    at = max(delta, _SMALLEST_DELTA)
    return plot_mechanisms(
        mechanisms, "rounds", "epsilon", at=at, points=points, adjacency=adjacency, lower=False
    )
