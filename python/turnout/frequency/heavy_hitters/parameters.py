"""Heavy hitters: the parameters of a search."""

from __future__ import annotations

import math
from typing import Any

from turnout import _arguments
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.attributes.parameters import OracleChoice
from turnout.frequency.candidates import named_oracle
from turnout.frequency.choice import make_oracle
from turnout.frequency.heavy_hitters.prefixes import MOST_CANDIDATES
from turnout.frequency.heavy_hitters.values import IntegerValues, TextValues, Values

#: Prefixes of the first round have at most so many bits more than those of others grow by.
_FIRST = 5


class SearchParameters:
    """What is searched, and how; checked. See :class:`HeavyHitters`."""

    def __init__(
        self,
        epsilon: float,
        *,
        bits: int | None = None,
        length: int | None = None,
        alphabet: str | None = None,
        oracle: OracleChoice = "auto",
        step: int = 4,
        keep: int = 512,
        family_wise_error: float = 0.05,
        confirm: bool = True,
    ) -> None:
        self._epsilon = _arguments.number("epsilon", epsilon)
        if not 0.0 < self._epsilon < math.inf:
            raise _arguments.invalid("epsilon must be a finite number above 0", self._epsilon)
        if (bits is None) == (length is None):
            raise InvalidValueError(
                "exactly one of bits, for whole numbers, and length, for texts, must be given"
            )
        if bits is not None and alphabet is not None:
            raise InvalidValueError("alphabet belongs to texts: give length instead of bits")
        self._values: Values = (
            IntegerValues(bits) if bits is not None else TextValues(length or 0, alphabet)
        )
        self._step = _arguments.integer("step", step, least=1, most=20)
        self._keep = _arguments.integer("keep", keep, least=1, most=MOST_CANDIDATES)
        if self._keep << self._step > MOST_CANDIDATES:
            raise InvalidValueError(
                f"keep times 2^step must be at most {MOST_CANDIDATES} candidates, got keep = "
                f"{self._keep} and step = {self._step}"
            )
        self._error = _arguments.confidence("family_wise_error", family_wise_error)
        _arguments.instance("confirm", confirm, bool, "True or False")
        self._confirm = confirm
        self._oracle = oracle
        make_oracle("oracle", oracle, self._epsilon, Domain.from_integers(2))

    @property
    def epsilon(self) -> float:
        """The privacy parameter of the whole protocol, in nats: a node reports once."""
        return self._epsilon

    @property
    def values(self) -> Values:
        """The kind of values."""
        return self._values

    @property
    def oracle(self) -> OracleChoice:
        """What randomizes."""
        return self._oracle

    @property
    def step(self) -> int:
        """By how many bits the prefixes grow in a round."""
        return self._step

    @property
    def keep(self) -> int:
        """The largest number of prefixes that are kept."""
        return self._keep

    @property
    def family_wise_error(self) -> float:
        """How likely a round keeps any prefix that nobody of its group holds, at most."""
        return self._error

    @property
    def confirm(self) -> bool:
        """Whether a last group confirms what was found."""
        return self._confirm

    @property
    def first(self) -> int:
        """How many bits the prefixes of the first round have."""
        return min(self._step + min((self._keep - 1).bit_length(), _FIRST), self._values.bits)

    @property
    def extensions(self) -> int:
        """In how many rounds prefixes grow."""
        return 1 + math.ceil((self._values.bits - self.first) / self._step)

    @property
    def groups(self) -> int:
        """The number of groups: of rounds, if something is found."""
        return self.extensions + self._confirm

    def to_dict(self) -> dict[str, Any]:
        """Name the arguments of the constructor, in terms of JSON.

        Raises
        ------
        InvalidTypeError
            If what randomizes is no oracle of turnout, which has a name.
        """
        kind = self._values.to_dict()
        return {
            "epsilon": self._epsilon,
            "bits": kind.get("bits"),
            "length": kind.get("length"),
            "alphabet": kind.get("alphabet"),
            "oracle": named_oracle("oracle", self._oracle),
            "step": self._step,
            "keep": self._keep,
            "family_wise_error": self._error,
            "confirm": self._confirm,
        }
