"""Which mechanism has the smallest error at equal privacy, by computation."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from turnout import _arguments
from turnout._tables import Listing
from turnout._types import Axes
from turnout.accounting.values import nonnegative, unit_interval
from turnout.distributed.mechanism import AggregationMechanism
from turnout.distributed.noises import NOISES
from turnout.distributed.noisy import NoisyAggregation
from turnout.distributed.pictures import plot_errors
from turnout.distributed.sampled import checked_floor
from turnout.distributed.sampling import SamplingAggregation
from turnout.distributed.two_stage import TwoStageSampling
from turnout.domain import Domain
from turnout.errors import InvalidValueError, TurnoutError
from turnout.frequency.estimation.variance import estimator_variance
from turnout.frequency.oracle import FrequencyOracle
from turnout.participation import Everyone
from turnout.planning import choose_oracle

#: The width of text below a table.
_WIDTH = 100

#: The numbers of dummies that are tried: where more change little, fewer are cheaper.
_DUMMIES = (5, 10, 20, 33, 50, 100, 200, 333, 500, 1000, 2000)


@dataclass(frozen=True)
class RecommendationRecord:
    """One mechanism at the target.

    Attributes
    ----------
    title
        What it is, in words.
    mechanism
        The mechanism, ready to run; None for local randomization, which is not one of these.
    rmse
        The root mean squared error of a frequency, computed, not simulated.
    delta
        Delta at the target's epsilon, computed.
    share_bytes
        What one user sends, without headers; None in two-stage sampling, where it varies.
    conditional
        Whether the guarantee needs the floor.
    oracle
        The oracle of local randomization; None for the mechanisms.
    """

    title: str
    mechanism: AggregationMechanism | None
    rmse: float
    delta: float
    share_bytes: int | None
    conditional: bool
    oracle: FrequencyOracle | None = None


@dataclass(frozen=True)
class Recommendation(Listing):
    """All mechanisms at equal privacy, those of smallest error first.

    Attributes
    ----------
    records
        One for each mechanism that reaches the target.
    refused
        What does not, with the reason.
    users, items, epsilon, delta
        The setting.
    """

    records: tuple[RecommendationRecord, ...]
    refused: tuple[tuple[str, str], ...] = field(repr=False)
    users: int
    items: int
    epsilon: float
    delta: float

    _columns = (
        "title",
        "rmse",
        "delta",
        "share_bytes",
        "conditional",
    )

    @property
    def best(self) -> AggregationMechanism:
        """The distributed mechanism with the smallest error, whatever the data."""
        for record in self.records:
            if record.mechanism is not None and not record.conditional:
                return record.mechanism
        raise InvalidValueError("no distributed mechanism reaches the target")

    def table(self) -> str:
        """Format the records as a plain-text table.

        Returns
        -------
        str
            One line for each mechanism, and what is not among them with the reason.
        """
        width = max(len(record.title) for record in self.records) + 2
        lines = [f"{'mechanism':<{width}}{'rmse':>10}{'delta':>10}{'share bytes':>14}  holds for"]
        for record in self.records:
            size = "varies" if record.share_bytes is None else f"{record.share_bytes:,}"
            holds = "data with the floor" if record.conditional else "any data"
            lines.append(
                f"{record.title:<{width}}{record.rmse:>10.3g}{record.delta:>10.2g}{size:>14}  "
                f"{holds}"
            )
        for line in self.not_compared():
            lines += ["", *textwrap.wrap(line, width=_WIDTH)]
        return "\n".join(lines)

    def not_compared(self) -> list[str]:
        """Say which mechanisms do not reach the target, one line for each reason.

        Returns
        -------
        list of str
            Lines without an end.

        Examples
        --------
        >>> pure = recommend(1000, 30, epsilon=1.0)
        >>> [line.partition(":")[0] for line in pure.not_compared()]
        ['not compared (needs a delta above 0)']
        """
        titles: dict[str, list[str]] = {}
        for title, reason in self.refused:
            titles.setdefault(reason, []).append(title)
        return [f"not compared ({reason}): {'; '.join(each)}" for reason, each in titles.items()]

    def __str__(self) -> str:
        """Show the table."""
        return self.table()

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the error of each mechanism.

        Parameters
        ----------
        ax
            Matplotlib axes to draw on; new ones by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        rows = self.records
        kinds = {
            "for any data": [row.mechanism is not None and not row.conditional for row in rows],
            "for data with the floor": [row.conditional for row in rows],
            "local, no aggregators": [row.mechanism is None for row in rows],
        }
        return plot_errors(
            [row.title for row in rows],
            [row.rmse for row in rows],
            kinds,
            f"{self.users:,} users, {self.items:,} items, epsilon = {self.epsilon:g}, "
            f"delta = {self.delta:g}",
            ax,
        )


def recommend(
    users: int,
    domain: Domain | Sequence[Hashable] | int,
    epsilon: float,
    delta: float | None = None,
    *,
    floor: int = 0,
    parties: int | str = 3,
    honest_aggregators: int = 1,
    max_colluding_users: int = 0,
    max_missing_users: int = 0,
    reported: int | None = None,
    gamma: float = 3.0,
    adjacency: str = "replace",
) -> Recommendation:
    """Compare all mechanisms of distributed aggregation at equal privacy, by computed error.

    Parameters
    ----------
    users
        The number n of users.
    domain
        The items: a :class:`turnout.Domain`, or their number N.
    epsilon
        The target.
    delta
        The target's delta. Without it, or with 0, the mechanisms that need one are not compared:
        all but discrete Laplace noise, which gets delta 0 in any case.
    floor
        How many users hold each item at least, if that is known; sampling without dummies is
        compared too, then.
    parties, honest_aggregators, max_colluding_users, max_missing_users, adjacency
        As for the mechanisms.
    reported
        The number of items of a set in two-stage sampling; two fifths of all by default.
    gamma
        The weight of adaptive reporting in two-stage sampling.

    Returns
    -------
    Recommendation
        The mechanisms, those of smallest error first, beside local randomization by the best
        oracle, which needs no aggregators.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is out of range.

    Examples
    --------
    >>> found = recommend(1000, 30, epsilon=1.0, delta=1e-5)
    >>> found.best.noise
    'discrete_laplace'
    >>> print(recommend(1000, 30, epsilon=1.0).table().partition("not compared")[0].strip())
    mechanism                                       rmse     delta   share bytes  holds for
    discrete laplace noise by users               0.0028         0           106  any data
    discrete laplace noise by aggregators        0.00485         0           106  any data
    subset selection (local, no aggregators)      0.0584         0             3  any data
    """
    target_epsilon = _arguments.number("epsilon", epsilon)
    target_delta = 0.0
    if delta is not None:
        target_delta = float(unit_interval("delta", _arguments.number("delta", delta)))
    nonnegative("epsilon", target_epsilon)
    probe = NoisyAggregation(
        domain,  # type: ignore[arg-type]
        users,
        parameter=1.0,
        parties=parties,
        honest_aggregators=honest_aggregators,
        max_colluding_users=max_colluding_users,
        max_missing_users=max_missing_users,
        adjacency=adjacency,
    )
    setting = _Setting(
        probe.domain,
        probe.users,
        {
            "epsilon": target_epsilon,
            "delta": target_delta,
            "honest_aggregators": probe.honest_aggregators,
            "max_colluding_users": probe.max_colluding_users,
            "max_missing_users": probe.max_missing_users,
            "adjacency": adjacency,
        },
        probe.parties,
        checked_floor(floor, probe.users, probe.domain.size),
    )
    size = probe.domain.size
    chosen = max(1, round(0.4 * size))
    if reported is not None:
        chosen = _arguments.integer("reported", reported, least=1, most=size)
    gamma = _arguments.number("gamma", gamma)
    if not 1.0 < gamma < float("inf"):
        raise InvalidValueError(f"gamma must be a finite number above 1, got {gamma}")
    records, refused = [], []
    for title, conditional, pure, make in setting.candidates(chosen, gamma):
        if not target_delta and not pure:
            refused.append((title, "needs a delta above 0"))
            continue
        try:
            mechanism = make()
        except TurnoutError as error:
            refused.append((title, str(error)))
            continue
        records.append(
            RecommendationRecord(
                title,
                mechanism,
                mechanism.expected_error(),
                mechanism.accounting.delta(target_epsilon, adjacency),
                mechanism.share_bytes,
                conditional,
            )
        )
    try:
        records.append(_local(probe, target_epsilon))
    except TurnoutError as error:
        refused.append((_local_title("an oracle"), str(error)))
    if not records:
        reasons = "; ".join(f"{title}: {reason}" for title, reason in refused)
        raise InvalidValueError(f"no mechanism reaches the target: {reasons}")
    records.sort(key=lambda record: record.rmse)
    return Recommendation(
        tuple(records), tuple(refused), probe.users, size, target_epsilon, target_delta
    )


class _Candidate(NamedTuple):
    """What is compared: whether it needs the floor, whether it needs no delta, how it is made."""

    title: str
    conditional: bool
    pure: bool
    make: Callable[[], AggregationMechanism]


@dataclass(frozen=True)
class _Setting:
    domain: Domain
    users: int
    common: dict[str, Any]
    parties: int | str
    floor: int

    def candidates(self, reported: int, gamma: float) -> Iterator[_Candidate]:
        """List what is compared."""
        for noise, kind_of_noise in NOISES.items():
            for source in ("users", "parties"):
                who = "users" if source == "users" else self._parties_title
                title = f"{noise.replace('_', ' ')} noise by {who}"
                make = partial(self.noisy, noise, source)
                yield _Candidate(title, False, kind_of_noise.pure, make)
        yield _Candidate("sampling with dummies", False, False, self.sampling_with_dummies)
        colluding = self.common["max_colluding_users"]
        bound = {"collusion_bound": colluding} if colluding else {}
        kinds: dict[str, dict[str, Any]] = {
            "uniform": {"reporting": "uniform"},
            "adaptive": {"reporting": "adaptive", "gamma": gamma},
        }
        for name, kind in kinds.items():
            yield _Candidate(
                f"two-stage sampling, {name}, with dummies",
                False,
                False,
                partial(self.two_stage_with_dummies, reported, **kind, **bound),
            )
        if not self.floor:
            return
        yield _Candidate("sampling", True, False, partial(self.sampling, floor=self.floor))
        for name, kind in kinds.items():
            yield _Candidate(
                f"two-stage sampling, {name}",
                True,
                False,
                partial(self.two_stage, reported, floor=self.floor, **kind, **bound),
            )

    @property
    def _parties_title(self) -> str:
        return "elected users" if self.parties == "users" else "aggregators"

    def noisy(self, noise: str, source: str) -> AggregationMechanism:
        target = dict(self.common)
        if NOISES[noise].pure:
            # A delta above 0 would buy next to nothing.
            target["delta"] = 0.0
        return NoisyAggregation(
            self.domain, self.users, noise=noise, source=source, parties=self.parties, **target
        )

    def sampling(self, **arguments: Any) -> AggregationMechanism:
        return SamplingAggregation(
            self.domain, self.users, parties=self.parties, **self.common, **arguments
        )

    def two_stage(self, reported: int, **arguments: Any) -> AggregationMechanism:
        return TwoStageSampling(
            self.domain, self.users, reported=reported, **self.common, **arguments
        )

    def sampling_with_dummies(self) -> AggregationMechanism:
        """Find the number of dummies with the smallest error, among a few."""
        return _best(lambda dummies: self.sampling(dummies=dummies), _DUMMIES)

    def two_stage_with_dummies(self, reported: int, **arguments: Any) -> AggregationMechanism:
        """Find the number of dummies with the smallest error, among fewer."""
        return _best(
            lambda dummies: self.two_stage(reported, dummies=dummies, **arguments), _DUMMIES[3::3]
        )


def _best(
    make: Callable[[int], AggregationMechanism], numbers: Sequence[int]
) -> AggregationMechanism:
    """Make a mechanism with each number of dummies; return the one of the smallest error."""
    found, refusal = [], None
    for number in numbers:
        try:
            found.append(make(number))
        except InvalidValueError as error:
            refusal = error
    if refusal is not None and not found:
        raise refusal
    return min(found, key=lambda mechanism: mechanism.expected_error())


def _local(probe: AggregationMechanism, epsilon: float) -> RecommendationRecord:
    """Evaluate the best oracle for everyone, with the same epsilon and delta 0."""
    size, n = probe.domain.size, probe.users
    oracle = choose_oracle(epsilon, probe.domain, frequency=1.0 / size).oracle
    counts = np.full(size, n // size, np.uint64)
    counts[: n % size] += np.uint64(1)
    variances = estimator_variance(oracle, Everyone(), true_counts=counts) / n**2
    return RecommendationRecord(
        _local_title(oracle.name.replace("_", " ")),
        None,
        float(np.sqrt(variances.mean())),
        0.0,
        (oracle.report_bits + 7) // 8,
        False,
        oracle,
    )


def _local_title(name: str) -> str:
    return f"{name} (local, no aggregators)"
