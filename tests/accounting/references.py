"""Second computations of single mechanisms, from the definitions alone.

Nothing here looks at the library. The hockey-stick divergence of order alpha = e^epsilon is
H(P || Q) = sum of [P - alpha Q]_+; "remove" has the person or element in P, "add" in Q. Sums are
taken in mpmath with 50 digits, of which at least 30 are right in the result, or in rationals.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from mpmath import mp, mpf

DIGITS = 50

Law = dict[Any, Fraction]


class Setting(NamedTuple):
    """One round of random participation."""

    client_rate: float
    sample_rate: float
    local_size: int
    noise_multiplier: float


def check_bound(found: float, exact: mpf | Fraction, tightness: float = 1e-11) -> None:
    """Fail unless a number is at least the exact one, and above it by little."""
    with mp.workdps(DIGITS):
        if isinstance(exact, Fraction):
            exact = mpf(exact.numerator) / exact.denominator
        assert mpf(found) >= exact, f"{found!r} is below {mp.nstr(exact, 20)}"
        # Below the normal doubles only absolute errors are small.
        most = exact * (1 + mpf(tightness)) + mpf(2) ** -1060
        assert mpf(found) <= most, f"{found!r} is not near {mp.nstr(exact, 20)}"


def alpha_of(epsilon: float) -> Fraction:
    """Return e^epsilon as a fraction that is right to far more than 30 digits."""
    with mp.workdps(DIGITS + 20):
        power = mp.exp(mpf(epsilon))
        return Fraction(int(mp.floor(power * mpf(2) ** 220)), 2**220)


def hockey_stick(one: Law, other: Law, alpha: Fraction) -> Fraction:
    """Compute the divergence of two finite laws in exact rationals."""
    zero = Fraction(0)
    gaps = (mass - alpha * other.get(outcome, zero) for outcome, mass in one.items())
    return sum((gap for gap in gaps if gap > 0), zero)


# Gaussian mechanisms


def gaussian_delta(epsilon: float, noise_multiplier: float) -> mpf:
    """Compute the analytic Gaussian mechanism: N(1/sigma) against N(0)."""
    with mp.workdps(DIGITS):
        mu, eps = 1 / mpf(noise_multiplier), mpf(epsilon)
        return _above(eps / mu - mu / 2) - mp.exp(eps) * _above(eps / mu + mu / 2)


def poisson_gaussian_delta(
    epsilon: float, sample_rate: float, noise_multiplier: float, adjacency: str
) -> mpf:
    """Compute (1-q) N(0) + q N(1/sigma) against N(0), or the reverse.

    The one crossing of the two densities is known in closed form here.
    """
    with mp.workdps(DIGITS):
        mu, alpha, q = 1 / mpf(noise_multiplier), mp.exp(mpf(epsilon)), mpf(sample_rate)
        if adjacency == "remove":
            crossing = mp.log((alpha - 1 + q) / q) / mu + mu / 2
            return q * _above(crossing - mu) - (alpha - 1 + q) * _above(crossing)
        if alpha * (1 - q) >= 1:
            return mpf(0)
        crossing = mp.log((1 - alpha * (1 - q)) / (alpha * q)) / mu + mu / 2
        return (1 - alpha * (1 - q)) * _above(-crossing) - alpha * q * _above(mu - crossing)


def _above(point: mpf) -> mpf:
    return mp.erfc(point / mp.sqrt(2)) / 2


# Random participation: the bound, term by term over the number i of other sampled elements


def mixture_terms(
    epsilon: float, setting: Setting, i: int, adjacency: str
) -> list[tuple[mpf, mpf]]:
    """Return (weight, mean) of P - alpha Q given that i other elements would be sampled.

    The terms that P and Q share are subtracted on paper, so nothing cancels. In units of the noise;
    the single positive term comes first.

    remove: with    (1-p) N(0) + p (1-q) N(i) + p q N(i+1), without (1-p) N(0) + p N(i)
    add, seen from the client's sum, where the new element points away from the rest:
            without (1-p) N(i) + p N(0),     with (1-p) N(i) + p (1-q) N(0) + p q N(1)
    """
    p, q, _, sigma = map(mpf, setting)
    gain, one = mp.expm1(mpf(epsilon)), 1 / sigma
    if adjacency == "remove":
        return [(p * q, (i + 1) * one), (-gain * (1 - p), mpf(0)), (-p * (gain + q), i * one)]
    return [
        (p * (q * (1 + gain) - gain), mpf(0)),
        (-gain * (1 - p), i * one),
        (-p * q * (1 + gain), one),
    ]


def _density(terms: Sequence[tuple[mpf, mpf]], z: mpf) -> mpf:
    return sum(weight * mp.npdf(z, mean) for weight, mean in terms)


def term_by_tails(terms: Sequence[tuple[mpf, mpf]]) -> mpf:
    """Find the one crossing by bisection, then add up Gaussian tails."""
    (weight, mean), others = terms[0], [pair for pair in terms[1:] if pair[0] != 0]
    if weight <= 0:
        return mpf(0)
    if not others:
        return weight
    side = 1 if mean > others[0][1] or mean > others[-1][1] else -1

    def excess(z: mpf) -> mpf:
        # The logarithm of (others / first): falls towards the side of the first mean.
        powers = [mp.log(-w / weight) + (m - mean) * (z - (m + mean) / 2) for w, m in others]
        top = max(powers)
        return top + mp.log(sum(mp.exp(power - top) for power in powers))

    # One of the terms alone crosses at the extreme of these points, all of them together within
    # a factor of three; the distance of the means bounds how far that moves the crossing.
    points = [(m + mean) / 2 - (mp.log(-w / weight)) / (m - mean) for w, m in others if m != mean]
    if not points:
        return max(mpf(0), weight + sum(w for w, _ in others))
    same = sum(-w for w, m in others if m == mean)
    if same >= weight:
        return mpf(0)
    low, high = min(points) - 1, max(points) + 1
    for _ in range(400):
        if side * excess(low) > 0 > side * excess(high):
            break
        low, high = low - (high - low), high + (high - low)
    else:
        raise ArithmeticError("no crossing")
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if side * excess(middle) > 0 else (low, middle)
    crossing = mp.findroot(excess, (low, high), solver="secant", tol=mpf(10) ** (-mp.dps))
    return sum(w * _above(side * (crossing - m)) for w, m in terms)


def term_by_quadrature(terms: Sequence[tuple[mpf, mpf]]) -> mpf:
    """Integrate the positive part itself: pieces of the line, halved where the sign changes."""
    means = [mean for _, mean in terms]
    edges = mp.linspace(min(means) - 16, max(means) + 40, int(max(means) - min(means)) + 57)
    signs = [_density(terms, edge) for edge in edges]
    total = mpf(0)
    for k, (left, right) in enumerate(itertools.pairwise(signs)):
        low, high = edges[k : k + 2]
        if left * right < 0:
            root = mp.findroot(lambda z: _density(terms, z), (low, high), solver="anderson")
            low, high = (root, high) if right > 0 else (low, root)
        elif left <= 0:
            continue
        total += mp.quad(lambda z: _density(terms, z), [low, high], method="gauss-legendre")
    return total


def mixture_delta(
    epsilon: float, setting: Setting, adjacency: str, *, quadrature: bool = False
) -> mpf:
    """Compute the bound of random participation with equal shares to 30 digits.

    Each set of sampled elements has all of the client that stays away against it. The sum over
    Bin(d, q) leaves out terms of relative mass below 1e-60.
    """
    if adjacency == "add_or_remove":
        return max(
            mixture_delta(epsilon, setting, "remove", quadrature=quadrature),
            mixture_delta(epsilon, setting, "add", quadrature=quadrature),
        )
    term = term_by_quadrature if quadrature else term_by_tails
    with mp.workdps(DIGITS):
        return sum(
            (
                mass * term(mixture_terms(epsilon, setting, i, adjacency))
                for i, mass in binomial_masses(setting[2], setting[1])
            ),
            mpf(0),
        )


def best_shares_delta(epsilon: float, setting: Setting, adjacency: str) -> mpf:
    """Compute the bound of random participation with the best shares to 30 digits.

    Set i has the share c_i of the client that stays away against it, of mean one. Seen from that
    client all sets with a share cross at one place t, which is found by bisection; the excess of
    each is then added up from Gaussian tails, with its own share.
    """
    if adjacency == "add_or_remove":
        return max(best_shares_delta(epsilon, setting, way) for way in ("remove", "add"))
    with mp.workdps(DIGITS):
        single, near, far, sets = _share_terms(epsilon, setting, adjacency)
        if single <= 0:
            return mpf(0)
        step = 1 / mpf(setting[3])
        level = mp.log(near / single) if near > 0 else mpf("-inf")
        shares = [mpf(0)] * len(sets)
        place = None
        if far > 0:
            place = _place(single, near, far, sets, step)
            shares = [max(mpf(0), gap / far) for gap in _gaps(single, near, sets, step, place)]
            assert sum(w * c for (_, w), c in zip(sets, shares, strict=True)) <= 1
        total = mpf(0)
        for (k, mass), share in zip(sets, shares, strict=True):
            # Where the event begins, seen from the client that stays away.
            start = place if share > 0 else (k - mpf(1) / 2) * step + level / step
            total += mass * (
                single * _above(start - k * step)
                - near * _above(start - (k - 1) * step)
                - far * share * _above(start)
            )
        return total


def _share_terms(
    epsilon: float, setting: Setting, adjacency: str
) -> tuple[mpf, mpf, mpf, list[tuple[int, mpf]]]:
    p, q, size, _ = setting
    p, q, gain = mpf(p), mpf(q), mp.expm1(mpf(epsilon))
    masses = list(_all_binomial_masses(int(size), q))
    if adjacency == "remove":
        return p * q, p * (gain + q), gain * (1 - p), [(i + 1, mass) for i, mass in masses]
    return p * (q * (1 + gain) - gain), p * q * (1 + gain), gain * (1 - p), masses


def _all_binomial_masses(trials: int, rate: float) -> Iterator[tuple[int, mpf]]:
    """Yield the masses down to 1e-60, of few trials all of them."""
    if trials > 60:
        yield from sorted(binomial_masses(trials, rate))
        return
    q = mpf(rate)
    for i in range(trials + 1):
        if mass := math.comb(trials, i) * q**i * (1 - q) ** (trials - i):
            yield i, mass


def _gaps(
    single: mpf, near: mpf, sets: Sequence[tuple[int, mpf]], step: mpf, place: mpf
) -> list[mpf]:
    """Return A N(t; k s) - B N(t; (k-1) s) over N(t; 0)."""
    powers = {m: mp.exp(m * step * (place - m * step / 2)) for k, _ in sets for m in (k - 1, k)}
    return [single * powers[k] - near * powers[k - 1] for k, _ in sets]


def _place(single: mpf, near: mpf, far: mpf, sets: Sequence[tuple[int, mpf]], step: mpf) -> mpf:
    """Return a place just below where all shares have the mean one, or where next to none does."""

    def used(place: mpf) -> mpf:
        gaps = _gaps(single, near, sets, step, place)
        return sum(mass * max(mpf(0), gap) for (_, mass), gap in zip(sets, gaps, strict=True))

    low, width = (sets[0][0] - mpf(1) / 2) * step + mp.log(near / single) / step, mpf(1)
    while used(low + width) <= far:
        width *= 2
        if width > 10**30:
            return low + width
    high = low + width
    while high - low > mpf(10) ** -9 * width:
        middle = (low + high) / 2
        low, high = (middle, high) if used(middle) <= far else (low, middle)
    # The last digits by secants from both ends, of which the lower one stays below.
    for _ in range(60):
        below, above = used(low) - far, used(high) - far
        cut = low - below * (high - low) / (above - below)
        least = mpf(10) ** (-DIGITS + 8) * max(1, abs(cut))
        cut = min(max(cut, low + least / 2), high - least / 2)
        if used(cut) <= far:
            low = cut
            if used(cut + least) > far:
                break
        else:
            high = cut
            if used(cut - least) <= far:
                low = cut - least
                break
    return low


def binomial_masses(trials: int, rate: float) -> Iterator[tuple[int, mpf]]:
    """Yield the masses of Bin(trials, rate), from the mode outwards, down to 1e-60 of the mode."""
    q = mpf(rate)
    if q == 1 or trials == 0:
        yield trials, mpf(1)
        return
    mode = min(trials, int((trials + 1) * q))
    top = mp.exp(
        mp.loggamma(trials + 1) - mp.loggamma(mode + 1) - mp.loggamma(trials - mode + 1)
        + mode * mp.log(q) + (trials - mode) * mp.log1p(-q)
    )  # fmt: skip
    yield mode, top
    mass, i = top, mode
    while i < trials and mass > top * mpf(10) ** -60:
        mass *= (trials - i) * q / ((i + 1) * (1 - q))
        i += 1
        yield i, mass
    mass, i = top, mode
    while i > 0 and mass > top * mpf(10) ** -60:
        mass *= i * (1 - q) / ((trials - i + 1) * q)
        i -= 1
        yield i, mass


# Counts of items whose users are kept with probability p


def binomial_law(trials: int, rate: float) -> list[Fraction]:
    """Return the exact masses of Bin(trials, rate); the rate is the double that was given."""
    p = Fraction(rate)
    return [math.comb(trials, x) * p**x * (1 - p) ** (trials - x) for x in range(trials + 1)]


def product_law(counts: Sequence[int], rate: float) -> Law:
    """Return the joint law of independent Bin(count, rate)."""
    laws = [binomial_law(count, rate) for count in counts]
    return {
        outcome: math.prod(law[x] for law, x in zip(laws, outcome, strict=True))
        for outcome in itertools.product(*(range(count + 1) for count in counts))
    }


def count_sampling_delta(
    epsilon: float, rate: float, first: int, adjacency: str, second: int = 0
) -> Fraction:
    """Compute the divergence exactly for a user of an item that ``first`` others hold.

    Replaced, the user moves to an item that ``second`` others hold.
    """
    alpha = alpha_of(epsilon)
    if adjacency == "replace":
        with_user = product_law([first + 1, second], rate)
        return hockey_stick(with_user, product_law([first, second + 1], rate), alpha)
    laws = product_law([first + 1], rate), product_law([first], rate)
    return hockey_stick(*(laws if adjacency == "remove" else laws[::-1]), alpha)


def count_replacement_delta(epsilon: float, rate: float, floor: int) -> mpf:
    """Sum the same over all pairs of counts with 50 digits, for floors of some hundreds."""
    with mp.workdps(DIGITS):
        p, alpha = mpf(rate), mp.exp(mpf(epsilon))
        more, fewer = (
            [mp.binomial(n, x) * p**x * (1 - p) ** (n - x) for x in range(floor + 2)]
            for n in (floor + 1, floor)
        )
        scaled = [alpha * mass for mass in fewer]
        return sum(
            (
                gap
                for one, other in zip(more, scaled, strict=True)
                for two, third in zip(fewer, more, strict=True)
                if (gap := one * two - other * third) > 0
            ),
            mpf(0),
        )


# Integer noise


def noise_mass(kind: str, scale: float, x: int) -> mpf:
    """Return the mass of integer noise, up to a constant factor for the first two kinds."""
    if kind == "discrete_laplace":
        return mp.exp(-abs(x) / mpf(scale))
    if kind == "discrete_gaussian":
        return mp.exp(-(mpf(x) ** 2) / (2 * mpf(scale) ** 2))
    return mp.exp(-2 * mpf(scale)) * mp.besseli(x, 2 * mpf(scale))


def integer_noise_delta(
    kind: str, scale: float, epsilon: float, adjacency: str, radius: int
) -> mpf:
    """Sum over all outcomes within a radius: one coordinate, or two for "replace"."""
    with mp.workdps(DIGITS):
        alpha = mp.exp(mpf(epsilon))
        masses = [noise_mass(kind, scale, x) for x in range(-radius - 1, radius + 2)]
        total = sum(masses)
        masses = [mass / total for mass in masses]
        middle, up, down = masses[1:-1], masses[2:], masses[:-2]
        if adjacency != "replace":
            gaps = (one - alpha * other for one, other in zip(middle, down, strict=True))
            return sum((gap for gap in gaps if gap > 0), mpf(0))
        return sum(
            (
                gap
                for one, first in zip(middle, down, strict=True)
                for two, second in zip(middle, up, strict=True)
                if (gap := one * two - alpha * first * second) > 0
            ),
            mpf(0),
        )
