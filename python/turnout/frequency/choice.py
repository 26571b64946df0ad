"""The available oracles, and the choice of the one with the smallest variance."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from turnout import _arguments, _kinds
from turnout.accounting.values import positive
from turnout.domain import Domain, domain_of
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.oracles.direct_encoding import DirectEncoding

Factory = Callable[[float, Domain], FrequencyOracle]

#: Variances that differ by less count as equal.
TIE = 1.005

#: For so many reports oracles are compared by default: the error of shared functions depends on it.
REPORTS = 1_000_000


def oracle_classes() -> dict[str, type[FrequencyOracle]]:
    """List the classes of turnout's oracles and of all others that are imported, by name.

    Examples
    --------
    >>> oracle_classes()["direct_encoding"].__name__
    'DirectEncoding'
    """
    return {
        name: found
        for name, found in _kinds.known("turnout.frequency.oracles").items()
        if issubclass(found, FrequencyOracle)
    }


def registered() -> dict[str, type[FrequencyOracle]]:
    """List turnout's oracles that need only an epsilon and a domain, by name."""
    return {
        name: found
        for name, found in oracle_classes().items()
        if found.__module__.startswith("turnout.") and _is_plain(found)
    }


def _is_plain(found: type[FrequencyOracle]) -> bool:
    if inspect.isabstract(found) or found.domain_type is not Domain:
        return False
    parameters = inspect.signature(found).parameters.values()
    needed = [each for each in parameters if each.default is each.empty]
    return [each.name for each in needed] == ["epsilon", "domain"]


def factories(oracles: Any = None) -> list[tuple[str, Factory]]:
    """Return the factories of the candidates by name: all registered oracles by default.

    Parameters
    ----------
    oracles
        Classes, other callables that take an epsilon and a domain, or names of oracles; one or an
        iterable of them.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an entry is not one of these, or there are no entries.
    """
    known = registered()
    if oracles is None:
        return list(known.items())
    single = isinstance(oracles, str) or callable(oracles)
    given = [oracles] if single else _arguments.items("oracles", oracles, "classes or names")
    if not given:
        raise InvalidValueError("oracles must hold a class or a name of an oracle")
    found: list[tuple[str, Factory]] = []
    for position, each in enumerate(given):
        if isinstance(each, str):
            _arguments.choice(f"oracles[{position}]", each, tuple(known))
            found.append((each, known[each]))
        elif callable(each):
            default = getattr(each, "__name__", type(each).__name__)
            found.append((str(getattr(each, "name", default)), each))
        else:
            raise InvalidTypeError(
                f"oracles[{position}] must be the class of an oracle, a callable with an epsilon "
                f"and a domain, or a name, got {_arguments.shown(each)}"
            )
    return found


def make(
    factory: Factory, epsilon: float, domain: Domain, argument: str = "oracle"
) -> FrequencyOracle:
    """Call a factory, and check that its oracle does not exceed the epsilon.

    Raises
    ------
    InvalidTypeError
        If the factory does not take exactly an epsilon and a domain, or does not return an oracle.
    InvalidValueError
        If the oracle has a larger epsilon or another domain.
    """
    try:
        inspect.signature(factory).bind(epsilon, domain)
    except ValueError:
        pass  # No signature is known.
    except TypeError as error:
        name = getattr(factory, "__name__", type(factory).__name__)
        raise InvalidTypeError(
            f"{argument} must make an oracle from an epsilon and a domain alone, got "
            f"{name}{inspect.signature(factory)}: give a function that fills in the rest"
        ) from error
    return checked_oracle(argument, factory(epsilon, domain), epsilon, domain)


def named_oracle(argument: str, oracle: Factory | str) -> str:
    """Return the name of a factory of oracles, for files.

    Raises
    ------
    InvalidTypeError
        If it is not an oracle of turnout that needs only an epsilon and a domain.

    Examples
    --------
    >>> import turnout as tn
    >>> named_oracle("oracle", tn.DirectEncoding), named_oracle("oracle", "auto")
    ('direct_encoding', 'auto')
    """
    if isinstance(oracle, str):
        return oracle
    for name, found in registered().items():
        if found is oracle:
            return name
    raise _arguments.mistyped(
        f"{argument} must be a name or a class of turnout to be written to a file", oracle
    )


def checked_oracle(argument: str, made: Any, epsilon: float, domain: Domain) -> FrequencyOracle:
    """Check that the result of a factory is an oracle that does not exceed the epsilon.

    Raises
    ------
    InvalidTypeError
        If it is not an oracle.
    InvalidValueError
        If it has a larger epsilon or another domain.

    Examples
    --------
    >>> import turnout as tn
    >>> domain = tn.Domain.from_integers(3)
    >>> checked_oracle("oracle", tn.DirectEncoding(1.0, 3), 1.0, domain).epsilon
    1.0
    """
    made = _arguments.instance(f"{argument}(epsilon, domain)", made, FrequencyOracle, "an oracle")
    if (
        max(made.epsilon, made.realized_epsilon) > positive("epsilon", epsilon)
        or made.domain != domain
    ):
        raise InvalidValueError(
            f"{argument}(epsilon, domain) must have at most the epsilon {epsilon!r} and the domain "
            f"{domain!r} that it is given, got {made!r}"
        )
    oracle: FrequencyOracle = made
    return oracle


def reasons(refused: Iterable[tuple[str, str]]) -> str:
    """Write why oracles were refused; oracles with the same reason are put together."""
    names: dict[str, list[str]] = {}
    for name, reason in refused:
        names.setdefault(reason, []).append(name)
    if len(names) == 1:
        return next(iter(names))
    return "; ".join(f"{', '.join(who)}: {reason}" for reason, who in names.items())


@dataclass(frozen=True)
class OracleCandidate:
    """One oracle in a comparison.

    Attributes
    ----------
    name
        The oracle's name in plans.
    oracle
        The oracle; None if it does not take the epsilon or the domain.
    variance
        The variance of an estimated frequency times the number of reports, without participation.
        Infinite without an oracle.
    relative_variance
        The variance divided by the smallest variance of all candidates, whether they fit or not.
    report_bits
        The size of a report; None without an oracle.
    p, q
        The support probabilities; NaN without an oracle.
    refused
        Why it cannot be chosen, or None.
    shared_error
        The part of the standard error from hash functions that all reports share. More reports do
        not reduce it. Zero if reports share none.
    """

    name: str
    oracle: FrequencyOracle | None
    variance: float
    relative_variance: float
    report_bits: int | None
    p: float
    q: float
    refused: str | None
    shared_error: float = 0.0


@dataclass(frozen=True)
class Compared:
    """The result of a comparison: the fields of :class:`turnout.planning.OracleChoice`."""

    oracle: FrequencyOracle
    candidates: tuple[OracleCandidate, ...] = field(repr=False)
    epsilon: float
    domain: Domain
    frequency: float
    report_bits: int | None
    reports: int


def compared(
    epsilon: float,
    domain_size: Domain | int,
    report_bits: int | None = None,
    oracles: Any = None,
    *,
    frequency: float = 0.0,
    reports: int = REPORTS,
) -> Compared:
    """Compare oracles and choose one: see :func:`turnout.choose_oracle`."""
    level = _arguments.number("epsilon", epsilon)
    if not 0.0 < level < math.inf:
        raise InvalidValueError(f"epsilon must be finite and above 0, got {level}")
    answers = domain_of("domain_size", domain_size)
    limit = _arguments.optional_integer("report_bits", report_bits, least=1)
    share = _arguments.number("frequency", frequency)
    if not 0.0 <= share <= 1.0:
        raise InvalidValueError(f"frequency must be in [0, 1], got {share}")
    expected = _arguments.integer("reports", reports, least=1)

    def candidate(name: str, factory: Factory) -> OracleCandidate:
        nan = math.nan
        try:
            oracle = make(factory, level, answers)
        except InvalidTypeError:
            raise
        except InvalidValueError as error:
            return OracleCandidate(name, None, math.inf, math.inf, None, nan, nan, str(error))
        bits, scores = oracle.report_bits, oracle._score_moments
        large = limit is not None and bits > limit
        refused = f"above the limit of {limit:,} bits" if large else None
        variance = share * scores.own_variance + (1.0 - share) * scores.other_variance
        variance /= scores.difference**2
        others = expected * (1.0 - share)
        squares = others**2 / (answers.size - 1)
        shared = max(float(oracle._shared_variance(others, squares)), 0.0) / float(expected) ** 2
        variance += expected * shared
        p, q = oracle.support_probabilities
        return OracleCandidate(
            oracle.name, oracle, variance, nan, bits, p, q, refused, math.sqrt(shared)
        )

    found = [candidate(name, factory) for name, factory in factories(oracles)]
    best = min(each.variance for each in found)
    if math.isinf(best):
        why = reasons((each.name, str(each.refused)) for each in found)
        raise InvalidValueError(
            f"no oracle takes epsilon {level:g} and {answers.size:,} answers: {why}"
        )
    compared = [replace(each, relative_variance=each.variance / best) for each in found]
    compared.sort(key=lambda each: (each.variance, each.report_bits or 0, each.name))
    fitting = [each for each in compared if each.refused is None]
    if not fitting:
        smallest = min(
            (each for each in compared if each.report_bits is not None),
            key=lambda each: each.report_bits or 0,
        )
        raise InvalidValueError(
            f"report_bits must be at least {smallest.report_bits} ({smallest.name}) for epsilon "
            f"{level:g} and {answers.size:,} answers, got {limit}"
        )
    tied = [each for each in fitting if each.variance <= TIE * fitting[0].variance]
    # Subsets of one answer are direct encoding but for rounding: the plainer one is named.
    chosen = min(
        tied,
        key=lambda each: (
            each.report_bits or 0, each.name != DirectEncoding.name, each.variance, each.name
        ),
    )  # fmt: skip
    assert chosen.oracle is not None
    return Compared(chosen.oracle, tuple(compared), level, answers, share, limit, expected)


def make_oracle(
    argument: str, oracle: Any, epsilon: float, domain: Domain, candidates: Any = None
) -> FrequencyOracle:
    """Create the randomizer for an epsilon and a domain.

    Parameters
    ----------
    argument
        The name of the argument, for messages.
    oracle
        A class or function that takes an epsilon and a domain; the name of one of turnout's
        oracles; ``"auto"``, for the choice of :func:`turnout.choose_oracle`; or an oracle, or its
        description.
    epsilon, domain
        The epsilon and the domain of the randomizer.
    candidates
        The candidates for ``"auto"``; all oracles by default.

    Returns
    -------
    FrequencyOracle
        The randomizer.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is not an oracle, refuses the epsilon or the domain, or has a larger epsilon or
        another domain.
    """
    if isinstance(oracle, str):
        known = registered()
        _arguments.choice(argument, oracle, ("auto", *known))
        if oracle != "auto":
            return known[oracle](epsilon, domain)
        return compared(epsilon, domain, oracles=candidates).oracle
    made = FrequencyOracle.from_dict(oracle) if isinstance(oracle, dict) else oracle
    if isinstance(made, FrequencyOracle):
        return checked_oracle(argument, made, epsilon, domain)
    if not callable(made):
        raise _arguments.mistyped(
            f"{argument} must be 'auto', the name of an oracle, or callable with an epsilon and a "
            "domain",
            oracle,
        )
    return make(made, epsilon, domain, argument)


def one_each(argument: str, given: Any, names: Sequence[Any]) -> list[tuple[str, Any]]:
    """Return the entry of an argument for each name, and its description in messages.

    A mapping has an entry for each name, a list one entry for each in order. Anything else is the
    entry of all names.

    Raises
    ------
    InvalidValueError
        If a mapping or a list does not fit the names.
    """
    if isinstance(given, list):
        if len(given) != len(names):
            raise InvalidValueError(
                f"{argument} must have an entry for each of {len(names)} parts, got {len(given)}"
            )
        return [(f"{argument}[{place}]", entry) for place, entry in enumerate(given)]
    if not isinstance(given, Mapping):
        return [(argument, given)] * len(names)
    if set(given) != set(names):
        raise InvalidValueError(
            f"{argument} must have an entry for each of {_arguments.listed(names)}, got "
            f"{_arguments.listed(tuple(given))}"
        )
    return [(f"{argument}[{name!r}]", given[name]) for name in names]
