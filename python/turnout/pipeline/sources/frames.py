"""Tables in memory, from any library, and streams of Arrow batches."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from turnout import _arguments
from turnout._columns import unquoted
from turnout._extras import require
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.pipeline.sources.base import (
    BLOCK,
    Block,
    Source,
    TableBlock,
    blocks_of_stream,
    conform,
    plain_schema,
    wanted_schema,
)


class StreamSource(Source):
    """A source of batches that can be read repeatedly, or once.

    Parameters
    ----------
    name
        What messages call it.
    schema
        Its columns.
    run
        Computes some columns, as record batches or tables in a fixed order; other columns may be
        in them.
    once
        Whether it can be read once only; else it is computed anew each time.
    """

    schema: Any = None

    def __init__(
        self,
        name: str,
        schema: Any,
        run: Callable[[list[str]], Iterable[Any]],
        *,
        once: bool = False,
    ) -> None:
        self.name = name
        self.schema = plain_schema(schema)
        self.repeatable, self.computed = not once, not once
        self._run = run
        self._used = False

    def _blocks(self, checked: Any, skip: Container[int]) -> Iterator[Block]:
        """Cut the stream into blocks; a source that can be read once is then used up."""
        if self._used and not self.repeatable:
            raise InvalidValueError(
                f"{self.name} can be read only once, and was already read: open it again, "
                "or pass a file or a table"
            )
        self._used = True
        return blocks_of_stream(_selected(self._run, checked, self.name), self, skip)


def _selected(run: Callable[[list[str]], Iterable[Any]], schema: Any, name: str) -> Iterator[Any]:
    """Select the wanted columns of each batch, in the types of the first."""
    pa = require("pyarrow", "cli")
    with unquoted(
        CorruptDataError,
        f"{name}: its rows cannot be read; what its reader says of them may quote one and is not "
        "shown: read them by themselves to see it",
    ):
        for number, batch in enumerate(run(list(schema.names))):
            if not isinstance(batch, (pa.RecordBatch, pa.Table)):
                raise _arguments.mistyped(
                    f"{name}: batch {number} must be a pyarrow RecordBatch or Table",
                    _arguments.Private(batch),
                )
            wanted_schema(batch.schema, schema.names, f"{name}, batch {number}")
            whole = isinstance(batch, pa.Table)
            table = batch if whole else pa.Table.from_batches([batch])
            table = table.select(schema.names)
            # Runs of values that are written out take memory.
            for start in range(0, table.num_rows, BLOCK):
                part = table.slice(start, BLOCK)
                yield conform(part, schema, f"{name}, batch {number}")


def _from_iterator(data: Iterator[Any]) -> Source:
    """Open an iterator of record batches, and read the first of them now."""
    pa = require("pyarrow", "cli")
    with unquoted(
        CorruptDataError,
        f"data: {type(data).__name__} gives no first batch; its error may quote a value "
        "and is not shown",
    ):
        first = next(data, None)
    if first is None:
        raise InvalidValueError("data must give at least one record batch, got an empty iterator")
    if not isinstance(first, (pa.RecordBatch, pa.Table)):
        raise _arguments.mistyped(
            "data must give pyarrow record batches or tables", _arguments.Private(first)
        )
    batches = itertools.chain([first], data)
    return StreamSource(
        "the iterator of record batches", first.schema, lambda _: batches, once=True
    )


#: What messages call one.
RAY_DATASET: Final = "the Ray data set"

_QUERY_ROWS: Final = 2**17


def _from_ray(data: Any) -> Source:
    """Read a data set as a query, in row order."""
    dataset, schema = with_schema(data)

    def run(columns: list[str]) -> Iterable[Any]:
        with in_order(dataset.context, progress=False):
            yield from dataset.select_columns(columns).iter_batches(
                batch_size=_QUERY_ROWS, batch_format="pyarrow"
            )

    return StreamSource(RAY_DATASET, schema, run)


def with_schema(dataset: Any) -> tuple[Any, Any]:
    """Return a data set of Arrow tables, and its Arrow schema.

    Raises
    ------
    InvalidValueError
        If the data set is empty, so that Ray does not know its columns.
    """
    pa = require("pyarrow", "ray")
    with in_order(dataset.context, progress=False):
        schema = dataset.schema()
        if schema is not None and not isinstance(schema.base_schema, pa.Schema):
            # Of pandas: Ray knows no Arrow types of texts there.
            dataset = dataset.map_batches(
                lambda table: table, batch_format="pyarrow", batch_size=None
            )
            schema = dataset.schema()
    if schema is None:
        raise InvalidValueError(f"{RAY_DATASET} is empty and has no schema")
    return dataset, schema.base_schema


@contextlib.contextmanager
def in_order(context: Any, progress: bool) -> Iterator[None]:
    """Let Ray keep the order of the rows, raise what functions raise, and be quiet."""
    settings = [
        (context.execution_options, "preserve_order", True),
        (context, "raise_original_map_exception", True),
    ]
    if not progress:
        settings += [
            (context, "enable_progress_bars", False),
            (context, "print_on_execution_start", False),
        ]
    before = [getattr(place, name) for place, name, _ in settings]
    for place, name, value in settings:
        setattr(place, name, value)
    try:
        yield
    finally:
        for (place, name, _), value in zip(settings, before, strict=True):
            setattr(place, name, value)


class TableSource(Source):
    """A table in memory.

    Parameters
    ----------
    name
        What messages call it.
    names
        Its columns.
    rows
        How many rows it has.
    convert
        Makes an Arrow table of some columns, without a copy where Arrow allows.
    fixed
        Whether nobody can change the table in place.
    """

    def __init__(
        self,
        name: str,
        names: Sequence[str],
        rows: int,
        convert: Callable[[list[str]], Any],
        *,
        fixed: bool = False,
    ) -> None:
        self.name = name
        self.computed = not fixed
        self.rows = rows
        self._names = list(names)
        self._convert = convert

    @cached_property
    def schema(self) -> Any:
        """The columns; every one is looked at for it."""
        return plain_schema(self._converted(self._names).schema)

    def _blocks(self, checked: Any, skip: Container[int]) -> Iterator[Block]:
        """Cut the table into slices without copying; only runs of values are expanded."""
        (table, schema), size = checked, self.block_rows
        for index in range(-(-table.num_rows // size)):
            if index not in skip:
                part = conform(table.slice(index * size, size), schema, self.name)
                yield TableBlock(index, part.num_rows, part, first_row=index * size)

    def _checked(self, columns: Sequence[str], categories: Container[str] = ()) -> Any:
        pa = require("pyarrow", "cli")
        # The names first: a column that is not wanted need not be convertible.
        names = pa.schema([pa.field(name, pa.null()) for name in self._names])
        wanted_schema(names, columns, self.name)
        table = self._converted(list(columns))
        if columns and table.num_rows != self.rows:
            raise CorruptDataError(
                f"{self.name}: has {table.num_rows:,} rows where there were {self.rows:,}"
            )
        return table, wanted_schema(table.schema, columns, self.name)

    def _converted(self, columns: list[str]) -> Any:
        with unquoted(
            InvalidTypeError,
            f"{self.name}: columns {', '.join(map(repr, columns))} cannot be made Arrow columns: "
            "expected values of one type in each, and not text beside numbers",
        ):
            return self._convert(columns)


def _from_arrow(data: Any) -> Source:
    pa = require("pyarrow", "cli")
    table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
    return TableSource("the table", table.column_names, table.num_rows, table.select, fixed=True)


def _from_reader(data: Any) -> Source:
    return StreamSource("the stream of record batches", data.schema, lambda _: data, once=True)


def _from_dataset(data: Any) -> Source:
    def run(columns: list[str]) -> Iterable[Any]:
        return data.scanner(  # type: ignore[no-any-return]
            columns=columns, batch_readahead=4, fragment_readahead=1
        ).to_batches()

    files = getattr(data, "files", None)
    name = "the Arrow data set" if files is None else f"the Arrow data set ({len(files):,} files)"
    return StreamSource(name, data.schema, run)


def _from_pandas(data: Any) -> Source:
    pa = require("pyarrow", "cli")

    # A name need not be text, and is no key then.
    names = [str(name) for name in data.columns]

    def convert(columns: list[str]) -> Any:
        # A column at a time: a table of all of them would copy a frame of one type.
        found = {name: data.iloc[:, names.index(name)] for name in columns}
        return pa.table({name: pa.array(each, from_pandas=True) for name, each in found.items()})

    return TableSource("the pandas frame", names, len(data), convert)


def _from_columns(data: Mapping[Any, Any]) -> Source:
    """Read a dictionary of columns."""
    pa = require("pyarrow", "cli")
    columns = list(data.values())
    names = [str(name) for name in data]
    for name, column in zip(names, columns, strict=True):
        if isinstance(column, (str, bytes, Mapping)) or not hasattr(column, "__len__"):
            raise InvalidTypeError(
                f"{_COLUMNS}: {name!r} must be a column, a list or an array, got "
                f"{type(column).__name__}"
            )
    lengths = dict(zip(names, map(len, columns), strict=True))
    rows = next(iter(lengths.values()), 0)
    for name, length in lengths.items():
        if length != rows:
            raise InvalidValueError(
                f"{_COLUMNS}: columns must have one length, got {rows:,} of {names[0]!r} and "
                f"{length:,} of {name!r}"
            )

    def convert(wanted: list[str]) -> Any:
        return pa.table({name: _column(columns[names.index(name)]) for name in wanted})

    return TableSource(_COLUMNS, names, rows, convert)


#: What messages call one.
_COLUMNS: Final = "the dictionary of columns"


def _column(values: Any) -> Any:
    pa = require("pyarrow", "cli")
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    return pa.array(values, from_pandas=True)


def _from_rows(data: Sequence[Any]) -> Source | None:
    """Read a list of dictionaries, one for each row; absent keys become missing values."""
    if not data or not all(isinstance(row, Mapping) for row in data):
        return None
    pa = require("pyarrow", "cli")
    keys = list(dict.fromkeys(itertools.chain.from_iterable(data)))
    names = [str(key) for key in keys]

    def convert(wanted: list[str]) -> Any:
        found = {name: keys[names.index(name)] for name in wanted}
        return pa.table(
            {
                name: pa.array([row.get(key) for row in data], from_pandas=True)
                for name, key in found.items()
            }
        )

    return TableSource("the list of dictionaries", names, len(data), convert)


def _from_polars(data: Any) -> Source | None:
    # Polars before 1.3 exports no stream.
    if not hasattr(data, "__arrow_c_stream__"):
        return _from_narwhals(data)
    return TableSource(
        "the polars frame",
        data.columns,
        data.height,
        lambda columns: require("pyarrow", "cli").table(data.select(columns)),
    )


def _from_lazy(data: Any) -> Source | None:
    # Older polars gives the answer to a query as a whole.
    if not hasattr(data, "collect_batches"):
        return _from_narwhals(data)
    pa = require("pyarrow", "cli")

    def run(columns: list[str]) -> Iterable[Any]:
        chosen = data.select(columns)
        return map(
            pa.table,
            chosen.collect_batches(chunk_size=_QUERY_ROWS, maintain_order=True, lazy=True),
        )

    return StreamSource("the polars query", pa.table(data.collect_schema().to_frame()).schema, run)


def _from_duckdb(data: Any) -> Source:
    def run(columns: list[str]) -> Iterable[Any]:
        # Not ColumnExpression, which before release 2 takes a point or a quote for syntax.
        quoted = (name.replace('"', '""') for name in columns)
        chosen = data.project(", ".join(f'"{name}"' for name in quoted))
        return _duckdb_reader(chosen)  # type: ignore[no-any-return]

    return StreamSource("the DuckDB relation", _duckdb_reader(data.limit(0)).schema, run)


def _duckdb_reader(relation: Any) -> Any:
    if hasattr(relation, "to_arrow_reader"):
        return relation.to_arrow_reader(_QUERY_ROWS)
    # Its name in DuckDB before 1.5.
    return relation.fetch_arrow_reader(_QUERY_ROWS)


def _from_narwhals(data: Any) -> Source | None:
    nw = require("narwhals", "cli")
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return TableSource(
            f"the {type(data).__name__}",
            frame.columns,
            len(frame),
            lambda columns: frame.select(columns).to_arrow(),
        )
    if not isinstance(frame, nw.LazyFrame):
        return None

    def run(columns: list[str]) -> Iterable[Any]:
        return [frame.select(columns).collect().to_arrow()]

    schema = frame.head(0).collect().to_arrow().schema
    return StreamSource(f"the {type(data).__name__}", schema, run)


#: The classes of data, of libraries that may not be installed too, and what opens them.
_KINDS: Final[list[tuple[str, str, Callable[[Any], Source | None]]]] = [
    ("pyarrow", "Table", _from_arrow),
    ("pyarrow", "RecordBatch", _from_arrow),
    ("pyarrow", "RecordBatchReader", _from_reader),
    ("pyarrow.dataset", "Dataset", _from_dataset),
    ("pandas", "DataFrame", _from_pandas),
    ("polars", "DataFrame", _from_polars),
    ("polars", "LazyFrame", _from_lazy),
    ("duckdb", "DuckDBPyRelation", _from_duckdb),
    ("collections.abc", "Mapping", _from_columns),
    ("builtins", "list", _from_rows),
    ("builtins", "tuple", _from_rows),
]


def open_frame(data: Any) -> Source | None:
    """Open a frame of any library, or a stream; return None for other objects.

    Raises
    ------
    InvalidTypeError
        If it is a stream of something else than tables.
    InvalidValueError
        If it is an iterator that gives nothing.
    """
    for library, kind, opener in _KINDS:
        if isinstance(data, getattr(sys.modules.get(library), kind, ())):
            with unquoted(
                InvalidTypeError,
                f"data: the columns of {type(data).__name__} cannot be read; the error "
                "may quote a value and is not shown",
            ):
                return opener(data)
    if hasattr(data, "iter_batches") and hasattr(data, "select_columns"):
        return _from_ray(data)
    with unquoted(InvalidTypeError, f"data must be a table, got {type(data).__name__}"):
        found = _from_narwhals(data)
    if found is not None:
        return found
    if hasattr(data, "__arrow_c_stream__"):
        pa = require("pyarrow", "cli")
        with unquoted(InvalidTypeError, f"data must be a table, got {type(data).__name__}"):
            return _from_reader(pa.RecordBatchReader.from_stream(data))
    return _from_iterator(data) if isinstance(data, Iterator) else None
