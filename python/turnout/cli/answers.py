"""The options by which commands say what people can answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from turnout import Domain
from turnout._files import read_bytes
from turnout.errors import InvalidValueError

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


def check_labels(labels: str | None, labels_file: Path | None) -> None:
    """Refuse labels that are stated twice."""
    if labels is not None and labels_file is not None:
        raise typer.BadParameter("give --labels or --labels-file, not both")


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
    stated = read_labels(labels, labels_file)
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
