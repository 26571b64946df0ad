"""Tallying the reports of all groups in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Array, Floats, Integers
from turnout.collecting import keys as group_keys
from turnout.collecting.groups.tally import GroupedTally
from turnout.collecting.keys import Key, times_in
from turnout.collecting.left_out import LeftOut
from turnout.collecting.origin import PIECE, Origin
from turnout.collecting.randomizer import Counts
from turnout.collecting.reports import Reports
from turnout.collecting.sums import DesignSums
from turnout.errors import InvalidValueError


def tally_by_group(
    reports: Reports,
    index: npt.ArrayLike,
    nodes: npt.ArrayLike,
    *,
    names: Any,
    keys: Iterable[Any],
    designs: Sequence[DesignSums] | None = None,
    unanswered: npt.ArrayLike | None = None,
    piece: bool = False,
) -> GroupedTally[Any]:
    """Tally reports by group in one pass.

    Parameters
    ----------
    reports
        The reports of all groups.
    index
        The number of the group of each report: an integer from 0 to the number of groups minus 1.
    nodes
        The number of nodes of each group, reporting or not; they add up to the reports' nodes.
    names
        The names of the columns of the groups.
    keys
        The key of each group: one value for each name.
    designs
        The sums of the participation probabilities of each group's nodes: required with personal
        participation, and only then.
    unanswered
        For each group, the number of left-out rows without an answer. By default their groups are
        unknown.
    piece
        Whether the reports are a piece of a collection, which gets an origin when it is complete.

    Returns
    -------
    GroupedTally
        The tally of each group, equal to that of its reports alone.

    Raises
    ------
    InvalidValueError
        If there is not one index for each report, an index is not a group, or the nodes do not add
        up or are fewer than the reports of a group. Also if keys are duplicated, designs are
        missing or too many, or more rows are unanswered than the reports leave out.
    InvalidTypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import turnout as tn
    >>> reports = tn.DirectEncoding(1.0, 2).randomize([0, 1, 1, 0, 1])
    >>> grouped = tally_by_group(
    ...     reports, [0, 0, 1, 1, 1], [2, 3], names=["country"], keys=["DE", "FR"]
    ... )
    >>> grouped["DE"].received, grouped["FR"].received, grouped.total.received
    (2, 3, 5)
    """
    _arguments.instance("reports", reports, Reports, "a Reports object")
    checked = group_keys.checked_names(names)
    listed = _arguments.items("keys", keys, "one key for each group")
    plain = [group_keys.plain_key("keys", key, len(checked)) for key in listed]
    sizes = (
        _arguments.counts("nodes", nodes, len(plain), of="groups")
        if plain
        else np.empty(0, np.uint64)
    )
    groups = _checked_index(index, len(reports), len(plain))
    if sum(sizes.tolist()) != reports.nodes:
        raise InvalidValueError(
            f"nodes must add up to the {reports.nodes} nodes of the reports, got "
            f"{sum(sizes.tolist())}"
        )
    if len(set(plain)) != len(plain):
        raise InvalidValueError("keys must be different, got a duplicate")
    personal = reports.probabilities is not None
    if personal != (designs is not None) or (designs is not None and len(designs) != len(plain)):
        raise InvalidValueError(
            "designs must hold the sums of each group if and only if participation is personal"
        )
    received = np.bincount(groups, minlength=len(plain))
    counted = counts_by_group(
        reports.oracle, reports.codes, reports.probabilities, groups, received
    )
    made, own = reports.oracle.tally_type, PIECE if piece else None

    def of_group(key: Key, place: int) -> Origin:
        # Nobody knows which people are in which of several rounds, so every group may be in each of
        # them.
        rounds = reports.origin.rounds.shared_out(int(sizes[place]))
        return Origin.new().with_rounds(rounds.within(times_in(checked, key)))

    without = [0] * len(plain)
    if unanswered is not None and plain:
        without = _arguments.counts("unanswered", unanswered, len(plain), of="groups").tolist()
    rest = reports.left_out.unanswered - sum(without)
    if rest < 0:
        raise InvalidValueError(
            "unanswered must add up to at most the number that the reports leave out, "
            f"{reports.left_out.unanswered}, got {sum(without)}"
        )
    tallies: dict[Key, Any] = {}
    for place, key in enumerate(plain):
        design = None if designs is None else designs[place]
        told = {"left_out": LeftOut(without[place]), "origin": own or of_group(key, place)}
        tallies[key] = made.of(reports.plan, counted[place], int(sizes[place]), design, **told)
    of_no_group = replace(reports.left_out, unanswered=rest)
    more: dict[str, Any] = {"plan": reports.plan, "of_no_group": of_no_group}
    return GroupedTally(checked, tallies, origin=reports.origin if own is None else own, **more)


def _checked_index(index: npt.ArrayLike, reports: int, groups: int) -> Integers:
    array = _arguments.vector("index", index, "one group for each report", "integers", "iu")
    if array.size != reports:
        raise InvalidValueError(
            f"index must have one entry for each of the {reports} reports, got {array.size}"
        )
    wrong = (array < 0) | (array >= groups)
    _arguments.refuse_entries("index", array, wrong, f"a group from 0 to {groups - 1}")
    return array.astype(np.int64, copy=False)


def counts_by_group(
    oracle: Any, reports: Array, probabilities: Floats | None, groups: Integers, received: Integers
) -> list[Counts]:
    """Add up the reports of each group; ``received`` has the number of each."""
    number = received.size
    if probabilities is None:
        joint: list[Counts] | None = oracle._count_by_group(reports, groups, number)
        if joint is not None:
            return joint
    # Integers of 16 bits are sorted in linear time.
    order = np.argsort(groups.astype(np.min_scalar_type(number)), kind="stable")
    codes = reports[order]
    known = None if probabilities is None else probabilities[order]
    ends = np.cumsum(received).tolist()
    starts = [0, *ends[:-1]]
    return [
        oracle.count_reports(codes[start:end], None if known is None else known[start:end])
        for start, end in zip(starts, ends, strict=True)
    ]
