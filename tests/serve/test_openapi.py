"""The server keeps to its own description: schemathesis makes requests of it, right and wrong."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.serve.waiting import PATIENCE

import turnout as tn
from turnout import _core
from turnout.serve.invitations import Invitations
from turnout.serve.limits import Limits
from turnout.serve.web.openapi import description

PLAN = tn.Plan(tn.DirectEncoding(1.0, ["no", "yes"]), tn.Everyone())

#: Requests of each kind that schemathesis makes, beside those of the corners of each value.
EXAMPLES = 40

needs_schemathesis = pytest.mark.skipif(
    importlib.util.find_spec("schemathesis") is None,
    reason="schemathesis is not installed (it is in the extra test)",
)


@pytest.mark.parametrize("invited", ["", "invitation", "ticket"])
def test_what_a_message_must_come_with_is_described(invited: Any) -> None:
    paths = description(Limits(600), key=False, invited=invited)["paths"]
    post = paths["/reports"]["post"]
    names = [one["name"] for one in post.get("parameters", [])]
    assert names == [f"Turnout-{invited.title()}"] * bool(invited)
    assert ("403" in post["responses"]) == bool(invited)
    assert ("/tickets" in paths) == (invited == "ticket")
    assert all("Retry-After" in post["responses"][status]["headers"] for status in ("429", "503"))


def text(some: bytes) -> str:
    return base64.urlsafe_b64encode(some).rstrip(b"=").decode()


def messages() -> list[str]:
    made = [PLAN.report("yes") for _ in range(20)]
    return [one.decode() for one in made if one is not None]


def tried(server: Any, folder: Path, *options: str, **good: list[Any]) -> dict[str, set[int]]:
    """Have schemathesis make requests; give the statuses that the server says it gave, by path."""
    known: dict[str, list[Any]] = {"messages": messages(), "headers": [], "tickets": []}
    (folder / "good.json").write_text(json.dumps(known | good))
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{server.address}/openapi.json"]
    command += ["--phases", "coverage,fuzzing", "--max-examples", str(EXAMPLES)]
    command += ["--generation-deterministic", "--continue-on-failure", "--no-color", *options]
    # How long it takes to make a request says nothing about the server.
    command += ["--suppress-health-check", "too_slow"]
    hooks = Path(__file__).with_name("requests_of.py")
    done = subprocess.run(
        command,
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": str(hooks),
            "GOOD_REQUESTS": str(folder / "good.json"),
        },
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=10 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer = server.client.get("/metrics")
    accepted = re.search(r'_messages_total\{outcome="accepted"\} (\d+)', answer.text)
    assert accepted is not None, answer.text
    found: dict[str, set[int]] = {}
    for path, status in re.findall(r'_requests_total\{path="([^"]+)",status="(\d+)"', answer.text):
        found.setdefault(path, set()).add(int(status))
    described = server.client.get("/openapi.json").json()["paths"]
    assert described.keys() <= found.keys()
    assert all(200 in found[path] for path in described), found
    assert not [line for line in server.log if '"error"' in line]
    return found


@pytest.mark.slow
@needs_schemathesis
def test_an_open_collection_keeps_to_its_description(
    serving: Callable[..., Any], tmp_path: Path
) -> None:
    key = tmp_path / "results.key"
    server = serving(PLAN, "--results", "key", "--key", key, "--least", 1)
    server.send([each.encode() for each in messages()])
    found = tried(server, tmp_path, "--auth", f"anybody:{key.read_text().strip()}")
    assert found["/reports"] == {200, 400, 405, 415}
    assert found["/results.json"] >= {200, 401, 404, 405}


@pytest.mark.slow
@needs_schemathesis
@pytest.mark.parametrize("blind", [False, True], ids=["invitations", "tickets"])
def test_a_collection_of_invited_people_keeps_to_its_description(
    serving: Callable[..., Any], tmp_path: Path, blind: bool
) -> None:
    invitations, tokens = Invitations.create(25, blind=blind)
    invitations.write(tmp_path / "invitations.json")
    server = serving(PLAN, "--invitations", tmp_path / "invitations.json")
    good: dict[str, list[Any]] = {}
    if blind:
        # Some good, some of nobody who is invited, some of one person who asks again and again.
        people = [*tokens[:10], *("A" * 22,) * 5, *tokens[10:11] * 5]
        good["tickets"] = [asked(invitations, token) for token in people]
        good["headers"] = [
            {"Turnout-Ticket": ticket(server, invitations, tokens[20 + each])} for each in range(5)
        ]
    else:
        good["headers"] = [{"Turnout-Invitation": token} for token in tokens]
    found = tried(server, tmp_path, **good)
    assert found["/reports"] >= {200, 403, 405}
    if blind:
        assert found["/tickets"] == {200, 400, 403, 404, 405}


def asked(invitations: Invitations, token: str) -> dict[str, str]:
    """The body of a request for a ticket."""
    assert invitations.public_key is not None
    request = _core.TicketRequest(base64.b64decode(invitations.public_key))
    return {"plan": PLAN.fingerprint, "invitation": token, "blinded": text(request.blinded)}


def ticket(server: Any, invitations: Invitations, token: str) -> str:
    """A ticket that the server signed."""
    assert invitations.public_key is not None
    request = _core.TicketRequest(base64.b64decode(invitations.public_key))
    body = {"plan": PLAN.fingerprint, "invitation": token, "blinded": text(request.blinded)}
    signed = server.client.post("/tickets", json=body).json()["signed"]
    return text(request.finish(base64.urlsafe_b64decode(signed + "=" * (-len(signed) % 4))))
