"""Invited people: one message of each counts, with and without tickets."""

from __future__ import annotations

import base64
import csv
import json
import re
import sqlite3
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import Running
from typer.testing import CliRunner

import turnout as tn
from turnout import _core
from turnout.cli.app import app
from turnout.frequency.adaptive import SecondRound
from turnout.serve.collection import Collection
from turnout.serve.invitations import Invitations
from turnout.serve.storage.opening import open_store
from turnout.signing import SigningKey

PLAN = tn.Plan(tn.DirectEncoding(1.0, ["no", "yes"]), tn.Everyone(), serial=1)
OTHER = tn.Plan(tn.DirectEncoding(1.0, ["no", "yes"]), tn.Everyone(), serial=2)

Serve = Callable[..., Running]


def begun(serving: Serve, tmp_path: Path, *, blind: bool) -> tuple[Running, list[str], Invitations]:
    invitations, tokens = Invitations.create(5, blind=blind)
    invitations.write(tmp_path / "invitations.json")
    server = serving(PLAN, "--invitations", tmp_path / "invitations.json", "--least", 1)
    return server, tokens, invitations


def sent(server: Running, message: bytes, **headers: str) -> Any:
    more = {f"turnout-{name}": value for name, value in headers.items()}
    answer = server.send([message], headers=more)
    return answer.json() if answer.status_code == 200 else answer.status_code


def counted(accepted: int = 0, duplicates: int = 0, **refused: int) -> dict[str, Any]:
    return {"accepted": accepted, "duplicates": duplicates, "refused": refused}


def message(plan: tn.Plan = PLAN) -> bytes:
    made = plan.report("yes")
    assert made is not None
    return made


def test_one_message_of_each_invitation_counts(serving: Serve, tmp_path: Path) -> None:
    server, tokens, _ = begun(serving, tmp_path, blind=False)
    first, second = message(), message()
    assert sent(server, first) == 403
    assert sent(server, first, invitation="A" * 22) == 403
    assert sent(server, first, ticket=tokens[0]) == 403
    assert server.client.post("/tickets", json={}).status_code == 404
    # A message that is refused uses nothing up.
    assert sent(server, b"{}", invitation=tokens[0]) == counted(malformed=1)
    assert sent(server, first, invitation=tokens[0]) == counted(1)
    assert sent(server, first, invitation=tokens[0]) == counted(duplicates=1)
    assert sent(server, second, invitation=tokens[0]) == counted(invitation=1)
    # What was refused is not taken for a repeat later: it counts with an invitation of its own.
    assert sent(server, second, invitation=tokens[0]) == counted(invitation=1)
    assert sent(server, second, invitation=tokens[1]) == counted(1)
    assert (
        server.send([message(), message()], headers={"turnout-invitation": tokens[2]}).status_code
        == 400
    )
    assert server.results()["received"] == 2


def test_invitations_stay_used_after_a_kill(serving: Serve, tmp_path: Path) -> None:
    server, tokens, _ = begun(serving, tmp_path, blind=False)
    first = message()
    assert sent(server, first, invitation=tokens[0]) == counted(1)
    server.kill()
    server = serving(PLAN, "--invitations", tmp_path / "invitations.json", "--least", 1)
    assert sent(server, message(), invitation=tokens[0]) == counted(invitation=1)
    assert sent(server, first, invitation=tokens[0]) == counted(duplicates=1)
    assert server.results()["received"] == 1


def test_each_plan_of_a_collection_is_answered_once(serving: Serve, tmp_path: Path) -> None:
    invitations, tokens = Invitations.create(2)
    invitations.write(tmp_path / "invitations.json")
    days = tmp_path / "days"
    days.mkdir()
    PLAN.write(days / "1.json")
    OTHER.write(days / "2.json")
    server = serving(days, "--invitations", tmp_path / "invitations.json", "--least", 1)
    for plan in (PLAN, OTHER):
        assert sent(server, message(plan), invitation=tokens[0]) == counted(1)
        assert sent(server, message(plan), invitation=tokens[0]) == counted(invitation=1)


def test_those_who_are_invited_were_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnout.serve.collection._REST", 0.0)
    plans, oracle = tmp_path / "plans", tn.DirectEncoding(1.0, ["no", "yes"])
    plans.mkdir()
    store = open_store(str(tmp_path / "reports.db"), "tally")

    def asked(*all_plans: tn.Plan, invited: int | None = 40) -> list[dict[str, int]]:
        for path in plans.iterdir():
            path.unlink()
        for number, plan in enumerate(all_plans):
            plan.write(plans / f"{number}.json")
        collection = Collection(plans, store, None, invited)
        collection.refresh()
        with store.reading() as reading:
            numbers = [store.number_of(plan.fingerprint, plan.to_json()) for plan in all_plans]
            return [reading.asked(number) for number in numbers]

    # Under the plan in force, and not yet under the one before which it expires.
    tomorrow, later = (datetime(year, 1, 1, tzinfo=timezone.utc) for year in (2990, 2991))
    days = [tn.Plan(oracle, tn.Everyone(), expires=when) for when in (tomorrow, later)]
    assert asked(*days) == [{"[]": 40}, {}]
    # What an operator says stays.
    store.ask(store.number_of(days[0].fingerprint, days[0].to_json()), "[]", 31)
    assert asked(*days) == [{"[]": 31}, {}]
    assert asked(PLAN, invited=None) == [{}]
    groups = {"region": ["north", "south"]}
    assert asked(tn.Plan(oracle, tn.Everyone(), groups=groups)) == [{}]
    second = SecondRound(5.0, 3, oracle=tn.DirectEncoding(4.0, 3), rates=[0.2, 0.25, 0.3])
    for rounds in (tn.HeavyHitters(4.0, bits=8).rounds().current, second):
        assert asked(tn.Plan(rounds, tn.Everyone())) == [{}]
    store.close()


def asked_for(server: Running, token: str, request: Any, plan: tn.Plan = PLAN) -> Any:
    body = {"plan": plan.fingerprint, "invitation": token, "blinded": text(request.blinded)}
    return server.client.post("/tickets", json=body)


def test_tickets_let_in_what_nobody_can_link(serving: Serve, tmp_path: Path) -> None:
    server, tokens, invitations = begun(serving, tmp_path, blind=True)
    assert invitations.public_key is not None
    key = base64.b64decode(invitations.public_key)
    request, again = _core.TicketRequest(key), _core.TicketRequest(key)
    answer = asked_for(server, tokens[0], request)
    # The answer was lost: the same request gets it again, and no other.
    assert asked_for(server, tokens[0], request).json() == answer.json()
    assert asked_for(server, tokens[0], again).status_code == 403
    assert asked_for(server, "A" * 22, again).status_code == 403
    assert asked_for(server, tokens[1], again, OTHER).status_code == 404
    ticket = text(request.finish(data(answer.json()["signed"])))
    first = message()
    assert sent(server, first, invitation=tokens[0]) == 403
    assert sent(server, first, ticket=ticket) == counted(1)
    assert sent(server, first, ticket=ticket) == counted(duplicates=1)
    assert sent(server, message(), ticket=ticket) == counted(invitation=1)
    assert sent(server, message(), ticket=text(b"\1" * 320)) == 403
    assert server.results()["received"] == 1
    # Nothing in the store says which invitation became which ticket.
    server.stop()
    with sqlite3.connect(tmp_path / "reports.db") as store:
        used = dict(store.execute("SELECT mark, said FROM used"))
    assert sorted(map(len, used)) == [32, 32]
    assert sorted(map(len, used.values())) == [0, 32]
    everything = (tmp_path / "reports.db").read_bytes()
    for secret in (tokens[0].encode(), ticket.encode(), data(ticket)[:32], data(tokens[0])):
        assert secret not in everything


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b"x" * 5000, b"{" * 4000, b'{"plan":1}'])
def test_requests_for_tickets_that_cannot_be_read(
    serving: Serve, tmp_path: Path, body: bytes
) -> None:
    server, tokens, _ = begun(serving, tmp_path, blind=True)
    answer = server.client.post("/tickets", content=body)
    assert answer.status_code == (413 if len(body) > 4096 else 400)
    wrong = {"plan": PLAN.fingerprint, "invitation": tokens[0], "blinded": "AAAA"}
    answer = server.client.post("/tickets", json=wrong)
    assert answer.status_code == 400
    assert "256" in answer.text


def turnout(*words: object) -> Any:
    return CliRunner().invoke(app, ["invite", *map(str, words)])


@pytest.mark.parametrize("signed", [True, False])
def test_links_are_written_for_their_owner(tmp_path: Path, signed: bool) -> None:
    key = SigningKey.generate()
    PLAN.write(tmp_path / "plan.json", signing_key=key if signed else None)
    target, codes = tmp_path / "links.csv", tmp_path / "codes"
    given = (tmp_path / "plan.json", "--number", 12, "--url", "https://survey.example.org/a")
    result = turnout(*given, "-o", target, "--qr", codes)
    assert result.exit_code == 0, result.output
    with target.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["number"] for row in rows] == [str(number) for number in range(1, 13)]
    invitations = Invitations.read(tmp_path / "links.json")
    pattern = r"https://survey\.example\.org/a#invitation=([\w-]{22})(?:&key=([0-9a-f]{64}))?"
    tokens = set()
    for row in rows:
        found = re.fullmatch(pattern, row["link"])
        assert found is not None
        assert found[2] == (key.public_key if signed else None)
        assert invitations.mark_of_token(found[1]) is not None
        assert found[1] not in (tmp_path / "links.json").read_text()
        tokens.add(found[1])
    assert len(tokens) == 12
    assert sorted(path.name for path in codes.iterdir())[::11] == ["01.svg", "12.svg"]
    assert b"<svg" in (codes / "01.svg").read_bytes()
    for path in (target, tmp_path / "links.json", codes):
        assert path.stat().st_mode & 0o077 == 0
    # Links that were sent out are never written over.
    before = target.read_bytes()
    again = turnout(*given, "-o", target)
    assert again.exit_code == 1
    assert "already exists" in again.output
    assert target.read_bytes() == before


@pytest.mark.parametrize(
    ("url", "target", "said"),
    [
        ("survey.example.org", "links.csv", "--url"),
        ("https://survey.example.org/#here", "links.csv", "--url"),
        ("ftp://survey.example.org/", "links.csv", "--url"),
        ("https://survey.example.org/", "links.txt", ".csv"),
    ],
)
def test_what_cannot_be_a_link_is_refused(tmp_path: Path, url: str, target: str, said: str) -> None:
    PLAN.write(tmp_path / "plan.json")
    result = turnout(tmp_path / "plan.json", "--number", 3, "--url", url, "-o", tmp_path / target)
    assert result.exit_code != 0
    assert said in result.output
    assert list(tmp_path.iterdir()) == [tmp_path / "plan.json"]


def text(some: bytes) -> str:
    return base64.urlsafe_b64encode(some).rstrip(b"=").decode()


def data(some: str) -> bytes:
    return base64.urlsafe_b64decode(some + "=" * (-len(some) % 4))


def test_what_was_signed_is_json(serving: Serve, tmp_path: Path) -> None:
    server, tokens, invitations = begun(serving, tmp_path, blind=True)
    assert invitations.public_key is not None
    request = _core.TicketRequest(base64.b64decode(invitations.public_key))
    answer = asked_for(server, tokens[0], request)
    assert answer.headers["content-type"] == "application/json"
    assert list(json.loads(answer.content)) == ["signed"]
