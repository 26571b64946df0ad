"""What packages show, and that it is imported when it is first used and not before."""

from __future__ import annotations

import ast
import importlib
import json
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import turnout as tn

#: The public modules, of which users complete names.
MODULES = [
    "turnout",
    *(f"turnout.{name}" for name in tn.__all__ if isinstance(getattr(tn, name), ModuleType)),
]


def has_stub(package: str) -> bool:
    place = importlib.import_module(package).__file__
    return place is not None and Path(place).with_suffix(".pyi").exists()


#: The packages that import names later: their stubs say which.
LATER = [name for name in MODULES if has_stub(name)]


def printed(program: str) -> Any:
    """The JSON that a Python of its own prints for a program."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600
    )
    return json.loads(done.stdout)


def test_importing_turnout_imports_what_it_says_and_no_more() -> None:
    program = "import json, sys, turnout; print(json.dumps(sorted(sys.modules)))"
    loaded = printed(program)
    assert [name for name in loaded if name.startswith("turnout")] == ["turnout", "turnout._public"]
    # Most of the time that it takes went to these two, for a stub that open() reads as well.
    bare = printed("import json, sys; print(json.dumps(sorted(sys.modules)))")
    assert {"numpy", "scipy", "pathlib", "typing"}.isdisjoint(set(loaded) - set(bare))


@pytest.mark.parametrize("module", MODULES)
def test_a_listing_shows_the_public_names_and_nothing_else(module: str) -> None:
    found = importlib.import_module(module)
    assert dir(found) == sorted(found.__all__)
    assert [name for name in dir(found) if not hasattr(found, name)] == []


def test_a_star_takes_all_public_names() -> None:
    taken: dict[str, Any] = {}
    exec("from turnout import *", taken)
    del taken["__builtins__"]
    assert sorted(taken) == sorted(tn.__all__)
    assert taken["Domain"] is tn.Domain
    assert taken["planning"] is tn.planning


def test_public_classes_and_functions_are_pickled_by_their_names() -> None:
    things = [getattr(tn, name) for name in tn.__all__]
    named = [thing for thing in things if hasattr(thing, "__qualname__")]
    assert len(named) > 30
    assert pickle.loads(pickle.dumps(named)) == named


@pytest.mark.parametrize("package", LATER)
def test_type_checkers_see_what_is_imported_later(package: str) -> None:
    found = importlib.import_module(package)
    assert found.__file__ is not None
    stub = ast.parse(Path(found.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    seen = {}
    for statement in stub.body:
        assert isinstance(statement, ast.ImportFrom)
        assert statement.module is not None
        for alias in statement.names:
            # Without it a name is no name of the package.
            assert alias.asname == alias.name
            inner = f"{statement.module}.{alias.name}"
            home = importlib.import_module(inner if inner in sys.modules else statement.module)
            seen[alias.name] = home if home.__name__ == inner else getattr(home, alias.name)
    assert seen == {name: getattr(found, name) for name in found.__all__}


@pytest.mark.parametrize("package", LATER)
def test_an_unknown_name_is_no_attribute(package: str) -> None:
    found = importlib.import_module(package)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        found.nothing  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec(f"from {package} import nothing")


@pytest.mark.parametrize(
    "first", ["accounting", "collecting.plan", "frequency", "collecting.report_messages"]
)
def test_a_module_can_be_imported_before_those_that_import_it(first: str) -> None:
    program = f"import json, turnout.{first} as module; print(json.dumps(module.__name__))"
    assert printed(program)
