"""Pseudonyms: reports of one person can be told, and not whose they are."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from typing import Any, Final, NoReturn

from turnout._documents import check_version, parsed
from turnout._secrets import HiddenBytes, read_secret_file, write_secret_file
from turnout._types import Array, Bytes
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    UnsupportedVersionError,
)
from turnout.pipeline.identity import digests

_KEY_BYTES: Final = 32


class PseudonymKey:
    """A secret from which pseudonyms are made.

    A pseudonym is a keyed digest of 128 bits of an identifier, in the context of one collection.
    Whoever has the reports of a collection can see which are of one person and not who that is;
    reports of two collections cannot be linked by it if they have different contexts
    (``pseudonym_context`` of :func:`turnout.pipeline.scan`). Identifiers are compared byte by byte:
    a person who is written in two ways has two pseudonyms.

    **What it does not protect.** Whoever has the key and a list of identifiers knows whose each
    report is. That two reports are of one person is told to everybody who has them: the epsilons
    of a person's reports add up, also over collections under one context. It says nothing about
    what the other columns of a report file give away, such as a small group. It is no part of the
    guarantee of differential privacy of an answer, neither adding to it nor taking from it.

    Parameters
    ----------
    secret
        32 bytes from a cryptographic generator; :meth:`generate` makes one.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If ``secret`` is not 32 bytes.

    Examples
    --------
    >>> PseudonymKey(bytes(32))
    PseudonymKey(...)
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if not isinstance(secret, bytes):
            raise InvalidTypeError(f"secret must be bytes, got {type(secret).__name__}")
        if len(secret) != _KEY_BYTES:
            raise InvalidValueError(f"secret must be {_KEY_BYTES} bytes, got {len(secret)}")
        self._secret = HiddenBytes(secret)

    @classmethod
    def generate(cls) -> PseudonymKey:
        """Make a key from the randomness of the operating system."""
        return cls(secrets.token_bytes(_KEY_BYTES))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PseudonymKey:
        """Read a key file that :meth:`write` made.

        Raises
        ------
        InvalidValueError
            If others than its owner can read the file.
        CorruptDataError, UnsupportedVersionError
            If it is no key file, or one of a later version.
        OSError
            If it cannot be read.
        """
        place, data = os.fspath(path), read_secret_file(path)
        try:
            described = parsed(data)
            check_version("key file", described, "turnout-pseudonym-key", 1)
            match described:
                case {"format": "turnout-pseudonym-key", "key": str(text)}:
                    return cls(bytes.fromhex(text))
        except UnsupportedVersionError as error:
            raise UnsupportedVersionError(f"{place}: {error}") from error
        except ValueError:
            # Not the text of the error: it may quote the key.
            raise CorruptDataError(f"{place}: not a key file of turnout") from None
        raise CorruptDataError(f"{place}: not a key file of turnout")

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the key to a new file that only its owner can read.

        Raises
        ------
        FileExistsError
            If the file exists: a key that is written over is lost.
        OSError
            If the file cannot be written.
        """
        text = json.dumps(
            {"format": "turnout-pseudonym-key", "version": 1, "key": self._secret.hex()}
        )
        write_secret_file(path, text + "\n")

    @property
    def secret(self) -> bytes:
        """The 32 bytes, for who must carry them to another process: whoever has them has the key.

        They show nothing of themselves when they are printed.
        """
        return self._secret

    @property
    def identifier(self) -> str:
        """A name of the key that tells keys apart and gives nothing away."""
        return hashlib.blake2b(b"turnout pseudonym key", key=self._secret).hexdigest()[:16]

    def pseudonyms(
        self,
        column: Any,
        context: str,
        *,
        name: str,
        rows: Array | None = None,
        first_row: int = 0,
    ) -> Bytes:
        """Make pseudonyms of a column of identifiers: 16 bytes a row.

        Parameters
        ----------
        column
            A ``pyarrow.ChunkedArray`` of text, integers or bytes.
        context
            The collection: the same identifier has another pseudonym in another context.
        name
            What messages call the column.
        rows, first_row
            The rows of the entries, for messages.

        Raises
        ------
        InvalidValueError
            If an identifier is missing.
        InvalidTypeError
            If the column is not one of identifiers.
        """
        purpose = f"turnout pseudonym/{context}".encode()
        return digests(column, self._secret, purpose, name=name, rows=rows, first_row=first_row)

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: a key is in its file only."""
        raise InvalidTypeError("a PseudonymKey cannot be pickled: write it to a file of its own")

    def __eq__(self, other: object) -> bool:
        """Compare secrets, in constant time."""
        if not isinstance(other, PseudonymKey):
            return NotImplemented
        return secrets.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        """Hash of the name of the key."""
        return hash(self.identifier)

    def __repr__(self) -> str:
        """Show nothing of the secret."""
        return "PseudonymKey(...)"
