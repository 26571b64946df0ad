"""The distinct answers in a column, and warnings about their use as labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from turnout._label_texts import missing_texts, parse_label, typed_values
from turnout._progress import track
from turnout._types import Truths
from turnout.errors import InvalidValueError
from turnout.pipeline.columns import compact, factors, rows_text
from turnout.pipeline.rows import Gaps, is_missing, trimmed
from turnout.pipeline.sources import Source

_MOST: Final = 2**20
_SHOWN: Final = 5

#: More different answers than this are looked at: are they numbers, or identifiers?
_MANY: Final = 50

#: Numbers are these if no more than a tenth of the different answers are something else.
_OTHERS: Final = 10


@dataclass(frozen=True)
class FoundAnswers:
    """The distinct answers in a column. This is private data.

    Attributes
    ----------
    name
        What messages call the column.
    values
        The answers in order of first appearance.
    answered
        How many rows have one.
    gaps
        What stands for a missing answer, and how often.
    rows
        The first rows without an answer.
    """

    name: str
    values: Sequence[Any]
    answered: int
    gaps: Gaps
    rows: Sequence[int]

    def refuse_gaps(self) -> InvalidValueError:
        """Return the error that states which answers are missing."""
        where = f" ({rows_text(np.array(self.rows))})" if self.rows else ""
        return self.gaps.refused(self.name, self.answered + self.gaps.total, where, "a label")

    def refuse_odd(self, numbers: str) -> None:
        """Refuse to use values as labels that look like numbers or identifiers.

        Parameters
        ----------
        numbers
            How numbers are asked for.

        Raises
        ------
        InvalidValueError
            If there are many different answers, and they are numbers or hardly anybody shares one.
        """
        different = len(self.values)
        if different <= _MANY:
            return
        several = 2 * different <= self.answered
        as_labels = "labels (--labels) states them, --labels-file if they are many"
        if _OTHERS * sum(map(_like_number, self.values)) >= (_OTHERS - 1) * different:
            raise InvalidValueError(
                f"{self.name} looks like numbers{'' if several else ' or identifiers'}: "
                f"{different:,} different ones of {self.answered:,} people, and as labels each of "
                f"them would be an answer of its own. {numbers}; if they are labels all the same, "
                f"{as_labels}"
            )
        if not several:
            raise InvalidValueError(
                f"{self.name} looks like identifiers or free text: {different:,} different answers "
                f"of {self.answered:,} people, and as labels all of them would be published. Is it "
                f"the column of answers? If so, {as_labels}"
            )

    def notes(self, given: Iterable[str]) -> Iterator[str]:
        """Return notes about texts read as missing, and about labels that are almost equal.

        Parameters
        ----------
        given
            The texts that were stated to stand for no answer: nobody is surprised by them.
        """
        texts = self.gaps.texts(given)
        if texts:
            listed = ", ".join(f"{text} {number:,} times" for text, number in texts.items())
            yield (
                f"{self.name}: read as no answer: {listed}. If one of these is an answer, labels "
                "(--labels) states it with the others."
            )
        alike = alike_labels(self.values)
        if alike:
            pairs = " and ".join(", ".join(map(repr, each)) for each in alike[:_SHOWN])
            more = f" and {len(alike) - _SHOWN:,} more" if len(alike) > _SHOWN else ""
            yield (
                f"{self.name}: labels that differ only by white space or case are counted apart: "
                f"{pairs}{more}. trim (--trim) takes white space off; of case make one in the data."
            )
        known = missing_texts(more=given)
        for label in self.values:
            if isinstance(label, str) and label not in known and label.strip() in known:
                yield (
                    f"{label!r} is counted as a label: with spaces it is not {label.strip()!r}, "
                    "which means missing; trim (--trim) takes white space off"
                )


def alike_labels(labels: Iterable[Any]) -> list[list[str]]:
    """List the labels that differ only in white space or case.

    Examples
    --------
    >>> alike_labels(["a", "b", "a ", "B", 3])
    [['a', 'a '], ['b', 'B']]
    """
    same: dict[str, list[str]] = {}
    for label in labels:
        if isinstance(label, str):
            same.setdefault(" ".join(label.split()).casefold(), []).append(label)
    return [each for each in same.values() if len(each) > 1]


def _like_number(value: Any) -> bool:
    """Return whether a text is a number, also with a decimal comma or grouped digits."""
    if isinstance(value, str):
        text = value.strip().replace(" ", "")
        return any(
            parse_label(each, "number") is not None
            for each in (text.replace(",", "."), text.replace(",", ""))
        )
    return not isinstance(value, bool)


def find_answers(
    source: Source,
    column: str,
    name: str,
    *,
    missing_values: frozenset[str],
    trim: bool,
    progress: bool,
) -> FoundAnswers:
    """Read a column once and list its distinct answers.

    Raises
    ------
    InvalidValueError
        If the source can be read only once, or if there are more than a million.
    """
    if not source.repeatable:
        raise InvalidValueError(
            f"{source.name} can be read only once, so turnout cannot look for the "
            "answers first: pass the domain"
        )
    known = missing_texts(more=missing_values)
    seen: dict[tuple[bool, Any], list[Any]] = {}
    gaps, rows, total = Gaps(), list[int](), 0
    blocks = source.blocks([column], categories=frozenset([column]))
    for block in track(blocks, "looking for labels", progress, source.number_of_blocks):
        for values, index in factors(block.read().column(column), name):
            _, used = compact(index, len(values))
            counts = np.bincount(index, minlength=len(values))
            absent = np.zeros(len(values), bool)
            for place in used.tolist():
                value = trimmed(values[place]) if trim else values[place]
                if is_missing(value, known):
                    absent[place] = True
                    gaps.add(value, int(counts[place]))
                    continue
                entry = seen.setdefault((isinstance(value, bool), value), [value, 0])
                entry[1] += int(counts[place])
            if absent.any() and len(rows) <= _SHOWN:
                found: Truths = absent[index]
                rows += (np.flatnonzero(found)[: _SHOWN + 1] + total).tolist()
            total += len(index)
            if len(seen) > _MOST:
                raise InvalidValueError(
                    f"{name} has more than {_MOST:,} different values: is it the column of answers?"
                )
    listed = [value for value, _ in seen.values()]
    typed = typed_values(listed, texts=source.texts)
    for given, value, (_, number) in zip(listed, typed, seen.values(), strict=True):
        if value is None:
            # Among numbers "nan" is none.
            gaps.add(given, number)
    kept = [value for value in typed if value is not None]
    return FoundAnswers(name, kept, total - gaps.total, gaps, rows)
