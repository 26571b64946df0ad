"""Random choices that do not depend on answers."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import turnout as tn
from turnout import _core
from turnout._seeds import derived
from turnout.errors import InvalidValueError
from turnout.frequency.draws import participants, weighted_choices


@pytest.mark.parametrize("size", [2, 3, 7, 1000])
def test_integers_below_a_number_are_uniform(size: int, statistical: ModuleType) -> None:
    codes = _core.uniform_integers(size, 200_000, 1)
    statistical.check_law(np.bincount(codes, minlength=size), [1 / size] * size)
    assert (_core.uniform_integers(size, 50, 1) == _core.uniform_integers(size, 50, 1)).all()
    assert (_core.uniform_integers(size, 50) != _core.uniform_integers(size, 50)).any()


def test_uniform_numbers_have_52_bits() -> None:
    doubled = _core.uniforms(10_000, 3) * 2.0**53
    assert (doubled % 2 == 1).all()
    assert 0 < doubled.min() < doubled.max() < 2.0**53


def test_integers_below_a_large_number_are_even(statistical: ModuleType) -> None:
    size = 2**32 - 1
    codes = _core.uniform_integers(size, 100_000, 2)
    assert codes.max() < size
    statistical.check_law(np.bincount(codes * 8 // size, minlength=8), [1 / 8] * 8)
    statistical.check_law(np.bincount(codes % 5, minlength=5), [0.2] * 5)


def test_words_above_the_largest_multiple_are_drawn_again(statistical: ModuleType) -> None:
    size = 3 * 2**61  # a quarter of the words would fold onto some of the integers
    codes = _core.uniform_integers(size, 20_000, 2)
    statistical.check_law(np.bincount(codes // 2**61, minlength=3), [1 / 3] * 3)


@pytest.mark.parametrize("rate", [0.1, 0.5, 1e-4, 2.0**-40])
def test_as_many_take_part_as_the_rate_says(rate: float, statistical: ModuleType) -> None:
    who = participants(tn.Bernoulli(rate), 500_000, 4)
    statistical.check_share(who.size, 500_000, rate, rate)
    assert (np.diff(who) > 0).all()
    assert participants(tn.Everyone(), 5, 4).tolist() == [0, 1, 2, 3, 4]


def test_personal_probabilities_are_those_of_the_nodes(statistical: ModuleType) -> None:
    chances = np.tile([0.05, 0.5, 1.0], 100_000)
    taking_part = np.zeros(chances.size)
    taking_part[participants(tn.Personalized(chances), chances.size, 5)] = 1
    hits = taking_part.reshape(-1, 3).sum(axis=0)
    for hit, chance in zip(hits, chances, strict=False):
        statistical.check_share(int(hit), 100_000, chance, chance)
    with pytest.raises(InvalidValueError, match="one probability for each of the 2"):
        participants(tn.Personalized([0.5]), 2, 1)
    with pytest.raises(
        InvalidValueError, match="participation must contain the probabilities, got"
    ):
        participants(tn.Personalized([0.5])._in_plan(), 1, 1)


def test_choices_follow_their_weights(statistical: ModuleType) -> None:
    chosen = weighted_choices([1, 0, 3], 100_000, 6)
    statistical.check_law(np.bincount(chosen, minlength=3), [0.25, 0.0, 0.75])


def test_derived_seeds_differ_by_their_path() -> None:
    paths = [(), (0,), (1,), (0, 0), (0, 1), (1, 0)]
    assert len({derived(7, *path) for path in paths} | {derived(8, *path) for path in paths}) == 12
    assert derived(7 + 2**32, 1) not in {derived(7, 1, 1), derived(7, 1)}
    assert derived(None, 3) is None
