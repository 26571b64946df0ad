"""Heavy hitters: a search in one call."""

from __future__ import annotations

import math
from typing import Any

from turnout import _arguments
from turnout._seeds import derived
from turnout._types import Integers
from turnout.collecting.kind import collected
from turnout.domain import Domain
from turnout.frequency.choice import make_oracle
from turnout.frequency.draws import personal_probabilities
from turnout.frequency.heavy_hitters.parameters import SearchParameters
from turnout.frequency.heavy_hitters.result import HeavyHitterResult
from turnout.frequency.heavy_hitters.search import Search
from turnout.frequency.heavy_hitters.standing_out import (
    Bar,
    crowd_level,
    detectable,
    growth_of,
    most_rivals,
    noise_level,
)
from turnout.participation import Participation, Personalized, taking_part_in


class HeavyHitters(SearchParameters):
    """Find the frequent values of a huge domain, prefix by prefix.

    Nodes are split at random into groups, one for each round. In each round the server publishes
    candidate prefixes: those that stood out in the round before, extended by ``step`` bits. A node
    of the round's group reports, with the whole epsilon, which of them its value has, or that it
    has none. As every node reports once, **the whole protocol is epsilon-locally private** whatever
    the server asks in later rounds.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, and of the protocol, in nats.
    bits
        For whole numbers: how many bits they have, from 1 to 64.
    length
        For texts: their largest length, in bytes of UTF-8 or in characters of the alphabet.
    alphabet
        For texts: the characters that occur. None for any text as UTF-8.
    oracle
        What randomizes: a class such as :class:`turnout.DirectEncoding`, or ``"auto"`` for the one
        of smallest variance for the number of candidates.
    step
        By how many bits the prefixes grow in a round. More bits make fewer and larger groups, and
        more candidates.
    keep
        The largest number of prefixes that are kept, which bounds memory and time. As many as
        ``1 / f`` values can have the frequency ``f``, so it should be more than one over the
        frequency looked for. The result says whether the bound cut.
    family_wise_error
        A prefix is kept if it stands out of the noise. This is the largest probability that a round
        keeps any prefix that nobody of its group holds: of the last extension, that any value found
        does not exist.
    confirm
        Whether a last group reports which of the values found it holds, so that frequencies come
        from data that had no part in the choice. Otherwise they come from the last extension, and
        intervals hold for all of its candidates at once.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range, or not exactly one of ``bits`` and ``length`` is given.

    Notes
    -----
    The prefix extending method of Wang, Li, Jha, "Locally differentially private heavy hitter
    identification" (2019), in interactive form: there all groups report at once, on prefixes of
    their length, and the server counts only the candidates; here a group waits for the candidates
    of the round before, so that any oracle over that short list can be used. Groups are the nodes'
    own coins; they must not depend on values.

    Examples
    --------
    >>> import numpy as np
    >>> import turnout as tn
    >>> from turnout.frequency.heavy_hitters import HeavyHitters
    >>> words = ["apple"] * 20_000 + ["pear"] * 12_000 + ["fig"] * 8_000
    >>> protocol = HeavyHitters(4.0, length=5, alphabet="abcdefghijklmnopqrstuvwxyz", step=5)
    >>> found = protocol.collect(words, participation=tn.Bernoulli(0.9), seed=1)
    >>> found.values
    ('apple', 'pear', 'fig')
    >>> found.interval(0.999).contains([0.5, 0.3, 0.2])
    array([ True,  True,  True])
    """

    def assign(self, nodes: int, *, seed: int | None = None) -> Integers:
        """Draw the group of each node: the coin that every client tosses for itself.

        Parameters
        ----------
        nodes
            How many nodes there are.
        seed
            For tests and simulations only: an integer in [0, 2^64).

        Returns
        -------
        numpy.ndarray
            int64: the number of the round that each node answers, all equally likely.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range.

        Examples
        --------
        >>> protocol = HeavyHitters(1.0, bits=16)
        >>> protocol.groups, sorted(set(protocol.assign(1000).tolist()))
        (4, [0, 1, 2, 3])
        """
        return self.rounds().assign(nodes, seed=seed)

    def rounds(self) -> Search:
        """Begin a search: the server's side.

        Returns
        -------
        Search
            Gives the rounds, takes their tallies, and has the result.
        """
        return Search(self)

    def collect(
        self,
        values: Any,
        *,
        participation: Participation | float | None = None,
        seed: int | None = None,
    ) -> HeavyHitterResult:
        """Run the whole protocol, with the nodes in this process.

        Parameters
        ----------
        values
            One value for each node: whole numbers, or texts.
        participation
            Who takes part; everyone by default.
        seed
            For tests and simulations only: an integer in [0, 2^64).

        Returns
        -------
        HeavyHitterResult
            The values found and their frequencies among all nodes.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a value is not of the kind, or an argument is of the wrong type or out of range.
        EstimatorError
            If a round brings no report.
        """
        everyone = taking_part_in(participation)
        checked_seed = _arguments.seed(seed)
        rows = self.values.encode(values)
        chances = None
        if everyone.uniform_rate is None:
            chances = personal_probabilities(everyone, len(rows))
        group = self.assign(len(rows), seed=derived(checked_seed, 0))
        search = self.rounds()
        for current in search:
            mine = group == current.number
            taking_part = everyone if chances is None else Personalized(chances[mine])
            stream = derived(checked_seed, 1, current.number)
            codes = current.domain.codes_of_rows(rows[mine])
            search.close(collected(current, codes, taking_part, stream))
        return search.result

    def detectable_frequency(
        self, nodes: int, *, participation: Participation | float | None = None, power: float = 0.9
    ) -> float:
        """Predict which frequency a value needs to be found in a search among so many nodes.

        Parameters
        ----------
        nodes
            How many nodes there are.
        participation
            Everyone (default) or a common rate.
        power
            The probability that a value of that frequency passes *every* round.

        Returns
        -------
        float
            The frequency, by the laws of the estimates, whatever the other values are: as many
            rivals as can be are counted, where they make candidates or could fill the ``keep``
            places. Above 1 no value is frequent enough. A search that was not crowded finds less
            frequent ones: :meth:`HeavyHitterResult.detectable_frequency`.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type or out of range, or the participation is personal.
        """
        count = _arguments.integer("nodes", nodes, least=1)
        everyone = taking_part_in(participation)
        rate = everyone.uniform_rate
        if rate is None:
            raise _arguments.invalid("participation must have a common rate", everyone)
        chance = _arguments.confidence("power", power)
        reports = count * rate / self.groups
        candidates, bars = 2 ** min(self.first, 20), []
        for _ in range(self.extensions):
            bar = self._bar(candidates, reports)
            bars.append(bar)
            kept = most_rivals(bar.level, bar.noise, bar.growth, candidates)
            candidates = min(self.keep, math.ceil(kept)) << self.step
        return detectable(bars, chance)

    def _bar(self, candidates: int, reports: float) -> Bar:
        """Say what must be exceeded among so many candidates."""
        domain = Domain.from_integers(candidates + 1)
        scores = make_oracle("oracle", self.oracle, self.epsilon, domain).score_moments
        noise = scores.other_variance / scores.difference**2 / reports
        growth = growth_of(scores) / reports
        level = max(
            noise_level(scores, reports, candidates, self.family_wise_error),
            crowd_level(noise, growth, candidates, self.keep),
        )
        return Bar(level, noise, growth)

    def __repr__(self) -> str:
        """Show the parameters."""
        return (
            f"HeavyHitters(epsilon={self.epsilon!r}, {self.values!r}, oracle={self.oracle!r}, "
            f"step={self.step}, keep={self.keep}, family_wise_error={self.family_wise_error:g}, "
            f"confirm={self.confirm})"
        )
