"""Several questions to each person: a column for each, and their joint answers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._documents import digest, object_schema
from turnout._types import Array, Self
from turnout.domain import Domain, domain_of
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

#: The most combinations of answers: each is a label, and has an estimate.
MOST_CELLS = 2**20


class _Columns:
    """Base class of domains with several questions."""

    __slots__ = ()

    _columns: dict[str, Domain]

    @property
    def columns(self) -> Mapping[str, Domain]:
        """The domain of each question."""
        return MappingProxyType(self._columns)

    def __eq__(self, other: object) -> bool:
        """Compare the names, the answers and the order of the questions."""
        if not isinstance(other, (_Columns, Domain)):
            return NotImplemented
        return (
            isinstance(other, _Columns)
            and type(self) is type(other)
            and list(self._columns.items()) == list(other._columns.items())
        )

    def __hash__(self) -> int:
        """Hash the questions."""
        return hash(tuple(self._columns.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the questions."""
        return type(self), (self._columns,)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the questions.

        Returns
        -------
        dict
            ``{"columns": [{"name": ..., "domain": ...}, ...]}``.

        Raises
        ------
        InvalidTypeError
            If a label cannot be written to a file.

        Examples
        --------
        >>> ProductDomain({"a": 2, "b": ["no", "yes"]}).to_dict()["columns"][0]
        {'name': 'a', 'domain': {'integers': 2}}
        """
        columns = self._columns.items()
        return {"columns": [{"name": name, "domain": each.to_dict()} for name, each in columns]}

    @classmethod
    def from_dict(cls, description: Any) -> Self:
        """Rebuild a domain from :meth:`to_dict`.

        Raises
        ------
        CorruptDataError
            If it does not describe such a domain.

        Examples
        --------
        >>> domain = ProductDomain({"a": 2, "b": 3})
        >>> ProductDomain.from_dict(domain.to_dict()) == domain
        True
        """
        found: dict[str, Domain] = {}
        try:
            match description:
                case {"columns": list(columns), **rest} if not rest:
                    for column in columns:
                        match column:
                            case {"name": str(name), "domain": domain, **more} if not more:
                                found[name] = Domain.from_dict(domain)
                    if len(found) == len(columns):
                        return cls(found)  # type: ignore[call-arg]
        except (InvalidTypeError, InvalidValueError) as error:
            message = f"not the description of a domain of columns: {error}"
            raise CorruptDataError(message) from error
        raise CorruptDataError(
            f"not the description of a domain of columns: {_arguments.shown(description)}"
        )

    @staticmethod
    def schema() -> dict[str, Any]:
        """Return the JSON Schema of the description; domains are ``#/$defs/domain``."""
        column = object_schema({"name": {"type": "string"}, "domain": {"$ref": "#/$defs/domain"}})
        return object_schema({"columns": {"type": "array", "minItems": 2, "items": column}})


class _Combinations(Sequence[tuple[Hashable, ...]]):
    """The labels of a joint table, built on first use.

    A plan of a kilobyte can describe a million labels. Reading, counting and encoding do not build
    them.
    """

    def __init__(self, domains: Sequence[Domain]) -> None:
        self._domains = domains
        self._size = math.prod(each.size for each in domains)
        self._made: tuple[tuple[Hashable, ...], ...] | None = None

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: Any) -> Any:
        return self.whole[place]

    def __iter__(self) -> Iterator[tuple[Hashable, ...]]:
        return itertools.product(*(each._sequence for each in self._domains))

    @property
    def whole(self) -> tuple[tuple[Hashable, ...], ...]:
        """All labels."""
        if self._made is None:
            self._made = tuple(self)
        return self._made


class _Codes(Mapping[Hashable, int]):
    """The code of each combination, from the codes of its answers."""

    def __init__(self, domains: Sequence[Domain], labels: _Combinations) -> None:
        self._domains, self._labels = domains, labels

    def __len__(self) -> int:
        return len(self._labels)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._labels)

    def __getitem__(self, label: Hashable) -> int:
        # As a dictionary does, of whatever cannot be hashed.
        hash(label)
        if not isinstance(label, tuple) or len(label) != len(self._domains):
            raise KeyError
        whole = 0
        for domain, answer in zip(self._domains, label, strict=True):
            # In a tuple 1, True and NumPy's 1 are one label.
            same = isinstance(answer, (bool, np.bool_, np.integer))
            code = domain.find(int(answer) if domain._are_codes and same else answer)
            if code is None:
                raise KeyError
            whole = whole * domain.size + code
        return whole


class ProductDomain(_Columns, Domain):
    """A domain of all combinations of the answers to several questions, in a fixed order.

    A label is a tuple with one answer for each question. The last question varies fastest, as in
    ``numpy.reshape``.

    Parameters
    ----------
    columns
        The answers to each question, or their number: at least two questions.

    Raises
    ------
    InvalidTypeError
        If ``columns`` is not a mapping from texts to domains.
    InvalidValueError
        If there are fewer than two questions, or more than 2^20 combinations.

    Examples
    --------
    >>> domain = ProductDomain({"sex": ["f", "m"], "vote": ["no", "yes"]})
    >>> domain.labels
    (('f', 'no'), ('f', 'yes'), ('m', 'no'), ('m', 'yes'))
    >>> domain.encode({"sex": ["m", "f"], "vote": ["yes", "yes"]})
    array([3, 1], dtype=uint8)
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: Mapping[str, Domain | Sequence[Hashable] | int]) -> None:
        self._columns = domains_of("columns", columns)
        cells = math.prod(self.shape)
        if cells > MOST_CELLS:
            sizes = " x ".join(f"{size:,}" for size in self.shape)
            raise InvalidValueError(
                f"columns must have at most {MOST_CELLS:,} combinations of answers, got {sizes} = "
                f"{cells:,}: ask for fewer columns together, put answers together, or ask for the "
                "tables of two by turnout.PairTables"
            )
        domains = tuple(self._columns.values())
        self._labels: _Combinations = _Combinations(domains)
        self._index = _Codes(domains, self._labels)

    @property
    def labels(self) -> tuple[tuple[Hashable, ...], ...]:
        """All combinations, in the order of their codes."""
        return self._labels.whole

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of answers to each question."""
        return tuple(each.size for each in self._columns.values())

    def to_codes(self, values: Any) -> Any:
        """Encode a table with a column for each question, or a list of combinations.

        Parameters
        ----------
        values
            A mapping from names to columns, a pandas, polars or pyarrow table; or a list of tuples
            in the order of the questions, or of mappings from their names to answers.
        """
        listed = isinstance(values, (list, tuple)) and not (values and _are_rows(values))
        if listed or (isinstance(values, np.ndarray) and values.dtype.names is None):
            return super().to_codes(values)
        return self._combined(list(encoded(values, self._columns).values()))

    def _combined(self, codes: Sequence[Array]) -> Array:
        """Combine the codes of all questions into one."""
        whole = np.zeros(codes[0].size, np.int64)
        for one, size in zip(codes, self.shape, strict=True):
            whole = whole * size + one.astype(np.int64)
        return whole.astype(self._code_dtype)

    __eq__ = _Columns.__eq__
    __hash__ = _Columns.__hash__

    def __repr__(self) -> str:
        """Show the questions."""
        return f"ProductDomain({self._columns!r})"


class Questions(_Columns):
    """A domain of several separate questions: a row of codes for each person.

    Parameters
    ----------
    columns
        The answers to each question: at least two questions.

    Raises
    ------
    InvalidValueError
        If there are fewer than two questions.

    Examples
    --------
    >>> import turnout as tn
    >>> both = Questions({"sex": tn.Domain(["f", "m"]), "age": tn.Domain.from_integers(4)})
    >>> both.encode({"sex": ["m", "f"], "age": [3, 0]}).tolist()
    [[1, 3], [0, 0]]
    >>> Questions.from_dict(both.to_dict()) == both
    True
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: Mapping[str, Domain | Sequence[Hashable] | int]) -> None:
        self._columns = domains_of("columns", columns)

    @property
    def size(self) -> int:
        """The total number of possible answers to all questions."""
        return sum(each.size for each in self._columns.values())

    def encode(self, values: Any) -> npt.NDArray[np.uint32]:
        """Encode a table: a column for each question.

        Parameters
        ----------
        values
            A mapping from names to columns, a pandas, polars or pyarrow table, or a list with one
            mapping from names to answers for each person. Other columns are not read.

        Returns
        -------
        numpy.ndarray
            uint32, a row for each person, a column for each question.

        Raises
        ------
        InvalidTypeError
            If the values have no named columns.
        InvalidValueError
            If a column is missing, or the columns are of different lengths.
        UnknownLabelError, CodeOutsideDomainError
            If an answer is not in its domain; the message names the question.
        """
        return self._combined(list(encoded(values, self._columns).values()))

    to_codes = encode

    def _combined(self, codes: Sequence[Array]) -> npt.NDArray[np.uint32]:
        """Stack the codes of the questions as columns."""
        return np.stack([one.astype(np.uint32) for one in codes], axis=1)

    def _check_codes(self, argument: str, codes: Array) -> None:
        """Refuse integers that are no codes.

        Raises
        ------
        CodeOutsideDomainError
            If there is one.
        """
        for place, (name, each) in enumerate(self._columns.items()):
            each._check_codes(f"{argument}[{name!r}]", codes[:, place])

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the description, in hexadecimal."""
        return digest(self.to_dict())

    def __repr__(self) -> str:
        """Show the names and how many answers each has."""
        numbers = ", ".join(f"{name}: {each.size} answers" for name, each in self._columns.items())
        return f"Questions({numbers})"


def questions_of(domain: Any) -> tuple[str, ...]:
    """List the questions whose answers a label combines; empty if a label is one answer.

    Examples
    --------
    >>> questions_of(ProductDomain({"a": 2, "b": 3})), questions_of(Domain(["no", "yes"]))
    (('a', 'b'), ())
    """
    return tuple(domain.columns) if isinstance(domain, ProductDomain) else ()


def domains_of(argument: str, columns: Any) -> dict[str, Domain]:
    """Convert the answers to each of several questions to domains.

    A number becomes a domain of codes. The columns of ``Questions`` or of a joint table are
    returned unchanged.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If it is not a mapping from texts to domains, or has fewer than two.

    Examples
    --------
    >>> domains_of("columns", {"sex": ["f", "m"], "age": 4})["age"].size
    4
    """
    if isinstance(columns, _Columns):
        return dict(columns.columns)
    _arguments.instance(
        argument, columns, Mapping, "a mapping from the names of questions to their answers"
    )
    found = {}
    for name, answers in columns.items():
        if not isinstance(name, str):
            raise _arguments.mistyped(f"{argument} must have text for names", name)
        found[name] = domain_of(f"{argument}[{name!r}]", answers)
    if len(found) < 2:
        raise InvalidValueError(f"{argument} must name at least 2 questions, got {len(found)}")
    return found


def _are_rows(table: Any) -> bool:
    return isinstance(table, (list, tuple)) and all(isinstance(row, Mapping) for row in table)


def encoded(table: Any, domains: Mapping[str, Domain]) -> dict[str, Array]:
    """Encode the columns of a table; columns of other names are not read.

    Parameters
    ----------
    table
        A mapping from names to columns, or a pandas, polars or pyarrow table.
    domains
        The attributes.

    Returns
    -------
    dict
        One code for each node, by attribute.

    Raises
    ------
    InvalidTypeError
        If the table has no named columns.
    InvalidValueError
        If a column is missing, or the columns are of different lengths.
    UnknownLabelError, CodeOutsideDomainError
        If an answer is not in its domain; the message names the attribute.
    """
    codes = {}
    for name, domain in domains.items():
        column = _column(table, name)
        try:
            codes[name] = domain.encode(column)
        except (InvalidTypeError, InvalidValueError) as error:
            raise type(error)(f"table[{name!r}]: {error}") from error
    lengths = {name: column.size for name, column in codes.items()}
    if len(set(lengths.values())) > 1:
        raise _arguments.invalid("table must have columns of the same length", lengths)
    return codes


def _column(table: Any, name: str) -> Any:
    if _are_rows(table):
        for position, row in enumerate(table):
            if name not in row:
                raise InvalidValueError(
                    f"values[{position}] must have an answer to {name!r}, as each entry has"
                )
        return [row[name] for row in table]
    unnamed = isinstance(table, np.ndarray) and table.dtype.names is None
    if unnamed or isinstance(table, (str, bytes, list, tuple)) or not hasattr(table, "__getitem__"):
        raise _arguments.mistyped(
            "table must be a mapping from names to columns or a data frame",
            _arguments.Private(table),
        )
    try:
        return table[name]
    except Exception as error:
        # Every library has an exception of its own for a missing column.
        raise InvalidValueError(f"table must have the column {name!r}") from error
