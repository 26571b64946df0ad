"""Values as bits: what goes in comes out, and prefixes are those of the bits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.errors import InvalidValueError
from turnout.frequency.heavy_hitters import HeavyHitters
from turnout.frequency.heavy_hitters.prefixes import extended
from turnout.frequency.heavy_hitters.values import IntegerValues, TextValues, keys, values_from_dict


@settings(deadline=None)
@given(bits=st.integers(1, 64), data=st.data())
def test_whole_numbers_come_back(bits: int, data: st.DataObject) -> None:
    kind = IntegerValues(bits)
    given_numbers = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=1, max_size=5))
    rows = kind.encode(given_numbers)
    assert rows.shape == (len(given_numbers), -(-bits // 8))
    assert [kind.decode(row) for row in rows] == given_numbers
    shown = [kind.shown(row, bits) for row in rows]
    assert shown == [format(number, f"0{bits}b") for number in given_numbers]


@settings(deadline=None)
@given(st.lists(st.text(max_size=4).filter(lambda text: "\0" not in text), min_size=1))
def test_texts_come_back(texts: list[str]) -> None:
    texts = [text for text in texts if text.isprintable()]
    kind = TextValues(16)
    rows = kind.encode(texts)
    assert [kind.decode(row) for row in rows] == texts
    for bits in (1, 8, 13, 24, kind.bits):
        assert kind.possible(rows, bits).all()


@settings(deadline=None)
@given(st.lists(st.text("abcde-", max_size=7), min_size=1))
def test_texts_of_an_alphabet_come_back(texts: list[str]) -> None:
    kind = TextValues(7, "abcde-")
    assert (kind.symbol_bits, kind.bits) == (3, 21)
    rows = kind.encode(texts)
    assert [kind.decode(row) for row in rows] == texts
    for bits in range(1, 22):
        assert kind.possible(rows, bits).all()


@pytest.mark.parametrize("kind", [TextValues(3, "ab"), TextValues(2, "abcd")])
def test_possible_prefixes_are_those_of_all_texts(kind: TextValues) -> None:
    import itertools

    assert kind.alphabet is not None
    texts = [
        "".join(letters)
        for length in range(kind.length + 1)
        for letters in itertools.product(kind.alphabet, repeat=length)
    ]
    rows = kind.encode(texts)
    for bits in range(1, kind.bits + 1):
        every = extended([""], bits, kind.bits)
        assert set(keys(every[kind.possible(every, bits)], bits)) == set(keys(rows, bits))


def test_prefixes_of_utf8_that_no_text_has_are_left_out() -> None:
    kind = TextValues(2)
    rows = np.array([[0xFF, 0], [0x80, 0], [0, 65], [0xC3, 0xBC], [0xC3, 0], [65, 0]], np.uint8)
    assert kind.possible(rows, 16).tolist() == [False, False, False, True, False, True]
    assert kind.possible(rows, 8).tolist() == [False, False, True, True, True, True]


def test_columns_of_texts_may_be_categorical() -> None:
    column = pd.Series(["b", "a", "b"], dtype="category")
    kind = TextValues(1, "ab")
    assert kind.encode(column).tolist() == kind.encode(["b", "a", "b"]).tolist()
    assert kind.encode([]).shape == (0, 1)


def test_codes_are_those_of_the_candidates_and_the_last_of_all_others() -> None:
    search = HeavyHitters(8.0, bits=10, step=2, keep=2).rounds()
    first = search.current
    values = np.arange(1024)
    assert (first.domain.encode(values) == values >> 7).all()
    search.close(first.tally(first.randomize(np.repeat([0b1010000000, 0b0010000000], 500), seed=1)))
    second = search.current
    prefixes = [0b00100, 0b00101, 0b00110, 0b00111, 0b10100, 0b10101, 0b10110, 0b10111]
    assert [int(text.rstrip("*"), 2) for text in second.candidates] == prefixes
    expected = [prefixes.index(v >> 5) if v >> 5 in prefixes else 8 for v in values.tolist()]
    assert second.domain.encode(values).tolist() == expected
    assert second.domain.labels[-1] == "other"


def test_prefixes_are_shown_as_their_whole_characters_and_the_bits_of_the_next() -> None:
    kind = TextValues(4, "ab")
    (row,) = kind.encode(["ab"])
    assert [kind.shown(row, bits) for bits in (1, 2, 4, 6, 8)] == ["*0", "a*", "ab*", "ab", "ab"]


@pytest.mark.parametrize("kind", [IntegerValues(12), TextValues(3), TextValues(3, "abc")])
def test_kinds_are_read_back(kind: IntegerValues | TextValues) -> None:
    assert values_from_dict(kind.to_dict()) == kind


def test_characters_that_repeat_are_named() -> None:
    with pytest.raises(InvalidValueError, match="with 'b' more than once"):
        TextValues(3, "abcb")
