"""The requests of a server that runs as a process of its own."""

from __future__ import annotations

import base64
import gzip
import json
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import turnout as tn
from turnout.signing import SigningKey

QUESTION = tn.Plan(tn.DirectEncoding(2.0, ["no", "yes"]), tn.Everyone())

#: What every answer has.
POLICY = "default-src 'none'"


def messages(number: int, plan: tn.Plan = QUESTION) -> list[bytes]:
    found = [plan.report("yes") for _ in range(number)]
    return [each for each in found if each is not None]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, run: Callable[..., Any]) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("server")
    key = SigningKey.generate()
    QUESTION.write(folder / "plan.json", signing_key=key)
    server = run(
        folder / "plan.json", folder / "reports.db", ["--title", "Smoke <b>?", "--least", 20]
    )
    server.key = key
    yield server
    server.kill()


def test_devices_get_the_signed_plan(running: Any) -> None:
    answer = running.client.get("/plan.json")
    assert answer.headers["content-type"] == "application/json"
    path = Path(running.plan)
    assert answer.content == path.read_bytes()
    assert tn.Plan.read(path, public_key=running.key.public_key) == QUESTION
    again = running.client.get("/plan.json", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    tag = answer.headers["etag"]
    for had, status in ((f'"a", W/{tag}', 304), ("*", 304), (tag[:-2] + '"', 200), ("", 200)):
        again = running.client.get("/plan.json", headers={"if-none-match": had})
        assert again.status_code == status, had


def test_the_page_has_the_title_and_the_key_of_the_plan(running: Any) -> None:
    text = running.client.get("/").text
    assert "<title>Smoke &lt;b&gt;?</title>" in text
    assert f'data-public-key="{running.key.public_key}"' in text


def test_messages_are_acknowledged_and_counted(running: Any) -> None:
    # Of fewer reports than may be shown no number is told.
    assert running.results()["received"] is None
    sent = messages(30)
    assert running.send(sent[:20]).json() == {"accepted": 20, "duplicates": 0, "refused": {}}
    answer = running.send([*sent, b"hello"])
    assert answer.json() == {"accepted": 10, "duplicates": 20, "refused": {"malformed": 1}}
    results = running.results()
    while results["received"] is None:  # what is kept for a moment
        results = running.results()
    assert results["received"] == 30
    assert [each["label"] for each in results["estimates"]] in (["yes", "no"], ["no", "yes"])
    assert {"low", "high", "frequency", "standard_error"} <= results["estimates"][0].keys()
    assert {each["label"] for each in results["shrunken"]} == {"no", "yes"}
    assert results["asked"] is None
    assert any("bet" in sentence for sentence in results["protection"])


def test_results_are_a_page_too(running: Any) -> None:
    running.send(messages(30))
    answer = running.client.get("/results")
    assert answer.status_code == 200
    assert "<h1>Smoke &lt;b&gt;?</h1>" in answer.text
    assert "script" not in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("body", "headers", "status", "said"),
    [
        (b"", {}, 400, "it holds none"),
        (b"\n \r\n\n", {}, 400, "it holds none"),
        (gzip.compress(b"\n" * 10**6), {"content-encoding": "gzip"}, 415, "content-encoding"),
        (b"x=1", {"content-type": "application/x-www-form-urlencoded"}, 415, "one a line"),
        (b"{}\n" * 1001, {}, 413, "1000 messages"),
        (b"{}\n" * 3000, {}, 413, "1000 messages"),
        (b" " * 10**6, {}, 413, "bytes"),
    ],
    ids=["empty", "blank", "compressed", "form", "lines", "many lines", "bytes"],
)
def test_what_is_no_list_of_messages_is_refused_in_one_line(
    running: Any, body: bytes, headers: dict[str, str], status: int, said: str
) -> None:
    answer = running.client.post("/reports", content=body, headers=headers)
    assert answer.status_code == status
    assert said in answer.text
    assert answer.text.count("\n") == 1


def test_lines_are_messages_whatever_ends_them(running: Any) -> None:
    sent = messages(4)
    answer = running.client.post("/reports", content=b"\n\n" + b"\r\n".join(sent) + b"\r\n\r\n")
    assert answer.json() == {"accepted": 4, "duplicates": 0, "refused": {}}
    again = running.send(sent)
    assert again.json()["duplicates"] == 4


def test_other_addresses_and_methods_are_refused(running: Any) -> None:
    client = running.client
    assert client.get("/nothing").status_code == 404
    assert client.get("/reports").status_code == 405
    assert client.post("/plan.json").status_code == 405
    assert client.get("/results.json", params={"plan": "f" * 64}).status_code == 404
    fingerprint = QUESTION.fingerprint
    assert running.results(plan=fingerprint)["plan"] == QUESTION.to_dict()


@pytest.mark.parametrize("path", ["/", "/plan.json", "/results.json", "/nothing", "/metrics"])
def test_every_answer_says_what_a_browser_may_do(running: Any, path: str) -> None:
    headers = running.client.get(path).headers
    assert headers["content-security-policy"].startswith(POLICY)
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers
    assert "set-cookie" not in headers


def test_it_counts_what_it_did(running: Any) -> None:
    running.send(messages(3))
    text = running.client.get("/metrics").text
    accepted = re.search(r'^turnout_messages_total\{outcome="accepted"\} (\d+)$', text, re.M)
    assert accepted is not None
    assert int(accepted[1]) >= 3
    assert 'turnout_requests_total{path="/reports",status="200"}' in text
    assert re.search(r"^turnout_store_usable 1$", text, re.M)
    assert running.client.get("/health").json()["store"] == "available"


def test_results_can_be_for_who_has_the_key(serving: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "results.key"
    running = serving(QUESTION, "--results", "key", "--key", path)
    key = path.read_text().strip()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    basic = base64.b64encode(f"anybody:{key}".encode()).decode()
    for where in ("/results", "/results.json"):
        for wrong in ("", "Bearer wrong", "Basic wrong", f"Basic {basic[:-8]}", "Bearer é"):
            headers = {"authorization": wrong.encode()} if wrong else {}
            answer = running.client.get(where, headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == 'Basic realm="results"'
        for right in (f"Bearer {key}", f"Basic {basic}"):
            answer = running.client.get(where, headers={"authorization": right})
            assert answer.status_code == 200
    assert running.client.get("/plan.json").status_code == 200


def test_it_ends_gracefully_and_goes_on_where_it_was(serving: Callable[..., Any]) -> None:
    sent = messages(60)
    first = serving(QUESTION)
    first.send([*sent[:30], b"hello"])
    assert first.stop() == 0
    [last] = [json.loads(line) for line in first.log if "ended" in line]
    assert last["message"] == "ended; everything that was acknowledged is stored"
    second = serving(QUESTION)
    assert second.send(sent).json() == {"accepted": 30, "duplicates": 30, "refused": {}}
    results = second.results()
    assert (results["received"], results["left_out"]["refused"]) == (60, 1)
    assert second.stop() == 0


def test_neither_addresses_nor_answers_are_logged(serving: Callable[..., Any]) -> None:
    running = serving(QUESTION)
    (one,) = messages(1)
    for body in (one, b"hello " + one, b"\xff"):
        running.client.post("/reports", content=body, headers={"x-forwarded-for": "192.0.2.7"})
    running.client.get("/nothing?answer=yes")
    running.stop()
    log = "".join(running.log).replace(running.address, "")
    assert not re.search(r"127\.0\.0\.1|192\.0\.2\.7|nonce|yes|hello", log)
    kept = b"".join(path.read_bytes() for path in Path(running.store).parent.glob("*.db*"))
    assert b"192.0.2.7" not in kept
    assert b"127.0.0.1" not in kept
