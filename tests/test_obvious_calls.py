"""The calls that one tries first do what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import turnout as tn
from turnout import _kinds
from turnout.errors import InvalidValueError

ANSWERS = ["yes", "no", "no", "maybe"] * 50
LABELS = ["yes", "no", "maybe"]


def test_a_list_is_a_domain_everywhere() -> None:
    domain = tn.Domain(LABELS)
    made = [
        kind(1.0, LABELS)
        for name, kind in _kinds.known().items()
        if name not in ("memoized", "padded", "second_round")
        and kind.domain_type is tn.Domain
        and kind.__module__.startswith("turnout.")
    ]
    assert len(made) > 10
    made += [tn.HierarchicalCollection(1.0, LABELS), tn.Memoized(2.0, LABELS, first_epsilon=1.0)]
    made += [
        tn.distributed.NoisyAggregation(LABELS, 9, epsilon=1.0),  # type: ignore[arg-type]
        tn.distributed.recommend(100, LABELS, 1.0).best,
        tn.choose_oracle(1.0, LABELS).oracle,
        tn.plan(epsilon=1.0, domain=LABELS, nodes=1000).oracle,
    ]
    for each in made:
        assert each.domain == domain, each
    assert tn.samplers.FiniteMollifier(1.0, LABELS).fit(["yes"]).sample(1)[0] in LABELS
    pair = tn.SampledAttribute(1.0, {"a": LABELS, "b": ["x", "y"]})
    assert pair.domains["a"] == domain


def test_domain_and_domain_size_are_two_names_of_one_argument() -> None:
    for given in (3, LABELS, tn.Domain(LABELS)):
        one = tn.plan(epsilon=1.0, domain=given, nodes=1000)
        other = tn.plan(epsilon=1.0, domain_size=given, nodes=1000)
        assert one.oracle == other.oracle
        assert tn.choose_oracle(1.0, given).oracle == tn.choose_oracle(1.0, domain=given).oracle
    tn.optimal_participation([0.5, 1.0], 1.0, 1.0, domain=LABELS)
    with pytest.raises(InvalidValueError, match=r"domain or domain_size .*got neither"):
        tn.plan(epsilon=1.0, nodes=1000)
    with pytest.raises(InvalidValueError, match=r"domain or domain_size .*got both"):
        tn.choose_oracle(1.0, 3, domain=3)


def test_a_number_is_the_rate_of_all_everywhere() -> None:
    oracle, half = tn.DirectEncoding(1.0, LABELS), tn.Bernoulli(0.5)
    assert tn.Plan(oracle, 0.5) == tn.Plan(oracle, half)
    tree = tn.HierarchicalCollection(1.0, 4)
    calls: list[Any] = [
        lambda rate: oracle.collect(ANSWERS, participation=rate, seed=1),
        lambda rate: oracle.simulate([50, 100, 50], participation=rate, seed=1),
        lambda rate: tn.estimator_variance(oracle, rate, true_counts=[1, 2, 3]).tolist(),
        lambda rate: tn.estimator_variance(tn.mean.Duchi(1.0), rate, values=[0.1, 0.2]),
        lambda rate: tn.accounting.Shuffled(oracle, 1000, rate),
        lambda rate: tree.collect([1, 2, 3] * 50, participation=rate, seed=1).levels,
        lambda rate: tn.SampledAttribute(1.0, {"a": LABELS, "b": LABELS}).collect(
            {"a": ANSWERS, "b": ANSWERS}, participation=rate, seed=1
        ),
        lambda rate: tn.pipeline.collect(
            tn.pipeline.scan(pa.table({"v": ANSWERS}), "v"), oracle, participation=rate, seed=1
        ),
    ]  # fmt: skip
    for call in calls:
        assert call(0.5) == call(half)


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "csv", "parquet"])
def test_a_column_of_a_table_is_randomized(tmp_path: Path, kind: str) -> None:
    table = pa.table({"vote": ANSWERS, "age": [30.0] * len(ANSWERS)})
    data: Any = {"arrow": table, "pandas": table.to_pandas(), "polars": pl.from_arrow(table)}.get(
        kind
    )
    if data is None:
        data = tmp_path / f"a.{kind}"
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        frame.write_csv(data) if kind == "csv" else frame.write_parquet(data)
    oracle = tn.DirectEncoding(1.0, LABELS)
    tally = oracle.collect(data, "vote", participation=0.5, seed=1)
    scanned = tn.pipeline.scan(data, "vote")
    assert tally == tn.pipeline.collect(scanned, oracle, participation=0.5, seed=1)
    assert oracle.tally(oracle.randomize(data, "vote", participation=0.5, seed=1)) == tally
    assert tn.mean.Duchi(1.0, (0, 100)).collect(data, "age").nodes == len(ANSWERS)
    with pytest.raises(InvalidValueError, match="no column 'votes'"):
        oracle.collect(data, "votes")


def test_a_column_with_gaps_is_refused_with_the_way_out() -> None:
    frame = pd.DataFrame({"vote": [*ANSWERS, None]})
    with pytest.raises(
        InvalidValueError, match=r"1 .*answers are missing .*of survey and turnout.pipeline.scan"
    ):
        tn.DirectEncoding(1.0, LABELS).collect(frame, "vote")
