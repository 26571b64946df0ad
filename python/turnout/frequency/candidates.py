"""Which oracles there are to choose from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from turnout import _arguments, _kinds
from turnout.domain import Domain
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.oracle import FrequencyOracle

Factory = Callable[[float, Domain], FrequencyOracle]


def oracle_classes() -> dict[str, type[FrequencyOracle]]:
    """List the classes of all oracles that are imported, by name.

    Examples
    --------
    >>> oracle_classes()["direct_encoding"].__name__
    'DirectEncoding'
    """
    return {
        name: found
        for name, found in _kinds.REGISTERED.items()
        if issubclass(found, FrequencyOracle)
    }


def registered() -> dict[str, type[FrequencyOracle]]:
    """List turnout's oracles that need nothing but an epsilon and a domain, by name."""
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
    """Name and make what is chosen from: all registered oracles by default.

    Parameters
    ----------
    oracles
        Classes, other callables that take an epsilon and a domain, or names of oracles; one or an
        iterable of them.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If one is none of these, or there are none.
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


def make(factory: Factory, epsilon: float, domain: Domain) -> FrequencyOracle:
    """Call a factory and check what it makes: it may not spend more than it is given.

    Raises
    ------
    InvalidTypeError
        If it does not take an epsilon and a domain alone, or does not make an oracle.
    InvalidValueError
        If that has a larger epsilon or another domain.
    """
    if not _takes_two(factory):
        name = getattr(factory, "__name__", type(factory).__name__)
        raise InvalidTypeError(
            "oracles must hold what makes an oracle from an epsilon and a domain alone, got "
            f"{name}{inspect.signature(factory)}: give a function that fills in the rest"
        )
    return checked_oracle("oracle", factory(epsilon, domain), epsilon, domain)


def named_oracle(argument: str, oracle: Factory | str) -> str:
    """Give the name of what makes oracles, for files.

    Raises
    ------
    InvalidTypeError
        If it is no oracle of turnout that needs nothing but an epsilon and a domain.

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
    """Check what a function of an epsilon and a domain made: it may not spend more than that.

    Raises
    ------
    InvalidTypeError
        If it is no oracle.
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
        max(made.epsilon, made.realized_epsilon) > _arguments.number("epsilon", epsilon)
        or made.domain != domain
    ):
        raise InvalidValueError(
            f"{argument}(epsilon, domain) must have at most the epsilon {epsilon!r} and the domain "
            f"{domain!r} that it is given, got {made!r}"
        )
    oracle: FrequencyOracle = made
    return oracle


def _takes_two(factory: Factory) -> bool:
    try:
        inspect.signature(factory).bind(1.0, None)
    except TypeError:
        return False
    except ValueError:  # no signature is known
        return True
    return True


def reasons(refused: Iterable[tuple[str, str]]) -> str:
    """Put oracles that were refused for one reason together: names and their reasons."""
    names: dict[str, list[str]] = {}
    for name, reason in refused:
        names.setdefault(reason, []).append(name)
    if len(names) == 1:
        return next(iter(names))
    return "; ".join(f"{', '.join(who)}: {reason}" for reason, who in names.items())
