"""Shows some of several questions: one alone, or one among those who answered others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from turnout import GroupedTally
from turnout._tables import arrow_table
from turnout.cli.showing.frequencies import (
    TOGETHER,
    print_groups,
    projection_rows,
    show_estimate,
    sorted_within,
)
from turnout.cli.showing.shown import (
    Shown,
    Wish,
    counts_of,
    cut,
    cut_words,
    group_rows,
    interval_of_groups,
    json_record,
    processed,
    rows_of,
)
from turnout.cli.tables import percent
from turnout.collecting.intervals import tail_probability
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimate import ACROSS
from turnout.frequency.joint.chosen import conditional_of, marginal_of, question_of
from turnout.products import questions_of

_SHARES = ("nodes", "received", "label", "share", "standard_error", "low", "high", "reason")
_FREQUENCIES = ("count", "frequency", "standard_error", "low", "high")


def estimate_conditional(tally: Any, wish: Wish, given: Sequence[str], of: str | None) -> Shown:
    """Estimate the shares of the answers to one question among those who gave each of others.

    Raises
    ------
    InvalidTypeError
        If the tally is not one of questions that were asked together.
    InvalidValueError
        If it is not clear which question is meant, or one is not in the table.
    """
    wanted = question_of(tally.plan.oracle, given, of)
    make = _shares_of_groups if isinstance(tally, GroupedTally) else _shares
    return make(tally, wish, tuple(given), wanted)


def _shares(tally: Any, wish: Wish, given: tuple[str, ...], of: str) -> Shown:
    """Estimate shares given others from a tally."""
    estimate = tally.estimate(wish.method)
    shares = cut(conditional_of(estimate, given, of), wish)
    every = tally.plan.oracle.columns[of].size
    scope = "each share by itself" if wish.simultaneous is None else "all shares at once"
    records = _shown(shares.to_records(wish.level, simultaneous=wish.simultaneous), wish, every)
    how = {"level": wish.level, "simultaneous": wish.simultaneous}
    return Shown(
        lambda: {
            **counts_of(estimate, estimate.method, **_described(given, of, wish)),
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


def _shares_of_groups(
    grouped: GroupedTally[Any], wish: Wish, given: tuple[str, ...], of: str
) -> Shown:
    """Estimate shares given others in each group."""
    # A question can have the name of a column of the groups.
    named = [f"given.{name}" if name in grouped.names else name for name in given]
    domains = grouped.plan.oracle.columns
    cells = list(itertools.product(*(domains[name].labels for name in (*given, of))))
    nothing = [
        {
            "group": dict(zip(given, cell[:-1], strict=True)),
            "label": cell[-1],
            **dict.fromkeys(("share", "standard_error"), math.nan),
            **dict.fromkeys(("low", "high")),
        }
        for cell in cells
    ]
    made = _group_records(
        grouped, wish, lambda estimate: conditional_of(estimate, given, of), nothing, named
    )
    every = domains[of].size
    records = _shown(made, wish, every)
    columns = (*grouped.names, *named)
    return Shown(
        lambda: {
            **counts_of(grouped, wish.method, **_described(given, of, wish)),
            "plan": grouped.plan.to_dict(),
            "groups": list(columns),
            "estimates": _json(records),
        },
        lambda: arrow_table(made, _SHARES, columns),
        [
            *group_rows(grouped, wish, TOGETHER[wish.over]),
            ("shares", f"of {of} given {', '.join(given)}"),
        ],
        [lambda console: print_groups(console, columns, records, wish, every)],
        _no_picture,
    )


def estimate_marginal(tally: Any, wish: Wish, names: Sequence[str]) -> Shown:
    """Estimate the shares of some questions, whatever is answered to the others.

    Raises
    ------
    InvalidTypeError
        If the tally is of one question.
    InvalidValueError
        If a question is not in it, is named twice, or too many are named.
    """
    whole = tally.total if isinstance(tally, GroupedTally) else tally
    found, left = _marginal(whole.estimate(wish.method), wish, names)
    # A table of two has an order of its own.
    names = questions_of(found.domain) or names
    row = ("shares", f"of {', '.join(names)}, whatever is answered to the others")
    if not isinstance(tally, GroupedTally):
        shown = show_estimate(found, left, [*rows_of(tally, wish.method), row])
        return replace(shown, make_record=lambda: {**shown.record, "marginal": list(names)})
    if wish.postprocessing == ACROSS:
        raise InvalidValueError("--across does not apply to some of several questions")
    done = [name for name in ("consistent" * wish.consistent, wish.postprocessing) if name]
    together = "_".join(name for name in done if name != "none") or "none"
    domain = found.domain
    missing = {**dict.fromkeys(_FREQUENCIES[:3], math.nan), **dict.fromkeys(_FREQUENCIES[3:])}
    made = _group_records(
        tally,
        wish,
        lambda estimate: processed(*_marginal(estimate, wish, names)),
        [{"label": label, **missing} for label in domain.labels],
    )
    records = sorted_within(made, wish, domain.size)
    return Shown(
        lambda: {
            **counts_of(tally, wish.method, marginal=list(names)),
            "interval": interval_of_groups(wish),
            "plan": tally.plan.to_dict(),
            "groups": list(tally.names),
            "estimates": [*map(json_record, records)],
        },
        lambda: arrow_table(
            made,
            ("nodes", "received", "label", *_FREQUENCIES, "reason"),
            tally.names,
            questions_of(domain),
        ),
        [
            *group_rows(tally, wish, TOGETHER[wish.over]),
            row,
            *projection_rows(together),
        ],
        [lambda console: print_groups(console, tally.names, records, wish, domain.size)],
        _no_picture,
    )


def _marginal(estimate: Any, wish: Wish, names: Sequence[str]) -> tuple[Any, Wish]:
    """Take the shares of some questions, and say what is left to be done to them."""
    if not wish.consistent:
        return marginal_of(estimate, names), wish
    # Tables that agree are projected and shrunk together.
    agreeing = processed(estimate.consistent(), wish)
    return marginal_of(agreeing, names), replace(wish, postprocessing="none")


def _no_picture() -> NoReturn:
    raise InvalidValueError(
        "a picture of some of several questions shows one group (--plot): tally its people alone"
    )


def _group_records(
    grouped: GroupedTally[Any],
    wish: Wish,
    find: Callable[[Any], Any],
    nothing: Sequence[Mapping[str, Any]],
    named: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """List the records of each group, with the reason where nothing can be estimated.

    Parameters
    ----------
    grouped, wish
        What is estimated, and how.
    find
        Takes what is shown from the estimate of a group.
    nothing
        The records of a group without an estimate.
    named
        The columns that the records' own groups have.
    """
    estimate = grouped.estimate(wish.method)
    level = wish.level
    if wish.simultaneous is not None:
        known = max(1, len(grouped) - len(estimate.reasons))
        number = {"labels": len(nothing), "groups": known, "all": len(nothing) * known}[wish.over]
        level = 1.0 - tail_probability(level, number, wish.simultaneous)
    records = []
    for key, tally in grouped.items():
        reason = estimate.reasons.get(key)
        found = nothing
        if reason is None:
            found = cut(find(estimate[key]), wish).to_records(level)
        for row in found:
            own = dict(zip(named, row.get("group", {}).values(), strict=True))
            records.append(
                {
                    **row,
                    "group": {**dict(zip(grouped.names, key, strict=True)), **own},
                    "nodes": tally.nodes,
                    "received": tally.received,
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
