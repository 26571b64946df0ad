"""A small study helper: error and cost against epsilon and participation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._seeds import derived
from turnout._tables import Listing, fields_of
from turnout._types import Axes, Unsigned
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.candidates import checked_oracle
from turnout.frequency.estimation.estimate import POSTPROCESSING, postprocessed
from turnout.frequency.estimation.estimators import ESTIMATORS
from turnout.frequency.estimation.variance import estimator_variance
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.oracles.direct_encoding import DirectEncoding
from turnout.frequency.pictures import plot_comparison
from turnout.participation import Bernoulli


@dataclass(frozen=True)
class ComparisonRecord:
    """The result for one epsilon and one participation rate.

    Attributes
    ----------
    epsilon, rate
        The setting.
    expected_reports
        The cost: nodes times rate.
    expected_bytes
        The same in bytes of reports.
    total_variation, total_variation_error
        Mean over the repeats of the total variation distance to the truth, and its standard error.
    rmse, rmse_predicted
        Root of the mean squared error of the frequencies over answers and repeats, and the value
        that the exact variance predicts (without post-processing).
    """

    epsilon: float
    rate: float
    expected_reports: float
    expected_bytes: float
    total_variation: float
    total_variation_error: float
    rmse: float
    rmse_predicted: float


@dataclass(frozen=True)
class Comparison(Listing):
    """The result of :func:`compare`.

    Attributes
    ----------
    records
        One for each setting.
    nodes, repeats, method, postprocessing
        What was studied.
    """

    records: tuple[ComparisonRecord, ...]
    nodes: int
    repeats: int
    method: str
    postprocessing: str

    _columns = fields_of(ComparisonRecord)

    def table(self) -> str:
        """Format the records as a plain-text table.

        Returns
        -------
        str
            One line for each setting.
        """
        lines = [
            f"{'epsilon':>8} {'rate':>6} {'reports':>12} {'total variation':>18} "
            f"{'rmse':>9} {'predicted':>10}"
        ]
        lines.extend(
            f"{row.epsilon:>8g} {row.rate:>6g} {row.expected_reports:>12,.0f} "
            f"{row.total_variation:>9.4f} ± {row.total_variation_error:<6.4f} "
            f"{row.rmse:>9.5f} {row.rmse_predicted:>10.5f}"
            for row in self.records
        )
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw total variation against participation, a line for each epsilon.

        Parameters
        ----------
        ax
            Matplotlib axes to draw on; new ones by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, with the cost on top.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        return plot_comparison(self, ax)


def population(true_counts: Any) -> tuple[Domain, Unsigned, int]:
    """Check how many nodes hold each answer: the domain of their codes, the counts, their sum.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If there are fewer than two answers, no node, or an entry is no count.
    """
    array = _arguments.vector(
        "true_counts", true_counts, "a sequence of counts, one for each answer", "whole numbers"
    )
    if array.size < 2:
        raise InvalidValueError(f"true_counts must have at least 2 entries, got {array.size}")
    domain = Domain.from_integers(array.size)
    counts = _arguments.counts("true_counts", true_counts, domain.size)
    nodes = sum(counts.tolist())
    if nodes == 0:
        raise InvalidValueError("true_counts must hold at least one node, got none")
    return domain, counts, nodes


def compare(
    true_counts: Any,
    *,
    epsilons: Iterable[float] = (0.5, 1.0, 2.0),
    participations: Iterable[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    repeats: int = 50,
    method: str = "hajek",
    postprocessing: str = "none",
    oracle: Callable[[float, Domain], FrequencyOracle] = DirectEncoding,
    seed: int | None = None,
) -> Comparison:
    """Study how error and cost depend on epsilon and participation.

    The trade-off of Figure 3 of Biswas, Cormode, Maple, "Impact of sampling on locally
    differentially private data collection". Every repeat is an exact simulation from the counts,
    so the number of nodes costs nothing.

    Parameters
    ----------
    true_counts
        How many nodes hold each answer.
    epsilons, participations
        The settings: every combination is studied.
    repeats
        How many collections are simulated for each setting, from 2 to a million.
    method
        The estimator, as in :meth:`turnout.Tally.estimate`.
    postprocessing
        As in :meth:`turnout.FrequencyEstimate.project`, or ``"empirical_bayes"`` as in
        :meth:`turnout.FrequencyEstimate.shrink`.
    oracle
        Makes the randomizer from an epsilon and a domain.
    seed
        Makes the study reproducible.

    Returns
    -------
    Comparison
        Records, a table and a picture.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If a setting is refused by the oracle or the participation, or there are none.
    EstimatorError
        If a simulated collection brings no report and the estimator needs one.

    Examples
    --------
    >>> study = compare([700, 200, 100], epsilons=[1.0], participations=[0.1, 1.0], seed=1)
    >>> low, full = study.records
    >>> low.expected_reports, low.total_variation > full.total_variation
    (100.0, True)
    """
    domain, counts, nodes = population(true_counts)
    repeats = _arguments.integer("repeats", repeats, least=2, most=1_000_000)
    _arguments.choice("method", method, tuple(ESTIMATORS))
    _arguments.choice("postprocessing", postprocessing, POSTPROCESSING)
    if not callable(oracle):
        raise _arguments.mistyped("oracle must be callable with an epsilon and a domain", oracle)
    epsilons = _arguments.items("epsilons", epsilons, "an iterable of numbers")
    participations = _arguments.items("participations", participations, "an iterable of rates")
    settings = [
        (checked_oracle("oracle", oracle(epsilon, domain), epsilon, domain), Bernoulli(rate))
        for epsilon in epsilons
        for rate in participations
    ]
    if not settings:
        raise InvalidValueError("epsilons and participations must each hold a value")
    truth = counts / nodes
    first = _arguments.seed(seed)
    records = []
    for position, (chosen, participation) in enumerate(settings):
        distances = np.empty(repeats)
        errors = np.empty(repeats)
        for repeat in range(repeats):
            stream = derived(first, position, repeat)
            tally = chosen.simulate(counts, participation=participation, seed=stream)
            estimate = postprocessed(tally.estimate(method), postprocessing)
            distances[repeat] = estimate.total_variation(truth)
            errors[repeat] = estimate.distance(truth, "rmse")
        errors_squared = estimator_variance(
            chosen, participation, method=method, true_counts=counts
        )
        if method == "c":
            scores = chosen.score_moments
            shift = nodes * scores.other / scores.difference
            errors_squared += ((1 - participation.rate) * (counts + shift)) ** 2
        reports = nodes * participation.rate
        records.append(
            ComparisonRecord(
                epsilon=chosen.epsilon,
                rate=participation.rate,
                expected_reports=reports,
                expected_bytes=reports * chosen.report_bits / 8,
                total_variation=float(distances.mean()),
                total_variation_error=float(distances.std(ddof=1) / np.sqrt(repeats)),
                rmse=float(np.sqrt((errors**2).mean())),
                rmse_predicted=float(np.sqrt(errors_squared.mean()) / nodes),
            )
        )
    return Comparison(tuple(records), nodes, repeats, method, postprocessing)
