"""``turnout account batches``: what the ways of drawing batches cost."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import typer

from turnout.accounting import FixedSizeBatches, LocalSampling, RandomCheckIns, ShuffledBatches
from turnout.accounting.batches import MOST_SLOTS, share_of
from turnout.accounting.mechanism import Mechanism
from turnout.cli.account.shared import (
    Delta,
    Epsilon,
    bounds_of,
    check_noise,
    down,
    given_of,
    one_of,
    table,
    up,
)
from turnout.cli.options import AsJson, print_json
from turnout.cli.running import messages, output, refusing
from turnout.cli.tables import number, properties

_NEIGHBOURS = {
    "replace": "one record is another",
    "add_or_remove": "one record more or less",
}


class _Way(NamedTuple):
    """A way to draw batches: its name for programs and for people, and how often what is done."""

    key: str
    name: str
    mechanism: Mechanism
    rounds: int
    adjacency: str


@refusing
def batches(
    *,
    records: Annotated[int, typer.Option("--records", "-n", min=2)],
    batch_size: Annotated[int, typer.Option("--batch-size", "-b", min=1)],
    noise: Annotated[float, typer.Option(callback=check_noise)],
    passes: Annotated[int, typer.Option(min=1)] = 1,
    delta: Delta = None,
    epsilon: Epsilon = None,
    as_json: AsJson = False,
) -> None:
    r"""Account for training on batches, in every way in which batches are drawn.

    The same number of batches and the same noise, and each record in a batch by a coin of its own
    (Poisson sampling), in batches of a fixed size drawn without replacement, in one random order
    that is cut into batches (how most programs read their data), or dealt to a batch of its own
    chance (as in random check-ins). They do not cost the same: who draws in one way and accounts
    for another says too little.

    Give --delta to get epsilon, or --epsilon to get delta. "At least" is what data that can exist
    lose.

    --json prints records, batch_size, batches (of one pass; what is left over is not used),
    noise_multiplier, passes; and ways, a list of objects with way, neighbours, epsilon, delta,
    lower_epsilon and lower_delta (null where not computed or infinite) and reached, the data that
    lose at least the latter, in words.

    [bold]Example:[/]

        turnout account batches --records 60000 --batch-size 256 --noise 1 --passes 10 \
            --delta 1e-5

    Parameters
    ----------
    records
        How many records there are.
    batch_size
        How many records a batch has, or has in the mean.
    noise
        Noise multiplier: standard deviation of the noise on a sum over the clipping norm.
    passes
        How many times all records are gone through.
    """
    one_of(delta, epsilon)
    if batch_size >= records:
        raise typer.BadParameter(
            f"must be less than the {records} records", param_hint="--batch-size"
        )
    count = records // batch_size
    if count > MOST_SLOTS:
        raise typer.BadParameter(
            f"must be so large that a pass has at most {MOST_SLOTS:,} batches, and has {count:,}",
            param_hint="--batch-size",
        )
    listed = _ways(records, batch_size, noise, passes, count)
    found = []
    for way in listed:
        with messages().status(f"{way.name}: {way.rounds:,} times"):
            found.append(_record(way, delta, epsilon))
    if as_json:
        setting = {
            "records": records,
            "batch_size": batch_size,
            "batches": count,
            "noise_multiplier": noise,
            "passes": passes,
        }
        print_json({**setting, "ways": found})
        return
    console = output()
    rows = [
        ("records", f"{records:,}, in {count:,} batches of {batch_size:,}"),
        ("passes", f"{passes:,}"),
        ("noise", f"{number(noise)} times the clipping norm, on the sum of a batch"),
        given_of(delta, epsilon),
    ]
    console.print(properties("Batches", rows))
    console.print()
    wanted = "epsilon" if epsilon is None else "delta"
    cells = [
        [
            way.name,
            up(record[wanted]),
            down(record[f"lower_{wanted}"]),
            _NEIGHBOURS[way.adjacency],
        ]
        for way, record in zip(listed, found, strict=True)
    ]
    console.print(table(["batches", wanted, "at least", "neighbours"], cells, right=(1, 2)))


def _ways(records: int, batch_size: int, noise: float, passes: int, count: int) -> list[_Way]:
    rate = share_of(batch_size, records)
    fixed = FixedSizeBatches(batch_size, records, noise)
    every = count * passes
    either = "add_or_remove"
    return [
        _Way("poisson", "Poisson sampling", LocalSampling(rate, noise), every, either),
        _Way("fixed_size", "fixed size", fixed, every, either),
        _Way("fixed_size", "fixed size", fixed, every, "replace"),
        _Way("shuffled", "shuffled", ShuffledBatches(count, noise), passes, "replace"),
        _Way("dealt", "dealt at random", RandomCheckIns(1.0, count, noise), passes, either),
    ]


def _record(way: _Way, delta: float | None, epsilon: float | None) -> dict[str, Any]:
    composition = way.mechanism.compose(way.rounds, way.adjacency)
    found = bounds_of(composition, delta, epsilon)
    return {"way": way.key, "neighbours": way.adjacency, **found}
