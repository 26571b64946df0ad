"""Results as tables: of Arrow, pandas and polars, and in a notebook."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from turnout._extras import require

__all__ = ["Tabular", "arrow_table"]

#: So many rows are shown in a notebook.
_SHOWN: Final = 20

#: Whole numbers; all others are floating-point, labels or text.
_COUNTS: Final = frozenset({"nodes", "received", "coordinate"})
_TEXTS: Final = frozenset({"reason"})


class Tabular:
    """A result whose :meth:`to_records` lists dictionaries: it is a table too."""

    __slots__ = ()

    #: The columns of the table, in order; those of groups come before them.
    _columns: tuple[str, ...]

    def to_records(self, level: float = 0.95, **options: Any) -> list[dict[str, Any]]:
        """List the rows."""
        raise NotImplementedError

    @property
    def _group_columns(self) -> tuple[str, ...]:
        return ()

    def to_arrow(self, level: float = 0.95, **options: Any) -> Any:
        """Give the rows of :meth:`to_records` as a :class:`pyarrow.Table`.

        Parameters
        ----------
        level, **options
            As for :meth:`to_records`.

        Returns
        -------
        pyarrow.Table
            The columns of the groups, if there are any, then those of :meth:`to_records`, with null
            where a number is not known. A column of the groups that has the name of one of these is
            called ``group.name``. Labels of several types are written as text, and so are values
            that Arrow has no type for: tuples, or integers of more than 64 bits.

        Raises
        ------
        MissingExtraError
            If pyarrow is not installed.
        InvalidTypeError, InvalidValueError
            As :meth:`to_records`.
        """
        records = self.to_records(level, **options)
        return arrow_table(records, self._columns, self._group_columns)

    def to_pandas(self, level: float = 0.95, **options: Any) -> Any:
        """Give the rows of :meth:`to_records` as a :class:`pandas.DataFrame`.

        Parameters
        ----------
        level, **options
            As for :meth:`to_records`.

        Returns
        -------
        pandas.DataFrame
            The columns of :meth:`to_arrow`.

        Raises
        ------
        MissingExtraError
            If pyarrow or pandas is not installed.
        InvalidTypeError, InvalidValueError
            As :meth:`to_records`.
        """
        require("pandas", "all")
        return self.to_arrow(level, **options).to_pandas()

    def to_polars(self, level: float = 0.95, **options: Any) -> Any:
        """Give the rows of :meth:`to_records` as a :class:`polars.DataFrame`.

        Parameters
        ----------
        level, **options
            As for :meth:`to_records`.

        Returns
        -------
        polars.DataFrame
            The columns of :meth:`to_arrow`.

        Raises
        ------
        MissingExtraError
            If pyarrow or polars is not installed.
        InvalidTypeError, InvalidValueError
            As :meth:`to_records`.
        """
        return require("polars", "all").from_arrow(self.to_arrow(level, **options))

    def _repr_html_(self) -> str:
        """Show the first rows in a notebook."""
        records = self.to_records()
        names = [*self._group_columns, *self._columns]
        rows = [
            [_shown(value) for value in _row(record, self._columns, self._group_columns)]
            for record in records[:_SHOWN]
        ]
        head = "".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows
        )
        more = len(records) - len(rows)
        note = f"<p>and {more:,} more rows</p>" if more else ""
        caption = f"<caption>{html.escape(repr(self))}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def arrow_table(
    records: Sequence[Mapping[str, Any]], columns: Sequence[str], groups: Sequence[str] = ()
) -> Any:
    """Make an Arrow table of records, with columns for the groups of each before the others.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.

    Examples
    --------
    >>> arrow_table([{"label": "yes", "count": 3.0}], ["label", "count"]).to_pylist()
    [{'label': 'yes', 'count': 3.0}]
    """
    pa = require("pyarrow", "cli")
    table: dict[str, Any] = {}
    for name in groups:
        shown = name
        while shown in columns or shown in table or (shown != name and shown in groups):
            shown = f"group.{shown}"
        table[shown] = _array(pa, [record["group"][name] for record in records])
    for name in columns:
        values = [record[name] for record in records]
        if name == "label":
            if len({type(value) for value in values}) > 1:
                values = [str(value) for value in values]
            table[name] = _array(pa, values)
        elif name in _COUNTS:
            table[name] = pa.array(values, pa.uint64())
        elif name in _TEXTS:
            table[name] = pa.array(values, pa.string())
        else:
            known = [None if value is None or math.isnan(value) else value for value in values]
            table[name] = pa.array(known, pa.float64())
    return pa.table(table)


def _array(pa: Any, values: list[Any]) -> Any:
    """Make an Arrow array, of text where Arrow has no type for the values."""
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])


def _row(record: Mapping[str, Any], columns: Sequence[str], groups: Sequence[str]) -> list[Any]:
    return [*(record["group"][name] for name in groups), *(record[name] for name in columns)]


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.5g}"
