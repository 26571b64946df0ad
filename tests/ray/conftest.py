"""What the tests of this folder share: one Ray of three workers, on this machine."""

from __future__ import annotations

import gc
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


#: Ray gives up parts of itself that are late; on a busy machine all are.
PATIENT = {
    "RAY_agent_register_timeout_ms": "600000",
    "RAY_gcs_server_request_timeout_seconds": "600",
    "RAY_health_check_timeout_ms": "600000",
    "RAY_worker_register_timeout_seconds": "600",
}


def start(ray: Any) -> None:
    """Start Ray, again if it was too slow: nobody can tell it to wait more than half a minute."""
    for attempt in range(10):
        try:
            ray.init(
                address="local",
                num_cpus=3,
                include_dashboard=False,
                log_to_driver=False,
                object_store_memory=300 * 2**20,
            )
        except Exception as error:
            if attempt == 9 or "timed out during startup" not in str(error):
                raise
        else:
            return
        ray.shutdown()
        # What is left of it warns when it is collected.
        gc.collect()


@pytest.fixture(scope="session")
def ray() -> Iterator[Any]:
    """Ray with three workers, and its module."""
    package = str(Path(turnout.__file__).parents[1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        for name, value in PATIENT.items():
            patch.setenv(name, value)
        patch.setenv("PYTHONPATH", os.pathsep.join([package, os.environ.get("PYTHONPATH", "")]))
        with warnings.catch_warnings():
            # Ray leaves open what it gives to the processes that it starts.
            warnings.simplefilter("ignore")
            import ray
            import ray.data

            start(ray)
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
