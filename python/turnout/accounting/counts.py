"""Counts of sampled people, above a guaranteed floor."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from turnout import _core
from turnout._types import Floats
from turnout.accounting.mechanism import Mechanism
from turnout.accounting.values import Divergence, divergences


@dataclasses.dataclass(frozen=True)
class CountSampling(Mechanism):
    """Publish how many sampled people hold each item, without noise.

    Every person is kept with probability ``rate``, unseen, and the counts ``Bin(a_i, rate)`` of the
    kept ones are published. The coins alone protect, and only where enough people hold an item: the
    guarantee is for data sets in which **every item is held by at least** ``floor`` **people, also
    after the change of one person**. Add ``floor`` dummy people to every item (their number is
    public, their coins are not) and it holds for any data.

    Parameters
    ----------
    rate
        The probability that a person is kept, in [0, 1].
    floor
        The number m of people, real or dummy, whose coins the adversary does not know, that hold
        each item; from 0 to 10^7. With people who collude it counts the honest ones only.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a parameter is of the wrong type or out of range.

    Notes
    -----
    ``"replace"`` compares ``Bin(m + 1, p) x Bin(m, p)`` with the counts exchanged: a person moves
    from one item to another. ``"remove"`` and ``"add"`` compare ``Bin(m + 1, p)`` with
    ``Bin(m, p)``. Both are worst with the counts at the floor. The mechanism is DPCS of Yang,
    Tjuawinata, Lam, Zhu, Zhao, "Fair and Differentially Private Distributed Frequency
    Estimation"; their Theorems 3.1 and 3.2 take the mass of one outcome for delta
    (:mod:`turnout.accounting.paper`).

    Examples
    --------
    >>> mechanism = CountSampling(rate=0.5, floor=100)
    >>> mechanism.delta(1.0) < 1e-8 < mechanism.replace(floor=33).delta(1.0)
    True
    """

    rate: float
    floor: int

    adjacencies: ClassVar[tuple[str, ...]] = ("replace", "add_or_remove", "add", "remove")
    default_adjacency: ClassVar[str] = "replace"
    calibrated: ClassVar[dict[str, bool]] = {"rate": False, "floor": True}

    def _divergence(self, epsilon: Floats) -> dict[str, Divergence]:
        columns = _core.count_sampling(epsilon, self.rate, self.floor)
        return divergences(columns, "replace", "remove", "add")
