"""Write what all answers have in common: headers, counts, and refusals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from turnout.serve.counters import Counters

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

#: What the page may load: its own files, and nothing of others.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
    "content-security-policy": _POLICY,
}


class Outermost:
    """An application that adds the headers of every answer, and counts requests.

    Parameters
    ----------
    inner
        The application that answers.
    counters
        The counters of requests.
    paths
        The paths that are counted by their names.
    direct
        The applications that answer at a method and a path without going through ``inner``.
    """

    def __init__(
        self,
        inner: Application,
        counters: Counters,
        paths: set[str],
        direct: Mapping[tuple[str, str], Application] | None = None,
    ) -> None:
        self._inner, self._counters, self._paths = inner, counters, paths
        self._direct = direct or {}
        self._headers = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        path = scope["path"] if scope["path"] in self._paths else "other"

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                given = {name for name, _ in headers}
                message["headers"] = [
                    *headers,
                    *(each for each in self._headers if each[0] not in given),
                ]
                status = str(message["status"])
                self._counters.count("turnout_requests_total", path=path, status=status)
            await send(message)

        inner = self._direct.get((scope["method"], scope["path"]), self._inner)
        await inner(scope, receive, sending)


def routed(routes: Sequence[Route]) -> Application:
    """Make an application of routes; errors that are no fault of the server leave no traceback."""
    return Starlette(
        routes=routes, exception_handlers={HTTPException: _refused, ClientDisconnect: _nobody}
    )


async def _refused(request: Request, error: Exception) -> Response:
    """Answer with one line that says what is wrong."""
    assert isinstance(error, HTTPException)
    return refusal(error)


async def _nobody(request: Request, error: Exception) -> Response:
    """Answer a client that has gone: nobody reads it."""
    return Response(status_code=400)


def refusal(error: HTTPException) -> Response:
    """Answer with one line that says what is wrong."""
    return PlainTextResponse(f"{error.detail}\n", error.status_code, headers=error.headers)
