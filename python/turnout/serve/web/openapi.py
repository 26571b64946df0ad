"""The description of the requests, in terms of OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from turnout import __version__
from turnout._documents import object_schema
from turnout.serve.collection import REFUSED
from turnout.serve.limits import Limits

_NUMBER = {"type": "integer", "minimum": 0}


def description(limits: Limits, *, key: bool) -> dict[str, Any]:
    """Describe the requests of a server.

    Parameters
    ----------
    limits
        What a request may cost.
    key
        Whether results are for who has a key.

    Examples
    --------
    >>> sorted(description(Limits(600), key=False)["paths"])[:3]
    ['/', '/health', '/metrics']
    """
    secured: dict[str, Any] = {"security": [{"key": []}, {"bearer": []}]} if key else {}
    wanted = {
        "name": "plan",
        "in": "query",
        "description": "The fingerprint of one plan; by default all that ask what the plan in "
        "force asks.",
        "schema": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
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
            "/plan.json": _get(
                "The plan in force.",
                "application/json",
                refusals={404: "Every plan has expired."},
                schema={"$ref": "#/components/schemas/plan"},
            ),
            "/turnout.js": _get("The client, an ES module.", "text/javascript"),
            "/page.js": _get("The program of the page.", "text/javascript"),
            "/page.css": _get("The style of the page.", "text/css"),
            "/tickets.js": _get("The client of tickets, an ES module.", "text/javascript"),
            "/reports": {"post": _post(limits)},
            "/tickets": {"post": _ticket()},
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
                refusals={503: "Messages cannot be stored at the moment."},
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


def _post(limits: Limits) -> dict[str, Any]:
    return {
        "summary": "Take in messages, one a line; the answer comes when they are durable.",
        "requestBody": {
            "required": True,
            "description": f"At most {limits.lines} messages and {limits.body_bytes} bytes.",
            "content": {
                "application/x-ndjson": {"schema": {"type": "string", "minLength": 1}},
            },
        },
        "responses": {
            "200": {
                "description": "What became of the messages.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/taken"}}},
            },
            **_refusals(
                {
                    400: "There is no message, or more than one came with an invitation.",
                    403: "A valid invitation or ticket is missing.",
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
    text = {"type": "string"}
    asked = object_schema({"plan": text, "invitation": text, "blinded": text})
    signed = object_schema({"signed": text})
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
                    403: "Nobody was invited by this link, or it was used.",
                    404: "There is no such plan, or there are no tickets here.",
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
    more: dict[str, Any] | None = None,
) -> dict[str, Any]:
    content = {media_type: {"schema": schema or {"type": "string"}}}
    responses = {
        "200": {"description": summary, "content": content},
        **_refusals(refusals or {}, media_type if schema else None),
    }
    return {"get": {"summary": summary, **(more or {}), "responses": responses}}


def _refusals(refusals: dict[int, str], other: str | None = None) -> dict[str, Any]:
    types = {"text/plain": {"schema": {"type": "string"}}}
    if other is not None:
        types[other] = {"schema": {}}
    return {
        str(status): {"description": said, "content": types} for status, said in refusals.items()
    }


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
                "received": _NUMBER,
                "nodes": _NUMBER,
                "asked": {"type": ["integer", "null"]},
                "least": _NUMBER,
                "hidden": _NUMBER,
                "protection": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["received", "nodes", "asked", "least", "hidden", "protection", "plan"],
        },
        "health": object_schema(
            {
                "store": {"enum": ["available", "unavailable"]},
                "plan": {"enum": ["in force", "expired"]},
                "plans": {"enum": ["read", "refused"]},
            }
        ),
    }
