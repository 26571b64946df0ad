"""Nodes that send garbage in a live run: left out by name, and the round finishes."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

import turnout as tn
from turnout._seeds import derived
from turnout.federated import SGD, Client, Server
from turnout.federated.trees import vector

#: What the server's log says of each kind of trial/malformed_client.py.
SAID = [
    "must hold 5 values of dtype int64",  # far too many
    "not an array in NumPy's format",
    "its header is",
    "must hold 5 values of dtype int64",  # too few
    "must hold 5 values of dtype int64",  # NaN
    "have a norm of at most",
    "update must be for round",
    "has no record 'turnout.round'",
    "failed: ",
]


def expected(model: ModuleType, config: dict[str, Any]) -> Any:
    """All nodes are asked; the first two are added up."""
    server = Server(model.plan_of(config), model.NAMED, SGD(0.5, momentum=0.5))
    server.open(available=config["nodes"])
    for node in range(2):
        client = Client(server.plan, len(model.rows_of(node)), parameters=model.NAMED, index=node)
        server.add(client.answer(0, partial(model.gradients, model.NAMED, node)), node)
    return vector(server.close())


def test_a_training_leaves_them_out_by_name(simulation: Any, model: ModuleType) -> None:
    config = {
        "client-rate": 1.0,
        "mode": "always_send",
        "seed": 7,
        "rounds": 1,
        "epsilon": 0.0,
        "timeout": 600.0,
        "nodes": 2 + len(SAID),
        "extra-rounds": 0,
    }
    run = simulation.submit(
        ("trial.training_server:named", "trial.malformed_client:app"), config, nodes=config["nodes"]
    )
    output = run.wait()
    assert (run.folder / "model.npy").exists(), output
    np.testing.assert_array_equal(np.load(run.folder / "model.npy"), expected(model, config))
    for number, text in enumerate(SAID):
        node = (run.folder / f"kind-{number}").read_text()
        said = re.findall(rf"turnout: (?:the reply of )?node {node} .*", output)
        assert len(said) == 1, output
        assert text in said[0]
    assert len(re.findall("turnout: (?:the reply of )?node ", output)) == len(SAID)


def test_a_collection_leaves_it_out_by_name(deployment: Any) -> None:
    # The third SuperNode sends 80 MB, again and again.
    run = deployment.submit(
        ("trial.frequency_server:app", "trial.malformed_client:app"), {"seed": 1, "nodes": 3}
    )
    output = run.wait()
    assert (run.folder / "again").exists(), output
    oracle = tn.DirectEncoding(3.0, tn.Domain(["never", "once", "often"]))
    for name in ("tally", "again"):
        tally = tn.Tally.from_bytes((run.folder / name).read_bytes())
        honest = sum(
            oracle.collect([label], participation=tn.Bernoulli(0.6), seed=derived(1, number))
            for number, label in enumerate(["never", "once"])
        )
        assert tally.left_out == tn.LeftOut(unanswered=1)
        assert replace(tally, left_out=tn.LeftOut()) == honest
    node = (run.folder / "kind-0").read_text()
    assert len(re.findall(rf"the reply of node {node} is left out: ", output)) == 2
