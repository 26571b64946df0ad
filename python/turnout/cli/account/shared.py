"""What the account commands share: options, checks, rounding, tables and pictures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Annotated, Any, Literal

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from turnout.accounting import (
    CentralShuffling,
    Composition,
    LocalSampling,
    Mechanism,
    RandomParticipation,
    WeakClientSampling,
)
from turnout.cli.running import check_epsilon, check_rate
from turnout.cli.tables import number

_DIGITS = 5


def check_delta(value: float | None) -> float | None:
    """Accept a delta strictly between 0 and 1, or none."""
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(f"{value} is not between 0 and 1")
    return value


def check_noise(value: float | None) -> float | None:
    """Accept a finite noise multiplier above zero, or none."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"{value} is not a finite number above 0")
    return value


def optional_rate(value: float | None) -> float | None:
    """Accept a rate above 0 and not above 1, or none."""
    return None if value is None else check_rate(value)


def _optional_epsilon(value: float | None) -> float | None:
    return None if value is None else check_epsilon(value)


Adjacency = Literal["add_or_remove", "add", "remove"]

Delta = Annotated[
    float | None,
    typer.Option("--delta", "-d", callback=check_delta, help="Give delta to get epsilon."),
]
Epsilon = Annotated[
    float | None,
    typer.Option("--epsilon", "-e", callback=_optional_epsilon, help="Give epsilon to get delta."),
]
LocalSize = Annotated[
    int | None,
    typer.Option(
        "--local-size",
        min=0,
        help="Most elements a client has beside the protected one; leave out if unknown.",
    ),
]


class Scheme:
    """A way to account for rounds of federated learning.

    Parameters
    ----------
    key
        Its name for programs.
    name
        Its name for people.
    mechanism
        What computes its values.
    guarantee
        Whether they bound what random participation costs.
    remark
        When they hold.
    """

    def __init__(
        self, key: str, name: str, mechanism: Mechanism, remark: str, *, guarantee: bool = True
    ) -> None:
        self.key = key
        self.name = name
        self.mechanism = mechanism
        self.remark = remark
        self.guarantee = guarantee


def schemes(
    client_rate: float, sample_rate: float, local_size: int | None, noise: float
) -> list[Scheme]:
    """List the schemes beside each other, the one that bounds the setting first.

    Examples
    --------
    >>> [scheme.key for scheme in schemes(0.1, 0.1, None, 1.0)]
    ['weak_client_sampling', 'only_local_sampling', 'central_shuffling']
    """
    weak = "holds for any local size" if local_size is None else "even if participation is seen"
    found = [
        Scheme(
            "weak_client_sampling",
            "weak client sampling",
            WeakClientSampling(client_rate, sample_rate, noise),
            weak,
        ),
        Scheme(
            "only_local_sampling",
            "only local sampling",
            LocalSampling(sample_rate, noise),
            "even if all take part",
        ),
        Scheme(
            "central_shuffling",
            "central shuffling",
            CentralShuffling(client_rate, sample_rate, noise),
            "not a guarantee",
            guarantee=False,
        ),
    ]
    if local_size is None:
        return found
    ours = RandomParticipation(client_rate, sample_rate, local_size, noise)
    return [
        Scheme("random_participation", "random participation", ours, "if participation is hidden"),
        *found,
    ]


def bounds_of(
    composition: Composition, delta: float | None, epsilon: float | None
) -> dict[str, Any]:
    """Compute epsilon at a delta, or delta at an epsilon, with lower values and what has them."""
    lower_epsilon = lower_delta = None
    if delta is not None:
        bounds = composition.epsilon_bounds(delta)
        lower_epsilon, epsilon = bounds
    else:
        bounds = composition.delta_bounds(epsilon or 0.0)
        lower_delta, delta = bounds
    return {
        "epsilon": epsilon,
        "delta": delta,
        "lower_epsilon": lower_epsilon,
        "lower_delta": lower_delta,
        "reached": bounds.reached,
    }


def given_of(delta: float | None, epsilon: float | None) -> tuple[str, str]:
    """Show which of the two was given."""
    return ("epsilon", number(epsilon or 0.0)) if delta is None else ("delta", number(delta))


def one_of(delta: float | None, epsilon: float | None) -> None:
    """Refuse anything but exactly one of the two."""
    if (delta is None) == (epsilon is None):
        raise typer.BadParameter("give exactly one of --delta and --epsilon; the other is computed")


def up(value: float, digits: int = _DIGITS) -> str:
    """Write an upper value with a few digits, never below it.

    Examples
    --------
    >>> up(0.123451), up(0.5), up(float("inf"))
    ('0.12346', '0.5', 'none')
    """
    return _written(value, digits, ROUND_CEILING)


def down(value: float, digits: int = _DIGITS) -> str:
    """Write a lower value with a few digits, never above it.

    Examples
    --------
    >>> down(0.123459), down(1e-9)
    ('0.12345', '1e-09')
    """
    return _written(value, digits, ROUND_FLOOR)


def _written(value: float, digits: int, rounding: str) -> str:
    if math.isinf(value):
        return "none"
    # The shortest text of the number is what people read and type.
    rounded = Context(prec=digits, rounding=rounding).plus(Decimal(repr(float(value))))
    return f"{float(rounded):.{digits}g}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int]) -> Table:
    """Draw a table with a header, numbers to the right."""
    result = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1), show_edge=False)
    for position, name in enumerate(header):
        if position in right:
            result.add_column(name, justify="right", no_wrap=True)
        else:
            result.add_column(name, overflow="fold")
    for row in rows:
        result.add_row(*(Text(cell) for cell in row))
    return result
