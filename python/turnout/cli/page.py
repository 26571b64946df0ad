"""Options of the page for people that a command writes beside its result."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from turnout._extras import require
from turnout._progress import doing
from turnout.cli import options, running
from turnout.reporting import report


@dataclass(frozen=True, kw_only=True)
class Page:
    """What is written for people.

    Attributes
    ----------
    page
        The page, a file ending in .html.
    title
        The heading of the page: the question that was asked.
    overwrite
        Replace existing files.
    """

    page: Annotated[
        Path | None,
        typer.Option("--report", metavar="PAGE", callback=options.ending_in(".html", ".htm")),
    ] = None
    title: str | None = None
    overwrite: Annotated[bool, typer.Option("--overwrite")] = False

    def __post_init__(self) -> None:
        """Refuse what says nothing of what is written."""
        written = self._written()
        options.refuse_if(
            (self.title is not None and self.page is None, "--title", "needs --report"),
            (
                self.overwrite and not any(written.values()),
                "--overwrite",
                f"needs {' or '.join(written)}",
            ),
        )

    def _written(self) -> dict[str, Path | None]:
        """Say what may be written, by the options that ask for it."""
        return {"--report": self.page}

    def check(self, sources: list[Path]) -> None:
        """Refuse a page that cannot be written or drawn, before anybody is randomized.

        Raises
        ------
        InvalidValueError, OSError
            If it cannot be written.
        MissingExtraError
            If it cannot be drawn.
        """
        if self.page is not None:
            self.refuse_unwritable(self.page, {"": self.page}, sources, "page")
            require("matplotlib", "cli")

    def refuse_unwritable(
        self, target: Path, files: Mapping[str, Path], sources: list[Path], what: str
    ) -> None:
        """Refuse a file, or a folder of several, that cannot be written or may not be replaced.

        Raises
        ------
        InvalidValueError, OSError
            If it cannot.
        """
        folder = target.parent
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "the folder does not exist", str(folder))
        if len(files) == 1 and target.is_dir():
            raise IsADirectoryError(
                errno.EISDIR, f"is a folder; name a file for the {what}", str(target)
            )
        if len(files) > 1 and target.exists() and not target.is_dir():
            raise NotADirectoryError(
                errno.ENOTDIR,
                f"is not a folder; with several columns, each one gets its own {what}",
                str(target),
            )
        for file in files.values():
            options.refuse_overwriting_inputs(file, sources)
            if not self.overwrite:
                options.refuse_drawing_again(file, what)

    def write(self, collection: Any, **view: Any) -> None:
        """Write the page of what was collected, if one is wanted."""
        if self.page is not None:
            with doing("writing the page"):
                report(collection, self.page, title=self.title, **view)


def say_written(what: str, file: Path | None) -> None:
    """Say below the result where something was written, if it was."""
    if file is not None:
        running.output().print(f"\nThe {what}: {file}", markup=False, soft_wrap=True)
