"""How often each answer is given: shares with intervals, of one question or of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from turnout import FrequencyEstimate, GroupedTally
from turnout.cli.running import note
from turnout.cli.showing.shown import (
    CUT,
    Showing,
    Shown,
    Wish,
    cut,
    cut_words,
    group_interval,
    group_rows,
    group_table,
    in_words,
    json_record,
    processed,
    rows_of,
)
from turnout.cli.tables import percent, print_estimates, printable
from turnout.collecting.keys import shown_key
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.estimation.answer import ordered, sorted_records
from turnout.frequency.estimation.estimate import ACROSS, SHRUNK
from turnout.reporting.frequencies import digits_of

#: From so many labels on it is said what intervals of many do together.
_MANY: Final = 200

#: So many rows of groups are shown, and so many groups are named.
_MOST_ROWS: Final = 1000
_FEW: Final = 5

TOGETHER = {
    "labels": "labels of a group",
    "groups": "groups of a label",
    "all": "labels of all groups",
}


class Frequencies(Showing):
    """Shows frequencies: see :class:`turnout.cli.showing.shown.Showing`."""

    def asked(self, domain: Any) -> tuple[str, str]:
        """Say how many labels there are."""
        return "domain", f"{domain.size:,} labels"

    def estimate(self, tally: Any, wish: Wish) -> Shown:
        """Estimate the frequencies."""
        return show_estimate(tally.estimate(wish.method), wish, rows_of(tally, wish.method))

    def estimate_groups(self, grouped: GroupedTally[Any], wish: Wish) -> Shown:
        """Estimate the frequencies in each group."""
        estimated = cut(grouped.estimate(wish.method), wish)
        if wish.postprocessing in (SHRUNK, ACROSS):
            result = estimated.shrink(across=wish.postprocessing == ACROSS)
            _say_cautions(result)
        else:
            result = estimated.project(wish.postprocessing)
        interval, reason = group_interval(result, wish)
        if reason is not None:
            note(reason)
        records = result.to_records(**wish.scope, top=wish.top)
        size = min(wish.top or grouped.domain.size, grouped.domain.size)
        records = sorted_within(records, wish, size)
        rows = group_rows(grouped, wish, TOGETHER[wish.over])
        if reason is not None:
            rows.pop()
        return Shown.of(
            result,
            wish,
            grouped,
            interval=interval,
            rows=rows + projection_rows(result.postprocessing),
            below=[
                lambda console: print_groups(
                    console, grouped.names, records, wish, grouped.domain.size
                )
            ],
            values=lambda: {"estimates": [*map(json_record, records)]},
            postprocessing=result.postprocessing,
        )


def show_estimate(
    estimate: FrequencyEstimate, wish: Wish, head: Sequence[tuple[str, str]]
) -> Shown:
    """Show an estimate; ``head`` is what is said of it before its intervals."""
    result = cut(processed(estimate, wish), wish)
    shrinkage = result.shrinkage
    for sentence in shrinkage.cautions if shrinkage else ():
        note(sentence)
    level, simultaneous = wish.level, wish.simultaneous
    codes = ordered(result, wish.order, wish.top)
    interval = _describe_interval(result, level, simultaneous)
    counted: dict[str, Any] = {"shrinkage": asdict(shrinkage)} if shrinkage else {}
    return Shown.of(
        result,
        wish,
        interval=interval,
        rows=[*head, *_interval_rows(result, interval)],
        below=[lambda console: print_estimates(console, result, codes, level, simultaneous)],
        values=lambda: {"estimates": result.columns(codes, level, simultaneous).records()},
        postprocessing=result.postprocessing,
        **counted,
    )


def _describe_interval(
    result: FrequencyEstimate, level: float, simultaneous: str | None
) -> dict[str, Any]:
    """Say how the intervals were made, or why there are none, and what many do together."""
    description: dict[str, Any] = {"level": level, "simultaneous": simultaneous}
    try:
        interval = result.interval(level, simultaneous=simultaneous)
    except EstimatorError as error:
        note(in_words(error, result.method))
        return {**description, "method": None}
    size = result.domain.size
    if simultaneous is None and size >= _MANY:
        note(
            f"each interval holds by itself: of {size:,} labels some "
            f"{round((1 - level) * size):,} are outside of theirs, and the largest shares are "
            "those that came out too large; --simultaneous sidak holds for all at once"
        )
    return {**description, "method": interval.method}


def _say_cautions(result: Any) -> None:
    """Say where shrinking may mislead, once for all groups of which it is true."""
    groups: dict[str, list[str]] = {}
    for key in result:
        if key not in result.reasons:
            for sentence in result[key].shrinkage.cautions:
                groups.setdefault(sentence, []).append(shown_key(key))
    for sentence, names in list(groups.items())[:_FEW]:
        more = f" and {len(names) - _FEW:,} more" if len(names) > _FEW else ""
        note(f"{', '.join(names[:_FEW])}{more}: {sentence}")
    if len(groups) > _FEW:
        note(f"{len(groups) - _FEW:,} more cautions of this kind; --by fewer columns has fewer")


def _interval_rows(result: FrequencyEstimate, interval: dict[str, Any]) -> list[tuple[str, str]]:
    """Say what the intervals are, and what was done to the frequencies."""
    rows = []
    if interval["method"] is not None:
        together = f"all {result.domain.size} labels at once ({interval['simultaneous']})"
        scope = "each label by itself" if interval["simultaneous"] is None else together
        level = percent(interval["level"])
        clipped = CUT if result.clipped else ""
        rows.append(("interval", f"{level}, {interval['method']}, for {scope}{clipped}"))
    return rows + projection_rows(result.postprocessing)


def projection_rows(postprocessing: str) -> list[tuple[str, str]]:
    """Say what was done to the frequencies."""
    said = []
    if postprocessing.startswith("consistent"):
        said.append(("consistent", "tables agree (intervals are from before it)"))
        postprocessing = postprocessing.partition("_")[2] or "none"
    if postprocessing == SHRUNK:
        said.append(("shrunk", "empirical Bayes (intervals are from before it)"))
    elif postprocessing == ACROSS:
        said.append(("shrunk", "empirical Bayes, groups too (intervals are from before it)"))
    elif postprocessing != "none":
        said.append(("projected", f"{postprocessing} (intervals are from before it)"))
    return said


def sorted_within(records: list[dict[str, Any]], wish: Wish, every: int) -> list[dict[str, Any]]:
    """Put the labels of each group in the order that is wished for, and leave out all but the top.

    Parameters
    ----------
    records
        Those of a group one after the other.
    wish
        What is wished for.
    every
        How many a group has.
    """
    found = []
    for start in range(0, len(records), every):
        within = records[start : start + every]
        if wish.top is not None and wish.top < every:
            most = set(
                sorted(range(every), key=lambda place: -within[place]["frequency"])[: wish.top]
            )
            within = [record for place, record in enumerate(within) if place in most]
        found += sorted_records(within, wish.order)
    return found


def print_groups(
    console: Console, names: Sequence[str], records: list[dict[str, Any]], wish: Wish, every: int
) -> None:
    """Print the shares of all groups, and say what is left out.

    Parameters
    ----------
    console
        Where.
    names
        The columns of the groups.
    records
        What is shown, the same number of each group.
    wish
        What was wished for.
    every
        How many labels there are.
    """
    size = min(wish.top or every, every)
    most = len(records) if wish.top is None else max(1, _MOST_ROWS // size) * size
    console.print(share_table(names, records[:most], wish.level))
    if most < len(records):
        rest = f"and {(len(records) - most) // size:,} more of {len(records) // size:,} groups"
        console.print(f"\n{rest}; --output FILE.csv has all", soft_wrap=True)
    if size < every:
        console.print(
            f"\n{every - size:,} of {every:,} labels are left out in each group; --top all shows "
            "them",
            soft_wrap=True,
        )


def share_table(names: Sequence[str], records: list[dict[str, Any]], level: float) -> Any:
    """Draw the shares of all groups as one table, those of several questions below each other."""
    digits = digits_of(record["standard_error"] for record in records)
    questions = any("attribute" in record for record in records[:1])

    def cells(record: dict[str, Any]) -> list[str]:
        limits = "none"
        if record["low"] is not None:
            limits = f"{percent(record['low'], digits)} – {percent(record['high'], digits)}"
        label, share = printable(str(record["label"])), percent(record["frequency"], digits)
        if questions:
            return [printable(record["attribute"]), label, share, limits]
        return [label, share, percent(record["standard_error"], digits), limits]

    head = ("question", "label", "frequency") if questions else ("label", "frequency", "std. error")
    columns = (*head, f"{percent(level)} interval")
    return group_table(names, records, columns, cells, words=2 if questions else 1)


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


class Attributes(Frequencies):
    """Shows several questions: see :class:`turnout.cli.showing.shown.Showing`."""

    def asked(self, domain: Any) -> tuple[str, str]:
        """Say how many answers each question has."""
        each = [f"{name} ({one.size:,} answers)" for name, one in domain.columns.items()]
        return "questions", ", ".join(each)

    def estimate(self, tally: Any, wish: Wish) -> Shown:
        """Estimate the frequencies of the answers to each question."""
        result = tally.estimate(wish.method)
        result = cut(processed(result.consistent() if wish.consistent else result, wish), wish)
        level, simultaneous = wish.level, wish.simultaneous
        interval = result.interval(level, simultaneous=simultaneous)
        scope = "each label by itself"
        if simultaneous is not None:
            scope = f"all {result.answers:,} labels of all questions at once"
        each = result.each_level(level, simultaneous)

        def print_all(console: Console) -> None:
            for name, estimate in result.items():
                console.print(Text(f"\n{printable(name)}", style="bold"))
                codes = ordered(estimate, wish.order, wish.top)
                print_estimates(console, estimate, codes, each, None)

        return Shown.of(
            result,
            wish,
            interval={"level": level, "simultaneous": simultaneous, "method": interval.method},
            rows=[
                *rows_of(result, result.method),
                self.asked(result.domain),
                ("interval", f"{percent(level)}, {interval.method}, for {scope}{cut_words(wish)}"),
                *projection_rows(result.postprocessing),
            ],
            below=[print_all],
            values=lambda: {
                "estimates": result.to_records(level, simultaneous=simultaneous, top=wish.top)
            },
            postprocessing=result.postprocessing,
        )

    def estimate_groups(self, grouped: GroupedTally[Any], wish: Wish) -> Shown:
        """Estimate the answers to each question in each group."""
        if wish.postprocessing != "none" or wish.consistent:
            raise InvalidValueError(
                "--project, --shrink and --consistent do not apply to groups of several questions"
            )
        result = cut(grouped.estimate(wish.method), wish)
        interval, _ = group_interval(result, wish)
        records = result.to_records(**wish.scope, top=wish.top)
        shown = Shown.of(
            result,
            wish,
            grouped,
            interval=interval,
            rows=[*group_rows(grouped, wish, TOGETHER[wish.over]), self.asked(grouped.domain)],
            below=[share_table(grouped.names, records[:_MOST_ROWS], wish.level)],
            values=lambda: {"estimates": [*map(json_record, records)]},
        )
        return replace(shown, draw=lambda: result.plot(**wish.scope))
