"""Read and write the files of a task for its leader, helper, clients and collector."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

from turnout import _core
from turnout._documents import check_version, parsed
from turnout._files import atomic_write, read_bytes
from turnout._secrets import HiddenBytes, read_secret_file, write_secret_file
from turnout.distributed import VerifiedAggregation, VerifiedSum
from turnout.distributed.mechanisms import rebuilt
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.serve.tasks.reading import Members, bytes_of, matching, text_of, whole
from turnout.serve.tasks.task import Noise, Task
from turnout.serve.tasks.vdaf import Vdaf

#: What a task can ask.
Question: TypeAlias = VerifiedAggregation | VerifiedSum

_QUESTIONS: Final[Mapping[str, type[Question]]] = {
    kind.name: kind for kind in (VerifiedAggregation, VerifiedSum)
}

FORMAT: Final = "turnout-task"
VERSION: Final = 1

_HASH: Final = re.compile("[0-9a-f]{64}")
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]{16,512}=*")
_VERIFY_KEY_BYTES: Final = 32

Self = TypeVar("Self", bound="TaskFile")


class TaskFile:
    """A file of a task for one role; each role has a subclass."""

    role: ClassVar[str]
    #: Whether there is anything in it that nobody else may read.
    secret: ClassVar[bool] = True
    task: Task

    def to_dict(self) -> dict[str, Any]:
        """Return what the role is told besides the task, as JSON values."""
        raise NotImplementedError

    @classmethod
    def from_members(cls: type[Self], task: Task, given: Members) -> Self:
        """Read what :meth:`to_dict` returned."""
        raise NotImplementedError

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a new file; one with secrets has mode 0600.

        Raises
        ------
        OSError
            If it cannot be written, or already exists.
        """
        head = {"format": FORMAT, "version": VERSION, "role": self.role}
        text = json.dumps({**head, "task": self.task.to_dict(), **self.to_dict()}, indent=2) + "\n"
        if self.secret:
            write_secret_file(path, text)
            return
        with atomic_write(path, replace=False) as temporary:
            temporary.write_text(text, "ascii")

    @classmethod
    def read(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Read a file of this role.

        Raises
        ------
        CorruptDataError
            If it is not such a file.
        InvalidValueError
            If it has secrets and others than its owner can read it.
        OSError
            If it cannot be read.
        """
        needed = f"expected that of the {cls.role}"
        return cls._of(path, _of_role(path, {cls.role: cls}, needed))

    @classmethod
    def _of(cls: type[Self], path: str | os.PathLike[str], found: dict[str, Any]) -> Self:
        try:
            given = Members(found, "task file")
            for name in ("format", "version", "role"):
                given.take(name, lambda value: value)
            result = cls.from_members(given.take("task", Task.from_dict), given)
            given.end()
        except CorruptDataError as error:
            raise CorruptDataError(f"{os.fspath(path)}: {error}") from None
        return result


@dataclass(frozen=True, kw_only=True)
class AggregatorFile(TaskFile):
    """What the files of both aggregators have in common.

    Attributes
    ----------
    task
        The task.
    noise
        The noise that this aggregator adds; None if it adds none.
    key
        The key that it decrypts shares of clients with.
    collector_config
        The HPKE configuration of the collector.
    verify_key
        The key that both verify with, and that no client knows.
    """

    task: Task
    noise: Noise | None
    key: _core.HpkeKey = field(repr=False)
    collector_config: bytes = field(repr=False)
    verify_key: bytes = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return what the role is told besides the task, as JSON values."""
        return {
            "noise": None if self.noise is None else self.noise.to_dict(),
            "hpke_key": _key_to_dict(self.key),
            "collector_hpke_config": text_of(self.collector_config),
            "verify_key": text_of(self.verify_key),
        }

    @staticmethod
    def _shared(task: Task, given: Members) -> dict[str, Any]:
        noise = given.take("noise", lambda value: None if value is None else Noise.from_dict(value))
        if noise is not None:
            try:
                noise.check(task)
            except InvalidValueError as error:
                raise CorruptDataError(f"noise: {error}") from None
        return {
            "task": task,
            "noise": noise,
            "key": given.take("hpke_key", _key_from_dict),
            "collector_config": given.take("collector_hpke_config", bytes_of),
            "verify_key": HiddenBytes(
                given.take("verify_key", lambda text: bytes_of(text, _VERIFY_KEY_BYTES))
            ),
        }


@dataclass(frozen=True, kw_only=True)
class LeaderFile(AggregatorFile):
    """The file for the leader.

    Attributes
    ----------
    helper_token
        The token that it shows to the helper.
    collector_token_hash
        SHA-256 of the token that the collector shows, in hexadecimal.
    batch_reports, batch_seconds
        A batch waits for this many reports. If it has the least number that a batch may have, it
        waits for this many seconds only; None if it waits as long as it takes.
    """

    role: ClassVar[str] = "leader"

    helper_token: str = field(repr=False)
    collector_token_hash: str
    batch_reports: int
    batch_seconds: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return what the role is told besides the task, as JSON values."""
        return {
            **super().to_dict(),
            "helper_token": self.helper_token,
            "collector_token_hash": self.collector_token_hash,
            "batch_reports": self.batch_reports,
            "batch_seconds": self.batch_seconds,
        }

    @classmethod
    def from_members(cls, task: Task, given: Members) -> LeaderFile:
        """Read what :meth:`to_dict` returned."""
        return cls(
            **cls._shared(task, given),
            helper_token=given.take("helper_token", matching(_TOKEN)),
            collector_token_hash=given.take("collector_token_hash", matching(_HASH)),
            batch_reports=given.take("batch_reports", whole(1, 2**31)),
            batch_seconds=given.take(
                "batch_seconds", lambda value: None if value is None else whole(1, 2**31)(value)
            ),
        )


@dataclass(frozen=True, kw_only=True)
class HelperFile(AggregatorFile):
    """The file for the helper.

    Attributes
    ----------
    leader_token_hash
        SHA-256 of the token that the leader shows, in hexadecimal.
    """

    role: ClassVar[str] = "helper"

    leader_token_hash: str

    def to_dict(self) -> dict[str, Any]:
        """Return what the role is told besides the task, as JSON values."""
        return {**super().to_dict(), "leader_token_hash": self.leader_token_hash}

    @classmethod
    def from_members(cls, task: Task, given: Members) -> HelperFile:
        """Read what :meth:`to_dict` returned."""
        return cls(
            **cls._shared(task, given),
            leader_token_hash=given.take("leader_token_hash", matching(_HASH)),
        )


@dataclass(frozen=True, kw_only=True)
class ClientFile(TaskFile):
    """The file for clients; nothing in it is secret.

    Attributes
    ----------
    task
        The task.
    question
        The question, and what protects the answers.
    helper_config
        The HPKE configuration of the helper, for times when it is away; None if the helper makes
        its own.
    """

    role: ClassVar[str] = "client"
    secret: ClassVar[bool] = False

    task: Task
    question: Question
    helper_config: bytes | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what the role is told besides the task, as JSON values."""
        config = self.helper_config
        return {
            "question": self.question.to_dict(),
            "helper_hpke_config": None if config is None else text_of(config),
        }

    @classmethod
    def from_members(cls, task: Task, given: Members) -> ClientFile:
        """Read what :meth:`to_dict` returned."""
        return cls(
            task=task,
            question=_question(task, given),
            helper_config=given.take("helper_hpke_config", _config_of),
        )


@dataclass(frozen=True, kw_only=True)
class CollectorFile(TaskFile):
    """The file for the collector.

    Attributes
    ----------
    task
        The task.
    question
        The question, and what protects the answers.
    key
        The key that it decrypts aggregate shares with.
    token
        The token that it shows to the leader.
    """

    role: ClassVar[str] = "collector"

    task: Task
    question: Question
    key: _core.HpkeKey = field(repr=False)
    token: str = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return what the role is told besides the task, as JSON values."""
        return {
            "question": self.question.to_dict(),
            "hpke_key": _key_to_dict(self.key),
            "token": self.token,
        }

    @classmethod
    def from_members(cls, task: Task, given: Members) -> CollectorFile:
        """Read what :meth:`to_dict` returned."""
        return cls(
            task=task,
            question=_question(task, given),
            key=given.take("hpke_key", _key_from_dict),
            token=given.take("token", matching(_TOKEN)),
        )


def read_aggregator(path: str | os.PathLike[str]) -> LeaderFile | HelperFile:
    """Read the file of a leader or a helper.

    Raises
    ------
    CorruptDataError
        If it is not such a file.
    InvalidValueError
        If others than its owner can read it.
    OSError
        If it cannot be read.
    """
    kinds: dict[str, type[LeaderFile] | type[HelperFile]]
    kinds = {"leader": LeaderFile, "helper": HelperFile}
    found = _of_role(path, kinds, "a server takes leader.json or helper.json")
    return kinds[found["role"]]._of(path, found)


def _of_role(
    path: str | os.PathLike[str], kinds: Mapping[str, type[TaskFile]], needed: str
) -> dict[str, Any]:
    """Read a file of one of these roles; check the role first, then who can read the file."""
    found = _parsed(path, read_bytes(path))
    role = found["role"]
    if role not in kinds:
        raise CorruptDataError(f"{os.fspath(path)}: is the file of the {role}; {needed}")
    return _parsed(path, read_secret_file(path)) if kinds[role].secret else found


def _parsed(path: str | os.PathLike[str], data: bytes) -> dict[str, Any]:
    try:
        found = parsed(data)
        check_version("task file", found, FORMAT, VERSION)
        if isinstance(found, dict) and found.get("format") == FORMAT and "version" in found:
            role = found.get("role")
            if isinstance(role, str) and role in ("leader", "helper", "client", "collector"):
                return found
    except CorruptDataError as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from None
    except ValueError as error:
        raise CorruptDataError(f"{os.fspath(path)}: is not a task file: {error}") from None
    raise CorruptDataError(f"{os.fspath(path)}: is not a task file: make one with turnout task new")


def _key_to_dict(key: _core.HpkeKey) -> dict[str, Any]:
    return {"config": text_of(key.config), "private_key": text_of(key.private_key())}


def _key_from_dict(description: Any) -> _core.HpkeKey:
    given = Members(description, "hpke_key")
    config = given.take("config", bytes_of)
    private_key = given.take("private_key", bytes_of)
    given.end()
    try:
        return _core.HpkeKey(config, private_key)
    except InvalidValueError as error:
        raise CorruptDataError(f"hpke_key: {error}") from None


def _config_of(text: Any) -> bytes | None:
    """Read a configuration that a client can encrypt to, or nothing."""
    if text is None:
        return None
    config = bytes_of(text)
    try:
        return _core.choose_hpke_config(_core.write_hpke_configs([config]))
    except (CorruptDataError, InvalidValueError) as error:
        raise CorruptDataError(f"helper_hpke_config: {error}") from None


def _question(task: Task, given: Members) -> Question:
    """Read the question, which must be what the reports of the task measure."""
    found = given.take("question", lambda value: rebuilt(value, _QUESTIONS))
    if found.aggregators != 2:
        raise CorruptDataError("question must be of two aggregators")
    try:
        vdaf = Vdaf.of(found._prio3)
    except InvalidValueError as error:
        raise CorruptDataError(f"question: {error}") from error
    if task.vdaf != vdaf:
        raise CorruptDataError(
            "question is of another task: the vdaf of the task measures something else"
        )
    return found
