"""Public rows that records are drawn around."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from turnout._extras import require
from turnout.cli.sample.options import Wanted
from turnout.cli.sample.records import Records, read_records
from turnout.errors import InvalidValueError, TurnoutError

#: So many components describe public numbers, each with so many rows at least.
_COMPONENTS, _ROWS = 5, 50


def public_reference(path: Path, wanted: Wanted, records: Records) -> Any:
    """Learn a reference from a file of public rows with the same columns.

    Of numbers it is a mixture of normal distributions, of labels the shares of the rows with one
    row more of each label.

    Raises
    ------
    InvalidValueError
        If the file has other columns, fewer than two rows, or labels that nobody can have.
    """
    public = read_records(path, replace(wanted, user_column=None, bounds=None, missing="drop"))
    if (public.domain is None) is not (records.domain is None):
        kind = "numbers" if public.domain is None else "labels"
        raise InvalidValueError(f"--reference: {path} holds {kind}, the columns of users do not")
    if records.domain is None:
        if len(public.data) < 2:
            raise InvalidValueError(f"--reference: {path} needs at least two rows")
        mixture = require("sklearn.mixture", "samplers").GaussianMixture
        components = max(1, min(_COMPONENTS, len(public.data) // _ROWS))
        spread = 1e-6 * max(1e-12, float(public.data.var(axis=0).max()))
        return mixture(components, reg_covar=spread, random_state=0).fit(public.data)
    try:
        codes = np.asarray(records.domain.encode(public.data)).astype(np.int64)
    except TurnoutError as error:
        raise InvalidValueError(f"--reference: {path}: {error}; --labels states all") from error
    counts = np.bincount(codes, minlength=records.domain.size) + 1.0
    return counts / counts.sum()
