"""What calls with bad input are made of, and how tables of them are written."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import turnout as tn
from turnout.collecting.sums import DesignSums, WeightedSums
from turnout.errors import (
    TurnoutError,
)

NAN, INF = float("nan"), float("inf")
LABELS = tn.Domain(["a", "b", "c"])
CODES = tn.Domain.from_integers(3)
ORACLE = tn.DirectEncoding(1.0, 3)
NAMED = tn.DirectEncoding(1.0, LABELS)
HALF = tn.Bernoulli(0.5)
REPORTS = ORACLE.randomize([0, 1, 2] * 20, participation=HALF, seed=1)
TALLY = ORACLE.tally(REPORTS)
OTHER = ORACLE.collect([0, 1], participation=HALF)
ESTIMATE = TALLY.estimate()
INTERVAL = ESTIMATE.interval()
PERSONAL = ORACLE.collect([0, 1, 2], participation=tn.Personalized([0.5, 1, 1]), seed=1)
EMPTY = ORACLE.collect([])
PLAN = tn.Plan(ORACLE, HALF)
OWN_PLAN = PERSONAL.plan

CERTAIN = DesignSums(2**64, 2**64)
ONE = tn.Personalized([0.5])


def weights(size: int) -> WeightedSums:
    return WeightedSums(np.zeros((size + 1, 2), np.uint64), np.zeros((size + 1, 2), np.uint64))


def variance(**arguments: Any) -> Any:
    return tn.estimator_variance(
        **{"oracle": ORACLE, "participation": HALF, "true_counts": [1, 1, 1], **arguments}
    )


#: What the calls of the table are made of.
NAMES = {
    **globals(),
    "Fraction": Fraction,
    "datetime": datetime,
    "np": np,
    "pa": pa,
    "pd": pd,
    "pl": pl,
    "DesignSums": DesignSums,
}

Case = tuple[str, type[TurnoutError], str]


def refused(error: type[TurnoutError], *calls: tuple[str, str]) -> list[Case]:
    """Calls that one class of exceptions refuses, each with a pattern of the message."""
    return [(call, error, pattern) for call, pattern in calls]


def each(call: str, *values: str, pattern: str) -> list[tuple[str, str]]:
    """The same call with each of some values in place of the underscore."""
    return [(call.replace("_", value, 1), pattern) for value in values]
