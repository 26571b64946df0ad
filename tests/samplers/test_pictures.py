"""Pictures of samplers show what they say."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from scipy import stats
from sklearn.neighbors import KernelDensity

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError, NotFittedError
from turnout.samplers import (
    FiniteMollifier,
    MinimaxSampler,
    Mixture,
    MollifiedDensity,
    Normal,
    PrivacyBudget,
    StandardNormal,
    Uniform,
    plot_density,
)
from turnout.samplers.pictures import plot_heatmap
from turnout.samplers.population.answers import (
    FinitePopulationEstimate,
    IdentifiedSet,
    PopulationPlan,
    shares_of_draws,
)
from turnout.samplers.population.points import PopulationEstimate
from turnout_reproduce.baselines import BernsteinSampler

mpl.use("Agg")

Floats = Any


@pytest.fixture(autouse=True)
def no_figure_stays() -> Iterator[None]:
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


def lines(axes: Any) -> dict[str, Any]:
    return {line.get_label(): np.asarray(line.get_xydata()) for line in axes.lines}


def area(axes: Any, label: str) -> tuple[Floats, Floats]:
    """The lower and upper values of a shaded band, by x."""
    (shown,) = [each for each in axes.collections if each.get_label().startswith(label)]
    corners = shown.get_paths()[0].vertices
    at = np.unique(corners[:, 0])
    low = np.array([corners[corners[:, 0] == x, 1].min() for x in at])
    return low, np.array([corners[corners[:, 0] == x, 1].max() for x in at])


def fitted(epsilon: float = 2.0) -> MollifiedDensity:
    records = np.random.default_rng(1).normal(0.5, 0.3, (200, 1))
    return MollifiedDensity(epsilon, estimator=KernelDensity(bandwidth=0.1)).fit(records)


def test_a_fitted_sampler_is_drawn_with_its_band() -> None:
    sampler = fitted()
    truth = stats.norm(0.5, 0.3)
    draws = sampler.sample(50, budget=PrivacyBudget(math.inf), seed=1)
    axes: Any = plot_density(sampler, truth=truth, draws=draws, bounds=(-4, 4))
    drawn = lines(axes)
    assert set(drawn) == {"reference $Q_0$", "50 draws", "truth", "law of a draw"}
    x = drawn["law of a draw"][:, 0]
    assert (x[0], x[-1]) == (-4, 4)
    np.testing.assert_allclose(
        drawn["law of a draw"][:, 1], np.exp(sampler.score_samples(x[:, None]))
    )
    np.testing.assert_allclose(drawn["reference $Q_0$"][:, 1], stats.norm.pdf(x))
    np.testing.assert_allclose(drawn["truth"][:, 1], truth.pdf(x))
    np.testing.assert_allclose(np.sort(drawn["50 draws"][:, 0]), np.sort(draws[:, 0]))
    low, high = area(axes, "band")
    np.testing.assert_allclose(low, stats.norm.pdf(x) * math.exp(-1.0))
    np.testing.assert_allclose(high, stats.norm.pdf(x) * math.exp(1.0))
    assert (drawn["law of a draw"][:, 1] <= high * (1 + 1e-9)).all()
    assert axes.get_xlabel() == "value"
    assert axes.get_ylabel() == "density"


def test_the_band_of_a_minimax_sampler_is_its_own() -> None:
    records = np.random.default_rng(1).normal(0.5, 0.2, (200, 1))
    sampler = MinimaxSampler(1.0, reference=Uniform(-5.0, 5.0), low=0.0, high=3.0).fit(records)
    axes: Any = plot_density(sampler)
    (label,) = [each.get_label() for each in axes.collections]
    low, high = area(axes, "band")
    curve = lines(axes)["law of a draw"]
    inside = np.abs(curve[:, 0]) < 5.0
    # b = 1 / (e/3 + 2/3), and Q0 = 1/10.
    least = 0.1 / (math.e / 3.0 + 2.0 / 3.0)
    np.testing.assert_allclose(low[inside], least, rtol=1e-8)
    np.testing.assert_allclose(high[inside], least * math.e, rtol=1e-8)
    assert f"b = {10 * least:.3g}, ε = 1" in label
    assert (low[inside] * (1 - 1e-9) <= curve[inside, 1]).all()
    assert (curve[inside, 1] <= high[inside] * (1 + 1e-9)).all()
    # The law is beyond the symmetric band of the mollifier.
    assert curve[:, 1].max() > 0.1 * math.exp(0.5)
    # That of the fit stays, whatever the parameters are now.
    sampler.set_params(epsilon=2.0, high=9.0)
    again = area(plot_density(sampler), "band")
    np.testing.assert_array_equal(again, (low, high))


def test_a_sampler_with_public_bounds_is_drawn_within_them() -> None:
    records = np.random.default_rng(1).uniform(2.0, 4.0, (50, 1))
    axes = plot_density(BernsteinSampler(5.0, bounds=(1.0, 6.0)).fit(records))
    assert axes.get_xlim() == (1.0, 6.0)
    assert not axes.collections


def test_many_draws_are_a_histogram_of_their_density() -> None:
    draws = StandardNormal(1).draw(5000, seed=1)
    axes: Any = plot_density(StandardNormal(1), draws=draws, bounds=(-5, 5))
    (stairs,) = [each for each in axes.patches if each.get_label() == "5,000 draws"]
    values, edges, _ = stairs.get_data()
    assert (values * np.diff(edges)).sum() == pytest.approx(1.0)
    assert "reference $Q_0$" not in lines(axes)
    # Without a reference the interval is that of the draws.
    axes = plot_density(StandardNormal(1), draws=draws)
    low, high = axes.get_xlim()
    assert low < np.quantile(draws, 0.001) < np.quantile(draws, 0.999) < high


def test_maps_share_their_colours() -> None:
    places = ((2.0, 0.0), (0.0, 2.0), (-2.0, 0.0), (0.0, -2.0))
    ring = Mixture([Normal(place, [0.25, 0.25]) for place in places])
    draws = ring.draw(30, seed=1)
    first, second = plot_heatmap(StandardNormal(2), ring, bounds=[(-3, 3), (-4, 4)], draws=draws)
    images: list[Any] = [axes.images[0] for axes in (first, second)]
    assert images[0].get_clim() == images[1].get_clim()
    assert images[0].get_clim()[1] == max(image.get_array().max() for image in images)
    assert list(images[1].get_extent()) == [-3, 3, -4, 4]
    # The origin is below on the left: values where they belong.
    shown = np.asarray(images[1].get_array())
    x = -3 + 6 * (np.arange(161) + 0.5) / 161
    y = -4 + 8 * (np.arange(161) + 0.5) / 161
    assert shown[3, 100] == pytest.approx(np.exp(ring.log_density(np.array([[x[100], y[3]]]))[0]))
    assert len(first.lines[0].get_xdata()) == 30
    figure: Any = first.figure
    assert figure.axes[-1].get_ylabel() == "density"
    assert [axes.get_title() for axes in (first, second)] == ["law of a draw", "truth"]


def test_population_estimates_are_drawn() -> None:
    estimate = PopulationEstimate(
        StandardNormal(1).draw(400, seed=1), StandardNormal(1), (-0.5, 0.5)
    )
    axes: Any = estimate.plot(truth=stats.norm(), bounds=(-2, 2))
    x = lines(axes)["mean law of the draws"][:, 0]
    np.testing.assert_allclose(
        lines(axes)["mean law of the draws"][:, 1], estimate.density(x[:, None])
    )
    low, high = area(axes, "95% interval")
    interval = estimate.interval(x[:, None])
    np.testing.assert_allclose(low, np.minimum(interval.low, interval.high))
    np.testing.assert_allclose(high, interval.high)
    band = area(axes, "band")
    np.testing.assert_allclose(band[1], stats.norm.pdf(x) * math.exp(0.5))
    assert high.max() <= axes.get_ylim()[1]
    plane = PopulationEstimate(
        StandardNormal(2).draw(400, seed=1),
        StandardNormal(2),
        (-0.5, 0.5),
        epsilon=1.0,
    )
    maps = plane.plot(truth=StandardNormal(2))
    assert len(maps) == 2
    assert maps[0].get_title() == "mean law of the draws of 400 users, ε = 1 each"
    assert [*maps[0].get_xlim(), *maps[0].get_ylim()] == list(maps[0].images[0].get_extent())


@pytest.mark.parametrize("users", [3, 40])
def test_the_axis_holds_the_whole_interval(users: int) -> None:
    draws = Uniform(0.0, 1.0).draw(users, seed=1)
    estimate = PopulationEstimate(draws, Uniform(0.0, 1.0), (-2.0, 2.0))
    axes = estimate.plot()
    _, high = area(axes, "95% interval")
    assert high.max() <= axes.get_ylim()[1]


def test_identified_bounds_are_drawn() -> None:
    plan = PopulationPlan(tn.Domain(["a", "b", "c"]), 1.0, 100)
    estimate = FinitePopulationEstimate(
        shares_of_draws(plan, np.repeat([0, 1, 2], [50, 30, 20])),
        IdentifiedSet([0.2] * 3, [0.6] * 3),
    )
    axes: Any = estimate.plot([0.6, 0.3, 0.1], level=0.9)
    wide, narrow = (np.array(each.get_segments())[:, :, 1] for each in axes.collections)
    bounds = estimate.bounds(0.9)
    np.testing.assert_allclose(wide, np.column_stack([bounds.low, bounds.high]))
    known = estimate.bounds(None)
    np.testing.assert_allclose(narrow, np.column_stack([known.low, known.high]))
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b", "c"]
    assert [patch.get_height() for patch in axes.patches] == [0.6, 0.3, 0.1]
    assert axes.get_title(loc="left") == "one draw of each of 100 users, ε = 1 each"


def test_what_cannot_be_drawn_is_told_what_to_use() -> None:
    plane = MollifiedDensity(1.0).fit(np.zeros((3, 2)))
    space = MollifiedDensity(1.0).fit(np.zeros((3, 5)))
    line = fitted()
    for one in (plane, StandardNormal(2)):
        with pytest.raises(InvalidValueError, match="one feature here, got 2: use plot_heatmap"):
            plot_density(one)
    with pytest.raises(InvalidValueError, match="truth must have one feature here, got 2"):
        plot_density(line, truth=plane)
    with pytest.raises(InvalidValueError, match="got 5: one or two can be drawn"):
        plot_density(space)
    for one in (line, StandardNormal(1)):
        with pytest.raises(InvalidValueError, match="two features here, got 1: use plot_density"):
            plot_heatmap(one, bounds=(-1, 1))
    with pytest.raises(InvalidValueError, match="truth must have two features here, got 1"):
        plot_heatmap(plane, line, bounds=[(-1, 1)] * 2)
    for one in (MollifiedDensity(1.0), FiniteMollifier(1.0, 3)):
        with pytest.raises(NotFittedError, match=f"this {type(one).__name__} is not fitted yet"):
            plot_density(one)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        plot_heatmap(MollifiedDensity(1.0), bounds=[(-1, 1)] * 2)
    points = MinimaxSampler(1.0, reference=StandardNormal(1), low=0.0, high=3.0).fit([[0.0]])
    # Features of an earlier fit are not those of this one.
    values = points.set_params(reference=None, low=None, high=None, domain_size=3).fit([0])
    for one in (FiniteMollifier(1.0, 3).fit([0, 1]), values):
        with pytest.raises(InvalidValueError, match="finitely many values, whose probabilities_"):
            plot_density(one)


def test_bad_input_is_refused() -> None:
    law = StandardNormal(1)
    with pytest.raises(InvalidValueError, match="bounds must be given"):
        plot_density(law)
    for options in (
        {"bounds": [(-1, 1), (-1, 1)]},
        {"bounds": (1, -1)},
        {"bounds": (-1, 1), "draws": np.zeros((3, 2))},
        {"reference": law, "epsilon": 0.0},
    ):
        with pytest.raises(InvalidValueError):
            plot_density(law, **options)
    with pytest.raises(InvalidTypeError, match="density must be"):
        plot_density(3.0, bounds=(-1, 1))
    with pytest.raises(InvalidTypeError, match="ax must be"):
        plot_density(law, bounds=(-1, 1), ax=3)
    plane = Normal([0.0, 0.0], [1.0, 1.0])
    with pytest.raises(InvalidValueError, match="two pairs"):
        plot_heatmap(plane, bounds=(-1, 1))
    with pytest.raises(InvalidValueError, match=r"2 column\(s\)"):
        plot_heatmap(plane, bounds=[(-1, 1)] * 2, draws=np.zeros((3, 1)))
    with pytest.raises(InvalidTypeError, match="2 matplotlib axes"):
        plot_heatmap(plane, plane, bounds=[(-1, 1)] * 2, ax=[3])
