"""The options of commands that ask for a mean: bounds, and a mechanism by its name."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from turnout import Bounds, mean
from turnout._kinds import REGISTERED
from turnout.cli.tables import number
from turnout.errors import InvalidTypeError, InvalidValueError

__all__ = ["Mean", "mechanism_of", "mechanisms"]


def _bounds(text: str) -> Bounds:
    """Read LOW:HIGH."""
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not LOW:HIGH, two numbers such as 0:24") from error
    try:
        return Bounds(low, high)
    except (InvalidValueError, InvalidTypeError) as error:
        raise typer.BadParameter(str(error)) from error


Mean = Annotated[
    Any,
    typer.Option(
        "--mean",
        metavar="LOW:HIGH",
        parser=_bounds,
        help="Ask for numbers within these bounds, which are public; nothing is clipped.",
    ),
]


def mechanisms() -> dict[str, type[mean.MeanMechanism]]:
    """List turnout's mechanisms for means by name.

    Examples
    --------
    >>> sorted(mechanisms())
    ['duchi', 'hybrid', 'piecewise']
    """
    return {
        name: found
        for name, found in REGISTERED.items()
        if issubclass(found, mean.MeanMechanism) and found.__module__.startswith("turnout.")
    }


def mechanism_of(name: str, epsilon: float, bounds: Bounds) -> tuple[mean.MeanMechanism, str]:
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
    if name != "auto":
        made: Any = mechanisms()[name]
        return made(epsilon, pair), ""
    candidates: list[Any] = [found for _, found in sorted(mechanisms().items())]
    every = sorted((made(epsilon, pair) for made in candidates), key=lambda one: one.worst_variance)
    others = ", ".join(f"{one.name} {one.worst_variance**0.5:.4g}" for one in every[1:])
    return every[0], (
        f"{every[0].name} at epsilon {number(epsilon)}: the standard error of one report is at "
        f"most {every[0].worst_variance ** 0.5:.4g} ({others})"
    )
