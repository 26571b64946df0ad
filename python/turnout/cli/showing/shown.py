"""What commands ask of estimates, and what they do with what is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from turnout.cli import options
from turnout.cli.tables import print_json, save_picture, tell, write_table
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimate import ACROSS, SHRUNK
from turnout.reporting.telling import View
from turnout.reporting.words import number, participation

#: What is said of intervals that are cut.
CUT: Final = ", cut to 0 and 1"


def in_words(error: Exception, method: str) -> str:
    """Say in terms of options what an estimator refuses."""
    return str(error).replace(repr(method), f"--method {options.method_word(method)}")


@dataclass(frozen=True, kw_only=True)
class Wish(View):
    """What the options of ``turnout estimate`` say.

    Attributes
    ----------
    postprocessing
        How frequencies are projected or shrunk.
    """

    postprocessing: str = "none"

    def made(self, estimate: Any) -> Any:
        """Process an estimate as is wished for, and cut its intervals.

        Raises
        ------
        InvalidValueError
            If that cannot be done to it.
        """
        if self.consistent or self.postprocessing != "none":
            if not hasattr(estimate, "project"):
                raise InvalidValueError(
                    "--project, --shrink and --consistent do not apply to groups of several "
                    "questions"
                )
            estimate = estimate.consistent() if self.consistent else estimate
        return self.cut(self._processed(estimate))

    def _processed(self, estimate: Any) -> Any:
        if self.postprocessing == "none":
            return estimate
        if self.postprocessing == ACROSS:
            return estimate.shrink(across=True)
        if self.postprocessing == SHRUNK:
            return estimate.shrink()
        return estimate.project(self.postprocessing)


@dataclass(frozen=True)
class Shown:
    """An estimate as it is shown.

    Attributes
    ----------
    make_record
        Makes the object of ``--json``.
    make_table
        Makes the Arrow table of files.
    rows
        Names and values above the table.
    below
        Tables, or what prints them.
    draw
        Makes the picture.
    """

    make_record: Callable[[], dict[str, Any]]
    make_table: Callable[[], Any]
    rows: list[tuple[str, str]]
    below: Sequence[Table | Callable[[Console], None]]
    draw: Callable[[], Any]

    def deliver(self, title: str, *, plot: Path | None, target: Path | None, as_json: bool) -> None:
        """Write the files that are wanted, and print the object or tables under a title."""
        # Not everything has a picture: where there is none, nothing is written.
        save_picture(plot, self.draw)
        if target is not None:
            write_table(target, self.make_table())
        if as_json:
            print_json(self.make_record())
        else:
            tell(title, self.rows, *self.below, table=target, picture=plot)


def rows_of(counted: Any, method: str) -> list[tuple[str, str]]:
    """Say what was counted and how it is estimated, of a tally, an estimate or a grouped tally."""
    return [
        ("nodes", f"{counted.nodes:,}"),
        ("reports", f"{counted.received:,}"),
        ("participation", participation(counted.plan)),
        ("oracle", counted.plan.oracle.name.replace("_", " ")),
        ("epsilon", number(counted.plan.oracle.epsilon)),
        ("method", options.method_word(method).replace("_", " ")),
    ]
