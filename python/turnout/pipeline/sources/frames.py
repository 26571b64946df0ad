"""Tables in memory, whatever library they are of."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from turnout import _arguments
from turnout._extras import require
from turnout.errors import InvalidTypeError
from turnout.pipeline.sources.base import BLOCK, Block, Source, slices
from turnout.pipeline.sources.datasets import from_ray, is_ray
from turnout.pipeline.sources.schemas import wanted_schema
from turnout.pipeline.sources.streams import StreamSource

_QUERY_ROWS: Final = 2**17


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
    block_rows
        Rows of a block.
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
        block_rows: int = BLOCK,
        fixed: bool = False,
    ) -> None:
        self.name = name
        self.computed = not fixed
        self.rows = rows
        self.block_rows = block_rows
        self._names = list(names)
        self._convert = convert

    @cached_property
    def schema(self) -> Any:
        """The columns; every one is looked at for it."""
        return self._converted(self._names).schema

    def blocks(
        self,
        columns: Sequence[str],
        *,
        skip: Container[int] = (),
        categories: Container[str] = (),
    ) -> Iterator[Block]:
        """Cut the table into slices."""
        return slices(self._checked(columns), self, skip)

    def check(self, columns: Sequence[str]) -> None:
        """Check that columns can be converted."""
        self._checked(columns)

    def _checked(self, columns: Sequence[str]) -> Any:
        pa = require("pyarrow", "cli")
        # The names first: a column that is not wanted need not be convertible.
        names = pa.schema([pa.field(name, pa.null()) for name in self._names])
        wanted_schema(names, columns, self.name)
        table = self._converted(list(columns))
        wanted_schema(table.schema, columns, self.name)
        return table

    def _converted(self, columns: list[str]) -> Any:
        pa = require("pyarrow", "cli")
        try:
            return self._convert(columns)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InvalidTypeError(
                f"{self.name}: columns {', '.join(map(repr, columns))} cannot be made Arrow "
                f"columns: {error}"
            ) from error


def _of(library: str, *kinds: str) -> Callable[[Any], bool]:
    """Whether a value is of a class of a library that may not be installed."""

    def check(value: Any) -> bool:
        module = sys.modules.get(library)
        return module is not None and isinstance(
            value, tuple(kind for name in kinds if (kind := getattr(module, name, None)))
        )

    return check


def _from_arrow(data: Any, block_rows: int) -> Source:
    pa = require("pyarrow", "cli")
    table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
    return TableSource(
        "the table",
        table.column_names,
        table.num_rows,
        table.select,
        block_rows=block_rows,
        fixed=True,
    )


def _from_reader(data: Any, block_rows: int) -> Source:
    return StreamSource(
        "the stream of record batches", data.schema, lambda _: data, once=True,
        block_rows=block_rows,
    )  # fmt: skip


def _from_dataset(data: Any, block_rows: int) -> Source:
    def run(columns: list[str]) -> Iterable[Any]:
        return data.scanner(  # type: ignore[no-any-return]
            columns=columns, batch_readahead=4, fragment_readahead=1
        ).to_batches()

    files = getattr(data, "files", None)
    name = "the Arrow data set" if files is None else f"the Arrow data set ({len(files):,} files)"
    return StreamSource(name, data.schema, run, block_rows=block_rows)


def _from_pandas(data: Any, block_rows: int) -> Source:
    pa = require("pyarrow", "cli")

    def convert(columns: list[str]) -> Any:
        # A column at a time: a table of all of them would copy a frame of one type.
        return pa.table({name: pa.array(data[name], from_pandas=True) for name in columns})

    names = [str(name) if isinstance(name, str) else repr(name) for name in data.columns]
    return TableSource("the pandas frame", names, len(data), convert, block_rows=block_rows)


def _from_polars(data: Any, block_rows: int) -> Source:
    return TableSource(
        "the polars frame",
        data.columns,
        data.height,
        lambda columns: _polars_table(data.select(columns)),
        block_rows=block_rows,
    )


def _polars_table(frame: Any) -> Any:
    # Polars 1.2 and older export no stream.
    if not hasattr(frame, "__arrow_c_stream__"):
        return frame.to_arrow()
    return require("pyarrow", "cli").table(frame)


def _from_lazy(data: Any, block_rows: int) -> Source:
    def run(columns: list[str]) -> Iterable[Any]:
        chosen = data.select(columns)
        if hasattr(chosen, "collect_batches"):
            batches = chosen.collect_batches(chunk_size=_QUERY_ROWS, maintain_order=True, lazy=True)
        else:
            batches = [chosen.collect()]
        return map(_polars_table, batches)

    polars = sys.modules["polars"]
    schema = _polars_table(polars.DataFrame(schema=data.collect_schema())).schema
    return StreamSource("the polars query", schema, run, block_rows=block_rows)


def _from_duckdb(data: Any, block_rows: int) -> Source:
    def run(columns: list[str]) -> Iterable[Any]:
        # Not ColumnExpression, which in older releases takes a point or a quote for syntax.
        quoted = (name.replace('"', '""') for name in columns)
        chosen = data.project(", ".join(f'"{name}"' for name in quoted))
        return _duckdb_reader(chosen)  # type: ignore[no-any-return]

    schema = _duckdb_reader(data.limit(0)).schema
    return StreamSource("the DuckDB relation", schema, run, block_rows=block_rows)


def _duckdb_reader(relation: Any) -> Any:
    if hasattr(relation, "to_arrow_reader"):
        return relation.to_arrow_reader(_QUERY_ROWS)
    return relation.fetch_arrow_reader(_QUERY_ROWS)


def _from_narwhals(data: Any, block_rows: int) -> Source | None:
    nw = require("narwhals", "cli")
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return TableSource(
            f"the {type(data).__name__}",
            frame.columns,
            len(frame),
            lambda columns: frame.select(columns).to_arrow(),
            block_rows=block_rows,
        )
    if not isinstance(frame, nw.LazyFrame):
        return None

    def run(columns: list[str]) -> Iterable[Any]:
        return [frame.select(columns).collect().to_arrow()]

    schema = frame.head(0).collect().to_arrow().schema
    return StreamSource(f"the {type(data).__name__}", schema, run, block_rows=block_rows)


_KINDS: Final[list[tuple[Callable[[Any], bool], Callable[[Any, int], Source]]]] = [
    (_of("pyarrow", "Table", "RecordBatch"), _from_arrow),
    (_of("pyarrow", "RecordBatchReader"), _from_reader),
    (_of("pyarrow.dataset", "Dataset"), _from_dataset),
    (_of("pandas", "DataFrame"), _from_pandas),
    (_of("polars", "DataFrame"), _from_polars),
    (_of("polars", "LazyFrame"), _from_lazy),
    (_of("duckdb", "DuckDBPyRelation"), _from_duckdb),
    (is_ray, from_ray),
]


def open_frame(data: Any, block_rows: int = BLOCK) -> Source | None:
    """Open a frame of any library; None if it is none.

    Raises
    ------
    InvalidTypeError
        If it is a single column.
    """
    for is_one, opener in _KINDS:
        if is_one(data):
            return opener(data, block_rows)
    found = _from_narwhals(data, block_rows)
    if found is not None:
        return found
    if hasattr(data, "__arrow_c_stream__"):
        pa = require("pyarrow", "cli")
        try:
            reader = pa.RecordBatchReader.from_stream(data)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InvalidTypeError(
                f"data must be a table, got {type(data).__name__}: {error}"
            ) from error
        return _from_reader(reader, block_rows)
    if hasattr(data, "__arrow_c_array__"):
        raise InvalidTypeError(f"data must be a table, got one column: {_arguments.shown(data)}")
    return None
