"""One call from a table of answers to a table of shares with intervals."""

from __future__ import annotations

import math
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
from turnout.surveying import SurveyResult, SurveyResults
from turnout.surveying.numbers import Grid

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
        result = tn.survey(
            data, "age", epsilon=epsilon, bounds=(0, 100), quantiles=(), by="region", seed=2
        )
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
    assert lines[0].startswith(
        f"6,000 people have an answer in 'vote' and {result.tally.received:,}"
    )
    # e is 2.71828...: never said to be less.
    assert "no report is more than 2.719 times as likely" in lines[1]
    assert "Made with a seed: use for tests only" in lines[2]
    assert "The 3 labels come from the data" in lines[3]
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
        InvalidValueError,
        match=r"100 of 300 answers .*Pass missing \(--missing\), of survey",
    ):
        tn.survey(path, "vote", epsilon=1.0)
    assert tn.survey(path, "vote", epsilon=1.0, missing="drop").tally.nodes == 200
    kept = tn.survey(path, "vote", epsilon=1.0, missing="none").estimate
    assert kept.domain.labels == ("no", "yes", "none")
    labels = ["NA", "no", "yes", "none"]
    taken = tn.survey(path, "vote", epsilon=9.0, missing="none", labels=labels).estimate
    assert taken["NA"].frequency == pytest.approx(1 / 6, abs=0.05)
    dropped = tn.survey(path, "vote", epsilon=1.0, missing="drop")
    assert "has 300 rows. Left out: 100 without an answer. What fol" in str(dropped)
    assert "who left it open is not protected" in str(dropped)
    assert dropped.left_out == dropped.tally.left_out == tn.LeftOut(unanswered=100)
    gaps = pa.table({"vote": ["yes", None, "no"] * 50})
    dropped = tn.survey(gaps, "vote", epsilon=1.0, missing="drop")
    assert "Left out: 50 without an answer." in str(dropped)
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
    with pytest.raises(
        InvalidValueError, match="pass labels for answers or bounds for numbers, not both"
    ):
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


def test_several_columns_share_epsilon_in_the_way_of_less_error() -> None:
    data = table(3000)
    names = ["vote", "region"]
    sampled = tn.survey(data, names, epsilon=1.0, participation=0.5, seed=1)
    assert isinstance(sampled, SurveyResults)
    split = tn.survey(data, names, epsilon=12.0, seed=1)
    assert isinstance(split, SurveyResults)
    assert "drawn at random, at epsilon 1.0" in str(sampled)
    assert "each of them at epsilon 6.0, which add up" in str(split)
    for result, rate in ((sampled, 0.25), (split, 1.0)):
        assert list(result) == names
        for name, one in result.items():
            assert one.tally.nodes == 3000
            assert one.tally.participation.uniform_rate == rate
            truth = data[name].to_pandas().value_counts(normalize=True)
            for record in one.to_records(1 - 1e-6):
                assert record["low"] <= truth[record["label"]] <= record["high"]
    # Everybody reports once, and the parts of epsilon never add up to more.
    everybody = tn.survey(data, names, epsilon=1.0, seed=1)
    assert sum(one.tally.received for one in everybody.values()) == 3000
    ratio = math.prod(one.tally.plan.oracle.realized_ratio for one in split.values())
    assert math.log(ratio) <= 12.0
    with pytest.raises(InvalidValueError, match="no column 'x'"):
        split["x"]


def test_columns_of_a_survey_are_those_of_the_same_people() -> None:
    gaps = pa.table({"a": ["x", None, "y", "x"] * 50, "b": ["u", "v", "NA", "v"] * 50})
    result = tn.survey(gaps, ["a", "b"], epsilon=12.0, missing="drop", seed=1)
    assert {one.tally.nodes for one in result.values()} == {100}
    assert "200 rows were read. Left out: 100 without an answer." in str(result)
    assert result.left_out == result["a"].left_out == tn.LeftOut(unanswered=100)
    kept = tn.survey(gaps, ["a", "b"], epsilon=12.0, missing={"a": "none", "b": "drop"}, seed=1)
    assert {one.tally.nodes for one in kept.values()} == {150}
    assert kept["a"].estimate["none"].frequency == pytest.approx(1 / 3, abs=0.1)
    both = gaps.append_column("c", pa.array([1.0, 2.0, 3.0, 4.0] * 50))
    options: dict[str, Any] = {"epsilon": 9.0, "bounds": {"c": (0, 9)}, "by": "b", "seed": 1}
    for name, one in tn.survey(both, ["a", "c"], missing="drop", **options).items():
        assert list(one.estimate) == [("u",), ("v",)], name
        assert [record["nodes"] for record in one.to_records()][:1] == [50]
    with pytest.raises(InvalidValueError, match="50 rows have no group in 'b'"):
        tn.survey(both, "c", **{**options, "bounds": (0, 9)})
    [by] = tn.survey(gaps, ["a"], epsilon=4.0, missing="drop", by="b", seed=1).values()
    assert by.to_pandas()["nodes"].sum() == 200


def test_mean_and_quantiles_come_from_one_histogram() -> None:
    random = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "share": random.beta(2, 5, 8000),
            "age": random.integers(18, 90, 8000),
            "stars": random.integers(1, 6, 8000),
            "group": random.choice(["a", "b"], 8000),
        }
    )
    for name, bounds in (("share", (0, 1)), ("age", (0, 120)), ("stars", (1, 5))):
        result = tn.survey(frame, name, epsilon=2.0, bounds=bounds, seed=3)
        truth = [frame[name].mean(), *frame[name].quantile([0.25, 0.5, 0.75], "inverted_cdf")]
        for record, true in zip(result.to_records(1 - 1e-6), truth, strict=True):
            assert record["low"] <= true <= record["high"]
            assert record["low"] <= record["value"] <= record["high"]
        assert "one histogram" in str(result)
    grouped = tn.survey(frame, "age", epsilon=2.0, bounds=(0, 120), by="group", seed=3)
    for key, each in frame.groupby("group"):
        mean = grouped.estimate[key].mean
        low, high = mean.interval(1 - 1e-6)
        assert low <= each["age"].mean() <= high
        pyplot.close(grouped.estimate[key].plot().figure)
    pyplot.close(grouped.plot().figure)
    alone = tn.survey(frame, "age", epsilon=2.0, bounds=(0, 120), quantiles=(), seed=3)
    assert alone.estimate.standard_error < result_error(frame)


def result_error(frame: pd.DataFrame) -> float:
    result = tn.survey(frame, "age", epsilon=2.0, bounds=(0, 120), seed=3)
    return float(result.estimate.mean.standard_error)


def test_moving_numbers_to_points_keeps_means_and_encloses_quantiles() -> None:
    for values in (np.full(4000, 0.4037), np.random.default_rng(2).random(4000)):
        grid = Grid.of(tn.Bounds(0, 1), integers=False)
        moved = grid.points[grid.codes(values, 7)]
        assert np.abs(moved - values).max() < grid.step
        error = grid.step / 2 / 4000**0.5
        assert abs(moved.mean() - values.mean()) < 5 * error
        for share in (0.1, 0.5, 0.9):
            exact, other = (
                np.quantile(each, share, method="inverted_cdf") for each in (values, moved)
            )
            assert other - grid.step <= exact <= other + grid.step


def test_aggregators_count_with_their_guarantee() -> None:
    data = table(1500)
    result = tn.survey(data, "vote", epsilon=1.0, trust="aggregators", seed=4)
    local = tn.survey(data, "vote", epsilon=1.0, seed=4)
    assert 10 * result.estimate.standard_errors.max() < local.estimate.standard_errors.max()
    truth = data["vote"].to_pandas().value_counts(normalize=True)
    for record in result.to_records(1 - 1e-6):
        assert record["low"] <= truth[record["label"]] <= record["high"]
    assert str(result.mechanism.guarantee) in str(result)
    assert result.mechanism.epsilon == 1.0
    both = tn.survey(data, ["vote", "region"], epsilon=1.0, trust="aggregators", seed=4)
    assert sum(one.mechanism.epsilon for one in both.values()) <= 1.0
    grouped = tn.survey(data, "vote", epsilon=1.0, by="region", trust="aggregators", seed=4)
    assert list(grouped.estimate) == [("N",), ("S",)]
    assert grouped.to_pandas()["nodes"].sum() == 3 * 1500
    for wrong, message in (
        ({"bounds": (0, 100)}, "aggregators count answers"),
        ({"participation": 0.5}, "participation applies to local reports"),
        ({"method": "c_hat"}, "method applies to local reports"),
    ):
        column = "age" if "bounds" in wrong else "vote"
        with pytest.raises(InvalidValueError, match=message):
            tn.survey(data, column, epsilon=1.0, trust="aggregators", **wrong)
    for wrong, message in (
        ({"delta": 1e-6}, "delta applies to aggregators"),
        ({"parties": 3}, "parties applies to aggregators"),
        ({"by": "vote"}, "by must not name 'vote': groups are written unprotected"),
        ({"by": ["region", "region"]}, "by must name different columns"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            tn.survey(data, "vote", epsilon=1.0, **wrong)
    with pytest.raises(InvalidTypeError, match="by must be a name or names of columns"):
        tn.survey(data, "vote", epsilon=1.0, by=3)
    with pytest.raises(InvalidValueError, match="by must not name 'region'"):
        tn.survey(data, ["vote", "region"], epsilon=1.0, by="region")


def test_several_columns_are_panels_of_one_picture() -> None:
    data = table(2000)
    several = tn.survey(data, ["vote", "age"], epsilon=4.0, bounds={"age": (0, 100)}, seed=1)
    figure = several.plot(level=0.9)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title.partition(":")[0] for title in titles] == ["vote", "age"]
    assert any("90 % intervals" in text.get_text() for text in figure.axes[0].get_legend().texts)
    pyplot.close(figure)
    grouped = tn.survey(data, ["vote", "age"], epsilon=4.0, bounds={"age": (0, 100)}, by="region")
    with pytest.raises(InvalidValueError, match="plot grouped columns one by one"):
        grouped.plot()


def test_groups_that_aggregators_counted_are_panels_with_limits_that_hold_together() -> None:
    result = tn.survey(table(2000), "vote", epsilon=1.0, by="region", trust="aggregators", seed=1)
    figure = result.plot(simultaneous="bonferroni")
    titles = [axes.get_title(loc="left").partition(":")[0] for axes in figure.axes]
    assert titles == ["N", "S"]
    # Six intervals hold at once: each is of a higher level.
    words = [text.get_text() for text in figure.axes[0].get_legend().texts]
    assert any("99.17 % intervals" in text for text in words)
    pyplot.close(figure)


def test_several_columns_are_named_by_column() -> None:
    data = table(200)
    for wrong, error, message in (
        ({"labels": ["maybe", "no", "yes"]}, InvalidTypeError, "labels must be a dictionary"),
        (
            {"bounds": {"size": (0, 1)}},
            InvalidValueError,
            "bounds names 'size', which is not among",
        ),
        ({"participation": tn.Personalized([0.5] * 200)}, InvalidValueError, "must be one rate"),
        ({"epsilon": float("nan")}, InvalidValueError, "epsilon must be"),
        ({"epsilon": "1"}, InvalidTypeError, "epsilon must be"),
    ):
        with pytest.raises(error, match=message):
            tn.survey(data, ["vote", "region"], **{"epsilon": 1.0, **wrong})
    for trust in ("local", "aggregators"):
        with pytest.raises(InvalidValueError, match="epsilon must be"):
            tn.survey(data, "vote", epsilon=float("inf"), trust=trust)
    with pytest.raises(InvalidValueError, match="the one answer 'x', and labels are at least 2"):
        tn.survey(pa.table({"v": ["x"] * 9}), "v", epsilon=1.0)
    with pytest.raises(InvalidValueError, match="different columns"):
        tn.survey(data, ["vote", "vote"], epsilon=1.0)


def test_combinations_of_answers_are_one_report() -> None:
    data = pa.table({"sex": ["f", "m"] * 3000, "vote": ["no", "yes", "no", "no"] * 1500})
    result = tn.survey(data, ["sex", "vote"], epsilon=3.0, joint=True, seed=1)
    assert isinstance(result, SurveyResult)
    assert result.column == "sex × vote"
    assert result.tally.oracle.columns["vote"].labels == ("no", "yes")
    assert result.estimate["m", "yes"].low < 0.25 < result.estimate["m", "yes"].high
    assert result.to_arrow().column_names[:2] == ["sex", "vote"]
    shares = result.estimate.conditional("vote", given="sex")
    assert shares["m", "yes"].low < 0.5 < shares["m", "yes"].high
    for arguments, message in (
        ({"column": ["vote"]}, "joint needs several columns, but column names one"),
        ({"bounds": {"vote": (0, 1)}}, "joint applies to columns of answers"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            tn.survey(
                data, **{"column": ["sex", "vote"], "epsilon": 1.0, "joint": True, **arguments}
            )
    with pytest.raises(InvalidTypeError, match="joint must be True or False"):
        tn.survey(data, ["sex", "vote"], epsilon=1.0, joint=["vote"])  # type: ignore[call-overload]
