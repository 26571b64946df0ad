"""An open round: the updates that it accepts, and their sum."""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np

from turnout import _arguments
from turnout._types import Array, Floats, Integers
from turnout.errors import (
    InvalidValueError,
    MissingPartyError,
    PlanMismatchError,
    ProtocolError,
)
from turnout.federated import draws
from turnout.federated.client import Update
from turnout.federated.plan import RandomParticipationSGD
from turnout.federated.sums import zeros

#: A standard normal vector Z of n numbers has P(|Z| >= sqrt(n) + t) <= exp(-t^2 / 2), since its
#: norm changes by no more than Z does and has a mean of at most sqrt(n): 2^-64 at this t.
_TAIL = 9.42

#: How many numbers of an update are squared and added up together. They stay in the cache, and are
#: too few for a BLAS to wake other threads, which takes longer than the sum.
_BLOCK = 1 << 13

#: What integers add up to in 64 bits, and how many of their digits stay there beyond it.
_ROOM = 2**62
_DIGITS = 40


def largest_update(plan: RandomParticipationSGD, parameters: int) -> float:
    """Return the L2 norm that no honest client's update exceeds, in steps if there is a grid.

    If clients add no noise, this is certain, and it has to be: to refuse the sum of an honest
    client would reveal what is in it. With noise an honest update exceeds the norm with probability
    2^-64 at most. A refusal then reveals no more than the noisy update does.

    Parameters
    ----------
    plan
        The public parameters.
    parameters
        The number of numbers in the model.

    Returns
    -------
    float
        ``clip`` for each of ``local_size`` elements, or once where a client is the unit, plus the
        norm of a client's own noise. Where the plan states no size, a client may have any number of
        elements: as many as its grid allows, or infinity without a grid.

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
    if plan._votes is not None:
        radius = math.hypot(radius if grid is not None else math.inf, plan._votes.longest)
    # Without a stated size: what Grid.check_examples lets a client have.
    unstated = math.inf if grid is None else 2.0**61
    longest = unstated if size is None else radius * size
    if plan.mode != "trusted_server" and plan.noise != "none":
        root = math.sqrt(parameters + (plan._votes is not None))
        deviation = plan._deviation if grid is None else 2.0**grid.bits
        longest += deviation * (root + _TAIL)
        if grid is not None:
            longest += root / 2.0  # the noise is rounded
    # Roundings: of the sum of clipped gradients if they are on no grid, of the norm, and of this.
    return longest * (1.0 + (parameters + (size or 0) + 64) * 2.0**-51)


def check_available(plan: RandomParticipationSGD, available: int, parameters: int) -> None:
    """Refuse so few clients that none of their sums is large enough, or so many that none fits.

    Raises
    ------
    MissingPartyError
        If fewer are available than ``secure_sum`` needs senders.
    InvalidValueError
        If the sum of honest updates might exceed the modulus of shares. Without a stated size of
        clients there is no such number.
    """
    if plan.secure_sum is None:
        return
    least = plan.secure_sum.least_senders
    if available < least:
        raise MissingPartyError(
            f"available must be at least least_senders = {least} of secure_sum, got {available} "
            "clients: nobody is asked and nothing is paid"
        )
    if plan._most_examples is None:
        return
    most = math.floor(2**59 / largest_update(plan, parameters))
    if available > most:
        raise _arguments.invalid(
            f"available must be at most {most} with this plan, so that secure sums fit 60 bits "
            "(take fewer grid_bits)",
            available,
        )


class OpenRound:
    """An open round: it accepts updates and adds them up.

    Parameters
    ----------
    plan
        The public parameters.
    number
        The number of the round.
    available
        The number of clients that were asked.
    parameters
        The number of numbers in the model.
    clip
        The clip of the round.
    """

    #: How many clients were asked.
    available: int
    #: How many clients the sum is made of, as far as this process knows.
    senders: int
    #: By how much the share within the clip is above the quantile, noisy; known with the gradient.
    offset: float | None

    def __init__(
        self,
        plan: RandomParticipationSGD,
        number: int,
        available: int,
        parameters: int,
        clip: float,
    ) -> None:
        self._plan, self._number, self.available = plan, number, available
        self.senders, self.offset = 0, None
        self._grid = plan._grid_at(clip)
        self._sum = zeros(plan, parameters)
        # Integers: the sum is self._sum + 2^_DIGITS self._beyond, and |self._sum| <= self._used.
        self._beyond: Integers | None = None
        self._used = 0
        # Whatever all clients send, sums of floating-point numbers stay finite.
        room = float(np.finfo(np.float64).max) / 2.0 / available
        self._longest = min(largest_update(plan, parameters), room)
        self._clients: set[Hashable] = set()

    def take(self, update: Update, client: Hashable) -> None:
        """Add the update of a client, if an honest client can have sent it and it is the first one.

        Raises
        ------
        ProtocolError, PlanMismatchError, InvalidTypeError, InvalidValueError
            See :meth:`turnout.federated.Server.add`. Nothing changes.
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
        if len(self._clients) == self.available:
            raise ProtocolError(
                f"update is from one client more than the {self.available} available clients"
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
        self.senders += 1

    def put(self, values: Array, senders: int) -> None:
        """Add an update, or the sum of several, that this process computed."""
        self.senders += senders
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
        """Make room in the sum: move everything beyond its last digits elsewhere.

        Each call moves about 2^22 at most, so there is room for more clients than can exist.
        """
        beyond = self._sum >> _DIGITS
        self._sum -= beyond << _DIGITS
        self._used = 2**_DIGITS
        self._beyond = beyond if self._beyond is None else self._beyond + beyond

    def check_secure_sum(self) -> None:
        """Refuse a secure sum of too few clients, or one that honest clients cannot have.

        Raises
        ------
        MissingPartyError
            If fewer clients sent than its noise comes from.
        InvalidValueError
            If it is longer than the longest updates of all senders together.
        """
        secure = self._plan.secure_sum
        if secure is None:
            return
        if self.senders < secure.least_senders:
            raise MissingPartyError(
                f"round {self._number} has the updates of {self.senders} clients, and secure_sum "
                f"needs {secure.least_senders}: the round is given up and remains paid. Take "
                "fewer least_senders in the next training, or more clients"
            )
        norm, most = _norm(self._floats(self._sum), self._longest), self.senders * self._longest
        if norm > most:
            raise InvalidValueError(
                f"the sum of round {self._number} must have a norm of at most {most:.6g} steps, "
                f"which that of {self.senders} honest clients never exceeds, got {norm:.6g}: a "
                "client or an aggregator sent something else, and the round is given up"
            )

    def gradient(self) -> Floats:
        """Return the scaled sum, with noise if the server is trusted to add it.

        The round does not change.
        """
        total = self._sum
        if self._plan.mode == "trusted_server":
            total = total + draws.server_noise(self._plan, total.size, self._number)
        floats = self._floats(total)
        scale = self._plan._scale(self.available)
        votes = self._plan._votes
        if votes is not None:
            self.offset = votes.offset(float(floats[-1]), scale)
            floats = floats[:-1]
        step = self._grid.step if self._grid is not None else 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            # What is not finite is refused with the model that it makes.
            return floats * (step * scale)

    def _floats(self, total: Array) -> Floats:
        """Return the floats nearest to the numbers of the sum, of which ``total`` is one part."""
        if self._beyond is None:
            floats: Floats = total.astype(np.float64)
        else:
            # Both parts are exact, so that their sum is the float nearest to the integer.
            beyond = total >> _DIGITS
            floats = np.ldexp((self._beyond + beyond).astype(np.float64), _DIGITS)
            floats += total - (beyond << _DIGITS)
        return floats


def _norm(values: Array, longest: float) -> float:
    """Return the L2 norm of an update; infinity or NaN if it holds such numbers, or overflows."""
    if values.dtype.kind == "i":
        return math.sqrt(_squares(values, 1.0))
    # Squares of numbers near the longest norm must neither overflow nor vanish.
    exponent = math.frexp(longest)[1]
    scale = 1.0 if abs(exponent) <= 300 else math.ldexp(1.0, min(-exponent, 1000))
    with np.errstate(over="ignore", invalid="ignore"):
        return math.sqrt(_squares(values, scale)) / scale


def _squares(values: Array, scale: float) -> float:
    """Return the sum of the squares of the scaled numbers."""
    squares = 0.0
    for start in range(0, values.size, _BLOCK):
        part = values[start : start + _BLOCK].astype(np.float64)
        if scale != 1.0:
            part *= scale
        squares += float(part @ part)
    return squares
