"""Values as strings of bits, most significant first, so that they have prefixes."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from turnout import _arguments, _columns
from turnout._documents import object_schema
from turnout._types import Integers
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

#: (n, width) uint8: the bits of n values, eight to a byte, zeros after the last.
Rows = npt.NDArray[np.uint8]

_MOST_BITS = 4096

#: How a number of up to 64 bits is written.
_DIGITS = re.compile(r"0|[1-9][0-9]{0,19}", re.ASCII)


@dataclass(frozen=True)
class IntegerValues:
    """Whole numbers of a fixed number of bits.

    Parameters
    ----------
    size
        The number of bits, from 1 to 64: the values are ``0 .. 2^size - 1``.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If the size is out of range.

    Examples
    --------
    >>> IntegerValues(12).encode([0xABC]).tolist()
    [[171, 192]]
    """

    size: int

    def __post_init__(self) -> None:
        """Check the size."""
        object.__setattr__(self, "size", _arguments.integer("bits", self.size, least=1, most=64))

    @property
    def bits(self) -> int:
        """The number of bits of a value."""
        return self.size

    def encode(self, values: Any) -> Rows:
        """Convert whole numbers to rows of bits.

        Raises
        ------
        InvalidTypeError
            If they are not integers in one dimension.
        InvalidValueError
            If one is negative or has too many bits.
        """
        array = _arguments.vector(
            "values", values, "an array of integers", "integers", "iu", private=True
        )
        wrong = array < 0
        if self.size < 64:
            wrong |= array >= 2**self.size
        expected = f"an integer from 0 to 2^{self.size} - 1"
        _arguments.refuse_entries("values", array, wrong, expected, private=True)
        shifted = array.astype(np.uint64) << np.uint64(64 - self.size)
        width = (self.size + 7) // 8
        return np.ascontiguousarray(shifted.astype(">u8").view(np.uint8).reshape(-1, 8)[:, :width])

    def number(self, value: Any) -> int:
        """Check one whole number.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If it is not a whole number, or has too many bits.
        """
        plain = value.item() if isinstance(value, np.generic) else value
        found = _columns.whole_number(plain, 2**self.size)
        if found is None:
            raise _arguments.invalid(
                f"value must be an integer from 0 to 2^{self.size} - 1", _arguments.Private(value)
            )
        return found

    def parse(self, text: str) -> Any:
        """Parse text into a label: digits become a number, other text is kept."""
        return int(text) if _DIGITS.fullmatch(text) else text

    def decode(self, row: Rows) -> int:
        """Convert one row of bits to its number."""
        return int.from_bytes(row.tobytes(), "big") >> (8 * row.size - self.size)

    def shown(self, row: Rows, bits: int) -> str:
        """Show a prefix by its bits."""
        return "".join(map(str, np.unpackbits(row)[:bits])) + "*" * (self.size > bits)

    def possible(self, rows: Rows, bits: int) -> npt.NDArray[np.bool_]:
        """Return that every prefix is possible."""
        return np.ones(len(rows), dtype=np.bool_)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the kind."""
        return {"kind": "integers", "bits": self.size}

    def __str__(self) -> str:
        """Write which values are possible."""
        return f"whole numbers of {self.size} bits"


@dataclass(frozen=True)
class TextValues:
    """Texts of limited length, filled up with zeros.

    Parameters
    ----------
    length
        The largest length: in bytes of UTF-8, or in characters of the alphabet.
    alphabet
        The allowed characters, all different, without the null character: a character then takes as
        few bits as possible. None for any text as UTF-8.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    >>> words = TextValues(4, "abc")
    >>> words.bits, words.decode(words.encode(["cab"])[0])
    (8, 'cab')
    """

    length: int
    alphabet: str | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        length = _arguments.integer("length", self.length, least=1, most=_MOST_BITS // 8)
        object.__setattr__(self, "length", length)
        if self.alphabet is None:
            return
        _arguments.instance("alphabet", self.alphabet, str, "text, or None for UTF-8")
        repeated = sorted({each for each in self.alphabet if self.alphabet.count(each) > 1})
        if not self.alphabet or repeated:
            twice = f", with {', '.join(map(repr, repeated))} more than once" if repeated else ""
            raise InvalidValueError(
                "alphabet must be different characters, got "
                f"{_arguments.shown(self.alphabet)}{twice}"
            )
        if "\0" in self.alphabet:
            raise InvalidValueError("alphabet must not have the character 0, which marks the end")

    @property
    def symbol_bits(self) -> int:
        """How many bits a character of the alphabet or a byte takes."""
        return 8 if self.alphabet is None else len(self.alphabet).bit_length()

    @property
    def bits(self) -> int:
        """The number of bits of a value."""
        return self.length * self.symbol_bits

    def encode(self, values: Any) -> Rows:
        """Convert texts to rows of bits.

        Raises
        ------
        InvalidTypeError
            If they are not a column of texts.
        InvalidValueError
            If one is too long, or has a character that is not allowed.
        """
        pieces = []
        start, width = 0, (self.bits + 7) // 8
        pad = 8 * width - self.bits
        for factors in _columns.factorize(values):
            numbers = []
            for position, value in enumerate(factors.distinct):
                try:
                    numbers.append(self.number(value))
                except (InvalidTypeError, InvalidValueError) as error:
                    place = start + int(np.flatnonzero(factors.index == position)[0])
                    raise type(error)(f"values[{place}] {error}") from None
            packed = b"".join((each << pad).to_bytes(width, "big") for each in numbers)
            pieces.append(np.frombuffer(packed, np.uint8).reshape(-1, width)[factors.index])
            start += len(factors.index)
        return np.concatenate(pieces) if pieces else np.empty((0, width), dtype=np.uint8)

    def number(self, value: Any) -> int:
        """Convert one text to its bits, as a number.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If it is no text, is too long, or has a character that is not allowed.
        """
        codes, size = self._symbols(value), self.symbol_bits
        codes += [0] * (self.length - len(codes))
        if size == 8:
            return int.from_bytes(bytes(codes), "big")
        return int("".join(f"{code:0{size}b}" for code in codes), 2)

    def parse(self, text: str) -> str:
        """Parse text into a label: the text itself."""
        return text

    def _symbols(self, value: Any) -> list[int]:
        if not isinstance(value, str):
            raise _arguments.mistyped("must be text", _arguments.Private(value))
        if self.alphabet is None:
            unit = "bytes of UTF-8"
            try:
                codes = list(value.encode())
            except UnicodeEncodeError:
                raise InvalidValueError("cannot be written as UTF-8") from None
        else:
            unit = "characters"
            codes = [self.alphabet.find(character) + 1 for character in value]
            if 0 in codes:
                raise InvalidValueError(
                    f"must have characters of the alphabet {_arguments.shown(self.alphabet)} alone"
                )
        if len(codes) > self.length:
            raise InvalidValueError(f"must have at most {self.length} {unit}")
        if 0 in codes:
            raise InvalidValueError("must not have the character 0, which marks the end")
        return codes

    def _codes(self, rows: Rows, bits: int) -> Integers:
        """Return the symbols of prefixes; the last may be cut, and has zeros then: the smallest."""
        size = self.symbol_bits
        symbols = -(-bits // size)
        known = np.zeros((len(rows), symbols * size), np.uint8)
        known[:, :bits] = np.unpackbits(rows, axis=1)[:, :bits]
        return known.reshape(len(rows), symbols, size) @ (1 << np.arange(size)[::-1])

    def decode(self, row: Rows) -> str:
        """Convert one row of bits to its text."""
        return self._text([code for code in self._codes(row[None], self.bits)[0].tolist() if code])

    def _text(self, codes: list[int]) -> str:
        if self.alphabet is None:
            return bytes(codes).decode(errors="replace")
        return "".join(self.alphabet[code - 1] for code in codes)

    def shown(self, row: Rows, bits: int) -> str:
        """Show a prefix by its whole characters, and the bits of the next; no two are alike."""
        size = self.symbol_bits
        codes = self._codes(row[None], bits - bits % size)[0].tolist()
        if 0 in codes or bits == self.bits:
            return self._text([code for code in codes if code])
        if self.alphabet is None:
            # The bytes of a character that is cut count as bits.
            text, used = codecs.utf_8_decode(bytes(codes), "replace", False)
        else:
            text, used = self._text(codes), len(codes)
        return f"{text}*{''.join(map(str, np.unpackbits(row)[used * size : bits]))}"

    def possible(self, rows: Rows, bits: int) -> npt.NDArray[np.bool_]:
        """Return which prefixes are possible: nothing follows the end, and characters exist."""
        codes, whole = self._codes(rows, bits), bits // self.symbol_bits
        ends = codes == 0
        ends[:, whole:] = False
        ended = np.logical_or.accumulate(ends, axis=1)
        fine: npt.NDArray[np.bool_] = ~(ended & (codes != 0)).any(axis=1)
        if self.alphabet is not None:
            return fine & (codes <= len(self.alphabet)).all(axis=1)
        # Bytes below 128 are characters by themselves.
        for position in np.flatnonzero(fine & (codes[:, :whole] >= 0x80).any(axis=1)):
            text = bytes(codes[position, :whole].tolist()).rstrip(b"\0")
            decoder = codecs.getincrementaldecoder("utf-8")()
            try:
                decoder.decode(text, len(text) < whole or bits == self.bits)
            except UnicodeDecodeError:
                fine[position] = False
        return fine

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON description of the kind."""
        return {"kind": "text", "length": self.length, "alphabet": self.alphabet}

    def __str__(self) -> str:
        """Write which values are possible."""
        if self.alphabet is None:
            return f"texts of at most {self.length} bytes of UTF-8"
        return f"texts of at most {self.length} characters of {self.alphabet!r}"


#: A kind of values: each says how many bits they have, how they are written, and which prefixes.
Values = IntegerValues | TextValues


def values_from_dict(description: Any) -> Values:
    """Rebuild a kind of values from its description.

    Raises
    ------
    CorruptDataError
        If it does not describe a kind of values.
    """
    try:
        match description:
            case {"kind": "integers", "bits": int(bits), **rest} if not rest:
                return IntegerValues(bits)
            case {"kind": "text", "length": int(length), "alphabet": alphabet, **rest} if not rest:
                return TextValues(length, alphabet)
    except (InvalidTypeError, InvalidValueError) as error:
        raise CorruptDataError(f"not a kind of values: {error}") from error
    raise CorruptDataError(f"not a kind of values: {_arguments.shown(description)}")


def values_schema() -> dict[str, Any]:
    """Describe the descriptions of kinds of values as a JSON Schema."""
    kinds: list[dict[str, Any]] = [
        {"kind": {"const": "integers"}, "bits": {"type": "integer", "minimum": 1, "maximum": 64}},
        {
            "kind": {"const": "text"},
            "length": {"type": "integer", "minimum": 1},
            "alphabet": {"type": ["string", "null"]},
        },
    ]
    return {"oneOf": [object_schema(kind) for kind in kinds]}


def keys(rows: Rows, bits: int) -> npt.NDArray[np.bytes_]:
    """Return the first bits of each row as one comparable key."""
    width = (bits + 7) // 8
    cut = np.ascontiguousarray(rows[:, :width])
    if bits % 8:
        cut = cut.copy()
        cut[:, -1] &= np.uint8((0xFF << (8 - bits % 8)) & 0xFF)
    # All keys have the same width, so that zeros at the end, which NumPy leaves out, tell nothing.
    return cut.view(f"S{width}").ravel()
