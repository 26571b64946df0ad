"""The records of users as a table with columns of several types."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from turnout._label_texts import label_text, missing_texts, parse_label
from turnout._progress import doing
from turnout._types import Array, Integers
from turnout.cli.answers import settled
from turnout.cli.sample.records import MOST_USERS, WIDEST, ids_of
from turnout.cli.sample.wanted import KEPT, Wanted
from turnout.collecting.left_out import LeftOut
from turnout.errors import InvalidValueError
from turnout.pipeline import Answers, scan
from turnout.pipeline.columns import factors, groups_of, rows_text
from turnout.pipeline.rows import is_missing, trimmed
from turnout.pipeline.sources import open_source
from turnout.samplers.tables.columns import Column, LabelColumn, NumberColumn, columns_of
from turnout.samplers.tables.frames import table_of

_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)

#: A day, which some files write as its midnight.
_DAY: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]00:00(?::00(?:\.0+)?)?)?", re.ASCII)

#: A time in whole seconds, or a day, which is its midnight.
_TIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9]{2}:[0-9]{2}(?::[0-9]{2})?)?)(?:\.0+)?", re.ASCII
)

#: How days and times are written, and what reads them.
_MOMENTS: Final[dict[str, tuple[re.Pattern[str], Callable[[str], Any]]]] = {
    "date32": (_DAY, datetime.date.fromisoformat),
    "timestamp[us]": (_TIME, datetime.datetime.fromisoformat),
}

#: A number with commas, spaces or apostrophes between thousands.
_GROUPED: Final = re.compile(
    r"[+-]?[0-9]{1,3}([,' \u00a0\u2009\u202f\u2019][0-9]{3})+(\.[0-9]*)?", re.ASCII
)

#: What a value is: one of its column, missing, something else, a number that is not whole, one with
#: marks between thousands, or text that is no day and no time as we read them.
_GOOD, _GONE, _WRONG, _REAL, _THOUSANDS, _MOMENT = range(6)


@dataclass(frozen=True, eq=False)
class TableRecords:
    """The rows of all users, with columns of several types.

    Attributes
    ----------
    answers
        The file, and what is missing in it.
    parts
        What each column holds.
    given
        The same, as :class:`turnout.samplers.TableSampler` takes it.
    data
        The rows: a ``pyarrow.Table``.
    users
        Whose they are: n ids, or row numbers from 1 where every row is a user of its own.
    left_out
        How many rows were left out because something is missing in them.
    """

    answers: Answers
    parts: tuple[Column, ...]
    given: dict[str, dict[str, Any]]
    data: Any
    users: Array
    left_out: LeftOut

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.given)

    @property
    def labels(self) -> None:
        """There are no labels of all columns together."""

    @property
    def described(self) -> str:
        """What the columns hold."""
        held = []
        for part in self.parts:
            labels = isinstance(part, LabelColumn)
            what = f"one of {part.values:,} labels" if labels else part.expected
            held.append(f"{part.name}: {what}{', or missing' if part.missing else ''}")
        return "; ".join(held)

    @property
    def codes(self) -> Integers:
        """A number for each different row, by its values."""
        rows = zip(*(self.data[name].to_pylist() for name in self.given), strict=True)
        known: dict[Any, int] = {}
        return np.array([known.setdefault(row, len(known)) for row in rows], np.int64)

    def columns_of(self, draws: Any) -> list[Any]:
        """Give draws as columns."""
        return list(draws.columns)

    def public(self, path: Path) -> Any:
        """Read the same columns of another file.

        Raises
        ------
        TurnoutError
            If they hold something else.
        """
        source = open_source(path)
        answers = replace(self.answers, source=source, group_by=())
        source.check(answers.columns)
        return _Rows(answers, self.parts).table(path.name, drop=True)[0]


def read_table(source: Path, wanted: Wanted, *, like: TableRecords | None = None) -> TableRecords:
    """Read the columns of a file as what the options say they hold.

    Parameters
    ----------
    source, wanted
        The file and the options.
    like
        Records whose columns hold the same: labels are then those of its file, since CSV files
        hold booleans and numbers as text.

    Raises
    ------
    InvalidValueError
        If columns hold something else, or values are missing and nothing says what they are: the
        message names all these columns, and no value.
    """
    answers = scan(
        source,
        wanted.columns,
        missing_values=wanted.missing_values,
        separator=wanted.separator,
        encoding=wanted.encoding,
        trim=wanted.trim,
        group_by=() if wanted.user_column is None else wanted.user_column,
        max_groups=MOST_USERS,
    )
    with doing(f"reading {source.name}"):
        answers, given = _held(answers, wanted)
        if like is not None:
            given = like.given
        parts = columns_of(given)
        rows = _Rows(answers, parts)
        data, kept = rows.table(source.name, drop=wanted.missing == "drop")
    left_out = LeftOut(unanswered=len(rows) - kept.size)
    return TableRecords(answers, parts, given, data, rows.users(kept), left_out)


def _held(answers: Answers, wanted: Wanted) -> tuple[Answers, dict[str, dict[str, Any]]]:
    """Find what each column holds, and what is missing in its terms."""
    answers, domains, _ = settled(
        answers, {**dict.fromkeys(wanted.columns, WIDEST), **wanted.labels}
    )
    given: dict[str, dict[str, Any]] = {}
    for name in wanted.columns:
        bounds = wanted.ranges.get(name)
        held: dict[str, Any] = {"bounds": bounds, "bins": wanted.bins.get(name)}
        if bounds is None:
            held = {"labels": list(domains[name].labels), "ordered": name in wanted.ordered}
        given[name] = {**held, "missing": wanted.missing == KEPT}
    return answers, given


class _Rows:
    """All rows of a file: for each column the values, and whether they are of the column."""

    def __init__(self, answers: Answers, parts: Sequence[Column]) -> None:
        self._answers, self._parts = answers, parts
        self._values: dict[str, list[Array]] = {part.name: [] for part in parts}
        self._kinds: dict[str, list[Array]] = {part.name: [] for part in parts}
        self._keys: dict[Any, int] = {}
        self._groups: list[Array] = []
        names = list(self._values)
        readers = [_reader(part, answers) for part in parts]
        for block in answers.source.blocks(
            [*names, *answers.group_by], categories=frozenset(names)
        ):
            table = block.read()
            for name, read in zip(names, readers, strict=True):
                for distinct, index in factors(table.column(name), answers._name_of(name)):
                    values = np.empty(len(distinct), object)
                    kinds = np.empty(len(distinct), np.int8)
                    for place, value in enumerate(distinct):
                        values[place], kinds[place] = read(value)
                    self._values[name].append(values[index])
                    self._kinds[name].append(kinds[index])
            if answers.group_by:
                self._add_users(table, block.start)

    def _add_users(self, table: Any, start: int) -> None:
        answers = self._answers
        found = groups_of(
            table,
            dict.fromkeys(answers.group_by),
            max_groups=MOST_USERS,
            name=answers.source.name,
            missing_values=missing_texts(more=answers.missing_values),
            rows=partial(_rows_after, start),
            trim=answers.trim,
        )
        numbers = [self._keys.setdefault(key, len(self._keys)) for (key,) in found.keys]
        self._groups.append(np.array(numbers, np.int64)[found.index])

    def __len__(self) -> int:
        return sum(map(len, self._kinds[self._parts[0].name]))

    def table(self, name: str, *, drop: bool) -> tuple[Any, Integers]:
        """Give the rows that count as an Arrow table, and their places.

        Parameters
        ----------
        name
            The name of the file, for errors.
        drop
            Whether rows in which something is missing are left out.

        Raises
        ------
        InvalidValueError
            If a value cannot be in its column, or is missing and may not be.
        """
        wrong, gone, kept = [], [], np.ones(len(self), bool)
        for part in self._parts:
            kinds = _joined(self._kinds[part.name], np.int8)
            places = np.flatnonzero(kinds >= _WRONG)
            if places.size:
                wrong.append(
                    f"column {part.name!r}: {places.size:,} of {len(self):,} values are not "
                    f"{part.expected} ({rows_text(places)})"
                    + "".join(_HINTS[kind].format(part.name) for kind in _HINTS if kind in kinds)
                )
            missing = np.flatnonzero(kinds == _GONE)
            if missing.size and not part.missing:
                gone.append(_missing(part.name, "values", missing, len(self)))
                kept[missing] = False
        nobody = np.flatnonzero(_joined(self._groups, np.int64) == self._keys.get(None, -1))
        if nobody.size:
            gone.append(_missing(self._answers.group_by[0], "users", nobody, len(self)))
            kept[nobody] = False
        problems = wrong if drop else wrong + gone
        if problems:
            remedy = f"; --missing drop leaves rows out, {KEPT} makes missing values a value"
            raise InvalidValueError(
                f"{name}: {'; '.join(problems)}{remedy if gone and not drop else ''}"
            )
        places = np.flatnonzero(kept)
        if not places.size:
            raise InvalidValueError(f"{name}: there is no row to draw a record for")
        values = {name: _joined(pieces, object) for name, pieces in self._values.items()}
        return table_of(
            self._parts, {n: column[places].tolist() for n, column in values.items()}
        ), (places)

    def users(self, kept: Integers) -> Array:
        """Say whose rows those at some places are; without a column of users each is its own."""
        if not self._answers.group_by:
            return kept + 1
        numbers = _joined(self._groups, np.int64)[kept]
        # Whose row is nobody's is not kept.
        nobody = self._keys.get(None, len(self._keys))
        names = [key for key in self._keys if key is not None]
        users: Array = ids_of(names, texts=self._answers.source.texts)[numbers - (numbers > nobody)]
        return users


def _joined(pieces: Sequence[Array], kind: Any) -> Array:
    return np.concatenate([np.empty(0, kind), *pieces])


def _rows_after(start: int, places: Array) -> str:
    return rows_text(places + start)


def _missing(column: str, what: str, places: Integers, rows: int) -> str:
    return (
        f"column {column!r}: {places.size:,} of {rows:,} {what} are missing ({rows_text(places)})"
    )


#: How to mend what is wrong.
_HINTS: Final = {
    _REAL: "; bounds with a point ask for real numbers, as in --bounds {}=0.0:99.0",
    _THOUSANDS: "; remove the marks between thousands: 12000, not 12,000",
    _MOMENT: "; write days as 2024-12-31, and times as 2024-12-31T18:30:15",
}


def _reader(part: Column, answers: Answers) -> Callable[[Any], tuple[Any, int]]:
    """Make what reads a value of a column, and tells what it is."""
    labels = part.labels if isinstance(part, LabelColumn) else ()
    texts = {label_text(label): label for label in labels}
    booleans = part.arrow_type == "bool"
    known = missing_texts(labels, answers.missing_values)

    def read(value: Any) -> tuple[Any, int]:
        value = trimmed(value) if answers.trim else value
        if is_missing(value, known):
            return None, _GONE
        if isinstance(part, LabelColumn):
            whole = isinstance(value, float) and value.is_integer()
            text = label_text(int(value) if whole else value)
            found = texts.get(text.lower() if booleans else text)
        else:
            found = _read(value, part)
            if isinstance(found, float) and part.arrow_type == "int64":
                return None, _REAL
        if found is not None and part.fits(found):
            return found, _GOOD
        if found is None and isinstance(value, str) and not isinstance(part, LabelColumn):
            if part.arrow_type in _MOMENTS:
                return None, _MOMENT
            return None, _THOUSANDS if _GROUPED.fullmatch(value) else _WRONG
        return None, _WRONG

    return read


def _moment(value: Any, kind: str) -> Any:
    """Read a day or a time; None if it is neither."""
    written, read = _MOMENTS[kind]
    found = written.fullmatch(value) if isinstance(value, str) else None
    try:
        return None if found is None else read(found[1])
    except ValueError:
        return None


def _read(value: Any, part: Column) -> Any:
    """Read a number, a day or a time, or return None. Of a column of whole numbers it is one."""
    if isinstance(value, bool):
        return None
    if part.arrow_type in _MOMENTS:
        return _moment(value, part.arrow_type)
    if isinstance(value, str):
        if _WHOLE.fullmatch(value) and not isinstance(part, NumberColumn):
            return int(value)
        value = parse_label(value, "number")
    if isinstance(part, NumberColumn):
        # Arrow takes no large integer as a real number.
        return value if value is None or isinstance(value, str) else float(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
