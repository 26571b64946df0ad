"""Rounds whose parties are processes of their own: those of ``examples/aggregation``."""

from __future__ import annotations

import socket
import ssl
import struct
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from turnout import Domain
from turnout.distributed import (
    AggregationMechanism,
    Message,
    NoisyAggregation,
    Party,
    Role,
    Round,
    SamplingAggregation,
    TwoStageSampling,
)
from turnout.distributed.messages import MessageKind
from turnout.distributed.transport.frames import frame, read_acknowledgement
from turnout.errors import MalformedMessageError, ProtocolError

EXAMPLE = Path(__file__).parents[2] / "examples" / "aggregation"
ALPHA = 1e-6
SERVER = Party(Role.SERVER)
LABELS = ["walk", "bicycle", "bus", "train", "car", "tram", "scooter", "ferry"]

#: Noise that is 0 but with probability 10^-21: a sum is the counts.
SILENT = 0.02


def aggregator(index: int) -> Party:
    return Party(Role.AGGREGATOR, index)


def answers_of(users: int) -> list[str]:
    weights = 1 / np.arange(1, len(LABELS) + 1)
    generator = np.random.default_rng(20)
    return generator.choice(LABELS, size=users, p=weights / weights.sum()).tolist()


def check_covered(
    mechanism: AggregationMechanism, published: dict[str, Any], answers: list[str]
) -> None:
    """Fail unless all intervals at ALPHA, together, hold the truth."""
    counts = Counter(answers)
    truth = [counts[label] / len(answers) for label in LABELS]
    estimate = mechanism.estimate(published["sums"], published["received"])
    interval = estimate.interval(1 - ALPHA, simultaneous="bonferroni")
    assert interval.contains(truth).all()
    # Which says something: a share that is missing would be seen.
    assert (interval.high - interval.low).max() < 0.5


def done(events: Iterable[dict[str, Any]]) -> None:
    for event in events:
        assert event["event"] == "done", event


def counts_of(published: dict[str, Any]) -> dict[str, int]:
    return {label: count for label, count in zip(LABELS, published["sums"], strict=True) if count}


class Line:
    """One connection to a station, for frames of any kind."""

    def __init__(self, book: list[dict[str, Any]], party: Party) -> None:
        (address,) = (
            entry["address"]
            for entry in book
            if (entry["role"], entry["first"]) == (party.role, party.index)
        )
        self.socket = socket.create_connection((address[0], address[1]), timeout=600)

    def send(self, content: bytes) -> Any:
        """Send a frame, and read what is said of it."""
        self.socket.sendall(frame(content))
        (length,) = struct.unpack("<I", self._read(4))
        return read_acknowledgement(self._read(length))

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise ConnectionError("the station closed the connection")
            data += part
        return data

    def speak_tls(self, context: ssl.SSLContext) -> Line:
        """Go on with TLS."""
        self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")
        return self

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *reason: object) -> None:
        self.socket.close()


def test_three_aggregators_and_thousands_of_users(deployment: ModuleType, tmp_path: Path) -> None:
    answers = answers_of(2500)
    mechanism = SamplingAggregation(
        Domain(LABELS), len(answers), epsilon=1.0, delta=1e-5, dummies=100, parties=3
    )
    with deployment.Deployment(Round.start(mechanism), answers, tmp_path) as network:
        devices = network.report()
        ends = network.ends()
    done([*devices, *ends.values()])
    assert [device["undelivered"] for device in devices] == [[], []]
    published = ends[SERVER]
    assert published["received"] == len(answers)
    check_covered(mechanism, published, answers)
    # Two messages to the other aggregators and one to the server; three from every user.
    assert [ends[aggregator(index)]["costs"]["messages"] for index in range(3)] == [3, 3, 3]
    assert sum(device["costs"]["messages"] for device in devices) == 3 * len(answers)


def test_two_stage_with_two_servers_and_elected_users(
    deployment: ModuleType, tmp_path: Path
) -> None:
    answers = answers_of(400)
    mechanism = TwoStageSampling(
        Domain(LABELS), len(answers), reported=4, gamma=4.0, rate=0.9,
        dummies=20, elected=5, max_colluding_users=2,
    )  # fmt: skip
    started = deployment.Deployment(Round.start(mechanism), answers, tmp_path, user_processes=3)
    with started as network:
        devices = network.report()
        ends = network.ends()
    done([*devices, *ends.values()])
    published = ends[SERVER]
    assert published["received"] == len(answers)
    check_covered(mechanism, published, answers)
    assert ends[Party(Role.REPORTING_SERVER)]["costs"]["messages"] == 2 * len(answers) + 1


def test_bad_messages_are_refused_over_the_wire_and_the_round_completes(
    deployment: ModuleType, tmp_path: Path
) -> None:
    answers = ["bus", *answers_of(199)]
    mechanism = NoisyAggregation(Domain(LABELS), len(answers), parameter=SILENT, parties=3)
    round_, other = Round.start(mechanism), Round.start(mechanism)
    (tmp_path / "files").mkdir()
    started = deployment.Deployment(round_, answers[1:], tmp_path / "files", first_user=1)
    with started as network:
        # User 0 is this process.
        for message in round_.user(0).report(answers[0]):
            data, payload = message.to_bytes(), message.payload
            here = message.recipient
            altered = bytearray(data)
            altered[-1] ^= 16
            (foreign,) = (each for each in other.user(0).report("bus") if each.recipient == here)
            unknown = Party(Role.USER, len(answers))
            stranger = Message(MessageKind.SHARE, round_.identifier, unknown, here, payload)
            server = Message(MessageKind.SHARE, round_.identifier, SERVER, here, payload)
            with Line(network.book, here) as line:
                for bad, kind, text in (
                    (data[:-5], MalformedMessageError, "it was truncated"),
                    (bytes(altered), MalformedMessageError, "it was altered"),
                    (foreign.to_bytes(), ProtocolError, "messages of round"),
                    (stranger.to_bytes(), ProtocolError, "user 200, which has no part"),
                    (server.to_bytes(), ProtocolError, "the server, which has no part"),
                ):
                    error = line.send(bad)
                    assert type(error) is kind
                    assert text in str(error)
                # The same bytes again count once; another report of the user is refused.
                assert line.send(data) is None
                assert line.send(data) is None
                (second,) = (e for e in round_.user(0).report("bus") if e.recipient == here)
                error = line.send(second.to_bytes())
                assert type(error) is ProtocolError
                assert "already has the message of user 0" in str(error)
        devices = network.report()
        ends = network.ends()
    done([*devices, *ends.values()])
    assert ends[SERVER]["received"] == len(answers)
    assert counts_of(ends[SERVER]) == Counter(answers)


def test_a_user_that_reaches_some_aggregators_only_is_dropped_by_all(
    deployment: ModuleType, tmp_path: Path
) -> None:
    answers = ["bus", *answers_of(199)]
    mechanism = NoisyAggregation(
        Domain(LABELS), len(answers), parameter=SILENT, parties=3, max_missing_users=1
    )
    round_ = Round.start(mechanism)
    with deployment.Deployment(round_, answers[1:], tmp_path, first_user=1) as network:
        first, _, third = round_.user(0).report(answers[0])
        for message in (first, third):
            with Line(network.book, message.recipient) as line:
                assert line.send(message.to_bytes()) is None
        devices = network.report()
        network.close_collection()
        ends = network.ends()
    done([*devices, *ends.values()])
    assert ends[SERVER]["received"] == len(answers) - 1
    assert counts_of(ends[SERVER]) == Counter(answers[1:])


def test_over_tls_and_clients_without_trust_are_refused(
    deployment: ModuleType, tmp_path: Path
) -> None:
    pytest.importorskip("trustme")
    answers = answers_of(300)
    mechanism = NoisyAggregation(Domain(LABELS), len(answers), parameter=SILENT, parties=2)
    round_ = Round.start(mechanism)
    share = round_.user(0).report(answers[0])[0].to_bytes()
    with deployment.Deployment(round_, answers, tmp_path, tls=True) as network:
        # Without TLS, and with TLS without a certificate: nothing is taken.
        with Line(network.book, aggregator(0)) as line, pytest.raises(OSError):  # noqa: PT011
            line.send(share)
        authority = tmp_path / "authority.pem"
        context = ssl.create_default_context(cafile=authority)
        # In TLS 1.3 a client learns of its refusal when it reads.
        with Line(network.book, aggregator(0)) as line, pytest.raises(OSError):  # noqa: PT011
            line.speak_tls(context).send(share)
        # A client that does not trust the authority gives nothing away.
        with (
            Line(network.book, aggregator(0)) as line,
            pytest.raises(ssl.SSLCertVerificationError),
        ):
            line.speak_tls(ssl.create_default_context())
        # The certificate of an aggregator does not speak for a user.
        context.load_cert_chain(tmp_path / "aggregator 1.pem")
        with Line(network.book, aggregator(0)) as line:
            error = line.speak_tls(context).send(share)
            assert type(error) is ProtocolError
            assert "does not speak for user 0" in str(error)
        devices = network.report()
        ends = network.ends()
    done([*devices, *ends.values()])
    assert counts_of(ends[SERVER]) == Counter(answers)


@pytest.mark.parametrize(
    ("options", "delta"),
    [
        ((), "delta = 1e-05 "),
        (("--two-stage", "--users", "60", "--items", "3"), "delta = 1e-05 "),
        (("--noise", "discrete_laplace"), "delta = 0 "),
    ],
)
def test_the_example_runs(options: tuple[str, ...], delta: str) -> None:
    import subprocess

    command = [sys.executable, str(EXAMPLE / "run.py"), "--users", "200", *options]
    finished = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=600, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stderr == ""
    assert "intervals hold the truth" in finished.stdout
    assert delta in finished.stdout
    assert "reporting server" in finished.stdout or "aggregator 2" in finished.stdout
