"""Every kind keeps the contract, a page says which verbs it has, and broken ones are found out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout import _kinds
from turnout.collecting.groups.counting import tally_by_group
from turnout.collecting.randomizer import Counts, Drawn
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.adaptive import SecondRound
from turnout.frequency.choice import oracle_classes
from turnout.reporting import report
from turnout.testing import VERBS, check_randomizer, checked_verb


@pytest.fixture(scope="module")
def cells(kinds: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    return {
        (name, verb): checked_verb(
            verb, oracle, kinds.answers_of(oracle), tmp_path_factory.mktemp("a")
        )
        for name, oracle in kinds.KINDS.items()
        for verb in VERBS
    }


def test_the_page_says_which_kind_has_which_verb(
    kinds: Any, cells: dict[tuple[str, str], str]
) -> None:
    kinds.compare(cells)


@pytest.mark.parametrize("by", ["version", None])
def test_every_kind_has_a_page(kinds: Any, by: str | None, tmp_path: Path) -> None:
    found = {}
    for name, oracle in kinds.KINDS.items():
        tally = oracle.collect(kinds.answers_of(oracle), participation=0.5)
        if by is not None:
            answers = kinds.answers_of(oracle)
            reports = oracle.randomize(answers)
            version = np.arange(len(reports)) % 2
            tally = tally_by_group(reports, version, [100, 100], names=by, keys=["a", "b"])
        place = tmp_path / f"{name}.html"
        report(tally, place)
        text = place.read_text(encoding="utf-8")
        assert "<svg" in text or "data:image" in text
        assert ">nan<" not in text
        found[name, "page"] = "works"
    kinds.compare(found)


def test_all_kinds_are_checked(kinds: Any) -> None:
    assert set(oracle_classes()) <= set(_kinds.known())
    assert {"duchi", "hybrid", "piecewise", "square_wave", "direct_encoding", "memoized"} <= set(
        kinds.KINDS
    )


class _Talkative(SecondRound):
    """A kind whose silence says more than is counted."""

    name = "talkative_of_the_contract"

    def _reporters(self, answers: Any, participation: Any, noise: Any) -> Any:
        asked = super(SecondRound, self)._reporters(answers, participation, noise)
        return asked[np.asarray(answers)[asked] != 0]


def test_silence_that_says_too_much_is_found_out() -> None:
    rates = [0.2, 0.25, 0.3]
    try:
        oracle = _Talkative(5.0, 3, oracle=tn.DirectEncoding(4.0, 3), rates=rates)
        with pytest.raises(AssertionError, match=r"guarantee: .* times as likely under"):
            check_randomizer(oracle, [0, 1, 2] * 100)
    finally:
        _kinds.REGISTERED.pop(_Talkative.name)


@pytest.mark.parametrize(
    "oracle",
    [
        tn.mean.Duchi(1.0, dimensions=2),
        tn.mean.Hybrid(0.5, dimensions=2),
        tn.mean.Hybrid(6.0, dimensions=3),
        tn.mean.Piecewise(6.0, dimensions=3),
    ],
    ids=repr,
)
def test_several_numbers_of_each_node_keep_the_contract(kinds: Any, oracle: Any) -> None:
    found = check_randomizer(oracle, kinds.answers_of(oracle))
    assert "pass them as an array" in found.pop("job")
    assert "depends on the number itself" in found.pop("simulate")
    assert set(found.values()) == {"works"}


class _Broken(tn.DirectEncoding):
    """A kind of one's own, in which one thing is wrong."""

    wrong = ""

    def draw_reports(self, answers: Any, participation: Any, noise: Any) -> Drawn:
        if self.wrong == "says too much":
            loud = tn.DirectEncoding(self.epsilon + 1.0, self.domain)
            return loud.draw_reports(answers, participation, noise)
        if self.wrong == "ignores who takes part":
            return super().draw_reports(answers, tn.Everyone(), noise)
        if self.wrong == "ignores the seed":
            noise = None
        drawn = super().draw_reports(answers, participation, noise)
        if self.wrong == "reports of another type":
            return Drawn(drawn.reports.astype(np.int64), drawn.probabilities)
        return drawn

    def count_reports(self, reports: Any, probabilities: Any = None) -> Counts:
        counts = super().count_reports(reports, probabilities)
        if self.wrong == "does not add up" and counts.received >= 30:
            counts.sums[0] -= np.uint64(1)
            counts.sums[1] += np.uint64(1)
        return counts

    def to_dict(self) -> dict[str, Any]:
        described = super().to_dict()
        return {**described, "epsilon": 0.5} if self.wrong == "forgets epsilon" else described


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("says too much", "guarantee: .* times as likely under"),
        ("ignores who takes part", "randomize: .*not half of the nodes"),
        ("ignores the seed", "randomize: .*a seed gives two results"),
        ("reports of another type", "randomize: .*not of report_dtype"),
        ("does not add up", "tally: .*do not add up"),
        ("forgets epsilon", "description: .*rebuilt from its description"),
    ],
)
def test_a_broken_kind_is_found_out(wrong: str, message: str) -> None:
    class Own(_Broken):
        name = "broken_of_the_contract"

    Own.wrong = wrong
    try:
        with pytest.raises(AssertionError, match=message):
            check_randomizer(Own(1.0, 3), [0, 1, 2] * 100)
    finally:
        _kinds.REGISTERED.pop(Own.name)


class _Refusing(tn.DirectEncoding):
    """A kind without noise by blocks, which counts nothing."""

    name = "refusing_of_the_contract"
    by_blocks = False

    def count_reports(self, reports: Any, probabilities: Any = None) -> Counts:
        raise InvalidValueError("no")


def test_a_kind_refuses_nothing_but_what_it_cannot_have() -> None:
    try:
        with pytest.raises(AssertionError, match="tally: _Refusing refuses it: no"):
            check_randomizer(_Refusing(1.0, 3), [0, 1, 2] * 100)
    finally:
        _kinds.REGISTERED.pop(_Refusing.name)


class _Loud(tn.DirectEncoding):
    """A kind that hides all answers but the middle one."""

    name = "loud_of_the_contract"

    def draw_reports(self, answers: Any, participation: Any, noise: Any) -> Drawn:
        drawn = super().draw_reports(answers, participation, noise)
        if len(answers) == len(drawn.reports):
            return Drawn(np.where(answers == 1, answers.astype(self.report_dtype), drawn.reports))
        return drawn


def test_every_answer_is_hidden_and_answers_must_differ() -> None:
    try:
        with pytest.raises(AssertionError, match=r"guarantee: .* times as likely under"):
            check_randomizer(_Loud(1.0, 3), [0, 1, 2] * 100)
    finally:
        _kinds.REGISTERED.pop(_Loud.name)
    with pytest.raises(AssertionError, match="answers must contain at least two different"):
        check_randomizer(tn.mean.Duchi(1.0), [0.5] * 100)


def test_what_is_no_randomizer_is_refused() -> None:
    with pytest.raises(InvalidTypeError, match="oracle must be a randomizer"):
        check_randomizer(3, [0] * 100)
    with pytest.raises(InvalidValueError, match="answers must be at least 100, got 3"):
        check_randomizer(tn.DirectEncoding(1.0, 3), [0, 1, 2])
