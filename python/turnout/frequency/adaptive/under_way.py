"""Two rounds under way: from the tally of the first to the plan of the second."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from turnout import _arguments
from turnout.collecting.plan import Plan
from turnout.domain import Domain
from turnout.frequency.adaptive.parameters import TwoRoundParameters
from turnout.frequency.adaptive.second import SecondRound, SecondTally
from turnout.frequency.adaptive.tallies import TwoRoundTallies
from turnout.frequency.oracle import FrequencyOracle
from turnout.frequency.rounds import Rounds
from turnout.participation import Everyone, Participation

#: Shares of nodes are realised to 2^-62.
_SCALE = 2**62


class TwoRounds(Rounds[FrequencyOracle, TwoRoundTallies]):
    """Two rounds under way: close each with its tally.

    Made by :meth:`TwoRoundCollection.rounds`. Where nobody reports twice, a random part of the
    nodes is asked in each round (:meth:`assign`), and everyone who is asked first reports.
    Otherwise all are asked in both.

    Parameters
    ----------
    protocol
        The collection.

    Examples
    --------
    >>> import numpy as np
    >>> import turnout as tn
    >>> values = np.repeat([0, 1, 2], [9000, 900, 100])
    >>> collection = tn.TwoRoundCollection(
    ...     3, epsilon=6.0, first_rate=0.05, second_rate=0.05, low=0.02, high=0.5
    ... )
    >>> under_way = collection.rounds()
    >>> group = under_way.assign(values.size, seed=1)
    >>> for current in under_way:                       # each is a plan: under_way.plan()
    ...     mine = values[group == under_way.number]
    ...     under_way.close(current.collect(mine, seed=2))
    >>> under_way.result.estimate().interval(0.99).contains([0.9, 0.09, 0.01])
    array([ True,  True,  True])
    """

    name = "two_rounds"

    def __init__(self, protocol: TwoRoundParameters) -> None:
        self._protocol = protocol
        super().__init__(protocol.first_oracle)

    @property
    def protocol(self) -> TwoRoundParameters:
        """The collection."""
        return self._protocol

    @classmethod
    def begun(cls, parameters: dict[str, Any]) -> TwoRounds:
        """Begin with the parameters that a document holds."""
        given = {**parameters, "domain": Domain.from_dict(parameters.get("domain"))}
        return cls(TwoRoundParameters(**given))

    @property
    def shares(self) -> list[int]:
        """How many of the nodes are asked in each round; nothing if all are asked in both."""
        if not self._protocol.once:
            return []
        first = int(Fraction(self._protocol.first_participation.uniform_rate or 0) * _SCALE)
        return [first, _SCALE - first]

    @property
    def participation(self) -> Participation:
        """Who of those who are asked takes part."""
        asked = self._protocol.once or self._closed
        return Everyone() if asked else self._protocol.first_participation

    def plan(self, participation: Participation | float | None = None) -> Plan:
        """Give the plan of the open round, with its number as the serial.

        Parameters
        ----------
        participation
            None: the collection says who takes part.

        Returns
        -------
        Plan
            All that a node needs.

        Raises
        ------
        ProtocolError
            If the rounds are over.
        InvalidValueError
            If a participation is given.
        """
        if participation is not None:
            raise _arguments.invalid(
                "participation must be left out, the rates of the collection say who takes part",
                participation,
            )
        return super().plan()

    def _following(self, tally: Any) -> SecondRound | None:
        """Decide on the second round, or put both together."""
        if not self._closed:
            return self._protocol.second_round(tally)
        second: SecondTally = tally
        result = TwoRoundTallies(self._protocol, self._closed[0], second)
        # Tallies that do not go together are refused here, and nothing has changed.
        result.estimate()
        self._result = result
        return None
