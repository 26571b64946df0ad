"""Plan files: what is written, what is read, and everything that is refused."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout as tn
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    PlanExpiredError,
    UnsupportedVersionError,
)
from turnout.signing import SigningKey, verify

KEY = SigningKey(bytes(range(32)))
OTHER = SigningKey(bytes(32))
PLAN = tn.Plan(tn.DirectEncoding(1.5, tn.Domain(["no", "yes", ("x", 2)])), tn.Bernoulli(0.25))

WRITTEN = """\
{
  "format": "turnout-plan-file",
  "version": 1,
  "plan": {"format":"turnout-plan","oracle":{"domain":{"labels":["no","yes",{"tuple":["x",2]}]},\
"epsilon":1.5,"name":"direct_encoding"},"participation":{"kind":"bernoulli","rate":0.25},\
"version":1},
  "fingerprint": "32e0ea8dde9e493fe6ef1d0ee85328847d921e93e6a4e8c41f736e42900ca7d2",
  "signature": {"algorithm":"ed25519",\
"public_key":"03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8",\
"value":"SIGNATURE"}
}
"""

Read = Callable[..., tn.Plan]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "plan.json"


@pytest.fixture
def read(path: Path) -> Read:
    """Write a text to a file and read it as a plan."""

    def reading(text: str | bytes, public_key: str | None = None) -> tn.Plan:
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return tn.Plan.read(path, public_key=public_key)

    return reading


def text_of(plan: tn.Plan, path: Path, key: SigningKey | None = None) -> str:
    plan.write(path, signing_key=key)
    return path.read_text(encoding="ascii")


def test_the_file_of_a_plan_never_changes(path: Path) -> None:
    signature = KEY.sign(b"turnout-plan-file v1\0" + bytes.fromhex(PLAN.fingerprint))
    assert text_of(PLAN, path, KEY) == WRITTEN.replace("SIGNATURE", signature.hex())
    assert tn.Plan.read(path) == tn.Plan.read(path, public_key=KEY.public_key) == PLAN
    unsigned = text_of(PLAN, path)
    assert "signature" not in json.loads(unsigned)
    assert tn.Plan.read(path) == PLAN


def test_a_device_refuses_a_plan_that_is_older_than_one_it_knows(path: Path) -> None:
    plans = {
        serial: tn.Plan(PLAN.oracle, PLAN.participation, serial=serial) for serial in (None, 4, 5)
    }
    for serial, plan in plans.items():
        plan.write(path, signing_key=KEY)
        assert tn.Plan.read(path, public_key=KEY.public_key).serial == serial
        found = "no serial" if serial is None else f"serial {serial}"
        for least in (0, 4, 5, 2**53 - 1):
            if serial is not None and serial >= least:
                assert tn.Plan.read(path, least_serial=least).serial == serial
                continue
            with pytest.raises(PlanExpiredError) as caught:
                tn.Plan.read(path, least_serial=least)
            words = f"{path}: the plan has {found}, expected {least} or a later one"
            assert str(caught.value) == words
    wrong: Any
    for wrong, error in [
        (-1, InvalidValueError),
        (2**53, InvalidValueError),
        ("5", InvalidTypeError),
    ]:
        with pytest.raises(error, match="least_serial must be an integer from 0 to"):
            tn.Plan.read(path, least_serial=wrong)


def test_serial_and_expiry_are_signed_and_an_expired_plan_can_be_read(
    read: Read, path: Path
) -> None:
    end = datetime(2001, 1, 1, tzinfo=timezone.utc)
    text = text_of(tn.Plan(PLAN.oracle, PLAN.participation, serial=3, expires=end), path, KEY)
    plan = read(text, KEY.public_key)
    assert (plan.serial, plan.expires) == (3, end)
    for old, new in [('"serial":3', '"serial":4'), ('"expires":9', '"expires":19')]:
        assert old in text
        with pytest.raises(CorruptDataError, match="altered or reformatted"):
            read(text.replace(old, new), KEY.public_key)


def test_the_fingerprint_is_that_of_the_bytes_in_the_file(path: Path) -> None:
    # As a reader in another language finds it: between the name of the member and the next one.
    text = text_of(PLAN, path)
    start = text.index('"plan": ') + len('"plan": ')
    stands = text[start : text.index(',\n  "fingerprint"')]
    assert hashlib.sha256(stands.encode()).hexdigest() == json.loads(text)["fingerprint"]
    assert PLAN.fingerprint == json.loads(text)["fingerprint"]


LABEL = st.recursive(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.none(),
    ),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)
PLANS = st.builds(
    tn.Plan,
    st.builds(
        tn.DirectEncoding,
        st.floats(1e-6, 42),
        st.one_of(
            st.lists(LABEL, min_size=2, max_size=6, unique=True).map(tn.Domain),
            st.integers(2, 2**20),
        ),
    ),
    st.one_of(
        st.just(tn.Everyone()),
        st.floats(0, 1, exclude_min=True).map(tn.Bernoulli),
        st.just(tn.Personalized([0.5])),
    ),
)


@settings(max_examples=150, deadline=None)
@given(plan=PLANS, key=st.sampled_from([None, KEY]))
def test_plans_come_back_from_their_files(
    plan: tn.Plan, key: SigningKey | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "plan-of-hypothesis.json"
    plan.write(path, signing_key=key)
    assert tn.Plan.read(path, public_key=key and key.public_key) == plan
    assert path.read_bytes().isascii()


@pytest.mark.parametrize(
    "labels",
    [
        [1e-7, 0.1, 1e22, 5e-324, 1.7976931348623157e308, 2 / 3],
        ["\U0001f600", "é", "\\", '"', "\n\t\0", "\u2028", "<>&", "\x7f", ""],
        [10**30, -(10**30), 2**53 + 1, 0],
        [None, True, ("a", ("b", 1.5))],
    ],
    ids=str,
)
def test_numbers_and_texts_of_every_kind_come_back(labels: list[Any], path: Path) -> None:
    for epsilon, rate in [(1e-7, 1e-7), (0.1, 0.1), (2 / 3, 1 / 3), (41.99999999999999, 5e-324)]:
        plan = tn.Plan(tn.DirectEncoding(epsilon, tn.Domain(labels)), tn.Bernoulli(rate))
        text_of(plan, path, KEY)
        back = tn.Plan.read(path, public_key=KEY.public_key)
        assert back == plan
        assert back.fingerprint == plan.fingerprint
        assert list(map(repr, back.domain.labels)) == list(map(repr, labels))


def test_every_changed_byte_is_refused(path: Path, read: Read) -> None:
    data = text_of(PLAN, path, KEY).encode()
    for place in range(len(data)):
        for flip in (0x01, 0x20, 0x80):
            altered = bytearray(data)
            altered[place] ^= flip
            with pytest.raises(CorruptDataError) as caught:
                read(bytes(altered))
            assert str(path) in str(caught.value)
            assert len(str(caught.value)) < 1000


def test_every_cut_file_is_refused(path: Path, read: Read) -> None:
    data = text_of(PLAN, path, KEY).encode()
    for length in range(len(data) - 2):
        with pytest.raises(CorruptDataError):
            read(data[:length])


def test_the_layout_of_the_outer_object_is_free(path: Path, read: Read) -> None:
    text_of(PLAN, path, KEY)
    members = json.loads(path.read_text())
    members["plan"] = "PLAN"
    for order in (list(members), list(reversed(members))):
        for indent in (None, 0, 4, "\t"):
            text = json.dumps({name: members[name] for name in order}, indent=indent)
            assert read(text.replace('"PLAN"', PLAN.to_json()), KEY.public_key) == PLAN
            assert read(text.replace('"PLAN"', "\n" + PLAN.to_json() + " ")) == PLAN


def test_a_plan_that_is_formatted_anew_is_refused(path: Path, read: Read) -> None:
    text_of(PLAN, path)
    for indent in (None, 2):
        with pytest.raises(CorruptDataError, match="formatted the file anew"):
            read(json.dumps(json.loads(path.read_text()), indent=indent))


def with_text(plan: str, /, **changes: Any) -> str:
    """A file whose fingerprint is right for the text of its plan; ... leaves a member out."""
    members = {
        "format": "turnout-plan-file",
        "version": 1,
        "plan": "PLAN",
        "fingerprint": hashlib.sha256(plan.encode()).hexdigest(),
        **changes,
    }
    kept = {name: value for name, value in members.items() if value is not ...}
    return json.dumps(kept).replace('"PLAN"', plan)


TEXT = PLAN.to_json()


@pytest.mark.parametrize(
    "plan",
    [
        TEXT.replace(":", ": "),
        TEXT.replace("1.5", "1.50"),
        TEXT.replace("1.5", "15e-1"),
        TEXT.replace("no", "\\u006eo"),
        TEXT.replace('"epsilon":1.5', '"epsilon":2.5,"epsilon":1.5'),
        TEXT.replace('"version":1', '"version":1,"version":1'),
        json.dumps(dict(reversed(json.loads(TEXT).items())), separators=(",", ":")),
    ],
)
def test_a_plan_has_one_text(plan: str, read: Read) -> None:
    assert plan != TEXT
    for fingerprint in (hashlib.sha256(plan.encode()).hexdigest(), PLAN.fingerprint):
        with pytest.raises(CorruptDataError, match=r"not written in its canonical form|duplicated"):
            read(with_text(plan, fingerprint=fingerprint))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "turnout-plan"}, "its format is not 'turnout-plan-file'"),
        ({"format": ...}, "its format is not 'turnout-plan-file'"),
        ({"plan": ...}, "lacks 'plan'"),
        ({"fingerprint": ...}, "lacks 'fingerprint'"),
        ({"fingerprint": ..., "plan": ...}, "lacks 'fingerprint', 'plan'"),
        ({"more": 1}, "has unknown members 'more'"),
        ({"fingerprint": PLAN.fingerprint.upper()}, "must be 64 hexadecimal digits"),
        ({"fingerprint": None}, "must be 64 hexadecimal digits, got null"),
        ({"fingerprint": "0" * 64}, "altered or reformatted"),
        ({"signature": None}, "not a signature of a plan of turnout: null"),
        ({"signature": {}}, "not a signature of a plan"),
        (
            {"plan": 5, "fingerprint": hashlib.sha256(b"5").hexdigest()},
            "not a plan of turnout: its format is not",
        ),
    ],
)
def test_other_members_are_refused(changes: dict[str, Any], message: str, read: Read) -> None:
    with pytest.raises(CorruptDataError, match=message) as caught:
        read(with_text(TEXT, **changes))
    assert not isinstance(caught.value, UnsupportedVersionError)
    assert read(with_text(TEXT)) == PLAN


def test_members_that_occur_twice_are_refused(read: Read) -> None:
    text = with_text(TEXT)
    for name in json.loads(text):
        twice = text[:-1] + f', "{name}": ' + json.dumps(json.loads(text)[name]) + "}"
        with pytest.raises(CorruptDataError, match="a member is duplicated"):
            read(twice)


@pytest.mark.parametrize("version", [0, 2, -1, "1", 1.0, True, None])
def test_other_versions_are_named(version: Any, read: Read) -> None:
    with pytest.raises(
        UnsupportedVersionError, match=r"the plan file has version .*; this release"
    ):
        read(with_text(TEXT, version=version, something_new=1))
    with pytest.raises(UnsupportedVersionError, match="the plan has version 7"):
        read(with_text(TEXT.replace('"version":1', '"version":7')))


NO_FILES: dict[str, str | bytes] = {
    "nothing": "",
    "a list": "[]",
    "empty": "{}",
    "a number": "1",
    "numbers for names": "{1: 2}",
    "no UTF-8": b"\xff\xfe",
    "other characters": '{"format": "turnout-plan-file", "é": 1}',
    "deep": '{"plan":' + "[" * 100_000,
    "long number": '{"plan":' + "1" * 5000 + "}",
    "a comma too many": with_text(TEXT)[:-1] + ",}",
    "something behind it": with_text(TEXT) + "x",
    "a second one behind it": with_text(TEXT) * 2,
    "other spaces": with_text(TEXT).replace(" ", "\x0b"),
    "a plan without a file": TEXT,
}


@pytest.mark.parametrize("text", NO_FILES.values(), ids=NO_FILES.keys())
def test_anything_else_is_no_plan_file(text: str | bytes, read: Read) -> None:
    with pytest.raises(CorruptDataError, match="not a plan file of turnout") as caught:
        read(text)
    assert len(str(caught.value)) < 1000


def signed(**changes: Any) -> str:
    signature = {
        "algorithm": "ed25519",
        "public_key": KEY.public_key,
        "value": KEY.sign(b"turnout-plan-file v1\0" + bytes.fromhex(PLAN.fingerprint)).hex(),
        **changes,
    }
    return with_text(TEXT, signature={k: v for k, v in signature.items() if v is not ...})


BARE = KEY.sign(bytes.fromhex(PLAN.fingerprint)).hex()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"algorithm": "ed448"}, "not a signature of a plan"),
        ({"more": 1}, "not a signature of a plan"),
        ({"value": ...}, "not a signature of a plan"),
        ({"value": "ab"}, "not a signature of a plan"),
        ({"public_key": KEY.public_key.upper()}, "not a signature of a plan"),
        ({"value": "0" * 128}, "the signature of the plan is not valid"),
        ({"value": BARE}, "the signature of the plan is not valid"),
        ({"public_key": OTHER.public_key}, "the signature of the plan is not valid"),
    ],
)
@pytest.mark.parametrize("public_key", [None, KEY.public_key])
def test_bad_signatures_are_refused(
    changes: dict[str, Any], message: str, public_key: str | None, read: Read
) -> None:
    if changes.get("public_key") == OTHER.public_key and public_key is not None:
        message = f"signed by {OTHER.public_key}, expected {KEY.public_key}"
    with pytest.raises(CorruptDataError, match=message):
        read(signed(**changes), public_key)
    assert read(signed(), public_key) == PLAN
    assert verify(KEY.public_key, bytes.fromhex(PLAN.fingerprint), bytes.fromhex(BARE))


def test_a_signature_that_is_demanded_must_be_there(read: Read) -> None:
    with pytest.raises(CorruptDataError, match="the plan is not signed; expected a signature by"):
        read(with_text(TEXT), KEY.public_key)
    with pytest.raises(CorruptDataError, match=r"is signed by .*, expected"):
        read(signed(), OTHER.public_key)
    assert read(signed(), KEY.public_key.upper()) == PLAN


def test_a_signature_is_of_one_plan(path: Path, read: Read) -> None:
    other = tn.Plan(tn.DirectEncoding(8.0, PLAN.domain), tn.Everyone())
    signature = json.loads(text_of(PLAN, path, KEY))["signature"]
    with pytest.raises(CorruptDataError, match="the signature of the plan is not valid"):
        read(with_text(other.to_json(), signature=signature))


@pytest.mark.parametrize("key", [b"", 5, "ab", "x" * 64])
def test_a_public_key_must_be_one(key: Any, path: Path) -> None:
    PLAN.write(path, signing_key=KEY)
    with pytest.raises((InvalidTypeError, InvalidValueError), match="public_key must be a public"):
        tn.Plan.read(path, public_key=key)


@pytest.mark.parametrize("key", [b"x", KEY.public_key, bytes(32)])
def test_a_signing_key_must_be_one(key: Any, path: Path) -> None:
    with pytest.raises(InvalidTypeError, match="signing_key must be a SigningKey"):
        PLAN.write(path, signing_key=key)
    assert not path.exists()


def test_labels_that_no_device_can_read_are_refused(path: Path, read: Read) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, tn.Domain(["\ud800", "b"])), tn.Everyone())
    with pytest.raises(InvalidValueError, match="must be Unicode text"):
        plan.write(path)
    with pytest.raises(CorruptDataError, match="half of a surrogate pair"):
        read(with_text(plan.to_json()))
    with pytest.raises(InvalidTypeError, match="label b'x' cannot be written"):
        tn.Plan(tn.DirectEncoding(1.0, tn.Domain([b"x", "b"])), tn.Everyone()).write(path)
    assert not path.exists() or path.read_text() == with_text(plan.to_json())


def test_a_failed_write_leaves_the_old_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    PLAN.write(path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        PLAN.write(path, signing_key=KEY)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
