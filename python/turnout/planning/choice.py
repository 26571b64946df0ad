"""The oracle of smallest variance whose report fits."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from turnout import _arguments
from turnout.domain import Domain
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.candidates import Factory, domain_of, factories, make, reasons
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.oracles.direct_encoding import DirectEncoding
from turnout.planning.laws import ReportLaw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["OracleCandidate", "OracleChoice", "choose_oracle"]

#: Variances that differ by less count as equal.
TIE = 1.005


@dataclass(frozen=True)
class OracleCandidate:
    """One oracle beside the others.

    Attributes
    ----------
    name
        The oracle's word in plans.
    oracle
        The oracle; None if it does not take the epsilon or the domain.
    variance
        Of an estimated frequency from one report, participation left out; divide it by the number
        of reports. Infinite without an oracle.
    relative_variance
        The variance over the smallest one of all candidates, whether they fit or not.
    report_bits
        The size of a report; None without an oracle.
    p, q
        The support probabilities; NaN without an oracle.
    refused
        Why it cannot be chosen, or None.
    """

    name: str
    oracle: FrequencyOracle | None
    variance: float
    relative_variance: float
    report_bits: int | None
    p: float
    q: float
    refused: str | None


@dataclass(frozen=True)
class OracleChoice:
    """The result of :func:`choose_oracle`.

    Attributes
    ----------
    oracle
        The chosen one.
    candidates
        All that were compared, the smallest variance first.
    epsilon, domain, frequency
        The setting.
    report_bits
        The limit of a report's size, or None.
    """

    oracle: FrequencyOracle
    candidates: tuple[OracleCandidate, ...] = field(repr=False)
    epsilon: float
    domain: Domain
    frequency: float
    report_bits: int | None

    @property
    def chosen(self) -> OracleCandidate:
        """The record of the chosen oracle."""
        return next(each for each in self.candidates if each.oracle is self.oracle)

    def table(self) -> str:
        """Format the candidates as a plain-text table.

        Returns
        -------
        str
            One line for each; the chosen one has an asterisk.
        """
        width = max(len(each.name) for each in self.candidates)
        lines = [f"  {'oracle':<{width}} {'variance':>10} {'relative':>9} {'bits':>8} {'p*':>9} q*"]
        for each in self.candidates:
            mark = "*" if each.oracle is self.oracle else " "
            if each.oracle is None:
                lines.append(f"{mark} {each.name:<{width}} refused: {each.refused}")
                continue
            note = "" if each.refused is None else f"  ({each.refused})"
            lines.append(
                f"{mark} {each.name:<{width}} {each.variance:>10.4g} "
                f"{each.relative_variance:>9.3f} {each.report_bits:>8,} {each.p:>9.3g} "
                f"{each.q:.3g}{note}"
            )
        return "\n".join(lines)

    def explain(self) -> str:
        """Say in sentences what was chosen, and why.

        Returns
        -------
        str
            A paragraph.
        """
        chosen = self.chosen
        sentences = [
            f"{chosen.name}: at epsilon {self.epsilon:g} and {self.domain.size:,} answers, n "
            f"reports of {chosen.report_bits:,} bits estimate an answer of frequency "
            f"{self.frequency:g} with a standard error of {math.sqrt(chosen.variance):.4g} / "
            "sqrt(n)."
        ]
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
        from turnout.planning.pictures import plot_choice  # noqa: PLC0415

        return plot_choice(self, ax)


def choose_oracle(
    epsilon: float,
    domain_size: Domain | int,
    *,
    report_bits: int | None = None,
    oracles: Any = None,
    frequency: float = 0.0,
) -> OracleChoice:
    """Choose the oracle of smallest variance whose report fits in ``report_bits``.

    Variances are exact, from the realised probabilities. Of variances that differ by less than
    0.5 % the smaller report wins.

    Parameters
    ----------
    epsilon
        The privacy of a report, in nats.
    domain_size
        The number of answers, or a domain, as for :func:`plan`.
    report_bits
        The largest report that can be sent; no limit by default.
    oracles
        What to choose from: classes of oracles, callables that take an epsilon and a domain, or
        names; by default all of turnout's oracles that need nothing else.
    frequency
        The true frequency, in [0, 1], of an answer whose estimate should be good: by default a rare
        one.

    Returns
    -------
    OracleChoice
        The oracle, all candidates, an explanation, a table and a picture.

    Raises
    ------
    InvalidValueError
        If no candidate takes the epsilon and the domain, or none fits; the message names the
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
    level = _arguments.number("epsilon", epsilon)
    if not 0.0 < level < math.inf:
        raise InvalidValueError(f"epsilon must be finite and above 0, got {level}")
    answers = domain_of("domain_size", domain_size)
    limit = None
    if report_bits is not None:
        limit = _arguments.integer("report_bits", report_bits, least=1)
    share = _arguments.number("frequency", frequency)
    if not 0.0 <= share <= 1.0:
        raise InvalidValueError(f"frequency must be in [0, 1], got {share}")
    found = [
        _candidate(name, factory, level, answers, limit=limit, frequency=share)
        for name, factory in factories(oracles)
    ]
    best = min(each.variance for each in found)
    if math.isinf(best):
        why = reasons((each.name, str(each.refused)) for each in found)
        raise InvalidValueError(
            f"no oracle takes epsilon {level:g} and {answers.size:,} answers: {why}"
        )
    compared = [_relative(each, best) for each in found]
    compared.sort(key=lambda each: (each.variance, each.report_bits or 0, each.name))
    fitting = [each for each in compared if each.refused is None]
    if not fitting:
        smallest = min(
            (each for each in compared if each.report_bits is not None),
            key=lambda each: each.report_bits or 0,
        )
        raise InvalidValueError(
            f"report_bits must be at least {smallest.report_bits} ({smallest.name}) for epsilon "
            f"{level:g} and {answers.size:,} answers, got {limit}"
        )
    tied = [each for each in fitting if each.variance <= TIE * fitting[0].variance]
    # Subsets of one answer are direct encoding but for rounding: the plainer one is named.
    chosen = min(
        tied,
        key=lambda each: (
            each.report_bits or 0, each.name != DirectEncoding.name, each.variance, each.name
        ),
    )  # fmt: skip
    assert chosen.oracle is not None
    return OracleChoice(chosen.oracle, tuple(compared), level, answers, share, limit)


def _candidate(
    name: str,
    factory: Factory,
    epsilon: float,
    domain: Domain,
    *,
    limit: int | None,
    frequency: float,
) -> OracleCandidate:
    nothing = math.nan
    try:
        oracle = make(factory, epsilon, domain)
    except InvalidTypeError:
        raise
    except InvalidValueError as error:
        return OracleCandidate(name, None, math.inf, math.inf, None, nothing, nothing, str(error))
    p, q = oracle.support_probabilities
    bits = oracle.report_bits
    large = limit is not None and bits > limit
    refused = f"above the limit of {limit:,} bits" if large else None
    variance = ReportLaw.of(oracle).variance(frequency)
    return OracleCandidate(oracle.name, oracle, variance, math.nan, bits, p, q, refused)


def _relative(candidate: OracleCandidate, best: float) -> OracleCandidate:
    return replace(candidate, relative_variance=candidate.variance / best)
