"""A study of oracles side by side: error and size of a report at equal epsilon."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._seeds import derived
from turnout._tables import Listing, fields_of
from turnout._types import Axes
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.candidates import factories, make
from turnout.frequency.estimation.estimate import POSTPROCESSING, postprocessed
from turnout.frequency.estimation.estimators import ESTIMATORS
from turnout.frequency.estimation.variance import estimator_variance
from turnout.frequency.pictures import plot_oracles
from turnout.frequency.studies.study import population
from turnout.participation import Participation, taking_part_in

#: Above this many nodes tallies are drawn from the counts instead of node by node.
NODE_BY_NODE = 1_000_000


@dataclass(frozen=True)
class OracleRecord:
    """The result for one oracle and one epsilon.

    Attributes
    ----------
    oracle
        The name of the oracle's class.
    epsilon, realized_epsilon
        What was asked for, and what the oracle makes of it.
    report_bits
        The size of a report.
    rmse, rmse_error, rmse_predicted
        Root of the mean squared error of the frequencies over answers and repeats, its standard
        error, and the value that the exact variance predicts (without post-processing).
    total_variation, total_variation_error
        Mean over the repeats of the total variation distance to the truth, and its standard error.
    """

    oracle: str
    epsilon: float
    realized_epsilon: float
    report_bits: int
    rmse: float
    rmse_error: float
    rmse_predicted: float
    total_variation: float
    total_variation_error: float


@dataclass(frozen=True)
class OracleComparison(Listing):
    """The result of :func:`compare_oracles`.

    Attributes
    ----------
    records
        One for each oracle and epsilon that go together, in the order of epsilons.
    refused
        Why an oracle could not be made: for its name and an epsilon, the message.
    nodes, domain_size, repeats, rate, method, postprocessing
        What was studied.
    """

    records: tuple[OracleRecord, ...]
    refused: dict[tuple[str, float], str]
    nodes: int
    domain_size: int
    repeats: int
    rate: float
    method: str
    postprocessing: str

    _columns = fields_of(OracleRecord)

    def table(self) -> str:
        """Format the records as a plain-text table, the smallest error of each epsilon first.

        Returns
        -------
        str
            One line for each record.
        """
        widest = max([len(row.oracle) for row in self.records] + [6])
        lines = [
            f"{'epsilon':>7} {'oracle':<{widest}} {'bits':>8} {'rmse':>9} {'predicted':>10} "
            f"{'total variation':>18}"
        ]
        lines.extend(
            f"{row.epsilon:>7g} {row.oracle:<{widest}} {row.report_bits:>8,} {row.rmse:>9.5f} "
            f"{row.rmse_predicted:>10.5f} "
            f"{row.total_variation:>9.4f} ± {row.total_variation_error:<6.4f}"
            for row in sorted(self.records, key=lambda row: (row.epsilon, row.rmse_predicted))
        )
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the error of every oracle, a marker for each epsilon, with the report sizes.

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
        """
        return plot_oracles(self, ax)


def compare_oracles(
    true_counts: Any,
    *,
    epsilons: Iterable[float] = (0.5, 1.0, 2.0),
    oracles: Any = None,
    participation: Participation | float | None = None,
    repeats: int = 20,
    method: str = "hajek",
    postprocessing: str = "none",
    seed: int | None = None,
) -> OracleComparison:
    """Study the error of several oracles on one population.

    Up to a million nodes are randomized one by one; more are drawn by
    :meth:`FrequencyOracle.simulate`.

    Parameters
    ----------
    true_counts
        How many nodes hold each answer.
    epsilons
        The privacy parameters: every oracle is studied at each.
    oracles
        Classes or names of oracles, or functions that make one from an epsilon and a domain; by
        default all there are. One that refuses the domain or an epsilon is left out there, with
        the reason in ``refused``.
    participation
        Who takes part: everyone (default) or a common rate.
    repeats
        How many collections are made for each oracle and epsilon, from 2 to a million.
    method
        The estimator, as in :meth:`turnout.Tally.estimate`.
    postprocessing
        As in :meth:`turnout.FrequencyEstimate.project`, or ``"empirical_bayes"`` as in
        :meth:`turnout.FrequencyEstimate.shrink`.
    seed
        Makes the study reproducible.

    Returns
    -------
    OracleComparison
        Records, a table and a picture.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If an argument is out of range or of the wrong type, or every oracle is refused.
    EstimatorError
        If a collection brings no report and the estimator needs one.

    Examples
    --------
    >>> import turnout as tn
    >>> study = compare_oracles(
    ...     [700, 200, 100], epsilons=[1.0], oracles=[tn.DirectEncoding], seed=1
    ... )
    >>> study.records[0].report_bits
    2
    """
    domain, counts, nodes = population(true_counts)
    repeats = _arguments.integer("repeats", repeats, least=2, most=1_000_000)
    _arguments.choice("method", method, tuple(ESTIMATORS))
    _arguments.choice("postprocessing", postprocessing, POSTPROCESSING)
    taking_part = taking_part_in(participation)
    rate = taking_part.uniform_rate
    if rate is None:
        raise _arguments.invalid("participation must be Everyone() or Bernoulli(...)", taking_part)
    settings = _arguments.items("epsilons", epsilons, "an iterable of numbers")
    if not settings:
        raise InvalidValueError("epsilons must hold a number, got none")
    chosen = factories(oracles)
    first = _arguments.seed(seed)
    truth = counts / nodes
    values = (
        np.repeat(np.arange(domain.size), counts.astype(np.int64))
        if (nodes <= NODE_BY_NODE)
        else None
    )
    records, refused = [], {}
    for position, (epsilon, (name, factory)) in enumerate(itertools.product(settings, chosen)):
        try:
            oracle = make(factory, epsilon, domain)
        except InvalidTypeError:
            raise
        except InvalidValueError as error:
            refused[name, epsilon] = str(error)
            continue
        squares, distances = np.empty(repeats), np.empty(repeats)
        for repeat in range(repeats):
            stream = derived(first, position, repeat)
            if values is None:
                tally = oracle.simulate(counts, participation=taking_part, seed=stream)
            else:
                tally = oracle.collect(values, participation=taking_part, seed=stream)
            estimate = postprocessed(tally.estimate(method), postprocessing)
            squares[repeat] = estimate.distance(truth, "rmse") ** 2
            distances[repeat] = estimate.total_variation(truth)
        variances = estimator_variance(oracle, taking_part, method=method, true_counts=counts)
        rmse = float(np.sqrt(squares.mean()))
        spread = 1.0 / np.sqrt(repeats)
        records.append(
            OracleRecord(
                oracle=type(oracle).__name__,
                epsilon=oracle.epsilon,
                realized_epsilon=oracle.realized_epsilon,
                report_bits=oracle.report_bits,
                rmse=rmse,
                rmse_error=float(squares.std(ddof=1) * spread / (2 * rmse)) if rmse else 0.0,
                rmse_predicted=float(np.sqrt(variances.mean()) / nodes),
                total_variation=float(distances.mean()),
                total_variation_error=float(distances.std(ddof=1) * spread),
            )
        )
    if not records:
        reasons = "; ".join(sorted(set(refused.values())))
        raise InvalidValueError(f"no oracle can be studied: {reasons}")
    return OracleComparison(
        tuple(records), refused, nodes, domain.size, repeats, rate, method, postprocessing
    )
