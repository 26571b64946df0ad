"""The server's side: from the tally of one round to the candidates of the next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from turnout._types import Integers
from turnout.collecting.plan import Plan
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.heavy_hitters.parameters import SearchParameters
from turnout.frequency.heavy_hitters.prefixes import PrefixDomain
from turnout.frequency.heavy_hitters.result import HeavyHitterResult, RoundRecord
from turnout.frequency.heavy_hitters.round import Round
from turnout.frequency.heavy_hitters.standing_out import growth_of, outstanding
from turnout.frequency.rounds import Rounds
from turnout.frequency.tally import Tally
from turnout.participation import Bernoulli


class Search(Rounds[Round, HeavyHitterResult]):
    """A search under way: iterate over its rounds and close each with its tally.

    Made by :meth:`HeavyHitters.rounds`.

    Parameters
    ----------
    protocol
        What is searched, and how.

    Examples
    --------
    >>> import numpy as np
    >>> from turnout.frequency.heavy_hitters import HeavyHitters
    >>> values = np.repeat([7, 40_000, 123], [9000, 6000, 5000])
    >>> protocol = HeavyHitters(4.0, bits=16, step=6)
    >>> group = protocol.assign(values.size, seed=1)
    >>> search = protocol.rounds()
    >>> for current in search:
    ...     reports = current.randomize(values[group == current.number], seed=2)
    ...     search.close(current.tally(reports))
    >>> sorted(search.result.values)
    [7, 123, 40000]
    """

    name = "heavy_hitters"

    def __init__(self, protocol: SearchParameters) -> None:
        self._protocol = protocol
        self._records: list[RoundRecord] = []
        self._nodes = 0
        super().__init__(self._round(PrefixDomain(protocol.values, [""], protocol.first), 0))

    @property
    def protocol(self) -> SearchParameters:
        """What is searched, and how."""
        return self._protocol

    @property
    def records(self) -> tuple[RoundRecord, ...]:
        """What happened in the rounds that are closed."""
        return tuple(self._records)

    @property
    def shares(self) -> list[int]:
        """How many of the nodes are asked in each round: equally many."""
        return [1] * self._protocol.groups

    @classmethod
    def begun(cls, parameters: dict[str, Any]) -> Search:
        """Begin with the parameters that a document holds."""
        return cls(SearchParameters(**parameters))

    def _following(self, tally: Tally) -> Round | None:
        """Keep the candidates that stand out, and extend them."""
        current, protocol = self.current, self._protocol
        if tally.received == 0:
            raise EstimatorError(
                f"round {current.number} brought no report of its {tally.nodes} nodes: nothing can "
                f"be told from it; the search splits its nodes into {protocol.groups} groups"
            )
        kept, level, cut = self._kept(tally)
        following = self._extended(kept)
        self._nodes += tally.nodes
        self._record(tally, kept.size, level, cut)
        if following is None:
            confirmed = current.number == protocol.extensions
            ended = current.bits == protocol.values.bits
            self._finish(tally, kept if ended else kept[:0], confirmed)
        return following

    def _kept(self, tally: Tally) -> tuple[Integers, float, int]:
        """Say which candidates are kept, above which frequency, and how many were cut."""
        current, protocol = self.current, self._protocol
        if current.number == protocol.extensions:
            return np.arange(len(current.rows)), 0.0, 0
        estimate = tally.estimate()
        kept, level = outstanding(estimate, protocol.family_wise_error)
        cut = max(0, kept.size - protocol.keep)
        if cut:
            order = np.argsort(-estimate.frequencies[kept], kind="stable")
            level = float(estimate.frequencies[kept[order[protocol.keep - 1]]])
            kept = np.sort(kept[order[: protocol.keep]])
        return kept, level, cut

    def _extended(self, kept: Integers) -> Round | None:
        """Make the round after the open one; None if that was the last."""
        current, protocol = self.current, self._protocol
        most = protocol.values.bits
        if kept.size == 0 or current.number + 1 == protocol.groups:
            return None
        bits = current.bits if current.bits == most else min(current.bits + protocol.step, most)
        try:
            domain = PrefixDomain(protocol.values, current.domain.digits(kept), bits)
        except InvalidValueError:
            # Half a character was kept, and it does not fit in: no value has such a prefix.
            return None
        return self._round(domain, current.number + 1)

    def _record(self, tally: Tally, kept: int, level: float, cut: int) -> None:
        scores = tally.oracle.score_moments
        # Of a candidate that nobody holds, given the number of reports.
        noise = float(np.sqrt(scores.other_variance / tally.received)) / scores.difference
        growth = growth_of(scores) / tally.received
        current = self.current
        self._records.append(
            RoundRecord(
                number=current.number,
                bits=current.bits,
                candidates=len(current.rows),
                kept=kept,
                nodes=tally.nodes,
                received=tally.received,
                standard_error=noise,
                variance_growth=growth,
                level=level,
                cut=cut,
                realized_epsilon=tally.oracle.realized_epsilon,
            )
        )

    def _round(self, domain: PrefixDomain, number: int) -> Round:
        protocol = self._protocol
        return Round(
            protocol.epsilon,
            domain,
            number=number,
            groups=protocol.groups,
            oracle=protocol.oracle,
        )

    def _finish(self, tally: Tally, kept: np.ndarray, confirmed: bool) -> None:
        current = self.current
        estimate = None
        if kept.size:
            estimate = _among_all(tally, self._nodes)
            kept = kept[np.argsort(-estimate.frequencies[kept], kind="stable")]
        found = tuple(current.values.decode(current.rows[code]) for code in kept)
        self._result = HeavyHitterResult(
            found, self._nodes, tuple(self._records), confirmed, estimate, kept
        )


def _among_all(tally: Tally, nodes: int) -> FrequencyEstimate:
    """Estimate frequencies among all nodes from the tally of a group that is a random part.

    With a common rate those who report are a simple random sample of all nodes, given their
    number. With personal probabilities the variance within the group is as it was, and that of the
    group among all nodes is added.
    """
    rate = tally.participation.uniform_rate
    if nodes == tally.nodes:
        return tally.estimate()
    if rate is not None:
        plan = Plan(tally.oracle, Bernoulli(rate * tally.nodes / nodes))
        return Tally(plan, tally.support, tally.received, nodes).estimate()
    within = tally.estimate()
    estimation = within.estimation
    inside = np.clip(estimation.frequencies, 0.0, 1.0)
    between = inside * (1 - inside) * (1 / tally.nodes - 1 / nodes)
    return FrequencyEstimate.from_estimation(
        tally.plan,
        "hajek",
        nodes,
        tally.received,
        replace(estimation, variances=estimation.variances + between),
    )
