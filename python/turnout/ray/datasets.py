"""Data sets of Ray as sources of rows."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from turnout._extras import require
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.pipeline.columns import digested
from turnout.pipeline.sources.base import BLOCK, Block, Source, cut
from turnout.pipeline.sources.frames import RAY_DATASET, in_order, with_schema


@dataclass(frozen=True)
class Piece:
    """A range of rows of a table in Ray's object store.

    Parameters
    ----------
    reference
        The table.
    start, rows
        Its rows from ``start`` on.
    """

    reference: Any = field(repr=False)
    start: int
    rows: int


@dataclass(frozen=True, eq=False)
class ReferencedBlock(Block):
    """A block whose rows are in Ray's object store.

    Parameters
    ----------
    index, rows, first_row, left_out
        As in every block.
    columns
        The columns that are wanted.
    pieces
        Where the rows are, in their order.
    present
        The columns that are there.
    digest
        What :func:`digested` gave when the rows were first looked at.
    """

    columns: tuple[str, ...]
    pieces: tuple[Piece, ...]
    present: tuple[str, ...]
    digest: bytes | None = field(default=None, repr=False)

    @property
    def references(self) -> tuple[Any, ...]:
        """The tables; a task with them as arguments runs where they are."""
        return tuple(piece.reference for piece in self.pieces)

    def read(self) -> Any:
        """Return the rows, fetched from other machines if necessary.

        Raises
        ------
        CorruptDataError
            If they are not what they were when the data set was materialised: rows that were lost
            with a machine, and that Ray made again, must be the same.
        """
        table = self.whole()
        if self.digest is not None and digested(table) != self.digest:
            raise CorruptDataError(
                f"{RAY_DATASET}: Ray recomputed lost rows of block {self.index}, and they "
                "differ: a step of the data set is not deterministic. Write the data set "
                "to files, and start from these files"
            )
        return table.select(list(self.columns))

    def whole(self) -> Any:
        """Combine the rows, with all existing columns."""
        pa, ray = require("pyarrow", "ray"), require("ray", "ray")
        # Ray's own tables may be of pandas.
        arrow = require("ray.data.block", "ray").BlockAccessor.for_block
        cuts = [
            arrow(table).to_arrow().slice(piece.start, piece.rows).select(list(self.present))
            for table, piece in zip(ray.get(list(self.references)), self.pieces, strict=True)
        ]
        table = pa.concat_tables(cuts, promote_options="permissive")
        if table.num_rows != self.rows:
            raise CorruptDataError(
                f"{RAY_DATASET}: block {self.index} has {table.num_rows} rows and had {self.rows}"
            )
        return table


class DatasetSource(Source):
    """The rows of a data set, computed once and in order.

    Parameters
    ----------
    dataset
        A ``ray.data.Dataset``.
    block_rows
        Rows of a block.

    Raises
    ------
    InvalidValueError
        If the data set is empty, so that Ray does not know its columns.
    """

    name = RAY_DATASET

    def __init__(self, dataset: Any, *, block_rows: int = BLOCK) -> None:
        self.block_rows = block_rows
        #: The columns that were kept.
        self.columns: tuple[str, ...] = ()
        self._cut: list[tuple[Piece, ...]] | None = None
        self._digests: dict[int, bytes] = {}
        self._content: bytes | None = None
        self._dataset, self._schema = with_schema(dataset)

    @property
    def schema(self) -> Any:
        """The columns of the data set, and their types."""
        return self._schema

    def materialise(self, columns: Sequence[str], *, progress: bool = False) -> None:
        """Compute the data set, and keep the needed columns in Ray's object store.

        One that is materialised already stays as it is.

        Parameters
        ----------
        columns
            The columns that are wanted.
        progress
            Whether Ray shows its progress bars.
        """
        kept = self._dataset
        if not isinstance(kept, require("ray.data.dataset", "ray").MaterializedDataset):
            with in_order(kept.context, progress):
                kept = kept.select_columns(list(columns)).materialize()
        tables: list[tuple[tuple[Any, int], int]] = []
        for bundle in kept.iter_internal_ref_bundles():
            for (reference, metadata), part in zip(bundle.blocks, bundle.slices, strict=True):
                start = 0 if part is None else part.start_offset
                rows = metadata.num_rows if part is None else part.num_rows
                tables.append(((reference, start), rows))
        self.columns = tuple(columns)
        self._cut = [
            tuple(
                Piece(reference, first + start, rows) for (reference, first), start, rows in block
            )
            for block in cut(tables, self.block_rows)
        ]
        self.rows = sum(rows for _, rows in tables)

    def remember(self, digests: Mapping[int, bytes]) -> None:
        """Store the digests of all blocks: blocks listed from now on carry theirs."""
        self._digests = dict(digests)
        state = hashlib.sha256(repr(self.columns).encode())
        for index in sorted(self._digests):
            state.update(self._digests[index])
        self._content = state.digest()

    def content(self) -> bytes | None:
        """Return the digest of all rows, computed from the digests of the blocks."""
        return self._content

    def _blocks(self, checked: Any, skip: Container[int]) -> Iterator[ReferencedBlock]:
        """Cut the rows into blocks, without reading anything."""
        if self._cut is None:
            raise InvalidValueError(f"{self.name} has not been materialised")
        for index, pieces in enumerate(self._cut):
            if index not in skip:
                yield ReferencedBlock(
                    index,
                    sum(piece.rows for piece in pieces),
                    tuple(checked.names),
                    pieces,
                    self.columns,
                    self._digests.get(index),
                    first_row=index * self.block_rows,
                )
