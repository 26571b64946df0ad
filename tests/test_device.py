"""The device of ``examples/device``: driven by a plan file, its messages tallied here."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.devices import KEY, Device, gathered, resealed

import turnout as tn
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError
from turnout.frequency.adaptive.second import SecondRound
from turnout.frequency.choice import registered
from turnout.frequency.heavy_hitters.prefixes import PrefixDomain, SearchRound
from turnout.frequency.heavy_hitters.values import IntegerValues, TextValues, Values
from turnout.signing import SigningKey

SIZE = 6
LABELS = ["never", "once", "\U0001f600 é", "", "a,b", "5"]


def oracles(domain: tn.Domain) -> dict[str, tn.FrequencyOracle]:
    """Every oracle that needs no more than a domain, and those with other parameters."""
    plain = {name: found(1.0, domain) for name, found in registered().items()}
    return {
        **plain,
        "small subsets": tn.SubsetSelection(3.0, domain, subset_size=1),
        "many buckets": tn.OptimizedLocalHashing(2.0, domain, buckets=37),
        "a pool": tn.OptimizedLocalHashing(2.0, domain, hashes=100),
        "a binary pool": tn.BinaryLocalHashing(0.1, domain, hashes=7),
        "another field": tn.ProjectiveGeometryResponse(1.0, domain, field_size=7),
        "a small sketch": tn.CountMeanSketch(1.0, domain, hashes=5, width=100),
        "a small transform": tn.HadamardCountMeanSketch(2 / 3, domain, hashes=5, width=16),
    }


NAMES = sorted(oracles(tn.Domain.from_integers(SIZE)))


@pytest.mark.parametrize("name", NAMES)
def test_the_messages_are_those_of_python_bit_for_bit(name: str, device: Device) -> None:
    answers = np.random.default_rng(1).choice(LABELS, 500).tolist()
    lines = "".join(f"{answer}\n" for answer in answers)
    oracle = oracles(tn.Domain(LABELS))[name]
    for who in (tn.Everyone(), tn.Bernoulli(1.0), tn.Bernoulli(0.3), tn.Bernoulli(1e-7)):
        plan = tn.Plan(oracle, who)
        done = device(plan, "--seed", 77, "--public-key", KEY.public_key, lines=lines)
        expected = oracle.randomize(answers, participation=who, seed=77)
        assert gathered(plan, done, 500) == expected


def prefixes(values: Values, kept: list[str], bits: int) -> SearchRound:
    """One round of a search, through the oracle of least error."""
    return SearchRound(2.0, PrefixDomain(values, kept, bits), number=1, groups=3)


RATES = [0.3, 0.25, 0.2, 0.4, 0.35, 0.25]
ROUNDS: dict[str, tuple[tn.FrequencyOracle, list[Any]]] = {
    "numbers": (prefixes(IntegerValues(12), ["0001", "0110", "1111"], 7), [0, 0x6FF, 0xFFF, 0x123]),
    "whole numbers": (prefixes(IntegerValues(64), ["1" * 60], 64), [2**64 - 1, 2**64 - 7, 5]),
    "an alphabet": (
        prefixes(TextValues(3, "abcdeé"), [""], 7),
        ["", "a", "é", "ab", "éé", "abc", "eee"],
    ),
    # Of the bytes that follow 0xe2 and 0x82 some make a character, and one is cut.
    "UTF-8": (
        prefixes(TextValues(4), ["0110000100000000", "1110001010000010"], 24),
        ["a", "€", "₢x", "ab", "", "é", "😀"],
    ),
    "cut UTF-8": (prefixes(TextValues(4), ["1"], 13), ["é", "€", "😀", "ÿa", "z", ""]),
    "a second round": (
        SecondRound(4.0, tn.Domain(LABELS), oracle=tn.SubsetSelection(3.0, 6), rates=RATES),
        LABELS,
    ),
}


@pytest.mark.parametrize("name", ROUNDS)
def test_the_messages_of_rounds_are_those_of_python(name: str, device: Device) -> None:
    oracle, answers = ROUNDS[name]
    answers = answers * 50
    lines = "".join(f"{answer}\n" for answer in answers)
    for who in (tn.Everyone(), tn.Bernoulli(0.3)):
        plan = tn.Plan(oracle, who, serial=1)
        done = device(plan, "--seed", 77, lines=lines)
        expected = oracle.randomize(answers, participation=who, seed=77)
        assert gathered(plan, done, len(answers)) == expected


def test_values_that_are_none_stop_all_and_are_not_shown(device: Device) -> None:
    for name, wrong, words in [
        ("numbers", ["4096", "-1", "007", "+7", "1.0"], "whole numbers of 12 bits"),
        ("an alphabet", ["abcd", "A"], "texts of at most 3 characters of the alphabet"),
        ("UTF-8", ["€€", "a\0"], "texts of at most 4 bytes of UTF-8"),
    ]:
        oracle, answers = ROUNDS[name]
        plan = tn.Plan(oracle, tn.Everyone())
        for value in wrong:
            with pytest.raises((InvalidTypeError, InvalidValueError)):
                plan.report(oracle.domain.parse(value))
            done = device(plan, lines=f"{answers[0]}\n{value}\n")
            assert (done.returncode, done.stdout) == (1, "")
            assert done.stderr == f"error: answer 2 is not one of the {words}\n"


@pytest.mark.parametrize("size", [2, 255, 256, 257, 65_535, 65_536, 65_537])
@pytest.mark.parametrize(
    "name", ["direct_encoding", "hadamard_response", "projective_geometry_response"]
)
def test_reports_of_every_width_are_those_of_python(name: str, size: int, device: Device) -> None:
    answers = np.random.default_rng(2).integers(0, size, 300)
    plan = tn.Plan(registered()[name](1.0, tn.Domain.from_integers(size)), tn.Bernoulli(0.5))
    done = device(plan, "--seed", 5, lines="".join(f"{answer}\n" for answer in answers))
    expected = plan.oracle.randomize(answers, participation=plan.participation, seed=5)
    assert gathered(plan, done, 300) == expected


PEOPLE = 20_000
TRUTH = np.array([0.5, 0.2, 0.15, 0.1, 0.05, 0.0])


@pytest.mark.parametrize(
    "name",
    [
        "direct_encoding",
        "optimized_unary_encoding",
        "threshold_histogram_encoding",
        "optimized_local_hashing",
        "subset_selection",
        "hadamard_response",
        "projective_geometry_response",
    ],
)
def test_fresh_messages_of_many_people_estimate_the_truth(
    name: str, device: Device, statistical: ModuleType
) -> None:
    oracle = registered()[name](2.0, tn.Domain(LABELS))
    plan = tn.Plan(oracle, tn.Bernoulli(0.4))
    counts = (TRUTH * PEOPLE).astype(int)
    lines = "".join(f"{LABELS[code]}\n" * count for code, count in enumerate(counts))
    reports = gathered(plan, device(plan, lines=lines), PEOPLE)
    statistical.check_share([len(reports)], PEOPLE, 0.4, 0.4)
    estimate = oracle.tally(reports).estimate("hajek")
    variances = tn.estimator_variance(
        oracle, plan.participation, method="hajek", true_counts=counts
    )
    scores = (estimate.counts - counts) / np.sqrt(variances)
    assert (np.abs(scores) < statistical.quantile(SIZE)).all(), scores
    # What could be missed: reports of the neighbouring answer would be far away.
    wrong = (estimate.counts - np.roll(counts, 1)) / np.sqrt(variances)
    assert (np.abs(wrong) > statistical.quantile(SIZE)).any()


def test_noise_is_fresh_in_every_process(device: Device) -> None:
    plan = tn.Plan(tn.OptimizedLocalHashing(1.0, 1000), tn.Everyone())
    made = [device(plan, 7).stdout for _ in range(3)]
    assert len(set(made)) == 3
    assert all(len(plan.gather([each])) == 1 for each in made)


def test_one_device_sends_a_line_or_nothing(device: Device) -> None:
    domain = tn.Domain(LABELS)
    silent = tn.Plan(tn.DirectEncoding(1.0, domain), tn.Bernoulli(1e-300))
    for done in (device(silent, "once"), device(silent, lines="once\n"), device(silent, lines="")):
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    plan = tn.Plan(silent.oracle, tn.Everyone())
    for done in (
        device(plan, "once", "--seed", 3),
        device(plan, "--seed", 3, lines="once"),
        device(plan, "--seed", 3, lines="once\r\n"),
        device(plan, "1", "--codes", "--seed", 3),
    ):
        assert (done.returncode, done.stderr) == (0, "")
        expected = json.loads(plan.report("once", seed=3) or b"")
        nonce = json.loads(done.stdout)["nonce"]
        text = json.dumps({**expected, "nonce": nonce}, separators=(",", ":"))
        assert done.stdout == text + "\n"


def test_every_message_has_a_nonce_of_its_own_whatever_the_seed(device: Device) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone())
    lines = "1\n" * 100
    sent = [device(plan, "--seed", 3, lines=lines).stdout.splitlines() for _ in range(2)]
    messages = [json.loads(line) for line in sent[0] + sent[1]]
    assert len({each["nonce"] for each in messages}) == 200
    assert all(re.fullmatch("[0-9a-f]{32}", each["nonce"]) for each in messages)
    # What is sent again counts once.
    counted = plan.gather([*sent[0], *sent[0]], 100, on_bad="count")
    assert (len(counted.reports), counted.repeated) == (100, 100)


def test_a_plan_is_refused_after_its_time_or_behind_a_later_one(device: Device) -> None:
    oracle, now = tn.DirectEncoding(1.0, 3), datetime.now(timezone.utc).replace(microsecond=0)
    past, future = now - timedelta(seconds=1), now + timedelta(days=1)
    for plan, arguments, words in [
        (tn.Plan(oracle, tn.Everyone(), expires=future), [], ""),
        (tn.Plan(oracle, tn.Everyone(), expires=past), [], "the plan expired"),
        (tn.Plan(oracle, tn.Everyone(), serial=4, expires=past), [], "the plan expired"),
        (tn.Plan(oracle, tn.Everyone(), serial=4), [], ""),
        (tn.Plan(oracle, tn.Everyone(), serial=4), ["--least-serial", 4], ""),
        (
            tn.Plan(oracle, tn.Everyone(), serial=4),
            ["--least-serial", 5],
            "the plan has serial 4, expected 5 or a later one",
        ),
        (tn.Plan(oracle, tn.Everyone()), ["--least-serial", 0], "the plan has no serial"),
    ]:
        done = device(plan, "0", "--public-key", KEY.public_key, *arguments)
        if words:
            assert (done.returncode, done.stdout) == (1, "")
            assert words in done.stderr
        else:
            assert len(gathered(plan, done, 1)) == 1


def test_labels_of_every_kind_are_answers(device: Device) -> None:
    labels: list[Any] = [1e-7, 1e22, 0.1, 10**25, None, True, ("b", 1), "x\ny", 7, "7", "\u2028"]
    plan = tn.Plan(tn.DirectEncoding(8.0, tn.Domain(labels)), tn.Everyone())
    texts = ["1e-07", "1e+22", "0.1", str(10**25), "null", "true", '{"tuple":["b",1]}']
    done = device(plan, "--seed", 1, lines="\n".join([*texts, "\u2028"]))
    expected = plan.oracle.randomize([*labels[:7], "\u2028"], seed=1)
    assert gathered(plan, done, 8) == expected
    done = device(plan, "--seed", 1, "--codes", lines="\n".join(map(str, range(11))))
    assert gathered(plan, done, 11) == plan.oracle.randomize(labels, seed=1)
    done = device(plan, "7")
    assert (done.returncode, done.stdout) == (1, "")
    assert "answer 1 is the text of two labels: say its code" in done.stderr


def test_an_answer_outside_the_domain_stops_all_and_is_not_shown(device: Device) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, tn.Domain(LABELS)), tn.Everyone())
    done = device(plan, lines="once\nhidden\nnever\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: answer 2 is not one of the 6\n"
    integers = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone())
    for answer in ("3", "-1", "01x", "1.0", ""):
        done = device(integers, "--", answer)
        assert (done.returncode, done.stdout) == (1, ""), answer


PLAN = tn.Plan(tn.SubsetSelection(0.1, tn.Domain(["a", "b", "é"])), tn.Bernoulli(1e-7))


def test_a_plan_with_an_altered_byte_is_refused(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "altered.json"
    PLAN.write(path, signing_key=KEY)
    data = path.read_bytes()
    assert device(path, "a").returncode == 0
    # All of the plan's text, and every third byte of the rest: Python's reader refuses them too.
    start, end = data.index(b'{"format"'), data.index(b',\n  "fingerprint')
    for place in (*range(start, end, 2), *range(0, start, 3), *range(end, len(data) - 3, 3)):
        altered = bytearray(data)
        altered[place] ^= 1
        path.write_bytes(altered)
        with pytest.raises(CorruptDataError):
            tn.Plan.read(path)
        done = device(path, "a")
        assert (done.returncode, done.stdout) == (1, ""), altered
        assert done.stderr.startswith(f"error: {path}: ")
    for length in range(0, len(data) - 2, 7):
        path.write_bytes(data[:length])
        assert device(path, "a").returncode == 1


def test_the_public_key_decides(device: Device) -> None:
    other = SigningKey(bytes(32))
    for key, wanted, words in [
        (None, KEY.public_key, "the plan is not signed"),
        (
            other,
            KEY.public_key,
            f"the plan is signed by {other.public_key}, expected {KEY.public_key}",
        ),
        (KEY, "abc", "--public-key must have 64 hex digits"),
    ]:
        done = device(PLAN, "a", "--public-key", wanted, key=key)
        assert (done.returncode, done.stdout) == (1, "")
        assert words in done.stderr
    assert device(PLAN, "a", "--public-key", KEY.public_key.upper()).returncode == 0
    assert device(PLAN, "a", key=None).returncode == 0


def test_personal_participation_is_refused(device: Device) -> None:
    done = device(tn.Plan(PLAN.oracle, tn.Personalized([0.5])), "0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "participation is personal" in done.stderr


def test_messages_carry_a_group_of_the_plan(device: Device) -> None:
    groups = {"region": ["north", "söuth"], "year": [2025, 2026], "day": [date(2026, 1, 31), None]}
    plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Everyone(), groups=groups)
    collector = tn.Collector(plan)
    day = '{"date":"2026-01-31"}'
    for group in (f'["north",2025,{day}]', '["söuth",2026,null]', '[ "s\\u00f6uth", 2026, null ]'):
        done = device(plan, "1", "--group", group)
        assert collector.accept(done.stdout).outcome == "accepted", done.stderr
    tally = collector.tally()
    assert tally["north", 2025, date(2026, 1, 31)].received == 1
    assert tally["söuth", 2026, None].received == 2
    for wrong in ('["west",2025,null]', '["north",2025]', '["north","2025",null]', "north"):
        done = device(plan, "1", "--group", wrong)
        assert (done.returncode, done.stdout) == (1, "")
        assert "the plan does not list the group" in done.stderr
    assert device(plan, "1").returncode == 1
    assert device(tn.Plan(plan.oracle, tn.Everyone()), "1", "--group", "[1]").returncode == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"subset_size":1', '"subset_size":3'),
        ('"subset_size":1', '"subset_size":-1'),
        ('"subset_size":1', '"field_size":3'),
        ('"subset_size":1', '"subset_size":1,"more":1'),
        ('"subset_selection"', '"direct_encoding"'),
        ('"subset_selection"', '"telepathy"'),
        ('"epsilon":0.1', '"epsilon":43.0'),
        ('"epsilon":0.1', '"epsilon":"0.1"'),
        ('"rate":1e-07', '"rate":0.0'),
        ('"rate":1e-07', '"rate":1.5'),
        ('"rate":1e-07', '"rate":1e-07,"more":1'),
        ('"bernoulli"', '"everyone"'),
        ('["a","b","\\u00e9"]', '["a"]'),
        ('"b"', '"\\ud800"'),
        ('"version":1', '"serial":9007199254740992,"version":1'),
        ('"version":1', '"serial":null,"version":1'),
        ('"version":1', '"serial":-1,"version":1'),
        ('{"format"', '{"expires":253402300800,"format"'),
        ('{"format"', '{"expires":"2030-01-01","format"'),
        ('"version":1', '"version":2'),
        ('"turnout-plan"', '"turnout-planet"'),
    ],
)
def test_plans_with_other_values_are_refused_alike(
    old: str, new: str, device: Device, tmp_path: Path
) -> None:
    path = resealed(tmp_path / "resealed.json", old, new, PLAN)
    with pytest.raises(CorruptDataError) as caught:
        tn.Plan.read(path)
    assert "altered or reformatted" not in str(caught.value)
    done = device(path, "a")
    assert (done.returncode, done.stdout) == (1, "")
    assert "altered or reformatted" not in done.stderr


def test_plans_of_rounds_with_other_values_are_refused_alike(
    device: Device, tmp_path: Path
) -> None:
    for name, old, new in [
        ("numbers", '"number":1', '"number":3'),
        ("numbers", '"groups":3', '"groups":0'),
        ("numbers", '"groups":3', '"groups":3,"more":1'),
        ("numbers", '"kept":["0001","0110"', '"kept":["0110","0001"'),
        ("numbers", '"kept":["0001",', '"kept":['),
        ("numbers", '"bits":7', '"bits":8'),
        ("numbers", '"bits":12', '"bits":6'),
        ("numbers", '"kind":"integers"', '"kind":"whole"'),
        ("numbers", '"epsilon":2.0,"groups"', '"epsilon":1.5,"groups"'),
        ("an alphabet", '"alphabet":"abcde', '"alphabet":"abcdd'),
        ("a second round", '"rates":[', '"hidden":true,"rates":['),
        ("a second round", '"rates":[0.3,', '"rates":['),
        ("a second round", '"rates":[0.3,', '"rates":[1e-10,'),
        ("a second round", '"rates":[0.3,', '"rates":[1.0,'),
        ("a second round", '"epsilon":4.0', '"epsilon":3.5'),
        ("a second round", '"name":"subset_selection"', '"name":"summation_histogram_encoding"'),
    ]:
        oracle, answers = ROUNDS[name]
        path = resealed(tmp_path / "round.json", old, new, tn.Plan(oracle, tn.Everyone()))
        with pytest.raises(CorruptDataError) as caught:
            tn.Plan.read(path)
        assert "altered or reformatted" not in str(caught.value)
        done = device(path, answers[0])
        assert (done.returncode, done.stdout) == (1, ""), (name, new)
        assert "altered or reformatted" not in done.stderr


def test_the_command_line(device: Device, tmp_path: Path) -> None:
    for arguments in (
        ["a", "b"],
        ["--what"],
        ["--seed", "x"],
        ["--public-key"],
        ["--least-serial", "-1"],
    ):
        done = device(PLAN, *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert "usage: turnout-device PLAN [ANSWER]" in done.stderr
    assert device(PLAN, "--help").stdout.startswith("usage: turnout-device")
    done = device(tmp_path / "none.json", "a")
    assert done.returncode == 1
    assert "none.json: No such file" in done.stderr
