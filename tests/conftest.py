"""What all tests share."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings
from tests.devices import Device, built
from tests.loading import load

# What passes for a tree passes for it again. New examples each time: --hypothesis-profile explore.
settings.register_profile("check", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile("check")


@pytest.fixture(scope="session")
def statistical() -> ModuleType:
    """The checks of ``statistical.py``."""
    return load(Path(__file__).with_name("statistical.py"), "tests_statistical")


@pytest.fixture(scope="session")
def kinds() -> ModuleType:
    """One randomizer of every kind, and the page of their verbs: ``kinds.py``."""
    return load(Path(__file__).with_name("kinds.py"), "tests_kinds")


@pytest.fixture(scope="session")
def program() -> Path:
    """The device of ``examples/device``."""
    return built()


@pytest.fixture
def device(program: Path, tmp_path: Path) -> Device:
    """What runs it on a plan."""
    return Device(program, tmp_path)
