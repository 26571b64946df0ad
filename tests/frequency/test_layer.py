"""What is asked of a person knows nothing of what is built on it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import turnout

ROOT = Path(turnout.__file__).parent

ABOVE = {
    *("cli", "datasets", "distributed", "federated", "pipeline", "planning", "ray", "reporting"),
    *("reproduce", "samplers", "weighting"),
}


def imported(path: Path) -> Iterator[str]:
    """All that a file imports, in functions and for type checkers too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_no_file_of_frequency_imports_what_is_built_on_it() -> None:
    files = sorted((ROOT / "frequency").rglob("*.py"))
    assert len(files) > 50
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in imported(path)
        if name.startswith("turnout.") and name.split(".")[1] in ABOVE
    ]
    assert found == []


def test_every_layer_above_is_there() -> None:
    assert {name for name in ABOVE if not (ROOT / name).is_dir()} == set()
