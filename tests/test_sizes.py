"""Files have one subject and are short; so are the functions of commands."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.usage import later

from turnout.cli.app import COMMANDS, Later

ROOT = Path(__file__).parents[1]

#: A file has at most so many lines.
MOST_LINES = 500

#: Files that have more, and why.
LONGER = {
    "python/turnout/_core.pyi": "the stub of one compiled module",
}

#: A function of a command line has at most so many lines.
MOST_LINES_OF_FUNCTION = 60

#: A command has at most so many parameters; those that belong together are an object.
MOST_PARAMETERS = 12


def sources() -> Iterator[Path]:
    """All files of ours."""
    for folder in ("benches", "examples", "fuzz", "python", "reproduce", "rust", "tests"):
        for kind in ("*.py", "*.pyi", "*.rs"):
            yield from (ROOT / folder).rglob(kind)


def test_no_file_is_long() -> None:
    sizes = {
        path.relative_to(ROOT).as_posix(): len(path.read_text("utf-8").splitlines())
        for path in sources()
        if "target" not in path.parts
    }
    assert len(sizes) > 700
    long = {name: size for name, size in sizes.items() if size > MOST_LINES}
    assert long.keys() == LONGER.keys(), f"split by subject: {sorted(long.keys() ^ LONGER.keys())}"


def lines_of(function: ast.FunctionDef) -> int:
    """The lines from ``def`` to the last, without those of the docstring."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        lines -= (first.end_lineno or 0) - first.lineno + 1
    return lines


def test_lines_are_counted_without_the_docstring() -> None:
    lines = ["@wrapped", "def say(", "    it: str,", ") -> None:"]
    lines += ['    """Say it.', "", "    Aloud.", '    """', "    print(it)"]
    (function,) = ast.parse("\n".join(lines)).body
    assert isinstance(function, ast.FunctionDef)
    assert lines_of(function) == 4


def test_no_function_of_the_command_line_is_long() -> None:
    long, seen = [], 0
    for path in (ROOT / "python/turnout/cli").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                seen += 1
                if lines_of(node) > MOST_LINES_OF_FUNCTION:
                    long.append(f"{path.relative_to(ROOT)}: {node.name} has {lines_of(node)} lines")
    assert not long, "\n".join(long)
    assert seen > 300


@pytest.mark.parametrize("command", list(later(COMMANDS)), ids=lambda command: command.name)
def test_no_command_has_many_parameters(command: Later) -> None:
    parameters = inspect.signature(inspect.unwrap(command.function())).parameters
    assert 0 < len(parameters) <= MOST_PARAMETERS
