"""The true hockey-stick divergence of one round of random participation, for given gradients.

A client takes part with probability p; then each other element g_j, and the new element g, is
sampled with probability q; the gradients are added up and N(0, sigma^2 I) is added. With x the
sum, S the sum of sampled other elements, in units of sigma:

    with    = (1-p) N(0) + p E_S[(1-q) N(S) + q N(S + g)]
    without = (1-p) N(0) + p E_S[N(S)]

Space is cut into boxes and each box is one outcome. That is post-processing, so the divergence
of the boxes is never above the true one, whatever the grid: a bound below it is refuted, with no
error of quadrature to allow for. It rises to the true one with the square of the widths.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from mpmath import mp, mpf
from scipy import special

Floats = npt.NDArray[np.float64]

#: Beyond this distance from all means, in units of the noise, one box reaches to infinity.
REACH = 7.5


@dataclass(frozen=True, eq=False)
class Configuration:
    """Gradients of norm at most one: ``others`` has one row for each group of equal elements."""

    kind: str
    new: Floats
    others: Floats
    multiplicities: tuple[int, ...]

    @property
    def local_size(self) -> int:
        return sum(self.multiplicities)

    @cached_property
    def basis(self) -> Floats:
        """Axes of the space that the gradients span, the first along the new element."""
        rows = [self.new, *self.others]
        axes: list[Floats] = []
        for row in rows:
            rest = row - sum((axis * (axis @ row) for axis in axes), np.zeros_like(row))
            length = float(np.linalg.norm(rest))
            if length > 1e-9:
                axes.append(rest / length)
        return np.array(axes or [np.eye(len(self.new))[0]])

    @property
    def dimension(self) -> int:
        return len(self.basis)

    def sums(self, sample_rate: float, number: type = float) -> tuple[Floats, list[Any]]:
        """Return all sums of sampled other elements, in the axes, with their probabilities.

        Equal sums are put together; those of probability below 1e-40 are left out. The
        probabilities are floats, or have 34 digits.
        """
        found: dict[tuple[float, ...], Any] = {(0.0,) * self.dimension: number(1)}
        for row, many in zip(self.others @ self.basis.T, self.multiplicities, strict=True):
            law = [(taken, number(mass)) for taken, mass in binomial_masses(many, sample_rate)]
            following: dict[tuple[float, ...], Any] = {}
            for mean, mass in found.items():
                for taken, share in law:
                    moved = tuple(
                        round(entry + taken * step, 13)
                        for entry, step in zip(mean, row.tolist(), strict=True)
                    )
                    following[moved] = following.get(moved, 0) + mass * share
            found = following
        return np.array(list(found)), list(found.values())


@functools.cache
def binomial_masses(trials: int, rate: float) -> list[tuple[int, mpf]]:
    with mp.workdps(34):
        q = mpf(rate)
        law = [
            (taken, math.comb(trials, taken) * q**taken * (1 - q) ** (trials - taken))
            for taken in range(trials + 1)
        ]
        return [(taken, mass) for taken, mass in law if mass > mpf(10) ** -40]


def direction(random: np.random.Generator, dimension: int) -> Floats:
    """Draw a direction; rounding must not make the vector longer than one."""
    row = random.standard_normal(dimension)
    return np.asarray(row / np.linalg.norm(row) * (1 - 1e-12))


KINDS = ("aligned", "opposed", "orthogonal", "oblique", "zero", "free")


def draw(random: np.random.Generator, dimension: int, local_size: int, kind: str) -> Configuration:
    """Draw gradients; half of the configurations have full norms, the worst case of the bound."""
    new = direction(random, dimension)
    norms = np.where(random.random() < 0.5, np.ones(local_size), random.random(local_size))
    if kind == "aligned":
        others = np.outer(norms, new)
    elif kind == "opposed":
        others = np.outer(-norms, new)
    elif kind == "orthogonal":
        axis = direction(random, dimension)
        axis -= new * (axis @ new)
        others = np.outer(norms, axis / np.linalg.norm(axis))
    elif kind == "oblique":
        others = np.outer(norms, direction(random, dimension))
    elif kind == "zero":
        # Some of the elements, often all of them, have no gradient.
        shown = random.random(local_size) < random.choice([0.0, 0.5])
        others = np.outer(norms * shown, new if random.random() < 0.5 else -new)
    else:
        others = norms[:, None] * np.array(
            [direction(random, dimension) for _ in range(local_size)]
        )
    if random.random() < 0.2:
        new = new * random.random()
    others = others.reshape(local_size, dimension)
    return Configuration(kind, new, others, (1,) * local_size)


def grouped(new: float, others: Sequence[tuple[float, int]]) -> Configuration:
    """Return a one-dimensional configuration: (gradient, how many elements have it)."""
    rows = np.array([[gradient] for gradient, _ in others]).reshape(len(others), 1)
    return Configuration("grouped", np.array([new]), rows, tuple(many for _, many in others))


@dataclass(frozen=True, eq=False)
class Round:
    """One round of one configuration, cut into boxes."""

    configuration: Configuration
    sample_rate: float
    noise_multiplier: float
    edges: tuple[Floats, ...]
    means: Floats
    masses: list[float]
    step: Floats

    @classmethod
    def of(
        cls,
        configuration: Configuration,
        sample_rate: float,
        noise_multiplier: float,
        widths: Sequence[float],
    ) -> Round:
        """Cut the axes into pieces of the given widths, in units of the noise."""
        means, masses = configuration.sums(sample_rate)
        step = configuration.basis @ configuration.new
        means, step = means / noise_multiplier, step / noise_multiplier
        edges = []
        for axis in range(means.shape[1]):
            low = means[:, axis].min() + min(0.0, step[axis]) - REACH
            high = means[:, axis].max() + max(0.0, step[axis]) + REACH
            low, high = min(low, -REACH), max(high, REACH)
            pieces = int(np.ceil((high - low) / widths[axis]))
            edges.append(np.linspace(low, high, pieces + 1))
        return cls(configuration, sample_rate, noise_multiplier, tuple(edges), means, masses, step)

    def boxes(self, means: Floats, masses: Sequence[float]) -> Floats:
        """Return the mass of each box under a mixture of unit Gaussians."""
        columns = [pieces(edges, means[:, axis]) for axis, edges in enumerate(self.edges)]
        first = columns[0] * np.array(masses)[:, None]
        if len(columns) == 1:
            return np.asarray(first.sum(axis=0))
        rest = columns[1]
        for column in columns[2:]:
            rest = (rest[:, :, None] * column[:, None, :]).reshape(len(masses), -1)
        return np.asarray(first.T @ rest)

    @cached_property
    def parts(self) -> tuple[Floats, Floats, Floats]:
        """Return the masses of the boxes: client away, new element not sampled, sampled."""
        away = self.boxes(np.zeros((1, self.means.shape[1])), [1.0])
        return (
            away,
            self.boxes(self.means, self.masses),
            self.boxes(self.means + self.step, self.masses),
        )

    def laws(self, client_rate: float, sample_rate: float) -> tuple[Floats, Floats]:
        """Return the masses of the boxes with and without the new element."""
        away, absent, sampled = self.parts
        p, q = client_rate, sample_rate
        without = (1 - p) * away + p * absent
        return (1 - p) * away + p * ((1 - q) * absent + q * sampled), without

    def gaps(self, epsilon: float, rates: tuple[float, float], adjacency: str) -> Floats:
        """Return P - alpha Q of each box; what P and Q share is subtracted on paper."""
        away, absent, sampled = self.parts
        weights = gap_weights(epsilon, *rates, adjacency)
        return weights[0] * away + weights[1] * absent + weights[2] * sampled

    def delta(self, epsilon: float, rates: tuple[float, float], adjacency: str) -> float:
        """Return a value that is at most the true divergence, up to rounding of doubles."""
        return float(np.maximum(self.gaps(epsilon, rates, adjacency), 0).sum())

    def delta_30_digits(self, epsilon: float, rates: tuple[float, float], adjacency: str) -> mpf:
        """Return P(E) - alpha Q(E) to 30 digits, for E the boxes where it is positive.

        A union of boxes is an event, and no event has more than the true divergence.
        """
        shape = tuple(len(edges) - 1 for edges in self.edges)
        event = (self.gaps(epsilon, rates, adjacency) > 0).reshape(shape[0], -1)
        with mp.workdps(34):
            weights = gap_weights(mpf(epsilon), *map(mpf, rates), adjacency)
            masses = self.configuration.sums(self.sample_rate, mpf)[1]
            groups = (
                (weights[0], np.zeros((1, self.means.shape[1])), [mpf(1)]),
                (weights[1], self.means, masses),
                (weights[2], self.means + self.step, masses),
            )
            known: dict[tuple[int, float], list[mpf]] = {}
            total = mpf(0)
            for weight, means, shares in groups:
                if weight != 0:
                    total += weight * sum(
                        mass * self._event_mass(event, shape, mean, known)
                        for mean, mass in zip(means, shares, strict=True)
                    )
            return total

    def _event_mass(
        self,
        event: npt.NDArray[np.bool_],
        shape: tuple[int, ...],
        mean: Floats,
        known: dict[tuple[int, float], list[mpf]],
    ) -> mpf:
        """Return the mass of a union of boxes under one Gaussian: runs along the first axis."""
        tails = []
        for axis, edges in enumerate(self.edges):
            key = (axis, float(mean[axis]))
            if key not in known:
                known[key] = [mpf(1), *(_above(edge, mean[axis]) for edge in edges[1:-1]), mpf(0)]
            tails.append(known[key])
        padded = np.zeros((shape[0] + 2, event.shape[1]), dtype=np.int8)
        padded[1:-1] = event
        turns = np.diff(padded, axis=0)
        total = mpf(0)
        for column in np.flatnonzero(turns.any(axis=0)):
            # +1 where a run of boxes begins: minus the tail beyond its end.
            mass = sum(
                int(turns[row, column]) * tails[0][row] for row in np.flatnonzero(turns[:, column])
            )
            for axis, place in enumerate(np.unravel_index(column, shape[1:]), start=1):
                mass *= tails[axis][place] - tails[axis][place + 1]
            total += mass
        return total


def gap_weights(epsilon, p, q, adjacency):  # type: ignore[no-untyped-def]
    """Return the weights of N(0), E N(S), E N(S + g) in P - alpha Q."""
    gain = mp.expm1(epsilon) if isinstance(epsilon, mpf) else np.expm1(epsilon)
    if adjacency == "remove":
        return -gain * (1 - p), -p * (gain + q), p * q
    return -gain * (1 - p), p * (q * (1 + gain) - gain), -p * q * (1 + gain)


def pieces(edges: Floats, means: Floats) -> Floats:
    """Return the mass of each piece of the line under unit Gaussians; the outer two are tails."""
    points = edges[1:-1][None, :] - means[:, None]
    # Differences of the smaller tail keep their relative accuracy on both sides.
    below, above = special.ndtr(points), special.ndtr(-points)
    inner = np.where(points[:, :-1] < 0, np.diff(below), -np.diff(above))
    return np.concatenate([below[:, :1], inner, above[:, -1:]], axis=1)


def _above(point: float, mean: float) -> mpf:
    return mp.erfc((mpf(point) - mpf(mean)) / mp.sqrt(2)) / 2


def line_delta(
    configuration: Configuration,
    epsilon: float,
    rates: tuple[float, float],
    noise_multiplier: float,
    adjacency: str,
) -> mpf:
    """Compute the divergence of a one-dimensional configuration by quadrature with 30 digits.

    The positive part itself is integrated, between its sign changes.
    """
    p, q = rates
    with mp.workdps(34):
        sigma = mpf(noise_multiplier)
        sums, masses = configuration.sums(q, mpf)
        step = mpf(float((configuration.basis @ configuration.new)[0])) / sigma
        weights = gap_weights(mpf(epsilon), mpf(p), mpf(q), adjacency)
        terms = [(weights[0], mpf(0))]
        for mean, mass in zip(sums[:, 0], masses, strict=True):
            terms.append((weights[1] * mass, mpf(mean) / sigma))
            terms.append((weights[2] * mass, mpf(mean) / sigma + step))

        def gap(z: mpf) -> mpf:
            return sum(weight * mp.npdf(z, mean) for weight, mean in terms)

        def signed(points: Floats) -> Floats:
            array = np.array([[float(w), float(m)] for w, m in terms])
            powers = np.exp(-((points[:, None] - array[:, 1]) ** 2) / 2)
            return np.asarray(powers @ array[:, 0])

        low = float(min(mean for _, mean in terms)) - 12
        high = float(max(mean for _, mean in terms)) + 12
        points = np.linspace(low, high, int((high - low) * 100) + 1)
        changes = np.flatnonzero(np.diff(np.sign(signed(points))))
        roots = [
            mp.findroot(gap, (mpf(points[place]), mpf(points[place + 1])), solver="anderson")
            for place in changes
        ]
        cuts = [mpf(low), *roots, mpf(high)]
        total = mpf(0)
        for left, right in itertools.pairwise(cuts):
            if gap((left + right) / 2) > 0:
                nodes = mp.linspace(left, right, max(2, int(mp.ceil((right - left) / 2)) + 1))
                total += mp.quad(gap, nodes, method="gauss-legendre")
        return total
