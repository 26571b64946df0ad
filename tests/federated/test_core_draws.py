"""Selection and rounded Gaussian noise of the core: laws with thirty digits, prefixes, forks."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mpmath import mp, mpf

from turnout import _core
from turnout.errors import InvalidValueError
from turnout.federated import draws

Integers = npt.NDArray[np.int64]

DRAWS = 2_000_000


def normal_law(bits: int, reach: int) -> npt.NDArray[np.float64]:
    """Masses of ``round(2^bits Z)`` from ``-reach`` to ``reach``, the tails at the ends."""
    with mp.workdps(30):
        tails = [mp.ncdf(-(mpf(number) - mpf(1) / 2) / 2**bits) for number in range(1, reach + 1)]
        inner = [tails[i] - tails[i + 1] for i in range(reach - 1)] + [tails[-1]]
        half = [float(mass) for mass in inner]
        return np.array([*half[::-1], float(1 - 2 * tails[0]), *half])


def histogram(numbers: Integers, reach: int) -> Integers:
    return np.bincount(np.clip(numbers, -reach, reach) + reach, minlength=2 * reach + 1)


@pytest.mark.parametrize(
    ("bits", "draws"), [(0, DRAWS), (1, DRAWS), (2, 5 * DRAWS), (5, DRAWS), (8, 5 * DRAWS)]
)
def test_noise_has_the_law_of_the_rounded_normal(
    bits: int, draws: int, statistical: ModuleType
) -> None:
    reach = 6 << bits
    numbers = _core.rounded_gaussian(draws, bits, seed=1)
    assert numbers.dtype == np.int64
    statistical.check_law(histogram(numbers, reach), normal_law(bits, reach))


@pytest.mark.parametrize("bits", [24, 30, 52])
def test_fine_noise_has_the_law_in_wide_cells_and_uniform_last_digits(
    bits: int, statistical: ModuleType
) -> None:
    numbers = _core.rounded_gaussian(DRAWS, bits, seed=2)
    wide = np.rint(numbers / 2.0 ** (bits - 5)).astype(np.int64)
    statistical.check_law(histogram(wide, 6 << 5), normal_law(5, 6 << 5))
    for shift in (0, bits - 20):
        last = (numbers >> shift) & 15
        statistical.check_law(np.bincount(last, minlength=16), np.full(16, 1 / 16))


def test_numpy_draws_the_same_law(statistical: ModuleType) -> None:
    peer = np.rint(np.random.default_rng(3).standard_normal(DRAWS) * 16).astype(np.int64)
    numbers = _core.rounded_gaussian(DRAWS, 4, seed=3)
    statistical.check_same_law(histogram(numbers, 100), histogram(peer, 100))


@pytest.mark.parametrize("rate", [0.3, 0.001])
def test_every_set_is_selected_with_its_probability(rate: float, statistical: ModuleType) -> None:
    # Rates below 1/64 are drawn in another way: there the positions are a thousand apart.
    stride = 1 if rate > 0.1 else 1000
    size, runs = 4 * stride, 40_000
    observed = np.zeros(16, np.int64)
    for seed in range(runs):
        places = np.unique(_core.select_bernoulli(size, rate, seed) // stride)
        observed[(1 << places).sum()] += 1
    some = 1 - (1 - rate) ** stride
    members = np.array([bin(subset).count("1") for subset in range(16)])
    statistical.check_law(observed, some**members * (1 - some) ** (4 - members))


@pytest.mark.parametrize("rate", [0.9, 0.1, 0.01, 1e-4, 1e-6])
def test_as_many_are_selected_as_should_be_and_everywhere(
    rate: float, statistical: ModuleType
) -> None:
    size = int(3e5 / rate)
    selected = _core.select_bernoulli(size, rate, seed=4)
    assert selected.dtype == np.int64
    assert (np.diff(selected) > 0).all()
    assert selected[0] >= 0
    assert selected[-1] < size
    statistical.check_share([selected.size], size, rate, rate)
    cells = np.bincount(selected * 64 // size, minlength=64)
    statistical.check_law(cells, np.diff(np.ceil(np.arange(65) * size / 64)) / size)


@pytest.mark.parametrize("rate", [0.7, 0.05, 0.003, 1e-5])
@pytest.mark.parametrize("seed", [5, 6])
def test_the_selection_from_fewer_is_a_prefix(rate: float, seed: int) -> None:
    size = 1_000_000
    everything = _core.select_bernoulli(size, rate, seed)
    chosen = set(everything.tolist())
    watched = [0, 1, 65_535, 65_536, 131_071, size - 1, *everything[:: everything.size // 5 + 1]]
    for index in watched:
        fewer = _core.select_bernoulli(int(index) + 1, rate, seed)
        np.testing.assert_array_equal(fewer, everything[everything <= index])
        # How a client finds its own coin.
        assert bool(fewer.size and fewer[-1] == index) == (int(index) in chosen)


def test_the_cost_follows_those_selected() -> None:
    selected = _core.select_bernoulli(2**40, 1e-9, seed=7)
    assert 900 < selected.size < 1300
    assert selected[-1] > 2**39


def test_certain_rates_and_nothing_to_select_from() -> None:
    np.testing.assert_array_equal(_core.select_bernoulli(4, 1.0), [0, 1, 2, 3])
    assert _core.select_bernoulli(2**40, 0.0).shape == (0,)
    assert _core.select_bernoulli(2**40, 5e-324).shape == (0,)
    assert _core.select_bernoulli(0, 0.5).shape == (0,)
    assert _core.rounded_gaussian(0, 24).shape == (0,)


def test_a_seed_gives_the_same_draws_and_none_fresh_ones() -> None:
    for length in (100, 100_000):
        for bits in (3, 24, 40):
            first = _core.rounded_gaussian(length, bits, seed=5)
            np.testing.assert_array_equal(first, _core.rounded_gaussian(length, bits, seed=5))
            assert (first != _core.rounded_gaussian(length, bits, seed=6)).any()
            assert (
                _core.rounded_gaussian(length, bits) != _core.rounded_gaussian(length, bits)
            ).any()
        # More rates than are kept prepared, and again.
        rates = np.linspace(0.05, 0.95, 12).tolist()
        drawn = [_core.select_bernoulli(length, rate, 9) for rate in rates]
        for rate, selected in zip(rates, drawn, strict=True):
            np.testing.assert_array_equal(selected, _core.select_bernoulli(length, rate, 9))
        fresh = [_core.select_bernoulli(length, 0.5).tolist() for _ in range(2)]
        assert fresh[0] != fresh[1]


@pytest.mark.parametrize(
    ("draw", "argument", "values"),
    [
        (lambda v: _core.rounded_gaussian(1, v), "bits", [53, 2**32 - 1]),
        (lambda v: _core.rounded_gaussian(v, 24), "length", [2**62]),
        (lambda v: _core.select_bernoulli(5, v), "rate", [-0.1, 1.1, math.nan, math.inf]),
        (lambda v: _core.select_bernoulli(v, 0.5), "size", [2**40 + 1, 2**64 - 1]),
        (lambda v: _core.select_bernoulli(v, 0.0), "size", [2**40 + 1]),
    ],
)
def test_bad_parameters_are_named(draw: Any, argument: str, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(InvalidValueError, match=argument):
            draw(value)


DIGEST = """
import hashlib, json
from turnout import _core

def digest(seed):
    parts = [_core.rounded_gaussian(100_000, bits, seed) for bits in (8, 24, 52)]
    parts += [_core.select_bernoulli(10**7, rate, seed) for rate in (0.4, 0.01, 1e-5)]
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()
"""


def run(program: str, threads: int) -> Any:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", DIGEST + program],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "RAYON_NUM_THREADS": str(threads)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_number_of_threads_does_not_matter() -> None:
    one, two, five = (run("print(json.dumps(digest(1)))", threads) for threads in (1, 2, 5))
    assert one == two == five


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork"
)
def test_forks_have_the_same_seeded_draws_and_never_the_same_fresh_ones() -> None:
    program = """
import multiprocessing

def answer(connection):
    connection.send([digest(1), digest(None)])

found = [[digest(1), digest(None)]]
context = multiprocessing.get_context("fork")
for _ in range(3):
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=answer, args=(sender,))
    process.start()
    found.append(receiver.recv())
    process.join()
print(json.dumps(found))
"""
    seeded, fresh = zip(*run(program, 2), strict=True)
    assert len(set(seeded)) == 1
    assert len(set(fresh)) == len(fresh)


def test_elements_of_all_clients_have_the_law_of_each(plan_of: Any) -> None:
    """Each element is sampled at the rate, and those of two clients apart from each other."""
    plan = plan_of(seed=None, sample_rate=0.3, local_size=6)
    sizes, clients, repeats = np.array([2, 0, 1, 3]), np.array([4, 5, 7, 9]), 40_000
    counts, both = np.zeros((4, 3)), 0
    for _ in range(repeats):
        drawn = draws.elements_of_all(plan, sizes, clients, 0)
        assert len(drawn) == 4
        for row, part in zip(counts, drawn, strict=True):
            row[part] += 1
        both += int(1 in drawn[0] and 0 in drawn[2])
    expected = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0], [1, 1, 1]]) * 0.3 * repeats
    # Seven comparisons at a chance of 1e-6 together: 5.3 standard deviations.
    assert (np.abs(counts - expected) <= 5.3 * np.sqrt(repeats * 0.21)).all()
    assert (counts[expected == 0] == 0).all()
    assert abs(both - 0.09 * repeats) <= 5.3 * np.sqrt(repeats * 0.09 * 0.91)
