"""No collection counts twice, and equal counts are no sign that one would."""

from __future__ import annotations

import copy
import functools
import itertools
import operator
import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests import kinds
from tests.stored import header_of, with_header

import turnout as tn
from turnout.collecting.groups.counting import tally_by_group
from turnout.collecting.origin import MOST, Origin
from turnout.collecting.report_files import read_reports, write_reports
from turnout.collecting.tally import BaseTally, read_tally
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError

ORACLE = tn.DirectEncoding(1.0, ["no", "yes"])

COPIES: dict[str, Callable[[Any], Any]] = {
    "itself": lambda tally: tally,
    "copied": copy.copy,
    "pickled": lambda tally: pickle.loads(pickle.dumps(tally)),
    "read": lambda tally: read_tally(tally.to_bytes()),
}


def two_days() -> list[BaseTally]:
    """Two days with the same counts."""
    return [ORACLE.tally_from_counts([2, 2], nodes=4) for _ in range(2)]


def test_days_with_equal_counts_add_up() -> None:
    one, other = two_days()
    assert one == other
    assert (one + other).received == 8


@pytest.mark.parametrize("again", COPIES.values(), ids=COPIES)
def test_a_tally_that_comes_again_is_refused(again: Callable[[Any], Any]) -> None:
    one, other = two_days()
    for total in (one, one + other, other + one):
        with pytest.raises(InvalidValueError, match="already counted here"):
            _ = again(one) + total
        with pytest.raises(InvalidValueError, match="already counted here"):
            _ = total + again(one)


@pytest.mark.parametrize("name", kinds.KINDS)
def test_tallies_of_every_kind_know_themselves_again(name: str) -> None:
    oracle = kinds.KINDS[name]
    answers = kinds.answers_of(oracle)
    first, second = oracle.tally(oracle.randomize(answers)), oracle.collect(answers)
    assert (first + second).nodes == 2 * first.nodes
    again = read_tally((first + second).to_bytes())
    with pytest.raises(InvalidValueError, match="already counted here"):
        _ = again + second


def test_nobody_counts_twice_in_a_tally_of_nobody() -> None:
    empty = tn.Tally.empty(tn.Plan(ORACLE, tn.Everyone()))
    assert not empty.origin.identities
    assert empty + empty == empty


def test_reports_are_known_again_however_often_they_are_tallied() -> None:
    reports = ORACLE.randomize(["no"] * 5)
    for again in (reports, copy.copy(reports), pickle.loads(pickle.dumps(reports))):
        with pytest.raises(InvalidValueError, match="already counted here"):
            _ = ORACLE.tally(reports) + ORACLE.tally(again)
    with pytest.raises(InvalidValueError, match=r"pieces\[2\]: .* pieces\[0\]"):
        tn.Reports.concatenate([reports, ORACLE.randomize(["no"]), reports])
    both = tn.Reports.concatenate([reports, ORACLE.randomize(["no"])])
    with pytest.raises(InvalidValueError, match="already counted here"):
        _ = ORACLE.tally(both) + ORACLE.tally(reports)


def test_a_file_is_known_again_by_group_and_as_a_whole(tmp_path: pathlib.Path) -> None:
    path, other = tmp_path / "one.parquet", tmp_path / "other.parquet"
    for place in (path, other):
        frame = {"vote": ["no", "yes"] * 50, "country": ["DE", "FR", "FR", "FR"] * 25}
        answers = tn.pipeline.scan(pa.table(frame), "vote", group_by="country")
        tn.pipeline.randomize(answers, ORACLE, place.with_suffix(""))
    folders = [path.with_suffix(""), other.with_suffix("")]
    grouped, whole = (tn.pipeline.tally(folders[0], group_by=by) for by in ("country", None))
    in_memory = ORACLE.tally(read_reports(next(folders[0].glob("*.parquet"))))
    for one, two in itertools.product([grouped.total, whole, in_memory], repeat=2):
        with pytest.raises(InvalidValueError, match="already counted here"):
            _ = one + two
    with pytest.raises(InvalidValueError, match="already counted here"):
        _ = grouped + tn.pipeline.tally(folders[0], group_by="country")
    with pytest.raises(InvalidValueError, match="already counted here"):
        _ = grouped["DE"] + tn.pipeline.tally(folders[0], group_by="country")["DE"]
    assert (grouped["DE"] + grouped["FR"]) == whole
    rest = tn.pipeline.tally(folders[1], group_by="country")
    assert (grouped + rest).total.nodes == 200


def test_files_are_not_known_by_what_is_in_them(tmp_path: pathlib.Path) -> None:
    reports = ORACLE.randomize(["no"] * 5)
    for name in ("one", "other"):
        write_reports(ORACLE.randomize(["no"], seed=1), tmp_path / f"{name}.parquet")
    both = tn.pipeline.tally(tmp_path)
    assert (both.received, len(both.origin.identities)) == (2, 2)
    assert (both + ORACLE.tally(reports)).received == 7


def test_groups_of_the_same_reports_are_refused() -> None:
    one, other = two_days()
    with pytest.raises(InvalidValueError, match=r"tallies\[\('b',\)\]: .* tallies\[\('a',\)\]"):
        tn.GroupedTally(["group"], {"a": one, "b": one + other})
    grouped = tn.GroupedTally(["group"], {"a": one, "b": other})
    for again in (grouped, grouped.over("group"), tn.GroupedTally.from_bytes(grouped.to_bytes())):
        with pytest.raises(InvalidValueError, match="already counted here"):
            _ = grouped + again
    with pytest.raises(InvalidValueError, match="already counted here"):
        _ = grouped.total + other
    with pytest.raises(InvalidValueError, match="already counted here"):
        _ = grouped.select(group="a") + grouped
    assert grouped.select(group="a") + grouped.select(group="b") == grouped


def test_reports_counted_by_group_again_are_refused() -> None:
    reports = ORACLE.randomize(["no"] * 4)
    by = [
        tally_by_group(reports, index, [2, 2], names=["group"], keys=["a", "b"])
        for index in ([0, 0, 1, 1], [0, 1, 0, 1])
    ]
    with pytest.raises(InvalidValueError, match="already counted here"):
        _ = by[0] + by[1]
    with pytest.raises(InvalidValueError, match="already counted here"):
        _ = by[0].total + ORACLE.tally(reports)


def test_messages_are_known_again_in_any_order() -> None:
    plan = tn.Plan(ORACLE, tn.Everyone())
    messages = [message for message in map(plan.report, ["no", "yes"] * 3) if message]
    first = ORACLE.tally(plan.gather(messages))
    with pytest.raises(InvalidValueError, match="already counted here"):
        _ = first + ORACLE.tally(plan.gather(messages[::-1]))
    more = [message for message in map(plan.report, ["no", "yes"] * 3) if message]
    assert (first + ORACLE.tally(plan.gather(more))).received == 12


def test_what_a_collector_counted_earlier_is_known_again() -> None:
    plan = tn.Plan(ORACLE, tn.Everyone())
    collector = tn.Collector(plan)
    made = [[plan.report("no") or b""] * 1 for _ in range(3)]
    collector.accept_many(itertools.chain(*made[:2]))
    noon = collector.tally()
    collector.accept_many(made[2])
    evening = collector.tally()
    assert (noon.received, evening.received) == (2, 3)
    with pytest.raises(InvalidValueError, match="already counted here"):
        _ = noon + evening
    drained = collector.drain()
    collector.accept_many([plan.report("yes") or b""])
    assert (drained + collector.drain()).received == 4


def test_the_pieces_of_one_collection_are_one() -> None:
    table = pa.table({"vote": ["no", "yes"] * 10, "country": ["DE", "FR"] * 10})
    for by in (None, "country"):
        answers = tn.pipeline.scan(table, "vote", group_by=by)
        found = tn.pipeline.collect(answers, ORACLE)
        assert len(found.origin.identities) == 1
        again = tn.pipeline.collect(answers, ORACLE)
        assert (found + again).nodes == 40


def test_identities_of_a_thousand_collections_are_all_kept() -> None:
    days = [ORACLE.tally_from_counts([1, 0], nodes=1) for _ in range(MOST)]
    total = functools.reduce(operator.add, days)
    for day in days[:: MOST // 8]:
        with pytest.raises(InvalidValueError, match="already counted here"):
            _ = total + day


def test_of_more_collections_the_same_sum_is_known_again_in_any_order() -> None:
    origins = [Origin.named(str(number)) for number in range(4 * MOST)]
    total = Origin.of_all(origins)
    assert len(total.identities) == MOST
    assert functools.reduce(operator.add, origins) == total
    halves = Origin.of_all(origins[: 2 * MOST]), Origin.of_all(origins[2 * MOST :])
    assert halves[0] + halves[1] == halves[1] + halves[0] == total
    halves[0].refuse_shared(halves[1])
    for part in (total, *halves):
        with pytest.raises(InvalidValueError, match="already counted here"):
            total.refuse_shared(part)
    # As the documentation says: of one among so many, so often.
    found = sum(not total.identities.isdisjoint(origin.identities) for origin in origins)
    assert found == MOST


def test_identities_are_fresh() -> None:
    # A seed makes noise again, and is no identity: two simulations are two collections.
    one, other = (ORACLE.simulate([5, 5], seed=1) for _ in range(2))
    assert one == other
    assert one.origin != other.origin
    found = {identity for _ in range(200) for identity in Origin.new().identities}
    assert len(found) == 200
    bits = np.unpackbits(np.frombuffer(b"".join(found), np.uint8))
    # A binomial of 25,600 with a half: six standard deviations are beyond alpha = 1e-6.
    assert abs(int(bits.sum()) - bits.size / 2) < 6 * (bits.size / 4) ** 0.5


def test_other_origins_are_refused() -> None:
    plan = tn.Plan(ORACLE, tn.Everyone())
    with pytest.raises(InvalidTypeError, match="origin must be an Origin, got"):
        tn.Tally(plan, [1, 1], 2, 2, origin={b"a" * 16})
    with pytest.raises(InvalidTypeError, match="identities must be a frozenset of bytes"):
        Origin(["a"])  # type: ignore[arg-type]
    for wrong in (frozenset([b"a"]), frozenset(["a" * 16])):
        with pytest.raises(InvalidValueError, match="identities must be at most 1024 times 16"):
            Origin(wrong)  # type: ignore[arg-type]
    many = {"identities": sorted(number.to_bytes(16, "big").hex() for number in range(MOST + 1))}
    one, other = "0a" * 16, "0b" * 16
    data = ORACLE.simulate([5, 5], seed=1).to_bytes()
    header = header_of(data)
    for described in (
        None, [], {}, {"identities": None}, {"identities": [], "more": 1}, many,
        {"identities": [other, one]}, {"identities": [one, one]}, {"identities": [one.upper()]},
        {"identities": [one[:31]]}, {"identities": [one], "rounds": {}},
    ):  # fmt: skip
        with pytest.raises(CorruptDataError, match="the origin of a tally must be its collections"):
            tn.Tally.from_bytes(with_header(data, header | {"origin": described}))
    assert tn.Tally.from_bytes(
        with_header(data, header | {"origin": {"identities": [one, other]}})
    ).origin == Origin(frozenset(map(bytes.fromhex, [one, other])))
