"""How often each answer to each of several questions is given, as a report tells it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from turnout.collecting.plan import Plan
from turnout.reporting.contents import Contents
from turnout.reporting.frequencies import FrequencyWording, digits_of, share_cells, shown_limits
from turnout.reporting.wording import Content, group_key
from turnout.reporting.words import percent


class AttributeWording(FrequencyWording):
    """Tells shares of several questions: see :class:`turnout.reporting.wording.Wording`."""

    what: ClassVar[str] = "The share of each answer to each question"

    def card(self, plan: Plan) -> tuple[str, str]:
        """Say how many questions there are."""
        domains = plan.domain.columns
        return f"{len(domains):,}", f"questions: {', '.join(domains)}"

    def estimate(self, contents: Contents) -> Content:
        """Tell the share of each answer to each question."""
        estimate, level = contents.estimate, contents.level
        records = estimate.to_records(level, simultaneous=contents.simultaneous, top=contents.top)
        digits = digits_of(record["standard_error"] for record in records)
        rows = [
            (record["attribute"], record["label"], *share_cells(record, digits))
            for record in records
        ]
        head = ("question", "answer", "people", "share", "standard error")
        scope = "each answer by itself"
        if contents.simultaneous is not None:
            scope = "all answers to all questions at once"
        return Content(
            "All answers to all questions",
            (*head, f"{percent(level)} interval"),
            rows,
            names=2,
            of=estimate.answers,
            words="The noise of the reports is taken out of the shares, so that a rare answer can "
            f"come out below zero. Of intervals made like these, {percent(level)} hold the true "
            f"share, for {scope}.",
        )

    def groups(self, contents: Contents, records: Sequence[dict[str, Any]]) -> Content:
        """Tell the shares in each group."""
        names = list(records[0]["group"])
        digits = digits_of(record["standard_error"] for record in records)
        rows = [
            (
                *group_key(record),
                record["attribute"],
                record["label"],
                f"{record['received']:,}",
                record["reason"] or percent(record["frequency"], digits),
                shown_limits(record["low"], record["high"], digits),
            )
            for record in records
        ]
        interval = f"{percent(contents.level)} interval"
        head = (*names, "question", "answer", "reports", "share", interval)
        return Content("Groups, questions and answers", head, rows, names=len(names) + 2)

    def draws_groups(self, plan: Plan) -> bool:
        """Tell that groups are in the table alone."""
        return False

    def draw(self, estimate: Any, level: float, simultaneous: str | None) -> Any:
        """Draw a panel for each question."""
        return estimate.plot(level=level, simultaneous=simultaneous)

    def making(self, plan: Plan) -> list[tuple[str, str]]:
        """Say how each question is reported."""
        return [
            (f"question {name}", f"{oracle.name.replace('_', ' ')}, epsilon {oracle.epsilon:.6g}")
            for name, oracle in plan.oracle.oracles.items()
        ]

    def fingerprints(self, plan: Plan) -> list[tuple[str, str]]:
        """Give the fingerprint of all questions with their answers."""
        return [("questions and answers (SHA-256)", plan.domain.fingerprint)]
