"""The options by which commands say what people can answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

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
LabelsByColumn = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        metavar="[COLUMN=]A,B,C",
        help="The possible answers of a column, comma-separated; repeatable.",
    ),
]
LabelsFile = Annotated[
    Path | None,
    typer.Option("--labels-file", help="The possible answers, one a line (UTF-8)."),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing",
        metavar="[COLUMN=]LABEL|drop",
        help="Count missing answers (in a column) as this label, or drop those people; of a column "
        "of groups: the group of who has none; repeatable.",
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


def read_labels(labels: str | None, labels_file: Path | None) -> list[str] | None:
    """Read the labels of a domain from an option or a file; None if in neither."""
    if labels is not None:
        return _listed(labels)
    return None if labels_file is None else _lines(labels_file)


def _listed(labels: str) -> list[str]:
    return [label.strip() for label in labels.split(",")]


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
