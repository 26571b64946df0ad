"""The base class of the mechanisms: what is computed, and how a round of it is run or started."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

from turnout.distributed.aggregation import Aggregation, aggregation_from_dict
from turnout.distributed.engine import RoundResult, run
from turnout.distributed.rounds import Round


@dataclasses.dataclass(frozen=True, kw_only=True)
class AggregationMechanism(Aggregation):
    """Base class: who takes part, who may collude, and what is published.

    Mechanisms are frozen: they compare by their parameters, and every round has randomness of its
    own.
    """

    def run(self, values: Any, seed: int | None = None) -> RoundResult:
        """Run one round in this process: every coin, share and sum is drawn, no message is sent.

        Parameters
        ----------
        values
            One item for each user: anything that :meth:`turnout.Domain.encode` takes.
        seed
            For tests and simulations only: an integer in [0, 2^64).

        Returns
        -------
        RoundResult
            The estimate, the sums, and the costs.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError, InvalidTypeError
            If a value is not in the domain.
        InvalidValueError
            If there is not one value for each user.
        """
        return run(self, values, seed)

    def start_round(self) -> Round:
        """Start a round: everyone who takes part gets it, as ``round.to_bytes()``.

        Returns
        -------
        Round
            A round with a fresh name, which makes the roles.
        """
        return Round.start(self)


def mechanism_from_dict(description: Any) -> AggregationMechanism:
    """Rebuild a mechanism from :meth:`AggregationMechanism.to_dict`.

    Parameters
    ----------
    description
        The dictionary, perhaps through JSON.

    Returns
    -------
    AggregationMechanism
        An equal mechanism.

    Raises
    ------
    CorruptDataError
        If it describes no mechanism.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.NoisyAggregation(4, 100, epsilon=1.0)
    >>> mechanism_from_dict(mechanism.to_dict()) == mechanism
    True
    """
    # Whatever has a name, and so can be described, derives from the class above.
    return cast("AggregationMechanism", aggregation_from_dict(description))
