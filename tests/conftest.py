"""What all tests share."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import settings
from tests.devices import Device, built

# What passes for a tree passes for it again. New examples each time: --hypothesis-profile explore.
settings.register_profile("check", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile("check")


def beside(name: str) -> ModuleType:
    """Load a module of this folder by its place, so that no path must be set."""
    place = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"tests_{name}", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def statistical() -> ModuleType:
    """The checks of ``statistical.py``."""
    return beside("statistical")


@pytest.fixture(scope="session")
def kinds() -> ModuleType:
    """One randomizer of every kind, and the page of their verbs: ``kinds.py``."""
    return beside("kinds")


@pytest.fixture(scope="session")
def program() -> Path:
    """The device of ``examples/device``."""
    return built()


@pytest.fixture
def device(program: Path, tmp_path: Path) -> Device:
    """What runs it on a plan."""
    return Device(program, tmp_path)
