"""What the account commands share: options, checks and rounding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from turnout import accounting
from turnout._progress import doing
from turnout._rounding import rounded_to, written_down, written_up
from turnout.cli import options
from turnout.cli.tables import table
from turnout.reporting.words import number

#: So many digits are written of a value that is typed in again.
_MORE_DIGITS = 6


Adjacency = Literal["add_or_remove", "add", "remove"]

Delta = Annotated[
    float | None,
    typer.Option("--delta", "-d", callback=options.check_delta, help="Give delta to get epsilon."),
]
Epsilon = Annotated[
    float | None,
    typer.Option(
        "--epsilon", "-e", callback=options.check_positive, help="Give epsilon to get delta."
    ),
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
    """Rounds with random participation, and which neighbours are meant; None where not given.

    Attributes
    ----------
    client_rate
        Probability that a client takes part.
    sample_rate
        Probability that an element of a client that takes part is sampled.
    noise_multiplier
        Noise over the clipping norm.
    rounds
        How many rounds there are; 1 if left out.
    adjacency
        What neighbouring data sets are.
    """

    client_rate: Annotated[
        float | None, typer.Option("--client-rate", "-p", callback=options.check_rate)
    ] = None
    sample_rate: Annotated[
        float | None, typer.Option("--sample-rate", "-q", callback=options.check_rate)
    ] = None
    local_size: LocalSize = None
    noise_multiplier: Annotated[
        float | None, typer.Option("--noise", callback=options.check_positive)
    ] = None
    rounds: Annotated[int | None, typer.Option(min=1)] = None
    adjacency: Adjacency = "add_or_remove"

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
class Question:
    """Which epsilon at a delta, or which delta at an epsilon: the other of the two is None."""

    delta: Delta = None
    epsilon: Epsilon = None

    def __post_init__(self) -> None:
        """Refuse anything but exactly one of the two."""
        if (self.delta is None) == (self.epsilon is None):
            raise typer.BadParameter(
                "give exactly one of --delta and --epsilon; the other is computed"
            )

    @property
    def wanted(self) -> str:
        """Which of the two is computed."""
        return "epsilon" if self.epsilon is None else "delta"

    @property
    def given(self) -> tuple[str, str]:
        """Show which of the two was given.

        Examples
        --------
        >>> Question(1e-6, None).given
        ('delta', '1e-06')
        """
        if self.epsilon is None:
            return "delta", number(self.delta or 0.0)
        return "epsilon", number(self.epsilon)

    def answered(self, composition: accounting.Composition) -> dict[str, Any]:
        """Compute epsilon and delta, a lower value of what is wanted, and what has it."""
        if self.epsilon is None:
            found = composition.epsilon_bounds(self.delta or 0.0)
        else:
            found = composition.delta_bounds(self.epsilon)
        answer = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "lower_epsilon": None,
            "lower_delta": None,
            "reached": found.reached,
        }
        return answer | {self.wanted: found.high, f"lower_{self.wanted}": found.low}


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
    mechanism: accounting.Mechanism
    remark: str
    guarantee: bool = True

    def answer(self, question: Question, rounds: int, adjacency: str) -> dict[str, Any]:
        """Answer a question of so many rounds."""
        with doing(f"{self.name}: {rounds:,} times"):
            return question.answered(self.mechanism.compose(rounds, adjacency))


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
    weak = accounting.WeakClientSampling(*rates, noise)
    local = accounting.LocalSampling(sample_rate, noise)
    central = accounting.CentralShuffling(*rates, noise)
    found = [
        Scheme("weak_client_sampling", "weak client sampling", weak, seen),
        Scheme("only_local_sampling", "only local sampling", local, "even if all take part"),
        Scheme("central_shuffling", "central shuffling", central, "not a guarantee", False),
    ]
    if local_size is None:
        return found
    ours = accounting.RandomParticipation(*rates, local_size, noise)
    hidden = "if participation is hidden"
    return [Scheme("random_participation", "random participation", ours, hidden), *found]


def bounds_table(
    listed: Sequence[Scheme], records: Sequence[dict[str, Any]], wanted: str, *heads: str
) -> Table:
    """Draw what schemes give, with lower values; the first and the last column have these heads."""
    rows = [
        [
            scheme.name,
            written_up(record[wanted]),
            written_down(record[f"lower_{wanted}"]),
            scheme.remark,
        ]
        for scheme, record in zip(listed, records, strict=True)
    ]
    first, last = heads
    return table([first, wanted, "at least", last], rows, right=(1, 2))


def calibrated(
    mechanism: accounting.Mechanism,
    parameter: str,
    epsilon: float,
    delta: float,
    *,
    rounds: int = 1,
    adjacency: str,
) -> tuple[float | int, float]:
    """Calibrate, round to the safe side and give delta at the rounded value."""
    found = accounting.calibrate(
        mechanism, parameter, epsilon, delta, rounds=rounds, adjacency=adjacency
    )

    def there(value: float | int) -> float:
        if parameter == "rounds":
            return mechanism.compose(int(value), adjacency).delta(epsilon)
        changed = mechanism.replace(**{parameter: value})
        return changed.compose(rounds, adjacency).delta(epsilon)

    if isinstance(found, float):
        rounding = ROUND_CEILING if mechanism._calibrated[parameter] else ROUND_FLOOR
        rounded = rounded_to(found, _MORE_DIGITS, rounding)
        reached = there(rounded)
        if reached <= delta:
            return rounded, reached
    return found, there(found)


def refuse_unsettled(given: Mapping[str, Any], sought: str, *needed: str) -> None:
    """Refuse a value of the option that is looked for, and ask for the others that are needed."""
    if given[sought] is not None:
        raise typer.BadParameter(f"leave out --{sought}: it is what --calibrate looks for")
    for name in needed:
        if given[name] is None and name != sought:
            raise typer.BadParameter(f"--{name} is needed to calibrate {sought}")
