"""The requests of a task: those of DAP for its leader or its helper."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from turnout import _core
from turnout.errors import StoreUnavailableError
from turnout.serve.counters import Counters
from turnout.serve.limits import Limits
from turnout.serve.storage.interface import Store
from turnout.serve.tasks.driving import Driver
from turnout.serve.tasks.files import HelperFile, LeaderFile
from turnout.serve.tasks.helper import Helper, identity
from turnout.serve.tasks.jobs import JOB_BYTES
from turnout.serve.tasks.leader import Leader
from turnout.serve.tasks.peers import WAITS
from turnout.serve.tasks.problems import ProblemError
from turnout.serve.tasks.reading import bytes_of, text_of
from turnout.serve.web.answers import Application, Outermost, routed
from turnout.serve.web.together import Together

_LOGGER = logging.getLogger(__name__)

#: The most reports of an upload, and the most bytes of one unless a report has more.
UPLOAD_REPORTS: Final = 1000
_UPLOAD_BYTES: Final = 2**22

#: The most bytes of requests that say what is wanted, and of all requests in hand together.
_ASKING_BYTES: Final = 2**16
_WAITING_BYTES: Final = 2**28

#: The bytes of a name that a peer gives to what it creates.
_NAME_BYTES: Final = 16

#: How long a client may keep the keys of an aggregator, in seconds.
_KEYS_KEPT: Final = 86400

#: Seconds after which a collector may ask again.
_AGAIN: Final = "1"

T = TypeVar("T")
Answering = Callable[[Request], Awaitable[Response]]


def limits_of(file: LeaderFile | HelperFile, connections: int, request_seconds: float) -> Limits:
    """Return what requests of a task may cost."""
    report = file.task.vdaf.report_bytes
    return Limits(
        report,
        max(1, min(UPLOAD_REPORTS, _UPLOAD_BYTES // report)),
        max(_WAITING_BYTES, 8 * report),
        connections=connections,
        request_seconds=request_seconds,
    )


def path_of(file: LeaderFile | HelperFile) -> str:
    """Return the path of the address of an aggregator."""
    own = file.task.leader if isinstance(file, LeaderFile) else file.task.helper
    return urlsplit(own).path.rstrip("/")


class TaskServer:
    """A server that answers the requests to the leader or the helper of a task.

    Parameters
    ----------
    file
        The file of the aggregator.
    store
        The store where it keeps what it remembers.
    ca
        The file of the certificates that must have issued the helper's.
    connections, request_seconds
        As :class:`turnout.serve.limits.Limits` has them.
    keys
        The keys that reports may be encrypted to, if other tasks have the same address; clients get
        the first. None for the key of the file.
    counters
        The counters of requests and reports.
    """

    def __init__(
        self,
        file: LeaderFile | HelperFile,
        store: Store,
        ca: Path | None = None,
        *,
        connections: int = 4096,
        request_seconds: float = 20.0,
        keys: Sequence[_core.HpkeKey] | None = None,
        counters: Counters | None = None,
    ) -> None:
        self._file, self._store = file, store
        self.limits = limits_of(file, connections, request_seconds)
        self._counters = counters or Counters()
        self._shown_keys = keys or [file.key]
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="turnout-task")
        self._in_hand = 0
        self._driver: Driver | None = None
        self._path = path_of(file)
        if isinstance(file, LeaderFile):
            self._leader = Leader(file, store, ca, self._shown_keys)
            self._driver = Driver(self._leader)
            self._uploads = Together(self._leader.store, self._pool)
            self._token_hash = file.collector_token_hash
        else:
            self._helper = Helper(file, store, self._shown_keys)
            self._token_hash = file.leader_token_hash

    def has(self, path: str) -> bool:
        """Return whether a request is for the task."""
        own = f"{self._path}/tasks/{self._file.task.name}/"
        return path.startswith(own) or path == f"{self._path}/hpke_config"

    def has_tasks(self, path: str) -> bool:
        """Return whether a request is for any task at this address."""
        return path.startswith(f"{self._path}/tasks/")

    def start(self) -> None:
        """Begin the jobs of a leader."""
        if self._driver is not None:
            self._driver.start()

    async def stop(self) -> None:
        """Stop after the jobs in progress."""
        if self._driver is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._driver.stop)
        self._pool.shutdown()

    def described(self) -> str:
        """State what is served, in a line for the log."""
        return f"{self._file.role} of the task {self._file.task.name}, store {self._store.place}"

    def application(self) -> Application:
        """Make the ASGI application."""
        routes = [
            self._route("/hpke_config", GET=self._keys),
            self._route("/health", GET=self._health),
            self._route("/metrics", GET=self._metrics),
        ]
        if self._driver is not None:
            jobs = "/tasks/{task}/collection_jobs"
            routes += [
                self._route("/tasks/{task}/reports", POST=self._reports),
                self._route(jobs, POST=self._new_collection),
                self._route(
                    jobs + "/{name}",
                    PUT=self._new_collection,
                    GET=self._collection,
                    DELETE=self._end_collection,
                ),
            ]
        else:
            jobs, shares = "/tasks/{task}/aggregation_jobs", "/tasks/{task}/aggregate_shares"
            routes += [
                self._route(jobs, POST=self._new_job),
                self._route(
                    jobs + "/{name}",
                    PUT=self._new_job,
                    POST=self._continued_job,
                    GET=self._job,
                    DELETE=self._end_job,
                ),
                self._route(shares, POST=self._new_share),
                self._route(
                    shares + "/{name}",
                    PUT=self._new_share,
                    GET=self._share,
                    DELETE=self._end_share,
                ),
            ]
        paths = {route.path.replace("{task}", self._file.task.name) for route in routes}
        return Outermost(routed(routes), self._counters, paths)

    def _route(self, place: str, **methods: Answering) -> Route:
        async def answer(request: Request) -> Response:
            # Whoever has GET has HEAD.
            method = "GET" if request.method == "HEAD" else request.method
            try:
                return await methods[method](request)
            except ProblemError as problem:
                return self._problem(problem)
            except StoreUnavailableError as error:
                _LOGGER.error("the store cannot be used: %s", error)
                return self._problem(
                    ProblemError("storeUnavailable", "nothing can be stored: try again")
                )

        return Route(self._path + place, answer, methods=list(methods))

    def _problem(self, problem: ProblemError) -> Response:
        """Answer with a problem document (RFC 9457)."""
        named = _core.DAP_PROBLEMS.get(problem.kind, "about:blank")
        said = {
            "type": named,
            "title": problem.kind,
            "status": problem.status,
            "detail": problem.detail,
            "taskid": self._file.task.name,
        }
        headers = {"retry-after": "2"} if problem.status in (429, 503) else {}
        if problem.status == 401:
            headers["www-authenticate"] = "Bearer"
        return Response(
            json.dumps(said), problem.status, headers, media_type="application/problem+json"
        )

    # What all requests have

    def _check_task(self, request: Request) -> None:
        if request.path_params["task"] != self._file.task.name:
            raise ProblemError("unrecognizedTask", "this server has no such task")

    def _check_token(self, request: Request) -> None:
        """Refuse a client that does not show the token."""
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            shown = request.headers.get("dap-auth-token", "")
        digest = hashlib.sha256(shown.strip().encode("latin-1")).hexdigest()
        if not hmac.compare_digest(digest, self._token_hash):
            raise ProblemError("unauthorized", "this request needs the token of the task")

    def _name(self, request: Request, body: bytes | None = None) -> bytes:
        """Return the name of a resource: from the address, or made from a request."""
        text = request.path_params.get("name")
        if text is None:
            assert body is not None
            return identity(body)
        try:
            return bytes_of(text, _NAME_BYTES)
        except ValueError:
            kind = "Aggregation" if self._driver is None else "Collection"
            raise ProblemError(f"unrecognized{kind}Job", "no such resource") from None

    async def _body(self, request: Request, message: str, most: int) -> bytes:
        """Read the body of a request, up to the largest allowed size."""
        kind = request.headers.get("content-type", "").replace(" ", "").lower()
        wanted = _core.DAP_MEDIA_TYPES[message]
        if kind.split(";")[0] != wanted.split(";")[0] or f";{wanted.split(';')[1]}" not in kind:
            raise ProblemError("wrongType", f"send this as {wanted}")
        declared = request.headers.get("content-length", "0")
        too_large = ProblemError("tooLarge", f"send at most {most} bytes in such a request")
        if not declared.isdecimal() or len(declared) > 18 or int(declared) > most:
            raise too_large
        body = bytearray()
        async for piece in request.stream():
            body += piece
            if len(body) > most:
                raise too_large
        return bytes(body)

    async def _do(self, function: Callable[..., T], *arguments: Any, size: int = 0) -> T:
        """Run slow work in another thread, unless too much waits already."""
        with self._holding(size):
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, lambda: function(*arguments))

    @contextlib.contextmanager
    def _holding(self, size: int) -> Iterator[None]:
        """Count the bytes of a request in progress, unless there are too many already."""
        if self._in_hand + size > self.limits.waiting_bytes:
            raise ProblemError("busy", "too many requests wait: try again")
        self._in_hand += size
        try:
            yield
        finally:
            self._in_hand -= size

    # Everybody

    async def _keys(self, request: Request) -> Response:
        """Return the keys that clients encrypt to."""
        headers = {"cache-control": f"max-age={_KEYS_KEPT}"}
        return _message(
            _core.write_hpke_configs([self._shown_keys[0].config]),
            "hpke-config-list",
            headers=headers,
        )

    async def _health(self, request: Request) -> Response:
        """Return whether the store can be used, and whether the helper answers."""
        status, said = await self.health()
        return Response(json.dumps(said), status, media_type="application/json")

    async def health(self) -> tuple[int, dict[str, Any]]:
        """Return the status, and whether the store can be used and the helper answers."""
        said: dict[str, Any] = {"role": self._file.role, "task": self._file.task.name}
        refused = await self._refused()
        if refused is not None:
            said["refused"] = refused
        said["store"] = "unavailable" if refused is None else "available"
        if self._driver is not None:
            said["jobs"] = self._driver.trouble or "run"
        return 503 if refused is None else 200, said

    async def _refused(self) -> dict[str, int] | None:
        """Count the reports that were refused, by reason; None if the store is not available."""
        records = (self._leader if self._driver is not None else self._helper).records

        def look() -> dict[str, int]:
            with records.transaction() as found:
                return found.refused()

        try:
            return await self._do(look)
        except StoreUnavailableError:
            return None

    async def _metrics(self, request: Request) -> Response:
        """Return the server's own counters."""
        text = self._counters.text(await self.gauges())
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def gauges(self) -> dict[str, float]:
        """Measure what there is at this moment; copy what the store counts to the counters."""
        refused = await self._refused()
        for reason, number in (refused or {}).items():
            self._counters.put(
                "turnout_refused_reports_total", number, task=self._file.task.name, reason=reason
            )
        return {
            "turnout_waiting_bytes": self._in_hand,
            "turnout_store_usable": int(refused is not None),
        }

    # The leader

    async def _reports(self, request: Request) -> Response:
        """Take reports in, and answer when they are durable."""
        self._check_task(request)
        body = await self._body(request, "upload-req", self.limits.body_bytes)
        upload = await self._do(self._leader.read, body, size=len(body))
        if len(upload.reports) > self.limits.lines:
            raise ProblemError(
                "tooLarge", f"send at most {self.limits.lines} reports in one request"
            )
        with self._holding(len(body)):
            errors = await self._uploads.take(upload)
        refused = sum(error is not None for error in upload.errors)
        for outcome, number in (
            ("accepted", len(upload.errors) - refused),
            ("refused", refused),
        ):
            if number:
                self._counters.count("turnout_messages_total", number, outcome=outcome)
        if refused < len(upload.errors):
            assert self._driver is not None
            self._driver.wake()
        return _message(errors, "upload-errors") if errors else Response(status_code=200)

    async def _new_collection(self, request: Request) -> Response:
        """Begin a collection job."""
        self._check_task(request)
        self._check_token(request)
        body = await self._body(request, "collection-job-req", _ASKING_BYTES)
        name = self._name(request, body)
        await self._do(self._leader.collections.create, body, name)
        assert self._driver is not None
        self._driver.wake()
        return await self._collected(name, 201)

    async def _collection(self, request: Request) -> Response:
        """Return the result of a collection job."""
        self._check_task(request)
        self._check_token(request)
        return await self._collected(self._name(request), 200)

    async def _collected(self, name: bytes, status: int) -> Response:
        answer, waits = await self._do(self._leader.collections.answer, name)
        headers = {"location": self._place("collection_jobs", name)}
        if answer:
            return _message(answer, "collection-job-resp", status, headers)
        assert self._driver is not None
        if self._driver.trouble is not None:
            waits += f"; {self._driver.trouble}"
        waits = waits.encode("ascii", "replace").decode().replace("\n", " ")
        return Response(
            status_code=status, headers={**headers, "retry-after": _AGAIN, WAITS: waits[:1000]}
        )

    async def _end_collection(self, request: Request) -> Response:
        """Forget a collection job."""
        self._check_task(request)
        self._check_token(request)
        await self._do(self._leader.collections.forget, self._name(request))
        return Response(status_code=204)

    # The helper

    async def _new_job(self, request: Request) -> Response:
        """Verify the reports of an aggregation job."""
        self._check_task(request)
        self._check_token(request)
        most = max(4 * JOB_BYTES, 2 * self.limits.message_bytes)
        body = await self._body(request, "aggregation-job-init-req", most)
        name = self._name(request, body)
        dialect = "janus" if request.method == "PUT" else "dap-18"
        answer = await self._do(self._helper.aggregate, body, name, dialect, size=len(body))
        headers = {"location": self._place("aggregation_jobs", name)}
        return _message(answer, "aggregation-job-resp", 201, headers)

    async def _job(self, request: Request) -> Response:
        """Return the answer of an aggregation job again."""
        self._check_task(request)
        self._check_token(request)
        answer = await self._do(self._helper.answer, self._name(request))
        return _message(answer, "aggregation-job-resp")

    async def _continued_job(self, request: Request) -> Response:
        """Refuse to continue a job: jobs of Prio3 end with their first answer."""
        self._check_task(request)
        self._check_token(request)
        await self._do(self._helper.answer, self._name(request))
        raise ProblemError("stepMismatch", "the jobs of this task have one step")

    async def _end_job(self, request: Request) -> Response:
        """Forget the answer of an aggregation job."""
        self._check_task(request)
        self._check_token(request)
        await self._do(self._helper.forget, self._name(request))
        return Response(status_code=204)

    async def _new_share(self, request: Request) -> Response:
        """Return the share of a batch."""
        self._check_task(request)
        self._check_token(request)
        body = await self._body(request, "aggregate-share-req", _ASKING_BYTES)
        name = self._name(request, body)
        answer = await self._do(self._helper.share, body, name)
        headers = {"location": self._place("aggregate_shares", name)}
        return _message(answer, "aggregate-share", 201, headers)

    async def _share(self, request: Request) -> Response:
        """Return the share of a batch again."""
        self._check_task(request)
        self._check_token(request)
        answer = await self._do(self._helper.share_again, self._name(request))
        return _message(answer, "aggregate-share")

    async def _end_share(self, request: Request) -> Response:
        """Forget the share of a batch."""
        self._check_task(request)
        self._check_token(request)
        await self._do(self._helper.forget_share, self._name(request))
        return Response(status_code=204)

    def _place(self, kind: str, name: bytes) -> str:
        return f"{self._path}/tasks/{self._file.task.name}/{kind}/{text_of(name)}"


def _message(
    data: bytes, message: str, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    kind = {"content-type": _core.DAP_MEDIA_TYPES[message]}
    return Response(data, status, {**(headers or {}), **kind})
