"""The server, which receives the sums and publishes their total."""

from __future__ import annotations

from typing import ClassVar

from turnout._types import Array, Integers
from turnout.distributed.aggregation import AggregationMechanism
from turnout.distributed.messages import Role
from turnout.distributed.roles.base import Participant, State, listed
from turnout.errors import MissingPartyError
from turnout.frequency.estimation.estimate import FrequencyEstimate


class AggregatingServer(Participant):
    """The role that receives all sums, and learns their total, which is published.

    With aggregators, or with users as parties, it waits for a sum from each of them. In two-stage
    sampling it is S2 in the paper. It waits for the election by the reporting server, and for a sum
    from every user that is elected for an item.

    Parameters
    ----------
    mechanism, round_id
        The mechanism, and the identifier of the round: see
        :meth:`turnout.distributed.Round.server`.

    Examples
    --------
    >>> import turnout as tn
    >>> mechanism = tn.distributed.NoisyAggregation(2, users=3, parties=2, epsilon=1.0)
    >>> [str(party) for party in tn.distributed.Round.start(mechanism).server().missing]
    ['aggregator 0', 'aggregator 1']
    """

    _role: ClassVar[Role] = Role.SERVER

    def __init__(self, mechanism: AggregationMechanism, round_id: bytes, index: int = 0) -> None:
        super().__init__(mechanism, round_id, index)
        self._published: tuple[Integers, int] | None = None

    def _publish(self, total: Array, received: int) -> None:
        """Publish the total of this many users, which ends the round."""
        self._published = (self._mechanism._decode(total), received)
        self._forget()
        self.state = State.DONE

    @property
    def received(self) -> int:
        """The number of users in the round.

        Raises
        ------
        MissingPartyError
            If the round is not complete.
        """
        return self._complete()[1]

    @property
    def sums(self) -> Integers:
        """The sums that the round reveals: one whole number for each item.

        Raises
        ------
        MissingPartyError
            If the round is not complete.
        """
        return self._complete()[0].copy()

    def estimate(self) -> FrequencyEstimate:
        """Estimate the frequencies.

        Returns
        -------
        FrequencyEstimate
            The frequencies, with exact variances and intervals.

        Raises
        ------
        MissingPartyError
            If the round is not complete; the error names the missing parties. The role continues to
            wait.
        """
        sums, received = self._complete()
        return self._mechanism.estimate(sums, received)

    def _complete(self) -> tuple[Integers, int]:
        if self._published is None:
            if self.state is State.FAILED:
                raise MissingPartyError(f"{self.party}: {self._failure}")
            missing = self.missing
            raise MissingPartyError(f"{self.party} is still waiting for {listed(missing)}", missing)
        return self._published
