"""Telling that reports came in which honest nodes hardly ever send."""

from __future__ import annotations

import logging

from turnout._types import Array
from turnout.collecting.randomizer import Randomizer
from turnout.metrics import observe

_LOGGER = logging.getLogger(__name__)


def tell_improbable(oracle: Randomizer, reports: Array) -> int:
    """Count the reports that came from elsewhere and that honest nodes hardly ever send.

    Parameters
    ----------
    oracle
        Which oracle they should be of.
    reports
        Reports that it can have made.

    Returns
    -------
    int
        How many there are; if there are any they are also logged, and told to the hooks.
    """
    found = int(oracle.improbable(reports).sum())
    say_improbable(found)
    return found


def say_improbable(found: int) -> None:
    """Log that there are so many such reports, and tell the hooks; nothing of none."""
    if found:
        observe("reports_improbable", reports=found)
        _LOGGER.warning("reports that honest nodes hardly ever send: %d", found)
