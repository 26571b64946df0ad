"""The arguments of a survey, checked before anything is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnout import _arguments
from turnout.accounting.values import unit_interval
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.attributes.parameters import checked_epsilon

__all__ = ["by_column", "checked_target"]


def checked_target(epsilon: Any, delta: Any) -> tuple[float, float | None]:
    """Check what is asked of all columns together, before it is shared out."""
    whole = checked_epsilon(epsilon)
    if delta is None:
        return whole, None
    return whole, float(unit_interval("delta", _arguments.number("delta", delta)))


def by_column(
    argument: str, given: Any, columns: tuple[str, ...], *, one_for_all: bool = False
) -> dict[str, Any]:
    """Read what may be a dictionary by column."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in columns]
        if unknown:
            raise InvalidValueError(
                f"{argument} names {_arguments.shown(unknown[0])}, which is none of the columns "
                f"{_arguments.listed(columns)}"
            )
        return dict(given)
    if len(columns) > 1 and not one_for_all:
        raise InvalidTypeError(
            f"{argument} must be a dictionary by column where there are several, got "
            f"{_arguments.shown(given)}"
        )
    return dict.fromkeys(columns, given)
