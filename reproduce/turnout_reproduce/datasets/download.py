"""Downloads of published files: checked against known hashes, whole or not at all."""

from __future__ import annotations

import os
import shutil
import time
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turnout import _arguments
from turnout._extras import require
from turnout._files import atomic_write
from turnout._progress import bar_of
from turnout.errors import CorruptDataError, InvalidValueError, TurnoutError

_BLOCK = 1 << 16

#: Seconds before a bar appears.
_PATIENCE = 2.0


class DownloadError(TurnoutError, OSError):
    """A file could not be downloaded; the message gives every address and its reason."""


def places(given: str | Sequence[str] | None, public: Sequence[str]) -> list[str]:
    """Give the addresses of folders that are tried one after the other."""
    if given is None:
        return list(public)
    chosen = (
        [given]
        if isinstance(given, str)
        else _arguments.items("base_url", given, "an address or several")
    )
    for place in chosen:
        if not isinstance(place, str) or not place.startswith(("http://", "https://")):
            raise _arguments.invalid(
                "base_url must be an address that starts with http:// or https://", place
            )
    if not chosen:
        raise InvalidValueError("base_url must be at least one address, got none")
    return [place if place.endswith("/") else place + "/" for place in chosen]


def folder_of(given: str | os.PathLike[str] | None, name: str) -> Path:
    """Give the folder where files are kept: the given one, or one in the user's cache."""
    if given is not None:
        return Path(given)
    return Path(require("pooch", "reproduce").os_cache("turnout")) / name


def fetch(name: str, expected: str, addresses: Sequence[str], folder: Path, progress: bool) -> Path:
    """Give the path of a file in a folder, downloaded if it is not there or is another.

    Parameters
    ----------
    name
        The name of the file, there and here.
    expected
        What it hashes to, as ``algorithm:digest``.
    addresses
        Folders that are tried one after the other.
    folder
        Where it is kept; made if need be.
    progress
        Whether a progress bar is shown.

    Returns
    -------
    pathlib.Path
        The file, of which the hash is as expected.

    Raises
    ------
    DownloadError
        If no address gives the file.
    CorruptDataError
        If none gives it with the expected hash and one gives it with another.
    """
    pooch = require("pooch", "reproduce")
    failures: list[str] = []
    corrupt = False
    quiet = pooch.get_logger()
    level = quiet.level
    for address in addresses:
        bar = _Bar(name, progress)
        downloader = pooch.HTTPDownloader(
            progressbar=bar,
            chunk_size=_BLOCK,
            # What is hashed is the file itself, not what a server makes of it on the way.
            headers={"Accept-Encoding": "identity"},
        )
        quiet.setLevel("ERROR")
        try:
            return Path(
                pooch.retrieve(
                    address + name, expected, fname=name, path=folder, downloader=downloader
                )
            )
        except OSError as error:  # what requests raises is one
            failures.append(f"{address}{name}: {error}")
        except ValueError:
            corrupt = True
            failures.append(f"{address}{name}: the bytes have another hash than {expected}")
        finally:
            quiet.setLevel(level)
            bar.close()
    kind = CorruptDataError if corrupt else DownloadError
    raise kind(f"{name} could not be downloaded: {'; '.join(failures)}")


def unpack(archive: Path, members: Mapping[str, Path]) -> None:
    """Write some members of a zip archive to files, each whole or not at all."""
    try:
        with zipfile.ZipFile(archive) as content:
            for member, target in members.items():
                with (
                    content.open(member) as source,
                    atomic_write(target) as temporary,
                    temporary.open("wb") as file,
                ):
                    shutil.copyfileobj(source, file, _BLOCK)
    except KeyError as error:
        raise CorruptDataError(f"{archive} lacks a file: {error.args[0]}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise CorruptDataError(f"{archive} is cut off or altered: {error}") from error


class _Bar:
    """What pooch tells how many bytes have arrived."""

    def __init__(self, name: str, wanted: bool) -> None:
        self.total = 0
        self._name, self._wanted = name, wanted
        self._done = 0
        self._start = time.monotonic()
        self._bar: Any = None

    def update(self, size: int) -> None:
        """Take note of bytes that have arrived."""
        self._done = min(self._done + size, self.total or self._done + size)
        if not self._wanted or time.monotonic() - self._start < _PATIENCE:
            return
        self._bar = self._bar or bar_of(f"{self._name}, bytes", self.total or None)
        self._bar.show(self._done)

    def reset(self) -> None:
        """Start again from nothing."""
        self._done = 0

    def close(self) -> None:
        """Take the bar away; pooch does so too."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
