"""What an adversary of a round sees: exact laws, from the definitions alone, and recorded messages.

A view is built from sources that are independent of each other: every user, every set of dummies.
A source adds numbers to the published sums, and shows the adversary something or nothing. Laws of
coins and sets are exact rationals; laws of noise have 50 digits and a window that leaves out less
than 1e-20.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

import turnout.distributed as td
from turnout import _core
from turnout.distributed import Message, Party, Role, payloads
from turnout.distributed.messages import MessageKind

Vector = tuple[int, ...]
#: Probability, what is added to the sums, what the adversary sees beside them.
Source = list[tuple[Fraction, Vector, Hashable]]
#: Of the sums and all that is seen.
Law = dict[tuple[Vector, Hashable], Fraction]

DIGITS = 50


# Coins, sets and dummies.


def unit(size: int, item: int, value: int = 1) -> Vector:
    """Give a vector with one entry."""
    return tuple(value if place == item else 0 for place in range(size))


def coin(size: int, item: int | None, rate: Fraction, *, known: bool = False) -> Source:
    """A user that is counted for its item, or not; None is no item."""
    kept = (0,) * size if item is None else unit(size, item)
    return [
        (rate, kept, 1 if known else None),
        (1 - rate, (0,) * size, 0 if known else None),
    ]


def dummies(size: int, count: int, rate: Fraction, *, known: bool = False) -> Source:
    """One contributor's dummies: so many coins for each item."""
    masses = [
        math.comb(count, heads) * rate**heads * (1 - rate) ** (count - heads)
        for heads in range(count + 1)
    ]
    return [
        (math.prod(masses[heads] for heads in vector), vector, vector if known else None)
        for vector in itertools.product(range(count + 1), repeat=size)
    ]


def set_and_coin(
    size: int,
    item: int | None,
    rate: Fraction,
    sets: tuple[int, Fraction],
    *,
    known: bool = False,
) -> Source:
    """A user of two-stage sampling (Definition 3.1 of the fair paper); its set is seen.

    ``sets`` are M and gamma. One that holds nothing names a uniform set.
    """
    reported, gamma = sets
    chosen = list(itertools.combinations(range(size), reported))
    weight = gamma * math.comb(size - 1, reported - 1) + math.comb(size - 1, reported)
    found: Source = []
    for one in chosen:
        uniform = Fraction(1, len(chosen))
        own = item is not None and item in one
        adaptive = uniform if item is None else (gamma if own else Fraction(1)) / weight
        kept = unit(size, item) if own and item is not None else (0,) * size
        found.append((rate * adaptive, kept, (one, 1) if known else one))
        found.append(((1 - rate) * uniform, (0,) * size, (one, 0) if known else one))
    return found


def view(size: int, sources: Iterable[Source]) -> Law:
    """Give the joint law of the sums and of what every source shows."""
    law: dict[tuple[Vector, tuple[Hashable, ...]], Fraction] = {((0,) * size, ()): Fraction(1)}
    for source in sources:
        after: dict[tuple[Vector, tuple[Hashable, ...]], Fraction] = defaultdict(Fraction)
        for (sums, seen), mass in law.items():
            for chance, vector, shown in source:
                total = tuple(map(sum, zip(sums, vector, strict=True)))
                after[total, (*seen, shown)] += mass * chance
        law = after
    assert sum(law.values()) == 1
    return dict(law)


def divergences(one: Law, other: Law, epsilons: Sequence[float]) -> list[Any]:
    """Compute the hockey-stick divergence of one law from another at every epsilon."""
    ratios: dict[Any, list[Fraction]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for outcome in one.keys() | other.keys():
        first, second = one.get(outcome, Fraction(0)), other.get(outcome, Fraction(0))
        group = ratios[first / second if second else None]
        group[0] += first
        group[1] += second
    with mp.workdps(DIGITS):
        pairs = [(_mpf(first), _mpf(second)) for first, second in ratios.values()]
        return [
            mp.fsum(max(first - mp.exp(epsilon) * second, 0) for first, second in pairs)
            for epsilon in epsilons
        ]


def _mpf(value: Fraction) -> Any:
    return mpf(value.numerator) / value.denominator


# Noise.


@dataclass(frozen=True)
class Window:
    """The masses of whole numbers from ``-reach`` to ``reach``."""

    masses: tuple[Any, ...]

    @property
    def reach(self) -> int:
        """The largest number."""
        return len(self.masses) // 2

    def __getitem__(self, number: int) -> Any:
        """Give the mass of a number."""
        place = number + self.reach
        return self.masses[place] if 0 <= place < len(self.masses) else mpf(0)

    def plus(self, other: Window) -> Window:
        """Give the law of the sum of two independent numbers."""
        reach = self.reach
        with mp.workdps(DIGITS):
            return Window(
                tuple(
                    mp.fdot(
                        (self[first], other[total - first])
                        for first in range(
                            max(-reach, total - reach), min(reach, total + reach) + 1
                        )
                    )
                    for total in range(-reach, reach + 1)
                )
            )

    def times(self, count: int) -> Window:
        """Give the law of the sum of so many."""
        found = self
        for _ in range(count - 1):
            found = found.plus(self)
        return found


def _difference(mass: Callable[[int], Any], reach: int) -> Window:
    """Give the law of the difference of two numbers of one law on 0, 1, ..."""
    with mp.workdps(DIGITS):
        masses = [mass(number) for number in range(3 * reach + 1)]
        tail = [
            mp.fdot(masses[: len(masses) - shift], masses[shift:]) for shift in range(reach + 1)
        ]
        return Window(tuple(tail[abs(number)] for number in range(-reach, reach + 1)))


def laplace_piece(scale: float, parts: int, reach: int) -> Window:
    """Give the difference of two negative binomial numbers of shape 1 / parts."""
    with mp.workdps(DIGITS):
        shape, ratio = mpf(1) / parts, mp.exp(-1 / mpf(scale))

        def mass(number: int) -> Any:
            return mp.binomial(number + shape - 1, number) * (1 - ratio) ** shape * ratio**number

        return _difference(mass, reach)


def skellam_piece(mean: float, reach: int) -> Window:
    """Give the difference of two Poisson numbers."""
    return _difference(lambda k: mp.exp(-mpf(mean)) * mpf(mean) ** k / mp.factorial(k), reach)


def gaussian_piece(variance: float, reach: int) -> Window:
    """Give a discrete Gaussian."""
    with mp.workdps(DIGITS):
        weights = [mp.exp(-mpf(k * k) / (2 * mpf(variance))) for k in range(-reach, reach + 1)]
        total = mp.fsum(weights)
        return Window(tuple(weight / total for weight in weights))


def noise_divergence(law: Window, epsilon: float, changed: int) -> Any:
    """Compute the divergence if one count is one more, and with two also another one less."""
    with mp.workdps(DIGITS):
        numbers = range(-law.reach + 1, law.reach + 1)
        growth = mp.exp(epsilon)
        if changed == 1:
            return mp.fsum(max(law[x - 1] - growth * law[x], 0) for x in numbers)
        return mp.fsum(
            max(law[x - 1] * law[y] - growth * law[x] * law[y - 1], 0)
            for x in numbers
            for y in numbers
        )


# Views of mechanisms.


def exact(number: float) -> Fraction:
    """Give the rational that a floating-point number holds."""
    return Fraction(number)


def others(counts: Sequence[int]) -> list[int]:
    """Give the items of people with these counts."""
    return [item for item, count in enumerate(counts) for _ in range(count)]


def sampled(
    mechanism: td.SamplingAggregation,
    item: int | None,
    held: Sequence[int],
    *,
    colluding: Sequence[int] = (),
    missing: Sequence[int] = (),
) -> Law:
    """Give the view of all but the honest contributors, the server and some users.

    The first user holds ``item``, the others ``held``; ``colluding`` and ``missing`` are places in
    ``held``.
    """
    size, rate = mechanism.domain.size, exact(mechanism._sharing_rate)
    sources = [coin(size, item, rate)]
    for place, one in enumerate(held):
        if place not in missing:
            sources.append(coin(size, one, rate, known=place in colluding))
    hidden = 1 if mechanism.central else mechanism.honest_aggregators
    for index in range(mechanism._contributors):
        sources.append(dummies(size, mechanism.dummies, rate, known=index >= hidden))
    return view(size, sources)


def in_two_stages(
    mechanism: td.TwoStageSampling,
    item: int | None,
    held: Sequence[int | None],
    *,
    colluding: Sequence[int] = (),
    missing: Sequence[int] = (),
) -> Law:
    """Give the view of all who know the sets and the counts, and of colluding users."""
    size = mechanism.domain.size
    assert mechanism.rate is not None
    rate = exact(mechanism.rate)
    sets = (mechanism.reported, exact(1.0 if mechanism.gamma is None else mechanism.gamma))
    sources = [set_and_coin(size, item, rate, sets)]
    for place, one in enumerate(held):
        if place not in missing:
            known = place in colluding
            sources.append(set_and_coin(size, one, rate, sets, known=known))
    for index in range(mechanism._contributors):
        known = index >= mechanism.honest_aggregators
        sources.append(dummies(size, mechanism.dummies, rate, known=known))
    return view(size, sources)


def piece_law(mechanism: td.NoisyAggregation, reach: int) -> Window:
    """Give the law of the noise that one party adds, from the definition."""
    assert mechanism.parameter is not None
    if mechanism.noise == "discrete_laplace":
        return laplace_piece(mechanism.parameter, mechanism._required_pieces, reach)
    if mechanism.noise == "skellam":
        return skellam_piece(mechanism.law().mean, reach)
    return gaussian_piece(mechanism.parameter, reach)


# Messages of real roles.


class Marks:
    """Stands in for all randomness of contributions: every draw is another number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], np.ndarray[Any, Any]]] = []
        for name in ("bernoulli_counts", "discrete_laplace_piece", "skellam", "discrete_gaussian"):
            monkeypatch.setattr(_core, name, self._stand_in(name))

    def _stand_in(self, name: str) -> Any:
        def draw(*arguments: Any) -> np.ndarray[Any, Any]:
            *parameters, length, seed = arguments
            assert seed is None
            if name == "bernoulli_counts" and parameters[0] == 1:
                marks = np.ones(length, np.int64)
            else:
                marks = np.full(length, len(self.calls) % 3 + 1, np.int64)
            if length:  # none are drawn to find out whether they could be
                self.calls.append((name, tuple(parameters), marks.copy()))
            return marks

        return draw

    def of(self, name: str, *parameters: Any) -> list[np.ndarray[Any, Any]]:
        """Give what was drawn with these parameters."""
        return [marks for known, given, marks in self.calls if (known, given) == (name, parameters)]


def elements_of_share(payload: bytes, mechanism: Any) -> np.ndarray[Any, Any]:
    """Read a share as field elements."""
    field, size = mechanism.field, mechanism.domain.size
    _, content = payloads.unpack_share(payload, field, size)
    return field._expand(content, size) if isinstance(content, bytes) else content


@dataclass
class Wire:
    """Runs a round with all its roles, and keeps every message that was sent."""

    round_: td.Round
    sent: list[Message] = field(default_factory=list)
    roles: dict[Party, Any] = field(default_factory=dict)

    def run(self, values: Sequence[int], absent: Iterable[int] = ()) -> Wire:
        """Let all users report, beside the absent ones, and everyone else do their part."""
        mechanism = self.round_.mechanism
        made: list[Any] = [self.round_.user(user) for user in range(mechanism.users)]
        made.append(self.round_.server())
        two_stage = isinstance(mechanism, td.TwoStageSampling)
        if two_stage:
            collectors: list[Any] = [self.round_.reporting_server()]
        else:
            count = mechanism._number_of_parties
            collectors = [self.round_.aggregator(index) for index in range(count)]
        self.roles = {role.party: role for role in made + collectors}
        gone = set(absent)
        for user, value in enumerate(values):
            if user not in gone:
                self._carry(self.roles[Party(Role.USER, user)].report(value))
        for collector in collectors:
            self._carry(collector.close())
        return self

    def _carry(self, messages: Iterable[Message]) -> None:
        waiting = list(messages)
        while waiting:
            message = waiting.pop(0)
            self.sent.append(message)
            waiting += self.roles[message.recipient].receive(message.to_bytes())

    @property
    def sums(self) -> Vector:
        """What is published."""
        found = self.roles[Party(Role.SERVER)].sums
        return tuple(int(number) for number in found)

    def of(self, kind: MessageKind) -> list[Message]:
        """Give the messages of one kind."""
        return [message for message in self.sent if message.kind is kind]
