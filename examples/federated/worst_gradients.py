"""Look for gradients that lose more of what the bound of random participation allows.

A client's d other elements form groups of equal gradients; the client takes part with probability
p, each element is sampled with probability q. With the new element's gradient g (of norm one) and S
the sum of those that are sampled, delta is the integral of the positive part of

    remove: pq E N(S + g) - p (a - 1 + q) E N(S) - (a - 1)(1 - p) N(0),    a = e^epsilon,
    add:    p (q - (a - 1)(1 - q)) E N(S) - pq a E N(S + g) - (a - 1)(1 - p) N(0).

The gradients of all groups, in up to ten dimensions, go up the gradient of that integral (Adam; the
integral by importance sampling, new points in every step). What is found is then integrated again
with points of its own, and compared with the bound at the noise that the bound needs. All counts of
sampled elements are summed over; sums that are rarer than the last digit are left out.

    python examples/federated/worst_gradients.py            # about half an hour on two cores
    python examples/federated/worst_gradients.py --steps 30 --points 1000 --settings 6
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from turnout.accounting import RandomParticipation, calibrate_noise

jax.config.update("jax_enable_x64", True)

#: Client rate, sample rate and local size; epsilon and delta.
SETTINGS: list[tuple[tuple[float, float, int], float, float]] = [
    ((0.001, 0.1, 30), 0.015, 1e-6),
    ((0.1, 0.001, 1000), 0.015, 1e-6),
    ((0.01, 0.01, 100), 0.1, 1e-6),
    ((0.01, 0.1, 10), 0.5, 1e-6),
    ((0.1, 0.1, 50), 0.1, 1e-5),
    ((0.3, 0.3, 5), 0.3, 1e-5),
    ((0.02, 0.05, 20), 0.05, 1e-6),
]

#: At most so many sums of sampled gradients are looked at.
MOST_SUMS = 1000

#: And they have at least this probability together; the rest is left out.
COVERED = 0.99

#: The points are drawn around places this far beyond the event's own, in units of the gradient.
AHEAD = (0.0, 1.5, 4.0)

ANGLES = (0.0, 45.0, 60.0, 75.0, 90.0)


class Problem(NamedTuple):
    """One setting, one direction and groups of some sizes."""

    mechanism: RandomParticipation
    epsilon: float
    direction: str
    #: How many elements of each group are sampled, and the logarithms of the probabilities.
    counts: Any
    logs: Any
    #: How likely one of these is, before that was made certain.
    covered: float


def problem(
    mechanism: RandomParticipation, epsilon: float, direction: str, groups: Sequence[int]
) -> Problem:
    """List the sums that matter."""
    laws = []
    for size in groups:
        taken = np.arange(min(size, 40) + 1)
        masses = stats.binom.pmf(taken, size, mechanism.sample_rate)
        kept = masses > 1e-7
        laws.append(list(zip(taken[kept].tolist(), masses[kept].tolist(), strict=True)))
    found: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    for law in laws:
        found = [
            ((*counts, taken), mass * share)
            for (counts, mass), (taken, share) in itertools.product(found, law)
        ]
        found = sorted(found, key=lambda entry: -entry[1])[:MOST_SUMS]
    counts = np.array([counts for counts, _ in found], dtype=float)
    masses = np.array([mass for _, mass in found])
    covered = float(masses.sum())
    return Problem(mechanism, epsilon, direction, counts, np.log(masses / covered), covered)


class Effort(NamedTuple):
    """How much is tried."""

    steps: int
    points: int
    climbs: int
    final: int


def inside(raw: Any) -> Any:
    """Shorten gradients to norm one at most."""
    norms = jnp.sqrt((raw**2).sum(axis=-1, keepdims=True) + 1e-12)
    return raw / jnp.maximum(norms, 1.0)


def values(raw: Any, drawn: tuple[Any, Any, Any], known: Problem) -> Any:
    """Give unbiased values of delta, one for each point."""
    mechanism, gain = known.mechanism, math.expm1(known.epsilon)
    p, q = mechanism.client_rate, mechanism.sample_rate
    sums = known.counts @ inside(raw) / mechanism.noise_multiplier
    new = jnp.zeros(raw.shape[1]).at[0].set(1.0 / mechanism.noise_multiplier)
    choice, ahead, noise = drawn
    sign = 1.0 if known.direction == "remove" else -1.0
    base = new if known.direction == "remove" else 0.0 * new
    points = sums[choice] + base + sign * ahead[:, None] * new + noise

    def density(move: Any) -> Any:
        """Give the logarithm of the mean density of all sums, up to a constant."""
        shifted = points - move
        squares = (shifted**2).sum(1)[:, None] - 2.0 * shifted @ sums.T + (sums**2).sum(1)
        return jax.scipy.special.logsumexp(known.logs - 0.5 * squares, axis=1)

    proposed = jax.scipy.special.logsumexp(
        jnp.stack([density(base + sign * step * new) for step in AHEAD]), axis=0
    ) - math.log(len(AHEAD))
    own, moved = jnp.exp(density(0.0 * new) - proposed), jnp.exp(density(new) - proposed)
    far = (1.0 - p) * gain * jnp.exp(-0.5 * (points**2).sum(1) - proposed)
    if known.direction == "remove":
        excess = p * q * moved - p * (gain + q) * own - far
    else:
        excess = p * (q - gain * (1.0 - q)) * own - p * q * (1.0 + gain) * moved - far
    return jnp.maximum(0.0, excess)


def drawn(random: np.random.Generator, known: Problem, size: int, dimensions: int) -> Any:
    """Draw points."""
    masses = np.exp(np.asarray(known.logs))
    choice = random.choice(masses.size, size, p=masses / masses.sum())
    return choice, random.choice(AHEAD, size), random.standard_normal((size, dimensions))


def climb(
    raw: Any, known: Problem, objective: Any, random: np.random.Generator, given: Effort
) -> np.ndarray[Any, Any]:
    """Go up from some gradients by Adam."""
    steps, size = given.steps, given.points
    mean, square = np.zeros_like(raw), np.zeros_like(raw)
    for step in range(1, steps + 1):
        slope = np.nan_to_num(np.asarray(objective(raw, drawn(random, known, size, raw.shape[1]))))
        mean, square = 0.9 * mean + 0.1 * slope, 0.99 * square + 0.01 * slope**2
        rate = 0.1 * (1.0 - step / (steps + 1.0))
        raw = raw + rate * (mean / (1.0 - 0.9**step)) / (
            np.sqrt(square / (1.0 - 0.99**step)) + 1e-9
        )
        raw = np.asarray(inside(raw))
    return raw


def measured(raw: Any, known: Problem, once: Any, random: np.random.Generator, size: int) -> Any:
    """Integrate with points of its own: a mean and its standard error."""
    parts = [
        np.asarray(once(raw, drawn(random, known, 2000, raw.shape[1]))) for _ in range(size // 2000)
    ]
    found = np.concatenate(parts)
    return found.mean(), found.std() / math.sqrt(found.size)


def starts(groups: int, dimensions: int, random: np.random.Generator) -> list[Any]:
    """Give gradients to start from: all at an angle, one way or every way, and random ones."""
    found = []
    for angle in ANGLES:
        along, across = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        one_way = np.zeros((groups, dimensions))
        one_way[:, 0], one_way[:, 1] = along, across
        found.append(one_way)
        if dimensions > 2:
            every_way = np.zeros((groups, dimensions))
            every_way[:, 0] = along
            for group in range(groups):
                every_way[group, 1 + group % (dimensions - 1)] = across
            found.append(every_way)
    found += [random.standard_normal((groups, dimensions)) for _ in range(2)]
    return [
        np.asarray(inside(0.97 * raw + 0.03 * random.standard_normal(raw.shape))) for raw in found
    ]


def shapes(mechanism: RandomParticipation) -> list[tuple[list[int], int]]:
    """Give sizes of groups, and dimensions: as many as have not too many sums."""
    size = mechanism.local_size

    def split(many: int) -> list[int]:
        return [size // many + (place < size % many) for place in range(many)]

    def covered(groups: list[int]) -> float:
        return problem(mechanism, 0.0, "remove", groups).covered

    most = range(min(size, 9), 3, -1)
    many = next((split(number) for number in most if covered(split(number)) > COVERED), [])
    found = [([size], 2), (split(min(size, 3)), 4)]
    return [*found, (many, len(many) + 1)] if many else found


def search(
    setting: tuple[tuple[float, float, int], float, float],
    random: np.random.Generator,
    given: Effort,
) -> None:
    """Print what is found for one setting."""
    client, epsilon, delta = setting
    noise = calibrate_noise(RandomParticipation(*client, 1.0), epsilon, delta)
    mechanism = RandomParticipation(*client, noise)
    known = mechanism.compose(1).delta_bounds(epsilon)
    print(f"{client} epsilon {epsilon} delta {delta}: noise {noise:.5f}")
    print(f"  library: {known.low / known.high:.3f} {known.reached}")
    for groups, dimensions in shapes(mechanism):
        best: tuple[float, float, str, Any] = (0.0, 0.0, "", None)
        for direction in ("remove", "add"):
            found = climbed(
                problem(mechanism, epsilon, direction, groups), dimensions, random, given
            )
            value, error, raw = found
            if value > best[0]:
                best = (value, error, direction, raw)
        share, error, direction, raw = best
        print(
            f"  {len(groups):2} groups, {dimensions:2} dimensions: "
            f"{share / delta:.3f} +- {error / delta:.3f} ({direction})",
            flush=True,
        )
        print("    " + np.array2string(raw, precision=2).replace("\n", "\n    "), groups)


def climbed(
    task: Problem, dimensions: int, random: np.random.Generator, given: Effort
) -> tuple[float, float, Any]:
    """Go up from the best starts, and measure where that leads."""
    once = jax.jit(lambda raw, points: values(raw, points, task))
    objective = jax.jit(jax.grad(lambda at, points: jnp.log(values(at, points, task).mean())))
    tried = [
        (measured(raw, task, once, random, 6000)[0], place, raw)
        for place, raw in enumerate(starts(task.counts.shape[1], dimensions, random))
    ]
    best: tuple[float, float, Any] = (0.0, 0.0, None)
    for _, _, raw in sorted(tried, reverse=True)[: given.climbs]:
        for candidate in (raw, climb(raw, task, objective, random, given)):
            value, error = measured(candidate, task, once, random, given.final)
            if value > best[0]:
                best = (value, error, candidate)
    return best


def main() -> None:
    """Run the search."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--points", type=int, default=3000)
    parser.add_argument("--climbs", type=int, default=3)
    parser.add_argument("--final", type=int, default=200_000)
    parser.add_argument("--settings", type=int, nargs="*", default=range(1, len(SETTINGS) + 1))
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for number in given.settings:
        random = np.random.default_rng([given.seed, number])
        effort = Effort(given.steps, given.points, given.climbs, given.final)
        search(SETTINGS[number - 1], random, effort)


if __name__ == "__main__":
    main()
