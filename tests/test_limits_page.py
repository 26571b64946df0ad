"""The page of known limits is true: each limit that runs in no time is tried."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import turnout as tn
from turnout.collecting.report_files import read_reports, write_reports
from turnout.errors import (
    CorruptDataError,
    EstimatorError,
    ImplausibleSumsError,
    InvalidValueError,
    MissingPartyError,
)

ROOT = Path(__file__).parents[1]


def words(path: str) -> str:
    """A page without its line breaks."""
    return " ".join((ROOT / path).read_text(encoding="utf-8").split())


LIMITS = words("docs/reference/limits.rst")


def test_the_device_refuses_what_both_pages_say() -> None:
    """What it makes reports of is compared for every kind in ``test_device_questions.py``."""
    assert "of every kind, permanent answers included" in LIMITS
    assert "It refuses personal probabilities" in LIMITS
    devices = words("docs/topics/devices.rst")
    assert "Personal probabilities are refused: a plan does not hold them" in devices
    assert "participation is personal" in words("tests/test_device.py")
    assert "with permanent answers" in words("tests/test_device_permanent.py")


def test_votes_that_move_are_not_found_out_and_large_changes_are() -> None:
    assert "votes that move from one item to another, are not found out" in LIMITS
    mechanism = tn.distributed.NoisyAggregation(3, users=40, epsilon=2.0)
    mechanism.estimate([20, 10, 10])
    mechanism.estimate([10, 20, 10])
    with pytest.raises(ImplausibleSumsError):
        mechanism.estimate([90, 10, 10])


def test_a_joint_table_has_so_many_cells_at_most() -> None:
    assert "up to 2^20 of them" in LIMITS
    columns = {"a": tn.Domain.from_integers(2**10), "b": tn.Domain.from_integers(2**10)}
    assert tn.JointTable(1.0, columns).domain.size == 2**20
    with pytest.raises(InvalidValueError):
        tn.JointTable(1.0, columns | {"b": tn.Domain.from_integers(2**10 + 1)})


def test_densities_of_draws_are_for_one_and_two_features() -> None:
    assert "for one and two features" in LIMITS
    reference = tn.samplers.StandardNormal(3)
    with pytest.raises(EstimatorError, match="3 dimensions"):
        tn.samplers.PopulationEstimate(np.zeros((5, 3)), reference, (-1.0, 1.0))


def test_a_round_without_one_of_those_that_add_up_is_lost_and_names_it() -> None:
    assert "A lost one is noticed and named; the round is lost" in LIMITS
    mechanism = tn.distributed.NoisyAggregation(2, users=4, parties=3, epsilon=1.0)
    round_ = tn.distributed.Round.start(mechanism)
    parties = [round_.aggregator(index) for index in range(3)]
    for user in range(4):
        for message in round_.user(user).report(1):
            parties[message.recipient.index].receive(message.to_bytes())
    for one in parties[:2]:
        for message in one.close():
            if message.recipient.index < 2:
                parties[message.recipient.index].receive(message.to_bytes())
    with pytest.raises(MissingPartyError, match="aggregator 2"):
        parties[0].give_up()
    with pytest.raises(MissingPartyError, match="aggregator 0, aggregator 1, aggregator 2"):
        round_.server().estimate()


def test_an_invented_answer_has_the_weight_of_one_report() -> None:
    assert "no defence beyond the weight of one report" in LIMITS
    oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
    honest = oracle.randomize(["no"] * 1000, seed=1)
    invented = tn.Reports(oracle, honest.participation, np.ones(10, oracle.report_dtype), 10)
    before, after = (
        oracle.tally(reports).estimate().frequencies[1]
        for reports in (honest, tn.Reports.concatenate([honest, invented]))
    )
    # No report can say more than this of an answer, whoever made it up.
    reach = (math.exp(1.0) + 1.0) / (math.exp(1.0) - 1.0)
    assert 0.0 < after - before < 10 * reach / 1000


def test_of_pair_tables_there_is_no_table_of_three() -> None:
    assert "nothing puts a table of three together from them" in LIMITS
    questions = {name: ["x", "y"] for name in "abc"}
    people = {name: ["x", "y"] * 50 for name in "abc"}
    estimate = tn.PairTables(1.0, questions).collect(people, seed=1).estimate()
    assert list(estimate) == ["a × b", "a × c", "b × c"]
    assert len(estimate["a × b"].frequencies) == 4


def test_sums_over_cells_need_one_participation_rate() -> None:
    assert "Sums over cells and conditional shares need one participation rate for all" in LIMITS
    table = tn.JointTable(1.0, {"a": ["x", "y"], "b": ["x", "y"]})
    people = {"a": ["x", "y"] * 50, "b": ["y"] * 100}
    personal = tn.Personalized(np.linspace(0.5, 0.9, 100))
    estimate = table.collect(people, participation=personal, seed=1).estimate()
    with pytest.raises(EstimatorError, match="need one participation rate for all nodes"):
        estimate.marginal("a")
    with pytest.raises(EstimatorError, match="need one participation rate for all nodes"):
        estimate.conditional("b", given="a")


def test_a_tally_of_very_many_nodes_is_simulated() -> None:
    assert "for a thousand answers and 10^12 nodes" in LIMITS
    tally = tn.SubsetSelection(1.0, 1000).simulate(np.full(1000, 10**9), seed=1)
    assert tally.nodes == 10**12


def test_two_stray_quotes_join_rows_and_the_number_of_rows_says_so(tmp_path: Path) -> None:
    assert "Two stray quotes in a CSV file can make one field" in LIMITS
    lines = ["note,answer", *(f"n{row},{('no', 'yes')[row % 2]}" for row in range(10))]
    lines[3], lines[6] = '"n2,no', 'n5",yes'
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert tn.survey(path, "answer", epsilon=1.0).tally.nodes == 7


def test_columns_of_a_csv_file_that_are_not_read_may_hold_anything(tmp_path: Path) -> None:
    assert "the columns that are read are checked to be UTF-8, and the others are not" in LIMITS
    path = tmp_path / "answers.csv"
    path.write_bytes(b"note,answer\n\xff\xfe,yes\nb,no\n")
    assert tn.survey(path, "answer", epsilon=1.0).tally.nodes == 2
    with pytest.raises(CorruptDataError, match="not UTF-8"):
        tn.survey(path, "note", epsilon=1.0)


def test_two_parquet_files_in_one_are_refused_if_the_first_is_not_smaller(tmp_path: Path) -> None:
    assert "it is refused if the first is not smaller than the data of the second" in LIMITS
    parts = []
    for rows in (100, 20):
        path = tmp_path / f"{rows}.parquet"
        parquet.write_table(pa.table({"answer": ["yes", "no"] * (rows // 2)}), path)
        parts.append(path.read_bytes())
    both = tmp_path / "both.parquet"
    both.write_bytes(b"".join(parts))
    with pytest.raises(CorruptDataError, match="several files, one written after the other"):
        tn.survey(both, "answer", epsilon=1.0)


def test_a_few_bytes_of_a_report_file_stand_for_very_many_reports(tmp_path: Path) -> None:
    assert "a few bytes can stand for very many equal reports" in LIMITS
    oracle, many = tn.DirectEncoding(1.0, 2), 3_000_000
    reports = tn.Reports(oracle, tn.Everyone(), np.zeros(many, oracle.report_dtype), many)
    path = tmp_path / "reports.parquet"
    write_reports(reports, path)
    assert path.stat().st_size < 2000
    assert oracle.tally(read_reports(path)).received == many


def test_a_second_job_on_the_same_answers_randomizes_again(tmp_path: Path) -> None:
    assert "A second job on the same answers into another folder randomizes again" in LIMITS
    table = pa.table({"answer": ["yes", "no"] * 500})
    oracle = tn.DirectEncoding(1.0, tn.Domain(["no", "yes"]))
    written = []
    for name in ("first", "second"):
        tn.pipeline.randomize(tn.pipeline.scan(table, "answer"), oracle, tmp_path / name)
        (part,) = (tmp_path / name).glob("*.parquet")
        written.append(read_reports(part).codes)
    # Of 1,000 people as many are alike by chance with probability 2^-700.
    assert (written[0] != written[1]).any()
