"""Keys that sign plans: Ed25519 (RFC 8032).

The publisher of a plan signs it, and devices that know the public key refuse any other plan. A
secret key is stored in a separate file: a line of JSON that only its owner can read.
"""

from __future__ import annotations

import json
import os
import re
import secrets
from typing import Any, NoReturn

from turnout import _arguments, _core
from turnout._documents import parsed
from turnout._secrets import HiddenBytes, read_secret_file, write_secret_file
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

_FORMAT = "turnout-signing-key"
_VERSION = 1
_ALGORITHM = "ed25519"
_KEY = re.compile("[0-9a-f]{64}")


class SigningKey:
    """A secret Ed25519 key.

    Parameters
    ----------
    secret
        32 bytes that nobody else knows. :meth:`generate` takes them from the operating system.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If ``secret`` is not 32 bytes.

    Examples
    --------
    >>> key = SigningKey.generate()
    >>> signature = key.sign(b"a message")
    >>> verify(key.public_key, b"a message", signature)
    True
    >>> verify(key.public_key, b"another message", signature)
    False
    """

    __slots__ = ("_public_key", "_secret")

    def __init__(self, secret: bytes) -> None:
        if not isinstance(secret, bytes):
            raise InvalidTypeError(f"secret must be 32 bytes, got a {type(secret).__name__}")
        if len(secret) != 32:
            raise InvalidValueError(f"secret must be 32 bytes, got {len(secret)}")
        self._secret = HiddenBytes(secret)
        self._public_key = _core.ed25519_public_key(secret).hex()

    @classmethod
    def generate(cls) -> SigningKey:
        """Generate a new key from the randomness of the operating system.

        Returns
        -------
        SigningKey
            A new random key.

        Examples
        --------
        >>> SigningKey.generate().public_key != SigningKey.generate().public_key
        True
        """
        return cls(secrets.token_bytes(32))

    @property
    def public_key(self) -> str:
        """The public key, which everybody may know: 64 hexadecimal digits."""
        return self._public_key

    def sign(self, message: bytes) -> bytes:
        """Sign a message.

        Parameters
        ----------
        message
            The message to sign.

        Returns
        -------
        bytes
            The signature: 64 bytes, always the same for the same message.

        Raises
        ------
        InvalidTypeError
            If the message is not bytes.

        Examples
        --------
        >>> len(SigningKey.generate().sign(b""))
        64
        """
        _arguments.instance("message", message, bytes, "bytes")
        return _core.ed25519_sign(self._secret, message)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the key to a new file that only its owner can read (mode 0600).

        Parameters
        ----------
        path
            The file. An existing file is never overwritten: a lost key cannot be recovered.

        Raises
        ------
        FileExistsError
            If ``path`` exists.
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> key = SigningKey.generate()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     key.write(pathlib.Path(folder, "plans.key"))
        ...     SigningKey.read(pathlib.Path(folder, "plans.key")) == key
        True
        """
        record = {
            "format": _FORMAT,
            "version": _VERSION,
            "algorithm": _ALGORITHM,
            "public_key": self._public_key,
            "secret": self._secret.hex(),
        }
        write_secret_file(path, json.dumps(record, separators=(",", ":")) + "\n")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SigningKey:
        """Read a key that :meth:`write` wrote.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        SigningKey
            The key.

        Raises
        ------
        CorruptDataError
            If it is not a key file, or its two halves do not belong together. The message shows
            nothing of its content.
        InvalidValueError
            If anyone but its owner can read the file.
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
                "format": "turnout-signing-key",
                "version": 1,
                "algorithm": "ed25519",
                "public_key": str(public_key),
                "secret": str(secret),
                **rest,
            } if not rest and _KEY.fullmatch(secret):
                key = cls(bytes.fromhex(secret))
                if key.public_key == public_key:
                    return key
                raise CorruptDataError(f"{name}: the public key does not belong to the secret key")
        # Nothing of the file is shown: it may hold a secret.
        raise CorruptDataError(f"{name}: not a signing key of turnout, of version {_VERSION}")

    def __reduce__(self) -> NoReturn:
        """Refuse pickling and copying: a secret key stays in its file."""
        raise InvalidTypeError("a SigningKey cannot be pickled: write it to a file of its own")

    def __eq__(self, other: object) -> bool:
        """Compare the public keys."""
        return isinstance(other, SigningKey) and other._public_key == self._public_key

    def __hash__(self) -> int:
        """Hash of the public key."""
        return hash((SigningKey, self._public_key))

    def __repr__(self) -> str:
        """Show the public key and nothing of the secret one."""
        return f"<SigningKey of public key {self._public_key}>"


def public_key_bytes(argument: str, value: object) -> bytes:
    """Return the 32 bytes of a public key in hexadecimal."""
    expected = "a public key of 64 hexadecimal digits"
    if not isinstance(value, str):
        # Somebody who confuses the keys passes the secret one.
        raise _arguments.mistyped(f"{argument} must be {expected}", _arguments.Private(value))
    if not _KEY.fullmatch(value.lower()):
        raise InvalidValueError(f"{argument} must be {expected}, got {len(value)} characters")
    return bytes.fromhex(value)


def verify(public_key: str, message: bytes, signature: bytes) -> bool:
    """Return whether a signature of a message is valid under a public key.

    Parameters
    ----------
    public_key
        The public key, 64 hexadecimal digits.
    message
        The signed message.
    signature
        The signature, 64 bytes.

    Returns
    -------
    bool
        True only if the holder of the secret key signed exactly this message.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the key, the message or the signature has another length or type.

    Examples
    --------
    >>> verify(SigningKey.generate().public_key, b"a message", bytes(64))
    False
    """
    key = public_key_bytes("public_key", public_key)
    _arguments.instance("signature", signature, bytes, "64 bytes")
    _arguments.instance("message", message, bytes, "bytes")
    return _core.ed25519_verify(key, message, signature)
