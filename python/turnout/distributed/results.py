"""What a round gives, and what it costs each party."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from turnout._tables import Tabular, WithTop, fields_of
from turnout._types import Integers
from turnout.distributed.messages import MESSAGE_OVERHEAD
from turnout.frequency.estimation.estimate import FrequencyEstimate


@dataclasses.dataclass(frozen=True, eq=False)
class RoundResult(WithTop):
    """What a round gave: a table of the frequencies with intervals.

    Attributes
    ----------
    estimate
        The frequencies, with exact variances and intervals.
    sums
        int64: what the round reveals, one whole number for each item.
    costs
        What each role did.
    refused
        How many reports were refused, by the reason: ``"proof"`` where a proof does not hold,
        ``"malformed"`` where a report cannot be read, ``"replayed"`` where one came twice. Empty
        where reports carry no proof.
    """

    estimate: FrequencyEstimate
    sums: Integers
    costs: CostLedger
    refused: Mapping[str, int] = dataclasses.field(default_factory=dict)

    _columns = FrequencyEstimate._columns

    def to_records(
        self, level: float = 0.95, *, simultaneous: str | None = None, top: int | None = None
    ) -> list[dict[str, Any]]:
        """List one dictionary for each item.

        Parameters
        ----------
        level, simultaneous, top
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
        return self.estimate.to_records(level, simultaneous=simultaneous, top=top)


@dataclasses.dataclass
class Costs:
    """What parties of one role did.

    Attributes
    ----------
    messages, bytes
        Sent.
    additions
        Of field elements.
    draws
        Uniform field elements, expanded seeds included.
    coins
        Bernoulli trials, those of dummies included.
    sets
        Sets of items.
    noise
        Whole numbers of noise.
    """

    messages: float = 0
    bytes: float = 0
    additions: float = 0
    draws: float = 0
    coins: float = 0
    sets: float = 0
    noise: float = 0

    def __add__(self, other: Costs) -> Costs:
        """Add the costs of other parties."""
        pairs = zip(dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return Costs(*(one + two for one, two in pairs))

    def _count_bundles(self, items: Integers, bits: int) -> None:
        """Count messages that each hold elements of some items, with the items' numbers."""
        self.messages += len(items)
        sizes = MESSAGE_OVERHEAD + 4 + 4 * items + (items * bits + 7) // 8
        self.bytes += int(sizes.sum())


_COLUMNS = fields_of(Costs)


@dataclasses.dataclass(frozen=True)
class CostLedger(Tabular):
    """The costs of one round, by role.

    Attributes
    ----------
    totals
        The costs of all parties of a role together.
    parties
        How many parties each role has.
    formulas
        What Table 1 of the paper says for one party of a role, where it says something.
    """

    totals: dict[str, Costs]
    parties: dict[str, int]
    formulas: dict[str, Costs]

    _columns = ("role", "parties", *_COLUMNS)

    def to_records(self) -> list[dict[str, Any]]:
        """List what one party of each role does on average, for tables and programs.

        Returns
        -------
        list of dict
            With ``role``, ``parties`` and the names of :class:`Costs`.
        """
        return [
            {
                "role": role,
                "parties": self.parties[role],
                **dataclasses.asdict(self.average(role)),
            }
            for role in self.totals
        ]

    def average(self, role: str) -> Costs:
        """Give the mean cost of one party of a role.

        Parameters
        ----------
        role
            A key of :attr:`totals`.
        """
        parties = self.parties[role]
        return Costs(*(value / parties for value in dataclasses.astuple(self.totals[role])))

    def __str__(self) -> str:
        """Give the mean costs of a party, with the formulas of the paper below, as a text table.

        Columns without costs are left out.
        """
        known = [*self.totals.values(), *self.formulas.values()]
        columns = [name for name in _COLUMNS if any(getattr(costs, name) for costs in known)]
        header = f"{'one party':<25}{'parties':>9}"
        lines = [header + "".join(f"{name:>11}" for name in columns)]
        for role in self.totals:
            lines.append(_line(role, f"{self.parties[role]:,}", self.average(role), columns))
            if role in self.formulas:
                lines.append(_line("  by the paper's Table 1", "", self.formulas[role], columns))
        return "\n".join(lines)


def _line(title: str, parties: str, costs: Costs, columns: Iterable[str]) -> str:
    values = (_short(getattr(costs, name)) for name in columns)
    return f"{title:<25}{parties:>9}" + "".join(f"{value:>11}" for value in values)


def _short(value: float) -> str:
    """Write a number in at most ten characters."""
    if 0 < value < 100 and value != round(value):
        return f"{value:.1f}"
    return f"{value:,.0f}" if value < 1e8 else f"{value:.2e}"
