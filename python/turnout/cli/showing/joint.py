"""Shows how those who gave one answer answered another question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from turnout.cli.showing.frequencies import share_table
from turnout.cli.showing.shown import Shown, Wish, counts_of, cut, json_group, plain, rows_of
from turnout.cli.tables import percent
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.joint import JointTally

__all__ = ["estimate_conditional"]


def estimate_conditional(tally: Any, wish: Wish, given: Sequence[str], of: str | None) -> Shown:
    """Estimate the shares of the answers to one question among those who gave each of others.

    Raises
    ------
    InvalidTypeError
        If the tally is not one of a joint table.
    InvalidValueError
        If it is not clear which question is meant, or one is not in the table.
    """
    if not isinstance(tally, JointTally):
        raise InvalidTypeError(
            f"given (--given) needs the tally of a joint table, got one of {tally.oracle!r}"
        )
    estimate = tally.estimate(wish.method)
    others = [name for name in estimate.questions if name not in given]
    if of is None and len(others) != 1:
        raise InvalidValueError(
            f"of (--of) must say which question is meant: one of {', '.join(map(repr, others))}"
        )
    shares = cut(estimate.conditional(others[0] if of is None else of, given=tuple(given)), wish)
    records = shares.to_records(wish.level, simultaneous=wish.simultaneous)

    def body(console: Console) -> None:
        shown = [{**record, "frequency": record["share"]} for record in records]
        console.print(share_table(tuple(shares.given), shown, wish.level))

    scope = "each share by itself" if wish.simultaneous is None else "all shares at once"
    return Shown(
        lambda: {
            **counts_of(estimate, estimate.method),
            "given": list(shares.given),
            "of": shares.of,
            "interval": {
                "level": wish.level, "simultaneous": wish.simultaneous, "method": "fieller",
            },
            "plan": estimate.plan.to_dict(),
            "estimates": [
                {key: json_group(value) if key == "group" else plain(value)
                 for key, value in record.items()}
                for record in records
            ],
        },
        lambda: shares.to_arrow(wish.level, simultaneous=wish.simultaneous),
        [
            *rows_of(estimate, estimate.method),
            ("shares", f"of {shares.of} given {', '.join(shares.given)}"),
            ("interval", f"{percent(wish.level)}, Fieller's, for {scope}"),
        ],
        body,
        lambda: shares.plot(level=wish.level, simultaneous=wish.simultaneous).figure,
    )  # fmt: skip
