"""What the tests of this folder share, loaded by its place as ``tests/conftest.py`` does."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def harness() -> ModuleType:
    """Rounds carried by hand, and a look into roles."""
    known = "distributed_harness"
    spec = importlib.util.spec_from_file_location(known, Path(__file__).with_name("harness.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Data classes look up their own module.
    sys.modules[known] = module
    spec.loader.exec_module(module)
    return module
