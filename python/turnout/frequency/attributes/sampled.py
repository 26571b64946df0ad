"""One attribute of each person, chosen at random, with the whole epsilon."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._seeds import derived
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.attributes.collection import AttributeCollection
from turnout.frequency.attributes.padded import PaddedOracle
from turnout.frequency.attributes.parameters import (
    OracleChoice,
    check_equal,
    checked_domains,
    checked_epsilon,
    checked_weights,
    oracles_for,
)
from turnout.frequency.draws import uniform_codes, weighted_choices
from turnout.frequency.oracle import FrequencyOracle
from turnout.participation import Everyone, Participation

__all__ = ["SampledAttribute"]


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

    scheme = "sampled"

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
        whole = checked_epsilon(epsilon)
        checked = checked_domains(domains)
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
    def report_bits(self) -> int:
        """The size of the largest message of a node, in bits: with padding, of every message."""
        sizes = [oracle.report_bits for oracle in self._oracles.values()]
        return sum(sizes) if self._padding else (len(sizes) - 1).bit_length() + max(sizes)

    def _together(self) -> tuple[FrequencyOracle, ...]:
        return (max(self._oracles.values(), key=lambda oracle: oracle.epsilon),)

    def _options(self) -> dict[str, Any]:
        return {"padding": self._padding}

    def _set_options(self, options: dict[str, Any]) -> None:
        if set(options) != {"padding"}:
            raise InvalidValueError(f"sampled takes the option padding, got {options!r}")
        self._padding = _arguments.choice("padding", options["padding"], (None, "fake"))

    def _reporting_share(self, name: str) -> Fraction:
        return Fraction(1) if self._padding else self._portion(name)

    def _plan_oracle(self, name: str) -> FrequencyOracle:
        oracle = self._oracles[name]
        if not self._padding:
            return oracle
        share = float(self._portion(name))
        return PaddedOracle(oracle.epsilon, oracle.domain, oracle=oracle, share=share)

    def _check_received(
        self, argument: str, received: Mapping[str, int], nodes: int, participation: Participation
    ) -> None:
        if self._padding:
            check_equal(argument, received)
            return
        total = sum(received.values())
        if total > nodes or (participation.uniform_rate == 1.0 and total != nodes):
            bound = "as many" if participation.uniform_rate == 1.0 else "at most as many"
            raise InvalidValueError(
                f"{argument} must have {bound} reports of all attributes together as there are "
                f"nodes, {nodes}, got {dict(received)!r}"
            )

    def _pieces(
        self,
        codes: Mapping[str, npt.NDArray[Any]],
        positions: npt.NDArray[np.int64],
        seed: int | None,
    ) -> Iterator[tuple[str, npt.NDArray[Any], npt.NDArray[np.int64]]]:
        weights = list(self._weights.values())
        chosen = weighted_choices(weights, positions.size, derived(seed, 0))
        for number, (name, oracle) in enumerate(self._oracles.items()):
            sampled = chosen == number
            stream = derived(seed, 1, number)
            if not self._padding:
                who = positions[sampled]
                yield name, oracle.draw_reports(codes[name][who], Everyone(), stream).reports, who
                continue
            answers = uniform_codes(oracle.domain.size, positions.size, derived(seed, 2, number))
            answers[sampled] = codes[name][positions[sampled]]
            yield name, oracle.draw_reports(answers, Everyone(), stream).reports, positions
