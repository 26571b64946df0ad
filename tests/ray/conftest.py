"""What the tests of this folder share: one Ray of three workers, on this machine."""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.loading import load as load_module

import turnout

collect_ignore_glob = [] if importlib.util.find_spec("ray") else ["test_*.py"]


@pytest.fixture(scope="session")
def ray() -> Iterator[Any]:
    """Ray with three workers, and its module."""
    package = str(Path(turnout.__file__).parents[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("PYTHONPATH", os.pathsep.join([package, os.environ.get("PYTHONPATH", "")]))
        with warnings.catch_warnings():
            # Ray leaves open what it gives to the processes that it starts.
            warnings.simplefilter("ignore")
            import ray
            import ray.data

            ray.init(
                address="local",
                num_cpus=3,
                include_dashboard=False,
                log_to_driver=False,
                object_store_memory=300 * 2**20,
            )
            ray.data.DataContext.get_current().enable_progress_bars = False
        yield ray
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.shutdown()


@pytest.fixture(autouse=True)
def _warnings_of_ray() -> None:
    """Let Ray call what it gives up itself; undone after each test."""
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"ray\.")


@pytest.fixture(scope="session")
def load() -> Callable[[str], ModuleType]:
    """Load a module beside this one."""

    def loaded(name: str) -> ModuleType:
        return load_module(Path(__file__).with_name(f"{name}.py"), f"ray_tests_{name}")

    return loaded
