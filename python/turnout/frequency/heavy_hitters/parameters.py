"""Heavy hitters: the parameters of a search."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from turnout import _arguments
from turnout._values import settle
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.attributes.parameters import OracleChoice
from turnout.frequency.candidates import named_oracle
from turnout.frequency.choice import make_oracle
from turnout.frequency.heavy_hitters.prefixes import MOST_CANDIDATES
from turnout.frequency.heavy_hitters.values import IntegerValues, TextValues, Values

#: Prefixes of the first round have at most so many bits more than those of others grow by.
_FIRST = 5


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SearchParameters:
    """What is searched, and how; checked. See :class:`HeavyHitters`."""

    #: The privacy parameter of the whole protocol, in nats: a node reports once.
    epsilon: float
    #: The kind of values.
    values: Values
    #: What randomizes.
    oracle: OracleChoice
    #: By how many bits the prefixes grow in a round.
    step: int
    #: The largest number of prefixes that are kept.
    keep: int
    #: How likely a round keeps any prefix that nobody of its group holds, at most.
    family_wise_error: float
    #: Whether a last group confirms what was found.
    confirm: bool

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
        total = _arguments.number("epsilon", epsilon)
        if not 0.0 < total < math.inf:
            raise _arguments.invalid("epsilon must be a finite number above 0", total)
        if (bits is None) == (length is None):
            raise InvalidValueError(
                "exactly one of bits, for whole numbers, and length, for texts, must be given"
            )
        if bits is not None and alphabet is not None:
            raise InvalidValueError("alphabet belongs to texts: give length instead of bits")
        settle(
            self,
            epsilon=total,
            values=IntegerValues(bits) if bits is not None else TextValues(length or 0, alphabet),
            oracle=oracle,
            step=_arguments.integer("step", step, least=1, most=20),
            keep=_arguments.integer("keep", keep, least=1, most=MOST_CANDIDATES),
            family_wise_error=_arguments.confidence("family_wise_error", family_wise_error),
            confirm=_arguments.instance("confirm", confirm, bool, "True or False"),
        )
        if self.keep << self.step > MOST_CANDIDATES:
            raise InvalidValueError(
                f"keep times 2^step must be at most {MOST_CANDIDATES} candidates, got keep = "
                f"{self.keep} and step = {self.step}"
            )
        make_oracle("oracle", oracle, self.epsilon, Domain.from_integers(2))

    @property
    def first(self) -> int:
        """How many bits the prefixes of the first round have."""
        return min(self.step + min((self.keep - 1).bit_length(), _FIRST), self.values.bits)

    @property
    def extensions(self) -> int:
        """In how many rounds prefixes grow."""
        return 1 + math.ceil((self.values.bits - self.first) / self.step)

    @property
    def groups(self) -> int:
        """The number of groups: of rounds, if something is found."""
        return self.extensions + self.confirm

    def to_dict(self) -> dict[str, Any]:
        """Name the arguments of the constructor, in terms of JSON.

        Raises
        ------
        InvalidTypeError
            If what randomizes is no oracle of turnout, which has a name.
        """
        kind = self.values.to_dict()
        return {
            "epsilon": self.epsilon,
            "bits": kind.get("bits"),
            "length": kind.get("length"),
            "alphabet": kind.get("alphabet"),
            "oracle": named_oracle("oracle", self.oracle),
            "step": self.step,
            "keep": self.keep,
            "family_wise_error": self.family_wise_error,
            "confirm": self.confirm,
        }
