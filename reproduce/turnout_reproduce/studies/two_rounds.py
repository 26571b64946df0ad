"""When two rounds beat one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._drawing import new_axes
from turnout._extras import require
from turnout._seeds import derived
from turnout._tables import Listing
from turnout._types import Axes
from turnout.domain import Domain
from turnout.frequency.adaptive.collection import TwoRoundCollection
from turnout.frequency.choice import make_oracle
from turnout.frequency.estimation.estimators import estimator_variance
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.oracles.direct_encoding import DirectEncoding
from turnout.participation import Bernoulli


@dataclass(frozen=True)
class TwoRoundRecord:
    """The result for one answer.

    Attributes
    ----------
    label
        The answer.
    frequency
        Its true frequency.
    one_round, two_rounds
        Root mean squared errors of the estimated frequency: exact, and measured over the repeats.
    bias
        The mean error of the two rounds.
    """

    label: Any
    frequency: float
    one_round: float
    two_rounds: float
    bias: float

    @property
    def ratio(self) -> float:
        """The error of two rounds relative to that of one: below 1 where two are better."""
        return self.two_rounds / self.one_round


@dataclass(frozen=True)
class TwoRoundComparison(Listing):
    """The result of :func:`compare_two_rounds`.

    Attributes
    ----------
    records
        One for each answer.
    epsilon, repeats
        What was studied.
    one_round_reports, two_round_reports
        The expected number of reports of the one round, and the mean number of the two.
    spent
        The largest total budget that the two rounds spent.
    """

    records: tuple[TwoRoundRecord, ...]
    epsilon: float
    repeats: int
    one_round_reports: float
    two_round_reports: float
    spent: float

    _columns = (
        "label",
        "frequency",
        "one_round",
        "two_rounds",
        "bias",
        "ratio",
    )

    def table(self) -> str:
        """Format the records as a plain-text table.

        Returns
        -------
        str
            One line for each answer.
        """
        lines = [
            f"{'answer':>10} {'frequency':>10} {'one round':>10} {'two rounds':>10} {'ratio':>6}"
        ]
        lines.extend(
            f"{row.label!s:>10.10} {row.frequency:>10.3g} {row.one_round:>10.3g} "
            f"{row.two_rounds:>10.3g} {row.ratio:>6.2f}"
            for row in self.records
        )
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the ratio of the errors against the frequency.

        Parameters
        ----------
        ax
            Matplotlib axes to draw on; new ones by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        InvalidTypeError
            If ``ax`` is not matplotlib axes.
        """
        return plot_two_rounds([self], ax)


def compare_two_rounds(
    true_counts: Any,
    *,
    epsilon: float,
    rate: float,
    low: float,
    high: float,
    first_part: float = 0.25,
    repeats: int = 200,
    seed: int | None = 0,
    once: bool = True,
    share: float = 0.5,
    oracle: Callable[[float, Domain], FrequencyOracle] | None = None,
) -> TwoRoundComparison:
    """Compare two rounds with one at equal total epsilon and equal expected number of reports.

    Parameters
    ----------
    true_counts
        How many nodes hold each answer.
    epsilon
        The total budget of a node.
    rate
        The expected share of nodes that report, in one round or in both together.
    low, high, once, share, oracle
        As for :class:`TwoRoundCollection`.
    first_part
        The part of the reports that the first of the two rounds takes.
    repeats, seed
        How often, and from which seed, the two rounds are simulated.

    Returns
    -------
    TwoRoundComparison
        Records, a table and a picture.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If a setting is refused by the collection.

    Examples
    --------
    >>> counts = [90_000, 9_000, 900, 100]
    >>> study = compare_two_rounds(counts, epsilon=8.0, rate=0.05, low=0.02, high=0.5, repeats=50)
    >>> frequent, *_, rare = study.records
    >>> rare.ratio < 1.0 < frequent.ratio
    True
    """
    size = np.size(true_counts)
    counts = _arguments.counts("true_counts", true_counts, size)
    part = _arguments.confidence("first_part", first_part)
    total = _arguments.probability("rate", rate)
    number = _arguments.integer("repeats", repeats, least=2)
    if oracle is not None and not callable(oracle):
        raise _arguments.mistyped("oracle must be callable", oracle)
    collection = TwoRoundCollection(
        size,
        epsilon=epsilon,
        first_rate=part * total,
        second_rate=(1 - part) * total,
        low=low,
        high=high,
        once=once,
        share=share,
        oracle=oracle or DirectEncoding,
    )
    nodes = float(counts.sum())
    truth = counts / nodes
    single = make_oracle("oracle", collection.oracle, collection.epsilon, collection.domain)
    exact = estimator_variance(single, Bernoulli(total), true_counts=counts) / nodes**2
    checked = _arguments.seed(seed)
    runs = [collection.simulate(counts, seed=derived(checked, run)) for run in range(number)]
    errors = np.array([run.estimate().frequencies for run in runs]) - truth
    records = tuple(
        TwoRoundRecord(*row)
        for row in zip(
            collection.domain.labels,
            truth.tolist(),
            np.sqrt(exact).tolist(),
            np.sqrt((errors**2).mean(axis=0)).tolist(),
            errors.mean(axis=0).tolist(),
            strict=True,
        )
    )
    return TwoRoundComparison(
        records,
        collection.epsilon,
        number,
        nodes * total,
        float(np.mean([run.received for run in runs])),
        max(run.spent.total for run in runs),
    )


def plot_two_rounds(studies: Any, ax: Axes | None = None) -> Axes:
    """Draw the ratios of the errors of several studies against the frequency.

    Parameters
    ----------
    studies
        Results of :func:`compare_two_rounds`.
    ax
        Matplotlib axes to draw on; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InvalidTypeError
        If ``ax`` is not matplotlib axes.
    """
    cycle = require("matplotlib", "plot").colormaps["viridis"]
    axes = new_axes(ax)
    studies = list(studies)
    for position, study in enumerate(studies):
        rows = sorted((row.frequency, row.ratio) for row in study.records if row.frequency > 0)
        colour = cycle(position / max(len(studies), 2))
        axes.plot(*zip(*rows, strict=True), "o-", ms=4, color=colour, label=f"{study.epsilon:g}")
    axes.axhline(1.0, color="0.4", linewidth=0.8)
    axes.set(
        xscale="log",
        xlabel="true frequency of the answer",
        ylabel="error of two rounds / error of one",
        title="below the line two rounds are better",
    )
    axes.legend(title="total epsilon", frameon=False)
    return axes
