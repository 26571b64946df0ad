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
    """Base class of collections of several attributes of each node.

    A collection is immutable. A node's whole message about all its attributes has a likelihood
    ratio of at most :attr:`realized_ratio` under any two tuples of answers.
    """

    tally_type = AttributeTally
    _grouped_type = GroupedAttributeEstimate
    domain_type = Questions
    no_simulation_because = "counts of single answers do not say which answers one person gave"

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
        """Return the epsilon of the reports about one attribute."""
        return self._epsilon

    @property
    def oracles(self) -> Mapping[str, FrequencyOracle]:
        """The randomizer of the answers of each attribute."""
        return MappingProxyType(self._oracles)

    @property
    def domains(self) -> Mapping[str, Domain]:
        """The possible answers of each attribute."""
        return MappingProxyType({name: each.domain for name, each in self._oracles.items()})

    @property
    def weights(self) -> Mapping[str, float]:
        """The part of each attribute, of epsilon or of the nodes; the parts add up to one."""
        return MappingProxyType({name: float(self._portion(name)) for name in self._weights})

    @property
    def parts(self) -> tuple[FrequencyOracle, ...]:
        """The randomizer that gives the law of the reports of each attribute."""
        return tuple(self._oracles.values())

    def _answers_of(self, answers: Array, part: int) -> Array:
        """Return the column of an attribute."""
        return np.ascontiguousarray(answers[:, part])

    def by_attribute(self, reports: Reports) -> dict[str, Reports]:
        """Split reports by attribute, into reports of the attribute's randomizer.

        Parameters
        ----------
        reports
            Reports of an equal collection.

        Returns
        -------
        dict
            Ordinary reports of each attribute, with the rate at which it is reported.

        Raises
        ------
        PlanMismatchError
            If another collection made the reports.
        InvalidTypeError
            If they are not reports.

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
        """Return the randomizer and the weight of each attribute."""
        return {
            "oracle": [oracle.to_dict() for oracle in self._oracles.values()],
            "weights": list(self._weights.values()),
        }

    def __hash__(self) -> int:
        """Hash the compared values."""
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

    The node makes the choice itself, independently of its data. For a single attribute the choice
    acts as participation at its rate, so all estimators, variances and intervals apply.

    Parameters
    ----------
    epsilon
        The privacy parameter of everything that a node sends, in nats.
    domains
        The answers to each attribute, or their number: at least two attributes.
    oracle
        The oracle: ``"auto"`` (default) for the one of smallest variance, a class such as
        :class:`turnout.DirectEncoding`, or one for each attribute, by name or in order.
    weights
        A positive number for each attribute, by name or in order: attributes are chosen in
        proportion. Equal by default.
    padding
        None: the server sees which attribute a report is about. ``"fake"``: the node also sends,
        for each other attribute, a report of a uniformly drawn answer, so that the server cannot
        tell which attribute was sampled. Padding increases the variance and makes reports longer.

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
    changes, every term may change by the ratio ``e^eps`` of its oracle, and so may the sum. Only if
    *one* attribute changes and the others stay, do the other terms reduce the ratio, for direct
    encoding of ``d`` attributes with equal domains to ``(e^eps + d - 1) / d``. Arcolezi, Couchot,
    Al Bouna, Xiao, "Random sampling plus fake data: multidimensional frequency estimates with local
    differential privacy" (2021) invert this and give the sampled attribute ``ln(d (e^eps - 1) +
    1)``, which is then the epsilon of the whole tuple: 2.26 for five attributes at a nominal 1.
    Here the sampled attribute has ``epsilon``.

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
        """The reports for attributes that were not sampled: None or ``"fake"``."""
        return self._padding

    @property
    def _choice(self) -> tuple[int, ...] | None:
        """The weights of the attributes; None with padding, where all are reported."""
        return None if self._padding else tuple(self._weights.values())

    @property
    def parts(self) -> tuple[FrequencyOracle, ...]:
        """The randomizer that gives the law of the reports of each attribute."""
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
        """Return the randomizer and the weight of each attribute, and the padding."""
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
    their sum is at most ``epsilon``, exactly. It is best if epsilon is large for the number of
    attributes. Otherwise :class:`SampledAttribute` has the smaller error; compare both with
    :func:`turnout.estimator_variance`.

    Parameters
    ----------
    epsilon
        The privacy parameter of all reports of a node together, in nats.
    domains
        The answers to each attribute, or their number: at least two attributes.
    oracle
        The oracle: ``"auto"`` (default) for the one of smallest variance, a class such as
        :class:`turnout.DirectEncoding`, or one for each attribute, by name or in order.
    weights
        A positive number for each attribute, by name or in order: epsilon is divided in proportion.
        Equal by default.

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
        """The exact largest likelihood ratio of a message: the product of the oracles' ratios."""
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
