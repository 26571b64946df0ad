"""The cluster and its tasks: a limited number at a time, merged by a tree."""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import operator
import os
import secrets as randomness
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

import turnout
from turnout import _arguments
from turnout._extras import require
from turnout.errors import InvalidValueError, MissingExtraError, TurnoutError, WorkerLostError
from turnout.pipeline.flight import Executor, Part
from turnout.ray.datasets import ReferencedBlock

_LOG = logging.getLogger(__name__)

T = TypeVar("T")

#: How often a task is done again whose worker died.
RETRIES: Final = 5

#: How many results one task merges.
FAN_IN: Final = 16

#: Seconds that tasks in hand get to end when nobody wants them any more, and after which the
#: driver must see a file that a worker wrote.
_PATIENCE: Final = 60.0


#: Asked to keep the order of rows, Ray Data 2.40 did not always do so.
_LEAST: Final = (2, 55)

#: A cluster that is started here does not send statistics about its use to Ray's makers. It does
#: not warn of a change in how it treats graphics cards, which are not used.
_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}


@contextlib.contextmanager
def connected(address: str | None = None) -> Iterator[ModuleType]:
    """Return the module ``ray``, connected to a cluster.

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


def cpus(ray: Any) -> int:
    """Return the current number of CPUs of the cluster, at least one."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _check_release(version: str) -> None:
    """Refuse releases of Ray whose data sets do not preserve the order of their rows."""
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
            "address must be the address of the cluster that this process is connected to, "
            f"{current}, or None, got {_arguments.shown(address)}: call ray.shutdown() to leave it"
        )


@contextlib.contextmanager
def _environment(place: str) -> Iterator[None]:
    """Set defaults for a cluster that starts on this machine."""
    added = [name for name in _ENVIRONMENT if place == "local" and name not in os.environ]
    os.environ.update({name: _ENVIRONMENT[name] for name in added})
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


class Cluster(Executor):
    """An executor that runs tasks on a cluster, with a limited number in flight.

    Parameters
    ----------
    ray
        The module, connected.
    workers
        How many tasks are in flight; by default two for each CPU.
    progress
        Whether long work shows a bar.

    Raises
    ------
    InvalidValueError
        If ``workers`` is not from 1 to 100,000.
    """

    most = 100_000
    #: Some four million rows.
    stretch = 4

    def __init__(self, ray: Any, workers: int | None, progress: bool) -> None:
        self._ray = ray
        super().__init__(2 * cpus(ray) if workers is None else workers, progress)

    def _remote(self, function: Any, returns: int = 1) -> Any:
        options = {"num_cpus": 1, "max_retries": RETRIES, "num_returns": returns}
        return self._ray.remote(**options)(function)

    def merging(self) -> MergeTree:
        """Return an empty merge tree."""
        return MergeTree(self._ray, self._remote(merged))

    def results(
        self,
        work: Callable[[Any, T], Any],
        items: Iterable[T],
        secrets: Any = None,
        into: Any = None,
    ) -> Generator[tuple[T, Any], None, None]:
        """Process each item in a task; values to merge stay on the cluster."""
        # A domain may be large: it is sent once to each worker.
        shared = (turnout.__version__, randomness.token_hex(8), [self._ray.put(work)])
        task = self._remote(_run, 1 if into is None else 2)

        def submit(item: T) -> Any:
            sent, tables = _sent(item)
            if into is None:
                return task.remote(shared, secrets, sent, *tables)
            first, second = task.remote(shared, secrets, sent, *tables)
            into.add(second)
            return first

        with contextlib.closing(results(self._ray, submit, items, self._workers)) as each:
            yield from each

    def spare(self, items: int) -> int:
        """Return 1: a task has one CPU."""
        return 1

    def wait_for(self, path: Path) -> None:
        """Refuse a folder in which the driver does not see files of a worker."""
        deadline = time.monotonic() + _PATIENCE
        while not path.exists():
            if time.monotonic() > deadline:
                raise InvalidValueError(
                    "output must be a folder that all machines of the cluster share: "
                    f"{str(path)!r} was written by a worker and is not there"
                )
            time.sleep(0.1)


def _sent(item: Any) -> tuple[Any, list[Any]]:
    """Return an item in the form to send, and the tables near which its task should run."""
    if not isinstance(item, Part) or item.blocks is None:
        return item, []
    blocks = list(item.blocks)
    tables = [
        reference
        for block in blocks
        if isinstance(block, ReferencedBlock)
        for reference in block.references
    ]
    return replace(item, blocks=blocks), tables


def results(
    ray: Any, submit: Callable[[T], Any], items: Iterable[T], limit: int
) -> Generator[tuple[T, Any], None, None]:
    """Submit a task for each item, at most ``limit`` at a time, and yield each with its result.

    When the iteration ends early, by an error or by Ctrl-C, tasks in hand are waited for: each
    is a few blocks, and what it writes appears whole. What has not ended after a minute is
    cancelled.

    Parameters
    ----------
    ray
        The module, connected.
    submit
        Submits the task of an item and returns the reference of its value.
    items
        What is done; taken only as tasks end.
    limit
        How many tasks are in flight.

    Yields
    ------
    tuple
        An item and the value of its reference, in the order in which tasks end.

    Raises
    ------
    WorkerLostError
        If the worker of a task died time and again.
    Exception
        What a task raised, as it was raised.
    """
    waiting = iter(items)
    running: dict[Any, T] = {}
    try:
        while True:
            for item in itertools.islice(waiting, limit - len(running)):
                running[submit(item)] = item
            if not running:
                return
            done, _ = ray.wait(list(running), num_returns=1, fetch_local=False)
            for reference in done:
                yield running.pop(reference), get(ray, reference)
    finally:
        _end(ray, list(running))


def get(ray: Any, reference: Any) -> Any:
    """Return a value, or raise the error of its task.

    Raises
    ------
    WorkerLostError
        If the worker of the task died time and again, or what it needed is lost.
    Exception
        What the task raised, as it was raised.
    """
    errors = ray.exceptions
    try:
        return ray.get(reference)
    except errors.RayError as error:
        # Ray wraps what is raised in a class of its own; the message of a task is for its user.
        cause = error.cause if isinstance(error, errors.RayTaskError) else error
        lost = f"({type(cause).__name__}). Parts that were written are whole, and resume=True goes"
        if isinstance(
            cause, (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError)
        ):
            raise WorkerLostError(
                f"the worker of a task died {RETRIES + 1} times, see the logs of Ray {lost} on "
                "from there"
            ) from error
        if isinstance(cause, errors.ObjectLostError):
            raise WorkerLostError(
                f"rows of the data set were lost with a machine, and Ray could not make them again "
                f"{lost} on from there if the data set can be made again as it was"
            ) from error
        if cause is error or not isinstance(cause, Exception):
            raise
        raise cause from (None if isinstance(cause, TurnoutError | OSError) else error)


class MergeTree:
    """A tree that merges results in tasks, sixteen at a time, in the order of their addition.

    Values stay on the cluster: only the last one comes to the driver.

    Parameters
    ----------
    ray
        The module, connected.
    merge
        A remote function of up to :data:`FAN_IN` values.
    """

    def __init__(self, ray: Any, merge: Any, fan_in: int = FAN_IN) -> None:
        self._ray = ray
        self._merge = merge
        self._fan_in = fan_in
        self._levels: list[list[Any]] = []

    def add(self, reference: Any) -> None:
        """Add a reference, whose task need not have ended."""
        for level in itertools.count():
            if level == len(self._levels):
                self._levels.append([])
            gathered = self._levels[level]
            gathered.append(reference)
            if len(gathered) < self._fan_in:
                return
            self._levels[level] = []
            reference = self._merge.remote(*gathered)

    def __enter__(self) -> MergeTree:
        """Start adding."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """After an error, release the added results."""
        if kind is None:
            return
        rest = [reference for level in self._levels for reference in level]
        self._levels = []
        if rest:
            # The second value of a task may arrive a moment after the first, which told its end.
            self._ray.wait(rest, num_returns=len(rest), timeout=_PATIENCE, fetch_local=False)
        _take_errors(self._ray, rest)

    def result(self) -> Any:
        """Return the merged value of all results; None if there are none."""
        rest: list[Any] = []
        for gathered in self._levels:
            # What is higher was added earlier.
            rest = [*gathered, *rest]
            while len(rest) > self._fan_in:
                rest = [*rest[: -self._fan_in], self._merge.remote(*rest[-self._fan_in :])]
        self._levels = []
        if not rest:
            return None
        return get(self._ray, rest[0] if len(rest) == 1 else self._merge.remote(*rest))


def _take_errors(ray: Any, references: Iterable[Any]) -> None:
    """Get unneeded results: Ray prints errors that nobody gets, with people's answers."""
    for reference in references:
        with contextlib.suppress(Exception):
            ray.get(reference, timeout=0)


def _end(ray: Any, references: list[Any]) -> None:
    """Wait for tasks that are no longer needed; a part in progress appears whole or not at all.

    They are not cancelled at once: Ray says of a task that is just on its way to a worker that it
    is cancelled and runs it all the same, and the driver's process aborts when its reply arrives
    ("Tried to complete task that was not pending", ray 2.55).
    """
    if not references:
        return
    _LOG.info("waiting for %d tasks to end", len(references))

    def wait(rest: list[Any]) -> list[Any]:
        found = ray.wait(rest, num_returns=len(rest), timeout=_PATIENCE, fetch_local=False)
        return list(found[1])

    if late := wait(references):
        for reference in late:
            with contextlib.suppress(Exception):
                ray.cancel(reference)
        wait(late)
    _take_errors(ray, references)


# What follows runs in workers. -----------------------------------------------------------------

#: The work that this worker did last, by a name of its own.
_KNOWN: dict[str, Any] = {}


def _run(shared: tuple[str, str, list[Any]], secrets: Any, item: Any, *_tables: Any) -> Any:
    """Process an item; its tables are arguments, so that they are local to the task."""
    version, name, box = shared
    prepare_worker(version)
    if name not in _KNOWN:
        _KNOWN.clear()
        _KNOWN[name] = require("ray", "ray").get(box[0])
    return _KNOWN[name](secrets, item)


def merged(*tallies: Any) -> Any:
    """Merge tallies of one plan."""
    return functools.reduce(operator.add, tallies)


def prepare_worker(version: str) -> None:
    """Prepare a worker for a task: one thread for one CPU, and the driver's release.

    Raises
    ------
    TurnoutError
        If another release is installed on the worker's machine.
    """
    # Ray does the same for OpenMP. It counts when the core starts its threads, at the first call.
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    if version != turnout.__version__:
        raise TurnoutError(
            f"the driver runs turnout {version} and a worker turnout {turnout.__version__}: "
            "install one release on all machines of the cluster"
        )
