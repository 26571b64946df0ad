"""Shows how those who gave one answer answered another question."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NoReturn

from turnout import GroupedTally, _arguments
from turnout._tables import arrow_table
from turnout.cli.showing.frequencies import TOGETHER, print_groups, sorted_within
from turnout.cli.showing.shown import (
    Shown,
    Wish,
    counts_of,
    cut,
    cut_words,
    group_rows,
    json_record,
    rows_of,
)
from turnout.cli.tables import percent
from turnout.collecting.intervals import tail_probability
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.joint import JointTable

_COLUMNS = ("nodes", "received", "label", "share", "standard_error", "low", "high", "reason")


def estimate_conditional(tally: Any, wish: Wish, given: Sequence[str], of: str | None) -> Shown:
    """Estimate the shares of the answers to one question among those who gave each of others.

    Raises
    ------
    InvalidTypeError
        If the tally is not one of a joint table.
    InvalidValueError
        If it is not clear which question is meant, or one is not in the table.
    """
    oracle = tally.plan.oracle
    if not isinstance(oracle, JointTable):
        raise InvalidTypeError(
            f"given (--given) needs the tally of a joint table, got one of {oracle!r}"
        )
    wanted = _wanted(tuple(oracle.columns), given, of)
    make = _of_groups if isinstance(tally, GroupedTally) else _of_all
    return make(tally, wish, tuple(given), wanted)


def _wanted(questions: tuple[str, ...], given: Sequence[str], of: str | None) -> str:
    """Find the question whose shares are wanted."""
    for name in given:
        _arguments.choice("given", name, questions)
    others = [name for name in questions if name not in given]
    if not others:
        raise InvalidValueError(
            "given (--given) must leave out a question, whose shares are wanted, got all of "
            f"{_arguments.listed(questions)}"
        )
    if of is not None:
        return _arguments.choice("of", of, others)
    if len(others) > 1:
        raise InvalidValueError(
            f"of (--of) must say which question is meant: one of {', '.join(map(repr, others))}"
        )
    return others[0]


def _of_all(tally: Any, wish: Wish, given: tuple[str, ...], of: str) -> Shown:
    """Estimate them from a tally."""
    estimate = tally.estimate(wish.method)
    shares = cut(estimate.conditional(of, given=given), wish)
    every = estimate.questions[of].size
    scope = "each share by itself" if wish.simultaneous is None else "all shares at once"
    records = _shown(shares.to_records(wish.level, simultaneous=wish.simultaneous), wish, every)
    described = _described(given, of, wish)
    how = {"level": wish.level, "simultaneous": wish.simultaneous}
    return Shown(
        lambda: {
            **counts_of(estimate, estimate.method, **described),
            "plan": estimate.plan.to_dict(),
            "estimates": _json(records),
        },
        lambda: shares.to_arrow(**how),
        [
            *rows_of(estimate, estimate.method),
            ("shares", f"of {of} given {', '.join(given)}"),
            ("interval", f"{percent(wish.level)}, Fieller's, for {scope}{cut_words(wish)}"),
        ],
        [lambda console: print_groups(console, given, records, wish, every)],
        lambda: shares.plot(**how),
    )


def _of_groups(grouped: GroupedTally[Any], wish: Wish, given: tuple[str, ...], of: str) -> Shown:
    """Estimate them in each group."""
    # A question can have the name of a column of the groups.
    named = [f"given.{name}" if name in grouped.names else name for name in given]
    columns = (*grouped.names, *named)
    made = _group_records(grouped, wish, given, named, of)
    every = grouped.domain.columns[of].size
    records = _shown(made, wish, every)

    def draw() -> NoReturn:
        raise InvalidValueError(
            "a picture of shares given others shows one group (--plot): tally its people alone"
        )

    return Shown(
        lambda: {
            **counts_of(grouped, wish.method, **_described(given, of, wish)),
            "plan": grouped.plan.to_dict(),
            "groups": list(columns),
            "estimates": _json(records),
        },
        lambda: arrow_table(made, _COLUMNS, columns),
        [
            *group_rows(grouped, wish, TOGETHER[wish.over]),
            ("shares", f"of {of} given {', '.join(given)}"),
        ],
        [lambda console: print_groups(console, columns, records, wish, every)],
        draw,
    )


def _group_records(
    grouped: GroupedTally[Any],
    wish: Wish,
    given: tuple[str, ...],
    named: Sequence[str],
    of: str,
) -> list[dict[str, Any]]:
    """List the shares of each group, with nan and the reason where nothing can be estimated."""
    estimate = grouped.estimate(wish.method)
    labels = [grouped.domain.columns[name].labels for name in (*given, of)]
    cells = list(itertools.product(*labels))
    level = wish.level
    if wish.simultaneous is not None:
        known = max(1, len(grouped) - len(estimate.reasons))
        number = {"labels": len(cells), "groups": known, "all": len(cells) * known}[wish.over]
        level = 1.0 - tail_probability(level, number, wish.simultaneous)
    nothing = {"share": math.nan, "standard_error": math.nan, "low": None, "high": None}
    records = []
    for key, tally in grouped.items():
        reason = estimate.reasons.get(key)
        if reason is None:
            found = cut(estimate[key].conditional(of, given=given), wish).to_records(level)
        else:
            found = [nothing] * len(cells)
        for cell, row in zip(cells, found, strict=True):
            records.append(
                {
                    **row,
                    "group": dict(zip((*grouped.names, *named), (*key, *cell[:-1]), strict=True)),
                    "nodes": tally.nodes,
                    "received": tally.received,
                    "label": cell[-1],
                    "reason": reason,
                }
            )
    return records


def _shown(records: list[dict[str, Any]], wish: Wish, every: int) -> list[dict[str, Any]]:
    """Take the records that are shown, in their order."""
    named = [{**record, "frequency": record["share"]} for record in records]
    return sorted_within(named, wish, every)


def _described(given: tuple[str, ...], of: str, wish: Wish) -> dict[str, Any]:
    interval = {"level": wish.level, "simultaneous": wish.simultaneous, "method": "fieller"}
    return {"given": list(given), "of": of, "interval": interval}


def _json(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in json_record(record).items() if name != "frequency"}
        for record in records
    ]
