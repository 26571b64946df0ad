"""The second round is a plan: messages, files, groups and the state between the rounds."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout._documents import SealedDocument
from turnout.collecting.report_files import read_reports, write_reports
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
    ProtocolError,
)
from turnout.frequency.adaptive import SecondRound, SecondTally, TwoRounds, TwoRoundTallies
from turnout.frequency.heavy_hitters import Search
from turnout.frequency.rounds import Rounds

COUNTS = np.array([1400, 450, 120, 30])
VALUES = np.repeat(np.arange(4), COUNTS)
LABELS = ["never", "once", "often", "always"]
COLLECTION = tn.TwoRoundCollection(
    LABELS, epsilon=5.0, first_rate=0.3, second_rate=0.3, low=0.15, high=0.9
)
RATES = [0.2, 0.25, 0.3]
SECOND = SecondRound(5.0, 3, oracle=tn.DirectEncoding(4.0, 3), rates=RATES)


def test_the_estimate_among_those_asked_is_right_at_every_rate(statistical: ModuleType) -> None:
    oracle = tn.DirectEncoding(3.0, 3)
    second = SecondRound(5.0, 3, oracle=oracle, rates=[0.2, 0.4, 0.5])
    truth = np.array([0.6, 0.3, 0.1])
    for rate in (1.0, 0.4):
        made = [
            second.simulate(4000 * truth, participation=rate, seed=seed).estimate()
            for seed in range(500)
        ]
        shares = np.array([each.frequencies for each in made])
        errors = np.array([each.standard_errors for each in made])
        statistical.check_mean(shares, truth)
        statistical.check_variance((shares - truth) / errors.mean(axis=0), 1.0, slack=0.05)
        tally = second.collect(np.repeat([0, 1, 2], [2400, 1200, 400]), participation=rate, seed=1)
        limits = tally.estimate().interval(1 - 1e-6)
        assert limits.contains(truth).all()
        assert tally.received < 0.5 * rate * tally.nodes


def test_devices_answer_both_rounds_by_plan_files_and_messages() -> None:
    under_way = COLLECTION.rounds()
    group = under_way.assign(VALUES.size, seed=3)
    assert abs(int((group == 0).sum()) - 600) < 130
    while not under_way.finished:
        under_way = TwoRounds.from_json(under_way.to_json())
        number = under_way.number
        plan = tn.Plan.from_json(under_way.plan().to_json())
        assert plan.serial == number
        mine = [LABELS[code] for code in VALUES[group == number]]
        sent = [plan.report(label, seed=place) for place, label in enumerate(mine)]
        messages = [message for message in sent if message is not None]
        assert (len(messages) == len(mine)) == (number == 0)
        under_way.close(plan.oracle.tally(plan.gather(messages, nodes=len(mine))))
    tallies = under_way.result
    assert tallies.spent.total <= 5.0
    assert tallies.spent == COLLECTION._spending(tallies.second.round)
    estimate = tallies.estimate()
    assert estimate.nodes == VALUES.size
    assert estimate.interval(1 - 1e-6).contains(COUNTS / VALUES.size).all()
    again = TwoRounds.from_json(under_way.to_json())
    assert (again.result.estimate().frequencies == estimate.frequencies).all()
    with pytest.raises(ProtocolError, match="the rounds are over"):
        again.plan()


def test_the_group_asked_first_counts_as_a_random_part_of_all() -> None:
    group = COLLECTION._first_oracle.simulate([420, 135, 36, 9], seed=1)
    second = COLLECTION.second_round(group).simulate([980, 315, 84, 21], seed=2)
    found = TwoRoundTallies(COLLECTION, group, second).estimate()
    everyone = tn.Plan(COLLECTION._first_oracle, COLLECTION._first_participation)
    same = tn.Tally(everyone, group.support, group.received, 2000)
    expected = TwoRoundTallies(COLLECTION, same, second).estimate()
    np.testing.assert_allclose(found.frequencies, expected.frequencies)
    assert found.nodes == 2000


def test_a_state_that_does_not_fit_is_refused_by_name(tmp_path: Path) -> None:
    under_way = COLLECTION.rounds()
    before = under_way.to_json()
    for wrong in (SECOND.simulate([9, 9, 9]), tn.DirectEncoding(4.0, 4).simulate(COUNTS)):
        with pytest.raises(PlanMismatchError):
            under_way.close(wrong)
        assert under_way.to_json() == before
    with pytest.raises(InvalidValueError, match="participation must be left out"):
        under_way.plan(0.5)
    under_way.close(under_way.current.simulate(COUNTS, seed=1))
    with pytest.raises(InvalidValueError, match="second must cover everyone who was asked"):
        under_way.close(under_way.current.simulate(COUNTS, participation=0.5))
    assert not under_way.finished
    path = tmp_path / "state.json"
    under_way.write(path)
    assert isinstance(Rounds.read(path), TwoRounds)
    with pytest.raises(CorruptDataError, match=r"state\.json: not the state of heavy_hitters"):
        Search.read(path)
    document = SealedDocument("state", "turnout-rounds", 1)
    described = document.read(path.read_text())
    for change in ({"first_rate": 2.0}, {"domain": 4}, {"epsilon": 4.0}, {"more": 1}):
        changed = {**described, "protocol": {**described["protocol"], **change}}
        with pytest.raises(CorruptDataError):
            TwoRounds.from_json(document.text(changed))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rates": [0.2, 0.3]}, "rates"),
        ({"rates": [0.2, 0.3, 2.0**-31]}, r"rates\[2\] must be in"),
        ({"rates": [0.2, 0.3, 1.0]}, "rates must all be below 1"),
        ({"epsilon": 4.0}, "epsilon must be at least 4.4"),
        ({"epsilon": float("nan")}, "epsilon must be a finite number above 0"),
        ({"oracle": tn.DirectEncoding(4.0, 4)}, "oracle must be of 3 codes"),
        ({"oracle": tn.SummationHistogramEncoding(4.0, 3)}, "hold scores"),
        ({"oracle": SECOND}, "oracle must report of every node"),
        ({"oracle": 3}, "oracle must be an oracle"),
    ],
)
def test_second_rounds_that_cannot_be_are_refused(change: dict[str, Any], message: str) -> None:
    given = {"epsilon": 5.0, "oracle": tn.DirectEncoding(4.0, 3), "rates": RATES, **change}
    with pytest.raises((InvalidValueError, InvalidTypeError), match=message):
        SecondRound(given.pop("epsilon"), 3, **given)


def test_what_does_not_know_the_rates_refuses_a_second_round() -> None:
    for refused in (
        lambda: tn.estimator_variance(SECOND, tn.Everyone(), true_counts=[1, 1, 1]),
        lambda: SECOND.tally_sql("reports"),
        lambda: SECOND.collect([0, 1], participation=tn.Personalized([0.5, 0.5])),
        lambda: tn.Plan(SECOND, tn.Everyone()).gather([]),
        lambda: SECOND.simulate([1, 1, 1]).estimate("hajek"),
        lambda: tn.JointTable(5.0, {"a": 2, "b": 2}, oracle=SECOND),
    ):
        with pytest.raises(InvalidValueError):
            refused()
    assert SECOND._told_apart is None
    assert SECOND.variation_ratio.ratio == SECOND.realized_ratio


def test_reports_of_a_file_know_their_groups_though_many_are_silent(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    groups = ["north" if code else "south" for code in VALUES % 3]
    answers = VALUES % 3
    scanned = tn.pipeline.scan(
        pa.table({"answer": answers, "region": groups}), "answer", group_by="region"
    )
    reports = tn.pipeline.randomize(scanned, SECOND, tmp_path / "job", seed=4)
    grouped: Any = reports.tally(group_by="region")
    assert grouped == tn.pipeline.collect(scanned, SECOND, seed=4)
    for name in ("north", "south"):
        nodes = groups.count(name)
        assert grouped[name].nodes == nodes
        assert 0 < grouped[name].received < nodes / 2
    # Those in the south all hold the first answer, whose support the reports of the north lack.
    south = grouped["south"].estimate()
    assert south.interval(1 - 1e-6).contains([1.0, 0.0, 0.0]).all()
    drawn = SECOND.randomize(answers, seed=4)
    write_reports(drawn, tmp_path / "reports.parquet")
    assert read_reports(tmp_path / "reports.parquet") == drawn
    assert isinstance(SECOND.tally(drawn), SecondTally)
    assert json.loads(json.dumps(SECOND.to_dict())) == SECOND.to_dict()
