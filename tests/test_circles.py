"""No files of a package import each other in a circle, nor anything of ours inside a function."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import turnout as tn

ROOT = Path(tn.__path__[0])
PACKAGES = ("distributed", "samplers")


def module(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_files_import_each_other_in_a_circle(package: str) -> None:
    files = {module(path): path for path in (ROOT / package).rglob("*.py")}
    arrows: dict[str, set[str]] = {}
    for name, path in files.items():
        found = arrows.setdefault(name, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                # A name may be a module of the package.
                inner = {f"{node.module}.{each.name}" for each in node.names} & set(files)
                found |= inner or {node.module} & set(files)
    assert sum(map(len, arrows.values())) > len(files)
    assert set(TopologicalSorter(arrows).static_order()) == set(files)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_function_imports_a_module_of_ours(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = [
            node
            for function in ast.walk(tree)
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
            for node in ast.walk(function)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("turnout")
        ]
        assert inside == [], path
