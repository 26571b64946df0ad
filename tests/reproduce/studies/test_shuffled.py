"""Shuffled reports beside a trusted curator, and the variation ratio of a randomizer."""

from __future__ import annotations

import dataclasses
import math
import pickle
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt
from scipy import optimize, stats

import turnout as tn
from turnout import _kinds
from turnout.accounting import Shuffled
from turnout.accounting.variation import VariationRatio
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout_reproduce.studies.shuffled import ShuffledRecord, compare_shuffled
from turnout_reproduce.studies.study import Study

mpl.use("Agg")

COUNTS = [500, 300, 150, 50]
EPSILONS = (1.0, 2.5)
DELTA = 1e-4


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def study() -> Study[ShuffledRecord]:
    return compare_shuffled(COUNTS, epsilons=EPSILONS, delta=DELTA)


def error_by_hand(epsilon: float, rate: float = 1.0) -> float:
    """Sum pi r (1 - pi r) / (pi (p - q))^2 over the nodes, for every answer: the variance of g."""
    size, nodes = len(COUNTS), sum(COUNTS)
    q = 1.0 / (math.exp(epsilon) + size - 1)
    p = math.exp(epsilon) * q
    own, other = (rate * support * (1.0 - rate * support) for support in (p, q))
    variances = [(count * own + (nodes - count) * other) / (rate * (p - q)) ** 2
                 for count in COUNTS]  # fmt: skip
    return math.sqrt(math.fsum(variances) / size) / nodes


def gaussian_noise(epsilon: float, delta: float) -> float:
    """Solve the analytic Gaussian mechanism of sensitivity 1 for its noise."""

    def excess(log_sigma: float) -> float:
        mu = math.exp(-log_sigma)
        one, two = (stats.norm.sf(epsilon / mu + sign * mu / 2) for sign in (-1, 1))
        return float(one - math.exp(epsilon) * two - delta)

    return math.exp(optimize.brentq(excess, -5.0, 8.0, xtol=1e-12))


def test_a_record_holds_what_its_parts_give_by_hand(study: Study[ShuffledRecord]) -> None:
    assert study.settings == {"nodes": 1000, "domain_size": 4, "delta": DELTA}
    assert [record.local_epsilon for record in study.records] == list(EPSILONS)
    for record in study.records:
        oracle = tn.DirectEncoding(record.local_epsilon, 4)
        central = record.central_epsilon
        assert central == Shuffled(oracle, 1000).epsilon(DELTA)
        assert 0.0 < central < record.local_epsilon
        assert record.shuffled_rmse == pytest.approx(error_by_hand(record.local_epsilon), rel=1e-9)
        assert record.local_rmse == pytest.approx(error_by_hand(central), rel=1e-9)
        curator = math.sqrt(2.0) * gaussian_noise(central, DELTA) / 1000
        assert record.gaussian_rmse == pytest.approx(curator, rel=1e-6)
        assert record.shuffled_rmse < record.local_rmse


def test_hidden_participation_lowers_epsilon_and_raises_the_error(
    study: Study[ShuffledRecord],
) -> None:
    rate = tn.Bernoulli(0.5)
    thinned = compare_shuffled(
        COUNTS, epsilons=iter(EPSILONS), delta=DELTA, participation=rate, method="g"
    )
    for record, everyone in zip(thinned.records, study.records, strict=True):
        oracle = tn.DirectEncoding(record.local_epsilon, 4)
        assert record.central_epsilon == Shuffled(oracle, 1000, rate).epsilon(DELTA)
        assert record.central_epsilon < everyone.central_epsilon
        assert record.shuffled_rmse == pytest.approx(error_by_hand(record.local_epsilon, 0.5))
        assert record.local_rmse == pytest.approx(error_by_hand(record.central_epsilon, 0.5))


def test_the_oracle_is_made_from_epsilon_and_domain() -> None:
    made: list[tuple[float, int]] = []

    def make(epsilon: float, domain: tn.Domain) -> tn.DirectEncoding:
        made.append((epsilon, domain.size))
        return tn.DirectEncoding(min(epsilon, 1.0), domain)

    (record,) = compare_shuffled([60, 40], epsilons=[3.0], delta=DELTA, oracle=make).records
    assert made == [(3.0, 2), (record.central_epsilon, 2)]
    assert record.local_epsilon == 1.0


def test_an_oracle_that_refuses_the_central_epsilon_has_no_local_error() -> None:
    def make(epsilon: float, domain: tn.Domain) -> tn.DirectEncoding:
        if epsilon < 1.0:
            raise InvalidValueError("epsilon is too small")
        return tn.DirectEncoding(epsilon, domain)

    study = compare_shuffled([600, 400], epsilons=[1.0], delta=DELTA, oracle=make)
    assert study.records[0].local_rmse == math.inf
    assert " inf " in study.table().splitlines()[-1]


def test_the_table_has_a_line_for_each_local_epsilon(study: Study[ShuffledRecord]) -> None:
    header, *lines = study.table().splitlines()
    assert header.split("  ")[-1].strip() == "variance ratio"
    assert len({len(line) for line in (header, *lines)}) == 1
    for line, record in zip(lines, study.records, strict=True):
        numbers = [float(cell) for cell in line.split() if cell != record.oracle]
        bits, local, central, shuffled, gaussian, alone, ratio = numbers
        assert local == record.local_epsilon
        assert bits == record.report_bits
        for shown, value in (
            (central, record.central_epsilon),
            (shuffled, record.shuffled_rmse),
            (gaussian, record.gaussian_rmse),
            (alone, record.local_rmse),
            (ratio, record.variance_ratio),
        ):
            assert shown == pytest.approx(value, rel=1e-3)


def test_the_picture_draws_the_errors_against_the_central_epsilon(
    study: Study[ShuffledRecord],
) -> None:
    (axes,) = study.plot()
    assert "central ε at δ = 0.0001" in axes.get_xlabel()
    assert "rmse" in axes.get_ylabel()
    assert axes.get_xscale() == axes.get_yscale() == "log"
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    drawn = {line.get_label(): line for line in axes.get_lines()}
    assert len(labels) == 3
    expected = (
        ("no shuffler", "local_rmse"),
        ("direct encoding, shuffled", "shuffled_rmse"),
        ("curator", "gaussian_rmse"),
    )
    for word, name in expected:
        (label,) = [text for text in labels if word in text]
        line = drawn[label]
        assert list(line.get_xdata()) == [record.central_epsilon for record in study.records]
        assert list(line.get_ydata()) == [getattr(record, name) for record in study.records]


def capped(epsilon: float, domain: tn.Domain) -> tn.DirectEncoding:
    return tn.DirectEncoding(min(epsilon, 2.0), domain)


class Renamed(tn.DirectEncoding):
    name = "test_renamed"

    @property
    def variation_ratio(self) -> VariationRatio:
        return VariationRatio._of_any(self.realized_ratio)


# A subclass makes itself known for good: other tests must not meet this one.
_kinds.REGISTERED.pop("test_renamed")


def test_several_oracles_stand_side_by_side(study: Study[ShuffledRecord]) -> None:
    both = compare_shuffled(
        COUNTS, epsilons=iter(EPSILONS), delta=DELTA, oracles=[tn.DirectEncoding, Renamed]
    )
    assert [row.oracle for row in both.records] == 2 * ["direct_encoding"] + 2 * ["test_renamed"]
    assert both.records[:2] == study.records
    for plain, renamed in zip(both.records[:2], both.records[2:], strict=True):
        # The same reports; less is known of how they hide each other.
        assert renamed.shuffled_rmse == plain.shuffled_rmse
        assert renamed.central_epsilon > plain.central_epsilon
        assert renamed.gaussian_rmse < plain.gaussian_rmse
        assert renamed.variance_ratio > plain.variance_ratio
        ratio = (plain.shuffled_rmse / plain.gaussian_rmse) ** 2
        assert plain.variance_ratio == pytest.approx(ratio, rel=1e-12)
        assert plain.report_bits == renamed.report_bits == 2
    header, *lines = both.table().splitlines()
    assert len({len(line) for line in (header, *lines)}) == 1
    assert all(row.oracle in line for row, line in zip(both.records, lines, strict=True))
    (axes,) = both.plot()
    drawn = {line.get_label(): line for line in axes.get_lines()}
    assert set(drawn) == {
        "direct encoding, shuffled", "test renamed, shuffled", "trusted curator, Gaussian noise",
    }  # fmt: skip
    curve = drawn["test renamed, shuffled"]
    assert list(curve.get_ydata()) == [row.shuffled_rmse for row in both.records[2:]]
    curator = list(drawn["trusted curator, Gaussian noise"].get_ydata())
    assert curator == sorted((row.gaussian_rmse for row in both.records), reverse=True)


def test_oracles_are_checked() -> None:
    (record,) = compare_shuffled(COUNTS, epsilons=[3.0], delta=DELTA, oracles=[capped]).records
    assert record.local_epsilon == 2.0
    for wrong, error in (([], InvalidValueError), (3, InvalidTypeError), ([3], InvalidTypeError)):
        with pytest.raises(error, match="oracles"):
            compare_shuffled(COUNTS, epsilons=[1.0], oracles=wrong)  # type: ignore[arg-type]


def test_given_axes_are_drawn_on_and_nothing_else_is_taken(study: Study[ShuffledRecord]) -> None:
    _, axes = plt.subplots()
    assert study.plot(axes) == [axes]
    assert study.plot(ax=[axes]) == [axes]
    with pytest.raises(InvalidTypeError, match="ax must be matplotlib axes"):
        study.plot("axes")


def test_records_and_studies_are_frozen_and_compare_by_value(study: Study[ShuffledRecord]) -> None:
    assert compare_shuffled(COUNTS, epsilons=EPSILONS, delta=DELTA) == study
    assert isinstance(study.records[0], ShuffledRecord)
    for value in (study, study.records[0]):
        assert pickle.loads(pickle.dumps(value)) == value
        with pytest.raises(dataclasses.FrozenInstanceError):
            value.records = ()  # type: ignore[misc, union-attr]


@pytest.mark.parametrize(
    ("counts", "arguments", "error", "message"),
    [
        ([10], {}, InvalidValueError, "true_counts must have at least 2 entries, got 1"),
        ([], {}, InvalidValueError, "true_counts must have at least 2 entries, got 0"),
        ([0, 0], {}, InvalidValueError, "at least one node"),
        ([5, -1], {}, InvalidValueError, r"true_counts\[1\] must be a non-negative"),
        ([5, 1.5], {}, InvalidValueError, r"true_counts\[1\] must be a non-negative"),
        ([[5, 1]], {}, InvalidTypeError, "true_counts must be one-dimensional"),
        ("ab", {}, InvalidTypeError, "true_counts must"),
        (None, {}, InvalidTypeError, "true_counts must"),
        ([5, 5], {"delta": 0.0}, InvalidValueError, "delta must"),
        ([5, 5], {"delta": 1.0}, InvalidValueError, "delta must"),
        ([5, 5], {"delta": "1e-6"}, InvalidTypeError, "delta must"),
        ([5, 5], {"method": "mle"}, InvalidValueError, "method must be one of"),
        ([5, 5], {"epsilons": []}, InvalidValueError, "epsilons must hold a value"),
        ([5, 5], {"epsilons": 1.0}, InvalidTypeError, "epsilons must be an iterable"),
        ([5, 5], {"epsilons": "12"}, InvalidTypeError, "epsilons must be an iterable"),
        ([5, 5], {"epsilons": [-1.0]}, InvalidValueError, "epsilon must"),
        ([5, 5], {"epsilons": ["1"]}, InvalidTypeError, "epsilon must"),
        ([5, 5], {"oracle": 3}, InvalidTypeError, "oracle must be callable"),
        ([5, 5], {"oracle": lambda *_: 3}, InvalidTypeError, r"oracle\(epsilon, domain\) must be"),
        ([5, 5], {"participation": "half"}, InvalidTypeError, "participation must be"),
        (
            [1, 1],
            {"participation": tn.Personalized([0.5, 0.5])},
            InvalidTypeError,
            "participation must be",
        ),
    ],
)
def test_bad_input_is_refused_by_name(
    counts: Any, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        compare_shuffled(counts, **arguments)


# The variation ratio


def test_the_masses_of_direct_encoding_are_its_probabilities() -> None:
    oracle = tn.DirectEncoding(1.0, 4)
    ratio = oracle.variation_ratio
    p, q = oracle.support_probabilities
    assert (float(ratio._own), float(ratio._other)) == pytest.approx((p, q), rel=1e-15)
    assert ratio._common == ratio._other
    assert ratio.blanket == 4 * ratio._other
    assert ratio._own - ratio._other == ratio.total_variation
    assert ratio._own / ratio._other == ratio.ratio == oracle.realized_ratio


@pytest.mark.parametrize("epsilon", [1.0, 20.0, 41.88])
def test_one_node_of_direct_encoding_has_its_realised_distance_at_least(epsilon: float) -> None:
    oracle = tn.DirectEncoding(epsilon, 4)
    ratio = oracle.variation_ratio
    # What is drawn again makes every report likelier: own and three others make one, exactly.
    other = 1 / (oracle.realized_ratio + 3)
    distance = (oracle.realized_ratio - 1) * other
    assert Fraction(Shuffled(oracle, 1).delta(0.0)) >= distance
    assert (ratio._own + 3 * ratio._other, ratio.total_variation) == (1, distance)


@pytest.mark.parametrize(
    ("parameters", "own", "other", "common"),
    [
        ((3, Fraction(1, 2), 3), Fraction(3, 4), Fraction(1, 4), Fraction(1, 4)),
        ((3, Fraction(1, 3), 2), Fraction(1, 2), Fraction(1, 6), Fraction(1, 4)),
        ((5, Fraction(1, 5), 5), Fraction(1, 4), Fraction(1, 20), Fraction(1, 20)),
        # No report can be in both sets more often than half of the time each.
        ((3, Fraction(1, 2), 1), Fraction(3, 4), Fraction(1, 4), Fraction(1, 2)),
    ],
)
def test_masses_follow_from_the_three_numbers(
    parameters: tuple[Any, Any, Any], own: Fraction, other: Fraction, common: Fraction
) -> None:
    ratio = VariationRatio(*parameters)
    assert (ratio._own, ratio._other, ratio._common) == (own, other, common)
    assert ratio._own - ratio._other == ratio.total_variation


def test_any_randomizer_is_a_coin_at_worst() -> None:
    worst = VariationRatio._of_any(math.exp(1.5))
    exact = Fraction(math.exp(1.5))
    assert worst == VariationRatio(exact, (exact - 1) / (exact + 1), exact)
    assert worst._own + worst._other == 1
    assert worst._common == worst._other
    assert worst.blanket is None


def test_numbers_are_kept_as_exact_fractions() -> None:
    ratio = VariationRatio(3.0, 0.1, 2)
    assert (ratio.ratio, ratio.total_variation, ratio.blanket_ratio) == (3, Fraction(0.1), 2)
    assert all(isinstance(value, Fraction) for value in dataclasses.astuple(ratio)[:3])
    assert ratio == VariationRatio(3, Fraction(0.1), 2.0)
    assert hash(ratio) == hash(VariationRatio(3, Fraction(0.1), 2.0))
    assert ratio != VariationRatio(3, Fraction(1, 10), 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        ratio.ratio = Fraction(2)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ((1, 0.1, 1), "ratio must be above 1, got 1.0"),
        ((0.5, 0.1, 1), "ratio must be above 1"),
        ((-3, 0.1, 1), "ratio must be above 1"),
        ((math.inf, 0.1, 1), "ratio must be finite"),
        ((math.nan, 0.1, 1), "ratio must be finite"),
        ((3, 0, 1), "total_variation must be above 0 and at most"),
        ((3, 0.51, 3), r"at most \(ratio - 1\) / \(ratio \+ 1\) = 0.5, got 0.51"),
        ((3, 0.5, 0.9), "blanket_ratio must be from 1 to ratio = 3.0, got 0.9"),
        ((3, 0.5, 3.1), "blanket_ratio must be from 1 to ratio = 3.0, got 3.1"),
        ((3, 0.5, 3, 0.4), r"blanket must be from 0.5 \(its two sets\) to 1, got 0.4"),
        ((3, 0.5, 3, 1.1), "blanket must be from"),
        ((3, 0.5, 3, math.nan), "blanket must be finite"),
    ],
)
def test_numbers_that_no_randomizer_has_are_refused(parameters: Any, message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        VariationRatio(*parameters)


@pytest.mark.parametrize("wrong", ["3", True, [3.0], 3j, b"3"])
def test_what_is_no_number_is_refused_by_name(wrong: Any) -> None:
    given = {"ratio": 3, "total_variation": 0.25, "blanket_ratio": 3, "blanket": 0.5}
    for name in given:
        with pytest.raises(InvalidTypeError, match=f"{name} must be a real number"):
            VariationRatio(**{**given, name: wrong})
    with pytest.raises(InvalidTypeError, match="ratio must be a real number"):
        VariationRatio._of_any(wrong)
    with pytest.raises(InvalidValueError, match="ratio must be above 1"):
        VariationRatio._of_any(1)
