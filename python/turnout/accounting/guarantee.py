"""Guarantees in sentences: what is protected, against whom, under which assumptions."""

from __future__ import annotations

import dataclasses
from typing import Any

from turnout._tables import Tabular
from turnout.accounting.mechanism import Mechanism


@dataclasses.dataclass(frozen=True)
class Guarantee(Tabular):
    """A statement of what rounds protect, against whom, and under which assumptions.

    Every started round counts, even a lost one: some of it may have been seen. For another number
    of rounds compose: ``guarantee.mechanism.compose(rounds)``.

    Attributes
    ----------
    mechanism
        The accounting of one round: ``guarantee.mechanism.delta(epsilon)``, ``.compose(rounds)``.
    adjacency
        The neighbouring data sets.
    epsilon, delta
        The target of the calibration, or None if the parameter was given.
    assumptions
        One sentence for each assumption; the guarantee holds if all of them hold.
    rounds
        The number of rounds of the target.
    change
        The difference between neighbouring data sets, in words.
    """

    mechanism: Mechanism
    adjacency: str
    epsilon: float | None
    delta: float | None
    assumptions: tuple[str, ...]
    _: dataclasses.KW_ONLY
    rounds: int = 1
    change: str = "one user's item is changed"

    _columns = ("mechanism", "adjacency", "epsilon", "delta", "rounds", "assumption")

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each assumption, for tables and programs.

        Returns
        -------
        list of dict
            Dictionaries with ``mechanism`` (as text), ``adjacency``, ``epsilon``, ``delta``,
            ``rounds`` and ``assumption``.
        """
        head = {
            "mechanism": repr(self.mechanism),
            "adjacency": self.adjacency,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "rounds": self.rounds,
        }
        return [{**head, "assumption": assumption} for assumption in self.assumptions or (None,)]

    def __str__(self) -> str:
        """Write the guarantee in words."""
        target = repr(self.mechanism)
        if self.epsilon is not None and self.delta is not None:
            times = "" if self.rounds == 1 else f" in {self.rounds} rounds, each"
            target = f"epsilon = {self.epsilon:g}, delta = {self.delta:g}{times} by {target}"
        sentences = ";\n".join(f"  - {sentence}" for sentence in self.assumptions)
        return f"{target}, where {self.change} ({self.adjacency!r}), if\n{sentences}."
