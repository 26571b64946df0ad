"""Several attributes and heavy hitters through every oracle."""

from __future__ import annotations

import numpy as np
import pytest

import turnout as tn
from turnout import _kinds
from turnout.frequency.attributes import (
    AttributeTally,
    SampledAttribute,
    SplitBudget,
)
from turnout.frequency.choice import oracle_classes
from turnout.frequency.heavy_hitters import HeavyHitters, SearchRound

NODES = 40_000
TABLE = {
    "a": np.repeat([0, 1, 2, 3], [18_000, 6_000, 12_000, 4_000]),
    "b": np.tile(np.repeat([0, 1, 2], [16, 16, 8]), 1000),
}
TRUTH = {"a": [0.45, 0.15, 0.3, 0.1], "b": [0.4, 0.4, 0.2]}


def oracles() -> list[str]:
    """All oracles of turnout that need nothing but an epsilon and a domain.

    Modules of other tests register oracles of their own.
    """
    names = []
    for name, cls in sorted(oracle_classes().items()):
        if not cls.__module__.startswith("turnout."):
            continue
        try:
            cls(1.0, 4)
        except TypeError:
            continue
        names.append(name)
    return names


@pytest.mark.parametrize("scheme", ["split", "sampled", "padded"])
@pytest.mark.parametrize("name", oracles())
def test_attributes_lie_in_their_intervals(name: str, scheme: str) -> None:
    cls = oracle_classes()[name]
    domains = {"a": 4, "b": 3}
    collection = (
        SplitBudget(4.0, domains, oracle=cls)
        if scheme == "split"
        else SampledAttribute(
            3.0, domains, oracle=cls, padding="fake" if scheme == "padded" else None
        )
    )
    assert _kinds.from_dict(collection.to_dict()) == collection
    for participation in (tn.Bernoulli(0.7), tn.Personalized(np.linspace(0.3, 1.0, NODES))):
        tally = collection.collect(TABLE, participation=participation, seed=1)
        assert tally == collection.tally(
            collection.randomize(TABLE, participation=participation, seed=1)
        )
        assert AttributeTally.from_bytes(tally.to_bytes()) == tally
        for attribute, estimate in tally.estimate().items():
            limits = estimate.interval(1 - 1e-6, simultaneous="bonferroni")
            assert limits.contains(TRUTH[attribute]).all()


@pytest.mark.parametrize("name", oracles())
def test_heavy_hitters_are_found(name: str) -> None:
    values = np.concatenate(
        [
            np.repeat([7, 50_000, 123], [40_000, 30_000, 20_000]),
            np.random.default_rng(1).integers(0, 2**16, 30_000),
        ]
    )
    protocol = HeavyHitters(3.0, bits=16, step=5, keep=8, oracle=oracle_classes()[name])
    first = protocol.rounds().current
    assert SearchRound.from_dict(first.to_dict()) == first
    found = protocol.collect(values, participation=tn.Bernoulli(0.8), seed=2)
    assert found.values == (7, 50_000, 123)
    truth = np.array([4, 3, 2]) / 12
    limits = found.interval(1 - 1e-6, simultaneous="bonferroni")
    assert ((limits.low <= truth) & (truth <= limits.high)).all()
