"""Answers of people: columns of a source, and what stands beside them."""

from __future__ import annotations

import threading
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from turnout._label_texts import missing_texts
from turnout._types import Bytes, Floats, Integers, Truths
from turnout.bounds import Bounds
from turnout.collecting.group_values import needs_look
from turnout.collecting.left_out import LeftOut
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.participation import Personalized
from turnout.pipeline.asked import Asked, AskedColumns
from turnout.pipeline.columns import GroupIndex, compact, digested, groups_of, rows_have
from turnout.pipeline.encoding import EncodedBlock, without_group
from turnout.pipeline.identity import Persons, find_persons, first_rows
from turnout.pipeline.pseudonyms import PseudonymKey
from turnout.pipeline.rows import Gaps, Rows
from turnout.pipeline.sources import Block
from turnout.pipeline.sources.base import Elsewhere
from turnout.pipeline.values import Labels, Numbers, read_numbers
from turnout.products import ProductDomain, Questions

Duplicates = Literal["refuse", "first"] | None


class _Found:
    """What has been found out about answers."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.persons: Persons | None = None
        self.encodings: tuple[Asked, list[Labels | Numbers]] | None = None

    def __reduce__(self) -> tuple[type[_Found], tuple[()]]:
        """Pickle nothing of it."""
        return _Found, ()


@dataclass(frozen=True, eq=False)
class Answers(AskedColumns):
    """The answers of people in a source; :func:`scan` makes them.

    They can be pickled without a pseudonym key: the copy encodes blocks and cannot list them,
    because it has no source.

    Attributes
    ----------
    source
        Where the rows come from.
    column, joint
        The column of answers, and further ones whose answers go into the same report.
    missing
        What a missing answer is: None (refused), ``"drop"``, or a label; or a dictionary of these
        by column, whose None is for all others. Of a column of groups the dictionary has the label
        of who has none.
    missing_values
        Texts that stand for a missing answer, beside the usual ones that are no label.
    texts_of
        Columns whose values are matched with labels by their texts, beside those of a source that
        knows nothing else.
    trim
        Whether white space around the texts of answers and groups is taken off.
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

    id_column: str | None = None
    duplicates: Duplicates = "refuse"
    group_by: tuple[str, ...] = ()
    probability_column: str | None = None
    pseudonym_key: PseudonymKey | None = None
    pseudonym_context: str | None = None
    max_groups: int = 100_000
    _digests: Mapping[int, bytes] | None = field(default=None, repr=False)
    _found: _Found = field(default_factory=_Found, init=False, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, and no others are."""
        others = (self.id_column, self.probability_column, *self.group_by)
        return tuple(dict.fromkeys([*self.asked, *(name for name in others if name is not None)]))

    @property
    def _drops(self) -> bool:
        """Whether somebody can be left out because an answer or a group is missing."""
        rules = (*self._rules.values(), *map(self._group_rule, self.group_by))
        return "drop" in rules

    def _in_context(self, context: str) -> Answers:
        """Name the collection that pseudonyms are for, unless it has been named.

        Parameters
        ----------
        context
            The fingerprint of its plan.
        """
        if self.pseudonym_key is None or self.pseudonym_context is not None:
            return self
        return self._changed(pseudonym_context=context)

    def _with_digests(self, digests: Mapping[int, bytes]) -> Answers:
        """Hold on to what the rows are: a block that is read again and differs is refused.

        Parameters
        ----------
        digests
            For each block what :meth:`_read_digests` gave.
        """
        return self._changed(_digests=digests)

    def _read_digests(self) -> dict[int, bytes]:
        """Read the rows once and digest those of each block."""
        return {
            block.index: digested(block.read().select(self.columns))
            for block in self.source.blocks(self.columns, categories=self._categories({}))
        }

    def _with_key(self, key: PseudonymKey | None) -> Answers:
        """Give another key for pseudonyms, or take it away."""
        return self if key is self.pseudonym_key else self._changed(pseudonym_key=key)

    def _changed(self, **changes: Any) -> Answers:
        changed = replace(self, **changes)
        # What was found out does not depend on what changes.
        object.__setattr__(changed, "_found", self._found)
        return changed

    def describe(self) -> dict[str, Any]:
        """Describe what is read in terms of JSON: names and choices, no data and no secret."""
        stated = self.missing if isinstance(self.missing, Mapping) else {}
        of_groups = {name: stated[name] for name in self.group_by if name in stated}
        rules = {name: _plain(rule) for name, rule in {**self._rules, **of_groups}.items()}
        key = self.pseudonym_key
        return {
            "source": self.source.name,
            "fingerprint": self.source.fingerprint,
            "rows": self.source.rows,
            "block_rows": self.source.block_rows,
            "column": self.column,
            "joint": list(self.joint),
            "missing": rules if len(rules) > 1 else rules[self.column],
            "missing_values": sorted(self.missing_values),
            "trim": self.trim,
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
        """Leave out the source and what was found in it; a key refuses to be taken along."""
        return {**self.__dict__, "source": Elsewhere(self.source), "_digests": None}

    # Persons ----------------------------------------------------------------------------------

    def _persons(self, *, progress: bool = False) -> Persons | None:
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

    # Groups -----------------------------------------------------------------------------------

    def _check_groups(self) -> None:
        """Read the columns of groups that can hold what is no group, and refuse it.

        Before a job begins: a job that has parts cannot go on with other rows. A source that can
        be read only once is looked at as its blocks are read.

        Raises
        ------
        InvalidValueError
            If a row has a value that no group can have, or there are too many groups in a block.
        """
        types = self.source.schema
        looked_at = [name for name in self.group_by if needs_look(types.field(name).type)]
        if not looked_at or not self.source.repeatable:
            return
        for block in self.source.blocks(looked_at, categories=frozenset(looked_at)):
            self._groups(Rows(block.read(), block.start), looked_at)

    # Blocks -----------------------------------------------------------------------------------

    def _all_blocks(
        self, domain: Asked | None = None, skip: Container[int] = ()
    ) -> Iterator[Block]:
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
            What :meth:`_encoded` takes, in this process or another.

        Raises
        ------
        InvalidValueError
            If a person has several rows and they are refused. A stream that can be read only once
            is refused when the second row arrives.
        CorruptDataError
            If the rows are not what they were when they were read before.
        """
        expected = {index for index in self._digests or () if index not in skip}
        for block in self._blocks(skip, domain):
            if self._digests is not None:
                self._check_rows(block, self.columns, self._digests)
            expected.discard(block.index)
            yield block
        if expected:
            raise self._other_rows()

    def _check_rows(self, block: Block, columns: Sequence[str], known: Mapping[int, bytes]) -> None:
        """Refuse a block that does not hold what it held when it was digested."""
        if digested(block.read().select(columns)) != known.get(block.index):
            raise self._other_rows()

    def _other_rows(self) -> CorruptDataError:
        return CorruptDataError(
            f"{self.source.name} gave other rows, or another order of rows, when it was read "
            "again: give it an order, or store its result in a file first"
        )

    def _categories(self, parts: Mapping[str, Any]) -> frozenset[str]:
        """Name the columns in which few different values are expected."""
        others = {self.id_column, self.probability_column}
        others.update(name for name, part in parts.items() if isinstance(part, Bounds))
        return frozenset((*self.asked, *self.group_by)) - others

    def _blocks(self, skip: Container[int], domain: Asked | None) -> Iterator[Block]:
        persons = self._persons()
        categories = self._categories({} if domain is None else self._parts(domain))
        if self.id_column is None or self.duplicates is None:
            yield from self.source.blocks(self.columns, skip=skip, categories=categories)
            return
        if persons is None:
            blocks = self.source.blocks(self.columns, categories=categories)
            refuse = self.duplicates == "refuse"
            for block in first_rows(blocks, self.id_column, self.source.name, refuse=refuse):
                if block.index not in skip:
                    yield block
            return
        for block in self.source.blocks(self.columns, skip=skip, categories=categories):
            if persons.checks:
                self._check_rows(block, [self.id_column], persons.checks)
            yield replace(block, left_out=persons.in_block(block.start, block.rows))

    def _rows_of(self, block: Block) -> Rows:
        """Read a block without the rows of persons of whom another row counts.

        Raises
        ------
        InvalidValueError
            If nobody has looked for these.
        CorruptDataError
            If the block cannot be read.
        """
        if self.id_column is not None and self.duplicates is not None and block.left_out is None:
            raise InvalidValueError(
                "block must be one of the blocks of these answers, which know whose rows they have"
            )
        table = block.read()
        if table.num_rows != block.rows:
            raise CorruptDataError(
                f"{self.source.name}: block {block.index} has {table.num_rows:,} rows, and was "
                f"said to have {block.rows:,}"
            )
        rows = Rows(table, block.start)
        if block.left_out is None or not block.left_out.size:
            return rows
        keep = np.ones(block.rows, bool)
        keep[block.left_out] = False
        return rows.kept(keep)

    def _encoded(self, block: Block, domain: Asked) -> EncodedBlock:
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
        rows = self._rows_of(block)
        found = [
            encoding._encoded(rows.table.column(name), rows)
            for name, encoding in zip(self.asked, self._encodings(domain), strict=True)
        ]
        codes = [one for one, _ in found]
        gaps = [gone for _, gone in found if gone is not None]
        gone = np.logical_or.reduce(gaps) if gaps else np.zeros(len(codes[0]), bool)
        groups, unanswered, without = self._groups(rows), None, 0
        if groups is not None:
            nowhere = self._without_group(groups, rows, gone)
            groups, unanswered = _of_groups(groups, gone, nowhere)
            without = int(nowhere.sum())
            gone |= nowhere
        if gone.any():
            codes, rows = [one[~gone] for one in codes], rows.kept(~gone)
        combined: Any = codes if isinstance(domain, Mapping) else codes[0]
        if isinstance(domain, (ProductDomain, Questions)):
            combined = domain.combined(codes)
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

    def _encodings(self, domain: Asked) -> list[Labels | Numbers]:
        """Find out once how the values of each column become what is randomized."""
        known = self._found.encodings
        if known is None or known[0] is not domain:
            known = domain, self._each_encoding(domain)
            self._found.encodings = known
        return known[1]

    def _group_rule(self, column: str) -> Hashable:
        """Say what the group of a row without one is: ``"drop"`` wherever any row is left out.

        A label for missing answers is none for groups: it is stated by the name of their column.
        """
        stated = self.missing if isinstance(self.missing, Mapping) else {}
        if column in stated:
            return stated[column]  # type: ignore[no-any-return]
        return "drop" if "drop" in (*self._rules.values(), stated.get(None)) else None

    def _groups(self, rows: Rows, columns: Sequence[str] | None = None) -> GroupIndex | None:
        if not self.group_by:
            return None
        texts = missing_texts(more=self.missing_values)
        rules = {name: self._group_rule(name) for name in columns or self.group_by}
        labels = {name: None if rule == "drop" else rule for name, rule in rules.items()}
        return groups_of(
            rows.table,
            labels,
            max_groups=self.max_groups,
            name=self.source.name,
            missing_values=texts,
            rows=rows.text,
            trim=self.trim,
        )

    def _without_group(self, groups: GroupIndex, rows: Rows, unanswered: Truths) -> Truths:
        """Say which rows are left out for want of a group.

        Raises
        ------
        InvalidValueError
            If nothing says that rows with an answer are.
        """
        refused = [self._group_rule(name) is None for name in self.group_by]
        found = without_group(groups, refused)
        if found is not None and (found & ~unanswered).any():
            raise self._no_group(rows, found & ~unanswered)
        found = without_group(groups, [True] * len(refused))
        return np.zeros(unanswered.size, bool) if found is None else found

    def _no_group(self, rows: Rows, without: Truths) -> InvalidValueError:
        positions = np.flatnonzero(without)
        alone = self.group_by[0] if len(self.group_by) == 1 else None
        gaps = "" if alone is None else f": {Gaps.of(rows.table.column(alone), without, alone)}"
        return InvalidValueError(
            f"{self.source.name}: {rows_have(positions.size)} no group in "
            f"{', '.join(map(repr, self.group_by))} ({rows.text(positions)}){gaps}; missing "
            "(--missing), by the name of such a column, says what their group is, or 'drop' leaves "
            "these rows out"
        )

    def _pseudonyms(self, rows: Rows) -> Bytes | None:
        if self.pseudonym_key is None:
            return None
        assert self.id_column is not None
        if self.pseudonym_context is None:
            raise InvalidValueError(
                "pseudonym_context must name the collection: give it to scan, or use in_context"
            )
        return self.pseudonym_key.pseudonyms(
            rows.table.column(self.id_column),
            self.pseudonym_context,
            name=self._name_of(self.id_column),
            rows=rows.numbers,
            first_row=rows.first,
        )

    def _probabilities(self, rows: Rows) -> Floats | None:
        if self.probability_column is None:
            return None
        name = self._name_of(self.probability_column)
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


def _of_groups(
    groups: GroupIndex, unanswered: Truths, nowhere: Truths
) -> tuple[GroupIndex, Integers]:
    """Give the groups of the rows that count, and how many rows of each have no answer.

    A group stays if all of its rows are unanswered: nobody is to vanish with it.
    """
    inside = ~nowhere
    index, present = compact(groups.index[inside].astype(np.int64), len(groups.keys))
    keys = [groups.keys[place] for place in present.tolist()]
    counts = ~unanswered[inside]
    without = np.bincount(index[~counts], minlength=len(keys)).astype(np.int64)
    return GroupIndex(keys, index[counts].astype(np.int32)), without


def _plain(rule: Any) -> Any:
    return rule if rule is None or isinstance(rule, (str, bool, int, float)) else repr(rule)
