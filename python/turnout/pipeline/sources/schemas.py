"""Columns by name, and what type a column has that several files make up."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Any

from turnout._extras import require
from turnout.errors import InvalidTypeError, InvalidValueError

_SHOWN = 12


def is_text(kind: Any) -> bool:
    """Whether an Arrow type holds text, as it is or in a dictionary."""
    return _family(kind) == "text"


def _family(kind: Any) -> str:
    """Name the types that go together."""
    types = require("pyarrow", "cli").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_integer(kind):
        return "integer"
    return "number" if types.is_floating(kind) else str(kind)


def wanted_schema(schema: Any, columns: Sequence[str], name: str) -> Any:
    """Take the wanted columns; each must be there once and hold one value a row.

    Raises
    ------
    InvalidValueError
        If a column is missing, or if several have its name.
    InvalidTypeError
        If a column is nested.
    """
    pa = require("pyarrow", "cli")
    fields = []
    for column in columns:
        count = schema.names.count(column)
        if count > 1:
            raise InvalidValueError(f"{name}: {count} columns are named {column!r}")
        if not count:
            plain = column.strip().casefold()
            like = [other for other in schema.names if other.strip().casefold() == plain]
            hint = f", but one {like[0]!r}" if like else ""
            raise InvalidValueError(
                f"{name}: no column {column!r}{hint}; its columns are {_names(schema.names)}"
            )
        kind = schema.field(column).type
        inner = kind.value_type if pa.types.is_dictionary(kind) else kind
        inner = inner.storage_type if isinstance(inner, pa.BaseExtensionType) else inner
        if pa.types.is_nested(inner):
            raise InvalidTypeError(
                f"{name}: column {column!r} has type {kind}, expected one value a row"
            )
        fields.append(pa.field(column, kind))
    return pa.schema(fields)


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    return f"{shown}, ..." if len(names) > _SHOWN else shown or "none"


def unified(column: str, found: Iterable[tuple[str, Any]], source: str) -> Any:
    """Find the one type for a column of several files.

    Parameters
    ----------
    column, source
        The column, and what messages call the files.
    found
        For each type a file that has it, and the type.

    Raises
    ------
    InvalidTypeError
        If the types do not go together; names two files.
    """
    pa = require("pyarrow", "cli")
    kinds: dict[Any, str] = {}
    for file, kind in found:
        kinds.setdefault(kind, file)
    present = [kind for kind in kinds if not pa.types.is_null(kind)] or list(kinds)
    first = present[0]
    if len(present) == 1:
        return first
    unsigned = [pa.types.is_unsigned_integer(kind) for kind in present]
    for kind in present[1:]:
        if _family(kind) != _family(first) or (pa.uint64() in present and not all(unsigned)):
            raise InvalidTypeError(
                f"{source}: column {column!r} has type {first} in {kinds[first]} and type {kind} "
                f"in {kinds[kind]}"
            )
    match _family(first):
        case "text":
            values = [k.value_type if pa.types.is_dictionary(k) else k for k in present]
            return pa.large_string() if pa.large_string() in values else pa.string()
        case "integer":
            return pa.uint64() if all(unsigned) else pa.int64()
        case "number":
            return pa.float64()
    return first.value_type if pa.types.is_dictionary(first) else first


def as_category(kind: Any) -> Any:
    """Give texts the type of a dictionary; other types stay as they are."""
    pa = require("pyarrow", "cli")
    if not is_text(kind) or pa.types.is_dictionary(kind):
        return kind
    return pa.dictionary(
        pa.int32(), pa.large_string() if kind == pa.large_string() else pa.string()
    )


def target_schema(schema: Any, categories: Container[str]) -> Any:
    """Give the texts of the categories the type of a dictionary."""
    pa = require("pyarrow", "cli")
    return pa.schema(
        [
            pa.field(field.name, as_category(field.type)) if field.name in categories else field
            for field in schema
        ]
    )


def conform(table: Any, schema: Any, name: str) -> Any:
    """Give the columns of a table the order and the types of a schema.

    Raises
    ------
    InvalidTypeError
        If a value does not fit the type.
    """
    pa = require("pyarrow", "cli")
    if table.schema.equals(schema):
        return table
    columns = []
    for field in schema:
        column = table.column(field.name)
        try:
            columns.append(_cast(column, field.type))
        except pa.ArrowException as error:
            raise InvalidTypeError(
                f"{name}: column {field.name!r} has type {column.type} where type {field.type} is "
                f"expected: {error}"
            ) from error
    return pa.Table.from_arrays(columns, schema=schema)


def _cast(column: Any, kind: Any) -> Any:
    pa = require("pyarrow", "cli")
    if column.type == kind:
        return column
    if not pa.types.is_dictionary(kind):
        return column.cast(kind)
    return pa.chunked_array([_dictionary(chunk, kind) for chunk in column.chunks], kind)


def _dictionary(chunk: Any, kind: Any) -> Any:
    """One chunk as a dictionary of the given type; its own dictionary is kept, if it has one."""
    pa = require("pyarrow", "cli")
    if pa.types.is_null(chunk.type):
        return pa.nulls(len(chunk), kind)
    if not pa.types.is_dictionary(chunk.type):
        chunk = chunk.cast(kind.value_type).dictionary_encode()
    indices = chunk.indices.cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(indices, chunk.dictionary.cast(kind.value_type))
