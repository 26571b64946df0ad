"""The options of every command, which refuse unknown ones before a command is imported.

``make public-api`` writes the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from turnout.cli.app import COMMANDS, Later

LIST = Path(__file__).parents[1] / "python/turnout/cli/usage.txt"


def later(commands: Iterable[Any]) -> Iterator[Later]:
    """All commands, those of groups too."""
    for command in commands:
        if isinstance(command, Later):
            yield command
        else:
            yield from later(command.commands.values())


def usage() -> str:
    """Write a line for each command: its name, flags, options with a value, and arguments."""
    lines = []
    for each in later(COMMANDS):
        command = each.command()
        words: dict[bool, list[str]] = {True: [], False: []}
        for parameter in command.params:
            if parameter.param_type_name == "option":
                words[parameter.is_flag] += parameter.opts
                words[True] += parameter.secondary_opts
        pieces = command.collect_usage_pieces(typer.Context(command, info_name=each.name))
        arguments = [piece for piece in pieces if "OPTIONS" not in piece]
        parts = [" ".join(part) for part in (words[True], words[False], arguments)]
        lines.append("\t".join([f"{each.module}.{each.name}", *parts]) + "\n")
    return "".join(lines)


if __name__ == "__main__":
    LIST.write_text(usage(), encoding="utf-8")
