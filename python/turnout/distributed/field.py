"""Prime fields, and additive secret shares over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _core
from turnout._types import Array, Integers
from turnout._values import settle
from turnout.errors import InvalidTypeError, InvalidValueError

#: The size of the seed that stands for a share.
SEED_BYTES = 32

_LARGEST = 2**61


@dataclass(frozen=True, repr=False)
class PrimeField:
    """The integers modulo a prime, with additive sharing of vectors.

    Elements are NumPy arrays of ``dtype``: uint32 for a modulus up to 2^32, uint64 above.

    Parameters
    ----------
    modulus
        A prime, from 2 to 2^61.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the modulus is not such a prime.

    Examples
    --------
    >>> field = PrimeField.larger_than(1000)
    >>> field.modulus, field.bits
    (1009, 10)
    >>> shares = field.share([0, 1, 0, 0], parties=3)
    >>> shares.shape
    (3, 4)
    >>> field.reconstruct(shares)
    array([0, 1, 0, 0], dtype=uint32)
    """

    #: The prime q.
    modulus: int
    #: The field in the compiled core.
    _core: _core.PrimeField = field(init=False, compare=False)
    #: The type of arrays of elements.
    _dtype: np.dtype[Any] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        modulus = _arguments.integer("modulus", self.modulus, least=2, most=_LARGEST)
        dtype = np.dtype(np.uint32 if modulus <= 2**32 else np.uint64)
        settle(self, modulus=modulus, _core=_core.PrimeField(modulus), _dtype=dtype)

    @classmethod
    def larger_than(cls, bound: int) -> PrimeField:
        """Return the field of the smallest prime above a bound.

        Parameters
        ----------
        bound
            A whole number below 2^60.

        Returns
        -------
        PrimeField
            The field.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the bound is out of range.

        Examples
        --------
        >>> PrimeField.larger_than(30).modulus
        31
        """
        checked = _arguments.integer("bound", bound, least=0, most=_LARGEST // 2 - 1)
        return cls(_core.PrimeField.larger_than(checked).modulus)

    @property
    def bits(self) -> int:
        """The size of a packed element: the least b with 2^b >= q."""
        return self._core.bits

    def _elements(self, values: npt.ArrayLike, argument: str = "values") -> Array:
        """Check that whole numbers are elements, and return them as an array.

        Parameters
        ----------
        values
            Whole numbers from 0 to q - 1, in one or two dimensions.
        argument
            Their name, for messages.

        Returns
        -------
        numpy.ndarray
            Of :attr:`dtype`.

        Raises
        ------
        InvalidTypeError
            If they are no whole numbers.
        InvalidValueError
            If one is out of range.
        """
        expected = f"whole numbers from 0 to {self.modulus - 1}"
        array = _arguments.as_array(argument, values, expected, private=True)
        if array.size == 0:
            array = array.astype(np.int64)
        if array.dtype.kind not in "iu":
            raise InvalidTypeError(f"{argument} must hold {expected}, got dtype {array.dtype}")
        wrong = (array < 0) | (array >= self.modulus)
        within = f"from 0 to {self.modulus - 1}"
        _arguments.refuse_entries(argument, array, wrong, within, private=True)
        return np.ascontiguousarray(array, self._dtype)

    def _reduce(self, values: npt.ArrayLike) -> Array:
        """Reduce whole numbers, also negative ones, modulo q.

        Parameters
        ----------
        values
            Whole numbers of up to 63 bits, one-dimensional.

        Returns
        -------
        numpy.ndarray
            Elements.

        Raises
        ------
        InvalidTypeError
            If they are no whole numbers.
        """
        array = _arguments.vector(
            "values", values, "whole numbers", "whole numbers", "iu", private=True
        )
        return self._core.reduce(np.ascontiguousarray(array, np.int64))

    def _lift(self, values: npt.ArrayLike) -> Integers:
        """Read elements as the whole numbers of least absolute value.

        Parameters
        ----------
        values
            Elements.

        Returns
        -------
        numpy.ndarray
            int64, from -(q - 1)/2 to (q - 1)/2.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If they are no elements.

        Examples
        --------
        >>> PrimeField(7)._lift([0, 3, 4, 6])
        array([ 0,  3, -3, -1])
        """
        return self._core.lift(self._vector("values", values))

    def _add(self, left: npt.ArrayLike, right: npt.ArrayLike) -> Array:
        """Add two vectors of the same length.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If they are no elements, or of different lengths.
        """
        return self._core.add(self._vector("left", left), self._vector("right", right))

    def _sum(self, rows: npt.ArrayLike) -> Array:
        """Add up vectors.

        Parameters
        ----------
        rows
            Elements, a vector in each row.

        Returns
        -------
        numpy.ndarray
            Their sum.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If they are no elements, or not in two dimensions.
        """
        return self._core.sum(self._rows("rows", rows))

    def share(self, vector: npt.ArrayLike, parties: int = 3, seed: int | None = None) -> Array:
        """Split a vector into additive shares, all of which are needed to learn anything.

        Parameters
        ----------
        vector
            Elements, one-dimensional.
        parties
            The number m >= 2 of shares.
        seed
            For tests and simulations only.

        Returns
        -------
        numpy.ndarray
            Elements, one share in each row. The first m - 1 are uniform; the last completes the sum
            to the vector. Any m - 1 of them are uniform, whatever the vector is.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the vector does not contain elements, or there are fewer than two parties.

        Examples
        --------
        >>> field = PrimeField(11)
        >>> field.reconstruct(field.share([10, 0, 5], parties=2)).tolist()
        [10, 0, 5]
        """
        count = _arguments.integer("parties", parties, least=2, most=_LARGEST)
        return self._core.share(self._vector("vector", vector), count, _arguments.seed(seed))

    def _share_compressed(
        self, vector: npt.ArrayLike, parties: int = 3, seed: int | None = None
    ) -> tuple[list[bytes], bytes]:
        """Split a vector into shares of which all but one are seeds of 32 bytes.

        Parameters
        ----------
        vector, parties, seed
            As for :meth:`share`.

        Returns
        -------
        seeds : list of bytes
            m - 1 seeds; :meth:`_expand` makes shares of them.
        packed : bytes
            The last share, as :meth:`_pack` writes it.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the vector does not contain elements, or there are fewer than two parties.

        Examples
        --------
        >>> field = PrimeField.larger_than(1000)
        >>> seeds, packed = field._share_compressed([0] * 999 + [1], parties=2)
        >>> len(seeds[0]) + len(packed)
        1282
        >>> shares = [field._expand(seeds[0], 1000), field._unpack(packed, 1000)]
        >>> int(field.reconstruct(shares)[-1])
        1
        """
        count = _arguments.integer("parties", parties, least=2, most=_LARGEST)
        elements = self._vector("vector", vector)
        return self._core.share_compressed(elements, count, _arguments.seed(seed))

    def _expand(self, seed: bytes, length: int) -> Array:
        """Expand a seed into its share.

        Parameters
        ----------
        seed
            32 bytes.
        length
            The length of the share.

        Returns
        -------
        numpy.ndarray
            Elements: those of AES-256 in counter mode under the seed, by exact rejection.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the seed is not 32 bytes.
        """
        if not isinstance(seed, (bytes, bytearray)) or len(seed) != SEED_BYTES:
            raise _arguments.invalid(f"seed must be {SEED_BYTES} bytes", _arguments.Private(seed))
        return self._core.expand(bytes(seed), _length(length))

    def reconstruct(self, shares: npt.ArrayLike | Sequence[Array]) -> Array:
        """Add up all shares of a vector, or of a sum of vectors.

        Parameters
        ----------
        shares
            Elements, one share in each row, at least two. Pass all shares: fewer give only noise.

        Returns
        -------
        numpy.ndarray
            The vector.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If they are not elements, or not at least two rows of one length.
        """
        rows = self._rows("shares", shares)
        if len(rows) < 2:
            raise InvalidValueError(f"shares must be at least two, got {len(rows)}")
        return self._core.sum(rows)

    def _pack(self, values: npt.ArrayLike) -> bytes:
        """Write elements with :attr:`bits` bits each.

        Parameters
        ----------
        values
            Elements.

        Returns
        -------
        bytes
            Lowest bit first, padded with zero bits to whole bytes.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If they are no elements.

        Examples
        --------
        >>> PrimeField(7)._pack([1, 6, 3]).hex()
        'f100'
        """
        return self._core.pack(self._vector("values", values))

    def _unpack(self, data: bytes, length: int) -> Array:
        """Read elements that :meth:`_pack` wrote.

        Parameters
        ----------
        data
            The bytes.
        length
            How many elements there are.

        Returns
        -------
        numpy.ndarray
            Elements.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If the bytes are too few or too many, or hold something that is no element.
        """
        kinds = (bytes, bytearray, memoryview)
        _arguments.instance("data", data, kinds, "bytes", private=True)
        return self._core.unpack(bytes(data), _length(length))

    def _packed_size(self, length: int) -> int:
        """Return the number of bytes of some packed elements.

        Examples
        --------
        >>> PrimeField.larger_than(1000)._packed_size(1000)
        1250
        """
        return (_length(length) * self.bits + 7) // 8

    def _vector(self, argument: str, values: npt.ArrayLike) -> Array:
        # Here and not in the core, which takes no other arrays: short vectors come by the thousand.
        if (
            isinstance(values, np.ndarray)
            and values.dtype == self._dtype
            and values.ndim == 1
            and values.flags.c_contiguous
        ):
            return values  # the core checks the entries
        array = self._elements(values, argument)
        if array.ndim != 1:
            raise InvalidTypeError(f"{argument} must be one-dimensional, got shape {array.shape}")
        return array

    def _rows(self, argument: str, values: Any) -> Array:
        stacked = _arguments.as_array(argument, values, "vectors of one length", private=True)
        array = self._elements(stacked, argument)
        if array.ndim != 2:
            raise InvalidTypeError(
                f"{argument} must have a vector in each row, got shape {array.shape}"
            )
        return array

    def __reduce__(self) -> tuple[type[PrimeField], tuple[int]]:
        """Pickle the modulus."""
        return PrimeField, (self.modulus,)

    def __repr__(self) -> str:
        """Show the modulus."""
        return f"PrimeField({self.modulus})"


def _length(length: int) -> int:
    return _arguments.integer("length", length, least=0, most=2**40)
