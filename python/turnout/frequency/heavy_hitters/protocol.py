"""Heavy hitters: the parameters of a search, and the server's side."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._seeds import derived
from turnout._types import Integers
from turnout._values import settle
from turnout.accounting.values import positive
from turnout.collecting.kind import collected
from turnout.collecting.left_out import NOTHING
from turnout.domain import Domain
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.choice import Factory, make_oracle
from turnout.frequency.draws import personal_probabilities
from turnout.frequency.heavy_hitters.prefixes import MOST_CANDIDATES, PrefixDomain, SearchRound
from turnout.frequency.heavy_hitters.result import (
    Bar,
    HeavyHitterResult,
    RoundRecord,
    among_all,
    crowd_level,
    detectable,
    errors_of,
    most_rivals,
    noise_level,
    outstanding,
)
from turnout.frequency.heavy_hitters.values import IntegerValues, TextValues, Values
from turnout.frequency.rounds import Rounds, RoundsProtocol
from turnout.frequency.tally import Tally
from turnout.participation import Participation, Personalized, taking_part_in

#: Prefixes of the first round have at most so many bits more than those of others grow by.
_FIRST = 5


@dataclass(frozen=True, eq=False)
class HeavyHitters(RoundsProtocol):
    """Find the frequent values of a huge domain, prefix by prefix.

    Nodes are split at random into groups, one for each round. In each round the server publishes
    candidate prefixes: those that stood out in the previous round, extended by ``step`` bits. A
    node of the round's group reports, with the whole epsilon, which candidate its value has, or
    that it has none. Because every node reports once, **the whole protocol is epsilon-locally
    private**, whatever the server asks in later rounds.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, and of the protocol, in nats.
    bits
        For whole numbers: their number of bits, from 1 to 64.
    length
        For texts: their largest length, in bytes of UTF-8 or in characters of the alphabet.
    alphabet
        For texts: the allowed characters. None for any text as UTF-8.
    oracle
        The oracle: a class such as :class:`turnout.DirectEncoding`, or ``"auto"`` for the one of
        smallest variance for the number of candidates.
    step
        The number of bits by which prefixes grow in a round. More bits give fewer and larger
        groups, and more candidates.
    keep
        The largest number of prefixes that are kept, which bounds memory and time. Up to ``1 / f``
        values can have the frequency ``f``, so ``keep`` should exceed ``1 / f`` for the frequency
        that you look for. The result says whether the bound removed prefixes.
    family_wise_error
        The largest probability that a round keeps any prefix that nobody of its group holds. For
        the last extension it is the probability that any found value does not exist. A prefix is
        kept if it stands out from the noise.
    confirm
        Whether a last group reports which of the found values it holds, so that frequencies come
        from data that did not influence the choice. Otherwise they come from the last extension,
        and intervals hold for all its candidates simultaneously.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If an argument is out of range, or not exactly one of ``bits`` and ``length`` is given.

    Notes
    -----
    The prefix extending method of Wang, Li, Jha, "Locally differentially private heavy hitter
    identification" (2019), in interactive form. There all groups report at once, on prefixes of
    their length, and the server counts only the candidates. Here a group waits for the candidates
    of the previous round, so that any oracle over that short list can be used. Each node draws its
    group itself; groups must not depend on values.

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

    epsilon: float
    _: KW_ONLY
    bits: int | None = None
    length: int | None = None
    alphabet: str | None = None
    oracle: Factory | str = "auto"
    step: int = 4
    keep: int = 512
    family_wise_error: float = 0.05
    confirm: bool = True

    def __post_init__(self) -> None:
        """Check the fields."""
        epsilon = positive("epsilon", self.epsilon)
        if (self.bits is None) == (self.length is None):
            raise InvalidValueError(
                "exactly one of bits, for whole numbers, and length, for texts, must be given"
            )
        if self.bits is not None and self.alphabet is not None:
            raise InvalidValueError("alphabet belongs to texts: give length instead of bits")
        described = self._values.to_dict()
        settle(
            self,
            epsilon=epsilon,
            bits=described.get("bits"),
            length=described.get("length"),
            step=_arguments.integer("step", self.step, least=1, most=20),
            keep=_arguments.integer("keep", self.keep, least=1, most=MOST_CANDIDATES),
            family_wise_error=_arguments.confidence("family_wise_error", self.family_wise_error),
            confirm=_arguments.instance("confirm", self.confirm, bool, "True or False"),
        )
        if self.keep << self.step > MOST_CANDIDATES:
            raise InvalidValueError(
                f"keep times 2^step must be at most {MOST_CANDIDATES} candidates, got keep = "
                f"{self.keep} and step = {self.step}"
            )
        make_oracle("oracle", self.oracle, self.epsilon, Domain.from_integers(2))

    @cached_property
    def _values(self) -> Values:
        """The kind of values."""
        if self.bits is not None:
            return IntegerValues(self.bits)
        return TextValues(self.length or 0, self.alphabet)

    @property
    def _first(self) -> int:
        """How many bits the prefixes of the first round have."""
        return min(self.step + min((self.keep - 1).bit_length(), _FIRST), self._values.bits)

    @property
    def _extensions(self) -> int:
        """In how many rounds prefixes grow."""
        return 1 + math.ceil((self._values.bits - self._first) / self.step)

    @property
    def groups(self) -> int:
        """The number of groups: of rounds, if something is found."""
        return self._extensions + self.confirm

    def rounds(self) -> Search:
        """Begin a search: return the server's side.

        Returns
        -------
        Search
            The search: it provides the rounds, takes their tallies, and has the result.
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
        rows = self._values.encode(values)
        chances = None
        if everyone.uniform_rate is None:
            chances = personal_probabilities(everyone, len(rows))
        group = self.rounds().assign(len(rows), seed=derived(checked_seed, 0))
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
        """Predict the frequency that a value needs to be found among a number of nodes.

        Parameters
        ----------
        nodes
            The number of nodes.
        participation
            Everyone (default) or a common rate.
        power
            The probability that a value of that frequency passes *every* round.

        Returns
        -------
        float
            The frequency, from the laws of the estimates, for any other values: it assumes the
            largest possible number of rivals that become candidates or fill the ``keep`` places.
            Above 1, no value is frequent enough. A search without many rivals also finds rarer
            values: :meth:`HeavyHitterResult.detectable_frequency`.

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
        candidates, bars = 2 ** min(self._first, 20), []
        for _ in range(self._extensions):
            bar = self._bar(candidates, reports)
            bars.append(bar)
            kept = most_rivals(bar.level, bar.standard_error**2, bar.variance_growth, candidates)
            candidates = min(self.keep, math.ceil(kept)) << self.step
        return detectable(bars, chance)

    def _bar(self, candidates: int, reports: float) -> Bar:
        """Return the bar that an estimate must exceed among a number of candidates."""
        domain = Domain.from_integers(candidates + 1)
        scores = make_oracle("oracle", self.oracle, self.epsilon, domain)._score_moments
        noise, growth = errors_of(scores, reports)
        level = max(
            noise_level(scores, reports, candidates, self.family_wise_error),
            crowd_level(noise, growth, candidates, self.keep),
        )
        return Bar(level, math.sqrt(noise), growth)


class Search(Rounds[SearchRound, HeavyHitterResult]):
    """The server's state of a search: iterate over its rounds, and close each with its tally.

    :meth:`HeavyHitters.rounds` returns it.

    Parameters
    ----------
    protocol
        The parameters of the search.

    Examples
    --------
    >>> import numpy as np
    >>> from turnout.frequency.heavy_hitters import HeavyHitters
    >>> values = np.repeat([7, 40_000, 123], [9000, 6000, 5000])
    >>> protocol = HeavyHitters(4.0, bits=16, step=6)
    >>> group = protocol.rounds().assign(values.size, seed=1)
    >>> search = protocol.rounds()
    >>> for current in search:
    ...     reports = current.randomize(values[group == current.number], seed=2)
    ...     search.close(current.tally(reports))
    >>> sorted(search.result.values)
    [7, 123, 40000]
    """

    name = "heavy_hitters"
    _protocol_type = HeavyHitters

    def __init__(self, protocol: HeavyHitters) -> None:
        self._records: list[RoundRecord] = []
        self._nodes = 0
        super().__init__(
            protocol, _round(protocol, PrefixDomain(protocol._values, [""], protocol._first), 0)
        )

    @property
    def records(self) -> tuple[RoundRecord, ...]:
        """The records of the closed rounds."""
        return tuple(self._records)

    @property
    def _shares(self) -> list[int]:
        """How many of the nodes are asked in each round: equally many."""
        return [1] * self.protocol.groups

    def _following(self, tally: Tally) -> SearchRound | None:
        """Keep the candidates that stand out, and extend them."""
        current, protocol = self.current, self.protocol
        if tally.received == 0:
            raise EstimatorError(
                f"round {current.number} got no report from its {tally.nodes} nodes, so "
                f"it shows nothing; the search splits its nodes into {protocol.groups} "
                "groups"
            )
        kept, level, cut = self._kept(tally)
        following = self._extended(kept)
        self._nodes += tally.nodes
        self._record(tally, kept.size, level, cut)
        if following is None:
            confirmed = current.number == protocol._extensions
            ended = current.domain.bits == protocol._values.bits
            self._finish(tally, kept if ended else kept[:0], confirmed)
        return following

    def _kept(self, tally: Tally) -> tuple[Integers, float, int]:
        """Return which candidates are kept, their threshold, and how many were cut."""
        current, protocol = self.current, self.protocol
        if current.number == protocol._extensions:
            return np.arange(len(current.domain.rows)), 0.0, 0
        estimate = tally.estimate()
        kept, level = outstanding(estimate, protocol.family_wise_error)
        cut = max(0, kept.size - protocol.keep)
        if cut:
            order = np.argsort(-estimate.frequencies[kept], kind="stable")
            level = float(estimate.frequencies[kept[order[protocol.keep - 1]]])
            kept = np.sort(kept[order[: protocol.keep]])
        return kept, level, cut

    def _extended(self, kept: Integers) -> SearchRound | None:
        """Return the round after the open one; None after the last."""
        current = self.current
        protocol: HeavyHitters = self.protocol
        most = protocol._values.bits
        if kept.size == 0 or current.number + 1 == protocol.groups:
            return None
        bits = min(current.domain.bits + protocol.step, most)
        try:
            domain = PrefixDomain(protocol._values, current.domain.digits(kept), bits)
        except InvalidValueError:
            # Half a character was kept, and it does not fit in: no value has such a prefix.
            return None
        return _round(protocol, domain, current.number + 1)

    def _record(self, tally: Tally, kept: int, level: float, cut: int) -> None:
        noise, growth = errors_of(tally.oracle._score_moments, tally.received)
        current = self.current
        self._records.append(
            RoundRecord(
                number=current.number,
                bits=current.domain.bits,
                candidates=len(current.domain.rows),
                kept=kept,
                nodes=tally.nodes,
                received=tally.received,
                standard_error=math.sqrt(noise),
                variance_growth=growth,
                level=level,
                cut=cut,
                realized_epsilon=tally.oracle.realized_epsilon,
                left_out=tally.left_out,
            )
        )

    def _finish(self, tally: Tally, kept: np.ndarray, confirmed: bool) -> None:
        current = self.current
        left_out = sum((record.left_out for record in self._records), NOTHING)
        estimate = replace(among_all(tally, self._nodes), left_out=left_out)
        kept = kept[np.argsort(-estimate.frequencies[kept], kind="stable")]
        found = tuple(current.domain.values.decode(current.domain.rows[code]) for code in kept)
        self._result = HeavyHitterResult(
            found, self._nodes, tuple(self._records), confirmed, estimate
        )


def _round(protocol: HeavyHitters, domain: PrefixDomain, number: int) -> SearchRound:
    return SearchRound(
        protocol.epsilon, domain, number=number, groups=protocol.groups, oracle=protocol.oracle
    )
