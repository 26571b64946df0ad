"""The options of every command, which refuse unknown ones before a command is imported.

``make public-api`` writes the list.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer

from turnout.cli.app import COMMANDS, Later

LIST = Path(__file__).parents[1] / "python/turnout/cli/usage.json"


def later(commands: Iterable[Any]) -> Iterator[Later]:
    """All commands, those of groups too."""
    for command in commands:
        if isinstance(command, Later):
            yield command
        else:
            yield from later(command.commands.values())


def usage() -> str:
    """Describe the options of all commands."""
    found = {}
    for each in later(COMMANDS):
        command = each.command()
        context = typer.Context(command, info_name=each.name)
        options: dict[bool, list[str]] = {True: [], False: []}
        for parameter in command.params:
            if parameter.param_type_name == "option":
                options[parameter.is_flag].append(" ".join(parameter.opts))
                options[True] += parameter.secondary_opts
        arguments = [
            piece for piece in command.collect_usage_pieces(context) if "OPTIONS" not in piece
        ]
        found[f"{each.module}.{each.name}"] = {
            "arguments": " ".join(arguments),
            "flags": options[True],
            "options": options[False],
        }
    return json.dumps(found, indent=1) + "\n"


if __name__ == "__main__":
    LIST.write_text(usage(), encoding="utf-8")
