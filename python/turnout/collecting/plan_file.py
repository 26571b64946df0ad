r"""The plan file, ``plan.json``: what a server publishes and devices are driven by.

.. code-block:: text

   {
     "format": "turnout-plan-file",
     "version": 1,
     "plan": {"format":"turnout-plan",...},
     "fingerprint": "32e0...a7d2",
     "signature": {"algorithm":"ed25519","public_key":"d75a...511a","value":"e556...100b"}
   }

An ASCII JSON object with these members in any order and no others; ``signature`` may be missing.

* ``plan`` is the canonical text of the plan, :meth:`turnout.Plan.to_json`: keys sorted, no
  spaces, ASCII only, numbers as Python writes them. It may have a ``serial``, an integer below
  2^53, and ``expires``, a whole number of seconds since the start of 1970 in UTC.
* ``fingerprint`` is the SHA-256, in lower-case hexadecimal, **of the bytes of** ``plan`` **as
  they stand in the file**, from its first brace to its last. A reader in any language hashes
  these bytes and never has to write a number the way Python does. A file that a program has
  formatted anew is refused by that.
* ``signature`` is an Ed25519 signature (RFC 8032) of the 21 bytes ``turnout-plan-file v1\0``
  followed by the 32 bytes of the fingerprint; keys and signature are in lower-case hexadecimal.

A reader refuses unknown members and members that occur twice, a fingerprint that is not that of
the text, a signature that does not verify, a text that is not the canonical one of the plan that
it says, and, if it was given a public key, a file without a signature by it. A signature says who
made the plan only to somebody who knows the public key from elsewhere. A device makes no report
once ``expires`` has come, and refuses a plan with a smaller serial than one that it has used, or
with none.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from typing import Any

from turnout import _arguments
from turnout._atomic import atomic_write
from turnout._documents import decoder, parsed
from turnout._files import read_bytes
from turnout.collecting.plan import Plan
from turnout.collecting.plan_schema import MOST_SERIAL
from turnout.errors import (
    CorruptDataError,
    InvalidValueError,
    PlanExpiredError,
    UnsupportedVersionError,
)
from turnout.signing import SigningKey, public_key_bytes, verify

__all__ = ["read_plan", "write_plan"]

_FORMAT = "turnout-plan-file"
_VERSION = 1
_DOMAIN = b"turnout-plan-file v1\0"
_MEMBERS = frozenset({"format", "version", "plan", "fingerprint", "signature"})
_SPACE = re.compile(r"[ \t\n\r]*")
_DIGEST = re.compile("[0-9a-f]{64}")
_DECODER = decoder()


def write_plan(
    plan: Plan, path: str | os.PathLike[str], *, signing_key: SigningKey | None = None
) -> None:
    """Write a plan file, whole or not at all.

    Parameters
    ----------
    plan
        What is published.
    path
        The file; it is replaced if it exists.
    signing_key
        Signs the plan, so that devices can tell it from any other.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type, or a label of the domain cannot be written to a file.
    InvalidValueError
        If a label is no Unicode text (it holds half of a surrogate pair).
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import turnout as tn
    >>> plan = tn.Plan(tn.DirectEncoding(1.0, tn.Domain(["no", "yes"])), tn.Bernoulli(0.5))
    >>> key = SigningKey.generate()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "plan.json")
    ...     write_plan(plan, path, signing_key=key)
    ...     read_plan(path, public_key=key.public_key) == plan
    True
    """
    _arguments.instance("plan", plan, Plan, "a Plan")
    text = plan_file_text(plan, signing_key)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="ascii", newline="\n")


def plan_file_text(plan: Plan, signing_key: SigningKey | None) -> str:
    """Return the text of a plan file."""
    text = plan.to_json()
    if not _is_unicode(text):
        raise InvalidValueError(
            "the labels of a plan in a file must be Unicode text, got one that holds half of a "
            f"surrogate pair in {plan.domain!r}"
        )
    fingerprint = hashlib.sha256(text.encode("ascii")).digest()
    lines = [
        f'  "format": "{_FORMAT}"',
        f'  "version": {_VERSION}',
        f'  "plan": {text}',
        f'  "fingerprint": "{fingerprint.hex()}"',
    ]
    if signing_key is not None:
        _arguments.instance("signing_key", signing_key, SigningKey, "a SigningKey")
        signature = {
            "algorithm": "ed25519",
            "public_key": signing_key.public_key,
            "value": signing_key.sign(_DOMAIN + fingerprint).hex(),
        }
        lines.append(f'  "signature": {json.dumps(signature, separators=(",", ":"))}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_plan(
    path: str | os.PathLike[str],
    *,
    public_key: str | None = None,
    least_serial: int | None = None,
) -> Plan:
    """Read a plan file, checking everything that it says.

    Parameters
    ----------
    path
        The file.
    public_key
        Whose signature the file must have, 64 hexadecimal digits. Without it any valid signature is
        taken, and none.
    least_serial
        The serial that the plan must have at least; by default any, and none.

    Returns
    -------
    Plan
        The plan; it may have expired.

    Raises
    ------
    PlanExpiredError
        If the plan's serial is smaller, or it has none.
    UnsupportedVersionError
        If the file or its plan is of a version that this release does not read.
    CorruptDataError
        If it is no plan file, was altered or formatted anew, or its signature is missing or not
        valid.
    InvalidTypeError, InvalidValueError
        If ``public_key`` is no public key, or ``least_serial`` no serial.
    OSError
        If the file cannot be read.
    """
    if least_serial is not None:
        least_serial = _arguments.integer("least_serial", least_serial, least=0, most=MOST_SERIAL)
    if public_key is not None:
        public_key = public_key_bytes("public_key", public_key).hex()
    name = os.fspath(path)
    data = read_bytes(path)
    try:
        plan = _parse(data, public_key)
    except UnsupportedVersionError as error:
        raise UnsupportedVersionError(f"{name}: {error}") from error
    except CorruptDataError as error:
        raise CorruptDataError(f"{name}: {error}") from error
    if least_serial is not None and (plan.serial is None or plan.serial < least_serial):
        found = "no serial" if plan.serial is None else f"serial {plan.serial}"
        raise PlanExpiredError(
            f"{name}: the plan has {found}, expected {least_serial} or a later one"
        )
    return plan


def _parse(data: bytes, public_key: str | None) -> Plan:
    members, text = _members(data)
    version = members.get("version")
    if members.get("format") != _FORMAT:
        raise CorruptDataError(f"not a plan file of turnout: its format is not {_FORMAT!r}")
    if type(version) is not int or version != _VERSION:
        raise UnsupportedVersionError(
            f"the plan file has version {_arguments.shown(version)}; this release of turnout reads "
            f"{_VERSION}"
        )
    missing = _MEMBERS - {"signature"} - members.keys()
    unknown = members.keys() - _MEMBERS
    if missing or unknown:
        what, names = ("lacks", missing) if missing else ("has unknown members", unknown)
        raise CorruptDataError(f"the plan file {what} {_arguments.listed(sorted(names))}")
    fingerprint = members["fingerprint"]
    if not (isinstance(fingerprint, str) and _DIGEST.fullmatch(fingerprint)):
        raise CorruptDataError(
            f"fingerprint must be 64 hexadecimal digits, got {_arguments.shown(fingerprint)}"
        )
    if hashlib.sha256(text).hexdigest() != fingerprint:
        raise CorruptDataError(
            "the plan is not the one of its fingerprint: the file was altered or formatted anew"
        )
    _check_signature(members, bytes.fromhex(fingerprint), public_key)
    plan = Plan.from_dict(members["plan"])
    if plan.to_json().encode() != text or not _is_unicode(plan.to_json()):
        raise CorruptDataError("the plan is not written in its canonical form")
    return plan


def _members(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Take the members of the outer object, and the bytes of ``plan`` as they stand."""
    try:
        text = data.decode("utf-8")
        if not text.isascii():
            # Everything that is written is; so positions of characters are positions of bytes.
            raise CorruptDataError("not a plan file of turnout: it holds other bytes than ASCII")
        members: dict[str, Any] = {}
        plan = ""
        position = _expect("{", *_mark(text, 0))
        mark = ","
        while mark == ",":
            name, position = _DECODER.raw_decode(text, position)
            if not isinstance(name, str):
                raise CorruptDataError("not a plan file of turnout: a member has no name")
            if name in members:
                raise CorruptDataError(f"the plan file has {_arguments.shown(name)} twice")
            start = _expect(":", *_mark(text, position))
            members[name], end = _DECODER.raw_decode(text, start)
            if name == "plan":
                plan = text[start:end]
            mark, position = _mark(text, end)
        if _expect("}", mark, position) != len(text):
            raise CorruptDataError("not a plan file of turnout: something follows it")
    except (ValueError, RecursionError) as error:
        if isinstance(error, CorruptDataError):
            raise
        raise CorruptDataError(f"not a plan file of turnout: {error}") from error
    return members, plan.encode("ascii")


def _mark(text: str, position: int) -> tuple[str, int]:
    """Return the next character that is no space, and the position of what comes behind it."""
    start = _space(text, position)
    return text[start : start + 1], _space(text, start + 1)


def _space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _expect(wanted: str, mark: str, position: int) -> int:
    if mark != wanted:
        raise CorruptDataError(
            f"not a plan file of turnout: expected {wanted!r} near character {position}, found "
            f"{mark!r}"
        )
    return position


def _check_signature(members: dict[str, Any], fingerprint: bytes, public_key: str | None) -> None:
    if "signature" not in members:
        if public_key is not None:
            raise CorruptDataError(f"the plan is not signed; expected a signature by {public_key}")
        return
    match members["signature"]:
        case {
            "algorithm": "ed25519",
            "public_key": str(signer),
            "value": str(value),
            **rest,
        } if not rest and _DIGEST.fullmatch(signer) and re.fullmatch("[0-9a-f]{128}", value):
            if public_key is not None and signer != public_key:
                raise CorruptDataError(f"the plan is signed by {signer}, expected {public_key}")
            if not verify(signer, _DOMAIN + fingerprint, bytes.fromhex(value)):
                raise CorruptDataError("the signature of the plan is not valid")
        case other:
            raise CorruptDataError(f"not a signature of a plan: {_arguments.shown(other)}")


def _is_unicode(text: str) -> bool:
    """Say whether a JSON text holds no halves of surrogate pairs."""
    try:
        json.dumps(parsed(text), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
