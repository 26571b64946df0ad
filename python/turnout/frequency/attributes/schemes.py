"""One attribute of each person with the whole epsilon, or all with parts."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from turnout import _arguments, _core
from turnout._rounding import rounded_down, rounded_up
from turnout._seeds import derived
from turnout._types import Array, Floats
from turnout.accounting.values import positive
from turnout.collecting.parted import PartedKind, PartReports
from turnout.collecting.randomizer import Noise
from turnout.collecting.reports import Reports
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.attributes.estimate import AttributeTally, GroupedAttributeEstimate
from turnout.frequency.attributes.padded import PaddedOracle
from turnout.frequency.choice import Factory, make_oracle, one_each
from turnout.frequency.draws import weighted_choices
from turnout.frequency.estimation.estimators import count_variances
from turnout.frequency.oracle import FrequencyOracle
from turnout.participation import Everyone, Participation
from turnout.products import Questions, domains_of

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
    _grouped_type = GroupedAttributeEstimate
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
        oracle: Factory | str | Mapping[str, Factory | str] | list[Factory | str] = "auto",
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

    def _answers_of(self, answers: Array, part: int) -> Array:
        """Give the column of an attribute."""
        return np.ascontiguousarray(answers[:, part])

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
        type(reports.plan)(self, reports.participation)._check_same(reports.plan, "reports")
        found = {}
        names, probabilities, design = tuple(self._oracles), reports.probabilities, reports.design
        for number, rows, codes in self._reports_of_parts(reports.codes):
            own, share = None, self._shares()[number]
            if probabilities is not None:
                own = (probabilities if rows is None else probabilities[rows]) * float(share)
            found[names[number]] = Reports(
                self.parts[number],
                self._part_participation(number, reports.participation),
                codes,
                reports.nodes,
                probabilities=own,
                design=None if design is None else design.scaled(share),
                left_out=reports.left_out,
            )
        return found

    def _estimator_variance(
        self, participation: Participation, method: str, true_counts: Any, values: Any
    ) -> dict[str, Floats]:
        if values is not None:
            raise InvalidValueError("values must be None for several attributes: give true_counts")
        _arguments.instance(
            "true_counts", true_counts, Mapping, "a mapping from the names of the attributes"
        )
        entries = one_each("true_counts", true_counts, tuple(self._oracles))
        return {
            name: count_variances(
                self.parts[place], self._part_participation(place, participation), method, counts
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
        :class:`turnout.DirectEncoding`, or one for each, by name or in
        their order.
    weights
        For each attribute a positive number, by name or in their order: it is chosen in proportion.
        All alike by default.
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

    def __init__(
        self,
        epsilon: float,
        domains: Questions | Mapping[str, Domain | Sequence[Hashable] | int],
        *,
        oracle: Factory | str | Mapping[str, Factory | str] | list[Factory | str] = "auto",
        weights: Mapping[str, float] | list[float] | None = None,
        padding: str | None = None,
    ) -> None:
        self._padding = _arguments.choice("padding", padding, (None, "fake"))
        super().__init__(epsilon, domains, oracle=oracle, weights=weights)

    @property
    def padding(self) -> str | None:
        """What is sent for the attributes that were not sampled: None or ``"fake"``."""
        return self._padding

    @property
    def _choice(self) -> tuple[int, ...] | None:
        """The weights of the attributes; None with padding, where all are reported."""
        return None if self._padding else tuple(self._weights.values())

    @property
    def parts(self) -> tuple[FrequencyOracle, ...]:
        """For each attribute the randomizer whose law its reports have."""
        if not self._padding:
            return super().parts
        return tuple(
            PaddedOracle(
                oracle.epsilon,
                oracle.domain,
                oracle=oracle,
                own_probability=float(self._portion(name)),
            )
            for name, oracle in self._oracles.items()
        )

    def parameters(self) -> dict[str, Any]:
        """Name the randomizer and the weight of each attribute, and the padding."""
        return {**super().parameters(), "padding": self._padding}

    def _draw_parts(self, answers: Array, noise: Noise) -> Iterator[PartReports]:
        """Randomize attribute by attribute; with padding, fake answers to the others."""
        if not self._padding:
            yield from super()._draw_parts(answers, noise)
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
    attributes; otherwise :class:`SampledAttribute` has the smaller error, as
    :func:`turnout.estimator_variance` of both says.

    Parameters
    ----------
    epsilon
        The privacy parameter of all reports of a node together, in nats.
    domains
        For each attribute its answers, or their number: at least two attributes.
    oracle
        What randomizes: ``"auto"`` (default) for the one of smallest variance, a class such as
        :class:`turnout.DirectEncoding`, or one for each, by name or in
        their order.
    weights
        For each attribute a positive number, by name or in their order: epsilon is divided in
        proportion. Equal by default.

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

    def _epsilon_of(self, name: str) -> float:
        return rounded_down(Fraction(self._epsilon) * self._portion(name))

    @property
    def realized_ratio(self) -> Fraction:
        """The product of the oracles' ratios: the largest of a message, exactly."""
        return math.prod((part.realized_ratio for part in self.parts), start=Fraction(1))

    @property
    def realized_epsilon(self) -> float:
        """The sum of the oracles' realised epsilons, rounded up; never above :attr:`epsilon`."""
        parts = (Fraction(part.realized_epsilon) for part in self.parts)
        return rounded_up(sum(parts, start=Fraction(0)))

    @property
    def _choice(self) -> None:
        """None: all attributes are reported."""
        return
