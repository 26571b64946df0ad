"""Options of what comes out: intervals, tables, pictures and objects for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from turnout.cli import options
from turnout.frequency.estimation.estimate import SHRUNK


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """How sure estimates are said to be."""

    level: options.Level = 0.95
    simultaneous: options.Simultaneous = None
    clip: options.Clip = False


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Which labels are listed."""

    order: options.Order = "frequency"
    top: options.Top = "20"


@dataclass(frozen=True, kw_only=True)
class Processing:
    """How frequencies become a distribution.

    Attributes
    ----------
    project
        Turn the frequencies into a distribution: none negative, sum 1.
    shrink
        Turn the frequencies into the distribution of smallest total error (empirical Bayes).
    """

    project: options.Projection = "none"
    shrink: Annotated[bool, typer.Option("--shrink")] = False

    def __post_init__(self) -> None:
        """Refuse two distributions."""
        options.refuse_if(
            (
                self.shrink and self.project != "none",
                "--shrink",
                f"conflicts with --project {self.project}: choose one of them",
            )
        )

    @property
    def name(self) -> str:
        """What is done to frequencies, as estimates call it."""
        return SHRUNK if self.shrink else self.project


@dataclass(frozen=True, kw_only=True)
class Together:
    """Which shares are shown of several questions that were asked together."""

    given: options.Given = None
    of: options.Of = None
    marginal: options.Marginal = None
    consistent: options.Consistent = False

    def check(self, *, made: bool) -> None:
        """Refuse what does not go together, for shares of which a distribution is made or not.

        Raises
        ------
        typer.BadParameter
            If something does not.
        """
        options.refuse_if(
            (self.of is not None and not self.given, "--of", "needs --given"),
            (
                bool(self.given) and (made or self.consistent),
                "--given",
                "conflicts with --shrink, --project and --consistent: these shares are "
                "computed before them",
            ),
            (
                bool(self.given and self.marginal),
                "--marginal",
                "conflicts with --given: choose one of them",
            ),
            (
                self.consistent and len(self.marginal or "ab") < 2,
                "--consistent",
                "has no effect on the shares of one question; leave it out",
            ),
        )

    @property
    def view(self) -> dict[str, Any]:
        """It as arguments of :class:`turnout.reporting.telling.View`."""
        return {**vars(self), "given": self.given or (), "marginal": self.marginal or ()}


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where results go."""

    target: options.TableFile = None
    plot: options.PictureFile = None
    as_json: options.AsJson = False
