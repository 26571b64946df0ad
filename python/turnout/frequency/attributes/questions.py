"""Which answers can be given to several questions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout.domain import Domain
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.products import encoded

__all__ = ["Questions"]

Codes = npt.NDArray[np.uint32]


class Questions:
    """The answers that can be given to each of several questions, by the names of the attributes.

    Parameters
    ----------
    domains
        For each attribute its answers: at least two.

    Raises
    ------
    InvalidValueError
        If there are fewer.

    Examples
    --------
    >>> import turnout as tn
    >>> both = Questions({"sex": tn.Domain(["f", "m"]), "age": tn.Domain.from_integers(4)})
    >>> both.encode({"sex": ["m", "f"], "age": [3, 0]}).tolist()
    [[1, 3], [0, 0]]
    >>> Questions.from_dict(both.to_dict()) == both
    True
    """

    __slots__ = ("_domains",)

    def __init__(self, domains: Mapping[str, Domain]) -> None:
        if len(domains) < 2:
            raise InvalidValueError(f"domains must be at least 2 attributes, got {len(domains)}")
        self._domains = dict(domains)

    @property
    def domains(self) -> Mapping[str, Domain]:
        """For each attribute the answers that can be given."""
        return MappingProxyType(self._domains)

    @property
    def size(self) -> int:
        """The number of answers to all questions."""
        return sum(domain.size for domain in self._domains.values())

    def encode(self, values: Any) -> Codes:
        """Encode a table: a column for each attribute.

        Parameters
        ----------
        values
            A mapping from names to columns, a pandas, polars or pyarrow table, or a list with one
            mapping from names to answers for each node. Other columns are not read.

        Returns
        -------
        numpy.ndarray
            uint32, a row for each node, a column for each attribute.

        Raises
        ------
        InvalidTypeError
            If there are no columns by name.
        InvalidValueError
            If a column is missing, or the columns are of different lengths.
        UnknownLabelError, CodeOutsideDomainError
            If an answer is not in its domain; the message names the attribute.
        """
        if isinstance(values, (list, tuple)) and all(isinstance(row, Mapping) for row in values):
            values = self._columns(values)
        codes = encoded(values, self._domains)
        return np.stack(list(codes.values()), axis=1).astype(np.uint32)

    def to_codes(self, values: Any) -> Codes:
        """Encode: see :meth:`encode`."""
        return self.encode(values)

    def _columns(self, rows: Any) -> dict[str, list[Any]]:
        for place, row in enumerate(rows):
            missing = [name for name in self._domains if name not in row]
            if missing:
                raise InvalidValueError(
                    f"values[{place}] must have an answer for {missing[0]!r}, got "
                    f"{_arguments.shown(row)}"
                )
        return {name: [row[name] for row in rows] for name in self._domains}

    def check_codes(self, argument: str, codes: npt.NDArray[Any]) -> None:
        """Refuse integers that are no codes.

        Raises
        ------
        CodeOutsideDomainError
            If there is one.
        """
        for place, (name, domain) in enumerate(self._domains.items()):
            domain.check_codes(f"{argument}[{name!r}]", codes[:, place])

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the description, in hexadecimal."""
        text = json.dumps(self.to_dict(), separators=(",", ":"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Describe the answers in terms of JSON.

        Raises
        ------
        InvalidTypeError
            If a label cannot be written to a file.
        """
        return {
            "questions": [
                {"name": name, "domain": domain.to_dict()} for name, domain in self._domains.items()
            ]
        }

    @classmethod
    def from_dict(cls, description: Any) -> Questions:
        """Rebuild the answers from :meth:`to_dict`.

        Raises
        ------
        CorruptDataError
            If it is the description of anything else.
        """
        domains: dict[str, Domain] = {}
        match description:
            case {"questions": list(questions), **rest} if not rest:
                for question in questions:
                    match question:
                        case {"name": str(name), "domain": domain, **more} if (
                            not more and name not in domains
                        ):
                            domains[name] = Domain.from_dict(domain)
                        case _:
                            raise CorruptDataError(
                                f"not the description of a question: {_arguments.shown(question)}"
                            )
                try:
                    return cls(domains)
                except (InvalidValueError, InvalidTypeError) as error:
                    raise CorruptDataError(f"not the description of questions: {error}") from error
        raise CorruptDataError(f"not the description of questions: {_arguments.shown(description)}")

    @staticmethod
    def schema() -> dict[str, Any]:
        """Describe their JSON as a JSON Schema, with domains at ``#/$defs/domain``."""
        question = {
            "type": "object",
            "properties": {"name": {"type": "string"}, "domain": {"$ref": "#/$defs/domain"}},
            "required": ["name", "domain"],
            "additionalProperties": False,
        }
        return {
            "type": "object",
            "properties": {"questions": {"type": "array", "minItems": 2, "items": question}},
            "required": ["questions"],
            "additionalProperties": False,
        }

    def __eq__(self, other: object) -> bool:
        """Compare names and answers with their order."""
        if not isinstance(other, Questions):
            return NotImplemented
        return list(self._domains.items()) == list(other._domains.items())

    def __hash__(self) -> int:
        """Hash of what is compared."""
        return hash(tuple(self._domains.items()))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        """Copy and pickle the domains."""
        return type(self), (self._domains,)

    def __repr__(self) -> str:
        """Show the names and how many answers each has."""
        numbers = ", ".join(f"{name}: {each.size} answers" for name, each in self._domains.items())
        return f"Questions({numbers})"
