"""``turnout aggregate``: counts under secret sharing, a whole round in one process."""

from __future__ import annotations

from turnout.cli.aggregate.command import aggregate

__all__ = ["aggregate"]
