"""Files on disk: finding them, their order, and their Hive partitions."""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from turnout import _arguments
from turnout._extras import require
from turnout._files import check_regular, open_regular
from turnout.errors import CorruptDataError, InvalidValueError

_FORMATS: Final = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".tsv": "csv",
}
_COMPRESSED: Final = {".gz", ".bz2", ".zst", ".lz4"}
_WILD: Final = re.compile(r"[*?\[]")
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
#: How values of partitions are written that are no texts.
_INTEGER: Final = re.compile(r"-?[0-9]+", re.ASCII)
_DATE: Final = re.compile(r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_TAIL: Final = 2**16
_STRETCH: Final = 2**20
_READERS: Final = 4
#: So many files are named where each has a number of rows.
_NAMED: Final = 12


@dataclass(frozen=True)
class DataFile:
    """A file of rows.

    Attributes
    ----------
    path
        Where it is, absolute.
    shown
        The path as the caller wrote it, for messages.
    format
        ``"parquet"``, ``"arrow"`` or ``"csv"``.
    partitions
        Names and texts of the Hive partitions that the file is in; None is a null.
    state
        Bytes, the time of the last change in nanoseconds, and that of the last change to the file
        or to what the system says of it, which no program can set.
    """

    path: str
    shown: str
    format: str
    partitions: tuple[tuple[str, str | None], ...]
    state: tuple[int, int, int]

    def check_unchanged(self) -> None:
        """Refuse a file that has changed since it was opened.

        Raises
        ------
        CorruptDataError
            If its size or a time of its last change is another.
        OSError
            If it is gone, or no regular file any more.
        """
        if _state(self.path) != self.state:
            raise CorruptDataError(f"{self.shown} was changed while it was being read")


def _state(path: str) -> tuple[int, int, int]:
    status = check_regular(path)
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def find_files(data: Any) -> tuple[str, list[DataFile]]:
    """Find the files of a path, a folder, a glob or a list of these.

    Parameters
    ----------
    data
        Paths. Folders are searched with all folders in them; files and folders in them whose names
        begin with ``.`` or ``_`` are passed over.

    Returns
    -------
    str
        A name for messages.
    list of DataFile
        The files, in natural order of their paths: ``part-2`` before ``part-10``.

    Raises
    ------
    OSError
        If a path does not exist, or a file is no regular one.
    InvalidValueError
        If a folder or a glob has no files of a known format, has files of several, or if a file is
        named twice.
    """
    many = not isinstance(data, (str, os.PathLike))
    entries = [os.fspath(entry) for entry in (data if many else [data])]
    if not entries:
        raise InvalidValueError("data must name at least one file, got an empty list")
    files = [file for entry in entries for file in _expand(entry)]
    # The order is that of the paths, not of a list: a glob of a shell has another in each place.
    files.sort(key=lambda file: _natural(file.path))
    seen: dict[object, str] = {}
    for file in files:
        status = Path(file.path).stat()
        places: list[object] = [os.path.realpath(file.path)]
        if status.st_nlink > 1:
            places.append((status.st_dev, status.st_ino))
        for place in places:
            if place in seen:
                raise InvalidValueError(
                    f"data has a duplicate file, {seen[place]} and as {file.shown}: its "
                    "people would report twice"
                )
            seen[place] = file.shown
    formats = {file.format: file.shown for file in reversed(files)}
    if len(formats) > 1:
        raise InvalidValueError(
            f"data must be files of one format, got {' and '.join(sorted(formats.values()))}"
        )
    first = entries[0] if len(entries) == 1 else f"{entries[0]}, ..."
    count = "" if len(files) == 1 and files[0].shown == first else f" ({len(files):,} files)"
    return f"{first}{count}", files


def searched(
    argument: str, entry: str, wanted: Callable[[Path], object]
) -> Iterator[tuple[Path, Path | None, list[Path]]]:
    """List the wanted files at a path, in a folder and those below it, or that fit a pattern.

    Yields
    ------
    tuple
        The folder that was named, or that of a file that was; a folder that was searched through,
        None where a file was named; and the files in order. Hidden ones are left out.
    """
    path = Path(entry)
    if path.is_dir():
        for place, files in _walk(path):
            yield path, place, list(filter(wanted, files))
    elif path.exists():
        yield path.parent, None, [path]
    elif _WILD.search(entry):
        hidden = path.name.startswith("_")
        # Not Path.glob, which takes no absolute pattern.
        for match in sorted(map(Path, glob.glob(entry, recursive=True))):  # noqa: PTH207
            if match.is_dir():
                # With ** the files in it are matches of their own.
                if "**" not in entry:
                    yield from searched(argument, os.fspath(match), wanted)
            elif wanted(match) and (hidden or not match.name.startswith("_")):
                yield match.parent, None, [match]
    else:
        raise FileNotFoundError(errno.ENOENT, f"{argument}: no such file or folder", entry)


def _walk(folder: Path) -> Iterator[tuple[Path, list[Path]]]:
    def fail(error: OSError) -> None:
        raise error

    for place, folders, names in os.walk(folder, onerror=fail, followlinks=True):
        here = os.path.realpath(place)
        folders[:] = sorted(
            name
            for name in folders
            # A link to a folder above would be followed for ever.
            if name[0] not in "._" and not _is_above(os.path.realpath(Path(place, name)), here)
        )
        yield Path(place), [Path(place, name) for name in sorted(names) if name[0] not in "._"]


def _is_above(folder: str, place: str) -> bool:
    return os.path.commonpath([folder, place]) == folder


def _expand(entry: Any) -> list[DataFile]:
    _arguments.instance("data", entry, str, "paths of text")
    if "://" in entry:
        raise InvalidValueError(
            f"data: {entry!r} is an address, expected a path: open it with pyarrow.dataset.dataset "
            "and give that"
        )
    found = [
        _describe(file, partitions_of(root, file))
        for root, _, files in searched("data", entry, _format)
        for file in files
    ]
    if not found:
        raise InvalidValueError(f"data: {entry!r} has no file that ends in {', '.join(_FORMATS)}")
    return found


def partitions_of(root: Path, file: Path) -> list[tuple[str, str | None]]:
    """Return the partitions of a file: all below a folder, and those that the folder ends in."""
    below = map(_partition, file.relative_to(root).parent.parts)
    return _run_of_partitions(root.parts) + [pair for pair in below if pair]


def _format(path: Path) -> str | None:
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes and suffixes[-1] in _COMPRESSED and len(suffixes) == 2:
        return "csv" if _FORMATS.get(suffixes[0]) == "csv" else None
    return _FORMATS.get(suffixes[-1]) if suffixes else None


def _describe(path: Path, partitions: Iterable[tuple[str, str | None]]) -> DataFile:
    kind = _format(path)
    if kind is None:
        raise InvalidValueError(
            f"data: {os.fspath(path)!r} must end in {', '.join(_FORMATS)}, or .csv.gz"
        )
    place, pairs = os.fspath(path.absolute()), tuple(partitions)
    state, names = _state(place), [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise InvalidValueError(f"{os.fspath(path)}: a partition is duplicated in the path")
    return DataFile(place, os.fspath(path), kind, pairs, state)


def _natural(path: str) -> list[tuple[tuple[int, int, str], ...]]:
    """Return a sort key that orders numbers in names by value."""
    return [
        tuple(
            (0, int(piece), piece) if piece.isdecimal() else (1, 0, piece)
            for piece in re.split(r"([0-9]+)", part)
            if piece
        )
        for part in Path(path).parts
    ]


def _partition(part: str) -> tuple[str, str | None] | None:
    name, equals, value = part.partition("=")
    if not equals or not name:
        return None
    return unquote(name), None if value == _NULL else unquote(value)


def _run_of_partitions(parts: tuple[str, ...]) -> list[tuple[str, str | None]]:
    """Partitions at the end of a path, up to the first folder that is not a partition."""
    found: list[tuple[str, str | None]] = []
    for part in reversed(parts):
        pair = _partition(part)
        if pair is None:
            break
        found.append(pair)
    return found[::-1]


def partition_types(partitions: Iterable[Iterable[tuple[str, str | None]]]) -> dict[str, Any]:
    """Return the Arrow type of each partition: int32 if every value is such a number, else text.

    The rule of ``pyarrow.dataset``; and dates, if every value is one as ISO 8601 writes it.

    Examples
    --------
    >>> partition_types([[("month", "1"), ("day", "2026-11-22")], [("month", "x")]])
    {'month': DataType(string), 'day': DataType(date32[day])}
    """
    values: dict[str, set[Any]] = {}
    for name, value in (pair for pairs in partitions for pair in pairs):
        values.setdefault(name, set()).add(value)
    return {name: _partition_type(name, found - {None}) for name, found in values.items()}


def _partition_type(name: str, values: set[str]) -> Any:
    pa = require("pyarrow", "cli")
    for kind, form in ((pa.int32(), _INTEGER), (pa.date32(), _DATE)):
        if values and all(map(form.fullmatch, values)):
            with contextlib.suppress(pa.ArrowInvalid):
                listed = sorted(values)
                known: dict[Any, str] = {}
                parsed = pa.array(listed).cast(kind).to_pylist()
                for text, value in zip(listed, parsed, strict=True):
                    same = known.setdefault(value, text)
                    if same != text:
                        raise InvalidValueError(
                            f"the folders '{name}={same}' and '{name}={text}' would be one group: "
                            "give them the same name"
                        )
                return kind
    return pa.string()


def partition_value(text: str | None, kind: Any) -> Any:
    """Return the value of a partition's text in an Arrow type.

    Examples
    --------
    >>> import pyarrow as pa
    >>> partition_value("7", pa.int32()).as_py(), partition_value("2026-11-22", pa.date32()).as_py()
    (7, datetime.date(2026, 11, 22))
    """
    pa = require("pyarrow", "cli")
    return pa.scalar(text, pa.string()).cast(kind)


def rows_of_files(files: Mapping[str, int]) -> str:
    """State the number of rows of each file; only the first few files are named.

    Examples
    --------
    >>> rows_of_files({"people.csv": 9000})
    'people.csv has 9,000 rows'
    >>> rows_of_files({"day-1.csv": 700, "day-2.csv": 1})
    '2 files have 701 rows: day-1.csv 700, day-2.csv 1'
    """
    total = sum(files.values())
    rows = f"{total:,} row{'' if total == 1 else 's'}"
    if len(files) == 1:
        return f"{next(iter(files))} has {rows}"
    named = ", ".join(f"{name} {number:,}" for name, number in list(files.items())[:_NAMED])
    more = f" and {len(files) - _NAMED:,} more" if len(files) > _NAMED else ""
    return f"{len(files):,} files have {rows}: {named}{more}"


def fingerprint(files: Iterable[DataFile], how: str) -> str:
    """Digest of paths, times of last change, sizes and ends of files, and of how they are read.

    The first 32 digits depend on the paths, the times and how the files are read, so they reveal
    nothing about the content. The other 64 digits depend on everything.
    """
    begin = f"turnout-files/{how}".encode()
    places, whole = hashlib.sha256(begin), hashlib.sha256(begin)
    for file in files:
        size, modified, _ = file.state
        head = f"/{len(file.path)}/{file.path}/{modified}/"
        places.update(head.encode("utf-8", "surrogateescape"))
        whole.update(f"{head}{size}/".encode("utf-8", "surrogateescape"))
        with open_regular(file.path) as stream:
            stream.seek(max(size - _TAIL, 0))
            whole.update(hashlib.sha256(stream.read(_TAIL)).digest())
    return places.hexdigest()[:32] + whole.hexdigest()


def content_digest(files: Sequence[DataFile]) -> bytes:
    """Digest of all bytes of files that are as they were when they were found.

    A fingerprint does not detect a change that keeps the size and the times, such as a copy that
    keeps its times. Use this digest if the answers must be the same.

    Raises
    ------
    CorruptDataError
        If a file was changed.
    OSError
        If a file cannot be read.
    """
    whole = hashlib.sha256()
    with ThreadPoolExecutor(min(_READERS, len(files))) as pool:
        for digest in pool.map(_digest, files):
            whole.update(digest)
    return whole.digest()


def _digest(file: DataFile) -> bytes:
    digest = hashlib.sha256()
    with open_regular(file.path) as stream:
        while data := stream.read(_STRETCH):
            digest.update(data)
    file.check_unchanged()
    return digest.digest()
