"""Reports: one object that knows its oracle and who took part."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import turnout as tn
from turnout.collecting.sums import DesignSums
from turnout.errors import (
    CodeOutsideDomainError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
)

ORACLE = tn.DirectEncoding(1.0, tn.Domain(["a", "b", "c"]))
KINDS = ["everyone", "bernoulli", "personalized"]


def rates_of(nodes: int) -> npt.NDArray[np.float64]:
    return np.linspace(0.05, 1.0, nodes)


def make(kind: str, nodes: int = 60, seed: int = 1) -> tn.Reports:
    ways: dict[str, tn.Participation] = {
        "everyone": tn.Everyone(),
        "bernoulli": tn.Bernoulli(0.4),
        "personalized": tn.Personalized(rates_of(nodes)),
    }
    values = [["a", "b", "c"][node % 3] for node in range(nodes)]
    return ORACLE.randomize(values, participation=ways[kind], seed=seed)


def rebuilt(reports: tn.Reports, **changes: Any) -> tn.Reports:
    """The same reports made by hand, as after a journey."""
    given: dict[str, Any] = {
        "oracle": reports.oracle,
        "participation": reports.participation,
        "codes": reports.codes,
        "nodes": reports.nodes,
        "probabilities": reports.probabilities,
        "design": reports.design,
        **changes,
    }
    return tn.Reports(**given)


@pytest.mark.parametrize("kind", KINDS)
def test_reports_know_how_they_were_made(kind: str) -> None:
    reports = make(kind)
    assert reports.oracle == ORACLE
    assert reports.participation.name == kind
    assert reports.plan == tn.Plan(ORACLE, reports.participation)
    assert reports.nodes == 60
    assert len(reports) == reports.codes.size
    assert (len(reports) == 60) == (kind == "everyone")
    assert reports.codes.dtype == np.uint8
    assert (reports.probabilities is None) == (reports.design is None) == (kind != "personalized")


def test_personal_reports_carry_the_probabilities_of_the_reporters_and_sums_over_all() -> None:
    reports = make("personalized", 5000)
    assert reports.probabilities is not None
    assert reports.probabilities.dtype == np.float64
    assert reports.probabilities.size == len(reports) < 5000
    assert set(reports.probabilities.tolist()) <= set(rates_of(5000).tolist())
    assert (np.diff(reports.probabilities) > 0).all()  # as the nodes: in their order
    assert reports.design == DesignSums.of(rates_of(5000))
    assert reports.design is not None
    assert abs(reports.design.mean_received - rates_of(5000).sum()) < 1e-9
    assert abs(reports.design.sum_of_squares - (rates_of(5000) ** 2).sum()) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_reports_made_by_hand_are_like_those_of_the_oracle(kind: str) -> None:
    reports = make(kind)
    for dtype in ("u1", "u4", "i8", ">i2", "i1"):
        other = rebuilt(reports, codes=reports.codes.astype(dtype))
        assert other == reports
        assert other.codes.dtype == np.uint8
        assert ORACLE.tally(other) == ORACLE.tally(reports)
    assert rebuilt(reports, codes=reports.codes.tolist(), nodes=np.int64(60)) == reports


def test_codes_in_any_memory_are_taken() -> None:
    codes = np.array([0, 2, 1, 1], dtype=np.uint8)
    wide = tn.DirectEncoding(1.0, 300)
    layouts: list[npt.NDArray[Any]] = [
        np.repeat(codes, 2)[::2],
        codes[::-1].copy()[::-1],
        np.frombuffer(b"x" + codes.astype(np.uint16).tobytes(), np.uint16, offset=1),
        np.stack([codes, codes], axis=1)[:, 0],
    ]
    for array in layouts:
        for oracle in (ORACLE, wide):
            reports = tn.Reports(oracle, tn.Bernoulli(0.5), array, 9)
            assert reports.codes.tolist() == codes.tolist()
            assert oracle.tally(reports).support[:3].tolist() == [1, 2, 1]


def test_reports_do_not_share_memory_that_the_caller_can_write_to() -> None:
    codes = np.array([0, 1, 2], dtype=np.uint8)
    reports = tn.Reports(ORACLE, tn.Bernoulli(0.5), codes, 9)
    codes[0] = 200
    assert reports.codes.tolist() == [0, 1, 2]
    assert ORACLE.tally(reports).support.tolist() == [1, 1, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_reports_cannot_be_changed(kind: str) -> None:
    reports = make(kind)
    for name in ("codes", "nodes", "oracle", "plan", "probabilities", "design", "anything"):
        with pytest.raises(AttributeError):
            setattr(reports, name, None)
    with pytest.raises(ValueError, match="read-only"):
        reports.codes[0] = 1
    if reports.probabilities is not None:
        with pytest.raises(ValueError, match="read-only"):
            reports.probabilities[0] = 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_and_pickles_are_equal_and_as_frozen(
    kind: str, duplicate: Callable[[Any], Any]
) -> None:
    reports = make(kind)
    other = duplicate(reports)
    assert other == reports
    assert ORACLE.tally(other) == ORACLE.tally(reports)
    assert not other.codes.flags.writeable
    if kind == "personalized":
        assert not other.probabilities.flags.writeable


def test_equality_sees_plan_codes_nodes_and_probabilities() -> None:
    reports = make("personalized")
    assert reports.probabilities is not None
    assert reports.design is not None
    codes = reports.codes.copy()
    codes[0] = (codes[0] + 1) % 3
    probabilities = reports.probabilities.copy()
    probabilities[0] /= 2
    design = DesignSums(reports.design.probability + 1, reports.design.probability_squared)
    other_oracle = tn.DirectEncoding(2.0, ORACLE.domain)
    for changes in (
        {"codes": codes},
        {"nodes": 61},
        {"probabilities": probabilities},
        {"design": design},
        {"oracle": other_oracle},
    ):
        assert rebuilt(reports, **changes) != reports
    assert make("bernoulli") != make("everyone")
    assert make("bernoulli") != "reports"
    with pytest.raises(TypeError, match="unhashable"):
        hash(reports)


def test_reports_show_what_they_hold() -> None:
    assert repr(make("everyone", 6)) == (
        "Reports(6 of 6 nodes, DirectEncoding(epsilon=1.0, domain=Domain(['a', 'b', 'c'])), "
        "Everyone())"
    )
    assert repr(make("personalized")).endswith("Personalized(...))")


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_together_are_the_whole(kind: str) -> None:
    pieces = [make(kind, nodes, seed) for seed, nodes in enumerate([30, 0, 60, 9])]
    whole = tn.Reports.concatenate(pieces)
    assert whole.nodes == 99
    assert whole.codes.tolist() == np.concatenate([piece.codes for piece in pieces]).tolist()
    assert whole.codes.dtype == np.uint8
    assert ORACLE.tally(whole) == sum(ORACLE.tally(piece) for piece in pieces)
    assert tn.Reports.concatenate(iter(pieces)) == whole
    assert tn.Reports.concatenate(pieces[:1]) == pieces[0]
    if kind == "personalized":
        everybody = np.concatenate([rates_of(nodes) for nodes in (30, 0, 60, 9)])
        assert whole.design == DesignSums.of(everybody)


def test_pieces_under_another_plan_are_refused() -> None:
    pieces = [make("everyone"), make("everyone"), make("bernoulli")]
    with pytest.raises(PlanMismatchError, match=r"pieces\[2\] was made under another plan: partic"):
        tn.Reports.concatenate(pieces)
    other = tn.DirectEncoding(1.0, tn.Domain(["a", "c", "b"])).randomize(["a"])
    with pytest.raises(PlanMismatchError, match=r"pieces\[1\] .*: domain .*'c', 'b'"):
        tn.Reports.concatenate([make("everyone"), other])


@pytest.mark.parametrize("pieces", [[], (), iter([])], ids=["list", "tuple", "iterator"])
def test_no_pieces_are_refused(pieces: Any) -> None:
    with pytest.raises(InvalidValueError, match="pieces must hold at least one"):
        tn.Reports.concatenate(pieces)


def test_an_oracle_tallies_only_its_own_reports() -> None:
    reports = make("bernoulli")
    for oracle, difference in (
        (tn.DirectEncoding(1.5, ORACLE.domain), r"epsilon 1\.0 instead of 1\.5"),
        (tn.DirectEncoding(1.0, 3), r"domain Domain\(\['a', 'b', 'c'\]\) instead of"),
    ):
        with pytest.raises(PlanMismatchError, match=f"reports was made .*: {difference}"):
            oracle.tally(reports)
    assert tn.DirectEncoding(1.0, tn.Domain(["a", "b", "c"])).tally(reports).nodes == 60


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"codes": [0, 3]}, CodeOutsideDomainError, r"codes\[1\] is .*from 0 to 2 \(1 such"),
        ({"codes": [0, -1, -1]}, CodeOutsideDomainError, r"codes\[1\] is .*\(2 such"),
        (
            {"codes": np.array([2**64 - 1], np.uint64)},
            CodeOutsideDomainError,
            r"codes\[0\] is not",
        ),
        ({"codes": np.array([-128], np.int8)}, CodeOutsideDomainError, r"codes\[0\] is not"),
        ({"codes": [0.0]}, InvalidTypeError, "codes must hold integers, got dtype float64"),
        ({"codes": [True]}, InvalidTypeError, "codes must hold integers, got dtype bool"),
        ({"codes": ["a"]}, InvalidTypeError, "codes must hold integers, got dtype <U1"),
        ({"codes": [[0]]}, InvalidTypeError, r"codes must be .* of shape \(1, 1\)"),
        ({"codes": 0}, InvalidTypeError, r"codes must be .* of shape \(\)"),
        ({"codes": [[0], [1, 2]]}, InvalidTypeError, "codes must be .* got a value of type list"),
        ({"nodes": 1}, InvalidValueError, "nodes must be at least the number of reports 2, got 1"),
        ({"nodes": -1}, InvalidValueError, "nodes must be an integer from 0 to"),
        ({"nodes": 2**64}, InvalidValueError, "nodes must be an integer from 0 to"),
        ({"nodes": 5.0}, InvalidTypeError, r"nodes must be an integer .*, got 5\.0"),
        ({"design": DesignSums(0, 0)}, InvalidValueError, "probabilities and design belong to"),
        ({"probabilities": [0.5, 0.5]}, InvalidValueError, "probabilities and design belong to"),
    ],
)
def test_reports_by_hand_are_checked(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    given: dict[str, Any] = {"codes": [0, 1], "nodes": 5, **changes}
    with pytest.raises(error, match=message):
        tn.Reports(ORACLE, tn.Bernoulli(0.5), **given)


def test_everyone_means_a_report_from_each_node() -> None:
    with pytest.raises(InvalidValueError, match="nodes must equal the number of reports 2 when"):
        tn.Reports(ORACLE, tn.Everyone(), [0, 1], 3)
    with pytest.raises(InvalidValueError, match="nodes must equal the number of reports 2 when"):
        tn.Reports(ORACLE, tn.Bernoulli(1.0), [0, 1], 3)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"probabilities": None}, InvalidValueError, "probabilities and design are needed"),
        ({"design": None}, InvalidValueError, "probabilities and design are needed"),
        ({"design": {"probability": 1}}, InvalidTypeError, "design must be a DesignSums"),
        ({"probabilities": [0.5]}, InvalidValueError, "one entry for each of the 2 reports, got 1"),
        ({"probabilities": [0.5, 0.0]}, InvalidValueError, r"probabilities\[1\] must be in"),
        ({"probabilities": [0.5, float("nan")]}, InvalidValueError, r"\[1\] must be in .*nan"),
        ({"probabilities": "half"}, InvalidTypeError, "probabilities must be .*real numbers"),
        ({"design": DesignSums(6 * 2**64, 1)}, InvalidValueError, "design must be sums over 5"),
        ({"design": DesignSums(0, 0)}, InvalidValueError, "design must be sums over 5 nodes"),
        ({"design": DesignSums(2**64, 2**65)}, InvalidValueError, "design must be sums over 5"),
    ],
)
def test_personal_reports_by_hand_are_checked(
    changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    given: dict[str, Any] = {
        "probabilities": [0.5, 0.25],
        "design": DesignSums(2 * 2**64, 2**64),
        **changes,
    }
    with pytest.raises(error, match=message):
        tn.Reports(ORACLE, tn.Personalized([])._in_plan(), [0, 1], 5, **given)
