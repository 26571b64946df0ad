"""``turnout account participation``, ``calibrate`` and ``batches``: what trainings cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

import numpy as np
import typer

from turnout import accounting
from turnout._drawing import draw_rows
from turnout._progress import doing
from turnout._rounding import written_up
from turnout._types import Axes
from turnout.accounting.batches import MOST_SLOTS, share_of
from turnout.accounting.pictures import plot as plot_mechanisms
from turnout.cli import options
from turnout.cli.account import shared
from turnout.cli.commands import command
from turnout.cli.running import note
from turnout.cli.tables import print_json, table, tell, write_picture
from turnout.errors import InvalidValueError
from turnout.reporting.words import number

#: Pictures over rounds are drawn at no smaller delta.
_SMALLEST_DELTA = 1e-12

Parameter = Literal["noise", "client-rate", "sample-rate", "local-size", "rounds"]

_FIELDS: Final[dict[Parameter, str]] = {
    "noise": "noise_multiplier",
    "client-rate": "client_rate",
    "sample-rate": "sample_rate",
    "local-size": "local_size",
    "rounds": "rounds",
}
#: Without one of these, it is what is looked for.
_NEEDED: Final[tuple[Parameter, ...]] = ("noise", "client-rate", "sample-rate")
_MOST: Final[dict[Parameter, float]] = {
    "client-rate": 1.0,
    "sample-rate": 1.0,
    "local-size": 2**53,
    "rounds": 10**9,
}

_RECORDS = {"replace": "one record is another", "add_or_remove": "one record more or less"}
_SHORT = {"replace": "another", "add_or_remove": "more or less"}


@command
def participation(
    *,
    client_rate: Annotated[float, typer.Option("--client-rate", "-p", callback=options.check_rate)],
    sample_rate: Annotated[float, typer.Option("--sample-rate", "-q", callback=options.check_rate)],
    noise: Annotated[float, typer.Option(callback=options.check_positive)],
    local_size: shared.LocalSize = None,
    rounds: Annotated[int, typer.Option(min=1)] = 1,
    question: shared.Question,
    adjacency: shared.Adjacency = "add_or_remove",
    plot: options.PictureFile = None,
    as_json: options.AsJson = False,
) -> None:
    r"""Account for federated learning with random participation.

    In each round a client takes part at random, and nobody sees whether it does. It samples its
    elements. The guarantee is for one element of one client. The command also shows weak client
    sampling (others see who takes part), only local sampling (everyone takes part), and central
    shuffling. The last treats a round as sampling at the product of both rates: a lower bound of
    the loss, [bold]not a guarantee[/].

    Pass --delta to get epsilon, or --epsilon to get delta. "At least" is the loss of data that can
    exist, which shows how tight the value is. The line below the table names the data. The local
    size must be a public upper bound. Without it, the guarantee is that of weak client sampling.

    --json prints client_rate, sample_rate, local_size, noise_multiplier, rounds, adjacency; bound
    (the scheme that is the guarantee) with its epsilon, delta, lower_epsilon and lower_delta (null
    if not computed or infinite) and reached, which names in words the data that lose at least the
    lower value; and schemes, a list of objects with scheme, guarantee and the same.

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
        What makes two data sets neighbours.
    """
    listed = shared.schemes(client_rate, sample_rate, local_size, noise)
    records = [
        {
            "scheme": scheme.key,
            "guarantee": scheme.guarantee,
            **scheme.answer(question, rounds, adjacency),
        }
        for scheme in listed
    ]
    first, _, *bound = records[0].items()
    write_picture(plot, lambda: _draw(listed, rounds, records[0]["delta"], adjacency))
    setting = shared.Setting(client_rate, sample_rate, local_size, noise, rounds, adjacency)
    if as_json:
        print_json({**vars(setting), "bound": first[1], **dict(bound), "schemes": records})
        return
    reached = records[0]["reached"]
    tell(
        "Random participation",
        [*setting.rows(), question.given],
        shared.bounds_table(listed, records, question.wanted, "scheme", "guarantee"),
        *([f"At least: {reached}."] if reached else []),
        picture=plot,
    )


def _draw(listed: list[shared.Scheme], rounds: int, delta: float, adjacency: str) -> Axes:
    mechanisms = [scheme.mechanism for scheme in listed]
    if rounds == 1:
        return plot_mechanisms(mechanisms, adjacency=adjacency)
    points = np.unique(np.geomspace(1, rounds, min(7, rounds)).round())
    at = max(delta, _SMALLEST_DELTA)
    return plot_mechanisms(
        mechanisms, "rounds", "epsilon", at=at, points=points, adjacency=adjacency, lower=False
    )


@dataclass(frozen=True, kw_only=True)
class _Target:
    """What is to be met, and what is looked for.

    Attributes
    ----------
    epsilon
        The target.
    delta
        The target.
    parameter
        What to find; without it, what is left out.
    """

    epsilon: options.Epsilon
    delta: Annotated[float, typer.Option("--delta", "-d", callback=options.check_delta)]
    parameter: Annotated[Parameter | None, typer.Option("--calibrate")] = None

    def wanted(self, setting: shared.Setting) -> Parameter:
        """Name the parameter to calibrate, and refuse missing and superfluous options."""
        given: dict[str, Any] = {name: getattr(setting, field) for name, field in _FIELDS.items()}
        if self.parameter is not None:
            shared.refuse_unsettled(given, self.parameter, *_NEEDED)
            return self.parameter
        missing = [name for name in _NEEDED if given[name] is None]
        if len(missing) != 1:
            listed = " and ".join(f"--{name}" for name in missing) or "nothing"
            raise typer.BadParameter(
                f"{listed} left out: leave out one of --noise, --client-rate and --sample-rate, or "
                "name what to find with --calibrate"
            )
        return missing[0]

    def compared(self, listed: Sequence[shared.Scheme], adjacency: str) -> list[dict[str, Any]]:
        """Find the noise of one round that schemes need."""
        return [
            {
                "scheme": scheme.key,
                "guarantee": scheme.guarantee,
                "noise_multiplier": _least_noise(scheme, self.epsilon, self.delta, adjacency),
            }
            for scheme in listed
        ]


@command
def calibrate(*, target: _Target, setting: shared.Setting, as_json: options.AsJson = False) -> None:
    r"""Find the noise or rate that meets an epsilon and a delta.

    It finds the least noise, or the largest rate, local size or number of rounds. Leave out the
    parameter to find, or name it with --calibrate. The value is rounded to the safe side, and its
    delta is computed for the rounded value.

    --json prints calibrated (the name of the parameter) and value; epsilon and delta, the target;
    delta_there, the delta at the value; bound, the scheme that is the guarantee; client_rate,
    sample_rate, local_size, noise_multiplier, rounds and adjacency, which include the value. For
    the noise of one round it also prints schemes: a list of objects with scheme, guarantee and
    noise_multiplier.

    [bold]Examples:[/]

        turnout account calibrate --client-rate .001 --sample-rate .1 \
            --local-size 30 --epsilon .015 --delta 1e-6

        turnout account calibrate -p .001 -q .1 --local-size 30 --noise 2.5 \
            --calibrate rounds --epsilon .5 --delta 1e-5
    """
    wanted = target.wanted(setting)
    field, times = _FIELDS[wanted], setting.rounds or 1
    size = 0 if wanted == "local-size" else setting.local_size
    # What is searched for has no value yet; any will do.
    rates = setting.client_rate or 0.5, setting.sample_rate or 0.5
    listed = shared.schemes(*rates, size, setting.noise_multiplier or 1.0)
    with doing(f"looking for the {wanted}"):
        value, there = shared.calibrated(
            listed[0].mechanism,
            field,
            target.epsilon,
            target.delta,
            rounds=times,
            adjacency=setting.adjacency,
        )
    if wanted in _MOST and value >= _MOST[wanted]:
        note(f"the target is met by every {wanted.replace('-', ' ')} up to {value:,}")
    setting = replace(setting, rounds=None if wanted == "rounds" else times)
    one_noise = wanted == "noise" and times == 1
    compared = target.compared(listed, setting.adjacency) if one_noise else []
    if as_json:
        answer = {
            "calibrated": field,
            "value": value,
            "epsilon": target.epsilon,
            "delta": target.delta,
            "delta_there": there,
            "bound": listed[0].key,
            **vars(setting),
            field: value,
        }
        print_json({**answer, "schemes": compared} if compared else answer)
        return
    written = f"{value:,}" if isinstance(value, int) else number(value)
    direction = "the least, rounded up" if wanted == "noise" else "the largest, rounded down"
    rows = [
        *(row for row in setting.rows() if (wanted, row[0]) != ("local-size", "local size")),
        ("target", f"epsilon {number(target.epsilon)} at delta {number(target.delta)}"),
        (wanted.replace("-", " "), f"{written}: {direction}"),
        ("delta there", written_up(there)),
    ]
    cells = [
        [scheme.name, written_up(record["noise_multiplier"], 6), scheme.remark]
        for scheme, record in zip(listed, compared, strict=False)
    ]
    below = [table(["scheme", "noise", "guarantee"], cells, right=(1,))] if compared else []
    tell("Random participation, calibrated", rows, *below)


def _least_noise(scheme: shared.Scheme, epsilon: float, delta: float, adjacency: str) -> float:
    """Find the noise that meets a target in one round, infinite where none does."""
    try:
        return shared.calibrated(
            scheme.mechanism, "noise_multiplier", epsilon, delta, adjacency=adjacency
        )[0]
    except InvalidValueError:
        return math.inf


@command
def batches(
    *,
    records: Annotated[int, typer.Option("--records", "-n", min=2)],
    batch_size: Annotated[int, typer.Option("--batch-size", "-b", min=1)],
    noise: Annotated[float, typer.Option(callback=options.check_positive)],
    passes: Annotated[int, typer.Option(min=1)] = 1,
    question: shared.Question,
    plot: options.PictureFile = None,
    as_json: options.AsJson = False,
) -> None:
    r"""Account for training on batches, for each way of drawing them.

    All ways have the same number of batches and the same noise. A record may be in each batch by a
    coin of its own (Poisson sampling). Batches may have a fixed size, drawn without replacement.
    One random order may be cut into batches, as most programs read their data. Or each record is
    dealt to one random batch, as in random check-ins. The ways do not cost the same: if you draw in
    one way and account for another, you may state too small an epsilon.

    Pass --delta to get epsilon, or --epsilon to get delta. "At least" is the loss of data that can
    exist.

    --json prints records, batch_size, batches (of one pass; leftover records are not used),
    noise_multiplier, passes; and ways, a list of objects with way, neighbours, epsilon, delta,
    lower_epsilon and lower_delta (null if not computed or infinite) and reached, which names in
    words the data that lose at least the lower value.

    --plot draws the values side by side, each down to the loss that data can reach.

    [bold]Example:[/]

        turnout account batches --records 60000 --batch-size 256 --noise 1 --passes 10 \
            --delta 1e-5

    Parameters
    ----------
    records
        How many records there are.
    batch_size
        How many records a batch has, exactly or on average.
    noise
        Noise multiplier: standard deviation of the noise on a sum over the clipping norm.
    passes
        How often the training goes through all records.
    """
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
        {"way": way.key, "neighbours": neighbours, **way.answer(question, times, neighbours)}
        for way, times, neighbours in listed
    ]
    ways = [way for way, _, _ in listed]
    write_picture(plot, lambda: _draw_batches(listed, found, question))
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
        question.given,
    ]
    drawn = shared.bounds_table(ways, found, question.wanted, "batches", "neighbours")
    tell("Batches", rows, drawn, picture=plot)


def _ways(
    records: int, batch_size: int, noise: float, passes: int, count: int
) -> list[tuple[shared.Scheme, int, str]]:
    """List the ways to draw batches, how often each is done, and for which neighbours."""
    poisson = accounting.LocalSampling(share_of(batch_size, records), noise)
    fixed = accounting.FixedSizeBatches(batch_size, records, noise)
    shuffled = accounting.ShuffledBatches(count, noise)
    dealt = accounting.RandomCheckIns(1.0, count, noise)
    listed: list[tuple[str, str, accounting.Mechanism, int, str]] = [
        ("poisson", "Poisson sampling", poisson, count * passes, "add_or_remove"),
        ("fixed_size", "fixed size", fixed, count * passes, "add_or_remove"),
        ("fixed_size", "fixed size", fixed, count * passes, "replace"),
        ("shuffled", "shuffled", shuffled, passes, "replace"),
        ("dealt", "dealt at random", dealt, passes, "add_or_remove"),
    ]
    return [
        (shared.Scheme(key, name, mechanism, _RECORDS[neighbours]), times, neighbours)
        for key, name, mechanism, times, neighbours in listed
    ]


def _draw_batches(
    listed: Sequence[tuple[shared.Scheme, int, str]],
    found: Sequence[dict[str, Any]],
    question: shared.Question,
) -> Any:
    """Draw the values of all ways as far down as what is known to be lost."""
    wanted = question.wanted
    upper = np.array([record[wanted] for record in found], np.float64)
    lower = np.array([record[f"lower_{wanted}"] for record in found], np.float64)
    # Longer names are cut: the title says what it is that is more, less or another.
    names = [f"{way.name}, {_SHORT[neighbours]}" for way, _, neighbours in listed]
    title = f"{wanted} at {' '.join(question.given)}, of one record more or less, or another"
    below = "guarantee, and down to what data can lose"
    return draw_rows(names, upper, (lower, upper), title=title, note=below, quantity=wanted)
