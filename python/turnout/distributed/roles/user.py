"""A user: it holds one item, and reports it in a form that says nothing by itself."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

from turnout.distributed.messages import Message, Role
from turnout.distributed.roles.base import Participant, State
from turnout.errors import ProtocolError


class User(Participant):
    """One person's device: it holds one item, and sends what looks random.

    Call :meth:`report` once. With aggregators that is all. In two-stage sampling the user then
    receives the election, answers with shares for the elected users, and, if it is elected itself,
    receives the shares of others and sends their sum to the server.

    Parameters
    ----------
    mechanism, round_id
        What is computed, and the name of the round: see
        :meth:`turnout.distributed.Round.user`.
    index
        Which user this is.

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
        """Report an item: toss the coin, and make shares, or choose a set.

        A device reports once in a round. One that has lost its state and reports again is refused
        or left out, but what it sent has been seen: a second set of two-stage sampling spends its
        local guarantee again.

        Parameters
        ----------
        value
            The user's item: a label of the domain.

        Returns
        -------
        list of Message
            A share for every party that adds up; in two-stage sampling, the set for the reporting
            server.

        Raises
        ------
        UnknownLabelError, CodeOutsideDomainError
            If the value is not in the domain.
        ProtocolError
            If the user has reported in this round already.
        """
        if self.state is not State.COLLECTING:
            done = self._failure or "has reported in this round already"
            raise ProtocolError(f"{self.party}: {done}")
        code = int(self._mechanism.domain.encode([value])[0])
        return self._report(code)

    @abc.abstractmethod
    def _report(self, code: int) -> list[Message]:
        """Make the messages of the report of an item, given by its code."""
