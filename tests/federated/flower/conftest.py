"""What the tests of this folder share; all of them need Flower."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.loading import load

FOLDER = Path(__file__).parent

collect_ignore_glob = [] if importlib.util.find_spec("flwr") else ["test_*.py"]


@pytest.fixture(scope="session")
def processes() -> ModuleType:
    """Flower's processes."""
    return load(FOLDER / "processes.py", "flower_processes")


@pytest.fixture(scope="session")
def grid_of() -> Callable[..., Any]:
    """Make a grid of ClientApps in this process."""
    made: Callable[..., Any] = load(
        Path(__file__).with_name("grid.py"), "flower_local_grid"
    ).LocalGrid
    return made


@pytest.fixture(scope="session")
def simulation(processes: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A SuperLink that simulates its nodes."""
    with processes.running(tmp_path_factory.mktemp("simulation") / "flower", simulation=True) as at:
        yield at


@pytest.fixture(scope="session")
def deployment(processes: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A SuperLink and three SuperNodes, each with a ledger and a file of answers."""
    folder = tmp_path_factory.mktemp("deployment")
    with processes.running(folder / "flower") as at:
        for number in range(3):
            at.node(number)
        yield at


@pytest.fixture(scope="session")
def model() -> ModuleType:
    """The model of the trial project."""
    return load(FOLDER / "trial" / "model.py", "flower_trial_model")


@pytest.fixture
def context() -> Callable[..., Any]:
    """Make the context of a node."""
    from flwr.app import Context, RecordDict

    def make(**node: Any) -> Context:
        config = {name.replace("_", "-"): value for name, value in node.items()}
        return Context(1, 7, node_config=config, state=RecordDict(), run_config={})

    return make


@pytest.fixture(autouse=True)
def _in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let messages be made outside Flower's processes."""
    from flwr.supercore.task_identity import TaskIdentity

    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)
