"""What a survey of several columns says and shares, and what every survey refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import turnout as tn
from turnout.errors import EstimatorError, InvalidTypeError, InvalidValueError
from turnout.surveying.local import part_of

GAPS = pa.table({"v": ["a", "b", None, "a"] * 100, "w": ["a", None, "b", "a"] * 100})


@pytest.mark.parametrize("trust", ["local", "aggregators"])
def test_rows_that_any_column_leaves_out_are_told(trust: str) -> None:
    for missing in ({"v": "unk", "w": "drop"}, {"v": "drop", "w": "unk"}):
        result = tn.survey(GAPS, ["v", "w"], epsilon=2.0, missing=missing, trust=trust, seed=1)
        assert "Left out: 100 without an answer." in str(result)
        assert result.left_out == result["v"].estimate.left_out == tn.LeftOut(unanswered=100)
    kept = tn.survey(
        GAPS, ["v", "w"], epsilon=2.0, missing={"v": "x", "w": "y"}, trust=trust, seed=1
    )
    assert "left out" not in str(kept).lower()
    assert not kept.left_out


def test_rows_without_a_group_are_left_out_whichever_column_says_so() -> None:
    data = GAPS.append_column("g", pa.array(["x", "y", "x", None] * 100))
    for missing in ({"v": "unk", "w": "drop"}, {"w": "drop", "v": "unk"}, {"v": "drop", "w": "u"}):
        found = tn.survey(data, ["v", "w"], epsilon=2.0, by="g", missing=missing, seed=1)
        assert found["v"].tally.nodes == found["w"].tally.nodes == 200
        assert "100 without an answer, 100 without a group." in str(found)
        each = {key: tally.left_out for key, tally in found["v"].tally.items()}
        assert sum(each.values(), tn.LeftOut()) == tn.LeftOut(unanswered=100)
        assert found["v"].tally.of_no_group == tn.LeftOut(ungrouped=100)
        assert found.left_out == tn.LeftOut(unanswered=100, ungrouped=100)
    whole = data.select(["w", "g"]).append_column("v", pa.array(["a", "b"] * 200))
    with pytest.raises(InvalidValueError, match="100 rows have no group"):
        tn.survey(whole, ["w", "v"], epsilon=2.0, by="g", missing={"w": "unk"})


def test_the_same_people_report_of_every_column() -> None:
    random = np.random.default_rng(1)
    columns = {name: random.choice(["a", "b"], 3000) for name in ("v", "w", "g")}
    columns["age"] = random.integers(0, 9, 3000)
    data = pa.table(columns)
    options: dict[str, Any] = {"bounds": {"age": (0, 8)}, "seed": 1, "participation": 0.3}
    for by in (None, "g"):
        found = tn.survey(data, ["v", "w", "age"], epsilon=30.0, by=by, **options)
        [received] = {one.tally.received for one in found.values()}
        assert 750 < received < 1050
        assert f"{received:,} reported each of them" in str(found)
        if by:
            for group in ("a", "b"):
                assert len({one.tally[group].received for one in found.values()}) == 1
    # Nearly without noise, both are counts of the very same people.
    twice = pa.table({"v": columns["v"], "w": columns["v"]})
    found = tn.survey(twice, ["v", "w"], epsilon=40.0, participation=0.3, seed=2)
    assert found["v"].estimate["a"].frequency == pytest.approx(found["w"].estimate["a"].frequency)


def test_the_error_that_aggregators_promise_is_what_they_reach() -> None:
    data = pa.table({"v": ["a", "b"] * 1000, "w": ["a", "b", "b", "b"] * 500})
    local = tn.survey(data, ["v", "w"], epsilon=1.0, seed=1)
    reached = tn.survey(data, ["v", "w"], epsilon=1.0, trust="aggregators", seed=1)
    for name, one in local.items():
        error = 100 * float(reached[name].estimate.standard_errors.max())
        assert f"an error of about {error:.2g} points" in str(one)


def test_epsilon_and_delta_are_checked_before_they_are_shared() -> None:
    assert all(3 * part_of(each, 3) <= each for each in (0.1, 1e-320, 1e300))
    for epsilon in (-1.0, float("nan"), float("inf"), "1", None, True):
        with pytest.raises((InvalidValueError, InvalidTypeError), match="epsilon must be"):
            tn.survey(GAPS, ["v", "w"], epsilon=epsilon, missing="drop", trust="aggregators")  # type: ignore[arg-type]
    for small in (1e-320, 5e-324):
        found = tn.survey(
            GAPS, ["v", "w"], epsilon=1.0, missing="drop", trust="aggregators", delta=small
        )
        assert found["v"].mechanism.delta == 0
    for delta in (-1, float("nan"), float("inf"), "1", 2):
        with pytest.raises((InvalidValueError, InvalidTypeError), match="delta must be"):
            tn.survey(
                GAPS, ["v", "w"], epsilon=1.0, missing="drop", trust="aggregators", delta=delta
            )  # type: ignore[call-overload]


def test_a_target_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    for wrong in ({"epsilon": -1.0}, {"epsilon": 1.0, "delta": -1.0}, {"epsilon": 1, "seed": -1}):
        with pytest.raises(InvalidValueError, match="must be"):
            tn.survey(tmp_path / "not_there.csv", "v", trust="aggregators", **wrong)  # type: ignore[call-overload]


def test_nothing_is_estimated_of_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("v,w,g\n")
    labels = {"v": ["a", "b"], "w": ["a", "b"]}
    for trust in ("local", "aggregators"):
        for names in (["v"], ["v", "w"]):
            for by in (None, "g"):
                with pytest.raises(EstimatorError, match=r"estimate: there are no rows$"):
                    tn.survey(
                        path, names, epsilon=1.0, by=by, trust=trust,
                        labels={name: labels[name] for name in names},
                    )  # fmt: skip
    none = pa.table({"v": pa.nulls(3, pa.string())})
    with pytest.raises(EstimatorError, match="no rows but those left out: 3 without an answer"):
        tn.survey(none, "v", epsilon=1.0, labels=["a", "b"], missing="drop")


def test_the_conditions_of_every_guarantee_are_shown() -> None:
    data = pa.table({"v": ["a", "b"] * 50, "w": ["a", "b"] * 50, "g": ["x"] * 98 + ["y"] * 2})
    options: dict[str, Any] = {"epsilon": 1.0, "trust": "aggregators", "seed": 1}
    for by in (None, "g"):
        both = tn.survey(data, ["v", "w"], by=by, **options)
        found = [both["v"].mechanism] if by is None else list(both["v"].mechanism.values())
        assert all(str(one.guarantee) in str(both) for one in found)
        assert str(both).count("does not share what it sees") == len(
            {str(one.guarantee) for one in found}
        )
    # Where the guarantees of groups differ, each says what it is of.
    grouped = tn.survey(data, "v", by="g", delta=1e-3, **{**options, "epsilon": 20.0})
    texts = {str(one.guarantee) for one in grouped.mechanism.values()}
    assert all(text in str(grouped) for text in texts)
    assert (len(texts) > 1) == ("Of 'v' in x:" in str(grouped))


def test_arguments_that_say_nothing_are_refused() -> None:
    data = pa.table({"age": [1.0, 2.0] * 50})
    with pytest.raises(InvalidValueError, match="method must be 'hajek' for quantiles"):
        tn.survey(
            data, "age", epsilon=1.0, bounds=(0, 9), quantiles=[0.5], method="horvitz_thompson"
        )
    for quantiles in ([0.5], ()):
        with pytest.raises(InvalidValueError, match="quantiles need a column with bounds"):
            tn.survey(data, "age", epsilon=1.0, quantiles=quantiles)
    with pytest.raises(InvalidValueError, match=r"turnout\.pipeline\.collect"):
        tn.survey(data, "age", epsilon=1.0, participation=tn.Personalized([0.5] * 100))


def test_a_label_for_what_is_missing_is_one_of_every_column() -> None:
    other = pa.table({"v": ["a", "b", None, "a"] * 9, "w": ["c", None, "b", "c"] * 9})
    for labels in (None, {"v": ["a", "b"], "w": ["b", "c"]}):
        with pytest.raises(InvalidValueError, match="column 'w': missing must be a label"):
            tn.survey(other, ["v", "w"], epsilon=1.0, missing="a", labels=labels)
        found = tn.survey(other, ["v", "w"], epsilon=1.0, missing="b", labels=labels, seed=1)
        assert found["w"].estimate.domain.labels == ("b", "c")


def test_a_text_that_pandas_takes_for_missing_is_no_answer(tmp_path: Path) -> None:
    texts = ["", "#N/A", "#N/A N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "None", "n/a", "null"]
    texts += ["-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "-NaN", "-nan", "NaN", "nan"]
    path = tmp_path / "a.csv"
    path.write_text("vote,id\n" + "\n".join(["yes,1", "no,2", *(f"{text},3" for text in texts)]))
    assert int(pd.read_csv(path)["vote"].isna().sum()) == len(texts)
    for gaps in (path, pa.table({"vote": ["yes", "no", *texts]})):
        assert tn.survey(gaps, "vote", epsilon=1.0, missing="drop", seed=1).tally.nodes == 2
    with_dash = pa.table({"vote": ["yes", "-", " "]})
    assert tn.survey(with_dash, "vote", epsilon=1.0, seed=1).tally.nodes == 3


def test_a_round_of_aggregators_is_a_table() -> None:
    result = tn.survey(GAPS, "v", epsilon=1.0, missing="drop", trust="aggregators", seed=1)
    assert result.tally.to_pandas().equals(result.tally.estimate.to_pandas())
    assert "<table>" in result.tally._repr_html_()
