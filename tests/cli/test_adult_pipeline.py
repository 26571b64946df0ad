"""The whole path on UCI Adult: randomize, tally, estimate against the true frequencies."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

# Chance that one of these tests fails although all is right. Randomness is fresh in every run.
ALPHA = 1e-6


def true_counts(path: Path, column: str) -> Counter[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return Counter(row[column] for row in csv.DictReader(file))


def hajek_deviation(frequency: float, nodes: int, size: int, epsilon: float, rate: float) -> float:
    """Standard deviation of the Hajek estimate of a frequency (linearised, design-based)."""
    scale = math.exp(epsilon) + size - 1
    p, q = math.exp(epsilon) / scale, 1 / scale
    supports, other = (1 - q) / (p - q), -q / (p - q)

    def spread(probability: float, held: int) -> float:
        mean_square = (
            probability * (supports - frequency) ** 2 + (1 - probability) * (other - frequency) ** 2
        )
        return mean_square / rate - (held - frequency) ** 2

    total = frequency * spread(p, 1) + (1 - frequency) * spread(q, 0)
    return math.sqrt(total / nodes)


def assert_close_to_truth(
    answer: dict[str, Any], truth: Mapping[Any, int], epsilon: float, rate: float
) -> None:
    nodes, size = sum(truth.values()), len(truth)
    assert answer["nodes"] == nodes
    assert {record["label"] for record in answer["estimates"]} == set(truth)
    bound = stats.norm.isf(ALPHA / (2 * size))
    for record in answer["estimates"]:
        frequency = truth[record["label"]] / nodes
        allowed = bound * hajek_deviation(frequency, nodes, size, epsilon, rate)
        assert abs(record["frequency"] - frequency) <= allowed, record["label"]
        assert record["count"] == pytest.approx(nodes * record["frequency"])
        assert record["low"] <= record["frequency"] <= record["high"]
    received = stats.binom(nodes, rate)
    assert received.ppf(ALPHA / 2) <= answer["received"] <= received.isf(ALPHA / 2)


def test_occupation_through_processes_gives_the_true_frequencies(
    adult_csv: Path,
    tmp_path: Path,
    turnout_process: Callable[..., Any],
) -> None:
    reports, tally = tmp_path / "reports.parquet", tmp_path / "tally.bin"
    picture = tmp_path / "answers.png"
    randomized = turnout_process(
        "randomize", adult_csv, "--column", "occupation", "--epsilon", 1, "--participation", 0.3,
        "--missing-value", "?", "--missing", "drop", "-o", reports,
    )  # fmt: skip
    assert randomized.returncode == 0, randomized.stderr
    assert "taken from the data and treated as public" in randomized.stderr
    tallied = turnout_process("tally", reports, "-o", tally)
    assert tallied.returncode == 0, tallied.stderr
    estimated = turnout_process("estimate", tally, "--json", "--plot", picture)
    assert estimated.returncode == 0, estimated.stderr
    truth = true_counts(adult_csv, "occupation")
    assert truth.pop("?") == 2809
    assert_close_to_truth(json.loads(estimated.stdout), truth, epsilon=1, rate=0.3)
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("column", "epsilon", "rate"), [("education", 2.0, 1.0), ("native-country", 3.0, 0.5)]
)
def test_other_columns_give_the_true_frequencies(
    adult_csv: Path,
    tmp_path: Path,
    turnout: Callable[..., Any],
    *,
    column: str,
    epsilon: float,
    rate: float,
    suffix: str,
) -> None:
    reports, tally = tmp_path / f"reports.{suffix}", tmp_path / "tally.bin"
    randomized = turnout(
        "randomize", adult_csv, "-c", column, "-e", epsilon, "-p", rate, "-o", reports
    )
    assert randomized.exit_code == 0
    assert turnout("tally", reports, "-o", tally).exit_code == 0
    answer = json.loads(turnout("estimate", tally, "--json").stdout)
    assert_close_to_truth(answer, true_counts(adult_csv, column), epsilon, rate)


def test_integers_stay_integers_and_parts_add_up(
    adult_csv: Path, tmp_path: Path, turnout: Callable[..., Any]
) -> None:
    truth = true_counts(adult_csv, "education-num")
    labels = ",".join(str(years) for years in range(1, 17))
    parts = [tmp_path / f"part{index}.parquet" for index in range(3)]
    for part in parts:
        run = turnout(
            "randomize", adult_csv, "-c", "education-num", "-e", 2, "-p", 0.2,
            "--labels", labels, "-o", part,
        )  # fmt: skip
        assert run.exit_code == 0
        assert "note" not in run.stderr
    tally = tmp_path / "tally.bin"
    assert turnout("tally", *parts, "-o", tally).exit_code == 0
    answer = json.loads(turnout("estimate", tally, "--json", "--sort", "label").stdout)
    assert [record["label"] for record in answer["estimates"]] == list(range(1, 17))
    tripled = Counter({int(years): 3 * count for years, count in truth.items()})
    assert_close_to_truth(answer, tripled, epsilon=2, rate=0.2)
