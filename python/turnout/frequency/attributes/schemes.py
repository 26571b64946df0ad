"""One attribute of each person with the whole epsilon, or all with parts."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from turnout import _arguments, _core
from turnout._rounding import rounded_down, rounded_up
from turnout._seeds import derived
from turnout._types import Array
from turnout.collecting.drawing import Noise
from turnout.collecting.parted import PartReports
from turnout.domain import Domain
from turnout.frequency.attributes.base import AttributeCollection, OracleChoice
from turnout.frequency.attributes.padded import PaddedOracle
from turnout.frequency.draws import weighted_choices
from turnout.frequency.oracle import FrequencyOracle
from turnout.participation import Everyone
from turnout.products import Questions


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
        oracle: OracleChoice | Mapping[str, OracleChoice] | list[OracleChoice] = "auto",
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

    def parameters(self) -> dict[str, Any]:
        """Name the randomizer and the weight of each attribute, and the padding."""
        return {**super().parameters(), "padding": self._padding}

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
    attributes; otherwise :class:`SampledAttribute` has the smaller error, as
    :meth:`estimator_variance` of both says.

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
    def choice(self) -> None:
        """None: all attributes are reported."""
        return
