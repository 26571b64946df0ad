"""Pictures of what mechanisms cost: several on one axis, and the paper's own curve beside.

The paper is Hasircioglu and Gunduz, "Privacy Amplification via Random Participation in Federated
Learning"; its Figures 1, 2, 3 and 5 are :func:`plot_delta`, :func:`plot_epsilon_against_noise`,
:func:`plot_delta_against_noise` and :func:`plot_epsilon_against_sample_rate`. Where random
participation is drawn, the curve of its Theorem 4.1, which is no bound
(:func:`turnout.accounting.paper.theorem_4_1_delta`), is dashed beside ours.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Axes, Floats
from turnout.accounting.curves import Mechanisms, refuse_without, theorem_delta, theorem_epsilon
from turnout.accounting.drawing import FEWER_POINTS, Picture, increasing
from turnout.accounting.mechanism import Mechanism
from turnout.errors import InvalidValueError


def plot_delta(
    mechanisms: Mechanisms,
    epsilons: npt.ArrayLike | None = None,
    adjacency: str | None = None,
    *,
    ax: Axes | None = None,
    labels: Sequence[str] | None = None,
    paper: bool = True,
) -> Axes:
    """Draw delta against epsilon for one use of each mechanism.

    Parameters
    ----------
    mechanisms
        A mechanism, a sequence of mechanisms, or a dict of labels and mechanisms.
    epsilons
        Where to evaluate, at least two; by default from 0 to where delta is tiny.
    adjacency
        What neighbouring data sets are; each mechanism's default if None.
    ax
        Matplotlib axes to draw on; new ones by default.
    labels
        A text for each mechanism, for the legend.
    paper
        Whether to draw the paper's Theorem 4.1 for random participation, dashed.

    Returns
    -------
    matplotlib.axes.Axes
        The axes; delta is logarithmic.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.
    """
    picture = Picture(mechanisms, adjacency, ax, labels, paper)
    if epsilons is None:
        points, far_apart = picture.default_epsilons()
    else:
        points = increasing("epsilons", epsilons, least=0.0)
        far_apart = points[0] > 0.0 and points[-1] / points[0] > 100.0
    picture.curves(
        points,
        lambda mechanism, word: np.asarray(mechanism.delta(points, word)),
        lambda mechanism: theorem_delta(mechanism, points),
    )
    picture.deltas()
    picture.axes.set_xscale("log" if far_apart else "linear")
    picture.axes.set_xlim(points[0], points[-1])
    return picture.finished("ε", "δ", ())


def plot_delta_against_noise(
    mechanisms: Mechanisms,
    epsilon: float,
    noise_multipliers: npt.ArrayLike | None = None,
    adjacency: str | None = None,
    *,
    ax: Axes | None = None,
    labels: Sequence[str] | None = None,
    paper: bool = True,
) -> Axes:
    """Draw delta against the noise multiplier for one use of each mechanism.

    Parameters
    ----------
    mechanisms
        As for :func:`plot_delta`; their own noise multipliers do not matter.
    epsilon
        The epsilon, finite and at least 0.
    noise_multipliers
        Where to evaluate, at least two; by default from 0.5 to 10 and twice the mechanisms' own.
    adjacency, ax, labels, paper
        As for :func:`plot_delta`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, both of them logarithmic.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or a mechanism has no noise multiplier.
    """
    level = _number("epsilon", epsilon, math.inf)
    picture = Picture(mechanisms, adjacency, ax, labels, paper)
    points = picture.noises(noise_multipliers)
    picture.curves(
        points,
        _each(points, lambda mechanism, word: mechanism.delta(level, word)),
        _each_claim(points, lambda mechanism: theorem_delta(mechanism, np.array(level))),
    )
    picture.deltas()
    picture.noise(points)
    return picture.finished("noise multiplier σ", f"δ at ε = {level:g}", ("noise_multiplier",))


def plot_epsilon_against_noise(
    mechanisms: Mechanisms,
    delta: float,
    noise_multipliers: npt.ArrayLike | None = None,
    adjacency: str | None = None,
    *,
    ax: Axes | None = None,
    labels: Sequence[str] | None = None,
    paper: bool = True,
) -> Axes:
    """Draw epsilon against the noise multiplier for one use of each mechanism.

    Parameters
    ----------
    mechanisms
        As for :func:`plot_delta`; their own noise multipliers do not matter.
    delta
        The delta, in [0, 1].
    noise_multipliers
        Where to evaluate, at least two; by default from 0.5 to 10 and twice the mechanisms' own.
    adjacency, ax, labels, paper
        As for :func:`plot_delta`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, both of them logarithmic; a curve drops off where epsilon is 0.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or a mechanism has no noise multiplier.
    """
    level = _number("delta", delta, 1.0)
    picture = Picture(mechanisms, adjacency, ax, labels, paper)
    points = picture.noises(noise_multipliers)
    picture.curves(
        points,
        _each(points, lambda mechanism, word: mechanism.epsilon(level, word)),
        _each_claim(points, lambda mechanism: theorem_epsilon(mechanism, level)),
    )
    picture.epsilons()
    picture.noise(points)
    return picture.finished("noise multiplier σ", f"ε at δ = {level:g}", ("noise_multiplier",))


def plot_epsilon_against_rounds(
    mechanisms: Mechanisms,
    delta: float,
    rounds: npt.ArrayLike | None = None,
    adjacency: str | None = None,
    *,
    ax: Axes | None = None,
    labels: Sequence[str] | None = None,
    lower: bool = True,
) -> Axes:
    """Draw epsilon against the number of rounds: upper values as lines, a band down to the lower.

    Every point is a composition: some tenths of a second, and some seconds with its lower value.
    The paper's theorem speaks of one round only, so it has no curve here.

    Parameters
    ----------
    mechanisms
        As for :func:`plot_delta`.
    delta
        The delta, in [0, 1].
    rounds
        Whole numbers of at least 1, at least two of them; by default seven from 1 to 10,000.
    adjacency, ax, labels
        As for :func:`plot_delta`.
    lower
        Whether to compute lower values.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, both of them logarithmic.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.
    """
    level = _number("delta", delta, 1.0)
    picture = Picture(mechanisms, adjacency, ax, labels, paper=False)
    given = np.geomspace(1.0, 1e4, 7).round() if rounds is None else rounds
    points = increasing("rounds", given, least=1.0)
    if (points != np.floor(points)).any():
        raise _arguments.invalid("rounds must be whole numbers", rounds)

    def bounds(mechanism: Mechanism, word: str) -> Floats:
        found = []
        for count in points.astype(np.int64).tolist():
            composition = mechanism.compose(count, word)
            upper = composition.epsilon(level)
            below = composition.epsilon_bounds(level).lower if lower else upper
            found.append((upper, below))
        return np.array(found).T

    for line in picture.lines:
        upper, below = bounds(line.mechanism, line.word)
        drawn = picture.line(points, upper, line, marker="o", markersize=3.5)
        if lower:
            # A lower value of 0 says nothing.
            floor = np.where(below > 0.0, below, np.nan)
            picture.axes.fill_between(
                points, floor, drawn, color=line.colour, alpha=0.25, linewidth=0.0
            )
    picture.epsilons()
    picture.axes.set_xscale("log")
    note = "bands reach down to lower values" if lower else ""
    return picture.finished("rounds", f"ε at δ = {level:g}", (), note)


def plot_epsilon_against_sample_rate(
    mechanisms: Mechanisms,
    delta: float,
    sample_rates: npt.ArrayLike | None = None,
    adjacency: str | None = None,
    *,
    ax: Axes | None = None,
    labels: Sequence[str] | None = None,
    paper: bool = True,
) -> Axes:
    """Draw epsilon against the sample rate, the expected batch kept.

    Each mechanism keeps the product of its own two rates: at a sample rate q its client rate is
    that product over q. Mechanisms without a client rate are drawn for each q as it is.

    Parameters
    ----------
    mechanisms
        As for :func:`plot_delta`; each has a sample rate.
    delta
        The delta, in [0, 1].
    sample_rates
        Where to evaluate, at least two, above 0 and at most 1; by default from the smallest product
        of the two rates to 1.
    adjacency, ax, labels, paper
        As for :func:`plot_delta`.

    Returns
    -------
    matplotlib.axes.Axes
        The axes, both of them logarithmic; a curve starts where the client rate is 1.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or a mechanism has no sample rate, or
        no default can be found because all rates are 0 or there is no client rate.
    """
    level = _number("delta", delta, 1.0)
    picture = Picture(mechanisms, adjacency, ax, labels, paper)
    refuse_without(picture.mechanisms, "sample_rate")
    products = [_product(mechanism) for mechanism in picture.mechanisms]
    if sample_rates is None:
        known = [product for product in products if 0.0 < product < 1.0]
        if not known:
            raise InvalidValueError(
                "sample_rates must be given where no mechanism has two rates with a product "
                "between 0 and 1"
            )
        points = np.geomspace(min(known), 1.0, FEWER_POINTS)
    else:
        points = increasing("sample_rates", sample_rates, least=0.0, above=True, most=1.0)

    def at(mechanism: Mechanism, sample_rate: float) -> Mechanism | None:
        product = _product(mechanism)
        if math.isnan(product):
            return mechanism.replace(sample_rate=sample_rate)
        client_rate = product / sample_rate
        if client_rate > 1.0 + 1e-9:
            return None
        return mechanism.replace(sample_rate=sample_rate, client_rate=min(1.0, client_rate))

    picture.curves(
        points,
        _each(points, lambda mechanism, word: mechanism.epsilon(level, word), at),
        _each_claim(points, lambda mechanism: theorem_epsilon(mechanism, level), at),
    )
    picture.epsilons()
    picture.across(points)
    kept = {product for product in products if not math.isnan(product)}
    note = f"p q = {kept.pop():g}" if len(kept) == 1 else "p q fixed for each"
    rates = ("sample_rate", "client_rate")
    return picture.finished("sample rate q", f"ε at δ = {level:g}", rates, note)


def _each(
    points: Floats,
    value: Callable[[Mechanism, str], float],
    at: Callable[[Mechanism, float], Mechanism | None] | None = None,
) -> Callable[[Mechanism, str], Floats]:
    """Evaluate a mechanism changed for each point; it is not drawn where it cannot be."""
    place = _noisy if at is None else at

    def values(mechanism: Mechanism, word: str) -> Floats:
        changed = [place(mechanism, float(point)) for point in points]
        return np.array([math.nan if one is None else value(one, word) for one in changed])

    return values


def _each_claim(
    points: Floats,
    value: Callable[[Mechanism], Any],
    at: Callable[[Mechanism, float], Mechanism | None] | None = None,
) -> Callable[[Mechanism], Floats]:
    def claimed(mechanism: Mechanism, _: str) -> float:
        found = value(mechanism)
        return math.nan if found is None else float(found)

    values = _each(points, claimed, at)
    return lambda mechanism: values(mechanism, "")


def _noisy(mechanism: Mechanism, noise_multiplier: float) -> Mechanism:
    return mechanism.replace(noise_multiplier=noise_multiplier)


def _product(mechanism: Any) -> float:
    """Multiply the two rates; not a number where there is no client rate."""
    if not hasattr(mechanism, "client_rate"):
        return math.nan
    return float(mechanism.client_rate) * float(mechanism.sample_rate)


def _number(argument: str, value: object, most: float) -> float:
    result = _arguments.number(argument, value)
    if not (0.0 <= result <= most and math.isfinite(result)):
        upper = "finite" if math.isinf(most) else f"at most {most:g}"
        raise _arguments.invalid(f"{argument} must be a number of at least 0 and {upper}", value)
    return result
