"""One server for several: a collection, and aggregators of tasks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from turnout import _core
from turnout.serve.counters import Counters
from turnout.serve.limits import Limits
from turnout.serve.tasks.files import HelperFile, LeaderFile
from turnout.serve.web.answers import Application, Receive, Scope, Send
from turnout.serve.web.app import Server
from turnout.serve.web.running import Serving
from turnout.serve.web.tasks import TaskServer, path_of


def task_servers(
    files: Sequence[LeaderFile | HelperFile], counters: Counters, *given: Any, **more: Any
) -> list[TaskServer]:
    """Make the servers of tasks, with one store and one set of counters.

    Clients ask an address for its key, and not a task. So reports of all tasks of an address may be
    encrypted to the key of any of these tasks, and clients get the key of the first. Of several
    keys with the same ID, each is tried.
    """
    keys: dict[str, list[_core.HpkeKey]] = {}
    for file in files:
        keys.setdefault(path_of(file), []).append(file.key)
    return [
        TaskServer(file, *given, **more, keys=keys[path_of(file)], counters=counters)
        for file in files
    ]


def serving(collection: Server | None, tasks: Sequence[TaskServer], counters: Counters) -> Serving:
    """Combine the servers that there are into one."""
    if collection is None and len(tasks) == 1:
        return tasks[0]
    if collection is not None and not tasks:
        return collection
    return Several(collection, tasks, counters)


class Several:
    """A server that answers the requests of tasks, and those of a collection if there is one.

    A task gets the requests below its own name, and those for keys below its address. All other
    requests are for the collection.

    Parameters
    ----------
    collection
        The server of the collection.
    tasks
        The servers of the tasks, at least one.
    counters
        The counters of all of them.
    """

    def __init__(
        self, collection: Server | None, tasks: Sequence[TaskServer], counters: Counters
    ) -> None:
        self._collection, self._tasks, self._counters = collection, tasks, counters
        self._all: list[Server | TaskServer] = [*tasks]
        if collection is not None:
            self._all.append(collection)

    @property
    def limits(self) -> Limits:
        """What connections may cost, which is the same for all."""
        return self._all[0].limits

    def application(self) -> Application:
        """Make the ASGI application."""
        applications = [each.application() for each in self._all]
        tasks = list(zip(self._tasks, applications, strict=False))
        own = {"/health": self._health, "/metrics": self._metrics}

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            path = scope["path"]
            found: list[Application] = [inner for task, inner in tasks if task.has(path)]
            # If somebody asks for an unknown task, any other task of the address says so.
            found += [inner for task, inner in tasks if task.has_tasks(path)]
            found.append(applications[-1])
            if path in own:
                found.insert(0, await own[path](Request(scope)))
            await found[0](scope, receive, send)

        return answer

    def start(self) -> None:
        """Start the work beside requests."""
        for each in self._all:
            each.start()

    async def stop(self) -> None:
        """Stop the work beside requests, and store what waits."""
        for each in self._all:
            await each.stop()

    def described(self) -> str:
        """State what is served, in a line for the log."""
        return "; ".join(each.described() for each in self._all)

    async def _health(self, request: Request) -> Response:
        """Return the health of each server; all is well if each of them is."""
        statuses, tasks = zip(*[await each.health() for each in self._tasks], strict=True)
        said: dict[str, object] = {"tasks": tasks}
        if self._collection is not None:
            status, state = await self._collection.health()
            said, statuses = {**state, **said}, (*statuses, status)
        return Response(json.dumps(said), max(statuses), media_type="application/json")

    async def _metrics(self, request: Request) -> Response:
        """Return the counters of all servers."""
        waiting = 0.0
        gauges: dict[str, float] = {}
        for each in self._all:
            found = await each.gauges()
            waiting += found.pop("turnout_waiting_bytes")
            gauges.update(found)
        text = self._counters.text({**gauges, "turnout_waiting_bytes": waiting})
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")
