"""The sampler of a method, and the picture of its draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import typer

from turnout.cli.running import note
from turnout.cli.sample.options import NUMBER_METHODS, Method, Wanted
from turnout.cli.sample.records import Records
from turnout.cli.sample.references import public_reference
from turnout.errors import EstimatorError
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
    domain = records.domain
    if domain is not None:
        if method == "minimax":
            return MinimaxSampler(epsilon, domain=domain)
        if method == "randomized-response":
            return RandomizedResponseSampler(epsilon, domain=domain)
        shares = None
        if wanted.reference is not None:
            shares = public_reference(wanted.reference, wanted, records)
        return FiniteMollifier(epsilon, domain=domain, reference=shares)
    reference: Any = StandardNormal(len(wanted.columns))
    if wanted.reference is not None:
        reference = public_reference(wanted.reference, wanted, records)
    elif wanted.bounds is None:
        note(
            "without --bounds records are drawn around the standard normal distribution: they will "
            "be numbers of about -3 to 3, whatever the columns hold; --bounds gives public ranges"
        )
    else:
        low, high = zip(*(wanted.bounds[name] for name in wanted.columns), strict=True)
        reference = Uniform(low, high)
    if method == "boosting":
        if wanted.rounds is not None:
            return MollifiedBoosting(epsilon, reference=reference, n_rounds=wanted.rounds)
        return MollifiedBoosting(epsilon, reference=reference)
    return MollifiedDensity(epsilon, reference=reference)


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
    codes = np.asarray(records.domain.encode(records.data)).astype(np.int64)
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
    pairs = None if wanted.bounds is None else [wanted.bounds[name] for name in wanted.columns]
    axes = estimate.plot(bounds=pairs[0] if pairs is not None and len(pairs) == 1 else pairs)
    first = np.ravel(np.asarray(axes, dtype=object))[0]
    first.set_xlabel(wanted.columns[0])
    if len(wanted.columns) == 2:
        first.set_ylabel(wanted.columns[1])
    return first
