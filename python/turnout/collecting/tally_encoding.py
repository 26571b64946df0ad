r"""The bytes of a tally and of a grouped tally.

The layout of a tally, version 4, all numbers little-endian:

======  ==============  =========================================================================
offset  size            content
======  ==============  =========================================================================
0       8               magic: ``89 54 41 4C 4C 59 0D 0A`` (``\\x89TALLY\\r\\n``)
8       4               version, unsigned
12      4               length of the header ``h``, unsigned
16      h               header: canonical JSON with ``plan``, ``nodes``, ``received``, ``design``,
                        ``origin``, and ``left_out`` where anything is
16 + h  s               the sums of the plan's kind of question
...     32              SHA-256 of everything before
======  ==============  =========================================================================

For frequency oracles the sums are ``8 k`` bytes: the support counts of the ``k`` answers, unsigned
64-bit (sums of scores: signed). With personal participation ``32 (k + 1)`` bytes follow: the sums
of 1/pi and of 1/pi^2, each as k + 1 pairs of low and high 64 bits, in units of 2^-32. They are for
each code over the reports that support it, and last over all reports. Distributions have the same
layout, with a count for each cell.

For means of ``d`` numbers the sums are ``48 d`` bytes: for each coordinate the number of its
reports, the sum of their cells and the sum of the squared cells, unsigned 128-bit. With personal
participation ``192 d`` bytes follow: for each coordinate the same three sums with the weights 1/pi,
then with 1/pi^2, unsigned 256-bit in units of 2^-32.

For composite randomizers (levels of a tree, attributes) the parts follow one another: for each part
the number of its reports, unsigned 64-bit, and its sums.

The layout of a grouped tally, version 4:

======  ==============  =========================================================================
offset  size            content
======  ==============  =========================================================================
0       8               magic: ``89 47 52 4F 55 50 0D 0A`` (``\\x89GROUP\\r\\n``)
8       4               version, unsigned
12      4               length of the header ``h``, unsigned
16      h               header: canonical JSON with ``plan``, ``names``, ``origin`` and ``groups``,
                        and ``left_out`` where anything is that is of no group
16 + h  s g             for each of the ``g`` groups its sums, as those of a tally
...     32              SHA-256 of everything before
======  ==============  =========================================================================

``left_out`` is an object with the numbers ``unanswered``, ``ungrouped``, ``duplicates``,
``refused`` and ``absent`` of :class:`turnout.LeftOut`, at least one of them above 0.

``groups`` is a list of objects, in the order of the keys, with ``key``, ``nodes``, ``received``,
``design``, ``origin``, and ``left_out`` if anything of the group is left out. A key is a list with
one value for each name: null, a boolean, a number, a text, or ``{"date": "2026-01-31"}``,
``{"time": "12:30:00"}``, ``{"datetime": "2026-01-31T12:30:00"}`` in the form of ISO 8601, moments
with a time zone in UTC.

``origin`` is an object with ``identities``: the ordered list of the 16 bytes of each counted
collection, in hexadecimal (see :mod:`turnout.collecting.origin`). A grouped tally has one origin
for all groups together, and each group has its own. Where people keep permanent answers an origin
also has ``rounds``, an object: the name of each round, 16 bytes in hexadecimal, and the number of
the tally's nodes in it. These numbers add up to the nodes. The origin of a grouped tally as a whole
has no ``rounds``, nor has that of a piece of a collection.

The checksum finds damage; it does not authenticate.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from turnout import _core
from turnout._documents import canonical, parsed
from turnout.collecting.keys import Key, check_columns, checked_names, key_from_json, key_to_json
from turnout.collecting.left_out import LeftOut
from turnout.collecting.origin import Origin
from turnout.collecting.plan import Plan
from turnout.collecting.rounds import Rounds
from turnout.collecting.sums import DesignSums
from turnout.errors import CorruptDataError, InvalidTypeError, TurnoutError

#: Collections, and rounds with their nodes, as the core has them.
_Whence: TypeAlias = tuple[list[bytes], list[tuple[bytes, int]]]
#: Nodes, reports, sums of probabilities, origin, and what is left out.
_Facts: TypeAlias = tuple[int, int, tuple[int, int] | None, _Whence, tuple[int, int, int, int, int]]


def encode(tally: Any) -> bytes:
    """Write a tally.

    Raises
    ------
    InvalidTypeError
        If a label of the domain cannot be written.
    """
    return _core.write_tally(tally.plan._described, _facts(tally), tally._sums_to_bytes())


def encode_groups(grouped: Any) -> bytes:
    """Write a grouped tally.

    Raises
    ------
    InvalidTypeError
        If a label of the domain cannot be written.
    """
    groups = [(canonical(key_to_json(key)), _facts(tally)) for key, tally in grouped.items()]
    known = list(grouped.names), groups, _origin(grouped.origin), _numbers(grouped.of_no_group)
    sums = b"".join(tally._sums_to_bytes() for tally in grouped.values())
    return _core.write_groups(grouped.plan._described, known, sums)


def _facts(tally: Any) -> _Facts:
    """Return the facts of a tally besides plan and sums, as the core takes them."""
    design = tally.design
    sums = None if design is None else (design.probability, design.probability_squared)
    origin, left_out = _origin(tally.origin), _numbers(tally.left_out)
    return tally.nodes, tally.received, sums, origin, left_out


def _origin(origin: Origin) -> _Whence:
    return list(origin.identities), list(origin.rounds.sizes)


def _numbers(left_out: LeftOut) -> tuple[int, int, int, int, int]:
    absent, refused = left_out.absent, left_out.refused
    return left_out.unanswered, left_out.ungrouped, left_out.duplicates, refused, absent


def decode(data: object) -> Any:
    """Read a tally.

    Raises
    ------
    UnsupportedVersionError
        If this release does not read its version.
    CorruptDataError
        If the bytes are truncated, altered, or not a tally.
    InvalidTypeError
        If ``data`` is not bytes.
    """
    described, known, sums = _core.read_tally(_bytes(data))
    return _made("tally", Plan._of(described), known, sums)


def decode_groups(data: object) -> tuple[tuple[str, ...], dict[Key, Any], Plan, dict[str, Any]]:
    """Read a grouped tally: its columns, the tally of each key, the plan and other facts.

    Raises
    ------
    UnsupportedVersionError
        If this release does not read its version.
    CorruptDataError
        If the bytes are truncated, altered, or not a grouped tally.
    InvalidTypeError
        If ``data`` is not bytes.
    """
    described, (names, groups, origin, left_out), sums = _core.read_groups(_bytes(data))
    plan = Plan._of(described)
    length = plan.oracle.tally_type._bytes_of_sums(plan)
    if len(sums) != len(groups) * length:
        raise CorruptDataError(
            f"the sums of the grouped tally do not fit {len(groups)} groups of {plan.domain!r}"
        )
    tallies: dict[Key, Any] = {}
    for place, (text, known) in enumerate(groups):
        key = key_from_json(parsed(text), len(names))
        if key in tallies:
            raise CorruptDataError(f"the grouped tally has the key {list(key)} twice")
        part = sums[place * length : (place + 1) * length]
        tallies[key] = _made("grouped tally", plan, known, part)
    try:
        columns = checked_names(names)
        check_columns(columns, tallies)
    except TurnoutError as error:
        raise CorruptDataError(f"not a grouped tally of turnout: {error}") from error
    return columns, tallies, plan, {"of_no_group": LeftOut(*left_out), "origin": _whence(origin)}


def _bytes(data: object) -> bytes:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InvalidTypeError(f"data must be bytes, got {type(data).__name__}")
    return bytes(data)


def _whence(origin: _Whence) -> Origin:
    identities, rounds = origin
    return Origin(frozenset(identities), Rounds(tuple(rounds)))


def _made(what: str, plan: Plan, known: _Facts, sums: bytes) -> Any:
    """Build the tally of a plan from the bytes of its sums and other facts."""
    kind = plan.oracle.tally_type
    if len(sums) != kind._bytes_of_sums(plan):
        raise CorruptDataError(
            f"the sums of the tally do not fit {plan.domain!r}: expected "
            f"{kind._bytes_of_sums(plan)} bytes, got {len(sums)}"
        )
    nodes, received, design, whence, left_out = known
    origin = _whence(whence)
    try:
        found, weights = kind._sums_of_bytes(plan, sums)
        made = kind(
            plan,
            found,
            received,
            nodes,
            weights=weights,
            design=None if design is None else DesignSums(*design),
            left_out=LeftOut(*left_out),
            origin=origin,
        )
    except CorruptDataError:
        raise
    except (TurnoutError, ValueError, OverflowError) as error:
        raise CorruptDataError(f"not a {what} of turnout: {error}") from error
    if made.origin.rounds != origin.rounds:
        raise CorruptDataError(
            f"the rounds of the tally's origin do not fit {nodes} nodes of {plan.oracle!r}"
        )
    return made
