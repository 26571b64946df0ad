"""Targets and the study helper."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from scipy import integrate, stats

from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.samplers import Mixture, Normal, StandardNormal, Uniform
from turnout_reproduce.measures import (
    FloorOfMollifier,
    GaussianMixtureTarget,
    PublicReference,
    mode_coverage,
    negative_log_likelihood,
    random_gaussians_1d,
    ring_of_gaussians,
    seed_mixture,
)
from turnout_reproduce.studies.samplers import SamplerRecord, compare_samplers
from turnout_reproduce.studies.study import Study

mpl.use("Agg")


@pytest.fixture(autouse=True)
def no_figure_stays() -> Iterator[None]:
    from matplotlib import pyplot as plt

    yield
    plt.close("all")


def test_the_seed_mixture_is_the_papers(statistical: ModuleType) -> None:
    target = seed_mixture()

    def density(x: float) -> float:
        laws = ((0.3, 0.01), (0.5, 0.1), (0.7, 0.1))
        return sum(float(stats.norm.pdf(x, *law)) for law in laws) / 3

    for x in (0.29, 0.3, 0.55, 1.0):
        assert target.log_density([[x]])[0] == pytest.approx(math.log(density(x)))
    pieces = [-0.5, 0.2, *np.linspace(0.25, 0.35, 11), 0.5, 0.8, 1.5]
    entropy = -math.fsum(
        integrate.quad(lambda x: density(x) * math.log(density(x)), *side)[0]
        for side in zip(pieces[:-1], pieces[1:], strict=True)  # noqa: RUF007
    )
    assert entropy == pytest.approx(-0.8345, abs=1e-4)
    found = target.entropy()
    assert abs(found.value - entropy) <= statistical.quantile() * found.standard_error
    assert found.standard_error < 2e-3
    assert target.bounds.tolist() == [pytest.approx([-0.1, 1.3])]
    assert target.dimensions == 1


def test_targets_are_where_they_are_said_to_be(statistical: ModuleType) -> None:
    ring = ring_of_gaussians(8, radius=4.0, deviation=0.3)
    np.testing.assert_allclose(np.hypot(*ring.means.T), 4.0)
    angles = np.sort(np.arctan2(ring.means[:, 1], ring.means[:, 0]) % math.tau)
    np.testing.assert_allclose(np.diff(angles), math.tau / 8)
    drawn = ring.sample(80_000, seed=1)
    nearest = ((drawn[:, None] - ring.means) ** 2).sum(2).argmin(1)
    statistical.check_law(np.bincount(nearest, minlength=8), np.full(8, 1 / 8))
    inside = drawn - ring.means[nearest]
    statistical.check_variance(inside, [0.09, 0.09], slack=0.001)
    uneven = GaussianMixtureTarget([0.0, 10.0], [1.0, 2.0], [0.25, 0.75])
    drawn = uneven.sample(20_000, seed=2)[:, 0]
    statistical.check_share(int((drawn < 4).sum()), 20_000, 0.25, 0.252)
    statistical.check_variance(drawn[drawn > 4], [4.0], slack=0.05)
    places = np.array([random_gaussians_1d(seed).means[:, 0] for seed in range(500)])
    assert stats.kstest(places.ravel(), stats.uniform(-2, 4).cdf).pvalue > statistical.ALPHA
    np.testing.assert_array_equal(random_gaussians_1d(3).means, random_gaussians_1d(3).means)
    assert (random_gaussians_1d(3, 5, spread=1.0).means ** 2 <= 1.0).all()


def shifted(epsilon: float) -> Any:
    """A sampler that is closer to the truth the larger epsilon is."""
    return PublicReference(Normal([1.0 / epsilon], [1.0]))


def row_of(study: Study[SamplerRecord], sampler: str, epsilon: float) -> SamplerRecord:
    return study.find(sampler=sampler, epsilon=epsilon)


def standard(seed: int) -> GaussianMixtureTarget:
    return GaussianMixtureTarget([0.0], 1.0)


def test_a_study_gives_means_and_deviations(statistical: ModuleType) -> None:
    study = compare_samplers(
        {"shifted": shifted, "known": lambda epsilon: PublicReference()},
        standard,
        epsilons=[0.5, 1.0],
        repeats=30,
        n_fresh=2000,
        bounds=(-9, 9),
    )
    assert [(row.sampler, row.epsilon) for row in study.records] == [
        ("shifted", 0.5),
        ("shifted", 1.0),
        ("known", 0.5),
        ("known", 1.0),
    ]
    entropy = 0.5 * math.log(math.tau * math.e)
    for row in study.records:
        shift = 1 / row.epsilon if row.sampler == "shifted" else 0.0
        # Of a loss (x - shift)^2 / 2: mean 1/2 + shift^2/2, variance 1/2 + shift^2.
        deviation = math.sqrt((0.5 + shift**2) / 2000)
        allowed = statistical.quantile(4) * deviation / math.sqrt(30)
        assert abs(row.nll - entropy - shift**2 / 2) <= allowed
        # The relative error of a deviation of 30 values is about 1/sqrt(58).
        found = np.std(row.losses, ddof=1)
        assert abs(found / deviation - 1) < statistical.quantile(4) / math.sqrt(58)
        z = stats.norm.ppf(0.975)
        covered = stats.norm.cdf(shift + z) - stats.norm.cdf(shift - z)
        assert row.coverage == pytest.approx(covered, abs=0.01)
        assert row.repeats == 30
    # All samplers of a repeat see the same records: equal ones are equal.
    assert row_of(study, "known", 0.5).nll == row_of(study, "known", 1.0).nll
    with pytest.raises(InvalidValueError, match="no record"):
        row_of(study, "known", 7.0)


def test_processes_change_nothing() -> None:
    one, two = (
        compare_samplers(
            {"known": lambda epsilon: PublicReference()},
            random_gaussians_1d,
            epsilons=[1.0],
            repeats=4,
            n_records=100,
            n_fresh=100,
            n_jobs=jobs,
            seed=3,
        )
        for jobs in (None, 2)
    )
    assert row_of(one, "known", 1.0).nll == row_of(two, "known", 1.0).nll
    assert row_of(one, "known", 1.0).nll_error > 0
    other = compare_samplers(
        {"known": lambda epsilon: PublicReference()},
        random_gaussians_1d,
        epsilons=[1.0],
        repeats=4,
        n_records=100,
        n_fresh=100,
        seed=4,
    )
    assert row_of(other, "known", 1.0).nll != row_of(one, "known", 1.0).nll


def test_a_study_goes_on_where_it_was(tmp_path: Path) -> None:
    store = tmp_path / "study.jsonl"
    made: list[float] = []

    def counted(epsilon: float) -> Any:
        made.append(epsilon)
        return shifted(epsilon)

    options: dict[str, Any] = {"n_records": 10, "n_fresh": 50, "store": store}
    first = compare_samplers({"a": counted}, standard, epsilons=[1.0], repeats=3, **options)
    assert len(made) == 3
    # An interruption in the middle of a line.
    whole = store.read_text()
    losses = [json.loads(line)["result"][0] for line in whole.splitlines()]
    assert row_of(first, "a", 1.0).nll == pytest.approx(statistics.mean(losses), rel=1e-12)
    assert row_of(first, "a", 1.0).nll_error == pytest.approx(
        statistics.stdev(losses) / math.sqrt(3), rel=1e-12
    )
    store.write_text(whole[:-20])
    again = compare_samplers({"a": counted}, standard, epsilons=[1.0], repeats=3, **options)
    assert len(made) == 4
    assert row_of(again, "a", 1.0).nll == row_of(first, "a", 1.0).nll
    more = compare_samplers({"a": counted}, standard, epsilons=[1.0, 2.0], repeats=4, **options)
    assert len(made) == 4 + 1 + 4
    assert row_of(more, "a", 1.0).repeats == 4
    for line in store.read_text().splitlines():
        assert json.loads(line)["key"][0] == "a"
    with pytest.raises(CorruptDataError, match="made with"):
        compare_samplers({"a": counted}, standard, **{**options, "n_fresh": 60})
    store.write_text("no result\n" + whole)
    with pytest.raises(CorruptDataError, match="line 1"):
        compare_samplers({"a": counted}, standard, **options)


def test_the_floor_is_below_what_samplers_reach() -> None:
    target = GaussianMixtureTarget([0.5], 0.1)
    fresh = target.sample(4000, seed=1)
    floor = FloorOfMollifier(2.0).fit_target(target)
    # Of a narrow mode nearly everything is at the upper limit.
    upper = negative_log_likelihood(StandardNormal(1), fresh).value - 1.0
    found = negative_log_likelihood(floor, fresh).value
    assert upper <= found + 1e-9
    assert found < upper + 0.05
    study = compare_samplers(
        {"floor": FloorOfMollifier, "reference": lambda epsilon: PublicReference()},
        lambda seed: target,
        epsilons=[2.0],
        repeats=2,
        n_fresh=500,
    )
    assert row_of(study, "floor", 2.0).nll < row_of(study, "reference", 2.0).nll - 0.8


def test_tables_and_pictures_show_every_setting() -> None:
    study = compare_samplers(
        {"shifted": shifted, "outside": lambda epsilon: PublicReference(Uniform(-1.0, 1.0))},
        standard,
        epsilons=[1.0, 2.0],
        repeats=2,
        n_fresh=100,
        bounds=(-9, 9),
    )
    lines = study.table().splitlines()
    assert lines[0].split()[:3] == ["sampler", "epsilon", "nll"]
    assert "losses" not in lines[0]
    row = row_of(study, "shifted", 2.0)
    assert f"{row.nll:.4g} ± {row.nll_error:.1g}" in lines[2]
    assert f"{row.coverage:.4g} ± {row.coverage_error:.1g}" in lines[2]
    assert lines[3].split()[:3] == ["outside", "1", "inf"]
    axes = study.plot()
    assert len(axes) == 2
    assert [line.get_label() for line in axes[0].containers] == ["shifted", "outside"]
    drawn = axes[0].containers[0].lines[0].get_xydata()
    np.testing.assert_array_equal(drawn[:, 0], [1.0, 2.0])
    shifted_rows = [row_of(study, "shifted", e).nll for e in (1.0, 2.0)]
    np.testing.assert_array_equal(drawn[:, 1], shifted_rows)
    # What is infinite is not drawn.
    assert len(axes[0].containers[1].lines[0].get_xydata()) == 0
    assert "95%" in axes[1].get_title(loc="left")
    # Without bounds there is no coverage, and no picture of it.
    plain = compare_samplers({"a": shifted}, standard, epsilons=[1.0], repeats=2, n_fresh=10)
    assert math.isnan(plain.records[0].coverage)
    assert "coverage" not in plain.table()
    assert len(plain.plot()) == 1
    with pytest.raises(InvalidTypeError):
        study.plot(3)


def test_bad_input_is_refused() -> None:
    good: dict[str, Any] = {"samplers": {"a": shifted}, "make_target": standard, "repeats": 2}
    for wrong in (
        {"samplers": {}},
        {"samplers": [shifted]},
        {"samplers": {"a": 3}},
        {"samplers": {3: shifted}},
        {"make_target": 3},
        {"epsilons": 3},
        {"epsilons": ["1"]},
    ):
        with pytest.raises(InvalidTypeError):
            compare_samplers(**(good | wrong))
    for wrong in (
        {"epsilons": []},
        {"epsilons": [0.0]},
        {"epsilons": [math.inf]},
        {"repeats": 1},
        {"n_records": 0},
        {"n_fresh": 1},
        {"level": 1.0},
    ):
        with pytest.raises(InvalidValueError):
            compare_samplers(**(good | wrong))
    for call in (
        lambda: GaussianMixtureTarget([0.0], 0.0),
        lambda: GaussianMixtureTarget([0.0], [1.0, 2.0]),
        lambda: GaussianMixtureTarget([math.nan], 1.0),
        lambda: ring_of_gaussians(0),
        lambda: random_gaussians_1d(-1),
        lambda: seed_mixture().sample(0),
        lambda: seed_mixture().log_density([0.0]),
    ):
        with pytest.raises(InvalidValueError):
            call()
    assert isinstance(seed_mixture()._mixture, Mixture)
    assert mode_coverage([0.5, 0.5], [0.5, 0.5]).value == 1.0
