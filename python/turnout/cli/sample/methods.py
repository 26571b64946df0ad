"""The sampler of a method, what public rows tell it, and the picture of its draws."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import typer

from turnout._extras import require
from turnout.cli.running import note
from turnout.cli.sample.options import NUMBER_METHODS, Method, Wanted
from turnout.cli.sample.records import Records
from turnout.errors import EstimatorError, InvalidValueError, TurnoutError
from turnout.samplers import (
    FiniteMollifier,
    MinimaxSampler,
    MollifiedBoosting,
    MollifiedDensity,
    PopulationDraws,
    PrivateSampler,
    RandomizedResponseSampler,
    StandardNormal,
    Uniform,
    choose_sampler,
)

_ASSUME = "--assume"

#: More labels than this do not fit in a picture.
_MOST_BARS = 200

#: So many components describe public numbers, each with so many rows at least.
_COMPONENTS, _ROWS = 5, 50

_SAMPLERS: Final[dict[Method, Callable[..., PrivateSampler]]] = {
    "density": MollifiedDensity,
    "boosting": MollifiedBoosting,
    "minimax": MinimaxSampler,
    "randomized-response": RandomizedResponseSampler,
    "mollifier": FiniteMollifier,
}


def settled_method(epsilon: float, wanted: Wanted, records: Records) -> tuple[Method, str]:
    """Name the method, and say why if it was chosen.

    Without a column of users every row is one of its own; what is known of the number of their rows
    is stated, never taken from the data.
    """
    if wanted.method is not None:
        return wanted.method, ""
    if records.domain is None:
        return NUMBER_METHODS[0], ""
    if wanted.reference is not None:
        return "mollifier", "; chosen for the public shares of --reference"
    known = 1 if wanted.user_column is None else wanted.known_records
    sampler = choose_sampler(epsilon, records.domain, records=known)
    rows = "many rows" if known is None else "one row" if known == 1 else f"about {known:,} rows"
    method: Method = "mollifier" if isinstance(sampler, FiniteMollifier) else "minimax"
    return method, f"; chosen for users with {rows} (--records, --method)"


def make_sampler(
    method: Method, epsilon: float, wanted: Wanted, records: Records
) -> PrivateSampler:
    """Make the sampler of a method, with a note if its reference is the standard normal."""
    options: dict[str, Any] = {} if records.domain is None else {"domain": records.domain}
    if wanted.reference is not None:
        options["reference"] = _public_reference(wanted.reference, records)
    elif wanted.bounds is not None:
        limits = [wanted.bounds[name] for name in wanted.columns]
        options["reference"] = Uniform(
            [each.low for each in limits], [each.high for each in limits]
        )
    elif records.domain is None:
        note(
            "without --bounds records are drawn around the standard normal distribution: they will "
            "be numbers of about -3 to 3, whatever the columns hold; --bounds gives public ranges"
        )
        options["reference"] = StandardNormal(len(wanted.columns))
    if wanted.rounds is not None:
        options["n_rounds"] = wanted.rounds
    return _SAMPLERS[method](epsilon, **options)


def _pairs(wanted: Wanted) -> list[tuple[float, float]]:
    bounds = wanted.bounds or {}
    return [(bounds[name].low, bounds[name].high) for name in wanted.columns if bounds]


def _public_reference(path: Path, records: Records) -> Any:
    """Learn a reference from a file of public rows with the same columns.

    Of numbers it is a mixture of normal distributions, of labels the shares of the rows with one
    row more of each label.

    Raises
    ------
    InvalidValueError
        If the file has other columns, too few rows, or labels that nobody can
        have.
    """
    try:
        public = records.public(path)
    except TurnoutError as error:
        more = "" if records.domain is None else "; --labels states all"
        raise InvalidValueError(f"--reference: {error}{more}") from error
    least = 2 if records.domain is None else 1
    if len(public) < least:
        raise InvalidValueError(f"--reference: {path} needs at least {least} row(s)")
    if records.domain is None:
        mixture = require("sklearn.mixture", "samplers").GaussianMixture
        components = max(1, min(_COMPONENTS, len(public) // _ROWS))
        spread = 1e-6 * max(1e-12, float(public.var(axis=0).max()))
        return mixture(components, reg_covar=spread, random_state=0).fit(public)
    counts = np.bincount(public, minlength=records.domain.size) + 1.0
    return counts / counts.sum()


def check_picture_of(records: Records) -> None:
    """Refuse what has no picture before anything is spent."""
    if records.domain is None and len(records.columns) > 2:
        raise typer.BadParameter(
            "is for one or two columns of numbers, or for labels", param_hint="--plot"
        )
    if records.domain is not None and records.domain.size > _MOST_BARS:
        raise typer.BadParameter(
            f"is for at most {_MOST_BARS} labels, there are {records.domain.size:,}",
            param_hint="--plot",
        )


def estimated(draws: PopulationDraws, wanted: Wanted) -> Any:
    """Estimate what all records tell together.

    Of labels every user holds one value if every row is a user of its own, or if that is assumed.
    """
    if draws.draws.ndim == 1 and (wanted.one_value or wanted.user_column is None):
        try:
            return draws.estimate(assume="one_value")
        except EstimatorError:
            if wanted.one_value:
                raise
    return draws.estimate()


def check_one_value(wanted: Wanted, records: Records) -> None:
    """Refuse to assume one value of numbers, and say how many users hold more of labels."""
    if not wanted.one_value:
        return
    if records.domain is None:
        raise typer.BadParameter("one-value is for labels, these are numbers", param_hint=_ASSUME)
    codes = records.values
    _, users = np.unique(records.users, return_inverse=True)
    order = np.lexsort((codes, users))
    same = users[order][1:] == users[order][:-1]
    several = np.unique(users[order][1:][same & (codes[order][1:] != codes[order][:-1])])
    if several.size:
        users_of = f"{several.size:,} users hold more than one"
        note(f"--assume one-value: {users_of}, so that what is estimated is not the truth")


def picture(draws: PopulationDraws, wanted: Wanted) -> Any:
    """Draw what all records tell together; return the first axes."""
    estimate: Any = estimated(draws, wanted)
    if draws.draws.ndim == 1:
        axes = estimate.plot()
        axes.set_xlabel(", ".join(wanted.columns))
        return axes
    axes = estimate.plot(bounds=_pairs(wanted) or None)
    first = np.ravel(np.asarray(axes, dtype=object))[0]
    first.set_xlabel(wanted.columns[0])
    if len(wanted.columns) == 2:
        first.set_ylabel(wanted.columns[1])
    return first
