"""The bytes of a grouped tally: an independent reader, and the refusal of all that is damaged."""

import contextlib
import hashlib
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout as tn
from turnout.errors import CorruptDataError, UnsupportedVersionError
from turnout.frequency.groups import GroupedTally

ORACLE = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
GROUPED = GroupedTally(
    ["day", "country"],
    {(1, "DE"): ORACLE.collect(["no"] * 5, seed=1), (2, None): ORACLE.collect([], seed=1)},
)


def parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = struct.unpack_from("<I", data, 12)
    return json.loads(data[16 : 16 + length]), data[16 + length : -32]


def sealed(header: Any, arrays: bytes, version: int = 4) -> bytes:
    text = json.dumps(header).encode()
    body = struct.pack("<8sII", b"\x89GROUP\r\n", version, len(text)) + text + arrays
    return body + hashlib.sha256(body).digest()


def test_the_layout_is_as_documented() -> None:
    data = GROUPED.to_bytes()
    header, arrays = parts(data)
    assert data.startswith(b"\x89GROUP\r\n\x04\x00\x00\x00")
    assert data[-32:] == hashlib.sha256(data[:-32]).digest()
    assert tn.Plan.from_dict(header["plan"]) == GROUPED.plan
    assert header["names"] == ["day", "country"]
    (identity,) = GROUPED[1, "DE"].origin.identities
    counted, nothing = {"identities": [identity.hex()]}, {"identities": []}
    assert header["groups"] == [
        {"key": [1, "DE"], "nodes": 5, "received": 5, "design": None, "origin": counted},
        {"key": [2, None], "nodes": 0, "received": 0, "design": None, "origin": nothing},
    ]
    assert header["origin"] == counted
    counts = np.frombuffer(arrays, "<u8").reshape(2, 2)
    assert np.array_equal(counts, [tally.support for tally in GROUPED.values()])


def test_every_changed_byte_is_seen() -> None:
    data = GROUPED.to_bytes()
    for position in range(len(data)):
        altered = bytearray(data)
        altered[position] ^= 1
        with pytest.raises((CorruptDataError, UnsupportedVersionError)):
            GroupedTally.from_bytes(bytes(altered))
    for length in range(len(data)):
        with pytest.raises(CorruptDataError):
            GroupedTally.from_bytes(data[:length])
    with pytest.raises(CorruptDataError):
        GroupedTally.from_bytes(data + b"\0")


def test_other_versions_are_refused_by_number() -> None:
    header, arrays = parts(GROUPED.to_bytes())
    with pytest.raises(UnsupportedVersionError, match="version 2"):
        GroupedTally.from_bytes(sealed(header, arrays, 2))


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header.pop("names"),
        lambda header: header.update(extra=1),
        lambda header: header.update(names=["day"]),
        lambda header: header.update(names=["day", "day"]),
        lambda header: header.update(names="da"),
        lambda header: header.update(groups={}),
        lambda header: header["groups"].reverse(),
        lambda header: header["groups"].pop(),
        lambda header: header["groups"][1].update(key=[1, "DE"]),
        lambda header: header["groups"][1].update(key=[1.5, "DE"]),
        lambda header: header["groups"][1].update(key=[{"date": "2026-1-1"}, None]),
        lambda header: header["groups"][1].update(key=[{"date": 5}, None]),
        lambda header: header["groups"][1].update(key=[[], None]),
        lambda header: header["groups"][0].update(key=[1]),
        lambda header: header["groups"][0].update(received=4),
        lambda header: header["groups"][0].update(nodes=True),
        lambda header: header["groups"][0].update(nodes=-1),
        lambda header: header["groups"][0].update(design={}),
        lambda header: header["groups"][0].update(design=[]),
        lambda header: header["groups"][0].pop("design"),
        lambda header: header["groups"][0].pop("key"),
        lambda header: header["groups"][0].pop("origin"),
        lambda header: header["groups"][0].update(origin=[]),
        lambda header: header["groups"][0].update(origin={"identities": ["AB" * 16]}),
        lambda header: header["groups"][0].update(origin={"identities": ["ab" * 15]}),
        lambda header: header["groups"][0].update(origin={"identities": ["ab" * 16] * 2}),
        lambda header: header["groups"][0].update(origin={"identities": ["01" * 16, "00" * 16]}),
        lambda header: header["groups"][0].update(origin={"identities": [5]}),
        lambda header: header["groups"][0]["origin"].update(extra=1),
        lambda header: header.pop("origin"),
        lambda header: header["groups"].insert(0, 1),
        lambda header: header["plan"].update(extra=1),
    ],
)
def test_a_sealed_header_that_says_nonsense_is_refused(change: Any) -> None:
    header, arrays = parts(GROUPED.to_bytes())
    assert GroupedTally.from_bytes(sealed(header, arrays)) == GROUPED
    change(header)
    if len(header.get("groups", [])) > len(GROUPED):
        arrays += arrays[: len(arrays) // len(GROUPED)]
    with pytest.raises(CorruptDataError) as caught:
        GroupedTally.from_bytes(sealed(header, arrays))
    assert "attribute" not in str(caught.value)


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=6,
    ),
    st.sampled_from(["plan", "names", "groups"]),
    st.binary(max_size=40),
)
def test_no_header_is_an_error_of_another_kind(value: Any, place: str, arrays: bytes) -> None:
    header, _ = parts(GROUPED.to_bytes())
    header[place] = value
    with contextlib.suppress(CorruptDataError, UnsupportedVersionError):
        again = GroupedTally.from_bytes(sealed(header, arrays))
        assert GroupedTally.from_bytes(again.to_bytes()) == again
