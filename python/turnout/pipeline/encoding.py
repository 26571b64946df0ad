"""Encoding of blocks: the codes, groups and pseudonyms of the rows that count."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from turnout._label_texts import missing_texts
from turnout._types import Array, Bytes, Floats, Integers, Truths
from turnout.bounds import Bounds
from turnout.collecting.group_values import needs_look
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.report_files.header import Header
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.participation import Personalized
from turnout.pipeline.columns import GroupIndex, compact, groups_of, rows_have
from turnout.pipeline.pseudonyms import PseudonymKey
from turnout.pipeline.rows import Gaps, Rows, rows_of
from turnout.pipeline.sources import Block, Source
from turnout.pipeline.values import Labels, Numbers, read_numbers
from turnout.products import ProductDomain, Questions

#: What is asked for: of one column, or of several by their names.
Asked = Domain | Bounds | Questions | Mapping[str, Domain | Bounds]


@dataclass(frozen=True)
class Totals:
    """The numbers of persons, of reports, and of rows left out.

    Attributes
    ----------
    nodes
        Persons who could have taken part.
    reports
        Reports that were written.
    left_out
        Rows that do not count.
    """

    nodes: int = 0
    reports: int = 0
    left_out: LeftOut = NOTHING

    @property
    def rows(self) -> int:
        """The number of rows that were read."""
        return self.nodes + self.left_out.total

    def __add__(self, other: Totals) -> Totals:
        """Add the totals of another part."""
        return Totals(
            self.nodes + other.nodes,
            self.reports + other.reports,
            self.left_out + other.left_out,
        )

    @classmethod
    def of_header(cls, header: Header) -> Totals:
        """Read the totals from the header of a file."""
        return cls(header.nodes, header.reports, header.left_out)

    def to_dict(self) -> dict[str, Any]:
        """Return the totals as a JSON-compatible dictionary."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class EncodedBlock:
    """The rows of a block that count, ready to be randomized. This is private data.

    Attributes
    ----------
    index
        The number of the block.
    codes
        The code of each row that counts, in order; of several columns by name a list of such.
    probabilities
        The probability of each, or None.
    groups
        The group of each, or None.
    pseudonyms
        The pseudonym of each, 16 bytes a row, or None.
    places
        The place of each in the block; None if all count.
    rows
        How many rows the block has.
    left_out
        How many of them do not count.
    unanswered
        For each group how many were left out for want of an answer; None without groups.
    """

    index: int
    codes: Any = field(repr=False)
    probabilities: Floats | None = field(repr=False)
    groups: GroupIndex | None = field(repr=False)
    pseudonyms: Bytes | None = field(repr=False)
    places: Array | None = field(repr=False)
    rows: int
    left_out: LeftOut
    unanswered: Integers | None = field(default=None, repr=False)

    @property
    def nodes(self) -> int:
        """The number of rows that count."""
        return self.rows - self.left_out.total

    @property
    def totals(self) -> Totals:
        """The totals of the block's rows."""
        return Totals(self.nodes, left_out=self.left_out)


@dataclass(frozen=True)
class Grouping:
    """The rule that groups rows.

    Attributes
    ----------
    source
        What messages call the source.
    rules
        For each column of groups the group of a row without one, ``"drop"`` to leave the row out,
        or None to refuse it.
    types
        The Arrow types in which files store the values of these columns; none without files.
    missing_values
        Texts that stand for no group.
    trim
        Whether white space around texts is taken off.
    max_groups
        The largest number of groups in a block.
    """

    source: str
    rules: Mapping[str, Hashable]
    types: Mapping[str, Any]
    missing_values: frozenset[str]
    trim: bool
    max_groups: int

    def of(self, rows: Rows, columns: Sequence[str] | None = None) -> GroupIndex:
        """Return the group index of rows, by all columns or some of them.

        Raises
        ------
        InvalidValueError
            If a row has a value that no group can have, or there are too many groups.
        """
        rules = {name: self.rules[name] for name in columns or self.rules}
        labels = {name: None if rule == "drop" else rule for name, rule in rules.items()}
        return groups_of(
            rows.table,
            labels,
            max_groups=self.max_groups,
            name=self.source,
            missing_values=self.missing_values,
            rows=rows.text,
            trim=self.trim,
        )

    def check(self, source: Source) -> None:
        """Refuse values in group columns that are not groups.

        Before a job begins: a job that has parts cannot go on with other rows. A source that can
        be read only once is looked at as its blocks are read.

        Raises
        ------
        InvalidValueError
            As :meth:`of`.
        """
        types = source.schema
        looked_at = [name for name in self.rules if needs_look(types.field(name).type)]
        if not looked_at or not source.repeatable:
            return
        for block in source.blocks(looked_at, categories=frozenset(looked_at)):
            self.of(Rows(block.read(), block.start), looked_at)

    def counted(self, rows: Rows, unanswered: Truths) -> tuple[GroupIndex, Integers, Truths]:
        """Return the groups of the rows that count.

        A group stays if all of its rows are unanswered: nobody is to vanish with it.

        Parameters
        ----------
        rows, unanswered
            Rows, and which of them have no answer.

        Returns
        -------
        groups, without, nowhere
            The groups, how many rows of each have no answer, and which rows are left out for want
            of a group.

        Raises
        ------
        InvalidValueError
            As :meth:`of`; if a row with an answer has no group, and nothing says that it is left
            out.
        """
        groups = self.of(rows)
        refused = without_group(groups, [rule is None for rule in self.rules.values()])
        if refused is not None and (refused & ~unanswered).any():
            raise self._no_group(rows, refused & ~unanswered)
        found = without_group(groups, [True] * len(self.rules))
        nowhere = np.zeros(unanswered.size, bool) if found is None else found
        inside = ~nowhere
        index, present = compact(groups.index[inside].astype(np.int64), len(groups.keys))
        keys = [groups.keys[place] for place in present.tolist()]
        counts = ~unanswered[inside]
        without = np.bincount(index[~counts], minlength=len(keys)).astype(np.int64)
        return GroupIndex(keys, index[counts].astype(np.int32)), without, nowhere

    def _no_group(self, rows: Rows, without: Truths) -> InvalidValueError:
        positions, columns = np.flatnonzero(without), list(self.rules)
        gaps = ""
        if len(columns) == 1:
            gaps = f": {Gaps.of(rows.table.column(columns[0]), without, columns[0])}"
        return InvalidValueError(
            f"{self.source}: {rows_have(positions.size)} no group in "
            f"{', '.join(map(repr, columns))} "
            f"({rows.text(positions)}){gaps}; pass missing (--missing) for this "
            "column to name their group, or 'drop' to leave these rows out"
        )


@dataclass(frozen=True, eq=False)
class Encoder:
    """An encoder of blocks of answers for randomization.

    It holds no rows. Without the key of pseudonyms it can be pickled: whoever works on blocks
    elsewhere has it.

    Attributes
    ----------
    source
        What messages call the source.
    domain
        The answers that can be given.
    values
        For each column of answers how its values become codes or numbers.
    grouping
        How rows are grouped.
    id_column, probability_column
        The columns of persons, and of probabilities of taking part.
    key, context
        From what pseudonyms are made, and the collection that they are for.
    looked_for
        Whether blocks know which rows of a person do not count.
    """

    source: str
    domain: Asked
    values: Mapping[str, Labels | Numbers] = field(repr=False)
    grouping: Grouping
    id_column: str | None
    probability_column: str | None
    key: PseudonymKey | None = field(repr=False)
    context: str | None
    looked_for: bool

    def with_key(self, key: PseudonymKey | None) -> Encoder:
        """Return the encoder with the key for pseudonyms, or without a key."""
        return replace(self, key=key)

    def __call__(self, block: Block) -> EncodedBlock:
        """Read a block and encode it.

        Parameters
        ----------
        block
            One of the blocks of the answers.

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
        rows = rows_of(block, self.source, looked_for=self.looked_for)
        found = [
            values._encoded(rows.table.column(name), rows) for name, values in self.values.items()
        ]
        codes = [one for one, _ in found]
        gaps = [gone for _, gone in found if gone is not None]
        gone = np.logical_or.reduce(gaps) if gaps else np.zeros(len(codes[0]), bool)
        groups, unanswered, without = None, None, 0
        if self.grouping.rules:
            groups, unanswered, nowhere = self.grouping.counted(rows, gone)
            without = int(nowhere.sum())
            gone |= nowhere
        if gone.any():
            codes, rows = [one[~gone] for one in codes], rows.kept(~gone)
        combined: Any = codes if isinstance(self.domain, Mapping) else codes[0]
        if isinstance(self.domain, (ProductDomain, Questions)):
            combined = self.domain._combined(codes)
        return EncodedBlock(
            block.index,
            combined,
            self._probabilities(rows),
            groups,
            self._pseudonyms(rows),
            rows.numbers,
            rows=block.rows,
            left_out=LeftOut(
                unanswered=int(gone.sum()) - without,
                ungrouped=without,
                duplicates=0 if block.left_out is None else int(block.left_out.size),
            ),
            unanswered=unanswered,
        )

    def _pseudonyms(self, rows: Rows) -> Bytes | None:
        if self.key is None:
            return None
        assert self.id_column is not None
        if self.context is None:
            raise InvalidValueError("pseudonym_context must name the collection: give it to scan")
        return self.key.pseudonyms(
            rows.table.column(self.id_column),
            self.context,
            name=f"{self.source}: column {self.id_column!r}",
            rows=rows.numbers,
            first_row=rows.first,
        )

    def _probabilities(self, rows: Rows) -> Floats | None:
        if self.probability_column is None:
            return None
        name = f"{self.source}: column {self.probability_column!r}"
        column = rows.table.column(self.probability_column)
        values = read_numbers(column, rows, missing_texts(), name)
        wrong = ~((values >= Personalized.minimum) & (values <= 1.0))
        if wrong.any():
            positions = np.flatnonzero(wrong)
            raise InvalidValueError(
                f"{name}: {positions.size:,} values are missing or not in [2^-30, 1] "
                f"({rows.text(positions)})"
            )
        return values


def without_group(groups: GroupIndex, looked_at: Sequence[bool]) -> Truths | None:
    """Return the rows without a value in some group column; None if there are none."""
    gaps = np.array([None in itertools.compress(key, looked_at) for key in groups.keys], bool)
    return gaps[groups.index] if gaps.any() else None
