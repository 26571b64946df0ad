"""What the client's thresholds say of a person is at most e^epsilon, as exact fractions."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from tests.serve.clients import KEY, needs_node, run, text_of
from tests.test_device_permanent import STAGES, memoized
from tests.test_device_questions import COLUMNS, EACH

import turnout as tn
from turnout.frequency.choice import registered

pytestmark = needs_node

WORDS = 2**64

Thresholds = dict[str, Any]


@cache
def exponential(epsilon: Fraction) -> Fraction:
    """A lower bound of e^epsilon: the terms of its series are all positive."""
    total = term = Fraction(1)
    for index in range(1, 300):
        term *= epsilon / index
        total += term
    return total


def odds(own: Fraction, other: Fraction) -> Fraction:
    return own * (1 - other) / ((1 - own) * other)


def share(words: int) -> Fraction:
    return Fraction(words, WORDS)


def of_words(found: Thresholds, _: dict[str, Any]) -> Fraction:
    return Fraction(found["own"], found["other"])


def of_bits(found: Thresholds, _: dict[str, Any]) -> Fraction:
    return odds(share(found["own"]), share(found["other"]))


def of_subsets(found: Thresholds, oracle: dict[str, Any]) -> Fraction:
    size = Fraction(oracle["domain"]["integers"])
    chosen = Fraction(oracle["subset_size"])
    own = share(found["own"])
    return own * (size - chosen) / ((1 - own) * chosen)


#: For each oracle the likelihood ratio that its thresholds realize.
RATIOS: dict[str, Callable[[Thresholds, dict[str, Any]], Fraction]] = {
    "binary_local_hashing": of_words,
    "count_mean_sketch": lambda found, _: Fraction(WORDS - found["flips"], found["flips"]) ** 2,
    "direct_encoding": of_words,
    "hadamard_count_mean_sketch": of_words,
    "hadamard_response": lambda found, _: Fraction(found["inside"], found["outside"]),
    "optimized_local_hashing": of_words,
    "optimized_unary_encoding": of_bits,
    "projective_geometry_response": of_words,
    "subset_selection": of_subsets,
    "symmetric_unary_encoding": of_bits,
    "threshold_histogram_encoding": of_bits,
}

#: The probability that a report supports the own code.
SUPPORT: dict[str, Callable[[Thresholds, int], Fraction]] = {
    "direct_encoding": lambda found, size: Fraction(
        found["own"], found["own"] + (size - 1) * found["other"]
    ),
    "hadamard_response": lambda found, _: Fraction(
        found["inside"], found["inside"] + found["outside"]
    ),
    "projective_geometry_response": lambda found, _: Fraction(
        found["hyperplane"] * found["own"],
        found["hyperplane"] * found["own"]
        + (found["points"] - found["hyperplane"]) * found["other"],
    ),
    **dict.fromkeys(
        (
            "optimized_unary_encoding",
            "subset_selection",
            "symmetric_unary_encoding",
            "threshold_histogram_encoding",
        ),
        lambda found, _: share(found["own"]),
    ),
}


def numbers(value: Any) -> Any:
    """Integers from the texts that stand for them."""
    if isinstance(value, str):
        return int(value)
    if isinstance(value, list):
        return [numbers(each) for each in value]
    return {name: numbers(each) for name, each in value.items()} if value is not None else None


def thresholds(oracles: list[Any], folder: Path, participation: Any = None) -> list[Thresholds]:
    plans = [tn.Plan(oracle, participation or tn.Everyone()) for oracle in oracles]
    results = run({"plan": text_of(plan, folder), "key": KEY.public_key} for plan in plans)
    return [numbers(result["thresholds"]) for result in results]


def described(oracle: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tn.Plan(oracle, tn.Everyone()).to_json())["oracle"]
    return found


def check(ratio: Fraction, epsilon: float | Fraction, name: str) -> None:
    assert 1 < ratio <= exponential(Fraction(epsilon)), name


def test_the_oracles_say_at_most_epsilon_and_what_python_states(tmp_path: Path) -> None:
    grid = product(sorted(registered()), (0.03, 2 / 3, 1.0, 4.0, 15.0), (2, 5, 100))
    oracles = [registered()[name](epsilon, size) for name, epsilon, size in grid]
    for oracle, found in zip(oracles, thresholds(oracles, tmp_path), strict=True):
        if oracle.name == "summation_histogram_encoding":
            # Two histograms of one person differ by two in sum.
            assert 0 < 2 * share(found["rate"]) <= Fraction(oracle.epsilon)
            assert 2 * share(found["rate"]) <= Fraction(oracle.realized_epsilon)
            continue
        ratio = RATIOS[oracle.name](found, described(oracle))
        check(ratio, oracle.epsilon, repr(oracle))
        check(ratio, oracle.realized_epsilon, repr(oracle))
        # And it is not less than was asked for, but for the digits that words have.
        assert ratio * (1 + Fraction(1, 10**6)) > exponential(Fraction(oracle.realized_epsilon))
        if oracle.name in SUPPORT:
            exact = SUPPORT[oracle.name](found, oracle.domain.size)
            assert abs(Fraction(float(oracle.support_probabilities[0])) / exact - 1) < 2**-50


def test_the_mechanisms_for_numbers_say_at_most_epsilon(tmp_path: Path) -> None:
    grid = list(product((0.05, 0.6, 0.62, 1.0, 2.5, 5.1, 7.6, 20.0), (1, 2, 3, 9)))
    for kind in (tn.mean.Duchi, tn.mean.Piecewise, tn.mean.Hybrid):
        oracles = [kind(epsilon, (-1, 3), dimensions) for epsilon, dimensions in grid]
        for oracle, found in zip(oracles, thresholds(oracles, tmp_path), strict=True):
            reported = found.get("reported", 1)
            ratios = [
                Fraction(each[above], each[below])
                for above, below in [("many", "few"), ("inside", "outside")]
                for each in (found, found.get("duchi", {}))
                if above in each
            ]
            # Of a mixture the ratio is at most the larger one.
            assert ratios
            for ratio in ratios:
                check(ratio**reported, oracle.epsilon, repr(oracle))
    waves = [tn.SquareWave(epsilon, (0, 1), bins=32) for epsilon, _ in grid]
    for wave, found in zip(waves, thresholds(waves, tmp_path), strict=True):
        check(Fraction(found["many"], found["few"]), wave.epsilon, repr(wave))


def test_what_is_made_of_others_says_at_most_epsilon(tmp_path: Path) -> None:
    questions = [
        tn.HierarchicalCollection(1.0, 100, fanout=3),
        tn.PairTables(2.0, COLUMNS),
        tn.SampledAttribute(2.0, COLUMNS, oracle=EACH),
        tn.SampledAttribute(2.0, COLUMNS, oracle=EACH, padding="fake"),
    ]
    split = tn.SplitBudget(3.0, COLUMNS, oracle=EACH, weights={"sex": 1, "a ge": 3, "vote é": 2})
    for question, found in zip(
        [*questions, split], thresholds([*questions, split], tmp_path), strict=True
    ):
        spent = Fraction(0)
        for part, words in zip(described(question)["oracle"], found["parts"], strict=True):
            if "rate" in words:
                epsilon = 2 * share(words["rate"])
                assert 0 < epsilon <= Fraction(part["epsilon"])
            else:
                check(RATIOS[part["name"]](words, part), part["epsilon"], part["name"])
            spent = (
                spent + Fraction(part["epsilon"])
                if question is split
                else max(spent, Fraction(part["epsilon"]))
            )
        assert spent <= Fraction(question.epsilon)


def test_permanent_answers_say_at_most_their_two_epsilons(tmp_path: Path) -> None:
    questions = [memoized(stages, "answer", size) for stages in STAGES for size in (3, 70)]
    for question, found in zip(questions, thresholds(questions, tmp_path), strict=True):
        size = question.domain.size
        first, second = found["permanent"], found["instantaneous"]
        if question.permanent == "direct_encoding":
            lifetime = of_words(first, {})
            (own, other), (kept, changed) = (
                (each["own"], each["other"]) for each in (first, second)
            )
            report = Fraction(
                own * kept + (size - 1) * other * changed,
                other * kept + own * changed + (size - 2) * other * changed,
            )
        else:
            lifetime = of_bits(first, {})
            through = [
                share(first[name]) * share(second["own"])
                + (1 - share(first[name])) * share(second["other"])
                for name in ("own", "other")
            ]
            report = odds(*through)
        check(lifetime, question.epsilon, repr(question))
        check(report, question.first_epsilon, repr(question))


def test_who_takes_part_is_drawn_by_the_rate_of_the_plan(tmp_path: Path) -> None:
    for rate in (0.999, 0.5, 1 / 3, 1 / 64, 0.0156, 1e-3, 1e-9):
        [found] = thresholds([tn.DirectEncoding(1.0, 2)], tmp_path, tn.Bernoulli(rate))
        words = found["participation"]
        if rate >= 1 / 64:
            assert words == [int(Fraction(rate) * WORDS)]
            continue
        # A gap of zero has a high digit of zero, of 256 each, and a low one.
        stay = 1 - Fraction(rate)
        high, low = 1 - stay**256, Fraction(rate) / (1 - stay**256)
        assert words == [int(high * WORDS), int(low * WORDS)]
