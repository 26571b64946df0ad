"""Studies of error and cost against epsilon and participation."""

from __future__ import annotations

from dataclasses import astuple
from types import ModuleType
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError, TurnoutError
from turnout_reproduce.studies import compare_rates
from turnout_reproduce.studies.study import Study

mpl.use("agg")

from matplotlib import pyplot as plt

SMALL: dict[str, Any] = {
    "true_counts": [5, 5],
    "epsilons": [1.0],
    "participations": [1.0],
    "repeats": 2,
    "method": "hajek",
    "postprocessing": "none",
    "oracle": tn.DirectEncoding,
    "seed": 1,
}

RATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def binomial_counts() -> list[int]:
    """50,000 values of Bin(100, .5), the data of the sampling paper: 101 answers."""
    values = np.random.default_rng(7).binomial(100, 0.5, 50_000)
    return [int(count) for count in np.bincount(values, minlength=101)]


@pytest.fixture(scope="module")
def paper() -> Study[Any]:
    return compare_rates(
        binomial_counts(), epsilons=[1.0, 4.0], participations=RATES, repeats=400, seed=11
    )


def of_epsilon(study: Study[Any], epsilon: float) -> list[Any]:
    return [record for record in study.records if record.epsilon == epsilon]


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_total_variation_falls_at_every_step_of_participation_with_falling_gains(
    paper: Study[Any], epsilon: float
) -> None:
    """Figure 3: the cost rises in proportion, the error falls ever more slowly."""
    records = of_epsilon(paper, epsilon)
    distances = np.array([record.total_variation for record in records])
    assert (np.diff(distances) < 0).all()
    assert distances[0] - distances[1] > 5 * (distances[-2] - distances[-1])
    np.testing.assert_allclose(
        [record.expected_reports for record in records], np.array(RATES) * 50_000
    )


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_mean_total_variation_is_that_of_normal_errors_with_the_exact_variances(
    paper: Study[Any], epsilon: float, statistical: ModuleType
) -> None:
    """E|N(0, v)| = sqrt(2 v / pi); the skewness of a thousand reports costs less than 1 %."""
    counts = binomial_counts()
    oracle = tn.DirectEncoding(epsilon, 101)
    for record in of_epsilon(paper, epsilon):
        variances = tn.estimator_variance(oracle, tn.Bernoulli(record.rate), true_counts=counts)
        expected = 0.5 * np.sqrt(2 / np.pi * variances).sum() / 50_000
        allowed = statistical.quantile(len(RATES)) * record.total_variation_error + 0.01 * expected
        assert abs(record.total_variation - expected) < allowed


def test_the_error_is_the_one_that_the_exact_variance_predicts(
    paper: Study[Any], statistical: ModuleType
) -> None:
    """Squared errors of 101 answers in 400 repeats; a wrong constant would stand out."""
    for record in paper.records:
        assert record.rmse == pytest.approx(record.rmse_predicted, rel=0.03)
    by_rate = {record.rate: record.rmse_predicted for record in of_epsilon(paper, 1.0)}
    assert by_rate[0.1] > by_rate[0.4] * 1.9


def test_a_larger_epsilon_gives_the_smaller_error_at_every_rate(paper: Study[Any]) -> None:
    pairs = zip(of_epsilon(paper, 1.0), of_epsilon(paper, 4.0), strict=True)
    assert all(weak.total_variation < 0.5 * strong.total_variation for strong, weak in pairs)


def test_the_cost_is_that_of_the_expected_reports(paper: Study[Any]) -> None:
    for record in paper.records:
        assert record.expected_bytes == record.expected_reports * 7 / 8  # 101 answers: 7 bits
    assert (paper.settings["nodes"], paper.settings["repeats"]) == (50_000, 400)


def test_there_is_one_record_for_each_combination_in_their_order() -> None:
    study = compare_rates(
        [60, 40], epsilons=[2.0, 1.0], participations=[0.5, 1.0], repeats=2, seed=1
    )
    settings = [(record.epsilon, record.rate) for record in study.records]
    assert settings == [(2.0, 0.5), (2.0, 1.0), (1.0, 0.5), (1.0, 1.0)]


def test_a_seed_reproduces_a_study_and_another_seed_makes_another() -> None:
    def study(seed: int | None) -> list[Any]:
        records = compare_rates(
            [700, 200, 100], epsilons=[1.0], participations=[0.2, 0.9], repeats=3, seed=seed
        ).records
        return [astuple(record) for record in records]

    assert study(5) == study(5)
    assert study(5) != study(6)
    assert study(None) != study(None)


def test_no_two_repeats_or_settings_of_a_study_share_their_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[int] = []
    simulate = tn.DirectEncoding.simulate

    def listening(oracle: tn.DirectEncoding, *arguments: Any, **named: Any) -> tn.Tally:
        drawn.append(named["seed"])
        return simulate(oracle, *arguments, **named)

    monkeypatch.setattr(tn.DirectEncoding, "simulate", listening)
    compare_rates(
        [7000, 3000],
        epsilons=[1.0, 2.0],
        participations=[0.5, 1.0],
        repeats=20,
        seed=2**64 - 1,
    )
    assert len(drawn) == len(set(drawn)) == 80


@pytest.mark.parametrize("method", ["g", "c_hat", "T", "horvitz_thompson"])
def test_every_unbiased_method_meets_its_predicted_error(method: str) -> None:
    study = compare_rates(
        binomial_counts(),
        epsilons=[2.0],
        participations=[0.2],
        repeats=200,
        method=method,
        seed=3,
    )
    (record,) = study.records
    assert study.settings["method"] == method
    assert record.rmse == pytest.approx(record.rmse_predicted, rel=0.03)


def test_the_predicted_error_of_the_biased_c_holds_its_bias() -> None:
    (record,) = compare_rates(
        [700, 200, 100], epsilons=[2.0], participations=[0.2], repeats=200, method="c", seed=3
    ).records
    assert record.rmse == pytest.approx(record.rmse_predicted, rel=0.1)


def test_post_processing_lowers_the_error_of_a_study_and_is_named_by_it() -> None:
    def study(postprocessing: str) -> Study[Any]:
        return compare_rates(
            binomial_counts(),
            epsilons=[1.0],
            participations=[0.1],
            repeats=20,
            postprocessing=postprocessing,
            seed=4,
        )

    raw, projected = study("none"), study("simplex")
    assert projected.settings["postprocessing"] == "simplex"
    assert projected.records[0].total_variation < 0.5 * raw.records[0].total_variation


def test_the_table_has_a_heading_and_a_line_for_each_setting(paper: Study[Any]) -> None:
    lines = paper.table().splitlines()
    assert len(lines) == 1 + len(paper.records)
    assert lines[0].split()[:4] == ["epsilon", "rate", "expected", "reports"]
    first = paper.records[0]
    assert lines[1].split()[:3] == ["1", "0.1", "5,000"]
    assert f"{first.total_variation:.4g} ± {first.total_variation_error:.1g}" in lines[1]


def test_the_picture_has_a_curve_for_each_epsilon_and_the_cost(paper: Study[Any]) -> None:
    (axes,) = paper.plot()
    assert [each.get_label() for each in axes.containers] == ["ε = 1", "ε = 4"]
    drawn = axes.containers[1].lines[0]
    assert tuple(drawn.get_xdata()) == RATES
    assert list(drawn.get_ydata()) == [row.total_variation for row in of_epsilon(paper, 4.0)]
    assert "cost" in axes.child_axes[0].get_xlabel()
    plt.close(axes.figure)


def _at_five(_: float, domain: Any) -> tn.FrequencyOracle:
    return tn.DirectEncoding(5.0, domain)


@pytest.mark.parametrize(
    ("argument", "wrong", "message"),
    [
        ("true_counts", None, r"true_counts must be one-dimensional.*\(\)"),
        ("true_counts", [[1, 2]], r"true_counts must be one-dim.*\(1, 2\)"),
        ("true_counts", [[1], [2, 3]], "true_counts must be a sequence"),
        ("epsilons", None, "epsilons must be .* None"),
        ("epsilons", 1.0, r"epsilons must be .* 1\.0"),
        ("participations", None, "participations must be .* None"),
        ("participations", 0.5, r"participations must be .* 0\.5"),
        ("participations", [tn.Bernoulli(0.5)], "rate must be a real .* Bernoulli"),
        ("repeats", None, "repeats must be an integer .* None"),
        ("oracle", None, "oracle must be .* None"),
        ("oracle", lambda *_: "x", r"oracle\(epsilon, domain\) must be an oracle, got 'x'"),
    ],
)
def test_a_setting_of_another_type_is_refused_by_name(
    argument: str, wrong: Any, message: str
) -> None:
    with pytest.raises(InvalidTypeError, match=message):
        compare_rates(**{**SMALL, argument: wrong})


@pytest.mark.parametrize(
    ("argument", "wrong", "message"),
    [
        ("true_counts", [5], "true_counts must have at least 2 .* got 1"),
        ("true_counts", [], "true_counts must have at least 2 .* got 0"),
        ("true_counts", [0, 0], "true_counts must hold at least one node"),
        ("true_counts", [5, -5], r"true_counts\[1\] must be a non-negative"),
        ("epsilons", [], "epsilons and participations must each hold a value"),
        ("epsilons", [0.0], "epsilon must be a finite number .* 0"),
        ("epsilons", [-1.0], "epsilon must be a finite number"),
        ("participations", [], "epsilons and participations must each hold a value"),
        ("participations", [0.0], r"rate must be a probability .* 0\.0"),
        ("participations", [1.5], r"rate must be a probability .* 1\.5"),
        ("repeats", 1, "repeats must be an integer from 2 to"),
        ("method", "best", "method must be one of .* got 'best'"),
        ("method", None, "method must be one of .* got None"),
        ("postprocessing", "softmax", "postprocessing must be one of"),
        ("postprocessing", None, "postprocessing must .* None"),
        ("seed", -1, "seed must be an integer from 0"),
        ("oracle", _at_five, r"must have at most the epsilon 1\.0"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(argument: str, wrong: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        compare_rates(**{**SMALL, argument: wrong})


@pytest.mark.parametrize("argument", SMALL)
def test_whatever_is_given_is_taken_or_refused_with_an_exception_of_turnout(argument: str) -> None:
    junk = [object(), 2**70, -(2**70), 10**400, float("nan"), "text", b"bytes", [[1], [2, 3]]]
    junk += [{"a": 1}, np.zeros((2, 2)), np.array(["a", "b"]), np.array(1j), range(3), ...]
    for value in junk:
        message = ""
        try:
            compare_rates(**{**SMALL, argument: value})
        except TurnoutError as error:
            message = str(error)
        assert len(message) < 1500, value
