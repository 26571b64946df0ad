"""Rounds are plans: their domains, their messages, and the state between them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout._documents import SealedDocument
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
    ProtocolError,
    UnsupportedVersionError,
)
from turnout.frequency.heavy_hitters import HeavyHitters, Search, SearchRound
from turnout.frequency.heavy_hitters.prefixes import PrefixDomain
from turnout.frequency.heavy_hitters.values import IntegerValues, TextValues
from turnout.frequency.rounds import Rounds

WORDS = ["abacab"] * 210 + ["cab"] * 150 + ["bb"] * 90
FRUIT = HeavyHitters(
    8.0,
    length=6,
    alphabet="abc",
    step=4,
    keep=64,
    oracle="direct_encoding",
    family_wise_error=1e-9,
)


@pytest.mark.parametrize(
    ("values", "kept", "bits"),
    [
        (IntegerValues(12), ["0101", "0110", "1111"], 7),
        (IntegerValues(3), [""], 3),
        (TextValues(4, "abc"), ["01", "10"], 5),
        (TextValues(3), ["01100001", "11000011"], 18),
        (TextValues(2, "*01"), ["01", "10"], 4),
    ],
)
def test_a_value_has_the_code_of_its_prefix_by_every_way(
    values: Any, kept: list[str], bits: int
) -> None:
    domain = PrefixDomain(values, kept, bits)
    assert PrefixDomain.from_dict(json.loads(json.dumps(domain.to_dict()))) == domain
    assert len(set(domain.labels)) == domain.size
    prefixes = domain.digits(np.arange(domain.size - 1))
    assert {prefix[: len(kept[0])] for prefix in prefixes} == {*kept}
    generator = np.random.default_rng(5)
    whole = generator.integers(0, 256, (300, (values.bits + 7) // 8)).astype(np.uint8)
    rows = np.packbits(np.unpackbits(whole, axis=1)[:, : values.bits], axis=1)
    known = np.array([values.decode(row) for row in rows[values.possible(rows, values.bits)]])
    codes = domain.encode(known)
    assert codes.dtype == domain._code_dtype
    assert [domain.find(value) for value in known.tolist()] == codes.tolist()
    assert [domain.find(domain.parse(str(value))) for value in known.tolist()] == codes.tolist()
    texts = ["".join(map(str, row)) for row in np.unpackbits(values.encode(known), axis=1)]
    expected = [
        prefixes.index(text[:bits]) if text[:bits] in prefixes else domain.size - 1
        for text in texts
    ]
    assert codes.tolist() == expected


def test_what_is_found_is_named_as_people_do_and_the_rest_unlike_any_of_it() -> None:
    words = TextValues(7, "ehotr()")
    every = [words.encode([text])[0] for text in sorted(["other", "(other)", "tree"])]
    kept = sorted("".join(map(str, np.unpackbits(row)[: words.bits])) for row in every)
    labels = PrefixDomain(words, kept, words.bits).labels
    assert set(labels) == {"other", "(other)", "tree", "((other))"}
    assert labels[-1] == "((other))"
    assert PrefixDomain(IntegerValues(3), ["011"], 3).labels == (3, "other")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kept": []}, "at least one"),
        ({"kept": ["1", "0"]}, "ascending order"),
        ({"kept": ["0", "0"]}, "different prefixes"),
        ({"kept": ["0", "10"]}, "of one length"),
        ({"kept": ["2"]}, "digits 0 and 1, got '2'"),
        ({"kept": [0]}, "digits 0 and 1, got 0"),
        ({"bits": 0}, "bits must be an integer from 1 to 12"),
        ({"bits": 13}, "bits must be an integer from 1 to 12"),
        ({"bits": True}, "bits must be"),
        ({"values": {"kind": "integers", "bits": 64}, "bits": 40}, "at most 1,048,576"),
        ({"values": {"kind": "integers", "bits": 99}}, "not a kind of values"),
        ({"values": {"kind": "text", "length": 1, "alphabet": None}, "bits": 8,
          "kept": ["11111111"]}, "prefixes of some of texts of at most 1"),
        ({"more": 1}, "not a domain of prefixes"),
    ],
)  # fmt: skip
def test_domains_of_prefixes_that_are_none_are_refused(
    change: dict[str, Any], message: str
) -> None:
    described = {"values": {"kind": "integers", "bits": 12}, "kept": ["0", "1"], "bits": 4}
    with pytest.raises(CorruptDataError, match=message):
        PrefixDomain.from_dict({**described, **change})


def test_rounds_that_are_none_are_refused() -> None:
    domain = PrefixDomain(IntegerValues(8), [""], 3)
    with pytest.raises(InvalidTypeError, match="domain must be a PrefixDomain"):
        SearchRound(1.0, tn.Domain.from_integers(9), number=0, groups=2)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="number must be below groups = 2, got 2"):
        SearchRound(1.0, domain, number=2, groups=2)
    with pytest.raises(InvalidValueError, match="at most the epsilon 1"):
        SearchRound(1.0, domain, number=0, groups=2, oracle=tn.DirectEncoding(2.0, 9))
    assert "prefixes" not in tn.choose_oracle(1.0, 4).explain()


def searched(participation: tn.Participation) -> Search:
    """A search in which devices send messages under plan files, and that is read anew each time."""
    search = FRUIT.rounds()
    group = search.assign(len(WORDS), seed=3)
    while not search.finished:
        search = Search.from_json(search.to_json())
        number = search.number
        plan = tn.Plan.from_json(search.plan(participation).to_json())
        assert plan.serial == number == plan.oracle.number
        mine = [word for word, which in zip(WORDS, group.tolist(), strict=True) if which == number]
        sent = [plan.report(word, seed=place) for place, word in enumerate(mine)]
        messages = [message for message in sent if message is not None]
        search.close(plan.oracle.tally(plan.gather(messages, nodes=len(mine))))
    return search


@pytest.mark.parametrize("participation", [tn.Everyone(), tn.Bernoulli(0.9)])
def test_a_search_by_messages_of_devices_finds_the_words(participation: tn.Participation) -> None:
    search = searched(participation)
    assert search.result.values == ("abacab", "cab", "bb")
    assert search.result.nodes == len(WORDS)
    assert search.participation == participation
    again = Search.from_json(search.to_json())
    assert again.to_json() == search.to_json()
    assert again.result.to_records() == search.result.to_records()
    assert again.result.rounds == search.records == again.records
    with pytest.raises(ProtocolError, match="the rounds are over"):
        again.plan()


def test_a_state_that_is_none_or_does_not_fit_is_refused_by_name(tmp_path: Path) -> None:
    search = FRUIT.rounds()
    path = tmp_path / "search.json"
    search.close(search.current.collect(WORDS, seed=1))
    search.write(path)
    assert isinstance(Rounds.read(path), Search)
    assert Search.read(path).current == search.current
    text = path.read_text()
    path.write_text(text.replace('"step":4', '"step":3'))
    with pytest.raises(CorruptDataError, match=r"search\.json: the checksum does not match"):
        Search.read(path)
    document = SealedDocument("state", "turnout-rounds", 1)
    described = document.read(text)

    def refused(change: dict[str, Any], protocol: dict[str, Any], message: str) -> None:
        changed = {**described, "protocol": {**described["protocol"], **protocol}, **change}
        with pytest.raises(CorruptDataError, match=message):
            Search.from_json(document.text(changed))

    refused({}, {"step": 3}, "the tally of round 0: .*domain")
    refused({}, {"epsilon": 5.0}, "the tally of round 0: .*epsilon 8.0 instead of 5.0")
    refused({"tallies": described["tallies"] * 2}, {}, "the tally of round 1: ")
    refused({"tallies": ["%"]}, {}, "the tally of round 0: ")
    refused({"tallies": [3]}, {}, "the tally of round 0: ")
    refused({}, {"more": 1}, "more")
    refused({}, {"keep": 0}, "keep must be")
    refused({}, {"name": "telepathy"}, "not a state of rounds")
    with pytest.raises(UnsupportedVersionError, match="state of rounds has version 2"):
        Search.from_json(document.text({**described, "version": 2}))
    with pytest.raises(InvalidTypeError, match="text must be the JSON text"):
        Search.from_json(3)  # type: ignore[arg-type]


def test_a_tally_that_is_refused_changes_nothing() -> None:
    search = FRUIT.rounds()
    first = search.current.collect(WORDS, seed=1)
    before = search.to_json()
    for wrong in (tn.DirectEncoding(8.0, 3).collect([0, 1]), FRUIT.rounds().current.collect([])):
        with pytest.raises((PlanMismatchError, InvalidValueError)):
            search.close(wrong)
        assert search.to_json() == before
    search.close(first)
    with pytest.raises(PlanMismatchError):
        search.close(first)
    assert search.number == 1


def test_an_oracle_without_a_name_cannot_be_written_to_a_file() -> None:
    named = HeavyHitters(1.0, bits=8, oracle=tn.SubsetSelection).rounds()
    assert Search.from_json(named.to_json()).protocol.oracle == "subset_selection"
    own = HeavyHitters(1.0, bits=8, oracle=partial(tn.OptimizedLocalHashing, buckets=4))
    with pytest.raises(InvalidTypeError, match="oracle must be a name or a class of turnout"):
        own.rounds().to_json()


def test_a_search_ends_where_no_value_goes_on_with_what_was_kept() -> None:
    """What begins a character of two bytes is kept, where there is room for one byte alone."""
    search = HeavyHitters(8.0, length=2, step=4, keep=1, oracle=tn.DirectEncoding).rounds()
    for prefix in ("0110", "01100001", "011000011100"):
        domain = search.current.domain
        places = domain.digits(np.arange(domain.size - 1)).index(prefix)
        counts = np.bincount([places], minlength=domain.size) * 1000
        search.close(search.current.simulate(counts, seed=1))
    assert search.finished
    assert search.result.values == ()
    assert [record.kept for record in search.records] == [1, 1, 1]
