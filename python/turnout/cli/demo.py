"""``turnout demo``: the whole path on a real survey, its truth beside it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.table import Table
from rich.text import Text

from turnout import DirectEncoding, Domain, FrequencyEstimate
from turnout._extras import require
from turnout._types import Floats
from turnout.cli.commands import command
from turnout.cli.running import output
from turnout.cli.tables import write_picture
from turnout.reporting.words import percent

_EPSILONS = (0.5, 1.0, 2.0)
_RATES = (0.25, 1.0)
#: That of the intervals of a single answer.
_LEVEL = 0.95
_PICTURE = "turnout-demo.png"
_RATINGS = ("very poor", "poor", "fair", "good", "very good")
_AFFAIR = ("no", "yes")


@dataclass(frozen=True)
class _Question:
    """A question of the survey, what everyone answered, and what collections found.

    The estimates are by participation rate and epsilon.
    """

    text: str
    domain: Domain
    answers: list[str]
    found: dict[tuple[float, float], FrequencyEstimate] = field(default_factory=dict)

    @property
    def truth(self) -> Floats:
        codes = self.domain.encode(self.answers)
        return np.bincount(codes, minlength=self.domain.size) / len(self.answers)


@command
def demo(
    *,
    folder: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER")] = Path(),
    seed: Annotated[int | None, typer.Option(min=0)] = None,
) -> None:
    """Collect two answers of 6,366 real people and compare with the truth.

    The people are the women of the survey that statsmodels ships as [bold]fair[/] (Redbook
    magazine, 1974): how they rated their marriage, and whether they report an affair. Their
    answers are collected at epsilon 0.5, 1 and 2, from everyone and from one in four. Nothing is
    downloaded.

    [bold]Example:[/]

        turnout demo --output pictures

    Parameters
    ----------
    folder
        Folder for the picture.
    seed
        Repeat a run; without it each run differs.
    """
    console = output()
    folder.mkdir(parents=True, exist_ok=True)
    questions = _survey()
    numbers = itertools.count(seed) if seed is not None else itertools.repeat(None)
    console.print(_introduction(questions[0]))
    for question in questions:
        for rate, epsilon in itertools.product(_RATES, _EPSILONS):
            oracle = DirectEncoding(epsilon, question.domain)
            tally = oracle.collect(question.answers, participation=rate, seed=next(numbers))
            question.found[rate, epsilon] = tally.estimate()
        for rate in _RATES:
            console.print(_table(question, rate))
            console.print()
    picture = folder / _PICTURE
    write_picture(picture, lambda: _drawn(questions))
    console.print(_conclusion(questions))
    console.print(f"\nThe picture: {picture}", markup=False, soft_wrap=True)


def _survey() -> tuple[_Question, _Question]:
    """Load two questions of the survey, with the meanings that its documentation gives."""
    data = require("statsmodels.datasets.fair", "demo").load_pandas().data
    ratings = [_RATINGS[int(code) - 1] for code in data["rate_marriage"]]
    affairs = [_AFFAIR[int(time > 0)] for time in data["affairs"]]
    return (
        _Question("How do you rate your marriage?", Domain(_RATINGS), ratings),
        _Question("Have you had an affair?", Domain(_AFFAIR), affairs),
    )


def _introduction(question: _Question) -> Text:
    text = Text("\nTwo private questions, ", style="bold")
    text.append(f"{len(question.answers):,} real people\n")
    text.append(
        "Each randomizes her own answer; the collector sees only noise from each of them.\n"
        f"Below: the truth, and what the collector finds, with {percent(_LEVEL)} intervals. "
        "All in %.\n",
        style="not bold",
    )
    return text


def _table(question: _Question, rate: float) -> Table:
    """One table: a question asked at one participation rate."""
    estimates = [question.found[rate, epsilon] for epsilon in _EPSILONS]
    received = round(float(np.mean([estimate.received for estimate in estimates])))
    title = Text(question.text, style="bold")
    number = "" if rate == 1 else f", about {received:,}"
    title.append(f" · {_who(rate)}{number}", style="not bold italic")
    table = Table(
        title=title,
        title_justify="left",
        title_style="",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 0, 0, 1),
        header_style="bold",
    )
    table.add_column("answer", no_wrap=True, min_width=9)
    table.add_column("truth", justify="right", style="green", no_wrap=True)
    for epsilon in _EPSILONS:
        table.add_column(f"ε = {epsilon:g}", justify="right", no_wrap=True, min_width=18)
    for label, truth in zip(question.domain.labels, question.truth, strict=True):
        cells = [_cell(estimate[label], truth) for estimate in estimates]
        table.add_row(Text(str(label)), f"{100 * truth:.1f}", *cells)
    return table


def _who(rate: float) -> str:
    return "everyone reports" if rate == 1 else f"1 in {1 / rate:g} reports"


def _cell(answer: Any, truth: float) -> Text:
    share, low, high = (
        percent(part, 1).removesuffix(" %") for part in (answer.frequency, answer.low, answer.high)
    )
    text = Text(share)
    text.append(f" ({low}, {high})", style="dim" if _holds(answer, truth) else "yellow")
    return text


def _holds(answer: Any, truth: float) -> bool:
    inside: bool = answer.low <= truth <= answer.high
    return inside


def _conclusion(questions: Sequence[_Question]) -> Text:
    inside = [
        _holds(estimate[label], truth)
        for question in questions
        for estimate in question.found.values()
        for label, truth in zip(question.domain.labels, question.truth, strict=True)
    ]
    epsilon, truth = _EPSILONS[-1], questions[1].truth[1]
    best: Any = questions[1].found[_RATES[-1], epsilon]["yes"]
    text = Text("Result: ", style="bold")
    text.append(
        f"{percent(best.frequency, 1)} of these women report an affair "
        f"({100 * best.low:.1f}–{percent(best.high, 1)} at ε = {epsilon:g}); "
        f"the truth is {percent(truth, 1)}.\n"
        f"{sum(inside)} of the {len(inside)} intervals hold the truth. "
        "Nobody's own answer was seen.",
        style="not bold",
    )
    return text


def _drawn(questions: Sequence[_Question]) -> Any:
    """One row of panels a question, one panel an epsilon: truth as bars, estimates as points."""
    pyplot = require("matplotlib.pyplot", "cli")
    figure, grid = pyplot.subplots(
        len(questions), len(_EPSILONS), figsize=(12, 7.2), sharey="row", layout="constrained"
    )
    for row, question in zip(grid, questions, strict=True):
        for axes, epsilon in zip(row, _EPSILONS, strict=True):
            _draw_panel(axes, question, epsilon)
        row[0].set_ylabel("share of the people (%)")
        row[1].set_xlabel(question.text, fontsize=11, fontweight="bold", labelpad=8)
    for axes, epsilon in zip(grid[0], _EPSILONS, strict=True):
        axes.set_title(f"ε = {epsilon:g}", fontweight="bold")
    figure.suptitle(
        f"{len(questions[0].answers):,} real answers, each randomized by its owner: "
        f"estimates with {percent(_LEVEL)} intervals beside the truth",
        fontsize=13,
    )
    handles, names = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    return figure


def _draw_panel(axes: Any, question: _Question, epsilon: float) -> None:
    positions = np.arange(question.domain.size)
    axes.bar(positions, 100 * question.truth, width=0.72, color="#d5dae1", label="truth")
    styles = (("#d1495b", "s", -0.16), ("#1b6ca8", "o", 0.16))
    for rate, (colour, marker, shift) in zip(_RATES, styles, strict=True):
        estimate = question.found[rate, epsilon]
        interval = estimate.interval(_LEVEL)
        below, above = estimate.frequencies - interval.low, interval.high - estimate.frequencies
        axes.errorbar(
            positions + shift,
            100 * estimate.frequencies,
            yerr=100 * np.clip([below, above], 0, None),
            fmt=marker,
            markersize=5.5,
            color=colour,
            capsize=3.5,
            linewidth=1.6,
            label=_who(rate),
        )
    axes.axhline(0, color="#555555", linewidth=0.8)
    margin = 0.6 if question.domain.size > 3 else 0.9
    axes.set_xlim(-margin, question.domain.size - 1 + margin)
    axes.set_xticks(positions, [str(label).replace(" ", "\n") for label in question.domain.labels])
    axes.grid(axis="y", color="#e8e8e8", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
