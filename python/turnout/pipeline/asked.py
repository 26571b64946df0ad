"""Columns of answers: their missing answers, and their distinct answers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from turnout import _arguments
from turnout._extras import require
from turnout._label_texts import kind_of, label_text, parse_label
from turnout.bounds import Bounds
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.pipeline.encoding import Asked
from turnout.pipeline.found import FoundAnswers, find_answers
from turnout.pipeline.sources import Source
from turnout.pipeline.values import Labels, Numbers
from turnout.products import ProductDomain, Questions

Self = TypeVar("Self", bound="AskedColumns")


@dataclass(frozen=True, eq=False)
class AskedColumns:
    """The columns of a source that hold answers: the first attributes of :class:`Answers`."""

    source: Source
    column: str
    joint: tuple[str, ...] = ()
    missing: Any = None
    missing_values: frozenset[str] = frozenset()
    texts_of: frozenset[str] = frozenset()
    trim: bool = False

    @property
    def asked(self) -> tuple[str, ...]:
        """The columns of answers."""
        return (self.column, *self.joint)

    @property
    def name(self) -> str:
        """The name of the answers in messages."""
        if self.joint:
            return f"{self.source.name}: columns {_arguments.listed(self.asked)}"
        return self._name_of(self.column)

    @property
    def rows(self) -> int | None:
        """The number of rows, if it is known without reading them, or None."""
        return self.source.rows

    def _name_of(self, column: str) -> str:
        """Return the name of a column in messages."""
        return f"{self.source.name}: column {column!r}"

    def _rule(self, column: str) -> Hashable:
        """Return the rule for missing answers in a column."""
        if isinstance(self.missing, Mapping):
            return self.missing.get(column, self.missing.get(None))  # type: ignore[no-any-return]
        return self.missing  # type: ignore[no-any-return]

    @property
    def _rules(self) -> dict[str, Hashable]:
        """The rule for missing answers in each column of answers."""
        return {column: self._rule(column) for column in self.asked}

    def _changed(self: Self, **changes: Any) -> Self:
        return replace(self, **changes)

    def _with_rule(self: Self, column: str, rule: Hashable) -> Self:
        """Return the answers with a rule for missing answers in one column."""
        if isinstance(self.missing, Mapping):
            return self._changed(missing={**self.missing, column: rule})
        return self._changed(missing={None: self.missing, column: rule} if self.joint else rule)

    def _matched_by_text(self: Self, column: str) -> Self:
        """Match the values of a column with labels by their texts."""
        return self._changed(texts_of=self.texts_of | {column})

    def _type_of(self, column: str) -> Any:
        """Return the Arrow type of a column's values."""
        kind = self.source.schema.field(column).type
        return kind.value_type if require("pyarrow", "cli").types.is_dictionary(kind) else kind

    def _holds_integers(self, column: str) -> bool:
        """Return whether a column has a type of integers; of text it is not known."""
        types, kind = require("pyarrow", "cli").types, self._type_of(column)
        whole = types.is_integer(kind) or (types.is_decimal(kind) and kind.scale <= 0)
        return not self.source.texts and bool(whole)

    # Codes --------------------------------------------------------------------------------------

    def _parts(self, domain: Asked) -> Mapping[str, Domain | Bounds]:
        """State what is asked for in each column.

        Raises
        ------
        InvalidValueError
            If that is asked of other columns.
        """
        several = domain if isinstance(domain, Mapping) else None
        if isinstance(domain, (ProductDomain, Questions)):
            several = domain.columns
        if several is not None:
            if self.asked != tuple(several):
                raise InvalidValueError(
                    f"{self.source.name}: column must name the questions of the plan in their "
                    f"order, {_arguments.listed(tuple(several))}, got "
                    f"{_arguments.listed(self.asked)}"
                )
            return several
        if self.joint:
            raise InvalidValueError(
                f"{self.name}: column must name one column for a single question, got "
                f"{_arguments.listed(self.asked)}: "
                "a turnout.JointTable, PairTables, SplitBudget or SampledAttribute takes several"
            )
        assert isinstance(domain, (Domain, Bounds))
        return {self.column: domain}

    def _values(self, domain: Asked) -> dict[str, Labels | Numbers]:
        """Determine how the values of each column are encoded for randomization.

        Raises
        ------
        InvalidValueError, InvalidTypeError
            If what is missing is to be what nobody can answer.
        """
        return {
            column: self._values_of(column, part) for column, part in self._parts(domain).items()
        }

    def _values_of(self, column: str, domain: Domain | Bounds) -> Labels | Numbers:
        told: dict[str, Any] = {
            "missing": self._rule(column),
            "missing_values": self.missing_values,
            "name": self._name_of(column),
        }
        if isinstance(domain, Bounds):
            return Numbers(domain, **told)
        texts = self.source.texts or column in self.texts_of
        return Labels(domain, texts=texts, trim=self.trim, **told)

    # What answers there are ---------------------------------------------------------------------

    def distinct(self) -> list[Any]:
        """Read the answers once and list the distinct ones.

        Returns
        -------
        list
            The answers in order of first appearance, without missing ones. Texts of a CSV file
            become integers if all of them are integers.

        Raises
        ------
        InvalidValueError
            If the source can be read only once, if there are more than a million distinct answers,
            or if there are several columns.
        """
        return list(self._looked_at(self._one("distinct")).values)

    def domain(self) -> Domain:
        """Read the answers once and return their domain, only if they are publicly known.

        Returns
        -------
        Domain
            The answers in ascending order, followed by the label of missing answers.

        Raises
        ------
        InvalidValueError
            If there are fewer than two or more than a million distinct answers, if some are missing
            and ``missing`` does not state what that means, if the source can be read only once, or
            if there are several columns.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from turnout.pipeline import scan
        >>> scan(pa.table({"answer": [3, 1, 3]}), "answer").domain().labels
        (1, 3)
        """
        return self._settled(self._one("domain"))[1]

    def domains(self) -> dict[str, Domain]:
        """Return a domain for each column as :meth:`domain` does, for several questions.

        Returns
        -------
        dict
            The domains by column. A label for missing answers in all columns must be an answer in
            each column with missing answers.

        Raises
        ------
        InvalidValueError
            As in :meth:`domain`.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import turnout as tn
        >>> table = pa.table({"sex": ["f", "m", "f"], "vote": ["yes", None, "no"]})
        >>> both = tn.pipeline.scan(table, ["sex", "vote"], missing={"vote": "none"})
        >>> both.domains()["vote"].labels
        ('no', 'yes', 'none')
        >>> tn.JointTable(1.0, both.domains()).collect(both).nodes
        3
        """
        return {column: self._settled(column)[1] for column in self.asked}

    def _settled(
        self: Self, column: str, *, written: bool = False, progress: bool = False
    ) -> tuple[Self, Domain, FoundAnswers]:
        """Make a domain of the answers in a column, and read what is missing in its terms.

        Parameters
        ----------
        column
            One of the columns of answers.
        written
            Whether the label of what is missing is a text that stands for it.
        progress
            Whether a pass of more than two seconds shows a bar on standard error.

        Returns
        -------
        settled, domain, found
            The answers, what can be answered, and what stands in the column.

        Raises
        ------
        InvalidValueError
            As in :meth:`domain`.
        """
        settled, label, name = self, self._rule(column), self._name_of(column)
        found = self._looked_at(column, progress=progress)
        values, gaps = sorted(found.values), found.gaps.total > 0
        if label is not None and label != "drop":
            if written:
                parsed = parse_label(str(label), kind_of(values))
                if parsed is None and gaps:
                    # One column has one type: integers beside "unknown" all become text.
                    values, settled = (
                        [label_text(each) for each in values],
                        settled._matched_by_text(column),
                    )
                else:
                    label = parsed
            if gaps and label not in values:
                if self._of_all(column):
                    raise InvalidValueError(
                        f"{name}: missing must be a label of the domain or 'drop', got "
                        f"{_arguments.shown(label)}: if a label does not belong to every column, "
                        "pass a dictionary by column"
                    )
                values.append(label)
            # What nobody answers and nothing stands for is no label.
            settled = settled._with_rule(column, label if label in values else None)
        if len(values) < 2:
            # A column with one answer says nothing; a wrong separator or column is more likely.
            held = f"the one answer {values[0]!r}" if values else "no answer"
            raise InvalidValueError(
                f"{name} holds {held}, and labels are at least 2: state them (--labels)"
            )
        return settled, Domain(values), found

    def _of_all(self, column: str) -> bool:
        """Return whether one rule applies to this column and others."""
        named = isinstance(self.missing, Mapping) and column in self.missing
        return bool(self.joint) and not named

    def _one(self, method: str) -> str:
        if self.joint:
            raise InvalidValueError(
                f"{self.name}: {method} applies to one column, got "
                f"{_arguments.listed(self.asked)}: use domains() for several"
            )
        return self.column

    def _looked_at(self, column: str, *, progress: bool = False) -> FoundAnswers:
        """List the distinct answers in a column; refuse missing ones if there is no rule."""
        found = find_answers(
            self.source,
            column,
            self._name_of(column),
            missing_values=self.missing_values,
            trim=self.trim,
            progress=progress,
        )
        if found.gaps.total and self._rule(column) is None:
            raise found.refuse_gaps()
        return found
