"""Counts of what is left out of a collection, by reason.

A row without an answer, a second row of a person, or an unreadable message can be left out. Each is
counted where it is read. The counts travel with the reports: into the header of their file, the
tally and its estimates. Pages, tables and JSON show them. Adding collections adds their counts.

The counts are exact, and nothing protects them. Anyone who sees a report file, a tally or a page
sees how many people left a question open, and with groups how many in each group. If that must stay
secret, make "no answer" a label, which is randomized like all others.
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
    """The numbers of rows or messages that do not count in a collection, by reason.

    They are in no other number: neither among the nodes nor among the reports. They are exact and
    not protected.

    Parameters
    ----------
    unanswered
        Rows without an answer. With messages, if everyone takes part: people who were asked but
        have no message that counts.
    ungrouped
        Rows without a group, whether they have an answer or not.
    duplicates
        Duplicate rows or reports of a person who has one that counts.
    refused
        Messages that were refused. Their senders are unknown: a person without an answer, or
        nobody.
    absent
        Rows in missing parts of a job that is counted all the same.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If a number is not a whole number from 0 to 2^64 - 1.

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
        """The number of all rows and messages that are left out."""
        return sum(astuple(self))

    @property
    def people(self) -> int:
        """The number of people left out of whom nothing counts."""
        return self.unanswered + self.ungrouped

    def __bool__(self) -> bool:
        """Return whether anything is left out."""
        return self.total > 0

    def __add__(self, other: LeftOut) -> LeftOut:
        """Add the counts of another collection, of other people."""
        if not isinstance(other, LeftOut):
            return NotImplemented
        return LeftOut(*map(operator.add, astuple(self), astuple(other)))

    def __str__(self) -> str:
        """Write the numbers and the reasons."""
        numbers = asdict(self).items()
        said = [f"{number:,} {_WORDS[reason][number > 1]}" for reason, number in numbers if number]
        return ", ".join(said) or "none"

    def to_dict(self) -> dict[str, int]:
        """Return a JSON description of the numbers."""
        return asdict(self)

    @classmethod
    def from_dict(cls, description: Any) -> LeftOut:
        """Rebuild the numbers from :meth:`to_dict`.

        Raises
        ------
        CorruptDataError
            If the description is not one of such numbers.
        """
        if isinstance(description, dict) and description.keys() == NOTHING.to_dict().keys():
            try:
                return cls(**description)
            except TurnoutError:
                pass
        raise CorruptDataError(f"not the numbers of left-out rows: {_arguments.shown(description)}")


#: Nothing is left out.
NOTHING: Final = LeftOut()
