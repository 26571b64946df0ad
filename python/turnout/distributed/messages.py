r"""The binary layout of a message.

Version 1, all numbers little-endian:

======  ====  =====================================================================================
offset  size  content
======  ====  =====================================================================================
0       4     magic: ``89 54 44 41`` (``\\x89TDA``)
4       1     version
5       1     kind: 1 share, 2 roster, 3 sum, 4 set, 5 election, 6 item shares; from 128 on what the
              mechanism says
6       16    the round: BLAKE2b-128 of its nonce and of the mechanism, so that a message of
              another round or of another plan is refused
22      5     sender: its role (1 user, 2 aggregator, 3 server, 4 reporting server, from 128 on what
              the mechanism says), and its index, unsigned
27      5     recipient, likewise
32      4     length of the payload, unsigned
36      ...   payload
...     16    BLAKE2b-128 of everything before
======  ====  =====================================================================================

Payloads, with n users, N items, and a field of q elements of b bits (field elements are packed one
after another, lowest bit first, and padded with zero bits to whole bytes):

share
    The identifier of the report (8 random bytes, not all zero, the same in all shares of one
    report), and one byte: 0 and a seed of 32 bytes, which the recipient expands (AES-256 in counter
    mode, see ``PrimeField._expand``), or 1 and N packed elements. If shares are compressed, the
    last party gets elements and the others seeds; otherwise all get elements.
roster
    One bit for each user, set if its share arrived, padded to whole bytes; then the identifiers of
    the reports (8 each) of those users, in order. If users are the parties: BLAKE2b-128 of these
    bytes.
    In an election, from an elected user: the number of the election (4), and the users (4 each)
    whose item shares have not arrived. From the reporting server: that number, and a byte: 0 asks
    who is missing, 1 permits adding up, 2 states that the round continues without the recipient.
sum
    From an aggregator: the number of users (4 bytes), BLAKE2b-128 of the agreed roster, N packed
    elements. From an elected user: the layout of item shares.
set
    One bit for each item, set if the user will report it; padded.
election
    The number of the election, from 0 (4), of users (4), of reporters of each item (4 N), of users
    elected for each item (4 N), the elected users item after item (4 each); then, for each item
    that the recipient is elected for, in order: the item (4) and its reporters (4 each).
item shares
    The number of the election (4), of items (4), the items (4 each), packed elements.

The checksum detects damage; it does not authenticate. Messages need confidential channels that
authenticate the sender, such as TLS with certificates.
"""

from __future__ import annotations

import enum
import hashlib
import struct
from dataclasses import dataclass

from turnout import _arguments
from turnout.errors import (
    InvalidValueError,
    MalformedMessageError,
    UnsupportedVersionError,
)

MAGIC = b"\x89TDA"
VERSION = 1
_HEADER = struct.Struct("<4sBB16sBIBII")
_DIGEST = 16

#: From here on a number of a role or a kind is the mechanism's own.
_FIRST_OWN = 128

#: The bytes of a message beside its payload.
MESSAGE_OVERHEAD = _HEADER.size + _DIGEST


class _Open(enum.IntEnum):
    """An enumeration with named numbers; mechanisms may use the numbers from 128 to 255."""

    @classmethod
    def _missing_(cls, value: object) -> _Open | None:
        if type(value) is not int or not _FIRST_OWN <= value < 256:
            return None
        member = int.__new__(cls, value)
        member._name_, member._value_ = (
            f"{cls.__name__.removeprefix('Message').upper()}_{value}",
            value,
        )
        # The same object whenever it is asked for.
        return cls._value2member_map_.setdefault(value, member)  # type: ignore[return-value]


class Role(_Open):
    """The role of a party in a round; mechanisms define the roles from 128 to 255."""

    USER = 1
    AGGREGATOR = 2
    SERVER = 3
    REPORTING_SERVER = 4


class MessageKind(_Open):
    """The kind of a message's content; mechanisms define the kinds from 128 to 255."""

    SHARE = 1
    ROSTER = 2
    SUM = 3
    SET = 4
    ELECTION = 5
    ITEM_SHARES = 6


def in_words(member: Role | MessageKind) -> str:
    """Return the name of a role or a kind of message."""
    return member.name.lower().replace("_", " ")


@dataclass(frozen=True, order=True)
class Party:
    """A party that takes part in a round.

    Parameters
    ----------
    role
        What it does.
    index
        The number of the party among those with its role, from 0. A round has one server, and at
        most one reporting server.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the role is not a :class:`Role`, or the index is not from 0 to 2^32 - 1.

    Examples
    --------
    >>> str(Party(Role.USER, 17)), str(Party(Role.SERVER))
    ('user 17', 'the server')
    """

    role: Role
    index: int = 0

    def __post_init__(self) -> None:
        """Check the fields."""
        _arguments.instance("role", self.role, Role, "a Role")
        _arguments.integer("index", self.index, least=0, most=2**32 - 1)

    def __str__(self) -> str:
        """Name the party."""
        name = in_words(self.role)
        several = self.role not in (Role.SERVER, Role.REPORTING_SERVER)
        return f"{name} {self.index}" if several else f"the {name}"


@dataclass(frozen=True)
class Message:
    r"""A message from one party to another.

    Parameters
    ----------
    kind
        The kind of the payload.
    round_id
        The 16 bytes that identify the round.
    sender, recipient
        The parties that send and receive it.
    payload
        The content; its layout depends on the kind.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a field is of the wrong type or length.

    Examples
    --------
    >>> user, server = Party(Role.USER, 3), Party(Role.SERVER)
    >>> message = Message(MessageKind.SET, bytes(16), user, server, b"\x05")
    >>> Message.from_bytes(message.to_bytes()) == message
    True
    """

    kind: MessageKind
    round_id: bytes
    sender: Party
    recipient: Party
    payload: bytes

    def __post_init__(self) -> None:
        """Check the fields."""
        _arguments.instance("kind", self.kind, MessageKind, "a MessageKind")
        for name in ("sender", "recipient"):
            _arguments.instance(name, getattr(self, name), Party, "a Party")
        _arguments.instance("round_id", self.round_id, bytes, "bytes")
        _arguments.instance("payload", self.payload, bytes, "bytes", private=True)
        if len(self.round_id) != 16:
            raise InvalidValueError(f"round_id must be 16 bytes, got {len(self.round_id)}")

    def __repr__(self) -> str:
        """Show the sender, the recipient and the kind; hide the content, which may be a share."""
        return (
            f"<Message: {self.kind.name.lower().replace('_', ' ')} from {self.sender} to "
            f"{self.recipient}, {len(self.payload)} bytes>"
        )

    @property
    def _size(self) -> int:
        """The number of bytes of :meth:`to_bytes`."""
        return MESSAGE_OVERHEAD + len(self.payload)

    def to_bytes(self) -> bytes:
        """Serialize the message in the layout of this module.

        Returns
        -------
        bytes
            The message, with its checksum.
        """
        header = _HEADER.pack(
            MAGIC,
            VERSION,
            self.kind,
            self.round_id,
            self.sender.role,
            self.sender.index,
            self.recipient.role,
            self.recipient.index,
            len(self.payload),
        )
        body = header + self.payload
        return body + _checksum(body)

    @classmethod
    def from_bytes(cls, data: bytes) -> Message:
        """Read a message that :meth:`to_bytes` wrote.

        Parameters
        ----------
        data
            The bytes of exactly one message.

        Returns
        -------
        Message
            An equal message.

        Raises
        ------
        InvalidTypeError
            If ``data`` is not bytes.
        UnsupportedVersionError
            If this release does not read its version.
        MalformedMessageError
            If it is truncated, altered, or not a message.
        """
        _arguments.instance("data", data, (bytes, bytearray, memoryview), "bytes", private=True)
        data = bytes(data)
        if len(data) < MESSAGE_OVERHEAD or data[:4] != MAGIC:
            raise MalformedMessageError(
                f"data must be one turnout message, got {len(data)} bytes that are not one"
            )
        version, length = data[4], _HEADER.unpack_from(data)[-1]
        if len(data) != MESSAGE_OVERHEAD + length and version == VERSION:
            raise MalformedMessageError(
                f"data must be a message of {MESSAGE_OVERHEAD + length} bytes by its "
                f"header, got {len(data)}: it was truncated, or something follows it"
            )
        if data[-_DIGEST:] != _checksum(data[:-_DIGEST]):
            raise MalformedMessageError(
                "data must be a message with a checksum that matches: it was altered"
            )
        _check_version(version)
        return _opened(data, data[_HEADER.size : -_DIGEST])


def read_head(data: bytes) -> tuple[Message, int]:
    """Read the start of a message, before its checksum has arrived.

    Parameters
    ----------
    data
        Its first bytes, at least those before the payload.

    Returns
    -------
    message : Message
        Who sends what to whom, without the payload.
    length : int
        The size of the payload.

    Raises
    ------
    UnsupportedVersionError
        If this release does not read its version.
    MalformedMessageError
        If it is no message.
    """
    if len(data) < _HEADER.size or data[:4] != MAGIC:
        raise MalformedMessageError("data must be the start of a turnout message")
    _check_version(data[4])
    return _opened(data, b""), _HEADER.unpack_from(data)[-1]


def _check_version(version: int) -> None:
    if version != VERSION:
        raise UnsupportedVersionError(
            f"the message has version {version}; this release of turnout reads {VERSION}"
        )


def _opened(data: bytes, payload: bytes) -> Message:
    _, _, kind, round_id, sender, sender_index, to, to_index, _ = _HEADER.unpack_from(data)
    try:
        return Message(
            MessageKind(kind),
            round_id,
            Party(Role(sender), sender_index),
            Party(Role(to), to_index),
            payload,
        )
    except ValueError as error:
        raise MalformedMessageError(f"data must be a message of a known kind: {error}") from error


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST, person=b"turnout-message").digest()
