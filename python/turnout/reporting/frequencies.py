"""The description of the shares of answers to one or several questions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from turnout._label_texts import label_words
from turnout.collecting.plan import Plan
from turnout.errors import EstimatorError
from turnout.frequency.adaptive import SecondRound
from turnout.frequency.estimation.answer import ordered, sorted_records
from turnout.products import questions_of
from turnout.reporting.telling import PEOPLE, Telling, Told, View, groups_of
from turnout.reporting.words import METHODS, digits_for, isolated, percent

#: From so many answers on it is said what intervals of many do together.
MANY = 200

#: How the orders of answers are told.
_ORDERED = {
    "frequency": "the most frequent first",
    "label": "by label",
    "domain": "in the order in which they were listed",
}


class Shares(Telling):
    """The description of frequencies: see :class:`turnout.reporting.telling.Telling`."""

    what: ClassVar[str] = "The share of each answer"
    noise: ClassVar[str] = "The noise of the reports is taken out of the shares"
    of_a_group: ClassVar[str] = "Shares are of"
    together: ClassVar[Mapping[str, str]] = {
        "labels": "all answers of a group at once",
        "groups": "all groups of an answer at once",
        "all": "all answers of all groups at once",
    }

    def asked(self, domain: Any) -> tuple[str, str]:
        """State the number of labels."""
        return "domain", f"{domain.size:,} labels"

    def head(self, domain: Any, level: float, *, groups: bool) -> tuple[list[str], int]:
        """Name label, share, standard error and interval; of all people their number too."""
        count = [] if groups else ["count"]
        return ["label", *count, "frequency", "std. error", f"{percent(level)} interval"], 1

    def cells(self, record: Mapping[str, Any], digits: int) -> list[str]:
        """Write the share of an answer."""
        error = record["standard_error"]
        return [
            label_words(record["label"]),
            *([] if "group" in record else [f"{round(record['count']):,}"]),
            percent(record["frequency"], digits),
            percent(error, digits) if math.isfinite(error) else "unknown",
            share_limits(record["low"], record["high"], digits),
        ]

    found: ClassVar[str] = "Estimated shares"

    def said(self, record: Mapping[str, Any], digits: Any) -> tuple[str, str, str]:
        """Write an answer, its share and the limits."""
        low, high = record["low"], record["high"]
        share = percent(record["frequency"], digits)
        return f"“{isolated(label_words(record['label']))}”", share, share_limits(low, high, digits)

    def digits(self, domain: Any, records: Sequence[Mapping[str, Any]]) -> int:
        """Show the median standard error with two digits."""
        return digits_of(record["standard_error"] for record in records)

    def scope(self, domain: Any, simultaneous: str | None) -> str:
        """State which answers the simultaneous intervals cover."""
        together = f"all {domain.size:,} answers at once"
        return "each answer by itself" if simultaneous is None else together

    def records(self, estimate: Any, view: View) -> list[dict[str, Any]]:
        """List the answers, of all people or of each group, in their order."""
        if groups_of(estimate):
            return list(
                _in_order(estimate.to_records(**view.scope_of(estimate), top=view.top), view)
            )
        codes = ordered(estimate, view.order, view.top)
        found: list[dict[str, Any]] = estimate._columns_of(codes, **view.scope).records()
        return found

    def caption(self, domain: Any, view: View, people: str) -> str:
        """State which answers are shown, in which order, and whether persons are in it twice."""
        some = f"All {domain.size:,} answers"
        if view.top is not None and view.top < domain.size:
            some = f"The {view.top:,} answers with the largest shares, of {domain.size:,}"
        several = ""
        if people != PEOPLE:
            several = "; a person who was asked several times counts each time"
        return f"{some}, {_ORDERED[view.order]}{several}"

    def group_caption(self, domain: Any, view: View) -> str:
        """State which answers of each group are shown."""
        if view.top is not None and view.top < domain.size:
            return f"Groups, and the {view.top} answers of each with the largest shares"
        return "Groups and answers"

    def words(self, estimate: Any, view: View) -> str:
        """State what intervals hold, or why there are none, and what many of them do together."""
        try:
            method = self.interval_method(estimate, view)
        except EstimatorError as error:
            return f"There are no intervals: {error}."
        scope = self.scope(estimate.domain, view.simultaneous)
        if view.simultaneous is not None:
            scope = f"{scope} ({METHODS[view.simultaneous]})"
        size, missed = estimate.domain.size, ""
        if view.simultaneous is None and size >= MANY:
            missed = (
                f" Of {size:,} answers, about {round((1 - view.level) * size):,} are then outside "
                "their intervals, and the largest shares tend to be too large. Intervals that hold "
                "for all at once are wider (--simultaneous sidak)."
            )
        cut = ", cut to 0 and 1" if view.clip else ""
        return (
            f"{self.noise}, so a rare answer can come out below zero. Of intervals made like "
            f"these, {percent(view.level)} hold the true share, for {scope} (method: "
            f"{method}{cut}).{missed}"
        )

    def making(self, plan: Plan) -> list[tuple[str, str]]:
        """State how likely a report is to support an answer."""
        if isinstance(plan.oracle, SecondRound):
            low, high = plan.oracle.rates.min(), plan.oracle.rates.max()
            return [("takes part, by the answer", f"{low:.6g} to {high:.6g} (probabilities)")]
        p, q = plan.oracle.support_probabilities
        return [("report supports own, other answer", f"{p:.6g}, {q:.6g} (probabilities)")]


def _answers_of_each(domain: Any) -> str:
    return ", ".join(f"{name} ({one.size:,} answers)" for name, one in domain.columns.items())


def _in_order(records: Sequence[dict[str, Any]], view: View) -> Iterator[dict[str, Any]]:
    """Put the answers to a question in each group in their order, and leave out all but the top."""

    def question(record: dict[str, Any]) -> tuple[Any, ...]:
        return record["group"], record.get("attribute")

    for _, answers in itertools.groupby(records, question):
        within = list(answers)
        if view.top is not None and view.top < len(within):
            places = sorted(range(len(within)), key=lambda place: -within[place]["frequency"])
            within = [within[place] for place in sorted(places[: view.top])]
        yield from sorted_records(within, view.order)


def share_limits(low: float | None, high: float | None, digits: int) -> str:
    """Write the limits of a share."""
    if low is None or high is None:
        return "none"
    return f"{percent(low, digits)} – {percent(high, digits)}"


def digits_of(errors: Iterable[float]) -> int:
    """Decimals of a percentage that show the median standard error with two digits."""
    known = sorted(error for error in errors if math.isfinite(error) and error > 0)
    return digits_for(known[len(known) // 2] if known else math.nan)


class SharesTogether(Shares):
    """The description of shares of combinations of answers: a column for each question."""

    what: ClassVar[str] = "The share of each combination of answers"

    def asked(self, domain: Any) -> tuple[str, str]:
        """State the number of answers to each question."""
        return "questions", _answers_of_each(domain)

    def head(self, domain: Any, level: float, *, groups: bool) -> tuple[list[str], int]:
        """Name the questions."""
        head, _ = super().head(domain, level, groups=groups)
        return [*domain.columns, *head[1:]], len(domain.columns)

    def cells(self, record: Mapping[str, Any], digits: int) -> list[str]:
        """Write the answer to each question."""
        return [*map(str, record["label"]), *super().cells(record, digits)[1:]]


#: How the shares of one question are told, whatever it was asked with, and of several together.
SHARES: Final = Shares()
TOGETHER: Final = SharesTogether()


def telling_shares(domain: Any) -> Telling:
    """Return the description of the shares of the answers in a domain."""
    return TOGETHER if questions_of(domain) else SHARES


class OrderedShares(Shares):
    """The description of shares and quartiles of ordered answers, collected by level."""

    def facts(self, estimate: Any, level: float) -> list[tuple[str, str]]:
        """Say up to which answers the quarters are."""
        return [
            (f"{percent(each.probability)} up to", f"{each.label} ({each.low} to {each.high})")
            for each in _quartiles(estimate, level)
        ]

    def values(self, estimate: Any, view: View) -> dict[str, Any]:
        """Return also the quartiles of all people."""
        if groups_of(estimate):
            return super().values(estimate, view)
        described = [
            {"probability": each.probability, "label": each.label, "low": each.low,
             "high": each.high}
            for each in _quartiles(estimate, view.level)
        ]  # fmt: skip
        return {"quantiles": described, **super().values(estimate, view)}

    def making(self, plan: Plan) -> list[tuple[str, str]]:
        """State how each level is reported."""
        return [
            (
                f"level {number}: {oracle.domain.size:,} runs of answers",
                oracle.name.replace("_", " "),
            )
            for number, oracle in enumerate(plan.oracle.oracles, 1)
        ]


def _quartiles(estimate: Any, level: float) -> list[Any]:
    # Their law is that of what was not processed.
    return [estimate._unprojected.quantile(share, level) for share in (0.25, 0.5, 0.75)]


#: Why there is no estimate of a question.
_UNANSWERED: Final = "this question has no answers yet"


class SharesOfQuestions(Shares):
    """The description of the shares of several questions."""

    what: ClassVar[str] = "The share of each answer to each question"

    def asked(self, domain: Any) -> tuple[str, str]:
        """State the number of answers to each question."""
        return "questions", _answers_of_each(domain)

    def head(self, domain: Any, level: float, *, groups: bool) -> tuple[list[str], int]:
        """Name the question before the answer."""
        head, names = super().head(domain, level, groups=groups)
        return ["question", *head], names + 1

    def cells(self, record: Mapping[str, Any], digits: int) -> list[str]:
        """Write the question before the answer."""
        return [record["attribute"], *super().cells(record, digits)]

    def said(self, record: Mapping[str, Any], digits: Any) -> tuple[str, str, str]:
        """Write the question before the answer."""
        name, share, interval = super().said(record, digits)
        return f"{record['attribute']}: {name}", share, interval

    def scope(self, domain: Any, simultaneous: str | None) -> str:
        """State which answers the simultaneous intervals cover."""
        return (
            "each answer by itself"
            if simultaneous is None
            else "all answers to all questions at once"
        )

    def records(self, estimate: Any, view: View) -> list[dict[str, Any]]:
        """List the answers to each question in their order."""
        if groups_of(estimate):
            return super().records(estimate, view)
        alone = replace(view, level=estimate._each_level(**view.scope), simultaneous=None)
        return [
            {"attribute": name, **record}
            for name, one in estimate.items()
            for record in super(SharesOfQuestions, self).records(one, alone)
        ]

    def values(self, estimate: Any, view: View) -> dict[str, Any]:
        """Return also the answers to questions that nobody has answered, without numbers."""
        found = super().values(estimate, view)
        if not groups_of(estimate):
            nothing = dict.fromkeys(("count", "frequency", "standard_error", "low", "high"))
            found["estimates"] += [
                {"attribute": name, "label": label, **nothing, "reason": _UNANSWERED}
                for name, domain in estimate._unanswered.items()
                for label in domain.labels[: view.top]
            ]
        return found

    def told(self, estimate: Any, view: View, people: str = PEOPLE) -> Told:
        """State first which questions nobody has answered, since they have no rows."""
        told = super().told(estimate, view, people)
        missing = {} if groups_of(estimate) else estimate._unanswered
        if not missing:
            return told
        said = " ".join(f"The question “{name}” has no answers yet." for name in missing)
        return replace(told, lead=f"{said} {told.lead}".strip())

    def entries_of(self, estimate: Any) -> int:
        """Leave out the answers to questions that nobody has answered."""
        entries = super().entries_of(estimate)
        if not groups_of(estimate):
            entries -= sum(each.size for each in estimate._unanswered.values())
        return entries

    def caption(self, domain: Any, view: View, people: str) -> str:
        """Name answers and questions."""
        return f"Answers to all questions, {_ORDERED[view.order]}"

    def group_caption(self, domain: Any, view: View) -> str:
        """Name groups, questions and answers."""
        return "Groups, questions and answers"

    def draws_groups(self, domain: Any) -> bool:
        """Tell that groups are in the table alone."""
        return False

    def making(self, plan: Plan) -> list[tuple[str, str]]:
        """State how each question is reported."""
        return [
            (f"question {name}", f"{oracle.name.replace('_', ' ')}, epsilon {oracle.epsilon:.6g}")
            for name, oracle in plan.oracle.oracles.items()
        ]


class SharesGivenOthers(Shares):
    """Tells the shares of the answers to one question among those who gave each of others.

    Parameters
    ----------
    given, of
        The questions that say among whom, and the one whose shares are told.
    answers
        The answers to it.
    """

    def __init__(self, given: Sequence[str], of: str, answers: Any) -> None:
        self._given, self._of, self._answers = list(given), of, answers

    def domain_of(self, estimate: Any) -> Any:
        """Return the answers to the question whose shares are told."""
        return self._answers

    def asked(self, domain: Any) -> tuple[str, str]:
        """State the question whose shares are shown, and among whom."""
        return "shares", f"of {self._of} given {', '.join(self._given)}"

    def head(self, domain: Any, level: float, *, groups: bool) -> tuple[list[str], int]:
        """Name the question, share, standard error and interval."""
        head, names = super().head(domain, level, groups=True)
        return [self._of, *head[1:]], names

    def cells(self, record: Mapping[str, Any], digits: int) -> list[str]:
        """Write a share; there is none where nobody is estimated to be."""
        label, share, *others = super().cells(record, digits)
        return [label, "none" if math.isnan(record["share"]) else share, *others]

    def scope(self, domain: Any, simultaneous: str | None) -> str:
        """State which shares the simultaneous intervals cover."""
        return "each share by itself" if simultaneous is None else "all of them at once"

    def records(self, estimate: Any, view: View) -> list[dict[str, Any]]:
        """List the answers in their order, among those who gave each of the others."""
        records = estimate.to_records(**view.scope_of(estimate))
        return list(_in_order([{**each, "frequency": each["share"]} for each in records], view))

    def caption(self, domain: Any, view: View, people: str) -> str:
        """Name the questions."""
        return f"{self._of.capitalize()} given {', '.join(self._given)}"

    def words(self, estimate: Any, view: View) -> str:
        """State what the intervals cover."""
        given, scope = ", ".join(self._given), self.scope(None, view.simultaneous)
        return (
            f"Answers to {self._of}, among people with each answer to {given}. Of intervals made "
            f"like these (Fieller's), {percent(view.level)} hold the true share, for {scope}. If "
            "hardly anybody gave the answer, they reach from 0 to 100 %."
        )

    def interval_method(self, estimate: Any, view: View) -> str:
        """Name the only method."""
        return "fieller"

    def interval_words(self, method: str, domain: Any, simultaneous: str | None) -> str:
        """State whose limits these are."""
        return f"Fieller's, for {self.scope(domain, simultaneous)}"

    def described(self, estimate: Any) -> dict[str, Any]:
        """Name the questions."""
        return {"given": self._given, "of": self._of}

    def values(self, estimate: Any, view: View) -> dict[str, Any]:
        """Return the shares without their sort keys."""
        found = super().values(estimate, view)
        for record in found["estimates"]:
            del record["frequency"]
        return found
