"""Shuffled reports beside a trusted curator, at equal privacy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from turnout import _arguments
from turnout._tables import Listing
from turnout._types import Axes
from turnout.accounting.calibration import calibrate_noise
from turnout.accounting.participation import GaussianMechanism
from turnout.accounting.shuffling import Shuffled
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.choice import checked_oracle
from turnout.frequency.estimation.estimators import ESTIMATORS, estimator_variance
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.oracles.direct_encoding import DirectEncoding
from turnout.participation import Participation, taking_part_in
from turnout_reproduce.studies.collection_pictures import plot_shuffled
from turnout_reproduce.studies.oracles import population


@dataclass(frozen=True)
class ShuffledRecord:
    """The result for one local epsilon.

    Attributes
    ----------
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
    oracle
        The word for the oracle in plans.
    report_bits
        The size of a report.
    """

    local_epsilon: float
    central_epsilon: float
    shuffled_rmse: float
    gaussian_rmse: float
    local_rmse: float
    oracle: str
    report_bits: int

    @property
    def variance_ratio(self) -> float:
        """The variance of the shuffled reports over that of the trusted curator's noise."""
        return (self.shuffled_rmse / self.gaussian_rmse) ** 2


@dataclass(frozen=True)
class ShuffledComparison(Listing):
    """The result of :func:`compare_shuffled`.

    Attributes
    ----------
    records
        One for each oracle and each local epsilon.
    nodes, domain_size, delta
        What was studied.
    """

    records: tuple[ShuffledRecord, ...]
    nodes: int
    domain_size: int
    delta: float

    _columns = (
        "oracle",
        "report_bits",
        "local_epsilon",
        "central_epsilon",
        "shuffled_rmse",
        "gaussian_rmse",
        "local_rmse",
        "variance_ratio",
    )

    @property
    def oracles(self) -> tuple[str, ...]:
        """The words for the oracles, in the order in which they were given."""
        return tuple(dict.fromkeys(row.oracle for row in self.records))

    def table(self) -> str:
        """Format the records as a plain-text table.

        Returns
        -------
        str
            One line for each oracle and each local epsilon; ``ratio`` is that of the errors.
        """
        several = len(self.oracles) > 1
        width = max(len(name) for name in ("oracle", *self.oracles))
        header = (
            f"{'local eps':>9} {'central eps':>12} {'shuffled rmse':>14} {'gaussian rmse':>14} "
            f"{'ratio':>7} {'local rmse':>11}"
        )
        lines = [f"{'oracle':<{width}} {header}" if several else header]
        for row in self.records:
            line = (
                f"{row.local_epsilon:>9g} {row.central_epsilon:>12.5g} {row.shuffled_rmse:>14.3e} "
                f"{row.gaussian_rmse:>14.3e} {row.shuffled_rmse / row.gaussian_rmse:>7.2f} "
                f"{row.local_rmse:>11.3e}"
            )
            lines.append(f"{row.oracle:<{width}} {line}" if several else line)
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the errors against the central epsilon; of several oracles shuffled ones only.

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
        return plot_shuffled(self, ax)


def compare_shuffled(
    true_counts: Any,
    *,
    epsilons: Iterable[float] = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
    delta: float = 1e-6,
    participation: Participation | float | None = None,
    method: str = "hajek",
    oracle: Callable[[float, Domain], FrequencyOracle] = DirectEncoding,
    oracles: Iterable[Callable[[float, Domain], FrequencyOracle]] | None = None,
) -> ShuffledComparison:
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
    ShuffledComparison
        Records, a table and a picture.

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
    return ShuffledComparison(tuple(records), nodes, domain.size, level)


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
