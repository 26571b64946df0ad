"""Parameters of collections: checked, and turned into oracles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from turnout import _arguments
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.choice import make_oracle
from turnout.frequency.oracle import FrequencyOracle

#: What randomizes: something that makes an oracle from an epsilon and a domain, or ``"auto"``.
OracleChoice = Callable[[float, Domain], FrequencyOracle] | str

#: The largest weight, so that a thousand of them add up to less than 2^63 after scaling.
SCALE = 2**62


def checked_epsilon(epsilon: Any) -> float:
    """Return a finite epsilon above 0."""
    whole = _arguments.number("epsilon", epsilon)
    if not 0.0 < whole < math.inf:
        raise _arguments.invalid("epsilon must be a finite number above 0", whole)
    return whole


def checked_weights(weights: Any, names: Mapping[str, Any]) -> dict[str, int]:
    """Return a positive integer for each attribute; all equal by default."""
    if weights is None:
        return dict.fromkeys(names, 1)
    _arguments.instance("weights", weights, Mapping, "a mapping from names to numbers, or None")
    if set(weights) != set(names):
        raise InvalidValueError(
            f"weights must have a number for each of the attributes "
            f"{_arguments.listed(tuple(names))}, got {_arguments.listed(tuple(weights))}"
        )
    numbers = {}
    for name in names:
        number = _arguments.number(f"weights[{name!r}]", weights[name])
        if not 0.0 < number < math.inf:
            raise _arguments.invalid(f"weights[{name!r}] must be a finite number above 0", number)
        numbers[name] = Fraction(number)
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
        if set(oracle) != set(domains):
            raise InvalidValueError(
                f"oracle must have an entry for each of the attributes "
                f"{_arguments.listed(tuple(domains))}, got {_arguments.listed(tuple(oracle))}"
            )
        return {
            name: make_oracle(f"oracle[{name!r}]", oracle[name], epsilons[name], domain)
            for name, domain in domains.items()
        }
    return {
        name: make_oracle("oracle", oracle, epsilons[name], domain)
        for name, domain in domains.items()
    }
