"""Frames of several libraries, types of columns, and what is refused."""

from __future__ import annotations

import datetime
import math
import time
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError, NotFittedError
from turnout.samplers import PrivacyBudget, TableSampler
from turnout.samplers.finite_law import base_of_points

NOON = datetime.datetime(2024, 3, 1, 12)

COLUMNS: dict[str, Any] = {
    "age": (17, 91),
    "hours": {"bounds": (0.0, 100.0), "missing": True},
    "sex": ["f", "m"],
    "grade": {"labels": [1, 2, 3], "ordered": True, "missing": True},
    "member": bool,
    "day": (datetime.date(2020, 1, 1), datetime.date(2024, 12, 31)),
    "at": (NOON, NOON + datetime.timedelta(days=1)),
}

ROWS: dict[str, list[Any]] = {
    "age": [17, 91, 40],
    "hours": [0.0, None, 100.0],
    "sex": ["f", "f", "m"],
    "grade": [1, None, 3],
    "member": [True, False, True],
    "day": [datetime.date(2020, 1, 1), datetime.date(2024, 12, 31), datetime.date(2022, 2, 2)],
    "at": [NOON, NOON + datetime.timedelta(days=1), NOON + datetime.timedelta(hours=1)],
}

SMALL: dict[str, Any] = {"age": (17, 91), "sex": ["f", "m"]}

MINE = pl.DataFrame({"age": [30, 31], "sex": ["f", "m"]})


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_frame_gives_a_frame_of_its_library(library: Any) -> None:
    sampler = TableSampler(2.0, COLUMNS).fit(library(ROWS))
    assert sampler.method_ == "resampling"
    assert np.isfinite(sampler.score(library(ROWS)))
    drawn = sampler.sample(50, budget=PrivacyBudget(100.0), seed=1)
    assert type(drawn) is type(library(ROWS))
    table = pl.DataFrame(drawn) if library is not pa.table else pl.from_arrow(drawn)
    assert table.columns == list(COLUMNS)
    assert len(table) == 50
    # Every draw can be fitted on: it is within what columns say.
    assert TableSampler(2.0, COLUMNS).fit(drawn).sample(1).shape == (1, len(COLUMNS))
    assert {type(value) for value in table["day"].to_list()} == {datetime.date}
    assert {type(value) for value in table["hours"].to_list()} == {float, type(None)}


def test_types_of_a_draw_do_not_tell_whether_something_is_missing() -> None:
    whole = pd.DataFrame({"grade": [1, 2], "age": [17, 18]})
    holed = pd.DataFrame({"grade": [1.0, None], "age": [17, 18]})
    columns = {"grade": {"labels": [1, 2, 3], "missing": True}, "age": (17, 91)}
    kinds = []
    for mine in (whole, holed):
        drawn = TableSampler(1.0, columns).fit(mine).sample(60, budget=PrivacyBudget(60), seed=2)
        kinds.append(drawn.dtypes.astype(str).to_dict())
    assert kinds[0] == kinds[1]


def test_a_draw_is_closer_to_the_person_where_epsilon_is_larger() -> None:
    mine = pl.DataFrame({"age": [30] * 20, "sex": ["f"] * 20})
    shares = []
    for epsilon in (0.5, 2.0, 6.0):
        sampler = TableSampler(epsilon, SMALL).fit(mine)
        drawn = sampler.sample(2_000, budget=PrivacyBudget(20_000), seed=1)
        near = drawn["age"].is_between(26, 35) & (drawn["sex"] == "f")
        shares.append(float(near.mean()))
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] > 0.6


def test_a_public_table_is_the_reference() -> None:
    generator = np.random.default_rng(1)
    ages = generator.normal(60, 5, 2_000).round().clip(17, 91).astype(int)
    public = pd.DataFrame({"age": ages, "sex": np.where(ages > 60, "f", "m")})
    sampler = TableSampler(0.1, SMALL, reference=public).fit(MINE)
    drawn = sampler.sample(2_000, budget=PrivacyBudget(1_000), seed=1)
    assert abs(float(drawn["age"].mean()) - 60) < 3
    # The pair of columns is in the reference too.
    old = drawn.filter(pl.col("age") > 66)
    assert float((old["sex"] == "f").mean()) > 0.85


def test_few_records_and_combinations_take_the_minimax_law() -> None:
    columns = {"sex": ["f", "m"], "member": bool}
    mine = pl.DataFrame({"sex": ["f"], "member": [True]})
    one = TableSampler(2.0, columns, records=1).fit(mine)
    many = TableSampler(2.0, columns).fit(mine)
    assert (one.method_, many.method_) == ("minimax", "mollifier")
    # Randomized response: e^epsilon / (e^epsilon + 3).
    assert np.exp(one.score(mine)) == pytest.approx(np.exp(2.0) / (np.exp(2.0) + 3), rel=1e-9)


@pytest.mark.parametrize("public", [False, True])
def test_a_large_epsilon_leaves_little_of_the_reference(public: bool) -> None:
    columns = {"a": list(range(6)), "b": list(range(6)), "c": list(range(6))}
    generator = np.random.default_rng(3)
    table = pl.DataFrame(dict(zip("abc", generator.integers(0, 6, (3, 900)), strict=True)))
    mine = pl.DataFrame({"a": [1, 2, 2], "b": [3, 3, 4], "c": [5, 5, 5]})
    apart = []
    for epsilon in (6.0, 12.0):
        sampler = TableSampler(epsilon, columns, reference=table if public else None).fit(mine)
        masses = np.array(sampler._weights, float).reshape(6, 6, 6) / sampler._weights.sum()
        of_c = masses.sum(axis=(0, 1))
        apart.append(1.0 - of_c[5])
        assert masses.sum() == pytest.approx(1.0)
    # A fixed tenth of the reference would be 1/12 of the draws.
    assert apart[1] < 0.02 < apart[0]


def test_a_draw_is_paid_for_once() -> None:
    with pytest.raises(NotFittedError):
        TableSampler(1.0, SMALL).sample(1)
    sampler = TableSampler(1.0, SMALL).fit(MINE)
    assert sampler.sample(1).columns == ["age", "sex"]
    with pytest.raises(tn.errors.BudgetExceededError):
        sampler.sample(1)


def test_parameters_are_those_of_scikit_learn() -> None:
    from sklearn.base import clone

    sampler = TableSampler(2.0, SMALL, records=3)
    copied = clone(sampler.fit(MINE))
    assert copied.get_params() == sampler.get_params()
    with pytest.raises(NotFittedError):
        copied.sample(1)
    assert repr(copied).startswith("TableSampler(epsilon=2.0, columns={'age': (17, 91)")


def test_a_hundred_million_combinations_need_no_list_of_them() -> None:
    columns = {f"c{place}": list(range(100)) for place in range(6)}
    mine = pl.DataFrame({name: [5, 5, 6] for name in columns})
    started = time.process_time()
    for _ in range(5):
        TableSampler(2.0, columns).fit(mine).sample(1)
    # A list of 10^12 combinations would never end.
    assert time.process_time() - started < 60


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (None, "columns must be a dictionary"),
        ({}, "columns must have at least one column"),
        ({"age": 3}, r"columns\['age'\] must be a pair"),
        ({"age": (3, 1)}, "low < high"),
        ({"age": (1, 2, 3)}, "low < high"),
        ({"age": (0.0, float("nan"))}, "finite"),
        ({"age": (0, 2**62 + 1)}, r"must be from -2\^62 to 2\^62; floats as bounds ask"),
        ({"age": (0.0, float("inf"))}, "finite"),
        ({"age": (1, datetime.date(2020, 1, 1))}, "of one type"),
        ({"age": (False, True)}, "of one type"),
        ({"age": []}, "must all be texts"),
        ({"age": ["a"]}, "from 2 to"),
        ({"age": ["a", "a"]}, "must be different"),
        ({"age": ["a", 1]}, "must all be texts"),
        ({"age": {"bounds": (1, 2), "labels": ["a", "b"]}}, "and not both"),
        ({"age": {"bounds": (1, 2), "ordered": True}}, "must not have ordered"),
        ({"age": {"labels": ["a", "b"], "bins": 3}}, "must not have bins"),
        ({"age": {"bounds": (1, 9), "bins": 1}}, "bins"),
        ({"age": {"bounds": (1, 9), "missing": 1}}, "missing"),
        ({"age": {"bounds": (1, 9), "width": 1}}, "width"),
        ({3: (1, 2)}, "a name in columns"),
    ],
)
def test_columns_that_say_nothing_are_refused_by_name(given: Any, problem: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=problem):
        TableSampler(1.0, given).fit(MINE)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ({"age": [30, 92], "sex": ["f", "f"]}, "a whole number from 17 to 91 in column 'age'"),
        ({"age": [30.5], "sex": ["f"]}, "a whole number from 17 to 91 in column 'age'"),
        ({"age": [float("inf")], "sex": ["f"]}, "a whole number"),
        ({"age": ["30"], "sex": ["f"]}, "a whole number"),
        ({"age": [True], "sex": ["f"]}, "a whole number"),
        ({"age": [30], "sex": ["SECRET"]}, "one of the labels in column 'sex'"),
        ({"age": [30], "sex": [None]}, "a missing value in column 'sex', row 0"),
        ({"age": [30]}, "has no 'sex'"),
        ({"age": [], "sex": []}, "at least one record"),
    ],
)
def test_records_that_cannot_be_are_refused_and_not_shown(rows: Any, problem: str) -> None:
    sampler = TableSampler(1.0, SMALL).fit(MINE)
    with pytest.raises(InvalidValueError, match=problem) as caught:
        sampler.score_samples(pl.DataFrame(rows))
    assert "SECRET" not in str(caught.value)
    with pytest.raises(InvalidValueError, match=problem):
        TableSampler(1.0, SMALL).fit(pl.DataFrame(rows))


def test_columns_of_equal_names_are_refused() -> None:
    frames: list[Any] = [
        pd.DataFrame([[30, "f", "f"]], columns=["age", "sex", "sex"]),
        pa.table([[30], ["f"], [1], [2]], names=["age", "sex", "more", "more"]),
    ]
    for frame in frames:
        with pytest.raises(InvalidValueError, match=r"^X must have columns of different names"):
            TableSampler(1.0, SMALL).fit(frame)


def test_text_in_columns_of_other_types_is_named_and_not_shown() -> None:
    columns = {"day": (datetime.date(2024, 1, 1), datetime.date(2024, 12, 31)), "grade": [1, 2]}
    good = {"day": [datetime.date(2024, 1, 5)], "grade": [1]}
    for name, value in (("day", "2024-01-05"), ("grade", "1")):
        with pytest.raises(InvalidValueError, match="row 0 is text: convert") as caught:
            TableSampler(1.0, columns).fit(pd.DataFrame({**good, name: [value]}))
        assert f"column {name!r}" in str(caught.value)
        assert "05" not in str(caught.value)
    label = TableSampler(1.0, {"sex": ["f", "m"]})
    with pytest.raises(InvalidValueError, match=r"the value of row 0 is not$"):
        label.fit(pd.DataFrame({"sex": ["x"]}))


def test_a_time_with_a_time_zone_is_refused_with_the_reason() -> None:
    columns = {"at": (datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 2))}
    times = pd.to_datetime(pd.Series(["2024-01-01T10:00"])).dt.tz_localize("UTC")
    with pytest.raises(InvalidValueError, match="a time without a time zone from 2024-01-01"):
        TableSampler(1.0, columns).fit(pd.DataFrame({"at": times}))


def test_what_is_no_frame_is_refused() -> None:
    for given in (3, [[30, "f"]], None):
        with pytest.raises(InvalidTypeError, match="X must be a frame"):
            TableSampler(1.0, SMALL).fit(given)
    with pytest.raises(InvalidTypeError, match="reference must be a frame"):
        TableSampler(1.0, SMALL, reference=3).fit(MINE)


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("reference", [None, ROWS])
def test_everybody_gives_one_record(library: Any, reference: Any) -> None:
    data = library({name: values * 4 for name, values in ROWS.items()})
    users = [row % 5 for row in range(12)]
    public = None if reference is None else library(reference)
    sampler = TableSampler(2.0, COLUMNS, reference=public)
    drawn = tn.samplers.sample_population(sampler, data, users, seed=1)
    assert drawn.users.tolist() == [0, 1, 2, 3, 4]
    assert type(drawn.draws) is type(data)
    assert drawn.draws.shape == (5, len(COLUMNS))
    assert len(drawn) == 5
    again = tn.samplers.sample_population(sampler, data, users, seed=1, n_jobs=2)
    assert str(again.draws) == str(drawn.draws)
    assert set(drawn.estimate().columns) == set(COLUMNS)


def test_whose_record_cannot_be_is_said_and_not_which() -> None:
    data = pl.DataFrame({"age": [30, 31], "sex": ["f", "SECRET"]})
    with pytest.raises(InvalidValueError, match=r"no draw for user 'ann': .*'sex'") as caught:
        tn.samplers.sample_population(TableSampler(1.0, SMALL), data, ["bob", "ann"])
    assert "SECRET" not in str(caught.value)
    holed = pl.DataFrame({"age": [30, None], "sex": ["f", "m"]})
    with pytest.raises(InvalidValueError, match="no draw for user 'ann': X has a missing value"):
        tn.samplers.sample_population(TableSampler(1.0, SMALL), holed, ["bob", "ann"])
    with pytest.raises(InvalidTypeError, match=r"^columns\['age'\] must be a pair"):
        tn.samplers.sample_population(TableSampler(1.0, {"age": 3}), data, ["bob", "ann"])
    with pytest.raises(InvalidTypeError, match="data must be a frame"):
        tn.samplers.sample_population(TableSampler(1.0, SMALL), [[3, "f"]], ["bob"])


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 2.5, 6.0, 40.0])
def test_the_base_of_one_record_keeps_most_values(epsilon: float) -> None:
    generator = np.random.default_rng(8)
    for shares in (
        np.full(9, 1 / 9),
        generator.dirichlet(np.ones(12)),
        np.array([0.98, 0.01, 0.01]),
    ):
        reference = np.rint(shares * 2.0**50).astype(np.uint64)

        def kept(base: float, shares: np.ndarray = shares) -> float:
            own = np.minimum(base * math.exp(epsilon) * shares, 1.0 - base * (1.0 - shares))
            return float((shares * own).sum())

        found = base_of_points(epsilon, reference)
        grid = np.exp(np.linspace(-epsilon, 0.0, 20_001))
        assert math.exp(-epsilon) <= found <= 1.0
        # No base of a fine grid is better, and the chosen one is no end of it by accident.
        assert kept(found) >= max(kept(base) for base in grid) - 1e-12
    equal = base_of_points(epsilon, np.full(9, 1000, dtype=np.uint64))
    assert equal == pytest.approx(9 / (math.exp(epsilon) + 8), rel=1e-12)


def test_cells_of_different_weight_keep_one_value_at_a_large_epsilon() -> None:
    columns = {"age": (17, 91), "sex": ["f", "m"]}
    for age in (17, 20, 91):
        mine = pd.DataFrame({"age": [age] * 20, "sex": ["f"] * 20})
        sampler = TableSampler(30.0, columns, records=1).fit(mine)
        drawn = sampler.sample(500, budget=PrivacyBudget(1e9), seed=3)
        # Of 500 draws at e^-30 none is of another cell.
        assert (drawn["sex"] == "f").all()
        assert ((drawn["age"] - age).abs() <= 5).all()
