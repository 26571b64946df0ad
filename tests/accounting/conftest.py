"""The second computations of this folder, loaded by their places as ``tests/conftest.py`` does."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def load(name: str) -> ModuleType:
    known = f"accounting_{name}"
    spec = importlib.util.spec_from_file_location(known, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Data classes look up their own module.
    sys.modules[known] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def references() -> ModuleType:
    """Single mechanisms in 50 digits or rationals."""
    return load("references")


@pytest.fixture(scope="session")
def shuffling() -> ModuleType:
    """Shuffled reports in rationals."""
    return load("shuffling")


@pytest.fixture(scope="session")
def configurations() -> ModuleType:
    """The true divergence of a round with given gradients."""
    return load("configurations")


@pytest.fixture(scope="session")
def losses() -> ModuleType:
    """Composition by privacy-loss distributions."""
    return load("losses")
