"""The calls for gradients in a round: for one client after the other, or for many at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

from turnout._types import Integers
from turnout.federated.trees import computed_meanwhile

#: The client or clients that are asked, the indices of elements, and how many each client has.
Asked: TypeAlias = tuple[Any, Integers, list[int]]

#: The most numbers in the gradients of one call. They are computed and added up in the same memory
#: again and again, which the caches hold.
_NUMBERS = 1 << 22

#: A call is never for fewer elements.
_FEWEST = 16


def one_by_one(sampled: dict[int, Integers]) -> dict[int, list[Asked]]:
    """Return one call for each client."""
    return {client: [(client, each, [each.size])] for client, each in sampled.items()}


def together(
    sampled: dict[int, Integers], parameters: int, whole_clients: bool
) -> dict[int, list[Asked]]:
    """Return calls for many clients each, all under the first client.

    Parameters
    ----------
    sampled
        The elements of each client.
    parameters
        The number of numbers in a gradient.
    whole_clients
        Whether all elements of a client must be in the same call.

    Returns
    -------
    dict
        The calls. Each has the gradients of as many elements as the caches hold. With
        ``whole_clients`` it is for fewer, or for one client with more.
    """
    if not sampled:
        return {}
    counts = [part.size for part in sampled.values()]
    clients = np.repeat(np.array([*sampled], np.int64), counts)
    elements = np.concatenate([*sampled.values()])
    most = _most_together(parameters)
    rest = [] if whole_clients else [most] * (clients.size // most) + [clients.size % most]
    calls, first = [], 0
    for group in _groups(rest or counts, most):
        last = first + sum(group)
        calls.append((clients[first:last], elements[first:last], group))
        first = last
    return {next(iter(sampled)): calls}


def _most_together(parameters: int) -> int:
    """Return the elements of a full call: a power of two, which JAX compiles for without a rest."""
    most: int = max(_FEWEST, 1 << (max(_NUMBERS // parameters, 1).bit_length() - 1))
    return most


def _groups(counts: list[int], most: int) -> Iterator[list[int]]:
    """Yield neighbours that add up to ``most`` at most, or a single larger one."""
    group: list[int] = []
    total = 0
    for count in counts:
        if group and total + count > most:
            yield group
            group, total = [], 0
        group.append(count)
        total += count
    yield group


def ahead(answers: Iterable[tuple[Any, list[int]]]) -> Iterator[tuple[Any, list[int]]]:
    """Yield each answer after the next call is made, if the answer is computed meanwhile.

    Parameters
    ----------
    answers
        Gradients, and how many elements each client has. A call is made when the next is taken.

    Yields
    ------
    tuple
        The same, in the same order.
    """
    waiting: list[tuple[Any, list[int]]] = []
    for answer in answers:
        while waiting:
            yield waiting.pop()
        if computed_meanwhile(answer[0]):
            waiting.append(answer)
        else:
            yield answer
        del answer
    while waiting:
        yield waiting.pop()
