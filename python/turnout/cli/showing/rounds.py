"""What is shown of rounds under way, and of what they found."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from rich.table import Table

from turnout._drawing import draw_rows, interval_words
from turnout.cli.showing.estimates import CUT, Shown, Wish, show_estimate
from turnout.cli.tables import printable, table
from turnout.frequency.adaptive import TwoRounds
from turnout.frequency.heavy_hitters import HeavyHitterResult, RoundRecord, Search
from turnout.frequency.rounds import Rounds
from turnout.reporting.frequencies import SHARES
from turnout.reporting.words import digits_for, left_out, number, percent

#: So many values are drawn.
_MOST_DRAWN = 40


def summary(under_way: Rounds[Any, Any]) -> dict[str, Any]:
    """Say how far the rounds are, in terms of JSON."""
    return {
        "protocol": under_way.name,
        "finished": under_way.finished,
        "round": under_way.number,
    }


def show_search(search: Search, level: float, *, clip: bool) -> Shown:
    """Show a search: what was found, or how far it is."""
    rows = [
        ("values", str(search.protocol._values)),
        ("epsilon", number(search.protocol.epsilon)),
    ]
    records = [asdict(each) for each in search.records]
    described = {**summary(search), "rounds": records}
    below = [_rounds_table(search.records)] if records else []
    if not search.finished:
        rows.append(("open", f"round {search.number}, {search.current.domain.size - 1:,} prefixes"))
        return _open(described, rows, below)
    result = search.result.clip_intervals() if clip else search.result
    needed = result.detectable_frequency()
    simultaneous = None if result.confirmed else "bonferroni"
    found = [
        {"label": record.pop("value"), **record}
        for record in result.to_records(level, simultaneous=simultaneous)
    ]
    scope = "each share by itself" if result.confirmed else "all candidates at once (bonferroni)"
    needs = f"{percent(needed, 3)}, with probability 90 %"
    if needed > 1:
        needs = "no share was large enough"
    cut = f"{result.cut:,} significant prefixes were left out because --keep was reached"
    rows += [
        ("nodes", f"{result.nodes:,}, {sum(each.received for each in result.rounds):,} of "
         "them reported"),
        *left_out(result.left_out),
        ("found", f"{len(result):,} values"),
        ("found from", needs),
        ("bound", cut if result.cut else "nothing was left out because of --keep"),
        ("interval", f"{percent(level)}, for {scope}{CUT if clip else ''}"),
    ]  # fmt: skip
    return Shown(
        lambda: {
            **described,
            "nodes": result.nodes,
            "left_out": result.left_out.to_dict(),
            "confirmed": result.confirmed,
            "cut": result.cut,
            "detectable_frequency": needed,
            "realized_epsilon": result.realized_epsilon,
            "interval": {"level": level, "simultaneous": simultaneous},
            "estimates": found,
        },
        lambda: result.to_arrow(level, simultaneous=simultaneous),
        rows,
        [*below, *([_found_table(result, found, level)] if found else [])],
        lambda: _draw(result, level, simultaneous),
    )


def show_two(under_way: TwoRounds, level: float, *, clip: bool) -> Shown:
    """Show two rounds: the shares, or how far they are."""
    protocol = under_way.protocol
    rows = [("epsilon", number(protocol.epsilon))]
    described = summary(under_way)
    if not under_way.finished:
        rows += [SHARES.asked(protocol.domain), ("open", f"round {under_way.number}")]
        return _open(described, rows, [])
    view = Wish("hajek", level, clip=clip)
    estimate, spent = view.cut(under_way.result.estimate()), under_way.result.spent
    parts = {name: getattr(spent, name) for name in ("first", "report", "silence", "randomizer")}
    rows += [
        ("nodes", f"{estimate.nodes:,}"),
        *left_out(estimate.left_out),
        ("reports", f"{estimate.received:,} in both rounds"),
        ("spent", str(spent)),
    ]
    shown = show_estimate(estimate, view, SHARES, rows)
    more = {**described, "spent": {"total": spent.total, **parts}}
    return replace(shown, make_record=lambda: {**shown.make_record(), **more})


def _open(described: dict[str, Any], rows: list[tuple[str, str]], below: list[Table]) -> Shown:
    """Show rounds of which one is open: there is neither a table nor a picture yet."""
    return Shown(lambda: described, lambda: None, rows, below, lambda: None)


def _draw(result: HeavyHitterResult, level: float, simultaneous: Any) -> Any:
    """Draw the most frequent of the values that were found, with their intervals."""
    shown = slice(0, _MOST_DRAWN)
    interval = result.interval(level, simultaneous=simultaneous)
    more = len(result) - _MOST_DRAWN
    return draw_rows(
        [str(value) for value in result.values[shown]],
        result.frequencies[shown],
        (interval.low[shown], interval.high[shown]),
        title=f"{len(result):,} values found"
        + (f", the {_MOST_DRAWN} most frequent" if more > 0 else ""),
        note=f"estimate, {interval_words(level, simultaneous)}",
        quantity="share of all people",
    )


def _rounds_table(records: tuple[RoundRecord, ...]) -> Table:
    header = ["round", "bits", "candidates", "kept", "cut", "nodes", "reports", "kept from"]
    lines = [
        [
            str(each.number),
            str(each.bits),
            *(f"{count:,}" for count in (each.candidates, each.kept, each.cut, each.nodes)),
            f"{each.received:,}",
            percent(each.level, 3),
        ]
        for each in records
    ]
    return table(header, lines, right=range(len(header)))


def _found_table(result: HeavyHitterResult, found: list[dict[str, Any]], level: float) -> Table:
    """Draw the values that were found as shares are drawn."""
    digits = digits_for(float(sorted(result.standard_errors)[len(found) // 2]))
    lines = [list(map(printable, SHARES.cells(each, digits))) for each in found]
    head, names = SHARES.head(None, level, groups=False)
    return table(["value", *head[names:]], lines, right=range(1, 5))
