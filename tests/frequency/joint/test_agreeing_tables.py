"""Tables of two that agree: projected and shrunk so that they still do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import turnout as tn
from turnout.errors import EstimatorError
from turnout.frequency.joint.agreeing import _POWERS, _SCALES, _kept, drawn_together, nearest

COLUMNS = {"a": 6, "b": 6, "c": 6}
ALPHA = 1e-6


def people(number: int, *, alike: float) -> dict[str, Any]:
    """Answers of which a part is the same to all questions."""
    drawn = np.random.default_rng(5)
    one = drawn.integers(0, 6, number) // 2 * 2
    other = {name: drawn.choice(6, number, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1]) for name in COLUMNS}
    same = drawn.random(number) < alike
    return {name: np.where(same, one, column) for name, column in other.items()}


def truth_of(table: dict[str, Any], first: str, second: str) -> Any:
    counts = np.zeros((6, 6))
    np.add.at(counts, (table[first], table[second]), 1.0)
    return counts / counts.sum()


@pytest.mark.parametrize("seed", range(8))
def test_the_nearest_table_with_sums_is_that_of_a_general_solver(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    cells = drawn.normal(1 / 12, 0.15, (3, 4))
    rows, columns = drawn.dirichlet([0.5] * 3), drawn.dirichlet([0.5] * 4)
    if seed % 3 == 0:
        rows, columns = np.array([0.7, 0.0, 0.3]), np.array([0.0, 0.2, 0.8, 0.0])
    found = nearest(cells, rows, columns)
    assert found.min() >= 0.0
    assert found.sum(axis=1) == pytest.approx(rows, abs=1e-12)
    assert found.sum(axis=0) == pytest.approx(columns, abs=1e-12)
    sums = np.vstack([np.kron(np.eye(3), np.ones(4)), np.kron(np.ones(3), np.eye(4))])
    solved = optimize.minimize(
        lambda x: ((x - cells.ravel()) ** 2).sum(),
        np.outer(rows, columns).ravel(),
        jac=lambda x: 2 * (x - cells.ravel()),
        bounds=[(0, 1)] * 12,
        constraints={"type": "eq", "fun": lambda x: (sums @ x - np.append(rows, columns))[:-1],
                     "jac": lambda _: sums[:-1]},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert solved.success
    assert found.ravel() == pytest.approx(solved.x, abs=1e-6)


def test_what_is_kept_beyond_independence_is_averaged_by_the_evidence() -> None:
    drawn = np.random.default_rng(3)
    independent = np.outer(drawn.dirichlet([1] * 4), drawn.dirichlet([1] * 5))
    variances = drawn.uniform(1e-4, 4e-4, (4, 5))
    beyond = drawn.normal(0, 0.02, (4, 5))
    weights, parts = [], []
    for power in _POWERS:
        growing = independent ** (2 * power) / (independent ** (2 * power)).sum()
        for place, scale in enumerate(_SCALES):
            if place or power == 0:
                more = scale * growing * (beyond**2).sum()
                law = stats.norm(0, np.sqrt(variances + more))
                weights.append(np.exp(law.logpdf(beyond).sum()))
                parts.append(more / (variances + more))
    expected = np.average(parts, axis=0, weights=weights)
    assert _kept(beyond, variances, independent) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("alike", [0.0, 0.1, 1.0])
def test_tables_that_are_shrunk_in_agreement_are_nearer_to_the_truth(alike: float) -> None:
    pairs = tn.PairTables(1.0, COLUMNS)
    table = people(20000, alike=alike)
    errors: dict[str, float] = {}
    weights = []
    for seed in range(6):
        estimate = pairs.collect(table, seed=seed).estimate()
        agreeing = estimate.consistent()
        shrunken = agreeing.shrink()
        sums = {name: estimate.marginal(name).shrink().frequencies for name in COLUMNS}
        made = {
            "consistent": agreeing,
            "simplex": agreeing.project("simplex"),
            "apart": estimate.shrink(),
            "shrunk": shrunken,
        }
        for key, (first, second) in pairs.pairs.items():
            cells = shrunken[key].table
            assert cells.min() >= 0.0
            assert cells.sum(axis=1) == pytest.approx(sums[first], abs=1e-12)
            assert cells.sum(axis=0) == pytest.approx(sums[second], abs=1e-12)
            truth = truth_of(table, first, second)
            for name, each in made.items():
                found = ((each[key].table - truth) ** 2).sum()
                errors[name] = errors.get(name, 0.0) + found
            # Shrunk each by itself first, then made to agree: the other order.
            apart = nearest(made["apart"][key].table, sums[first], sums[second])
            errors["other order"] = errors.get("other order", 0.0) + ((apart - truth) ** 2).sum()
            how = shrunken[key].shrinkage
            assert how is not None
            assert sum(how.weights.values()) == pytest.approx(1.0, abs=1e-3)
            weights.append(how.weights["independence"])
    assert errors["shrunk"] < 0.6 * errors["consistent"]
    assert errors["shrunk"] < errors["simplex"]
    assert errors["shrunk"] < 1.05 * errors["other order"]
    if alike < 1.0:
        assert errors["shrunk"] < 0.9 * errors["apart"]
        assert np.mean(weights) > 0.5
    else:
        assert np.mean(weights) < 0.2


def test_the_error_is_near_that_of_the_best_of_two_extremes() -> None:
    # To keep what was estimated, and to take the questions for independent.
    drawn = np.random.default_rng(8)
    shares = np.full(6, 1 / 6)
    lost, best = 0.0, 0.0
    for strength in (0.0, 0.01, 0.03):
        truth = np.outer(shares, shares)
        turned = strength * np.outer([1, -1, 0, 0, 1, -1], [1, 0, -1, 1, -1, 0])
        truth = truth + turned
        for _ in range(20):
            noise = drawn.normal(0, 0.02, (6, 6))
            noise -= noise.mean(axis=0)
            noise -= noise.mean(axis=1)[:, None]
            margin = shares, np.full(6, 1e-12), shares
            made, how = drawn_together(truth + noise, np.full((6, 6), 0.02**2), margin, margin)
            lost += float(((made - truth) ** 2).sum())
            best += min(((made - truth) ** 2).sum(), (noise**2).sum(), (turned**2).sum())
            assert 0.0 <= how.weights["independence"] <= 1.0
    assert lost < 1.6 * best


def test_tables_agree_before_they_are_projected_or_shrunk() -> None:
    pairs = tn.PairTables(1.0, COLUMNS)
    estimate = pairs.collect(people(3000, alike=0.3), participation=0.5, seed=1).estimate()
    for change in ("shrink", "project"):
        apart = estimate.shrink() if change == "shrink" else estimate.project("simplex")
        with pytest.raises(EstimatorError, match=rf"consistent first: consistent\(\).{change}\(\)"):
            apart.consistent()
    agreeing = estimate.consistent()
    for name, made in agreeing.consistent().items():
        assert made.frequencies == pytest.approx(agreeing[name].frequencies, abs=1e-15)
    for method in ("simplex", "norm_sub", "clip_normalize"):
        projected = agreeing.project(method)
        assert projected.postprocessing == f"consistent_{method}"
        shares = {name: estimate.marginal(name).project(method).frequencies for name in COLUMNS}
        for key, (first, second) in pairs.pairs.items():
            expected = nearest(agreeing[key].table, shares[first], shares[second])
            assert projected[key].table == pytest.approx(expected, abs=1e-14)
        again = agreeing.shrink().project(method)
        assert again["a", "b"].table == pytest.approx(projected["a", "b"].table, abs=1e-14)
        assert projected.consistent().postprocessing == "consistent"
        assert projected.shrink().postprocessing == "consistent_empirical_bayes"
    back = agreeing.shrink().project("none")
    assert back.postprocessing == "none"
    assert "shrunk by 'consistent_empirical_bayes'" in repr(agreeing.shrink()["a", "b"])
    assert (back["a", "b"].frequencies == estimate["a", "b"].frequencies).all()
    for made in (agreeing, agreeing.shrink(), projected):
        for key in pairs.pairs:
            limits, before = made[key].interval(0.9), estimate[key].interval(0.9)
            np.testing.assert_array_equal(limits.low, before.low)
            np.testing.assert_array_equal(limits.high, before.high)
        shares = made.conditional("a", given="b")
        np.testing.assert_array_equal(
            shares.interval().high, estimate.conditional("a", given="b").interval().high
        )


def test_intervals_of_tables_that_were_shrunk_in_agreement_hold_as_often_as_they_say() -> None:
    # One cell of each table, and one share among others: of people of their own.
    pairs = tn.PairTables(2.0, COLUMNS)
    table = people(3000, alike=0.3)
    held = asked = 0
    for seed in range(70):
        made = pairs.collect(table, seed=seed).estimate().consistent().shrink()
        for key, (first, second) in pairs.pairs.items():
            truth = truth_of(table, first, second)
            limits = made[key].interval(0.9)
            place = (seed * 7) % 36
            held += bool(limits.contains(truth.ravel())[place])
            asked += 1
    assert stats.binom.cdf(held, asked, 0.88) > ALPHA
    assert stats.binom.sf(held, asked, 0.93) > ALPHA


def test_without_noise_tables_stay_as_they_are() -> None:
    pairs = tn.PairTables(40.0, COLUMNS, oracle=tn.DirectEncoding)
    estimate = pairs.collect(people(40000, alike=0.5), seed=1).estimate()
    agreeing, shrunken = estimate.consistent(), estimate.consistent().shrink()
    for key in pairs.pairs:
        assert abs(agreeing[key].frequencies - shrunken[key].frequencies).max() < 0.004
    exact = np.outer([0.5, 0.5], [0.2, 0.8])
    nothing = np.zeros((2, 2))
    rows, columns = exact.sum(axis=1), exact.sum(axis=0)
    made, _ = drawn_together(
        exact, nothing, (rows, nothing[0], rows), (columns, nothing[0], columns)
    )
    assert made == pytest.approx(exact, abs=1e-12)
