"""``turnout account batches``: what the ways of drawing batches cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer

from turnout.accounting import FixedSizeBatches, LocalSampling, RandomCheckIns, ShuffledBatches
from turnout.accounting.batches import MOST_SLOTS, share_of
from turnout.accounting.mechanism import Mechanism
from turnout.cli.account.shared import Delta, Epsilon, Scheme, bounds_table, given_of, one_of
from turnout.cli.options import AsJson, PictureFile, print_json, save_picture
from turnout.cli.running import check_positive, refusing
from turnout.cli.tables import number, tell
from turnout.mean.pictures import draw_means

_NEIGHBOURS = {
    "replace": "one record is another",
    "add_or_remove": "one record more or less",
}
_SHORT = {"replace": "another", "add_or_remove": "more or less"}


@refusing
def batches(
    *,
    records: Annotated[int, typer.Option("--records", "-n", min=2)],
    batch_size: Annotated[int, typer.Option("--batch-size", "-b", min=1)],
    noise: Annotated[float, typer.Option(callback=check_positive)],
    passes: Annotated[int, typer.Option(min=1)] = 1,
    delta: Delta = None,
    epsilon: Epsilon = None,
    plot: PictureFile = None,
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

    --plot draws the values beside each other, each as far down as what data can lose.

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
    found = [
        {
            "way": way.key,
            "neighbours": neighbours,
            **way.bounds(times, neighbours, delta, epsilon),
        }
        for way, times, neighbours in listed
    ]
    ways = [way for way, _, _ in listed]
    wanted = "epsilon" if epsilon is None else "delta"
    save_picture(plot, lambda: _draw(listed, found, wanted, given_of(delta, epsilon)))
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
    rows = [
        ("records", f"{records:,}, in {count:,} batches of {batch_size:,}"),
        ("passes", f"{passes:,}"),
        ("noise", f"{number(noise)} times the clipping norm, on the sum of a batch"),
        given_of(delta, epsilon),
    ]
    drawn = bounds_table(ways, found, wanted, "batches", "neighbours")
    tell("Batches", rows, drawn, picture=plot)


def _ways(
    records: int, batch_size: int, noise: float, passes: int, count: int
) -> list[tuple[Scheme, int, str]]:
    """List the ways to draw batches, how often each is done, and for which neighbours."""
    fixed = FixedSizeBatches(batch_size, records, noise)
    listed: list[tuple[str, str, Mechanism, int, str]] = [
        (
            "poisson",
            "Poisson sampling",
            LocalSampling(share_of(batch_size, records), noise),
            count * passes,
            "add_or_remove",
        ),
        ("fixed_size", "fixed size", fixed, count * passes, "add_or_remove"),
        ("fixed_size", "fixed size", fixed, count * passes, "replace"),
        ("shuffled", "shuffled", ShuffledBatches(count, noise), passes, "replace"),
        ("dealt", "dealt at random", RandomCheckIns(1.0, count, noise), passes, "add_or_remove"),
    ]
    return [
        (Scheme(key, name, mechanism, _NEIGHBOURS[neighbours]), times, neighbours)
        for key, name, mechanism, times, neighbours in listed
    ]


def _draw(
    listed: Sequence[tuple[Scheme, int, str]],
    found: Sequence[dict[str, Any]],
    wanted: str,
    given: tuple[str, str],
) -> Any:
    """Draw the values of all ways as far down as what is known to be lost."""
    upper = np.array([record[wanted] for record in found], np.float64)
    lower = np.array([record[f"lower_{wanted}"] for record in found], np.float64)
    # Longer names are cut: the title says what it is that is more, less or another.
    names = [f"{way.name}, {_SHORT[neighbours]}" for way, _, neighbours in listed]
    title = f"{wanted} at {' '.join(given)}, of one record more or less, or another"
    note = "guarantee, and down to what data can lose"
    return draw_means(names, upper, (lower, upper), title=title, note=note, quantity=wanted)
