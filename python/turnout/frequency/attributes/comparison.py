"""Which way to collect several attributes has the smaller error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._tables import Tabular
from turnout.domain import Domain
from turnout.frequency.attributes.base import AttributeCollection
from turnout.frequency.attributes.parameters import OracleChoice
from turnout.frequency.attributes.sampled import SampledAttribute
from turnout.frequency.attributes.split import SplitBudget
from turnout.frequency.oracles.direct_encoding import DirectEncoding
from turnout.participation import Participation


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
