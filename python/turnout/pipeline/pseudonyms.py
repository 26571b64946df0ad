"""Pseudonyms, which link the reports of one person without revealing who it is."""

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
    """A secret key for pseudonyms.

    A pseudonym is a keyed digest of 128 bits of an identifier, in the context of one collection.
    A reader of the reports of a collection can see which reports come from one person, but not who
    the person is. Pseudonyms do not link reports of two collections if their contexts differ
    (``pseudonym_context`` of :func:`turnout.pipeline.scan`). Identifiers are compared byte by byte:
    a person with two spellings has two pseudonyms.

    **What it does not protect.** Anyone who has the key and a list of identifiers knows whose each
    report is. Everybody who has the reports learns that two of them come from one person: the
    epsilons of a person's reports add up, also over collections under one context. A pseudonym does
    not change what the other columns of a report file reveal, such as a small group. It is not part
    of the differential privacy guarantee of an answer: it neither strengthens nor weakens the
    guarantee.

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
        """Generate a key from the randomness of the operating system."""
        return cls(secrets.token_bytes(_KEY_BYTES))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> PseudonymKey:
        """Read a key file that :meth:`write` made.

        Raises
        ------
        InvalidValueError
            If anyone except its owner can read the file.
        CorruptDataError, UnsupportedVersionError
            If the file is not a key file, or has a later version.
        OSError
            If the file cannot be read.
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
            If the file exists: an overwritten key would be lost.
        OSError
            If the file cannot be written.
        """
        text = json.dumps(
            {"format": "turnout-pseudonym-key", "version": 1, "key": self._secret.hex()}
        )
        write_secret_file(path, text + "\n")

    @property
    def secret(self) -> bytes:
        """The 32 bytes, to carry them to another process: anyone who has them has the key.

        They show nothing of themselves when they are printed.
        """
        return self._secret

    @property
    def identifier(self) -> str:
        """A name that identifies the key and reveals nothing."""
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
        """Compute the pseudonyms of a column of identifiers: 16 bytes for each row.

        Parameters
        ----------
        column
            A ``pyarrow.ChunkedArray`` of text, integers or bytes.
        context
            The collection. The same identifier has another pseudonym in another context.
        name
            The name of the column in messages.
        rows, first_row
            The rows of the entries, for messages.

        Raises
        ------
        InvalidValueError
            If an identifier is missing.
        InvalidTypeError
            If the column does not contain identifiers.
        """
        purpose = f"turnout pseudonym/{context}".encode()
        return digests(column, self._secret, purpose, name=name, rows=rows, first_row=first_row)

    def __reduce__(self) -> NoReturn:
        """Refuse pickling and copying: a key exists only in its file."""
        raise InvalidTypeError("a PseudonymKey cannot be pickled: write it to a file of its own")

    def __eq__(self, other: object) -> bool:
        """Compare secrets, in constant time."""
        if not isinstance(other, PseudonymKey):
            return NotImplemented
        return secrets.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        """Return the hash of the key's name."""
        return hash(self.identifier)

    def __repr__(self) -> str:
        """Show nothing of the secret."""
        return "PseudonymKey(...)"
