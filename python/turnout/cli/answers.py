"""The answers of people: a column of a file and its domain, as every command reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from turnout import Domain
from turnout._extras import require
from turnout._files import read_bytes
from turnout._progress import doing
from turnout.cli.columns import Column, Value, label_text, parse_label, read_column
from turnout.cli.running import note
from turnout.errors import InvalidValueError, UnknownLabelError

__all__ = [
    "Answers",
    "ColumnName",
    "Labels",
    "LabelsFile",
    "Missing",
    "MissingValues",
    "Source",
    "check_labels",
    "name_rows",
    "read_answers",
    "read_labels",
    "settle_domain",
]

_SHOWN = 5

Source = Annotated[
    Path,
    typer.Argument(
        metavar="IN",
        help="CSV (also .csv.gz), Parquet or Arrow IPC file with one row a person.",
    ),
]
ColumnName = Annotated[
    str, typer.Option("--column", "-c", help="Column with the answers; no other is read.")
]
Labels = Annotated[
    str | None,
    typer.Option("--labels", metavar="A,B,C", help="The possible answers, comma-separated."),
]
LabelsFile = Annotated[
    Path | None,
    typer.Option("--labels-file", help="The possible answers, one a line (UTF-8)."),
]
Missing = Annotated[
    str | None,
    typer.Option(
        "--missing",
        metavar="LABEL|drop",
        help="Count missing answers as this label, or drop those people.",
    ),
]
MissingValues = Annotated[
    list[str] | None,
    typer.Option(
        "--missing-value",
        metavar="TEXT",
        help="A text that means missing, beside empty fields, nulls, NaN and (where they are no "
        "label) what pandas takes for missing: NA, n/a, null, None; repeatable.",
    ),
]


@dataclass(frozen=True)
class Answers:
    """What people answered.

    Attributes
    ----------
    values
        An Arrow array with one label for each person.
    domain
        The possible answers.
    dropped
        How many people were left out because their answer is missing.
    """

    values: Any
    domain: Domain
    dropped: int


def check_labels(labels: str | None, labels_file: Path | None) -> None:
    """Refuse labels that are stated twice."""
    if labels is not None and labels_file is not None:
        raise typer.BadParameter("give --labels or --labels-file, not both")


def read_answers(
    source: Path,
    column: str,
    *,
    labels: str | None,
    labels_file: Path | None,
    missing: str | None,
    missing_values: Sequence[str] | None,
) -> Answers:
    """Read the answers of one column, and settle the domain and what is missing.

    Parameters
    ----------
    source, column
        The file and the name of its column.
    labels, labels_file
        Where the domain is stated; it is taken from the data, with a note, if in neither.
    missing
        What missing answers are: a label, or ``"drop"``; None refuses them.
    missing_values
        Further texts that stand for a missing answer.

    Returns
    -------
    Answers
        The answers and their domain.

    Raises
    ------
    InvalidValueError
        If the column cannot be read, or has missing answers and nothing says what they are.
    UnknownLabelError
        If an answer is not in the domain that is stated.
    """
    stated = read_labels(labels, labels_file)
    with doing(f"reading {source.name}"):
        found = read_column(
            source, column, missing_values=missing_values or (), labels=stated or ()
        )
    found, dropped = _settle_missing(found, missing)
    found, domain = settle_domain(found, stated, missing)
    return Answers(_as_arrow(found), domain, dropped)


def read_labels(labels: str | None, labels_file: Path | None) -> list[str] | None:
    """Read the labels of a domain from an option or a file; None if in neither."""
    if labels is not None:
        return [label.strip() for label in labels.split(",")]
    if labels_file is None:
        return None
    try:
        lines = read_bytes(labels_file).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"{labels_file}: not UTF-8 text: {error}") from error
    return [line for line in lines if line.strip()]


def _settle_missing(answers: Column, missing: str | None) -> tuple[Column, int]:
    """Refuse or drop missing answers; those that become a label wait for the domain."""
    rows = answers.missing_rows()
    if not rows.size or (missing is not None and missing != "drop"):
        return answers, 0
    if missing == "drop":
        return replace(answers, indices=answers.indices[answers.indices >= 0]), rows.size
    raise InvalidValueError(
        f"column {answers.name!r}: {rows.size:,} of {answers.indices.size:,} answers are missing "
        f"({name_rows(rows)}); say with --missing what they are: a label, or drop"
    )


def name_rows(rows: Any) -> str:
    """Name the first rows; the first row of data is row 1."""
    shown = ", ".join(str(int(row) + 1) for row in rows[:_SHOWN])
    more = ", ..." if len(rows) > _SHOWN else ""
    return f"row{'s' if len(rows) > 1 else ''} {shown}{more}"


def settle_domain(
    answers: Column, labels: Sequence[str] | None, missing: str | None
) -> tuple[Column, Domain]:
    """Domain from the labels given or from the data, and the answers in its terms."""
    wanted = missing if missing != "drop" and answers.missing_rows().size else None
    texts = [*(labels or ()), *(() if wanted is None else (wanted,))]
    if any(parse_label(text, answers.kind) is None for text in texts):
        # One Arrow column has one type: integers beside "unknown" all become text.
        order = _sorted(answers.values)
        answers = answers.as_text()
        found: Sequence[Value] = [label_text(value) for value in order]
    else:
        found = _sorted(answers.values)
    if labels is None:
        domain_labels = list(found)
        note(
            f"the {len(domain_labels)} labels of the domain are taken from the data and treated "
            "as public; state them with --labels or --labels-file"
        )
    else:
        domain_labels = [_parsed(text, answers) for text in labels]
    if wanted is not None:
        answers = _fill_missing(answers, _parsed(wanted, answers))
        if labels is None and _parsed(wanted, answers) not in domain_labels:
            domain_labels.append(_parsed(wanted, answers))
    domain = Domain(domain_labels)
    _refuse_unknown(answers, domain)
    return answers, domain


def _sorted(values: Sequence[Any]) -> list[Any]:
    return sorted(values)


def _parsed(text: str, answers: Column) -> Value:
    value = parse_label(text, answers.kind)
    assert value is not None  # as_text was called when a label did not parse
    return value


def _fill_missing(answers: Column, label: Value) -> Column:
    values = answers.values if label in answers.values else (*answers.values, label)
    code = np.int32(values.index(label))
    indices = np.where(answers.indices < 0, code, answers.indices)
    return replace(answers, values=values, indices=indices)


def _refuse_unknown(answers: Column, domain: Domain) -> None:
    known = frozenset(domain.labels)
    unknown = [code for code, value in enumerate(answers.values) if value not in known]
    if not unknown:
        return
    rows = np.flatnonzero(np.isin(answers.indices, unknown))
    first = ", ".join(repr(answers.values[code]) for code in unknown[:_SHOWN])
    more = ", ..." if len(unknown) > _SHOWN else ""
    raise UnknownLabelError(
        f"column {answers.name!r}: {rows.size:,} answers are not among the {domain.size} labels: "
        f"{first}{more} ({name_rows(rows)})"
    )


def _as_arrow(answers: Column) -> Any:
    pa = require("pyarrow", "cli")
    return pa.DictionaryArray.from_arrays(pa.array(answers.indices), pa.array(answers.values))
