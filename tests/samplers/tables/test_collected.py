"""References that people report under local privacy: what they cost, and that they help."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.samplers import TableSampler, collect_reference, sample_population

COLUMNS: dict[str, Any] = {
    "a": list("pqrs"),
    "b": list("xyz"),
    "n": {"bounds": (0, 7), "missing": True},
}


def people(number: int, seed: int = 1) -> pd.DataFrame:
    """Columns that depend on each other, and are far from uniform."""
    generator = np.random.default_rng(seed)
    a = generator.choice(4, number, p=[0.7, 0.2, 0.05, 0.05])
    b = np.where(generator.random(number) < 0.9, a % 3, generator.integers(0, 3, number))
    n = pd.array(np.where(a == 0, 2, generator.integers(0, 8, number)), "Int64")
    return pd.DataFrame({"a": np.array(list("pqrs"))[a], "b": np.array(list("xyz"))[b], "n": n})


@pytest.mark.parametrize("pairs", [False, True])
def test_what_is_collected_is_near_the_truth(pairs: bool) -> None:
    frame = people(40_000)
    found = collect_reference(2.0, COLUMNS, frame, range(40_000), pairs=pairs, seed=1)
    assert (found.epsilon, found.users) == (2.0, 40_000)
    for name, labels in (("a", list("pqrs")), ("b", list("xyz"))):
        truth = [(frame[name] == label).mean() for label in labels]
        assert np.abs(found.marginals[name] - truth).max() < 0.05
    assert set(found.pairs) == ({("a", "b"), ("a", "n"), ("b", "n")} if pairs else set())
    if pairs:
        truth = pd.crosstab(frame["a"], frame["b"], normalize=True).to_numpy()
        assert np.abs(found.pairs["a", "b"] - truth).max() < 0.08


@pytest.mark.parametrize("pairs", [False, True])
def test_records_around_it_are_nearer_than_around_the_uniform_distribution(pairs: bool) -> None:
    public = collect_reference(2.0, COLUMNS, people(20_000, 2), range(20_000), pairs=pairs, seed=1)
    frame = people(600, 3)
    found = []
    for reference in (None, public):
        sampler = TableSampler(1.0, COLUMNS, reference=reference)
        drawn = sample_population(sampler, frame, np.repeat(range(200), 3), seed=1).draws
        shares = [frame["a"].value_counts(normalize=True), drawn["a"].value_counts(normalize=True)]
        found.append(float(shares[0].sub(shares[1], fill_value=0.0).abs().sum() / 2))
    assert found[1] < 0.5 * found[0]


def test_the_sampler_says_what_both_cost() -> None:
    public = collect_reference(0.1, COLUMNS, people(50), range(50), seed=1)
    sampler = TableSampler(0.2, COLUMNS, reference=public).fit(people(4))
    said = sampler.guarantee()
    assert "epsilon = 0.1 of each of 50 people" in said
    both = float(said.split("spends ")[1].split(" ")[0])
    assert Fraction(both) >= Fraction(0.1) + Fraction(0.2)
    assert sampler.realized_epsilon <= 0.2
    # A report of a person: no answer is more than e^epsilon times as likely.
    names = {"a": 4, "b": 3, "n": 9}
    assert tn.SampledAttribute(0.1, names).realized_epsilon <= 0.1
    assert tn.PairTables(0.1, names).realized_epsilon <= 0.1


def test_one_record_of_each_person_is_reported() -> None:
    frame = pd.DataFrame({"a": ["p"] * 990 + ["q"] * 10})
    users = [0] * 990 + list(range(1, 11))
    found = collect_reference(12.0, {"a": list("pq")}, frame, users, seed=1)
    assert found.users == 11
    assert found.marginals["a"] == pytest.approx([1 / 11, 10 / 11], abs=0.01)


@pytest.mark.parametrize("pairs", [False, True])
def test_what_nobody_was_asked_stays_uniform(pairs: bool) -> None:
    # One person reports one column, or one pair of them.
    found = collect_reference(1.0, COLUMNS, people(1), [0], pairs=pairs, seed=1)
    uniform = {"a": np.full(4, 0.25), "b": np.full(3, 1 / 3), "n": np.full(9, 1 / 9)}
    if pairs:
        even = [
            bool(np.allclose(table, np.outer(uniform[one], uniform[other])))
            for (one, other), table in found.pairs.items()
        ]
        tables: Any = found.pairs.values()
    else:
        even = [bool(np.allclose(found.marginals[name], uniform[name])) for name in COLUMNS]
        tables = found.marginals.values()
    assert even.count(True) == 2
    assert all(float(np.sum(table)) == pytest.approx(1.0) for table in tables)
    TableSampler(1.0, COLUMNS, reference=found).fit(people(3)).sample(1)


def test_what_does_not_fit_is_refused() -> None:
    frame = people(20)
    public = collect_reference(1.0, COLUMNS, frame, range(20), seed=1)
    for columns in ({"a": list("pqrs")}, {**COLUMNS, "b": list("xy")}):
        with pytest.raises(InvalidValueError, match="collected for the same columns"):
            TableSampler(1.0, columns, reference=public).fit(frame)
    with pytest.raises(InvalidValueError, match="at least three columns"):
        collect_reference(1.0, {"a": list("pqrs")}, frame, range(20), pairs=True)
    with pytest.raises(InvalidValueError, match="users"):
        collect_reference(1.0, COLUMNS, frame, range(19))
    with pytest.raises(InvalidTypeError, match="pairs"):
        collect_reference(1.0, COLUMNS, frame, range(20), pairs="yes")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="epsilon"):
        collect_reference(0.0, COLUMNS, frame, range(20))
