"""Answers of people: a column of a source, and what stands beside it."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._extras import require
from turnout.cli.columns import parse_label
from turnout.domain import Domain
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.participation import Personalized
from turnout.pipeline import encoding
from turnout.pipeline.encoding import EncodedBlock, Labels
from turnout.pipeline.identity import (
    Persons,
    PseudonymKey,
    RepeatFinder,
    StreamPersons,
    as_words,
    check_of,
    digests,
)
from turnout.pipeline.sources import Block, Source, open_source

__all__ = ["Answers", "scan"]

_LOGGER = logging.getLogger(__name__)

Duplicates = Literal["refuse", "first"] | None

_MOST_DISTINCT: Final = 2**20


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers of people in a source; :func:`scan` makes them.

    They can be pickled: the copy encodes blocks and cannot list them, because it has no source.

    Attributes
    ----------
    source
        Where the rows come from.
    column
        The column of answers.
    missing
        What a missing answer is: None (refused), ``"drop"``, or a label.
    missing_values
        Texts that stand for a missing answer.
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
    _name: str = field(default="", repr=False)
    _texts: bool = field(default=False, repr=False)
    _found: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """What messages call the answers."""
        return f"{self._name}: column {self.column!r}"

    @property
    def rows(self) -> int | None:
        """The number of rows, where it is known without reading them, or None."""
        return self.source.rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, and no others are."""
        others = (self.id_column, self.probability_column, *self.group_by)
        return tuple(dict.fromkeys([self.column, *(name for name in others if name is not None)]))

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
        return replace(self, pseudonym_context=context)

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
        """Leave out the source and what was found in it."""
        return {**self.__dict__, "source": _Elsewhere(self.source), "_found": {}}

    # Persons ----------------------------------------------------------------------------------

    def persons(self) -> Persons | None:
        """Read the identifiers, once, and find which rows do not count.

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
        with _LOCK:
            if "persons" not in self._found:
                self._found["persons"] = self._find_persons()
            return self._found["persons"]  # type: ignore[no-any-return]

    def _find_persons(self) -> Persons:
        assert self.id_column is not None
        key = secrets.token_bytes(32)
        finder = RepeatFinder()
        checks = {}
        for block in self.source.blocks([self.id_column]):
            column = block.read().column(self.id_column)
            found = digests(column, key, name=self._id_name, first_row=block.start)
            finder.add(as_words(found), block.start)
            if self.source.computed:
                checks[block.index] = check_of(found)
        repeated, left_out, folder = finder.finish()
        if self.duplicates == "refuse" and repeated:
            raise InvalidValueError(
                f"{self._id_name}: {repeated:,} person(s) have more than one row, "
                f"{left_out.size:,} rows more than one each; a person who reports twice spends epsilon twice: make it "
                "one row a person, or let duplicates='first' take the first row of each"
            )
        if repeated:
            _LOGGER.info(
                "%s: %d persons have more than one row; %d rows are left out",
                self._id_name,
                repeated,
                left_out.size,
            )
        # Held until the end, to compare what a query gives when it runs again.
        return Persons(repeated, left_out, checks, key if checks else None, folder)

    @property
    def _id_name(self) -> str:
        return f"{self._name}: column {self.id_column!r}"

    # Blocks -----------------------------------------------------------------------------------

    def blocks(self, domain: Domain | None = None, skip: Container[int] = ()) -> Iterator[Block]:
        """List the blocks of the source, with the rows that do not count in each.

        Parameters
        ----------
        domain
            Not needed; what the blocks will be encoded in.
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
        """
        persons = self.persons()
        categories = frozenset((self.column, *self.group_by)) - {self.id_column}
        if self.id_column is None or self.duplicates is None:
            yield from self.source.blocks(self.columns, skip=skip, categories=categories)
            return
        if persons is None:
            yield from self._blocks_of_stream(skip, categories)
            return
        for block in self.source.blocks(self.columns, skip=skip, categories=categories):
            if persons.checks:
                found = digests(
                    block.read().column(self.id_column), persons.key or b"", name=self._id_name
                )
                if check_of(found) != persons.checks.get(block.index):
                    raise CorruptDataError(
                        f"{self._name} gave other rows, or another order of rows, when it was read "
                        "again: give it an order, or store its result in a file first"
                    )
            yield replace(block, left_out=persons.in_block(block.start, block.rows))

    def _blocks_of_stream(
        self, skip: Container[int], categories: Container[str]
    ) -> Iterator[Block]:
        """Look for persons in the order of a stream; blocks that are not wanted count too."""
        assert self.id_column is not None
        key, seen = secrets.token_bytes(32), StreamPersons(self._id_name)
        for block in self.source.blocks(self.columns, categories=categories):
            column = block.read().column(self.id_column)
            found = digests(column, key, name=self._id_name, first_row=block.start)
            left_out = seen.repeats(as_words(found))
            if left_out.size and self.duplicates == "refuse":
                raise InvalidValueError(
                    f"{self._id_name}: {left_out.size:,} row(s) of block {block.index} are of "
                    "persons who had one before; a person who reports twice spends epsilon twice: "
                    "make it one row a person, or let duplicates='first' take the first row of each"
                )
            if block.index not in skip:
                yield replace(block, left_out=left_out)

    def encoded(self, block: Block, domain: Domain) -> EncodedBlock:
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
        refused = 0 if block.left_out is None else int(block.left_out.size)
        if block.left_out is not None and refused:
            keep = np.ones(block.rows, bool)
            keep[block.left_out] = False
            rows, table = np.flatnonzero(keep), _kept(table, keep)
        labels = self._labels(domain)
        codes, gone = encoding.codes_of(table.column(self.column), labels, rows, block.start)
        dropped = 0
        if gone is not None:
            dropped = int(gone.sum())
            codes, table = codes[~gone], _kept(table, ~gone)
            rows = np.flatnonzero(~gone) if rows is None else rows[~gone]
        groups = None
        if self.group_by:
            groups = encoding.groups_of(table, self.group_by, self.max_groups, self._name)
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
            refused=refused,
        )

    def _labels(self, domain: Domain) -> Labels:
        known = self._found.get("labels")
        if known is None or known.domain is not domain:
            known = Labels(
                domain,
                missing=self.missing,
                missing_values=self.missing_values,
                texts=self._texts,
                name=self.name,
            )
            self._found["labels"] = known
        return known  # type: ignore[no-any-return]

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
                f"({encoding.rows_text(places)})"
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
        return self._distinct()[0]

    def _distinct(self) -> tuple[list[Any], bool]:
        """List the different answers, and whether some are missing; missing ones are checked."""
        if not self.source.repeatable:
            raise InvalidValueError(
                f"{self._name} can be read only once, so its answers cannot be looked at first: "
                "state the domain"
            )
        seen: dict[Any, Any] = {}
        gaps, rows, total = 0, [], 0
        for block in self.source.blocks([self.column], categories=frozenset([self.column])):
            for distinct, index in encoding.factors(block.read().column(self.column)):
                used = np.bincount(index, minlength=len(distinct)) > 0
                absent = np.array([self._is_missing(value) for value in distinct], bool)
                for place in np.flatnonzero(used & ~absent).tolist():
                    value = distinct[place]
                    seen.setdefault((isinstance(value, bool), value), value)
                if (used & absent).any():
                    found = np.flatnonzero(absent[index])
                    gaps += found.size
                    rows += (found[:5] + total).tolist() if len(rows) < 5 else []
                total += len(index)
                if len(seen) > _MOST_DISTINCT:
                    raise InvalidValueError(
                        f"{self.name} has more than {_MOST_DISTINCT:,} different values: is it the "
                        "column of answers?"
                    )
        values = list(seen.values())
        if self._texts:
            values, found_nan = _numbers_from_text(values)
            gaps += found_nan
        elif values and all(isinstance(value, float) and value.is_integer() for value in values):
            values = list(dict.fromkeys(int(value) for value in values))
        if gaps and self.missing is None:
            where = f" ({encoding.rows_text(np.array(rows))})" if rows else ""
            raise InvalidValueError(
                f"{self.name}: {gaps:,} answers are missing{where}; missing says what they are: a "
                "label, or 'drop'"
            )
        return values, gaps > 0

    def _is_missing(self, value: Any) -> bool:
        if value is None or (isinstance(value, float) and np.isnan(value)):
            return True
        return bool(self.missing_values) and encoding.label_text(value) in self.missing_values

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
        >>> scan(pa.table({"answer": [3, 1, 3]}), "answer").domain().labels
        (1, 3)
        """
        values, gaps = self._distinct()
        try:
            values = sorted(values)
        except TypeError:
            values = sorted(values, key=str)
        extra: Hashable = self.missing
        if gaps and self.missing != "drop" and extra not in values:
            values.append(extra)
        return Domain(values)


_LOCK = threading.RLock()


class _Elsewhere(Source):
    """Stands for a source in another process."""

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self.rows = source.rows
        self.block_rows = source.block_rows
        self.fingerprint = source.fingerprint
        self.repeatable = False
        self.texts = source.texts

    @property
    def schema(self) -> Any:
        """Refuse."""
        raise InvalidValueError(f"{self.name} is in another process")

    def blocks(
        self,
        columns: Sequence[str],
        *,
        skip: Container[int] = (),
        categories: Container[str] = (),
    ) -> Iterator[Block]:
        """Refuse."""
        raise InvalidValueError(f"{self.name} is in another process: list its blocks there")


def _kept(table: Any, keep: npt.NDArray[np.bool_]) -> Any:
    pa = require("pyarrow", "cli")
    return table.filter(pa.array(keep))


def _numbers_from_text(values: list[str]) -> tuple[list[Any], int]:
    """Make integers of texts that all are; NaN among numbers is missing."""
    numbers = [value for value in values if value.lower() not in ("nan", "-nan")]
    if not numbers or any(parse_label(value, "number") is None for value in numbers):
        return list(values), 0
    whole = all(parse_label(value, "integer") is not None for value in numbers)
    return [int(v) for v in numbers] if whole else list(numbers), len(values) - len(numbers)


def scan(
    data: Any,
    column: str,
    *,
    missing: Hashable = None,
    missing_values: Sequence[str] = (),
    id_column: str | None = None,
    duplicates: Duplicates = "refuse",
    group_by: str | Sequence[str] | None = None,
    probability_column: str | None = None,
    pseudonym_key: PseudonymKey | None = None,
    pseudonym_context: str | None = None,
    max_groups: int = 100_000,
) -> Answers:
    """Say where the answers are and what the columns beside them mean; nothing is read yet.

    Parameters
    ----------
    data
        Files, a table, a query or a stream: whatever
        :func:`turnout.pipeline.open_source` takes.
    column
        The column of answers, one row a person.
    missing
        What a missing answer (a null, an empty field of a CSV file, NaN) is: None refuses it,
        ``"drop"`` leaves the person out, anything else is the label that is reported.
    missing_values
        Further texts that stand for a missing answer, such as ``"?"`` or ``"-9"``.
    id_column
        A column that says which person a row is of: text, integers or bytes.
    duplicates
        What happens when a person has several rows: ``"refuse"``, or ``"first"``: the first row
        counts and the others do not, even if the answer in it is missing. None looks for none, for
        identifiers that only make pseudonyms.
    group_by
        Columns that are reported beside the answers **as they are**, for a tally of each group.
    probability_column
        A column of the probability with which each person takes part, in [2^-30, 1]. Public.
    pseudonym_key
        With ``id_column``: reports carry a pseudonym, by which two of one person can be seen and
        not whose they are. See :class:`turnout.pipeline.PseudonymKey` for what that does not
        protect.
    pseudonym_context
        The collection that pseudonyms are for; the fingerprint of the plan by default.
    max_groups
        The largest number of groups in a block.

    Returns
    -------
    Answers
        What can be randomized, collected, or listed block by block.

    Raises
    ------
    InvalidValueError
        If a column is not there exactly once, or is named for two purposes of which one is secret.
    InvalidTypeError
        If a column is nested, or an argument has a type that cannot be used.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import turnout as tn
    >>> table = pa.table({"who": [7, 8, 7], "answer": ["yes", None, "no"]})
    >>> answers = scan(table, "answer", missing="drop", id_column="who", duplicates="first")
    >>> [block] = answers.blocks()
    >>> answers.encoded(block, tn.Domain(["no", "yes"]))
    EncodedBlock(index=0, rows=3, dropped=1, refused=1)
    """
    names = (group_by,) if isinstance(group_by, str) else tuple(group_by or ())
    _check_columns(column, id_column, probability_column, names)
    _arguments.choice("duplicates", duplicates, ("refuse", "first", None))
    if pseudonym_key is not None:
        _arguments.instance("pseudonym_key", pseudonym_key, PseudonymKey, "a PseudonymKey")
        if id_column is None:
            raise InvalidValueError("pseudonym_key needs id_column, the column of persons")
    if pseudonym_context is not None:
        _arguments.instance("pseudonym_context", pseudonym_context, str, "text")
    texts = _arguments.items("missing_values", missing_values, "a sequence of texts")
    for text in texts:
        _arguments.instance("missing_values", text, str, "a sequence of texts")
    try:
        hash(missing)
    except TypeError as error:
        raise InvalidTypeError(
            f"missing must be None, 'drop' or a label, got {_arguments.shown(missing)}"
        ) from error
    source = open_source(data)
    answers = Answers(
        source,
        column,
        missing=missing,
        missing_values=frozenset(texts),
        id_column=id_column,
        duplicates=duplicates,
        group_by=names,
        probability_column=probability_column,
        pseudonym_key=pseudonym_key,
        pseudonym_context=pseudonym_context,
        max_groups=_arguments.integer("max_groups", max_groups, least=1),
        _name=source.name,
        _texts=source.texts,
    )
    source.check(answers.columns)
    return answers


def _check_columns(
    column: str, id_column: str | None, probability_column: str | None, groups: tuple[str, ...]
) -> None:
    _arguments.instance("column", column, str, "the name of a column")
    for argument, name in (("id_column", id_column), ("probability_column", probability_column)):
        if name is not None:
            _arguments.instance(argument, name, str, "the name of a column")
            if name == column:
                raise InvalidValueError(f"{argument} must not be {column!r}, the column of answers")
    for name in groups:
        _arguments.instance("group_by", name, str, "a name or names of columns")
        if name in (column, id_column):
            raise InvalidValueError(
                f"group_by must not name {name!r}: groups are reported as they are, and its values "
                "are private"
            )
    if len(set(groups)) < len(groups):
        raise InvalidValueError(f"group_by must name different columns, got {list(groups)}")
