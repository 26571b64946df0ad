"""Fields and shares of the compiled core, against Python's integers."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest

from turnout import _core
from turnout.errors import CodeOutsideDomainError, InvalidTypeError, InvalidValueError

#: Primes of many sizes: the smallest, both sides of where code paths change, the largest.
PRIMES = [
    2, 3, 5, 127, 131, 1009, 16_381, 16_411, 65_537, 134_217_689, 134_217_757, 268_435_459,
    2_147_483_647, 2_147_483_659, 4_294_967_291, 4_294_967_311, 2**57 - 13, 2**57 + 9, 2**61 - 1,
]  # fmt: skip


def dtype(field: _core.PrimeField) -> Any:
    return np.uint32 if field.modulus <= 2**32 else np.uint64


def elements(field: _core.PrimeField, values: Any) -> np.ndarray[Any, Any]:
    return np.array([int(value) % field.modulus for value in values], dtype=dtype(field))


@pytest.fixture(params=PRIMES)
def field(request: pytest.FixtureRequest) -> _core.PrimeField:
    return _core.PrimeField(request.param)


def sample(field: _core.PrimeField, length: int, seed: int = 1) -> np.ndarray[Any, Any]:
    values = field.uniform(length, seed)
    values[: min(length, 2)] = field.modulus - 1
    return values


def test_a_field_is_named_by_its_modulus() -> None:
    field = _core.PrimeField.larger_than(1000)
    assert (field.modulus, field.bits) == (1009, 10)
    assert repr(field) == "PrimeField(modulus=1009)"
    assert [_core.PrimeField(prime).bits for prime in PRIMES] == [
        (prime - 1).bit_length() for prime in PRIMES
    ]


def test_the_next_prime_is_found() -> None:
    sieve = np.ones(20_000, dtype=bool)
    sieve[:2] = False
    for factor in range(2, 142):
        sieve[factor * factor :: factor] = False
    primes = np.flatnonzero(sieve)
    for bound in range(19_000):
        expected = primes[np.searchsorted(primes, bound, side="right")]
        assert _core.PrimeField.larger_than(bound).modulus == expected
    assert _core.PrimeField.larger_than(2**61 - 2).modulus == 2**61 - 1


def test_arithmetic_is_that_of_integers(field: _core.PrimeField) -> None:
    q = field.modulus
    left, right = sample(field, 200, 1), sample(field, 200, 2)[::-1].copy()
    pairs = [(int(one), int(other)) for one, other in zip(left, right, strict=True)]
    assert field.add(left, right).tolist() == [(one + other) % q for one, other in pairs]
    assert field.subtract(left, right).tolist() == [(one - other) % q for one, other in pairs]
    assert field.negate(left).tolist() == [-one % q for one, _ in pairs]
    for result in (field.add(left, right), field.negate(left), field.sum(np.stack([left]))):
        assert result.dtype == dtype(field)


def test_sums_of_rows_do_not_overflow(field: _core.PrimeField) -> None:
    rows = np.full((100, 3), field.modulus - 1, dtype=dtype(field))
    rows[:, 1] = sample(field, 100)
    expected = [sum(column) % field.modulus for column in rows.T.tolist()]
    assert field.sum(rows).tolist() == expected
    assert field.sum(rows[:0]).tolist() == [0, 0, 0]
    assert field.sum(rows[:, :0].copy()).tolist() == []


def test_lift_is_centred_and_reduce_its_inverse(field: _core.PrimeField) -> None:
    q = field.modulus
    values = sample(field, 200)
    lifted = field.lift(values)
    half = (q - 1) // 2
    assert lifted.dtype == np.int64
    if q == 2:
        assert set(lifted.tolist()) <= {0, 1}
    else:
        assert lifted.min() >= -half
        assert lifted.max() <= half
    assert [int(value) % q for value in lifted] == values.tolist()
    assert np.array_equal(field.reduce(lifted), values)
    extremes = np.array([-(2**63), 2**63 - 1, -1, 0, q, -q, 1 - q], dtype=np.int64)
    assert field.reduce(extremes).tolist() == [int(value) % q for value in extremes]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 7, 8, 9, 31, 200])
def test_packed_bytes_are_one_little_endian_integer(field: _core.PrimeField, length: int) -> None:
    values = sample(field, length)
    size = -(-length * field.bits // 8)
    number = sum(int(value) << (index * field.bits) for index, value in enumerate(values))
    data = field.pack(values)
    assert data == number.to_bytes(size, "little")
    assert np.array_equal(field.unpack(data, length), values)


def test_malformed_bytes_are_refused() -> None:
    field = _core.PrimeField(1009)
    data = field.pack(elements(field, [1, 2, 3]))
    for malformed in (b"", data[:-1], data + b"\0"):
        with pytest.raises(InvalidValueError, match="data must have 4 bytes for 3 elements"):
            field.unpack(malformed, 3)
    with pytest.raises(InvalidValueError, match="must end in zero bits"):
        field.unpack(data[:-1] + bytes([data[-1] | 0x40]), 3)
    with pytest.raises(InvalidValueError, match=r"data\[0\] is not an element"):
        field.unpack(b"\xff\xff\xff\x0f", 3)
    with pytest.raises(InvalidTypeError, match="data must be bytes"):
        field.unpack(bytearray(data), 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="bytes for 1844674407370955"):
        field.unpack(data, 2**64 - 1)


def test_a_seed_expands_by_the_documented_format() -> None:
    # Two blocks of AES-256 in counter mode under the key 00 01 ... 1f, by OpenSSL.
    words = bytes.fromhex("2b347c88e5c9c8ff0b7a121b687bd06d5e862279ab2d5d48119aebe5be9fec95")
    numbers = np.frombuffer(words, dtype="<u4").astype(object)
    seed = bytes(range(32))
    for modulus in (2, 1009, 4_294_967_291):
        accepted = numbers[(numbers * modulus) % 2**32 >= 2**32 % modulus]
        found = _core.PrimeField(modulus).expand(seed, 8)[: len(accepted)]
        assert found.tolist() == [int(number) for number in accepted * modulus // 2**32]
    wide, modulus = np.frombuffer(words, dtype="<u8").astype(object), 2**61 - 1
    accepted = wide[(wide * modulus) % 2**64 >= 2**64 % modulus]
    found = _core.PrimeField(modulus).expand(seed, 4)[: len(accepted)]
    assert found.tolist() == [int(number) for number in accepted * modulus // 2**64]


def test_longer_expansions_continue_shorter_ones(field: _core.PrimeField) -> None:
    long = field.expand(b"\7" * 32, 3000)
    for length in (0, 1, 30, 511, 512, 513):
        assert np.array_equal(field.expand(b"\7" * 32, length), long[:length])


@pytest.mark.parametrize("modulus", [2, 3, 5, 7, 11, 1009])
def test_elements_are_uniform(modulus: int, statistical: Any) -> None:
    field = _core.PrimeField(modulus)
    law = np.full(modulus, 1 / modulus)
    for values in (field.uniform(500_000, 1), field.expand(b"k" * 32, 500_000)):
        statistical.check_law(np.bincount(values, minlength=modulus), law)


def test_large_fields_are_uniform_in_every_eighth(statistical: Any) -> None:
    # Just above a power of two almost half of all words are drawn again.
    for modulus in (2_147_483_659, 4_294_967_291, 2**57 + 9, 2**61 - 1):
        values = _core.PrimeField(modulus).uniform(200_000, 3)
        eighths = (values.astype(object) * 8 // modulus).astype(np.int64)
        statistical.check_law(np.bincount(eighths, minlength=8), np.full(8, 1 / 8))


def test_shares_add_up(field: _core.PrimeField) -> None:
    vector = sample(field, 50)
    for parties in (2, 3, 17):
        shares = field.share(vector, parties, 5)
        assert shares.shape == (parties, 50)
        assert np.array_equal(field.sum(shares), vector)
        seeds, packed = field.share_compressed(vector, parties, 5)
        assert [len(seed) for seed in seeds] == [32] * (parties - 1)
        rows = [field.expand(seed, 50) for seed in seeds]
        rows.append(field.unpack(packed, 50))
        assert np.array_equal(field.sum(np.stack(rows)), vector)


@pytest.mark.parametrize("modulus", [2, 3, 5])
def test_all_shares_but_one_say_nothing(modulus: int, statistical: Any) -> None:
    field, length = _core.PrimeField(modulus), 100_000
    law = np.full(modulus**2, 1 / modulus**2)
    for secret in range(modulus):
        shares = field.share(np.full(length, secret, dtype=np.uint32), 3, secret)
        for one, other in itertools.combinations(shares, 2):
            statistical.check_law(np.bincount(one * modulus + other, minlength=modulus**2), law)


def test_fresh_shares_differ_and_seeded_ones_do_not() -> None:
    field = _core.PrimeField.larger_than(1000)
    vector = np.zeros(40, dtype=np.uint32)
    assert not np.array_equal(field.share(vector, 2), field.share(vector, 2))
    assert np.array_equal(field.share(vector, 2, 1), field.share(vector, 2, 1))
    assert field.share_compressed(vector, 2) != field.share_compressed(vector, 2)
    assert field.share_compressed(vector, 2, 1) == field.share_compressed(vector, 2, 1)
    # A seed on the wire is not a piece of the stream that its user draws from.
    seeds, _ = field.share_compressed(vector, 3, 1)
    assert seeds[0] != seeds[1]
    assert not np.array_equal(field.uniform(40, 1), field.expand(seeds[0], 40))


def test_a_party_adds_up_what_it_receives(field: _core.PrimeField) -> None:
    total = _core.ShareSum(field, 20)
    expected = [0] * 20
    for index in range(60):
        values = sample(field, 20, index)
        if index % 3 == 0:
            total.add(values)
        elif index % 3 == 1:
            total.add_packed(field.pack(values))
        else:
            seed = bytes([index]) * 32
            total.add_seed(seed)
            values = field.expand(seed, 20)
        expected = [
            (one + int(other)) % field.modulus for one, other in zip(expected, values, strict=True)
        ]
        assert total.count == index + 1
    assert total.finish().tolist() == expected
    assert total.finish().dtype == dtype(field)


def test_a_share_that_is_refused_leaves_the_sum_as_it_was() -> None:
    field = _core.PrimeField(1009)
    total = _core.ShareSum(field, 3)
    total.add(elements(field, [1, 2, 3]))
    with pytest.raises(InvalidValueError, match=r"values\[1\] is not an element"):
        total.add(np.array([5, 1009, 5], dtype=np.uint32))
    with pytest.raises(InvalidValueError, match=r"values and the sum must have the same length"):
        total.add(elements(field, [1, 2]))
    with pytest.raises(InvalidValueError, match="data must have 4 bytes for 3 elements"):
        total.add_packed(b"123")
    with pytest.raises(InvalidValueError, match=r"data\[0\] is not"):
        total.add_packed(b"\xff\xff\xff\x0f")
    with pytest.raises(InvalidValueError, match="seed must have 32 bytes, got 5"):
        total.add_seed(b"short")
    with pytest.raises(InvalidTypeError, match="seed must be bytes, got"):
        total.add_seed("a" * 32)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match=r"values must be .* dtype uint32, got dtype int64"):
        total.add(np.array([1, 2, 3]))
    assert (total.count, total.finish().tolist()) == (1, [1, 2, 3])


def test_threads_may_share_a_sum() -> None:
    # Long enough that the interpreter lock is let go.
    field, length = _core.PrimeField(1009), 70_000
    total = _core.ShareSum(field, length)
    ones = np.ones(length, dtype=np.uint32)

    def work() -> None:
        for _ in range(20):
            total.add(ones)
            total.finish()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total.count == 80
    assert set(total.finish().tolist()) == {80}


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("parties", [2, 3, 300])
def test_a_round_adds_up_to_the_counts(parties: int, compressed: bool) -> None:
    codes = np.arange(300, dtype=np.uint32) % 7
    field = _core.PrimeField.larger_than(300)
    sums, draws, additions = field.share_one_hot(codes, 1.0, 9, parties, compressed, 3)
    assert sums.shape == (parties, 9)
    assert field.sum(sums).tolist() == np.bincount(codes, minlength=9).tolist()
    assert draws == 300 * (parties - 1) * 9
    assert additions == 300 * (parties - 1) * 9 + parties * 299 * 9
    again, _, _ = field.share_one_hot(codes, 1.0, 9, parties, compressed, 3)
    assert np.array_equal(sums, again)
    fresh, _, _ = field.share_one_hot(codes, 1.0, 9, parties, compressed)
    assert not np.array_equal(sums, fresh)
    silent, _, _ = field.share_one_hot(codes, 0.0, 9, parties, compressed)
    assert not field.sum(silent).any()
    nobody, draws, additions = field.share_one_hot(codes[:0], 0.5, 9, parties, compressed)
    assert (nobody.any(), draws, additions) == (False, 0, 0)


def test_a_round_counts_each_user_with_the_rate(statistical: Any) -> None:
    codes = np.repeat(np.arange(3, dtype=np.uint32), [50, 20, 5])
    field, rate = _core.PrimeField.larger_than(75), 0.3
    counts = []
    for seed in range(4000):
        sums, _, _ = field.share_one_hot(codes, rate, 3, 2, seed % 2 == 0, seed)
        counts.append(field.sum(sums))
    held = np.array([50, 20, 5])
    statistical.check_mean(counts, held * rate)
    statistical.check_variance(counts, held * rate * (1 - rate))


def test_the_sum_of_a_party_is_uniform(statistical: Any) -> None:
    # Of the sums of three parties any two are uniform, whatever the users hold.
    field, codes = _core.PrimeField(3), np.ones(2, dtype=np.uint32)
    for compressed in (False, True):
        rows = [
            field.share_one_hot(codes, 1.0, 2, 3, compressed, seed)[0][:, 1] for seed in range(9000)
        ]
        table = np.array(rows)
        for one, other in itertools.combinations(table.T, 2):
            statistical.check_law(np.bincount(one * 3 + other, minlength=9), np.full(9, 1 / 9))


@pytest.mark.parametrize("modulus", [0, 1, 4, 1001, 2**61, 2**61 + 15, 2**64 - 1])
def test_a_modulus_must_be_a_prime_in_range(modulus: int) -> None:
    with pytest.raises(InvalidValueError, match=f"modulus must be a prime .*, got {modulus}"):
        _core.PrimeField(modulus)


def test_bad_input_is_named() -> None:
    field = _core.PrimeField(11)
    wide = _core.PrimeField(2**61 - 1)
    ones = np.ones(4, dtype=np.uint32)
    with pytest.raises(InvalidValueError, match="bound must be below"):
        _core.PrimeField.larger_than(2**61 - 1)
    with pytest.raises(InvalidValueError, match="left and right must have the same length"):
        field.add(ones, ones[:2])
    with pytest.raises(InvalidValueError, match=r"right\[3\] is not .* from 0 to 10"):
        field.subtract(ones, np.array([1, 1, 1, 11], dtype=np.uint32))
    with pytest.raises(InvalidTypeError, match=r"left must be .* uint64, got dtype uint32"):
        wide.add(ones, ones)
    with pytest.raises(InvalidTypeError, match=r"rows must be a two-dimensional .* 1 dimension"):
        field.sum(ones)
    with pytest.raises(InvalidTypeError, match="C-contiguous"):
        field.sum(np.ones((3, 4), dtype=np.uint32).T)
    with pytest.raises(InvalidTypeError, match="contiguous"):
        field.negate(ones[::2])
    with pytest.raises(InvalidTypeError, match="int64"):
        field.reduce(ones)  # type: ignore[arg-type]
    for parties in (0, 1):
        with pytest.raises(InvalidValueError, match=f"parties .* at least 2, got {parties}"):
            field.share(ones, parties)
        with pytest.raises(InvalidValueError, match=f"parties .* at least 2, got {parties}"):
            field.share_compressed(ones, parties)
    with pytest.raises(InvalidValueError, match="parties must be at most"):
        field.share(ones, 2**40)
    for call in (field.uniform, lambda length: field.expand(b"0" * 32, length)):
        with pytest.raises(InvalidValueError, match="length must be an integer of at most"):
            call(2**40)
    with pytest.raises(InvalidValueError, match="length must be an integer of at most"):
        _core.ShareSum(field, 2**40)


def test_bad_rounds_are_named() -> None:
    field = _core.PrimeField(11)
    codes = np.array([0, 3, 1], dtype=np.uint32)
    with pytest.raises(CodeOutsideDomainError, match=r"codes\[1\] is not a code"):
        field.share_one_hot(codes, 0.5, 3, 2, False)
    with pytest.raises(InvalidTypeError, match=r"codes must be .* uint32"):
        field.share_one_hot(codes.astype(np.int64), 0.5, 4, 2, False)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="codes must be"):
        field.share_one_hot(codes[None], 0.5, 4, 2, False)
    for rate in (-0.1, 1.5, float("nan")):
        with pytest.raises(InvalidValueError, match="rate must be a probability"):
            field.share_one_hot(codes, rate, 4, 2, False)
    with pytest.raises(InvalidValueError, match="domain_size must be"):
        field.share_one_hot(codes, 0.5, 1, 2, False)
    with pytest.raises(InvalidValueError, match="parties must be"):
        field.share_one_hot(codes, 0.5, 4, 1, False)
