"""The study of weights: against simulation, and against the paper's table."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from turnout.errors import InvalidTypeError, InvalidValueError
from turnout_reproduce.studies import compare_weightings
from turnout_reproduce.studies.weighting import PRINTED

TABLE_2 = {
    (0.1, 0.4, 0.7, 1.0): (0.0316, 0.1477, 0.3045, 0.5162),
    (0.1, 0.1, 0.8, 1.0): (0.0333, 0.0333, 0.3885, 0.5448),
    (0.1, 0.1, 0.1, 1.0): (0.0517, 0.0517, 0.0517, 0.8449),
    (0.1, 0.8, 0.7, 1.0): (0.0259, 0.3017, 0.2495, 0.4229),
}


def test_the_study_simulates_what_it_computes(statistical: ModuleType) -> None:
    frequencies = np.array([0.5, 0.3, 0.1, 0.06, 0.04])
    made = compare_weightings(
        [0.1, 0.4, 1.0], [100, 300, 50], frequencies=frequencies, repeats=20_000, seed=1
    )
    for record in made.records:
        assert record.simulated is not None
        assert record.simulated_error is not None
        distance = abs(record.simulated - record.population_trace) / record.simulated_error
        assert distance < statistical.quantile(len(made.records)), record
    errors = {record.method: record.population_trace for record in made.records}
    assert errors["population"] < errors["inverse_variance"] < errors["unweighted"]
    assert errors["unweighted"] < errors["consistent"]
    assert made.find(method="numerical").trace == pytest.approx(
        made.find(method="inverse_variance").trace, rel=1e-9
    )


def test_table_2_of_the_paper() -> None:
    for name, (epsilons, weighted, _) in PRINTED.items():
        study = compare_weightings(epsilons, [250] * 4)
        best, even, least = (
            study.find(method=method) for method in ("inverse_variance", "unweighted", "consistent")
        )
        assert tuple(round(weight, 4) for weight in best.weights) == TABLE_2[epsilons]
        assert best.trace < even.trace < least.trace
        if name != "s3":  # its printed error does not fit the formula
            assert best.trace == pytest.approx(weighted, rel=0.3)
    # With Fractions of nothing but the definition: s1.
    trace = 1 / sum(250 * float(np.expm1(eps)) for eps in (0.1, 0.4, 0.7, 1.0))
    found = compare_weightings([0.1, 0.4, 0.7, 1.0], [250] * 4).find(method="inverse_variance")
    assert found.trace == pytest.approx(trace, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"repeats": 1}, "repeats must be 0 or at least 2"),
        ({"repeats": -1}, "repeats must be an integer"),
        ({"repeats": 5, "variance": lambda levels: levels}, "repeats must be 0 with a variance"),
        ({"frequencies": [0.5, 0.6]}, "frequencies must add up to 1"),
        ({"frequencies": [1.5, -0.5]}, "frequencies must be non-negative"),
        ({"frequencies": []}, "frequencies must be non-negative"),
        ({"seed": -1}, "seed"),
        ({"variance": lambda levels: levels[:1]}, "variance must give one number"),
        ({"variance": lambda levels: -levels}, r"variance\(epsilons\)\[0\] must be"),
    ],
)
def test_bad_input_of_the_study(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        compare_weightings([0.5, 1.0], [10, 10], **arguments)


def test_groups_and_methods_are_refused_by_name() -> None:
    for sizes, message in (([1, 2], "one number for each of the 1 groups"), (["x"], "sizes must")):
        with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
            compare_weightings([1.0], sizes)
    with pytest.raises(InvalidValueError, match=r"the study has no record with .*'best'"):
        compare_weightings([1.0], [1]).find(method="best")
