"""What an experiment is, and what it gives: numbers with verdicts, and curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from turnout import _arguments
from turnout._types import Figure
from turnout.errors import InvalidValueError
from turnout_reproduce.curves import Curve

Verdict = Literal["agrees", "differs", "paper is wrong", "not printed"]


@dataclass(frozen=True)
class Scale:
    """How large an experiment is run.

    Attributes
    ----------
    full
        Whether sizes and repeats are those of the paper, or smaller ones that show the same.
    seed
        Makes the result reproducible.
    data
        A folder with real data, or None.
    progress
        Whether long work shows a bar on standard error.
    """

    full: bool = False
    seed: int = 1
    data: Path | None = None
    progress: bool = False


@dataclass(frozen=True)
class Finding:
    """One number, or one claim, of a figure or table.

    Attributes
    ----------
    what
        What was looked at.
    ours
        What we found.
    error
        The standard error of ``ours`` over repeats; None if it is exact.
    paper
        What the paper prints; None if it prints nothing.
    verdict
        ``"agrees"``, ``"differs"``, ``"paper is wrong"`` or ``"not printed"``.
    why
        By how much it differs, or why the paper is wrong.
    """

    what: str
    ours: float
    error: float | None
    paper: float | None
    verdict: Verdict
    why: str = ""

    @classmethod
    def compared(
        cls,
        what: str,
        ours: float,
        paper: float,
        *,
        error: float | None = None,
        tolerance: float = 0.0,
        wrong: str = "",
    ) -> Finding:
        """Compare a number with the paper's.

        Parameters
        ----------
        what, ours, error
            As the attributes.
        paper
            The paper's number.
        tolerance
            How far apart the two may be, beside three standard errors: what the paper's rounding
            and its own repeats leave open.
        wrong
            Why the paper is wrong, if it is known to be; then a difference is put down to that.

        Returns
        -------
        Finding
            With the verdict.

        Examples
        --------
        >>> Finding.compared("noise", 4.19, 4.2, tolerance=0.05).verdict
        'agrees'
        """
        difference = ours - paper
        if abs(difference) <= tolerance + 3.0 * (error or 0.0):
            return cls(what, ours, error, paper, "agrees")
        share = "" if paper == 0.0 else f" ({difference / paper:+.1%})"
        if wrong:
            return cls(what, ours, error, paper, "paper is wrong", wrong)
        return cls(what, ours, error, paper, "differs", f"by {difference:+.3g}{share}")

    @classmethod
    def claimed(
        cls, what: str, ours: float, holds: bool, *, error: float | None = None, why: str = ""
    ) -> Finding:
        """Say whether a claim of the paper's words holds.

        Parameters
        ----------
        what
            The claim, and the number that it is judged by.
        ours, error
            That number.
        holds
            Whether it bears the claim out.
        why
            If not, what is true.

        Returns
        -------
        Finding
            With the verdict.

        Examples
        --------
        >>> Finding.claimed("the error falls with pi: ratio", 3.0, holds=True).verdict
        'agrees'
        """
        if holds:
            return cls(what, ours, error, None, "agrees")
        return cls(what, ours, error, None, "paper is wrong", why)

    @classmethod
    def alone(cls, what: str, ours: float, *, error: float | None = None) -> Finding:
        """Give a number that the paper shows in a picture and does not print.

        Examples
        --------
        >>> Finding.alone("total variation", 0.02).verdict
        'not printed'
        """
        return cls(what, ours, error, None, "not printed")


@dataclass(frozen=True)
class Outcome:
    """What an experiment gave.

    Attributes
    ----------
    findings
        Numbers and claims, with verdicts.
    curves
        What the picture shows.
    settings
        Sizes, repeats and parameters, as far as they decide the result.
    data
        Where the data come from: real or named stand-ins.
    """

    findings: tuple[Finding, ...]
    curves: tuple[Curve, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Describe the outcome in terms of JSON; numbers that are not finite become null."""
        return {
            "findings": [_finite(asdict(finding)) for finding in self.findings],
            "curves": [_finite(asdict(curve)) for curve in self.curves],
            "settings": _finite(dict(self.settings)),
            "data": self.data,
        }


@dataclass(frozen=True)
class Experiment:
    """A figure or a table of a paper.

    Attributes
    ----------
    name
        What the command line calls it: ``"sampling/figure-1"``.
    title
        What it shows.
    source
        Where it stands.
    run
        Computes it.
    draw
        Makes the picture of an outcome.
    """

    name: str
    title: str
    source: str
    run: Callable[[Scale], Outcome]
    draw: Callable[[Outcome], Figure]

    @property
    def paper(self) -> str:
        """The short name of the paper."""
        return self.name.partition("/")[0]


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise InvalidValueError(f"{_arguments.shown(value)} cannot be written to JSON")
