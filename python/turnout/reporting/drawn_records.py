"""The page of drawn records: their similarity to real ones, and what they reveal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from turnout._drawing import ESTIMATE, TRUTH, finish, name_answers, new_axes
from turnout._types import Axes
from turnout.reporting.figures import image
from turnout.reporting.markup import Markup, paragraph, section, table, tag, void
from turnout.reporting.sheet import sheet
from turnout.reporting.words import percent
from turnout.samplers import TableQuality

#: Pictures of columns with more cells name only some of them.
_NAMED: Final = 12

#: The size of a picture of which several stand side by side, in inches.
_SIZE: Final = (4.6, 3.4)

_REAL, _DRAWN = "real records", "drawn records"


def page_of_records(found: TableQuality, title: str | None, notes: Sequence[str]) -> str:
    """Write the page."""
    names = list(found.shares)
    lead = (
        f"{len(found.nearest):,} drawn records compared with real ones: {', '.join(names)}. This "
        "page reveals the real records and protects nobody: keep it as safe as them."
    )
    return sheet(
        title or "Drawn records compared with real ones",
        lead,
        _cards(found),
        _marginals(found),
        _pairs(found) if len(names) > 1 else Markup(""),
        _nearest(found),
        _models(found) if found.models else Markup(""),
        _attack(found),
        _notes(notes),
    )


def _mean_distance(found: TableQuality, columns: int) -> float:
    return float(np.mean([v for key, v in found.total_variation.items() if len(key) == columns]))


def _cards(found: TableQuality) -> list[tuple[str, str]]:
    cards = [(f"{_mean_distance(found, 1):.3f}", "mean total variation distance of single columns")]
    if len(found.shares) > 1:
        cards.append(
            (f"{_mean_distance(found, 2):.3f}", "mean total variation distance of pairs of columns")
        )
    if found.attack is not None:
        right, bound = (percent(found.attack[name], 1) for name in ("right", "bound"))
        words = f"of guesses between two people are right; at most {bound} can be"
        cards.append((right, words))
    return cards


def _figure(draw: Callable[[], Any], alt: str) -> Markup:
    return tag("figure", void("img", src=image(draw), alt=alt))


def _marginals(found: TableQuality) -> Markup:
    """Show the shares of the cells of each column."""
    pictures = [
        _figure(
            partial(_draw_shares, name, shares),
            f"The shares of {name} among real and drawn records; the table gives the distance",
        )
        for name, shares in found.shares.items()
    ]
    return section(
        "Columns",
        paragraph("The share of each label, or of each range of values."),
        tag("div", *pictures, class_="pictures"),
        _distances(found, 1, "Distances of columns"),
        paragraph(
            "Total variation distance: half of the sum of the differences between shares. It is 0 "
            "for equal shares and 1 if nothing is in common. By chance: its mean if as many "
            "records are drawn from the real ones. Covered: the share of the real records whose "
            "value, or range of values, occurs among the drawn ones. Every real record counts "
            "once, however many records its person has; every person has one drawn record.",
            class_="note",
        ),
        name="columns",
    )


def _pairs(found: TableQuality) -> Markup:
    """Show the distances of all pairs of columns."""
    return section(
        "Pairs of columns",
        _figure(
            lambda: found.plot().figure,
            "A map of the total variation distances of columns and pairs; the table gives them",
        ),
        _distances(found, 2, "Distances of pairs of columns"),
        name="pairs",
    )


def _distances(found: TableQuality, columns: int, caption: str) -> Markup:
    head = ("columns" if columns > 1 else "column", "distance", "by chance", "covered")
    rows = [
        (
            ", ".join(key),
            f"{distance:.3f}",
            f"{found.by_chance[key]:.3f}",
            percent(found.coverage[key], 1),
        )
        for key, distance in found.total_variation.items()
        if len(key) == columns
    ]
    return table(caption, head, rows)


def _nearest(found: TableQuality) -> Markup:
    same = float((found.nearest == 0.0).mean())
    of_real = float((found.nearest_of_real == 0.0).mean())
    return section(
        "Distance to the nearest real record",
        paragraph(
            f"{percent(same, 1)} of the drawn records are in the same cells as a real record; "
            f"{percent(of_real, 1)} of the real records are in the same cells as another one. "
            "Distances are means over columns: 0 is the same cell, 1 another label or the other "
            "end of the range."
        ),
        _figure(
            partial(_draw_nearest, found),
            "Distances of drawn and real records to the nearest real record",
        ),
        name="nearest",
    )


def _models(found: TableQuality) -> Markup:
    head = ("column", "trained on drawn", "trained on real", "always the same")
    rows = [
        (name, *(percent(scores[of], 1) for of in ("drawn", "real", "constant")))
        for name, scores in found.models.items()
    ]
    return section(
        "Models",
        paragraph(
            "How often a model predicts the cell of a column from the other columns, in real "
            "records that it has not seen."
        ),
        _figure(
            partial(_draw_models, found),
            "How often models predict each column; the numbers are in the table",
        ),
        table("Right predictions", head, rows),
        name="models",
    )


def _attack(found: TableQuality) -> Markup:
    """Show how often an attacker names the right person."""
    title, name = "Whose record is it?", "attack"
    if found.attack is None:
        return section(
            title,
            paragraph(
                "Not measured. It needs the people of the real records, the record that was drawn "
                "from each person, and epsilon."
            ),
            name=name,
        )
    attack = found.attack
    right, bound = attack["right"], attack["bound"]
    return section(
        title,
        paragraph(
            "An attacker gets a drawn record and all real records of two people, and guesses from "
            f"which of the two it was drawn. Each of {attack['people']:,.0f} records is tried "
            f"against all other people. {percent(right, 1)} of the guesses are right, with a "
            f"standard error of {percent(attack['standard_error'], 1)}; a coin is right half of "
            f"the time. Epsilon bounds this chance: no attacker exceeds {percent(bound, 1)}, "
            "whatever the two people's records are."
        ),
        _figure(
            partial(_draw_attack, attack),
            f"{percent(right, 1)} right, between one half for a coin and the bound of "
            f"{percent(bound, 1)}",
        ),
        paragraph(
            "The attacker knows the law of a draw, which is public, and names the person under "
            "whose records the drawn one is more likely. For two known people no test is better.",
            class_="note",
        ),
        name=name,
    )


def _notes(notes: Sequence[str]) -> Markup:
    if not notes:
        return Markup("")
    inside = tag("ul", *(tag("li", note) for note in notes), class_="statements")
    return section("What else to know", inside, name="notes")


def _draw_shares(name: str, shares: dict[str, tuple[float, float]]) -> Any:
    axes = new_axes(None, *_SIZE)
    places = np.arange(len(shares))
    real, drawn = np.array(list(shares.values())).T
    axes.bar(places - 0.2, real, width=0.4, color=TRUTH, label=_REAL)
    axes.bar(places + 0.2, drawn, width=0.4, color=ESTIMATE, label=_DRAWN)
    step = -(-len(shares) // _NAMED)
    name_answers(axes, places[::step], list(shares)[::step])
    axes.set_xlim(-0.6, len(shares) - 0.4)
    axes.set_xlabel(name)
    axes.set_ylabel("share")
    finish(axes, "", legend="above")
    return axes.figure


def _draw_nearest(found: TableQuality) -> Any:
    axes = new_axes(None, height=3.4)
    most = max(float(found.nearest.max()), float(found.nearest_of_real.max()), 0.1)
    edges = np.linspace(0.0, most, 31).tolist()
    for distances, colour, label in (
        (found.nearest_of_real, TRUTH, f"{_REAL}, to another one"),
        (found.nearest, ESTIMATE, _DRAWN),
    ):
        parts = np.full(len(distances), 1.0 / len(distances))
        axes.hist(distances, bins=edges, weights=parts, histtype="step", color=colour, label=label)
    axes.set_xlabel("distance to the nearest real record")
    axes.set_ylabel("share of records")
    finish(axes, "", legend="above")
    return axes.figure


def _draw_models(found: TableQuality) -> Any:
    names = list(found.models)
    axes = new_axes(None, height=1.6 + 0.35 * len(names))
    places = np.arange(len(names))
    for of, colour, marker, label in (
        ("constant", "0.45", "|", "always the same"),
        ("real", TRUTH, "o", "trained on real records"),
        ("drawn", ESTIMATE, "D", "trained on drawn records"),
    ):
        scores = [found.models[name][of] for name in names]
        axes.plot(scores, places, marker, color=colour, label=label, markersize=8)
    axes.set_yticks(places, names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel("right predictions in real records")
    axes.set_ylabel("column")
    finish(axes, "", legend="above")
    return axes.figure


def _draw_attack(attack: dict[str, float]) -> Any:
    axes: Axes = new_axes(None, height=1.9)
    error = 1.96 * attack["standard_error"]
    axes.axvline(0.5, color="0.45", label="a coin")
    axes.axvline(attack["bound"], color=TRUTH, label="the bound of epsilon")
    axes.errorbar(
        [attack["right"]], [0.0], xerr=[error], fmt="D", color=ESTIMATE, capsize=4,
        label="the attacker, with a 95 % interval",
    )  # fmt: skip
    axes.set_yticks([])
    axes.set_xlim(0.4, 1.02)
    axes.set_xlabel("guesses that are right")
    finish(axes, "", legend="above")
    return axes.figure
