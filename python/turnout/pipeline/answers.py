"""Answers of people: the columns of a source, and the other columns that belong to them."""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from turnout import _arguments, _values
from turnout._label_texts import missing_texts
from turnout.bounds import Bounds
from turnout.collecting.kind import Kind
from turnout.collecting.plan import Plan
from turnout.collecting.report_files.header import OWN_COLUMNS
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.participation import Participation, taking_part_in
from turnout.pipeline.asked import AskedColumns
from turnout.pipeline.columns import digested, group_type
from turnout.pipeline.encoding import Asked, Encoder, Grouping
from turnout.pipeline.identity import Persons, find_persons, first_rows
from turnout.pipeline.pseudonyms import PseudonymKey
from turnout.pipeline.sources import Block

Duplicates = Literal["refuse", "first"] | None


class _Found:
    """Results of looking at answers, which are computed once."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.persons: Persons | None = None


@dataclass(frozen=True, eq=False)
class Answers(AskedColumns):
    """The answers of people in a source, as :func:`scan` returns them.

    Attributes
    ----------
    source
        The source of the rows.
    column, joint
        The column of answers, and further columns whose answers belong to the same report.
    missing
        The rule for missing answers: None (refused), ``"drop"``, or a label; or a dictionary of
        these by column, whose key None is for all other columns. For a column of groups the
        dictionary contains the label of rows without a group.
    missing_values
        Texts that stand for a missing answer, in addition to the usual ones that are not labels.
    texts_of
        Columns whose values are matched with labels by their texts, in addition to those of a
        source that contains only texts.
    trim
        Whether white space around the texts of answers and groups is removed.
    id_column, duplicates
        The column of persons, and the rule for further rows of a person.
    group_by
        The columns that define groups.
    probability_column
        The column with the probabilities of taking part.
    pseudonym_key, pseudonym_context
        The key of pseudonyms, and the collection that they are for.
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
    _digests: Mapping[int, bytes] | None = field(default=None, init=False, repr=False)
    _found: _Found = field(default_factory=_Found, init=False, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The only columns that are read."""
        others = (self.id_column, self.probability_column, *self.group_by)
        return tuple(dict.fromkeys([*self.asked, *(name for name in others if name is not None)]))

    @property
    def _looks_for_persons(self) -> bool:
        """Whether the collection looks for persons with several rows."""
        return self.id_column is not None and self.duplicates is not None

    @property
    def _drops(self) -> bool:
        """Whether rows can be left out because an answer or a group is missing."""
        rules = (*self._rules.values(), *map(self._group_rule, self.group_by))
        return "drop" in rules

    def _in_context(self, context: str) -> Answers:
        """Name the collection for pseudonyms, unless it already has a name.

        Parameters
        ----------
        context
            The fingerprint of its plan.
        """
        if self.pseudonym_key is None or self.pseudonym_context is not None:
            return self
        return self._changed(pseudonym_context=context)

    def _held_to(self, secret: bytes) -> tuple[str | None, Answers]:
        """Digest everything that can be read again, under the secret of a job.

        Where the rows themselves are digested, a block of what is given that is read again and
        differs is refused.
        """
        if not self.source.repeatable:
            return None, self
        digest = hmac.new(secret, b"turnout: the content of a job", hashlib.sha256)
        content = self.source.content()
        if content is not None:
            digest.update(content)
            return digest.hexdigest(), self
        categories = self._categories({})
        found = {
            block.index: digested(block.read().select(self.columns))
            for block in self.source.blocks(self.columns, categories=categories)
        }
        held = self._changed()
        _values.settle(held, _digests=found)
        for index, rows in found.items():
            digest.update(index.to_bytes(8, "little") + rows)
        return digest.hexdigest(), held

    def _changed(self, **changes: Any) -> Answers:
        changed = replace(self, **changes)
        # What was found out does not depend on what changes.
        _values.settle(changed, _found=self._found, _digests=self._digests)
        return changed

    def describe(self) -> dict[str, Any]:
        """Describe the choices as a JSON-compatible dictionary, without data or secrets."""
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

    # Persons ----------------------------------------------------------------------------------

    def _persons(self, *, progress: bool = False) -> Persons | None:
        """Read the identifiers once, and find the rows that do not count.

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

    # Blocks -----------------------------------------------------------------------------------

    def _all_blocks(
        self, domain: Asked | None = None, skip: Container[int] = ()
    ) -> Iterator[Block]:
        """List the blocks of the source, each with its rows that do not count.

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
            What :class:`Encoder` takes, in this process or another.

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
        """Refuse a block whose content has changed since it was digested."""
        if digested(block.read().select(columns)) != known.get(block.index):
            raise self._other_rows()

    def _other_rows(self) -> CorruptDataError:
        return CorruptDataError(
            f"{self.source.name} gave other rows, or another order of rows, when it was read "
            "again: give it an order, or store its result in a file first"
        )

    def _categories(self, parts: Mapping[str, Any]) -> frozenset[str]:
        """Return the columns that should contain few distinct values."""
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

    # Codes ------------------------------------------------------------------------------------

    def _group_rule(self, column: str) -> Hashable:
        """Return the group of a row without one; ``"drop"`` if any rule drops rows.

        A label for missing answers does not apply to groups, which have a rule by the name of their
        column.
        """
        stated = self.missing if isinstance(self.missing, Mapping) else {}
        if column in stated:
            return stated[column]  # type: ignore[no-any-return]
        return "drop" if "drop" in (*self._rules.values(), stated.get(None)) else None

    def _encoder(self, domain: Asked, *, of_files: bool = False) -> Encoder:
        """Settle how blocks become what is randomized.

        Parameters
        ----------
        domain
            The answers that can be given.
        of_files
            Whether the reports go to files, which store values of groups.

        Raises
        ------
        UnknownLabelError, InvalidValueError, InvalidTypeError
            If the domain is of other columns, or what is missing is to be what nobody can answer.
        """
        # A schema looks at all columns of a table.
        stored = {name: self.source.schema.field(name).type for name in self.group_by if of_files}
        grouping = Grouping(
            self.source.name,
            {name: self._group_rule(name) for name in self.group_by},
            {name: group_type(kind) for name, kind in stored.items()},
            missing_texts(more=self.missing_values),
            self.trim,
            self.max_groups,
        )
        return Encoder(
            self.source.name,
            domain,
            self._values(domain),
            grouping,
            self.id_column,
            self.probability_column,
            self.pseudonym_key,
            self.pseudonym_context,
            looked_for=self._looks_for_persons,
        )


def _plain(rule: Any) -> Any:
    return rule if rule is None or isinstance(rule, (str, bool, int, float)) else repr(rule)


def plan_of(answers: Answers, oracle: Kind, participation: Any) -> Plan:
    """Determine the plan under which answers are collected.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If personal probabilities are not in a column, or are there beside a common rate, or if the
        oracle's reports cannot be made block by block.
    """
    _arguments.instance("answers", answers, Answers, "what turnout.pipeline.scan made")
    _arguments.instance("oracle", oracle, Kind, "an oracle")
    # A kind of one's own may draw for all at once, a memoized one answers from a client's state.
    if not (oracle.fresh and oracle.by_blocks):
        why = (
            "which draws for all people at once: use oracle.collect or oracle.randomize"
            if oracle.fresh
            else "whose permanent answers stay on each person's device: make each message with "
            "oracle.client(...).message(plan, answer)"
        )
        raise InvalidTypeError(
            f"oracle must be able to randomize a table block by block, got a "
            f"{type(oracle).__name__}, {why}"
        )
    if answers.probability_column is not None:
        if participation is not None:
            raise _arguments.invalid(
                "participation must be left out where probability_column gives each person's own",
                participation,
            )
        return Plan(oracle, Participation.from_dict({"kind": "personalized"}))
    taking_part = taking_part_in(participation)
    if taking_part.uniform_rate is None:
        raise InvalidValueError(
            "participation must be Everyone() or Bernoulli(...), got "
            f"{_arguments.shown(participation)}: name the column that holds each person's "
            "probability with probability_column"
        )
    return Plan(oracle, taking_part)


def settle(
    answers: Answers,
    oracle: Kind,
    participation: Participation | float | None,
    *,
    of_files: bool = False,
) -> tuple[Plan, Answers, Encoder]:
    """Determine the plan, and how answers are encoded for randomization.

    Parameters
    ----------
    answers, oracle, participation
        As for :func:`turnout.pipeline.randomize`.
    of_files
        Whether the reports go to files, whose pseudonyms are of one collection.

    Returns
    -------
    plan, answers, encoder
        The answers name the collection that pseudonyms are for.

    Raises
    ------
    TurnoutError
        As :func:`plan_of`; if the answers cannot be those of the plan.
    """
    plan = plan_of(answers, oracle, participation)
    if of_files:
        for name in answers.group_by:
            if name in OWN_COLUMNS:
                raise InvalidValueError(
                    f"group_by must not name {name!r}, a column that report files have themselves: "
                    "give it another name"
                )
        # Two questions may have one plan.
        answers = answers._in_context(f"{plan.fingerprint}/{'/'.join(answers.asked)}")
    return plan, answers, answers._encoder(plan.domain, of_files=of_files)
