"""What the ways to collect several attributes have in common."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Array, Floats
from turnout.accounting.values import positive
from turnout.collecting.parted import PartedKind
from turnout.collecting.reports import Reports
from turnout.domain import Domain
from turnout.frequency.attributes.estimate import AttributeTally, GroupedAttributeEstimate
from turnout.frequency.choice import make_oracle, one_each
from turnout.frequency.estimation.estimators import estimator_variance
from turnout.frequency.oracle import FrequencyOracle
from turnout.participation import Participation, taking_part_in
from turnout.products import Questions, domains_of

#: What randomizes: something that makes an oracle from an epsilon and a domain, or ``"auto"``.
OracleChoice = Callable[[float, Domain], FrequencyOracle] | str

#: What weights add up to, at most.
SCALE = 2**62


def _checked_weights(weights: Any, names: Sequence[str]) -> dict[str, int]:
    """Return a positive integer for each attribute: whole numbers as they are, others scaled."""
    if weights is None:
        return dict.fromkeys(names, 1)
    _arguments.instance(
        "weights",
        weights,
        (Mapping, list),
        "a mapping from names to numbers, a list, or None",
    )
    entries = one_each("weights", weights, names)
    given = [weight for _, weight in entries]
    if all(type(weight) is int and weight > 0 for weight in given) and sum(given) <= SCALE:
        return dict(zip(names, given, strict=True))
    numbers = [Fraction(positive(*entry)) for entry in entries]
    total = sum(numbers)
    scaled = [max(int(number * (SCALE - len(names)) / total), 1) for number in numbers]
    return dict(zip(names, scaled, strict=True))


class AttributeCollection(PartedKind):
    """Base class of the ways to collect several attributes of each node.

    Immutable. What a node sends about all its attributes together has a likelihood ratio of at most
    :attr:`realized_ratio` under any two whole tuples of answers.
    """

    tally_type = AttributeTally
    domain_type = Questions
    no_simulation_because = "counts of single answers do not say how a person's go together"

    _domain: Questions
    _oracles: dict[str, FrequencyOracle]
    _weights: dict[str, int]

    def __init__(
        self,
        epsilon: float,
        domains: Questions | Mapping[str, Domain | Sequence[Hashable] | int],
        *,
        oracle: OracleChoice | Mapping[str, OracleChoice] | list[OracleChoice] = "auto",
        weights: Mapping[str, float] | list[float] | None = None,
    ) -> None:
        self._epsilon = positive("epsilon", epsilon)
        self._domain = Questions(domains_of("domains", domains))
        columns = self._domain.columns
        self._weights = _checked_weights(weights, tuple(columns))
        self._oracles = {
            name: make_oracle(*entry, self._epsilon_of(name), columns[name])
            for name, entry in zip(columns, one_each("oracle", oracle, tuple(columns)), strict=True)
        }

    def _epsilon_of(self, name: str) -> float:
        """Give what the reports about one attribute may spend."""
        return self._epsilon

    @property
    def oracles(self) -> Mapping[str, FrequencyOracle]:
        """For each attribute the randomizer that its answers go through."""
        return MappingProxyType(self._oracles)

    @property
    def domains(self) -> Mapping[str, Domain]:
        """For each attribute the answers that can be given."""
        return MappingProxyType({name: each.domain for name, each in self._oracles.items()})

    @property
    def weights(self) -> Mapping[str, float]:
        """For each attribute its part, of epsilon or of the nodes; they add up to one."""
        return MappingProxyType({name: float(self._portion(name)) for name in self._weights})

    @property
    def parts(self) -> tuple[FrequencyOracle, ...]:
        """For each attribute the randomizer whose law its reports have."""
        return tuple(self._oracles.values())

    def check_answers(self, answers: Array) -> None:
        """Refuse codes that are none of the domains.

        Raises
        ------
        CodeOutsideDomainError
            If there is one.
        """
        self._domain.check_codes("values", answers)

    def answers_of(self, answers: Array, part: int) -> Array:
        """Give the column of an attribute."""
        return np.ascontiguousarray(answers[:, part])

    def estimate_groups(self, grouped: Any, method: str) -> GroupedAttributeEstimate:
        """Estimate the frequencies of the answers to all questions in each group."""
        return GroupedAttributeEstimate(grouped, method)

    def by_attribute(self, reports: Reports) -> dict[str, Reports]:
        """Take reports apart: those of each attribute, as its own randomizer makes them.

        Parameters
        ----------
        reports
            Reports of an equal collection.

        Returns
        -------
        dict
            For each attribute ordinary reports, at the rate at which it is reported.

        Raises
        ------
        PlanMismatchError
            If the reports were made by another collection.
        InvalidTypeError
            If they are no reports.

        Examples
        --------
        >>> from turnout.frequency.attributes import SplitBudget
        >>> both = SplitBudget(2.0, {"sex": 2, "age": 4})
        >>> reports = both.randomize({"sex": [0, 1, 0], "age": [0, 3, 1]})
        >>> len(both.by_attribute(reports)["age"])
        3
        """
        _arguments.instance("reports", reports, Reports, "a Reports object")
        type(reports.plan)(self, reports.participation).check_same(reports.plan, "reports")
        found = {}
        names, probabilities, design = tuple(self._oracles), reports.probabilities, reports.design
        for number, rows, codes in self.reports_of_parts(reports.codes):
            own, share = None, self.shares()[number]
            if probabilities is not None:
                own = (probabilities if rows is None else probabilities[rows]) * float(share)
            found[names[number]] = Reports(
                self.parts[number],
                self.part_participation(number, reports.participation),
                codes,
                reports.nodes,
                probabilities=own,
                design=None if design is None else design.scaled(share),
            )
        return found

    def estimator_variance(
        self,
        true_counts: Mapping[str, Any],
        *,
        participation: Participation | float | None = None,
        method: str = "hajek",
    ) -> dict[str, Floats]:
        """Compute the exact variances of the estimated counts for a given population.

        Parameters
        ----------
        true_counts
            For each attribute how many nodes hold each answer.
        participation
            Everyone (default) or a common rate.
        method
            The estimator, as in :meth:`turnout.Tally.estimate`.

        Returns
        -------
        dict
            As :func:`turnout.estimator_variance`, for each attribute.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range.
        """
        _arguments.instance(
            "true_counts", true_counts, Mapping, "a mapping from the names of the attributes"
        )
        everyone = taking_part_in(participation)
        entries = one_each("true_counts", true_counts, tuple(self._oracles))
        return {
            name: estimator_variance(
                self.parts[place],
                self.part_participation(place, everyone),
                method=method,
                true_counts=counts,
            )
            for place, (name, (_, counts)) in enumerate(zip(self._oracles, entries, strict=True))
        }

    def _portion(self, name: str) -> Fraction:
        return Fraction(self._weights[name], sum(self._weights.values()))

    def parameters(self) -> dict[str, Any]:
        """Name the randomizer and the weight of each attribute."""
        return {
            "oracle": [oracle.to_dict() for oracle in self._oracles.values()],
            "weights": list(self._weights.values()),
        }

    def __hash__(self) -> int:
        """Hash of what is compared."""
        return hash((type(self), self._epsilon, tuple(self._oracles.items())))

    def __repr__(self) -> str:
        """Show epsilon, attributes and options."""
        attributes = ", ".join(
            f"{name}: {type(oracle).__name__} of {oracle.domain.size} answers at epsilon "
            f"{oracle.epsilon:g}"
            for name, oracle in self._oracles.items()
        )
        options = "".join(
            f", {name}={value!r}"
            for name, value in self.parameters().items()
            if name not in ("oracle", "weights")
        )
        return f"{type(self).__name__}(epsilon={self._epsilon!r}, {attributes}{options})"
