"""Federated frequency estimation, run by Flower and by hand."""

from __future__ import annotations

import pytest

import turnout as tn
from turnout._seeds import derived

COMPONENTS = ("trial.frequency_server:app", "trial.frequency_client:app")
LABELS = ["never", "once", "often"]


def expected(nodes: int, seed: int) -> tn.Tally:
    """The sum of what each node's draws give."""
    oracle = tn.DirectEncoding(3.0, tn.Domain(LABELS))
    return sum(
        oracle.collect(
            [LABELS[node % 3]], participation=tn.Bernoulli(0.6), seed=derived(seed, node)
        )
        for node in range(nodes)
    )  # type: ignore[return-value]


@pytest.mark.parametrize(("kind", "nodes"), [("simulation", 8), ("deployment", 3)])
def test_the_tally_is_that_of_the_nodes_draws(
    kind: str, nodes: int, request: pytest.FixtureRequest
) -> None:
    flower = request.getfixturevalue(kind)
    run = flower.submit(
        COMPONENTS, {"seed": 1, "nodes": nodes}, nodes=nodes if kind == "simulation" else None
    )
    output = run.wait()
    assert (run.folder / "again").exists(), output
    tally = tn.Tally.from_bytes((run.folder / "tally").read_bytes())
    again = tn.Tally.from_bytes((run.folder / "again").read_bytes())
    assert tally == expected(nodes, 1)
    assert 0 < tally.received < nodes
    # Asked twice in one collection, nodes repeat themselves.
    assert again == tally
