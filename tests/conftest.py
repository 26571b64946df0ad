"""What all tests share."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.devices import Device, built
from tests.loading import load

# What passes for a tree passes for it again. New examples each time: --hypothesis-profile explore.
# How long an example takes says how busy the machine is.
_any_speed: Any = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("check", derandomize=True, **_any_speed)
settings.register_profile("explore", derandomize=False, **_any_speed)
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
