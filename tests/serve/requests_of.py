"""Hooks of schemathesis: how it writes messages, and good values to try among its own.

The file that ``GOOD_REQUESTS`` names is an object of lists: ``messages``, ``headers`` for them, and
``tickets``, the bodies of requests for tickets.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode, HookContext, SerializationContext
from schemathesis.core import NotSet

GOOD: dict[str, list[Any]] = json.loads(Path(os.environ["GOOD_REQUESTS"]).read_text())


@schemathesis.serializer("application/x-ndjson")
def lines(context: SerializationContext, value: Any) -> Any:
    """Write lines."""
    return value.encode("utf-8", "surrogatepass")


@schemathesis.hook
def filter_case(context: HookContext, case: Case) -> bool:
    """Leave out what cannot be said in lines: whatever is sent as a text is a text."""
    return case.path != "/reports" or isinstance(case.body, (str, NotSet))


@schemathesis.hook
def flatmap_case(context: HookContext, case: Case) -> st.SearchStrategy[Case]:
    """Try a good request in the place of half of those that are only of the right form."""
    same = st.just(case)
    if case.meta is None or case.meta.generation.mode is not GenerationMode.POSITIVE:
        return same
    if case.path == "/tickets" and GOOD["tickets"]:
        return same | st.sampled_from(GOOD["tickets"]).map(lambda body: with_(case, body, {}))
    if case.path == "/reports":
        headers = st.sampled_from(GOOD["headers"] or [{}])
        message = st.sampled_from(GOOD["messages"])
        return same | st.builds(lambda body, head: with_(case, body, head), message, headers)
    return same


def with_(case: Case, body: Any, headers: dict[str, str]) -> Case:
    """Give a request another body, and headers more."""
    case.body = body
    case.headers.update(headers)
    return case
