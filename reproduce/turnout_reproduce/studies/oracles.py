"""Studies of error and cost: of one oracle, and of several side by side."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._seeds import derived
from turnout._types import Floats, Unsigned
from turnout.collecting.variance import estimator_variance
from turnout.domain import Domain
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.choice import checked_oracle, factories, make
from turnout.frequency.estimation.estimate import SHRUNK
from turnout.frequency.estimation.estimators import ESTIMATORS
from turnout.frequency.estimation.projection import PROJECTIONS
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.oracles.direct_encoding import DirectEncoding
from turnout.frequency.tally import Tally
from turnout.participation import Bernoulli, Participation, taking_part_in
from turnout_reproduce.curves import Curve
from turnout_reproduce.studies.study import Picture, Study, curve_of, grouped

#: Above this many nodes tallies are drawn from the counts instead of node by node.
NODE_BY_NODE = 1_000_000


@dataclass(frozen=True)
class RateRecord:
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


def _errors(
    draw: Callable[..., Tally], seeds: list[Any], truth: Floats, method: str, postprocessing: str
) -> tuple[Floats, Floats]:
    """Give the total variation and the mean squared error of the estimate of each collection."""
    found = np.empty((2, len(seeds)))
    for place, seed in enumerate(seeds):
        raw = draw(seed=seed).estimate(method)
        estimate = raw.shrink() if postprocessing == SHRUNK else raw.project(postprocessing)
        found[:, place] = estimate.distance(truth), estimate.distance(truth, "rmse") ** 2
    return found[0], found[1]


def compare_rates(
    true_counts: Any,
    *,
    epsilons: Iterable[float] = (0.5, 1.0, 2.0),
    participations: Iterable[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    repeats: int = 50,
    method: str = "hajek",
    postprocessing: str = "none",
    oracle: Callable[[float, Domain], FrequencyOracle] = DirectEncoding,
    seed: int | None = None,
) -> Study[RateRecord]:
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
    Study
        A :class:`RateRecord` for each setting; ``settings`` has ``nodes``, ``repeats``, ``method``
        and ``postprocessing``.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If a setting is refused by the oracle or the participation, or there are none.
    EstimatorError
        If a simulated collection brings no report and the estimator needs one.

    Examples
    --------
    >>> study = compare_rates([700, 200, 100], epsilons=[1.0], participations=[0.1, 1.0], seed=1)
    >>> low, full = study.records
    >>> low.expected_reports, low.total_variation > full.total_variation
    (100.0, True)
    """
    domain, counts, nodes = population(true_counts)
    repeats = _arguments.integer("repeats", repeats, least=2, most=1_000_000)
    _arguments.choice("method", method, tuple(ESTIMATORS))
    _arguments.choice("postprocessing", postprocessing, ("none", *PROJECTIONS, SHRUNK))
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
        draw = partial(chosen.simulate, counts, participation=participation)
        seeds = [derived(first, position, repeat) for repeat in range(repeats)]
        distances, squares = _errors(draw, seeds, truth, method, postprocessing)
        errors_squared = estimator_variance(
            chosen, participation, method=method, true_counts=counts
        )
        if method == "c":
            scores = chosen._score_moments
            shift = nodes * scores.other / scores.difference
            errors_squared += ((1 - participation.rate) * (counts + shift)) ** 2
        reports = nodes * participation.rate
        records.append(
            RateRecord(
                epsilon=chosen.epsilon,
                rate=participation.rate,
                expected_reports=reports,
                expected_bytes=reports * chosen.report_bits / 8,
                total_variation=float(distances.mean()),
                total_variation_error=float(distances.std(ddof=1) / np.sqrt(repeats)),
                rmse=float(np.sqrt(squares.mean())),
                rmse_predicted=float(np.sqrt(errors_squared.mean()) / nodes),
            )
        )
    curves = [
        curve_of(f"ε = {epsilon:g}", rows, "rate", "total_variation")
        for epsilon, rows in grouped(records, "epsilon")
    ]
    picture = Picture(
        tuple(curves),
        "participation rate",
        "total variation distance to the truth",
        title=f"{method}, {repeats} repeats",
        top=("cost: expected reports", nodes),
    )
    studied = {
        "nodes": nodes,
        "repeats": repeats,
        "method": method,
        "postprocessing": postprocessing,
    }
    return Study(tuple(records), studied, picture)


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
) -> Study[OracleRecord]:
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
        the reason in the settings.
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
    Study
        An :class:`OracleRecord` for each oracle and epsilon that go together, the smallest
        predicted error of each epsilon first; ``settings`` has ``nodes``, ``domain_size``,
        ``repeats``, ``rate``, ``method``, ``postprocessing``, and in ``refused`` for the name of an
        oracle and an epsilon why the oracle could not be made.

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
    _arguments.choice("postprocessing", postprocessing, ("none", *PROJECTIONS, SHRUNK))
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
        if values is None:
            draw = partial(oracle.simulate, counts, participation=taking_part)
        else:
            draw = partial(oracle.collect, values, participation=taking_part)
        seeds = [derived(first, position, repeat) for repeat in range(repeats)]
        distances, squares = _errors(draw, seeds, truth, method, postprocessing)
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
    records.sort(key=lambda row: (row.epsilon, row.rmse_predicted))
    if not records:
        reasons = "; ".join(sorted(set(refused.values())))
        raise InvalidValueError(f"no oracle can be studied: {reasons}")
    title = f"{nodes:,} nodes, {domain.size} answers, participation {rate:g}, {method}"
    studied = {
        "nodes": nodes,
        "domain_size": domain.size,
        "repeats": repeats,
        "rate": rate,
        "method": method,
        "postprocessing": postprocessing,
        "refused": refused,
    }
    return Study(tuple(records), studied, _side_by_side(records, title))


def _side_by_side(records: list[OracleRecord], title: str) -> Picture:
    """Set the errors of the oracles side by side, with the sizes of their reports."""
    names: list[str] = []
    places: dict[str, float] = {}
    for name, rows in grouped(records, "oracle"):
        bits = [row.report_bits for row in rows]
        sizes = dict.fromkeys(f"{size:,}" for size in (min(bits), max(bits)))
        places[name] = float(len(names))
        names.append(f"{name}, {' to '.join(sizes)} bits")
    curves = []
    for epsilon, found in grouped(records, "epsilon"):
        points = sorted((places[row.oracle], row.rmse, row.rmse_error) for row in found)
        x, y, error = zip(*points, strict=True)
        curves.append(Curve(f"ε = {epsilon:g}", x, y, error))
    return Picture(
        tuple(curves),
        "oracle",
        "rmse of an answer's frequency",
        log="y",
        title=title,
        names=tuple(names),
    )
