"""What the experiments of the fair paper have in common: data or named stand-ins, and runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from turnout._files import read_bytes
from turnout._progress import track
from turnout._seeds import derived
from turnout._types import Figure, Floats, Integers
from turnout.distributed import AggregationMechanism
from turnout.errors import CorruptDataError
from turnout_reproduce.datasets import read_adult
from turnout_reproduce.outcome import Experiment, Finding, Outcome, Scale

_SOURCE: Final = (
    "Yang, Tjuawinata, Lam, Zhu, Zhao: Fair and Differentially Private Distributed Frequency "
    "Estimation"
)

#: What the paper calls MSE and defines as a mean over items; its numbers are sums over items.
ERROR: Final = "squared error, summed over items"

#: How often the paper runs each algorithm.
REPEATS: Final = 20

#: Of a picture.
BARS: Final = "Bars: two standard errors."

#: Of a sample, that each item has at least: the paper's n beta. The least cell of Gowalla has 13.
_FLOOR: Final = 10
_CELLS: Final = 12
_INTERVALS: Final = 20
_AGES: Final = 13
_UNIFORM: Final = 30
_STAND_IN: Final = 10_000

#: Mean, standard error and exact expectation.
Measured = tuple[float, float, float]


def repeats_of(scale: Scale, times: int = 1) -> int:
    """Give so many times the paper's number of repeats, or fifty times for small errors."""
    return (50 if scale.full else times) * REPEATS


def experiment(
    where: str, title: str, run: Callable[[Scale], Outcome], draw: Callable[[Outcome], Figure]
) -> Experiment:
    """Declare a figure or table by where it stands in the paper: ``"Figure 1"``."""
    name = where.lower().replace(" ", "-")
    return Experiment(f"fair/{name}", title, f"{_SOURCE}, {where}", run, draw)


def rate_of(epsilon: float) -> float:
    """Compute the paper's sampling probability ``1 - exp(-epsilon)``."""
    return -math.expm1(-epsilon)


def measure(
    mechanism: AggregationMechanism, counts: Integers, scale: Scale, path: tuple[int, ...]
) -> Measured:
    """Run a mechanism some times on users of whom ``counts`` hold each item.

    Returns
    -------
    tuple of float
        The mean of the squared distances to the true frequencies, its standard error, and the
        exact expectation.
    """
    truth = counts / counts.sum()
    codes = np.repeat(np.arange(counts.size), counts)
    distances = np.array(
        [
            ((mechanism.run(codes, derived(scale.seed, 1, *path, run)).estimate.frequencies - truth)
             ** 2).sum()
            for run in track(range(repeats_of(scale)), mechanism.name, scale.progress)
        ]
    )  # fmt: skip
    error = float(distances.std(ddof=1) / math.sqrt(distances.size))
    return float(distances.mean()), error, float(mechanism.variances(truth).sum())


def lemma(name: str, found: Sequence[Measured], scale: Scale) -> Finding:
    """Compare all means with the exact expectations that the paper has, too."""
    from scipy import special  # noqa: PLC0415

    off = max(abs(mean - exact) / error for mean, error, exact in found)
    least = -float(special.stdtrit(repeats_of(scale) - 1, 1e-6 / (2 * len(found))))
    return Finding.claimed(
        f"{name}: largest distance of a mean of repeats from it, in standard errors",
        off,
        off < least,
        why=f"beyond {least:.2g}, which means of correct runs exceed once in 10^6",
    )


def legend_below(figure: Figure, columns: int = 4) -> None:
    """Put one legend for all parts of a picture below its title."""
    for axes in figure.axes:
        legend = axes.get_legend()
        if legend is not None:
            legend.remove()
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(),
        loc="upper left",
        bbox_to_anchor=(0.005, 0.94),
        ncols=columns,
        frameon=False,
        fontsize="small",
    )
    figure.tight_layout(rect=(0, 0.07, 1, 0.92))


@dataclass(frozen=True)
class Dataset:
    """Users, each with one item.

    Attributes
    ----------
    name
        What pictures call it.
    pool
        How many users hold each item; None for users who draw one of 30 items.
    """

    name: str
    pool: Integers | None = None

    @property
    def items(self) -> int:
        """How many items there are."""
        return _UNIFORM if self.pool is None else self.pool.size

    @property
    def frequencies(self) -> Floats:
        """The share of each item."""
        if self.pool is None:
            return np.full(_UNIFORM, 1.0 / _UNIFORM)
        shares: Floats = self.pool / self.pool.sum()
        return shares

    def sample(self, nodes: int, random: np.random.Generator) -> Integers:
        """Draw users without replacement, at least ten of each item; count those of each item."""
        if self.pool is None:
            return random.multinomial(nodes, self.frequencies)
        left = nodes - _FLOOR * self.items
        return _FLOOR + random.multivariate_hypergeometric(self.pool - _FLOOR, left)


@dataclass(frozen=True)
class Datasets:
    """Gowalla, Census-Income and Synthetic, or what stands in for them.

    Attributes
    ----------
    sets
        The three.
    words
        Where they come from.
    seed
        Of the samples.
    """

    sets: tuple[Dataset, Dataset, Dataset]
    words: str
    seed: int

    def samples(self, nodes: int) -> tuple[tuple[str, Integers], ...]:
        """Draw as many users from each; give the name and how many hold each item."""
        return tuple(
            (
                one.name,
                one.sample(nodes, np.random.default_rng(derived(self.seed, 0, nodes, place))),
            )
            for place, one in enumerate(self.sets)
        )


def read_datasets(scale: Scale) -> Datasets:
    """Read what there is of the paper's data, and make stand-ins for the rest.

    Census-Income, of which the paper takes an income in intervals of length 100, is not at hand in
    any case: ages in intervals of five years stand in, from Adult, another extract of the same
    surveys by the Census Bureau.

    Parameters
    ----------
    scale
        With a folder, ``gowalla_user_cell.csv`` in it, and ``adult.data`` and ``adult.test``,
        perhaps compressed by gzip, are read.

    Returns
    -------
    Datasets
        The three, and where they come from.

    Raises
    ------
    CorruptDataError
        If a file is not what its name says, or holds an item too rarely to draw samples from.
    OSError
        If a file cannot be read.
    """
    gowalla, where = _real(scale, ("gowalla_user_cell.csv",), _cells, _CELLS)
    if gowalla is None:
        first = Dataset("Zipf (for Gowalla)", _rounded([1 / rank for rank in range(1, _CELLS + 1)]))
        words = "Gowalla is not at hand: 12 items with Zipf's law stand in."
    else:
        _check(gowalla, where)
        first = Dataset("Gowalla", gowalla)
        words = f"Gowalla: {gowalla.sum():,} users' most visited cells."
    ages, where = _real(scale, ("adult.data", "adult.test"), _ages, _AGES)
    if ages is None:
        second = Dataset(
            "Geometric (for Census)", _rounded([0.85**place for place in range(_INTERVALS)])
        )
        words += " Census-Income is not at hand: 20 items with a geometric law stand in."
    else:
        _check(ages, where)
        second = Dataset("Adult (for Census)", ages)
        words += f" Ages of {ages.sum():,} people of Adult stand in for Census-Income."
    words += " Synthetic: 30 items, uniform."
    return Datasets((first, second, Dataset("Synthetic")), words, scale.seed)


def _real(
    scale: Scale, names: tuple[str, ...], read: Callable[[Path], Integers], items: int
) -> tuple[Integers | None, str]:
    """Count the items in files; None if one of them is not there."""
    places = []
    for name in names:
        found = [] if scale.data is None else [scale.data / name, scale.data / f"{name}.gz"]
        places += [place for place in found if place.is_file()][:1]
    if len(places) < len(names):
        return None, ""
    codes = np.concatenate([read(place) for place in places])
    return np.bincount(codes, minlength=items), ", ".join(map(str, places))


def _cells(place: Path) -> Integers:
    try:
        lines = read_bytes(place).decode("ascii").split()[1:]
        table = np.array([line.split(",") for line in lines]).astype(np.int64).reshape(-1, 2)
    except ValueError as error:
        raise CorruptDataError(f"{place} is not a table of users and cells: {error}") from error
    if not ((table[:, 1] >= 0) & (table[:, 1] < _CELLS)).all():
        raise CorruptDataError(f"{place} must hold users and cells from 0 to {_CELLS - 1}")
    return table[:, 1]


def _ages(place: Path) -> Integers:
    """Ages in intervals: 15 to 19, 20 to 24, ..., 70 to 74, 75 and more."""
    ages: Integers = np.clip((read_adult(place)["age"] - 15) // 5, 0, _AGES - 1)
    return ages


def _check(pool: Integers, where: str) -> None:
    if pool.min() < _FLOOR:
        raise CorruptDataError(
            f"{where} must hold each item at least {_FLOOR} times, and has item "
            f"{int(pool.argmin())} {int(pool.min())} times"
        )


def _rounded(law: list[float]) -> Integers:
    """Make a pool of about 10,000 users with given proportions."""
    pool: Integers = np.rint(_STAND_IN * np.array(law) / sum(law)).astype(np.int64)
    return pool
