"""Rounds of processes over TLS, of which some are killed, stopped, started anew, slow, or lie.

Most of them wait for a deadline. It is long, so that no party that is there misses it on a busy
machine. So all rounds run beside each other, and wait at the same time.
"""

from __future__ import annotations

import json
import signal
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.distributed.test_network import (
    LABELS,
    SERVER,
    SILENT,
    Line,
    aggregator,
    answers_of,
    counts_of,
)

from turnout import Domain
from turnout.distributed import (
    Message,
    NoisyAggregation,
    Party,
    Role,
    Round,
    TwoStageSampling,
)
from turnout.distributed.messages import MessageKind
from turnout.distributed.payloads import bits_size
from turnout.distributed.transport.frames import frame
from turnout.errors import MalformedMessageError, ProtocolError

pytestmark = pytest.mark.slow

FIRST_SERVER = Party(Role.REPORTING_SERVER)
USERS, PARTS = 32, 4
EACH = USERS // PARTS
#: Seconds to connect, and those that a step or a round waits for parties that never come.
CONNECT, LONG = 10, 30
#: Seconds that nothing waits for, unless a test fails.
NEVER = 600
SCENARIOS: dict[str, Callable[[ModuleType, Path], None]] = {}


def scenario(tried: Callable[[ModuleType, Path], None]) -> Callable[[ModuleType, Path], None]:
    """Make a round one of those that run beside each other."""
    SCENARIOS[tried.__name__] = tried
    return tried


@pytest.fixture(scope="module")
def rounds(
    request: pytest.FixtureRequest, deployment: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[None]]]:
    """The rounds of this file that are to be tested, all begun."""
    here = [item for item in request.session.items if item.path == request.path]
    names = [item.callspec.params["name"] for item in here if isinstance(item, pytest.Function)]
    with ThreadPoolExecutor(len(SCENARIOS)) as threads:
        yield {
            name: threads.submit(SCENARIOS[name], deployment, tmp_path_factory.mktemp("round"))
            for name in names
        }


def two_stage(missing: int, reported: int = len(LABELS)) -> TwoStageSampling:
    """A plan whose sums are the counts, if users report all items."""
    return TwoStageSampling(
        Domain(LABELS),
        USERS,
        reported=reported,
        rate=1 - 1e-12,
        floor=0,
        dummies=1,
        elected=3,
        max_missing_users=missing,
    )


class Devices:
    """The processes of the devices of a two-stage round."""

    def __init__(self, network: Any) -> None:
        self.network = network

    def report(self, *parts: int) -> None:
        """Let the devices of some parts report, until the reporting server has it."""
        for part in parts:
            self.network.users[part].tell(json.dumps(self.network.book))
        for part in parts:
            assert self.network.users[part].wait_for("reported")["undelivered"] == []

    def signal(self, part: int, number: int) -> None:
        self.network.users[part].signal(number)

    def ends(self, *parts: int) -> list[dict[str, Any]]:
        return [self.network.users[part].end() for part in parts]


def people(part: int) -> range:
    return range(part * EACH, (part + 1) * EACH)


def published(network: Any) -> dict[str, Any]:
    """How the reporting server and the server end, both well; what the latter publishes."""
    ends: dict[Party, dict[str, Any]] = network.ends()
    for party, end in ends.items():
        assert end["event"] == "done", (party, end)
    return ends[SERVER]


def deploy(deployment: ModuleType, folder: Path, mechanism: Any, *options: object) -> Any:
    pytest.importorskip("trustme")
    patience = ("--connect-within", CONNECT, "--collect-within", NEVER, "--finish-within", NEVER)
    given = {"user_processes": PARTS, "tls": True, "options": (*patience, *options)}
    return deployment.Deployment(Round.start(mechanism), answers_of(USERS), folder, **given)


def check_near(sums: list[int], answers: list[str], contributors: int) -> None:
    """Of all who are there; each of those who add dummies adds at most one to an item."""
    counts = Counter(answers)
    for label, total in zip(LABELS, sums, strict=True):
        assert counts[label] <= total <= counts[label] + contributors, label


@scenario
def killed_and_stopped_devices_are_left_out_and_others_are_elected(
    deployment: ModuleType, tmp_path: Path
) -> None:
    mechanism = two_stage(2 * EACH)
    with deploy(deployment, tmp_path, mechanism, "--step-within", LONG) as network:
        devices = Devices(network)
        devices.report(0, 1, 2)
        network.users[0].kill()
        devices.signal(1, signal.SIGSTOP)
        devices.report(3)
        found = published(network)
        assert [end["event"] for end in devices.ends(2, 3)] == ["done"] * 2
    assert found["received"] == USERS - 2 * EACH
    check_near(found["sums"], answers_of(USERS)[2 * EACH :], mechanism._contributors)


@scenario
def a_device_that_stops_for_a_moment_stays_in_the_round(
    deployment: ModuleType, tmp_path: Path
) -> None:
    mechanism = two_stage(EACH)
    with deploy(deployment, tmp_path, mechanism, "--step-within", NEVER) as network:
        devices = Devices(network)
        devices.report(0, 1, 2)
        devices.signal(0, signal.SIGSTOP)
        devices.report(3)
        # Connections to it time out meanwhile.
        time.sleep(2.5 * CONNECT)
        devices.signal(0, signal.SIGCONT)
        found = published(network)
        assert [end["event"] for end in devices.ends(*range(PARTS))] == ["done"] * PARTS
    assert found["received"] == USERS
    check_near(found["sums"], answers_of(USERS), mechanism._contributors)


@scenario
def devices_that_started_anew_and_report_twice_count_at_most_once(
    deployment: ModuleType, tmp_path: Path
) -> None:
    mechanism = two_stage(EACH, reported=4)
    with deploy(deployment, tmp_path, mechanism, "--step-within", LONG) as network:
        devices = Devices(network)
        devices.report(0, 1, 2)
        again = network.restart_users(0)
        again.tell(json.dumps(network.book))
        refused = again.wait_for("reported")["undelivered"]
        # Another set than before is refused, the same one is the same.
        assert refused
        assert {each["error"] for each in refused} == {"ProtocolError"}
        assert "already has the message" in refused[0]["text"]
        devices.report(3)
        found = published(network)
    assert found["received"] == USERS - EACH
    counts = Counter(answers_of(USERS)[EACH:])
    for label, total in zip(LABELS, found["sums"], strict=True):
        assert 0 <= total <= counts[label] + mechanism._contributors


@scenario
def more_devices_lost_than_may_be_are_named_and_nothing_is_published(
    deployment: ModuleType, tmp_path: Path
) -> None:
    with deploy(deployment, tmp_path, two_stage(EACH - 1), "--step-within", LONG) as network:
        devices = Devices(network)
        devices.report(0, 1, 2)
        network.users[0].kill()
        devices.report(3)
        ends = network.ends()
    first = ends[FIRST_SERVER]
    assert (first["event"], first["error"]) == ("failed", "MissingPartyError")
    assert first["parties"] == [f"user {index}" for index in people(0)]
    assert f"{EACH} of {USERS} users are missing" in first["text"]
    assert ends[SERVER]["event"] == "failed"
    assert ends[SERVER]["parties"][0] == "the reporting server"
    assert "sums" not in ends[SERVER]


@scenario
def a_killed_reporting_server_is_named_by_all_devices(
    deployment: ModuleType, tmp_path: Path
) -> None:
    options = ("--collect-within", LONG, "--finish-within", LONG)
    with deploy(deployment, tmp_path, two_stage(0), *options) as network:
        devices = Devices(network)
        devices.report(0)
        network.kill(FIRST_SERVER)
        for process in network.users[1:]:
            process.tell(json.dumps(network.book))
        ends = devices.ends(*range(PARTS))
        end = network.ends()[SERVER]
    for each in [*ends, end]:
        text = json.dumps(each)
        assert "the reporting server" in text
        assert "sums" not in each


def certified(folder: Path, name: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=folder / "authority.pem")
    context.load_cert_chain(folder / f"{name}.pem")
    return context


@scenario
def lies_and_half_frames_are_refused_and_the_round_goes_on(
    deployment: ModuleType, tmp_path: Path
) -> None:
    mechanism = two_stage(0)
    with deploy(deployment, tmp_path, mechanism, "--step-within", NEVER) as network:
        devices, round_ = Devices(network), network.round
        context, liar = certified(tmp_path, f"users 0 {EACH}"), Party(Role.USER, 3)

        def said(
            payload: bytes, sender: Party = liar, kind: MessageKind = MessageKind.SET
        ) -> bytes:
            return Message(kind, round_.identifier, sender, FIRST_SERVER, payload).to_bytes()

        size = bits_size(len(LABELS))
        (good,) = round_.user(3).report("bus")
        with (
            Line(network.book, FIRST_SERVER) as slow,
            Line(network.book, FIRST_SERVER) as line,
            Line(network.book, FIRST_SERVER) as large,
        ):
            # Half a frame, and never the rest: the others do not wait for it.
            slow.speak_tls(context).socket.sendall(frame(good.to_bytes())[:30])
            line.speak_tls(context)
            stranger = Party(Role.USER, EACH)
            for data, kind, text in (
                (said(bytes(size)), MalformedMessageError, "must have 8 items"),
                (said(b""), MalformedMessageError, "a set must have"),
                (said(b"\xff", stranger), ProtocolError, "does not speak for user 8"),
                (said(b"", kind=MessageKind.ROSTER), ProtocolError, "is too late"),
                (good.to_bytes()[:-1], MalformedMessageError, "it was truncated"),
            ):
                error = line.send(data)
                assert type(error) is kind
                assert text in str(error)
            error = large.speak_tls(context).send(bytes(52 + 200))
            assert "a frame must have at most" in str(error)
            # The device itself sends the same set: it counts once, however often it comes.
            assert line.send(good.to_bytes()) is None
            assert line.send(good.to_bytes()) is None
            devices.report(*range(PARTS))
            found = published(network)
    assert found["received"] == USERS
    check_near(found["sums"], answers_of(USERS), mechanism._contributors)


@scenario
def a_stopped_aggregator_loses_connections_and_not_the_round(
    deployment: ModuleType, tmp_path: Path
) -> None:
    answers = answers_of(USERS)
    mechanism = NoisyAggregation(
        Domain(LABELS), USERS, parameter=SILENT, parties=3, max_missing_users=EACH
    )
    with deploy(deployment, tmp_path, mechanism) as network:
        devices = network.report([0, 1, 2])
        assert [each["undelivered"] for each in devices] == [[]] * 3
        network.processes[aggregator(1)].signal(signal.SIGSTOP)
        network.close_collection()
        # The others lose their connections to it, more than once.
        time.sleep(3.5 * CONNECT)
        network.processes[aggregator(1)].signal(signal.SIGCONT)
        ends = network.ends()
    assert {end["event"] for end in ends.values()} == {"done"}
    assert ends[SERVER]["received"] == USERS - EACH
    assert counts_of(ends[SERVER]) == Counter(answers[: USERS - EACH])


@scenario
def a_killed_aggregator_is_named_in_time_over_tls(deployment: ModuleType, tmp_path: Path) -> None:
    mechanism = NoisyAggregation(Domain(LABELS), USERS, parameter=SILENT, parties=3)
    with deploy(deployment, tmp_path, mechanism, "--finish-within", LONG) as network:
        network.report([0, 1, 2])
        network.kill(aggregator(1))
        (last,) = network.report([3])
        ends = network.ends()
    # The users of the last part name it, each for its share.
    assert {each["recipient"] for each in last["undelivered"]} == {str(aggregator(1))}
    assert len(last["undelivered"]) == EACH
    assert set(ends) == {aggregator(0), aggregator(2), SERVER}
    for party, end in ends.items():
        assert (end["event"], end["error"]) == ("failed", "MissingPartyError"), party
        assert str(aggregator(1)) in end["parties"]
        assert not {"estimates", "sums"}.intersection(end)
    assert ends[aggregator(0)]["parties"] == ends[aggregator(2)]["parties"] == ["aggregator 1"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_rounds_of_processes(name: str, rounds: dict[str, Future[None]]) -> None:
    rounds[name].result()
