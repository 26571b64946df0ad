"""The labels of a domain: which values are allowed, and their codes."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._documents import nested_deeper
from turnout._label_texts import DEEPEST_LABEL
from turnout.errors import (
    InvalidTypeError,
    InvalidValueError,
)


def all_text(labels: Collection[Any]) -> bool:
    """Return whether all labels are plain text, which need no conversion."""
    return set(map(type, labels)) == {str}


def indexed(labels: tuple[Any, ...]) -> dict[Hashable, int]:
    """Map distinct labels to their codes; refuse values that cannot be labels."""
    index: dict[Hashable, int] = {}
    if all_text(labels):
        index = dict(zip(labels, range(len(labels)), strict=True))
        if len(index) == len(labels):
            return index
        index = {}
    for position, label in enumerate(labels):
        if isinstance(label, tuple) and nested_deeper(label, DEEPEST_LABEL):
            raise InvalidValueError(
                f"labels[{position}] must not be nested more than {DEEPEST_LABEL} deep"
            )
        try:
            first = index.setdefault(label, position)
        except TypeError as error:
            raise InvalidTypeError(
                f"labels[{position}] = {_arguments.shown(label)} is not hashable"
            ) from error
        if isinstance(label, float) and math.isnan(label):
            raise InvalidValueError(f"labels[{position}] must not be NaN, which equals no value")
        if first != position:
            raise InvalidValueError(
                f"labels must be different: labels[{position}] = {_arguments.shown(label)} "
                f"equals labels[{first}] = {_arguments.shown(labels[first])}"
            )
    return index


def plain_label(label: Any) -> Any:
    """Return the Python value of a NumPy scalar, with -0.0 as 0.0."""
    plain = label.item() if isinstance(label, np.generic) else label
    return plain + 0.0 if type(plain) is float else plain


def types_of(labels: Iterable[Hashable]) -> list[Any]:
    """List the types of labels, inside tuples too: 1, 1.0 and True are equal but not the same."""
    return [types_of(label) if isinstance(label, tuple) else type(label) for label in labels]
