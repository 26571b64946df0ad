"""The draws of a plan: the participants, their sampled elements, and the noise."""

from __future__ import annotations

import numpy as np

from turnout import _core, _seeds
from turnout._types import Array, Integers
from turnout.federated.plan import RandomParticipationSGD

# What a seeded study derives a seed for; the numbers belong to its results.
_CLIENTS, _ELEMENTS, _SERVER_NOISE, _CLIENT_NOISE = range(1, 5)


def participants(plan: RandomParticipationSGD, clients: int, number: int) -> Integers:
    """Draw which of this many clients take part, at a cost proportional to the participants."""
    seed = _seeds.derived(plan.seed, _CLIENTS, number)
    return _core.select_bernoulli(clients, plan.client_rate, seed)


def takes_part(plan: RandomParticipationSGD, index: int, number: int) -> bool:
    """Draw whether one client takes part; in a study the same as :func:`participants` draws."""
    if plan.seed is None:
        return bool(_core.select_bernoulli(1, plan.client_rate, None).size)
    drawn = participants(plan, index + 1, number)
    return bool(drawn.size and drawn[-1] == index)


def elements(plan: RandomParticipationSGD, size: int, index: int, number: int) -> Integers:
    """Draw which elements of a participating client are sampled."""
    seed = _seeds.derived(plan.seed, _ELEMENTS, number, index)
    return _core.select_bernoulli(size, plan.sample_rate, seed)


def elements_of_all(
    plan: RandomParticipationSGD, sizes: Integers, clients: Integers, number: int
) -> list[Integers]:
    """Draw which elements of each of these clients are sampled.

    Without a seed all are drawn in one call, which has the same distribution.
    """
    if plan.seed is not None or clients.size == 0:
        each = zip(sizes.tolist(), clients.tolist(), strict=True)
        return [elements(plan, size, client, number) for size, client in each]
    ends = np.cumsum(sizes)
    drawn = _core.select_bernoulli(int(ends[-1]), plan.sample_rate, None)
    starts = (ends - sizes).tolist()
    places = np.searchsorted(drawn, ends).tolist()
    pairs = zip(starts, [0, *places[:-1]], places, strict=True)
    return [drawn[first:last] - start for start, first, last in pairs]


def server_noise(plan: RandomParticipationSGD, length: int, number: int) -> Array:
    """Draw the noise of a trusted server."""
    return _noise(plan, length, _seeds.derived(plan.seed, _SERVER_NOISE, number))


def made_safe(plan: RandomParticipationSGD, values: Array, index: int, number: int) -> Array:
    """Add the noise of a client to what it sends, if the server is not trusted to add it."""
    if plan.mode == "trusted_server":
        return values
    seed = _seeds.derived(plan.seed, _CLIENT_NOISE, number, index)
    return np.asarray(values + _noise(plan, values.size, seed))


def _noise(plan: RandomParticipationSGD, length: int, seed: int | None) -> Array:
    if plan.grid is not None:
        return _core.rounded_gaussian(length, plan.grid.bits, seed)
    if plan.noise == "none":
        return np.zeros(length)
    return np.random.default_rng(seed).normal(0.0, plan._deviation, length)
