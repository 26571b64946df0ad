"""What a round gives, and what it protects."""

from __future__ import annotations

import dataclasses
from typing import Any

from turnout._tables import Tabular
from turnout._types import Integers
from turnout.accounting.mechanism import Mechanism
from turnout.distributed.costs import CostLedger
from turnout.frequency.estimation.estimate import FrequencyEstimate


@dataclasses.dataclass(frozen=True)
class Guarantee(Tabular):
    """What one round protects, against whom, and what that rests on.

    Every round that was started counts, also one that was lost: some of it may have been seen. For
    more rounds compose: ``guarantee.mechanism.compose(rounds)``.

    Attributes
    ----------
    mechanism
        The accounting of one release: ``guarantee.mechanism.delta(epsilon)``, ``.compose(rounds)``.
    adjacency
        What neighbouring data sets are.
    epsilon, delta
        The target that the mechanism was calibrated for, or None if its parameter was given.
    assumptions
        One sentence each; the guarantee holds where all of them do.
    """

    mechanism: Mechanism
    adjacency: str
    epsilon: float | None
    delta: float | None
    assumptions: tuple[str, ...]

    _columns = ("mechanism", "adjacency", "epsilon", "delta", "assumption")

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each assumption, for tables and programs.

        Returns
        -------
        list of dict
            With ``mechanism`` (as text), ``adjacency``, ``epsilon``, ``delta`` and ``assumption``.
        """
        head = {
            "mechanism": repr(self.mechanism),
            "adjacency": self.adjacency,
            "epsilon": self.epsilon,
            "delta": self.delta,
        }
        return [{**head, "assumption": assumption} for assumption in self.assumptions or (None,)]

    def __str__(self) -> str:
        """Say it in words."""
        target = repr(self.mechanism)
        if self.epsilon is not None and self.delta is not None:
            target = f"epsilon = {self.epsilon:g}, delta = {self.delta:g} by {target}"
        change = "one user's item is changed"
        if self.adjacency != "replace":
            change = "one user that takes part holds an item or none"
        sentences = ";\n".join(f"  - {sentence}" for sentence in self.assumptions)
        return f"{target}, where {change} ({self.adjacency!r}), if\n{sentences}."


@dataclasses.dataclass(frozen=True, eq=False)
class RoundResult(Tabular):
    """What a round gave: a table of the frequencies with intervals.

    Attributes
    ----------
    estimate
        The frequencies, with exact variances and intervals.
    sums
        int64: what the round reveals, one whole number for each item.
    costs
        What each role did.
    """

    estimate: FrequencyEstimate
    sums: Integers
    costs: CostLedger

    _columns = FrequencyEstimate._columns

    def to_records(self, level: float = 0.95, **options: Any) -> list[dict[str, Any]]:
        """List one dictionary for each item.

        Parameters
        ----------
        level, **options
            As for :meth:`turnout.FrequencyEstimate.to_records`.

        Returns
        -------
        list of dict
            As :meth:`turnout.FrequencyEstimate.to_records` gives them.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type, or none of the allowed values.
        """
        return self.estimate.to_records(level, **options)
