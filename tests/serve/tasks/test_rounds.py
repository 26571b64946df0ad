"""Whole rounds: what counts, what is refused, and that noise is drawn once."""

from __future__ import annotations

import dataclasses
import secrets
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from tests.serve import databases
from tests.serve.tasks.rounds import HELPER, Round

import turnout as tn
from turnout import _core
from turnout.serve.tasks import records
from turnout.serve.tasks.collector import Collector
from turnout.serve.tasks.peers import PeerRefusedError, PeerUnavailableError
from turnout.serve.tasks.task import Noise

VOTES = [0, 0, 0, 1, 1, -1]
SUMS = (3, 2, 0)


def test_a_round_counts_every_vote_once(begin: Callable[..., Round]) -> None:
    round_ = begin()
    assert round_.upload(VOTES) == {"accepted": 6}
    found = round_.collect()
    assert (found.reports, found.sums) == (6, SUMS)
    assert found.start <= time.time() < found.start + found.duration
    assert round_.refused("leader") == round_.refused("helper") == {}


def test_a_round_on_postgresql(begin: Callable[..., Round], cluster: databases.Database) -> None:
    places = []
    with psycopg.connect(cluster.address, autocommit=True) as connection:
        for name in ("dap_leader", "dap_helper"):
            connection.execute(f"DROP DATABASE IF EXISTS {name}")
            connection.execute(f"CREATE DATABASE {name}")
            places.append(cluster.address.rpartition("/")[0] + f"/{name}")
    round_ = begin(stores=(places[0], places[1]))
    round_.upload(VOTES[:3])
    round_.step()
    round_.start()
    _, again = round_.reports(VOTES[3:])
    assert round_.errors(again) == []
    assert round_.errors(again) == ["report_replayed"] * 3
    assert round_.collect().sums == SUMS


def test_reports_of_many_jobs_are_one_batch(begin: Callable[..., Round]) -> None:
    round_ = begin(users=1200)
    round_.upload([0] * 1200)
    round_.step()
    jobs = [each for each in round_.sent if each[2].endswith("aggregation_jobs")]
    assert len(jobs) == 3
    assert round_.collect().sums == (1200, 0, 0)


def test_a_second_batch_needs_no_new_task(begin: Callable[..., Round]) -> None:
    round_ = begin()
    round_.upload(VOTES)
    first = round_.collect()
    assert first.sums == SUMS
    round_.upload([2] * 6)
    assert round_.collect().batch == round_.collect(after="00000000").batch == first.batch
    second = round_.collect(after=first.batch)
    assert second.sums == (0, 0, 6)
    assert second.batch != first.batch


def test_a_batch_that_nobody_saw_is_not_given_up(begin: Callable[..., Round]) -> None:
    """Whoever asks for the next batch may do so again, whatever happened meanwhile."""
    round_ = begin(noise=True)
    round_.upload(VOTES)
    first = round_.collect()
    for _ in range(3):
        with pytest.raises(PeerUnavailableError, match="0 of 6 reports are verified"):
            round_.collect(after=first.batch)
    round_.upload([2] * 6)
    # The helper is away after the leader has collected the batch.
    round_.before = lambda role, method, path: 503 if role == "helper" else None
    with pytest.raises(PeerUnavailableError, match="helper"):
        round_.step()
    with pytest.raises(PeerUnavailableError):
        round_.collect(after=first.batch)
    round_.before = lambda role, method, path: None
    round_.step()
    # Now the batch is ready, and its result was lost on the way.
    second = round_.collect(after=first.batch)
    assert second.reports == 6
    for more in ({"after": first.batch}, {}):
        again = round_.collect(**more)
        assert (again.batch, again.sums) == (second.batch, second.sums)


def test_a_batch_that_failed_is_told_and_then_given_up(begin: Callable[..., Round]) -> None:
    round_ = begin()
    round_.upload(VOTES)
    round_.before = lambda role, method, path: 400 if path.endswith("aggregate_shares") else None
    with pytest.raises(
        PeerRefusedError, match=r"answers 400.*has no result; ask again for another"
    ):
        round_.collect()
    round_.before = lambda role, method, path: None
    round_.upload([2] * 6)
    assert round_.collect().sums == (0, 0, 6)


def test_reports_for_janus_have_a_bucket_of_no_vote(begin: Callable[..., Round]) -> None:
    round_ = begin(janus=("helper",))
    assert round_.task.vdaf.parameters[0] == ("length", 4)
    round_.upload([0, 0, 1, -1, 2, 2])
    found = round_.collect()
    assert (found.reports, found.sums) == (6, (2, 1, 2))


def test_a_batch_after_another_has_a_share_of_another_name(begin: Callable[..., Round]) -> None:
    """Servers refuse a name that comes again for something else, and Janus is asked by name."""
    round_ = begin(users=2)
    names = []

    def refuse(role: str, method: str, path: str) -> int | None:
        if role == "helper" and method == "PUT" and "aggregate_shares" in path:
            names.append(path)
        return 405 if role == "helper" and method == "POST" else None

    round_.before = refuse
    last = ""
    for vote in (0, 1):
        round_.upload([vote, vote])
        found = round_.collect(after=last)
        last = found.batch
        assert found.sums[vote] == 2
    assert len(set(names)) == 2


def test_a_batch_waits_for_all_and_goes_on_without_the_others(begin: Callable[..., Round]) -> None:
    round_ = begin(seconds=3600, least=3)
    round_.upload(VOTES[:4])
    with pytest.raises(
        PeerUnavailableError, match="4 of 6 reports are verified, and at least 3 are needed"
    ):
        round_.collect()
    round_.leader_file = dataclasses.replace(round_.leader_file, batch_seconds=1)
    round_.start()
    time.sleep(1.1)
    found = round_.collect()
    assert (found.reports, found.sums) == (4, (3, 1, 0))


def test_a_batch_of_too_few_reports_is_not_collected(begin: Callable[..., Round]) -> None:
    round_ = begin(seconds=1, least=3)
    round_.upload(VOTES[:2])
    round_.step()
    time.sleep(1.1)
    with pytest.raises(PeerUnavailableError, match="was not ready in time"):
        round_.collect()


def test_noise_is_drawn_once_for_a_batch(begin: Callable[..., Round]) -> None:
    round_ = begin(noise=True)
    round_.upload(VOTES)
    first = round_.collect()
    assert [round_.collect().sums for _ in range(3)] == [first.sums] * 3
    round_.start()
    assert round_.collect().sums == first.sums


@pytest.mark.parametrize("loud", ["leader_file", "helper_file"])
def test_each_aggregator_adds_noise_of_its_own(begin: Callable[..., Round], loud: str) -> None:
    round_ = begin()
    # All three sums are within 100 with a probability below 10^-11.
    file = dataclasses.replace(getattr(round_, loud), noise=Noise("discrete_laplace", 1e6))
    setattr(round_, loud, file)
    round_.start()
    round_.upload(VOTES)
    with pytest.raises(tn.errors.ImplausibleSumsError):
        round_.collect()


def test_replayed_reports_are_refused(begin: Callable[..., Round]) -> None:
    round_ = begin()
    _, body = round_.reports(VOTES)
    assert round_.errors(body) == []
    assert round_.errors(body) == ["report_replayed"] * 6
    assert round_.errors(body + body) == ["report_replayed"] * 12
    round_.step()
    assert round_.errors(body) == ["report_replayed"] * 6
    assert round_.collect().sums == SUMS
    assert round_.errors(body) == ["report_replayed"] * 6
    assert round_.refused("leader") == {"report_replayed": 30}


def test_a_helper_refuses_what_a_leader_replays(begin: Callable[..., Round]) -> None:
    round_ = begin()
    _, body = round_.reports(VOTES)
    answers = [_sent_again(round_, body, secrets.token_bytes(32)) for _ in range(2)]
    assert [type(each) for each in answers[0]] == [bytes] * 6
    assert answers[1] == [_core.DAP_REPORT_ERRORS["report_replayed"]] * 6


def test_ids_are_forgotten_with_what_may_come_again(
    begin: Callable[..., Round], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reports are taken for a while after they were made; then their IDs are not needed."""
    round_ = begin(users=6, time_precision=60)
    limit = records.REPORT_SECONDS
    now, old = int(time.time()) // 60, (int(time.time()) - limit) // 60 - 1
    _, body = round_.reports([0, 1, 2, 2], times=[now, old, old, old + 3])
    assert round_.errors(body) == ["report_dropped"] * 2
    # A leader that is another's opinion: the helper does not take them either.
    dropped = _core.DAP_REPORT_ERRORS["report_dropped"]
    answers = _sent_again(round_, body, secrets.token_bytes(32))
    assert [type(each) for each in answers].count(bytes) == 2
    assert answers.count(dropped) == 2
    round_.step()

    def forget() -> list[int]:
        """Look through all IDs; gives how many there are."""
        found = []
        for party in (round_.leader._leader, round_.helper._helper):
            for _ in range(256):
                with party.records.transaction() as transaction:
                    party.records.forget_old(transaction)
            with party.records.transaction() as transaction:
                count = "SELECT count(*) FROM turnout_task_reports WHERE task = ?"
                found.append(transaction.number(count))
        with round_.helper._helper.records.transaction() as transaction:
            jobs = "SELECT count(*) FROM turnout_task_jobs WHERE task = ?"
            found.append(transaction.number(jobs))
        return found

    monkeypatch.setattr(records, "_PAUSE", 0.0)
    jobs = forget()[2]
    assert jobs >= 1
    assert forget() == [2, 2, jobs]
    # As if it were later.
    monkeypatch.setattr(records, "REPORT_SECONDS", -60)
    assert forget() == [1, 1, jobs]
    monkeypatch.setattr(records, "REPORT_SECONDS", -2 * 3600)
    assert forget() == [0, 0, 0]
    assert round_.errors(body) == ["report_dropped"] * 4
    assert _sent_again(round_, body, secrets.token_bytes(32)) == [dropped] * 4


def _sent_again(round_: Round, body: bytes, batch: bytes) -> list[Any]:
    """Ask the helper for a job as a leader would, and give what it says of each report."""
    reports = _core.DapReports(body)
    shares = reports.open(round_.task.dap, [round_.leader_file.key])
    begun = round_.task.prio3.leader_initialized(
        round_.leader_file.verify_key,
        round_.task.dap.context,
        list(zip(reports.ids, reports.public_shares, shares, strict=True)),
    )
    request = reports.aggregation_job_init_req(
        [message for _, message in begun], key_id=0, batch_id=batch
    )
    answer = round_.ask(
        HELPER,
        "POST",
        f"tasks/{round_.task.name}/aggregation_jobs",
        content=request,
        headers={
            "content-type": _core.DAP_MEDIA_TYPES["aggregation-job-init-req"],
            "authorization": f"Bearer {round_.leader_file.helper_token}",
        },
    )
    assert answer.status_code == 201, answer.text
    return _core.read_aggregation_job_resp(answer.content)[1]


def test_reports_of_another_task_are_refused(begin: Callable[..., Round]) -> None:
    round_ = begin(least=1, seconds=1)
    other = dataclasses.replace(round_.task, id=secrets.token_bytes(32))
    _, body = round_.reports([2] * 5, task=other)
    round_.errors(body)
    round_.upload([0])
    round_.step()
    time.sleep(1.1)
    assert round_.collect().sums == (1, 0, 0)
    assert round_.refused("leader") == {"hpke_decrypt_error": 5}


@pytest.mark.parametrize("role", ["leader", "helper"])
def test_a_report_with_a_truncated_share_is_refused(begin: Callable[..., Round], role: str) -> None:
    round_ = begin()
    _, body = round_.reports([2, 2], spoiled=role)
    round_.errors(body)
    round_.upload(VOTES)
    assert round_.collect().sums == SUMS
    assert round_.refused("leader") == {"invalid_message": 2}
    assert round_.refused("helper") == ({"invalid_message": 2} if role == "helper" else {})


def test_shares_that_are_not_of_one_vote_are_refused(begin: Callable[..., Round]) -> None:
    round_ = begin()
    _, body = round_.reports([2, 1, 0], mixed=True)
    round_.errors(body)
    round_.upload(VOTES)
    assert round_.collect().sums == SUMS
    assert round_.refused("leader") == {"vdaf_verify_error": 3}


def test_reports_out_of_time_are_refused(begin: Callable[..., Round]) -> None:
    soon = datetime.now(timezone.utc) + timedelta(hours=5)
    round_ = begin(expires=soon, time_precision=3600)
    now = int(time.time()) // 3600
    _, body = round_.reports([0, 0, 0, 0], times=[now - 5, now, now + 2, now + 9])
    assert round_.errors(body) == ["report_dropped", "report_too_early", "report_dropped"]


def test_a_helper_whose_clock_is_behind_takes_what_the_leader_accepted(
    begin: Callable[..., Round], monkeypatch: pytest.MonkeyPatch
) -> None:
    round_ = begin(time_precision=3600)
    assert round_.upload(VOTES) == {"accepted": 6}
    behind = SimpleNamespace(time=lambda: time.time() - 3500)
    monkeypatch.setattr("turnout.serve.tasks.helper.time", behind)
    assert round_.collect().sums == SUMS


def test_reports_of_an_expired_task_are_refused(
    begin: Callable[..., Round], monkeypatch: pytest.MonkeyPatch
) -> None:
    soon = datetime.fromtimestamp(time.time() + 3600, timezone.utc)
    round_ = begin(expires=soon, time_precision=1, least=1)
    round_.upload([0, 1])
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() + 3602)
    assert round_.upload([2]) == {"report_dropped": 1}
    # Nobody else can come: the batch waits no longer.
    assert round_.collect().sums == (1, 1, 0)


# Batches of times


def interval(round_: Round, hours: int = 1) -> tuple[int, int]:
    start = int(time.time()) // 3600 * 3600
    return start, start + 3600 * hours


def test_batches_of_times(begin: Callable[..., Round]) -> None:
    round_ = begin(mode="time_interval", users=6)
    now = int(time.time()) // 3600
    _, early = round_.reports([2] * 6, times=[now - 1] * 6)
    round_.errors(early)
    round_.upload(VOTES)
    start, end = interval(round_)
    assert round_.collect(interval=(start, end)).sums == SUMS
    assert round_.collect(interval=(start - 3600, start)).sums == (0, 0, 6)


def test_a_time_that_was_collected_takes_no_more(begin: Callable[..., Round]) -> None:
    round_ = begin(mode="time_interval", users=6)
    round_.upload(VOTES)
    start, end = interval(round_)
    first = round_.collect(interval=(start, end)).sums
    assert round_.upload([0]) == {"batch_collected": 1}
    assert round_.collect(interval=(start, end)).sums == first
    with pytest.raises(PeerRefusedError, match="batchOverlap"):
        round_.collect(interval=(start - 3600, end))


def test_a_helper_takes_no_more_of_a_time_that_was_collected(begin: Callable[..., Round]) -> None:
    round_ = begin(mode="time_interval", users=6)
    _, late = round_.reports([0] * 3)
    round_.upload(VOTES)
    round_.collect(interval=interval(round_))
    reports = _core.DapReports(late)
    shares = reports.open(round_.task.dap, [round_.leader_file.key])
    begun = round_.task.prio3.leader_initialized(
        round_.leader_file.verify_key,
        round_.task.dap.context,
        list(zip(reports.ids, reports.public_shares, shares, strict=True)),
    )
    request = reports.aggregation_job_init_req(
        [message for _, message in begun], key_id=0, batch_id=None
    )
    answer = round_.helper._helper.aggregate(request, bytes(16), "dap-18")
    assert (
        _core.read_aggregation_job_resp(answer)[1]
        == [_core.DAP_REPORT_ERRORS["batch_collected"]] * 3
    )


def test_mismatching_batches_are_named(begin: Callable[..., Round]) -> None:
    round_ = begin()
    _, body = round_.reports([0] * 3)
    round_.upload(VOTES)
    round_.step()
    # A report that only the helper has.
    with round_.leader._leader.records.transaction() as records:
        [(bucket,)] = records.rows("SELECT bucket FROM turnout_task_buckets WHERE task = ?")
    _sent_again(round_, body, bytes(bucket))
    with pytest.raises(PeerRefusedError, match=r"batchMismatch.*9 reports here and 6"):
        round_.collect()


def test_a_result_for_another_collector_is_refused(begin: Callable[..., Round]) -> None:
    round_ = begin()
    round_.upload(VOTES)
    round_.collect()
    key = _core.HpkeKey.generate(round_.collector_file.key.config_id)
    other = dataclasses.replace(round_.collector_file, key=key)
    with pytest.raises(tn.errors.ProtocolError, match="not the result of this task"):
        Collector(other).collect(seconds=0.0)


def test_more_reports_than_users_are_estimated(begin: Callable[..., Round]) -> None:
    round_ = begin(mode="time_interval", users=4)
    round_.upload(VOTES)
    assert round_.collect(interval=interval(round_)).estimate.received == 6


def test_a_helper_draws_no_second_noise_for_a_batch(begin: Callable[..., Round]) -> None:
    round_ = begin(noise=True)
    round_.upload(VOTES)
    round_.collect()
    with round_.leader._leader.records.transaction() as records:
        [(asked,)] = records.rows(
            "SELECT share_request FROM turnout_task_collections WHERE task = ?"
        )
    place = f"tasks/{round_.task.name}/aggregate_shares"
    headers = {
        "content-type": _core.DAP_MEDIA_TYPES["aggregate-share-req"],
        "authorization": f"Bearer {round_.leader_file.helper_token}",
    }

    def ask(method: str, where: str) -> Any:
        return round_.ask(HELPER, method, where, content=bytes(asked), headers=headers)

    first = ask("POST", place)
    assert ask("POST", place).content == first.content
    assert ask("GET", first.headers["location"]).content == first.content
    other = f"{place}/{'A' * 22}"
    assert ask("PUT", other).json()["title"] == "batchOverlap"
    assert ask("DELETE", first.headers["location"]).status_code == 204
    assert ask("POST", place).json()["title"] == "batchOverlap"


def test_a_collection_is_forgotten_and_its_batch_is_not(begin: Callable[..., Round]) -> None:
    round_ = begin(mode="time_interval", users=6)
    round_.upload(VOTES)
    found = round_.collect(interval=interval(round_))
    with pytest.raises(PeerRefusedError, match="batchOverlap"):
        round_.collect(interval=interval(round_), after=found.batch)


def test_a_time_is_not_collected_while_reports_of_it_wait(begin: Callable[..., Round]) -> None:
    round_ = begin(mode="time_interval", users=6)
    round_.upload(VOTES)
    round_.step()
    round_.upload([2])
    with pytest.raises(PeerUnavailableError, match=r"6 of 6 reports are verified, .*; 1 wait"):
        Collector(round_.collector_file).collect(seconds=0.0, interval=interval(round_))
    assert not round_.leader._leader.collections.step()
    assert round_.collect(interval=interval(round_)).sums == (3, 2, 1)


def test_honest_votes_count_where_a_third_cheats(begin: Callable[..., Round]) -> None:
    round_ = begin(users=70)
    for _ in range(10):
        _, mixed = round_.reports([0, 2, 1], mixed=True)
        _, replayed = round_.reports([0, 0, 0, 1, 1, 1, -1])
        assert round_.errors(mixed) == []
        assert round_.errors(replayed) == []
        assert round_.errors(replayed) == ["report_replayed"] * 7
    found = round_.collect()
    assert (found.reports, found.sums) == (70, (30, 30, 0))
    assert round_.refused("leader") == {"report_replayed": 70, "vdaf_verify_error": 30}
