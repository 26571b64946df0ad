"""The requests of a collection: plan, client, messages, results."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import html
import json
import logging
import string
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.resources import files
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from turnout import Plan
from turnout.errors import InvalidValueError, StoreUnavailableError
from turnout.reporting.records import json_text
from turnout.serve.collection import Collection, Family
from turnout.serve.counters import Counters
from turnout.serve.invitations import Invitations
from turnout.serve.limits import RETRY, Limits
from turnout.serve.results import LEAST, Results
from turnout.serve.storage.interface import Store
from turnout.serve.web.answers import Application, Outermost, routed
from turnout.serve.web.inviting import Inviting
from turnout.serve.web.openapi import description
from turnout.serve.web.receiving import Receiving
from turnout.serve.writing import Writer

_LOGGER = logging.getLogger(__name__)

#: The page of results runs nothing, and has its style and pictures inside.
_RESULTS_POLICY: Final = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
#: The files of the page, by their names in the address, and their types.
_STATIC: Final = {
    "turnout.js": "text/javascript; charset=utf-8",
    "tickets.js": "text/javascript; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "loading.js": "text/javascript; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
}

#: Seconds for which results are not computed again.
_FRESH: Final = 1.0


@dataclass(frozen=True)
class Settings:
    """The settings of a server.

    Attributes
    ----------
    title
        The question, as the page asks it.
    key
        The key to show in order to see results; None if everybody may see them.
    least
        The least number of reports for which results of a group are shown.
    invitations
        Who may answer, once each; None if everybody may, as often as they like.
    connections, request_seconds
        As :class:`turnout.serve.limits.Limits` has them.
    """

    title: str = ""
    key: str | None = field(default=None, repr=False)
    least: int = LEAST
    invitations: Invitations | None = None
    connections: int = 4096
    request_seconds: float = 20.0


class Server:
    """A server that answers the requests of a collection.

    Parameters
    ----------
    collection
        The plans.
    store
        The store of messages.
    settings
        The settings of the server.
    counters
        The counters of requests and messages.
    """

    def __init__(
        self,
        collection: Collection,
        store: Store,
        settings: Settings,
        counters: Counters | None = None,
    ) -> None:
        self.collection, self.store, self.settings = collection, store, settings
        self.writer = Writer(collection, store)
        self._inviting = Inviting(settings.invitations, collection, store)
        self.counters = counters or Counters()
        self._limits: tuple[Any, Limits] = (None, Limits(0))
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="turnout-results")
        self._kept: dict[Any, tuple[float, Any]] = {}
        self._lock = asyncio.Lock()

    @property
    def limits(self) -> Limits:
        """What requests may cost under the plans of this moment."""
        published = self.collection.published
        if self._limits[0] is not published:
            said = self.settings
            limits = Limits.of(
                published, connections=said.connections, request_seconds=said.request_seconds
            )
            self._limits = published, limits
        return self._limits[1]

    def application(self) -> Application:
        """Make the ASGI application; the writer must run while it answers."""
        receiving = Receiving(self.writer, self._inviting, self.counters, lambda: self.limits)
        routes = [
            Route("/", self._page),
            Route("/plan.json", self._plan),
            *(Route(f"/{name}", partial(self._static, name)) for name in _STATIC),
            Route("/reports", receiving, methods=["POST"]),
            Route("/tickets", self._inviting.ticket, methods=["POST"]),
            Route("/results", self._results_page),
            Route("/results.json", self._results_json),
            Route("/openapi.json", self._description),
            Route("/health", self._health),
            Route("/metrics", self._metrics),
        ]
        paths = {route.path for route in routes}
        return Outermost(routed(routes), self.counters, paths, {("POST", "/reports"): receiving})

    def start(self) -> None:
        """Start writing."""
        self.writer.start()

    def described(self) -> str:
        """State what is served, in a line for the log."""
        plans, store = len(self.collection.published), self.store
        return f"plans: {plans}; store: {store.place}, which keeps {store.keep}"

    async def stop(self) -> None:
        """Store the waiting messages."""
        await self.writer.stop()
        self._pool.shutdown()

    # What everybody sees

    async def _page(self, request: Request) -> Response:
        """Return the page on which people answer."""
        found = self.collection.in_force()
        words = {
            "title": html.escape(self.settings.title),
            "public_key": found.public_key if found is not None else "",
            **self._inviting.words(),
            "results": "public" if self.settings.key is None else "key",
        }
        text = string.Template(_file("index.html").decode()).safe_substitute(words)
        return HTMLResponse(text)

    async def _plan(self, request: Request) -> Response:
        """Return the plan in force, as in its file."""
        found = self.collection.in_force()
        if found is None:
            raise HTTPException(404, "every plan of this collection has expired")
        return _tagged(request, found.file, "application/json")

    async def _static(self, name: str, request: Request) -> Response:
        """Return a file of the page."""
        return _tagged(request, _file(name), _STATIC[name])

    # Results

    async def _results_json(self, request: Request) -> Response:
        """Return the current results for programs."""
        self._check_key(request)
        return _json_text(await self._known(request, "json"))

    async def _results_page(self, request: Request) -> Response:
        """Return the current results for people."""
        self._check_key(request)
        text = await self._known(request, "page")
        return HTMLResponse(text, headers={"content-security-policy": _RESULTS_POLICY})

    async def _known(self, request: Request, form: str) -> Any:
        """Look at the store, unless somebody did a moment ago."""
        family, only = self._asked_for(request)
        name = (form, family.plans[0].fingerprint, only and only.fingerprint)
        async with self._lock:
            at, found = self._kept.get(name, (0.0, None))
            if found is None or time.monotonic() - at > _FRESH:
                loop = asyncio.get_running_loop()
                try:
                    found = await loop.run_in_executor(
                        self._pool, self._compute, family, only, form
                    )
                except StoreUnavailableError:
                    raise HTTPException(
                        503, "the store cannot be read at the moment", RETRY
                    ) from None
                except InvalidValueError as error:
                    raise HTTPException(409, str(error)) from None
                self._kept = {
                    other: kept
                    for other, kept in self._kept.items()
                    if time.monotonic() - kept[0] <= _FRESH
                }
                self._kept[name] = time.monotonic(), found
        return found

    def _asked_for(self, request: Request) -> tuple[Family, Plan | None]:
        """Return the plans whose results are requested."""
        wanted = request.query_params.get("plan")
        families = self.collection.families
        if wanted is not None:
            for family in families:
                for plan in family.plans:
                    if plan.fingerprint == wanted:
                        return family, plan
            raise HTTPException(404, "this collection has no plan of that fingerprint")
        return self.collection.asked()[1], None

    def _compute(self, family: Family, only: Plan | None, form: str) -> str:
        current = self.collection.in_force()
        plan = None if current is None else current.plan
        results = Results.of(self.store, family, only, self.settings.least, plan)
        title = self.settings.title or None
        if form == "json":
            return json_text({"title": title, **results.described()})
        return results.page(title)

    def _check_key(self, request: Request) -> None:
        """Refuse to show results to a client without the key."""
        if self.settings.key is None:
            return
        kind, _, shown = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            try:
                shown = base64.b64decode(shown, validate=True).decode().partition(":")[2]
            except (binascii.Error, ValueError):
                shown = ""
        if not hmac.compare_digest(shown.encode(), self.settings.key.encode()):
            raise HTTPException(
                401,
                "results need the key",
                {"www-authenticate": 'Basic realm="results"'},
            )

    # Whoever runs it

    async def _description(self, request: Request) -> Response:
        """Describe the requests."""
        key = self.settings.key is not None
        return _json(description(self.limits, key=key, invited=self._inviting.shown()))

    async def _health(self, request: Request) -> Response:
        """Return whether messages can be stored."""
        status, state = await self.health()
        return _json(state, status)

    async def health(self) -> tuple[int, dict[str, str]]:
        """Return the status, and whether messages can be stored."""
        trouble = self.writer.trouble is not None
        state = {
            "store": "unavailable" if trouble else "available",
            "plan": "expired" if self.collection.in_force() is None else "in force",
            "plans": "refused" if self.writer.plan_trouble is not None else "read",
        }
        return 503 if trouble else 200, state

    async def _metrics(self, request: Request) -> Response:
        """Return the server's own counters."""
        text = self.counters.text(await self.gauges())
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def gauges(self) -> dict[str, float]:
        """Measure what there is at this moment."""
        found = self.collection.in_force()
        gauges: dict[str, float] = {
            "turnout_transactions_total": self.writer.transactions,
            "turnout_waiting_bytes": self.writer.waiting,
            "turnout_store_usable": int(self.writer.trouble is None),
        }
        if found is not None and found.plan.expires is not None:
            gauges["turnout_plan_expires_seconds"] = int(found.plan.expires.timestamp())
        return gauges


def _json(value: Mapping[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(value), status, media_type="application/json")


def _json_text(text: str) -> Response:
    return Response(text, media_type="application/json")


def _tagged(request: Request, data: bytes, media_type: str) -> Response:
    """Return a file, or state that the client already has it."""
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    # A proxy that compresses makes a weak tag of it, W/"...".
    had = request.headers.get("if-none-match", "").split(",")
    if any(one.strip().removeprefix("W/") in (tag, "*") for one in had):
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=media_type, headers=headers)


@lru_cache(maxsize=16)
def _file(name: str) -> bytes:
    """Read a file of the page."""
    place = files("turnout.serve").joinpath("static", name)
    try:
        return place.read_bytes()
    except FileNotFoundError:
        raise HTTPException(404, "no such file") from None
