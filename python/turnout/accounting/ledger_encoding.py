"""The text of a ledger: canonical JSON with a version and a checksum.

One object, keys sorted, no spaces, ASCII only: ``format`` (``"turnout-ledger"``), ``version`` (1),
``epsilon``, ``delta``, ``adjacency``, ``entries`` (a list of objects with ``mechanism``, ``rounds``
and ``label``), and ``sha256``, the SHA-256 in hexadecimal of the same text without that key. The
checksum finds accidents; whoever can write the text can also compute it again.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from turnout import _arguments
from turnout._documents import parsed
from turnout.errors import CorruptDataError, InvalidTypeError, UnsupportedVersionError

__all__ = ["FORMAT", "VERSION", "check_version", "decode", "encode"]

FORMAT = "turnout-ledger"
VERSION = 1

_CHECKSUM = "sha256"


def encode(description: dict[str, Any]) -> str:
    """Write a description of a ledger as text."""
    return _canonical({**description, _CHECKSUM: _digest(description)})


def decode(text: object) -> dict[str, Any]:
    """Read the text of a ledger; what it describes is not looked at.

    Raises
    ------
    UnsupportedVersionError
        If it is a ledger of a version that this release does not read.
    CorruptDataError
        If it is no ledger, or was altered or cut.
    InvalidTypeError
        If ``text`` is not text.
    """
    if not isinstance(text, (str, bytes, bytearray)):
        raise InvalidTypeError(
            f"text must be the JSON text of a ledger, got {_arguments.shown(text)}"
        )
    try:
        characters = text if isinstance(text, str) else text.decode("ascii")
        description = parsed(characters)
        # A later version may have another checksum.
        check_version(description)
        checksum = description.pop(_CHECKSUM, None) if isinstance(description, dict) else None
        # The same content can be written in many ways; one of them is what was written.
        genuine = (
            checksum is not None
            and checksum == _digest(description)
            and characters == encode(description)
        )
    except UnsupportedVersionError:
        raise
    except (ValueError, RecursionError) as error:
        raise CorruptDataError(f"not a ledger of turnout: {error}") from error
    if checksum is None:
        raise CorruptDataError("not a ledger of turnout: it has no checksum")
    if not genuine:
        raise CorruptDataError("the checksum does not match: the ledger was altered or cut")
    found: dict[str, Any] = description
    return found


def check_version(description: object) -> None:
    """Refuse a ledger of a version that this release does not read, by name.

    Raises
    ------
    UnsupportedVersionError
        If it is one.
    """
    match description:
        case {"format": "turnout-ledger", "version": version} if (
            type(version) is not int or version != VERSION
        ):
            raise UnsupportedVersionError(
                f"the ledger has version {_arguments.shown(version)}; this release of turnout "
                f"reads {VERSION}"
            )


def _canonical(description: dict[str, Any]) -> str:
    return json.dumps(description, sort_keys=True, separators=(",", ":"))


def _digest(description: dict[str, Any]) -> str:
    return hashlib.sha256(_canonical(description).encode("ascii")).hexdigest()
