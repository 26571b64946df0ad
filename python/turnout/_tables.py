"""Results as tables of Arrow, pandas and polars, and in notebooks."""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from turnout._extras import require

#: So many rows are shown in a notebook.
_SHOWN: Final = 20

#: What is longer is no caption of a table: its type is.
_LONGEST_CAPTION: Final = 300

#: Whole numbers and texts, even where there are no rows that say so.
_COUNTS: Final = frozenset({"nodes", "received", "left_out", "coordinate"})
_TEXTS: Final = frozenset({"reason", "remark", "refused"})


class Tabular:
    """A result that is also a table: :meth:`to_records` lists its rows."""

    __slots__ = ()

    #: The columns of the table, in order; those of groups come before them.
    _columns: tuple[str, ...]

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each row."""
        raise NotImplementedError

    @property
    def _group_columns(self) -> tuple[str, ...]:
        return ()

    @property
    def _label_columns(self) -> tuple[str, ...]:
        """The questions that a label answers, if there are several."""
        return ()

    def _first_rows(self, most: int) -> tuple[Sequence[Mapping[str, Any]], int]:
        """Return the first rows for a notebook, and the number of all rows."""
        records = self.to_records()
        return records[:most], len(records)

    def to_arrow(self) -> Any:
        """Return the rows of :meth:`to_records` as a :class:`pyarrow.Table`.

        Returns
        -------
        pyarrow.Table
            The columns of the groups, if any, then those of :meth:`to_records`, with null for an
            unknown number. A group column whose name clashes with one of these is called
            ``group.name``. Labels that are combinations of answers to several questions have a
            column for each question, called ``label.name`` if its name clashes with another column.
            Labels of several types are written as text. So are other tuples, and values that Arrow
            has no type for, such as integers of more than 64 bits.

        Raises
        ------
        MissingExtraError
            If pyarrow is not installed.
        """
        return self._as_arrow(self.to_records())

    def to_pandas(self) -> Any:
        """Return the table of :meth:`to_arrow` as a :class:`pandas.DataFrame`.

        Raises
        ------
        MissingExtraError
            If pyarrow or pandas is not installed.
        """
        return _as_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """Return the table of :meth:`to_arrow` as a :class:`polars.DataFrame`.

        Raises
        ------
        MissingExtraError
            If pyarrow or polars is not installed.
        """
        return _as_polars(self.to_arrow())

    def _as_arrow(self, records: Sequence[Mapping[str, Any]]) -> Any:
        groups = self._group_columns
        table: dict[str, Any] = {}
        for name in groups:
            shown = _unlike(name, "group", {*self._columns, *table}, groups)
            table[shown] = _array([record["group"][name] for record in records])
        columns = {name: [record[name] for record in records] for name in self._columns}
        return arrow_columns(columns, self._label_columns, table)

    def _repr_html_(self) -> str:
        """Show the first rows in a notebook."""
        records, every = self._first_rows(_SHOWN)
        names = [*self._group_columns, *self._columns]
        rows = [
            [_shown(value) for value in _row(record, self._columns, self._group_columns)]
            for record in records
        ]
        head = "".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows
        )
        more = every - len(rows)
        note = f"<p>and {more:,} more rows</p>" if more else ""
        named = repr(self)
        named = named if len(named) <= _LONGEST_CAPTION else type(self).__name__
        caption = f"<caption>{html.escape(named)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


class WithIntervals(Tabular):
    """A result whose rows have intervals of a confidence level."""

    __slots__ = ()

    def to_records(self, level: float = 0.95) -> list[dict[str, Any]]:
        """List one dictionary for each row."""
        raise NotImplementedError

    def to_arrow(self, level: float = 0.95) -> Any:
        """Return the rows of :meth:`to_records` as a :class:`pyarrow.Table`.

        Parameters
        ----------
        level
            As for :meth:`to_records`.

        Returns
        -------
        pyarrow.Table
            As of :meth:`turnout.Interval.to_arrow`.

        Raises
        ------
        MissingExtraError
            If pyarrow is not installed.
        InvalidTypeError, InvalidValueError
            As :meth:`to_records`.
        """
        return self._as_arrow(self.to_records(level))

    def to_pandas(self, level: float = 0.95) -> Any:
        """Return the table of :meth:`to_arrow` as a pandas.DataFrame; same arguments."""
        return _as_pandas(self.to_arrow(level))

    def to_polars(self, level: float = 0.95) -> Any:
        """Return the table of :meth:`to_arrow` as a polars.DataFrame; same arguments."""
        return _as_polars(self.to_arrow(level))


class WithSimultaneous(WithIntervals):
    """A result whose rows can have simultaneous intervals."""

    __slots__ = ()

    def to_records(
        self, level: float = 0.95, *, simultaneous: str | None = None
    ) -> list[dict[str, Any]]:
        """List one dictionary for each row."""
        raise NotImplementedError

    def to_arrow(self, level: float = 0.95, *, simultaneous: str | None = None) -> Any:
        """Return the rows of :meth:`to_records` as a :class:`pyarrow.Table`.

        Parameters
        ----------
        level, simultaneous
            As for :meth:`to_records`.

        Returns
        -------
        pyarrow.Table
            As of :meth:`turnout.Interval.to_arrow`.

        Raises
        ------
        MissingExtraError
            If pyarrow is not installed.
        InvalidTypeError, InvalidValueError
            As :meth:`to_records`.
        """
        return self._as_arrow(self.to_records(level, simultaneous=simultaneous))

    def to_pandas(self, level: float = 0.95, *, simultaneous: str | None = None) -> Any:
        """Return the table of :meth:`to_arrow` as a pandas.DataFrame; same arguments."""
        return _as_pandas(self.to_arrow(level, simultaneous=simultaneous))

    def to_polars(self, level: float = 0.95, *, simultaneous: str | None = None) -> Any:
        """Return the table of :meth:`to_arrow` as a polars.DataFrame; same arguments."""
        return _as_polars(self.to_arrow(level, simultaneous=simultaneous))


class WithTop(WithSimultaneous):
    """A result with many rows, which have intervals."""

    __slots__ = ()

    def to_records(
        self, level: float = 0.95, *, simultaneous: str | None = None, top: int | None = None
    ) -> list[dict[str, Any]]:
        """List one dictionary for each row."""
        raise NotImplementedError

    def to_arrow(
        self, level: float = 0.95, *, simultaneous: str | None = None, top: int | None = None
    ) -> Any:
        """Return the rows of :meth:`to_records` as a :class:`pyarrow.Table`.

        Parameters
        ----------
        level, simultaneous, top
            As for :meth:`to_records`.

        Returns
        -------
        pyarrow.Table
            As of :meth:`turnout.Interval.to_arrow`.

        Raises
        ------
        MissingExtraError
            If pyarrow is not installed.
        InvalidTypeError, InvalidValueError
            As :meth:`to_records`.
        """
        return self._as_arrow(self.to_records(level, simultaneous=simultaneous, top=top))

    def to_pandas(
        self, level: float = 0.95, *, simultaneous: str | None = None, top: int | None = None
    ) -> Any:
        """Return the table of :meth:`to_arrow` as a pandas.DataFrame; same arguments."""
        return _as_pandas(self.to_arrow(level, simultaneous=simultaneous, top=top))

    def to_polars(
        self, level: float = 0.95, *, simultaneous: str | None = None, top: int | None = None
    ) -> Any:
        """Return the table of :meth:`to_arrow` as a polars.DataFrame; same arguments."""
        return _as_polars(self.to_arrow(level, simultaneous=simultaneous, top=top))


class WithGroups(WithSimultaneous):
    """A result with the rows of several groups, which have intervals."""

    __slots__ = ()

    def to_records(
        self,
        level: float = 0.95,
        *,
        simultaneous: str | None = None,
        over: str = "all",
        top: int | None = None,
    ) -> list[dict[str, Any]]:
        """List one dictionary for each row."""
        raise NotImplementedError

    def to_arrow(
        self,
        level: float = 0.95,
        *,
        simultaneous: str | None = None,
        over: str = "all",
        top: int | None = None,
    ) -> Any:
        """Return the rows of :meth:`to_records` as a :class:`pyarrow.Table`.

        Parameters
        ----------
        level, simultaneous, over, top
            As for :meth:`to_records`.

        Returns
        -------
        pyarrow.Table
            As of :meth:`turnout.Interval.to_arrow`.

        Raises
        ------
        MissingExtraError
            If pyarrow is not installed.
        InvalidTypeError, InvalidValueError
            As :meth:`to_records`.
        """
        return self._as_arrow(self.to_records(level, simultaneous=simultaneous, over=over, top=top))

    def to_pandas(
        self,
        level: float = 0.95,
        *,
        simultaneous: str | None = None,
        over: str = "all",
        top: int | None = None,
    ) -> Any:
        """Return the table of :meth:`to_arrow` as a pandas.DataFrame; same arguments."""
        return _as_pandas(self.to_arrow(level, simultaneous=simultaneous, over=over, top=top))

    def to_polars(
        self,
        level: float = 0.95,
        *,
        simultaneous: str | None = None,
        over: str = "all",
        top: int | None = None,
    ) -> Any:
        """Return the table of :meth:`to_arrow` as a polars.DataFrame; same arguments."""
        return _as_polars(self.to_arrow(level, simultaneous=simultaneous, over=over, top=top))


class Listing(Tabular):
    """A result with one object for each row; the columns are attributes of the objects."""

    __slots__ = ()

    def _listed(self) -> Iterable[Any]:
        """Return the objects."""
        rows: Iterable[Any] = self.records  # type: ignore[attr-defined]
        return rows

    def to_records(self) -> list[dict[str, Any]]:
        """List one dictionary for each row, for tables and programs.

        Returns
        -------
        list of dict
            One dictionary for each row, with the columns of the table.
        """
        return [{name: getattr(row, name) for name in self._columns} for row in self._listed()]


def fields_of(record: type) -> tuple[str, ...]:
    """List the columns of a table whose rows are a dataclass.

    Examples
    --------
    >>> fields_of(dataclasses.make_dataclass("Record", ["epsilon", "rmse"]))
    ('epsilon', 'rmse')
    """
    return tuple(field.name for field in dataclasses.fields(record))


def records_of(names: Sequence[str], *columns: Any) -> list[dict[str, Any]]:
    """List one dictionary for each row of columns; ``low`` and ``high`` are None if not finite.

    Examples
    --------
    >>> records_of(("label", "low"), ["yes", "no"], np.array([0.5, -np.inf]))
    [{'label': 'yes', 'low': 0.5}, {'label': 'no', 'low': None}]
    """
    lists = []
    for name, column in zip(names, columns, strict=True):
        values = column.tolist() if isinstance(column, np.ndarray) else column
        if name in ("low", "high"):
            values = [value if math.isfinite(value) else None for value in values]
        lists.append(values)
    return [dict(zip(names, row, strict=True)) for row in zip(*lists, strict=True)]


def arrow_columns(
    columns: Mapping[str, Any],
    labels: Sequence[str] = (),
    before: Mapping[str, Any] | None = None,
) -> Any:
    """Build an Arrow table from columns: sequences, or NumPy arrays in which nan means null.

    Where labels are tuples, ``labels`` names a column for each of their parts. Arrow arrays in
    ``before`` come before the others.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.

    Examples
    --------
    >>> arrow_columns({"label": ["yes"], "low": np.array([np.nan])}).to_pylist()
    [{'label': 'yes', 'low': None}]
    >>> arrow_columns({"label": [("f", 1)]}, ["sex", "age"]).to_pylist()
    [{'sex': 'f', 'age': 1}]
    """
    pa, table = require("pyarrow", "cli"), dict(before or {})
    for name, values in columns.items():
        if name == "label" and labels:
            for place, part in enumerate(labels):
                shown = _unlike(part, "label", {*columns, *table}, labels)
                table[shown] = _column("label", [value[place] for value in values])
        elif isinstance(values, np.ndarray):
            table[name] = pa.array(values, pa.float64(), from_pandas=True)
        else:
            table[name] = _column(name, values)
    return pa.table(table)


def _unlike(name: str, kind: str, taken: set[str], others: Sequence[str]) -> str:
    """Return a column name that differs from the existing ones."""
    shown = name
    while shown in taken or (shown != name and shown in others):
        shown = f"{kind}.{shown}"
    return shown


def _column(name: str, values: Sequence[Any]) -> Any:
    """Convert the values of a column to an Arrow array."""
    pa = require("pyarrow", "cli")
    if name == "label":
        mixed = len(set(map(type, values))) > 1
        return _array([str(value) for value in values] if mixed else values)
    if name in _COUNTS:
        return pa.array(values, pa.uint64())
    if name in _TEXTS:
        return pa.array(values, pa.string())
    known = {type(value) for value in values if value is not None}
    if not known or float in known:
        return pa.array([_known(value) for value in values], pa.float64())
    return _array(values)


def _array(values: Sequence[Any]) -> Any:
    """Build an Arrow array, of text where Arrow has no type for the values."""
    pa = require("pyarrow", "cli")
    # What has parts would be a list, which no CSV file holds.
    plain = not any(isinstance(value, (tuple, list)) for value in values)
    try:
        if plain:
            return pa.array(values)
    except (pa.ArrowException, OverflowError):
        pass
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _known(value: Any) -> Any:
    return None if value is None or math.isnan(value) else value


def _as_pandas(table: Any) -> Any:
    require("pandas", "all")
    return table.to_pandas()


def _as_polars(table: Any) -> Any:
    return require("polars", "all").from_arrow(table)


def _row(record: Mapping[str, Any], columns: Sequence[str], groups: Sequence[str]) -> list[Any]:
    return [*(record["group"][name] for name in groups), *(record[name] for name in columns)]


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, (list, tuple)):
        return "; ".join(map(_shown, value))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.5g}"
