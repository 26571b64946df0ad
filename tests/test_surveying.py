"""One call from a table of answers to a table of shares with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib import pyplot

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError, UnknownLabelError

SHARES = {"maybe": 0.1, "no": 0.6, "yes": 0.3}


def table(rows: int = 6000) -> Any:
    random = np.random.default_rng(3)
    return pa.table(
        {
            "vote": random.choice(list(SHARES), rows, p=list(SHARES.values())),
            "region": random.choice(["N", "S"], rows),
            "age": random.uniform(20, 80, rows).round(1),
        }
    )


@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "csv", "parquet"])
def test_every_table_gives_the_same_shares(tmp_path: Path, kind: str) -> None:
    given = table(2000)
    data: Any = given
    if kind == "pandas":
        data = given.to_pandas()
    elif kind == "polars":
        data = pl.from_arrow(given)
    elif kind != "arrow":
        data = tmp_path / f"a.{kind}"
        writer = pl.from_arrow(given)
        writer.write_csv(data) if kind == "csv" else writer.write_parquet(data)
    expected = tn.survey(given, "vote", epsilon=1.0, participation=0.5, seed=1)
    assert tn.survey(data, "vote", epsilon=1.0, participation=0.5, seed=1).tally == expected.tally


def test_the_intervals_hold_the_shares_of_all_and_of_each_group() -> None:
    data = table()
    result = tn.survey(data, "vote", epsilon=2.0, seed=5)
    assert result.to_arrow().column_names == [
        "label", "count", "frequency", "standard_error", "low", "high",
    ]  # fmt: skip
    truth = data["vote"].to_pandas().value_counts(normalize=True)
    for record in result.to_records(1 - 1e-6):
        assert record["low"] <= truth[record["label"]] <= record["high"]
    frame = tn.survey(data, "vote", epsilon=2.0, by="region", seed=5).to_pandas(1 - 1e-6)
    shares = pd.crosstab(*(data[name].to_pandas() for name in ("region", "vote")), normalize=0)
    for row in frame.itertuples():
        assert row.low <= shares.loc[row.region, row.label] <= row.high
    assert frame["nodes"].sum() == 3 * data.num_rows


def test_a_column_of_numbers_gives_the_mean() -> None:
    data = table()
    for epsilon in (0.5, 4.0):
        result = tn.survey(data, "age", epsilon=epsilon, bounds=(0, 100), by="region", seed=2)
        means = data.to_pandas().groupby("region")["age"].mean()
        for row in result.to_pandas(1 - 1e-6).itertuples():
            assert row.low <= means[row.region] <= row.high
    assert type(result.tally.plan.oracle) is tn.mean.Hybrid


def test_the_oracle_is_that_of_least_error() -> None:
    many = pa.table({"airport": [f"A{i % 500}" for i in range(5000)]})
    chosen = tn.survey(many, "airport", epsilon=1.0, seed=1).tally.plan.oracle
    assert chosen == tn.choose_oracle(1.0, chosen.domain).oracle
    assert type(chosen) is not tn.DirectEncoding


def test_it_says_what_was_done_and_what_would_be_better() -> None:
    result = tn.survey(table(), "vote", epsilon=1.0, participation=0.5, seed=1)
    lines = str(result).splitlines()
    assert lines[0].startswith(f"6,000 people were asked 'vote' and {result.tally.received:,} ans")
    # e is 2.71828...: never said to be less.
    assert "no report is more than 2.719 times as likely" in lines[1]
    assert "Made with a seed: fit for tests only" in lines[2]
    assert "The 3 labels are those of the data" in lines[3]
    assert "would count with an error of about" in lines[4]
    # All digits: epsilon is never said to be less.
    assert "at epsilon 1.2345612." in str(tn.survey(table(), "vote", epsilon=1.2345612))
    stated = tn.survey(table(), "vote", epsilon=1.0, labels=["maybe", "no", "yes", "x"], seed=1)
    assert "those of the data" not in str(stated)
    assert len(stated.to_records()) == 4
    axes = result.plot()
    pyplot.close(axes.figure)


def test_what_is_missing_is_never_an_answer_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("vote\n" + 50 * 'yes\nno\nNA\n""\nyes\nno\n')
    with pytest.raises(
        InvalidValueError, match=r"100 answers are missing .*missing \(--missing\), of survey"
    ):
        tn.survey(path, "vote", epsilon=1.0)
    assert tn.survey(path, "vote", epsilon=1.0, missing="drop").tally.nodes == 200
    kept = tn.survey(path, "vote", epsilon=1.0, missing="none").estimate
    assert kept.domain.labels == ("no", "yes", "none")
    labels = ["NA", "no", "yes", "none"]
    taken = tn.survey(path, "vote", epsilon=9.0, missing="none", labels=labels).estimate
    assert taken["NA"].frequency == pytest.approx(1 / 6, abs=0.05)
    dropped = tn.survey(path, "vote", epsilon=1.0, missing="drop")
    assert "Rows without an answer were left out: who" in str(dropped)
    gaps = pa.table({"vote": ["yes", None, "no"] * 50})
    dropped = tn.survey(gaps, "vote", epsilon=1.0, missing="drop")
    assert "50 rows without an answer were left out" in str(dropped)
    frame = pd.DataFrame({"vote": ["yes", None, "no", float("nan")] * 50})
    with pytest.raises(InvalidValueError, match="answers are missing"):
        tn.survey(frame, "vote", epsilon=1.0, labels=["no", "yes"])


def test_a_label_that_is_stated_is_never_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("country\n" + 2000 * "NA\nDE\n")
    stated = tn.survey(path, "country", epsilon=4.0, labels=["NA", "DE"], missing="drop", seed=1)
    assert stated.tally.nodes == 4000
    assert stated.estimate["NA"].frequency == pytest.approx(0.5, abs=0.05)
    named = tn.survey(
        path, "country", epsilon=4.0, labels=["NA", "DE"], missing="drop", missing_values=["NA"]
    )
    assert named.tally.nodes == 2000


def test_a_number_stands_for_what_is_missing() -> None:
    data = pa.table({"v": [1, 2, 3] * 50})
    assert tn.survey(data, "v", epsilon=1.0, missing=99).estimate.domain.labels == (1, 2, 3)
    gaps = pa.table({"v": [1.0, None, 3.0] * 50})
    for bounds in ((0, 9), tn.Bounds(0, 9)):
        filled = tn.survey(gaps, "v", epsilon=1.0, bounds=bounds, missing=5)
        assert filled.tally.nodes == 150


def test_bad_input_is_refused_by_name() -> None:
    data = table(100)
    with pytest.raises(InvalidValueError, match="trust must be"):
        tn.survey(data, "vote", epsilon=1.0, trust="nobody")
    with pytest.raises(InvalidValueError, match="labels are of answers and bounds of numbers"):
        tn.survey(data, "vote", epsilon=1.0, labels=["a", "b"], bounds=(0, 1))
    with pytest.raises(UnknownLabelError, match="column 'vote'"):
        tn.survey(data, "vote", epsilon=1.0, labels=["a", "b"])
    with pytest.raises(InvalidValueError, match="column"):
        tn.survey(data, "votes", epsilon=1.0)
    with pytest.raises(InvalidTypeError, match="participation must be a rate"):
        tn.survey(data, "vote", epsilon=1.0, participation="half")
    with pytest.raises(InvalidValueError, match="epsilon"):
        tn.survey(data, "vote", epsilon=0.0)
    with pytest.raises(InvalidValueError, match="method must be"):
        tn.survey(data, "age", epsilon=1.0, bounds=(0, 100), method="T")
