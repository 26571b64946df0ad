"""Files of tallies, grouped or not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from turnout import GroupedTally, Plan, _core
from turnout._files import read_bytes
from turnout.collecting import tally as tallies
from turnout.collecting.origin import refuse_repeats as refuse_shared_reports
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.serve.counted import stored_tally
from turnout.serve.storage.opening import POSTGRESQL, is_store, open_store, place_of

#: What was counted, of any kind.
Counts = tallies.BaseTally | GroupedTally[Any]

#: What names of files of reports end in.
REPORT_SUFFIXES = (".parquet", ".arrow", ".ipc", ".feather")


def read_store(address: str, plan: Plan | None = None, question: Any = None) -> Counts:
    """Read the tally of a store of ``turnout serve``.

    Raises
    ------
    InvalidValueError
        If it holds several questions, and neither a plan nor a randomizer says which.
    """
    with closing(open_store(address)) as store:
        found: Counts = stored_tally(store, plan, question)
        return found


def read_tally(source: str | Path, plan: Plan | None = None, question: Any = None) -> Counts:
    """Read a file that holds a tally, grouped or not, or the store of ``turnout serve``.

    Parameters
    ----------
    source
        The file, or the address of a store (a text, ``postgresql://...``).
    plan, question
        Which question of a store that holds several: its plan, or its randomizer.

    Raises
    ------
    InvalidValueError
        If it is a folder.
    CorruptDataError
        If it holds neither, naming the file.
    """
    if is_store(source):
        return read_store(str(source), plan, question)
    source = Path(source)
    if source.is_dir():
        raise InvalidValueError(f"{source}: is a folder, not a tally{_hint(source)}")
    data = read_bytes(source)
    try:
        if data.startswith(_core.GROUPS_MAGIC):
            return GroupedTally.from_bytes(data)
        counts: Counts = tallies.read_tally(data)
        return counts
    except CorruptDataError as error:
        raise type(error)(f"{source}: {error}{_hint(source)}") from error


def _hint(source: Path) -> str:
    """Name the step that was left out, where the file's name tells it."""
    suffix = source.suffix.lower()
    if source.is_dir() or suffix in REPORT_SUFFIXES:
        return "; turnout tally counts reports into a tally"
    if suffix in {".csv", ".tsv"}:
        return (
            "; turnout randomize turns answers into reports, and turnout tally "
            "counts reports into a tally"
        )
    return ""


def read_tallies(
    sources: Sequence[str | Path], plan: Plan | None = None
) -> list[tuple[str, Counts]]:
    """Read tallies from files and stores, none of which may be given twice.

    Each comes with the name that messages call it by, which has no password.

    Raises
    ------
    InvalidValueError
        If a file is given twice.
    CorruptDataError
        If a file holds no tally.
    """
    refuse_repeats(sources)
    return [(place_of(source), read_tally(source, plan)) for source in sources]


def merged(
    parts: Sequence[tuple[object, Counts]], plan: Plan | None = None, *, same_people: bool = True
) -> Counts:
    """Add up tallies, each with the name that messages call it by, of a plan if one is given.

    People of one may be in another too unless ``same_people`` is False.

    Raises
    ------
    InvalidValueError
        If two count the same reports, or they are grouped by different columns.
    PlanMismatchError
        If they were made under different plans.
    """
    first, result = parts[0]
    for name, part in parts:
        wanted, whose = (result.plan, first) if plan is None else (plan, None)
        wanted._check_same(part.plan, str(name), whose)
        if _groups(result) != _groups(part):
            raise InvalidValueError(
                f"{first} is {_groups(result)} and {name} is {_groups(part)}: they cannot be added "
                "up"
            )
    refuse_shared_reports((str(name), part) for name, part in parts)
    for _, part in parts[1:]:
        result = result.merge(part, same_people=same_people)  # type: ignore[arg-type]
    return result


def _groups(tally: Counts) -> str:
    if isinstance(tally, GroupedTally):
        return f"grouped by {', '.join(tally.names)}"
    return "not grouped"


def refuse_repeats(sources: Sequence[str | Path]) -> None:
    """Refuse a file or an address given twice: its people would count twice."""
    seen = set()
    for source in sources:
        same = str(source) if str(source).startswith(POSTGRESQL) else str(Path(source).resolve())
        if same in seen:
            raise InvalidValueError(
                f"{place_of(source)}: is duplicated; its reports would count twice"
            )
        seen.add(same)
