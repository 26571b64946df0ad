"""The second computations of this folder, loaded by their places as ``tests/conftest.py`` does."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from tests.loading import load


def beside(name: str) -> ModuleType:
    """Load a module beside this one."""
    return load(Path(__file__).with_name(f"{name}.py"), f"accounting_{name}")


@pytest.fixture(scope="session")
def references() -> ModuleType:
    """Single mechanisms in 50 digits or rationals."""
    return beside("references")


@pytest.fixture(scope="session")
def shuffling() -> ModuleType:
    """Shuffled reports in rationals."""
    return beside("shuffling")


@pytest.fixture(scope="session")
def configurations() -> ModuleType:
    """The true divergence of a round with given gradients."""
    return beside("configurations")


@pytest.fixture(scope="session")
def losses() -> ModuleType:
    """Composition by privacy-loss distributions."""
    return beside("losses")
