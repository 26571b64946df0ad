"""The bytes of messages: the documented layout, and what is refused."""

from __future__ import annotations

import contextlib
import hashlib
import struct
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.distributed import Message, Party, PrimeField, Role, payloads
from turnout.distributed.messages import MessageKind
from turnout.distributed.roles.elections import Election
from turnout.errors import (
    InvalidTypeError,
    InvalidValueError,
    MalformedMessageError,
    UnsupportedVersionError,
)

PARTIES = st.builds(Party, st.sampled_from(Role), st.integers(0, 2**32 - 1))
MESSAGES = st.builds(
    Message,
    st.sampled_from(MessageKind),
    st.binary(min_size=16, max_size=16),
    PARTIES,
    PARTIES,
    st.binary(max_size=200),
)
FIELDS = [2, 3, 7, 11, 257, 1009, 65_537, 2**31 - 1, 4_294_967_291, 2**61 - 1]


def example(payload: bytes = b"\x01\x02\x03") -> Message:
    return Message(
        MessageKind.SHARE,
        bytes(range(16)),
        Party(Role.USER, 258),
        Party(Role.AGGREGATOR, 1),
        payload,
    )


def sealed(body: bytes) -> bytes:
    """Append the documented checksum, computed here."""
    return body + hashlib.blake2b(body, digest_size=16, person=b"turnout-message").digest()


# Whole messages.


@settings(deadline=None)
@given(MESSAGES)
def test_messages_survive_the_round_trip(message: Message) -> None:
    data = message.to_bytes()
    assert Message.from_bytes(data) == message
    assert message._size == len(data)
    assert Message.from_bytes(bytearray(data)) == Message.from_bytes(memoryview(data)) == message


@settings(deadline=None)
@given(MESSAGES)
def test_the_layout_is_the_documented_one(message: Message) -> None:
    data = message.to_bytes()
    assert data[0:4] == bytes.fromhex("89544441") == b"\x89TDA"
    assert data[4] == 1
    assert data[5] == {
        "SHARE": 1, "ROSTER": 2, "SUM": 3, "SET": 4, "ELECTION": 5, "ITEM_SHARES": 6,
    }[message.kind.name]  # fmt: skip
    assert data[6:22] == message.round_id
    numbers = {"USER": 1, "AGGREGATOR": 2, "SERVER": 3, "REPORTING_SERVER": 4}
    for start, party in ((22, message.sender), (27, message.recipient)):
        assert data[start] == numbers[party.role.name]
        assert int.from_bytes(data[start + 1 : start + 5], "little") == party.index
    length = int.from_bytes(data[32:36], "little")
    assert data[36 : 36 + length] == message.payload
    assert data == sealed(data[: 36 + length])
    assert len(data) == 52 + length


def test_a_message_written_by_hand_is_read() -> None:
    body = struct.pack("<4sBB16sBIBII", b"\x89TDA", 1, 6, b"r" * 16, 1, 7, 1, 8, 2) + b"ab"
    expected = Message(
        MessageKind.ITEM_SHARES, b"r" * 16, Party(Role.USER, 7), Party(Role.USER, 8), b"ab"
    )
    assert Message.from_bytes(sealed(body)) == expected


def test_every_truncation_is_refused() -> None:
    data = example().to_bytes()
    for length in range(len(data)):
        with pytest.raises(MalformedMessageError):
            Message.from_bytes(data[:length])


@pytest.mark.parametrize("payload", [b"", b"\x00", bytes(range(40))])
def test_every_altered_byte_is_refused(payload: bytes) -> None:
    data = example(payload).to_bytes()
    for position in range(len(data)):
        for change in (0x01, 0x80, 0xFF):
            altered = bytearray(data)
            altered[position] ^= change
            with pytest.raises(MalformedMessageError):
                Message.from_bytes(altered)


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=60))
def test_what_follows_a_message_is_refused(rest: bytes) -> None:
    with pytest.raises(MalformedMessageError, match="something follows"):
        Message.from_bytes(example().to_bytes() + rest)
    with pytest.raises(MalformedMessageError):
        Message.from_bytes(rest + example().to_bytes())


def test_two_messages_are_not_one() -> None:
    with pytest.raises(MalformedMessageError):
        Message.from_bytes(example().to_bytes() * 2)


@pytest.mark.parametrize("version", [0, 2, 3, 255])
def test_other_versions_are_refused_by_name(version: int) -> None:
    body = bytearray(example().to_bytes()[:-16])
    body[4] = version
    with pytest.raises(UnsupportedVersionError, match=rf"version {version}; .* reads 1"):
        Message.from_bytes(sealed(bytes(body)))
    # A later version may be of another length.
    longer = sealed(bytes(body) + b"new")
    with pytest.raises(UnsupportedVersionError, match=f"version {version}"):
        Message.from_bytes(longer)


@pytest.mark.parametrize(
    ("offset", "value"),
    [(5, 0), (5, 7), (5, 127), (22, 0), (22, 5), (22, 127), (27, 0), (27, 5), (27, 100)],
)
def test_other_kinds_and_roles_are_refused(offset: int, value: int) -> None:
    body = bytearray(example().to_bytes()[:-16])
    body[offset] = value
    with pytest.raises(MalformedMessageError, match=f"known kind.*{value}"):
        Message.from_bytes(sealed(bytes(body)))


@pytest.mark.parametrize("length", [0, 2, 4, 2**31, 2**32 - 1])
def test_a_false_length_is_refused_without_reading_it(length: int) -> None:
    body = bytearray(example().to_bytes()[:-16])
    body[32:36] = length.to_bytes(4, "little")
    with pytest.raises(MalformedMessageError, match=f"{52 + length} bytes by its header"):
        Message.from_bytes(sealed(bytes(body)))


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    for tried in (data, b"\x89TDA" + data, sealed(data), sealed(b"\x89TDA\x01" + data)):
        with pytest.raises(MalformedMessageError):
            Message.from_bytes(tried)


@settings(deadline=None)
@given(st.binary(min_size=31, max_size=31), st.binary(max_size=30))
def test_arbitrary_fields_with_a_valid_checksum_are_read_or_refused(
    header: bytes, payload: bytes
) -> None:
    body = b"\x89TDA\x01" + header[:27] + len(payload).to_bytes(4, "little") + payload
    data = sealed(body)
    try:
        message = Message.from_bytes(data)
    except MalformedMessageError:
        kinds, roles = set(map(int, MessageKind)), set(map(int, Role))
        assert header[0] not in kinds or header[17] not in roles or header[22] not in roles
    else:
        assert message.to_bytes() == data


@pytest.mark.parametrize("data", ["text", None, 7, [1, 2], np.zeros(60, np.uint8)])
def test_what_is_no_bytes_is_refused(data: Any) -> None:
    with pytest.raises(InvalidTypeError, match="data must be bytes"):
        Message.from_bytes(data)


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("kind", 1, InvalidTypeError),
        ("round_id", "r" * 16, InvalidTypeError),
        ("round_id", b"short", InvalidValueError),
        ("sender", Role.USER, InvalidTypeError),
        ("recipient", (1, 2), InvalidTypeError),
        ("payload", bytearray(3), InvalidTypeError),
    ],
)
def test_fields_of_messages_are_checked(field: str, value: Any, error: type[Exception]) -> None:
    fields = vars(example()) | {field: value}
    with pytest.raises(error, match=field):
        Message(**fields)


@pytest.mark.parametrize(
    ("role", "index"), [(Role.USER, -1), (Role.USER, 2**32), (Role.USER, 1.5), (1, 0), ("user", 0)]
)
def test_parties_that_no_message_can_name_are_refused(role: Any, index: Any) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError), match=r"role|index"):
        Message(MessageKind.SET, bytes(16), Party(role, index), Party(Role.SERVER), b"").to_bytes()


# Payloads.

#: The number 258 of a report.
REPORT = b"\x02\x01" + bytes(6)


def elements(field: PrimeField, length: int) -> Any:
    return field._core.uniform(length, length)


@pytest.mark.parametrize("modulus", FIELDS)
@pytest.mark.parametrize("length", [1, 2, 7, 8, 9, 30])
def test_packed_elements_are_laid_out_lowest_bit_first(modulus: int, length: int) -> None:
    field = PrimeField(modulus)
    values = elements(field, length)
    bits = max(1, (modulus - 1).bit_length())
    assert field.bits == bits
    whole = sum(int(value) << (bits * index) for index, value in enumerate(values))
    written = whole.to_bytes((bits * length + 7) // 8, "little")
    data = REPORT + b"\x01" + written
    assert payloads.pack_share(258, field._pack(values), seeded=False) == data
    report, read = payloads.unpack_share(data, field, length)
    assert report == 258
    assert read.tolist() == values.tolist()


def test_seed_shares_are_thirty_two_bytes() -> None:
    field = PrimeField(11)
    seed = bytes(range(32))
    data = REPORT + b"\x00" + seed
    assert payloads.pack_share(258, seed, seeded=True) == data
    assert payloads.unpack_share(data, field, 5) == (258, seed)
    for wrong in (
        b"",
        REPORT,
        REPORT + b"\x00",
        data[:-1],
        data + b"\x00",
        REPORT + b"\x02" + seed,
    ):
        with pytest.raises(MalformedMessageError, match="a share must be"):
            payloads.unpack_share(wrong, field, 5)
    with pytest.raises(MalformedMessageError, match="must not be 0"):
        payloads.unpack_share(bytes(8) + b"\x00" + seed, field, 5)


def test_numbers_of_reports_are_fresh_and_fit() -> None:
    numbers = {payloads.new_report() for _ in range(1000)}
    assert len(numbers) == 1000
    assert all(0 < number < 2**64 for number in numbers)
    assert max(numbers) > 2**60


def test_shares_with_something_that_is_no_element_are_refused() -> None:
    field, start = PrimeField(11), REPORT + b"\x01"  # 4 bits
    for low, high in ((11, 0), (0, 12), (15, 15)):
        with pytest.raises(MalformedMessageError):
            payloads.unpack_share(start + bytes([low | high << 4]), field, 2)
    with pytest.raises(MalformedMessageError):  # padding that is not zero
        payloads.unpack_share(start + bytes([0x10]), field, 1)
    for wrong in (start, start + bytes(2), start + bytes(32)):
        with pytest.raises(MalformedMessageError):
            payloads.unpack_share(wrong, field, 2)


@settings(deadline=None)
@given(st.lists(st.one_of(st.just(0), st.integers(1, 2**64 - 1)), min_size=1, max_size=20))
def test_rosters_are_bits_and_reports(reports: list[int]) -> None:
    bits = sum((number != 0) << index for index, number in enumerate(reports))
    present = [number for number in reports if number]
    data = bits.to_bytes((len(reports) + 7) // 8, "little")
    data += b"".join(number.to_bytes(8, "little") for number in present)
    assert payloads.pack_roster(np.array(reports, np.uint64)) == data
    assert payloads.unpack_roster(data, len(reports)).tolist() == reports
    for wrong in (data[:-1], data + b"\x00", data + bytes(8), b""):
        with pytest.raises(MalformedMessageError, match="roster"):
            payloads.unpack_roster(wrong, len(reports))
    if present:
        with pytest.raises(MalformedMessageError, match="must not be 0"):
            payloads.unpack_roster(data[:-8] + bytes(8), len(reports))


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_bits_are_laid_out_lowest_first(bits: list[bool]) -> None:
    array = np.array(bits)
    whole = sum(bit << index for index, bit in enumerate(bits))
    data = whole.to_bytes((len(bits) + 7) // 8, "little")
    assert payloads.pack_bits(array) == data
    assert payloads.unpack_bits(data, len(bits), "a set").tolist() == bits
    for wrong in (data[:-1], data + b"\x00"):
        with pytest.raises(MalformedMessageError, match="a set must have"):
            payloads.unpack_bits(wrong, len(bits), "a set")
    if len(bits) % 8:
        padded = data[:-1] + bytes([data[-1] | 0x80])
        with pytest.raises(MalformedMessageError, match="padded with zero bits"):
            payloads.unpack_bits(padded, len(bits), "a set")


def test_sums_of_aggregators_name_their_roster() -> None:
    field, roster = PrimeField(257), np.array([258, 0, 258, 258], np.uint64)
    digest = hashlib.blake2b(b"\x0d" + 3 * REPORT, digest_size=16).digest()
    data = payloads.pack_party_sum(roster, field, field._elements([256, 1]))
    assert data == b"\x03\x00\x00\x00" + digest + (256 | 1 << 9).to_bytes(3, "little")
    received, named, sums = payloads.unpack_party_sum(data, field, 2)
    assert (received, named, sums.tolist()) == (3, digest, [256, 1])
    assert payloads.roster_digest(roster) == digest
    for wrong in (data[:19], data[:20], data[:-1], data + b"\x00", b""):
        with pytest.raises(MalformedMessageError):
            payloads.unpack_party_sum(wrong, field, 2)


@pytest.mark.parametrize("items", [[0], [4], [0, 4], [1, 2, 3]])
def test_item_shares_are_items_and_elements(items: list[int]) -> None:
    field = PrimeField(1009)
    values = elements(field, len(items))
    data = payloads.pack_item_shares(np.array(items, np.int64), field, values)
    expected = struct.pack(f"<{1 + len(items)}I", len(items), *items) + field._pack(values)
    assert data == expected
    found, back = payloads.unpack_item_shares(data, field, 5)
    assert (found.tolist(), back.tolist()) == (items, values.tolist())


@pytest.mark.parametrize("items", [[], [1, 1], [2, 1], [5], [0, 7], [0, 1, 2, 3, 4, 4]])
def test_item_shares_out_of_order_or_range_are_refused(items: list[int]) -> None:
    field = PrimeField(1009)
    listed = struct.pack(f"<{1 + len(items)}I", len(items), *items)
    with pytest.raises(MalformedMessageError):
        payloads.unpack_item_shares(listed + field._pack([0] * len(items)), field, 5)


def election() -> Election:
    """Give 6 users that reported, 3 items; the second is reported by nobody."""
    elected = (np.array([4, 1]), np.array([], np.int64), np.array([1, 0, 5]))
    return Election(6, np.array([2, 0, 3]), elected, {}, number=1)


DUTIES = {0: np.array([2, 3]), 2: np.array([0, 1, 2])}


def test_elections_are_laid_out_as_documented() -> None:
    public = election().public_part()
    assert public == struct.pack("<13I", 1, 6, 2, 0, 3, 2, 0, 3, 4, 1, 1, 0, 5)
    duty = Election.duty_part(DUTIES.items())
    assert duty == struct.pack("<7I", 0, 2, 3, 2, 0, 1, 2)
    read = Election.unpack(public + duty, 6, 3, 1)
    assert (read.number, read.received) == (1, 6)
    assert read.reporters.tolist() == [2, 0, 3]
    assert [users.tolist() for users in read.elected] == [[4, 1], [], [1, 0, 5]]
    assert {item: users.tolist() for item, users in read.duties.items()} == {
        0: [2, 3], 2: [0, 1, 2],
    }  # fmt: skip
    assert Election.unpack(public, 6, 3, None).duties == {}
    assert Election.unpack(public, 6, 3, 2).duties == {}


@pytest.mark.parametrize("recipient", [None, 0, 1, 2, 4])
def test_elections_with_missing_or_foreign_duties_are_refused(recipient: int | None) -> None:
    data = election().public_part() + Election.duty_part(DUTIES.items())
    if recipient != 1:
        with pytest.raises(MalformedMessageError):
            Election.unpack(data, 6, 3, recipient)
    for length in range(len(data)):
        with pytest.raises(MalformedMessageError):
            Election.unpack(data[:length], 6, 3, 1)
    with pytest.raises(MalformedMessageError, match="must end"):
        Election.unpack(data + b"\x00", 6, 3, 1)


@pytest.mark.parametrize(
    "numbers",
    [
        (7, 2, 0, 3, 2, 0, 3, 4, 1, 1, 0, 5),  # more users than there are
        (2, 2, 0, 3, 2, 0, 3, 4, 1, 1, 0, 5),  # an item has more reporters than there are users
        (6, 2, 0, 3, 2, 0, 3, 4, 4, 1, 0, 5),  # one elected twice
        (6, 2, 0, 3, 2, 0, 3, 4, 6, 1, 0, 5),  # no such user
        (6, 2, 0, 3, 2**32 - 1, 0, 3, 4, 1, 1, 0, 5),  # a committee of billions
        (6, 2, 0, 2**31, 2, 0, 3, 4, 1, 1, 0, 5),
    ],
)
def test_elections_that_cannot_be_are_refused(numbers: tuple[int, ...]) -> None:
    with pytest.raises(MalformedMessageError):
        Election.unpack(struct.pack(f"<{1 + len(numbers)}I", 0, *numbers), 6, 3, None)


@pytest.mark.parametrize("duties", [{0: [3, 2]}, {0: [2, 2]}, {0: [2, 6]}, {2: [2, 3]}, {1: [2]}])
def test_duties_out_of_order_or_range_are_refused(duties: dict[int, list[int]]) -> None:
    listed = {item: np.array(users) for item, users in (DUTIES | duties).items()}
    if 0 not in duties:
        listed = {item: np.array(users) for item, users in duties.items()}
    data = election().public_part() + Election.duty_part(listed.items())
    with pytest.raises(MalformedMessageError):
        Election.unpack(data, 6, 3, 1)


_FIELD = PrimeField(257)
DECODERS: dict[str, Callable[[bytes], Any]] = {
    "share": lambda data: payloads.unpack_share(data, _FIELD, 3),
    "roster": lambda data: payloads.unpack_roster(data, 11),
    "bits": lambda data: payloads.unpack_bits(data, 11, "a roster"),
    "sum": lambda data: payloads.unpack_party_sum(data, _FIELD, 3),
    "item shares": lambda data: payloads.unpack_item_shares(data, _FIELD, 4),
    "election": lambda data: Election.unpack(data, 6, 3, None),
    "election for a user": lambda data: Election.unpack(data, 6, 3, 1),
}
WORDS = st.lists(
    st.one_of(st.integers(0, 6), st.sampled_from([255, 2**31, 2**32 - 1])), max_size=24
).map(lambda numbers: struct.pack(f"<{len(numbers)}I", *numbers))


@pytest.mark.parametrize("name", DECODERS)
@settings(max_examples=300, deadline=None)
@given(data=st.one_of(st.binary(max_size=80), WORDS, st.tuples(WORDS, st.binary(max_size=7))))
def test_payload_decoders_raise_nothing_but_the_documented_error(name: str, data: Any) -> None:
    payload = b"".join(data) if isinstance(data, tuple) else data
    with contextlib.suppress(MalformedMessageError):
        DECODERS[name](payload)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 47), st.integers(0, 255))
def test_altered_elections_are_read_or_refused(position: int, value: int) -> None:
    data = bytearray(election().public_part())
    data[position] = value
    try:
        read = Election.unpack(bytes(data), 6, 3, None)
    except MalformedMessageError:
        return
    assert read.public_part() == bytes(data)
