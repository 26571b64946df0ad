"""Tallies: adding up, and bytes that are read back exactly or refused."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import struct
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout as tn
from turnout.collecting.origin import Origin
from turnout.collecting.sums import DesignSums, WeightedSums
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    MemoryLimitError,
    UnsupportedVersionError,
)

LABELS = ["no", "yes", ("x", 2)]


def u64(*rows: tuple[int, int]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.array(rows, dtype=np.uint64)


def plain_tally() -> tn.Tally:
    plan = tn.Plan(tn.DirectEncoding(1.5, tn.Domain(LABELS)), tn.Bernoulli(0.25))
    return tn.Tally(plan, [3, 0, 2**40], 2**40 + 3, 2**42, origin=Origin.named("plain"))


def personal_tally() -> tn.Tally:
    plan = tn.Plan(tn.DirectEncoding(0.5, 3), tn.Personalized([]))
    return tn.Tally(
        plan,
        [1, 0, 2],
        3,
        7,
        weights=WeightedSums(
            u64((2**33, 0), (0, 0), (5 * 2**32, 1), (7 * 2**32, 1)),
            u64((2**34, 0), (0, 0), (13 * 2**32, 3), (17 * 2**32, 3)),
        ),
        design=DesignSums(4 * 2**64 + 17, 3 * 2**64 + 5),
        origin=Origin.named("personal"),
    )


TALLIES = {"plain": plain_tally, "personal": personal_tally}

VERSION_4 = {
    "plain": (
        "8954414c4c590d0a040000003e0100007b2264657369676e223a6e756c6c2c226e6f646573223a3433393830"
        "34363531313130342c226f726967696e223a7b226964656e746974696573223a5b2265643761643231626265"
        "32623664393330616537636665333162306235366262225d7d2c22706c616e223a7b22666f726d6174223a22"
        "7475726e6f75742d706c616e222c226f7261636c65223a7b22646f6d61696e223a7b226c6162656c73223a5b"
        "226e6f222c22796573222c7b227475706c65223a5b2278222c325d7d5d7d2c22657073696c6f6e223a312e35"
        "2c226e616d65223a226469726563745f656e636f64696e67227d2c2270617274696369706174696f6e223a7b"
        "226b696e64223a226265726e6f756c6c69222c2272617465223a302e32357d2c2276657273696f6e223a317d"
        "2c227265636569766564223a313039393531313632373737397d030000000000000000000000000000000000"
        "0000000100004301a194ae94ca7322752a4a10c2764d022015bb0e6a658989c5aeef0138933d"
    ),
    "personal": (
        "8954414c4c590d0a040000004d0100007b2264657369676e223a7b2270726f626162696c697479223a373337"
        "38363937363239343833383230363438312c2270726f626162696c6974795f73717561726564223a35353334"
        "303233323232313132383635343835337d2c226e6f646573223a372c226f726967696e223a7b226964656e74"
        "6974696573223a5b226635326630613665306362623531393530623333643630393437356332343436225d7d"
        "2c22706c616e223a7b22666f726d6174223a227475726e6f75742d706c616e222c226f7261636c65223a7b22"
        "646f6d61696e223a7b22696e746567657273223a337d2c22657073696c6f6e223a302e352c226e616d65223a"
        "226469726563745f656e636f64696e67227d2c2270617274696369706174696f6e223a7b226b696e64223a22"
        "706572736f6e616c697a6564227d2c2276657273696f6e223a317d2c227265636569766564223a337d010000"
        "0000000000000000000000000002000000000000000000000002000000000000000000000000000000000000"
        "0000000000000000000000000005000000010000000000000000000000070000000100000000000000000000"
        "0004000000000000000000000000000000000000000000000000000000000000000d00000003000000000000"
        "0000000000110000000300000000000000dac0025da054454dcdc9c6350f74b33e752fe77b96192d4d2be33b"
        "9ab39846f3"
    ),
}


@pytest.mark.parametrize("name", TALLIES)
def test_version_4_never_changes(name: str) -> None:
    tally, data = TALLIES[name](), bytes.fromhex(VERSION_4[name])
    assert tally.to_bytes() == data
    assert tn.Tally.from_bytes(data) == tally


def test_version_4_is_laid_out_as_documented() -> None:
    data = personal_tally().to_bytes()
    magic, version, length = struct.unpack_from("<8sII", data)
    assert magic == bytes.fromhex("8954414c4c590d0a")
    assert version == 4
    header = json.loads(data[16 : 16 + length])
    assert header.keys() == {"plan", "nodes", "received", "design", "origin"}
    assert header["plan"] == personal_tally().plan.to_dict()
    assert (header["nodes"], header["received"]) == (7, 3)
    identity = hashlib.sha256(struct.pack("<Q", 8) + b"personal").digest()[:16]
    assert header["origin"] == {"identities": [identity.hex()]}
    support = struct.unpack_from("<3Q", data, 16 + length)
    assert support == (1, 0, 2)
    weights = struct.unpack_from("<16Q", data, 16 + length + 24)
    assert weights[:8] == (2**33, 0, 0, 0, 5 * 2**32, 1, 7 * 2**32, 1)
    assert weights[8:] == (2**34, 0, 0, 0, 13 * 2**32, 3, 17 * 2**32, 3)
    assert data[16 + length + 24 + 128 :] == hashlib.sha256(data[:-32]).digest()
    assert len(data) == 16 + length + 24 + 128 + 32


def collected(size: int, nodes: int, kind: int, seed: int, rates_seed: int = 0) -> tn.Tally:
    """A tally of a population; tallies of the same size and kind are under one plan."""
    domain = tn.Domain([f"label {code}" for code in range(size)])
    codes = np.random.default_rng(seed).integers(0, size, nodes)
    rates = np.random.default_rng(rates_seed + seed).uniform(0.001, 1, nodes)
    who = [tn.Everyone(), tn.Bernoulli(0.4), tn.Personalized(rates)][kind]
    values = np.array(domain.labels)[codes]
    return tn.DirectEncoding(0.7, domain).collect(values, participation=who, seed=seed)


@settings(max_examples=100, deadline=None)
@given(
    size=st.integers(2, 300),
    nodes=st.integers(0, 400),
    kind=st.integers(0, 2),
    seed=st.integers(0, 10**6),
)
def test_any_tally_comes_back_from_its_bytes(size: int, nodes: int, kind: int, seed: int) -> None:
    tally = collected(size, nodes, kind, seed)
    data = tally.to_bytes()
    for form in (data, bytearray(data), memoryview(data)):
        other = tn.Tally.from_bytes(form)  # type: ignore[arg-type]
        assert other == tally
        assert other.plan.fingerprint == tally.plan.fingerprint
        assert other.to_bytes() == data
        assert other.weights == tally.weights
        assert other.design == tally.design
        assert not other.support.flags.writeable


@pytest.mark.parametrize("name", TALLIES)
def test_a_tally_cut_anywhere_is_refused(name: str) -> None:
    data = TALLIES[name]().to_bytes()
    for length in range(len(data)):
        with pytest.raises(CorruptDataError):
            tn.Tally.from_bytes(data[:length])


@pytest.mark.parametrize("name", TALLIES)
def test_a_tally_without_its_beginning_is_refused(name: str) -> None:
    data = TALLIES[name]().to_bytes()
    for start in range(1, len(data)):
        with pytest.raises(CorruptDataError):
            tn.Tally.from_bytes(data[start:])


@pytest.mark.parametrize("name", TALLIES)
def test_a_tally_with_anything_after_it_is_refused(name: str) -> None:
    data = TALLIES[name]().to_bytes()
    for more in (b"\0", b"\n", b"\0" * 32, data):
        with pytest.raises(CorruptDataError):
            tn.Tally.from_bytes(data + more)


@pytest.mark.parametrize("name", TALLIES)
def test_a_tally_with_any_bit_flipped_is_refused(name: str) -> None:
    data = TALLIES[name]().to_bytes()
    for position, bit in itertools.product(range(len(data)), range(8)):
        altered = bytearray(data)
        altered[position] ^= 1 << bit
        with pytest.raises(CorruptDataError):
            tn.Tally.from_bytes(bytes(altered))


@pytest.mark.parametrize("name", TALLIES)
def test_a_tally_with_random_bytes_altered_is_refused(name: str) -> None:
    data = TALLIES[name]().to_bytes()
    source = random.Random(20)
    for _ in range(3000):
        altered = bytearray(data)
        for _ in range(source.randint(1, 20)):
            altered[source.randrange(len(data))] = source.randrange(256)
        if source.random() < 0.3:
            del altered[source.randrange(len(data)) :]
        if source.random() < 0.3:
            place = source.randrange(len(altered) + 1)
            altered[place:place] = source.randbytes(source.randint(1, 9))
        if altered != data:
            with pytest.raises(CorruptDataError):
                tn.Tally.from_bytes(bytes(altered))


@settings(max_examples=300, deadline=None)
@given(data=st.binary(max_size=200))
def test_any_other_bytes_are_no_tally(data: bytes) -> None:
    for given_bytes in (data, b"\x89TALLY\r\n" + data, b"\x89TALLY\r\n\3\0\0\0" + data):
        with pytest.raises(CorruptDataError, match="tally"):
            tn.Tally.from_bytes(given_bytes)


def sealed(text: bytes, arrays: bytes, *, version: int = 4, length: int | None = None) -> bytes:
    """Bytes of a tally with any content and a right checksum."""
    body = struct.pack("<8sII", b"\x89TALLY\r\n", version, len(text) if length is None else length)
    body += text + arrays
    return body + hashlib.sha256(body).digest()


def opened(data: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack_from("<I", data, 12)
    return json.loads(data[16 : 16 + length]), data[16 + length : -32]


def canonical(header: Any) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()


@pytest.mark.parametrize("version", [0, 1, 2, 3, 2**31, 2**32 - 1])
@pytest.mark.parametrize("name", TALLIES)
def test_an_unknown_version_is_named(version: int, name: str) -> None:
    header, arrays = opened(TALLIES[name]().to_bytes())
    expected = f"the tally has version {version}; this release of turnout reads 4"
    for data in (
        sealed(canonical(header), arrays, version=version),
        sealed(b"something else", b"", version=version),
    ):
        with pytest.raises(UnsupportedVersionError) as caught:
            tn.Tally.from_bytes(data)
        assert str(caught.value) == expected


def test_an_unknown_version_of_the_plan_is_named() -> None:
    header, arrays = opened(plain_tally().to_bytes())
    header["plan"]["version"] = 3
    with pytest.raises(UnsupportedVersionError, match=r"the plan has version 3; .* reads 1"):
        tn.Tally.from_bytes(sealed(canonical(header), arrays))


def test_the_checksum_alone_can_be_made_again() -> None:
    # So that the refusals below are those of the header, not of the checksum.
    for make in TALLIES.values():
        header, arrays = opened(make().to_bytes())
        assert tn.Tally.from_bytes(sealed(canonical(header), arrays)) == make()


@pytest.mark.parametrize("length", [0, 1, 15, 10_000, 2**31, 2**32 - 1])
def test_a_wrong_length_of_the_header_is_refused(length: int) -> None:
    header, arrays = opened(plain_tally().to_bytes())
    with pytest.raises(CorruptDataError):
        tn.Tally.from_bytes(sealed(canonical(header), arrays, length=length))


TEXTS = {
    "empty": b"",
    "no JSON": b"{",
    "no text": b"\xff\xfe\xfd\xfc",
    "null": b"null",
    "a number": b"1",
    "a list": b"[]",
    "text": b'"plan"',
    "empty object": b"{}",
    "deep lists": b"[" * 50_000,
    "deep and closed lists": b"[" * 900 + b"]" * 900,
    "deep objects": b'{"plan":' * 50_000,
    "a number of 10,000 digits": b"1" * 10_000,
    "nul": b"\0" * 50,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_header_that_is_none_is_refused_whatever_its_checksum(text: bytes) -> None:
    _, arrays = opened(plain_tally().to_bytes())
    with pytest.raises(CorruptDataError) as caught:
        tn.Tally.from_bytes(sealed(text, arrays))
    assert "attribute" not in str(caught.value)


def test_labels_nested_too_deeply_are_refused() -> None:
    header, arrays = opened(plain_tally().to_bytes())
    for depth in (2000, 100_000):
        deep = b'{"tuple":[' * depth + b"]}" * depth
        with pytest.raises(CorruptDataError):
            tn.Tally.from_bytes(sealed(canonical(header).replace(b'"no"', deep), arrays))


def each(name: str, path: str, *values: Any) -> list[tuple[str, str, Any]]:
    return [(name, path, value) for value in values]


#: What is edited (a path into the header of the plain or of the personal tally), and the new value;
#: ... removes the entry.
EDITS: list[tuple[str, str, Any]] = [
    *each("plain", "nodes", -1, 0, 2**40 + 2, None, True, "9", 1e15, [], {}, ...),
    *each("plain", "nodes", 2**64, 2**70, 10**30, 10**400),
    *each("plain", "received", -1, 0, 2**40 + 2, 2**40 + 4, 2**42 + 1, 2**70),
    *each("plain", "received", None, False, "3", 3.0, [], {}, ...),
    *each("plain", "design", ..., {}, 0, False, "", [], [1, 2]),
    *each("plain", "design", {"probability": 2**66, "probability_squared": 2**66}),
    *each("personal", "design", None, ..., {}, 0, [], "x"),
    *each("personal", "design.probability", ..., None, -1, 0, 1, "1", 1.5, True, 2**70, 10**400),
    *each("personal", "design.probability_squared", ..., None, -1, 4 * 2**64 + 18, "1", 10**400),
    *each("personal", "design.more", 1),
    *each("personal", "nodes", 2, -1, None, 2**64),
    *each("plain", "plan", ..., None, {}, [], "plan", 1),
    *each("plain", "plan.format", ..., None, "turnout-reports"),
    *each("plain", "plan.version", ..., None, 2, "1", True),
    *each("plain", "plan.more", 1),
    *each("plain", "plan.oracle", ..., None, {}, [], "direct_encoding"),
    *each("plain", "plan.oracle.name", ..., None, "telepathy", ["x"], {}),
    *each("plain", "plan.oracle.epsilon", ..., None, True, "1", 0, -1.5, 45, 10**400),
    *each("plain", "plan.oracle.epsilon", float("nan"), float("inf")),
    *each("plain", "plan.oracle.domain", ..., None, [], {}, "abc", ["a", "b", "c"]),
    *each("plain", "plan.oracle.domain", {"labels": ["a"]}, {"labels": list("abcd")}),
    *each("plain", "plan.oracle.domain", {"labels": ["a", "a", "b"]}, {"labels": [1, True, 2]}),
    *each("plain", "plan.oracle.domain", {"labels": [["a"], 1, 2]}, {"labels": [{"x": 1}, 1, 2]}),
    *each("plain", "plan.oracle.domain", {"labels": [float("nan"), 1, 2]}, {"labels": "abc"}),
    *each("plain", "plan.oracle.domain", {"labels": [float("inf"), 1, 2]}, {"integers": 2}),
    *each("plain", "plan.oracle.domain", {"integers": 4}, {"integers": -1}, {"integers": 3.0}),
    *each("plain", "plan.oracle.domain", {"integers": 2**32 - 1}, {"integers": 2**32}),
    *each("plain", "plan.oracle.domain", {"integers": 2**70}, {"integers": True}),
    *each("plain", "plan.oracle.domain", {"integers": 3, "labels": ["a", "b", "c"]}),
    *each("plain", "plan.participation", ..., None, {}, "bernoulli"),
    *(
        ("plain", "plan.participation", {"kind": "bernoulli", "rate": rate})
        for rate in (0.0, -0.5, 1.5, float("nan"), None, "0.5", 1, True)
    ),
    *each("plain", "plan.participation", {"kind": "everyone"}, {"kind": "personalized"}),
    *each("personal", "plan.participation", {"kind": "everyone"}),
    *each("personal", "plan.participation", {"kind": "bernoulli", "rate": 0.5}),
    *each("plain", "more", None),
]


def edit(header: dict[str, Any], path: str, value: Any) -> None:
    *way, last = path.split(".")
    for name in way:
        header = header[name]
    if value is ...:
        del header[last]
    else:
        header[last] = value


@pytest.mark.parametrize(
    ("name", "path", "value"),
    EDITS,
    ids=[f"{number}-{path}" for number, (_, path, _) in enumerate(EDITS)],
)
def test_a_header_of_nonsense_is_refused_whatever_its_checksum(
    name: str, path: str, value: Any
) -> None:
    header, arrays = opened(TALLIES[name]().to_bytes())
    edit(header, path, value)
    text = canonical(header)
    with pytest.raises(CorruptDataError, match=r"tally|plan|description|sums|version"):
        tn.Tally.from_bytes(sealed(text, arrays))


@pytest.mark.parametrize("name", TALLIES)
def test_counts_that_contradict_the_header_are_refused(name: str) -> None:
    header, arrays = opened(TALLIES[name]().to_bytes())
    text = canonical(header)
    numbers = np.frombuffer(arrays, dtype="<u8")
    wrong = [b"", arrays[:-1], arrays[:-8], arrays + b"\0" * 8, arrays * 2, bytes(len(arrays))]
    for position in range(3):
        for count in (numbers[position] + np.uint64(1), np.uint64(2**63), np.uint64(2**64 - 1)):
            changed = numbers.copy()
            changed[position] = count
            wrong.append(changed.tobytes())
    for given_arrays in wrong:
        with pytest.raises(CorruptDataError):
            tn.Tally.from_bytes(sealed(text, given_arrays))


def test_weights_that_no_reports_can_have_are_refused() -> None:
    # 24 bytes of support, then (low, high) of the sums of 1/pi and of 1/pi^2 for each code.
    header, arrays = opened(personal_tally().to_bytes())
    text = canonical(header)
    for position, value in [
        (3, 0),  # one report with no weight
        (3, 2**32 - 1),  # one report with less than the weight of certainty
        (5, 1),  # a weight without a report
        (9, 2**32),  # the sum of squares below the sum
        (11, 2**32),  # a square without a report
    ]:
        numbers = np.frombuffer(arrays, dtype="<u8").copy()
        assert numbers[position] != value
        numbers[position] = value
        with pytest.raises(CorruptDataError, match="weights do not fit"):
            tn.Tally.from_bytes(sealed(text, numbers.tobytes()))


VALUE = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(10**300, 10**400),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(["labels", "integers", "kind", "bernoulli", "everyone", "personalized"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.text(max_size=3), st.sampled_from(["labels", "integers", "kind", "tuple"])
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)
PATHS = sorted({(name, path) for name, path, _ in EDITS})


@settings(max_examples=500, deadline=None)
@given(place=st.sampled_from(PATHS), value=VALUE)
def test_whatever_the_header_says_it_is_read_exactly_or_refused(
    place: tuple[str, str], value: Any
) -> None:
    name, path = place
    header, arrays = opened(TALLIES[name]().to_bytes())
    edit(header, path, value)
    data = sealed(canonical(header), arrays)
    try:
        tally = tn.Tally.from_bytes(data)
    except CorruptDataError:
        return
    # What is read is a tally like any other: it can be written, read and estimated.
    assert tn.Tally.from_bytes(tally.to_bytes()) == tally
    assert np.isfinite(tally.estimate("T").frequencies).all()


@pytest.mark.parametrize("data", [None, 1, "text", [1, 2], np.zeros(3)])
def test_what_is_not_bytes_is_refused(data: Any) -> None:
    with pytest.raises(InvalidTypeError, match="data must be bytes, got"):
        tn.Tally.from_bytes(data)


def test_labels_that_a_file_cannot_hold_are_refused_by_name() -> None:
    oracle = tn.DirectEncoding(1.0, tn.Domain(["a", b"bytes"]))
    with pytest.raises(InvalidTypeError, match="label b'bytes' cannot be written to a file"):
        oracle.collect(["a"], seed=1).to_bytes()


def test_more_answers_than_memory_holds_are_refused() -> None:
    def out_of_memory(*_: Any) -> Any:
        raise MemoryError("Unable to allocate 32.0 GiB")

    plan = tn.Plan(tn.DirectEncoding(1.0, 2**32 - 1), tn.Everyone())
    with (
        mock.patch.object(tn.Tally, "_none", out_of_memory),
        pytest.raises(MemoryLimitError, match=r"not enough memory for the sums of Domain.from_in"),
    ):
        tn.Tally.empty(plan)
