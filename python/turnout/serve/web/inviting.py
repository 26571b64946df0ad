"""Answer the requests of invited people: let their messages in, and sign tickets."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from turnout._documents import parsed
from turnout.errors import InvalidValueError, StoreUnavailableError
from turnout.serve.collection import Collection, mark_under
from turnout.serve.invitations import Invitations
from turnout.serve.limits import RETRY
from turnout.serve.storage.interface import Store
from turnout.serve.web.openapi import Invited

#: The most bytes of a request for a ticket.
_MOST: Final = 4096


class Inviting:
    """A check that lets in the messages of invited people, or of everybody.

    Parameters
    ----------
    invitations
        The invitations; None if everybody may answer, as often as they like.
    collection, store
        The plans, and the store that notes which invitations were used.
    """

    def __init__(
        self, invitations: Invitations | None, collection: Collection, store: Store
    ) -> None:
        self._invitations, self._collection, self._store = invitations, collection, store

    def words(self) -> dict[str, str]:
        """Tell the page how people are invited."""
        if self._invitations is None:
            return {"invitations": "", "ticket_key": ""}
        kind = "blind" if self._invitations.blind else "open"
        return {"invitations": kind, "ticket_key": self._invitations.public_key or ""}

    def shown(self) -> Invited:
        """Name what must come with a message, if anything."""
        if self._invitations is None:
            return ""
        return "ticket" if self._invitations.blind else "invitation"

    def mark(self, request: Request) -> bytes | None:
        """Find the mark of the invitation or ticket that comes with a message.

        The mark is None if none is needed.

        Raises
        ------
        HTTPException
            If one is needed and is missing, or is not one of ours.
        """
        if self._invitations is None:
            return None
        name = f"turnout-{self.shown()}"
        shown = request.headers.get(name, "")
        if self._invitations.blind:
            found = self._invitations.mark_of_ticket(shown)
        else:
            found = self._invitations.mark_of_token(shown)
        if found is None:
            raise HTTPException(403, f"send a message with a valid {name} in the header")
        return found

    async def ticket(self, request: Request) -> Response:
        """Sign a ticket for an invitation that is unused or was used for the same ticket."""
        if self._invitations is None or not self._invitations.blind:
            raise HTTPException(404, "this collection has no tickets")
        plan, token, blinded = await _asked(request)
        if all(plan != one.plan.fingerprint for one in self._collection.published):
            raise HTTPException(404, "this collection has no plan of that fingerprint")
        mark = self._invitations.mark_of_token(token)
        if mark is None:
            raise HTTPException(403, "this link is not a valid invitation")
        try:
            signed = self._invitations.sign(blinded)
        except InvalidValueError as error:
            raise HTTPException(400, str(error)) from None
        said = hashlib.sha256(blinded.encode("ascii")).digest()
        loop = asyncio.get_running_loop()
        try:
            earlier = await loop.run_in_executor(None, self._use, mark_under(plan, mark), said)
        except StoreUnavailableError:
            raise HTTPException(503, "invitations are not available at the moment", RETRY) from None
        if earlier not in (None, said):
            raise HTTPException(403, "this invitation is in use in another browser: answer there")
        return Response(json.dumps({"signed": signed}), media_type="application/json")

    def _use(self, mark: bytes, said: bytes) -> bytes | None:
        """Store what an invitation is used for; return what it was used for before."""
        with self._store.writing() as writing:
            return writing.use({mark: said}).get(mark)


async def _asked(request: Request) -> tuple[str, str, str]:
    """Read a request for a ticket."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _MOST:
            raise HTTPException(413, f"send at most {_MOST} bytes")
    try:
        asked: Any = parsed(bytes(body))
    except ValueError:
        asked = None
    match asked:
        case {"plan": str(plan), "invitation": str(token), "blinded": str(blinded)}:
            return plan, token, blinded
    raise HTTPException(400, "send plan, invitation and blinded as an object of JSON")
