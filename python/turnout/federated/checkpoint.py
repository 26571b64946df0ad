"""The checkpoint of a training: everything that the rest of the training depends on.

A file is a NumPy archive (NPZ: a ZIP archive, nothing compressed, all dates 1980-01-01), which
``numpy.load`` opens without pickles. It holds, in this order,

====================== ===========================================================================
``metadata.json``      canonical JSON (keys sorted, no spaces, ASCII): ``format``
                       (``"turnout-training"``), ``version`` (1), ``round`` (the next one),
                       ``plan``, ``structure`` of the parameters, ``optimizer``, ``arrays`` (how
                       many its state has), ``ledger`` (as in its own file, or null)
``parameters.npy``     all parameters behind one another, float64: those of float32 are exact
``state_0.npy``, ...   the arrays of the optimizer's state
====================== ===========================================================================

and as the comment of the archive ``turnout-sha256:`` with the SHA-256 of the whole file in
hexadecimal, computed with zeros in place of its digits. The hash detects accidents; a person who
can write the file can also compute it again. The same state gives the same bytes. No generator is
stored: the draws of a seeded study depend only on the seed, the round and the client.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._arrays import read_archive, read_array
from turnout._documents import canonical, check_version, parsed
from turnout._files import atomic_write, read_bytes
from turnout._seal import new_placeholder, seal_file, verify_seal
from turnout._types import Array, Floats
from turnout._values import settle
from turnout.accounting import PrivacyLedger
from turnout.accounting.ledger_entries import parts_of
from turnout.errors import (
    CorruptDataError,
    InvalidValueError,
    PlanMismatchError,
    ProtocolError,
    TurnoutError,
    UnsupportedVersionError,
)
from turnout.federated.trees import Structure

FORMAT = "turnout-training"
VERSION = 1

_METADATA = "metadata.json"
_MOST_ROUNDS = 2**62


@dataclass(frozen=True, eq=False)
class TrainingState:
    """The state of a training: everything that the rest of the training depends on.

    States are equal if all arrays have the same bits and everything else is equal.

    Parameters
    ----------
    plan
        The public parameters of the training, from :meth:`RandomParticipationSGD.to_dict`.
    structure
        The form of the model's parameters.
    parameters
        All parameters in one array: float64, of shape (structure.total,).
    optimizer
        The description of the optimizer, from :meth:`Optimizer.to_dict`.
    optimizer_state
        The state of the optimizer: arrays of integers, floating-point numbers or truth values of at
        most 64 bits each.
    round
        The number of the next round, from 0.
    ledger
        The ledger with what was spent, or None.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or a description holds something that
        JSON would change. JSON keeps text, finite numbers, true, false, None, lists, and
        dictionaries with text keys.

    Examples
    --------
    >>> import numpy as np
    >>> from turnout.federated.trees import flatten
    >>> state = TrainingState(
    ...     plan={}, structure=flatten(np.zeros(2))[1], parameters=np.array([0.5, -1.0]),
    ...     optimizer={"optimizer": "SGD"}, optimizer_state=[], round=3,
    ... )
    >>> state
    TrainingState(round 3, 2 parameters, no ledger)
    """

    plan: dict[str, Any]
    structure: Structure
    parameters: Floats
    optimizer: dict[str, Any]
    optimizer_state: Sequence[Array]
    round: int
    ledger: PrivacyLedger | None = None

    def __post_init__(self) -> None:
        _arguments.instance("structure", self.structure, Structure, "the structure of a tree")
        number = _arguments.integer("round", self.round, least=0, most=_MOST_ROUNDS)
        if not isinstance(self.parameters, np.ndarray) or self.parameters.dtype != np.float64:
            raise _arguments.mistyped(
                "parameters must be a NumPy array of float64", self.parameters
            )
        if self.parameters.shape != (self.structure.total,):
            raise InvalidValueError(
                f"parameters must have shape ({self.structure.total},), got {self.parameters.shape}"
            )
        arrays = _arguments.items("optimizer_state", self.optimizer_state, "a list of arrays")
        for place, array in enumerate(arrays):
            numbers = isinstance(array, np.ndarray) and array.dtype.kind in "biuf"
            if not numbers or array.dtype.itemsize > 8:
                raise _arguments.mistyped(
                    f"optimizer_state[{place}] must be a NumPy array of numbers of at most 64 bits",
                    array,
                )
        settle(self, round=number, optimizer_state=arrays)
        if self.ledger is not None:
            _arguments.instance("ledger", self.ledger, PrivacyLedger, "a PrivacyLedger or None")
        for name in ("plan", "optimizer"):
            _check_json(name, getattr(self, name))

    def __eq__(self, other: object) -> bool:
        """Compare everything, arrays by their bits."""
        return isinstance(other, TrainingState) and self._content() == other._content()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Show how far the training is."""
        ledger = "no ledger" if self.ledger is None else repr(self.ledger)
        return f"TrainingState(round {self.round}, {self.parameters.size} parameters, {ledger})"

    def _arrays(self) -> list[Array]:
        return [self.parameters, *self.optimizer_state]

    def _metadata(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "round": self.round,
            "plan": self.plan,
            "structure": self.structure.to_dict(),
            "optimizer": self.optimizer,
            "arrays": len(self.optimizer_state),
            "ledger": None if self.ledger is None else self.ledger.to_dict(),
        }

    def _content(self) -> tuple[object, ...]:
        arrays = [(array.dtype, array.shape, array.tobytes()) for array in self._arrays()]
        return self._metadata(), arrays


def write_checkpoint(path: str | os.PathLike[str], state: TrainingState) -> None:
    """Write the state of a training to a file, which appears whole or not at all.

    Parameters
    ----------
    path
        The file; an earlier one is replaced. Its name may have any ending.
    state
        The state to write.

    Raises
    ------
    InvalidTypeError
        If ``state`` is not a TrainingState.
    OSError
        If the file cannot be written. An earlier file does not change.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from turnout.federated.trees import flatten
    >>> model = {"weights": np.ones((2, 3), np.float32), "bias": np.zeros(3)}
    >>> state = TrainingState(
    ...     plan={}, structure=flatten(model)[1], parameters=np.arange(9.0),
    ...     optimizer={"optimizer": "SGD"}, optimizer_state=[np.zeros(9)], round=100,
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "training.npz")
    ...     write_checkpoint(file, state)
    ...     again = read_checkpoint(file)
    >>> again == state
    True
    >>> again.structure.from_vector(again.parameters)["bias"]
    array([0., 1., 2.])
    """
    _arguments.instance("state", state, TrainingState, "a TrainingState")
    with atomic_write(path) as temporary:
        _write(temporary, state._metadata(), state._arrays())


def read_checkpoint(path: str | os.PathLike[str]) -> TrainingState:
    """Read the state of a training from a file.

    It does not compare the state with your plan, model and optimizer;
    :meth:`turnout.federated.Server.resume` does.

    Parameters
    ----------
    path
        A file that :func:`write_checkpoint` wrote.

    Returns
    -------
    TrainingState
        A state equal to the one that was saved, in arrays of its own.

    Raises
    ------
    UnsupportedVersionError
        If the file is of a version that this release does not read.
    CorruptDataError
        If the file is not a checkpoint, or was altered or cut. Both messages name the file.
    OSError
        If the file cannot be read.
    """
    data = read_bytes(path)
    try:
        return _read(data)
    except UnsupportedVersionError as error:
        raise UnsupportedVersionError(f"{os.fspath(path)}: {error}") from error
    except TurnoutError as error:
        raise CorruptDataError(
            f"{os.fspath(path)}: not a checkpoint of turnout: {error}"
        ) from error


def writable(checkpoint: str | os.PathLike[str]) -> Path:
    """Check a checkpoint's path before the first round, so that writing does not fail later."""
    try:
        path = Path(checkpoint)
    except TypeError as error:
        raise _arguments.mistyped("checkpoint must be the path of a file", checkpoint) from error
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise _arguments.invalid(
            "checkpoint must be a file in a folder that exists", str(checkpoint)
        )
    return path


def difference(stored: Any, own: Any) -> str:
    """Return a text that lists the entries in which two descriptions differ."""
    if not (isinstance(stored, dict) and isinstance(own, dict)):
        return ""
    parts = [
        f"{name} = {_arguments.shown(stored.get(name))}, this has {_arguments.shown(own.get(name))}"
        for name in sorted(stored.keys() | own.keys())
        if stored.get(name) != own.get(name)
    ]
    return ": " + "; ".join(parts)


def _write(path: Path, metadata: dict[str, Any], arrays: Sequence[Array]) -> None:
    placeholder = new_placeholder()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.comment = placeholder.encode("ascii")
        archive.writestr(_member(_METADATA), canonical(metadata))
        for name, array in zip(_names(len(arrays) - 1), arrays, strict=True):
            buffer = io.BytesIO()
            little = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
            np.lib.format.write_array(buffer, little, version=(1, 0), allow_pickle=False)
            archive.writestr(_member(name), buffer.getbuffer())
    seal_file(path, placeholder)


def _names(arrays: int) -> list[str]:
    return ["parameters.npy", *(f"state_{place}.npy" for place in range(arrays))]


def _member(name: str) -> zipfile.ZipInfo:
    """Return the header of an archive member, the same on every machine at every time."""
    member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    member.create_system = 3
    member.external_attr = 0o644 << 16
    return member


def _read(data: bytes) -> TrainingState:
    verify_seal(io.BytesIO(data))
    try:
        contents = read_archive(data)
        if _METADATA not in contents:
            raise CorruptDataError(f"it holds {_arguments.listed(list(contents))}")
        metadata = parsed(bytes(contents.pop(_METADATA)).decode("ascii"))
        if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
            raise CorruptDataError("its metadata belong to something else")
        check_version("checkpoint", metadata, FORMAT, VERSION)
        expected = _names(len(contents) - 1)
        if list(contents) != expected or metadata.get("arrays") != len(contents) - 1:
            raise CorruptDataError(f"it holds {_arguments.listed(list(contents))}")
        # In arrays of its own: steps write to them, and the file's bytes are let go.
        return _state(metadata, [read_array(contents[name]).copy() for name in expected])
    except TurnoutError:
        raise
    except Exception as error:
        # The seal is genuine and what it seals is not: anything can be wrong with it.
        raise CorruptDataError(_arguments.shown(error)) from error


def _state(metadata: dict[str, Any], arrays: list[Array]) -> TrainingState:
    ledger = metadata.get("ledger")
    state = TrainingState(
        plan=metadata["plan"],
        structure=Structure.from_dict(metadata["structure"]),
        parameters=arrays[0],
        optimizer=metadata["optimizer"],
        optimizer_state=arrays[1:],
        round=metadata["round"],
        ledger=None if ledger is None else PrivacyLedger.from_dict(ledger),
    )
    if metadata.keys() != state._metadata().keys():
        raise CorruptDataError(f"its metadata are {_arguments.shown(metadata)}")
    return state


def _check_json(name: str, value: Any) -> None:
    _arguments.instance(name, value, dict, "a dictionary in terms of JSON")
    try:
        same = json.loads(json.dumps(value, allow_nan=False)) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValueError(f"{name} must be in terms of JSON: {error}") from error
    if not same:
        raise _arguments.invalid(
            f"{name} must be in terms of JSON (lists, and keys that are text)", value
        )


def journal_of(checkpoint: Path) -> Path:
    """Return the file of the ledger beside a checkpoint.

    Examples
    --------
    >>> journal_of(Path("training.npz")).name
    'training.npz.ledger.json'
    """
    return checkpoint.with_name(checkpoint.name + ".ledger.json")


def check_new(places: Sequence[Path]) -> None:
    """Refuse the files of an earlier training, which would be overwritten.

    Raises
    ------
    ProtocolError
        If one of them exists.
    """
    for place in places:
        if place.exists():
            raise ProtocolError(
                f"{place} already exists from an earlier training: call resume() to "
                "continue it, or name another checkpoint"
            )


def check_budget(ledger: PrivacyLedger, own: PrivacyLedger, path: Path | None) -> None:
    """Refuse the ledger of a file whose budget is not that of the training.

    Raises
    ------
    PlanMismatchError
        If the budgets differ.
    """
    for name in ("epsilon", "delta", "adjacency"):
        if getattr(ledger, name) != getattr(own, name):
            raise PlanMismatchError(
                f"{path}: its ledger has {name} = {getattr(ledger, name)!r}, this training "
                f"{getattr(own, name)!r}"
            )


def check_ledger(ledger: PrivacyLedger, own: PrivacyLedger, path: Path | None) -> None:
    """Refuse a ledger that lacks rounds of the current one, which would be forgotten.

    Raises
    ------
    PlanMismatchError
        If it lacks rounds, or its budget is another one.
    """
    check_budget(ledger, own, path)
    stored = dict(parts_of(ledger.entries))
    for mechanism, rounds in parts_of(own.entries):
        if rounds > stored.get(mechanism, 0):
            raise PlanMismatchError(
                f"{path}: its ledger has {stored.get(mechanism, 0)} rounds of {mechanism!r} "
                f"and the one that was given {rounds}, which would be forgotten"
            )
