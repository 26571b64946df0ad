"""The answers of people as commands read them: files of any number, and their domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from turnout import Domain, Plan
from turnout._extras import require
from turnout._label_texts import Kind, label_text, missing_texts, parse_label
from turnout.cli.answers import read_labels
from turnout.cli.running import note
from turnout.cli.showing import showing
from turnout.errors import InvalidValueError
from turnout.pipeline import Answers, PseudonymKey, scan
from turnout.pipeline.distinct import distinct_answers
from turnout.pipeline.sources.files import find_files

Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="IN...",
        help=(
            "CSV (also .csv.gz), Parquet or Arrow IPC files with one row a person; folders of "
            "them, Hive partitions too; quoted patterns."
        ),
    ),
]
IdColumn = Annotated[
    str | None,
    typer.Option("--id-column", help="Which person a row is of; it is not written anywhere."),
]
Duplicates = Annotated[
    str,
    typer.Option(
        "--duplicates",
        metavar="refuse|first",
        help="With --id-column: what happens to a second row of a person.",
    ),
]
PseudonymKeyFile = Annotated[
    Path | None,
    typer.Option(
        "--pseudonym-key",
        metavar="FILE",
        help="With --id-column: reports carry a keyed pseudonym; the file is made if need be.",
    ),
]
GroupBy = Annotated[
    list[str] | None,
    typer.Option(
        "--group-by", help="A column that is reported as it is, for a tally of each group."
    ),
]
ProbabilityColumn = Annotated[
    str | None,
    typer.Option(
        "--probability-column", help="Each person's own probability of reporting; public."
    ),
]


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
    column: str | Sequence[str],
    *,
    missing: str | None,
    missing_values: Sequence[str] | None,
    id_column: str | None = None,
    duplicates: str = "refuse",
    pseudonym_key: Path | None = None,
    group_by: Sequence[str] | None = None,
    probability_column: str | None = None,
) -> Answers:
    """Open the answers of a command.

    Raises
    ------
    InvalidValueError
        If a source or column cannot be used.
    OSError
        If a file cannot be read.
    """
    if duplicates not in ("refuse", "first"):
        raise typer.BadParameter(
            f"{duplicates!r} is none of refuse, first", param_hint="--duplicates"
        )
    if pseudonym_key is not None and id_column is None:
        raise typer.BadParameter("needs --id-column", param_hint="--pseudonym-key")
    return scan(
        list(sources) if len(sources) > 1 else sources[0],
        column,
        missing="drop" if missing == "drop" else None,
        missing_values=tuple(missing_values or ()),
        id_column=id_column,
        duplicates=duplicates,  # type: ignore[arg-type]
        pseudonym_key=None if pseudonym_key is None else _key(pseudonym_key),
        group_by=tuple(group_by or ()),
        probability_column=probability_column,
    )


def _key(path: Path) -> PseudonymKey:
    if path.exists():
        return PseudonymKey.read(path)
    key = PseudonymKey.generate()
    key.write(path)
    note(f"made a new key in {path}; whoever has it can tell whose a pseudonym is")
    return key


def settled(
    answers: Answers,
    labels: str | None,
    labels_file: Path | None,
    missing: str | None,
    *,
    say: bool = True,
) -> tuple[Answers, Domain]:
    """Settle the domain, from the labels given or from the data, and what is missing.

    Labels of the data are noted, unless the caller says so where it shows the result.

    Raises
    ------
    InvalidValueError
        If the data have to be read for it and cannot be used.
    """
    texts = read_labels(labels, labels_file)
    wanted = None if missing in (None, "drop") else missing
    if texts is None:
        return _from_data(answers, wanted, say)
    kind = _kind(answers, [*texts, *([] if wanted is None else [wanted])])
    domain = Domain([_parsed(text, kind) for text in texts])
    return _with_missing(answers, kind, wanted), domain


def settled_columns(answers: Answers, missing: str | None) -> tuple[Answers, dict[str, Domain]]:
    """Settle the domains of several columns from the data; a missing answer is refused or dropped.

    Raises
    ------
    InvalidValueError
        If a missing answer is to be a label, or the data cannot be used.
    """
    if missing not in (None, "drop"):
        raise InvalidValueError(
            f"missing (--missing) must be 'drop' where columns are joined, got {missing!r}: one "
            "label is none of every column"
        )
    domains = {}
    for name in answers.asked:
        one = replace(answers, column=name, joint=())
        _, domains[name] = settled(one, None, None, missing, say=False)
    note(
        f"the labels of {', '.join(map(repr, domains))} are taken from the data and treated as "
        "public; a --plan states them"
    )
    return answers, domains


def in_domain(answers: Answers, plan: Plan, missing: str | None) -> Answers:
    """Read what is missing in terms of a plan.

    Raises
    ------
    InvalidValueError
        If a missing answer is to be what nobody can answer.
    """
    if missing in (None, "drop"):
        return answers
    return replace(answers, missing=showing(plan).missing(plan.domain, str(missing)))


def _from_data(answers: Answers, wanted: str | None, say: bool) -> tuple[Answers, Domain]:
    answers = answers if wanted is None else replace(answers, missing=wanted)
    values, gaps = distinct_answers(answers, progress=True)
    values = sorted(values)
    if wanted is not None:
        kind = _kind_of(values)
        label = parse_label(wanted, kind)
        if label is None and gaps:
            # One Arrow column has one type: integers beside "unknown" all become text.
            values, label = [label_text(value) for value in values], wanted
            answers = replace(answers, _texts=True)
        if gaps:
            answers = replace(answers, missing=label)
            values += [label] if label not in values else []
        else:
            answers = replace(answers, missing=None)
    if len(values) < 2:
        # A column with one answer says nothing; a wrong separator or column is more likely.
        found = f"the one answer {values[0]!r}" if values else "no answer"
        raise InvalidValueError(
            f"{answers.name} holds {found}, and labels are at least 2: state them with --labels "
            "or --labels-file"
        )
    domain = Domain(values)
    _warn_of_spaces(answers, domain)
    if say:
        note(
            f"the {domain.size:,} labels of the domain are taken from the data and treated as "
            "public; state them with --labels or --labels-file"
        )
    return answers, domain


def _warn_of_spaces(answers: Answers, domain: Domain) -> None:
    """Say where a text that means missing is there, but with spaces around it."""
    for label in domain.labels:
        texts = missing_texts(more=answers.missing_values)
        if isinstance(label, str) and label.strip() in texts:
            note(
                f"{label!r} is counted as a label: with spaces it is not {label.strip()!r}, which "
                "means missing"
            )


def _kind(answers: Answers, texts: Sequence[str]) -> Kind:
    """Tell what kind of labels a column has, such that all texts are of it."""
    stored = _stored(answers)
    kinds: tuple[Kind, ...] = ("integer", "text") if stored == "csv" else (stored, "text")
    if stored == "number":
        kinds = ("integer", "number", "text")
    return next(
        kind for kind in kinds if all(parse_label(text, kind) is not None for text in texts)
    )


def _stored(answers: Answers) -> Any:
    if answers.source.texts:
        return "csv"
    types = require("pyarrow", "cli").types
    kind = answers.source.schema.field(answers.column).type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind):
        return "integer"
    return "number" if types.is_floating(kind) else "text"


def _kind_of(labels: Sequence[Any]) -> Kind:
    if all(isinstance(label, bool) for label in labels):
        return "boolean"
    if all(isinstance(label, int) for label in labels):
        return "integer"
    return "number" if all(isinstance(label, (int, float)) for label in labels) else "text"


def _parsed(text: str, kind: Kind) -> Any:
    value = parse_label(text, kind)
    assert value is not None  # the kind was chosen so that every text is of it
    return value


def _with_missing(answers: Answers, kind: Kind, wanted: str | None) -> Answers:
    if kind == "text" and _stored(answers) not in ("csv", "text"):
        answers = replace(answers, _texts=True)
    if wanted is None:
        return answers
    return replace(answers, missing=_parsed(wanted, kind))
