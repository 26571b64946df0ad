"""``turnout sample --round``: every integer within bounds has a cell of the same size."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from turnout.samplers import MollifiedDensity, Uniform

pytest.importorskip("sklearn")

Run = Callable[..., Any]

# Chance that one of these tests fails although all is right, with randomness that is fresh.
ALPHA = 1e-6


def written(path: Path, columns: dict[str, Any]) -> Path:
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def drawn(turnout: Run, *arguments: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of the records, and the rest of the object."""
    result = turnout("sample", *arguments, "--round", "--method", "density", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    records = found.pop("records")
    return {name: np.array([row[name] for row in records]) for name in records[0]}, found


def test_almost_without_data_all_integers_are_equally_likely(tmp_path: Path, turnout: Run) -> None:
    """Both columns and their pairs: with half a cell at the ends p is below 1e-60."""
    users = 2000
    children = np.arange(users) % 4
    source = written(tmp_path / "in.csv", {"children": children, "rooms": 1 + children % 3})
    records, rest = drawn(
        turnout, source, "-c", "children,rooms", "-e", 1e-3, "--seed", 1,
        "--bounds", "children=0:3,rooms=1:3",
    )  # fmt: skip
    assert rest["reference"] == "Uniform([-0.5, 0.5], [3.5, 3.5])"
    pairs = np.bincount(3 * records["children"] + records["rooms"] - 1, minlength=12)
    assert pairs.size == 12
    assert stats.chisquare(pairs).pvalue > ALPHA
    assert stats.chisquare(pairs.reshape(4, 3).sum(axis=1)).pvalue > ALPHA
    assert stats.chisquare(pairs.reshape(4, 3).sum(axis=0)).pvalue > ALPHA


def test_the_law_of_each_integer_is_the_projection_of_the_users_own(
    tmp_path: Path, turnout: Run
) -> None:
    """Against the density that is stated for a user, summed over the cells.

    And no integer is beyond the factors e^(-epsilon/2) and e^(epsilon/2) of its share under the
    reference: one quarter.
    """
    each, epsilon = 500, 2.0
    own = np.repeat(np.arange(4), each)
    source = written(tmp_path / "in.csv", {"children": own})
    records, _ = drawn(
        turnout, source, "-c", "children", "-e", epsilon, "--bounds", "children=0:3", "--seed", 2
    )
    counts = np.array([np.bincount(records["children"][own == v], minlength=4) for v in range(4)])
    steps = 4000
    grid = -0.5 + (np.arange(4 * steps) + 0.5)[:, None] / steps
    reference = Uniform(-0.5, 3.5)
    for value, found in enumerate(counts):
        sampler = MollifiedDensity(epsilon, reference=reference).fit([[float(value)]])
        law = np.exp(sampler.score_samples(grid)).reshape(4, steps).mean(axis=1)
        assert law.sum() == pytest.approx(1.0, abs=1e-3)
        assert stats.chisquare(found, each * law / law.sum()).pvalue > ALPHA / 4
        for count in found:
            test = stats.binomtest(int(count), each)
            limits = test.proportion_ci(1.0 - ALPHA / 16)
            assert limits.high > np.exp(-epsilon / 2) / 4
            assert limits.low < np.exp(epsilon / 2) / 4
    # The people hold all four equally often, and so do the records.
    assert stats.chisquare(counts.sum(axis=0)).pvalue > ALPHA


def test_a_value_counts_as_the_nearest_integer_within_the_bounds(
    tmp_path: Path, turnout: Run
) -> None:
    source = written(tmp_path / "in.csv", {"t": [-1.6, -0.7, 0.6, 0.4] * 50})
    options = ("-c", "t", "-e", 1, "--bounds", "t=-1.6:0.6", "--quality", "--seed", 3)
    records, rest = drawn(turnout, source, *options)
    assert rest["reference"] == "Uniform([-1.5], [0.5])"
    assert set(records["t"]) == {-1, 0}
    # What is compared with the rows is what was written, not what was drawn before rounding.
    assert rest["quality"]["columns"][0]["records"]["mean"] == pytest.approx(records["t"].mean())
    limits = stats.binomtest(int((records["t"] == 0).sum()), 200).proportion_ci(1.0 - ALPHA)
    assert limits.low < 0.5 < limits.high


def test_one_integer_is_enough_and_larger_ones_than_floats_can_halve_are_refused(
    tmp_path: Path, turnout: Run
) -> None:
    source = written(tmp_path / "in.csv", {"t": [1.2, 0.7]})
    records, _ = drawn(turnout, source, "-c", "t", "-e", 1, "--bounds", "t=0.6:1.4")
    assert records["t"].tolist() == [1, 1]
    options = ("-c", "t", "-e", 1, "--bounds", f"t=0:{2**52}", "--round")
    refused = turnout("sample", source, "--method", "density", *options)
    assert refused.exit_code == 2
    assert "2^51" in refused.stderr
