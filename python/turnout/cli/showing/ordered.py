"""How often each answer with an order is given, and below which answers shares of all lie."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from turnout.cli.showing.frequencies import Frequencies
from turnout.cli.showing.shown import Shown, Wish
from turnout.cli.tables import percent, printable

_PROBABILITIES = (0.25, 0.5, 0.75)


class Ordered(Frequencies):
    """Shows frequencies and quartiles: see :class:`turnout.cli.showing.shown.Showing`."""

    def estimate(self, tally: Any, wish: Wish) -> Shown:
        """Estimate the frequencies and the quartiles."""
        shown = super().estimate(tally, wish)
        estimate = tally.estimate(wish.method)
        quartiles = [estimate.quantile(each, wish.level) for each in _PROBABILITIES]
        described = [
            {"probability": q.probability, "label": q.label, "low": q.low, "high": q.high}
            for q in quartiles
        ]
        rows = [
            (
                f"{percent(q.probability)} up to",
                f"{_text(q.label)} ({_text(q.low)} to {_text(q.high)})",
            )
            for q in quartiles
        ]

        def record() -> dict[str, Any]:
            made = shown.record
            estimates = made.pop("estimates")
            return {**made, "quantiles": described, "estimates": estimates}

        return replace(shown, make_record=record, rows=[*shown.rows, *rows])


def _text(label: Any) -> str:
    return printable(str(label))
