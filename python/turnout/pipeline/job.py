"""The state of a job, which its folder contains beside the parts.

A job that randomizes answers to a folder keeps ``_turnout/job.json`` there: the plan, a description
of the source, and, until the job is complete, the secret of its noise. With this state a job that
was killed can resume. Existing parts are kept, and missing ones are drawn from the same secret, so
nobody is ever randomized a second time independently. When all parts exist, the secret is erased,
and with it every digest of the content of the source.

While a job is unfinished, its state can undo its noise. Only the owner can read the file, and the
folder must be as safe as the answers themselves until the job is complete. The same applies to
every copy made until then, such as a backup of the folder or a snapshot of the disk.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from turnout import _arguments
from turnout._documents import check_version, parsed
from turnout._files import atomic_write, presence, read_bytes
from turnout._secrets import HiddenBytes
from turnout.collecting.left_out import LeftOut
from turnout.collecting.plan import Plan
from turnout.errors import (
    CorruptDataError,
    InvalidValueError,
    PlanMismatchError,
    UnsupportedVersionError,
)
from turnout.pipeline.encoding import Totals
from turnout.pipeline.randomizing import JobNoise
from turnout.samplers.tables.plan import TablePlan

#: The folder of a job's state, in that of its reports.
STATE_FOLDER: Final = "_turnout"


_LOGGER = logging.getLogger(__name__)

_STATE: Final = "job.json"
_FORMAT: Final = "turnout-job"
#: Another one also where the same key would give other reports: parts are made again from it.
_VERSION: Final = 2

#: Digits of a source's fingerprint that say nothing of what is in it.
_PLACES: Final = 32


@dataclass(frozen=True)
class Job:
    """The state of a job.

    Attributes
    ----------
    folder
        Where the reports go.
    name
        Random: nobody else's parts carry it.
    plan
        The oracle and the participation, or how records are drawn.
    answers
        What the answers are and how they are read: :meth:`turnout.pipeline.Answers.describe`.
    noise
        The secret; None when the job is complete.
    content
        A digest of the answers under the secret, where their source can be read again; None
        otherwise, and when the job is complete.
    parts
        How many parts there are; None before the job is complete.
    totals
        What it did; None before it is complete.
    file_rows
        How many rows each file of answers had, by its path as it was given; none of other answers,
        and before the job is complete.
    """

    folder: Path
    name: str
    plan: Plan | TablePlan
    # Not shown: the fingerprint depends on the answers.
    answers: Mapping[str, Any] = field(repr=False)
    noise: JobNoise | None = field(repr=False)
    content: str | None = field(default=None, repr=False)
    parts: int | None = None
    totals: Totals | None = None
    file_rows: Mapping[str, int] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether all parts exist."""
        return self.parts is not None

    @property
    def _begun(self) -> bool:
        """Return whether a part exists, or existed and may have been seen."""
        return begun_path(self.folder).exists() or any(self.folder.glob("part-*"))

    def _begin(self) -> None:
        """Write the state of a new job to its folder, which must not contain one.

        Raises
        ------
        InvalidValueError
            If the folder has a job, or holds files that are not its own.
        OSError
            If the folder cannot be written to.
        """
        folder = self.folder
        others = sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []
        if others:
            raise InvalidValueError(
                f"output: {str(folder)!r} is not empty ({_arguments.listed(others)}): "
                "name a new folder, so that it contains only one job"
            )
        try:
            (folder / STATE_FOLDER).mkdir(parents=True)
        except FileExistsError as error:
            raise InvalidValueError(
                f"output: another job has just begun in {str(folder)!r}"
            ) from error
        try:
            self._write()
        except BaseException:
            # Nothing has begun: the folder stays free.
            with contextlib.suppress(OSError):
                _erase(folder / STATE_FOLDER)
            raise

    @classmethod
    def read(cls, folder: Path) -> Job | None:
        """Read the state of the job in a folder; return None if there is none.

        Raises
        ------
        CorruptDataError
            If the state was altered, or is not a state.
        UnsupportedVersionError
            If it is of a version that this release does not read.
        """
        path = folder / STATE_FOLDER / _STATE
        try:
            text = read_bytes(path)
        except FileNotFoundError:
            return None
        try:
            return _parsed(folder, parsed(text))
        except (UnsupportedVersionError, CorruptDataError) as error:
            raise type(error)(f"{path}: {error}") from error
        except ValueError as error:
            raise CorruptDataError(f"{path}: not the state of a job: {error}") from error

    def _check_same(self, plan: Plan | TablePlan, answers: Mapping[str, Any]) -> None:
        """Refuse to continue with another plan or with other answers.

        Raises
        ------
        PlanMismatchError
            If the plan differs.
        InvalidValueError
            If the source or the way it is read differs.
        """
        where = f"the job in {str(self.folder)!r}"
        if plan != self.plan:
            raise PlanMismatchError(
                f"{where} was begun with {_shown(self.plan)}, got {_shown(plan)}: a job "
                "must continue as it began"
            )
        known, given = json.loads(json.dumps([dict(self.answers), dict(answers)]))
        if self.complete:
            given = _without_data(given)
        # With a fingerprint the path may be written in another way.
        moved = given.get("fingerprint") is not None
        for name in {**known, **given}:
            if name == "source" and moved:
                continue
            if known.get(name) == given.get(name):
                continue
            if name == "fingerprint":
                # Not shown: it depends on the answers, and what is shown is kept in logs.
                raise InvalidValueError(
                    f"{where} was begun with other files, or they were changed since: a job "
                    "must continue as it began, with the same answers"
                )
            raise InvalidValueError(
                f"{where} was begun with {name} = {_arguments.shown(known.get(name))}, "
                f"got {_arguments.shown(given.get(name))}: a job must continue as it "
                "began, with the same answers"
            )

    def _finished(self, parts: int, totals: Totals, file_rows: Mapping[str, int]) -> Job:
        """Record that all parts exist, erase the secret and data digests, and clean up."""
        self._tidy()
        answers = _without_data(self.answers)
        done = replace(
            self,
            answers=answers,
            noise=None,
            content=None,
            parts=parts,
            totals=totals,
            file_rows=file_rows,
        )
        done._write()
        # Nothing in the state is secret any more: whoever may read the parts may read it.
        for part in sorted(self.folder.glob("part-*.parquet"))[:1]:
            path = self.folder / STATE_FOLDER / _STATE
            path.chmod(stat.S_IMODE(part.stat().st_mode))
        begun_path(self.folder).unlink(missing_ok=True)
        return done

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        """Run the job; an exception of any kind withdraws it if no part has ever appeared.

        While somebody else works on it, it stays: the last one withdraws it.

        Raises
        ------
        InvalidValueError
            If another run has just withdrawn the job.
        """
        with contextlib.ExitStack() as stack:
            try:
                last = stack.enter_context(presence(self.folder / STATE_FOLDER))
                there = Job.read(self.folder)
            except FileNotFoundError:
                there = None
            if there is None or there.name != self.name:
                raise InvalidValueError(
                    f"the job in {str(self.folder)!r} cannot go on: another run withdrew it "
                    "before its first part was written; start again"
                )
            try:
                yield
            except BaseException:
                if last():
                    self._withdraw_quietly()
                raise

    def _withdraw_quietly(self) -> None:
        try:
            if self._withdraw():
                _LOGGER.info("job %s: ended before its first part, and withdrawn", self.name)
        except OSError as error:
            _LOGGER.warning("job %s: its secret could not be erased: %s", self.name, error)

    def _withdraw(self) -> bool:
        """Undo :meth:`_begin` of a job without any part so far, and erase the secret.

        Returns
        -------
        bool
            Whether that was done. A job that has a part, or had one that was taken away, stays.
        """
        state = self.folder / STATE_FOLDER
        if self._begun:
            return False
        # No part appears without the state's folder: what is not noted by now never will be.
        aside = self.folder / f".{STATE_FOLDER}.{secrets.token_hex(8)}"
        state.rename(aside)
        if (aside / begun_path(self.folder).name).exists():
            aside.rename(state)
            return False
        self._tidy()
        _erase(aside)
        return True

    def _tidy(self) -> None:
        """Remove the remains of a process that was killed while it wrote a part.

        Nobody can tell these from files that another run of the same job is writing at this moment.
        Such files are of no use any more either: :meth:`PartTask.write` then takes the existing
        part.
        """
        for path in self.folder.glob(".part-*.tmp"):
            # Windows removes no file that is open.
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def _write(self) -> None:
        path = self.folder / STATE_FOLDER / _STATE
        described = {
            "format": _FORMAT,
            "version": _VERSION,
            "name": self.name,
            "plan": self.plan.to_dict(),
            "answers": dict(self.answers),
            "content": self.content,
            "noise": None if self.noise is None else _described(self.noise),
            "parts": self.parts,
            "totals": None if self.totals is None else self.totals.to_dict(),
            "file_rows": dict(self.file_rows),
        }
        text = json.dumps(described, indent=1).encode()
        # The state with a secret is overwritten after the new state has taken its place. A process
        # that is killed in between leaves a complete job, whose secret is in no file. Windows does
        # not replace an open file, and keeps the bytes where they were.
        erased = self.noise is None and os.name != "nt"
        with contextlib.ExitStack() as stack:
            before = stack.enter_context(path.open("r+b")) if erased else None
            with atomic_write(path, private=True) as temporary:
                temporary.write_bytes(text)
            if before is not None:
                _overwrite(before)


def _shown(plan: Plan | TablePlan) -> str:
    if isinstance(plan, TablePlan):
        return str(plan)
    return f"{plan.oracle!r} and {plan.participation!r}"


def _without_data(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Drop data digests: with all answers but one, an attacker could test guesses for it."""
    mark = answers.get("fingerprint")
    return {**answers, "fingerprint": mark[:_PLACES] if isinstance(mark, str) else None}


def _described(noise: JobNoise) -> dict[str, Any]:
    return {"seed": noise.seed} if noise.key is None else {"key": noise.key.hex()}


def _erase(folder: Path) -> None:
    """Remove the folder of a state, after overwriting the secret in it."""
    path = folder / _STATE
    with contextlib.suppress(FileNotFoundError):
        with path.open("r+b") as file:
            _overwrite(file)
        path.unlink()
    folder.rmdir()


def _overwrite(file: BinaryIO) -> None:
    """Overwrite the secret in a state with zeros, as far as this disk permits."""
    with contextlib.suppress(OSError):
        text = file.read()
        try:
            described = parsed(text)
            key = described["noise"]["key"].encode()
        except (ValueError, TypeError, KeyError):
            return
        file.seek(text.index(key))
        file.write(b"0" * len(key))
        file.flush()
        os.fsync(file.fileno())


def _parsed(folder: Path, described: Any) -> Job:
    check_version("job", described, "turnout-job", _VERSION)
    match described:
        case {
            "format": "turnout-job",
            "version": int(),
            "name": str(name),
            "plan": plan,
            "answers": dict(answers),
            "content": str() | None as content,
            "noise": noise,
            "parts": int() | None as parts,
            "totals": dict() | None as totals,
            "file_rows": dict(file_rows),
            **rest,
        } if (
            not rest
            and (noise is None) == (parts is not None) == (totals is not None)
            and (parts is None or (type(parts) is int and parts >= 0))
        ):
            return Job(
                folder,
                name,
                (TablePlan if TablePlan.described(plan) else Plan).from_dict(plan),
                answers,
                _noise(noise),
                content,
                parts,
                None if totals is None else _totals(totals),
                _file_rows(file_rows),
            )
    raise CorruptDataError("not the state of a job")


def _noise(described: Any) -> JobNoise | None:
    match described:
        case None:
            return None
        case {"key": str(text), **rest} if not rest:
            key = bytes.fromhex(text)
            # A key of zeros alone was erased.
            if len(key) == 32 and any(key):
                return JobNoise(HiddenBytes(key), None)
        case {"seed": int(seed), **rest} if not rest and 0 <= seed < 2**64:
            return JobNoise(None, seed)
    raise CorruptDataError("the secret of the noise is damaged: the job cannot continue")


def _file_rows(described: dict[Any, Any]) -> dict[str, int]:
    if all(type(rows) is int and rows >= 0 for rows in described.values()):
        return described
    raise CorruptDataError("not the numbers of rows of files")


def _totals(described: dict[Any, Any]) -> Totals:
    match described:
        case {"nodes": nodes, "reports": reports, "left_out": left_out, **rest} if not rest:
            if all(type(count) is int and count >= 0 for count in (nodes, reports)):
                return Totals(nodes, reports, LeftOut.from_dict(left_out))
    raise CorruptDataError(f"not the totals of a job: {_arguments.shown(described)}")


def begun_path(folder: Path) -> Path:
    """Return the path of the file which records that a part may have been seen."""
    return folder / STATE_FOLDER / "begun"
