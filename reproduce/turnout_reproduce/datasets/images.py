"""Labelled images, MNIST and EMNIST, and the idx format in which they are published."""

from __future__ import annotations

import dataclasses
import gzip
import math
import os
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._files import open_regular
from turnout._types import Array, Bytes
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout_reproduce.datasets import download

#: What the files of MNIST hash to.
_MNIST = (
    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
)
_MNIST_PLACES = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)

_EMNIST = "md5:58c8d27c78d21e728a6bc7b3cc06412e"
_EMNIST_PLACES = ("https://biometrics.nist.gov/cs_links/EMNIST/",)

#: How the images of EMNIST are split into classes.
_EMNIST_SPLITS = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")

#: The third byte of a file, and how an entry is stored.
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}

#: The most dimensions of an array of NumPy 1.
_MOST_DIMENSIONS = 32

_GZIP = b"\x1f\x8b"

#: Deflate makes nothing more than this many times smaller.
_STRONGEST_COMPRESSION = 1040

_BLOCK = 1 << 20


@dataclasses.dataclass(frozen=True, eq=False)
class Images:
    """Grey images and their labels; neither can be written to.

    Parameters
    ----------
    images
        Shape (number, height, width), dtype uint8: 0 is the background, 255 the ink.
    labels
        Shape (number,), dtype uint8.

    Raises
    ------
    InvalidTypeError
        If one of them is no array of uint8 with these dimensions.
    InvalidValueError
        If there are not as many labels as images.

    Examples
    --------
    >>> import numpy as np
    >>> images = Images(np.zeros((3, 28, 28), np.uint8), np.array([5, 0, 4], np.uint8))
    >>> len(images), images.take([2, 0]).labels
    (3, array([4, 5], dtype=uint8))
    """

    images: Bytes
    labels: Bytes

    def __post_init__(self) -> None:
        for name, dimensions in (("images", 3), ("labels", 1)):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or not _is_grey(array, dimensions):
                raise InvalidTypeError(
                    f"{name} must be an array of uint8 with {_dimensions(dimensions)}, got "
                    f"{_described(array)}"
                )
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)
        if len(self.images) != len(self.labels):
            raise InvalidValueError(
                f"labels must be one for each of {len(self.images)} images, got {len(self.labels)}"
            )

    def __repr__(self) -> str:
        """Show how many there are, not their pixels."""
        number, height, width = self.images.shape
        return f"Images({number} of {height} x {width} pixels)"

    def __len__(self) -> int:
        """How many images there are."""
        return len(self.labels)

    def take(self, indices: npt.ArrayLike) -> Images:
        """Give some of the images, in the order of ``indices``."""
        expected = f"whole numbers from 0 to {len(self) - 1}"
        chosen = _arguments.vector("indices", indices, expected, "whole numbers", "iu")
        wrong = (chosen < 0) | (chosen >= len(self))
        _arguments.refuse_entries("indices", chosen, wrong, f"from 0 to {len(self) - 1}")
        return Images(self.images[chosen], self.labels[chosen])


class ImageSplit(NamedTuple):
    """Images to train with and images to test with."""

    train: Images
    test: Images


def _is_grey(array: Array, dimensions: int) -> bool:
    return bool(array.dtype == np.uint8) and array.ndim == dimensions


def _dimensions(count: int) -> str:
    return f"{count} dimension{'s' if count > 1 else ''}"


def _described(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return _arguments.shown(value)


def read_images(
    images: str | os.PathLike[str],
    labels: str | os.PathLike[str],
    *,
    transposed: bool = False,
) -> Images:
    """Read images and their labels from two idx files, compressed by gzip or plain.

    Parameters
    ----------
    images
        The file of the images, such as ``train-images-idx3-ubyte.gz``.
    labels
        The file of the labels, such as ``train-labels-idx1-ubyte.gz``.
    transposed
        Whether the file holds columns where rows are meant, as those of EMNIST do: the images that
        are returned stand upright.

    Returns
    -------
    Images
        All of them.

    Raises
    ------
    CorruptDataError
        If a file is no idx file of images, or of labels, of uint8; if it is cut off or too long; or
        if there are not as many labels as images.
    OSError
        If a file cannot be opened.

    Examples
    --------
    EMNIST, from where it was unpacked::

        train = read_images(
            "gzip/emnist-byclass-train-images-idx3-ubyte.gz",
            "gzip/emnist-byclass-train-labels-idx1-ubyte.gz",
            transposed=True,
        )
    """
    arrays: list[Any] = []
    for path, dimensions, what in ((images, 3, "images"), (labels, 1, "labels")):
        array = read_idx(path)
        if not _is_grey(array, dimensions):
            raise CorruptDataError(
                f"{os.fspath(path)} does not hold {what}: expected {_dimensions(dimensions)} of "
                f"uint8, got {_described(array)}"
            )
        arrays.append(array)
    if len(arrays[0]) != len(arrays[1]):
        raise CorruptDataError(
            f"{os.fspath(images)} holds {len(arrays[0])} images and {os.fspath(labels)} "
            f"{len(arrays[1])} labels: they do not belong together"
        )
    if transposed:
        arrays[0] = np.ascontiguousarray(arrays[0].transpose(0, 2, 1))
    return Images(*arrays)


def read_mnist(folder: str | os.PathLike[str]) -> ImageSplit:
    """Read MNIST from the four files of its publisher in a folder.

    Parameters
    ----------
    folder
        Where ``train-images-idx3-ubyte.gz`` and the three others are; their names may start with
        ``mnist-``, and they may be plain, without ``.gz``.

    Returns
    -------
    ImageSplit
        Images to train with and images to test with.

    Raises
    ------
    FileNotFoundError
        If one of the files is not there; the message names it.
    CorruptDataError
        If one is damaged, or the two of a part do not belong together.
    """
    return _split(_found(Path(folder), name) for name in _files("train", "t10k"))


def _files(*parts: str) -> list[str]:
    """Name the images and the labels of each part."""
    return [f"{part}-{what}-ubyte" for part in parts for what in ("images-idx3", "labels-idx1")]


def _split(paths: Iterable[Path], *, transposed: bool = False) -> ImageSplit:
    images, labels, others, their_labels = paths
    return ImageSplit(
        read_images(images, labels, transposed=transposed),
        read_images(others, their_labels, transposed=transposed),
    )


def _found(folder: Path, name: str) -> Path:
    names = [prefix + name + suffix for prefix in ("", "mnist-") for suffix in (".gz", "")]
    for candidate in names:
        if (folder / candidate).is_file():
            return folder / candidate
    raise FileNotFoundError(f"none of {', '.join(names)} is in {folder}")


def fetch_mnist(
    folder: str | os.PathLike[str] | None = None,
    *,
    base_url: str | Sequence[str] | None = None,
    progress: bool = True,
) -> ImageSplit:
    """Download MNIST, unless it already exists, and read it.

    60,000 images of handwritten digits to train with and 10,000 to test with, 28 by 28 pixels,
    labels 0 to 9. About 12 MB. Files appear whole or not at all, and only if their SHA-256 is the
    published one; a file that is there and right is not downloaded again.

    Parameters
    ----------
    folder
        Where the files are kept; the user's cache unless given.
    base_url
        A mirror, or several that are tried one after the other, instead of the public ones.
    progress
        Whether a progress bar is shown on standard error.

    Returns
    -------
    ImageSplit
        Images to train with and images to test with.

    Raises
    ------
    DownloadError
        If no mirror gives a file.
    CorruptDataError
        If what a mirror gives has another hash than published; nothing of it is kept.
    MissingExtraError
        If pooch is not installed: extra ``datasets``.

    References
    ----------
    LeCun, Cortes, Burges: The MNIST database of handwritten digits. Hashes as in the TensorFlow
    and PyTorch mirrors.

    Examples
    --------
    >>> train, test = fetch_mnist()  # doctest: +SKIP
    >>> train.images.shape  # doctest: +SKIP
    (60000, 28, 28)
    """
    places = download.places(base_url, _MNIST_PLACES)
    target = download.folder_of(folder, "mnist")
    return _split(
        download.fetch(f"{name}.gz", f"sha256:{digest}", places, target, progress)
        for name, digest in zip(_files("train", "t10k"), _MNIST, strict=True)
    )


def fetch_emnist(
    folder: str | os.PathLike[str] | None = None,
    *,
    split: str = "byclass",
    base_url: str | Sequence[str] | None = None,
    progress: bool = True,
) -> ImageSplit:
    """Download EMNIST, unless it already exists, and read one of its splits.

    Handwritten digits and letters, 28 by 28 pixels, in the format of MNIST. All splits come in one
    archive of about 560 MB, which is kept; the four files of the split are unpacked beside it. The
    images stand upright: those of the files are transposed.

    Parameters
    ----------
    folder
        Where the files are kept; the user's cache unless given.
    split
        ``"byclass"`` (697,932 and 116,323 images in 62 classes: digits 0 to 9, upper case 10 to
        35, lower case 36 to 61), ``"bymerge"``, ``"balanced"``, ``"letters"`` (labels from 1),
        ``"digits"`` or ``"mnist"``.
    base_url
        A mirror, or several that are tried one after the other, instead of the public one.
    progress
        Whether a progress bar is shown on standard error.

    Returns
    -------
    ImageSplit
        Images to train with and images to test with.

    Raises
    ------
    DownloadError
        If no mirror gives the archive.
    CorruptDataError
        If what a mirror gives has another MD5 than published; nothing of it is kept.
    InvalidValueError
        If there is no such split.
    MissingExtraError
        If pooch is not installed: extra ``datasets``.

    References
    ----------
    Cohen, Afshar, Tapson, van Schaik: EMNIST: Extending MNIST to handwritten letters, 2017.

    Examples
    --------
    >>> train, test = fetch_emnist(split="byclass")  # doctest: +SKIP
    >>> len(train), int(train.labels.max())  # doctest: +SKIP
    (697932, 61)
    """
    chosen = _arguments.choice("split", split, _EMNIST_SPLITS)
    places = download.places(base_url, _EMNIST_PLACES)
    target = download.folder_of(folder, "emnist")
    names = [f"{name}.gz" for name in _files(f"emnist-{chosen}-train", f"emnist-{chosen}-test")]
    if not all((target / name).is_file() for name in names):
        path = download.fetch("gzip.zip", _EMNIST, places, target, progress)
        download.unpack(path, {f"gzip/{name}": target / name for name in names})
    return _split((target / name for name in names), transposed=True)


def read_idx(path: str | os.PathLike[str]) -> Array:
    """Read an array from an idx file, compressed by gzip or plain.

    The file is taken only if it is one: two zero bytes, a known type, the dimensions, and exactly
    as many bytes as they need. What a header claims is compared with the size of the file before
    memory is taken for it.

    Parameters
    ----------
    path
        The file. Whether it is compressed is seen from its first bytes, not from its name.

    Returns
    -------
    numpy.ndarray
        The array, of the dimensions and the type of the file, in the byte order of the machine.

    Raises
    ------
    CorruptDataError
        If the file is no idx file, is cut off, or is longer than its header says.
    OSError
        If the file cannot be opened.

    References
    ----------
    LeCun, Cortes, Burges: The MNIST database of handwritten digits, "File formats".

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels-idx1-ubyte")
    ...     _ = path.write_bytes(bytes([0, 0, 0x08, 1, 0, 0, 0, 3]) + bytes([5, 0, 4]))
    ...     read_idx(path)
    array([5, 0, 4], dtype=uint8)
    """
    place = Path(path)
    with open_regular(place) as file:
        size = os.fstat(file.fileno()).st_size
        compressed = file.read(2) == _GZIP
        file.seek(0)
        if not compressed:
            return _array(place, file, size)
        try:
            with gzip.GzipFile(fileobj=file) as content:
                return _array(place, cast("BinaryIO", content), _STRONGEST_COMPRESSION * size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise CorruptDataError(f"{place} is cut off or altered: {error}") from error


def _array(place: Path, file: BinaryIO, available: int) -> Array:
    """Read an array from an open file that holds at most so many bytes."""
    magic = _exactly(place, file, 4)
    if magic[:2] != b"\0\0" or magic[2] not in _TYPES:
        raise CorruptDataError(
            f"{place} is no idx file: it starts with the bytes {magic.hex(' ')}, expected 00 00, "
            f"one of {', '.join(f'{code:02x}' for code in _TYPES)}, and the number of dimensions"
        )
    if not 1 <= magic[3] <= _MOST_DIMENSIONS:
        raise CorruptDataError(
            f"{place} claims {magic[3]} dimensions, expected 1 to {_MOST_DIMENSIONS}"
        )
    header = _exactly(place, file, 4 * magic[3])
    shape = tuple(np.frombuffer(header, ">u4").tolist())
    kind = np.dtype(_TYPES[magic[2]])
    claimed = math.prod(shape) * kind.itemsize
    if claimed > available - 4 - len(header):
        raise CorruptDataError(
            f"{place} claims {claimed} bytes of entries, in the shape {shape}, and is too small "
            "for them"
        )
    content = _exactly(place, file, claimed)
    if file.read(1):
        raise CorruptDataError(
            f"{place} is longer than its header says: {claimed} bytes of entries, in the shape "
            f"{shape}"
        )
    array = np.frombuffer(content, kind).reshape(shape)
    return array.astype(kind.newbyteorder("="), copy=False)


def _exactly(place: Path, file: BinaryIO, length: int) -> bytearray:
    """Read so many bytes; memory grows with what is there, not with what is asked for."""
    content = bytearray()
    while len(content) < length:
        block = file.read(min(_BLOCK, length - len(content)))
        if not block:
            raise CorruptDataError(
                f"{place} is cut off: {length} bytes were expected and {len(content)} were there"
            )
        content += block
    return content
