"""Shuffled reports beside a trusted curator, at equal privacy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from turnout import _arguments
from turnout.accounting.calibration import calibrate_noise
from turnout.accounting.participation import GaussianMechanism
from turnout.accounting.shuffling import Shuffled
from turnout.collecting.variance import estimator_variance
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.choice import checked_oracle
from turnout.frequency.estimation.estimators import ESTIMATORS
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.oracles.direct_encoding import DirectEncoding
from turnout.participation import Participation, taking_part_in
from turnout_reproduce.studies.oracles import population
from turnout_reproduce.studies.study import Picture, Study, curve_of, grouped


@dataclass(frozen=True)
class ShuffledRecord:
    """The result for one local epsilon.

    Attributes
    ----------
    oracle
        The word for the oracle in plans.
    report_bits
        The size of a report.
    local_epsilon
        What a report protects by itself.
    central_epsilon
        What the shuffled reports protect together, at the study's delta; an upper bound.
    shuffled_rmse
        Root of the mean over answers of the variance of the estimated frequency.
    gaussian_rmse
        The same for Gaussian noise on the true counts, added by a trusted curator, at equal central
        epsilon and delta.
    local_rmse
        The same for the oracle without a shuffler, with the central epsilon as its local one;
        infinite where that is too small for it.
    """

    oracle: str
    report_bits: int
    local_epsilon: float
    central_epsilon: float
    shuffled_rmse: float
    gaussian_rmse: float
    local_rmse: float

    @property
    def variance_ratio(self) -> float:
        """The variance of the shuffled reports over that of the trusted curator's noise."""
        return (self.shuffled_rmse / self.gaussian_rmse) ** 2


def compare_shuffled(
    true_counts: Any,
    *,
    epsilons: Iterable[float] = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
    delta: float = 1e-6,
    participation: Participation | float | None = None,
    method: str = "hajek",
    oracle: Callable[[float, Domain], FrequencyOracle] = DirectEncoding,
    oracles: Iterable[Callable[[float, Domain], FrequencyOracle]] | None = None,
) -> Study[ShuffledRecord]:
    """Compare shuffled reports with the central Gaussian mechanism at equal epsilon and delta.

    An open question of Biswas, Cormode, Maple, "Impact of sampling on locally differentially
    private data collection": what do local reports cost, against a trusted curator, once a shuffler
    hides who sent them? One person's answer is replaced by another in both cases; for the curator
    two counts then change by one, a sensitivity of ``sqrt(2)``.

    Parameters
    ----------
    true_counts
        How many nodes hold each answer.
    epsilons
        The local epsilons: each gives a central one.
    delta
        The delta of both, in (0, 1).
    participation
        Who takes part, hidden by the shuffler; everyone by default. The curator knows all answers.
    method
        The estimator, as in :meth:`turnout.Tally.estimate`.
    oracle
        Makes the randomizer from an epsilon and a domain.
    oracles
        Several such makers, which are compared side by side; in place of ``oracle``.

    Returns
    -------
    Study
        A :class:`ShuffledRecord` for each oracle and each local epsilon; ``settings`` has
        ``nodes``, ``domain_size`` and ``delta``.

    Raises
    ------
    InvalidValueError, InvalidTypeError
        If a setting is refused by the oracle or the participation, or there are none.

    Examples
    --------
    >>> study = compare_shuffled([4000, 3000, 2000, 1000], epsilons=[1.0, 3.0])
    >>> low, high = study.records
    >>> low.central_epsilon < 0.1 < high.central_epsilon < 1.0
    True
    >>> high.gaussian_rmse < high.shuffled_rmse < high.local_rmse
    True
    """
    # Accounting knows the oracles, so it can only be looked at from inside.
    domain, counts, nodes = population(true_counts)
    level = _arguments.confidence("delta", delta)
    _arguments.choice("method", method, tuple(ESTIMATORS))
    taking_part = taking_part_in(participation)
    makers = _makers(oracle, oracles)
    settings = _arguments.items("epsilons", epsilons, "an iterable of numbers")
    if not settings:
        raise InvalidValueError("epsilons must hold a value")

    def error(chosen: FrequencyOracle) -> float:
        variances = estimator_variance(chosen, taking_part, method=method, true_counts=counts)
        return math.sqrt(float(variances.mean())) / float(nodes)

    records = []
    for maker, epsilon in ((maker, epsilon) for maker in makers for epsilon in settings):
        chosen = checked_oracle("oracle", maker(epsilon, domain), epsilon, domain)
        central = Shuffled(chosen, nodes, taking_part).epsilon(level)
        noise = calibrate_noise(GaussianMechanism(1.0), central, level)
        try:
            local = error(maker(central, domain))
        except InvalidValueError:
            local = math.inf
        records.append(
            ShuffledRecord(
                local_epsilon=chosen.epsilon,
                central_epsilon=central,
                shuffled_rmse=error(chosen),
                gaussian_rmse=math.sqrt(2.0) * noise / nodes,
                local_rmse=local,
                oracle=chosen.name,
                report_bits=chosen.report_bits,
            )
        )
    studied = {"nodes": nodes, "domain_size": domain.size, "delta": level}
    return Study(tuple(records), studied, _picture(records, studied))


def _picture(records: list[ShuffledRecord], studied: dict[str, Any]) -> Picture:
    """Set errors against the central epsilon; of several oracles shuffled ones only."""
    drawn = [row for row in records if row.central_epsilon > 0.0]
    of_oracles = list(grouped(drawn, "oracle"))
    curves = [
        curve_of(f"{name.replace('_', ' ')}, shuffled", rows, "central_epsilon", "shuffled_rmse")
        for name, rows in of_oracles
    ]
    if len(of_oracles) == 1:
        label = "local reports, no shuffler"
        curves.append(curve_of(label, drawn, "central_epsilon", "local_rmse"))
    label = "trusted curator, Gaussian noise"
    curves.append(curve_of(label, drawn, "central_epsilon", "gaussian_rmse"))
    nodes, size = studied["nodes"], studied["domain_size"]
    return Picture(
        tuple(curves),
        f"central ε at δ = {studied['delta']:g}",
        "rmse of an answer's frequency",
        log="xy",
        title=f"{nodes:,} nodes, {size} answers, equal (ε, δ)",
    )


def _makers(oracle: Any, oracles: Any) -> list[Callable[[float, Domain], FrequencyOracle]]:
    if oracles is None:
        named = [("oracle", oracle)]
    else:
        given = _arguments.items("oracles", oracles, "an iterable of classes of oracles")
        if not given:
            raise InvalidValueError("oracles must hold a class of an oracle, got none")
        named = [(f"oracles[{position}]", maker) for position, maker in enumerate(given)]
    for name, maker in named:
        if not callable(maker):
            raise _arguments.mistyped(
                f"{name} must be callable with an epsilon and a domain", maker
            )
    return [maker for _, maker in named]
