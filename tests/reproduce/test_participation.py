"""Figures and noise levels of the participation paper, against computations of another kind."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from turnout.accounting import RandomParticipation
from turnout_reproduce import (
    Curve,
    Outcome,
    Scale,
    chosen,
    participation,
    participation_curves,
    participation_training,
)
from turnout_reproduce.participation_curves import real_delta, real_epsilon


def run(name: str) -> Outcome:
    return chosen([f"participation/{name}"])[0].run(Scale())


@pytest.fixture(scope="module")
def figures() -> dict[int, Outcome]:
    return {number: run(f"figure-{number}") for number in range(1, 6)}


@pytest.fixture(scope="module")
def noise_levels() -> Outcome:
    return run("noise-levels")


def gaussian(epsilon: float, sigma: float) -> float:
    """Theorem 2.4 of the paper."""
    low, high = 1 / (2 * sigma) - epsilon * sigma, -1 / (2 * sigma) - epsilon * sigma
    return float(stats.norm.cdf(low) - math.exp(epsilon) * stats.norm.cdf(high))


def poisson(epsilon: float, rate: float, sigma: float) -> float:
    """Theorem 5.1, with ``log(1 + q (e^eps' - 1))`` for what equation (8) prints."""
    return rate * gaussian(math.log1p(math.expm1(epsilon) / rate), sigma)


def weak(epsilon: float, p: float, q: float, sigma: float) -> float:
    """Theorem 5.2, with the second argument of equation (11) as it is printed."""
    inner = math.log1p(math.expm1(epsilon) / (p * q))
    beta = math.exp(epsilon - inner)
    away = 0.0 if p * q == 1 else p * (1 - q) / (1 - p * q)
    return p * q * gaussian(inner + math.log(beta + (1 - beta) * away), sigma)


def curve(outcome: Outcome, label: str) -> Curve:
    (found,) = (one for one in outcome.curves if one.label == label)
    return found


def drawn(found: Curve) -> list[tuple[float, float]]:
    return [(x, y) for x, y in zip(found.x, found.y, strict=True) if not math.isnan(y)]


@pytest.mark.parametrize(("number", "sigma"), [(1, 1.0), (4, 3.0)])
def test_baselines_against_epsilon_are_the_papers_corrected_formulas(
    figures: dict[int, Outcome], number: int, sigma: float
) -> None:
    formulas: tuple[tuple[str, Callable[[float], float]], ...] = (
        ("central shuffling", lambda epsilon: poisson(epsilon, 0.1 * 0.1, sigma)),
        ("only local sampling", lambda epsilon: poisson(epsilon, 0.1, sigma)),
        ("weak client sampling", lambda epsilon: weak(epsilon, 0.1, 0.1, sigma)),
    )
    for label, formula in formulas:
        points = drawn(curve(figures[number], label))
        assert len(points) > 5
        for epsilon, delta in points:
            assert delta == pytest.approx(formula(epsilon), rel=1e-6)


def test_baselines_against_noise_and_rate_are_the_papers_corrected_formulas(
    figures: dict[int, Outcome],
) -> None:
    for sigma, delta in drawn(curve(figures[3], "weak client sampling")):
        assert delta == pytest.approx(weak(0.1, 0.1, 0.1, sigma), rel=1e-6)
    for sigma, epsilon in drawn(curve(figures[2], "weak client sampling")):
        assert weak(epsilon, 0.1, 0.1, sigma) == pytest.approx(1e-6, rel=1e-6)
    for sigma, epsilon in drawn(curve(figures[2], "central shuffling")):
        assert poisson(epsilon, 0.1 * 0.1, sigma) == pytest.approx(1e-6, rel=1e-6)
    for q, epsilon in drawn(curve(figures[5], "weak client sampling")):
        assert weak(epsilon, min(1.0, 1e-4 / q), q, 1.0) == pytest.approx(1e-6, rel=1e-5)
    for q, epsilon in drawn(curve(figures[5], "only local sampling")):
        assert poisson(epsilon, q, 1.0) == pytest.approx(1e-6, rel=1e-6)


def seen_delta(mechanism: RandomParticipation, epsilon: float, angle: float, width: float) -> float:
    """Integrate the divergence of a client on squares: gradients at an angle to the new one."""
    p, q, sigma = mechanism.client_rate, mechanism.sample_rate, mechanism.noise_multiplier
    d = mechanism.local_size
    reach = d + 1 + 9 * sigma
    line = np.arange(-reach, reach, width * sigma)
    turned = np.array([math.cos(angle), math.sin(angle)])

    def density(mean: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
        x, y = (stats.norm.pdf(line, at, sigma) for at in mean)
        return np.outer(x, y)

    new = np.array([1.0, 0.0])
    masses = stats.binom.pmf(np.arange(d + 1), d, q)
    absent = sum(mass * density(i * turned) for i, mass in enumerate(masses))
    present = sum(mass * density(i * turned + new) for i, mass in enumerate(masses))
    nobody = density(np.zeros(2))
    one = (1 - p) * nobody + p * ((1 - q) * absent + q * present)
    other = (1 - p) * nobody + p * absent
    gaps = [one - math.exp(epsilon) * other, other - math.exp(epsilon) * one]
    return float(max(np.maximum(gap, 0.0).sum() for gap in gaps) * (width * sigma) ** 2)


@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [
        (RandomParticipation(0.1, 0.1, 1, 1.0), 0.5),  # aligned is larger
        (RandomParticipation(0.1, 0.3, 8, 1.0), 0.5),  # a right angle is larger
        (RandomParticipation(0.3, 0.5, 5, 0.7), 0.2),
        (RandomParticipation(0.5, 0.05, 6, 2.0), 0.01),
    ],
)
def test_real_clients_lose_what_integration_says(
    mechanism: RandomParticipation, epsilon: float
) -> None:
    truth = max(seen_delta(mechanism, epsilon, angle, 0.02) for angle in (0.0, math.pi / 2))
    found = real_delta(mechanism, epsilon)
    assert 0.98 * truth < found < 1.001 * truth
    assert found <= mechanism.delta(epsilon)
    assert real_delta(mechanism, real_epsilon(mechanism, found)) == pytest.approx(found, rel=1e-5)


def test_both_clients_are_needed() -> None:
    from turnout.accounting.paper import theorem_4_1_delta

    def aligned(size: int) -> float:
        return float(theorem_4_1_delta(0.5, 0.1, 0.1, size, 1.0))

    assert real_delta(RandomParticipation(0.1, 0.1, 1, 1.0), 0.5) == aligned(1)
    assert real_delta(RandomParticipation(0.1, 0.1, 10, 1.0), 0.5) > 20 * aligned(10)


def test_no_epsilon_is_left_where_delta_is_never_reached() -> None:
    assert real_epsilon(RandomParticipation(0.1, 0.1, 1, 1.0), 0.5) == 0.0


@pytest.mark.parametrize("number", range(1, 6))
def test_the_truth_lies_between_real_clients_and_the_bound(
    figures: dict[int, Outcome], number: int
) -> None:
    for size in participation_curves.SIZES:
        below, above, claimed = (
            np.array(curve(figures[number], f"{kind}, d = {size}").y)
            for kind in ("real client", "sound bound", "Theorem 4.1")
        )
        both = ~np.isnan(below)
        assert (below[both] <= above[both] * (1 + 1e-6)).all()
        assert both.sum() > 5
        # The theorem is the divergence of one of the two clients.
        known = ~np.isnan(claimed)
        assert (claimed[known] <= below[known] * (1 + 1e-4)).all()


def verdicts(outcome: Outcome, part: str) -> list[str]:
    found: list[str] = [one.verdict for one in outcome.findings if part in one.what]
    assert found
    return found


@pytest.mark.parametrize("number", [pytest.param(1, marks=pytest.mark.everyday), 2, 3, 4, 5])
def test_the_theorem_is_found_wrong(figures: dict[int, Outcome], number: int) -> None:
    found = verdicts(figures[number], "Theorem 4.1")
    assert set(found) == {"paper is wrong"}
    assert set(verdicts(figures[number], "sound bound")) <= {"agrees", "not printed"}


def test_a_sound_theorem_would_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        participation_curves,
        "theorem",
        lambda mechanism, wanted, given: getattr(mechanism, wanted)(given),
    )
    for name in ("figure-1", "figure-2", "figure-5"):
        assert set(verdicts(run(name), "Theorem 4.1")) == {"agrees"}


def test_an_unsound_bound_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    true = participation_curves.Axes.bound

    def halved(axes: Any, mechanism: Any, point: float) -> float:
        share = 0.5 if isinstance(mechanism, RandomParticipation) else 1.0
        return share * true(axes, mechanism, point)

    monkeypatch.setattr(participation_curves.Axes, "bound", halved)
    assert verdicts(run("figure-1"), "lies between CS and WCS; sound") == ["paper is wrong"]
    assert verdicts(run("figure-5"), "sound bounds and baselines") == ["paper is wrong"]


def test_schemes_that_are_close_would_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verdicts(run("figure-3"), "real client / CS") == ["differs", "differs"]
    # At this noise all schemes are close to the sampling of single elements.
    monkeypatch.setattr(participation, "_LEVEL", 0.0)
    assert verdicts(run("figure-3"), "real client / CS") == ["agrees", "agrees"]


def test_noise_levels(noise_levels: Outcome) -> None:
    ours = {finding.what: finding.ours for finding in noise_levels.findings}
    assert weak(0.015, 0.001, 0.1, ours["6.1, WCS: noise needed"]) == pytest.approx(1e-6, rel=1e-6)
    assert weak(0.015, 0.1, 0.001, ours["6.2, WCS: noise needed"]) == pytest.approx(1e-6, rel=1e-6)
    assert poisson(0.015, 0.1, ours["6.1, OLS: noise needed"]) == pytest.approx(1e-6, rel=1e-6)
    assert poisson(0.015, 0.001, ours["6.2, OLS: noise needed"]) == pytest.approx(1e-6, rel=1e-6)
    assert ours["6.1, OLS: delta at 22.4"] == pytest.approx(poisson(0.015, 0.1, 22.4), rel=1e-6)
    assert ours["6.1, proposed: noise that the sound bound needs"] == pytest.approx(
        2.37328, abs=6e-6
    )
    assert ours["6.2, proposed: noise that the sound bound needs"] == pytest.approx(
        0.80866, abs=6e-6
    )
    assert ours["6.1, proposed: noise that equation (6) asks for"] == pytest.approx(
        2.3715, abs=1e-5
    )
    assert set(verdicts(noise_levels, "proposed: noise")) == {"paper is wrong"}
    assert set(verdicts(noise_levels, "S: delta at")) == {"paper is wrong"}
    assert verdicts(noise_levels, "WCS: noise") == ["differs", "agrees"]
    assert verdicts(noise_levels, "OLS: noise") == ["agrees", "agrees"]


def test_noise_that_is_enough_would_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = participation_training.SECTIONS
    enough = dataclasses.replace(
        first, noise={"proposed": (2.3715, 1e-4), "WCS": (7.6652, 1e-4), "OLS": (22.4975, 1e-4)}
    )
    monkeypatch.setattr(participation_training, "SECTIONS", (enough, second))
    outcome = run("noise-levels")
    assert verdicts(outcome, "6.1, proposed: noise that equation") == ["agrees"]
    assert (
        verdicts(outcome, "6.1, WCS: noise") == verdicts(outcome, "6.1, OLS: noise") == ["agrees"]
    )
    # Less than the bound needs, and the gap between the two analyses.
    assert verdicts(outcome, "6.1, proposed: noise that the sound") == ["paper is wrong"]
