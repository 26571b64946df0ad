"""When two rounds beat one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._seeds import derived
from turnout.collecting.variance import estimator_variance
from turnout.domain import Domain
from turnout.frequency.adaptive.collection import TwoRoundCollection
from turnout.frequency.choice import make_oracle
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.oracles.direct_encoding import DirectEncoding
from turnout.participation import Bernoulli
from turnout_reproduce.curves import Curve
from turnout_reproduce.studies.study import Picture, Study, curve_of


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
    oracle: Callable[[float, Domain], FrequencyOracle] | None = None,
) -> Study[TwoRoundRecord]:
    """Compare two rounds with one at equal total epsilon and equal expected number of reports.

    Parameters
    ----------
    true_counts
        How many nodes hold each answer.
    epsilon
        The total budget of a node.
    rate
        The expected share of nodes that report, in one round or in both together.
    low, high, oracle
        As for :class:`TwoRoundCollection`.
    first_part
        The part of the reports that the first of the two rounds takes.
    repeats, seed
        How often, and from which seed, the two rounds are simulated.

    Returns
    -------
    Study
        A :class:`TwoRoundRecord` for each answer; ``settings`` has ``epsilon``, ``repeats``, the
        expected number of reports of the one round, ``one_round_reports``, the mean number of the
        two, ``two_round_reports``, and in ``spent`` the largest total budget that these spent.

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
    ratios = curve_of(
        f"ε = {collection.epsilon:g}",
        [row for row in records if row.frequency > 0],
        "frequency",
        "ratio",
    )
    even = Curve("one round", (min(ratios.x), max(ratios.x)), (1.0, 1.0))
    picture = Picture(
        (ratios, even),
        "true frequency of the answer",
        "error of two rounds / error of one",
        log="x",
        title="below the line two rounds are better",
    )
    studied = {
        "epsilon": collection.epsilon,
        "repeats": number,
        "one_round_reports": nodes * total,
        "two_round_reports": float(np.mean([run.received for run in runs])),
        "spent": max(run.spent.total for run in runs),
    }
    return Study(records, studied, picture)
