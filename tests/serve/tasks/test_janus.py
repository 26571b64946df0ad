"""Rounds of real servers beside a real Janus, where one is installed.

``TURNOUT_JANUS`` names its program, ``TURNOUT_JANUS_SCHEMA`` the folder of its migrations.
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
VARIABLES = ("TURNOUT_JANUS", "TURNOUT_JANUS_SCHEMA")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(os.environ.get(name) for name in VARIABLES),
        reason=f"no Janus is here: say where with {' and '.join(VARIABLES)}",
    ),
]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The modules of the example."""
    monkeypatch.syspath_prepend(EXAMPLE)
    import rounds

    yield rounds
    for name in ("rounds", "janus"):
        sys.modules.pop(name, None)


@pytest.fixture
def janus(example: Any, cluster: Database, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A leader and a helper of Janus."""
    program, schema = (Path(os.environ[name]) for name in VARIABLES)
    helper, leader = (
        example.Janus(role, program, schema, cluster.address, tmp_path)
        for role in ("helper", "leader")
    )
    with helper, leader:
        yield {"helper": helper, "leader": leader}


@pytest.mark.parametrize("batches", ["leader-selected", "time-interval"])
@pytest.mark.parametrize("theirs", ["helper", "leader", "both"])
def test_a_round_beside_janus(
    example: Any, janus: dict[str, Any], tmp_path: Path, theirs: str, batches: str
) -> None:
    found = example.run(theirs, batches, janus, tmp_path / "round")
    assert len(found) == (2 if batches == "leader-selected" else 1)
    for each in found:
        assert each["reports"] == 60
        # The noise of epsilon 20 is 0 but with a probability of some 10^-4 for each sum.
        assert sum(abs(a - b) for a, b in zip(each["sums"], (30, 20, 10), strict=True)) <= 6


def test_janus_adds_the_noise_of_the_task(
    example: Any, janus: dict[str, Any], tmp_path: Path
) -> None:
    found = example.run("both", "leader-selected", janus, tmp_path / "round", epsilon=0.001)
    errors = [a - b for each in found for a, b in zip(each["sums"], (30, 20, 10), strict=True)]
    # Scale 2,000 for each aggregator: all six are below 100 with a probability below 1e-6, and
    # one is above 60,000 with one as small.
    assert 100 < max(map(abs, errors)) < 60_000
