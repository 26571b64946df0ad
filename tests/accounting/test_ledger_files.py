"""Ledgers as texts and files: read back whole, or refused."""

from __future__ import annotations

import copy
import json
import math
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from tests.accounting.test_ledger import QUERY, REPLACE, TRAINING, filled

import turnout as tn
from turnout.accounting import (
    GaussianMechanism,
    Shuffled,
    VariationRatio,
    compose,
)
from turnout.accounting.ledger import LedgerEntry, PrivacyLedger
from turnout.accounting.ledger_entries import LEDGER
from turnout.errors import (
    BudgetExceededError,
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    UnsupportedVersionError,
)


def test_copies_and_pickles_go_their_own_way() -> None:
    ledger = filled()
    for other in (copy.copy(ledger), copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))):
        assert other == ledger
        other.spend(QUERY)
        assert [entry.rounds for entry in other.entries] == [500, 2]
        assert [entry.rounds for entry in ledger.entries] == [500, 1]


def test_the_file_holds_the_text(tmp_path: Path) -> None:
    ledger, path = filled(), tmp_path / "ann.ledger"
    PrivacyLedger(9.0, 1e-5).write(path)
    ledger.write(path)
    assert path.read_text() == ledger._to_json()
    assert PrivacyLedger.read(path) == ledger
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ann.ledger"
    filled().write(path)
    before = path.read_bytes()

    def fail(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OSError, match="No space"):
        PrivacyLedger(1.0, 1e-5).write(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_errors_of_files_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "ann.ledger"
    with pytest.raises(FileNotFoundError):
        PrivacyLedger.read(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(CorruptDataError, match=r"ann\.ledger: not a ledger"):
        PrivacyLedger.read(path)
    path.write_text(LEDGER.text({**filled().to_dict(), "version": 2}))
    with pytest.raises(UnsupportedVersionError, match=r"ann\.ledger: the ledger has version 2"):
        PrivacyLedger.read(path)


def test_every_truncation_is_refused() -> None:
    text = filled()._to_json()
    for end in range(len(text)):
        with pytest.raises(CorruptDataError):
            PrivacyLedger._from_json(text[:end])


def test_every_altered_byte_is_refused() -> None:
    data = filled()._to_json().encode()
    for position in range(len(data)):
        for flip in (0x01, 0x02, 0x10, 0x20, 0x80):
            altered = bytearray(data)
            altered[position] ^= flip
            with pytest.raises(CorruptDataError):
                PrivacyLedger._from_json(bytes(altered))


@pytest.mark.parametrize("extra", [" ", "\n", "{}", "\x00"])
def test_text_beside_the_ledger_is_refused(extra: str) -> None:
    text = filled()._to_json()
    for altered in (text + extra, extra + text, text.replace(",", "," + extra, 1)):
        with pytest.raises(CorruptDataError):
            PrivacyLedger._from_json(altered)


@pytest.mark.parametrize("version", [0, 2, 10**30, "1", None, True, 1.0, [1]])
def test_unknown_versions_are_refused_by_name(version: object) -> None:
    description = {**filled().to_dict(), "version": version}
    for attempt in (
        lambda: PrivacyLedger.from_dict(description),
        lambda: PrivacyLedger._from_json(LEDGER.text(description)),
        # Whatever else a later version holds.
        lambda: PrivacyLedger._from_json(json.dumps({**description, "more": 1})),
    ):
        with pytest.raises(UnsupportedVersionError, match=r"the ledger has version .* reads 1"):
            attempt()


@pytest.mark.parametrize("name", list(filled().to_dict()))
def test_a_missing_part_is_refused(name: str) -> None:
    description = filled().to_dict()
    del description[name]
    with pytest.raises(CorruptDataError, match="not a ledger"):
        PrivacyLedger._from_json(LEDGER.text(description))


@pytest.mark.parametrize(
    "change",
    [
        {"format": "turnout-plan"},
        {"epsilon": 0},
        {"epsilon": "1"},
        {"epsilon": math.nan},
        {"epsilon": math.inf},
        {"delta": -1},
        {"delta": 1},
        {"adjacency": "swap"},
        {"adjacency": None},
        {"adjacency": "replace"},
        {"entries": {}},
        {"entries": [1]},
        {"entries": [{"mechanism": QUERY.to_dict(), "rounds": 1}]},
        {"entries": [{"mechanism": QUERY.to_dict(), "rounds": 1, "label": None, "more": 1}]},
        {"entries": [{"mechanism": QUERY.to_dict(), "rounds": 0, "label": None}]},
        {"entries": [{"mechanism": QUERY.to_dict(), "rounds": 1.5, "label": None}]},
        {"entries": [{"mechanism": QUERY.to_dict(), "rounds": 1, "label": 1}]},
        {"entries": [{"mechanism": {"mechanism": "Magic"}, "rounds": 1, "label": None}]},
        {"entries": [{"mechanism": None, "rounds": 1, "label": None}]},
        {"more": 1},
    ],
)
def test_a_sealed_text_of_something_else_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(CorruptDataError, match="not a ledger"):
        PrivacyLedger._from_json(LEDGER.text({**filled().to_dict(), **change}))


def test_entries_with_more_rounds_of_a_mechanism_than_a_ledger_counts_are_refused() -> None:
    def described(*rounds: int) -> dict[str, Any]:
        entries = [
            {"mechanism": QUERY.to_dict(), "rounds": count, "label": str(number)}
            for number, count in enumerate(rounds)
        ]
        return {**PrivacyLedger(1.0, 1e-5).to_dict(), "entries": entries}

    assert len(PrivacyLedger.from_dict(described(10**9 - 1, 1)).entries) == 2
    for read in (PrivacyLedger.from_dict, lambda text: PrivacyLedger._from_json(LEDGER.text(text))):
        with pytest.raises(CorruptDataError, match="at most 1000000000 for each mechanism"):
            read(described(10**9, 1))


def test_a_ledger_that_spends_more_than_its_budget_pays_for_nothing_and_says_so() -> None:
    description = filled().to_dict()
    description["entries"][1]["rounds"] = 1000
    for read in (
        PrivacyLedger.from_dict(description),
        PrivacyLedger._from_json(LEDGER.text(description)),
    ):
        assert read.spent() == compose([(TRAINING, 500), (QUERY, 1000)]).epsilon(1e-5) > 1.0
        assert read.remaining() == 0.0
        assert not read.can_spend(QUERY)
        assert read.affordable_rounds(QUERY) == 0
        with pytest.raises(
            BudgetExceededError, match=r"budget is 1\.0, and [0-9.]+ of it is spent"
        ):
            read.spend(QUERY)


def test_reading_composes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shuffled = Shuffled(tn.DirectEncoding(1.0, 4), 10**10)
    description = PrivacyLedger(1.0, 1e-5, "replace").to_dict()
    description["entries"] = [{"mechanism": shuffled.to_dict(), "rounds": 10**9, "label": None}]

    def evaluated(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(Shuffled, "_divergence", evaluated)
    read = PrivacyLedger._from_json(LEDGER.text(description))
    assert read.entries == (LedgerEntry(shuffled, 10**9, None),)


@pytest.mark.parametrize(
    "ratio", ["1e999999999", "1" * 1001, f"1/{'1' * 1001}", "0x10", " 3", "3.0", "1_0", "1/0", "3/"]
)
def test_a_fraction_that_no_ledger_writes_is_refused_at_once(ratio: str) -> None:
    description = PrivacyLedger(1.0, 1e-5, "replace").to_dict()
    mechanism = REPLACE[-1].to_dict()
    mechanism["oracle"]["ratio"] = ratio
    description["entries"] = [{"mechanism": mechanism, "rounds": 1, "label": None}]
    with pytest.raises(CorruptDataError, match=r"fraction of at most 1000 digits|Fraction"):
        PrivacyLedger._from_json(LEDGER.text(description))


@pytest.mark.parametrize("ratio", [Fraction(10**400), Fraction(10**1001 + 1, 10**1000), 10**309])
def test_a_variation_ratio_that_no_ledger_could_hold_is_refused(ratio: Any) -> None:
    with pytest.raises(InvalidValueError, match="ratio must be"):
        VariationRatio(ratio, 0.5, 3.0)


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "1", "{}", '{"sha256":""}', "[" * 100_000, "{" * 9, "\u03b5", "9" * 5000],
)
def test_other_text_is_no_ledger(text: str) -> None:
    for form in (text, text.encode()):
        with pytest.raises(CorruptDataError, match=r"not a ledger|checksum"):
            PrivacyLedger._from_json(form)


@pytest.mark.parametrize("value", [None, 7, {"format": "turnout-ledger"}, Path("ann.ledger")])
def test_what_is_no_text_is_refused(value: Any) -> None:
    with pytest.raises(InvalidTypeError, match="text must be"):
        PrivacyLedger._from_json(value)


def test_a_ledger_that_was_read_does_not_report_less_than_its_entries_cost() -> None:
    ledger = PrivacyLedger(epsilon=5.0, delta=1e-5)
    ledger.spend(GaussianMechanism(noise_multiplier=3.0), rounds=7)
    total = ledger.spent()
    described = ledger.to_dict()
    described["epsilon"] = total * (1.0 - 9e-7)
    read = PrivacyLedger.from_dict(described)
    assert read.composition().delta(read.epsilon) > 1e-5
    assert read.spent() == total > read.epsilon
    assert read.remaining() == 0.0
