"""How values become codes."""

from __future__ import annotations

import math
from collections.abc import Container, Hashable, Mapping, Sequence
from typing import Any, Final, Literal

from turnout import _arguments
from turnout._label_texts import INTEGER, label_text, missing_texts
from turnout.domain import Domain
from turnout.errors import InvalidValueError, UnknownLabelError

#: What stands for no code.
UNKNOWN: Final = -1
MISSING: Final = -2

#: What to do about missing values.
WAY_OUT: Final = (
    "missing (--missing), of survey and turnout.pipeline.scan, says what they are: {}, or 'drop' "
    "to leave these people out"
)


def is_missing(value: Any, missing_values: Container[str]) -> bool:
    """Whether a value is missing: a null, NaN, or one of some texts.

    Examples
    --------
    >>> is_missing(float("nan"), ()), is_missing(-9.0, ["-9"]), is_missing("no", ["?"])
    (True, True, False)
    """
    if value is None:
        return True
    if isinstance(value, float):
        if math.isnan(value):
            return True
        if value.is_integer() and str(int(value)) in missing_values:
            return True
    return label_text(value) in missing_values


class Labels:
    """How the values of a column become codes of a domain.

    Parameters
    ----------
    domain
        The labels.
    missing
        None, ``"drop"``, or the label that a missing value becomes.
    missing_values
        Texts that stand for a missing value, beside the usual ones that are no label.
    texts
        Whether values are matched with the texts of the labels: the column is text because its file
        knows nothing else, or its labels are texts of numbers.
    name
        What messages call the column.

    Raises
    ------
    UnknownLabelError
        If ``missing`` is no label of the domain.
    InvalidValueError
        If two labels are written alike and values are matched by their texts.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        missing: Hashable,
        missing_values: frozenset[str],
        texts: bool,
        name: str,
    ) -> None:
        self.domain, self.texts, self.name = domain, texts, name
        listed = domain.listed
        self.missing_values = missing_texts(listed, missing_values)
        self._by_text = _by_text(listed) if texts and listed else None
        # Among numbers "nan" is no number: a missing one.
        self._nan = texts and all(
            isinstance(label, (int, float)) and not isinstance(label, bool)
            for label in listed or [domain.written("0")]
        )
        #: The code of missing values, "drop" if they are dropped, None if they are refused.
        self.missing = self._code_of_missing(missing)

    def _code_of_missing(self, missing: Hashable) -> int | Literal["drop"] | None:
        if missing is None:
            # A domain may have None as a label.
            code = self._find(None)
            return code if code >= 0 else None
        if isinstance(missing, str) and missing == "drop":
            return "drop"
        code = self._find(missing)
        if code < 0:
            code = self._find_text(missing) if isinstance(missing, str) else code
        if code < 0:
            raise UnknownLabelError(
                f"{self.name}: missing must be a label of the domain or 'drop', got "
                f"{_arguments.shown(missing)}"
            )
        return code

    def _find(self, value: Any) -> int:
        code = self.domain.find(value)
        return UNKNOWN if code is None else code

    def _find_text(self, text: str) -> int:
        if self._by_text is not None:
            return self._by_text.get(text, UNKNOWN)
        return self._find(self.domain.written(text))

    def code(self, value: Any) -> int:
        """Give the code of one value: MISSING or UNKNOWN if it has none."""
        if is_missing(value, self.missing_values):
            return MISSING
        if not self.texts:
            return self._find(value)
        if not isinstance(value, str):
            whole = isinstance(value, float) and value.is_integer()
            return self._find_text(label_text(int(value) if whole else value))
        if self._nan and value.lower() in ("nan", "-nan"):
            return MISSING
        return self._find_text(value)

    def missing_integers(self) -> list[int]:
        """Those of the texts that stand for missing values that are integers."""
        return [
            int(text)
            for text in self.missing_values
            if INTEGER.fullmatch(text) and abs(int(text)) < 2**63
        ]


def _by_text(labels: Sequence[Any]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for code, label in enumerate(labels):
        if label is None:
            continue
        text = label if isinstance(label, str) else label_text(label)
        if text in found:
            raise InvalidValueError(
                f"domain: the labels {_arguments.shown(labels[found[text]])} and "
                f"{_arguments.shown(label)} are written alike and cannot be told apart in a CSV "
                "file"
            )
        found[text] = code
    return found
