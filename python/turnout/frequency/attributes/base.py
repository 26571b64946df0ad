"""Several attributes, their randomizers, and how a message of them all is made."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._seeds import derived
from turnout.collecting.reports import Reports
from turnout.collecting.sums import DesignSums
from turnout.domain import Domain
from turnout.errors import InvalidValueError, PlanMismatchError
from turnout.frequency.attributes.parameters import checked_epsilon
from turnout.frequency.attributes.tables import encoded
from turnout.frequency.draws import participants, personal_probabilities
from turnout.frequency.estimation.variance import estimator_variance
from turnout.frequency.oracle import FrequencyOracle
from turnout.participation import Bernoulli, Participation, Personalized, taking_part_in

__all__ = ["Attributes", "rebuilt"]

Array = npt.NDArray[Any]
Positions = npt.NDArray[np.int64]

_FORMAT = "turnout-attributes"


class Attributes(ABC):
    """Several attributes of each node and the law of what is sent of them.

    Immutable. What a node sends about all its attributes together has a likelihood ratio of at most
    :attr:`realized_ratio` under any two whole tuples of answers.
    """

    #: The word for the way in descriptions.
    scheme: ClassVar[str]

    _registry: ClassVar[dict[str, type[Attributes]]] = {}

    _epsilon: float
    _oracles: dict[str, FrequencyOracle]
    _weights: dict[str, int]

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Make the way known to :func:`turnout.frequency.attributes.collection_from_dict`."""
        super().__init_subclass__(**arguments)
        if "scheme" in cls.__dict__:
            Attributes._registry[cls.scheme] = cls

    @property
    def epsilon(self) -> float:
        """The privacy parameter of everything that a node sends, in nats."""
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
    @abstractmethod
    def realized_ratio(self) -> Fraction:
        """A bound of the likelihood ratio of a message under two tuples of answers, exactly."""

    @property
    @abstractmethod
    def realized_epsilon(self) -> float:
        """A bound of the logarithm of :attr:`realized_ratio`; never above :attr:`epsilon`."""

    @property
    @abstractmethod
    def report_bits(self) -> int:
        """The size of the largest message of a node, in bits."""

    @abstractmethod
    def _reporting_share(self, name: str) -> Fraction:
        """How likely a node that takes part sends a report for the attribute."""

    @abstractmethod
    def _plan_oracle(self, name: str) -> FrequencyOracle:
        """Give the randomizer whose law the reports of the attribute have."""

    @abstractmethod
    def _pieces(
        self, codes: Mapping[str, Array], positions: Positions, seed: int | None
    ) -> Iterator[tuple[str, Array, Positions]]:
        """Randomize attribute by attribute: name, reports, and the nodes that they are of."""

    def estimator_variance(
        self,
        true_counts: Mapping[str, Any],
        *,
        participation: Participation | float | None = None,
        method: str = "hajek",
    ) -> dict[str, npt.NDArray[np.float64]]:
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
                self._plan_oracle(name),
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
        share = self._reporting_share(name)
        if share == 1:
            return participation
        rate = participation.uniform_rate
        if rate is not None:
            return Bernoulli(float(Fraction(rate) * share))
        if not isinstance(participation, Personalized):
            return participation
        probabilities = participation.probabilities * float(share)
        if probabilities.size and probabilities.min() < Personalized.minimum:
            raise InvalidValueError(
                "participation must have probabilities of at least 2^-30 when they are multiplied "
                f"by {float(share):g}, the probability that {name!r} is sampled, got "
                f"{participation!r}"
            )
        return Personalized(probabilities)

    def _reports(
        self, table: Any, participation: Participation | float | None, seed: int | None
    ) -> tuple[Participation, Iterator[tuple[str, Reports]]]:
        taking_part = taking_part_in(participation)
        checked_seed = _arguments.seed(seed)
        codes = encoded(table, self.domains)
        nodes = next(iter(codes.values())).size
        if taking_part.uniform_rate is None:
            personal_probabilities(taking_part, nodes)
        positions = participants(taking_part, nodes, derived(checked_seed, 0))
        pieces = self._pieces(codes, positions, derived(checked_seed, 1))
        made = (
            (name, self._as_reports(name, reports, taking_part, nodes, positions=who))
            for name, reports, who in pieces
        )
        return taking_part, made

    def _as_reports(
        self,
        name: str,
        reports: Array,
        participation: Participation,
        nodes: int,
        *,
        positions: Positions,
    ) -> Reports:
        oracle = self._plan_oracle(name)
        seen = self.attribute_participation(name, participation)
        if not isinstance(seen, Personalized):
            return Reports(oracle, seen, reports, nodes)
        return Reports(
            oracle,
            seen,
            reports,
            nodes,
            probabilities=seen.probabilities[positions],
            design=DesignSums.of(seen.probabilities),
        )

    def _by_attribute(self, argument: str, given: Any) -> dict[str, Any]:
        _arguments.instance(argument, given, Mapping, "a mapping from the names of the attributes")
        if set(given) != set(self._oracles):
            raise InvalidValueError(
                f"{argument} must have an entry for each of the attributes "
                f"{_arguments.listed(tuple(self._oracles))}, got {_arguments.listed(tuple(given))}"
            )
        return {name: given[name] for name in self._oracles}

    def _portion(self, name: str) -> Fraction:
        return Fraction(self._weights[name], sum(self._weights.values()))

    def _set(
        self, epsilon: float, oracles: dict[str, FrequencyOracle], weights: dict[str, int]
    ) -> None:
        """Set the fields, checked again: they may come from a file."""
        self._epsilon = checked_epsilon(epsilon)
        self._oracles = oracles
        self._weights = weights
        if len(oracles) < 2:
            raise InvalidValueError(f"domains must be at least 2 attributes, got {len(oracles)}")
        granted = sum((Fraction(oracle.epsilon) for oracle in self._together()), start=Fraction(0))
        if granted > Fraction(epsilon):
            raise InvalidValueError(
                f"epsilon must cover what the oracles spend together, {float(granted)!r}, "
                f"got {epsilon!r}"
            )

    @abstractmethod
    def _together(self) -> tuple[FrequencyOracle, ...]:
        """Give the randomizers whose epsilons add up to the largest that one message spends."""

    @abstractmethod
    def _check_received(
        self, argument: str, received: Mapping[str, int], nodes: int, participation: Participation
    ) -> None:
        """Refuse numbers of reports that contradict each other."""

    def _options(self) -> dict[str, Any]:
        """Give what describes the collection beyond epsilon, oracles and weights."""
        return {}

    def _set_options(self, options: dict[str, Any]) -> None:
        if options:
            raise InvalidValueError(f"{self.scheme} takes no options, got {options!r}")

    def to_dict(self) -> dict[str, Any]:
        """Describe the collection in terms of JSON.

        Raises
        ------
        InvalidTypeError
            If a label of a domain cannot be written to a file.
        """
        return {
            "format": _FORMAT,
            "version": 1,
            "scheme": self.scheme,
            "epsilon": self._epsilon,
            "attributes": [
                {"name": name, "oracle": oracle.to_dict(), "weight": self._weights[name]}
                for name, oracle in self._oracles.items()
            ],
            "options": self._options(),
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the description as canonical JSON, in hexadecimal."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def check_same(self, other: Attributes, what: str) -> None:
        """Refuse another collection, naming what differs.

        Parameters
        ----------
        other
            The collection to compare with.
        what
            What was made by the other collection, for the message.

        Raises
        ------
        PlanMismatchError
            If the collections differ.
        """
        if self != other:
            raise PlanMismatchError(
                f"{what} was made by another collection: {other!r} instead of {self!r}"
            )

    def __eq__(self, other: object) -> bool:
        """Compare class, epsilon, attributes with their order, oracles, weights and options."""
        if not isinstance(other, Attributes):
            return NotImplemented
        return (
            type(self) is type(other)
            and self._epsilon == other._epsilon
            and list(self._oracles.items()) == list(other._oracles.items())
            and self._weights == other._weights
            and self._options() == other._options()
        )

    def __hash__(self) -> int:
        """Hash of what is compared."""
        return hash((type(self), self._epsilon, tuple(self._oracles.items())))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Copy and pickle the parts."""
        parts = (self._epsilon, dict(self._oracles), dict(self._weights), self._options())
        return rebuilt, (type(self), *parts)

    def __repr__(self) -> str:
        """Show epsilon, attributes and options."""
        attributes = ", ".join(
            f"{name}: {type(oracle).__name__} of {oracle.domain.size} answers at epsilon "
            f"{oracle.epsilon:g}"
            for name, oracle in self._oracles.items()
        )
        options = "".join(f", {name}={value!r}" for name, value in self._options().items())
        return f"{type(self).__name__}(epsilon={self._epsilon!r}, {attributes}{options})"


def rebuilt(
    cls: type[Attributes],
    epsilon: float,
    oracles: dict[str, FrequencyOracle],
    weights: dict[str, int],
    options: dict[str, Any],
) -> Attributes:
    """Make a collection from its parts, which are checked again."""
    collection = cls.__new__(cls)
    collection._set_options(options)
    collection._set(epsilon, oracles, weights)
    return collection
