"""The sum of many updates in place of single ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction

from turnout import _arguments
from turnout._rounding import rounded_up
from turnout._values import settle

#: More clients than can be, so that numbers stay small.
_MOST = 2**40

#: By what part of itself the noise of a client is larger than its share. Several rounded noises add
#: up to a rounded normal number only almost. With 2^8 steps or more for each client, the distance
#: is below 10^-100000 for any training: far less than this part of the noise changes delta.
_MARGIN = Fraction(1, 2**40)


@dataclass(frozen=True)
class SecureSum:
    """Show the server the sum of many updates, never a single one.

    Every client splits its update into shares, one for each of two or more *aggregators*. Any of
    them but one know nothing about the update. Each aggregator adds up the shares that it gets, and
    the server adds up these sums. So the noise of a round can come from all senders together: each
    adds a share, and the sum has at least the noise of the accounting. Without a secure sum every
    client adds the whole noise itself.

    Pass it as ``secure_sum`` of a plan whose mode does not trust the server.

    Parameters
    ----------
    least_senders
        The least number of clients that a sum is made of. A round in which fewer send is given up,
        and stays paid. As many clients as are available beyond this number may drop out.
    max_colluding_clients
        How many of the senders may use what they sent to learn about others, tell anybody what they
        sent, or leave out their noise. A client knows its own noise, so one that looks into the
        models counts too: at 0 each trusts all others. The noise of the others alone is enough:
        each adds 1 / sqrt(``least_senders - max_colluding_clients``) of the whole.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is not an integer or out of range, or fewer than two senders are honest.

    Examples
    --------
    >>> from turnout.federated import RandomParticipationSGD
    >>> plan = RandomParticipationSGD(
    ...     0.1, 0.5, clip=1.0, noise_multiplier=2.0, local_size=30, mode="always_send",
    ...     secure_sum=SecureSum(least_senders=101),
    ... )
    >>> float(round(plan.grid.noise_multiplier, 4))
    0.2
    """

    #: The least number of clients that a sum is made of.
    least_senders: int
    #: How many of them need not be honest.
    max_colluding_clients: int = 1

    def __post_init__(self) -> None:
        least = _arguments.integer("least_senders", self.least_senders, least=2, most=_MOST)
        colluding = _arguments.integer(
            "max_colluding_clients", self.max_colluding_clients, least=0, most=_MOST
        )
        if least - colluding < 2:
            raise _arguments.invalid(
                f"least_senders must be at least max_colluding_clients + 2 = {colluding + 2}, so "
                "that the update of an honest client is added to another one",
                least,
            )
        settle(self, least_senders=least, max_colluding_clients=colluding)

    def _to_dict(self) -> dict[str, int]:
        """Return a JSON description."""
        return asdict(self)

    def _share(self, noise_multiplier: float) -> float:
        """Return the noise multiplier of one client, rounded up, from that of the sum."""
        honest = self.least_senders - self.max_colluding_clients
        root = Fraction(math.isqrt(honest << 120), 1 << 60)
        return rounded_up(Fraction(noise_multiplier) * (1 + _MARGIN) / root)

    def _trust(self, alone: float) -> Iterator[str]:
        """Return whom a client trusts beside what the mode says; ``alone`` is its own noise."""
        yield (
            "at least one aggregator follows the protocol: it keeps to itself what it decrypts, "
            f"adds up shares of no fewer than {self.least_senders} clients, and once in a round "
            "(the server and all other aggregators may work together)"
        )
        yield (
            f"of the clients in a sum at most {self.max_colluding_clients} use what they sent to "
            "learn about others, tell it to anybody or leave out their noise, and none is made up "
            "(if one of these two does not hold, a client may have its own noise alone, "
            f"{alone:.3g} times the clip)"
        )
        yield "whether what a client sends arrives does not depend on its data"


def check_secure_sum(given: object, mode: str, noise: str) -> None:
    """Refuse a secure sum that does not go with the mode or the noise of a plan.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is no secure sum, the server is trusted, or the noise is not exact.
    """
    if given is None:
        return
    _arguments.instance("secure_sum", given, SecureSum, "a SecureSum or None")
    if mode == "trusted_server":
        raise _arguments.invalid(
            "secure_sum must be None with mode='trusted_server', which shows the server single "
            "updates: take another mode",
            given,
        )
    if noise != "exact":
        raise _arguments.invalid(
            f"secure_sum must be None with noise={noise!r}: shares are of whole numbers, which "
            "noise='exact' gives",
            given,
        )
