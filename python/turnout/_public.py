"""The public names of a package, imported when they are first used."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterable


def named_in_stub(
    package: str, file: str
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Read the public names of a package from its stub, and import each when first used.

    Type checkers and editors read the stub ``__init__.pyi``, so the names are written there and
    nowhere else: ``from module import name as name``.

    Parameters
    ----------
    package, file
        ``__name__`` and ``__file__`` of the package.

    Returns
    -------
    tuple
        Its ``__all__``, ``__getattr__`` and ``__dir__``.

    Examples
    --------
    >>> import turnout.planning
    >>> names, get, listed = named_in_stub("turnout.planning", turnout.planning.__file__)
    >>> get("OracleChoice").__module__
    'turnout.planning.choice'
    >>> listed() == names == turnout.planning.__all__
    True
    """
    # Without pathlib and typing, which would be most of the time of "import turnout".
    with open(f"{file.removesuffix('.py')}.pyi", encoding="utf-8") as text:  # noqa: PTH123
        stub = ast.parse(text.read())
    homes = {
        each.name: statement.module
        for statement in stub.body
        if isinstance(statement, ast.ImportFrom) and statement.module is not None
        for each in statement.names
    }

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        if home == package:
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(home), name)

    names = sorted(homes)
    return names, get, listing(names)


def listing(public: Iterable[str]) -> Callable[[], list[str]]:
    """Return a ``__dir__`` for a module that lists only its public names.

    Examples
    --------
    >>> listing(["plan", "Domain"])()
    ['Domain', 'plan']
    """
    names = sorted(public)
    return lambda: list(names)
