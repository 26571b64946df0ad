"""Two-stage sets of the core by enumeration in exact fractions, and the sums of elected users."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from mpmath import mp, mpf

from turnout import _core
from turnout.errors import CodeOutsideDomainError, InvalidTypeError, InvalidValueError

Items = npt.NDArray[np.uint32]


def set_law(
    size: int, reported: int, gamma: Fraction, rate: Fraction, value: int
) -> dict[tuple[tuple[int, ...], int], Fraction]:
    """Set and coin: definition 3.1 with the denominators of science.md B7."""
    total = gamma * comb(size - 1, reported - 1) + comb(size - 1, reported)
    law = {}
    for chosen in itertools.combinations(range(size), reported):
        weight = gamma if value in chosen else Fraction(1)
        law[chosen, 1] = rate * weight / total
        law[chosen, 0] = (1 - rate) / comb(size, reported)
    return law


CASES = [
    (2, 1, 3.0),
    (4, 1, 2.5),
    (5, 2, 3.0),
    (6, 3, 1.0),
    (6, 4, 20.0),
    (5, 4, 7.0),
    (4, 4, 9.0),
    (5, 3, None),
]


@pytest.mark.parametrize(("size", "reported", "gamma"), CASES)
def test_sets_have_the_law_of_the_definition(
    size: int, reported: int, gamma: float | None, statistical: ModuleType
) -> None:
    sampler = _core.SetSampler(size, reported, gamma)
    realized = Fraction(*sampler.realized_gamma)
    rate, value = 0.6, size // 2
    coins, sets = sampler.draw(np.full(500_000, value, np.uint32), rate, seed=4)
    assert (coins.dtype, sets.dtype) == (np.uint8, np.uint32)
    assert sets.shape == (coins.size, reported)
    law = set_law(size, reported, realized, Fraction(rate), value)
    assert sum(law.values()) == 1
    cells = {cell: index for index, cell in enumerate(law)}
    drawn, counts = np.unique(np.column_stack([sets, coins]), axis=0, return_counts=True)
    observed = np.zeros(len(law))
    for (*chosen, coin), count in zip(drawn.tolist(), counts, strict=True):
        observed[cells[tuple(chosen), coin]] = count
    statistical.check_law(observed, [float(mass) for mass in law.values()])


@pytest.mark.parametrize(("size", "reported", "gamma"), CASES)
@pytest.mark.parametrize("rate", [1.0, 0.743, 1e-3, 1e-14])
def test_the_local_guarantee_is_the_largest_ratio_rounded_up(
    size: int, reported: int, gamma: float | None, rate: float
) -> None:
    sampler = _core.SetSampler(size, reported, gamma)
    realized = Fraction(*sampler.realized_gamma)
    seen = []
    for value in range(size):
        law = set_law(size, reported, realized, Fraction(rate), value)
        chosen = itertools.combinations(range(size), reported)
        seen.append([law[items, 0] + law[items, 1] for items in chosen])
    largest = max(
        one / other
        for left, right in itertools.product(seen, repeat=2)
        for one, other in zip(left, right, strict=True)
    )
    epsilon = sampler.local_epsilon(rate)
    with mp.workdps(80):
        exact = mp.log(mpf(largest.numerator) / mpf(largest.denominator))
        assert mpf(epsilon) >= exact
        assert mpf(epsilon) <= exact * (1 + mpf(2) ** -51)
    alpha = Fraction(reported, size)
    hidden = (1 - Fraction(rate)) * (alpha * realized + 1 - alpha)
    closed = (Fraction(rate) * realized + hidden) / (Fraction(rate) + hidden)
    assert largest == (closed if reported < size else 1)


@pytest.mark.parametrize(("size", "reported"), [(2, 1), (30, 12), (1000, 7), (10, 10)])
@pytest.mark.parametrize("gamma", [1.0, 1.5, 3.0, 1e6, 1e30])
def test_the_realised_gamma_is_at_most_the_one_asked_for(
    size: int, reported: int, gamma: float
) -> None:
    sampler = _core.SetSampler(size, reported, gamma)
    realized = Fraction(*sampler.realized_gamma)
    assert 1 <= realized <= Fraction(gamma)
    alpha = Fraction(reported, size)
    own = alpha * realized / (alpha * realized + 1 - alpha)
    assert sampler.own_probability == pytest.approx(float(own), rel=1e-15)
    if reported < size and gamma < 1e6:
        assert realized > Fraction(gamma) * (1 - Fraction(1, 2**50))


def test_uniform_sets_do_not_depend_on_the_item() -> None:
    """With one seed all is the same but what a set says of the item: nothing."""
    codes = np.arange(1000, dtype=np.uint32) % 30
    sampler = _core.SetSampler(30, 12, None)
    coins, sets = sampler.draw(codes, 0.5, seed=1)
    others, same = sampler.draw((codes + 7) % 30, 0.5, seed=1)
    np.testing.assert_array_equal(coins, others)
    np.testing.assert_array_equal(sets, same)
    assert sampler.realized_gamma == (1, 1)
    assert sampler.local_epsilon(0.3) == 0.0
    assert sampler.own_probability == 0.4


def election(
    users: int, size: int, reported: int, gamma: float | None
) -> tuple[Items, npt.NDArray[np.uint8], Items, npt.NDArray[np.uint64], Items]:
    generator = np.random.default_rng(users)
    codes = generator.integers(0, size, users).astype(np.uint32)
    coins, sets = _core.SetSampler(size, reported, gamma).draw(codes, 0.7, seed=2)
    reporters = np.bincount(sets.ravel(), minlength=size)
    elected = [generator.permutation(users)[:count] for count in reporters]
    offsets = np.concatenate([[0], np.cumsum(reporters)]).astype(np.uint64)
    return codes, coins, sets, offsets, np.concatenate(elected).astype(np.uint32)


@pytest.mark.parametrize("modulus", [2, 1009, 2**32 - 5, 2**32 + 15, 2**61 - 1])
@pytest.mark.parametrize(("users", "size", "reported"), [(1000, 30, 12), (9, 4, 1)])
def test_the_sums_of_the_elected_are_the_counts(
    users: int, size: int, reported: int, modulus: int
) -> None:
    codes, coins, sets, offsets, elected = election(users, size, reported, 3.0)
    sums, draws, additions = _core.two_stage_sums(
        codes, coins, sets, offsets, elected, modulus, seed=3
    )
    assert sums.shape == elected.shape
    assert (sums < modulus).all()
    bits = (sets == codes[:, None]) & (coins[:, None] == 1)
    for item in range(size):
        share = sums[int(offsets[item]) : int(offsets[item + 1])]
        count = int((bits & (sets == item)).sum())
        assert sum(share.tolist()) % modulus == count % modulus
    shares = sum(count**2 for count in np.bincount(sets.ravel()).tolist())
    assert draws == shares - sets.size
    assert additions == 2 * shares - sets.size
    again, _, _ = _core.two_stage_sums(codes, coins, sets, offsets, elected, modulus, seed=3)
    np.testing.assert_array_equal(sums, again)
    fresh, _, _ = _core.two_stage_sums(codes, coins, sets, offsets, elected, modulus)
    assert users < 10 or (sums != fresh).any()


def test_the_sums_of_all_but_one_are_uniform(statistical: ModuleType) -> None:
    """Thousands of users elected for one item, whose sums modulo 3 are independent."""
    users = 3000
    sets = np.zeros((users, 1), np.uint32)
    offsets = np.array([0, users, users], np.uint64)
    elected = np.arange(users, dtype=np.uint32)
    codes, coins = np.zeros(users, np.uint32), np.ones(users, np.uint8)
    sums, _, _ = _core.two_stage_sums(codes, coins, sets, offsets, elected, 3, seed=9)
    statistical.check_law(np.bincount(sums[:-1].astype(int), minlength=3), [1 / 3] * 3)
    pairs = sums[:-1].astype(int).reshape(-1, 1)[: users - 2].reshape(-1, 2)
    statistical.check_law(np.bincount(pairs @ [3, 1], minlength=9), [1 / 9] * 9)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((1, 1, None), "domain_size"),
        ((5, 0, None), "reported"),
        ((5, 6, None), "reported"),
        ((5, 2, 0.5), "gamma"),
        ((5, 2, float("nan")), "gamma"),
        ((5, 2, float("inf")), "gamma"),
    ],
)
def test_bad_parameters_are_named(arguments: Any, match: str) -> None:
    with pytest.raises(InvalidValueError, match=match):
        _core.SetSampler(*arguments)


def test_bad_arrays_are_named() -> None:
    sampler = _core.SetSampler(4, 2, 3.0)
    with pytest.raises(CodeOutsideDomainError, match=r"\[2\] is not"):
        sampler.draw(np.array([0, 1, 4], np.uint32), 0.5)
    for wrong in (np.array([0, 1]), np.zeros((2, 2), np.uint32), [0, 1]):
        with pytest.raises(InvalidTypeError, match=r"codes must be .* uint32"):
            sampler.draw(wrong, 0.5)  # type: ignore[arg-type]
    for rate in (0.0, 1.5, float("nan")):
        with pytest.raises(InvalidValueError, match="rate"):
            sampler.draw(np.array([0], np.uint32), rate)
        with pytest.raises(InvalidValueError, match="rate"):
            sampler.local_epsilon(rate)


def changed(position: int, value: Any) -> list[Any]:
    arguments: list[Any] = [*election(8, 3, 2, None), 11]
    if isinstance(value, tuple):
        arguments[position] = arguments[position].copy()
        arguments[position].flat[value[0]] = value[1]
    else:
        arguments[position] = value
    return arguments


@pytest.mark.parametrize(
    ("position", "value", "error", "match"),
    [
        (0, (2, 3), InvalidValueError, r"codes\[2\] must be an item of the domain"),
        (1, (0, 2), InvalidValueError, r"coins\[0\] must be 0 or 1"),
        (2, (1, 3), InvalidValueError, r"sets\[1\] must be an item of the domain"),
        (2, (1, 0), InvalidValueError, r"sets\[1\] must be above the item before it"),
        (3, (0, 1), InvalidValueError, r"offsets\[0\] must be 0"),
        (3, (1, 99), InvalidValueError, r"offsets\[1\] must be at least the one before"),
        (3, (3, 99), InvalidValueError, r"offsets\[3\] must be the number of elected users"),
        (4, (0, 8), InvalidValueError, r"elected\[0\] must be the index of a user"),
        (5, 1, InvalidValueError, "modulus must be an integer from 2"),
        (5, 2**62, InvalidValueError, "modulus must be an integer from 2"),
        (0, np.zeros(8), InvalidTypeError, "codes must be"),
        (1, np.zeros(7, np.uint8), InvalidValueError, "same length"),
        (2, np.zeros(16, np.uint32), InvalidTypeError, "sets must be a two-dimensional"),
        (2, np.zeros((7, 2), np.uint32), InvalidTypeError, "a row for each of 8 users"),
        (2, np.zeros((8, 4), np.uint32)[:, ::2], InvalidTypeError, "contiguous"),
        (3, np.zeros(4, np.uint32), InvalidTypeError, "offsets must be"),
    ],
)
def test_rounds_that_do_not_fit_are_refused(
    position: int, value: Any, error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        _core.two_stage_sums(*changed(position, value))


def test_an_item_without_elected_users_must_not_be_reported() -> None:
    codes, coins, sets, _, _ = election(8, 3, 2, None)
    nobody = np.zeros(4, np.uint64)
    with pytest.raises(InvalidValueError, match="no user is elected"):
        _core.two_stage_sums(codes, coins, sets, nobody, np.zeros(0, np.uint32), 11)
    # An item that nobody reports needs nobody.
    sums, draws, additions = _core.two_stage_sums(
        np.zeros(2, np.uint32),
        np.ones(2, np.uint8),
        np.zeros((2, 1), np.uint32),
        np.array([0, 1, 1, 3], np.uint64),
        np.array([1, 0, 1], np.uint32),
        11,
    )
    assert (sums.tolist(), draws, additions) == ([2, 0, 0], 0, 2)
