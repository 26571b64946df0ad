"""What a node sends about all attributes together: exact laws, by enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout import _kinds
from turnout.errors import InvalidValueError
from turnout.frequency.attributes import (
    AttributeCollection,
    PaddedOracle,
    SampledAttribute,
    SplitBudget,
)

Law = dict[tuple[int, ...], Fraction]

SIZES = [(2, 2), (2, 3), (4, 3), (2, 2, 2), (3, 2, 4)]


def exponential_below(x: float) -> Fraction:
    """Give a rational just below e^x, by the Taylor series, whose terms are all positive."""
    exact = Fraction(x)
    return sum((exact**i / math.factorial(i) for i in range(60)), Fraction(0))


def domains(sizes: tuple[int, ...]) -> dict[str, int]:
    return {f"a{position}": size for position, size in enumerate(sizes)}


def direct_law(ratio: Fraction, size: int, answer: int) -> list[Fraction]:
    """The law of a report of direct encoding, from its ratio."""
    other = 1 / (ratio + size - 1)
    return [ratio * other if code == answer else other for code in range(size)]


def report_laws(collection: AttributeCollection, answers: tuple[int, ...]) -> list[list[Fraction]]:
    return [
        direct_law(oracle.realized_ratio, oracle.domain.size, answer)
        for oracle, answer in zip(collection.oracles.values(), answers, strict=True)
    ]


def split_law(collection: AttributeCollection, answers: tuple[int, ...]) -> Law:
    laws = report_laws(collection, answers)
    return {
        message: math.prod(
            (law[y] for law, y in zip(laws, message, strict=True)), start=Fraction(1)
        )
        for message in itertools.product(*(range(len(law)) for law in laws))
    }


def sampled_law(collection: AttributeCollection, answers: tuple[int, ...]) -> Law:
    """Messages ``(attribute, report)``."""
    laws = report_laws(collection, answers)
    return {
        (which, y): Fraction(1, len(laws)) * chance
        for which, law in enumerate(laws)
        for y, chance in enumerate(law)
    }


def padded_law(collection: AttributeCollection, answers: tuple[int, ...]) -> Law:
    laws = report_laws(collection, answers)
    law: Law = dict.fromkeys(itertools.product(*(range(len(each)) for each in laws)), Fraction(0))
    for which, message in itertools.product(range(len(laws)), law):
        fake = math.prod(len(each) for each in laws) // len(laws[which])
        law[message] += Fraction(1, len(laws)) * laws[which][message[which]] / fake
    return law


SCHEMES = {
    "split": (SplitBudget, {}, split_law),
    "sampled": (SampledAttribute, {}, sampled_law),
    "padded": (SampledAttribute, {"padding": "fake"}, padded_law),
}


def largest_ratio(
    collection: AttributeCollection, law: Any, changed: int | None = None
) -> Fraction:
    """The largest ratio of likelihoods under two tuples; or two that differ in so many answers."""
    tuples = list(itertools.product(*(range(each.size) for each in collection.domains.values())))
    laws = {answers: law(collection, answers) for answers in tuples}
    worst = Fraction(0)
    for one, other in itertools.permutations(tuples, 2):
        if changed in (None, sum(x != y for x, y in zip(one, other, strict=True))):
            worst = max(
                worst, *(laws[one][message] / laws[other][message] for message in laws[one])
            )
    return worst


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_whole_tuples_are_protected_with_epsilon(scheme: str, sizes: tuple[int, ...]) -> None:
    cls, options, law = SCHEMES[scheme]
    collection = cls(1.25, domains(sizes), **options)
    assert sum(law(collection, (0,) * len(sizes)).values()) == 1
    ratios = [oracle.realized_ratio for oracle in collection.oracles.values()]
    largest = largest_ratio(collection, law)
    if scheme == "padded":
        # A mixture of oracles whose thresholds are rounded differently.
        assert min(ratios) <= largest <= collection.realized_ratio == max(ratios)
        assert float(largest) == pytest.approx(float(max(ratios)), rel=1e-15)
    else:
        assert largest == collection.realized_ratio
    assert collection.realized_ratio <= exponential_below(1.25)
    assert math.log(collection.realized_ratio) <= collection.realized_epsilon <= 1.25


@pytest.mark.parametrize("attributes", [2, 3])
@pytest.mark.parametrize("size", [2, 3])
def test_padding_dampens_the_ratio_where_one_attribute_changes_and_not_where_all_do(
    attributes: int, size: int
) -> None:
    collection = SampledAttribute(1.0, domains((size,) * attributes), padding="fake")
    ratio = collection.realized_ratio
    one = largest_ratio(collection, padded_law, changed=1)
    assert one == (ratio + attributes - 1) / attributes
    assert largest_ratio(collection, padded_law, changed=attributes) == ratio > one


@pytest.mark.parametrize("attributes", [2, 3])
def test_the_published_amplification_fails_for_whole_tuples(attributes: int) -> None:
    amplified = math.log(attributes * math.expm1(1.0) + 1)
    collection = SampledAttribute(amplified, domains((2,) * attributes), padding="fake")
    nominal = math.exp(1.0)
    assert float(largest_ratio(collection, padded_law, changed=1)) == pytest.approx(nominal)
    assert float(largest_ratio(collection, padded_law)) == pytest.approx(
        attributes * (nominal - 1) + 1
    )
    assert amplified > 1.4


def test_the_numbers_of_the_documentation() -> None:
    for attributes, amplified in [(2, 1.49), (3, 1.82), (5, 2.26), (10, 2.90)]:
        assert round(math.log(attributes * math.expm1(1.0) + 1), 2) == amplified


@pytest.mark.parametrize("padding", [None, "fake"])
def test_messages_have_the_enumerated_law(padding: str | None, statistical: ModuleType) -> None:
    collection = SampledAttribute(1.5, {"a": 2, "b": 3}, padding=padding)
    nodes = 300_000
    made = collection.randomize({"a": [1] * nodes, "b": [2] * nodes}, seed=5)
    reports = collection.by_attribute(made)
    a, b = reports["a"].codes.astype(np.int64), reports["b"].codes.astype(np.int64)
    if padding:
        law = padded_law(collection, (1, 2))
        observed = np.bincount(3 * a + b, minlength=6)
    else:
        law = sampled_law(collection, (1, 2))
        observed = np.concatenate([np.bincount(a, minlength=2), np.bincount(b, minlength=3)])
    statistical.check_law(observed, [float(law[message]) for message in sorted(law)])


def test_split_messages_have_the_enumerated_law(statistical: ModuleType) -> None:
    collection = SplitBudget(2.0, {"a": 2, "b": 3}, weights={"a": 1, "b": 3})
    nodes = 300_000
    made = collection.randomize({"a": [1] * nodes, "b": [2] * nodes}, seed=6)
    reports = collection.by_attribute(made)
    cells = 3 * reports["a"].codes.astype(np.int64) + reports["b"].codes
    law = split_law(collection, (1, 2))
    statistical.check_law(
        np.bincount(cells, minlength=6), [float(law[message]) for message in sorted(law)]
    )


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 1.0, 2.7, 10.0])
@pytest.mark.parametrize("weights", [None, (1, 1, 1, 1, 1, 1, 1), (0.1, 0.2, 0.3, 1e-3, 7, 5, 3)])
def test_the_parts_of_epsilon_never_exceed_it(
    epsilon: float, weights: tuple[float, ...] | None
) -> None:
    names = domains((2, 3, 4, 5, 6, 7, 8))
    given = None if weights is None else dict(zip(names, weights, strict=True))
    collection = SplitBudget(epsilon, names, weights=given)
    parts = [oracle.epsilon for oracle in collection.oracles.values()]
    assert sum(map(Fraction, parts)) <= Fraction(epsilon)
    assert sum(parts) == pytest.approx(epsilon, rel=1e-12)
    assert collection.realized_ratio <= exponential_below(epsilon)
    assert collection.realized_epsilon <= epsilon


def test_a_description_that_spends_more_than_its_epsilon_is_refused() -> None:
    description = SplitBudget(1.0, {"a": 2, "b": 3}).to_dict()
    description["epsilon"] = 0.9
    with pytest.raises(tn.errors.CorruptDataError, match="at most the epsilon"):
        _kinds.from_dict(description)


def test_what_is_padded_is_not_padded_again() -> None:
    # Its probabilities would be those of one padding alone.
    padded = PaddedOracle(1.0, 3, oracle=tn.DirectEncoding(1.0, 3), own_probability=0.5)
    with pytest.raises(InvalidValueError, match="oracle must not be padded itself, got Padded"):
        PaddedOracle(1.0, 3, oracle=padded, own_probability=0.5)
