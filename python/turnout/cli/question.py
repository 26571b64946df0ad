"""Options of what people are asked: labels, numbers, or a plan that says it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from turnout import Domain, Plan
from turnout._files import read_bytes
from turnout.cli import options
from turnout.cli.columns import by_column
from turnout.errors import InvalidValueError


@dataclass(frozen=True, kw_only=True)
class Labels:
    """The possible answers of columns, if they are stated."""

    labels: options.LabelsByColumn = None
    labels_file: options.LabelsFile = None

    def __post_init__(self) -> None:
        """Refuse labels that are stated twice."""
        _check_once(self.labels, self.labels_file)

    def of(self, columns: Sequence[str]) -> dict[str, list[str]]:
        """Read the labels that are stated of each column.

        Raises
        ------
        typer.BadParameter
            If they are stated of no column, or twice of one.
        """
        if self.labels_file is None:
            return by_column("--labels", self.labels, columns, _listed)
        if len(columns) > 1:
            raise typer.BadParameter("applies to one column only", param_hint="--labels-file")
        return {columns[0]: _lines(self.labels_file)}


@dataclass(frozen=True, kw_only=True)
class OneList:
    """The possible answers to one question, if they are stated."""

    labels: options.Labels = None
    labels_file: options.LabelsFile = None

    def __post_init__(self) -> None:
        """Refuse labels that are stated twice."""
        _check_once(self.labels, self.labels_file)

    @property
    def stated(self) -> list[str] | None:
        """The labels, or None.

        Raises
        ------
        typer.BadParameter
            If one is duplicated.
        InvalidValueError
            If the file is not text.
        OSError
            If it cannot be read.
        """
        if self.labels is not None:
            return _listed(self.labels)
        return None if self.labels_file is None else _lines(self.labels_file)


@dataclass(frozen=True, kw_only=True)
class Choices(OneList):
    """The possible answers to one question, or how many there are.

    Attributes
    ----------
    domain_size
        The number of possible answers; or pass --labels.
    """

    domain_size: Annotated[int | None, typer.Option("--domain-size", "-k", min=2)] = None

    def domain(self) -> Domain | int:
        """Read the labels, or their number.

        Raises
        ------
        typer.BadParameter
            If neither is given.
        InvalidValueError
            If they contradict each other.
        """
        size, stated = self.domain_size, self.stated
        if stated is None:
            if size is None:
                raise typer.BadParameter(
                    "pass --domain-size, --labels or --labels-file, to state the possible answers",
                    param_hint="--domain-size",
                )
            return size
        if size is not None and size != len(stated):
            raise InvalidValueError(f"--domain-size is {size}, but there are {len(stated)} labels")
        return Domain(stated)


@dataclass(frozen=True, kw_only=True)
class PlanFile:
    """A plan that says what is asked.

    Attributes
    ----------
    plan_file
        A plan file.
    """

    plan_file: Annotated[Path | None, typer.Option("--plan", metavar="FILE")] = None
    public_key: options.PublicKey = None

    def __post_init__(self) -> None:
        """Refuse a key without a plan."""
        alone = self.public_key is not None and self.plan_file is None
        options.refuse_if((alone, "--public-key", "needs --plan"))

    def read(self) -> Plan | None:
        """Read the plan, if one is given.

        Raises
        ------
        TurnoutError
            If it cannot be read, or was not signed by the key.
        """
        return (
            None
            if self.plan_file is None
            else Plan.read(self.plan_file, public_key=self.public_key)
        )


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


def _check_once(labels: str | Sequence[str] | None, labels_file: Path | None) -> None:
    """Refuse labels that are stated twice."""
    if labels is not None and labels_file is not None:
        raise typer.BadParameter("pass --labels or --labels-file, not both")


def _listed(labels: str) -> list[str]:
    found = [label.strip() for label in labels.split(",")]
    repeated = next((label for label in found if found.count(label) > 1), None)
    if repeated is not None:
        raise typer.BadParameter(
            f"{repeated!r} is duplicated; to use labels that contain commas, pass "
            "--labels-file with one label on each line"
        )
    return found


def _lines(labels_file: Path) -> list[str]:
    try:
        lines = read_bytes(labels_file).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InvalidValueError(f"{labels_file}: not UTF-8 text: {error}") from error
    return [line for line in lines if line.strip()]
