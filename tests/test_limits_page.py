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
from turnout.pipeline.sources import open_source

ROOT = Path(__file__).parents[1]


def words(path: str) -> str:
    """A page without its line breaks."""
    return " ".join((ROOT / path).read_text(encoding="utf-8").split())


LIMITS = words("docs/reference/limits.rst")


def test_the_device_refuses_what_both_pages_say() -> None:
    """What it makes reports of is compared for every kind in ``test_device_questions.py``."""
    assert "of every kind, including permanent answers" in LIMITS
    assert "It refuses personal probabilities" in LIMITS
    devices = words("docs/topics/devices.rst")
    assert "Personal probabilities are refused: a plan does not hold them" in devices
    assert "participation is personal" in words("tests/test_device.py")
    assert "with permanent answers" in words("tests/test_device_permanent.py")


def test_votes_that_move_are_not_found_out_and_large_changes_are() -> None:
    assert "votes that move from one item to another, are not detected" in LIMITS
    mechanism = tn.distributed.NoisyAggregation(3, users=40, epsilon=2.0)
    mechanism.estimate([20, 10, 10])
    mechanism.estimate([10, 20, 10])
    with pytest.raises(ImplausibleSumsError):
        mechanism.estimate([90, 10, 10])


def test_a_joint_table_has_so_many_cells_at_most() -> None:
    assert "up to 2^20 cells" in LIMITS
    columns = {"a": tn.Domain.from_integers(2**10), "b": tn.Domain.from_integers(2**10)}
    assert tn.JointTable(1.0, columns).domain.size == 2**20
    with pytest.raises(InvalidValueError):
        tn.JointTable(1.0, columns | {"b": tn.Domain.from_integers(2**10 + 1)})


def test_densities_of_draws_are_for_one_and_two_features() -> None:
    assert "only from draws with one or two features" in LIMITS
    reference = tn.samplers.StandardNormal(3)
    with pytest.raises(EstimatorError, match="3 dimensions"):
        tn.samplers.PopulationEstimate(np.zeros((5, 3)), reference, (-1.0, 1.0))


def test_a_round_without_one_of_those_that_add_up_is_lost_and_names_it() -> None:
    assert "the error names it and the round is lost" in LIMITS
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
    assert "The only defence is that one report counts no more than any other" in LIMITS
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
    assert "nothing combines them into a table of three" in LIMITS
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
    assert "Two stray quotes in a CSV file can turn everything between them" in LIMITS
    lines = ["note,answer", *(f"n{row},{('no', 'yes')[row % 2]}" for row in range(10))]
    lines[3], lines[6] = '"n2,no', 'n5",yes'
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert tn.survey(path, "answer", epsilon=1.0).tally.nodes == 7


def test_columns_of_a_csv_file_that_are_not_read_may_hold_anything(tmp_path: Path) -> None:
    assert "Only the columns of a CSV file that are read are checked to be UTF-8" in LIMITS
    path = tmp_path / "answers.csv"
    path.write_bytes(b"note,answer\n\xff\xfe,yes\nb,no\n")
    assert tn.survey(path, "answer", epsilon=1.0).tally.nodes == 2
    with pytest.raises(CorruptDataError, match="not UTF-8"):
        tn.survey(path, "note", epsilon=1.0)


def test_two_parquet_files_in_one_are_refused_if_the_first_is_not_smaller(tmp_path: Path) -> None:
    assert "are refused if the first is at least as large as the data of the second" in LIMITS
    parts = []
    for rows in (100, 20):
        path = tmp_path / f"{rows}.parquet"
        parquet.write_table(pa.table({"answer": ["yes", "no"] * (rows // 2)}), path)
        parts.append(path.read_bytes())
    both = tmp_path / "both.parquet"
    both.write_bytes(b"".join(parts))
    with pytest.raises(CorruptDataError, match="several files, one written after the other"):
        tn.survey(both, "answer", epsilon=1.0)


def test_of_two_parquet_files_in_one_others_are_read_after_a_small_first(tmp_path: Path) -> None:
    assert "If the first is smaller, Arrow may read other columns without an error" in LIMITS

    def written(table: pa.Table) -> bytes:
        path = tmp_path / "one.parquet"
        parquet.write_table(
            table, path, use_dictionary=False, compression="none", write_statistics=False
        )
        return path.read_bytes()

    rows = 200
    second = written(pa.table({"a": np.ones(rows, np.int64), "b": np.zeros(rows, np.int64)}))
    column = parquet.ParquetFile(pa.BufferReader(second)).metadata.row_group(0).column(0)
    length = column.total_compressed_size
    # The first file is as long as one column of the second, so that its columns move by one.
    size = length - len(written(pa.table({"a": ["x"]})))
    files = (written(pa.table({"a": ["x" * (size - less)]})) for less in range(-10, 10))
    first = next(file for file in files if len(file) == length)
    both = tmp_path / "both.parquet"
    both.write_bytes(first + second)
    (block,) = open_source(both).blocks(["b"])
    assert block.read().column(0).to_pylist() == [1] * rows


def test_a_record_batch_of_an_arrow_file_is_read_whole(tmp_path: Path) -> None:
    assert "Arrow reads a record batch of an Arrow file whole" in LIMITS
    path, rows = tmp_path / "answers.arrow", 100_000
    table = pa.table({"answer": np.zeros(rows, np.int64)})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=rows)
    del table
    before = pa.total_allocated_bytes()
    block = next(iter(open_source(path, block_rows=1000).blocks(["answer"]))).read()
    assert block.num_rows == 1000
    assert pa.total_allocated_bytes() - before >= 8 * rows


def test_with_proofs_a_user_can_still_vote_for_what_it_does_not_hold() -> None:
    assert "Even with proofs, a user can vote for an item that it does not hold" in LIMITS
    mechanism = tn.distributed.VerifiedAggregation(["no", "yes"], users=20, epsilon=20.0)
    honest, lied = (mechanism.run(votes, seed=1) for votes in (["no"] * 20, ["yes"] * 20))
    assert honest.estimate.frequencies[0] > 0.5 > lied.estimate.frequencies[0]


def test_a_few_bytes_of_a_report_file_stand_for_very_many_reports(tmp_path: Path) -> None:
    assert "A few bytes can stand for very many equal reports" in LIMITS
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
