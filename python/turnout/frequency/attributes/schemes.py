"""One attribute of each person with the whole epsilon, or all with parts: which errs less."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._rounding import rounded_down, rounded_up
from turnout._seeds import derived
from turnout._tables import Tabular
from turnout._types import Array
from turnout.accounting.values import positive
from turnout.collecting.drawing import Noise
from turnout.collecting.parted import PartReports
from turnout.domain import Domain
from turnout.frequency.attributes.base import (
    AttributeCollection,
    OracleChoice,
    checked_weights,
    oracles_for,
)
from turnout.frequency.attributes.padded import PaddedOracle
from turnout.frequency.draws import weighted_choices
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.oracles.direct_encoding import DirectEncoding
from turnout.participation import Everyone, Participation
from turnout.products import domains_of


class SampledAttribute(AttributeCollection):
    """Report one attribute, chosen at random, with the whole epsilon.

    The choice is the node's own, independent of its data. For one attribute it is participation at
    the rate of the choice, so that all estimators, variances and intervals apply.

    Parameters
    ----------
    epsilon
        The privacy parameter of everything that a node sends, in nats.
    domains
        For each attribute its answers, or their number: at least two attributes.
    oracle
        What randomizes: ``"auto"`` (default) for the one of smallest variance, a class such as
        :class:`turnout.DirectEncoding`, or one for each name.
    weights
        For each attribute a positive number: it is chosen in proportion. All alike by default.
    padding
        None: the server sees which attribute a report is about. ``"fake"``: the node also sends,
        for each other attribute, a report of an answer that is drawn uniformly, so that the server
        cannot tell which attribute was sampled. Costs variance and makes reports longer.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range, or an oracle refuses epsilon.

    Notes
    -----
    **Padding does not amplify.** Let ``r_a(y, x)`` be the likelihood of a report for attribute
    ``a`` under the answer ``x`` over that under a uniform answer. A padded message has likelihood
    ``sum_a w_a r_a(y_a, x_a)`` up to a factor that does not depend on the data. If the whole tuple
    changes, every term may change by the ratio ``e^eps`` of its oracle, and so may the sum. Only
    where *one* attribute changes and the others stay do the other terms dampen the ratio, for
    direct encoding of ``d`` attributes with equal domains to ``(e^eps + d - 1) / d``. Arcolezi,
    Couchot, Al Bouna, Xiao, "Random sampling plus fake data: multidimensional frequency estimates
    with local differential privacy" (2021) turn that round and give the sampled attribute
    ``ln(d (e^eps - 1) + 1)``, which is then the epsilon of the whole tuple: 2.26 for five
    attributes at a nominal 1. Here the sampled attribute has ``epsilon``.

    Examples
    --------
    >>> import turnout as tn
    >>> from turnout.frequency.attributes import SampledAttribute
    >>> one = SampledAttribute(1.0, {"sex": tn.Domain(["f", "m"]), "age": 8})
    >>> table = {"sex": ["f", "m"] * 4000, "age": [0, 1, 2, 3] * 2000}
    >>> tally = one.collect(table, participation=tn.Bernoulli(0.5), seed=1)
    >>> tally["sex"].participation
    Bernoulli(0.25)
    >>> tally.estimate()["sex"].interval(0.999).contains([0.5, 0.5])
    array([ True,  True])
    """

    name = "sampled_attribute"

    _padding: str | None

    def __init__(
        self,
        epsilon: float,
        domains: Mapping[str, Domain | Sequence[Hashable] | int],
        *,
        oracle: OracleChoice | Mapping[str, OracleChoice] = "auto",
        weights: Mapping[str, float] | None = None,
        padding: str | None = None,
    ) -> None:
        whole = positive("epsilon", epsilon)
        checked = domains_of("domains", domains)
        numbers = checked_weights(weights, checked)
        self._set_options({"padding": padding})
        oracles = oracles_for(oracle, dict.fromkeys(checked, whole), checked)
        self._set(whole, oracles, numbers)

    @property
    def padding(self) -> str | None:
        """What is sent for the attributes that were not sampled: None or ``"fake"``."""
        return self._padding

    @property
    def realized_ratio(self) -> Fraction:
        """The largest ratio of the oracles, exactly: none of a message is larger.

        With padding a message mixes the oracles, and reaches it where all have the same ratio.
        """
        return max(oracle.realized_ratio for oracle in self._oracles.values())

    @property
    def realized_epsilon(self) -> float:
        """The largest realised epsilon of the oracles; never above :attr:`epsilon`."""
        return max(oracle.realized_epsilon for oracle in self._oracles.values())

    @property
    def choice(self) -> tuple[int, ...] | None:
        """The weights of the attributes; None with padding, where all are reported."""
        return None if self._padding else tuple(self._weights.values())

    @property
    def parts(self) -> tuple[FrequencyOracle, ...]:
        """For each attribute the randomizer whose law its reports have."""
        if not self._padding:
            return super().parts
        return tuple(
            PaddedOracle(
                oracle.epsilon, oracle.domain, oracle=oracle, share=float(self._portion(name))
            )
            for name, oracle in self._oracles.items()
        )

    def _together(self) -> tuple[FrequencyOracle, ...]:
        return (max(self._oracles.values(), key=lambda oracle: oracle.epsilon),)

    def _options(self) -> dict[str, Any]:
        return {"padding": self._padding}

    def _set_options(self, options: dict[str, Any]) -> None:
        if set(options) != {"padding"}:
            raise _arguments.invalid("sampled takes the option padding", options)
        self._padding = _arguments.choice("padding", options["padding"], (None, "fake"))

    def draw_parts(self, answers: Array, noise: Noise) -> Iterator[PartReports]:
        """Randomize attribute by attribute; with padding, fake answers to the others."""
        if not self._padding:
            yield from super().draw_parts(answers, noise)
            return
        chosen = weighted_choices(list(self._weights.values()), len(answers), derived(noise, 0))
        for number, oracle in enumerate(self._oracles.values()):
            sampled = chosen == number
            own = _core.uniform_integers(
                oracle.domain.size, len(answers), derived(noise, 2, number)
            )
            own[sampled] = answers[sampled, number]
            reports = oracle.draw_reports(own, Everyone(), derived(noise, 1, number)).reports
            yield PartReports(number, None, reports)


class SplitBudget(AttributeCollection):
    """Report every attribute, each with a part of epsilon.

    The likelihood ratios of independent reports multiply, so the epsilons of the parts add up:
    their sum is at most ``epsilon``, exactly. Best when epsilon is large for the number of
    attributes; otherwise :class:`SampledAttribute` has the smaller error: see
    :func:`compare_attributes`.

    Parameters
    ----------
    epsilon
        The privacy parameter of all reports of a node together, in nats.
    domains
        For each attribute its answers, or their number: at least two attributes.
    oracle
        What randomizes: ``"auto"`` (default) for the one of smallest variance, a class such as
        :class:`turnout.DirectEncoding`, or one for each name.
    weights
        For each attribute a positive number: epsilon is divided in proportion. Equal by default.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range, or an oracle refuses its part of epsilon.

    Examples
    --------
    >>> import turnout as tn
    >>> from turnout.frequency.attributes import SplitBudget
    >>> domains = {"sex": tn.Domain(["f", "m"]), "age": 8}
    >>> both = SplitBudget(2.0, domains, weights={"sex": 1, "age": 3})
    >>> both.oracles["age"].epsilon, both.realized_epsilon <= 2.0
    (1.5, True)
    """

    name = "split_budget"

    def __init__(
        self,
        epsilon: float,
        domains: Mapping[str, Domain | Sequence[Hashable] | int],
        *,
        oracle: OracleChoice | Mapping[str, OracleChoice] = "auto",
        weights: Mapping[str, float] | None = None,
    ) -> None:
        whole = positive("epsilon", epsilon)
        checked = domains_of("domains", domains)
        numbers = checked_weights(weights, checked)
        total = sum(numbers.values())
        parts = {
            name: rounded_down(Fraction(whole) * Fraction(number, total))
            for name, number in numbers.items()
        }
        self._set(whole, oracles_for(oracle, parts, checked), numbers)

    @property
    def realized_ratio(self) -> Fraction:
        """The product of the oracles' ratios: the largest of a message, exactly."""
        return math.prod((oracle.realized_ratio for oracle in self._together()), start=Fraction(1))

    @property
    def realized_epsilon(self) -> float:
        """The sum of the oracles' realised epsilons, rounded up; never above :attr:`epsilon`."""
        parts = (Fraction(oracle.realized_epsilon) for oracle in self._together())
        return rounded_up(sum(parts, start=Fraction(0)))

    @property
    def choice(self) -> None:
        """None: all attributes are reported."""
        return

    def _together(self) -> tuple[FrequencyOracle, ...]:
        return tuple(self._oracles.values())


@dataclass(frozen=True)
class AttributeRecord:
    """The predicted errors of one way to collect.

    Attributes
    ----------
    scheme
        ``"split"``, ``"sampled"`` or ``"sampled, fake"``.
    collection
        The collection.
    rmse
        For each attribute the root of the mean, over its answers, of the exact variances of the
        frequencies.
    report_bits
        The size of the largest message of a node.
    """

    scheme: str
    collection: AttributeCollection
    rmse: dict[str, float]
    report_bits: int

    @property
    def total_rmse(self) -> float:
        """The root of the mean over attributes of the squared errors."""
        return float(np.sqrt(np.mean(np.square(list(self.rmse.values())))))


@dataclass(frozen=True)
class AttributeComparison(Tabular):
    """The result of :func:`compare_attributes`.

    Attributes
    ----------
    records
        One for each way.
    epsilon
        The epsilon of each, for all attributes of a node together.
    nodes
        How many nodes there are.
    """

    records: tuple[AttributeRecord, ...]
    epsilon: float
    nodes: int

    _columns = ("scheme", "attribute", "rmse", "total_rmse", "report_bits")

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each attribute in each way, for tables and programs.

        Returns
        -------
        list of dict
            With ``scheme``, ``attribute``, ``rmse``, ``total_rmse`` and ``report_bits``.
        """
        return [
            {
                "scheme": record.scheme,
                "attribute": attribute,
                "rmse": rmse,
                "total_rmse": record.total_rmse,
                "report_bits": record.report_bits,
            }
            for record in self.records
            for attribute, rmse in record.rmse.items()
        ]

    @property
    def best(self) -> AttributeRecord:
        """The record with the smallest error over all attributes."""
        return min(self.records, key=lambda record: record.total_rmse)

    def table(self) -> str:
        """Format the errors as a plain-text table.

        Returns
        -------
        str
            One line for each way, one column for each attribute.
        """
        names = list(self.records[0].rmse)
        wide = [max(len(name), 9) for name in names]
        head = " ".join(f"{name:>{width}}" for name, width in zip(names, wide, strict=True))
        lines = [f"{'scheme':<14} {head} {'all':>9} {'bits':>6}"]
        for record in self.records:
            errors = " ".join(
                f"{record.rmse[name]:>{width}.5f}" for name, width in zip(names, wide, strict=True)
            )
            lines.append(
                f"{record.scheme:<14} {errors} {record.total_rmse:>9.5f} {record.report_bits:>6}"
            )
        return "\n".join(lines)


def compare_attributes(
    epsilon: float,
    true_counts: Mapping[str, Any],
    *,
    oracle: OracleChoice | Mapping[str, OracleChoice] = DirectEncoding,
    participation: Participation | float | None = None,
    method: str = "hajek",
) -> AttributeComparison:
    """Compare splitting epsilon with sampling an attribute, with and without padding.

    All three protect the whole tuple of answers with the same epsilon. Errors come from exact
    variances, not from a simulation.

    Parameters
    ----------
    epsilon
        The privacy parameter of everything that a node sends.
    true_counts
        For each attribute how many nodes hold each answer; the same number of nodes in all.
    oracle
        As for :class:`SplitBudget`.
    participation
        Everyone (default) or a common rate.
    method
        The estimator, as in :meth:`turnout.Tally.estimate`.

    Returns
    -------
    AttributeComparison
        Records and a table.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    >>> counts = {"a": [60_000, 40_000], "b": [10_000] * 10, "c": [25_000] * 4}
    >>> compare_attributes(1.0, counts).best.scheme
    'sampled'
    """
    _arguments.instance("true_counts", true_counts, Mapping, "a mapping from names to counts")
    domains: dict[str, Domain | int] = {}
    totals = {}
    for name, counts in true_counts.items():
        argument = f"true_counts[{name!r}]"
        array = _arguments.vector(argument, counts, "a sequence of counts", "whole numbers")
        checked = _arguments.counts(argument, counts, array.size)
        domains[name] = array.size
        totals[name] = sum(checked.tolist())
    if len(set(totals.values())) > 1:
        raise _arguments.invalid("true_counts must be of the same number of nodes", totals)
    ways: list[tuple[str, AttributeCollection]] = [
        ("split", SplitBudget(epsilon, domains, oracle=oracle)),
        ("sampled", SampledAttribute(epsilon, domains, oracle=oracle)),
        ("sampled, fake", SampledAttribute(epsilon, domains, oracle=oracle, padding="fake")),
    ]
    nodes = next(iter(totals.values()))
    records = []
    for scheme, collection in ways:
        variances = collection.estimator_variance(
            true_counts, participation=participation, method=method
        )
        rmse = {name: float(np.sqrt(each.mean())) / nodes for name, each in variances.items()}
        records.append(AttributeRecord(scheme, collection, rmse, collection.report_bits))
    return AttributeComparison(tuple(records), ways[0][1].epsilon, nodes)
