"""The cluster that the work is done on."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

from turnout import _arguments
from turnout._extras import require
from turnout.errors import InvalidValueError, MissingExtraError

_LOG = logging.getLogger(__name__)

#: Asked to keep the order of rows, Ray Data 2.40 did not always do so.
_LEAST: Final = (2, 55)

#: What a cluster that is started here does not do: send statistics about its use to Ray's makers,
#: or warn of a change in how it treats graphics cards, which are not used.
_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


@contextlib.contextmanager
def connected(address: str | None = None) -> Iterator[ModuleType]:
    """Give the module ``ray``, connected to a cluster.

    A cluster that this process is connected to already is used as it is, and left as it is.
    Otherwise this process connects to ``address``, or to the one in ``RAY_ADDRESS``; without
    either it starts Ray on this machine. What was connected or started here ends with the block.

    Parameters
    ----------
    address
        Where the cluster is, as ``ray.init`` takes it.

    Yields
    ------
    types.ModuleType
        ``ray``.

    Raises
    ------
    InvalidValueError
        If this process is connected to another cluster than the one that ``address`` names.
    InvalidTypeError
        If ``address`` is no text.
    MissingExtraError
        If Ray is not installed, or is too old.
    ConnectionError
        If there is no cluster at the address.
    """
    if address is not None and not isinstance(address, str):
        raise _arguments.mistyped("address must be the address of a Ray cluster or None", address)
    ray = require("ray", "ray")
    _check_release(ray.__version__)
    if ray.is_initialized():
        _check_same(ray, address)
        yield ray
        return
    place = address or os.environ.get("RAY_ADDRESS") or "local"
    # ray.init leaves files open that it gives to the processes that it starts.
    with warnings.catch_warnings(), _environment(place):
        warnings.simplefilter("ignore", ResourceWarning)
        ray.init(address=place, **({"include_dashboard": False} if place == "local" else {}))
    try:
        if place == "local":
            _LOG.info("started Ray on this machine, with %s CPUs", cpus(ray))
        else:
            _LOG.info("connected to the Ray cluster at %s, with %s CPUs", place, cpus(ray))
        yield ray
    finally:
        # Of a cluster that was running before, this leaves all but the connection.
        ray.shutdown()


def flight_of(ray: Any, workers: int | None) -> int:
    """Return the number of tasks in flight: by default two for each CPU.

    Raises
    ------
    InvalidValueError
        If it is not from 1 to 100,000.
    """
    if workers is None:
        return 2 * cpus(ray)
    return _arguments.integer("workers", workers, least=1, most=100_000)


def cpus(ray: Any) -> int:
    """Count the CPUs of the cluster as it is now, at least one."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _check_release(version: str) -> None:
    """Refuse releases of Ray whose data sets do not keep the order of their rows."""
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < _LEAST:
        raise MissingExtraError(
            f"Ray 2.55 or newer is needed for this, and {version} is installed: "
            "pip install 'turnout[ray]'",
            name="ray",
        )


def _check_same(ray: Any, address: str | None) -> None:
    if address is None or address in ("auto", "local"):
        return
    current = ray.get_runtime_context().gcs_address
    if address != current:
        raise InvalidValueError(
            f"address must be that of the cluster that this process is connected to, {current}, "
            f"or None, got {_arguments.shown(address)}: call ray.shutdown() to leave it"
        )


@contextlib.contextmanager
def _environment(place: str) -> Iterator[None]:
    """Set defaults for a cluster that is started on this machine."""
    added = [name for name in _ENVIRONMENT if place == "local" and name not in os.environ]
    os.environ.update({name: _ENVIRONMENT[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
