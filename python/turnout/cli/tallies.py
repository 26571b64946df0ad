"""Files of tallies, grouped or not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from turnout import GroupedTally, Tally
from turnout.cli.tally import _refuse_repeats, plan_difference
from turnout.errors import CorruptDataError, InvalidValueError, PlanMismatchError
from turnout.frequency.groups.encoding import MAGIC

__all__ = ["merged_tallies", "read_tally"]


def read_tally(source: Path) -> Tally | GroupedTally:
    """Read a file that holds a tally, or a grouped one.

    Raises
    ------
    CorruptDataError
        If it holds neither, naming the file.
    """
    data = source.read_bytes()
    try:
        if data.startswith(MAGIC):
            return GroupedTally.from_bytes(data)
        return Tally.from_bytes(data)
    except CorruptDataError as error:
        raise type(error)(f"{source}: {error}") from error


def merged_tallies(sources: Sequence[Path]) -> Tally | GroupedTally:
    """Add up the tallies of several files of one plan, all grouped by the same columns or none.

    Raises
    ------
    InvalidValueError
        If a file is given twice, or files are grouped by different columns.
    PlanMismatchError
        If files were made under different plans.
    """
    _refuse_repeats(sources)
    result = read_tally(sources[0])
    for source in sources[1:]:
        part = read_tally(source)
        if part.plan != result.plan:
            raise PlanMismatchError(
                f"{sources[0]} and {source} were made under different plans: "
                f"{plan_difference(result.plan, part.plan)}"
            )
        if isinstance(result, GroupedTally) and isinstance(part, GroupedTally):
            if part.names != result.names:
                raise InvalidValueError(_columns(sources[0], result, source, part))
            result = result.merge(part)
        elif isinstance(result, Tally) and isinstance(part, Tally):
            result = result.merge(part)
        else:
            raise InvalidValueError(_columns(sources[0], result, source, part))
    return result


def _columns(
    first: Path, one: Tally | GroupedTally, second: Path, other: Tally | GroupedTally
) -> str:
    texts = [
        f"grouped by {', '.join(each.names)}" if isinstance(each, GroupedTally) else "not grouped"
        for each in (one, other)
    ]
    return f"{first} is {texts[0]} and {second} is {texts[1]}: they cannot be added up"
