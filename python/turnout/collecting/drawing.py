"""What a randomizer's kernel makes of answers: reports, and the sums of reports."""

from __future__ import annotations

from typing import Any, NamedTuple

from turnout._core import NoiseStreams
from turnout._types import Array, Floats

#: Where noise comes from: fresh from the operating system, a seed, or the streams of a job's key.
Noise = int | NoiseStreams | None


class Drawn(NamedTuple):
    """The reports of the nodes that take part.

    Attributes
    ----------
    reports
        One report for each of them, in the order of the nodes.
    probabilities
        With which probability each took part, if every node has its own.
    """

    reports: Array
    probabilities: Floats | None = None


class Counts(NamedTuple):
    """What a tally keeps of reports.

    Attributes
    ----------
    sums
        Exact numbers that add up, as the kind's tally takes them.
    received
        The number of reports.
    weights
        The same sums with inverse probabilities, if every node has its own.
    """

    sums: Any
    received: int
    weights: Any = None
