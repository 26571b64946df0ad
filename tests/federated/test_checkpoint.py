"""Checkpoints give back every bit, or say that they are damaged."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnout._documents import canonical
from turnout._seal import new_placeholder, seal_file
from turnout.accounting import GaussianMechanism, PrivacyLedger
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    UnsupportedVersionError,
)
from turnout.federated import checkpoint
from turnout.federated.checkpoint import TrainingState, read_checkpoint, write_checkpoint
from turnout.federated.optimizers import SGD, CosineDecay
from turnout.federated.trees import flatten

MODEL = {"conv1": [np.ones((2, 3), np.float32), np.zeros(3)], "bias": np.array(1.0)}
NAN = np.frombuffer(np.array([0x7FF8000000000123], np.uint64).tobytes(), np.float64)


def state(**changes: Any) -> TrainingState:
    optimizer = SGD(CosineDecay(0.3, 100), momentum=0.9)
    ledger = PrivacyLedger(2.0, 1e-5)
    ledger.spend(GaussianMechanism(20.0), 3, "training \u03b5")
    parameters = np.random.default_rng(1).normal(size=10)
    parameters[:4] = [np.nextafter(1.0, 2.0), -0.0, 5e-324, np.inf]
    parameters[4] = NAN[0]
    parts: dict[str, Any] = {
        "plan": {
            "clip": 0.1,
            "target": [1.0, 1e-5, 100],
            "seed": 2**63,
            "grid": None,
            "note": "\u00e9\ud83d turnout-sha256:" + "0" * 64,
        },
        "structure": flatten(MODEL)[1],
        "parameters": parameters,
        "optimizer": optimizer.to_dict(),
        "optimizer_state": [
            np.linspace(0.0, 1.0, 10),
            np.arange(4, dtype=np.int32).reshape(2, 2),
            np.zeros((0, 3), np.float16),
            np.array(True),
        ],
        "round": 17,
        "ledger": ledger,
    }
    return TrainingState(**{**parts, **changes})


def saved(folder: Path, given: TrainingState) -> Path:
    path = folder / "training.checkpoint"
    write_checkpoint(path, given)
    return path


@pytest.mark.parametrize(
    "changes", [{}, {"ledger": None}, {"optimizer_state": []}, {"round": 0, "plan": {}}]
)
def test_states_come_back_bit_for_bit(tmp_path: Path, changes: dict[str, Any]) -> None:
    given = state(**changes)
    again = read_checkpoint(saved(tmp_path, given))
    assert again == given
    assert again.parameters.tobytes() == given.parameters.tobytes()
    assert again.structure == given.structure
    assert (again.plan, again.optimizer) == (given.plan, given.optimizer)
    assert (again.round, again.ledger) == (given.round, given.ledger)
    for ours, theirs in zip(again.optimizer_state, given.optimizer_state, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert ours.tobytes() == theirs.tobytes()
        assert ours.flags.writeable
    assert list(tmp_path.iterdir()) == [tmp_path / "training.checkpoint"]


def test_the_same_state_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = saved(tmp_path, state()).read_bytes()
    monkeypatch.setattr("time.time", lambda: 2e9)
    scattered = list(state().optimizer_state)
    scattered[1] = np.asfortranarray(scattered[1].astype(">i4"))
    second = saved(tmp_path, state(optimizer_state=scattered)).read_bytes()
    assert first == second
    assert saved(tmp_path, state(round=18)).read_bytes() != first


def test_numpy_reads_the_arrays(tmp_path: Path) -> None:
    path = saved(tmp_path, state())
    with np.load(path) as archive:
        assert archive["parameters"].tobytes() == state().parameters.tobytes()
        assert archive["state_1"].tolist() == [[0, 1], [2, 3]]
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        metadata = json.loads(archive.read("metadata.json"))
    assert (metadata["format"], metadata["version"], metadata["round"]) == (
        "turnout-training",
        1,
        17,
    )


def test_a_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, state())
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "seal_file", fail)
    with pytest.raises(OSError, match="No space"):
        write_checkpoint(path, state(round=18))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_checkpoint(tmp_path / "none")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    folder = tmp_path_factory.mktemp("checkpoints")
    return folder / "damaged", saved(folder, state(ledger=None)).read_bytes()


def refused(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(CorruptDataError, match="damaged: not a checkpoint of turnout"):
        read_checkpoint(path)


def test_every_altered_byte_is_refused(sample: tuple[Path, bytes]) -> None:
    path, data = sample
    for position in range(len(data)):
        altered = bytearray(data)
        altered[position] ^= 1 << position % 8
        refused(path, bytes(altered))


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_whatever_was_damaged_is_refused(sample: tuple[Path, bytes], data: st.DataObject) -> None:
    path, whole = sample
    place = st.integers(0, len(whole) - 1)
    start, end = sorted((data.draw(place), data.draw(place)))
    piece = data.draw(st.sampled_from([b"", whole[start:end] * 2, b"\0", data.draw(st.binary())]))
    damaged = whole[:start] + piece + whole[end:]
    if damaged != whole:
        refused(path, damaged)


@pytest.mark.parametrize("content", [b"", b"PK", b"\0" * 1000, b"turnout-sha256:" + b"0" * 64])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    refused(tmp_path / "damaged", content)


METADATA = state()._metadata()


@pytest.mark.parametrize("version", [0, 2, "1", None, True, 1.0, 10**30])
def test_unknown_versions_are_refused_by_name(tmp_path: Path, version: Any) -> None:
    path = tmp_path / "damaged"
    metadata = {**METADATA, "version": version, "later": 1}
    checkpoint._write(path, metadata, state()._arrays())
    with pytest.raises(UnsupportedVersionError, match="damaged: the checkpoint has version"):
        read_checkpoint(path)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "turnout-ledger"},
        {"round": -1},
        {"round": 1.5},
        {"round": None},
        {"plan": None},
        {"structure": None},
        {"structure": flatten(np.zeros(9))[1].to_dict()},
        {"structure": {"dtype": "float64", "shape": [10**9, 10**9]}},
        {"optimizer": []},
        {"arrays": 3},
        {"arrays": 10**12},
        {"arrays": None},
        {"ledger": {}},
        {"ledger": {**METADATA["ledger"], "version": 2}},
        {"ledger": {**METADATA["ledger"], "epsilon": 0}},
        {"more": 1},
    ],
)
def test_sealed_metadata_of_something_else_are_refused(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    path = tmp_path / "damaged"
    checkpoint._write(path, {**METADATA, **change}, state()._arrays())
    with pytest.raises(CorruptDataError, match="damaged: "):
        read_checkpoint(path)


@pytest.mark.parametrize("name", list(METADATA))
def test_missing_metadata_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "damaged"
    metadata = {key: value for key, value in METADATA.items() if key != name}
    checkpoint._write(path, metadata, state()._arrays())
    with pytest.raises(CorruptDataError, match="damaged: "):
        read_checkpoint(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY\x01\x00",
        b"\x93NUMPY\x01\x00\x04\x00abc\n",
        b"\x93NUMPY\x02\x00\x04\x00\x00\x00abc\n",
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': "
        b"(1000000000000,)}" + b" " * 51 + b"\n",
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '|O', 'fortran_order': False, 'shape': (0,)}"
        + b" " * 64
        + b"\n",
    ],
)
def test_sealed_arrays_that_are_none_are_refused(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(buffer: Any, *_: object, **__: object) -> None:
        buffer.write(content)

    path = tmp_path / "damaged"
    monkeypatch.setattr(np.lib.format, "write_array", write)
    checkpoint._write(path, METADATA, state()._arrays())
    refused(path, path.read_bytes())


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def write_overlapping(path: Path, members: int, size: int) -> None:
    """Write a sealed checkpoint with arrays of ``size`` bytes, each of which holds all later ones.

    The file has that size and a little more, its arrays ``members`` times as much.
    """
    data, infos = bytes(size), []
    for place in reversed(range(members)):
        content = npy(np.frombuffer(data, np.uint8))
        info = checkpoint._member(f"state_{place}.npy")
        info.CRC, info.file_size, info.compress_size = zlib.crc32(content), *[len(content)] * 2
        data = info.FileHeader() + content
        infos.append((info, len(data)))
    placeholder = new_placeholder()
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = placeholder.encode("ascii")
        metadata = {**METADATA, "arrays": members, "ledger": None}
        archive.writestr(checkpoint._member("metadata.json"), canonical(metadata))
        archive.writestr(checkpoint._member("parameters.npy"), npy(state().parameters))
        assert archive.fp is not None
        archive.fp.write(data)
        archive.start_dir = archive.fp.tell()
        for info, length in reversed(infos):
            info.header_offset = archive.start_dir - length
            archive.filelist.append(info)
    seal_file(path, placeholder)


def test_a_small_file_does_not_take_much_memory(tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    write_overlapping(path, members=100, size=100_000)
    assert path.stat().st_size < 200_000
    tracemalloc.start()
    with pytest.raises(CorruptDataError, match=r"damaged: .* overlaps another"):
        read_checkpoint(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_a_compressed_archive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = checkpoint._member

    def compressed(name: str) -> zipfile.ZipInfo:
        member = plain(name)
        member.compress_type = zipfile.ZIP_DEFLATED
        return member

    monkeypatch.setattr(checkpoint, "_member", compressed)
    refused(tmp_path / "damaged", saved(tmp_path, state()).read_bytes())


def test_states_are_equal_by_bits() -> None:
    assert state() == state()
    several = [
        {"round": 18},
        {"plan": {}},
        {"ledger": None},
        {"optimizer": {}},
        {"parameters": np.zeros(10)},
        {"parameters": np.where(state().parameters == 0.0, 0.0, state().parameters)},
        {"structure": flatten(np.zeros(10))[1]},
        {"optimizer_state": list(state().optimizer_state)[:3]},
    ]
    assert all(state(**changes) != state() for changes in several)
    assert state() != 1
    assert repr(state()).startswith("TrainingState(round 17, 10 parameters, PrivacyLedger(")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"round": -1}, InvalidValueError, "round must be"),
        ({"structure": None}, InvalidTypeError, "structure must be"),
        ({"parameters": [0.0] * 10}, InvalidTypeError, "parameters must be a NumPy array"),
        ({"parameters": np.zeros(10, np.float32)}, InvalidTypeError, "parameters must be"),
        ({"parameters": np.zeros(9)}, InvalidValueError, r"must have shape \(10,\), got \(9,\)"),
        ({"optimizer_state": [1.0]}, InvalidTypeError, r"optimizer_state\[0\] must be"),
        ({"optimizer_state": [np.array([None])]}, InvalidTypeError, r"optimizer_state\[0\]"),
        ({"optimizer_state": [np.zeros(1, complex)]}, InvalidTypeError, r"optimizer_state\[0\]"),
        ({"optimizer_state": None}, InvalidTypeError, "optimizer_state must be"),
        ({"ledger": {}}, InvalidTypeError, "ledger must be"),
        ({"plan": None}, InvalidTypeError, "plan must be"),
        ({"plan": {"a": (1, 2)}}, InvalidValueError, "plan must be in terms of JSON"),
        ({"plan": {1: 2}}, InvalidValueError, "plan must be in terms of JSON"),
        ({"plan": {"a": np.ones(1)}}, InvalidValueError, "plan must be in terms of JSON"),
        ({"plan": {"a": float("nan")}}, InvalidValueError, "plan must be in terms of JSON"),
        ({"optimizer": {"a": object()}}, InvalidValueError, "optimizer must be in terms"),
    ],
)
def test_a_state_that_makes_no_sense_is_refused(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        state(**changes)


def test_what_is_no_state_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidTypeError, match="state must be a TrainingState"):
        write_checkpoint(tmp_path / "none", {"round": 1})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
