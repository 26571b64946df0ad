"""Frozen dataclasses whose fields are checked and converted on construction."""

from __future__ import annotations

from dataclasses import fields
from typing import TypeVar

from turnout import _arguments

Made = TypeVar("Made")


def settle(made: object, /, **values: object) -> None:
    """Set fields of a frozen dataclass during its construction.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Rate:
    ...     rate: float
    ...
    ...     def __post_init__(self) -> None:
    ...         settle(self, rate=float(self.rate))
    >>> Rate(1)
    Rate(rate=1.0)
    """
    for name, checked in values.items():
        object.__setattr__(made, name, checked)


def rebuilt(name: str, kind: type[Made], description: object) -> Made | None:
    """Rebuild a frozen dataclass from a dictionary of its fields, or return None for None.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the argument ``name`` is no such dictionary, or a field has a wrong value.

    Examples
    --------
    >>> from turnout.federated import SecureSum
    >>> rebuilt("secure_sum", SecureSum, {"least_senders": 7, "max_colluding_clients": 2})
    SecureSum(least_senders=7, max_colluding_clients=2)
    """
    if description is None:
        return None
    expected = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    if not isinstance(description, dict) or description.keys() != expected:
        raise _arguments.mistyped(
            f"{name} must be None or have {', '.join(sorted(expected))}", description
        )
    return kind(**description)
