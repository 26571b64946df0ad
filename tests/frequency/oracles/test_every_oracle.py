"""What every oracle of the registry must do, whatever its reports look like."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout as tn
from turnout.collecting.report_files import read_reports, write_reports
from turnout.errors import CorruptDataError, InvalidValueError, PlanMismatchError
from turnout.frequency.choice import registered

ORACLES = sorted(registered())
LABELS = ["never", "once", "twice", "often", "always"]
VALUES = ["never"] * 40 + ["once"] * 25 + ["often"] * 20 + ["always"] * 15
every = pytest.mark.parametrize("name", ORACLES)


def make(name: str, epsilon: float = 1.5) -> tn.FrequencyOracle:
    return registered()[name](epsilon, tn.Domain(LABELS))


PARTICIPATIONS = {
    "everyone": tn.Everyone(),
    "bernoulli": tn.Bernoulli(0.6),
    "personalized": tn.Personalized(np.linspace(0.2, 1.0, len(VALUES))),
}
kinds = pytest.mark.parametrize("kind", PARTICIPATIONS)


def test_the_registry_holds_the_oracles_of_the_field() -> None:
    assert set(ORACLES) >= {
        "binary_local_hashing",
        "count_mean_sketch",
        "direct_encoding",
        "hadamard_count_mean_sketch",
        "hadamard_response",
        "optimized_local_hashing",
        "optimized_unary_encoding",
        "projective_geometry_response",
        "subset_selection",
        "summation_histogram_encoding",
        "symmetric_unary_encoding",
        "threshold_histogram_encoding",
    }


@every
def test_the_realised_ratio_is_at_most_that_of_epsilon(name: str) -> None:
    for epsilon in (0.01, 0.7, 2.0, 6.0):
        oracle = make(name, epsilon)
        ratio = oracle.realized_ratio
        assert ratio > 1
        # Above the exponential of the float next below, as good as e^eps: by far more digits.
        assert math.log(ratio) <= oracle.realized_epsilon * (1 + 1e-15)
        assert oracle.realized_epsilon <= epsilon
        p, q = oracle._score_moments.own, oracle._score_moments.other
        assert p > q >= 0
        assert isinstance(ratio, Fraction)


@every
@kinds
def test_collecting_is_randomizing_and_counting(name: str, kind: str) -> None:
    oracle, who = make(name), PARTICIPATIONS[kind]
    reports = oracle.randomize(VALUES, participation=who, seed=3)
    assert reports.codes.dtype == oracle.report_dtype
    assert reports.codes.shape == (len(reports), *oracle.report_shape)
    tally = oracle.collect(VALUES, participation=who, seed=3)
    assert tally == oracle.tally(reports)
    assert tally.support.dtype == oracle._support_dtype
    assert tn.Reports.concatenate([reports]) == reports
    again = tn.Reports(
        oracle,
        who,
        reports.codes.tolist() if oracle.report_shape == () else reports.codes.copy(),
        reports.nodes,
        probabilities=reports.probabilities,
        design=reports.design,
    )
    assert again == reports
    if tally.weights is not None:
        assert reports.probabilities is not None
        np.testing.assert_allclose(
            tally.weights.total_inverse, (1 / reports.probabilities).sum(), rtol=1e-8
        )
        np.testing.assert_allclose(
            tally.weights.total_inverse_squared, (reports.probabilities**-2).sum(), rtol=1e-8
        )


@every
@kinds
def test_reports_and_tallies_travel(name: str, kind: str, tmp_path: Path) -> None:
    oracle, who = make(name), PARTICIPATIONS[kind]
    reports = oracle.randomize(VALUES, participation=who, seed=4)
    tally = oracle.tally(reports)
    for suffix in ("parquet", "arrow"):
        write_reports(reports, tmp_path / f"reports.{suffix}")
        read = read_reports(tmp_path / f"reports.{suffix}")
        assert read == reports
        assert read.oracle == oracle
        assert read.oracle.tally(read) == tally
    assert tn.Tally.from_bytes(tally.to_bytes()) == tally
    for thing in (oracle, reports, tally):
        assert pickle.loads(pickle.dumps(thing)) == thing
        assert copy.deepcopy(thing) == thing
    assert tn.Plan.from_json(tally.plan.to_json()) == tally.plan
    assert eval(repr(oracle), {name: getattr(tn, name) for name in tn.__all__}) == oracle


@every
def test_what_was_altered_is_refused(name: str) -> None:
    oracle = make(name)
    description = oracle.to_dict()
    assert tn.FrequencyOracle.from_dict(description) == oracle
    with pytest.raises(CorruptDataError):
        tn.FrequencyOracle.from_dict({**description, "colour": 1})
    other = make(name, 0.5)
    with pytest.raises(PlanMismatchError, match="epsilon"):
        other.tally(oracle.randomize(VALUES))
    if oracle._support_dtype.kind == "u":  # sums of scores may be anything
        too_many = np.full(5, 200, oracle._support_dtype)
        with pytest.raises(InvalidValueError, match="support"):
            tn.Tally(tn.Plan(oracle, tn.Everyone()), too_many, 100, 100)


@every
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_tallies_add_up_in_any_order_and_grouping(name: str, data: st.DataObject) -> None:
    oracle = make(name)
    kind = data.draw(st.sampled_from(["everyone", "bernoulli", "personalized"]))
    parts = []
    for _ in range(3):
        values = data.draw(st.lists(st.sampled_from(LABELS), min_size=1, max_size=30))
        who: Any = {"everyone": tn.Everyone(), "bernoulli": tn.Bernoulli(0.5)}.get(kind)
        if who is None:
            rates = st.floats(0.01, 1.0)
            who = tn.Personalized(
                data.draw(st.lists(rates, min_size=len(values), max_size=len(values)))
            )
        seed = data.draw(st.integers(0, 2**32))
        parts.append(oracle.collect(values, participation=who, seed=seed))
    one, two, three = parts
    assert (one + two) + three == one + (two + three)
    assert one + two == two + one
    assert (three + one + two).to_bytes() == (one + two + three).to_bytes()


@every
def test_simulated_tallies_estimate_the_truth(name: str) -> None:
    oracle = make(name)
    counts = [400_000, 300_000, 0, 200_000, 100_000]
    tally = oracle.simulate(counts, participation=tn.Bernoulli(0.5), seed=5)
    assert tally.nodes == 1_000_000
    estimate = tally.estimate()
    truth = np.array(counts) / 1e6
    # Six standard errors: five answers and a dozen oracles.
    assert (abs(estimate.frequencies - truth) < 6 * estimate.standard_errors).all()
    shuffled = tn.accounting.Shuffled(oracle, 10_000).epsilon(1e-6)
    assert 0 < shuffled <= oracle.realized_epsilon


@every
def test_noise_without_a_seed_is_fresh(name: str) -> None:
    oracle = make(name)
    first, second = oracle.randomize(VALUES * 20), oracle.randomize(VALUES * 20)
    assert first != second
