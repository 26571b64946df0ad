"""Commands that ask for numbers: bounds, bins, a mechanism by its name, and plan files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import typer

from turnout import Bernoulli, Bounds, Everyone, Plan, SquareWave, _kinds, mean
from turnout.cli.answers import oracle_names
from turnout.cli.running import check_positive
from turnout.cli.showing.shown import describe_participation
from turnout.distribution import BinnedBounds
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.reporting.words import number, span


def read_bounds(text: str) -> Bounds:
    """Read LOW:HIGH."""
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not LOW:HIGH, two numbers such as 0:24") from error
    try:
        return Bounds(low, high)
    except (InvalidValueError, InvalidTypeError) as error:
        raise typer.BadParameter(str(error)) from error


def _bins(text: str) -> BinnedBounds:
    """Read LOW:HIGH or LOW:HIGH:BINS."""
    parts = text.split(":")
    try:
        low, high = (float(part) for part in parts[:2])
        (bins,) = (int(part) for part in parts[2:]) if len(parts) > 2 else (BinnedBounds.bins,)
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is not LOW:HIGH or LOW:HIGH:BINS, numbers such as 0:24 or 0:24:48"
        ) from error
    try:
        return BinnedBounds(low, high, bins=bins)
    except (InvalidValueError, InvalidTypeError) as error:
        raise typer.BadParameter(str(error)) from error


Distribution = Annotated[
    Any,
    typer.Option(
        "--distribution",
        metavar="LOW:HIGH[:BINS]",
        parser=_bins,
        help="Ask for numbers within these bounds, for their distribution over so many bins; 64 "
        "by default.",
    ),
]

Mean = Annotated[
    Any,
    typer.Option(
        "--mean",
        metavar="LOW:HIGH",
        parser=read_bounds,
        help="Ask for numbers within these bounds, which are public; nothing is clipped.",
    ),
]


def numbers_of(mean: Bounds | None, distribution: BinnedBounds | None) -> Bounds | None:
    """Take the numbers that are asked for by one of the two options.

    Raises
    ------
    typer.BadParameter
        If both are given.
    """
    if mean is not None and distribution is not None:
        raise typer.BadParameter("is another question than --mean", param_hint="--distribution")
    return mean if distribution is None else distribution


def option_of(numbers: Bounds) -> str:
    """Name the option that gave them.

    Examples
    --------
    >>> option_of(Bounds(0, 24)), option_of(BinnedBounds(0, 24))
    ('--mean', '--distribution')
    """
    return "--distribution" if isinstance(numbers, BinnedBounds) else "--mean"


def mechanisms(numbers: Bounds) -> dict[str, Any]:
    """List turnout's mechanisms for the mean of numbers, or for their distribution, by name.

    Examples
    --------
    >>> sorted(mechanisms(Bounds(0, 24))), sorted(mechanisms(BinnedBounds(0, 24)))
    (['duchi', 'hybrid', 'piecewise'], ['square_wave'])
    """
    if isinstance(numbers, BinnedBounds):
        return {SquareWave.name: SquareWave}
    return {
        name: found
        for name, found in _kinds.known("turnout.mean").items()
        if issubclass(found, mean.MeanMechanism) and found.__module__.startswith("turnout.")
    }


def mechanism_of(name: str, epsilon: float, bounds: Bounds) -> tuple[Any, str]:
    """Make a mechanism, for ``auto`` the one whose report varies least where it varies most.

    Returns
    -------
    mechanism, reason
        It, and why it was taken; no reason where it was named.

    Raises
    ------
    InvalidValueError
        If the mechanism takes no such epsilon.
    """
    pair = (bounds.low, bounds.high)
    if isinstance(bounds, BinnedBounds):
        return SquareWave(epsilon, pair, bounds.bins), ""
    if name != "auto":
        return mechanisms(bounds)[name](epsilon, pair), ""
    candidates = [found for _, found in sorted(mechanisms(bounds).items())]
    every = sorted((made(epsilon, pair) for made in candidates), key=lambda one: one.worst_variance)
    others = ", ".join(f"{one.name} {one.worst_variance**0.5:.4g}" for one in every[1:])
    return every[0], (
        f"{every[0].name} at epsilon {number(epsilon)}: the standard error of one report is at "
        f"most {every[0].worst_variance ** 0.5:.4g} ({others})"
    )


@dataclass(frozen=True)
class MeanPlan:
    """A plan of a mean or of a distribution, and why its mechanism was taken.

    Attributes
    ----------
    plan
        The plan.
    reason
        Why this mechanism; none where it was named.
    """

    plan: Plan
    reason: str

    @classmethod
    def of(
        cls,
        bounds: Bounds,
        epsilon: str,
        participation: float | None,
        names: list[str] | None,
        *,
        serial: int | None,
        expires: datetime | None,
    ) -> MeanPlan:
        """Make the plan that options ask for.

        Raises
        ------
        typer.BadParameter
            If one of them is out of range.
        """
        try:
            level = check_positive(float(epsilon))
        except ValueError as error:
            raise typer.BadParameter(
                f"{epsilon!r} is not a number, as {option_of(bounds)} takes", param_hint="--epsilon"
            ) from error
        wanted = names or ["auto"]
        known = ("auto", *mechanisms(bounds))
        if len(wanted) != 1:
            raise typer.BadParameter(
                f"is named once with {option_of(bounds)}", param_hint="--oracle"
            )
        (name,) = oracle_names(wanted, known, f", which {option_of(bounds)} takes")
        mechanism, reason = mechanism_of(name, level, bounds)
        taking_part = Everyone() if participation in (None, 1.0) else Bernoulli(participation)
        return cls(Plan(mechanism, taking_part, serial=serial, expires=expires), reason)

    def rows(self) -> list[tuple[str, str]]:
        """Say what the plan is, one name and value an entry."""
        oracle: Any = self.plan.oracle
        rows = [
            ("oracle", f"{oracle.name}, {oracle.report_bits:,} bits a report"),
            ("numbers", span(oracle.domain)),
            ("epsilon", number(oracle.epsilon)),
            ("participation", describe_participation(self.plan)),
        ]
        if isinstance(oracle.domain, BinnedBounds):
            cells = f"one of {oracle.cells:,} cells, {oracle.window:,} of them around the own bin"
            return [*rows, ("bins", f"{oracle.bins:,}"), ("one report", cells)]
        error = f"standard error of at most {oracle.worst_variance**0.5:.4g}"
        rows.append(("one report", error))
        return [*rows, ("why", self.reason)] if self.reason else rows

    def to_dict(self) -> dict[str, Any]:
        """Say it in terms of JSON."""
        oracle: Any = self.plan.oracle
        record = {
            "oracle": oracle.name,
            "epsilon": oracle.epsilon,
            "report_bits": oracle.report_bits,
            "participation": self.plan.participation.uniform_rate,
            "bounds": [oracle.domain.low, oracle.domain.high],
        }
        if isinstance(oracle.domain, BinnedBounds):
            return {**record, "bins": oracle.bins, "window": oracle.window}
        return {**record, "report_standard_error": oracle.worst_variance**0.5}
