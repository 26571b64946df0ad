"""A round that is open: which updates it takes, and their sum."""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np

from turnout import _arguments
from turnout._types import Array, Floats, Integers
from turnout.errors import InvalidValueError, PlanMismatchError, ProtocolError
from turnout.federated import draws
from turnout.federated.client import Update
from turnout.federated.plan import RandomParticipationSGD
from turnout.federated.sums import zeros

#: A standard normal vector Z of n numbers has P(|Z| >= sqrt(n) + t) <= exp(-t^2 / 2), since its
#: norm changes by no more than Z does and has a mean of at most sqrt(n): 2^-64 at this t.
_TAIL = 9.42

#: Numbers of an update whose squares are added up together: they stay in the cache, and are too few
#: for a BLAS to wake other threads, which takes longer than the sum.
_BLOCK = 1 << 13

#: What integers add up to in 64 bits, and how many of their digits stay there beyond it.
_ROOM = 2**62
_DIGITS = 40


def largest_update(plan: RandomParticipationSGD, parameters: int) -> float:
    """Give the L2 norm that no honest client's update exceeds, in steps if there is a grid.

    Without noise of clients this is certain, and it has to be: refusing the sum of an honest client
    would tell what is in it. With noise an honest update exceeds it with probability 2^-64 at most,
    and nothing is told but what the noisy update tells.

    Parameters
    ----------
    plan
        The public parameters.
    parameters
        How many numbers the model has.

    Returns
    -------
    float
        ``clip`` for each of ``local_size`` elements, or once where a client is the unit; and the
        norm of a client's own noise.
        Where no size is stated a client may have any number of elements: as many as its grid
        allows, or, without a grid, infinity.

    Examples
    --------
    >>> from turnout.federated import RandomParticipationSGD
    >>> plan = RandomParticipationSGD(
    ...     0.1, 0.5, clip=1.0, noise_multiplier=2.0, local_size=30
    ... )
    >>> round(largest_update(plan, 1000) * plan.grid.step, 6)
    30.0
    """
    size, grid = plan._most_examples, plan.grid
    radius = plan.clip if grid is None else grid.radius
    # Without a stated size: what Grid.check_examples lets a client have.
    unstated = math.inf if grid is None else 2.0**61
    longest = unstated if size is None else radius * size
    if plan.mode != "trusted_server" and plan.noise != "none":
        root = math.sqrt(parameters)
        deviation = plan._deviation if grid is None else 2.0**grid.bits
        longest += deviation * (root + _TAIL)
        if grid is not None:
            longest += root / 2.0  # the noise is rounded
    # Roundings: of the sum of clipped gradients if they are on no grid, of the norm, and of this.
    return longest * (1.0 + (parameters + (size or 0) + 64) * 2.0**-51)


class OpenRound:
    """A round that is open.

    Parameters
    ----------
    plan
        The public parameters.
    number
        The number of the round.
    available
        How many clients were asked.
    parameters
        How many numbers the model has.
    """

    def __init__(
        self, plan: RandomParticipationSGD, number: int, available: int, parameters: int
    ) -> None:
        self._plan, self._number, self._available = plan, number, available
        self._sum = zeros(plan, parameters)
        # Integers: the sum is self._sum + 2^_DIGITS self._beyond, and |self._sum| <= self._used.
        self._beyond: Integers | None = None
        self._used = 0
        # Whatever all clients send, sums of floating-point numbers stay finite.
        room = float(np.finfo(np.float64).max) / 2.0 / available
        self._longest = min(largest_update(plan, parameters), room)
        self._clients: set[Hashable] = set()

    def take(self, update: Update, client: Hashable) -> None:
        """Add what a client sent, if it can be an honest client's and is its only one.

        Raises
        ------
        ProtocolError, PlanMismatchError, InvalidTypeError, InvalidValueError
            See :meth:`turnout.federated.Server.add`. Nothing has changed.
        """
        _arguments.instance("update", update, Update, "an Update or None", private=True)
        if update.round != self._number:
            raise ProtocolError(f"update must be for round {self._number}, got {update!r}")
        if update.plan != self._plan.fingerprint:
            raise PlanMismatchError(
                f"update was made under plan {update.plan}, this is {self._plan.fingerprint}"
            )
        values = update.values
        if values.shape != self._sum.shape or values.dtype != self._sum.dtype:
            raise _arguments.mistyped(
                f"update must hold {self._sum.size} values of dtype {self._sum.dtype}", update
            )
        if client in self._clients:
            raise ProtocolError(
                f"update is the second one of client {_arguments.shown(client)} in round "
                f"{self._number}"
            )
        if len(self._clients) == self._available:
            raise ProtocolError(
                f"update is one more than the {self._available} clients that are available"
            )
        norm = _norm(values, self._longest)
        if not norm <= self._longest:
            unit = "" if self._plan.grid is None else " steps"
            raise InvalidValueError(
                f"update must be finite and have a norm of at most {self._longest:.6g}{unit}, "
                f"which no honest client's exceeds under this plan, got {norm:.6g}"
            )
        self._added(values, norm)
        self._clients.add(client)

    def put(self, values: Array) -> None:
        """Add what was computed in this process, of one client or several."""
        # One pass, which takes less than to look for the largest and the least.
        self._added(values, 0.0 if self._plan.grid is None else _norm(values, self._longest))

    def _added(self, values: Array, largest: float) -> None:
        if self._plan.grid is not None:
            self._used += math.ceil(largest)
            if self._used > _ROOM:
                self._carry()
                self._used += math.ceil(largest)
        np.add(self._sum, values, out=self._sum)

    def _carry(self) -> None:
        """Make room: what is beyond the last digits of the sum is kept elsewhere.

        About 2^22 a time at most, so that there is room for more clients than there can be.
        """
        beyond = self._sum >> _DIGITS
        self._sum -= beyond << _DIGITS
        self._used = 2**_DIGITS
        self._beyond = beyond if self._beyond is None else self._beyond + beyond

    def gradient(self) -> Floats:
        """Add noise if the server is trusted with it, and scale. The round is as before."""
        total = self._sum
        if self._plan.mode == "trusted_server":
            total = total + draws.server_noise(self._plan, total.size, self._number)
        if self._beyond is None:
            floats: Floats = total.astype(np.float64)
        else:
            # Both parts are exact, so that their sum is the float nearest to the integer.
            beyond = total >> _DIGITS
            floats = np.ldexp((self._beyond + beyond).astype(np.float64), _DIGITS)
            floats += total - (beyond << _DIGITS)
        step = self._plan.grid.step if self._plan.grid is not None else 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            # What is not finite is refused with the model that it makes.
            return floats * (step * self._plan._scale(self._available))


def _norm(values: Array, longest: float) -> float:
    """Compute the L2 norm of an update; infinity or NaN if it holds such numbers, or overflows."""
    if values.dtype.kind == "i":
        return math.sqrt(_squares(values, 1.0))
    # Squares of numbers near the longest norm must neither overflow nor vanish.
    exponent = math.frexp(longest)[1]
    scale = 1.0 if abs(exponent) <= 300 else math.ldexp(1.0, min(-exponent, 1000))
    with np.errstate(over="ignore", invalid="ignore"):
        return math.sqrt(_squares(values, scale)) / scale


def _squares(values: Array, scale: float) -> float:
    """Add up the squares of scaled numbers."""
    squares = 0.0
    for start in range(0, values.size, _BLOCK):
        part = values[start : start + _BLOCK].astype(np.float64)
        if scale != 1.0:
            part *= scale
        squares += float(part @ part)
    return squares
