"""A clip that follows a quantile of the norms, from votes under the noise of the round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Array, Floats
from turnout._values import settle
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

#: Between these shares of the clip a gradient counts as partly within.
_BELOW, _ABOVE = 0.9, 1.1

#: How much the votes of others change with their norms, divided by the root of the budget share. If
#: a norm within ``_ABOVE`` clips changes by a relative r, it changes by 1.1 r clips. The vote
#: changes by 1.1 r / 0.2 of its height, and the height is at most twice the longest vote.
_SLOPE = 11

#: The clip stays within this factor of the first, and within floating point.
_FACTOR, _LEAST, _MOST = 2.0**64, 2.0**-900, 2.0**900

#: A vote of fewer steps is too coarse.
_LEAST_VOTE = 256


@dataclass(frozen=True)
class AdaptiveClipping:
    """Let the clip follow a quantile of the norms of the gradients (Andrew and others, 2021).

    With its gradient every sampled element sends a vote: whether its gradient was within the clip.
    The votes are one more number of the sum, under the same noise. Gradient and vote together are a
    vector with the norm that the accounting assumes. So a round costs the same as without votes.
    The noise on the gradients grows by the share of the budget that the votes get. After the round
    the server moves the clip to ``clip * exp(-learning_rate * (share within - quantile))``.

    Parameters
    ----------
    quantile
        The share of gradients that the clip leaves unchanged, above 0 and below 1.
    learning_rate
        How fast the clip moves, from 0 to 10. At 0 the clip is fixed, and the history shows the
        clipped share.
    budget_share
        The share that the votes get of the inverse of the squared noise multiplier, above 0 and at
        most 0.5. With 0.01 the noise on the gradients is half a percent larger.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    Andrew, Thakkar, McMahan and Ramaswamy, "Differentially Private Learning with Adaptive
    Clipping", 2021. A gradient of norm 0.9 to 1.1 times the clip counts as partly within. A norm
    that comes out in other bits in another batch then never moves a whole vote, and ``batch_slack``
    covers what it does move. Votes are centred at the quantile, not at a half, so that their sum is
    0 at the quantile for any number of elements.

    The number of votes is private, so their sum is scaled by the number that the plan expects. If
    clients have half as many elements, the clip moves half as fast. The clipped share in the
    history is then half as far from 1 - ``quantile`` as the true share. A typical
    ``nominal_local_size`` prevents this.

    Examples
    --------
    >>> import numpy as np
    >>> from turnout.federated import SGD, InProcessEngine, RandomParticipationSGD
    >>> data = np.random.default_rng(0).normal(0.3, 0.1, size=(500, 2))
    >>> plan = RandomParticipationSGD(
    ...     0.5, 0.5, clip=10.0, epsilon=2.0, delta=1e-5, rounds=40, local_size=2, seed=1,
    ...     adaptive_clipping=AdaptiveClipping(quantile=0.5, learning_rate=0.5),
    ... )
    >>> engine = InProcessEngine(
    ...     plan,
    ...     np.zeros(1),
    ...     lambda mean, client, elements: mean - data[client, elements][:, None],
    ...     sizes=2,
    ...     clients=500,
    ...     optimizer=SGD(0.3),
    ... )
    >>> model = engine.run(40)
    >>> engine.server.clip < 1.0
    True
    """

    #: The share of gradients that the clip leaves as they are.
    quantile: float = 0.5
    #: How fast the clip moves.
    learning_rate: float = 0.2
    #: What the votes get of the round.
    budget_share: float = 0.01

    def __post_init__(self) -> None:
        quantile = _arguments.number("quantile", self.quantile)
        if not 0.0 < quantile < 1.0:
            raise _arguments.invalid("quantile must be above 0 and below 1", quantile)
        rate = _arguments.number("learning_rate", self.learning_rate)
        if not 0.0 <= rate <= 10.0:
            raise _arguments.invalid("learning_rate must be from 0 to 10", rate)
        share = _arguments.number("budget_share", self.budget_share)
        if not 0.0 < share <= 0.5:
            raise _arguments.invalid("budget_share must be above 0 and at most 0.5", share)
        settle(self, quantile=quantile, learning_rate=rate, budget_share=share)

    def _to_dict(self) -> dict[str, float]:
        """Return a JSON description."""
        return asdict(self)

    def _gradient_noise(self, noise_multiplier: float) -> float:
        """Return the noise multiplier of the gradients, rounded up, from that of both together."""
        squared = Fraction(noise_multiplier) ** 2 / (1 - Fraction(self.budget_share))
        found = math.sqrt(float(squared))
        while Fraction(found) ** 2 < squared:
            found = math.nextafter(found, math.inf)
        return found

    def _moved(self, clip: float, first: float, offset: float) -> float:
        """Return the next clip, from the difference of the share within and the quantile."""
        bounded = min(max(offset, -1.0), 1.0)
        low, high = _range(first)
        return min(max(clip * math.exp(-self.learning_rate * bounded), low), high)

    def _checked(self, clip: float, first: float) -> float:
        """Return the clip of a round, which may come from elsewhere, after a check."""
        value, (low, high) = _arguments.number("clip", clip), _range(first)
        if not low <= value <= high:
            raise _arguments.invalid(f"clip must be from {low:.3g} to {high:.3g}", clip)
        return value

    def _stored(self, state: list[Array], first: float, path: Any) -> float:
        """Remove the clip from the end of a checkpoint's state, and return it."""
        stored = state.pop() if state else np.empty(0)
        try:
            if stored.shape != (1,):
                raise _arguments.invalid("clip must be one number", stored.shape)
            return self._checked(float(stored[0]), first)
        except (InvalidTypeError, InvalidValueError) as error:
            raise CorruptDataError(f"{path}: the checkpoint holds no clip: {error}") from error


def _range(first: float) -> tuple[float, float]:
    """Return the range of possible clips after a first one."""
    return max(first / _FACTOR, min(first, _LEAST)), min(first * _FACTOR, max(first, _MOST))


@dataclass(frozen=True)
class Votes:
    """The weights of votes: one within the clip adds, one above the clip subtracts."""

    within: float
    above: float
    #: Votes on a grid are whole numbers of its steps.
    whole: bool

    @classmethod
    def of(cls, adaptive: AdaptiveClipping, noise_multiplier: float, bits: int | None) -> Votes:
        """Return the largest votes that do not exceed the budget share, computed exactly.

        Parameters
        ----------
        adaptive
            The budget share and the quantile.
        noise_multiplier
            The noise multiplier of the accounting.
        bits
            The exponent of the noise: its standard deviation is 2^bits steps. None without noise.

        Raises
        ------
        InvalidValueError
            If votes would be too few steps of the grid.
        """
        quantile = adaptive.quantile
        if bits is None:
            return cls(1.0 - quantile, quantile, whole=False)
        squared = Fraction(adaptive.budget_share) * Fraction(4) ** bits
        longest = math.isqrt(math.floor(squared / Fraction(noise_multiplier) ** 2))
        larger = max(Fraction(quantile), 1 - Fraction(quantile))
        within = math.floor(longest * (1 - Fraction(quantile)) / larger)
        above = math.floor(longest * Fraction(quantile) / larger)
        if min(within, above) < _LEAST_VOTE:
            raise InvalidValueError(
                "grid_bits must be larger, or budget_share, so that votes are not rounded away, "
                f"got grid_bits = {bits} and budget_share = {adaptive.budget_share}"
            )
        return cls(within, above, whole=True)

    @property
    def longest(self) -> float:
        """The most that one vote adds or subtracts."""
        return max(self.within, self.above)

    def count(self, parts: Sequence[Array], clip: float) -> float:
        """Return the sum of the votes of gradients, each a row over all parts."""
        # Whole votes stay exact, however many there are.
        total: float = 0 if self.whole else 0.0
        for norm in norms(parts):
            share = (_ABOVE - norm / clip) / (_ABOVE - _BELOW)
            vote = (self.within + self.above) * min(max(share, 0.0), 1.0) - self.above
            total += math.floor(vote) if self.whole else vote
        return total

    def offset(self, total: float, scale: float) -> float:
        """Return the share within minus the quantile, from a noisy sum of votes."""
        return total * scale / (self.within + self.above)


def norms(parts: Sequence[Array]) -> Floats:
    """Return the norm of each row over all parts, computed from this row alone, bit for bit."""
    squares = np.zeros(parts[0].shape[0])
    with np.errstate(over="ignore"):
        for part in parts:
            squares += [float(np.square(row, dtype=np.float64).sum()) for row in part]
        return np.sqrt(squares)


def covered(batch_slack: float, adaptive: AdaptiveClipping | None) -> Fraction:
    """Return the total change by one element, also of others, relative to its own maximum."""
    moved = Fraction(batch_slack)
    if adaptive is not None:
        share = Fraction(adaptive.budget_share)
        votes = _SLOPE * Fraction(math.isqrt(math.ceil(share * 4**60)) + 1, 2**60)
        # A vote is rounded to a step, which may flip too: no more than a parameter's, in the slack.
        moved *= 1 + votes + 1
    return 1 + moved


#: A smaller clip is beside numbers that floating point rounds away.
_LEAST_CLIP = 2.0**-1000


def checked_clip(value: float, noise: str) -> float:
    """Return a clip after a check.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If gradients cannot be clipped to it.
    """
    clip = _arguments.number("clip", value)
    if not clip >= _LEAST_CLIP or (math.isinf(clip) and noise != "none"):
        wanted = "at least 2^-1000" if noise == "none" else "finite and at least 2^-1000"
        raise _arguments.invalid(f"clip must be {wanted}", value)
    return clip
