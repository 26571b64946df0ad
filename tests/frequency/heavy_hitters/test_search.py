"""Searches: what is found, how often intervals cover, and what is refused."""

from __future__ import annotations

import csv
import gzip
import os
import pickle
import random
import string
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.errors import (
    EstimatorError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
    ProtocolError,
)
from turnout.frequency.heavy_hitters import HeavyHitters

LETTERS = string.ascii_lowercase
NODES = 3000
VALUES = np.repeat([5, 40, 41, 63], [1350, 900, 600, 150])
SMALL = HeavyHitters(5.0, bits=6, step=2, keep=4, oracle=tn.DirectEncoding)


def zipf_words(nodes: int) -> tuple[list[str], dict[str, float]]:
    """Words of a power law over a thousand random ones, and their shares."""
    generator = random.Random(3)
    words = sorted({"".join(generator.choices(LETTERS, k=2 + i % 6)) for i in range(1000)})
    generator.shuffle(words)
    held = generator.choices(words, [1 / (rank + 1) ** 1.3 for rank in range(len(words))], k=nodes)
    return held, {word: held.count(word) / nodes for word in words[:40]}


def data_folder(name: str) -> Path:
    given = os.environ.get("TURNOUT_DATA")
    folder = Path(given) if given else Path(__file__).parents[3].parent / "shared" / "data"
    if not (folder / name).is_file():
        pytest.skip(f"{name} is not in {folder}: set TURNOUT_DATA to the folder with it")
    return folder


@pytest.mark.parametrize("confirm", [True, False])
@pytest.mark.parametrize("rate", [0.7, 1.0])
def test_frequent_words_are_found_and_no_others(rate: float, confirm: bool) -> None:
    held, shares = zipf_words(150_000)
    protocol = HeavyHitters(4.0, length=8, alphabet=LETTERS, step=4, confirm=confirm)
    participation = tn.Bernoulli(rate)
    found = protocol.collect(held, participation=participation, seed=1)
    needed = protocol.detectable_frequency(len(held), participation=participation, power=0.999)
    frequent = {word for word, share in shares.items() if share > needed}
    assert len(frequent) >= 4
    assert frequent <= set(found.values)
    assert set(found.values) <= set(shares)
    truth = [shares[word] for word in found.values]
    assert found.interval(1 - 1e-6, simultaneous="bonferroni").contains(truth)[0]
    limits = found.interval(1 - 1e-6, simultaneous="bonferroni")
    assert ((limits.low <= truth) & (truth <= limits.high)).all()
    assert found.confirmed is confirm
    assert (np.diff(found.frequencies) <= 0).all()
    np.testing.assert_allclose(found.counts, found.frequencies * 150_000)


def test_frequent_numbers_of_64_bits_are_found() -> None:
    numbers = np.array([2**64 - 1, 2**63, 12345678901234567890, 17], dtype=np.uint64)
    held = np.concatenate(
        [np.repeat(numbers, [30_000, 20_000, 15_000, 15_000]), np.arange(20_000, dtype=np.uint64)]
    )
    found = HeavyHitters(5.0, bits=64, step=5).collect(held, seed=4)
    assert set(found.values) == set(numbers.tolist())


def test_texts_of_any_language_are_found() -> None:
    held = ["Grüße"] * 20_000 + ["日本"] * 16_000 + [""] * 12_000
    found = HeavyHitters(6.0, length=8, step=4, keep=8).collect(held, seed=4)
    assert found.values == ("Grüße", "日本", "")


def test_cells_of_gowalla_are_found_as_texts() -> None:
    path = data_folder("gowalla_user_cell.csv") / "gowalla_user_cell.csv"
    with path.open(newline="") as file:
        cells = [int(row["cell"]) for row in csv.DictReader(file)]
    corners = [f"{30 + 5 * (cell // 4)},{-100 + 5 * (cell % 4)}" for cell in cells]
    shares = {corner: corners.count(corner) / len(corners) for corner in set(corners)}
    protocol = HeavyHitters(5.0, length=7, alphabet="0123456789,-", step=4)
    found = protocol.collect(corners, participation=tn.Bernoulli(0.9), seed=2)
    needed = protocol.detectable_frequency(
        len(corners), participation=tn.Bernoulli(0.9), power=0.99
    )
    frequent = {corner for corner, share in shares.items() if share > needed}
    assert len(frequent) >= 2
    assert frequent <= set(found.values) <= set(shares)


def test_occupations_of_adult_are_found_as_texts() -> None:
    path = data_folder("adult.data.gz") / "adult.data.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [line.split(",") for line in lines if "," in line]
    held = [row[6].strip().lower().replace("?", "unknown") for row in rows]
    shares = {word: held.count(word) / len(held) for word in set(held)}
    protocol = HeavyHitters(6.0, length=17, alphabet=LETTERS + "-", step=3)
    found = protocol.collect(held, seed=1)
    needed = protocol.detectable_frequency(len(held), power=0.99)
    frequent = {word for word, share in shares.items() if share > needed}
    assert len(frequent) >= 9
    assert frequent <= set(found.values) <= set(shares)
    truth = np.array([shares[word] for word in found.values])
    limits = found.interval(1 - 1e-6, simultaneous="bonferroni")
    assert ((limits.low <= truth) & (truth <= limits.high)).all()


@pytest.mark.parametrize("confirm", [True, False])
def test_intervals_cover_and_confirmed_estimates_are_unbiased(
    confirm: bool, statistical: ModuleType
) -> None:
    protocol = HeavyHitters(5.0, bits=6, step=2, keep=4, oracle=tn.DirectEncoding, confirm=confirm)
    runs = 900
    estimates, deviations, covered = np.empty((runs, 2)), np.empty((runs, 2)), np.zeros(2, int)
    for run in range(runs):
        found = protocol.collect(VALUES, participation=tn.Bernoulli(0.6), seed=run)
        places = [found.values.index(5), found.values.index(40)]
        truth = np.array([0.45, 0.3])
        estimates[run] = found.frequencies[places]
        deviations[run] = (estimates[run] - truth) / found.standard_errors[places]
        limits = found.interval(0.95)
        covered += (limits.low[places] <= truth) & (truth <= limits.high[places])
    statistical.check_mean(estimates, [0.45, 0.3])
    statistical.check_variance(deviations, 1.0, slack=0.02)
    # The level holds for each value, or for all 16 candidates of the last extension at once.
    statistical.check_share(covered, runs, *((0.935, 0.965) if confirm else (0.95, 1.0)))


def test_errors_of_the_group_alone_would_be_too_small(statistical: ModuleType) -> None:
    protocol = HeavyHitters(10.0, bits=2, oracle=tn.DirectEncoding)
    values = np.repeat([1, 2], [600, 600])
    deviations = []
    for run in range(400):
        group = protocol.rounds().assign(values.size, seed=run)
        search = protocol.rounds()
        for current in search:
            tally = current.tally(current.randomize(values[group == current.number], seed=run))
            search.close(tally)
        alone = tally.estimate()
        place = search.result.values.index(1)
        assert (alone.standard_errors[0] < search.result.standard_errors[place] / 3).all()
        deviations.append((search.result.frequencies[place] - 0.5) / alone.standard_errors[0])
    with pytest.raises(AssertionError, match="variance"):
        statistical.check_variance(deviations, 1.0)


@pytest.mark.parametrize("confirm", [True, False])
def test_personal_participation_that_depends_on_values_leaves_estimates_right(
    confirm: bool, statistical: ModuleType
) -> None:
    protocol = HeavyHitters(6.0, bits=6, step=2, keep=4, oracle=tn.DirectEncoding, confirm=confirm)
    participation = tn.Personalized(np.where(VALUES == 5, 0.9, 0.4))
    runs = 1000
    estimates, deviations = np.empty((runs, 2)), np.empty((runs, 2))
    for run in range(runs):
        found = protocol.collect(VALUES, participation=participation, seed=run)
        places = [found.values.index(5), found.values.index(40)]
        estimates[run] = found.frequencies[places]
        deviations[run] = (estimates[run] - [0.45, 0.3]) / found.standard_errors[places]
    # The ratio estimator has a bias of the order of one over the size of the group.
    statistical.check_mean(estimates, [0.45, 0.3], slack=0.002)
    statistical.check_variance(deviations, 1.0, slack=0.1)


def test_the_detectable_frequency_is_detected_as_often_as_promised(
    statistical: ModuleType,
) -> None:
    protocol = HeavyHitters(3.0, bits=10, step=5, keep=32, oracle=tn.DirectEncoding)
    nodes, runs = 4000, 400
    share = protocol.detectable_frequency(nodes, power=0.8)
    held = np.where(np.arange(nodes) < round(share * nodes), 777, np.arange(nodes) % 31 * 33 + 1)
    hits = sum(777 in protocol.collect(held, seed=run).values for run in range(runs))
    statistical.check_share(hits, runs, 0.72, 0.88)


def test_noise_alone_is_hardly_ever_kept() -> None:
    protocol = HeavyHitters(1.0, bits=40, family_wise_error=1e-6, oracle=tn.DirectEncoding)
    generator = np.random.default_rng(1)
    for seed in range(20):
        found = protocol.collect(generator.integers(0, 2**40, 2000), seed=seed)
        assert len(found) == 0
        assert found.frequencies.size == found.interval().low.size == found.counts.size == 0
        assert found.to_records() == []
        assert found.rounds[-1].kept == 0


def test_server_and_clients_find_what_one_call_finds() -> None:
    whole = SMALL.collect(VALUES, seed=3)
    assert whole.values == SMALL.collect(VALUES, seed=3).values
    assert (whole.frequencies == SMALL.collect(VALUES, seed=3).frequencies).all()
    group = SMALL.rounds().assign(NODES, seed=9)
    search = SMALL.rounds()
    for current in search:
        published = tn.Plan(current, tn.Everyone()).to_json()
        assert not search.finished
        client = tn.Plan.from_json(published).oracle
        assert client == current == pickle.loads(pickle.dumps(current))
        mine = VALUES[group == current.number]
        half = len(mine) // 2
        parts = [
            client.tally(client.randomize(piece, seed=seed))
            for seed, piece in enumerate([mine[:half], mine[half:]])
        ]
        assert parts[0] + parts[1] == parts[1] + parts[0]
        search.close(parts[0] + parts[1])
    assert search.finished
    assert set(search.result.values) == {5, 40, 41, 63}
    assert search.result.nodes == NODES
    assert [record.bits for record in search.result.rounds] == [4, 6, 6]
    assert sum(record.nodes for record in search.result.rounds) == NODES
    assert "HeavyHitterResult(4 values" in repr(search)


def test_one_round_is_enough_for_a_small_domain() -> None:
    found = HeavyHitters(5.0, bits=3, confirm=False).collect(np.repeat([1, 6], 500), seed=1)
    assert (set(found.values), len(found.rounds), found.nodes) == ({1, 6}, 1, 1000)


def test_rounds_are_closed_in_order_with_their_own_tallies() -> None:
    search = SMALL.rounds()
    first = search.current
    with pytest.raises(ProtocolError, match="round 0 must be closed"):
        list(search)
    with pytest.raises(ProtocolError, match="round 0 must be closed"):
        _ = search.result
    tally = first.tally(first.randomize(VALUES, seed=1))
    other = HeavyHitters(5.0, bits=6, step=2, keep=2, oracle=tn.DirectEncoding).rounds().current
    with pytest.raises(PlanMismatchError):
        search.close(other.tally(other.randomize(VALUES)))
    with pytest.raises(InvalidTypeError, match="tally"):
        search.close(3)  # type: ignore[arg-type]
    nobody = first.tally(first.randomize(VALUES[:1], participation=tn.Bernoulli(1e-9), seed=1))
    with pytest.raises(EstimatorError, match="round 0 got no report from its 1 nodes"):
        search.close(nobody)
    assert search.current is first
    search.close(tally)
    with pytest.raises(PlanMismatchError):
        search.close(tally)
    while not search.finished:
        search.close(search.current.tally(search.current.randomize(VALUES, seed=1)))
    with pytest.raises(ProtocolError, match="over"):
        search.close(tally)


def test_reports_of_rounds_with_equally_many_candidates_are_not_mixed_up() -> None:
    search = HeavyHitters(5.0, bits=8, step=2, keep=1, oracle=tn.DirectEncoding).rounds()
    first = search.current
    search.close(first.tally(first.randomize([0] * 500, seed=1)))
    second = search.current
    assert first.oracle.domain.size == second.oracle.domain.size == 5
    with pytest.raises(PlanMismatchError, match="domain"):
        second.tally(first.randomize([0] * 10))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "exactly one of bits"),
        ({"bits": 8, "length": 3}, "exactly one of bits"),
        ({"bits": 8, "alphabet": "ab"}, "alphabet belongs to texts"),
        ({"bits": 0}, "bits"),
        ({"bits": 65}, "bits"),
        ({"bits": 8.0}, "bits"),
        ({"length": 0}, "length"),
        ({"length": 600}, "length"),
        ({"length": 3, "alphabet": ""}, "alphabet must be different characters"),
        ({"length": 3, "alphabet": "aa"}, "alphabet must be different characters"),
        ({"length": 3, "alphabet": "a\0"}, "character 0"),
        ({"length": 3, "alphabet": 3}, "alphabet"),
        ({"bits": 8, "step": 0}, "step"),
        ({"bits": 8, "keep": 0}, "keep"),
        ({"bits": 8, "keep": 1024, "step": 12}, "keep times"),
        ({"bits": 8, "family_wise_error": 0}, "family_wise_error"),
        ({"bits": 8, "family_wise_error": float("nan")}, "family_wise_error"),
        ({"bits": 8, "confirm": 1}, "confirm"),
        ({"bits": 8, "oracle": "best"}, "oracle"),
        ({"bits": 8, "oracle": 7}, "oracle"),
        ({"bits": 8, "epsilon": 0}, "epsilon"),
        ({"bits": 8, "epsilon": float("inf")}, "epsilon"),
        ({"bits": 8, "epsilon": "1"}, "epsilon"),
    ],
)
def test_bad_parameters_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        HeavyHitters(**({"epsilon": 1.0} | options))


@pytest.mark.parametrize(
    ("options", "values", "message"),
    [
        ({"bits": 8}, [256], r"values\[0\] must be an integer from 0 to 2\^8 - 1$"),
        ({"bits": 8}, [3, -1], r"values\[1\]"),
        ({"bits": 8}, [1.5], "integers"),
        ({"bits": 8}, ["a"], "integers"),
        ({"bits": 64}, [2**64], r"values\[0\]"),
        ({"length": 2}, ["ab", "abc"], r"values\[1\] must have at most 2 bytes of UTF-8"),
        ({"length": 2}, ["ü€"], r"values\[0\] must have at most 2 bytes"),
        ({"length": 2}, ["a\0"], "character 0"),
        ({"length": 2}, ["\ud800"], "cannot be written as UTF-8"),
        ({"length": 2}, ["a", 3], r"values\[1\] must be text, got a value of type int"),
        ({"length": 2}, ["a", None], r"values\[1\] must be text, got None"),
        ({"length": 2, "alphabet": "ab"}, ["abc"], "characters of the alphabet"),
        ({"length": 2, "alphabet": "ab"}, ["aba"], "at most 2 characters"),
        ({"length": 2}, "ab", "list"),
    ],
)
def test_values_of_another_kind_are_refused(
    options: dict[str, Any], values: Any, message: str
) -> None:
    protocol = HeavyHitters(1.0, **options)
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        protocol.collect(values)
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        protocol.rounds().current.randomize(values)


def test_other_bad_arguments_are_refused() -> None:
    with pytest.raises(InvalidTypeError, match="participation"):
        SMALL.collect(VALUES, participation="half")  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="one probability for each of the 3000"):
        SMALL.collect(VALUES, participation=tn.Personalized([0.5]))
    with pytest.raises(InvalidValueError, match="seed"):
        SMALL.collect(VALUES, seed=-1)
    with pytest.raises(EstimatorError, match="got no report"):
        SMALL.collect([])
    with pytest.raises(InvalidValueError, match="common rate"):
        SMALL.detectable_frequency(10, participation=tn.Personalized([0.5]))
    with pytest.raises(InvalidValueError, match="power"):
        SMALL.detectable_frequency(10, power=1.0)
    with pytest.raises(InvalidValueError, match="nodes"):
        SMALL.rounds().assign(-1)
