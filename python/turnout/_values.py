"""Frozen dataclasses whose fields are checked and converted when they are made."""

from __future__ import annotations


def settle(made: object, /, **fields: object) -> None:
    """Give a frozen dataclass fields of these values: as they are made, and never later.

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
    for name, checked in fields.items():
        object.__setattr__(made, name, checked)
