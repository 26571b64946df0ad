"""One server for several tasks, and for a collection."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.serve.tasks.processes import Parties, people
from tests.serve.tasks.rounds import Round
from tests.serve.tasks.test_processes import OPTIONS, VOTES, assert_is_the_result
from tests.serve.waiting import PATIENCE

import turnout as tn
from turnout import _core
from turnout.serve.counters import Counters
from turnout.serve.storage.opening import open_store
from turnout.serve.web.several import task_servers


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Parties, Parties]]:
    """Two tasks of two servers, each of which is the leader of one and the helper of the other."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first = Parties(tmp_path / "first", *OPTIONS)
    crossed = {"leader": first.ports["helper"], "helper": first.ports["leader"]}
    second = Parties(tmp_path / "second", *OPTIONS, ports=crossed)
    yield first, second
    first.stop()


@pytest.mark.slow
def test_two_servers_have_two_tasks_and_a_collection(
    both: tuple[Parties, Parties], tmp_path: Path
) -> None:
    first, second = both
    plan = tn.Plan(tn.DirectEncoding(1.0, ["no", "yes"]), tn.Everyone())
    plan.write(tmp_path / "plan.json")
    first.start("leader", also=["--task", second.task / "helper.json", tmp_path / "plan.json"])
    first.start("helper", also=["--task", second.task / "leader.json"])
    votes = people(tmp_path, VOTES)
    for task in both:
        assert '"accepted": 60' in task.upload(votes, "--column", "vote", "--json").stdout
        assert_is_the_result(task.result())
    with httpx.Client(base_url=first.urls["leader"], timeout=PATIENCE) as server:
        message = plan.report("yes")
        assert message is not None
        assert server.post("/reports", content=message).json()["accepted"] == 1
        assert server.post("/reports", content=message).json()["duplicates"] == 1
        assert server.get("/plan.json").status_code == 200
        health = server.get("/health").json()
        assert [each["role"] for each in health["tasks"]] == ["leader", "helper"]
        assert (health["store"], health["plan"]) == ("available", "in force")
        found = server.get("/metrics").text
        assert 'turnout_messages_total{outcome="accepted"} 61' in found
        assert found.count("# TYPE turnout_waiting_bytes") == 1
        other = server.post(f"/tasks/{'A' * 43}/reports", content=b"")
        assert (other.status_code, other.json()["title"]) == (404, "unrecognizedTask")
    with httpx.Client(base_url=first.urls["helper"], timeout=PATIENCE) as server:
        assert server.post("/reports", content=b"").status_code == 404


def test_tasks_of_one_address_have_the_keys_of_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [Round(tmp_path, monkeypatch).leader_file for _ in range(2)]
    for other in ((files[0].key.config_id + 1) % 256, files[0].key.config_id):
        files[1] = dataclasses.replace(files[1], key=_core.HpkeKey.generate(other))
        store = open_store(str(tmp_path / f"{other}.db"), "tally")
        servers = task_servers(files, Counters(), store)
        keys = [[key.config for key in each._leader.keys] for each in servers]
        assert keys[0] == keys[1]
        assert keys[0][0] == files[0].key.config
        # Keys with the same ID are both tried.
        assert keys[0] == [file.key.config for file in files]
        store.close()
