"""What options say of one column or of each: ``COLUMN=TEXT``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import typer

V = TypeVar("V")


def by_column(
    option: str, given: Iterable[str] | None, columns: Sequence[str], read: Callable[[str], V]
) -> dict[str, V]:
    """Read ``COLUMN=TEXT``, or ``TEXT`` where there is one column.

    Raises
    ------
    typer.BadParameter
        If it is of no column, of one twice, or not to be read.

    Examples
    --------
    >>> by_column("--labels", ["vote=no,yes"], ["vote", "age"], str)
    {'vote': 'no,yes'}
    """
    found: dict[str, V] = {}
    for text in given or ():
        name = column_of(text, columns)
        if name is None and len(columns) > 1:
            raise typer.BadParameter(
                f"{text!r} does not begin with a column and =", param_hint=option
            )
        place = name or columns[0]
        if place in found:
            raise typer.BadParameter(f"{place!r} is duplicated", param_hint=option)
        try:
            found[place] = read(text if name is None else text.removeprefix(f"{name}="))
        except typer.BadParameter as error:
            raise typer.BadParameter(f"{place!r}: {error.message}", param_hint=option) from error
    return found


def column_of(text: str, columns: Sequence[str]) -> str | None:
    """Name the column that a text begins with, if it begins with one and ``=``."""
    return next((name for name in columns if text.startswith(f"{name}=")), None)
