"""What is estimated of one answer."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(frozen=True)
class AnswerEstimate:
    """What is estimated of one answer: ``estimate["yes"]``.

    Attributes
    ----------
    label
        The answer.
    count
        How many nodes give it.
    frequency
        Their share of all nodes.
    standard_error
        Of the frequency.
    low, high
        The limits of its 95 % interval; None where the estimator is biased or says nothing. For
        other levels see :meth:`turnout.FrequencyEstimate.interval`.
    """

    label: Hashable
    count: float
    frequency: float
    standard_error: float
    low: float | None
    high: float | None
