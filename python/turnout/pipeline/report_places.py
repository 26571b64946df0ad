"""Where files of reports are: folders, patterns, and what the folders on the way say."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from turnout.collecting.keys import Part
from turnout.errors import InvalidValueError
from turnout.pipeline.job import STATE_FOLDER, Job
from turnout.pipeline.sources.files import partition_kind, partition_value, run_of_partitions

_SUFFIXES: Final = (".parquet", ".arrow", ".ipc", ".feather")


@dataclass(frozen=True)
class PlacedFile:
    """A file of reports.

    Attributes
    ----------
    path
        Where it is.
    partitions
        Names and values of the folders ``name=value`` on the way to it.
    """

    path: Path
    partitions: tuple[tuple[str, Part], ...]


def placed_files(places: Sequence[str], *, partial: bool) -> tuple[list[PlacedFile], list[Job]]:
    """Find the files of reports at some places, in order, and the jobs that wrote them.

    Parameters
    ----------
    places
        Files, folders and patterns.
    partial
        Whether a folder whose job is not complete is taken with the parts that are there.

    Raises
    ------
    InvalidValueError
        If there is no file, one is there twice, or the job of a folder is not complete or lacks
        parts.
    OSError
        If a place does not exist, or a folder cannot be read.
    """
    paths: list[Path] = []
    jobs: list[Job] = []
    for place in places:
        found, of_jobs = _found(place, partial)
        paths += found
        jobs += of_jobs
    real: dict[Path, Path] = {}
    for path in paths:
        if real.setdefault(path.resolve(), path) is not path:
            raise InvalidValueError(f"{path}: given twice; its reports would count twice")
    return _with_partitions(paths), jobs


def _with_partitions(paths: Sequence[Path]) -> list[PlacedFile]:
    texts = [run_of_partitions(path.parts[:-1]) for path in paths]
    values: dict[str, set[str]] = {}
    for name, text in (pair for pairs in texts for pair in pairs):
        known = values.setdefault(name, set())
        if text is not None:
            known.add(text)
    kinds = {name: partition_kind(found) for name, found in values.items()}
    return [
        PlacedFile(path, tuple((name, partition_value(text, kinds[name])) for name, text in pairs))
        for path, pairs in zip(paths, texts, strict=True)
    ]


def _found(text: str, partial: bool) -> tuple[list[Path], list[Job]]:
    path = Path(text)
    if path.is_dir():
        return _in_folder(path, partial)
    if path.exists() or not glob.has_magic(text):
        if not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), text)
        return [path], []
    # Path.glob takes no absolute pattern.
    places = sorted(map(Path, glob.glob(text, recursive=True)))  # noqa: PTH207
    files: list[Path] = []
    jobs: list[Job] = []
    for place in places:
        if place.is_dir():
            more, of_jobs = _in_folder(place, partial)
            files += more
            jobs += of_jobs
        elif place.suffix.lower() in _SUFFIXES:
            files.append(place)
    if not files and not jobs:
        raise InvalidValueError(f"paths: no file of reports fits {text!r}")
    return files, jobs


def _in_folder(folder: Path, partial: bool) -> tuple[list[Path], list[Job]]:
    files: list[Path] = []
    jobs: list[Job] = []
    for place, folders, names in os.walk(folder, onerror=_raised):
        here = Path(place)
        if STATE_FOLDER in folders:
            job = Job.read(here)
            if job is not None:
                _check_job(job, names, partial)
                jobs.append(job)
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for name in sorted(names):
            if Path(name).suffix.lower() in _SUFFIXES and not name.startswith((".", "_")):
                files.append(here / name)
    if not files and not jobs:
        raise InvalidValueError(f"paths: {str(folder)!r} holds no file of reports")
    return files, jobs


def _raised(error: OSError) -> None:
    """Refuse a folder that cannot be looked into: its reports would be missing."""
    raise error


def _check_job(job: Job, names: Sequence[str], partial: bool) -> None:
    if not job.complete:
        if partial:
            return
        raise InvalidValueError(
            f"paths: the job in {str(job.folder)!r} is unfinished: resume goes on with it "
            "(partial takes the parts that are there)"
        )
    there = {name for name in names if name.startswith("part-")}
    wanted = {f"part-{number:05d}.parquet" for number in range(job.parts or 0)}
    if there != wanted and not partial:
        missing, more = sorted(wanted - there), sorted(there - wanted)
        problem = f"has {(more or missing)[0]}, which is not of its job"
        if missing:
            problem = (
                f"lacks {missing[0]}, which its job wrote: bring it back, it cannot be made again "
                "(partial takes those that are there)"
            )
        raise InvalidValueError(f"paths: {str(job.folder)!r} {problem}")
