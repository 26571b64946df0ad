"""What the tests of this folder share, loaded by its place as ``tests/conftest.py`` does."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.loading import load


def beside(name: str) -> ModuleType:
    """Load a module beside this one."""
    return load(Path(__file__).with_name(f"{name}.py"), f"distributed_{name}")


@pytest.fixture(scope="session")
def harness() -> ModuleType:
    """Rounds carried by hand, and a look into roles."""
    return beside("harness")


@pytest.fixture(scope="session")
def views() -> ModuleType:
    """What an adversary sees: exact laws, and recorded messages."""
    return beside("views")


@pytest.fixture(scope="session")
def sockets() -> ModuleType:
    """Rounds of stations in this process, and what goes over their sockets."""
    return beside("sockets")


@pytest.fixture(scope="session")
def deployment() -> ModuleType:
    """The module of ``examples/aggregation`` that starts the processes of a round."""
    path = Path(__file__).parents[2] / "examples" / "aggregation" / "deployment.py"
    return load(path, "aggregation_deployment")


@pytest.fixture
def deaf() -> Iterator[socket.socket]:
    """A socket with a port at which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound
