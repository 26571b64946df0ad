"""The oracle of smallest variance whose report fits."""

from __future__ import annotations

import math
from typing import Any

import matplotlib as mpl
import pytest

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.choice import registered
from turnout.planning.choice import choose_oracle

mpl.use("Agg")


def variance(p: float, q: float, f: float = 0.0) -> float:
    return (f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2


def direct(epsilon: float, size: int) -> tuple[float, float]:
    total = math.exp(epsilon) + size - 1
    return math.exp(epsilon) / total, 1 / total


def test_direct_encoding_is_best_up_to_three_times_the_ratio_plus_two(plain: Any) -> None:
    # Wang et al. (2017): where k < 3 e^eps + 2.
    for epsilon in (0.5, 1.0, 2.0):
        crossing = 3 * math.exp(epsilon) + 2
        for size in (math.floor(crossing), math.ceil(crossing)):
            names = [
                each.name
                for each in choose_oracle(
                    epsilon, size, oracles=[plain, tn.DirectEncoding]
                ).candidates
            ]
            assert names[0] == ("direct_encoding" if size < crossing else "test_plain")


@pytest.mark.parametrize("frequency", [0.0, 0.3, 1.0])
def test_variances_are_those_of_the_closed_form(
    several: list[Any], frequency: float, plain: Any
) -> None:
    choice = choose_oracle(1.5, 2, oracles=several, frequency=frequency)
    for each in choice.candidates:
        p, q = direct(1.5, 2) if each.name == "direct_encoding" else (each.p, each.q)
        assert each.variance == pytest.approx(variance(p, q, frequency), rel=1e-12)
        assert each.oracle is not None
        expected = tn.estimator_variance(
            each.oracle, tn.Everyone(), true_counts=[100, 0] if frequency == 1.0 else [30, 70]
        )
        if frequency in (0.3, 1.0):
            # A hundred reports: the variance of the frequency, times their number.
            assert each.variance == pytest.approx(expected[0] / 100, rel=1e-12)
    variances = [each.variance for each in choice.candidates]
    assert variances == sorted(variances)
    ratios = [each.relative_variance for each in choice.candidates]
    assert ratios == pytest.approx([each / variances[0] for each in variances])


def test_the_smaller_report_wins_a_tie(plain: Any, hashed: Any) -> None:
    choice = choose_oracle(math.log(3.0), 100, oracles=[plain, hashed])
    first, second = choice.candidates
    assert (first.name, second.name) == ("test_plain", "test_hashed")
    assert 1.0 < second.relative_variance < 1.005
    assert choice.oracle.name == "test_hashed"
    assert "test_plain has a variance smaller by less than 0.5 %" in choice.explain()
    # At an epsilon where the rounding of the hash range costs more there is no tie.
    apart = choose_oracle(1.2, 100, oracles=[plain, hashed])
    assert apart.candidates[1].relative_variance > 1.005
    assert apart.oracle.name == "test_plain"


def test_reports_that_do_not_fit_are_named(several: list[Any]) -> None:
    choice = choose_oracle(1.2, 100, oracles=several, report_bits=8)
    assert choice.oracle == tn.DirectEncoding(1.2, 100)
    refused = {each.name: each.refused for each in choice.candidates}
    assert refused["direct_encoding"] is None
    assert refused["test_plain"] == refused["test_hashed"] == "above the limit of 8 bits"
    assert refused["test_fussy"] == "domain must have two answers, got 100"
    best = choice.candidates[0]
    fewer = 1 - best.variance / choice.chosen.variance
    assert f"{best.name} needs {fewer:.1%} fewer reports" in choice.explain()
    assert choose_oracle(1.2, 100, oracles=several, report_bits=9).oracle.name == "test_hashed"
    with pytest.raises(
        InvalidValueError, match=r"report_bits must be at least 7 \(direct_encoding\)"
    ):
        choose_oracle(1.2, 100, oracles=several, report_bits=6)


def test_all_of_turnouts_oracles_are_candidates() -> None:
    choice = choose_oracle(1.0, 30)
    assert {each.name for each in choice.candidates} == set(registered())
    assert "direct_encoding" in registered()
    assert all(found.__module__.startswith("turnout.") for found in registered().values())


def test_names_stand_for_classes() -> None:
    assert choose_oracle(1.0, 3, oracles="direct_encoding").oracle == tn.DirectEncoding(1.0, 3)
    domain = tn.Domain(["no", "yes"])
    assert choose_oracle(1.0, domain, oracles=[tn.DirectEncoding]).oracle.domain is domain


def test_the_table_and_the_words(several: list[Any]) -> None:
    choice = choose_oracle(1.2, 100, oracles=several)
    rows = choice.to_records()
    assert len(rows) == 4
    assert rows[0]["name"] == choice.chosen.name == "test_plain"
    assert rows[-1]["refused"] == "domain must have two answers, got 100"
    words = choice.explain()
    error = math.sqrt(variance(*choice.oracle.support_probabilities))
    assert f"standard error of {error:.4g} / sqrt(n)" in words
    assert "The next one, test_hashed, needs 1." in words


def test_the_picture_has_a_point_for_each_oracle(several: list[Any]) -> None:
    choice = choose_oracle(1.2, 100, oracles=several, report_bits=50)
    axes: Any = choice.plot()
    axes.figure.draw_without_rendering()
    points = [line for line in axes.lines if line.get_linestyle() == "None"]
    drawn = sorted((line.get_xdata()[0], line.get_ydata()[0]) for line in points)
    expected = sorted(
        (each.report_bits, math.sqrt(each.variance))
        for each in choice.candidates
        if each.report_bits is not None
    )
    assert drawn == expected
    assert axes.get_xlabel() == "bits of a report"
    assert "standard error" in axes.get_ylabel()
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "test plain", "test hashed (chosen)", "direct encoding",
    ]  # fmt: skip
    filled = {line.get_label(): line.get_fillstyle() for line in points}
    assert filled["test plain"] == "none"
    assert filled["direct encoding"] == "full"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"epsilon": 0.0}, InvalidValueError, "epsilon must be finite and above 0, got 0.0"),
        ({"epsilon": math.inf}, InvalidValueError, "epsilon must be finite"),
        ({"epsilon": "1"}, InvalidTypeError, "epsilon must be a real number"),
        ({"domain_size": 1}, InvalidValueError, "domain_size must be an integer from 2"),
        (
            {"domain_size": 2.5},
            InvalidTypeError,
            "domain_size must be a Domain, a list of labels",
        ),
        ({"domain_size": True}, InvalidTypeError, "domain_size must be a Domain"),
        ({"report_bits": 0}, InvalidValueError, "report_bits must be an integer of at least 1"),
        ({"report_bits": 1.5}, InvalidTypeError, "report_bits must be an integer"),
        ({"frequency": -0.1}, InvalidValueError, r"frequency must be in \[0, 1\], got -0.1"),
        ({"frequency": math.nan}, InvalidValueError, r"frequency must be in \[0, 1\]"),
        ({"oracles": []}, InvalidValueError, "oracles must hold a class or a name"),
        ({"oracles": 3}, InvalidTypeError, "oracles must be"),
        ({"oracles": [3]}, InvalidTypeError, r"oracles\[0\] must be the class of an oracle"),
        ({"oracles": ["rappor"]}, InvalidValueError, r"oracles\[0\] must be one of"),
        (
            {"oracles": tn.Memoized},
            InvalidTypeError,
            "from an epsilon and a domain alone, got Memo",
        ),
        ({"oracles": [tn.Domain]}, InvalidTypeError, "from an epsilon and a domain alone, got Dom"),
        ({"epsilon": 100.0}, InvalidValueError, "10 answers: epsilon must be a finite number"),
        ({"oracles": [lambda *_: 3]}, InvalidTypeError, r"oracle\(epsilon, domain\) must be"),
        ({"epsilon": 100.0, "oracles": [tn.DirectEncoding]}, InvalidValueError, "no oracle takes"),
    ],
)
def test_bad_input_is_refused_by_name(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    given = {"epsilon": 1.0, "domain_size": 10, **arguments}
    with pytest.raises(error, match=message):
        choose_oracle(**given)


@pytest.mark.parametrize("size", [20, 21, 31])
def test_subsets_of_one_answer_are_named_direct_encoding(size: int) -> None:
    choice = choose_oracle(4.0, size)
    assert choice.oracle == tn.DirectEncoding(4.0, size)
    other = next(each for each in choice.candidates if each.name == "subset_selection")
    assert other.oracle is not None
    assert other.oracle.support_probabilities == pytest.approx(choice.oracle.support_probabilities)


@pytest.mark.parametrize("frequency", [0.0, 0.25])
def test_functions_that_reports_share_count_with_the_error_that_reports_do_not_lower(
    frequency: float,
) -> None:
    def pooled(epsilon: float, domain: tn.Domain) -> tn.OptimizedLocalHashing:
        return tn.OptimizedLocalHashing(epsilon, domain, hashes=512)

    for reports, first in ((4_000, "optimized_local_hashing"), (4_000_000, "direct_encoding")):
        choice = choose_oracle(
            2.0, 41, oracles=[pooled, "direct_encoding"], frequency=frequency, reports=reports
        )
        assert choice.oracle.name == first
        held = round(reports * frequency)
        rest = (reports - held) // 40
        counts = [reports - 40 * rest, *[rest] * 40]
        for each in choice.candidates:
            assert each.oracle is not None
            exact = tn.estimator_variance(each.oracle, tn.Everyone(), true_counts=counts)[0]
            assert each.variance == pytest.approx(exact / reports, rel=1e-6)
            pool = tn.OptimizedLocalHashing(2.0, 41, hashes=512).pool_variance(counts)[0]
            shared = math.sqrt(pool) / reports if "hashing" in each.name else 0.0
            assert each.shared_error == pytest.approx(shared, rel=1e-6)
    (hashed,) = choose_oracle(2.0, 41, oracles=pooled).candidates
    words = choose_oracle(2.0, 41, oracles=pooled).explain()
    assert f"share add {hashed.shared_error:.2g}, however many report" in words
    alone = math.sqrt(variance(hashed.p, hashed.q))
    assert f"standard error of {alone:.4g} / sqrt(n)" in words
