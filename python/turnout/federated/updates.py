"""What a client sends in a round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from turnout import _arguments
from turnout._types import Array


@dataclass(frozen=True, eq=False)
class Update:
    """The clipped sum of a client's sampled gradients; in untrusted modes with its own noise.

    It does not say how many elements were sampled, which is private.

    Parameters
    ----------
    round
        The round it answers, from 0.
    values
        One number for each parameter of the model: int64 in steps of the plan's grid, or float64
        where the plan has no exact noise.
    plan
        The fingerprint of the plan it was made under.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    >>> import numpy as np
    >>> Update(0, np.array([3, -1]), "abc").values.dtype
    dtype('int64')
    """

    round: int
    values: Array
    plan: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "round", _arguments.integer("round", self.round, least=0))
        values = self.values
        if (
            not isinstance(values, np.ndarray)
            or values.ndim != 1
            or values.dtype not in (np.dtype(np.int64), np.dtype(np.float64))
        ):
            raise _arguments.mistyped(
                "values must be a one-dimensional NumPy array of dtype int64 or float64", values
            )
        _arguments.instance("plan", self.plan, str, "the fingerprint of a plan, text")

    def __repr__(self) -> str:
        """Show what it is, not what it holds."""
        return f"Update(round={self.round}, {self.values.size} values, {self.values.dtype})"
