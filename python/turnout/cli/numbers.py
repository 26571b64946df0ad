"""Commands that ask for numbers: bounds, bins, a mechanism by its name, and plan files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import typer

from turnout import Bounds, Plan, SquareWave
from turnout.cli import options
from turnout.cli.question import oracle_names
from turnout.distribution import BinnedBounds
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.mean import Duchi, Hybrid, Piecewise
from turnout.mean.mechanism import mechanisms_of
from turnout.reporting import words
from turnout.reporting.telling import telling
from turnout.reporting.words import number, span

N = TypeVar("N", bound=Bounds)


def read_bounds(text: str) -> Bounds:
    """Read LOW:HIGH."""
    return _read(Bounds, "LOW:HIGH, two numbers such as 0:24", text, float, float)


def _bins(text: str) -> BinnedBounds:
    """Read LOW:HIGH or LOW:HIGH:BINS."""
    expected = "LOW:HIGH or LOW:HIGH:BINS, numbers such as 0:24 or 0:24:48"

    def make(low: float, high: float, bins: int = BinnedBounds.bins) -> BinnedBounds:
        return BinnedBounds(low, high, bins=bins)

    return _read(make, expected, text, float, float, int)


def _read(make: Callable[..., N], expected: str, text: str, *kinds: Callable[[str], Any]) -> N:
    """Read numbers with colons between them, of which all after the second may be left out."""
    parts = text.split(":")
    try:
        if not 2 <= len(parts) <= len(kinds):
            raise ValueError
        values = [kind(part) for kind, part in zip(kinds, parts, strict=False)]
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not {expected}") from error
    try:
        return make(*values)
    except (InvalidValueError, InvalidTypeError) as error:
        raise typer.BadParameter(str(error)) from error


Distribution = Annotated[
    Any,
    typer.Option(
        "--distribution",
        metavar="LOW:HIGH[:BINS]",
        parser=_bins,
        help="Ask for numbers within these public bounds, and estimate their "
        "distribution over this many bins; 64 by default.",
    ),
]

Mean = Annotated[
    Any,
    typer.Option(
        "--mean",
        metavar="LOW:HIGH",
        parser=read_bounds,
        help="Ask for numbers within these public bounds, and estimate their mean; "
        "numbers outside are refused.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Which numbers people are asked for, if they are asked for any."""

    mean: Mean = None
    distribution: Distribution = None

    def __post_init__(self) -> None:
        """Refuse two questions at once."""
        options.refuse_if(
            (
                self.mean is not None and self.distribution is not None,
                "--distribution",
                "conflicts with --mean",
            )
        )

    @property
    def bounds(self) -> Bounds | None:
        """The numbers, by whichever option they are asked for."""
        found: Bounds | None = self.mean if self.distribution is None else self.distribution
        return found

    @property
    def option(self) -> str:
        """The option that asks for them.

        Examples
        --------
        >>> Numbers(mean=Bounds(0, 24)).option
        '--mean'
        """
        return "--mean" if self.distribution is None else "--distribution"

    def named(self, name: str | None) -> str:
        """Accept ``auto`` or the name of a mechanism, for the mean or for the distribution.

        Raises
        ------
        typer.BadParameter
            If there is none of this name.
        """
        kinds = (Duchi, Hybrid, Piecewise) if self.distribution is None else (SquareWave,)
        known = [kind.name for kind in kinds]
        which = f", which {self.option} takes"
        return oracle_names([name or "auto"], ("auto", *known), which)[0]

    def mechanism(self, name: str, epsilon: float) -> tuple[Any, str]:
        """Make a mechanism, for ``auto`` the one whose report varies least where it varies most.

        Returns
        -------
        mechanism, reason
            It, and why it was taken; no reason where there was no choice.

        Raises
        ------
        InvalidValueError
            If the mechanism takes no such epsilon.
        """
        asked = self.distribution
        if asked is not None:
            return SquareWave(epsilon, (asked.low, asked.high), asked.bins), ""
        every = mechanisms_of(epsilon, self.mean)
        if name != "auto":
            return next(one for one in every if one.name == name), ""
        best, *rest = every
        others = ", ".join(f"{one.name} {one.worst_variance**0.5:.4g}" for one in rest)
        return best, (
            f"{best.name} at epsilon {number(epsilon)}: the standard error of one report is at "
            f"most {best.worst_variance**0.5:.4g} ({others})"
        )

    def plan(self, epsilon: str, names: list[str] | None, **more: Any) -> tuple[Plan, str]:
        """Make the plan that asks for them, and say why its mechanism was taken.

        Parameters
        ----------
        epsilon, names
            What the options say.
        more
            Further arguments of :class:`turnout.Plan`.

        Raises
        ------
        typer.BadParameter
            If an option is out of range.
        """
        try:
            level = options.check_positive(float(epsilon))
        except ValueError as error:
            raise typer.BadParameter(
                f"{epsilon!r} is not a number, as {self.option} takes", param_hint="--epsilon"
            ) from error
        wanted = names or ["auto"]
        if len(wanted) != 1:
            raise typer.BadParameter(
                f"can be passed only once with {self.option}", param_hint="--oracle"
            )
        mechanism, reason = self.mechanism(self.named(wanted[0]), level)
        return Plan(mechanism, **more), reason


def rows_of_plan(plan: Plan, reason: str) -> list[tuple[str, str]]:
    """Say what the plan of numbers is, one name and value an entry."""
    oracle: Any = plan.oracle
    told: Any = telling(plan)
    rows = [
        ("oracle", f"{oracle.name}, {oracle.report_bits:,} bits a report"),
        ("numbers", span(oracle.domain)),
        ("epsilon", number(oracle.epsilon)),
        ("participation", words.participation(plan)),
        *told.planned(oracle)[0],
    ]
    return [*rows, ("why", reason)] if reason else rows


def record_of_plan(plan: Plan) -> dict[str, Any]:
    """Say it in terms of JSON."""
    oracle: Any = plan.oracle
    told: Any = telling(plan)
    return {
        "oracle": oracle.name,
        "epsilon": oracle.epsilon,
        "report_bits": oracle.report_bits,
        "participation": plan.participation.uniform_rate,
        "bounds": [oracle.domain.low, oracle.domain.high],
        **told.planned(oracle)[1],
    }


def record_of_sum(estimate: Any, scope: Mapping[str, Any]) -> dict[str, Any]:
    """Give the sum of a mean's numbers to programs, with its interval."""
    limits = estimate.sum_interval(**scope)
    return {"sum": {"value": estimate.sum, "low": limits.low, "high": limits.high}}


def rows_of_sum(estimate: Any, scope: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Say the sum of a mean's numbers."""
    found = record_of_sum(estimate, scope)["sum"]
    return [("sum", f"{found['value']:,.0f}, from {found['low']:,.0f} to {found['high']:,.0f}")]
