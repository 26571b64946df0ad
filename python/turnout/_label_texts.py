"""Labels as text: on a command line, in CSV files and in JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final, Literal

from turnout._arguments import shown
from turnout.errors import CorruptDataError, InvalidTypeError

Kind = Literal["integer", "number", "boolean", "text"]
Value = int | float | bool | str

#: Bits of the longest integer label in a file: Python refuses to read some thousand digits.
_LONGEST: Final = 2_000

#: How deep a label may be nested: tuples within each other. A document of it has a limit too.
DEEPEST_LABEL: Final = 8

#: How an integer is written: ``7``, not ``07``.
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")

#: What files and tables write for no answer, beside nulls and NaN: what pandas takes for missing.
MISSING_TEXTS: Final = frozenset(
    (
        *("", "NA", "N/A", "n/a", "<NA>", "#N/A", "#N/A N/A", "#NA", "null", "NULL", "None"),
        *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    )
)


def missing_texts(labels: Iterable[Any] = (), more: Iterable[str] = ()) -> frozenset[str]:
    """Return the texts that mean a missing value: the usual ones that are not labels, and more.

    Examples
    --------
    >>> "NA" in missing_texts(["DE", "NA"]), "NA" in missing_texts(["DE"])
    (False, True)
    >>> "?" in missing_texts(more=["?"])
    True
    """
    return (MISSING_TEXTS - {label for label in labels if isinstance(label, str)}) | frozenset(more)


def label_words(label: Any) -> str:
    """Write a label for people; of a combination, write each answer.

    Examples
    --------
    >>> label_words("often"), label_words(("f", 30)), label_words(True)
    ('often', 'f, 30', 'True')
    """
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def label_text(value: Value) -> str:
    """Write a value as a label is written on a command line.

    Examples
    --------
    >>> label_text(True), label_text(3), label_text("often")
    ('true', '3', 'often')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_label(text: str, kind: Kind) -> Value | None:
    """Parse text into a label of a column's kind; return None if it is not one.

    Parameters
    ----------
    text
        The label as written on the command line or in a file.
    kind
        The kind of the column that holds the label.

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


def kind_of(values: Iterable[Any]) -> Kind:
    """Return the kind of the values of labels.

    Examples
    --------
    >>> kind_of([1, 2]), kind_of([1, 2.5]), kind_of(["1", 2])
    ('integer', 'number', 'text')
    """
    kinds = {type(value) for value in values}
    if kinds <= {bool}:
        return "boolean"
    if kinds <= {int}:
        return "integer"
    return "number" if kinds <= {int, float} else "text"


def typed_values(values: Sequence[Any], *, texts: bool) -> list[Any]:
    """Convert the distinct values of a column to integers, if all of them are integers.

    Parameters
    ----------
    values
        The values; None where one is missing.
    texts
        Whether they are text because their file has no other type: then a NaN among numbers is
        missing too.

    Examples
    --------
    >>> typed_values(["7", "nan", None], texts=True), typed_values(["7", "07"], texts=True)
    ([7, None, None], ['7', '07'])
    >>> typed_values(["nan"], texts=True)
    ['nan']
    >>> typed_values([1.0, 2.0], texts=False), typed_values([1.0, 2.5], texts=False)
    ([1, 2], [1.0, 2.5])
    >>> typed_values([1, 2.5], texts=False)
    [1.0, 2.5]
    """
    present = [value for value in values if value is not None]
    if texts:
        present = [value for value in present if value.lower() not in ("nan", "-nan")]
        if any(parse_label(value, "number") is None for value in present):
            return list(values)
        whole = all(INTEGER.fullmatch(value) for value in present)
    else:
        whole = all(
            isinstance(value, float) and value.is_integer() and abs(value) <= 2**53
            for value in present
        )
    if not present:
        return list(values)
    if {type(value) for value in present} == {int, float}:
        # Decimals of which some are whole.
        return [None if value is None else float(value) for value in values]
    if texts:
        known = frozenset(present)
        values = [value if value in known else None for value in values]
    return [None if value is None else int(value) for value in values] if whole else list(values)


def label_to_json(label: Hashable) -> Any:
    """Describe a label in terms of JSON.

    Raises
    ------
    InvalidTypeError
        If it is not text, a number, a boolean, None, or a tuple of these.
    """
    if isinstance(label, tuple):
        return {"tuple": [label_to_json(part) for part in label]}
    if label is None or type(label) in (str, bool):
        return label
    if type(label) is int and label.bit_length() <= _LONGEST:
        return label
    if type(label) is float and math.isfinite(label):
        return label
    raise InvalidTypeError(
        f"the label {shown(label)} cannot be written to a file: only text, finite "
        "numbers of up to 600 digits, booleans, None and tuples of these can"
    )


def label_from_json(label: Any, deeper: int = DEEPEST_LABEL) -> Hashable:
    """Rebuild a label from :func:`label_to_json`.

    Raises
    ------
    CorruptDataError
        If it does not describe a label.

    Examples
    --------
    >>> label_from_json(label_to_json(("a", 1)))
    ('a', 1)
    """
    match label:
        case {"tuple": list(parts), **rest} if not rest and deeper:
            return tuple(label_from_json(part, deeper - 1) for part in parts)
        case None | str() | int() | bool():
            result: Hashable = label
            return result
        case float() if math.isfinite(label):
            return label
    raise CorruptDataError(f"not a label: {shown(label)}")


def number_of(count: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun, in the singular for one.

    Examples
    --------
    >>> number_of(1, "person", "people"), number_of(0, "bit"), number_of(1200, "bit")
    ('1 person', '0 bits', '1,200 bits')
    """
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"
