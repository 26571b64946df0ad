"""The parts of a page beside the estimates: participation, protection and costs."""

from __future__ import annotations

import contextlib
import platform
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout._label_texts import number_of
from turnout._version import __version__
from turnout.collecting.groups.series import Series
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.keys import shown_part
from turnout.collecting.left_out import LeftOut
from turnout.collecting.plan import Plan
from turnout.collecting.tally import BaseTally
from turnout.errors import InvalidTypeError
from turnout.reporting.telling import PEOPLE, Telling
from turnout.reporting.words import (
    epsilon_of_one,
    epsilon_together,
    file_size,
    guarantee,
    kept_answers,
    number,
    participation,
    percent,
    rounded_up,
)

#: Names and values, in order.
Rows = list[tuple[object, object]]

#: A number that stands large at the top, and what it is.
Card = tuple[str, str]


class Collected(ABC):
    """What was collected, and how."""

    #: How those are called whom the estimates of all are of.
    people: str = PEOPLE

    @property
    @abstractmethod
    def left_out(self) -> LeftOut:
        """The number of rows and messages that do not count."""

    @abstractmethod
    def cards(self) -> list[Card]:
        """State what was collected, in numbers."""

    @abstractmethod
    def lead(self) -> str:
        """State what was collected, in a sentence or two."""

    @abstractmethod
    def statements(self) -> list[str]:
        """State what protects the people, one statement for each entry."""

    @abstractmethod
    def took_part(self) -> Rows:
        """State who took part, and who was left out."""

    @abstractmethod
    def cost(self) -> Rows:
        """State the costs."""

    @abstractmethod
    def making(self) -> Rows:
        """State how the numbers were computed, for readers who check them."""

    @abstractmethod
    def basis(self) -> str:
        """State for a publication what the estimates are about and what protects the people."""

    def _with_left_out(self, lead: str) -> str:
        if not self.left_out:
            return lead
        return f"{lead} Left out, and not in any number below: {self.left_out}."


def versions() -> tuple[object, object]:
    """Name the programs that computed the numbers."""
    python = platform.python_version()
    return "versions", f"turnout {__version__}, Python {python}, NumPy {np.__version__}"


def without(left_out: LeftOut) -> str:
    """Return the end of a sentence that states how many people it does not cover."""
    people = left_out.people
    if not people:
        return ""
    return f"; {people:,} more gave no answer" if people > 1 else "; 1 more gave no answer"


def asked_card(kind: Telling, domain: Any) -> Card:
    """Return the card of the question; a short one is shown large."""
    name, value = kind.asked(domain)
    if name == "domain":
        return f"{domain.size:,}", "possible answers"
    if name == "questions":
        questions = list(domain.columns)
        return f"{len(questions):,}", f"questions: {', '.join(questions)}"
    short, long = sorted((name, value), key=len)
    return short, long


@dataclass(frozen=True, eq=False)
class OfReports(Collected):
    """Reports that people randomized themselves.

    Attributes
    ----------
    tally
        The tally of all groups.
    grouped
        The grouped tally, if it is one.
    series
        The estimates over time, if there are any.
    kind
        How the estimates are told.
    domain
        What could be answered.
    method
        The estimator.
    times
        How many people were asked at each time, if reports of several were added up.
    """

    tally: BaseTally
    grouped: GroupedTally[Any] | None
    series: Series[Any] | None
    kind: Telling
    domain: Any
    method: str
    times: Sequence[int] = ()

    @property
    def plan(self) -> Plan:
        """The oracle and the participation."""
        return self.tally.plan

    @property
    def left_out(self) -> LeftOut:
        """The number of rows and messages that do not count."""
        return self.tally.left_out

    @property
    def asked(self) -> list[int]:
        """The number of people asked at each time; a single one without times.

        People who were asked at two times are in both numbers, and nobody knows how many they are.
        """
        if self.series is None:
            if self.times:
                return list(self.times)
            # Rounds of permanent answers that were added up.
            return [size for _, size in self.tally.origin.rounds.sizes] or [self.tally.nodes]
        numbers = [tally.nodes for tally in self.series.estimate.tally.values() if tally.nodes]
        return numbers or [0]

    @property
    def people(self) -> str:  # type: ignore[override]
        """The word for the people that all estimates cover."""
        return PEOPLE if len(self.asked) == 1 else "all questions to people"

    def cards(self) -> list[Card]:
        """State how many people, reports, answers and which epsilon."""
        tally, plan = self.tally, self.plan
        ratio = tally.received / tally.nodes if tally.nodes else 0.0
        epsilon = f"ε = {rounded_up(epsilon_of_one(plan), 4)}"
        reports = "report" if tally.received == 1 else "reports"
        asked, times = asked_card(self.kind, self.domain), len(self.asked)
        if times == 1:
            return [
                (f"{tally.nodes:,}", f"{'person' if tally.nodes == 1 else 'people'} (nodes)"),
                (f"{tally.received:,}", f"{reports}, {percent(ratio, 1)} of the people"),
                asked,
                (epsilon, "privacy of one report"),
            ]
        together = f"ε = {rounded_up(epsilon_together(plan, times), 4)}"
        card = (together, f"privacy of a person who reports at all times; {epsilon} for one report")
        kept = kept_answers(plan, times)
        if kept is not None:
            first, rest = kept.split(", ", 1)
            value, what = first.split(" for ", 1)
            card = (value, f"privacy of {what}; {rest}")
        return [
            (f"{max(self.asked):,}", f"people at most at one of the {times:,} times"),
            (f"{tally.nodes:,}", "questions to people, at all times together"),
            (f"{tally.received:,}", f"{reports}, for {percent(ratio, 1)} of the questions"),
            asked,
            card,
        ]

    def lead(self) -> str:
        """State who took part, and when."""
        who = participation(self.plan)
        lead = f"A collection with local differential privacy. Who reports, by the plan: {who}."
        lead = self._with_left_out(lead)
        if self.series is not None and self.series.times:
            first, last = shown_part(self.series.times[0]), shown_part(self.series.times[-1])
            span = first if first == last else f"{first} to {last}"
            lead = f"{lead} {self.series.time.capitalize()}: {span}."
        return lead

    def statements(self) -> list[str]:
        """State what the randomization protects."""
        names = self.grouped.names if self.grouped is not None else ()
        return guarantee(self.plan, names, len(self.asked))

    def took_part(self) -> Rows:
        """State how many were asked, and how many reported."""
        tally, asked = self.tally, self.asked
        counted = "people who count" if len(asked) == 1 else "questions to people, at all times"
        rows: Rows = [
            (f"{counted} (nodes)", f"{tally.nodes:,}"),
            ("left out, and not in any other number", str(self.left_out)),
        ]
        if len(asked) > 1:
            rows.append(("times", f"{len(asked):,}"))
            rows.append(("people at one time, at most", f"{max(asked):,}"))
        rows += [
            ("participation", participation(self.plan)),
            ("reports received", f"{tally.received:,}"),
        ]
        # Those who gave no answer though the plan asked them are left out, and not in ``nodes``.
        if tally.nodes > tally.received:
            silent = (
                "people who did not report" if len(asked) == 1 else "questions without a report"
            )
            rows.append((silent, f"{tally.nodes - tally.received:,}"))
        if self.grouped is not None:
            empty = sum(1 for group in self.grouped.values() if not group.received)
            columns = ", ".join(self.grouped.names)
            rows.append((f"groups by {columns}", f"{len(self.grouped):,}"))
            if empty:
                rows.append(("groups without a report", f"{empty:,}"))
        return rows

    def cost(self) -> Rows:
        """State how large the reports are."""
        bits, received = self.plan.oracle.report_bits, self.tally.received
        return [
            ("reports paid for", f"{received:,}"),
            ("size of a report", number_of(bits, "bit")),
            ("size of all reports", file_size(received * bits / 8)),
        ]

    def making(self) -> Rows:
        """State which oracle, epsilon and estimator."""
        oracle = self.plan.oracle
        rows: Rows = [
            ("oracle", oracle.name.replace("_", " ")),
            (
                "epsilon",
                kept_answers(self.plan, 1)
                or f"{number(oracle.epsilon)} stated, {number(oracle.realized_epsilon)} realised",
            ),
            *self.kind.making(self.plan),
            ("estimator", self.method.replace("_", " ")),
        ]
        # Labels that no file can hold, such as dates, have no fingerprint.
        with contextlib.suppress(InvalidTypeError):
            rows.append(("plan (SHA-256)", self.plan.fingerprint))
        return [*rows, versions()]

    def basis(self) -> str:
        """State how many were asked and reported, and the epsilon."""
        nodes, received, times = self.tally.nodes, self.tally.received, len(self.asked)
        epsilon = f"ε = {rounded_up(epsilon_of_one(self.plan), 4)} for each report"
        who = number_of(nodes, "person", "people")
        if times > 1:
            who = f"{nodes:,} questions to people at {times:,} times"
            together = rounded_up(epsilon_together(self.plan, times), 4)
            epsilon = f"{epsilon}, ε = {together} for a person who reports at all times"
        epsilon = kept_answers(self.plan, times) or epsilon
        reported = "all of which were answered" if times > 1 else "all of whom reported"
        if nodes == 1 and times == 1:
            reported = "who reported" if received else "who did not report"
        elif received != nodes:
            reported = (
                f"of which {received:,} were answered"
                if times > 1
                else (f"of whom {received:,} reported")
            )
        return (
            f"The estimates are about {who}, {reported}{without(self.left_out)}. Every answer was "
            f"randomized before it became a report (local differential privacy, {epsilon})."
        )


@dataclass(frozen=True, eq=False)
class OfSeveral(Collected):
    """Several columns of the same people, each with its collection.

    Attributes
    ----------
    each
        What was collected of each column.
    statement
        What was done and what protects the people: a sentence an entry.
    epsilon
        The privacy of all that is known of a person from the columns together.
    without
        How many rows do not count.
    """

    each: Mapping[str, Collected]
    statement: Sequence[str]
    epsilon: float
    without: LeftOut

    @property
    def left_out(self) -> LeftOut:
        """The number of rows that do not count."""
        return self.without

    def cards(self) -> list[Card]:
        """State how many people, columns and which epsilon."""
        [first, *_] = self.each.values()
        return [
            first.cards()[0],
            (f"{len(self.each):,}", f"columns: {', '.join(self.each)}"),
            (f"ε = {rounded_up(self.epsilon, 4)}", "privacy of all columns together"),
        ]

    def lead(self) -> str:
        """State that these are several columns."""
        return self._with_left_out("A survey of several columns of the same people.")

    def statements(self) -> list[str]:
        """State what was done, and what it protects."""
        return [line.strip().removeprefix("- ") for line in self.statement]

    def took_part(self) -> Rows:
        """State who took part in each column."""
        return self._of_each(lambda one: one.took_part())

    def cost(self) -> Rows:
        """State what each column cost."""
        return self._of_each(lambda one: one.cost())

    def making(self) -> Rows:
        """State how the numbers of each column were made."""
        return [*self._of_each(lambda one: one.making()[:-1]), versions()]

    def basis(self) -> str:
        """State what all columns together reveal."""
        return f"All columns together have ε = {rounded_up(self.epsilon, 4)} for each person."

    def _of_each(self, rows: Callable[[Collected], Rows]) -> Rows:
        return [
            (f"{name}: {what}", value)
            for name, one in self.each.items()
            for what, value in rows(one)
        ]
