"""What servers of ours and of Janus said to each other, again.

``recorded/janus-servers.json`` has rounds with Janus's release build at commit 4ab28a36c70c of
August 2026, each request and its answer: our leader with a helper of Janus, a leader of Janus with
our helper, our client and collector with two of Janus, and the client and collector of Janus (its
crates ``janus_client`` and ``janus_collector`` of that commit) with our two. Eleven people voted,
and but in the last a twelfth report was spoilt. In ``helper-numbers`` and ``leader-numbers`` they
gave whole numbers from -10 to 60. The keys in the file are of these tasks alone.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from turnout import _core
from turnout._secrets import write_secret_file
from turnout.serve.storage.interface import Store
from turnout.serve.storage.opening import open_store
from turnout.serve.tasks import records
from turnout.serve.tasks.collector import Collector
from turnout.serve.tasks.files import CollectorFile, HelperFile, LeaderFile
from turnout.serve.tasks.peers import Answer, Peer, PeerUnavailableError
from turnout.serve.tasks.reading import bytes_of, text_of
from turnout.serve.web.tasks import TaskServer

RECORDED = json.loads((Path(__file__).parents[2] / "recorded" / "janus-servers.json").read_text())
TOKEN = "what-the-leader-shows"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store of an aggregator."""
    opened = open_store(str(tmp_path / "store.db"), "tally")
    yield opened
    opened.close()


def file(kind: Any, theirs: str, folder: Path) -> Any:
    """Write the file of a role, and read it."""
    path = folder / f"{kind.role}.json"
    write_secret_file(path, json.dumps(RECORDED[theirs]["files"][kind.role]))
    return kind.read(path)


def exchanges(theirs: str, to: str, kind: str = "") -> list[dict[str, Any]]:
    """Give what was asked of a role, perhaps of one kind of resource."""
    found = [one for one in RECORDED[theirs]["exchanges"] if one["to"] == to]
    return [one for one in found if kind in one["path"]]


def answered(one: dict[str, Any]) -> Answer:
    return Answer(one["status"], one["headers"], bytes_of(one["answer"]))


def ask(server: TaskServer, one: dict[str, Any], token: str = "") -> httpx.Response:
    """Make a recorded request of a server of ours."""
    headers = {"authorization": f"Bearer {token}"}
    if one["type"] is not None:
        headers["content-type"] = one["type"]
    transport = httpx.ASGITransport(app=server.application())

    async def asked() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            body = bytes_of(one["body"])
            return await client.request(one["method"], one["path"], content=body, headers=headers)

    return asyncio.run(asked())


def assert_are_the_answers(theirs: str, sums: Sequence[int]) -> None:
    """Both noises together pass a limit with a probability below 1e-8."""
    # Votes at epsilon 20, each sum with two noises of the scale 0.1; one sum of the distances
    # of numbers from -10 at epsilon 200, with two of the scale 0.35.
    true, most = ((382,), 8) if "numbers" in theirs else ((6, 4, 1), 6)
    assert sum(abs(a - b) for a, b in zip(sums, true, strict=True)) <= most


@pytest.fixture(autouse=True)
def then(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was recorded is older than what servers take."""
    monkeypatch.setattr(records, "REPORT_SECONDS", 10**10)


@pytest.mark.parametrize("theirs", ["leader", "leader-numbers"])
def test_our_helper_answers_a_leader_of_janus(theirs: str, tmp_path: Path, store: Store) -> None:
    helper = file(HelperFile, theirs, tmp_path)
    # The recorded leader's token is not in the helper's file.
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    server = TaskServer(dataclasses.replace(helper, leader_token_hash=digest), store)
    results: list[Any] = []
    for job in exchanges(theirs, "helper", "aggregation_jobs"):
        found = ask(server, job, TOKEN)
        assert (found.status_code, found.content) == (job["status"], bytes_of(job["answer"]))
        results += _core.read_aggregation_job_resp(found.content, dialect="janus")[1]
    refused = [one for one in results if isinstance(one, int)]
    assert (len(results), refused) == (12, [_core.DAP_REPORT_ERRORS["vdaf_verify_error"]])

    (asked,) = exchanges(theirs, "helper", "aggregate_shares")
    share = ask(server, asked, TOKEN)
    # At once: a leader of Janus whose helper defers its answer leaves its own noise out.
    assert (share.status_code, bool(share.content)) == (201, True)
    assert ask(server, asked, TOKEN).content == share.content
    *_, done = exchanges(theirs, "leader", "collection_jobs")
    request = _core.AggregateShareReq(bytes_of(asked["body"])).collection_job_req
    reports, interval, leaders, _ = _core.read_collection_job_resp(bytes_of(done["answer"]))
    data = _core.write_collection_job_resp(reports, interval, leaders, share.content)
    collector = Collector(file(CollectorFile, theirs, tmp_path))
    collected = collector._opened(request, data)
    assert collected.reports == 11
    assert_are_the_answers(theirs, collected.sums)
    # What Janus found with its own noise.
    known = collector._opened(request, bytes_of(done["answer"]))
    assert list(known.sums) == RECORDED[theirs]["sums"]
    assert_are_the_answers(theirs, known.sums)


@pytest.mark.parametrize("theirs", ["helper", "helper-numbers"])
def test_our_leader_asks_a_helper_of_janus(
    theirs: str, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [one for one in exchanges(theirs, "helper") if one["method"] == "PUT"]
    assert len(left) == 3

    def request(peer: Peer, method: str, path: str, body: Any = None, message: Any = None) -> Any:
        if method == "POST":
            return Answer(404, {}, b"")
        # Jobs get other names each time.
        kind = path.split("/")[-2]
        same = [one for one in left if kind in one["path"] and bytes_of(one["body"]) == body]
        assert len(same) == 1, f"{method} {kind} is not what was sent"
        left.remove(same[0])
        return answered(same[0])

    monkeypatch.setattr(Peer, "request", request)
    server = TaskServer(file(LeaderFile, theirs, tmp_path), store)
    for upload in exchanges(theirs, "leader", "/reports"):
        assert ask(server, upload).status_code == 200
        server._leader.step()
    health = {**upload, "method": "GET", "path": "/health", "body": "", "type": None}
    assert ask(server, health).json()["refused"] == {"vdaf_verify_error": 1}

    collector = file(CollectorFile, theirs, tmp_path)
    [begun] = [one for one in exchanges(theirs, "leader", "collection") if one["body"]]
    created = ask(server, begun, collector.token)
    assert (created.status_code, created.content) == (201, b"")
    server._leader.step()
    assert left == []
    look = {**health, "path": created.headers["location"]}
    data = ask(server, look, collector.token).content
    request_sent = _core.CollectionJobReq(bytes_of(begun["body"]))
    collected = Collector(collector)._opened(request_sent, data)
    assert collected.reports == RECORDED[theirs]["reports"] == 11
    assert_are_the_answers(theirs, collected.sums)


def test_our_collector_asks_a_leader_of_janus_until_it_has_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = exchanges("both", "leader", "collection_jobs")

    def request(peer: Peer, method: str, path: str, body: Any = None, message: Any = None) -> Any:
        one = left.pop(0)
        assert (one["method"], one["path"]) == (method, f"/{path}")
        assert bytes_of(one["body"]) == (body or b"")
        return answered(one)

    monkeypatch.setattr(Peer, "request", request)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    collector = file(CollectorFile, "both", tmp_path)
    with pytest.raises(PeerUnavailableError, match="batchInvalid; ask again when there are more"):
        Collector(collector).collect(seconds=0.0)
    collected = Collector(collector).collect(seconds=60.0)
    assert (collected.reports, list(collected.sums)) == (11, RECORDED["both"]["sums"])
    assert_are_the_answers("both", collected.sums)
    # A job that was given up is not asked for again: the next has another name.
    with pytest.raises(PeerUnavailableError, match="batchInvalid"):
        Collector(collector).collect(seconds=0.0, after=collected.batch)
    assert left == []


def test_our_servers_serve_a_client_and_a_collector_of_janus(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = open_store(str(tmp_path / "helper.db"), "tally")
    leads = file(LeaderFile, "roles", tmp_path)
    helper = TaskServer(file(HelperFile, "roles", tmp_path), other)

    def request(peer: Peer, method: str, path: str, body: Any = None, message: Any = None) -> Any:
        kind = None if message is None else _core.DAP_MEDIA_TYPES[message]
        one = {"method": method, "path": f"/{path}", "type": kind, "body": text_of(body or b"")}
        found = ask(helper, one, leads.helper_token)
        return Answer(found.status_code, dict(found.headers), found.content)

    monkeypatch.setattr(Peer, "request", request)
    leader = TaskServer(leads, store)
    collector = file(CollectorFile, "roles", tmp_path)
    for to, server in (("helper", helper), ("leader", leader)):
        [keys] = exchanges("roles", to, "/hpke_config")
        assert ask(server, keys).content == bytes_of(keys["answer"])
    [upload] = exchanges("roles", "leader", "/reports")
    assert (ask(leader, upload).status_code, ask(leader, upload).status_code) == (200, 200)
    leader._leader.step()

    begun, *asked = exchanges("roles", "leader", "collection_jobs")
    created = ask(leader, begun, collector.token)
    assert (created.status_code, created.content) == (begun["status"], b"")
    leader._leader.step()
    found = ask(leader, asked[-1], collector.token)
    other.close()
    known = bytes_of(asked[-1]["answer"])
    assert found.status_code == asked[-1]["status"]
    assert found.headers["content-type"] == asked[-1]["headers"]["content-type"]
    assert len(found.content) == len(known)
    # What is not sealed is the same, and both are opened to the same votes.
    given, ours = map(_core.read_collection_job_resp, (known, found.content))
    assert given[:2] == ours[:2]
    sent = _core.CollectionJobReq(bytes_of(begun["body"]))
    for answer in (known, found.content):
        collected = Collector(collector)._opened(sent, answer)
        assert collected.reports == RECORDED["roles"]["reports"] == 11
        assert_are_the_answers("roles", collected.sums)
