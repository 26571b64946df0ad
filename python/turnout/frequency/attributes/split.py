"""Every attribute with a part of epsilon."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction

from turnout._rounding import rounded_down, rounded_up
from turnout.domain import Domain
from turnout.frequency.attributes.base import AttributeCollection
from turnout.frequency.attributes.parameters import (
    OracleChoice,
    checked_epsilon,
    checked_weights,
    oracles_for,
)
from turnout.frequency.oracle import FrequencyOracle
from turnout.products import domains_of


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
        whole = checked_epsilon(epsilon)
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
