"""Answers of people: a column of a source, and what stands beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._extras import require
from turnout._label_texts import missing_texts
from turnout.bounds import Bounds
from turnout.domain import Domain
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.participation import Personalized
from turnout.pipeline.dictionaries import rows_text
from turnout.pipeline.digests import digested
from turnout.pipeline.distinct import distinct_answers
from turnout.pipeline.encoding import EncodedBlock, codes_of
from turnout.pipeline.grouping import GroupIndex, groups_of
from turnout.pipeline.identity import (
    Persons,
    check_of,
    digests,
    find_persons,
    first_rows,
)
from turnout.pipeline.labels import Labels
from turnout.pipeline.numbers import Numbers, numbers_of
from turnout.pipeline.pseudonyms import PseudonymKey
from turnout.pipeline.rows import Elsewhere, kept, without_group
from turnout.pipeline.sources import Block, Source
from turnout.products import ProductDomain, Questions

__all__ = ["Answers"]

Asked = Domain | Bounds | Questions


Duplicates = Literal["refuse", "first"] | None


#: Makes of a column, the rows of its entries and the first row's number what is randomized, and
#: says which entries are dropped.
Encoding = Callable[
    [Any, npt.NDArray[Any] | None, int], tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]
]


class _Found:
    """What has been found out about answers."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.persons: Persons | None = None
        self.encodings: tuple[Asked, list[Encoding]] | None = None

    def __reduce__(self) -> tuple[type[_Found], tuple[()]]:
        """Pickle nothing of it."""
        return _Found, ()


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers of people in a source; :func:`scan` makes them.

    They can be pickled, with the secret of the pseudonym key: the copy encodes blocks and cannot
    list them, because it has no source.

    Attributes
    ----------
    source
        Where the rows come from.
    column, joint
        The column of answers, and further ones whose answers go into the same report.
    missing
        What a missing answer is: None (refused), ``"drop"``, or a label.
    missing_values
        Texts that stand for a missing answer, beside the usual ones that are no label.
    id_column, duplicates
        The column of persons, and what happens to a second row of one.
    group_by
        The columns that make up groups.
    probability_column
        The column of probabilities of taking part.
    pseudonym_key, pseudonym_context
        From what pseudonyms are made, and the collection that they are for.
    max_groups
        The largest number of groups in a block.
    """

    source: Source
    column: str
    missing: Hashable = None
    missing_values: frozenset[str] = frozenset()
    id_column: str | None = None
    duplicates: Duplicates = "refuse"
    group_by: tuple[str, ...] = ()
    probability_column: str | None = None
    pseudonym_key: PseudonymKey | None = None
    pseudonym_context: str | None = None
    max_groups: int = 100_000
    joint: tuple[str, ...] = ()
    _name: str = field(default="", repr=False)
    _texts: bool = field(default=False, repr=False)
    _digests: Mapping[int, bytes] | None = field(default=None, repr=False)
    _found: _Found = field(default_factory=_Found, init=False, repr=False)

    @property
    def name(self) -> str:
        """What messages call the answers."""
        named = (
            f"columns {_arguments.listed(self.asked)}" if self.joint else f"column {self.column!r}"
        )
        return f"{self._name}: {named}"

    @property
    def asked(self) -> tuple[str, ...]:
        """The columns of answers."""
        return (self.column, *self.joint)

    @property
    def rows(self) -> int | None:
        """The number of rows, where it is known without reading them, or None."""
        return self.source.rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, and no others are."""
        others = (self.id_column, self.probability_column, *self.group_by)
        return tuple(dict.fromkeys([*self.asked, *(name for name in others if name is not None)]))

    @property
    def holds_integers(self) -> bool:
        """Whether the column has a type of integers; of text it is not known."""
        if self.source.texts:
            return False
        types = require("pyarrow", "cli").types
        return bool(types.is_integer(self.source.schema.field(self.column).type))

    @property
    def block_rows(self) -> int:
        """Rows of a block."""
        return self.source.block_rows

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of the source."""
        return self.source.fingerprint

    def in_context(self, context: str) -> Answers:
        """Name the collection that pseudonyms are for, unless it has been named.

        Parameters
        ----------
        context
            The fingerprint of its plan.
        """
        if self.pseudonym_key is None or self.pseudonym_context is not None:
            return self
        return self._changed(pseudonym_context=context)

    def with_digests(self, digests: Mapping[int, bytes]) -> Answers:
        """Hold on to what the rows are: a block that is read again and differs is refused.

        Parameters
        ----------
        digests
            For each block what :meth:`digests` gave.
        """
        return self._changed(_digests=digests)

    def digests(self) -> dict[int, bytes]:
        """Read the rows once and digest those of each block."""
        return {
            block.index: digested(block.read().select(self.columns))
            for block in self.source.blocks(self.columns, categories=self._categories(None))
        }

    def _changed(self, **changes: Any) -> Answers:
        changed = replace(self, **changes)
        changed._found.persons = self._found.persons
        return changed

    def describe(self) -> dict[str, Any]:
        """Describe what is read in terms of JSON: names and choices, no data and no secret."""
        plain = self.missing is None or isinstance(self.missing, (str, bool, int, float))
        key = self.pseudonym_key
        return {
            "source": self.source.name,
            "fingerprint": self.source.fingerprint,
            "rows": self.source.rows,
            "block_rows": self.source.block_rows,
            "column": self.column,
            "joint": list(self.joint),
            "missing": self.missing if plain else repr(self.missing),
            "missing_values": sorted(self.missing_values),
            "id_column": self.id_column,
            "duplicates": self.duplicates if self.id_column is not None else None,
            "group_by": list(self.group_by),
            "probability_column": self.probability_column,
            "pseudonym_key": None if key is None else key.identifier,
            "pseudonym_context": self.pseudonym_context,
        }

    def __repr__(self) -> str:
        """Show the column, the source and the number of rows."""
        rows = "" if self.rows is None else f", {self.rows:,} rows"
        return f"<Answers: {self.name}{rows}>"

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the source and what was found in it; take the secret of the key along."""
        key = self.pseudonym_key
        secret = None if key is None else key.secret
        left = {"source": Elsewhere(self.source), "_digests": None, "pseudonym_key": secret}
        return {**self.__dict__, **left}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the key again."""
        secret = state["pseudonym_key"]
        self.__dict__.update(state, pseudonym_key=secret and PseudonymKey(secret))

    # Persons ----------------------------------------------------------------------------------

    def persons(self, *, progress: bool = False) -> Persons | None:
        """Read the identifiers, once, and find which rows do not count.

        Parameters
        ----------
        progress
            Whether a pass of more than two seconds shows a bar on standard error.

        Returns
        -------
        Persons or None
            None if nobody looks for persons with several rows, or if the source can be read only
            once: persons are then looked for as blocks are read.

        Raises
        ------
        InvalidValueError
            If a row has no identifier, or a person has several rows and they are refused.
        """
        if self.id_column is None or self.duplicates is None or not self.source.repeatable:
            return None
        with self._found.lock:
            if self._found.persons is None:
                self._found.persons = find_persons(
                    self.source,
                    self.id_column,
                    refuse=self.duplicates == "refuse",
                    progress=progress,
                )
            return self._found.persons

    @property
    def _id_name(self) -> str:
        return f"{self._name}: column {self.id_column!r}"

    # Blocks -----------------------------------------------------------------------------------

    def blocks(self, domain: Asked | None = None, skip: Container[int] = ()) -> Iterator[Block]:
        """List the blocks of the source, with the rows that do not count in each.

        Parameters
        ----------
        domain
            What the blocks will be encoded in, if that is known: numbers are not read as the few
            different values that answers are.
        skip
            Numbers of blocks that are not wanted.

        Yields
        ------
        Block
            What :meth:`encoded` takes, in this process or another.

        Raises
        ------
        InvalidValueError
            If a person has several rows and they are refused. A stream that can be read only once
            is refused when the second row arrives.
        CorruptDataError
            If the rows are not what they were when they were read before.
        """
        if self._digests is None:
            yield from self._blocks(skip, domain)
            return
        expected = {index for index in self._digests if index not in skip}
        for block in self._blocks(skip, domain):
            found = digested(block.read().select(self.columns))
            if found != self._digests.get(block.index):
                raise self._other_rows()
            expected.discard(block.index)
            yield block
        if expected:
            raise self._other_rows()

    def _other_rows(self) -> CorruptDataError:
        return CorruptDataError(
            f"{self._name} gave other rows, or another order of rows, when it was read again: give "
            "it an order, or store its result in a file first"
        )

    def _categories(self, domain: Asked | None) -> frozenset[str]:
        """Name the columns in which few different values are expected."""
        others = {self.id_column, self.probability_column}
        if isinstance(domain, Bounds):
            others.update(self.asked)
        return frozenset((*self.asked, *self.group_by)) - others

    def _blocks(self, skip: Container[int], domain: Asked | None) -> Iterator[Block]:
        persons, categories = self.persons(), self._categories(domain)
        if self.id_column is None or self.duplicates is None:
            yield from self.source.blocks(self.columns, skip=skip, categories=categories)
            return
        if persons is None:
            blocks = self.source.blocks(self.columns, categories=categories)
            refuse = self.duplicates == "refuse"
            for block in first_rows(blocks, self.id_column, self._name, refuse=refuse):
                if block.index not in skip:
                    yield block
            return
        for block in self.source.blocks(self.columns, skip=skip, categories=categories):
            if persons.checks:
                found = digests(
                    block.read().column(self.id_column), persons.key or b"", name=self._id_name
                )
                if check_of(found) != persons.checks.get(block.index):
                    raise self._other_rows()
            yield replace(block, left_out=persons.in_block(block.start, block.rows))

    def encoded(self, block: Block, domain: Asked) -> EncodedBlock:
        """Read a block and encode it.

        Parameters
        ----------
        block
            One of :meth:`blocks`.
        domain
            The answers that can be given.

        Returns
        -------
        EncodedBlock
            Codes, probabilities, groups and pseudonyms of the rows that count.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError
            If an answer is not in the domain: names the source, the first offenders, how many there
            are, and the first rows.
        InvalidValueError
            If an answer, identifier or probability is missing, or a probability is out of range, or
            there are too many groups.
        CorruptDataError
            If the block cannot be read.
        """
        table = block.read()
        rows: npt.NDArray[Any] | None = None
        if self.id_column is not None and self.duplicates is not None and block.left_out is None:
            raise InvalidValueError(
                "block must be one of Answers.blocks, which knows the rows of each person"
            )
        duplicates = 0 if block.left_out is None else int(block.left_out.size)
        if block.left_out is not None and duplicates:
            keep = np.ones(block.rows, bool)
            keep[block.left_out] = False
            rows, table = np.flatnonzero(keep), kept(table, keep)
        codes, gone = self._codes(table, domain, rows, block.start)
        dropped = 0
        if gone is not None:
            dropped = int(gone.sum())
            codes, table = codes[~gone], kept(table, ~gone)
            rows = np.flatnonzero(~gone) if rows is None else rows[~gone]
        groups = None
        if self.group_by:
            groups = self._groups(table)
            without = without_group(groups)
            if without is not None and self.missing is None:
                self._refuse_without_group(np.flatnonzero(without), rows, block.start)
            if without is not None and self.missing == "drop":
                dropped += int(without.sum())
                codes, table = codes[~without], kept(table, ~without)
                rows = np.flatnonzero(~without) if rows is None else rows[~without]
                groups = self._groups(table)
        pseudonyms = None
        if self.pseudonym_key is not None:
            pseudonyms = self._pseudonyms(table, rows, block.start)
        return EncodedBlock(
            block.index,
            codes,
            self._probabilities(table, rows, block.start),
            groups,
            pseudonyms,
            rows=block.rows,
            dropped=dropped,
            duplicates=duplicates,
        )

    def codes_of_rows(
        self, table: Any, domain: Asked, first_row: int
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
        """Encode all answers of a table of rows of the source.

        Parameters
        ----------
        table
            A ``pyarrow.Table`` with the column.
        domain
            The answers that can be given.
        first_row
            The number of its first row.

        Returns
        -------
        codes : numpy.ndarray
            A code, or number, for each row; any where it is dropped.
        dropped : numpy.ndarray or None
            Which rows are dropped; None if none is.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError, InvalidValueError
            As :meth:`encoded`.
        """
        return self._codes(table, domain, None, first_row)

    def groups_of_rows(
        self, table: Any, keep: npt.NDArray[np.bool_], first_row: int
    ) -> tuple[npt.NDArray[np.int64], list[tuple[Any, ...]]]:
        """Index the groups of some rows of a table.

        Parameters
        ----------
        table
            A ``pyarrow.Table`` with the columns of the groups.
        keep
            Which rows count.
        first_row
            The number of its first row.

        Returns
        -------
        index : numpy.ndarray
            For each row the position of its group, -1 where it does not count or is left out.
        keys : list of tuple
            The groups; one empty tuple if rows are not grouped.

        Raises
        ------
        InvalidValueError
            If a row has no group and nothing says what that means, or there are too many.
        """
        index = np.where(keep, 0, -1).astype(np.int64)
        if not self.group_by:
            return index, [()]
        rows = np.flatnonzero(keep)
        groups = self._groups(table if rows.size == keep.size else kept(table, keep))
        places = groups.index.astype(np.int64)
        without = without_group(groups)
        if without is not None and self.missing is None:
            self._refuse_without_group(np.flatnonzero(without), rows, first_row)
        if without is not None and self.missing == "drop":
            places[without] = -1
        index[rows] = places
        return index, groups.keys

    def _refuse_without_group(
        self, positions: npt.NDArray[Any], rows: npt.NDArray[Any] | None, first_row: int
    ) -> NoReturn:
        places = (positions if rows is None else rows[positions]) + first_row
        raise InvalidValueError(
            f"{self._name}: {positions.size:,} rows have no group in "
            f"{', '.join(map(repr, self.group_by))} ({rows_text(places)}); missing (--missing) "
            "'drop' leaves these people out"
        )

    def _groups(self, table: Any) -> GroupIndex:
        texts = missing_texts(more=self.missing_values)
        return groups_of(table, self.group_by, self.max_groups, self._name, texts)

    def _codes(
        self, table: Any, domain: Asked, rows: npt.NDArray[Any] | None, first_row: int
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
        """Encode the columns of answers; say which rows are dropped."""
        found = [
            encoding(table.column(name), rows, first_row)
            for name, encoding in zip(self.asked, self._encodings(domain), strict=True)
        ]
        if not isinstance(domain, (ProductDomain, Questions)):
            return found[0]
        gaps = [gone for _, gone in found if gone is not None]
        return domain.combined([codes for codes, _ in found]), (
            np.logical_or.reduce(gaps) if gaps else None
        )

    def _encodings(self, domain: Asked) -> list[Encoding]:
        """Find out how the values of each column become what is randomized."""
        known = self._found.encodings
        if known is None or known[0] is not domain:
            known = domain, self._new_encodings(domain)
            self._found.encodings = known
        return known[1]

    def _new_encodings(self, domain: Asked) -> list[Encoding]:
        missing: dict[str, Any] = {"missing": self.missing, "missing_values": self.missing_values}
        if isinstance(domain, (ProductDomain, Questions)):
            if self.asked != tuple(domain.columns):
                raise InvalidValueError(
                    f"{self._name}: column must name the questions of the plan in their order, "
                    f"{_arguments.listed(tuple(domain.columns))}, got "
                    f"{_arguments.listed(self.asked)}"
                )
            return [
                partial(
                    codes_of,
                    Labels(
                        each, texts=self._texts, name=f"{self._name}: column {name!r}", **missing
                    ),
                )
                for name, each in domain.columns.items()
            ]
        if self.joint:
            raise InvalidValueError(
                f"{self.name}: column must name one column for a single question, got "
                f"{_arguments.listed(self.asked)}: "
                "a turnout.JointTable, PairTables, SplitBudget or SampledAttribute takes several"
            )
        if isinstance(domain, Bounds):
            return [partial(numbers_of, Numbers(domain, name=self.name, **missing))]
        return [partial(codes_of, Labels(domain, texts=self._texts, name=self.name, **missing))]

    def _pseudonyms(
        self, table: Any, rows: npt.NDArray[Any] | None, first_row: int
    ) -> npt.NDArray[np.uint8]:
        assert self.pseudonym_key is not None
        assert self.id_column is not None
        if self.pseudonym_context is None:
            raise InvalidValueError(
                "pseudonym_context must name the collection: give it to scan, or use in_context"
            )
        return self.pseudonym_key.pseudonyms(
            table.column(self.id_column),
            self.pseudonym_context,
            name=self._id_name,
            rows=rows,
            first_row=first_row,
        )

    def _probabilities(
        self, table: Any, rows: npt.NDArray[Any] | None, first_row: int
    ) -> npt.NDArray[np.float64] | None:
        if self.probability_column is None:
            return None
        pa = require("pyarrow", "cli")
        name = f"{self._name}: column {self.probability_column!r}"
        column = table.column(self.probability_column)
        types = pa.types
        number = types.is_floating(column.type) or types.is_integer(column.type)
        try:
            if not (number or types.is_decimal(column.type) or self._texts):
                raise InvalidTypeError(f"{name} has type {column.type}, expected numbers")
            column = column.cast(pa.float64())
        except pa.ArrowException as error:
            raise InvalidTypeError(f"{name} must hold numbers: {error}") from error
        values = np.array(column.to_numpy(), np.float64)  # nulls become NaN
        wrong = ~((values >= Personalized.minimum) & (values <= 1.0))
        if wrong.any():
            positions = np.flatnonzero(wrong)
            places = (positions if rows is None else rows[positions]) + first_row
            raise InvalidValueError(
                f"{name}: {positions.size:,} values are missing or not in [2^-30, 1] "
                f"({rows_text(places)})"
            )
        return values

    # What answers there are ---------------------------------------------------------------------

    def distinct(self) -> list[Any]:
        """Read the answers once and list the different ones.

        Returns
        -------
        list
            In order of first appearance, missing ones left out. Texts of a CSV file are integers
            if all of them are written as such.

        Raises
        ------
        InvalidValueError
            If the source can be read only once, or if there are more than a million.
        """
        return distinct_answers(self)[0]

    def domain(self) -> Domain:
        """Read the answers once and make a domain of them, only if what people answer is public.

        Returns
        -------
        Domain
            The answers in ascending order, and after them the label of missing answers.

        Raises
        ------
        InvalidValueError
            If there are fewer than two or more than a million, if some are missing and nothing says
            what that means, or if the source can be read only once.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from turnout.pipeline import scan
        >>> scan(pa.table({"answer": [3, 1, 3]}), "answer").domain().labels
        (1, 3)
        """
        values, gaps = distinct_answers(self)
        try:
            values = sorted(values)
        except TypeError:
            values = sorted(values, key=str)
        extra: Hashable = self.missing
        if gaps and self.missing != "drop" and extra not in values:
            values.append(extra)
        if len(values) < 2:
            # A column with one answer says nothing; a wrong separator or column is more likely.
            found = f"the one answer {values[0]!r}" if values else "no answer"
            raise InvalidValueError(
                f"{self.name} holds {found}, and labels are at least 2: state them"
            )
        return Domain(values)
