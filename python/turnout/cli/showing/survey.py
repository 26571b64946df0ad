"""Shows what a survey gives: a column as other commands show its kind, and several of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from turnout.cli.running import output
from turnout.cli.showing.estimates import Shown, Wish, print_told, show, show_estimate
from turnout.cli.tables import print_json, printable
from turnout.reporting.frequencies import telling_shares
from turnout.reporting.numbers import Numbers
from turnout.reporting.telling import json_group, json_record
from turnout.surveying import (
    NumberEstimate,
    NumberGroups,
    ShareGroups,
    SurveyResult,
    SurveyResults,
)


def show_survey(
    result: SurveyResult | SurveyResults, wish: Wish, files: Collection[str] = ()
) -> None:
    """Print what was done, and a table for each column; no path of the ``files`` is broken."""
    console = output()
    for line in result.explain().splitlines():
        console.print(line, markup=False, soft_wrap=any(path in line for path in files))
    for name, one in _each(result).items():
        console.print()
        if isinstance(result, SurveyResults):
            console.print(printable(name), style="bold", markup=False, highlight=False)
        for part in _shown(one, wish).below:
            part(console) if callable(part) else console.print(part)


def print_survey(result: SurveyResult | SurveyResults, wish: Wish, read: Mapping[str, Any]) -> None:
    """Print the object of ``--json``, and in it what was ``read``."""
    records = {
        name: {**_shown(one, wish).make_record(), "notes": list(one.notes)}
        for name, one in _each(result).items()
    }
    if isinstance(result, SurveyResult):
        print_json({**records[result.column], **read})
        return
    whole = {
        "statement": list(result.statement),
        "notes": list(result.notes),
        "left_out": result.left_out.to_dict(),
        **read,
    }
    print_json({**whole, "columns": records})


def _each(result: SurveyResult | SurveyResults) -> Mapping[str, SurveyResult]:
    return {result.column: result} if isinstance(result, SurveyResult) else result


def _shown(result: Any, wish: Wish) -> Shown:
    """Show a column as other commands show its kind."""
    estimate = result.estimate
    if isinstance(estimate, (NumberEstimate, NumberGroups)):
        return Shown(
            lambda: _numbers(result, wish),
            result.to_arrow,
            [],
            [lambda console: print_told(console, Numbers().told(estimate, wish), wish)],
            result.plot,
        )
    if result.mechanism is None:
        # A mean beside shares has no intervals that could be cut.
        cut = wish.clip and hasattr(estimate, "clip_intervals")
        return show(result.tally, replace(wish, clip=cut))
    kind = telling_shares(estimate.domain)
    if isinstance(estimate, ShareGroups):
        return Shown(
            lambda: _share_groups(result, wish),
            result.to_arrow,
            [],
            [lambda console: print_told(console, kind.told(estimate, wish), wish)],
            result.plot,
        )
    shown = show_estimate(estimate, wish, kind, [])
    guarantee = {"guarantee": str(result.mechanism.guarantee)}
    return replace(shown, make_record=lambda: {**shown.make_record(), **guarantee})


def _numbers(result: Any, wish: Wish) -> dict[str, Any]:
    tally = result.tally
    return {
        "column": result.column,
        "level": wish.level,
        "nodes": tally.nodes,
        "received": tally.received,
        "left_out": tally.left_out.to_dict(),
        "plan": tally.plan.to_dict(),
        "estimates": [json_record(each) for each in result.to_records(wish.level)],
    }


def _share_groups(result: Any, wish: Wish) -> dict[str, Any]:
    groups = [
        {
            "group": json_group(dict(zip(result.by, key, strict=True))),
            "nodes": one.nodes,
            "received": one.received,
            "left_out": one.left_out.to_dict(),
            "plan": result.mechanism[key].to_dict(),
            "guarantee": str(result.mechanism[key].guarantee),
        }
        for key, one in result.estimate.items()
    ]
    return {
        "column": result.column,
        "level": wish.level,
        "simultaneous": wish.simultaneous,
        "nodes": sum(group["nodes"] for group in groups),
        "received": sum(group["received"] for group in groups),
        "left_out": result.left_out.to_dict(),
        "epsilon": next(iter(result.mechanism.values())).epsilon,
        "groups": groups,
        **telling_shares(result.estimate.domain).values(result.estimate, wish),
    }
