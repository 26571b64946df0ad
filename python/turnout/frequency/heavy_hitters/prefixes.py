"""The candidate prefixes of a round, and the report of a node."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._documents import object_schema
from turnout._types import Array, Integers
from turnout.domain import Domain
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.frequency.heavy_hitters.values import (
    IntegerValues,
    Rows,
    TextValues,
    Values,
    keys,
    values_from_dict,
    values_schema,
)
from turnout.frequency.wrapped import CodesOracle, OfCodes

#: The label of every value that has none of the prefixes.
OTHER = "other"

#: The most prefixes of a round.
MOST_CANDIDATES = 2**20


class PrefixDomain(Domain):
    """A domain of prefixes: one label for each prefix, and one for all other values.

    The prefixes are all possible prefixes of ``bits`` bits that extend one of the ``kept``
    prefixes; a plan holds only the latter. Each prefix is a label for all values that begin with
    it. The last label, ``"other"``, is for the rest.

    Parameters
    ----------
    values
        The kind of values: :class:`IntegerValues` or :class:`TextValues`.
    kept
        The prefixes to extend, as texts of 0 and 1, all of one length, in ascending order.
    bits
        The number of bits of the prefixes.

    Raises
    ------
    InvalidTypeError
        If an argument is of the wrong type.
    InvalidValueError
        If the prefixes are not of that form, or there are none, or more than 2^20.

    Examples
    --------
    >>> from turnout.frequency.heavy_hitters.values import IntegerValues
    >>> domain = PrefixDomain(IntegerValues(8), ["01", "11"], 3)
    >>> domain.labels
    ('010*', '011*', '110*', '111*', 'other')
    >>> domain.encode([0b01011111, 0b11111111, 0])
    array([0, 3, 4], dtype=uint8)
    """

    __slots__ = ("_bits", "_codes", "_kept", "_keys", "_rows", "_values")

    def __init__(self, values: Values, kept: Sequence[str], bits: int) -> None:
        kinds = (IntegerValues, TextValues)
        self._values = _arguments.instance("values", values, kinds, "a kind of values")
        self._kept = tuple(_arguments.items("kept", kept, "prefixes"))
        for prefix in self._kept:
            if not isinstance(prefix, str) or set(prefix) - {"0", "1"}:
                raise _arguments.invalid("kept must be texts of the digits 0 and 1", prefix)
        known = len(self._kept[0]) if self._kept else 0
        if {*map(len, self._kept)} != {known} or [*self._kept] != sorted({*self._kept}):
            raise InvalidValueError(
                "kept must be different prefixes of one length in ascending order, at least one, "
                f"got {_arguments.listed(self._kept)}"
            )
        self._bits = _arguments.integer("bits", bits, least=max(known, 1), most=values.bits)
        if len(self._kept) << min(self._bits - known, 64) > MOST_CANDIDATES:
            raise InvalidValueError(
                f"kept must be at most {MOST_CANDIDATES:,} prefixes when extended to {self._bits} "
                f"bits, got {len(self._kept):,} of {known} bits"
            )
        rows = extended(self._kept, self._bits, values.bits)
        self._rows = rows[values.possible(rows, self._bits)]
        if not len(self._rows):
            raise InvalidValueError(f"kept must be prefixes of some of {values}, got none of any")
        self._keys = keys(self._rows, self._bits)
        self._codes: dict[int, int] | None = None
        whole = self._bits == values.bits
        labels = [
            values.decode(row) if whole else values.shown(row, self._bits) for row in self._rows
        ]
        other = OTHER
        while other in labels:
            other = f"({other})"
        super().__init__([*labels, other])

    @property
    def values(self) -> Values:
        """The kind of values."""
        return self._values

    @property
    def bits(self) -> int:
        """The number of bits of the prefixes."""
        return self._bits

    @property
    def rows(self) -> Rows:
        """The prefixes as rows of bits, in the order of their codes."""
        return self._rows

    def digits(self, codes: Integers) -> list[str]:
        """Write some prefixes as texts of 0 and 1."""
        known = np.unpackbits(self._rows[codes], axis=1)[:, : self._bits] + np.uint8(ord("0"))
        return [row.tobytes().decode() for row in known]

    def to_codes(self, values: Any) -> Any:
        """Return the code of each value's prefix, or the last code for values without one.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If a value is not of the kind.
        """
        return self.codes_of_rows(self._values.encode(values))

    def codes_of_rows(self, rows: Rows) -> Array:
        """Find the prefix of each value that is given by its bits."""
        wanted = keys(rows, self._bits)
        place = np.minimum(np.searchsorted(self._keys, wanted), self._keys.size - 1)
        found = np.where(self._keys[place] == wanted, place, self._keys.size)
        return found.astype(self._code_dtype)

    @property
    def _listed(self) -> tuple[Hashable, ...]:
        """None: values are looked up by prefix, not among labels."""
        return ()

    @property
    def _words(self) -> str:
        """What messages call the values that can be given."""
        return str(self._values)

    def parse(self, text: str) -> Any:
        """Parse text into a label."""
        return self._values.parse(text)

    def find(self, value: Any) -> int | None:
        """Return the code of the prefix of a value or its text; None if it is not of the kind.

        Examples
        --------
        >>> from turnout.frequency.heavy_hitters.values import IntegerValues
        >>> domain = PrefixDomain(IntegerValues(8), ["01", "11"], 3)
        >>> domain.find(255), domain.find(0), domain.find(256)
        (3, 4, None)
        """
        if self._codes is None:
            shift = 8 * self._rows.shape[1] - self._bits
            self._codes = {
                int.from_bytes(row.tobytes(), "big") >> shift: code
                for code, row in enumerate(self._rows)
            }
        try:
            known = self._values.parse(value) if isinstance(value, str) else value
            number = self._values.number(known)
        except (InvalidTypeError, InvalidValueError):
            return None
        return self._codes.get(number >> (self._values.bits - self._bits), len(self._rows))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the domain.

        Returns
        -------
        dict
            ``{"values": ..., "kept": [...], "bits": ...}``.

        Examples
        --------
        >>> from turnout.frequency.heavy_hitters.values import IntegerValues
        >>> PrefixDomain(IntegerValues(8), ["01", "11"], 3).to_dict()["kept"]
        ['01', '11']
        """
        return {"values": self._values.to_dict(), "kept": list(self._kept), "bits": self._bits}

    @classmethod
    def from_dict(cls, description: Any) -> PrefixDomain:
        """Rebuild a domain from :meth:`to_dict`.

        Raises
        ------
        CorruptDataError
            If it does not describe such a domain.

        Examples
        --------
        >>> from turnout.frequency.heavy_hitters.values import IntegerValues
        >>> domain = PrefixDomain(IntegerValues(8), ["01", "11"], 3)
        >>> PrefixDomain.from_dict(domain.to_dict()) == domain
        True
        """
        match description:
            case {"values": values, "kept": list(kept), "bits": int(bits), **rest} if not rest:
                try:
                    return cls(values_from_dict(values), kept, bits)
                except (InvalidTypeError, InvalidValueError) as error:
                    raise CorruptDataError(f"not a domain of prefixes: {error}") from error
        raise CorruptDataError(f"not a domain of prefixes: {_arguments.shown(description)}")

    @staticmethod
    def schema() -> dict[str, Any]:
        """Return the JSON Schema of their description."""
        prefix = {"type": "string", "pattern": "^[01]*$"}
        return object_schema(
            {
                "values": values_schema(),
                "kept": {"type": "array", "minItems": 1, "items": prefix},
                "bits": {"type": "integer", "minimum": 1},
            }
        )

    def __eq__(self, other: object) -> bool:
        """Compare the kind of values and the prefixes."""
        if not isinstance(other, Domain):
            return NotImplemented
        return isinstance(other, PrefixDomain) and (self._values, self._kept, self._bits) == (
            other._values,
            other._kept,
            other._bits,
        )

    def __hash__(self) -> int:
        """Hash the compared values."""
        return hash((self._values, self._kept, self._bits))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what the constructor takes."""
        return PrefixDomain, (self._values, self._kept, self._bits)

    def __repr__(self) -> str:
        """Show the number of prefixes, and the kind of values."""
        return f"PrefixDomain({len(self._rows):,} prefixes of {self._bits} bits of {self._values})"


def extended(kept: Sequence[str], bits: int, most: int) -> Rows:
    """Extend prefixes of one length in all ways, and return rows of ``most`` bits."""
    known = np.frombuffer("".join(kept).encode(), np.uint8).reshape(len(kept), -1) - ord("0")
    step = bits - known.shape[1]
    longer = np.zeros((len(kept), 2**step, most), np.uint8)
    longer[:, :, : known.shape[1]] = known[:, None]
    longer[:, :, known.shape[1] : bits] = np.arange(2**step)[:, None] >> np.arange(step)[::-1] & 1
    return np.packbits(longer.reshape(-1, most), axis=1)


class SearchRound(CodesOracle):
    """Report which candidate prefix a value has, or that it has none.

    :attr:`Search.current` returns it. Its plan is all that a node needs. Plan files, messages,
    report files, jobs, tallies, groups and commands work as for any plan. **A node answers one
    round**, that of its group: a second report would spend epsilon again.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats.
    domain
        The candidates: a :class:`PrefixDomain`.
    number
        The number of the round, counted from 0, and of the group of nodes that answers it.
    groups
        The number of groups.
    oracle
        The oracle for the code of the prefix: ``"auto"`` (default), the name of an oracle, or a
        class; or an oracle with one more code than there are candidates, or its description.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range, or the oracle has a larger epsilon or
        another number of codes.

    Examples
    --------
    >>> import turnout as tn
    >>> from turnout.frequency.heavy_hitters import HeavyHitters
    >>> first = HeavyHitters(1.0, bits=16).rounds().current
    >>> plan = tn.Plan(first, tn.Everyone())
    >>> plan.gather([plan.report(0xABCD), plan.report(17)]).nodes
    2
    """

    name = "prefixes"
    domain_type = PrefixDomain
    _asked_of = "the group of this round alone: a person in two rounds spends epsilon twice"

    def __init__(
        self,
        epsilon: float,
        domain: PrefixDomain,
        *,
        number: int,
        groups: int,
        oracle: OfCodes = "auto",
    ) -> None:
        _arguments.instance("domain", domain, PrefixDomain, "a PrefixDomain")
        super().__init__(epsilon, domain, oracle)
        self._groups = _arguments.integer("groups", groups, least=1)
        self._number = _arguments.integer("number", number, least=0)
        if self._number >= self._groups:
            raise InvalidValueError(f"number must be below groups = {groups}, got {number}")

    @property
    def domain(self) -> PrefixDomain:
        """The candidates, and all others."""
        domain: Any = self._domain
        found: PrefixDomain = domain
        return found

    @property
    def number(self) -> int:
        """The number of the round, counted from 0, and of the group of nodes that answers it."""
        return self._number

    @property
    def groups(self) -> int:
        """The number of groups, which is that of rounds if something is found."""
        return self._groups

    @property
    def candidates(self) -> tuple[Any, ...]:
        """The prefixes as text, in the order of their codes; in the last rounds the values."""
        return self.domain.labels[:-1]

    def parameters(self) -> dict[str, Any]:
        """Return the constructor's other parameters as JSON values, without epsilon and domain."""
        return {"number": self._number, "groups": self._groups, **super().parameters()}

    def __repr__(self) -> str:
        """Show the number, the prefixes and the oracle's class."""
        return (
            f"SearchRound(epsilon={self._epsilon!r}, {self._domain!r}, number={self._number}, "
            f"groups={self._groups}, oracle={type(self._inner).__name__})"
        )
