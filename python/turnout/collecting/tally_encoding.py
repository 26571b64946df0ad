r"""The bytes of a tally, and of one by groups.

Of a tally, version 4, all numbers little-endian:

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

Of frequency oracles the sums are ``8 k`` bytes: the support counts of the ``k`` answers, unsigned
64-bit (sums of scores: signed); and with personal participation ``32 (k + 1)`` more: the sums of
1/pi and of 1/pi^2, each as k + 1 pairs of low and high 64 bits, in units of 2^-32, for each code
over the reports that support it and last over all reports. Of distributions the same, with a count
for each cell.

Of means of ``d`` numbers they are ``48 d`` bytes: for each coordinate how many reports are about
it, the sum of their cells and that of the squared cells, unsigned 128-bit; and with personal
participation ``192 d`` more: for each coordinate the same three sums with the weights 1/pi, then
with 1/pi^2, unsigned 256-bit in units of 2^-32.

Of randomizers made of several (levels of a tree, attributes) the parts follow one another: of each
the number of its reports, unsigned 64-bit, and its sums.

Of a tally by groups, version 4:

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
``refused`` and ``absent`` of :class:`turnout.LeftOut`, of which one is above 0.

``groups`` is a list, in the order of the keys, of objects with ``key``, ``nodes``, ``received``,
``design``, ``origin``, and ``left_out`` where anything of the group is. A key is a list with one
value for each name: null, a boolean, a number, a text, or ``{"date": "2026-01-31"}``, ``{"time":
"12:30:00"}``, ``{"datetime": "2026-01-31T12:30:00"}`` in the form of ISO 8601, moments with a time
zone in UTC.

``origin`` is an object with ``identities``, the list, in order, of the 16 bytes of each collection
that is counted, in hexadecimal: see :mod:`turnout.collecting.origin`. That of a tally by groups is
of all groups together, as they were counted; each group has one of its own. Where people keep
permanent answers it also has ``rounds``, an object: for each round its name, 16 bytes in
hexadecimal, and how many of the tally's nodes are of it. They add up to the nodes. That of a tally
by groups as a whole has none, and neither has that of a piece of a collection.

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
    """Say of a tally what is neither its plan nor its sums, as the core takes it."""
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
        If it is of a version that this release does not read.
    CorruptDataError
        If the bytes are truncated, altered, or no tally.
    InvalidTypeError
        If ``data`` is not bytes.
    """
    described, known, sums = _core.read_tally(_bytes(data))
    return _made("tally", Plan._of(described), known, sums)


def decode_groups(data: object) -> tuple[tuple[str, ...], dict[Key, Any], Plan, dict[str, Any]]:
    """Read a grouped tally: its columns, the tally of each key, the plan, and what else it takes.

    Raises
    ------
    UnsupportedVersionError
        If it is of a version that this release does not read.
    CorruptDataError
        If the bytes are truncated, altered, or no grouped tally.
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
    """Make the tally of a plan from the bytes of its sums and what else is known of it."""
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
