"""The description of the requests, in terms of OpenAPI 3.1."""

from __future__ import annotations

from typing import Any, Literal

from turnout import __version__
from turnout._documents import object_schema
from turnout.serve.collection import REFUSED
from turnout.serve.limits import Limits

#: What a message must come with.
Invited = Literal["", "invitation", "ticket"]

_NUMBER = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}
_FINGERPRINT = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_TOKEN = {"type": "string", "pattern": "^[A-Za-z0-9_-]{22}$"}
_BASE64URL = {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"}
#: The files of the page.
_FILES = (
    ("/turnout.js", "The client, an ES module.", "text/javascript"),
    ("/page.js", "The program of the page.", "text/javascript"),
    (
        "/loading.js",
        "Says what is wrong if the program of the page does not run.",
        "text/javascript",
    ),
    ("/page.css", "The style of the page.", "text/css"),
    ("/tickets.js", "The client of tickets, an ES module.", "text/javascript"),
)
#: Anything but blank lines.
_LINES = {"type": "string", "pattern": r"[^ \t\n\r]"}
_RETRY_AFTER = {
    "Retry-After": {
        "description": "Seconds after which to try again.",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    }
}


def description(limits: Limits, *, key: bool, invited: Invited = "") -> dict[str, Any]:
    """Describe the requests of a server.

    Parameters
    ----------
    limits
        What a request may cost.
    key
        Whether results are only for clients with the key.
    invited
        What must come with a message, if anything: an invitation, or a ticket.

    Examples
    --------
    >>> sorted(description(Limits(600), key=False)["paths"])[:3]
    ['/', '/health', '/loading.js']
    """
    secured: dict[str, Any] = {"security": [{"key": []}, {"bearer": []}]} if key else {}
    wanted = {
        "name": "plan",
        "in": "query",
        "description": "The fingerprint of one plan; by default all that ask what the plan in "
        "force asks.",
        "schema": _FINGERPRINT,
    }
    results = {
        "parameters": [wanted],
        **secured,
    }
    refusals = {
        401: "The key is missing.",
        404: "There is no such plan.",
        409: "How many people were asked must be said, or contradicts the reports.",
        503: "The store cannot be read at the moment.",
    }
    if not key:
        del refusals[401]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "A collection of turnout",
            "version": __version__,
            "description": "Answers are randomized on the device; the server sees no answer.",
        },
        "paths": {
            "/": _get("The page on which a person answers.", "text/html"),
            "/plan.json": _tagged(
                _get(
                    "The plan in force.",
                    "application/json",
                    refusals={404: "Every plan has expired."},
                    schema={"$ref": "#/components/schemas/plan"},
                )
            ),
            **{path: _tagged(_get(said, kind)) for path, said, kind in _FILES},
            "/reports": {"post": _post(limits, invited)},
            **({"/tickets": {"post": _ticket()}} if invited == "ticket" else {}),
            "/results": _get("The results for people.", "text/html", refusals, more=results),
            "/results.json": _get(
                "The results for programs: the object of turnout estimate --json, and more.",
                "application/json",
                refusals,
                schema={"$ref": "#/components/schemas/results"},
                more=results,
            ),
            "/openapi.json": _get(
                "This description.", "application/json", schema={"type": "object"}
            ),
            "/health": _get(
                "Whether messages can be stored.",
                "application/json",
                schema={"$ref": "#/components/schemas/health"},
                same={503: "Messages cannot be stored at the moment."},
            ),
            "/metrics": _get("Prometheus's text format.", "text/plain"),
        },
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _post(limits: Limits, invited: Invited) -> dict[str, Any]:
    header = {
        "name": f"Turnout-{invited.title()}",
        "in": "header",
        "required": True,
        "description": f"The {invited} of the person: one message with it counts.",
        "schema": _BASE64URL if invited == "ticket" else _TOKEN,
    }
    most = f"At most {limits.lines} messages and {limits.body_bytes} bytes"
    return {
        "summary": "Take in messages, one a line; the answer comes when they are durable.",
        **({"parameters": [header]} if invited else {}),
        "requestBody": {
            "required": True,
            "description": f"One message of at most {limits.message_bytes} bytes."
            if invited
            else f"{most}.",
            "content": {"application/x-ndjson": {"schema": _LINES}},
        },
        "responses": {
            "200": {
                "description": "What became of the messages.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/taken"}}},
            },
            **_refusals(
                {
                    400: "There is no message, or more than one with one " + invited
                    if invited
                    else "There is no message.",
                    **({403: f"A valid {invited} is missing."} if invited else {}),
                    408: "The request took too long.",
                    413: "There are too many messages, or too many bytes.",
                    415: "The body is compressed, or of another type.",
                    429: "Too many messages wait: send the same again later.",
                    503: "They cannot be stored at the moment: send the same again later.",
                }
            ),
        },
    }


def _ticket() -> dict[str, Any]:
    asked = object_schema({"plan": _FINGERPRINT, "invitation": _TOKEN, "blinded": _BASE64URL})
    signed = object_schema({"signed": _BASE64URL})
    return {
        "summary": "Exchange an unused invitation for a ticket (RFC 9474): a signature of a "
        "blinded number.",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": asked}},
        },
        "responses": {
            "200": {
                "description": "The signature, in base64url.",
                "content": {"application/json": {"schema": signed}},
            },
            **_refusals(
                {
                    400: "The request cannot be read, or the number cannot be signed.",
                    403: "This link is not a valid invitation, or it was used.",
                    404: "There is no such plan.",
                    408: "The request took too long.",
                    413: "There are too many bytes.",
                    503: "Invitations cannot be used at the moment: try again later.",
                }
            ),
        },
    }


def _get(
    summary: str,
    media_type: str,
    refusals: dict[int, str] | None = None,
    *,
    schema: dict[str, Any] | None = None,
    same: dict[int, str] | None = None,
    more: dict[str, Any] | None = None,
) -> dict[str, Any]:
    content = {media_type: {"schema": schema or _TEXT}}
    responses = {
        str(status): {"description": said, "content": content}
        for status, said in {200: summary, **(same or {})}.items()
    }
    responses |= {
        **_refusals(refusals or {}),
    }
    return {"get": {"summary": summary, **(more or {}), "responses": responses}}


def _tagged(operation: dict[str, Any]) -> dict[str, Any]:
    """State that a file has an ETag, and is not sent to clients that have it."""
    responses = operation["get"]["responses"]
    responses["304"] = {"description": "The file with the ETag that If-None-Match names."}
    for status in ("200", "304"):
        responses[status]["headers"] = {"ETag": {"required": True, "schema": _TEXT}}
    return operation


def _refusals(refusals: dict[int, str]) -> dict[str, Any]:
    types = {"text/plain": {"schema": _TEXT}}
    return {
        str(status): {
            "description": said,
            "content": types,
            **({"headers": _RETRY_AFTER} if status in (429, 503) else {}),
        }
        for status, said in refusals.items()
    }


def _ledger() -> dict[str, Any]:
    """Describe what a person who reports every time spends."""
    text, epsilon = {"type": "string"}, {"type": "number", "minimum": 0}
    spent = object_schema({"of": text, "epsilon": epsilon})
    question = object_schema(
        {
            "question": text,
            "plans": {"type": "array", "items": text},
            "spent": {"type": "array", "items": spent},
        }
    )
    return object_schema(
        {
            "times": _NUMBER,
            "epsilon": epsilon,
            "epsilon_unchanged": epsilon,
            "questions": {"type": "array", "items": question},
            "statements": {"type": "array", "items": text},
        }
    )


def _schemas() -> dict[str, Any]:
    refused = {
        "type": "object",
        "properties": {kind: {"type": "integer", "minimum": 1} for kind in REFUSED},
        "additionalProperties": False,
    }
    return {
        "taken": object_schema({"accepted": _NUMBER, "duplicates": _NUMBER, "refused": refused}),
        "plan": {
            "type": "object",
            "required": ["format", "version", "plan", "fingerprint"],
        },
        "results": {
            "type": "object",
            "properties": {
                "received": {"type": ["integer", "null"]},
                "nodes": {"type": ["integer", "null"]},
                "asked": {"type": ["integer", "null"]},
                "least": _NUMBER,
                "hidden": _NUMBER,
                "protection": {"type": "array", "items": {"type": "string"}},
                "ledger": _ledger(),
            },
            "required": [
                *("received", "nodes", "asked", "least", "hidden", "protection", "ledger", "plan")
            ],
        },
        "health": object_schema(
            {
                "store": {"enum": ["available", "unavailable"]},
                "plan": {"enum": ["in force", "expired"]},
                "plans": {"enum": ["read", "refused"]},
            }
        ),
    }
