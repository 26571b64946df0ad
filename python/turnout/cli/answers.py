"""The answers of people as commands read them: options, files of any number, and their domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import typer

from turnout import Bounds, Domain
from turnout._extras import require
from turnout._files import read_bytes
from turnout._label_texts import Kind, parse_label
from turnout.cli.running import note
from turnout.errors import InvalidValueError
from turnout.pipeline import Answers, PseudonymKey, scan
from turnout.pipeline.found import FoundAnswers
from turnout.pipeline.sources.files import find_files

V = TypeVar("V")


def by_column(
    option: str, given: Iterable[str] | None, columns: Sequence[str], read: Callable[[str], V]
) -> dict[str, V]:
    """Read ``COLUMN=TEXT``, or ``TEXT`` where there is one column.

    Raises
    ------
    typer.BadParameter
        If it is of no column, of one twice, or not to be read.

    Examples
    --------
    >>> by_column("--labels", ["vote=no,yes"], ["vote", "age"], str)
    {'vote': 'no,yes'}
    """
    found: dict[str, V] = {}
    for text in given or ():
        name = _column_of(text, columns)
        if name is None and len(columns) > 1:
            raise typer.BadParameter(
                f"{text!r} does not begin with a column and =", param_hint=option
            )
        place = name or columns[0]
        if place in found:
            raise typer.BadParameter(f"{place!r} has it twice", param_hint=option)
        try:
            found[place] = read(text if name is None else text.removeprefix(f"{name}="))
        except typer.BadParameter as error:
            raise typer.BadParameter(f"{place!r}: {error.message}", param_hint=option) from error
    return found


def missing_rules(given: Sequence[str] | None, columns: Sequence[str]) -> Any:
    """Read ``--missing`` as :func:`turnout.pipeline.scan` takes it.

    Raises
    ------
    typer.BadParameter
        If it is said twice of a column, or twice of all others.

    Examples
    --------
    >>> missing_rules(["drop"], ["vote", "age"]), missing_rules(["vote=none"], ["vote", "age"])
    ('drop', {'vote': 'none'})
    """
    of_all = [text for text in given or () if _column_of(text, columns) is None]
    if len(of_all) > 1:
        raise typer.BadParameter(
            f"{of_all[1]!r} does not begin with a column and =, nor does {of_all[0]!r}",
            param_hint="--missing",
        )
    named = [text for text in given or () if text not in of_all]
    if not named:
        return of_all[0] if of_all else None
    rules: dict[Any, str] = dict(by_column("--missing", named, columns, str))
    if of_all:
        rules[None] = of_all[0]
    return rules


def _column_of(text: str, columns: Sequence[str]) -> str | None:
    return next((name for name in columns if text.startswith(f"{name}=")), None)


def stated_labels(
    labels: Sequence[str] | None, labels_file: Path | None, columns: Sequence[str]
) -> dict[str, list[str]]:
    """Read the labels that are stated of each column.

    Raises
    ------
    typer.BadParameter
        If they are stated twice, or of no column.
    """
    check_labels(labels, labels_file)
    if labels_file is None:
        return by_column("--labels", labels, columns, _listed)
    if len(columns) > 1:
        raise typer.BadParameter("is for one column", param_hint="--labels-file")
    return {columns[0]: _lines(labels_file)}


def oracle_names(given: Sequence[str], known: Iterable[str], of: str = "") -> list[str]:
    """Accept names of randomizers, with hyphens or underscores.

    Raises
    ------
    typer.BadParameter
        If one is not known, with those that are, and ``of``.
    """
    known = sorted(known)
    wanted = [name.lower().replace("-", "_") for name in given]
    for name, text in zip(wanted, given, strict=True):
        if name not in known:
            listed = ", ".join(each.replace("_", "-") for each in known)
            raise typer.BadParameter(f"{text!r} is none of {listed}{of}", param_hint="--oracle")
    return wanted


def check_labels(labels: str | Sequence[str] | None, labels_file: Path | None) -> None:
    """Refuse labels that are stated twice."""
    if labels is not None and labels_file is not None:
        raise typer.BadParameter("give --labels or --labels-file, not both")


def _listed(labels: str) -> list[str]:
    found = [label.strip() for label in labels.split(",")]
    repeated = next((label for label in found if found.count(label) > 1), None)
    if repeated is not None:
        raise typer.BadParameter(
            f"{repeated!r} is there twice; labels with commas in them are for --labels-file, which "
            "takes a label a line"
        )
    return found


def _lines(labels_file: Path) -> list[str]:
    try:
        lines = read_bytes(labels_file).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"{labels_file}: not UTF-8 text: {error}") from error
    return [line for line in lines if line.strip()]


def asked_domain(size: int | None, labels: str | None, labels_file: Path | None) -> Domain | int:
    """Take the labels, or their number.

    Raises
    ------
    typer.BadParameter
        If neither is given.
    InvalidValueError
        If they contradict each other.
    """
    check_labels(labels, labels_file)
    stated = None if labels_file is None else _lines(labels_file)
    if labels is not None:
        stated = _listed(labels)
    if stated is None:
        if size is None:
            raise typer.BadParameter(
                "say how many answers there are, or which: --domain-size, --labels or "
                "--labels-file",
                param_hint="--domain-size",
            )
        return size
    if size is not None and size != len(stated):
        raise InvalidValueError(f"--domain-size is {size}, but there are {len(stated)} labels")
    return Domain(stated)


def files_of(sources: Sequence[str]) -> list[Path]:
    """List the files that the sources of a command stand for.

    Raises
    ------
    InvalidValueError
        If a source stands for no file of a known format.
    OSError
        If a source does not exist.
    """
    return [Path(file.path) for file in find_files(list(sources))[1]]


def scanned(
    sources: Sequence[str],
    columns: Sequence[str],
    *,
    missing: Sequence[str] | None,
    missing_values: Sequence[str] | None,
    trim: bool = False,
    separator: str | None = None,
    encoding: str | None = None,
    id_column: str | None = None,
    duplicates: Literal["refuse", "first"] = "refuse",
    pseudonym_key: Path | None = None,
    group_by: Sequence[str] | None = None,
    probability_column: str | None = None,
) -> Answers:
    """Open the answers of a command; what is missing is read as the text that was given.

    Raises
    ------
    InvalidValueError
        If a source or column cannot be used.
    OSError
        If a file cannot be read.
    """
    if pseudonym_key is not None and id_column is None:
        raise typer.BadParameter("needs --id-column", param_hint="--pseudonym-key")
    return scan(
        list(sources) if len(sources) > 1 else sources[0],
        columns,
        missing=missing_rules(missing, (*columns, *(group_by or ()))),
        missing_values=tuple(missing_values or ()),
        trim=trim,
        separator=separator,
        encoding=encoding,
        id_column=id_column,
        duplicates=duplicates,
        pseudonym_key=None if pseudonym_key is None else _key(pseudonym_key),
        group_by=tuple(group_by or ()),
        probability_column=probability_column,
    )


def listed_files(answers: Answers) -> dict[str, list[dict[str, Any]]]:
    """List the files that were read, and how many rows each has, in terms of JSON."""
    files = answers.source.file_rows
    return {"files": [{"path": path, "rows": rows} for path, rows in files.items()]}


def _key(path: Path) -> PseudonymKey:
    if path.exists():
        return PseudonymKey.read(path)
    key = PseudonymKey.generate()
    key.write(path)
    note(f"made a new key in {path}; whoever has it can tell whose a pseudonym is")
    return key


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
            f"the {which} are taken from the data and treated as public; state them with --labels"
            + (" or in a --plan" if answers.joint else " or --labels-file")
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
