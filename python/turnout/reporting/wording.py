"""What a report asks of every kind of question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from turnout.collecting.keys import shown_part
from turnout.collecting.plan import Plan
from turnout.reporting.contents import Contents


@dataclass(frozen=True)
class Content:
    """A table, and what is said of it.

    Attributes
    ----------
    caption
        What the table shows.
    head, rows
        The names of the columns, and the cells.
    names
        How many of the first columns name the row.
    of
        How many rows there are, if more than these.
    lead
        What is said before the picture, one sentence an entry.
    words
        What is said below the table.
    """

    caption: str
    head: Sequence[object]
    rows: Sequence[Sequence[object]]
    names: int = 1
    of: int | None = None
    lead: Sequence[str] = ()
    words: str = ""


class Wording(Protocol):
    """How a kind of question is told."""

    #: What the estimates are, as the words beside pictures begin.
    what: ClassVar[str]

    #: How the note below groups begins.
    of_a_group: ClassVar[str]

    #: What intervals hold for at once.
    together: ClassVar[Mapping[str, str]]

    def card(self, plan: Plan) -> tuple[str, str]:
        """Say which answers could be given: what is written large, and words below it."""

    def estimate(self, contents: Contents) -> Content:
        """Tell the estimates of all people."""

    def groups(self, contents: Contents, records: Sequence[dict[str, Any]]) -> Content:
        """Tell the estimates of groups."""

    def draws_groups(self, plan: Plan) -> bool:
        """Whether there is a picture of groups."""

    def draw(self, estimate: Any, level: float, simultaneous: str | None) -> Any:
        """Draw the estimates of all people."""

    def making(self, plan: Plan) -> list[tuple[str, str]]:
        """Say how reports are made, for those who check them."""

    def fingerprints(self, plan: Plan) -> list[tuple[str, str]]:
        """Give what tells the answers that could be given from others.

        Raises
        ------
        InvalidTypeError
            If a label is one that no file can hold.
        """


def group_key(record: dict[str, Any]) -> tuple[str, ...]:
    """Write the columns of a group."""
    return tuple(shown_part(part) for part in record["group"].values())
