"""The requests of aggregators: who may make them, how large they are, and how they are refused."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.serve.tasks.rounds import HELPER, LEADER, Round

from turnout import _core
from turnout.serve.tasks.reading import text_of

NAME = text_of(bytes(16))

#: Of each request of who has a token: whom it goes to, and what it brings.
GUARDED = [
    (LEADER, "POST", "collection_jobs", "collection-job-req"),
    (LEADER, "PUT", f"collection_jobs/{NAME}", "collection-job-req"),
    (LEADER, "GET", f"collection_jobs/{NAME}", None),
    (LEADER, "DELETE", f"collection_jobs/{NAME}", None),
    (HELPER, "POST", "aggregation_jobs", "aggregation-job-init-req"),
    (HELPER, "PUT", f"aggregation_jobs/{NAME}", "aggregation-job-init-req"),
    (HELPER, "POST", f"aggregation_jobs/{NAME}", "aggregation-job-continue-req"),
    (HELPER, "GET", f"aggregation_jobs/{NAME}", None),
    (HELPER, "DELETE", f"aggregation_jobs/{NAME}", None),
    (HELPER, "POST", "aggregate_shares", "aggregate-share-req"),
    (HELPER, "PUT", f"aggregate_shares/{NAME}", "aggregate-share-req"),
    (HELPER, "GET", f"aggregate_shares/{NAME}", None),
    (HELPER, "DELETE", f"aggregate_shares/{NAME}", None),
]


def problem(answer: Any) -> tuple[int, str]:
    """Give what a problem document says, which has the form of RFC 9457."""
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["status"] == answer.status_code
    assert found["type"] in {_core.DAP_PROBLEMS.get(found["title"]), "about:blank"}
    return answer.status_code, found["title"]


def headers(message: str | None, **more: str) -> dict[str, str]:
    kind = {} if message is None else {"content-type": _core.DAP_MEDIA_TYPES[message]}
    return {**kind, **more}


@pytest.mark.parametrize("shown", ["", "Bearer wrong", "Basic wrong", "Bearer \xe9"])
def test_requests_need_the_token(begin: Callable[..., Round], shown: str) -> None:
    round_ = begin()
    more: dict[str, Any] = {} if not shown else {"authorization": shown.encode("latin-1")}
    for address, method, place, message in GUARDED:
        answer = round_.ask(
            address,
            method,
            f"tasks/{round_.task.name}/{place}",
            headers={**headers(message), **more},
        )
        assert problem(answer) == (401, "unauthorized")


def test_a_token_may_come_as_older_drafts_have_it(begin: Callable[..., Round]) -> None:
    round_ = begin()
    body = _core.CollectionJobReq.of().to_bytes()
    place = f"tasks/{round_.task.name}/collection_jobs"
    token = round_.collector_file.token
    answer = round_.ask(
        LEADER,
        "POST",
        place,
        content=body,
        headers=headers("collection-job-req", **{"dap-auth-token": token}),
    )
    assert answer.status_code == 201
    assert (answer.content, answer.headers["retry-after"]) == (b"", "1")
    name = hashlib.sha256(body).digest()[:16]
    assert answer.headers["location"] == f"/dap/{place}/{text_of(name)}"


@pytest.mark.parametrize(
    ("address", "place"),
    [(LEADER, "reports"), (LEADER, "collection_jobs"), (HELPER, "aggregation_jobs")],
)
def test_another_task_is_not_here(begin: Callable[..., Round], address: str, place: str) -> None:
    round_ = begin()
    answer = round_.ask(address, "POST", f"tasks/{text_of(bytes(32))}/{place}", content=b"")
    assert problem(answer) == (404, "unrecognizedTask")


def test_bodies_are_bounded_by_the_task(begin: Callable[..., Round]) -> None:
    round_ = begin()
    most = round_.leader.limits.body_bytes
    assert most < 2**22
    assert problem(round_.send(b"x" * (most + 1))) == (413, "tooLarge")
    _, body = round_.reports([0] * 1000)
    assert len(body) < most
    assert round_.errors(body) == []
    _, more = round_.reports([0] * 1001)
    assert problem(round_.send(more)) == (413, "tooLarge")


@pytest.mark.parametrize("body", [b"", b"\x00", b"x" * 1000])
def test_what_is_no_upload_is_refused(begin: Callable[..., Round], body: bytes) -> None:
    assert problem(begin().send(body)) == (400, "invalidMessage")


def test_a_truncated_upload_is_refused_as_a_whole(begin: Callable[..., Round]) -> None:
    round_ = begin()
    _, body = round_.reports([0, 1])
    assert problem(round_.send(body[:-1])) == (400, "invalidMessage")
    assert round_.leader._leader.waiting() == 0


def test_an_upload_says_what_it_is(begin: Callable[..., Round]) -> None:
    round_ = begin()
    place = f"tasks/{round_.task.name}/reports"
    for kind in ("text/plain", "application/ppm-dap", "application/ppm-dap;message=report"):
        answer = round_.ask(LEADER, "POST", place, content=b"", headers={"content-type": kind})
        assert problem(answer) == (415, "wrongType")


@pytest.mark.parametrize("body", [b"", b"\x00" * 10, b"\x01\xff\xff"])
def test_what_is_no_request_of_a_peer_is_refused(begin: Callable[..., Round], body: bytes) -> None:
    round_ = begin()
    tokens = {LEADER: round_.collector_file.token, HELPER: round_.leader_file.helper_token}
    for address, method, place, message in GUARDED:
        if message is not None:
            answer = round_.ask(
                address,
                method,
                f"tasks/{round_.task.name}/{place}",
                content=body,
                headers=headers(message, authorization=f"Bearer {tokens[address]}"),
            )
            status, kind = problem(answer)
            assert 400 <= status < 500
            assert kind in ("invalidMessage", "unrecognizedAggregationJob")


def test_keys_are_given_to_everybody(begin: Callable[..., Round]) -> None:
    round_ = begin()
    for address, file in ((LEADER, round_.leader_file), (HELPER, round_.helper_file)):
        answer = round_.ask(address, "GET", "hpke_config")
        assert answer.headers["content-type"] == _core.DAP_MEDIA_TYPES["hpke-config-list"]
        assert answer.headers["cache-control"] == "max-age=86400"
        assert _core.read_hpke_configs(answer.content) == [file.key.config]


def test_a_server_has_the_requests_of_its_role_alone(begin: Callable[..., Round]) -> None:
    round_ = begin()
    for address, place in ((LEADER, "aggregation_jobs"), (HELPER, "reports")):
        answer = round_.ask(address, "POST", f"tasks/{round_.task.name}/{place}", content=b"")
        assert answer.status_code == 404


def test_metrics_count_reports(begin: Callable[..., Round]) -> None:
    round_ = begin()
    round_.upload([0, 1])
    text = round_.ask(LEADER, "GET", "metrics").text
    assert 'turnout_messages_total{outcome="accepted"} 2' in text
    path = f"/dap/tasks/{round_.task.name}/reports"
    assert f'turnout_requests_total{{path="{path}",status="200"}} 1' in text
    assert "turnout_refused_reports_total" not in text
    _, body = round_.reports([0, 1, 2], mixed=True)
    for _ in range(2):
        round_.send(body)
    round_.step()
    # They are those of the store, also after a restart.
    round_.start()
    text = round_.ask(LEADER, "GET", "metrics").text
    of_task = f'turnout_refused_reports_total{{task="{round_.task.name}",reason='
    assert f'{of_task}"report_replayed"}} 3' in text
    assert f'{of_task}"vdaf_verify_error"}} 3' in text
    assert "turnout_store_usable 1" in text


@pytest.mark.parametrize("address", [LEADER, HELPER])
def test_programs_that_watch_a_server_may_ask_for_heads(
    begin: Callable[..., Round], address: str
) -> None:
    round_ = begin()
    for place in ("health", "metrics", "hpke_config"):
        assert round_.ask(address, "HEAD", place).status_code == 200


def test_a_client_that_goes_away_leaves_no_traceback(begin: Callable[..., Round]) -> None:
    # What an application raises is logged with a traceback, by anybody who breaks off an upload.
    round_ = begin()
    kind = _core.DAP_MEDIA_TYPES["upload-req"].encode()
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/dap/tasks/{round_.task.name}/reports",
        "query_string": b"",
        "headers": [(b"content-type", kind), (b"content-length", b"1000")],
    }
    pieces = [
        {"type": "http.request", "body": b"abc", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Any:
        return pieces.pop(0)

    async def send(message: Any) -> None:
        del message

    asyncio.run(round_.applications[LEADER](scope, receive, send))
    assert not pieces


def test_what_has_no_name_of_ours_is_not_there(begin: Callable[..., Round]) -> None:
    round_ = begin()
    for address, jobs, kind, token in (
        (LEADER, "collection_jobs", "unrecognizedCollectionJob", round_.collector_file.token),
        (HELPER, "aggregation_jobs", "unrecognizedAggregationJob", round_.leader_file.helper_token),
    ):
        place = f"tasks/{round_.task.name}/{jobs}/short"
        headers = {"authorization": f"Bearer {token}"}
        answer = round_.ask(address, "GET", place, headers=headers)
        assert (answer.status_code, answer.json()["title"]) == (404, kind)
