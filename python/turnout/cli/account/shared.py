"""What the account commands share: options, checks and rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from turnout._progress import doing
from turnout.accounting import (
    CentralShuffling,
    LocalSampling,
    Mechanism,
    RandomParticipation,
    WeakClientSampling,
)
from turnout.cli.running import check_positive
from turnout.cli.tables import table
from turnout.reporting.words import number

_DIGITS = 5


def check_delta(value: float | None) -> float | None:
    """Accept a delta strictly between 0 and 1, or none."""
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(f"{value} is not between 0 and 1")
    return value


Adjacency = Literal["add_or_remove", "add", "remove"]

Delta = Annotated[
    float | None,
    typer.Option("--delta", "-d", callback=check_delta, help="Give delta to get epsilon."),
]
Epsilon = Annotated[
    float | None,
    typer.Option("--epsilon", "-e", callback=check_positive, help="Give epsilon to get delta."),
]
LocalSize = Annotated[
    int | None,
    typer.Option(
        "--local-size",
        min=0,
        help="Most elements a client has beside the protected one; leave out if unknown.",
    ),
]


_NEIGHBOURS = {
    "add_or_remove": "one element of one client is added or removed",
    "add": "one element of one client is added",
    "remove": "one element of one client is removed",
}


@dataclass(frozen=True)
class Setting:
    """Rounds with random participation, and which neighbours are meant; None where not given."""

    client_rate: float | None
    sample_rate: float | None
    local_size: int | None
    noise_multiplier: float | None
    rounds: int | None
    adjacency: str

    def rows(self) -> list[tuple[str, str]]:
        """Name the parameters; those that are None are left out.

        Examples
        --------
        >>> Setting(0.1, 0.1, None, 1.0, 1, "add").rows()[2]
        ('local size', 'unknown: the guarantee is that of weak client sampling')
        """
        size = (
            "unknown: the guarantee is that of weak client sampling"
            if self.local_size is None
            else f"at most {self.local_size:,} elements beside the protected one"
        )
        noise = self.noise_multiplier
        rows = [
            ("client rate", None if self.client_rate is None else number(self.client_rate)),
            ("sample rate", None if self.sample_rate is None else number(self.sample_rate)),
            ("local size", size),
            ("noise", None if noise is None else f"{number(noise)} times the clipping norm"),
            ("rounds", None if self.rounds is None else f"{self.rounds:,}"),
            ("neighbours", _NEIGHBOURS[self.adjacency]),
        ]
        return [(name, text) for name, text in rows if text is not None]


@dataclass(frozen=True)
class Scheme:
    """A way to account for what is done in rounds.

    Attributes
    ----------
    key, name
        Its name for programs, and for people.
    mechanism
        What computes its values.
    remark
        When they hold, or for whom.
    guarantee
        Whether they bound what is asked about.
    """

    key: str
    name: str
    mechanism: Mechanism
    remark: str
    guarantee: bool = True

    def bounds(
        self, rounds: int, adjacency: str, delta: float | None, epsilon: float | None
    ) -> dict[str, Any]:
        """Compute epsilon at a delta, or delta at an epsilon, and lower values and what has them.

        One of the two is None.
        """
        with doing(f"{self.name}: {rounds:,} times"):
            composition = self.mechanism.compose(rounds, adjacency)
            found: Any
            lower: dict[str, float | None] = {"lower_epsilon": None, "lower_delta": None}
            if epsilon is None:
                found = composition.epsilon_bounds(delta or 0.0)
                lower["lower_epsilon"], epsilon = found
            else:
                found = composition.delta_bounds(epsilon)
                lower["lower_delta"], delta = found
        return {"epsilon": epsilon, "delta": delta, **lower, "reached": found.reached}


def schemes(
    client_rate: float, sample_rate: float, local_size: int | None, noise: float
) -> list[Scheme]:
    """List the schemes beside each other, the one that bounds the setting first.

    Examples
    --------
    >>> [scheme.key for scheme in schemes(0.1, 0.1, None, 1.0)]
    ['weak_client_sampling', 'only_local_sampling', 'central_shuffling']
    """
    rates = client_rate, sample_rate
    seen = "holds for any local size" if local_size is None else "even if participation is seen"
    weak, local = WeakClientSampling(*rates, noise), LocalSampling(sample_rate, noise)
    central = CentralShuffling(*rates, noise)
    found = [
        Scheme("weak_client_sampling", "weak client sampling", weak, seen),
        Scheme("only_local_sampling", "only local sampling", local, "even if all take part"),
        Scheme("central_shuffling", "central shuffling", central, "not a guarantee", False),
    ]
    if local_size is None:
        return found
    ours = RandomParticipation(*rates, local_size, noise)
    hidden = "if participation is hidden"
    return [Scheme("random_participation", "random participation", ours, hidden), *found]


def bounds_table(
    listed: Sequence[Scheme], records: Sequence[dict[str, Any]], wanted: str, *heads: str
) -> Table:
    """Draw what schemes give, with lower values; the first and the last column have these heads."""
    rows = [
        [scheme.name, up(record[wanted]), down(record[f"lower_{wanted}"]), scheme.remark]
        for scheme, record in zip(listed, records, strict=True)
    ]
    first, last = heads
    return table([first, wanted, "at least", last], rows, right=(1, 2))


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
