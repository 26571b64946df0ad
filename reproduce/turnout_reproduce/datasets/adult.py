"""Adult: a census of 1994, with answers that people would rather not give."""

from __future__ import annotations

import csv
import gzip
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from turnout._files import read_bytes
from turnout._types import Array
from turnout.errors import CorruptDataError
from turnout_reproduce.datasets import download

Table = dict[str, Array]

_ADULT = {
    "adult.data": "sha256:5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "sha256:a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
}
_ADULT_PLACES = ("https://archive.ics.uci.edu/ml/machine-learning-databases/adult/",)

#: Columns in the order of the file, and which of them hold whole numbers.
_COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
)
_WHOLE = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}

_GZIP = b"\x1f\x8b"


class TableSplit(NamedTuple):
    """Columns of people to learn from and of people to test with."""

    train: Table
    test: Table


def read_adult(path: str | os.PathLike[str]) -> Table:
    r"""Read ``adult.data`` or ``adult.test``, compressed by gzip or plain.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    dict of str to numpy.ndarray
        One column for each of the 15 names of the publisher, such as ``"age"``,
        ``"education-num"`` and ``"income"``: int64 for whole numbers, text otherwise. What is
        missing is ``"?"``; the full stop after the income in ``adult.test`` is taken away.

    Raises
    ------
    CorruptDataError
        If a row does not have 15 fields, if one that should be a number is none, or if there are
        no rows.
    OSError
        If the file cannot be opened.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> row = ("39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, "
    ...        "White, Male, 2174, 0, 40, United-States, <=50K\n")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "adult.data")
    ...     _ = path.write_text(row)
    ...     table = read_adult(path)
    >>> table["age"].tolist(), table["occupation"].tolist()
    ([39], ['Adm-clerical'])
    """
    place = Path(path)
    content = read_bytes(place)
    try:
        text = (gzip.decompress(content) if content[:2] == _GZIP else content).decode("ascii")
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise CorruptDataError(f"{place} is cut off or altered: {error}") from error
    rows: list[list[str]] = []
    for number, row in enumerate(csv.reader(text.splitlines(), skipinitialspace=True), start=1):
        # The publisher's first line of adult.test is a remark, and the last lines are empty.
        if not row or (number == 1 and row[0].startswith("|")):
            continue
        if len(row) != len(_COLUMNS):
            raise CorruptDataError(
                f"{place} is not Adult: line {number} has {len(row)} fields, expected "
                f"{len(_COLUMNS)}"
            )
        rows.append(row)
    if not rows:
        raise CorruptDataError(f"{place} is not Adult: it has no rows")
    table: Table = {}
    for name, column in zip(_COLUMNS, zip(*rows, strict=True), strict=True):
        try:
            whole = name in _WHOLE
            table[name] = np.array(list(map(int, column)), np.int64) if whole else np.array(column)
        except (ValueError, OverflowError) as error:
            raise CorruptDataError(
                f"{place} is not Adult: the column {name} must hold whole numbers ({error})"
            ) from error
    table["income"] = np.char.rstrip(table["income"], ".")
    return table


def fetch_adult(
    folder: str | os.PathLike[str] | None = None,
    *,
    base_url: str | Sequence[str] | None = None,
    progress: bool = True,
) -> TableSplit:
    """Download Adult, unless it already exists, and read it.

    32,561 and 16,281 people of the census of 1994 with 15 columns each: see :func:`read_adult`.
    About 6 MB, CC BY 4.0. Files appear whole or not at all, and only if their SHA-256 is the known
    one; a file that is there and right is not downloaded again.

    Parameters
    ----------
    folder
        Where the files are kept; the user's cache unless given.
    base_url
        A mirror, or several that are tried one after the other, instead of the public one.
    progress
        Whether a progress bar is shown on standard error.

    Returns
    -------
    TableSplit
        The columns of both files.

    Raises
    ------
    DownloadError
        If no mirror gives a file.
    CorruptDataError
        If what a mirror gives has another hash than known; nothing of it is kept.
    MissingExtraError
        If pooch is not installed: extra ``datasets``.

    References
    ----------
    Becker, Kohavi: Adult, UCI Machine Learning Repository, 1996, doi:10.24432/C5XW20.

    Examples
    --------
    >>> import turnout as tn
    >>> people = fetch_adult().train  # doctest: +SKIP
    >>> domain = tn.Domain.from_values(people["occupation"])  # doctest: +SKIP
    """
    addresses = download.places(base_url, _ADULT_PLACES)
    target = download.folder_of(folder, "adult")
    train, test = (
        read_adult(download.fetch(name, expected, addresses, target, progress))
        for name, expected in _ADULT.items()
    )
    return TableSplit(train, test)
