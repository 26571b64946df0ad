"""Accounting stands below all kinds of questions: it imports nothing of theirs, nor in circles."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from turnout import accounting

FILES = {path.stem: path for path in Path(accounting.__path__[0]).glob("*.py")}
PACKAGE = "turnout.accounting"

#: What is below accounting, beside the modules whose names begin with an underscore.
BELOW = {"domain", "errors", "participation", "signing", "metrics"}


def imported(path: Path) -> Iterator[str]:
    """Every module of turnout that a file imports, within functions and for checkers too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            if node.module in ("turnout", PACKAGE):
                yield from (f"{node.module}.{name.name}" for name in node.names)
            elif node.module.startswith("turnout."):
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.startswith("turnout"))


def test_accounting_imports_nothing_above_itself() -> None:
    for path in FILES.values():
        for module in imported(path):
            first = module.split(".")[1]
            assert first == "accounting" or first.startswith("_") or first in BELOW, (path, module)


def test_no_files_of_accounting_import_each_other_in_a_circle() -> None:
    arrows = {
        name: {module.split(".")[2] for module in imported(path) if module.startswith(PACKAGE)}
        for name, path in FILES.items()
    }
    assert set().union(*arrows.values()) <= set(FILES)
    assert set(TopologicalSorter(arrows).static_order()) == set(FILES)
