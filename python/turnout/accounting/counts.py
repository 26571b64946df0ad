"""Counts of sampled people, who report one item or a random set of items."""

from __future__ import annotations

import dataclasses
import functools
from typing import ClassVar

from turnout import _arguments, _core
from turnout._types import Floats
from turnout._values import settle
from turnout.accounting.loss_grid import Real
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.values import Divergence, divergences

_LARGEST_DOMAIN = 2**32
_LARGEST_GAMMA = 1e15


@dataclasses.dataclass(frozen=True)
class CountSampling(Mechanism):
    """Publish how many sampled people hold each item, without noise.

    Every person is kept with probability ``rate``, unseen, and the counts ``Bin(a_i, rate)`` of the
    kept people are published. Only the coins protect, and only if enough people hold an item: the
    guarantee is for data sets in which **every item is held by at least** ``floor`` **people, also
    after the change of one person**. To make it hold for any data, add ``floor`` dummy people to
    every item; their number is public, their coins are secret.

    Parameters
    ----------
    rate
        The probability that a person is kept, in [0, 1].
    floor
        The number m of people, real or dummy, who hold each item and whose coins the adversary does
        not know; from 0 to 10^7. If people collude, count only the honest ones.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range.

    Notes
    -----
    ``"replace"`` compares ``Bin(m + 1, p) x Bin(m, p)`` with the exchanged counts: a person moves
    from one item to another. ``"remove"`` and ``"add"`` compare ``Bin(m + 1, p)`` with ``Bin(m,
    p)``. Both are worst if the counts are at the floor. The mechanism is DPCS of Yang, Tjuawinata,
    Lam, Zhu, Zhao, "Fair and Differentially Private Distributed Frequency Estimation"; their
    Theorems 3.1 and 3.2 take the mass of one outcome for delta (:mod:`turnout.accounting.paper`).

    Examples
    --------
    >>> mechanism = CountSampling(rate=0.5, floor=100)
    >>> mechanism.delta(1.0) < 1e-8 < mechanism.replace(floor=33).delta(1.0)
    True
    """

    rate: float
    floor: int

    adjacencies: ClassVar[tuple[str, ...]] = ("replace", "add_or_remove", "add", "remove")
    _calibrated: ClassVar[dict[str, bool]] = {"rate": False, "floor": True}

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        columns = _core.count_sampling(epsilon, self.rate, self.floor)
        return divergences(columns, "replace", "remove", "add")


@functools.lru_cache(maxsize=8)
def _table(
    chance: float, items: tuple[int, int], gamma: float, floor: int, dummies: int
) -> _core.TwoStageCountSampling:
    return _core.TwoStageCountSampling(chance, items, gamma, floor, dummies)


@dataclasses.dataclass(frozen=True)
class TwoStageCountSampling(Mechanism):
    """Publish counts of sampled people who each report a public random set of items.

    Every person is kept with probability ``rate``, unseen, and names a random set of ``reported``
    of the ``domain_size`` items. The count of an item is the number of kept people who hold it and
    named it. The adversary sees **who named which set, and the counts**, and knows what everyone
    else holds. So the guarantee covers both servers, the elected people and the public.

    A visible set hides nobody: it shows who can have been counted. Only the coins of the people who
    named an item hide each other. So at the same ``rate`` this needs a floor about ``domain_size /
    reported`` times as large as :class:`~turnout.accounting.CountSampling`.

    Parameters
    ----------
    rate
        The probability that a person is kept, in [0, 1].
    domain_size
        The number N of items, from 2 to 2^32.
    reported
        The number M of items in a set, from 1 to ``domain_size``.
    gamma
        How many times likelier a kept person names a set with the own item than one without it,
        from 1 to 10^15; 1 is uniform reporting, more is adaptive.
    floor
        The number of other people who hold each item, whatever the change of one person; from 0 to
        10^7. If people collude, count only the honest ones.
    dummies
        The number of dummy people, whose coins nobody knows, that are added to the count of each
        item; from 0 to 10^7.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range.

    Notes
    -----
    ``"replace"`` exchanges a person's item for another. ``"remove"`` and ``"add"`` compare a person
    with one who holds no item and names a uniform set. With ``dummies`` delta is that of the worst
    data. The ``floor`` and the ``dummies`` each give a bound, and the smaller one is used. With a
    floor and sets that hold both items, the bound uses the smaller of two random numbers of people
    for both. With neither, only the person's own coin and set hide the item.

    The mechanism is TSS of Yang, Tjuawinata, Lam, Zhu, Zhao, "Fair and Differentially Private
    Distributed Frequency Estimation", section 3.1.3. Their Theorem 3.4
    (:func:`turnout_reproduce.fair.claims.theorem_3_4_delta`) is for a server that sees no set.

    Examples
    --------
    >>> mechanism = TwoStageCountSampling(0.5, domain_size=20, reported=5, floor=400)
    >>> CountSampling(0.5, 400).delta(1.0) < 1e-30 < 1e-12 < mechanism.delta(1.0)
    True
    >>> TwoStageCountSampling(0.5, 20, 5, dummies=100).delta(1.0) < 1e-8
    True
    """

    rate: float
    domain_size: int
    reported: int
    gamma: float = 1.0
    floor: int = 0
    dummies: int = 0

    adjacencies: ClassVar[tuple[str, ...]] = ("replace", "add_or_remove", "add", "remove")
    _calibrated: ClassVar[dict[str, bool]] = {"rate": False, "floor": True, "dummies": True}

    def __post_init__(self) -> None:
        super().__post_init__()
        size = _arguments.integer("domain_size", self.domain_size, least=2, most=_LARGEST_DOMAIN)
        gamma = _arguments.number("gamma", self.gamma)
        if not 1.0 <= gamma <= _LARGEST_GAMMA:
            raise _arguments.invalid(f"gamma must be from 1 to {_LARGEST_GAMMA:g}", self.gamma)
        reported = _arguments.integer("reported", self.reported, least=1, most=size)
        settle(self, domain_size=size, reported=reported, gamma=gamma)

    def _reached(self) -> tuple[Real, ...]:
        """Return the mechanism itself if it has only dummies: with a floor no data are known."""
        return (self,) if self.floor == 0 else ()

    @property
    def _local_epsilon(self) -> float:
        """The pure local epsilon of the set alone about one person, rounded up.

        ``ln((p gamma + (1 - p) D) / (p + (1 - p) D))`` with ``D = alpha gamma + 1 - alpha`` and
        ``alpha = reported / domain_size``; 0 for uniform reporting. Below it, no floor and no
        number of dummies makes delta 0.
        """
        return self._kernel.local_epsilon

    @property
    def _kernel(self) -> _core.TwoStageCountSampling:
        items = (self.domain_size, self.reported)
        return _table(self.rate, items, self.gamma, self.floor, self.dummies)

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        return divergences(self._kernel.profile(epsilon), "replace", "remove", "add")
