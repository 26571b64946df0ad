"""What nobody may learn: noise is drawn once for each person, and nothing else leaves."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from tests.statistical import ALPHA, quantile

import turnout as tn
from turnout import _core, errors
from turnout.collecting.kind import randomized
from turnout.collecting.report_files import read_reports
from turnout.pipeline import PseudonymKey, parts, scan, scanning, sources
from turnout.pipeline.encoding import EncodedBlock
from turnout.pipeline.job import STATE_FOLDER
from turnout.pipeline.randomizing import JobNoise, collect_block, randomize_block
from turnout.pipeline.sources import BLOCK
from turnout.pipeline.sources.frames import StreamSource

DOMAIN = tn.Domain(["no", "yes"])
ORACLE = tn.DirectEncoding(1.0, DOMAIN)
SMALL = 2**12


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 2^12 rows, each of them a part."""
    monkeypatch.setattr(scanning, "open_source", partial(sources.open_source, block_rows=SMALL))
    monkeypatch.setattr(parts, "PART_BLOCKS", 1)


def state_of(folder: Path) -> Path:
    return folder / STATE_FOLDER / "job.json"


def interrupted(monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any], after: int = 1) -> None:
    """Stop a job after some of its parts."""
    write = parts.PartTask.write

    def fail(self: parts.PartTask, number: int, *given: Any) -> Any:
        if number >= after:
            raise KeyboardInterrupt
        return write(self, number, *given)

    with monkeypatch.context() as patched:
        patched.setattr(parts.PartTask, "write", fail)
        with pytest.raises(KeyboardInterrupt):
            make()


# The same noise for two answers ------------------------------------------------------------------


def test_a_block_whose_noise_would_reach_into_the_next_is_refused() -> None:
    with pytest.raises(errors.InvalidValueError, match="block_rows must be"):
        sources.open_source(pa.table({"a": [0]}), block_rows=BLOCK + 1)
    # A source of somebody else's make.
    codes = np.zeros(BLOCK + 1, np.uint8)
    block = EncodedBlock(0, codes, None, None, None, None, codes.size, tn.LeftOut())
    plan = tn.Plan(ORACLE, tn.Everyone())
    for make in (randomize_block, collect_block):
        with pytest.raises(errors.InvalidValueError, match="would share its noise"):
            make(plan, block, JobNoise.made(1))


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("edges", [SMALL, 2 * SMALL])
def test_blocks_and_jobs_draw_noise_of_their_own(tmp_path: Path, edges: int) -> None:
    """Reports at a distance of one or two blocks agree as often as independent ones."""
    rows = 64 * SMALL
    answers = scan(pa.table({"a": np.zeros(rows, np.int64)}), "a")
    oracle = tn.DirectEncoding(1.0, 2)
    p, q = oracle.support_probabilities
    made = [
        np.concatenate([read_reports(path).codes for path in reports.paths])
        for reports in (
            tn.pipeline.randomize(answers, oracle, tmp_path / "one"),
            tn.pipeline.randomize(answers, oracle, tmp_path / "other"),
        )
    ]
    pairs = [(made[0][:-edges], made[0][edges:]), (made[0], made[1])]
    for first, second in pairs:
        agree = p * p + q * q
        error = np.sqrt(agree * (1 - agree) / first.size)
        assert abs((first == second).mean() - agree) < quantile(2) * error


# The same answer twice ---------------------------------------------------------------------------


def query(tables: Iterator[pa.Table], rows: int = SMALL) -> StreamSource:
    """Give a query that gives the next table each time it is computed."""
    schema = pa.schema({"id": pa.int64(), "a": pa.int64()})
    found = StreamSource(
        "the query", schema, lambda columns: next(tables).select(columns).to_batches()
    )
    found.block_rows = rows
    return found


def people(order: Any, answers: Any) -> pa.Table:
    return pa.table({"id": np.asarray(order), "a": np.asarray(answers)})


@pytest.mark.usefixtures("small_parts")
def test_a_query_that_gives_another_order_within_a_job_is_refused(tmp_path: Path) -> None:
    rows = 3 * SMALL
    order = np.random.default_rng(1).permutation(rows)
    one, other = people(np.arange(rows), np.arange(rows) % 2), people(order, order % 2)
    answers = scan(query(iter([one, other])), "a")
    with pytest.raises(errors.CorruptDataError, match="another order of rows"):
        tn.pipeline.randomize(answers, tn.DirectEncoding(1.0, 2), tmp_path / "reports")
    # The first block of the other order was not randomized either.
    assert not list((tmp_path / "reports").glob("part-*"))
    fewer = scan(query(iter([one, one.slice(0, 2 * SMALL)])), "a")
    with pytest.raises(errors.CorruptDataError, match="other rows"):
        tn.pipeline.randomize(fewer, tn.DirectEncoding(1.0, 2), tmp_path / "fewer")
    same = scan(query(iter([one, one])), "a")
    made = tn.pipeline.randomize(same, tn.DirectEncoding(1.0, 2), tmp_path / "same")
    assert made.tally().nodes == rows


@pytest.mark.usefixtures("small_parts")
def test_a_job_does_not_go_on_with_other_people_of_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ORDER BY a: the answers always come in one order, and the people of one answer do not.
    rows = 3 * SMALL
    values = np.repeat([0, 1], [2 * SMALL, SMALL])
    first = people(np.arange(rows), values)
    second = people(np.r_[np.arange(2 * SMALL)[::-1], np.arange(2 * SMALL, rows)], values)
    oracle, folder = tn.DirectEncoding(1.0, 2), tmp_path / "reports"

    def answers(table: pa.Table) -> Any:
        return scan(query(iter([table] * 9)), "a", id_column="id")

    interrupted(monkeypatch, lambda: tn.pipeline.randomize(answers(first), oracle, folder))
    with pytest.raises(errors.InvalidValueError, match="has changed since the job began"):
        tn.pipeline.randomize(answers(second), oracle, folder, resume=True)
    assert tn.pipeline.randomize(answers(first), oracle, folder, resume=True).totals is not None


def test_a_frame_that_was_edited_after_its_persons_were_found_is_refused() -> None:
    frame = pd.DataFrame({"id": [1, 2, 1, 3], "a": [0, 1, 0, 1]})
    answers = scan(frame, "a", id_column="id", duplicates="first")
    assert tn.pipeline.collect(answers, tn.DirectEncoding(1.0, 2)).nodes == 3
    frame.loc[:, "id"] = [1, 1, 2, 3]
    with pytest.raises(errors.CorruptDataError, match="gave other rows"):
        tn.pipeline.collect(answers, tn.DirectEncoding(1.0, 2))


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("then", ["part deleted", "state restored", "both"])
def test_what_is_made_again_has_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    path, folder = tmp_path / "in.parquet", tmp_path / "reports"
    random = np.random.default_rng(3)
    rows = 3 * SMALL
    pq.write_table(
        pa.table({"a": random.integers(0, 2, rows), "g": random.integers(0, 3, rows)}), path
    )

    def make(resume: bool = True) -> Any:
        return tn.pipeline.randomize(
            scan(path, "a", group_by="g"),
            tn.DirectEncoding(1.0, 2),
            folder,
            participation=tn.Bernoulli(0.7),
            resume=resume,
        )

    interrupted(monkeypatch, lambda: make(resume=False), after=2)
    backup = state_of(folder).read_bytes()
    if then != "part deleted":
        make()
    sent = {each.name: read_reports(each).codes for each in sorted(folder.glob("part-*"))}
    if then != "part deleted":
        state_of(folder).write_bytes(backup)
    if then != "state restored":
        (folder / "part-00001.parquet").unlink()
    # With other data it does not go on.
    held = path.read_bytes(), path.stat().st_mtime_ns
    pq.write_table(pa.table({"a": np.zeros(rows, np.int64), "g": np.zeros(rows, np.int64)}), path)
    with pytest.raises(errors.InvalidValueError, match="a job must continue as it began"):
        make()
    path.write_bytes(held[0])
    os.utime(path, ns=(held[1], held[1]))
    make()
    for name, codes in sent.items():
        assert np.array_equal(read_reports(folder / name).codes, codes)


# Random participation ----------------------------------------------------------------------------

EXACT = [
    tn.DirectEncoding(40.0, 16),
    tn.SymmetricUnaryEncoding(40.0, 16),
    tn.OptimizedUnaryEncoding(20.0, 16),
    tn.OptimizedLocalHashing(6.0, 16),
    tn.SubsetSelection(6.0, 16),
    tn.HadamardResponse(6.0, 16),
    tn.ProjectiveGeometryResponse(6.0, 16),
]


@pytest.mark.parametrize("oracle", EXACT, ids=lambda oracle: oracle.name)
@pytest.mark.parametrize("rate", [1.0, 1 - 2.0**-20, 0.3, 2.0**-7])
def test_participants_are_those_whose_answers_are_in_the_reports(oracle: Any, rate: float) -> None:
    """Reports support the answers of their own persons, and of nobody else's."""
    nodes = 2**17 + 77
    codes = np.random.default_rng(4).integers(0, 16, nodes).astype(np.uint8)
    noise = JobNoise.made(11).block(3)
    made = randomized(oracle, codes, tn.Bernoulli(rate), noise)
    positions = _core.participants(nodes, rate, noise)
    assert len(made) == len(positions)
    p, q = oracle.support_probabilities
    for code in (0, 7):
        mine = np.flatnonzero(codes[positions] == code)
        chosen = tn.Reports(oracle, tn.Everyone(), made.codes[mine], len(mine))
        support = oracle.tally(chosen).support
        shares = np.full(16, q)
        shares[code] = p
        low = stats.binom.cdf(support, mine.size, shares)
        high = stats.binom.sf(support.astype(np.int64) - 1, mine.size, shares)
        assert np.min([low, high]) > ALPHA / 64


def test_a_share_of_the_persons_that_is_very_small_has_the_right_size() -> None:
    rate, blocks = 2.0**-20, 64
    number = sum(
        len(_core.participants(BLOCK, rate, JobNoise.made(12).block(i))) for i in range(blocks)
    )
    assert ALPHA / 2 < stats.poisson.cdf(number, blocks) < 1 - ALPHA / 2
    silent = BLOCK * blocks - sum(
        len(_core.participants(BLOCK, 1 - rate, JobNoise.made(13).block(i))) for i in range(blocks)
    )
    assert ALPHA / 2 < stats.poisson.cdf(silent, blocks) < 1 - ALPHA / 2


def test_who_takes_part_is_independent_of_missing_answers_and_of_other_blocks() -> None:
    """Every person who has an answer takes part with the same probability, independently."""
    rate, rows = 0.25, 3 * 2**16 + 99
    random = np.random.default_rng(5)
    values = random.integers(0, 16, rows).astype(np.int64)
    gone = random.random(rows) < 0.3
    column = pa.array(values, mask=gone)
    source = sources.open_source(pa.table({"a": column}), block_rows=2**16)
    answers = scan(source, "a", missing="drop")
    oracle = tn.DirectEncoding(40.0, 16)
    plan = tn.Plan(oracle, tn.Bernoulli(rate))
    taking = []
    for block in answers._all_blocks():
        encoded = answers._encoder(oracle.domain)(block)
        noise = JobNoise.made(14)
        made = randomize_block(plan, encoded, noise)
        positions = _core.participants(len(encoded.codes), rate, noise.block(block.index))
        assert np.array_equal(made.reports.codes, encoded.codes[positions])
        here = np.zeros(len(encoded.codes), bool)
        here[positions] = True
        taking.append(here)
    whole = np.concatenate(taking).astype(float) - rate
    assert whole.size == rows - gone.sum()
    # The mean, and covariances with neighbours, at one block's distance and across its edge.
    short = min(map(len, taking))
    pairs = [np.ones(short), *(taking[1][:short] - rate, taking[2][:short] - rate)]
    sums = [(taking[0][:short] - rate) @ other for other in pairs]
    scale = [np.sqrt(rate * (1 - rate) * short), *[rate * (1 - rate) * np.sqrt(short)] * 2]
    for lag in (1, 2, 64, 2**16):
        if lag < whole.size:
            sums.append(whole[:-lag] @ whole[lag:])
            scale.append(rate * (1 - rate) * np.sqrt(whole.size - lag))
    assert (np.abs(np.array(sums) / scale) < quantile(len(sums))).all()


# What leaves -------------------------------------------------------------------------------------


def test_a_complete_job_says_nothing_about_what_was_in_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sources of one name and time leave the same state, whatever is in them."""
    monkeypatch.setattr("turnout.pipeline.parts.secrets.token_hex", lambda size: "ab" * size)
    path, folder = tmp_path / "in.csv", tmp_path / "reports"
    left = []
    for content in ("id,a\n1,no\n2,no\n", "id,a\n1,yes\n2,no\n"):
        path.write_text(content)
        os.utime(path, ns=(10**18, 10**18))
        made = tn.pipeline.randomize(scan(path, "a"), ORACLE, folder)
        left.append(state_of(folder).read_text())
        assert json.loads(left[-1])["answers"]["fingerprint"]
        # It is known by its name and time.
        assert len(tn.pipeline.randomize(scan(path, "a"), ORACLE, folder, resume=True)) == 1
        os.utime(path, ns=(10**18, 2 * 10**18))
        with pytest.raises(errors.InvalidValueError, match="was begun with other files"):
            tn.pipeline.randomize(scan(path, "a"), ORACLE, folder, resume=True)
        # Nothing in it is secret any more: it can be read by whoever can read the reports.
        assert state_of(folder).stat().st_mode == made.paths[0].stat().st_mode
        made.paths[0].unlink()
        state_of(folder).unlink()
        state_of(folder).parent.rmdir()
    assert left[0] == left[1]


@pytest.mark.usefixtures("small_parts")
def test_an_unfinished_job_holds_no_answers_and_no_identifiers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "reports"
    names = [f"person-{number:06}" for number in range(3 * SMALL)]
    table = pa.table({"id": names, "a": ["no", "yes", None] * SMALL, "x": names})
    key = PseudonymKey.generate()
    before = os.umask(0)
    try:
        interrupted(
            monkeypatch,
            lambda: tn.pipeline.randomize(
                scan(table, "a", id_column="id", missing="drop", pseudonym_key=key),
                ORACLE,
                folder,
                participation=tn.Bernoulli(0.5),
            ),
        )
    finally:
        os.umask(before)
    state = state_of(folder)
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert key._secret.hex() not in state.read_text()
    assert {each.name for each in state.parent.iterdir()} == {"begun", "job.json"}
    for each in folder.glob("**/*"):
        if each.is_file():
            assert b"person-" not in each.read_bytes()
    report = pq.read_table(folder / "part-00000.parquet")
    assert report.column_names == ["report", "pseudonym"]
    assert report.schema.metadata is not None
    assert report.nbytes <= report.num_rows * 17 + 64


# Pseudonyms --------------------------------------------------------------------------------------


def pseudonyms(folder: Path) -> set[bytes]:
    return set(pq.read_table(folder / "part-00000.parquet")["pseudonym"].to_pylist())


def test_pseudonyms_of_two_questions_cannot_be_linked(tmp_path: Path) -> None:
    """Two columns may have one plan: the same labels, oracle and rate."""
    key = PseudonymKey.generate()
    table = pa.table(
        {"id": np.arange(100), "smokes": ["no", "yes"] * 50, "drinks": ["yes", "no"] * 50}
    )
    found = {}
    for name, column, context in (
        ("one", "smokes", None),
        ("again", "smokes", None),
        ("two", "drinks", None),
        ("march", "smokes", "march"),
        ("april", "smokes", "april"),
    ):
        answers = scan(table, column, id_column="id", pseudonym_key=key, pseudonym_context=context)
        tn.pipeline.randomize(answers, ORACLE, tmp_path / name)
        found[name] = pseudonyms(tmp_path / name)
        assert len(found[name]) == 100
    assert found["one"] == found["again"]
    for first, second in (("one", "two"), ("one", "march"), ("march", "april")):
        assert not found[first] & found[second]


def test_pseudonyms_do_not_depend_on_the_answer() -> None:
    key = PseudonymKey.generate()
    made = []
    for values in ([0, 1, 0], [1, 1, 1]):
        answers = scan(
            pa.table({"id": [5, 6, 7], "a": values}),
            "a",
            id_column="id",
            pseudonym_key=key,
            pseudonym_context="c",
        )
        [block] = answers._all_blocks()
        made.append(answers._encoder(tn.Domain([0, 1]))(block).pseudonyms)
    assert made[0] is not None
    assert made[1] is not None
    assert np.array_equal(made[0], made[1])


def test_a_null_of_a_dictionary_that_no_row_has_is_no_missing_identifier() -> None:
    values = pa.array(["ann", None, "bob"])
    for index, missing in (([0, 2, 0], False), ([0, 1, 2], True)):
        ids = pa.DictionaryArray.from_arrays(pa.array(index), values)
        answers = scan(
            pa.table({"id": ids, "a": [0, 1, 1]}), "a", id_column="id", duplicates="first"
        )
        if missing:
            with pytest.raises(
                errors.InvalidValueError, match=r"1 row has no identifier \(row 2\)"
            ):
                list(answers._all_blocks())
        else:
            [block] = answers._all_blocks()
            assert block.left_out is not None
            assert block.left_out.tolist() == [2]


# Groups ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("correction", ["bonferroni", "sidak"])
def test_intervals_of_groups_of_all_sizes_hold_together(correction: str) -> None:
    """Small groups, groups of random sizes: all limits hold at once as often as they say."""
    oracle, rate, level, repeats = tn.DirectEncoding(2.0, 3), tn.Bernoulli(0.5), 0.9, 400
    random = np.random.default_rng(6)
    shares = np.array([[0.6, 0.3, 0.1], [1 / 3, 1 / 3, 1 / 3], [0.2, 0.5, 0.3], [0.0, 0.5, 0.5]])
    held = 0
    for repeat in range(repeats):
        truth, tallies = [], {}
        for group, share in enumerate(shares):
            counts = random.multinomial(random.integers(40, 2000), share)
            truth.append(counts / counts.sum())
            tallies[group] = oracle.simulate(counts, participation=rate, seed=10 * repeat + group)
        grouped = tn.GroupedTally(["g"], tallies)
        interval = grouped.estimate().interval(level, simultaneous=correction)
        held += bool(((interval.low <= truth) & (truth <= interval.high)).all())
    # At ALPHA no sign that the level is missed.
    assert stats.binom.cdf(held, repeats, level) > ALPHA


# Files that change -------------------------------------------------------------------------------


def test_rows_that_are_appended_while_a_file_is_read_are_refused(tmp_path: Path) -> None:
    """Nobody has looked whether their persons had a row before."""
    path = tmp_path / "answers.csv"
    line = "{:06},1\n"
    path.write_text("id,a\n" + "".join(map(line.format, range(2**20))))
    source = sources.open_source(path, block_rows=SMALL)
    answers = scan(source, "a", id_column="id", duplicates="first")
    blocks = answers._all_blocks()
    next(blocks)
    with path.open("a") as file:
        file.write("".join(map(line.format, range(1000))))
    with pytest.raises(errors.CorruptDataError, match="was changed while it was being read"):
        list(blocks)


def test_a_file_that_takes_the_place_of_another_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "answers.parquet", tmp_path / "other"
    pq.write_table(pa.table({"a": [0, 1, 1]}), path)
    pq.write_table(pa.table({"a": [1, 1, 0]}), other)
    [block] = scan(path, "a")._all_blocks()
    opened = pq.ParquetFile

    def replaced(*args: Any, **options: Any) -> Any:
        if other.exists():
            other.replace(path)
        return opened(*args, **options)

    monkeypatch.setattr(pq, "ParquetFile", replaced)
    with pytest.raises(errors.CorruptDataError, match="was changed while it was being read"):
        block.read()
