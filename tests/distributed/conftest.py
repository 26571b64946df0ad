"""What the tests of this folder share, loaded by its place as ``tests/conftest.py`` does."""

from __future__ import annotations

import importlib.util
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest


def load(name: str) -> ModuleType:
    """Load a module beside this one."""
    known = f"distributed_{name}"
    spec = importlib.util.spec_from_file_location(known, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Data classes look up their own module.
    sys.modules[known] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def harness() -> ModuleType:
    """Rounds carried by hand, and a look into roles."""
    return load("harness")


@pytest.fixture(scope="session")
def views() -> ModuleType:
    """What an adversary sees: exact laws, and recorded messages."""
    return load("views")


@pytest.fixture(scope="session")
def sockets() -> ModuleType:
    """Rounds of stations in this process, and what goes over their sockets."""
    return load("sockets")


@pytest.fixture
def deaf() -> Iterator[socket.socket]:
    """A socket with a port at which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound
