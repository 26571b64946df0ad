"""How often each answer was given, to one question or to several, as a report tells it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from turnout._extras import require
from turnout.collecting.plan import Plan
from turnout.errors import EstimatorError
from turnout.frequency.adaptive import SecondRound
from turnout.frequency.estimation.answer import ordered, sorted_records
from turnout.reporting.contents import Content, Contents, Wording, group_key
from turnout.reporting.markup import join, tag
from turnout.reporting.words import METHODS, digits_for, percent

#: From so many answers on it is said what intervals of many do together.
MANY = 200

#: How the orders of answers are told.
_ORDERED = {
    "frequency": "the most frequent first",
    "label": "by label",
    "domain": "in the order in which they were listed",
}

#: Answers of a group stand side by side if they are so few.
SIDE_BY_SIDE = 6


class FrequencyWording(Wording):
    """Tells frequencies: see :class:`turnout.reporting.contents.Wording`."""

    what: ClassVar[str] = "The share of each answer"
    of_a_group: ClassVar[str] = "Shares are of"
    together: ClassVar[Mapping[str, str]] = {
        "labels": "all answers of a group at once",
        "groups": "all groups of an answer at once",
        "all": "all answers of all groups at once",
    }

    def card(self, plan: Plan) -> tuple[str, str]:
        """Say how many answers there are."""
        return f"{plan.domain.size:,}", "possible answers"

    def estimate(self, contents: Contents) -> Content:
        """Tell the share of each answer."""
        estimate, level = contents.estimate, contents.level
        codes = ordered(estimate, contents.order, contents.top)
        records = estimate.columns(codes, level, contents.simultaneous).records()
        digits = digits_of([record["standard_error"] for record in records])
        rows = [(record["label"], *share_cells(record, digits)) for record in records]
        several = len(contents.asked) > 1
        held = "times held" if several else "people"
        size = estimate.domain.size
        some = f"All {size:,} answers"
        if len(records) < size:
            some = f"The {len(records):,} answers with the largest shares, of {size:,}"
        caption = f"{some}, {_ORDERED[contents.order]}"
        if several:
            caption = f"{caption}; who was asked at several times counts at each of them"
        head = ("answer", held, "share", "standard error", f"{percent(level)} interval")
        return Content(caption, head, rows, of=size, words=_interval_words(contents))

    def groups(self, contents: Contents, records: Sequence[dict[str, Any]]) -> Content:
        """Tell the shares in each group: few answers side by side, many below each other."""
        names = list(records[0]["group"])
        digits = digits_of([record["standard_error"] for record in records])
        labels = contents.plan.domain.labels
        level = percent(contents.level)
        if len(labels) > SIDE_BY_SIDE or (contents.top is not None and len(labels) > contents.top):
            size = min(len(labels), contents.top or len(labels))
            records = [
                record
                for start in range(0, len(records), size)
                for record in sorted_records(list(records[start : start + size]), contents.order)
            ]
            below = [_below(record, digits) for record in records]
            head = (*names, "answer", "reports", "share", f"{level} interval")
            caption = "Groups and answers"
            if size < len(labels):
                caption = f"Groups, and the {size} answers of each with the largest shares"
            every = len(below) // size * len(labels)
            return Content(caption, head, below, names=len(names) + 1, of=every)
        rows = []
        for start in range(0, len(records), len(labels)):
            group = records[start : start + len(labels)]
            cells: list[object] = [_cell(record, digits) for record in group]
            if group[0]["reason"] is not None:
                reason = tag("span", group[0]["reason"], class_="small")
                cells = [reason, *["–"] * (len(group) - 1)]
            rows.append((*group_key(group[0]), f"{group[0]['received']:,}", *cells))
        caption = f"Shares of the answers with {level} intervals"
        return Content(caption, (*names, "reports", *labels), rows, names=len(names))

    def draw(self, estimate: Any, level: float, simultaneous: str | None) -> Any:
        """Draw an estimate as wide as the page."""
        pyplot = require("matplotlib.pyplot", "plot")
        width = min(14.0, max(8.4, 4.0 + 0.35 * estimate.domain.size))
        figure, axes = pyplot.subplots(figsize=(width, 3.8), layout="constrained")
        estimate.plot(ax=axes, level=level, simultaneous=simultaneous)
        return figure

    def making(self, plan: Plan) -> list[tuple[str, str]]:
        """Say how likely a report supports an answer."""
        if isinstance(plan.oracle, SecondRound):
            low, high = plan.oracle.rates.min(), plan.oracle.rates.max()
            return [("takes part, by the answer", f"{low:.6g} to {high:.6g} (probabilities)")]
        p, q = plan.oracle.support_probabilities
        return [("report supports own, other answer", f"{p:.6g}, {q:.6g} (probabilities)")]

    def fingerprints(self, plan: Plan) -> list[tuple[str, str]]:
        """Give the fingerprint of the labels."""
        return [("possible answers (SHA-256)", plan.domain.fingerprint)]


def _interval_words(contents: Contents) -> str:
    try:
        interval = contents.estimate.interval(contents.level, simultaneous=contents.simultaneous)
    except EstimatorError as error:
        return f"There are no intervals: {error}."
    scope = (
        "each answer by itself"
        if contents.simultaneous is None
        else f"all answers at once ({METHODS[contents.simultaneous]})"
    )
    size = contents.estimate.domain.size
    missed, cut = "", ", cut to 0 and 1" if contents.estimate.clipped else ""
    if contents.simultaneous is None and size >= MANY:
        missed = (
            f" Of {size:,} answers some {round((1 - contents.level) * size):,} are then outside of "
            "theirs, and the largest shares are those that came out too large: intervals that hold "
            "for all at once are wider (--simultaneous sidak)."
        )
    return (
        f"The noise of the reports is taken out of the shares, so that a rare answer can come out "
        f"below zero. Of intervals made like these, {percent(contents.level)} hold the true share, "
        f"for {scope} (method: {interval.method}{cut}).{missed}"
    )


def _cell(record: dict[str, Any], digits: int) -> object:
    limits = shown_limits(record["low"], record["high"], digits)
    return join([percent(record["frequency"], digits), tag("span", limits, class_="small")])


def _below(record: dict[str, Any], digits: int) -> tuple[object, ...]:
    """Write the share of an answer in a group, with its question if there are several."""
    return (
        *group_key(record),
        *([record["attribute"]] if "attribute" in record else []),
        record["label"],
        f"{record['received']:,}",
        record["reason"] or percent(record["frequency"], digits),
        shown_limits(record["low"], record["high"], digits),
    )


def share_cells(record: dict[str, Any], digits: int) -> tuple[str, ...]:
    """Write a share: how many people it is, itself, its standard error and its limits."""
    return (
        f"{round(record['count']):,}".replace("-", "−"),
        percent(record["frequency"], digits),
        percent(record["standard_error"], digits),
        shown_limits(record["low"], record["high"], digits),
    )


def shown_limits(low: float | None, high: float | None, digits: int) -> str:
    """Write the limits of a share."""
    if low is None or high is None:
        return "none"
    return f"{percent(low, digits)} – {percent(high, digits)}"


def digits_of(errors: Iterable[float]) -> int:
    """Decimals of a percentage that show the median standard error with two digits."""
    known = sorted(error for error in errors if math.isfinite(error) and error > 0)
    return digits_for(known[len(known) // 2] if known else math.nan)


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


class AttributeWording(FrequencyWording):
    """Tells shares of several questions: see :class:`turnout.reporting.contents.Wording`."""

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
        rows = [_below(record, digits) for record in records]
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


def given_others(contents: Contents) -> Content:
    """Tell the shares of the answers to one question among those who gave each of others."""
    shares, level = contents.conditional, contents.level
    records = shares.to_records(level, simultaneous=contents.simultaneous)
    digits = digits_of(record["standard_error"] for record in records)
    rows = [
        (
            *group_key(record),
            record["label"],
            "none" if math.isnan(record["share"]) else percent(record["share"], digits),
            shown_limits(record["low"], record["high"], digits),
        )
        for record in records
    ]
    given = list(shares.given)
    scope = "each share by itself" if contents.simultaneous is None else "all of them at once"
    return Content(
        f"{shares.of.capitalize()} given {', '.join(given)}",
        (*given, shares.of, "share", f"{percent(level)} interval"),
        rows,
        names=len(given) + 1,
        words=f"How those who gave an answer to {', '.join(given)} answered {shares.of}. Of "
        f"intervals made like these (Fieller's), {percent(level)} hold the true share, for "
        f"{scope}. Where hardly anybody gave the answer they reach from 0 to 100 %.",
    )
