"""A directive that writes the reference of the command line from the commands themselves.

``.. turnout-commands::`` makes a section of every command: its usage, its help, a table of its
arguments and options.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from rich.text import Text
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles
from typer.main import get_command

from turnout.cli.app import app


def _plain(text: str | None) -> str:
    """Take the markup of the terminal out of a text, and escape that of the page."""
    plain = re.sub(r"([\\*`|])", r"\\\1", Text.from_markup(text or "").plain)
    return re.sub(r"(?<![\w-])(--[a-z]+(?:-[a-z]+)*)", r"``\1``", plain)


def _paragraphs(help_text: str | None) -> Iterator[str]:
    """Write a command's help: lines that begin with the program's name are examples."""
    for paragraph in (help_text or "").replace("\b", "").split("\n\n"):
        lines = Text.from_markup(paragraph.strip("\n")).plain.split("\n")
        if lines[0].startswith("turnout "):
            yield ".. code-block:: text"
            yield ""
            yield f"   {lines[0]}"
            yield from (f"       {line.strip()}" for line in lines[1:])
        else:
            yield _plain(paragraph).strip()
        yield ""


def _default(parameter: Any) -> str:
    """Say what an option is if it is left out, where that is worth saying."""
    value = parameter.default
    if parameter.required:
        return " Required."
    if value in (None, False, (), []) or callable(value):
        return ""
    return f" Default: {_plain(str(getattr(value, 'value', value)))}."


def _parameters(command: Any, context: Any) -> Iterator[str]:
    """Write a table of the arguments and options of a command that have something to say."""
    rows = [one for one in command.params if one.name != "help" and getattr(one, "help", None)]
    if not rows:
        return
    yield from (".. list-table::", "   :widths: 32 68", "")
    for one in rows:
        metavar = one.make_metavar(context)
        names = ", ".join(f"``{option}``" for option in [*one.opts, *one.secondary_opts])
        if one.param_type_name == "argument":
            names = f"``{metavar}``"
        elif not one.is_flag:
            names += f" ``{metavar}``"
        yield f"   * - {names}"
        yield f"     - {_plain(one.help)}{_default(one)}"
    yield ""


def _section(command: Any, path: str, underline: str) -> Iterator[str]:
    """Write the section of a command, and those of the commands below it."""
    context = command.make_context(path, [], resilient_parsing=True)
    command = context.command  # itself, and not what stands for it until it is chosen
    yield from (path, underline * len(path), "")
    usage = " ".join(piece for piece in command.collect_usage_pieces(context) if piece)
    yield from (".. code-block:: text", "", f"   {path} {usage}", "")
    yield from _paragraphs(command.help)
    yield from _parameters(command, context)
    for name, below in getattr(command, "commands", {}).items():
        yield from _section(below, f"{path} {name}", "~")


class Commands(SphinxDirective):
    """Sections of all commands of ``turnout``."""

    def run(self) -> list[nodes.Node]:
        """Write the sections as text, and have them parsed in the page."""
        lines: list[str] = []
        for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
            lines.extend(_section(command, f"turnout {name}", "-"))
        container = nodes.section()
        container.document = self.state.document
        nested_parse_with_titles(self.state, StringList(lines, source="turnout.cli"), container)
        return container.children


def setup(application: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    application.add_directive("turnout-commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
