"""Parties that are killed, unreachable, old or lying: every round ends, and counts once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.serve.tasks.rounds import LostError, Round
from tests.serve.tasks.test_rounds import SUMS, VOTES

from turnout import _core
from turnout.serve.tasks.collector import Collector
from turnout.serve.tasks.peers import PeerRefusedError, PeerUnavailableError

#: Where a leader is killed: before or after the helper answers, in which request to it.
POINTS = [
    (moment, place)
    for moment in ("before", "after")
    for place in ("aggregation_jobs", "aggregate_shares")
]


def fail_once(round_: Round, moment: str, place: str) -> list[int]:
    """Kill the leader at its first request of a kind; count the requests."""
    seen: list[int] = []

    def fail(role: str, method: str, path: str) -> None:
        if role == "helper" and path.endswith(place):
            seen.append(1)
            if len(seen) == 1:
                raise LostError

    setattr(round_, moment, fail)
    return seen


@pytest.mark.parametrize(("moment", "place"), POINTS)
def test_a_leader_goes_on_where_it_was_killed(
    begin: Callable[..., Round], moment: str, place: str
) -> None:
    round_ = begin()
    round_.upload(VOTES)
    seen = fail_once(round_, moment, place)
    with pytest.raises(LostError):
        round_.collect()
    round_.start()
    found = round_.collect()
    assert (found.reports, found.sums) == (6, SUMS)
    assert len(seen) == 2
    assert round_.refused("leader") == round_.refused("helper") == {}


@pytest.mark.parametrize("place", ["aggregation_jobs", "aggregate_shares"])
def test_noise_is_the_same_after_a_kill(begin: Callable[..., Round], place: str) -> None:
    round_ = begin(noise=True)
    round_.upload(VOTES)
    fail_once(round_, "after", place)
    with pytest.raises(LostError):
        round_.collect()
    with round_.leader._leader.records.transaction() as records:
        before = records.rows("SELECT share FROM turnout_task_collections WHERE task = ?")
    round_.start()
    round_.collect()
    with round_.leader._leader.records.transaction() as records:
        after = records.rows("SELECT share FROM turnout_task_collections WHERE task = ?")
    if place == "aggregate_shares":
        assert before == after
    with round_.helper._helper.records.transaction() as records:
        assert records.number("SELECT count(*) FROM turnout_task_collections WHERE task = ?") == 1


def test_a_helper_that_does_not_answer_is_named(begin: Callable[..., Round]) -> None:
    round_ = begin()
    round_.upload(VOTES)
    round_.before = lambda role, method, path: 503 if role == "helper" else None
    with pytest.raises(PeerUnavailableError, match=r"the helper at https://helper\.example/"):
        round_.collect()
    round_.before = lambda role, method, path: None
    assert round_.collect().sums == SUMS


def test_a_collector_waits_for_a_leader_that_is_started_again(begin: Callable[..., Round]) -> None:
    round_ = begin()
    round_.upload(VOTES)
    asked = []

    def away(role: str, method: str, path: str) -> int | None:
        if role == "leader" and method == "GET" and "collection_jobs" in path:
            asked.append(path)
            if len(asked) in (2, 3):
                return 503
            if len(asked) == 4:
                round_.start()
                round_.step()
        return None

    round_.before = away
    assert Collector(round_.collector_file).collect(seconds=600.0).sums == SUMS
    assert len(asked) == 4


def test_a_helper_that_does_not_answer_is_not_asked_for_each_job(
    begin: Callable[..., Round], monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = begin(users=40)
    monkeypatch.setattr(round_.leader._leader.jobs, "_most", 1)
    asked = []

    def away(role: str, method: str, path: str) -> int | None:
        if role == "helper" and method == "POST":
            asked.append(path)
            return 503
        return None

    round_.upload([0] * 40)
    round_.before = away
    with pytest.raises(PeerUnavailableError):
        round_.leader._leader.step()
    assert 1 <= len(asked) < 30
    round_.before = lambda role, method, path: None
    round_.step()
    assert round_.collect().sums == (40, 0, 0)


def test_a_helper_that_speaks_as_janus_does(begin: Callable[..., Round]) -> None:
    round_ = begin()

    def janus(role: str, method: str, path: str) -> int | None:
        return 404 if method == "POST" and role == "helper" else None

    round_.before = janus
    round_.upload(VOTES)
    assert round_.collect().sums == SUMS
    methods = {method for role, method, path in round_.sent if "aggregat" in path}
    assert methods == {"POST", "PUT"}


def test_a_leader_that_speaks_as_janus_does(begin: Callable[..., Round]) -> None:
    round_ = begin()
    round_.upload(VOTES)
    round_.before = lambda role, method, path: (
        404 if method == "POST" and path.endswith("collection_jobs") else None
    )
    assert round_.collect().sums == SUMS
    assert ("leader", "PUT") in {each[:2] for each in round_.sent}


def test_a_helper_that_refuses_a_job_loses_its_reports_alone(begin: Callable[..., Round]) -> None:
    round_ = begin(least=1, seconds=1)
    round_.upload(VOTES[:3])
    round_.before = lambda role, method, path: 400 if path.endswith("aggregation_jobs") else None
    round_.step()
    round_.before = lambda role, method, path: None
    assert round_.refused("leader") == {"aggregation_job_refused": 3}
    round_.upload([2] * 6)
    assert round_.collect().sums == (0, 0, 6)


def test_a_helper_that_answers_about_other_reports_is_not_believed(
    begin: Callable[..., Round], monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = begin()
    written = _core.write_aggregation_job_resp

    class Lying:
        def __getattr__(self, name: str) -> Any:
            return getattr(_core, name)

        def write_aggregation_job_resp(self, ids: Any, results: Any, **more: Any) -> bytes:
            return written(list(reversed(ids)), results, **more)

    monkeypatch.setattr("turnout.serve.tasks.helper._core", Lying())
    round_.upload(VOTES)
    round_.step()
    assert round_.refused("leader") == {"aggregation_job_refused": 6}


def test_a_share_that_is_no_share_ends_the_collection(
    begin: Callable[..., Round], monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = begin()
    round_.upload(VOTES)
    round_.step()
    monkeypatch.setattr(round_.helper._helper, "share", lambda *given: b"\x00")
    with pytest.raises(PeerRefusedError, match="invalidMessage"):
        round_.collect()


def test_two_servers_collect_one_batch_for_one_job(begin: Callable[..., Round]) -> None:
    round_ = begin()
    for _ in range(2):
        round_.upload(VOTES)
        round_.step()
    request = _core.CollectionJobReq.of().to_bytes()
    jobs = round_.leader._leader.collections
    jobs.create(request, bytes(16))
    assert jobs._collect(bytes(16), request)
    # As a second server does that saw the job before.
    assert not jobs._collect(bytes(16), request)
    with round_.leader._leader.records.transaction() as records:
        assert records.number("SELECT count(*) FROM turnout_task_collected WHERE task = ?") == 1


def test_a_job_that_was_given_up_collects_nothing(begin: Callable[..., Round]) -> None:
    round_ = begin()
    round_.upload(VOTES)
    round_.step()
    request = _core.CollectionJobReq.of().to_bytes()
    jobs = round_.leader._leader.collections
    jobs.create(request, bytes(16))
    jobs.forget(bytes(16))
    assert not jobs._collect(bytes(16), request)
    assert round_.collect().sums == SUMS
