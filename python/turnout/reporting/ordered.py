"""How often each answer with an order is given, as a report tells it."""

from __future__ import annotations

from turnout.collecting.plan import Plan
from turnout.reporting.frequencies import FrequencyWording


class OrderedWording(FrequencyWording):
    """Tells shares that were collected level by level: see :class:`FrequencyWording`."""

    def making(self, plan: Plan) -> list[tuple[str, str]]:
        """Say how each level is reported."""
        return [
            (
                f"level {number}: {oracle.domain.size:,} runs of answers",
                oracle.name.replace("_", " "),
            )
            for number, oracle in enumerate(plan.oracle.oracles, 1)
        ]
