"""Data sets of Ray, which are told by what they can do: nothing of Ray is imported here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from turnout._extras import require
from turnout.errors import InvalidValueError
from turnout.pipeline.sources.base import Source
from turnout.pipeline.sources.streams import StreamSource

#: What messages call one.
RAY_DATASET: Final = "the Ray data set"

_BATCH_ROWS: Final = 2**17


def is_ray(data: Any) -> bool:
    """Tell whether data are a data set of Ray."""
    return hasattr(data, "iter_batches") and hasattr(data, "select_columns")


def from_ray(data: Any, block_rows: int) -> Source:
    """Read a data set as a query, in the order of its rows.

    Raises
    ------
    InvalidValueError
        If the data set is empty, so that Ray does not know its columns.
    """
    dataset, schema = with_schema(data)

    def run(columns: list[str]) -> Iterable[Any]:
        with in_order(dataset.context, progress=False):
            yield from dataset.select_columns(columns).iter_batches(
                batch_size=_BATCH_ROWS, batch_format="pyarrow"
            )

    return StreamSource(RAY_DATASET, schema, run, block_rows=block_rows)


def with_schema(dataset: Any) -> tuple[Any, Any]:
    """Give a data set of Arrow tables, and its Arrow schema.

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
            dataset = dataset.map_batches(_same, batch_format="pyarrow", batch_size=None)
            schema = dataset.schema()
    if schema is None:
        raise InvalidValueError(f"{RAY_DATASET} is empty and has no schema")
    return dataset, schema.base_schema


def _same(table: Any) -> Any:
    return table


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
