"""Invitations, which let each invited person send one message.

An invitation is a random token in a link. The server knows hashes of the tokens alone, and keeps
the hashes of those that were used, apart from the reports. With *blind* invitations the server
exchanges an unused invitation for a ticket that it signs without seeing it (RFC 9474). The message
comes with the ticket, and nothing in it or in the store links it to the invitation. The addresses
and moments of the two requests may, for who watches them.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import hashlib
import json
import os
import re
import secrets
from typing import Any, NoReturn

from turnout import _arguments, _core
from turnout._documents import parsed
from turnout._secrets import read_secret_file, write_secret_file
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

_FORMAT = "turnout-invitations"
_VERSION = 1
_TOKEN_BYTES = 16
_TOKEN = re.compile("[A-Za-z0-9_-]{22}")
_HASH_BYTES = 32
_MOST = 10_000_000

#: The most characters of a ticket: 64 bytes and a signature of 4096 bits, in base64.
_TICKET_CHARACTERS = 768


class Invitations:
    """The invitations that a server accepts.

    Parameters
    ----------
    digests
        The digests of the tokens, 32 bytes each, sorted and joined.
    key
        The key that signs tickets, for blind invitations.

    Notes
    -----
    :meth:`create` makes them with their tokens. The file of :meth:`write` holds no token, so who
    reads it cannot vote. Its key signs tickets: keep it secret.

    Examples
    --------
    >>> invitations, tokens = Invitations.create(3)
    >>> invitations.number
    3
    >>> mark = invitations.mark_of_token(tokens[0])
    >>> len(mark)
    32
    >>> invitations.mark_of_token("A" * 22) is None
    True
    """

    __slots__ = ("_digests", "_key", "_public_key")

    def __init__(self, digests: bytes, key: _core.TicketKey | None = None) -> None:
        self._digests = digests
        self._key = key
        self._public_key = None if key is None else key.public_key()

    @classmethod
    def create(cls, number: int, *, blind: bool = False) -> tuple[Invitations, list[str]]:
        """Make invitations and their tokens.

        Parameters
        ----------
        number
            How many, from 1 to 10,000,000.
        blind
            Whether the server exchanges them for tickets that it cannot link.

        Returns
        -------
        Invitations
            What the server needs.
        list of str
            The tokens, each of 22 characters: one for each person. Nobody else should see them.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If ``number`` is not an integer in that range.

        Examples
        --------
        >>> invitations, tokens = Invitations.create(2, blind=True)
        >>> len(tokens), invitations.blind
        (2, True)
        """
        number = _arguments.integer("number", number, least=1, most=_MOST)
        key = _core.TicketKey.generate() if blind else None
        tokens = [_text(secrets.token_bytes(_TOKEN_BYTES)) for _ in range(number)]
        return cls(b"".join(sorted(map(_digest, tokens))), key), tokens

    @property
    def number(self) -> int:
        """The number of invited people."""
        return len(self._digests) // _HASH_BYTES

    @property
    def blind(self) -> bool:
        """Whether invitations are exchanged for tickets."""
        return self._key is not None

    @property
    def public_key(self) -> str | None:
        """The public key of tickets, SPKI in base64; None unless invitations are blind."""
        return None if self._public_key is None else base64.b64encode(self._public_key).decode()

    def mark_of_token(self, token: str) -> bytes | None:
        """Return the mark to store for a used invitation.

        Parameters
        ----------
        token
            The token, as it came from a browser.

        Returns
        -------
        bytes or None
            32 bytes, the same each time for the same invitation; None if nobody was invited by it.
        """
        if not _TOKEN.fullmatch(token):
            return None
        digest = _digest(token)
        at = bisect.bisect_left(range(self.number), digest, key=self._digest_at)
        return digest if self._digest_at(at) == digest else None

    def _digest_at(self, at: int) -> bytes:
        return self._digests[at * _HASH_BYTES : (at + 1) * _HASH_BYTES]

    def sign(self, blinded: str) -> str:
        """Sign a blinded ticket, for an invitation that has not been used.

        Parameters
        ----------
        blinded
            What the browser sent, in base64url.

        Returns
        -------
        str
            The signature in base64url: the same for the same number.

        Raises
        ------
        InvalidValueError
            If these invitations are not blind, or it is not a number that the key can sign.
        """
        if self._key is None:
            raise InvalidValueError("these invitations are not blind: they have no key for tickets")
        number = _bytes(blinded)
        if number is None:
            raise InvalidValueError("a blinded ticket must be base64url")
        return _text(self._key.sign(number))

    def mark_of_ticket(self, ticket: str) -> bytes | None:
        """Return the mark to store for a used ticket.

        Parameters
        ----------
        ticket
            The ticket, as it came from a browser, in base64url.

        Returns
        -------
        bytes or None
            32 bytes, the same each time for the same ticket; None if the key did not sign it.
        """
        data = _bytes(ticket)
        if data is None or self._public_key is None:
            return None
        number = _core.ticket_number(self._public_key, data)
        return None if number is None else hashlib.sha256(b"turnout ticket" + number).digest()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the invitations to a new file that only its owner can read (mode 0600).

        Parameters
        ----------
        path
            The file. An existing one is left as it is: the links that belong to it would be lost.

        Raises
        ------
        FileExistsError
            If the file exists already.
        OSError
            If the file cannot be written.
        """
        record = {
            "format": _FORMAT,
            "version": _VERSION,
            "digests": base64.b64encode(self._digests).decode(),
            "key": None if self._key is None else base64.b64encode(self._key.to_der()).decode(),
        }
        write_secret_file(path, json.dumps(record, separators=(",", ":")) + "\n")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Invitations:
        """Read a file that :meth:`write` wrote.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        Invitations
            The invitations.

        Raises
        ------
        CorruptDataError
            If it is not a file of invitations. The message shows nothing of what the file holds.
        InvalidValueError
            If others than its owner can read the file.
        OSError
            If the file cannot be read.
        """
        name, data = os.fspath(path), read_secret_file(path)
        try:
            record: Any = parsed(data)
        except ValueError:
            record = None
        match record:
            case {
                "format": "turnout-invitations",
                "version": 1,
                "digests": str(digests),
                "key": None | str() as key,
                **rest,
            } if not rest:
                try:
                    found = base64.b64decode(digests, validate=True)
                    signer = None if key is None else _core.TicketKey(base64.b64decode(key))
                except (binascii.Error, InvalidValueError):
                    found, signer = b"", None
                pieces = [found[at : at + _HASH_BYTES] for at in range(0, len(found), _HASH_BYTES)]
                if pieces and len(found) % _HASH_BYTES == 0 and sorted(set(pieces)) == pieces:
                    return cls(found, signer)
        raise CorruptDataError(
            f"{name}: not a file of invitations of version {_VERSION}; expected the file ending in "
            ".json that turnout invite wrote beside the links"
        )

    def __reduce__(self) -> NoReturn:
        """Refuse pickling and copying: the key exists only in its file."""
        raise InvalidTypeError("Invitations cannot be pickled: write them to a file of their own")

    def __repr__(self) -> str:
        """Show the number of invitations."""
        return f"<Invitations of {self.number} people{', blind' if self.blind else ''}>"


def _digest(token: str) -> bytes:
    return hashlib.sha256(b"turnout invitation" + token.encode("ascii")).digest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _bytes(text: str) -> bytes | None:
    """Read base64url of a ticket's size."""
    if len(text) > _TICKET_CHARACTERS or not re.fullmatch("[A-Za-z0-9_-]*", text):
        return None
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        return None
