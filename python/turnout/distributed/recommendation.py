"""Comparison of mechanisms at equal privacy by computed error."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from turnout import _arguments
from turnout._drawing import finish, new_axes
from turnout._tables import Listing
from turnout._types import Axes
from turnout.accounting.values import nonnegative, target_delta
from turnout.bounds import Bounds
from turnout.collecting.variance import estimator_variance
from turnout.distributed.aggregation import AggregationMechanism
from turnout.distributed.elected import checked_gamma
from turnout.distributed.noise import NOISES
from turnout.distributed.noisy import NoisyAggregation
from turnout.distributed.sampled import checked_floor
from turnout.distributed.sampling import SamplingAggregation
from turnout.distributed.two_stage import TwoStageSampling
from turnout.distributed.verified import VerifiedAggregation
from turnout.distributed.verified_sum import VerifiedSum
from turnout.domain import Domain
from turnout.errors import InvalidValueError, TurnoutError
from turnout.frequency.oracle import FrequencyOracle
from turnout.mean.mechanism import MeanMechanism, mechanisms_of
from turnout.participation import Everyone
from turnout.planning.choice import choose_oracle

#: The width of text below a table.
_WIDTH = 100

_COLOURS = {
    "for any data": "#1f6f8b",
    "for data with the floor": "#d8973c",
    "local, no aggregators": "#9aa3b0",
}

#: The numbers of dummies that are tried: where more change little, fewer are cheaper.
_DUMMIES = (5, 10, 20, 33, 50, 100, 200, 333, 500, 1000, 2000)


@dataclass(frozen=True)
class RecommendationRecord:
    """One mechanism that reaches the target, with its error and its costs.

    Attributes
    ----------
    title
        The name of the mechanism in words.
    mechanism
        The mechanism, ready to run; None for local randomization.
    rmse
        The root mean squared error of a frequency, computed, not simulated. For numbers, the error
        of their mean in the worst case.
    delta
        The computed delta at the target's epsilon.
    share_bytes
        The bytes that one user sends, without headers; None in two-stage sampling, where they vary.
    conditional
        Whether the guarantee needs the floor.
    oracle
        The oracle of local randomization, or its mechanism for means; None for the others.
    """

    title: str
    mechanism: AggregationMechanism | VerifiedSum | None
    rmse: float
    delta: float
    share_bytes: int | None
    conditional: bool
    oracle: FrequencyOracle | MeanMechanism | None = None


@dataclass(frozen=True)
class Recommendation(Listing):
    """All mechanisms at equal privacy, sorted by error, the smallest first.

    Attributes
    ----------
    records
        One for each mechanism that reaches the target.
    refused
        The mechanisms that do not reach the target, with the reasons.
    users, items, epsilon, delta
        The setting. For numbers there is one item.
    of
        The quantity whose error is computed: ``"a frequency"``, or ``"the mean"`` for numbers.
    """

    records: tuple[RecommendationRecord, ...]
    refused: tuple[tuple[str, str], ...] = field(repr=False)
    users: int
    items: int
    epsilon: float
    delta: float
    of: str = "a frequency"

    _columns = ("title", "rmse", "delta", "share_bytes", "conditional")

    @property
    def best(self) -> AggregationMechanism | VerifiedSum:
        """The distributed mechanism with the smallest error, whatever the data."""
        for record in self.records:
            if record.mechanism is not None and not record.conditional:
                return record.mechanism
        raise InvalidValueError("no distributed mechanism reaches the target")

    def __str__(self) -> str:
        """Return a text table of the records, then the refused mechanisms with the reasons."""
        width = max(len(record.title) for record in self.records) + 2
        lines = [f"{'mechanism':<{width}}{'rmse':>10}{'delta':>10}{'share bytes':>14}  holds for"]
        for record in self.records:
            size = "varies" if record.share_bytes is None else f"{record.share_bytes:,}"
            holds = "data with the floor" if record.conditional else "any data"
            lines.append(
                f"{record.title:<{width}}{record.rmse:>10.3g}{record.delta:>10.2g}{size:>14}  "
                f"{holds}"
            )
        for line in self._not_compared():
            lines += ["", *textwrap.wrap(line, width=_WIDTH)]
        return "\n".join(lines)

    def _not_compared(self) -> list[str]:
        """Return the mechanisms that do not reach the target, one line for each reason.

        Returns
        -------
        list of str
            Lines without an end.

        Examples
        --------
        >>> pure = recommend(1000, 30, epsilon=1.0)
        >>> [line.partition(":")[0] for line in pure._not_compared()]
        ['not compared (needs a delta above 0)']
        """
        titles: dict[str, list[str]] = {}
        for title, reason in self.refused:
            titles.setdefault(reason, []).append(title)
        return [f"not compared ({reason}): {'; '.join(each)}" for reason, each in titles.items()]

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
        axes = new_axes(ax, width=8.0, height=1.6 + 0.32 * len(self.records))
        errors = np.array([record.rmse for record in self.records])
        positions = np.arange(len(errors))[::-1]
        kinds = [_kind(record) for record in self.records]
        for label, colour in _COLOURS.items():
            # Points: on a logarithmic axis the length of a bar would say nothing.
            rows = np.flatnonzero([kind == label for kind in kinds])
            if rows.size:
                axes.plot(errors[rows], positions[rows], "o", c=colour, markersize=8, label=label)
        beside: dict[str, Any] = {"xytext": (8, 0), "textcoords": "offset points", "va": "center"}
        for point in zip(errors, positions, strict=True):
            axes.annotate(f"{point[0]:.3g}", point, **beside, fontsize=8)
        axes.set_xscale("log")
        axes.set_xlim(errors.min() / 2, errors.max() * 2)
        axes.grid(visible=True, color="0.92")
        axes.set_axisbelow(True)
        axes.set_yticks(positions, [record.title for record in self.records], fontsize=9)
        axes.set_xlabel(f"root mean squared error of {self.of}")
        target = f"epsilon = {self.epsilon:g}, delta = {self.delta:g}"
        asked = f"{self.items:,} items" if self.items > 1 else "one number each"
        finish(axes, f"{self.users:,} users, {asked}, {target}", legend="upper right")
        return axes


def _kind(record: RecommendationRecord) -> str:
    if record.mechanism is None:
        return "local, no aggregators"
    return "for data with the floor" if record.conditional else "for any data"


def recommend(
    users: int,
    domain: Domain | Bounds | Sequence[Hashable] | int,
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
        The items: a :class:`turnout.Domain`, or their number N. Or :class:`turnout.Bounds` of one
        whole number for each user, to estimate the mean.
    epsilon
        The target.
    delta
        The target's delta. Without it, or with 0, mechanisms that need a positive delta are not
        compared. Discrete Laplace noise, which always gets delta 0, and votes with proofs do not
        need one.
    floor
        The smallest number of users that hold each item, if it is known. Then sampling without
        dummies is compared too.
    parties, honest_aggregators, max_colluding_users, max_missing_users, adjacency
        As in the mechanisms.
    reported
        The number of items of a set in two-stage sampling; two fifths of all by default.
    gamma
        The weight of adaptive reporting in two-stage sampling.

    Returns
    -------
    Recommendation
        The mechanisms, the one with the smallest error first. They include local randomization by
        the best oracle, which needs no aggregators.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is out of range.

    Examples
    --------
    >>> found = recommend(1000, 30, epsilon=1.0, delta=1e-5)
    >>> found.best.noise
    'discrete_laplace'
    >>> print(str(recommend(1000, 30, epsilon=1.0)).partition("not compared")[0].strip())
    mechanism                                       rmse     delta   share bytes  holds for
    discrete laplace noise by users               0.0028         0           106  any data
    discrete laplace noise by aggregators        0.00485         0           106  any data
    votes with proofs, noise by aggregators      0.00485         0         1,392  any data
    subset selection (local, no aggregators)      0.0584         0             3  any data

    Of numbers:

    >>> import turnout as tn
    >>> [each.title for each in recommend(1000, tn.Bounds(0, 60), epsilon=1.0).records]
    ['numbers with proofs, noise by aggregators', 'hybrid (local, no aggregators)']
    """
    target_epsilon = _arguments.number("epsilon", epsilon)
    chance = 0.0 if delta is None else target_delta(delta)
    nonnegative("epsilon", target_epsilon)
    if isinstance(domain, Bounds):
        return _of_numbers(
            domain,
            users,
            parties,
            epsilon=target_epsilon,
            delta=chance,
            honest_aggregators=honest_aggregators,
            max_colluding_users=max_colluding_users,
            max_missing_users=max_missing_users,
            adjacency=adjacency,
        )
    common: dict[str, Any] = {
        "honest_aggregators": honest_aggregators,
        "max_colluding_users": max_colluding_users,
        "max_missing_users": max_missing_users,
        "adjacency": adjacency,
    }
    probe = NoisyAggregation(
        domain,  # type: ignore[arg-type]
        users,
        parameter=1.0,
        parties=parties,
        **common,
    )
    target_delta(chance, probe.users)
    common |= {"epsilon": target_epsilon, "delta": chance}
    checked_floor(floor, probe.users, probe.domain.size)
    size = probe.domain.size
    chosen = max(1, round(0.4 * size))
    if reported is not None:
        chosen = _arguments.integer("reported", reported, least=1, most=size)
    gamma = checked_gamma(gamma)
    records, refused = [], []
    for title, make, conditional, pure in _candidates(probe, common, floor, chosen, gamma):
        if not chance and not pure:
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
                mechanism._share_bytes,
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
    return Recommendation(tuple(records), tuple(refused), probe.users, size, target_epsilon, chance)


def _of_numbers(
    bounds: Bounds, users: int, parties: int | str, *, epsilon: float, delta: float, **common: Any
) -> Recommendation:
    """Compare sums with proofs and local randomization for whole numbers."""
    if isinstance(parties, str):
        raise InvalidValueError(
            f"parties must be a number with numbers, which aggregators add up, got {parties!r}"
        )
    mechanism = VerifiedSum(
        bounds, users, aggregators=parties, epsilon=epsilon, delta=delta, **common
    )
    error, of = mechanism._error()
    reached = mechanism.accounting.delta(epsilon, mechanism.adjacency)
    title = "numbers with proofs, noise by aggregators"
    size = mechanism._share_bytes
    records = [RecommendationRecord(title, mechanism, error, reached, size, conditional=False)]
    refused = []
    try:
        oracle = mechanisms_of(epsilon, bounds)[0]
        local = math.sqrt(oracle.worst_variance / mechanism.users)
        size = (oracle.report_bits + 7) // 8
        records.append(
            RecommendationRecord(
                _local_title(oracle.name),
                None,
                local,
                0.0,
                size,
                conditional=False,
                oracle=oracle,
            )
        )
    except TurnoutError as found:
        refused.append((_local_title("an oracle"), str(found)))
    records.sort(key=lambda record: record.rmse)
    return Recommendation(tuple(records), tuple(refused), mechanism.users, 1, epsilon, delta, of=of)


class _Candidate(NamedTuple):
    """What is compared: how it is made, whether it needs the floor, whether it needs no delta."""

    title: str
    make: Callable[[], AggregationMechanism]
    conditional: bool = False
    pure: bool = False


def _candidates(
    probe: NoisyAggregation, common: dict[str, Any], floor: int, reported: int, gamma: float
) -> Iterator[_Candidate]:
    """List what is compared, with the users and parties of one of them."""
    whose = (probe.domain, probe.users)
    elected = "elected users" if probe.parties == "users" else "aggregators"
    for noise, kind_of_noise in NOISES.items():
        # Where none is needed, a delta above 0 would buy next to nothing.
        target = {**common, "delta": 0.0} if kind_of_noise.pure else common
        noisy = partial(NoisyAggregation, *whose, noise=noise, parties=probe.parties, **target)
        for source, who in (("users", "users"), ("parties", elected)):
            title = f"{noise.replace('_', ' ')} noise by {who}"
            yield _Candidate(title, partial(noisy, source=source), pure=kind_of_noise.pure)
    verified = partial(_verified, probe, common)
    yield _Candidate("votes with proofs, noise by aggregators", verified, pure=True)
    sampling = partial(SamplingAggregation, *whose, parties=probe.parties, **common)
    bound = probe.max_colluding_users or None
    two_stage = partial(
        TwoStageSampling, *whose, reported=reported, collusion_bound=bound, **common
    )
    kinds = {"uniform": two_stage, "adaptive": partial(two_stage, gamma=gamma)}
    yield _Candidate("sampling with dummies", partial(_best, sampling, _DUMMIES))
    for name, kind in kinds.items():
        # Fewer numbers of dummies: each takes longer.
        make = partial(_best, kind, _DUMMIES[3::3])
        yield _Candidate(f"two-stage sampling, {name}, with dummies", make)
    if floor:
        yield _Candidate("sampling", partial(sampling, floor=floor), conditional=True)
        for name, kind in kinds.items():
            title = f"two-stage sampling, {name}"
            yield _Candidate(title, partial(kind, floor=floor), conditional=True)


def _verified(probe: NoisyAggregation, common: dict[str, Any]) -> VerifiedAggregation:
    if isinstance(probe.parties, str):
        raise InvalidValueError("needs aggregators: pass parties as a number")
    make = partial(VerifiedAggregation, probe.domain, probe.users, aggregators=probe.parties)
    pure = make(**{**common, "delta": 0.0})
    if not common["delta"]:
        return pure
    other = make(**common)
    # Most often a delta above 0 would buy next to nothing.
    return other if other.expected_error() < 0.99 * pure.expected_error() else pure


def _best(
    make: Callable[..., AggregationMechanism], numbers: Sequence[int]
) -> AggregationMechanism:
    """Make a mechanism with each number of dummies; return the one with the smallest error."""
    found, refusal = [], None
    for number in numbers:
        try:
            found.append(make(dummies=number))
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
