"""What servers of ours and of Janus said to each other, again.

``recorded/janus-servers.json`` has rounds with Janus's release build at commit 4ab28a36c70c of
August 2026, each request and its answer: our leader with a helper of Janus, a leader of Janus with
our helper, and our client and collector with two of Janus. Eleven people voted, and a twelfth
report was spoilt. The keys in the file are of these tasks alone.
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
from turnout.serve.tasks.collector import Collector
from turnout.serve.tasks.files import CollectorFile, HelperFile, LeaderFile
from turnout.serve.tasks.peers import Answer, Peer, PeerUnavailableError
from turnout.serve.tasks.reading import bytes_of
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


def assert_are_the_votes(sums: Sequence[int]) -> None:
    """The noise of epsilon 20 is 0 but with a probability of some 10^-4 for each sum."""
    assert sum(abs(a - b) for a, b in zip(sums, (6, 4, 1), strict=True)) <= 6


def test_our_helper_answers_a_leader_of_janus(tmp_path: Path, store: Store) -> None:
    helper = file(HelperFile, "leader", tmp_path)
    # The recorded leader's token is not in the helper's file.
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    server = TaskServer(dataclasses.replace(helper, leader_token_hash=digest), store)
    (job,) = exchanges("leader", "helper", "aggregation_jobs")
    found = ask(server, job, TOKEN)
    assert (found.status_code, found.content) == (job["status"], bytes_of(job["answer"]))
    _, results = _core.read_aggregation_job_resp(found.content, dialect="janus")
    refused = [one for one in results if isinstance(one, int)]
    assert (len(results), refused) == (12, [_core.DAP_REPORT_ERRORS["vdaf_verify_error"]])

    (asked,) = exchanges("leader", "helper", "aggregate_shares")
    share = ask(server, asked, TOKEN)
    # At once: a leader of Janus whose helper defers its answer leaves its own noise out.
    assert (share.status_code, bool(share.content)) == (201, True)
    assert ask(server, asked, TOKEN).content == share.content
    *_, done = exchanges("leader", "leader", "collection_jobs")
    request = _core.AggregateShareReq(bytes_of(asked["body"])).collection_job_req
    reports, interval, leaders, _ = _core.read_collection_job_resp(bytes_of(done["answer"]))
    data = _core.write_collection_job_resp(reports, interval, leaders, share.content)
    collected = Collector(file(CollectorFile, "leader", tmp_path))._opened(request, data)
    assert collected.reports == 11
    assert_are_the_votes(collected.sums)


def test_our_leader_asks_a_helper_of_janus(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [one for one in exchanges("helper", "helper") if one["method"] == "PUT"]
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
    server = TaskServer(file(LeaderFile, "helper", tmp_path), store)
    for upload in exchanges("helper", "leader", "/reports"):
        assert ask(server, upload).status_code == 200
        server._leader.step()
    health = {**upload, "method": "GET", "path": "/health", "body": "", "type": None}
    assert ask(server, health).json()["refused"] == {"vdaf_verify_error": 1}

    collector = file(CollectorFile, "helper", tmp_path)
    [begun] = [one for one in exchanges("helper", "leader", "collection") if one["body"]]
    created = ask(server, begun, collector.token)
    assert (created.status_code, created.content) == (201, b"")
    server._leader.step()
    assert left == []
    look = {**health, "path": created.headers["location"]}
    data = ask(server, look, collector.token).content
    request_sent = _core.CollectionJobReq(bytes_of(begun["body"]))
    collected = Collector(collector)._opened(request_sent, data)
    assert collected.reports == RECORDED["helper"]["reports"] == 11
    assert_are_the_votes(collected.sums)


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
    assert_are_the_votes(collected.sums)
    # A job that was given up is not asked for again: the next has another name.
    with pytest.raises(PeerUnavailableError, match="batchInvalid"):
        Collector(collector).collect(seconds=0.0, another=True)
    assert left == []
