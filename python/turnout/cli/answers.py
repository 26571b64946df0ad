"""The answers of people, and what is asked in each column: stated, or found in the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from turnout import Bounds, Domain
from turnout._extras import require
from turnout._label_texts import Kind, parse_label
from turnout.cli.running import note
from turnout.errors import InvalidValueError
from turnout.pipeline import Answers
from turnout.pipeline.found import FoundAnswers

V = TypeVar("V")


def settled(
    answers: Answers, given: Mapping[str, Sequence[str] | Bounds]
) -> tuple[Answers, dict[str, Any], dict[str, FoundAnswers]]:
    """Settle what is asked in each column, and what is missing in its terms.

    Parameters
    ----------
    answers
        What :func:`scanned` gave.
    given
        The labels, or the numbers that can be given, of columns; of others the labels are those of
        the data.

    Returns
    -------
    answers, domains, read
        The answers, what is asked in each column, and what stands in those that had to be read.

    Raises
    ------
    InvalidValueError
        If the data have to be read for it and cannot be used.
    """
    found: dict[str, Any] = {}
    read: dict[str, FoundAnswers] = {}
    for column in answers.asked:
        asked = given.get(column)
        if asked is None:
            answers, found[column], read[column] = answers._settled(
                column, written=True, progress=True
            )
        elif isinstance(asked, Bounds):
            answers, found[column] = _in_part(answers, column, asked), asked
        else:
            answers, found[column] = _stated(answers, column, asked)
    return answers, found, read


def tell_of_labels(
    answers: Answers, domains: Mapping[str, Any], read: Mapping[str, FoundAnswers], numbers: str
) -> None:
    """Note of which columns the labels are those of the data, and what is odd about them.

    Parameters
    ----------
    answers, domains, read
        What :func:`settled` gave.
    numbers
        How the command asks for numbers.

    Raises
    ------
    InvalidValueError
        If a column looks like numbers or identifiers.
    """
    for found in read.values():
        found.refuse_odd(numbers)
        for sentence in found.notes(answers.missing_values):
            note(sentence)
    if read:
        names = list(read)
        which = f"{domains[names[0]].size:,} labels of the domain"
        if answers.joint:
            which = f"labels of {', '.join(map(repr, names))}"
        note(
            f"the {which} were taken from the data and treated as public; state them "
            "with --labels" + (" or in a --plan" if answers.joint else " or --labels-file")
        )


def in_domain(answers: Answers, domain: Any) -> Answers:
    """Read what is missing in terms of a domain.

    Raises
    ------
    InvalidValueError
        If a missing answer is to be what nobody can answer.
    """
    for column, part in answers._parts(domain).items():
        answers = _in_part(answers, column, part)
    return answers


def _in_part(answers: Answers, column: str, part: Domain | Bounds) -> Answers:
    text = answers._rule(column)
    if text is None or text == "drop":
        return answers
    label: Any = text
    if isinstance(part, Bounds):
        try:
            label = float(str(text))
        except ValueError as error:
            raise InvalidValueError(
                f"{answers._name_of(column)}: --missing must be drop or a number within the "
                f"bounds, got {text!r}"
            ) from error
    else:
        label = next((each for each in part.labels if str(each) == text), text)
    return answers._with_rule(column, label)


def _stated(answers: Answers, column: str, labels: Sequence[str]) -> tuple[Answers, Domain]:
    """Read labels, and that of what is missing, as values of a kind that a column can have."""
    rule = answers._rule(column)
    wanted = [] if rule is None or rule == "drop" else [str(rule)]
    kinds = _kinds(answers, column)
    kind = next(
        kind
        for kind in kinds
        if all(parse_label(text, kind) is not None for text in [*labels, *wanted])
    )
    if kind == "text" and kinds[0] != "text" and not answers.source.texts:
        answers = answers._matched_by_text(column)
    for text in wanted:
        answers = answers._with_rule(column, parse_label(text, kind))
    return answers, Domain([parse_label(text, kind) for text in labels])


def _kinds(answers: Answers, column: str) -> tuple[Kind, ...]:
    """List the kinds of labels that a column can have, the narrowest first."""
    if answers.source.texts:
        return "integer", "text"
    types, kind = require("pyarrow", "cli").types, answers._type_of(column)
    if types.is_boolean(kind):
        return "boolean", "text"
    if types.is_integer(kind):
        return "integer", "text"
    numbers = types.is_floating(kind) or types.is_decimal(kind)
    return ("integer", "number", "text") if numbers else ("text",)
