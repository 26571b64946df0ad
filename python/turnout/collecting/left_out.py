"""What is left out of a collection, and why: counted where it happens, and kept from there on.

A row without an answer can be left out, or a second row of a person, or a message that cannot be
read. Each is counted where it is read. The counts go along with the reports, into the header of
their file, from there into the tally and its estimates, and stand on pages, in tables of numbers
and in JSON. Where collections are added up, so are they.

They are exact counts, and nothing protects them: whoever sees a report file, a tally or a page sees
how many people left a question open, and with groups how many in each group. Where that must not
be known, leaving an answer open must be a label of its own, which is randomized as all others are.
"""

from __future__ import annotations

import operator
from dataclasses import asdict, astuple, dataclass, fields
from typing import Any, Final

from turnout import _arguments
from turnout.errors import CorruptDataError, TurnoutError

#: What is left out for each reason: one, and several.
_WORDS: Final = {
    "unanswered": ("without an answer", "without an answer"),
    "ungrouped": ("without a group", "without a group"),
    "duplicates": ("further row of a person", "further rows of a person"),
    "refused": ("refused message", "refused messages"),
    "absent": ("row of a part that is not there", "rows of parts that are not there"),
}


@dataclass(frozen=True)
class LeftOut:
    """How many rows or messages do not count in a collection, by reason.

    They are in no other number: neither among the nodes nor among the reports. Exact, and not
    protected.

    Parameters
    ----------
    unanswered
        Rows without an answer. Of messages, where everyone takes part, people who were asked and of
        whom none counts.
    ungrouped
        Rows without a group, whether they have an answer or not.
    duplicates
        Further rows, or reports, of a person who has one that counts.
    refused
        Messages that were refused. Nobody can tell whose they are: perhaps of somebody who is
        without an answer, perhaps of nobody.
    absent
        Rows of a job of which the parts are not there, and which is counted all the same.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a number is no whole number from 0 to 2^64 - 1.

    Examples
    --------
    >>> left_out = LeftOut(unanswered=20) + LeftOut(unanswered=3, duplicates=5)
    >>> print(left_out)
    23 without an answer, 5 further rows of a person
    >>> left_out.total, left_out.people, bool(LeftOut())
    (28, 23, False)
    """

    unanswered: int = 0
    ungrouped: int = 0
    duplicates: int = 0
    refused: int = 0
    absent: int = 0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for field in fields(self):
            number = _arguments.integer(
                field.name, getattr(self, field.name), least=0, most=2**64 - 1
            )
            object.__setattr__(self, field.name, number)

    @property
    def total(self) -> int:
        """How many rows and messages are left out."""
        return sum(astuple(self))

    @property
    def people(self) -> int:
        """How many are left out of whom nothing counts."""
        return self.unanswered + self.ungrouped

    def __bool__(self) -> bool:
        """Whether anything is left out."""
        return self.total > 0

    def __add__(self, other: LeftOut) -> LeftOut:
        """Add what is left out of another collection, of other people."""
        if not isinstance(other, LeftOut):
            return NotImplemented
        return LeftOut(*map(operator.add, astuple(self), astuple(other)))

    def __str__(self) -> str:
        """Say how many, and why."""
        numbers = asdict(self).items()
        said = [f"{number:,} {_WORDS[reason][number > 1]}" for reason, number in numbers if number]
        return ", ".join(said) or "none"

    def to_dict(self) -> dict[str, int]:
        """Describe the numbers in terms of JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, description: Any) -> LeftOut:
        """Rebuild them from :meth:`to_dict`.

        Raises
        ------
        CorruptDataError
            If they are none.
        """
        if isinstance(description, dict) and description.keys() == NOTHING.to_dict().keys():
            try:
                return cls(**description)
            except TurnoutError:
                pass
        raise CorruptDataError(
            f"not the numbers of what is left out: {_arguments.shown(description)}"
        )


#: Nothing is left out.
NOTHING: Final = LeftOut()
