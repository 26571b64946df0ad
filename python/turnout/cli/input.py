"""Options of what a command reads: files with a row for each person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from turnout.cli import options
from turnout.cli.columns import by_column, column_of
from turnout.cli.running import note
from turnout.pipeline import Answers, PseudonymKey, scan
from turnout.pipeline.sources.files import find_files


@dataclass(frozen=True, kw_only=True)
class Files:
    """Which files are read, and how those of text are written."""

    sources: options.Sources
    separator: options.Separator = None
    encoding: options.Encoding = None

    @property
    def paths(self) -> list[Path]:
        """The files that the sources stand for.

        Raises
        ------
        InvalidValueError
            If a source stands for no file of a known format.
        OSError
            If a source does not exist.
        """
        return [Path(file.path) for file in find_files(list(self.sources))[1]]

    def scan(self, columns: Sequence[str], **more: Any) -> Answers:
        """Open the answers; further arguments are those of :func:`turnout.pipeline.scan`.

        Raises
        ------
        InvalidValueError
            If a source or column cannot be used.
        OSError
            If a file cannot be read.
        """
        return scan(
            self.sources if len(self.sources) > 1 else self.sources[0],
            columns,
            separator=self.separator,
            encoding=self.encoding,
            **more,
        )


@dataclass(frozen=True, kw_only=True)
class Input(Files):
    """Which files are read, and which answers in them are missing."""

    missing: options.Missing = None
    missing_value: options.MissingValues = None
    trim: options.Trim = False

    def scan(self, columns: Sequence[str], **more: Any) -> Answers:
        """Open the answers; what is missing is read as the text that was given.

        Raises
        ------
        InvalidValueError
            If a source or column cannot be used.
        OSError
            If a file cannot be read.
        """
        return super().scan(
            columns,
            missing=missing_rules(self.missing, (*columns, *more.get("group_by", ()))),
            missing_values=tuple(self.missing_value or ()),
            trim=self.trim,
            **more,
        )


@dataclass(frozen=True, kw_only=True)
class People:
    """Whose a row is, and what is known of this person."""

    id_column: options.IdColumn = None
    duplicates: options.Duplicates = "refuse"
    group_by: options.GroupBy = None
    probability_column: options.ProbabilityColumn = None

    def read(self) -> dict[str, Any]:
        """Give it as arguments of :func:`turnout.pipeline.scan`."""
        return {
            "id_column": self.id_column,
            "duplicates": self.duplicates,
            "group_by": tuple(self.group_by or ()),
            "probability_column": self.probability_column,
        }


@dataclass(frozen=True, kw_only=True)
class NamedPeople(People):
    """Whose a row is, and under which pseudonym this person reports."""

    pseudonym_key: options.PseudonymKeyFile = None

    def __post_init__(self) -> None:
        """Refuse a key of nobody."""
        alone = self.pseudonym_key is not None and self.id_column is None
        options.refuse_if((alone, "--pseudonym-key", "needs --id-column"))

    def read(self) -> dict[str, Any]:
        """Give it as arguments of :func:`turnout.pipeline.scan`; the key is made if need be."""
        key = None if self.pseudonym_key is None else _key(self.pseudonym_key)
        return {**super().read(), "pseudonym_key": key}


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
    of_all = [text for text in given or () if column_of(text, columns) is None]
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


def listed_files(files: Mapping[str, int]) -> dict[str, list[dict[str, Any]]]:
    """List the files that were read, and how many rows each has, in terms of JSON."""
    return {"files": [{"path": path, "rows": rows} for path, rows in files.items()]}


def _key(path: Path) -> PseudonymKey:
    if path.exists():
        return PseudonymKey.read(path)
    key = PseudonymKey.generate()
    key.write(path)
    note(f"made a new key in {path}; anybody who has it can tell whom a pseudonym belongs to")
    return key
