"""Requests to the aggregators of a task, bounded in time and size."""

from __future__ import annotations

import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

from turnout import _core
from turnout._documents import parsed
from turnout.errors import InvalidValueError, ProtocolError
from turnout.serve.tasks.reading import text_of

#: What servers of the draft speak, and what Janus does where it is older than the draft.
DIALECTS: Final = ("dap-18", "janus")

#: Seconds for one request, and the most bytes of an answer.
SECONDS: Final = 60.0
ANSWER_BYTES: Final = 2**28
_PIECE: Final = 2**16

#: The most characters of what a server says that a message shows.
_SHOWN: Final = 300

#: Seconds between two questions whether something is ready, whatever the server asks for.
_LEAST_PAUSE: Final = 0.05

_PROBLEMS: Final = {urn: word for word, urn in _core.DAP_PROBLEMS.items()}

#: Statuses after which the same request may succeed later, and why it did not.
_LATER: Final = (401, 403, 404, 408, 425, 429)


class PeerUnavailableError(ProtocolError):
    """A server could not be asked, or cannot answer at the moment."""


class PeerRefusedError(ProtocolError):
    """A server refused a request.

    Parameters
    ----------
    message
        What happened.
    kind
        The word of the draft for it, or nothing.
    """

    def __init__(self, message: str, kind: str = "") -> None:
        super().__init__(message)
        self.kind = kind


class Answer(NamedTuple):
    """An answer: its status, its header fields with names in small letters, and its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Peer:
    """A server that requests are sent to.

    Attributes
    ----------
    address
        Its address.
    role
        Its name in messages.
    token
        The token that is shown to it; None if there is none.
    ca
        The file of the certificates that must have issued its own; None for those of the system.
    seconds
        How long one request may take.
    dialect
        The dialect that it speaks, which the first request that tells it finds out.
    """

    address: str
    role: str
    token: str | None = field(default=None, repr=False)
    ca: Path | None = None
    seconds: float = SECONDS
    dialect: str = DIALECTS[0]

    def __post_init__(self) -> None:
        """Read the certificates."""
        self._context: ssl.SSLContext | None = None
        if urlsplit(self.address).scheme == "https":
            try:
                self._context = ssl.create_default_context(
                    cafile=None if self.ca is None else str(self.ca)
                )
            except ssl.SSLError:
                raise InvalidValueError(f"{self.ca}: holds no certificates in PEM form") from None

    def request(
        self, method: str, path: str, body: bytes | None = None, message: str | None = None
    ) -> Answer:
        """Make one request.

        Parameters
        ----------
        method
            Its method.
        path
            The path below the address of the server, or a whole address on the same server.
        body, message
            The bytes that are sent, and the draft's word for them.

        Raises
        ------
        PeerUnavailableError
            If there is no answer in time.
        """
        url = urlsplit(urljoin(self.address, path))
        own = urlsplit(self.address)
        if (url.scheme, url.netloc) != (own.scheme, own.netloc):
            raise PeerRefusedError(f"the {self.role} names a place on another server")
        headers = {} if message is None else {"Content-Type": _core.DAP_MEDIA_TYPES[message]}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Length"] = str(len(body))
        target = url.path + (f"?{url.query}" if url.query else "")
        end = time.monotonic() + self.seconds
        host, port = url.hostname or "", url.port
        connection = (
            http.client.HTTPConnection(host, port, timeout=self.seconds)
            if self._context is None
            else http.client.HTTPSConnection(
                host, port, timeout=self.seconds, context=self._context
            )
        )

        def response(found: socket.socket, **more: Any) -> http.client.HTTPResponse:
            until: Any = _Until(found, end)
            return http.client.HTTPResponse(until, **more)

        connection.response_class = response  # type: ignore[assignment]
        sent = None if body is None else _pieces(connection, body, end)
        try:
            connection.request(method, target, sent, headers)
            answer = connection.getresponse()
            data = self._body(answer)
        except ssl.SSLCertVerificationError as error:
            raise PeerUnavailableError(
                f"the {self.role} at {self.address} has a certificate that is not trusted: "
                f"{error.verify_message}"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            said = str(error) or type(error).__name__
            raise PeerUnavailableError(
                f"the {self.role} at {self.address} does not answer: {said[:_SHOWN]}"
            ) from None
        finally:
            connection.close()
        named = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, named, data)

    def _body(self, answer: http.client.HTTPResponse) -> bytes:
        body = bytearray()
        while piece := answer.read1(_PIECE):
            body += piece
            if len(body) > ANSWER_BYTES:
                raise PeerRefusedError(f"the {self.role} answers with too many bytes")
        if answer.length:
            # What is missing may be anything: the same request is made again.
            raise ConnectionError("the connection ended in the middle of the answer")
        return bytes(body)

    def get(self, path: str) -> Answer:
        """Get the resource at a place; raise an error if that is the answer."""
        return self.checked(self.request("GET", path))

    def checked(self, answer: Answer) -> Answer:
        """Return an answer; raise it if it is an error.

        Raises
        ------
        PeerUnavailableError, PeerRefusedError
            If it is an error.
        """
        if 200 <= answer.status < 300:
            return answer
        kind, detail = _problem(answer)
        said = f"the {self.role} at {self.address} answers {answer.status}"
        said += f" {kind}" if kind else ""
        said += f": {detail}" if detail else ""
        if answer.status in _LATER or answer.status >= 500:
            raise PeerUnavailableError(said)
        raise PeerRefusedError(said, kind)

    def create(
        self, place: str, name: bytes, make: Callable[[str], bytes], message: str
    ) -> tuple[str, Answer]:
        """Create a resource as the draft says or, if the server does not know that, as Janus does.

        Parameters
        ----------
        place
            The place of such resources.
        name
            The name of this resource, if the client chooses it.
        make
            Makes the body for a dialect.
        message
            The word of the draft for the body.

        Returns
        -------
        place, answer
            The place of the resource, and the answer; the body of the answer is empty if it is not
            ready.
        """
        named = f"{place}/{text_of(name)}"
        for dialect in dict.fromkeys((self.dialect, *DIALECTS)):
            drafts = dialect == "dap-18"
            method, at = ("POST", place) if drafts else ("PUT", named)
            answer = self.request(method, at, make(dialect), message)
            if answer.status in (404, 405) and not _is_problem(answer):
                continue
            self.checked(answer)
            self.dialect = dialect
            return answer.headers.get("location", named), answer
        self.checked(answer)
        raise AssertionError

    def wait_for(self, place: str, answer: Answer, end: float) -> bytes:
        """Ask again until a resource is ready, or until a moment of the monotonic clock.

        Raises
        ------
        PeerUnavailableError
            If it is not ready in time.
        """
        pause = _LEAST_PAUSE
        while not answer.body:
            wanted = answer.headers.get("retry-after", "")
            pause = min(2 * pause, float(wanted) if wanted.isdecimal() else 5.0, 30.0)
            pause = max(pause, _LEAST_PAUSE)
            if time.monotonic() + pause > end:
                raise PeerUnavailableError(
                    f"the {self.role} at {self.address} was not ready in time"
                    + (f": {said}" if (said := answer.headers.get(WAITS)) else "")
                    + "; ask again later, or wait longer"
                )
            time.sleep(pause)
            try:
                answer = self.get(place)
            except PeerUnavailableError:
                # A server that is started again goes on where it was.
                if time.monotonic() + pause > end:
                    raise
        return answer.body


def _left(end: float) -> float:
    """Return the seconds until a moment of the monotonic clock.

    Raises
    ------
    TimeoutError
        If it is past.
    """
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


def _pieces(connection: http.client.HTTPConnection, body: bytes, end: float) -> Iterator[bytes]:
    """Yield the pieces of a body; each may be sent until a moment of the monotonic clock."""
    for start in range(0, len(body), _PIECE):
        connection.sock.settimeout(_left(end))
        yield body[start : start + _PIECE]


class _Until(io.RawIOBase):
    """What a socket receives until a moment of the monotonic clock, however slowly it comes.

    The timeout of a socket is for each receive: a server that sends a byte now and then would keep
    a request waiting forever.
    """

    def __init__(self, found: socket.socket, end: float) -> None:
        super().__init__()
        self._socket, self._raw, self._end = found, found.makefile("rb", buffering=0), end

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a file of it, as a socket does."""
        del mode
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int | None:
        """Receive into a buffer."""
        self._socket.settimeout(_left(self._end))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        """Close it, and let go of the socket."""
        self._raw.close()
        super().close()


#: The header field in which a leader of ours says what a collection waits for.
WAITS: Final = "turnout-waits-for"


def _is_problem(answer: Answer) -> bool:
    return answer.headers.get("content-type", "").startswith("application/problem+json")


def _problem(answer: Answer) -> tuple[str, str]:
    """Read the error in an answer: the word of the draft, and a line for people."""
    if not _is_problem(answer):
        lines = answer.body[:200].decode("utf-8", "replace").splitlines()
        return "", lines[0] if lines else ""
    try:
        found = parsed(answer.body[:_PIECE])
        kind, detail = str(found.get("type", "")), str(found.get("detail", ""))
    except (ValueError, AttributeError):
        return "", ""
    return _PROBLEMS.get(kind, kind.rpartition(":")[2]), " ".join(detail.split())[:_SHOWN]
