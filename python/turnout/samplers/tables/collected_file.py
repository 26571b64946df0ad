"""A collected reference as a file, which says for which columns it was collected."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from turnout import _arguments
from turnout._documents import canonical, check_version, document
from turnout._types import Floats
from turnout.errors import CorruptDataError, InvalidValueError
from turnout.samplers.base import LARGEST_EPSILON
from turnout.samplers.tables.columns import Column
from turnout.samplers.tables.reference import CollectedReference

_FORMAT: Final = "turnout-reference"
_VERSION: Final = 1

#: How far the sum of shares may be from 1, and a share above it, because of rounding.
_ROUNDED: Final = 1e-6


def text_of(reference: CollectedReference, columns: Sequence[Column]) -> str:
    """Write a reference that was collected for these columns as JSON."""
    names = [column.name for column in columns]
    tables = [reference.pairs[pair] for pair in itertools.combinations(names, 2) if reference.pairs]
    return canonical(
        {
            "format": _FORMAT,
            "version": _VERSION,
            "epsilon": float(reference.epsilon),
            "users": reference.users,
            "columns": list(map(repr, columns)),
            "marginals": [np.asarray(reference.marginals[name]).tolist() for name in names],
            "pairs": [np.asarray(table).tolist() for table in tables],
        }
    )


def read_collected(path: Path, columns: Sequence[Column]) -> CollectedReference:
    """Read a reference for columns from a file.

    Raises
    ------
    CorruptDataError, UnsupportedVersionError
        If the file is no such reference, or is of another version.
    InvalidValueError
        If it was collected for other columns.
    OSError
        If the file cannot be read.
    """
    word = f"{path.name} is not a collected reference"
    given = document(word, path.read_bytes())
    check_version("collected reference", given, _FORMAT, _VERSION)
    match given:
        case {
            "format": str(kind),
            "version": _,
            "epsilon": float(epsilon),
            "users": int(users),
            "columns": list(described),
            "marginals": list(marginals),
            "pairs": list(pairs),
            **rest,
        } if kind == _FORMAT and not rest:
            pass
        case _:
            raise CorruptDataError(f"{word}: turnout sample-reference writes these")
    if not 0.0 < epsilon <= LARGEST_EPSILON or users < 1 or isinstance(users, bool):
        raise CorruptDataError(f"{word}: its epsilon or its number of people is impossible")
    _check_columns(path, described, columns)
    cells = [column.cells for column in columns]
    shapes = list(itertools.combinations(cells, 2)) if pairs else []
    if len(marginals) != len(cells) or len(pairs) != len(shapes):
        raise CorruptDataError(f"{word}: its shares are of another number of columns")
    names = [column.name for column in columns]
    shares = [_shares(word, each, (size,)) for each, size in zip(marginals, cells, strict=True)]
    tables = [_shares(word, each, shape) for each, shape in zip(pairs, shapes, strict=True)]
    both = itertools.combinations(names, 2) if pairs else ()
    return CollectedReference(
        epsilon,
        users,
        dict(zip(names, shares, strict=True)),
        dict(zip(both, tables, strict=True)),
    )


def _check_columns(path: Path, described: list[Any], columns: Sequence[Column]) -> None:
    """Refuse a reference of other columns, and say which differ."""
    wanted = [repr(column) for column in columns]
    if described == wanted:
        return
    known = [each for each in described if isinstance(each, str)]
    other = [column.name for column, text in zip(columns, wanted, strict=True) if text not in known]
    names = ", ".join(map(repr, other))
    which = f": {names} differ{'s' if len(other) == 1 else ''}" if other else ""
    raise InvalidValueError(
        f"{path.name} was collected for other columns{which}; pass the same columns in the same "
        f"order, and the same bounds, bins, labels and --missing keep"
    )


def _shares(word: str, given: Any, shape: tuple[int, ...]) -> Floats:
    """Read shares: numbers from 0 that add up to 1."""
    rows = [given] if len(shape) == 1 else given
    numbers: list[Any] = []
    if isinstance(rows, list) and (len(shape) == 1 or len(rows) == shape[0]):
        for row in rows:
            if not isinstance(row, list) or len(row) != shape[-1]:
                break
            numbers += row
    if len(numbers) != math.prod(shape):
        raise CorruptDataError(f"{word}: its shares are of another number of cells")
    for number in numbers:
        if type(number) not in (int, float) or not 0 <= number <= 1 + _ROUNDED:
            raise CorruptDataError(
                f"{word}: a share must be a number from 0 to 1, got {_arguments.shown(number)}"
            )
    found: Floats = np.array(numbers, np.float64).reshape(shape)
    total = math.fsum(numbers)
    if abs(total - 1.0) > _ROUNDED:
        raise CorruptDataError(f"{word}: the shares of its cells add up to {total!r}, not to 1")
    return found
