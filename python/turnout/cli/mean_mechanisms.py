"""The options of commands that ask for numbers: bounds, bins, and a mechanism by its name."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from turnout import Bounds, SquareWave, mean
from turnout._kinds import REGISTERED
from turnout.cli.tables import number
from turnout.distribution import BinnedBounds
from turnout.errors import InvalidTypeError, InvalidValueError


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
        for name, found in REGISTERED.items()
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
