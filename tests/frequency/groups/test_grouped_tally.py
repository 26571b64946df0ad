"""Grouped tallies: keys, sums, marginals, and the refusal of what does not fit."""

import datetime
import pickle

import numpy as np
import pytest

import turnout as tn
from turnout.errors import InvalidTypeError, InvalidValueError, PlanMismatchError
from turnout.frequency.groups import GroupedTally
from turnout.frequency.oracle import FrequencyOracle

ORACLE = tn.OptimizedUnaryEncoding(1.5, tn.Domain(["never", "once", "often"]))


def collected(counts: list[int], seed: int = 1, oracle: FrequencyOracle = ORACLE) -> tn.Tally:
    return oracle.simulate(counts, participation=tn.Bernoulli(0.5), seed=seed)


@pytest.fixture
def grouped() -> GroupedTally:
    return GroupedTally(
        ["country", "day"],
        {
            ("FR", 2): collected([5, 6, 7], 1),
            ("DE", 10): collected([50, 60, 70], 2),
            ("DE", 2): collected([1, 2, 3], 3),
            (None, 2): collected([9, 0, 0], 4),
        },
    )


def test_groups_are_in_the_order_of_their_keys_and_none_comes_first(grouped: GroupedTally) -> None:
    assert list(grouped) == [(None, 2), ("DE", 2), ("DE", 10), ("FR", 2)]
    assert len(grouped) == 4
    assert ("DE", 10) in grouped
    assert ("DE", 11) not in grouped


def test_a_group_is_found_by_its_key(grouped: GroupedTally) -> None:
    assert grouped["DE", 10] == collected([50, 60, 70], 2)
    assert grouped["DE", np.int32(10)] == grouped["DE", 10]
    assert grouped.over("country")["FR"] == collected([5, 6, 7], 1)
    for missing in ("DE", ("DE", 3), ("DE", 2, 1), object(), ("DE", [])):
        with pytest.raises(KeyError):
            grouped[missing]


def test_the_total_is_the_sum_of_all(grouped: GroupedTally) -> None:
    assert grouped.total == sum(grouped.values())
    assert (grouped.nodes, grouped.received) == (grouped.total.nodes, grouped.total.received)
    assert grouped.nodes == 18 + 180 + 6 + 9


def test_over_merges_the_groups_that_agree(grouped: GroupedTally) -> None:
    countries = grouped.over("country")
    assert list(countries) == [(None,), ("DE",), ("FR",)]
    assert countries["DE"] == grouped["DE", 2] + grouped["DE", 10]
    assert grouped.over("day", "country")[2, "DE"] == grouped["DE", 2]
    assert grouped.over("day").total == grouped.total
    for wrong in ((), ("region",), ("day", "day")):
        with pytest.raises(InvalidValueError):
            grouped.over(*wrong)


def test_select_keeps_groups(grouped: GroupedTally) -> None:
    assert list(grouped.select(country="DE")) == [("DE", 2), ("DE", 10)]
    assert list(grouped.select(country=["FR", None])) == [(None, 2), ("FR", 2)]
    assert list(grouped.select({"day": lambda day: day > 5})) == [("DE", 10)]
    none = grouped.select(country="NL")
    assert len(none) == 0
    assert none.total.nodes == 0
    assert none.plan == grouped.plan
    with pytest.raises(InvalidValueError, match="'region' is not a column of the groups"):
        grouped.select(region="EU")
    with pytest.raises(InvalidTypeError, match="country must be None, text"):
        grouped.select(country=[b"DE"])


def test_sums_do_not_depend_on_the_order(grouped: GroupedTally) -> None:
    other = GroupedTally(
        ["country", "day"],
        {("FR", 2): collected([1, 1, 1], 5), ("NL", 3): collected([4, 4, 4], 6)},
    )
    assert grouped + other == other + grouped == sum([other, grouped])
    assert (grouped + other).to_bytes() == (other + grouped).to_bytes()
    assert (grouped + other)["FR", 2] == grouped["FR", 2] + other["FR", 2]
    assert list(grouped + other)[-1] == ("NL", 3)
    assert grouped + other != grouped


def test_personal_sums_add_up_per_group() -> None:
    oracle = tn.DirectEncoding(1.0, 3)
    rng = np.random.default_rng(1)
    tallies = []
    for number in range(4):
        part = tn.Personalized(rng.uniform(0.2, 1.0, 50))
        tallies.append(oracle.collect(rng.integers(0, 3, 50), participation=part, seed=number))
    one = GroupedTally(["g"], {"a": tallies[0], "b": tallies[1]})
    two = GroupedTally(["g"], {"b": tallies[2], "c": tallies[3]})
    assert (one + two)["b"] == tallies[1] + tallies[2]
    assert (one + two).total == sum(tallies)
    assert GroupedTally.from_bytes((one + two).to_bytes()) == one + two
    assert one.select(g="z").total.received == 0


@pytest.mark.parametrize(
    "keys",
    [
        [None, True, False],
        [None, -3, 2**70],
        [0.5, -1e300, 3.0],
        ["", "a, b", "<script>", "é\ud800", "\x00"],
        [datetime.date(2026, 1, 31), datetime.date(1, 1, 1), None],
        [datetime.time(12, 30), datetime.time(0, 0, 0, 7)],
        [datetime.datetime(2026, 1, 31), datetime.datetime(2026, 1, 31, 5, 6, 7, 8)],
        [datetime.datetime(2026, 1, 31, tzinfo=datetime.timezone.utc)],
    ],
)
def test_keys_of_every_type_survive_bytes_and_pickling(keys: list[object]) -> None:
    grouped = GroupedTally(["key"], {key: collected([1, 2, 3], i) for i, key in enumerate(keys)})
    for again in (
        GroupedTally.from_bytes(grouped.to_bytes()),
        pickle.loads(pickle.dumps(grouped)),
    ):
        assert again == grouped
        assert hash(again) == hash(grouped)
        assert list(again) == list(grouped)
        assert [type(key[0]) for key in again] == [type(key[0]) for key in grouped]
        assert all(again[key] == collected([1, 2, 3], i) for i, key in enumerate(keys))


def test_values_of_other_libraries_become_plain() -> None:
    import pandas

    moment = pandas.Timestamp("2026-01-31T12:00", tz="Europe/Berlin")
    grouped = GroupedTally(
        ["a", "b", "c"],
        {(np.str_("x"), np.datetime64("2026-01-31"), moment): collected([1, 2, 3])},
    )
    (key,) = grouped
    utc = datetime.timezone.utc
    assert key == ("x", datetime.date(2026, 1, 31), datetime.datetime(2026, 1, 31, 11, tzinfo=utc))
    assert [type(part) for part in key] == [str, datetime.date, datetime.datetime]
    assert grouped["x", datetime.date(2026, 1, 31), moment].nodes == 6
    assert GroupedTally.from_bytes(grouped.to_bytes()) == grouped


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s", "m", "h"])
def test_moments_of_numpy_are_moments_in_every_unit(unit: str) -> None:
    key = np.datetime64("2026-01-31T12", unit)
    (found,) = GroupedTally(["when"], {key: collected([1, 2, 3])})
    assert found == (datetime.datetime(2026, 1, 31, 12),)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([1, 2.0], "one type"),
        ([True, 2], "one type"),
        (["1", 2], "one type"),
        ([datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 2)], "one type"),
        (
            [
                datetime.datetime(2026, 1, 1),
                datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc),
            ],
            "one type",
        ),
        ([b"x"], "None, text"),
        ([np.timedelta64(3, "ns")], "None, text"),
        ([np.datetime64("NaT")], "is not a moment in time; use None for a missing one"),
        ([np.datetime64("12026-01-01T00", "us")], "years 1 to 9999"),
        (
            [datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=5)))],
            "years 1 to 9999 in UTC",
        ),
        ([float("nan")], "finite"),
        ([("a", "b")], "one value for each of the 1 columns"),
        (["a", ("a",)], "twice"),
    ],
)
def test_keys_that_do_not_fit_are_refused(keys: list[object], message: str) -> None:
    tallies = {key: collected([1, 2, 3]) for key in keys}
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        GroupedTally(["key"], tallies)


def test_a_type_that_differs_between_files_is_refused_when_they_are_merged() -> None:
    one = GroupedTally(["v"], {1: collected([1, 2, 3])})
    two = GroupedTally(["v"], {1.0: collected([1, 2, 3])})
    with pytest.raises(InvalidTypeError, match="column 'v' must be of one type"):
        one.merge(two)
    assert one != two


def test_bad_arguments_are_refused() -> None:
    tally = collected([1, 2, 3])
    for names in ([], ["a", "a"], ["\ud800"]):
        with pytest.raises(
            InvalidValueError, match=r"names must (be at least|name different|be Unicode text)"
        ):
            GroupedTally(names, {})
    for wrong in ([1], 3):
        with pytest.raises(InvalidTypeError, match="names"):
            GroupedTally(wrong, {})
    with pytest.raises(InvalidTypeError, match="tallies must be a mapping"):
        GroupedTally(["a"], [tally])  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="must be a tally"):
        GroupedTally(["a"], {"x": 3})  # type: ignore[dict-item]
    with pytest.raises(InvalidValueError, match="plan must be given"):
        GroupedTally(["a"], {})
    with pytest.raises(InvalidTypeError, match="bytes"):
        GroupedTally.from_bytes("text")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="GroupedTally"):
        GroupedTally(["a"], {"x": tally}).merge(tally)  # type: ignore[arg-type]


def test_other_plans_and_columns_are_refused(grouped: GroupedTally) -> None:
    other = collected([1, 2, 3], oracle=tn.OptimizedUnaryEncoding(1.0, ORACLE.domain))
    with pytest.raises(PlanMismatchError, match="epsilon"):
        GroupedTally(["a"], {"x": collected([1, 2, 3]), "y": other})
    with pytest.raises(PlanMismatchError, match="epsilon"):
        grouped.merge(GroupedTally(["country", "day"], {("DE", 1): other}))
    with pytest.raises(InvalidValueError, match="grouped by"):
        grouped.merge(GroupedTally(["day", "country"], {(1, "DE"): collected([1, 2, 3])}))
    with pytest.raises(InvalidValueError, match="grouped by"):
        grouped.merge(grouped.over("country"))
