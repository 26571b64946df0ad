"""Downloads from a mirror on this machine: checked, whole or not at all, and only once."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout import _progress
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    MissingExtraError,
)
from turnout_reproduce.datasets import (
    DownloadError,
    adult,
    download,
    fetch_adult,
    fetch_emnist,
    fetch_mnist,
    images,
)
from turnout_reproduce.datasets import read_adult as load

pytest.importorskip("pooch")

Mirror = Any  # of conftest.py


def idx(code: int, shape: tuple[int, ...], content: bytes) -> bytes:
    return bytes([0, 0, code, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + content


def pair(number: int, first: int) -> tuple[bytes, bytes]:
    """A few images, of which the first pixel tells which, and their labels."""
    pixels = np.zeros((number, 28, 28), np.uint8)
    pixels[:, 0, 1] = np.arange(first, first + number)
    labels = np.arange(number, dtype=np.uint8) % 10
    return (
        gzip.compress(idx(8, pixels.shape, pixels.tobytes())),
        gzip.compress(idx(8, labels.shape, labels.tobytes())),
    )


@pytest.fixture
def mnist(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """A small MNIST, with its own hashes."""
    names = [
        f"{part}-{what}-ubyte.gz"
        for part in ("train", "t10k")
        for what in ("images-idx3", "labels-idx1")
    ]
    mirror.files = dict(zip(names, (*pair(6, 1), *pair(3, 50)), strict=True))
    hashes = tuple(hashlib.sha256(content).hexdigest() for content in mirror.files.values())
    monkeypatch.setattr(images, "_MNIST", hashes)
    return mirror


def test_what_is_downloaded_is_read_and_not_downloaded_again(mnist: Mirror, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "mnist"
    train, test = fetch_mnist(folder, base_url=mnist.url.rstrip("/"), progress=False)
    assert train.images[:, 0, 1].tolist() == [1, 2, 3, 4, 5, 6]
    assert test.images[:, 0, 1].tolist() == [50, 51, 52]
    assert mnist.asked == list(mnist.files)
    assert {path.name for path in folder.iterdir()} == set(mnist.files)
    again = fetch_mnist(folder, base_url=mnist.url, progress=False)
    np.testing.assert_array_equal(again.train.images, train.images)
    assert len(mnist.asked) == 4
    # A file that has changed is fetched anew, the others are not.
    damaged = folder / "t10k-labels-idx1-ubyte.gz"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    fetch_mnist(folder, base_url=mnist.url, progress=False)
    assert mnist.asked[4:] == [damaged.name]


def test_a_wrong_hash_is_refused_and_nothing_is_kept(mnist: Mirror, tmp_path: Path) -> None:
    name = "train-labels-idx1-ubyte.gz"
    mnist.files[name] = mnist.files[name][:-1] + b"x"
    with pytest.raises(CorruptDataError, match=f"{name} could not be downloaded: .* another hash"):
        fetch_mnist(tmp_path, base_url=mnist.url, progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["train-images-idx3-ubyte.gz"]


def test_a_wrong_file_does_not_replace_a_file(mnist: Mirror, tmp_path: Path) -> None:
    name = "train-images-idx3-ubyte.gz"
    (tmp_path / name).write_bytes(b"mine")
    mnist.files[name] = b"theirs"
    with pytest.raises(CorruptDataError):
        fetch_mnist(tmp_path, base_url=mnist.url, progress=False)
    assert (tmp_path / name).read_bytes() == b"mine"


def test_a_download_that_breaks_off_leaves_nothing(mnist: Mirror, tmp_path: Path) -> None:
    mnist.cut.add("train-images-idx3-ubyte.gz")
    with pytest.raises((DownloadError, CorruptDataError), match="train-images-idx3-ubyte"):
        fetch_mnist(tmp_path, base_url=mnist.url, progress=False)
    assert list(tmp_path.iterdir()) == []
    mnist.cut.clear()
    assert len(fetch_mnist(tmp_path, base_url=mnist.url, progress=False).train) == 6


def test_what_no_mirror_has_is_said_with_every_address(mnist: Mirror, tmp_path: Path) -> None:
    del mnist.files["t10k-images-idx3-ubyte.gz"]
    with pytest.raises(DownloadError, match=r"t10k-images.*404") as caught:
        fetch_mnist(tmp_path, base_url=mnist.url, progress=False)
    assert isinstance(caught.value, OSError)
    nobody = "http://127.0.0.1:9/"
    with pytest.raises(DownloadError, match=f"{nobody}t10k.*; {mnist.url}t10k.*404"):
        fetch_mnist(tmp_path, base_url=[nobody, mnist.url], progress=False)


def test_the_second_mirror_is_asked_when_the_first_is_silent(mnist: Mirror, tmp_path: Path) -> None:
    split = fetch_mnist(
        tmp_path,
        base_url=["http://127.0.0.1:9/", mnist.url + "nothing/", mnist.url],
        progress=False,
    )
    assert len(split.train) == 6


@pytest.mark.parametrize(
    ("given", "error"),
    [("ftp://example.org", InvalidValueError), ([], InvalidValueError), (5, InvalidTypeError)],
)
def test_addresses_are_checked(given: Any, error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error, match="base_url must be"):
        fetch_mnist(tmp_path, base_url=given)


def test_the_cache_of_the_user_is_the_default(
    mnist: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform != "linux":
        pytest.skip("XDG_CACHE_HOME moves the cache on Linux only")
    fetch_mnist(base_url=mnist.url, progress=False)
    assert len(list((tmp_path / "turnout" / "mnist").iterdir())) == 4


@pytest.mark.parametrize("rich", [True, False])
def test_a_long_download_shows_how_far_it_is(
    mnist: Mirror,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    rich: bool,
) -> None:
    if rich:
        pytest.importorskip("rich")
    else:
        monkeypatch.setattr(_progress.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(download, "_PATIENCE", -1.0)
    monkeypatch.setattr(_progress, "_written", [-60.0])
    fetch_mnist(tmp_path, base_url=mnist.url)
    shown = capsys.readouterr()
    assert shown.out == ""
    if not rich:
        assert "train-images-idx3-ubyte.gz, bytes: " in shown.err
    fetch_mnist(tmp_path, base_url=mnist.url)
    assert capsys.readouterr().err == ""


def test_without_pooch_the_pip_command_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'turnout\[reproduce\]'"):
        fetch_adult(tmp_path)


def archive(names: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as content:
        for name, value in names.items():
            content.writestr(name, value)
    return buffer.getvalue()


def emnist_names(split: str) -> list[str]:
    return [
        f"gzip/emnist-{split}-{part}-ubyte.gz"
        for part in (
            "train-images-idx3",
            "train-labels-idx1",
            "test-images-idx3",
            "test-labels-idx1",
        )
    ]


def serve(mirror: Mirror, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    mirror.files["gzip.zip"] = content
    digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
    monkeypatch.setattr(images, "_EMNIST", f"md5:{digest}")


def test_emnist_is_unpacked_and_stands_upright(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    members = dict(zip(emnist_names("byclass"), (*pair(6, 1), *pair(3, 50)), strict=True))
    serve(mirror, monkeypatch, archive({**members, "gzip/other.gz": b"other"}))
    train, test = fetch_emnist(tmp_path, base_url=mirror.url, progress=False)
    assert train.images[:, 1, 0].tolist() == [1, 2, 3, 4, 5, 6]
    assert test.images[:, 1, 0].tolist() == [50, 51, 52]
    assert not (tmp_path / "other.gz").exists()
    fetch_emnist(tmp_path, base_url=mirror.url, progress=False)
    assert mirror.asked == ["gzip.zip"]
    with pytest.raises(CorruptDataError, match=r"gzip.zip lacks a file: .*emnist-digits-train"):
        fetch_emnist(tmp_path, split="digits", base_url=mirror.url, progress=False)
    with pytest.raises(InvalidValueError, match="split must be one of 'byclass'"):
        fetch_emnist(tmp_path, split="byletter")


def test_an_archive_that_is_none_is_refused(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    serve(mirror, monkeypatch, b"<html>moved</html>")
    with pytest.raises(CorruptDataError, match=r"gzip.zip is cut off or altered"):
        fetch_emnist(tmp_path, base_url=mirror.url, progress=False)


def test_adult_with_its_published_hashes(mirror: Mirror, real: Path, tmp_path: Path) -> None:
    people = gzip.decompress((real / "adult.data.gz").read_bytes())
    others = gzip.decompress((real / "adult.test.gz").read_bytes())
    # The published file starts with a remark, which the copy at hand lacks.
    mirror.files = {"adult.data": people, "adult.test": b"|1x3 Cross validator\n" + others}
    train, test = fetch_adult(tmp_path, base_url=mirror.url, progress=False)
    assert mirror.asked == ["adult.data", "adult.test"]
    assert {column.size for column in train.values()} == {32_561}
    assert {column.size for column in test.values()} == {16_281}
    for table in (train, test):
        assert list(table) == list(adult._COLUMNS)
        assert set(table["income"]) == {"<=50K", ">50K"}
        assert table["age"].dtype == np.int64
        assert table["age"].min() == 17
    # Known of the set: 7,841 of the people earn more, 1,843 have no occupation given.
    assert int((train["income"] == ">50K").sum()) == 7841
    assert int((train["occupation"] == "?").sum()) == 1843
    domain = tn.Domain.from_values(train["occupation"])
    assert domain.encode(test["occupation"]).size == 16_281
    copied = load(real / "adult.test.gz")
    for name, column in test.items():
        np.testing.assert_array_equal(copied[name], column)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "has no rows"),
        (b"\n\n", "has no rows"),
        (b"1, 2\n", "line 1 has 2 fields, expected 15"),
        (b"old, " + b"x, " * 13 + b"y\n", "the column age must hold whole numbers"),
        (b"9" * 30 + b", x, 1, x, 1, x, x, x, x, x, 1, 1, 1, x, y\n", "the column age must hold"),
        (b"\xff\xfe", "cut off or altered"),
        (gzip.compress(b"1, 2\n", mtime=0)[:-3], "cut off or altered"),
    ],
)
def test_what_is_not_adult_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "adult.data"
    path.write_bytes(content)
    with pytest.raises(CorruptDataError, match=words):
        load(path)
