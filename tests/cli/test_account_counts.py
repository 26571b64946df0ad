"""``turnout account counts``: counts of sampled people."""

from __future__ import annotations

import pytest
from tests.cli.test_account_command import Run, as_json

from turnout.accounting import (
    CountSampling,
    calibrate,
)


def test_counts_have_a_delta_for_every_kind_of_neighbour(turnout: Run) -> None:
    sampling = CountSampling(0.5, 33)
    answer = as_json(turnout, "counts", "--rate", 0.5, "--floor", 33, "--epsilon", 0.7)
    assert answer == {
        "rate": 0.5,
        "floor": 33,
        "calibrated": None,
        "target": None,
        "neighbours": {
            word: {"epsilon": 0.7, "delta": sampling.delta(0.7, word)}
            for word in ("replace", "remove", "add")
        },
    }
    answer = as_json(turnout, "counts", "--rate", 0.5, "--floor", 33, "--delta", 1e-6)
    assert answer["neighbours"]["remove"]["epsilon"] == sampling.epsilon(1e-6, "remove")


@pytest.mark.parametrize("word", ["replace", "add_or_remove"])
def test_counts_are_calibrated_for_a_kind_of_neighbour(turnout: Run, word: str) -> None:
    target = ("--epsilon", 1, "--delta", 1e-5, "--adjacency", word)
    answer = as_json(turnout, "counts", "--floor", 100, *target, "--calibrate", "rate")
    best = calibrate(CountSampling(0.5, 100), "rate", 1.0, 1e-5, adjacency=word)
    assert 0.99999 * best <= answer["rate"] <= best
    assert answer["calibrated"] == "rate"
    assert answer["target"] == {"epsilon": 1.0, "delta": 1e-5, "adjacency": word}
    answer = as_json(turnout, "counts", "--rate", 0.5, *target, "--calibrate", "floor")
    sampling = CountSampling(0.5, answer["floor"])
    lower = sampling.replace(floor=answer["floor"] - 1)
    assert sampling.delta(1.0, word) <= 1e-5 < lower.delta(1.0, word)


def test_the_table_of_counts_names_the_floor(turnout: Run) -> None:
    for options in (
        ("--rate", 0.5, "--floor", 100, "--epsilon", 1),
        ("--floor", 100, "--epsilon", 1, "--delta", 1e-5, "--calibrate", "rate"),
    ):
        result = turnout("account", "counts", *options)
        assert result.exit_code == 0, result.stderr
        assert max(map(len, result.stdout.splitlines())) <= 80
        assert "100 people on every item" in result.stdout
        assert "only if every item has as many people as the floor" in result.stdout
