"""The sampler of values is that whose draws look most like a person's own."""

from __future__ import annotations

import numpy as np
import pytest

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError


def distance(sampler: tn.samplers.PrivateSampler, values: np.ndarray, size: int) -> float:
    own = np.bincount(values, minlength=size) / values.size
    return float(np.abs(own - sampler.fit(values).probabilities_).sum() / 2)


def test_the_chosen_sampler_is_close_to_the_better_one_of_people_with_so_many_records() -> None:
    random = np.random.default_rng(7)
    kinds = (tn.samplers.MinimaxSampler, tn.samplers.FiniteMollifier)
    chosen = []
    for size in (10, 50):
        for epsilon in (1.0, 4.0):
            for records in (1, 3, 10, 100):
                laws = random.dirichlet(np.full(size, 0.5), 8)
                people = [random.choice(size, records, p=law) for law in laws]
                found = [
                    np.mean([distance(kind(epsilon, size), each, size) for each in people])
                    for kind in kinds
                ]
                sampler = tn.samplers.choose_sampler(epsilon, size, records=records)
                mine = found[kinds.index(type(sampler))]
                assert mine <= 1.25 * min(found), (size, epsilon, records, found)
                chosen.append(type(sampler))
    assert set(chosen) == set(kinds)


def test_many_records_are_taken_for_granted_and_one_is_randomized_response() -> None:
    labels = ["a", "b", "c"]
    assert type(tn.samplers.choose_sampler(1.0, labels)) is tn.samplers.FiniteMollifier
    one = tn.samplers.choose_sampler(1.0, labels, records=1)
    response = tn.samplers.RandomizedResponseSampler(1.0, domain=labels)
    assert np.allclose(one.fit(["b"]).probabilities_, response.fit(["b"]).probabilities_, atol=1e-6)
    with pytest.raises(InvalidValueError, match="records"):
        tn.samplers.choose_sampler(1.0, labels, records=0)
    with pytest.raises(InvalidTypeError, match="domain"):
        tn.samplers.choose_sampler(1.0, "abc")
