"""Look for clients that lose more over many rounds than one that repeats its gradients.

The library's lower value of many rounds is that of a client with the same other gradients in every
round. Here a client may choose new ones in each round: before the training (a mix), or from the
results of all earlier rounds (adaptively). Let s be epsilon minus the loss so far, and V(s) the
delta that the rest of the training adds. One more round before it gives

    V'(s) = sum of P(outcome) V(s - loss of the outcome),    V(s) = max(0, 1 - e^s) at the end,

and an adaptive client takes the gradients with the largest V'(s) for each s. Nothing is rounded up:
space is cut into boxes, boxes are merged or their losses are rounded down to a grid, and beyond the
grid V is at least 1 - e^s. So every number printed is one that a possible client reaches (but for
the rounding of Fourier transforms, far below the last digit), and a bit below the best.

For each setting and number of rounds, it prints epsilon at delta 1e-5: the library's two values,
and those of the best repeated gradients, of the best mix of them with others, and of the adaptive
client. "one round" is the largest delta after other gradients in one round, relative to that of the
repeated ones. They are drawn at random (up to three groups, of any sizes, lengths and angles); the
best of them climb.

    python examples/federated/worst_rounds.py               # about half an hour on two cores
    python examples/federated/worst_rounds.py --settings 2 --rounds 2 10
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import fft, optimize, special, stats

from turnout.accounting import RandomParticipation

Floats = npt.NDArray[np.float64]

#: Client rate, sample rate, local size and noise: what an epsilon needs in one round.
SETTINGS = [
    (0.001, 0.1, 30, 2.37328),
    (0.1, 0.001, 1000, 0.80866),
    (0.01, 0.1, 10, 1.19532),
    (0.1, 0.1, 50, 3.20912),
    (0.3, 0.3, 5, 3.34384),
]

DELTA = 1e-5

WAYS = ("remove", "add")

#: More rounds than this are not played adaptively, and with fewer angles: that takes too long.
MOST_ADAPTIVE = 100

#: All other gradients at these angles to the new one are what a client chooses from.
ANGLES = (0.0, 7.5, 15.0, 22.5, 30.0, 37.5, 45.0, 52.5, 60.0, 67.5, 75.0, 82.5, 90.0, 135.0, 180.0)

#: Beyond this distance from all means, in units of the noise, one box reaches to infinity.
REACH = 8.0

#: Points of the grid on each side of zero, and boxes of a plane.
HALF, BOXES = 2**13, 40_000


class Group(NamedTuple):
    """Equal gradients: how many, how long, and at how many degrees to the new one."""

    many: int
    length: float
    degrees: float


#: The other gradients of a client: the new one has length one.
Gradients = tuple[Group, ...]


@dataclasses.dataclass(frozen=True)
class Kernel:
    """The losses of a round on a grid, rounded down."""

    #: The transform of the masses, for a product with that of the values.
    transform: Any
    #: The masses under both laws of losses beyond the grid.
    beyond: tuple[float, float]


def sums(mechanism: RandomParticipation, others: Gradients) -> tuple[Floats, Floats]:
    """Return the sums of sampled gradients, in units of the noise, and their probabilities."""
    found = {(0.0, 0.0): 1.0}
    for many, length, degrees in others:
        angle = math.radians(degrees)
        step = (length * math.cos(angle), length * math.sin(angle))
        taken = np.arange(min(many, 60) + 1)
        masses = stats.binom.pmf(taken, many, mechanism.sample_rate)
        following: dict[tuple[float, float], float] = {}
        for (x, y), mass in found.items():
            for count, share in zip(taken.tolist(), masses.tolist(), strict=True):
                if mass * share > 1e-13:
                    place = (round(x + count * step[0], 12), round(y + count * step[1], 12))
                    following[place] = following.get(place, 0.0) + mass * share
        found = following
    masses = np.array(list(found.values()))
    return np.array(list(found)) / mechanism.noise_multiplier, masses / masses.sum()


def pieces(edges: Floats, means: Floats) -> Floats:
    """Return the masses of the pieces of a line under unit Gaussians; the outer two are tails."""
    points = edges[1:-1][None, :] - means[:, None]
    below, above = special.ndtr(points), special.ndtr(-points)
    inner = np.where(points[:, :-1] < 0.0, np.diff(below), -np.diff(above))
    return np.concatenate([below[:, :1], inner, above[:, -1:]], axis=1)


def boxes(
    mechanism: RandomParticipation, others: Gradients, many: int = BOXES
) -> tuple[Floats, Floats]:
    """Return the masses of boxes of a round with and without the new element."""
    means, masses = sums(mechanism, others)
    new = np.array([[1.0 / mechanism.noise_multiplier, 0.0]])
    if len(others) == 1:
        # One axis along the other gradients.
        angle = math.radians(others[0].degrees)
        along, across = math.cos(angle), math.sin(angle)
        turn = np.array([[along, -across], [across, along]])
        means, new = means @ turn, new @ turn
    low = means.min(axis=0) + np.minimum(new[0], 0.0) - REACH
    high = means.max(axis=0) + np.maximum(new[0], 0.0) + REACH
    low, high = np.minimum(low, -REACH), np.maximum(high, REACH)
    flat = max(np.abs(means[:, 1]).max(), abs(new[0, 1])) < 1e-9
    width = 5e-3 if flat else math.sqrt(float(np.prod(high - low)) / many)
    edges = [
        np.linspace(start, end, math.ceil((end - start) / width) + 1)
        for start, end in zip(low, high, strict=True)
    ][: 1 if flat else 2]

    def cut(centres: Floats, weights: Floats) -> Floats:
        columns = [pieces(line, centres[:, axis]) for axis, line in enumerate(edges)]
        first = columns[0] * weights[:, None]
        return np.asarray(first.sum(axis=0) if flat else (first.T @ columns[1]).ravel())

    p, q = mechanism.client_rate, mechanism.sample_rate
    away = (1.0 - p) * cut(np.zeros((1, 2)), np.ones(1))
    absent, sampled = cut(means, masses), cut(means + new, masses)
    return away + p * ((1.0 - q) * absent + q * sampled), away + p * absent


@dataclasses.dataclass(eq=False)
class Rounds:
    """Rounds of one setting in one direction, on one grid of losses.

    Values are kept at the points ``(k - half) * step`` for k from 0 to twice ``half``. Beyond
    them, they are zero above, and at least 1 - e^s below.
    """

    mechanism: RandomParticipation
    direction: str
    #: The farthest point of the grid.
    farthest: float
    half: int = HALF

    def __post_init__(self) -> None:
        """Place the grid."""
        self.step = self.farthest / self.half
        self.points = np.arange(-self.half, self.half + 1) * self.step
        #: What is seen from the points, from twice as far below to twice as far above.
        self.size = fft.next_fast_len(4 * self.half + 1, real=True)
        self.below = -np.expm1(np.arange(-2 * self.half, -self.half) * self.step)
        self.known: dict[Gradients, Kernel] = {}

    def kernel(self, others: Gradients) -> Kernel:
        """Return the losses of a round."""
        if others not in self.known:
            self.known[others] = self.rounded(*self.laws(others))
        return self.known[others]

    def laws(self, others: Gradients, many: int = BOXES) -> tuple[Floats, Floats]:
        """Return the masses of boxes under both laws, in this direction."""
        one, other = boxes(self.mechanism, others, many)
        return (one, other) if self.direction == "remove" else (other, one)

    def placed(self, one: Floats, other: Floats) -> tuple[Floats, tuple[float, float]]:
        """Round losses down to the grid, and sum up what is beyond it.

        Boxes nearest to a point are two groups, with losses above and below it. All of one group
        and a share of the other are merged, with the loss of the point; the rest is rounded down.
        """
        kept = (one > 0.0) & (other > 0.0)
        one, other = one[kept], other[kept]
        loss = np.log(one / other)
        near = loss < (self.half - 1) * self.step
        beyond = float(one[~near].sum()), float(other[~near].sum())
        kept = near & (loss > -(self.half - 1) * self.step)
        one, loss = one[kept], loss[kept]
        place = np.round(loss / self.step).astype(np.int64)
        excess = -one * np.expm1(place * self.step - loss)
        above, place = excess >= 0.0, place + self.half

        def total(values: Floats, chosen: Any) -> Floats:
            return np.bincount(place[chosen], values[chosen], minlength=2 * self.half + 1)

        lacking = -total(excess, ~above)
        share = np.minimum(1.0, total(excess, above) / np.where(lacking > 0.0, lacking, 1.0))
        low = total(one, ~above)
        masses = total(one, above) + share * low
        masses[:-1] += ((1.0 - share) * low)[1:]
        return masses, beyond

    def rounded(self, one: Floats, other: Floats) -> Kernel:
        """Return losses on the grid, ready for a step."""
        masses, beyond = self.placed(one, other)
        return Kernel(fft.rfft(masses, self.size), beyond)

    def end(self) -> Floats:
        """Return the values after the last round."""
        return np.maximum(0.0, -np.expm1(self.points))

    def before(self, values: Floats, kernels: list[Kernel]) -> list[Floats]:
        """Return the values before one more round, for each kernel."""
        # The value k steps below point j meets loss k: a convolution, from -2 half to half.
        padded = np.concatenate([self.below, values, np.zeros(self.half)])
        seen = fft.rfft(padded, self.size)
        found = []
        for kernel in kernels:
            # Loss k is at place k + half of the masses; point j at place j + 2 half of the padded.
            whole = fft.irfft(seen * kernel.transform, self.size)
            first, second = kernel.beyond
            inner = whole[2 * self.half : 4 * self.half + 1]
            found.append(np.maximum(inner + first - second * np.exp(self.points), self.end()))
        return found

    def repeated(self, others: Gradients, rounds: int, values: Floats | None = None) -> Floats:
        """Return the values before some rounds with the same gradients."""
        values = self.end() if values is None else values
        for _ in range(rounds):
            values = self.before(values, [self.kernel(others)])[0]
        return values

    def adaptive(self, choices: list[Gradients], rounds: int) -> Floats:
        """Return the values before some rounds with the best gradients for each loss so far."""
        values = self.end()
        kernels = [self.kernel(others) for others in choices]
        for _ in range(rounds):
            values = np.max(self.before(values, kernels), axis=0)
        return values

    def delta(self, values: Floats, epsilon: float) -> float:
        """Return delta at the next point above an epsilon."""
        return float(values[math.ceil(epsilon / self.step - 1e-9) + self.half])

    def epsilon(self, values: Floats, delta: float = DELTA) -> float:
        """Return the largest point with a delta above that."""
        above = np.flatnonzero(values[self.half :] > delta)
        return float(above[-1] * self.step) if above.size else 0.0

    def once(self, others: Gradients, values: Floats, epsilon: float, many: int) -> float:
        """Return delta if the first round has some gradients, before rounds with known values."""
        masses, (first, second) = self.placed(*self.laws(others, many))
        at = math.ceil(epsilon / self.step - 1e-9) + 2 * self.half
        padded = np.concatenate([self.below, values, np.zeros(self.half)])
        met = padded[at - self.half : at + self.half + 1][::-1]
        return float(masses @ met) + first - second * math.exp(epsilon)


def choices(size: int, rounds: int) -> list[Gradients]:
    """Return gradients to choose from: all others at an angle, half of them, or none."""
    angles = ANGLES if rounds <= MOST_ADAPTIVE else ANGLES[::2]
    found: list[Gradients] = [(), *((Group(size, 1.0, angle),) for angle in angles)]
    if size > 1 and rounds <= MOST_ADAPTIVE:
        found += [(Group(size // 2, 1.0, angle),) for angle in (0.0, 45.0, 67.5)]
    return found


def drawn(numbers: Floats, size: int) -> Gradients:
    """Make gradients of at most a size from numbers: shares, lengths and angles of groups."""
    shares, lengths, angles = np.split(np.abs(numbers), 3)
    shares = shares / max(1.0, float(shares.sum()))
    return tuple(
        Group(int(size * share), min(1.0, float(length)), round(float(angle), 3))
        for share, length, angle in zip(shares, lengths, angles, strict=True)
    )


def other_once(
    game: Rounds, best: Gradients, rounds: int, epsilon: float, *, tries: int, seed: int
) -> tuple[float, Gradients]:
    """Search for gradients of one round that raise delta; return the largest ratio."""
    random, size = np.random.default_rng(seed), game.mechanism.local_size
    rest = game.repeated(best, rounds - 1)
    known = game.once(best, rest, epsilon, BOXES)
    usual = best[0].degrees if best else 45.0

    def ratio(numbers: Floats, many: int = BOXES // 4) -> float:
        return game.once(drawn(numbers, size), rest, epsilon, many) / known

    tried = []
    for place in range(tries):
        groups = 1 + place % 3
        angles = random.uniform(0.0, 180.0, groups)
        if place % 2:
            angles = np.abs(usual + random.normal(0.0, 20.0, groups))
        lengths = np.minimum(1.0, 1.4 * random.random(groups) ** 0.5)
        numbers = np.concatenate([random.random(groups) + 0.3, lengths, angles])
        tried.append((ratio(numbers), place, numbers))
    found = []
    for _, _, numbers in sorted(tried, reverse=True)[: max(1, tries // 40)]:
        scale = np.repeat([0.2, -0.2, 8.0], len(numbers) // 3)
        corners = np.vstack([numbers, numbers + np.diag(scale)])
        climbed = optimize.minimize(
            lambda numbers: -ratio(numbers), numbers, method="Nelder-Mead",
            options={"maxfev": 80, "initial_simplex": corners},
        ).x  # fmt: skip
        found.append((ratio(climbed, BOXES), drawn(climbed, size)))
    return max(found, key=lambda entry: entry[0])


def mixed(
    game: Rounds, best: Gradients, pool: list[Gradients], rounds: int
) -> tuple[float, str, Floats]:
    """Mix the best gradients with others in a quarter, half and three quarters of the rounds."""
    parts = sorted({max(1, rounds // 4), max(1, rounds // 2), max(1, rounds - rounds // 4)})
    found: list[tuple[float, str, Floats]] = []
    values, done = game.end(), 0
    for part in parts:
        if part == rounds:
            continue
        values, done = game.repeated(best, part - done, values), part
        for others in pool:
            if others != best:
                reached = game.repeated(others, rounds - part, values)
                found.append(
                    (game.epsilon(reached), f"{rounds - part} of {shown(others)}", reached)
                )
    return max(found, key=lambda entry: entry[0])


def shown(others: Gradients) -> str:
    """Write gradients in short."""
    return " + ".join(f"{g.many} x {g.length:.2f} at {g.degrees:g}" for g in others) or "none"


def game_of(mechanism: RandomParticipation, rounds: int, direction: str) -> Rounds:
    """Return a grid that is wide enough."""
    return Rounds(mechanism, direction, 2.5 * mechanism.compose(rounds).epsilon(DELTA))


def play(mechanism: RandomParticipation, rounds: int, tries: int) -> dict[str, Any]:
    """Return what is found for one setting and number of rounds, in the worse direction."""
    pool = choices(mechanism.local_size, rounds)
    lower = {way: mechanism.compose(rounds, way).epsilon_bounds(DELTA).low for way in WAYS}
    game = game_of(mechanism, rounds, max(WAYS, key=lower.__getitem__))
    alone = {others: game.epsilon(game.repeated(others, rounds)) for others in pool}
    best, epsilon = max(alone.items(), key=lambda entry: entry[1])
    near = sorted(pool, key=lambda others: -alone[others])[:4]
    found = {
        "repeated": epsilon, "gradients": shown(best), "direction": game.direction,
        "one round": other_once(game, best, rounds, epsilon, tries=tries, seed=1),
        "mix": mixed(game, best, near, rounds)[:2],
    }  # fmt: skip
    if rounds <= MOST_ADAPTIVE:
        found["adaptive"] = game.epsilon(game.adaptive(pool, rounds))
    return found


def line(found: dict[str, Any]) -> str:
    """Write what is found as lines."""
    adaptive = f"{found['adaptive']:.5f}" if "adaptive" in found else "--"
    ratio, others = found["one round"]
    mix, which = found["mix"]
    return (
        f"  repeated {found['repeated']:.5f}: {found['gradients']} ({found['direction']})\n"
        f"  one round {ratio:.4f}: {shown(others)}\n"
        f"  mix {mix:.5f}: {which}\n"
        f"  adaptive {adaptive}"
    )


def main() -> None:
    """Run the search."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, nargs="*", default=[2, 10, 100, 1000])
    parser.add_argument("--settings", type=int, nargs="*", default=range(1, len(SETTINGS) + 1))
    parser.add_argument("--tries", type=int, default=120)
    given = parser.parse_args()
    for number in given.settings:
        mechanism = RandomParticipation(*SETTINGS[number - 1])
        for rounds in given.rounds:
            known = mechanism.compose(rounds).epsilon_bounds(DELTA)
            print(
                f"{mechanism} x {rounds}\n"
                f"  library {known.low:.5f} to {known.high:.5f}: {known.reached}"
            )
            print(line(play(mechanism, rounds, given.tries)), flush=True)


if __name__ == "__main__":
    main()
