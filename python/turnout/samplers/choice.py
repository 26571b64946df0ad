"""Which sampler draws values of a finite domain that look most like a person's own."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout.domain import Domain, domain_of
from turnout.samplers.finite import FiniteMollifier
from turnout.samplers.minimax import MinimaxSampler

#: Nobody is asked to think of more different values than so many.
_MOST: Final = 2**16


def choose_sampler(
    epsilon: float,
    domain: Domain | Sequence[Hashable] | int,
    *,
    records: int | None = None,
) -> MinimaxSampler | FiniteMollifier:
    """Choose the sampler of values whose draws look most like the person's own.

    Of one record :class:`MinimaxSampler` is best, which is then randomized response; of many it is
    nearly uniform where epsilon is small, and :class:`FiniteMollifier` keeps more of what the
    records have in common. The choice is made for a person with so many *different* values, each of
    them once: the smaller total variation distance between that and the law of a draw wins.

    Parameters
    ----------
    epsilon
        Privacy of one draw: above 0, at most 42.
    domain
        The values: a :class:`turnout.Domain`, a list of labels, or their number.
    records
        About how many records a person has, if that is publicly known; many by default. It must not
        be taken from the persons' data.

    Returns
    -------
    MinimaxSampler or FiniteMollifier
        Not fitted yet.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    >>> choose_sampler(1.0, 50, records=1).__class__.__name__
    'MinimaxSampler'
    >>> sampler = choose_sampler(1.0, 50)
    >>> sampler.__class__.__name__
    'FiniteMollifier'
    >>> sampler.fit([3, 4, 3, 3, 7, 3]).sample(1).shape
    (1,)
    """
    values = domain_of("domain", domain)
    samplers: list[Any] = [
        kind(epsilon, domain=values) for kind in (MinimaxSampler, FiniteMollifier)
    ]
    if records is None:
        return samplers[1]  # type: ignore[no-any-return]
    number = _arguments.integer("records", records, least=1)
    different = min(number, values.size, _MOST)
    own = np.full(different, 1 / different)
    distances = []
    for sampler in samplers:
        law = sampler.fit(values.decode(np.arange(different))).probabilities_
        distances.append(float(np.maximum(own - law[:different], 0.0).sum()))
    place = 1 if distances[1] <= distances[0] else 0
    chosen: MinimaxSampler | FiniteMollifier = type(samplers[place])(epsilon, domain=values)
    return chosen
