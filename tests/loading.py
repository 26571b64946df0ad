"""Load a program or a module that is in no package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load(place: Path, name: str | None = None) -> ModuleType:
    """Load a module by its place.

    Its name, by default that of the file, must differ from those of all other modules: data
    classes and pickles find their own module by it.
    """
    spec = importlib.util.spec_from_file_location(name or place.stem, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
