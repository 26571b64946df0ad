"""No files import each other in a circle, nor anything of ours inside a function.

That a layer imports only those below it is a contract of import-linter, in ``pyproject.toml``.
"""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import turnout
import turnout_reproduce

ROOTS = [Path(package.__path__[0]) for package in (turnout, turnout_reproduce)]


def module(path: Path, root: Path) -> str:
    parts = path.relative_to(root.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, files: set[str]) -> set[str]:
    """Our modules that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            # A name may be a module of the package.
            inner = {f"{node.module}.{each.name}" for each in node.names} & files
            found |= inner or {node.module} & files
    return found - {"turnout"}


def test_no_files_import_each_other_in_a_circle() -> None:
    # What a package imports when it is asked for stands in its stub.
    paths = {
        module(path, root): path
        for root in ROOTS
        for path in [*root.rglob("*.py"), *root.rglob("__init__.pyi")]
    }
    arrows = {name: imports(path, set(paths)) for name, path in paths.items()}
    assert sum(map(len, arrows.values())) > 1000
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        raise AssertionError(f"a circle: {' -> '.join(error.args[1])}") from None


def named(tree: ast.AST) -> set[str]:
    """What a file gives a name to: in classes, functions, attributes, ``__slots__``."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: root.name)
def test_no_file_uses_a_private_name_of_another_package(root: Path) -> None:
    # What begins with an underscore is private to the package: its files may share it.
    trees = [ast.parse(path.read_text("utf-8")) for one in ROOTS for path in one.rglob("*.py")]
    # Of named tuples and of matplotlib, which offer no other name.
    own = {"_replace", "_left_title"}.union(*map(named, trees))
    used = []
    for path in sorted(root.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
                continue
            mine = ast.unparse(node.value) in ("self", "cls", "super()")
            if not mine and not node.attr.endswith("__") and node.attr not in own:
                used.append(f"{path.relative_to(root)}:{node.lineno} {ast.unparse(node)}")
    assert not used, used


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: root.name)
def test_no_function_imports_a_module_of_ours(root: Path) -> None:
    for package in sorted(path for path in root.iterdir() if path.is_dir()):
        inside = [
            f"{path.relative_to(root)}:{node.lineno}"
            for path in package.rglob("*.py")
            for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
            for node in ast.walk(function)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("turnout")
        ]
        # The command line loads a command where it is chosen.
        if package.name != "cli":
            assert not inside, inside
