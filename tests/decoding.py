"""What the table of decoders is made of: bytes, seals, and documents with a value in any place."""

from __future__ import annotations

import atexit
import hashlib
import io
import json
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from turnout._seal import SEAL_MARKER
from turnout.errors import TurnoutError

#: The inputs that fuzzers were given or found: a folder for each decoder.
CORPUS = Path(__file__).with_name("corpus")

FOLDER = Path(tempfile.mkdtemp(prefix="turnout-decoders-"))

atexit.register(shutil.rmtree, FOLDER)


def plain(content: bytes) -> bytes:
    return content


class Decoder(NamedTuple):
    """What a decoder reads.

    ``sealed`` makes of ``content`` the bytes that ``read`` takes, as somebody does who can compute
    a checksum. ``written`` makes bytes of what was read.
    """

    content: bytes
    sealed: Callable[[bytes], bytes]
    read: Callable[[bytes], object]
    written: Callable[[Any], bytes] | None = None
    #: Whether the content is JSON.
    document: bool = True


def broken_word(decoder: Decoder, data: bytes) -> str | None:
    """Read bytes; what is wrong with how that ends, or None."""
    try:
        value = decoder.read(data)
    except TurnoutError:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    if decoder.written is None or value is None:
        return None
    # What was taken is written, and reads as the same.
    try:
        written = decoder.written(value)
        again = decoder.read(written)
        if isinstance(value, (np.ndarray, tuple)) or type(value).__eq__ is object.__eq__:
            same = decoder.written(again) == written
        else:
            same = bool(value == again)
    except Exception as error:
        return f"was read, but not again: {type(error).__name__}: {error}"[:300]
    return None if same else f"{value!r} becomes {again!r}"[:600]


def canonical(document: Any) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def of_document(value: Any) -> bytes:
    return canonical(value.to_dict())


def in_text(value: Any) -> bytes:
    text: str = value.to_json()
    return text.encode()


def in_bytes(value: Any) -> bytes:
    data: bytes = value.to_bytes()
    return data


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values of a document."""
    inner: Any = ()
    if isinstance(document, dict):
        inner = document.items()
    elif isinstance(document, list):
        inner = enumerate(document)
    return [path, *(place for key, value in inner for place in places(value, (*path, key)))]


def value_at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of a document with another value at a path."""
    if not path:
        return value
    copy = document.copy()
    copy[path[0]] = replaced(document[path[0]], path[1:], value)
    return copy


#: Where a value is put into a text.
HOLE = "the hole"

#: What nests a value, by what documents know: lists, objects, labels, trees.
NESTS: list[Any] = [[HOLE], {"x": HOLE}, {"tuple": [HOLE]}, {"list": [HOLE]}, {"dict": {"x": HOLE}}]


def deep(document: Any, depth: int) -> Iterator[bytes]:
    """Copies of a document, each with one value nested so deep, also in its like."""
    for path in places(document):
        value = value_at(document, path)
        nests = [*NESTS, *(replaced(value, inner, HOLE) for inner in places(value)[1:])]
        whole = canonical(replaced(document, path, HOLE))
        for nest in nests:
            opening, closing = canonical(nest).split(canonical(HOLE))
            inside = opening * depth + canonical(value) + closing * depth
            yield whole.replace(canonical(HOLE), inside)


def with_sha256(content: bytes) -> bytes:
    return content + hashlib.sha256(content).digest()


def in_container(data: bytes, read: Callable[[bytes], object]) -> Decoder:
    """The header of a tally of any kind; the arrays behind it stay."""
    magic, version, length = struct.unpack_from("<8sII", data)
    arrays = data[16 + length : -32]

    def sealed(body: bytes) -> bytes:
        return with_sha256(struct.pack("<8sII", magic, version, len(body)) + body + arrays)

    return Decoder(data[16 : 16 + length], sealed, read, in_bytes)


def after_header(data: bytes, read: Callable[[bytes], object]) -> Decoder:
    """The arrays of a tally of any kind; the header stays."""
    (length,) = struct.unpack_from("<I", data, 12)
    return Decoder(
        data[16 + length : -32],
        lambda arrays: with_sha256(data[: 16 + length] + arrays),
        read,
        in_bytes,
        document=False,
    )


def in_ledger(body: bytes) -> bytes:
    try:
        description = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(description, dict):
        return body
    description["sha256"] = hashlib.sha256(body).hexdigest()
    return canonical(description)


def through_a_file(read: Callable[[Path], object], name: str = "file") -> Callable[[bytes], object]:
    def reading(data: bytes) -> object:
        path = FOLDER / name
        path.parent.mkdir(exist_ok=True)
        path.touch(0o600)
        path.write_bytes(data)
        return read(path)

    return reading


def in_a_file(write: Callable[[Any, Path], object], ending: str) -> Callable[..., bytes]:
    def writing(value: Any) -> bytes:
        path = FOLDER / f"file.{ending}"
        write(value, path)
        return path.read_bytes()

    return writing


def through_json(read: Callable[[Any], object]) -> Callable[[bytes], object]:
    """Of what is read out of JSON by something else, which refuses what is none."""

    def reading(data: bytes) -> object:
        try:
            description = json.loads(data)
        except (ValueError, RecursionError):
            return None
        return read(description)

    return reading


def described(value: Any, read: Callable[[Any], object]) -> Decoder:
    return Decoder(canonical(value.to_dict()), plain, through_json(read), of_document)


def sealed_again(data: bytes) -> bytes:
    """A file with the seal of what it holds, where it has one."""
    marker = SEAL_MARKER.encode()
    place = data.rfind(marker)
    last = data[place + len(marker) :][:64]
    if place < 0 or len(last) < 64:
        return data
    blank = data.replace(marker + last, marker + b"0" * 64)
    return blank.replace(marker + b"0" * 64, marker + hashlib.sha256(blank).hexdigest().encode())


def binary(
    content: bytes,
    read: Callable[[bytes], object],
    written: Callable[[Any], bytes] | None = None,
    sealed: Callable[[bytes], bytes] = plain,
) -> Decoder:
    return Decoder(content, sealed, read, written, document=False)


def array_file(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def archive_file(members: Any) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), bytes(content))
    return file.getvalue()
