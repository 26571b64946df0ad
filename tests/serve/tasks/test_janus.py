"""Rounds of real servers beside a real Janus, where one is installed.

``TURNOUT_JANUS`` names its program, ``TURNOUT_JANUS_SCHEMA`` the folder of its migrations, and
``TURNOUT_JANUS_ROLES`` the program of its client and collector, ``examples/janus/roles``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serve.databases import Database

EXAMPLE = Path(__file__).parents[3] / "examples" / "janus"
SERVERS = ("TURNOUT_JANUS", "TURNOUT_JANUS_SCHEMA")
ROLES = "TURNOUT_JANUS_ROLES"

BATCHES = pytest.mark.parametrize("batches", ["leader-selected", "time-interval"])

pytestmark = pytest.mark.slow


def path_of(variable: str) -> Path:
    """The path that a variable names; without it the test is left out."""
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"no Janus is here: say where with {variable}")
    return Path(value)


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The modules of the example."""
    monkeypatch.syspath_prepend(EXAMPLE)
    import rounds

    yield rounds
    for name in ("rounds", "janus"):
        sys.modules.pop(name, None)


@pytest.fixture
def janus(example: Any, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A leader and a helper of Janus."""
    program, schema = map(path_of, SERVERS)
    cluster: Database = request.getfixturevalue("cluster")
    helper, leader = (
        example.Janus(role, program, schema, cluster.address, tmp_path)
        for role in ("helper", "leader")
    )
    with helper, leader:
        yield {"helper": helper, "leader": leader}


def assert_are_the_votes(found: list[dict[str, Any]], batches: str) -> None:
    """The noise of epsilon 20 is 0 but with a probability of some 10^-4 for each sum."""
    assert len(found) == (2 if batches == "leader-selected" else 1)
    for each in found:
        assert each["reports"] == 60
        assert sum(abs(a - b) for a, b in zip(each["sums"], (30, 20, 10), strict=True)) <= 6


@BATCHES
@pytest.mark.parametrize("theirs", ["helper", "leader", "leader,helper"])
def test_a_round_beside_janus(
    example: Any, janus: dict[str, Any], tmp_path: Path, theirs: str, batches: str
) -> None:
    found = example.run(tuple(theirs.split(",")), batches, janus, tmp_path / "round")
    assert_are_the_votes(found, batches)


@BATCHES
def test_a_client_and_a_collector_of_janus(example: Any, tmp_path: Path, batches: str) -> None:
    roles = example.Roles(path_of(ROLES))
    theirs = ("client", "collector")
    found = example.run(theirs, batches, {}, tmp_path / "round", roles=roles)
    assert_are_the_votes(found, batches)


@BATCHES
@pytest.mark.parametrize("server", ["helper", "leader"])
def test_a_client_and_a_collector_of_janus_with_one_server_of_it(
    example: Any, janus: dict[str, Any], tmp_path: Path, server: str, batches: str
) -> None:
    roles = example.Roles(path_of(ROLES))
    theirs = (server, "client", "collector")
    found = example.run(theirs, batches, janus, tmp_path / "round", roles=roles)
    assert_are_the_votes(found, batches)


@BATCHES
@pytest.mark.parametrize("theirs", ["helper", "leader", "leader,helper"])
def test_a_round_of_numbers_beside_janus(
    example: Any, janus: dict[str, Any], tmp_path: Path, theirs: str, batches: str
) -> None:
    numbers = [str(number) for number in range(-10, 50)]
    found = example.run(
        tuple(theirs.split(",")),
        *(batches, janus, tmp_path / "round"),
        asked=("--mean", "-10:60"),
        answers=numbers,
    )
    assert len(found) == (2 if batches == "leader-selected" else 1)
    for each in found:
        assert each["reports"] == 60
        # Two noises of the scale 3.5, of which one passes 70 with a probability below 1e-8.
        assert abs(each["sums"][0] - sum(range(60))) <= 140


@pytest.mark.parametrize("server", ["leader", "helper"])
def test_janus_adds_the_noise_of_a_task_of_numbers(
    example: Any, janus: dict[str, Any], tmp_path: Path, server: str
) -> None:
    found = example.run(
        (server,),
        *("leader-selected", janus, tmp_path / "round"),
        epsilon=0.01,
        asked=("--mean", "0:80"),
        answers=["40"] * 60,
    )
    errors = [abs(each["sums"][0] - 2400) for each in found]
    # Scale 8,000 for each aggregator; Janus, which takes 127 for 80, is told another epsilon.
    # Both are below 8 once in a million times at most, and one above 150,000 as seldom.
    assert 8 < max(errors) < 150_000


def test_janus_adds_the_noise_of_the_task(
    example: Any, janus: dict[str, Any], tmp_path: Path
) -> None:
    found = example.run(
        ("leader", "helper"), "leader-selected", janus, tmp_path / "round", epsilon=0.001
    )
    errors = [a - b for each in found for a, b in zip(each["sums"], (30, 20, 10), strict=True)]
    # Scale 2,000 for each aggregator: all six are below 100 with a probability below 1e-6, and
    # one is above 60,000 with one as small.
    assert 100 < max(map(abs, errors)) < 60_000
