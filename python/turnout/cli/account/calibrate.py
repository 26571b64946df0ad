"""``turnout account calibrate``: the noise, rate, size or number of rounds that meets a target."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Annotated, Any, Literal

import typer

from turnout._progress import doing
from turnout.accounting import Mechanism
from turnout.accounting import calibrate as calibrated_value
from turnout.cli.account.shared import (
    Adjacency,
    LocalSize,
    Scheme,
    Setting,
    check_delta,
    schemes,
    up,
)
from turnout.cli.options import AsJson, print_json
from turnout.cli.running import check_positive, check_rate, note, refusing
from turnout.cli.tables import number, table, tell
from turnout.errors import InvalidValueError

Parameter = Literal["noise", "client-rate", "sample-rate", "local-size", "rounds"]

_FIELDS = {
    "noise": "noise_multiplier",
    "client-rate": "client_rate",
    "sample-rate": "sample_rate",
    "local-size": "local_size",
    "rounds": "rounds",
}
_MOST = {"client-rate": 1.0, "sample-rate": 1.0, "local-size": 2**53, "rounds": 10**9}
_DIGITS = 6


@refusing
def calibrate(
    *,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", callback=check_positive)],
    delta: Annotated[float, typer.Option("--delta", "-d", callback=check_delta)],
    parameter: Annotated[Parameter | None, typer.Option("--calibrate")] = None,
    client_rate: Annotated[
        float | None, typer.Option("--client-rate", "-p", callback=check_rate)
    ] = None,
    sample_rate: Annotated[
        float | None, typer.Option("--sample-rate", "-q", callback=check_rate)
    ] = None,
    local_size: LocalSize = None,
    noise: Annotated[float | None, typer.Option(callback=check_positive)] = None,
    rounds: Annotated[int | None, typer.Option(min=1)] = None,
    adjacency: Adjacency = "add_or_remove",
    as_json: AsJson = False,
) -> None:
    r"""Find what random participation needs to meet an epsilon and a delta.

    The least noise, or the largest rate, local size or number of rounds. Leave out the one that is
    wanted, or name it with --calibrate. The value is rounded to the safe side, and the delta that
    it reaches is computed for the rounded value.

    --json prints calibrated (its name) and value; epsilon and delta, the target; delta_there, the
    delta at the value; bound, the scheme that is the guarantee; client_rate, sample_rate,
    local_size, noise_multiplier, rounds and adjacency, the value among them. For the noise of one
    round also schemes: a list of objects with scheme, guarantee and noise_multiplier.

    [bold]Examples:[/]

        turnout account calibrate --client-rate .001 --sample-rate .1 \
            --local-size 30 --epsilon .015 --delta 1e-6

        turnout account calibrate -p .001 -q .1 --local-size 30 --noise 2.5 \
            --calibrate rounds --epsilon .5 --delta 1e-5

    Parameters
    ----------
    epsilon
        The target.
    delta
        The target.
    parameter
        What to find; without it, what is left out.
    client_rate
        Probability that a client takes part.
    sample_rate
        Probability that an element of a client that takes part is sampled.
    noise
        Noise over the clipping norm.
    rounds
        How many rounds there are; 1 if left out.
    adjacency
        What neighbouring data sets are.
    """
    given: dict[str, Any] = {
        "noise": noise,
        "client-rate": client_rate,
        "sample-rate": sample_rate,
        "local-size": local_size,
        "rounds": rounds,
    }
    wanted = _wanted(given, parameter)
    times = 1 if rounds is None else rounds
    size = 0 if wanted == "local-size" else local_size
    # What is searched for has no value yet; any will do.
    listed = schemes(client_rate or 0.5, sample_rate or 0.5, size, noise or 1.0)
    with doing(f"looking for the {wanted}"):
        value, there = checked(
            listed[0].mechanism,
            _FIELDS[wanted],
            epsilon=epsilon,
            delta=delta,
            rounds=times,
            adjacency=adjacency,
        )
    _note_extremes(wanted, value)
    known = None if wanted == "rounds" else times
    setting = Setting(client_rate, sample_rate, local_size, noise, known, adjacency)
    compared = None
    if wanted == "noise" and times == 1:
        compared = _compared(listed, value, epsilon, delta, adjacency)
    if as_json:
        answer = {
            "calibrated": _FIELDS[wanted],
            "value": value,
            "epsilon": epsilon,
            "delta": delta,
            "delta_there": there,
            "bound": listed[0].key,
            **vars(setting),
            _FIELDS[wanted]: value,
        }
        print_json(answer if compared is None else {**answer, "schemes": compared})
        return
    written = f"{value:,}" if isinstance(value, int) else number(value)
    rows = [
        *(row for row in setting.rows() if (wanted, row[0]) != ("local-size", "local size")),
        ("target", f"epsilon {number(epsilon)} at delta {number(delta)}"),
        (wanted.replace("-", " "), f"{written}: {_direction(wanted)}"),
        ("delta there", up(there)),
    ]
    below = []
    if compared is not None:
        cells = [
            [scheme.name, up(record["noise_multiplier"], _DIGITS), scheme.remark]
            for scheme, record in zip(listed, compared, strict=True)
        ]
        below.append(table(["scheme", "noise", "guarantee"], cells, right=(1,)))
    tell("Random participation, calibrated", rows, *below)


def checked(
    mechanism: Mechanism,
    field: str,
    *,
    epsilon: float,
    delta: float,
    rounds: int = 1,
    adjacency: str | None = None,
) -> tuple[float | int, float]:
    """Calibrate, round to the safe side and give delta at the rounded value."""
    found = calibrated_value(mechanism, field, epsilon, delta, rounds=rounds, adjacency=adjacency)

    def there(value: float | int) -> float:
        if field == "rounds":
            return mechanism.compose(int(value), adjacency).delta(epsilon)
        changed = mechanism.replace(**{field: value})
        return changed.compose(rounds, adjacency).delta(epsilon)

    if isinstance(found, float):
        protects = mechanism.calibrated[field]
        context = Context(prec=_DIGITS, rounding=ROUND_CEILING if protects else ROUND_FLOOR)
        rounded = float(context.plus(Decimal(repr(found))))
        reached = there(rounded)
        if reached <= delta:
            return rounded, reached
    return found, there(found)


def _wanted(given: dict[str, Any], parameter: str | None) -> str:
    """Say what is to be calibrated, and refuse what lacks or is too much."""
    if parameter is None:
        missing = [name for name in ("noise", "client-rate", "sample-rate") if given[name] is None]
        if len(missing) != 1:
            listed = " and ".join(f"--{name}" for name in missing) or "nothing"
            raise typer.BadParameter(
                f"{listed} left out: leave out one of --noise, --client-rate and --sample-rate, or "
                "name what to find with --calibrate"
            )
        return missing[0]
    if given[parameter] is not None:
        raise typer.BadParameter(f"leave out --{parameter}: it is what --calibrate looks for")
    for name in ("client-rate", "sample-rate", "noise"):
        if given[name] is None and name != parameter:
            raise typer.BadParameter(f"--{name} is needed to calibrate {parameter}")
    return parameter


def _direction(wanted: str) -> str:
    return "the least, rounded up" if wanted in ("noise", "floor") else "the largest, rounded down"


def _note_extremes(wanted: str, value: float | int) -> None:
    if wanted in _MOST and value >= _MOST[wanted]:
        note(f"the target is met by every {wanted.replace('-', ' ')} up to {value:,}")


def _compared(
    listed: list[Scheme], value: float | int, epsilon: float, delta: float, adjacency: str
) -> list[dict[str, Any]]:
    """Calibrate the noise of the other schemes."""
    records = []
    for scheme in listed:
        noise: float = value
        if scheme is not listed[0]:
            try:
                noise, _ = checked(
                    scheme.mechanism,
                    "noise_multiplier",
                    epsilon=epsilon,
                    delta=delta,
                    adjacency=adjacency,
                )
            except InvalidValueError:
                noise = math.inf
        records.append(
            {"scheme": scheme.key, "guarantee": scheme.guarantee, "noise_multiplier": noise}
        )
    return records
