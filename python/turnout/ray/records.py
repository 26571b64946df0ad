"""Jobs that draw records of people on a Ray cluster."""

from __future__ import annotations

import os
from typing import Any

from turnout.pipeline.records import run_sample
from turnout.ray.cluster import Cluster, connected
from turnout.samplers import PopulationDraws, TableSampler


def sample(
    sampler: TableSampler,
    data: Any,
    users: Any,
    output: str | os.PathLike[str],
    *,
    seed: int | None = None,
    resume: bool = False,
    address: str | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> PopulationDraws:
    """Draw one private record for each user into a folder on a Ray cluster, in parts.

    The folder and its files are the same as with :func:`turnout.pipeline.sample`, and each function
    can resume a job that the other began. Each user has streams from the job's secret. If a worker
    dies, the part is made again from the same streams. The first finished file is kept.

    Parameters
    ----------
    sampler, data, users, seed, resume, progress
        As in :func:`turnout.pipeline.sample`.
    output
        The folder for the records, on storage that all machines of the cluster share.
    address
        The address of a running cluster. The default is the cluster that this process is connected
        to, or the one of ``RAY_ADDRESS``. If there is neither, Ray starts on this machine until the
        call returns.
    workers
        The number of tasks in flight; by default twice the number of CPUs of the cluster.

    Returns
    -------
    PopulationDraws
        The users and one draw of each.

    Raises
    ------
    WorkerLostError
        If the worker of a task died repeatedly.
    MissingExtraError
        If Ray is not installed.
    ConnectionError
        If there is no cluster at the address.
    TurnoutError, OSError
        As in :func:`turnout.pipeline.sample`.

    Examples
    --------
    .. code-block:: python

        sampler = tn.samplers.TableSampler(2.0, {"age": (17, 91), "sex": ["f", "m"]})
        tn.ray.sample(sampler, visits, visits["user"], "/shared/records", progress=True)
    """
    with connected(address) as ray:
        executor = Cluster(ray, workers, progress)
        return run_sample(executor, sampler, data, users, output, seed=seed, resume=resume)
