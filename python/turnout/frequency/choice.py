"""Making an oracle from what a caller names: a class, a function or ``"auto"``."""

from __future__ import annotations

from typing import Any

from turnout import _arguments
from turnout.domain import Domain
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.oracle import FrequencyOracle

__all__ = ["make_oracle"]


def make_oracle(argument: str, oracle: Any, epsilon: float, domain: Domain) -> FrequencyOracle:
    """Make the randomizer for an epsilon and a domain.

    Parameters
    ----------
    argument
        The name of the argument, for messages.
    oracle
        A class or function that takes an epsilon and a domain; or ``"auto"``: of all oracles that
        take this epsilon and domain, the one whose estimates of rare answers have the smallest
        variance, and of equal ones the one with the smallest reports.
    epsilon, domain
        What it is made for.

    Returns
    -------
    FrequencyOracle
        The randomizer.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If that is no oracle, or it refuses the epsilon or the domain, or is of another epsilon or
        domain.
    """
    if isinstance(oracle, str):
        _arguments.choice(argument, oracle, ("auto",))
        return _best(epsilon, domain)
    if not callable(oracle):
        raise InvalidTypeError(
            f'{argument} must be "auto" or callable with an epsilon and a domain, got '
            f"{_arguments.shown(oracle)}"
        )
    made: FrequencyOracle = oracle(epsilon, domain)
    _arguments.instance(f"{argument}(epsilon, domain)", made, FrequencyOracle, "an oracle")
    if made.epsilon > epsilon or made.domain != domain:
        raise InvalidValueError(
            f"{argument}(epsilon, domain) must have at most the epsilon {epsilon!r} and the domain "
            f"{domain!r} that it is given, got {made!r}"
        )
    return made


def _best(epsilon: float, domain: Domain) -> FrequencyOracle:
    candidates: list[tuple[float, int, str, FrequencyOracle]] = []
    refusal: Exception | None = None
    for name, cls in sorted(FrequencyOracle._registry.items()):
        try:
            made = cls(epsilon, domain)
        except TypeError as error:
            if isinstance(error, InvalidTypeError):
                raise
            continue  # one that needs more than an epsilon and a domain
        except InvalidValueError as error:
            refusal = error
            continue
        scores = made.score_moments
        # Four digits: beyond them the size of reports decides.
        noise = float(f"{scores.other_variance / scores.difference**2:.3e}")
        candidates.append((noise, made.report_bits, name, made))
    if not candidates:
        raise InvalidValueError(
            f"no oracle takes epsilon {epsilon!r} and {domain.size} answers: {refusal}"
        )
    return min(candidates, key=lambda each: each[:3])[3]
