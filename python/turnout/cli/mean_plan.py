"""``turnout plan --mean`` and ``--distribution``: the plan file of a collection of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import typer

from turnout import Bernoulli, Bounds, Everyone, Plan
from turnout.cli.answers import oracle_names
from turnout.cli.mean_mechanisms import mechanism_of, mechanisms, option_of
from turnout.cli.running import check_positive
from turnout.cli.showing.shown import describe_participation
from turnout.cli.tables import number
from turnout.distribution import BinnedBounds
from turnout.reporting.numbers import span


@dataclass(frozen=True)
class MeanPlan:
    """A plan of a mean or of a distribution, and why its mechanism was taken.

    Attributes
    ----------
    plan
        The plan.
    reason
        Why this mechanism; none where it was named.
    """

    plan: Plan
    reason: str

    @classmethod
    def of(
        cls,
        bounds: Bounds,
        epsilon: str,
        participation: float | None,
        names: list[str] | None,
        *,
        serial: int | None,
        expires: datetime | None,
    ) -> MeanPlan:
        """Make the plan that options ask for.

        Raises
        ------
        typer.BadParameter
            If one of them is out of range.
        """
        try:
            level = check_positive(float(epsilon))
        except ValueError as error:
            raise typer.BadParameter(
                f"{epsilon!r} is not a number, as {option_of(bounds)} takes", param_hint="--epsilon"
            ) from error
        wanted = names or ["auto"]
        known = ("auto", *mechanisms(bounds))
        if len(wanted) != 1:
            raise typer.BadParameter(
                f"is named once with {option_of(bounds)}", param_hint="--oracle"
            )
        (name,) = oracle_names(wanted, known, f", which {option_of(bounds)} takes")
        mechanism, reason = mechanism_of(name, level, bounds)
        taking_part = Everyone() if participation in (None, 1.0) else Bernoulli(participation)
        return cls(Plan(mechanism, taking_part, serial=serial, expires=expires), reason)

    def rows(self) -> list[tuple[str, str]]:
        """Say what the plan is, one name and value an entry."""
        oracle: Any = self.plan.oracle
        rows = [
            ("oracle", f"{oracle.name}, {oracle.report_bits:,} bits a report"),
            ("numbers", span(oracle.domain)),
            ("epsilon", number(oracle.epsilon)),
            ("participation", describe_participation(self.plan)),
        ]
        if isinstance(oracle.domain, BinnedBounds):
            cells = f"one of {oracle.cells:,} cells, {oracle.window:,} of them around the own bin"
            return [*rows, ("bins", f"{oracle.bins:,}"), ("one report", cells)]
        error = f"standard error of at most {oracle.worst_variance**0.5:.4g}"
        rows.append(("one report", error))
        return [*rows, ("why", self.reason)] if self.reason else rows

    def to_dict(self) -> dict[str, Any]:
        """Say it in terms of JSON."""
        oracle: Any = self.plan.oracle
        record = {
            "oracle": oracle.name,
            "epsilon": oracle.epsilon,
            "report_bits": oracle.report_bits,
            "participation": self.plan.participation.uniform_rate,
            "bounds": [oracle.domain.low, oracle.domain.high],
        }
        if isinstance(oracle.domain, BinnedBounds):
            return {**record, "bins": oracle.bins, "window": oracle.window}
        return {**record, "report_standard_error": oracle.worst_variance**0.5}
