"""Labels as text: on a command line and in CSV files."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, Final, Literal

Kind = Literal["integer", "number", "boolean", "text"]
Value = int | float | bool | str

#: How an integer is written: ``7``, not ``07``.
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")

#: What files and tables write for no answer, beside nulls and NaN: what pandas takes for missing.
_MISSING: Final = frozenset(
    (
        *("", "NA", "N/A", "n/a", "<NA>", "#N/A", "#N/A N/A", "#NA", "null", "NULL", "None"),
        *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    )
)


def missing_texts(labels: Iterable[Any] = (), more: Iterable[str] = ()) -> frozenset[str]:
    """Give the texts that stand for a missing value: the usual ones that are no label, and more.

    Examples
    --------
    >>> "NA" in missing_texts(["DE", "NA"]), "NA" in missing_texts(["DE"])
    (False, True)
    >>> "?" in missing_texts(more=["?"])
    True
    """
    return (_MISSING - {label for label in labels if isinstance(label, str)}) | frozenset(more)


def label_text(value: Value) -> str:
    """Write a value as a label on a command line would be written.

    Examples
    --------
    >>> label_text(True), label_text(3), label_text("often")
    ('true', '3', 'often')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_label(text: str, kind: Kind) -> Value | None:
    """Read a label written as text as a value of a column's kind; None if it is not one.

    Parameters
    ----------
    text
        The label as written on the command line or in a file.
    kind
        The kind of column that it is for.

    Examples
    --------
    >>> parse_label("4", "integer"), parse_label("four", "integer"), parse_label("4", "text")
    (4, None, '4')
    """
    if kind == "text":
        return text
    if kind == "integer":
        return int(text) if INTEGER.fullmatch(text) else None
    if kind == "boolean":
        return {"true": True, "false": False}.get(text.lower())
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
