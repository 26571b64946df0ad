"""The results of a collection at this moment: as an object for programs, and as a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from turnout import GroupedTally, Plan
from turnout.errors import EstimatorError, TurnoutError
from turnout.reporting.documents import Document
from turnout.reporting.page import page
from turnout.reporting.records import record
from turnout.reporting.telling import View, telling
from turnout.reporting.words import guarantee
from turnout.serve.collection import Family
from turnout.serve.counted import Counted, count
from turnout.serve.storage.interface import Store

#: Of a group of fewer reports nothing is shown.
LEAST: Final = 50


@dataclass(frozen=True)
class Results:
    """What is known of a question.

    Attributes
    ----------
    counted
        What the store has.
    times
        Under how many plans the same was asked, so that a person may have answered so often.
    least
        Of a group of fewer reports, or of a collection of fewer, nothing is estimated.
    """

    counted: Counted
    times: int = 1
    least: int = LEAST

    @classmethod
    def of(
        cls, store: Store, family: Family, only: Plan | None = None, least: int = LEAST
    ) -> Results:
        """Look at a store: the cost is that of the tallies, whatever the number of messages.

        Raises
        ------
        StoreUnavailableError
            If the store cannot be read at the moment.
        InvalidValueError
            If the numbers of those asked contradict the reports, or one must be said.
        """
        with store.reading() as reading:
            found = count(store, reading, family, only)
        return cls(found, 1 if only is not None else len(family.plans), least)

    @property
    def shown(self) -> Any:
        """The tally of what is large enough to be shown; None if nothing is."""
        tally = self.counted.tally
        if isinstance(tally, GroupedTally):
            kept = {key: one for key, one in tally.items() if one.received >= self.least}
            if not kept:
                return None
            return GroupedTally(
                list(tally.names), kept, plan=tally.plan, of_no_group=tally.of_no_group
            )
        return tally if tally.received >= self.least else None

    def described(self) -> dict[str, Any]:
        """Describe the results: the object of ``turnout estimate --json``, and more.

        ``asked`` is the number of people who were asked, null if nobody said it; ``least`` the
        number of reports of the smallest group that is shown, and ``hidden`` how many groups are
        smaller; ``shrunken`` the shares with the smallest error together, where there are shares;
        ``protection`` what epsilon means, in sentences. Where nothing can be estimated
        ``estimates`` is empty and ``reason`` says why.
        """
        tally, shown = self.counted.tally, self.shown
        grouped = isinstance(tally, GroupedTally)
        more: dict[str, Any] = {
            "asked": self.counted.asked,
            "least": self.least,
            "hidden": len(tally) - len(shown or ()) if grouped else int(shown is None),
            "protection": guarantee(tally.plan, tuple(tally.plan.groups), self.times),
        }
        nothing = {
            "nodes": tally.nodes,
            "received": tally.received,
            "left_out": tally.left_out.to_dict(),
            "plan": tally.plan.to_dict(),
            "estimates": [],
        }
        if shown is None:
            words = "no group has" if grouped else "there are not"
            return {**nothing, **more, "reason": f"{words} {self.least} reports yet"}
        try:
            return {**self._record(shown), **more}
        except TurnoutError as error:
            return {**nothing, **more, "reason": str(error)}

    def _record(self, tally: Any) -> dict[str, Any]:
        kind, method = telling(tally.plan), tally.plan.oracle.tally_type._default_method
        view = View(method)
        estimate, made = tally.estimate(method), None
        if not isinstance(tally, GroupedTally):
            try:
                made = kind.interval_method(estimate, view)
            except EstimatorError:
                made = None
        found = record(estimate, view, kind, tally, method=method, made=made)
        if hasattr(estimate, "shrink"):
            try:
                shrunken = estimate.shrink()
            except TurnoutError:
                return found
            found["shrunken"] = kind.values(shrunken, view)["estimates"]
        return found

    def page(self, title: str | None) -> str | None:
        """Write the page of the results; None if nothing can be shown yet."""
        shown = self.shown
        if shown is None:
            return None
        try:
            return page(Document.of(shown, View(None, top=20)), title)
        except TurnoutError:
            return None
