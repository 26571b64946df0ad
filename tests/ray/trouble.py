"""Sources whose blocks make trouble in the worker that reads them. Sent to workers by value."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from turnout import _files
from turnout.pipeline.sources import Block, Source


def once(mark: str) -> bool:
    """Whether nobody was here before, on the whole machine."""
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def until_go_on(folder: Path) -> None:
    """Wait for the file that lets everyone go on, as long as a test may run."""
    end = time.monotonic() + 600
    while not (folder / "go-on").exists() and time.monotonic() < end:
        time.sleep(0.02)


def die(mark: str) -> None:
    """Kill this process the first time."""
    if once(mark):
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True, eq=False)
class TroubledBlock(Block):
    """A block that does something when it is read."""

    table: Any = field(repr=False)
    kind: str
    folder: str

    def read(self) -> Any:
        """Make trouble and give the rows."""
        mark = f"{self.folder}/{self.kind}-{self.index}"
        if self.kind == "reading":
            die(mark)
        elif self.kind == "publishing":
            before_publication(mark)
        elif self.kind == "published":
            after_publication(mark)
        elif self.kind == "held":
            Path(f"{self.folder}/process-{os.getpid()}").touch()
            until_go_on(Path(self.folder))
        elif self.kind == "failing" and once(mark):
            raise OSError(5, "the disk is broken")
        return self.table


def before_publication(mark: str) -> None:
    """Die when the file is complete and has not appeared."""
    publish = _files._publish

    def dying(temporary: Path, target: Path) -> bool:
        die(mark)
        return publish(temporary, target)

    _files._publish = dying


def after_publication(mark: str) -> None:
    """Die when the file has appeared, before anybody is told."""
    synchronise = _files.synchronise_folder

    def dying(folder: Path) -> None:
        die(mark)
        synchronise(folder)

    _files.synchronise_folder = dying


class TroubledSource(Source):
    """A table in blocks of which some make trouble."""

    name = "troubled"
    fingerprint = "of the same rows"

    def __init__(
        self, table: Any, folder: Path, kind: str, troubled: Container[int], block_rows: int
    ) -> None:
        self.table, self.folder, self.kind = table, folder, kind
        self.troubled, self.block_rows, self.rows = troubled, block_rows, table.num_rows

    @property
    def schema(self) -> Any:
        """That of the table."""
        return self.table.schema

    def content(self) -> bytes:
        """Tell what it holds without reading blocks here, where they would kill the driver."""
        return self.fingerprint.encode()

    def blocks(
        self,
        columns: Sequence[str],
        *,
        skip: Container[int] = (),
        categories: Container[str] = (),
    ) -> Iterator[Block]:
        """Cut the table."""
        for index in range(-(-self.table.num_rows // self.block_rows)):
            if index not in skip:
                first = index * self.block_rows
                part = self.table.slice(first, self.block_rows).select(list(columns))
                kind = self.kind if index in self.troubled else "none"
                yield TroubledBlock(
                    index, part.num_rows, part, kind, str(self.folder), first_row=first
                )
