"""What the ways to collect several attributes have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
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
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.frequency.attributes.estimate import AttributeTally, GroupedAttributeEstimate
from turnout.frequency.choice import make_oracle
from turnout.frequency.estimation.estimators import estimator_variance
from turnout.frequency.oracle import FrequencyOracle, oracle_from_dict
from turnout.participation import Bernoulli, Participation, Personalized, taking_part_in
from turnout.products import Questions

#: What randomizes: something that makes an oracle from an epsilon and a domain, or ``"auto"``.
OracleChoice = Callable[[float, Domain], FrequencyOracle] | str

#: The largest weight, so that a thousand of them add up to less than 2^63 after scaling.
SCALE = 2**62


def _check_names(
    argument: str, given: Mapping[str, Any], names: Mapping[str, Any], what: str = "an entry"
) -> None:
    if set(given) != set(names):
        raise InvalidValueError(
            f"{argument} must have {what} for each of the attributes "
            f"{_arguments.listed(tuple(names))}, got {_arguments.listed(tuple(given))}"
        )


def checked_weights(weights: Any, names: Mapping[str, Any]) -> dict[str, int]:
    """Return a positive integer for each attribute; all equal by default."""
    if weights is None:
        return dict.fromkeys(names, 1)
    _arguments.instance("weights", weights, Mapping, "a mapping from names to numbers, or None")
    _check_names("weights", weights, names, "a number")
    numbers = {name: Fraction(positive(f"weights[{name!r}]", weights[name])) for name in names}
    total = sum(numbers.values())
    scaled = {
        name: int(number * (SCALE - len(numbers)) / total) for name, number in numbers.items()
    }
    return {name: max(number, 1) for name, number in scaled.items()}


def oracles_for(
    oracle: OracleChoice | Mapping[str, OracleChoice],
    epsilons: Mapping[str, float],
    domains: Mapping[str, Domain],
) -> dict[str, FrequencyOracle]:
    """Make the randomizer of each attribute."""
    if isinstance(oracle, Mapping):
        _check_names("oracle", oracle, domains)
        return {
            name: make_oracle(f"oracle[{name!r}]", oracle[name], epsilons[name], domain)
            for name, domain in domains.items()
        }
    return {
        name: make_oracle("oracle", oracle, epsilons[name], domain)
        for name, domain in domains.items()
    }


class AttributeCollection(PartedKind):
    """Base class of the ways to collect several attributes of each node.

    Immutable. What a node sends about all its attributes together has a likelihood ratio of at most
    :attr:`realized_ratio` under any two whole tuples of answers.
    """

    tally_type = AttributeTally
    domain_type = Questions
    no_simulation_because = "counts of single answers do not say how a person's go together"

    _epsilon: float
    _domain: Questions
    _oracles: dict[str, FrequencyOracle]
    _weights: dict[str, int]

    @property
    def epsilon(self) -> float:
        """The privacy parameter of everything that a node sends, in nats."""
        return self._epsilon

    @property
    def domain(self) -> Questions:
        """The answers that can be given to all questions."""
        return self._domain

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
        given = self._by_attribute("true_counts", true_counts)
        everyone = taking_part_in(participation)
        return {
            name: estimator_variance(
                self._law(name),
                self.attribute_participation(name, everyone),
                method=method,
                true_counts=counts,
            )
            for name, counts in given.items()
        }

    def attribute_participation(self, name: str, participation: Participation) -> Participation:
        """Give the participation that the reports of one attribute look like.

        Parameters
        ----------
        name
            The attribute.
        participation
            How nodes take part.

        Returns
        -------
        Participation
            The same, or with rates times the probability that the attribute is sampled.

        Raises
        ------
        InvalidValueError
            If there is no such attribute, or a probability becomes too small.
        """
        _arguments.choice("name", name, tuple(self._oracles))
        share = self.shares()[tuple(self._oracles).index(name)]
        if share == 1:
            return participation
        rate = participation.uniform_rate
        if rate is not None:
            return Bernoulli(float(Fraction(rate) * share))
        if not isinstance(participation, Personalized):
            return participation
        probabilities = participation.probabilities * float(share)
        if probabilities.size and probabilities.min() < Personalized.minimum:
            raise _arguments.invalid(
                "participation must have probabilities of at least 2^-30 when they are multiplied "
                f"by {float(share):g}, the probability that {name!r} is sampled",
                participation,
            )
        return Personalized(probabilities)

    def _law(self, name: str) -> FrequencyOracle:
        return self.parts[tuple(self._oracles).index(name)]

    def _by_attribute(self, argument: str, given: Any) -> dict[str, Any]:
        _arguments.instance(argument, given, Mapping, "a mapping from the names of the attributes")
        _check_names(argument, given, self._oracles)
        return {name: given[name] for name in self._oracles}

    def _portion(self, name: str) -> Fraction:
        return Fraction(self._weights[name], sum(self._weights.values()))

    def _set(
        self, epsilon: float, oracles: dict[str, FrequencyOracle], weights: dict[str, int]
    ) -> None:
        """Set the fields, checked again: they may come from a file."""
        self._epsilon = positive("epsilon", epsilon)
        self._domain = Questions({name: oracle.domain for name, oracle in oracles.items()})
        self._oracles = oracles
        self._weights = weights
        granted = sum((Fraction(oracle.epsilon) for oracle in self._together()), start=Fraction(0))
        if granted > Fraction(epsilon):
            raise _arguments.invalid(
                f"epsilon must cover what the oracles spend together, {float(granted)!r}", epsilon
            )

    @abstractmethod
    def _together(self) -> tuple[FrequencyOracle, ...]:
        """Give the randomizers whose epsilons add up to the largest that one message spends."""

    def _set_options(self, options: dict[str, Any]) -> None:
        if options:
            raise _arguments.invalid(f"{self.name} takes no options", options)

    def _options(self) -> dict[str, Any]:
        """Give what describes the collection beyond epsilon, oracles and weights."""
        return {}

    def parameters(self) -> dict[str, Any]:
        """Name the randomizer and the weight of each attribute, and further options."""
        return {
            "oracle": [oracle.to_dict() for oracle in self._oracles.values()],
            "weights": list(self._weights.values()),
            **self._options(),
        }

    @classmethod
    def _made_of(cls, epsilon: float, domain: Any, parameters: dict[str, Any]) -> Any:
        match parameters:
            case {"oracle": list(oracles), "weights": list(weights), **options} if len(
                oracles
            ) == len(weights) == len(domain.columns) and all(
                type(weight) is int and 0 < weight <= SCALE for weight in weights
            ):
                collection = cls.__new__(cls)
                collection._set_options(dict(options))
                made = zip(domain.columns, map(oracle_from_dict, oracles), strict=True)
                numbers = dict(zip(domain.columns, weights, strict=True))
                collection._set(epsilon, dict(made), numbers)
                if collection.domain == domain:
                    return collection
        raise CorruptDataError(
            f"not the parameters of a collection: {_arguments.shown(parameters)}"
        )

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
        options = "".join(f", {name}={value!r}" for name, value in self._options().items())
        return f"{type(self).__name__}(epsilon={self._epsilon!r}, {attributes}{options})"
