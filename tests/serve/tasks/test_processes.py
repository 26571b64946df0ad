"""Rounds among processes, with the commands alone: killed, stopped, restarted, over TLS."""

from __future__ import annotations

import datetime
import ipaddress
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.serve.tasks.processes import Parties, people
from tests.serve.waiting import until

VOTES = ["a"] * 30 + ["b"] * 20 + ["c"] * 10
OPTIONS = ["--users", 60, "--epsilon", 20]


@pytest.fixture
def parties(tmp_path: Path) -> Iterator[Callable[..., Parties]]:
    """What makes a task whose servers end with the test."""
    made: list[Parties] = []

    def make(*new: object, **more: Any) -> Parties:
        one = Parties(tmp_path, *(new or OPTIONS), **more)
        made.append(one)
        return one

    yield make
    for one in made:
        one.stop()


def shares(found: dict[str, Any]) -> dict[str, float]:
    return {each["label"]: each["frequency"] for each in found["estimates"]}


def assert_is_the_result(found: dict[str, Any]) -> None:
    """The noise of epsilon 20 is 0 but with a probability of some 10^-4 for each sum."""
    assert found["reports"] == 60
    assert sum(abs(a - b) for a, b in zip(found["sums"], (30, 20, 10), strict=True)) <= 6
    assert found["guarantee"]["epsilon"] == 20


@pytest.mark.slow
def test_a_round_of_commands(parties: Callable[..., Parties], tmp_path: Path) -> None:
    one = parties()
    assert "privacy" in one.made.stdout
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in one.task.iterdir()}
    assert {name for name, mode in modes.items() if mode == 0o600} == {
        *("leader.json", "helper.json", "collector.json")
    }
    assert "client.json" in modes
    one.start("helper", "leader")
    one.upload("--value", VOTES[0])
    sent = one.upload(people(tmp_path, VOTES[1:]), "--column", "vote", "--json")
    assert '"accepted": 59' in sent.stdout
    found = one.result()
    assert_is_the_result(found)
    assert one.result()["sums"] == found["sums"]
    assert "Result of the task" in one.result(check=False).stdout
    assert [one.kill(role, signal.SIGTERM) for role in ("leader", "helper")] == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("role", ["leader", "helper"])
def test_a_killed_aggregator_goes_on(
    parties: Callable[..., Parties], tmp_path: Path, role: str
) -> None:
    one = parties()
    one.start("helper", "leader")
    one.upload(people(tmp_path, VOTES[:40]), "--column", "vote")
    if role == "leader":
        one.kill(role)
        one.start(role)
        one.upload(people(tmp_path, VOTES[40:]), "--column", "vote")
    else:
        one.upload(people(tmp_path, VOTES[40:]), "--column", "vote")
        one.kill(role)

        def lost() -> bool:
            asked = one.result("--wait", 3, check=False)
            assert asked.returncode == 1
            return f"the helper at {one.urls['helper']} does not answer" in asked.stderr

        until(lost)
        one.start(role)
    assert_is_the_result(one.result())


@pytest.mark.slow
def test_a_batch_goes_on_without_who_does_not_come(
    parties: Callable[..., Parties], tmp_path: Path
) -> None:
    one = parties(*OPTIONS, "--batch-seconds", 3, "--min-batch", 20)
    one.start("helper", "leader")
    one.upload(people(tmp_path, VOTES[:30]), "--column", "vote")
    found = one.result()
    assert found["reports"] == 30
    assert abs(shares(found)["a"] - 1.0) < 0.2


@pytest.mark.slow
def test_a_missing_leader_is_named(parties: Callable[..., Parties]) -> None:
    one = parties()
    one.start("helper")
    failed = one.upload("--value", "a", check=False)
    assert failed.returncode == 1
    # On a slow machine, lines before it say how long it takes.
    assert f"the leader at {one.urls['leader']} does not answer" in failed.stderr.splitlines()[-1]


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate of localhost that nobody else signed, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "server.pem", folder / "server.key"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


@pytest.mark.slow
def test_a_round_over_tls(parties: Callable[..., Parties], tmp_path: Path) -> None:
    pem, key = certificate(tmp_path)
    one = parties(certificate=pem, key=key)
    one.start("helper", "leader")
    one.upload(people(tmp_path, VOTES), "--column", "vote")
    assert_is_the_result(one.result())
    one.ca = []
    failed = one.upload("--value", "a", check=False)
    assert failed.returncode == 1
    assert "has a certificate that is not trusted" in failed.stderr


@pytest.mark.slow
def test_a_stopped_helper_is_waited_for(parties: Callable[..., Parties], tmp_path: Path) -> None:
    one = parties()
    one.start("helper", "leader")
    one.running["helper"].send_signal(signal.SIGSTOP)
    # Its kernel takes connections, and nothing answers.
    late = one.upload(people(tmp_path, VOTES), "--column", "vote", check=False)
    one.running["helper"].send_signal(signal.SIGCONT)
    if late.returncode:
        assert "does not answer" in late.stderr
        one.upload(people(tmp_path, VOTES), "--column", "vote")
    assert_is_the_result(one.result())
