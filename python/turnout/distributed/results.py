"""The results of a round, and its costs for each party."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from turnout._tables import Tabular, WithSimultaneous, WithTop, fields_of
from turnout._types import Integers
from turnout.distributed.messages import MESSAGE_OVERHEAD
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.mean.estimate import MeanEstimate

#: What is estimated.
E = TypeVar("E", FrequencyEstimate, MeanEstimate)


@dataclasses.dataclass(frozen=True, eq=False)
class BaseResult(Generic[E]):
    """The result of a round of any kind (base class).

    Attributes
    ----------
    estimate
        The estimate, with standard errors and intervals.
    sums
        int64: the sums that the round reveals, one whole number for each item or number.
    costs
        The costs of each role.
    refused
        The number of refused reports by reason: ``"proof"`` if a proof is invalid, ``"malformed"``
        if a report cannot be read, ``"replayed"`` if a report arrived twice. Empty if reports carry
        no proof.
    """

    estimate: E
    sums: Integers
    costs: CostLedger
    refused: Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, eq=False)
class RoundResult(BaseResult[FrequencyEstimate], WithTop):
    """The result of a round of votes: a table of frequencies with intervals.

    Attributes
    ----------
    estimate
        The frequencies, with exact variances and intervals.
    sums, costs, refused
        As in every result: the sums that the round reveals, one whole number for each item; the
        costs of each role; and the number of refused reports by reason.
    """

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


@dataclasses.dataclass(frozen=True, eq=False)
class SumResult(BaseResult[MeanEstimate], WithSimultaneous):
    """The result of a round of numbers: a table of the mean with its interval.

    Attributes
    ----------
    estimate
        The mean and the sum of the numbers.
    sums, costs, refused
        As in every result: the revealed sum of the distances of all numbers from the lower bound;
        the costs of each role; and the number of refused reports by reason.
    """

    _columns = MeanEstimate._columns

    def to_records(
        self, level: float = 0.95, *, simultaneous: str | None = None
    ) -> list[dict[str, Any]]:
        """List one dictionary with the mean.

        Parameters
        ----------
        level, simultaneous
            As for :meth:`turnout.mean.MeanEstimate.to_records`.

        Returns
        -------
        list of dict
            As :meth:`turnout.mean.MeanEstimate.to_records` gives it.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type, or none of the allowed values.
        """
        return self.estimate.to_records(level, simultaneous=simultaneous)


@dataclasses.dataclass
class Costs:
    """The costs of the parties of one role.

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
        """Count messages of an election with elements of some items, and the items."""
        self.messages += len(items)
        sizes = MESSAGE_OVERHEAD + 8 + 4 * items + (items * bits + 7) // 8
        self.bytes += int(sizes.sum())


_COLUMNS = fields_of(Costs)


@dataclasses.dataclass(frozen=True)
class CostLedger(Tabular):
    """The costs of one round, by role.

    Attributes
    ----------
    totals
        The total costs of all parties of a role.
    parties
        The number of parties of each role.
    formulas
        The formulas in Table 1 of the paper for one party of a role, if there are any.
    """

    totals: dict[str, Costs]
    parties: dict[str, int]
    formulas: dict[str, Costs]

    _columns = ("role", "parties", *_COLUMNS)

    def to_records(self) -> list[dict[str, Any]]:
        """List the average costs of one party of each role, for tables and programs.

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
        """Return the mean cost of one party of a role.

        Parameters
        ----------
        role
            A key of :attr:`totals`.
        """
        parties = self.parties[role]
        return Costs(*(value / parties for value in dataclasses.astuple(self.totals[role])))

    def __str__(self) -> str:
        """Return a text table of mean costs of a party, with the paper's formulas below it.

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
    """Format a number in at most ten characters."""
    if 0 < value < 100 and value != round(value):
        return f"{value:.1f}"
    return f"{value:,.0f}" if value < 1e8 else f"{value:.2e}"
