"""Groups in messages: public columns whose values the plan lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turnout import _arguments
from turnout._documents import canonical, parsed
from turnout.collecting.keys import (
    Key,
    Part,
    check_columns,
    checked_names,
    key_from_json,
    key_to_json,
    plain_key,
    plain_part,
)
from turnout.errors import CorruptDataError, InvalidValueError, TurnoutError

#: The possible values of each column.
Groups = Mapping[str, tuple[Part, ...]]


def checked_groups(argument: str, groups: Any) -> Groups:
    """Check the allowed values of each column.

    Raises
    ------
    InvalidTypeError
        If they are not a mapping from names to lists of values of one type.
    InvalidValueError
        If a column has no values, or duplicates.

    Examples
    --------
    >>> checked_groups("groups", {"region": ["north", "south"]})
    {'region': ('north', 'south')}
    """
    if groups is None or len(_arguments.instance(argument, groups, Mapping, "a mapping")) == 0:
        return {}
    found: dict[str, tuple[Part, ...]] = {}
    for name in checked_names(list(groups)):
        place = f"{argument}[{name!r}]"
        listed = _arguments.items(place, groups[name], "a list of values")
        values = tuple(plain_part(place, value) for value in listed)
        if not values:
            raise InvalidValueError(f"{place} must list at least one value, got none")
        if len(set(values)) < len(values):
            raise InvalidValueError(f"{place} must list different values, got a duplicate")
        check_columns([name], [(value,) for value in values])
        found[name] = values
    return found


def key_among(argument: str, groups: Groups, given: Any) -> Key:
    """Return the group of one person: one value for each column, by name or in order.

    Raises
    ------
    InvalidValueError
        If it is not one of the listed groups.
    InvalidTypeError
        If a value is of another type.

    Examples
    --------
    >>> groups = checked_groups("groups", {"region": ["north", "south"]})
    >>> key_among("group", groups, {"region": "south"}), key_among("group", groups, "south")
    (('south',), ('south',))
    """
    if isinstance(given, Mapping):
        if set(given) != set(groups):
            raise InvalidValueError(
                f"{argument} must name the columns {_arguments.listed(tuple(groups))}, got "
                f"{_arguments.listed(tuple(map(str, given)))}"
            )
        given = tuple(given[name] for name in groups)
    if not groups:
        if given not in ((), None):
            raise InvalidValueError(f"{argument} is given, but the plan has no groups")
        return ()
    key = plain_key(argument, () if given is None else given, len(groups))
    for name, value in zip(groups, key, strict=True):
        if not _is_among(value, groups[name]):
            raise _arguments.invalid(
                f"{argument} must have one of the {len(groups[name]):,} listed values of {name!r}",
                value,
            )
    return key


def _is_among(value: Part, values: tuple[Part, ...]) -> bool:
    """Return whether a value is listed; 1, 1.0 and True are different here."""
    return any(value == each and type(value) is type(each) for each in values)


def groups_text(groups: Groups) -> str | None:
    """Return groups as the text of a plan holds them; None if there are none.

    Examples
    --------
    >>> groups_text({"region": ("north", "south")}), groups_text({})
    ('[{"column":"region","values":["north","south"]}]', None)
    """
    listed = [{"column": name, "values": key_to_json(values)} for name, values in groups.items()]
    return canonical(listed) if groups else None


def groups_of_text(text: str | None) -> Groups:
    """Rebuild groups from :func:`groups_text`, after the core has checked the form.

    Raises
    ------
    CorruptDataError
        If a column has values of several types, or an invalid date.

    Examples
    --------
    >>> groups_of_text('[{"column":"region","values":["north","south"]}]')
    {'region': ('north', 'south')}
    """
    listed = [] if text is None else parsed(text)
    try:
        return checked_groups(
            "groups",
            {each["column"]: key_from_json(each["values"], len(each["values"])) for each in listed},
        )
    except TurnoutError as error:
        raise CorruptDataError(f"not the groups of a plan: {error}") from error
