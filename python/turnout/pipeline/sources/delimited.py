"""CSV files, which are read in order and checked against the rows that the core counted."""

from __future__ import annotations

import codecs
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Final

from turnout import _arguments
from turnout._extras import require
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.pipeline.sources.base import BLOCK, Block, blocks_of_stream
from turnout.pipeline.sources.filed import FileSource, own_names, with_partitions
from turnout.pipeline.sources.files import DataFile
from turnout.pipeline.sources.row_text import (
    OTHER_SEPARATOR,
    SEPARATORS,
    Layout,
    Stretch,
    layout_of,
    refused,
    whole_rows,
)
from turnout.pipeline.threads import in_flight, processors

#: How a tab can be written on a command line.
_TAB: Final = {"\\t": "\t", "tab": "\t"}
#: Threads that parse, beside the one that reads and counts.
_PARSERS: Final = 4


class CsvSource(FileSource):
    """CSV and TSV files, perhaps compressed, with a header line; every column is text.

    An empty field is null, also between quotes; fields may hold line ends between quotes. They can
    only be read from their beginning.

    Parameters
    ----------
    name
        What messages call them.
    files
        The files in order.
    block_rows
        Rows of a block.
    separator, encoding
        What stands between two fields, and how text is written: of all files alike. By default each
        file says so itself, as :func:`layout_of` reads it.
    """

    texts = True

    def __init__(
        self,
        name: str,
        files: Sequence[DataFile],
        block_rows: int = BLOCK,
        *,
        separator: str | None = None,
        encoding: str | None = None,
    ) -> None:
        separator, encoding = _checked_separator(separator), _checked_encoding(encoding)
        self._layouts = [layout_of(file, separator, encoding) for file in files]
        stated = "" if separator is None and encoding is None else f"{separator!r}/{encoding}"
        super().__init__(name, files, list(map(_schema, self._layouts)), block_rows, stated=stated)
        self._rows: dict[str, int] = {}

    @property
    def file_rows(self) -> Mapping[str, int]:
        """The rows of each file, once all have been read to their ends."""
        return self._rows

    def _checked(self, columns: Sequence[str], categories: Container[str] = ()) -> Any:
        try:
            return super()._checked(columns, categories)
        except InvalidValueError as error:
            layouts = self._layouts
            joined = any(set("".join(each.header)) & {*SEPARATORS} for each in layouts)
            if not joined or isinstance(error, InvalidTypeError):
                raise
            raise InvalidValueError(f"{error}; {OTHER_SEPARATOR}") from error

    def _blocks(self, checked: Any, skip: Container[int]) -> Iterator[Block]:
        return blocks_of_stream(self._tables(checked), self, skip)

    def _tables(self, schema: Any) -> Iterator[Any]:
        rows = dict.fromkeys((file.shown for file in self._files), 0)

        def parsed(item: tuple[DataFile, Layout, Stretch]) -> tuple[DataFile, Any]:
            return item[0], _table(*item, schema)

        threads = min(processors(), _PARSERS)
        for file, table in in_flight(parsed, self._stretches(), threads):
            # Rows that were written meanwhile: nobody looked whose they are.
            file.check_unchanged()
            rows[file.shown] += table.num_rows
            yield table
        self._rows = rows

    def _stretches(self) -> Iterator[tuple[DataFile, Layout, Stretch]]:
        for file, layout in zip(self._files, self._layouts, strict=True):
            file.check_unchanged()
            for stretch in whole_rows(file, layout):
                yield file, layout, stretch
            file.check_unchanged()


def _schema(layout: Layout) -> Any:
    pa = require("pyarrow", "cli")
    return pa.schema([pa.field(name, pa.string()) for name in layout.header])


def _checked_separator(separator: str | None) -> str | None:
    if separator is None:
        return None
    _arguments.instance("separator", separator, str, "one character")
    plain = _TAB.get(separator, separator)
    if len(plain) != 1 or not plain.isascii() or plain in '"\r\n\0':
        raise _arguments.invalid(
            "separator must be one ASCII character, not a quote and not a line end", separator
        )
    return plain


def _checked_encoding(encoding: str | None) -> str | None:
    if encoding is None:
        return None
    _arguments.instance("encoding", encoding, str, "the name of an encoding")
    try:
        # An encoding of something else than text is refused here.
        b" ".decode(encoding, "ignore")
        return codecs.lookup(encoding).name
    except (LookupError, ValueError) as error:
        raise _arguments.invalid(
            "encoding must be one that Python knows, such as 'utf-8', 'cp1252' or 'utf-16'",
            encoding,
        ) from error


def _table(file: DataFile, layout: Layout, stretch: Stretch, schema: Any) -> Any:
    """Read the wanted columns of some rows."""
    pa = require("pyarrow", "cli")
    names = own_names(file, schema)
    places = [layout.header.index(name) for name in names]
    # Without a column of its own to read, its rows still count.
    kinds = {str(place): schema.field(layout.header[place]).type for place in places}
    try:
        table = _parsed(stretch.data, layout, kinds or {"0": pa.string()})
    except pa.ArrowException:
        # Not the text of the error, which quotes the whole row.
        table = None
    if table is None or table.num_rows != stretch.rows:
        raise refused(file, layout, stretch, f"the columns {_arguments.listed(names)}")
    own = table.rename_columns(names or ["0"])
    return with_partitions(own, file, table.num_rows, schema)


def _parsed(data: memoryview, layout: Layout, kinds: Mapping[str, Any]) -> Any:
    pa, arrow_csv = require("pyarrow", "cli"), require("pyarrow.csv", "cli")
    return arrow_csv.read_csv(
        pa.BufferReader(data),
        read_options=arrow_csv.ReadOptions(
            # The places, because several columns may have one name.
            column_names=[str(place) for place in range(len(layout.header))],
            block_size=len(data) + 1,
            use_threads=False,
        ),
        parse_options=arrow_csv.ParseOptions(
            delimiter=layout.separator,
            newlines_in_values=True,
            ignore_empty_lines=len(layout.header) > 1,
        ),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=list(kinds),
            column_types=kinds,
            null_values=[""],
            strings_can_be_null=True,
        ),
    )
