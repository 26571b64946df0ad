"""A round of DAP whose requests go from party to party without a network."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import numpy as np
import pytest

import turnout as tn
from turnout import _core
from turnout.serve.storage.opening import open_store
from turnout.serve.tasks.client import Client
from turnout.serve.tasks.collector import Collected, Collector
from turnout.serve.tasks.files import ClientFile, CollectorFile, HelperFile, LeaderFile
from turnout.serve.tasks.making import Batches, new_task
from turnout.serve.tasks.peers import Answer, Peer
from turnout.serve.web.tasks import TaskServer

LEADER, HELPER = "https://leader.example/dap/", "https://helper.example/"
LABELS = ("a", "b", "c")
JANUS = "janus"


class LostError(Exception):
    """A party that was killed."""


class Round:
    """All parties of a task.

    Parameters
    ----------
    folder
        Where stores are.
    monkeypatch
        Sends requests to the parties.
    noise
        Whether the aggregators add noise.
    stores
        The addresses of their stores.
    janus
        The roles that Janus would have: reports are what Janus takes, whoever is asked.
    mechanism
        What is asked; votes if None.
    more
        What :class:`Batches` takes.
    """

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        *,
        noise: bool = False,
        users: int = 6,
        stores: tuple[str, str] | None = None,
        expires: Any = None,
        janus: tuple[str, ...] = (),
        mechanism: Any = None,
        **more: Any,
    ) -> None:
        if mechanism is None:
            mechanism = tn.distributed.VerifiedAggregation(
                tn.Domain(LABELS), users, epsilon=1.0, delta=0.0, none_counted=bool(janus)
            )
        batches = Batches(**{"reports": users, **more})
        files: Any = new_task(
            mechanism,
            leader=LEADER,
            helper=HELPER,
            batches=batches,
            expires=expires,
            janus=janus,
        )
        if not noise:
            files[:2] = [dataclasses.replace(file, noise=None) for file in files[:2]]
        self.leader_file: LeaderFile = files[0]
        self.helper_file: HelperFile = files[1]
        self.client_file: ClientFile = files[2]
        self.collector_file: CollectorFile = files[3]
        self.task = self.leader_file.task
        self._stores = stores or (str(folder / "leader.db"), str(folder / "helper.db"))
        self._opened: list[Any] = []
        self.sent: list[tuple[str, str, str]] = []
        #: What is asked of whom before it is answered, and after: for faults.
        self.before: Any = lambda address, method, path: None
        self.after: Any = lambda address, method, path: None
        self.start()
        sending = self._request

        def request(peer: Peer, *given: Any) -> Answer:
            # A bound method would take the peer's place.
            return sending(peer, *given)

        monkeypatch.setattr(Peer, "request", request)

    def start(self) -> None:
        """Start both aggregators, over what their stores have."""
        self.stop()
        self._opened = [open_store(address, "tally") for address in self._stores]
        self.leader = TaskServer(self.leader_file, self._opened[0])
        self.helper = TaskServer(self.helper_file, self._opened[1])
        self.applications: dict[str, Any] = {
            LEADER: self.leader.application(),
            HELPER: self.helper.application(),
        }

    def stop(self) -> None:
        for store in self._opened:
            store.close()
        self._opened = []

    def _request(
        self,
        peer: Peer,
        method: str,
        path: str,
        body: bytes | None = None,
        message: str | None = None,
    ) -> Answer:
        headers = {} if message is None else {"content-type": _core.DAP_MEDIA_TYPES[message]}
        if peer.token is not None:
            headers["authorization"] = f"Bearer {peer.token}"
        self.sent.append((peer.role, method, path))
        refused = self.before(peer.role, method, path)
        if refused is not None:
            return Answer(refused, {}, b"")
        answer = self.ask(peer.address, method, path, content=body, headers=headers)
        self.after(peer.role, method, path)
        return Answer(answer.status_code, dict(answer.headers), answer.content)

    def ask(self, address: str, method: str, path: str, **more: Any) -> Any:
        """Make a request."""
        transport = httpx.ASGITransport(app=self.applications[address])

        async def asked() -> httpx.Response:
            async with httpx.AsyncClient(transport=transport) as client:
                return await client.request(method, urljoin(address, path), **more)

        return asyncio.run(asked())

    # What parties do

    def upload(self, votes: Sequence[int]) -> Counter[str]:
        return Client(self.client_file).upload(np.array(votes, np.int64))

    def step(self) -> None:
        """Let the leader do what is to be done."""
        while self.leader._leader.step():
            pass

    def collect(self, **more: Any) -> Collected:
        """Begin a collection job, let the leader work, and get the result."""
        collector = Collector(self.collector_file)
        try:
            return collector.collect(seconds=0.0, **more)
        except tn.errors.ProtocolError:
            self.step()
        return collector.collect(seconds=0.0, **more)

    def refused(self, role: str) -> dict[str, int]:
        """What an aggregator counted."""
        address = LEADER if role == "leader" else HELPER
        found: dict[str, int] = self.ask(address, "GET", "health").json()["refused"]
        return found

    # Reports that no client makes

    def reports(
        self,
        votes: Sequence[int],
        *,
        task: Any = None,
        times: Sequence[int] | None = None,
        mixed: bool = False,
        spoiled: str = "",
    ) -> tuple[list[bytes], bytes]:
        """Make an upload: IDs, and the request; perhaps with a fault."""
        task = task or self.task
        nonces = [secrets.token_bytes(16) for _ in votes]
        question = self.client_file.question
        shards = question._shared(task.dap.context, np.array(votes, np.int64), b"".join(nonces))
        leaders = [shares[0] for _, shares in shards]
        helpers = [shares[1] for _, shares in shards]
        if mixed:
            helpers = helpers[1:] + helpers[:1]
        if spoiled == "leader":
            leaders = [share[:-1] for share in leaders]
        if spoiled == "helper":
            helpers = [share[:-1] for share in helpers]
        now = int(time.time()) // task.time_precision
        body = _core.seal_reports(
            task.dap,
            self.leader_file.key.config,
            self.helper_file.key.config,
            ids=nonces,
            times=[now] * len(nonces) if times is None else list(times),
            public_shares=[public for public, _ in shards],
            leader_shares=leaders,
            helper_shares=helpers,
        )
        return nonces, body

    def send(self, body: bytes) -> Any:
        """Upload bytes, and give the answer."""
        headers = {"content-type": _core.DAP_MEDIA_TYPES["upload-req"]}
        place = f"tasks/{self.task.name}/reports"
        return self.ask(LEADER, "POST", place, content=body, headers=headers)

    def errors(self, body: bytes) -> list[str]:
        """Upload bytes, and give the errors of reports."""
        answer = self.send(body)
        assert answer.status_code == 200, answer.text
        words = {number: word for word, number in _core.DAP_REPORT_ERRORS.items()}
        return [words[error] for _, error in _core.read_upload_errors(answer.content)]
