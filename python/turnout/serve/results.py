"""The current results of a collection: as an object for programs, and as a page."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from turnout import GroupedTally, Plan
from turnout.errors import EstimatorError, TurnoutError
from turnout.reporting.contents import why_nothing
from turnout.reporting.documents import Document
from turnout.reporting.page import page, spending
from turnout.reporting.records import record
from turnout.reporting.sheet import sheet
from turnout.reporting.spending import Ledger
from turnout.reporting.telling import View, telling
from turnout.reporting.words import guarantee
from turnout.serve.collection import Family
from turnout.serve.counted import Counted, count, reported_plans
from turnout.serve.storage.interface import Store

#: Of a group of fewer reports nothing is shown.
LEAST: Final = 50


@dataclass(frozen=True)
class Results:
    """The current results of a question.

    Attributes
    ----------
    plan
        A plan that asks it.
    counted
        What may be shown of it.
    ledger
        What a person spends who reports under every plan of the collection.
    times
        Under how many plans people reported, so that a person may have answered so often.
    least
        Of a group of fewer reports, or of a collection of fewer, nothing is said.
    """

    plan: Plan
    counted: Counted
    ledger: Ledger
    times: int
    least: int = LEAST

    @classmethod
    def of(
        cls,
        store: Store,
        family: Family,
        only: Plan | None = None,
        least: int = LEAST,
        current: Plan | None = None,
    ) -> Results:
        """Look at a store: the cost is that of the tallies, whatever the number of messages.

        Parameters
        ----------
        store
            The store.
        family
            The question.
        only
            One of its plans; None for all of them.
        least
            The reports of the smallest group that is shown.
        current
            The plan in force.

        Raises
        ------
        StoreUnavailableError
            If the store cannot be read at the moment.
        InvalidValueError
            If the numbers of those asked contradict the reports, or one must be said.
        """
        with store.reading() as reading:
            found = count(store, reading, family, only, least)
            ledger = Ledger.of(reported_plans(reading, current))
        plan = only or family.plans[0]
        asked = [each for each in ledger.questions if each.plans[0].oracle == plan.oracle]
        times = 1 if only is not None else max((len(each.plans) for each in asked), default=1)
        return cls(plan, found, ledger, times, least)

    def described(self) -> dict[str, Any]:
        """Describe the results: the object of ``turnout estimate --json``, and more.

        ``asked`` is the number of people who were asked, null if nobody stated it. ``least`` is the
        number of reports that a group needs to be shown, and ``hidden`` the number of smaller
        groups. ``shrunken`` has the shares with the smallest total error, if there are shares.
        ``protection`` says in sentences what epsilon means. ``ledger`` says what a person spends
        who reports under every plan. If nothing can be estimated, ``estimates`` is empty and
        ``reason`` says why. A question of several that nobody has answered yet has null estimates,
        each with a ``reason``. ``nodes``, ``received``, ``asked`` and the number without an answer
        cover what is shown and nothing that is hidden; if nothing is shown, they are null.
        """
        counted, tally = self.counted, self.counted.tally
        more: dict[str, Any] = {
            "asked": counted.asked,
            "least": self.least,
            "hidden": counted.hidden,
            "protection": guarantee(self.plan, tuple(self.plan.groups), self.times),
            "ledger": self.ledger.described(),
        }
        nothing: dict[str, Any] = {
            "nodes": None if tally is None else tally.nodes,
            "received": None if tally is None else tally.received,
            "left_out": (counted.left_out if tally is None else tally.left_out).to_dict(),
            "plan": self.plan.to_dict(),
            "estimates": [],
        }
        if tally is None:
            return {**nothing, **more, "reason": self._reason}
        try:
            return {**self._record(tally), **more}
        except TurnoutError as error:
            return {**nothing, **more, "reason": why_nothing(tally, error)}

    @property
    def _reason(self) -> str:
        """The reason why no results are shown."""
        if self.least == 1:
            return f"there are no reports{' of any group' if self.plan.groups else ''} yet"
        words = "no group has" if self.plan.groups else "there are not"
        return f"{words} {self.least:,} reports yet"

    def _record(self, tally: Any) -> dict[str, Any]:
        kind, method = telling(tally.plan), tally.plan.oracle.tally_type._default_method
        view = View(method)
        if isinstance(tally, GroupedTally):
            estimate, made = tally.estimate(method), None
        else:
            estimate, made = tally._estimate_answered(method), None
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

    def page(self, title: str | None) -> str:
        """Write the page of the results; without results, it says why there are none yet."""
        if self.counted.tally is None:
            return self._nothing_yet(title)
        try:
            # Times at which too few reported to be shown are times all the same.
            times = self.counted.times
            times += (0,) * (self.times - len(times))
            document = Document.of_times(self.counted.tally, View(None, top=20), times)
        except TurnoutError:
            return self._nothing_yet(title)
        notes = list(document.notes)
        hidden = self.counted.hidden
        if hidden:
            groups = "1 group has" if hidden == 1 else f"{hidden:,} groups have"
            notes.append(
                f"{groups} fewer than {self.least:,} reports. Nothing of that is shown, nor in any "
                "number of this page."
            )
        return page(replace(document, ledger=self.ledger, notes=notes), title)

    def _nothing_yet(self, title: str | None) -> str:
        lead = f"Nothing can be shown yet: {self.described().get('reason', '')}."
        return sheet(title or "Results", lead, [], spending(self.ledger))
