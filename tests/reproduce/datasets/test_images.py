"""Labelled images: what is refused, and MNIST itself."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout_reproduce.datasets import Images, read_images, read_mnist

PIXELS = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)


def idx(code: int, shape: tuple[int, ...], content: bytes) -> bytes:
    return bytes([0, 0, code, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + content


def files(folder: Path, images: bytes, labels: bytes) -> tuple[Path, Path]:
    paths = folder / "images", folder / "labels"
    for path, content in zip(paths, (images, labels), strict=True):
        path.write_bytes(content)
    return paths


def test_images_and_labels_are_read_together(tmp_path: Path) -> None:
    paths = files(tmp_path, idx(8, (2, 3, 4), PIXELS.tobytes()), idx(8, (2,), b"\7\1"))
    loaded = read_images(*paths)
    np.testing.assert_array_equal(loaded.images, PIXELS)
    assert loaded.labels.tolist() == [7, 1]
    upright = read_images(*paths, transposed=True)
    np.testing.assert_array_equal(upright.images, PIXELS.transpose(0, 2, 1))
    assert upright.images.flags.c_contiguous


def test_images_show_how_many_they_are_and_name_wrong_indices() -> None:
    images = Images(PIXELS, np.array([7, 1], np.uint8))
    assert repr(images) == "Images(2 of 3 x 4 pixels)"
    assert images.take([1]).labels.tolist() == [1]
    assert len(images.take(np.empty(0, np.int64))) == 0
    with pytest.raises(InvalidValueError, match=r"indices\[1\] must be from 0 to 1, got 2"):
        images.take([0, 2])
    with pytest.raises(InvalidTypeError, match="indices must"):
        images.take("x")


@pytest.mark.parametrize(
    ("images", "labels", "words"),
    [
        (idx(8, (2, 12), PIXELS.tobytes()), idx(8, (2,), b"\7\1"), "images does not hold images"),
        (idx(9, (2, 3, 4), PIXELS.tobytes()), idx(8, (2,), b"\7\1"), "got int8 of shape"),
        (idx(8, (2, 3, 4), PIXELS.tobytes()), idx(8, (2, 1), b"\7\1"), "does not hold labels"),
        (idx(8, (2, 3, 4), PIXELS.tobytes()), idx(8, (3,), b"\7\1\1"), "2 images and .* 3 labels"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(
    tmp_path: Path, images: bytes, labels: bytes, words: str
) -> None:
    with pytest.raises(CorruptDataError, match=words):
        read_images(*files(tmp_path, images, labels))


@pytest.mark.parametrize(
    ("images", "labels", "error", "words"),
    [
        (PIXELS.tolist(), np.zeros(2, np.uint8), InvalidTypeError, "images must be an array"),
        (PIXELS / 255, np.zeros(2, np.uint8), InvalidTypeError, "got float64 of shape"),
        (PIXELS, np.zeros(2, np.int64), InvalidTypeError, "labels must be .* 1 dimension, got"),
        (PIXELS, np.zeros(3, np.uint8), InvalidValueError, "one for each of 2 images, got 3"),
    ],
)
def test_images_check_themselves(
    images: Any, labels: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Images(images, labels)


def test_images_cannot_be_written_to() -> None:
    own = PIXELS.copy()
    images = Images(own, np.array([7, 1], np.uint8))
    with pytest.raises(ValueError, match="read-only"):
        images.images[0, 0, 0] = 1
    own[0, 0, 0] = 1  # whoever gave the array may still write to it
    chosen = images.take([1, 1, 0])
    assert chosen.labels.tolist() == [1, 1, 7]
    np.testing.assert_array_equal(chosen.images[0], PIXELS[1])


def test_mnist_is_mnist(real: Path) -> None:
    train, test = read_mnist(real)
    assert train.images.shape == (60_000, 28, 28)
    assert test.images.shape == (10_000, 28, 28)
    assert train.labels[:5].tolist() == [5, 0, 4, 1, 9]
    # Numbers of each digit, as every page about MNIST lists them.
    assert np.bincount(train.labels).tolist() == [
        *(5923, 6742, 5958, 6131, 5842),
        *(5421, 5918, 6265, 5851, 5949),
    ]
    # The published files, uncompressed.
    header = bytes([0, 0, 8, 3]) + np.array([60_000, 28, 28], ">u4").tobytes()
    assert hashlib.sha256(header + train.images.tobytes()).hexdigest() == (
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
    )


def test_a_folder_without_mnist_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"train-images-idx3-ubyte.gz, .* is in .*tmp|none"):
        read_mnist(tmp_path)
