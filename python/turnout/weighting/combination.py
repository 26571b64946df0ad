"""Combination of the estimates of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._types import Floats
from turnout.collecting.intervals import StatisticModel
from turnout.collecting.left_out import NOTHING, LeftOut
from turnout.collecting.plan import Plan
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation
from turnout.frequency.estimation.models import ratio_model
from turnout.frequency.estimation.rounds import sharing
from turnout.mean.estimate import MeanEstimate
from turnout.mean.estimators import MeanEstimation
from turnout.weighting.weights import METHODS, positive
from turnout.weighting.weights import weights as choose


@dataclass(frozen=True)
class WeightedPlan:
    """The plan of a combined estimate of frequencies.

    Attributes
    ----------
    plans
        The plans of the groups.
    weights
        The weights of the groups, which add up to one. The estimate is the weighted sum of the
        group estimates.
    implied_variance
        The variance that epsilon and the numbers of nodes and reports imply for the estimate,
        summed over all entries. Further combinations use it.
    """

    plans: tuple[Any, ...]
    weights: tuple[float, ...]
    implied_variance: float

    @property
    def domain(self) -> Any:
        """The possible answers or numbers, which all groups share."""
        return self.plans[0].domain


def combine(
    estimates: Sequence[Any],
    *,
    method: str = "inverse_variance",
    variances: npt.ArrayLike | None = None,
    same_people: bool = True,
) -> Any:
    """Combine the estimates of groups of different users drawn from one population.

    The combined estimate is of that population. So its standard errors and intervals include that
    each group is a sample of it. The variance of a group's estimate is that of its mechanism plus
    ``f (1 - f) / n`` (for means, the spread of the values divided by ``n``). For the union of the
    groups, the variances are a little too large, never too small, if group membership does not
    depend on the values. If it does, the groups estimate different quantities, and the combination
    estimates yet another one.

    Parameters
    ----------
    estimates
        At least one :class:`turnout.FrequencyEstimate`, all of one domain, or at least one
        :class:`turnout.mean.MeanEstimate`, all with the same bounds and dimensions. Pass them
        before any post-processing. Groups may differ in epsilon, mechanism, participation and
        method.
    method
        ``"inverse_variance"`` (default) and ``"numerical"``: weights in inverse proportion to the
        variances of the groups' estimates, summed over answers or coordinates. ``"unweighted"``:
        weights in proportion to the numbers of nodes, so that every user counts the same.
    variances
        The variances of the groups' estimates, from which the weights are computed. By default the
        variances that epsilon and the numbers of nodes and reports imply, independent of the
        content of the reports. They are taken at uniform frequencies (the sum depends on the
        frequencies only through the sum of their squares), or for values uniform between the
        bounds. With personal participation they are those of the equivalent number of reports of
        equal weight. Wrong variances cost accuracy, not validity.
    same_people
        Whether groups that keep the same permanent answers (:class:`turnout.Memoized` with equal
        ``context``), such as groups of two budgets for a report, may have the same people. Then
        their errors are assumed to be as correlated as possible. False means that nobody is in two
        groups.

    Returns
    -------
    FrequencyEstimate or MeanEstimate
        The estimate, of the class of the groups, with score or normal intervals. For very rare
        answers the exact intervals of a single group cover better. Its ``plan`` is a
        :class:`WeightedPlan`.

    Raises
    ------
    InvalidValueError
        If there are no estimates, they differ in domain, bounds or dimensions, the method does not
        exist, or the variances do not fit.
    InvalidTypeError
        If they are not estimates of one class.
    EstimatorError
        If a group's estimator is biased.

    Examples
    --------
    >>> import turnout as tn
    >>> groups = [
    ...     tn.mean.Piecewise(epsilon).collect([0.3] * 5000, seed=1).estimate()
    ...     for epsilon in (0.5, 2.0)
    ... ]
    >>> combined = tn.weighting.combine(groups)
    >>> combined.nodes, [round(weight, 2) for weight in combined.plan.weights]
    (10000, [0.06, 0.94])
    """
    groups = _arguments.items("estimates", estimates, "a sequence of estimates")
    if not groups:
        raise InvalidValueError("estimates must hold at least one estimate, got none")
    _arguments.choice("method", method, METHODS)
    _arguments.instance(
        "estimates[0]",
        groups[0],
        (FrequencyEstimate, MeanEstimate),
        "a FrequencyEstimate or a MeanEstimate, which are unbiased",
    )
    kind = FrequencyEstimate if isinstance(groups[0], FrequencyEstimate) else MeanEstimate
    domain = groups[0].domain
    for place, group in enumerate(groups):
        if not isinstance(group, kind):
            raise _arguments.mistyped(
                f"estimates[{place}] must be a {kind.__name__} like the others", group
            )
        if group.domain != domain:
            asked = "be of the domain" if kind is FrequencyEstimate else "have the bounds"
            raise _arguments.invalid(
                f"estimates[{place}] must {asked} {domain!r} of the others", group.domain
            )
    _arguments.instance("same_people", same_people, bool, "True or False")
    if kind is FrequencyEstimate:
        return _frequencies(groups, method, variances, same_people)
    return _means(groups, method, variances)


def _shares(
    method: str, given: npt.ArrayLike | None, implied: list[float], nodes: list[int]
) -> Floats:
    """Return the factors of the groups' estimates."""
    spread = np.array(implied)
    if given is not None:
        spread = positive("variances", given, finite=False)
        if spread.size != len(nodes):
            raise _arguments.invalid(
                f"variances must have one number for each of the {len(nodes)} groups", spread.size
            )
    users = np.array(nodes, dtype=np.float64)
    # A group's estimate is the mean of its users' values, whose variance is n times as large.
    least = np.finfo(np.float64).tiny
    shares = choose(np.maximum(spread, least) * users, users, method=method) * users
    result: Floats = shares / shares.sum()
    return result


def _together(
    groups: Sequence[Any], method: str, shares: Floats, implied: list[float]
) -> tuple[Any, str, int, int]:
    """Return the plan, the method and the numbers of nodes and reports of a combination."""
    # Groups without weight do not count: their variances may be infinite.
    variance = float(sum(shares[j] ** 2 * implied[j] for j in np.flatnonzero(shares)))
    return (
        WeightedPlan(tuple(group.plan for group in groups), tuple(shares.tolist()), variance),
        method,
        sum(group.nodes for group in groups),
        sum(group.received for group in groups),
    )


def _left_out(groups: Sequence[Any]) -> LeftOut:
    return sum((group.left_out for group in groups), NOTHING)


def _model_sum(models: Sequence[StatisticModel], shares: Floats) -> StatisticModel:
    """Return the model of the weighted sum of the groups' estimates."""
    terms = [
        (share**2 / model.b**2) * np.array([model.v0, model.v1, model.v2])
        for model, share in zip(models, shares, strict=True)
    ]
    v0, v1, v2 = np.sum(terms, axis=0)
    return StatisticModel(a=0.0, b=1.0, v0=float(v0), v1=float(v1), v2=float(v2))


def _degrees(parts: Sequence[Floats], freedom: Sequence[Any]) -> Floats | None:
    """Return the degrees of freedom of a sum of estimated variances (Welch-Satterthwaite).

    Groups with known variances have none, and neither has a sum of such groups.
    """
    if all(degrees is None for degrees in freedom):
        return None
    total: Floats = np.sum(parts, axis=0)
    doubt = np.zeros_like(total)
    for part, degrees in zip(parts, freedom, strict=True):
        if degrees is not None:
            doubt = doubt + part**2 / degrees
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Floats = np.where(doubt > 0, total**2 / doubt, np.inf)
    return np.clip(result, 1e-9, 1e9)


def _population_model(group: FrequencyEstimate) -> StatisticModel | None:
    """Return the model with the nodes as a random sample of the population.

    The nodes' frequency ``g`` has mean ``f`` and variance ``f (1 - f) / n``. The new variance is
    the mean of the model's variance ``v0 + v1 g + v2 g^2`` over ``g``, plus ``b^2 f (1 - f) / n``.
    """
    model = group.estimation.model
    if model is None or isinstance(group.plan, WeightedPlan):
        # A combined estimate is of the population already.
        return model
    extra = (model.v2 + model.b**2) / group.nodes
    return StatisticModel(model.a, model.b, model.v0, model.v1 + extra, model.v2 - extra)


def _frequencies(
    groups: list[FrequencyEstimate],
    method: str,
    variances: npt.ArrayLike | None,
    same_people: bool,
) -> FrequencyEstimate:
    for place, group in enumerate(groups):
        if group.estimation.bias is not None:
            raise EstimatorError(
                f"estimates[{place}] is biased and cannot be combined: {group.estimation.bias}"
            )
    models = [_population_model(group) for group in groups]
    implied = [_frequency_trace(*pair) for pair in zip(groups, models, strict=True)]
    shares = _shares(method, variances, implied, [group.nodes for group in groups])
    used = np.flatnonzero(shares)
    alike = sharing([groups[j].plan for j in used]) if same_people else [1] * used.size
    # As if what shares noise were so many times as variable, and shared none.
    scales = np.zeros(len(groups))
    scales[used] = shares[used] * np.sqrt(alike)
    frequencies: Floats = np.sum(
        [shares[j] * groups[j].estimation.frequencies for j in used], axis=0
    )
    inside = np.clip(frequencies, 0.0, 1.0)
    parts, wide = [], []
    for j in used:
        group, model, estimation = groups[j], models[j], groups[j].estimation
        if model is not None:
            small = large = model.variance(inside)
        else:
            drawn = not isinstance(group.plan, WeightedPlan)
            sampling = inside * (1 - inside) / group.nodes if drawn else 0.0
            larger = estimation.interval_variances
            small = estimation.variances + sampling
            large = small if larger is None else larger + sampling
        parts.append(scales[j] ** 2 * small)
        wide.append(scales[j] ** 2 * large)
    spread: Floats = np.sum(parts, axis=0)
    known = [model for model in (models[j] for j in used) if model is not None]
    if len(known) == used.size:
        model = _model_sum(known, scales[used])
        estimation = Estimation(frequencies, spread, model, frequencies)
    else:
        found = _degrees(parts, [groups[j].estimation.degrees for j in used])
        degrees = None if found is None else float(found.min())
        larger = np.sum(wide, axis=0)
        estimation = Estimation(frequencies, spread, degrees=degrees, interval_variances=larger)
    kept = frequencies.view()
    kept.flags.writeable = False
    common, left_out = _together(groups, method, shares, implied), _left_out(groups)
    return FrequencyEstimate(*common, kept, "none", estimation, left_out=left_out)


def _frequency_trace(group: FrequencyEstimate, model: StatisticModel | None) -> float:
    """Sum the variances over answers at uniform frequencies, not at estimated ones.

    Variances estimated from the reports would depend on the estimates: a small group whose few
    reports agree would outvote all others.
    """
    size, plan, estimation = group.domain.size, group.plan, group.estimation
    if isinstance(plan, WeightedPlan):
        return plan.implied_variance
    even = np.array(1.0 / size)
    if model is not None:
        return float(size * model.variance(even))
    if not isinstance(plan, Plan) or not np.isfinite(estimation.variances).all():
        inside = np.clip(estimation.frequencies, 0.0, 1.0)
        return float((estimation.variances + inside * (1 - inside) / group.nodes).sum())
    # As many reports of equal weight as those of personal weights are worth (Kish).
    worth = group.received if estimation.degrees is None else round(estimation.degrees + 1)
    equal = ratio_model(group.nodes, max(worth, 1), plan.oracle._score_moments)
    return size * float(equal.variance(even) + even * (1 - even) / group.nodes)


def _means(
    groups: list[MeanEstimate], method: str, variances: npt.ArrayLike | None
) -> MeanEstimate:
    implied = [_mean_trace(group) for group in groups]
    shares = _shares(method, variances, implied, [group.nodes for group in groups])
    used = np.flatnonzero(shares)
    estimations = [groups[j].estimation for j in used]
    pairs = list(zip(shares[used], estimations, strict=True))
    means: Floats = np.sum([share * estimation.means for share, estimation in pairs], axis=0)
    models = [estimation.model for estimation in estimations if estimation.model is not None]
    if len(models) == used.size:
        model = _model_sum(models, shares[used])
        domain = groups[0].domain
        width = domain.high - domain.low
        places = (means - domain.low) / width
        spread = width**2 * model.variance(np.clip(places, 0.0, 1.0))
        combined = MeanEstimation(means, spread, spread, None, model, places)
    else:
        parts = [share**2 * estimation.population_variances for share, estimation in pairs]
        total = np.sum(parts, axis=0)
        degrees = _degrees(parts, [estimation.degrees for estimation in estimations])
        combined = MeanEstimation(means, total, total, degrees)
    common = _together(groups, method, shares, implied)
    return MeanEstimate(*common, combined, left_out=_left_out(groups))


def _mean_trace(group: MeanEstimate) -> float:
    """Sum the variances over coordinates for uniform values, not for estimated ones."""
    plan, estimation = group.plan, group.estimation
    if isinstance(plan, WeightedPlan):
        return plan.implied_variance
    estimated = float(estimation.population_variances.sum())
    if not isinstance(plan, Plan) or not np.isfinite(estimated):
        # One report has a spread that nobody knows: infinity, and no weight.
        return estimated
    rate, mechanism = plan.participation.uniform_rate, plan.oracle
    moment, share = mechanism._second_moment, mechanism._sampled / mechanism.dimensions
    reports: Any
    if rate is None and estimation.degrees is not None:
        reports = np.maximum(np.asarray(estimation.degrees), 0.0) + 1.0
    elif rate is None or group.method == "hajek":
        reports = group.received * share
    else:
        reports = group.nodes * rate * share
    # The mean of t^2 over [-1, 1] is 1/3.
    one = (moment.constant + moment.slope / 3) / np.full(mechanism.dimensions, reports)
    return float(one.sum() * mechanism.domain._half**2)
