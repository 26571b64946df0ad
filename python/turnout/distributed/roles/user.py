"""A user, which holds one item and reports it in a form that alone reveals nothing."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

from turnout.distributed.messages import Message, Role
from turnout.distributed.roles.base import Participant, State
from turnout.errors import ProtocolError


class User(Participant):
    """The device of one person: it holds one item, and sends messages that look random.

    Call :meth:`report` once. With aggregators the user is then done. In two-stage sampling the user
    then receives the election and answers with shares for the elected users. If it is elected
    itself, it receives the shares of others and sends their sum to the server.

    Parameters
    ----------
    mechanism, round_id
        The mechanism, and the identifier of the round: see :meth:`turnout.distributed.Round.user`.
    index
        The number of the user, from 0.

    Examples
    --------
    >>> import turnout as tn
    >>> domain = tn.Domain(["no", "yes"])
    >>> mechanism = tn.distributed.NoisyAggregation(domain, users=3, parties=2, epsilon=1.0)
    >>> messages = tn.distributed.Round.start(mechanism).user(1).report("yes")
    >>> [str(message.recipient) for message in messages]
    ['aggregator 0', 'aggregator 1']
    """

    _role: ClassVar[Role] = Role.USER

    def report(self, value: Any) -> list[Message]:
        """Report an item: toss the coin, then make shares or choose a set.

        A device reports once in a round. A device that loses its state and reports again is refused
        or left out, but its messages have been seen. A second set in two-stage sampling spends the
        local guarantee again.

        Parameters
        ----------
        value
            The user's item: a label of the domain.

        Returns
        -------
        list of Message
            A share for every party that adds up, or, in two-stage sampling, the set for the
            reporting server.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError
            If the value is not in the domain.
        ProtocolError
            If the user has already reported in this round.
        """
        if self.state is not State.COLLECTING:
            done = self._failure or "has reported in this round already"
            raise ProtocolError(f"{self.party}: {done}")
        code = int(self._mechanism.domain.encode([value])[0])
        return self._report(code)

    @abc.abstractmethod
    def _report(self, code: int) -> list[Message]:
        """Make the messages that report an item, given by its code."""
