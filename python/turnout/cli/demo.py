"""``turnout demo``: the whole path on a real survey, its truth beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.table import Table
from rich.text import Text

from turnout import Bernoulli, DirectEncoding, Domain, Everyone, FrequencyEstimate
from turnout._extras import require
from turnout.cli.running import output, refusing
from turnout.cli.tables import save_picture
from turnout.reporting.words import percent

_EPSILONS = (0.5, 1.0, 2.0)
_RATES = (0.25, 1.0)
_LEVEL = 0.95
_PICTURE = "turnout-demo.png"
_RATINGS = ("very poor", "poor", "fair", "good", "very good")
_AFFAIR = ("no", "yes")


@dataclass(frozen=True)
class _Question:
    """A question of the survey and what everyone answered."""

    text: str
    domain: Domain
    answers: list[str]

    @property
    def truth(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        codes = self.domain.encode(self.answers)
        return np.bincount(codes, minlength=self.domain.size) / len(self.answers)


@dataclass(frozen=True)
class _Result:
    """What one collection found."""

    epsilon: float
    rate: float
    estimate: FrequencyEstimate
    low: np.ndarray[Any, np.dtype[np.float64]]
    high: np.ndarray[Any, np.dtype[np.float64]]


@refusing
def demo(
    *,
    folder: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER")] = Path(),
    seed: Annotated[int | None, typer.Option(min=0)] = None,
) -> None:
    """Ask 6,366 real people two private questions and compare with the truth.

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
    seeds = iter(range(seed, seed + 100)) if seed is not None else None
    results = []
    console.print(_introduction(questions[0]))
    for question in questions:
        found = [
            _ask(question, epsilon, rate, None if seeds is None else next(seeds))
            for rate in _RATES
            for epsilon in _EPSILONS
        ]
        results.append(found)
        for rate in _RATES:
            console.print(_table(question, [each for each in found if each.rate == rate]))
            console.print()
    picture = folder / _PICTURE
    save_picture(picture, lambda: _drawn(questions, results))
    console.print(_conclusion(questions, results))
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


def _ask(question: _Question, epsilon: float, rate: float, seed: int | None) -> _Result:
    oracle = DirectEncoding(epsilon=epsilon, domain=question.domain)
    participation = Everyone() if rate == 1 else Bernoulli(rate)
    estimate = oracle.collect(question.answers, participation=participation, seed=seed).estimate()
    interval = estimate.interval(_LEVEL)
    return _Result(epsilon, rate, estimate, interval.low, interval.high)


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


def _table(question: _Question, results: Sequence[_Result]) -> Table:
    """One table: a question asked at one participation rate."""
    rate = results[0].rate
    received = round(float(np.mean([result.estimate.received for result in results])))
    who = "everyone reports" if rate == 1 else f"1 in {1 / rate:g} reports, about {received:,}"
    title = Text(question.text, style="bold")
    title.append(f" · {who}", style="not bold italic")
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
    for result in results:
        table.add_column(f"ε = {result.epsilon:g}", justify="right", no_wrap=True, min_width=18)
    truth = question.truth
    for code, label in enumerate(question.domain.labels):
        cells = [_cell(result, code, truth[code]) for result in results]
        table.add_row(Text(str(label)), f"{100 * truth[code]:.1f}", *cells)
    return table


def _cell(result: _Result, code: int, truth: float) -> Text:
    low, high = result.low[code], result.high[code]
    text = Text(_points(result.estimate.frequencies[code]))
    inside = low <= truth <= high
    text.append(f" ({_points(low)}, {_points(high)})", style="dim" if inside else "yellow")
    return text


def _points(share: float) -> str:
    return percent(share, 1).removesuffix(" %")


def _conclusion(questions: Sequence[_Question], results: Sequence[Sequence[_Result]]) -> Text:
    held, total = 0, 0
    for question, found in zip(questions, results, strict=True):
        for result in found:
            held += int(((result.low <= question.truth) & (question.truth <= result.high)).sum())
            total += question.domain.size
    best = results[1][-1]
    text = Text("Result: ", style="bold")
    text.append(
        f"{percent(best.estimate.frequencies[1], 1)} of these women report an affair "
        f"({100 * best.low[1]:.1f}–{percent(best.high[1], 1)} at ε = {best.epsilon:g}); "
        f"the truth is {percent(float(questions[1].truth[1]), 1)}.\n"
        f"{held} of the {total} intervals hold the truth. "
        "Nobody's own answer was seen.",
        style="not bold",
    )
    return text


def _drawn(questions: Sequence[_Question], results: Sequence[Sequence[_Result]]) -> Any:
    """One row of panels a question, one panel an epsilon: truth as bars, estimates as points."""
    pyplot = require("matplotlib.pyplot", "cli")
    figure, grid = pyplot.subplots(
        len(questions), len(_EPSILONS), figsize=(12, 7.2), sharey="row", layout="constrained"
    )
    for row, (question, found) in enumerate(zip(questions, results, strict=True)):
        for column, epsilon in enumerate(_EPSILONS):
            axes = grid[row][column]
            _draw_panel(axes, question, [each for each in found if each.epsilon == epsilon])
            if row == 0:
                axes.set_title(f"ε = {epsilon:g}", fontweight="bold")
        grid[row][0].set_ylabel("share of the people (%)")
        grid[row][1].set_xlabel(question.text, fontsize=11, fontweight="bold", labelpad=8)
    figure.suptitle(
        f"{len(questions[0].answers):,} real answers, each randomized by its owner: "
        f"estimates with {percent(_LEVEL)} intervals beside the truth",
        fontsize=13,
    )
    handles, names = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    return figure


def _draw_panel(axes: Any, question: _Question, results: Sequence[_Result]) -> None:
    positions = np.arange(question.domain.size)
    axes.bar(positions, 100 * question.truth, width=0.72, color="#d5dae1", label="truth")
    styles = {0.25: ("#d1495b", "s", -0.16), 1.0: ("#1b6ca8", "o", 0.16)}
    for result in results:
        colour, marker, shift = styles[result.rate]
        middle = 100 * result.estimate.frequencies
        axes.errorbar(
            positions + shift,
            middle,
            yerr=np.clip([middle - 100 * result.low, 100 * result.high - middle], 0, None),
            fmt=marker,
            markersize=5.5,
            color=colour,
            capsize=3.5,
            linewidth=1.6,
            label="everyone reports" if result.rate == 1 else f"1 in {1 / result.rate:g} reports",
        )
    axes.axhline(0, color="#555555", linewidth=0.8)
    margin = 0.6 if question.domain.size > 3 else 0.9
    axes.set_xlim(-margin, question.domain.size - 1 + margin)
    axes.set_xticks(positions, [str(label).replace(" ", "\n") for label in question.domain.labels])
    axes.grid(axis="y", color="#e8e8e8", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
