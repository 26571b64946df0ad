"""The study of oracles side by side."""

from __future__ import annotations

import math
import re
from typing import Any

import matplotlib as mpl
import pytest

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.attributes import PaddedOracle
from turnout.frequency.choice import registered
from turnout_reproduce.studies import compare_oracles

mpl.use("agg")

COUNTS = [5000, 3000, 1500, 400, 100]


def test_every_oracle_meets_its_prediction() -> None:
    study = compare_oracles(COUNTS, epsilons=[1.0, 3.0], repeats=40, seed=7)
    assert {row.oracle for row in study.records} == {
        found.__name__ for found in registered().values()
    }
    for row in study.records:
        # A quarter is more than six standard errors of 40 repeats over five answers.
        assert abs(row.rmse / row.rmse_predicted - 1) < max(0.25, 6 * row.rmse_error / row.rmse)
        assert row.realized_epsilon <= row.epsilon
    assert study.settings["refused"] == {}
    sizes = [study.settings[name] for name in ("nodes", "domain_size", "repeats", "rate")]
    assert sizes == [10_000, 5, 40, 1.0]


def test_a_seed_makes_it_reproducible_and_participation_costs_precision() -> None:
    chosen = [tn.SubsetSelection, "hadamard_response"]
    full = compare_oracles(COUNTS, epsilons=[1.0], oracles=chosen, seed=1)
    assert full == compare_oracles(COUNTS, epsilons=[1.0], oracles=chosen, seed=1)
    part = compare_oracles(
        COUNTS, epsilons=[1.0], oracles=chosen, participation=tn.Bernoulli(0.1), seed=1
    )
    for some, all_of_them in zip(part.records, full.records, strict=True):
        ratio = some.rmse_predicted / all_of_them.rmse_predicted
        assert ratio == pytest.approx(math.sqrt(10), rel=0.05)


def test_large_populations_are_simulated() -> None:
    study = compare_oracles([10**9, 10**9], epsilons=[1.0], oracles=[tn.DirectEncoding], seed=2)
    assert study.settings["nodes"] == 2 * 10**9
    assert study.records[0].rmse < 1e-4


def test_what_cannot_be_made_is_named() -> None:
    study = compare_oracles(
        COUNTS, epsilons=[1.0, 43.0], oracles=["direct_encoding", "hadamard_response"], seed=3
    )
    assert {row.epsilon for row in study.records} == {1.0}
    assert set(study.settings["refused"]) == {
        ("direct_encoding", 43.0),
        ("hadamard_response", 43.0),
    }
    with pytest.raises(InvalidValueError, match="no oracle can be studied: epsilon"):
        compare_oracles(COUNTS, epsilons=[-1.0])


def test_table_and_picture_show_every_record() -> None:
    study = compare_oracles(COUNTS, repeats=2, seed=4)
    lines = study.table().splitlines()
    assert len(lines) == 1 + len(study.records)
    assert re.search(r"SubsetSelection +0.5 ", study.table())
    assert study.to_arrow().num_rows == len(study.records)
    (axes,) = study.plot()
    assert "rmse" in axes.get_ylabel()
    curves = {each.get_label(): each.lines[0].get_ydata() for each in axes.containers}
    assert list(curves) == ["ε = 0.5", "ε = 1", "ε = 2"]
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert [name.split(",")[0] for name in names] == [row.oracle for row in study.records[:12]]
    for row in study.records:
        (place,) = [place for place, name in enumerate(names) if name.startswith(f"{row.oracle},")]
        assert curves[f"ε = {row.epsilon:g}"][place] == row.rmse
    assert "DirectEncoding, 3 bits" in names
    with pytest.raises(InvalidTypeError, match="ax must be matplotlib axes"):
        study.plot(ax=3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"repeats": 1}, "repeats must be an integer from 2"),
        ({"method": "best"}, "method must be one of"),
        ({"postprocessing": "magic"}, "postprocessing must be one of"),
        ({"participation": tn.Personalized([0.5])}, "participation must be Everyone"),
        ({"oracles": [3]}, r"oracles\[0\] must be the class of an oracle"),
        ({"oracles": ["nobody"]}, r"oracles\[0\] must be one of"),
    ],
)
def test_bad_settings_are_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        compare_oracles(COUNTS, **change)  # type: ignore[arg-type]


def test_by_default_all_that_need_nothing_else_are_compared() -> None:
    # Padded and memoized oracles are registered too, once their modules are there.
    assert {PaddedOracle, tn.Memoized}.isdisjoint(registered().values())
    study = compare_oracles(COUNTS, epsilons=[1.0], repeats=2, seed=1)
    assert not study.settings["refused"]
    assert {each.oracle for each in study.records} == {
        found.__name__ for found in registered().values()
    }


def test_names_and_classes_are_the_same() -> None:
    named, given = (
        compare_oracles(COUNTS, epsilons=[1.0], oracles=oracles, repeats=2, seed=1)
        for oracles in (["subset_selection"], [tn.SubsetSelection])
    )
    assert named.records == given.records


def test_what_an_oracle_refuses_is_left_out_and_said() -> None:
    study = compare_oracles(
        COUNTS, epsilons=[1.0, 50.0], oracles=[tn.DirectEncoding], repeats=2, seed=1
    )
    assert [each.epsilon for each in study.records] == [1.0]
    assert "at most 42" in study.settings["refused"]["direct_encoding", 50.0]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilons": []}, InvalidValueError, "epsilons must hold a number, got none"),
        ({"epsilons": [0.0]}, InvalidValueError, "no oracle can be studied: epsilon must be"),
        ({"oracles": []}, InvalidValueError, "oracles must hold a class or a name"),
        ({"oracles": ["rappor"]}, InvalidValueError, r"oracles\[0\] must be one of"),
        ({"oracles": [3]}, InvalidTypeError, r"oracles\[0\] must be the class"),
        ({"oracles": [tn.Memoized]}, InvalidTypeError, "an epsilon and a domain alone"),
    ],
)
def test_oracles_and_epsilons_are_refused_by_name(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        compare_oracles(COUNTS, **arguments)


def test_a_rate_is_a_participation() -> None:
    one, other = (
        compare_oracles(COUNTS, participation=rate, repeats=2, oracles=["direct_encoding"], seed=1)
        for rate in (0.5, tn.Bernoulli(0.5))
    )
    assert one == other
