"""The server's side: from the tally of one round to the candidates of the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from turnout.collecting.plan import Plan
from turnout.domain import Domain
from turnout.errors import EstimatorError, ProtocolError
from turnout.frequency.choice import make_oracle
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.heavy_hitters.parameters import SearchParameters
from turnout.frequency.heavy_hitters.result import HeavyHitterResult, RoundRecord
from turnout.frequency.heavy_hitters.round import OTHER, Round, candidate_domain
from turnout.frequency.heavy_hitters.standing_out import growth_of, outstanding
from turnout.frequency.heavy_hitters.values import Rows, extended
from turnout.frequency.tally import Tally
from turnout.participation import Bernoulli

__all__ = ["Search"]


class Search:
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

    def __init__(self, protocol: SearchParameters) -> None:
        self._protocol = protocol
        self._records: list[RoundRecord] = []
        self._nodes = 0
        self._result: HeavyHitterResult | None = None
        kind = protocol.values
        empty = np.zeros((1, (kind.bits + 7) // 8), dtype=np.uint8)
        self._current: Round | None = self._extended(empty, 0, protocol.first, 0)

    @property
    def protocol(self) -> SearchParameters:
        """What is searched, and how."""
        return self._protocol

    @property
    def current(self) -> Round:
        """The round that is open.

        Raises
        ------
        ProtocolError
            If the search is over.
        """
        if self._current is None:
            raise ProtocolError("the search is over: its result is in .result")
        return self._current

    @property
    def finished(self) -> bool:
        """Whether the last round was closed."""
        return self._current is None

    @property
    def result(self) -> HeavyHitterResult:
        """What was found.

        Raises
        ------
        ProtocolError
            If a round is open.
        """
        if self._result is None:
            raise ProtocolError(f"round {self.current.number} must be closed with its tally first")
        return self._result

    def __iter__(self) -> Iterator[Round]:
        """Give the rounds; each must be closed before the next is asked for.

        Raises
        ------
        ProtocolError
            If a round was not closed.
        """
        given: Round | None = None
        while self._current is not None:
            if self._current is given:
                raise ProtocolError(f"round {given.number} must be closed with its tally first")
            given = self._current
            yield given

    def close(self, tally: Tally) -> None:
        """Close the open round: keep the candidates that stand out, and extend them.

        Parameters
        ----------
        tally
            The tally of the round's group, merged from all parts.

        Raises
        ------
        ProtocolError
            If the search is over.
        PlanMismatchError
            If the tally is of another round; the search is as it was before.
        EstimatorError
            If the tally has no report; the search is as it was before.
        """
        current, protocol = self.current, self._protocol
        current.check_tally(tally)
        if tally.received == 0:
            raise EstimatorError(
                f"round {current.number} brought no report of its {tally.nodes} nodes: nothing can "
                f"be told from it; the search splits its nodes into {protocol.groups} groups"
            )
        estimate = tally.estimate()
        self._nodes += tally.nodes
        confirming = current.number == protocol.extensions
        if confirming:
            kept, level, cut = np.arange(len(current.rows)), 0.0, 0
        else:
            kept, level = outstanding(estimate, protocol.family_wise_error)
            cut = max(0, kept.size - protocol.keep)
            if cut:
                order = np.argsort(-estimate.frequencies[kept], kind="stable")
                level = float(estimate.frequencies[kept[order[protocol.keep - 1]]])
                kept = np.sort(kept[order[: protocol.keep]])
        self._record(tally, kept.size, level, cut)
        ended = confirming or (current.bits == protocol.values.bits and not protocol.confirm)
        if ended or kept.size == 0:
            self._finish(tally, kept, confirming)
            return
        rows = current.rows[kept]
        if current.bits == protocol.values.bits:
            self._current = self._round(rows, current.bits, current.number + 1)
        else:
            self._current = self._extended(rows, current.bits, protocol.step, current.number + 1)

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

    def _extended(self, rows: Rows, bits: int, step: int, number: int) -> Round:
        kind = self._protocol.values
        longer, length = extended(rows, bits, step, kind.bits)
        return self._round(longer[kind.possible(longer, length)], length, number)

    def _round(self, rows: Rows, bits: int, number: int) -> Round:
        protocol = self._protocol
        domain = candidate_domain(rows, bits)
        oracle = make_oracle("oracle", protocol.oracle, protocol.epsilon, domain)
        return Round(protocol.values, number, bits, oracle)

    def _finish(self, tally: Tally, kept: np.ndarray, confirmed: bool) -> None:
        current = self.current
        estimate = None
        if kept.size:
            estimate = _among_all(tally, self._nodes)
            kept = kept[np.argsort(-estimate.frequencies[kept], kind="stable")]
            estimate = self._labelled(estimate)
        found = tuple(current.values.decode(current.rows[code]) for code in kept)
        self._current = None
        self._result = HeavyHitterResult(
            found, self._nodes, tuple(self._records), confirmed, estimate, kept
        )

    def _labelled(self, estimate: FrequencyEstimate) -> FrequencyEstimate:
        """Name the candidates as people do, in place of their bits."""
        current = self.current
        labels = [current.values.decode(row) for row in current.rows]
        other = OTHER
        while other in labels:
            other = f"({other})"
        plan, protocol = estimate.plan, self._protocol
        oracle = make_oracle("oracle", protocol.oracle, protocol.epsilon, Domain([*labels, other]))
        return replace(estimate, plan=Plan(oracle, plan.participation))

    def __repr__(self) -> str:
        """Show the open round, or the result."""
        return f"Search({self._current!r})" if self._result is None else f"Search({self._result!r})"


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
