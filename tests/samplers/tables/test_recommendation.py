"""The recommended way to draw: its numbers, computed apart, and that samplers take it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest

from turnout.errors import InvalidValueError
from turnout.samplers import TableSampler, recommend
from turnout.samplers.tables.nearness import made_up_people

COLUMNS: dict[str, Any] = {"a": ["x", "y"], "b": list("pqr"), "n": (0, 3)}
SHAPE = (2, 3, 4)


def frame(codes: np.ndarray) -> pd.DataFrame:
    names = (np.array(["x", "y"]), np.array(list("pqr")), np.arange(4))
    return pd.DataFrame({n: v[c] for n, v, c in zip(COLUMNS, names, codes.T, strict=True)})


@pytest.mark.parametrize(("epsilon", "records"), [(4.0, 3), (1.0, 5)])
def test_the_numbers_are_those_of_the_laws_of_fitted_samplers(epsilon: float, records: int) -> None:
    found = recommend(epsilon, COLUMNS, records=records)
    every = np.array(list(itertools.product(*map(range, SHAPE))))
    columns: list[float] = []
    pairs: list[float] = []
    for own in made_up_people(SHAPE, records):
        assert own.shape == (records, 3)
        one = TableSampler(epsilon, COLUMNS, records=records).fit(frame(own))
        law = np.exp(one.score_samples(frame(every)))
        for size, distances in ((1, columns), (2, pairs)):
            for chosen in itertools.combinations(range(3), size):
                whole = dict.fromkeys(itertools.product(*(range(SHAPE[c]) for c in chosen)), 0.0)
                for row, mass in zip(every, law, strict=True):
                    whole[tuple(row[list(chosen)])] += mass
                for row in own:
                    whole[tuple(row[list(chosen)])] -= 1.0 / records
                distances.append(sum(map(abs, whole.values())) / 2)
    assert found.distances[found.method] == pytest.approx((np.mean(columns), np.mean(pairs)))
    assert one.method_ == found.method
    assert next(iter(found.distances)) == found.method
    listed = [sum(found.distances[method]) for method in ("minimax", "mollifier")]
    assert sum(found.distances[found.method]) == min(listed)


def test_what_is_recommended_depends_on_what_is_known() -> None:
    assert recommend(4.0, COLUMNS, records=2).method == "minimax"
    assert recommend(1.0, COLUMNS, records=50).method == "mollifier"
    assert recommend(1.0, COLUMNS).method == "mollifier"
    many = {name: {"bounds": (0, 999), "bins": 40} for name in "abc"}
    wide = recommend(1.0, many, records=2)
    assert (wide.method, wide.combinations) == ("resampling", 64_000)
    assert list(wide.distances) == ["resampling", "reference"]
    assert wide.distances["resampling"] < wide.distances["reference"]
    public = frame(np.zeros((20, 3), int))
    assert "minimax" not in recommend(4.0, COLUMNS, reference=public, records=5).distances
    alone = recommend(2.0, {"a": ["x", "y"]}, records=4)
    assert alone.distances[alone.method][1] == 0.0
    assert [row["method"] for row in alone.to_records() if row["recommended"]] == [alone.method]
    with pytest.raises(InvalidValueError, match="records"):
        recommend(1.0, COLUMNS, records=0)
