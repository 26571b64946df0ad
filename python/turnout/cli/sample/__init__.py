"""``turnout sample``: one private record for each user of a file."""

from turnout.cli.sample.command import sample

__all__ = ["sample"]
