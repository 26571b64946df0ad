"""Which cluster the work is done on, and what becomes of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import turnout
from turnout.errors import InvalidTypeError, InvalidValueError, MissingExtraError
from turnout.ray.cluster import _check_release, connected, cpus

PACKAGE = str(Path(turnout.__file__).parents[1])


def run(script: str, **environment: str) -> str:
    """Run a driver of its own, again if its Ray started too slowly for Ray."""
    for _ in range(10):
        done = once(script, **environment)
        if "timed out during startup" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    return done.stdout


def once(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env={
            # Without what Ray's users set, which is in capitals.
            **{
                name: value
                for name, value in os.environ.items()
                if not (name.startswith("RAY_") and name.isupper())
            },
            "PYTHONPATH": os.pathsep.join([PACKAGE, os.environ.get("PYTHONPATH", "")]),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )


def test_running_cluster_is_used_and_left_as_it_is(ray: Any) -> None:
    with connected() as module:
        assert module is ray
        assert cpus(module) == 3
    assert ray.is_initialized()
    with connected(ray.get_runtime_context().gcs_address):
        pass
    assert ray.is_initialized()


def test_other_address_is_refused(ray: Any) -> None:
    with (
        pytest.raises(InvalidValueError, match=r"address must be the address of the cluster"),
        connected("192.0.2.1:6379"),
    ):
        pass
    with (
        pytest.raises(InvalidTypeError, match="address must be the address"),
        connected(6379),  # type: ignore[arg-type]
    ):
        pass
    assert ray.is_initialized()


@pytest.mark.parametrize("version", ["2.40.0", "2.9.3", "1.13.0"])
def test_old_releases_are_refused(version: str) -> None:
    with pytest.raises(MissingExtraError, match=rf"2\.55 or newer.*{version}.*pip install"):
        _check_release(version)


@pytest.mark.parametrize("version", ["2.55.0", "2.55.1", "2.100.0rc1", "3.0.0.dev0"])
def test_new_releases_are_taken(version: str) -> None:
    _check_release(version)


DRIVER = """
import logging, os, sys
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(name)s %(message)s")
from turnout.ray.cluster import connected
assert "ray" not in sys.modules
with connected({address}) as ray:
    print("task", ray.get(ray.remote(lambda: os.getppid() > 1).remote()))
    print("usage", os.environ.get("RAY_USAGE_STATS_ENABLED"))
print("left", not ray.is_initialized())
"""


@pytest.mark.parametrize("given", [True, False])
def test_connects_to_an_address_and_only_leaves_it(ray: Any, given: bool) -> None:
    address = ray.get_runtime_context().gcs_address
    before = len(ray.nodes())
    said = run(
        DRIVER.format(address=repr(address) if given else None),
        **({} if given else {"RAY_ADDRESS": address}),
    )
    assert f"turnout.ray.cluster connected to the Ray cluster at {address}" in said
    assert "task True" in said
    assert "left True" in said
    assert len(ray.nodes()) == before
    assert ray.get(ray.remote(lambda: 5).remote()) == 5


def test_starts_ray_where_there_is_none(ray: Any) -> None:
    said = run(DRIVER.format(address=None))
    assert "turnout.ray.cluster started Ray on this machine, with" in said
    assert "task True" in said
    assert "usage None" in said
    assert "left True" in said


def test_import_of_turnout_does_not_import_ray() -> None:
    code = "import turnout, turnout.ray, sys; print('ray' in sys.modules, turnout.ray.__name__)"
    assert run(code).split() == ["False", "turnout.ray"]
