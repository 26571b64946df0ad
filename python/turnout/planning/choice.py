"""Choice of the oracle of smallest variance whose report fits."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from turnout._drawing import finish, new_axes, plain_logarithmic
from turnout._extras import require
from turnout._tables import Listing
from turnout._types import Axes
from turnout.domain import Domain, one_domain
from turnout.frequency.choice import REPORTS, Compared, OracleCandidate, compared

#: The colour of what is chosen.
_CHOSEN = "#d1495b"

#: Oracles of one size and nearly one error stay apart by marker.
_MARKERS = ("o", "s", "^", "D", "v", "P")


@dataclass(frozen=True)
class OracleChoice(Compared, Listing):
    """The result of :func:`choose_oracle`.

    Attributes
    ----------
    oracle
        The chosen oracle.
    candidates
        All compared oracles, the smallest variance first.
    epsilon, domain, frequency
        The setting.
    report_bits
        The limit of a report's size in bits, or None.
    reports
        The number of reports that the comparison assumes.
    """

    _columns = ("name", "variance", "relative_variance", "report_bits", "p", "q", "refused")

    def _listed(self) -> Iterable[Any]:
        return self.candidates

    @property
    def chosen(self) -> OracleCandidate:
        """The record of the chosen oracle."""
        return next(each for each in self.candidates if each.oracle is self.oracle)

    def explain(self) -> str:
        """Explain the choice in sentences.

        Returns
        -------
        str
            A paragraph.
        """
        chosen = self.chosen
        alone = chosen.variance - self.reports * chosen.shared_error**2
        sentences = [
            f"{chosen.name}: at epsilon {self.epsilon:g} and {self.domain.size:,} answers, n "
            f"reports of {chosen.report_bits:,} bits estimate an answer of frequency "
            f"{self.frequency:g} with a standard error of {math.sqrt(alone):.4g} / sqrt(n)."
        ]
        if chosen.shared_error:
            sentences.append(
                f"The hash functions that all reports share add {chosen.shared_error:.2g}, however "
                "many report."
            )
        best = self.candidates[0]
        fitting = [each for each in self.candidates if each.refused is None]
        smallest = fitting[0]
        if smallest is not chosen:
            sentences.append(
                f"{smallest.name} has a variance smaller by less than 0.5 %, with reports of "
                f"{smallest.report_bits:,} bits."
            )
        if best.refused is not None and best is not smallest:
            sentences.append(
                f"{best.name} needs {1.0 - 1.0 / chosen.relative_variance:.1%} fewer reports, each "
                f"of {best.report_bits:,} bits: {best.refused}."
            )
        rest = [each for each in fitting if each.variance > chosen.variance]
        runner = rest[0] if rest else None
        if runner is not None:
            sentences.append(
                f"The next one, {runner.name}, needs {runner.variance / chosen.variance:.3g} times "
                f"as many reports, each of {runner.report_bits:,} bits."
            )
        return " ".join(sentences)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the standard error against the size of a report.

        Parameters
        ----------
        ax
            Matplotlib axes to draw on; new ones by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes: a point for each oracle, the limit as a line.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        axes = new_axes(ax, width=8.0)
        colours = require("matplotlib.pyplot", "plot").get_cmap("viridis")
        drawn = [each for each in self.candidates if each.oracle is not None]
        for position, each in enumerate(drawn):
            chosen = each.oracle is self.oracle
            axes.plot(
                [each.report_bits or 1],
                [math.sqrt(each.variance)],
                _MARKERS[position % len(_MARKERS)],
                markersize=11 if chosen else 7,
                color=colours(0.05 + 0.85 * position / max(1, len(drawn) - 1)),
                fillstyle="full" if each.refused is None else "none",
                markeredgecolor=_CHOSEN if chosen else None,
                markeredgewidth=2.0 if chosen else 1.2,
                linestyle="none",
                label=each.name.replace("_", " ") + (" (chosen)" if chosen else ""),
                zorder=4 if chosen else 3,
            )
        limit = ""
        if self.report_bits is not None:
            limit = f", at most {self.report_bits:,} bits"
            axes.axvline(self.report_bits, color=_CHOSEN, linewidth=1.0, linestyle=":", zorder=1)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        low, high = (math.sqrt(end(each.variance for each in drawn)) for end in (min, max))
        axes.set_ylim(low / 1.2, max(high * 1.2, low * 2.0))
        bits = [each.report_bits or 1 for each in drawn]
        axes.set_xlim(min(bits) / 1.7, max(max(bits) * 1.7, min(bits) * 6.0))
        plain_logarithmic(axes.yaxis)
        axes.set_xlabel("bits of a report")
        axes.set_ylabel("standard error of a frequency × √reports")
        axes.grid(visible=True, which="major", color="0.92", zorder=0)
        title = f"ε = {self.epsilon:g}, {self.domain.size:,} answers{limit}"
        finish(axes, title, legend="beside")
        return axes


def choose_oracle(
    epsilon: float,
    domain_size: Domain | Sequence[Hashable] | int | None = None,
    *,
    domain: Domain | Sequence[Hashable] | int | None = None,
    report_bits: int | None = None,
    oracles: Any = None,
    frequency: float = 0.0,
    reports: int = REPORTS,
) -> OracleChoice:
    """Choose the oracle of smallest variance whose report fits in ``report_bits``.

    Variances are exact, from the realised probabilities. They include the error of hash functions
    that all reports share (sketches, pools). If variances differ by less than 0.5 %, the smaller
    report wins.

    Parameters
    ----------
    epsilon
        The privacy of a report, in nats.
    domain_size, domain
        The answers: a :class:`turnout.Domain`, a list of labels, or their number. Pass one of the
        two arguments.
    report_bits
        The largest report that can be sent; no limit by default.
    oracles
        The candidates: classes of oracles, callables that take an epsilon and a domain, or names.
        By default all of turnout's oracles that need nothing else.
    frequency
        The true frequency, in [0, 1], of the answer whose estimate should be accurate; a rare
        answer by default. All other answers are assumed to be equally frequent.
    reports
        The expected number of reports. It matters for oracles whose reports share hash functions:
        more reports do not reduce the error from their collisions.

    Returns
    -------
    OracleChoice
        The oracle, all candidates, an explanation, a table and a picture.

    Raises
    ------
    InvalidValueError
        If no candidate takes the epsilon and the domain, or none fits. The message gives the
        smallest report.
    InvalidTypeError
        If an argument is of the wrong type.

    Notes
    -----
    Wang, Blocki, Li, Jha, "Locally differentially private protocols for frequency estimation"
    (2017): ``Var = [f p (1 - p) + (1 - f) q (1 - q)] / (p - q)^2`` for each report.

    Examples
    --------
    >>> choice = choose_oracle(1.0, 2, oracles=["direct_encoding"])
    >>> choice.oracle.report_bits, choice.chosen.relative_variance
    (1, 1.0)
    """
    answers = one_domain(domain_size, domain)
    found = compared(epsilon, answers, report_bits, oracles, frequency=frequency, reports=reports)
    return OracleChoice(**vars(found))
