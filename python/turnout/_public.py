"""What a package shows: names imported when they are first used, and nothing but public ones."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def imported_later(
    package: str, names: Mapping[str, Iterable[str]], public: Iterable[str] = ()
) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a package that imports a public name when it is asked for.

    Parameters
    ----------
    package
        Name of the package.
    names
        Of each module the names that come from it.
    public
        All public names of the package: those that come from no module are modules themselves.

    Examples
    --------
    >>> get = imported_later("os", {"statistics": ["fmean"]}, ["fmean", "path"])
    >>> get("fmean").__name__
    'fmean'
    >>> get("path").__name__ in ("posixpath", "ntpath")
    True
    """
    homes = {name: module for module, found in names.items() for name in found}
    modules = {name: f"{package}.{name}" for name in public if name not in homes}

    def get(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(homes[name]), name)
        if name in modules:
            return importlib.import_module(modules[name])
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get


def listing(public: Iterable[str]) -> Callable[[], list[str]]:
    """Make the ``__dir__`` of a module that lists its public names and nothing else.

    Examples
    --------
    >>> listing(["plan", "Domain"])()
    ['Domain', 'plan']
    """
    names = sorted(public)
    return lambda: list(names)
