"""Plans: what reports and tallies carry, and how mixing them is refused."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import pickle
import subprocess
import sys
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout as tn
from turnout import FrequencyOracle
from turnout.errors import (
    CorruptDataError,
    InvalidTypeError,
    InvalidValueError,
    PlanMismatchError,
    UnsupportedVersionError,
)
from turnout.frequency.attributes import PaddedOracle

LABELS = ["no", "yes", ("x", 2)]


def plan(
    epsilon: float = 1.5,
    labels: Any = None,
    participation: tn.Participation | None = None,
    **terms: Any,
) -> tn.Plan:
    domain = tn.Domain(LABELS if labels is None else labels)
    return tn.Plan(
        tn.DirectEncoding(epsilon, domain),
        tn.Bernoulli(0.25) if participation is None else participation,
        **terms,
    )


CANONICAL = (
    '{"format":"turnout-plan",'
    '"oracle":{"domain":{"labels":["no","yes",{"tuple":["x",2]}]},"epsilon":1.5,'
    '"name":"direct_encoding"},'
    '"participation":{"kind":"bernoulli","rate":0.25},"version":1}'
)


def test_the_json_of_a_plan_never_changes() -> None:
    assert plan().to_json() == CANONICAL
    assert tn.Plan.from_json(CANONICAL) == plan()


def test_the_fingerprint_of_a_plan_never_changes() -> None:
    expected = "32e0ea8dde9e493fe6ef1d0ee85328847d921e93e6a4e8c41f736e42900ca7d2"
    assert plan().fingerprint == expected
    program = (
        "import turnout as tn\n"
        "oracle = tn.DirectEncoding(1.5, tn.Domain(['no', 'yes', ('x', 2)]))\n"
        "print(tn.Plan(oracle, tn.Bernoulli(0.25)).fingerprint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        env={**os.environ, "PYTHONHASHSEED": "99"},
    )
    assert done.stdout.strip() == expected


@pytest.mark.parametrize(
    "oracle",
    [
        tn.Memoized(tn.DirectEncoding(4.0, 3), first_epsilon=1.0),
        PaddedOracle(1.0, 3, oracle=tn.SubsetSelection(1.0, 3), own_probability=0.25),
    ],
    ids=lambda oracle: oracle.name,
)
def test_a_new_process_reads_plans_of_every_oracle(oracle: tn.FrequencyOracle) -> None:
    text = tn.Plan(oracle, tn.Everyone()).to_json()
    program = "import sys, turnout as tn\nprint(tn.Plan.from_json(sys.argv[1]).to_json())\n"
    done = subprocess.run(
        [sys.executable, "-c", program, text],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.stdout.strip(), done.stderr) == (text, "")


LABEL = st.one_of(st.text(), st.integers(), st.booleans(), st.none(), st.tuples(st.text()))
PARTICIPATIONS = st.one_of(
    st.just(tn.Everyone()),
    st.floats(0, 1, exclude_min=True).map(tn.Bernoulli),
    st.lists(st.floats(1e-6, 1)).map(tn.Personalized),
)


@settings(max_examples=150, deadline=None)
@given(
    epsilon=st.floats(1e-6, 42),
    domain=st.one_of(
        st.lists(LABEL, min_size=2, max_size=8, unique=True).map(tn.Domain),
        st.integers(2, 2**20).map(tn.Domain.from_integers),
    ),
    participation=PARTICIPATIONS,
)
def test_plans_come_back_from_json(
    epsilon: float, domain: tn.Domain, participation: tn.Participation
) -> None:
    original = tn.Plan(tn.DirectEncoding(epsilon, domain), participation)
    text = original.to_json()
    assert text.isascii()
    for form in (text, text.encode(), bytearray(text.encode()), json.dumps(json.loads(text))):
        rebuilt = tn.Plan.from_json(form)  # type: ignore[arg-type]
        assert rebuilt == original
        assert hash(rebuilt) == hash(original)
        assert rebuilt.fingerprint == original.fingerprint
        assert rebuilt.to_json() == text
    assert (
        FrequencyOracle.from_dict(json.loads(json.dumps(original.oracle.to_dict())))
        == original.oracle
    )


def test_personal_probabilities_stay_out_of_the_plan() -> None:
    one, other = (
        plan(participation=tn.Personalized([0.5])),
        plan(participation=tn.Personalized([1])),
    )
    assert one == other
    assert one.fingerprint == other.fingerprint
    assert json.loads(one.to_json())["participation"] == {"kind": "personalized"}


END = datetime(2030, 1, 1, 12, tzinfo=timezone.utc)


def test_serial_and_expiry_stand_in_the_json_of_a_plan() -> None:
    with_both = plan(serial=7, expires=END)
    assert with_both.to_json() == CANONICAL.replace(
        '{"format"', '{"expires":1893499200,"format"'
    ).replace(',"version"', ',"serial":7,"version"')
    for made in (with_both, plan(serial=0), plan(expires=END)):
        back = tn.Plan.from_json(made.to_json())
        assert (back.serial, back.expires) == (made.serial, made.expires)
        assert back.to_json() == made.to_json()
        # They say when a plan is used, not what its reports mean.
        assert made == plan()
        assert hash(made) == hash(plan())
        assert made.fingerprint != plan().fingerprint
    there = END.astimezone(timezone(timedelta(hours=-3)))
    assert plan(expires=there).to_json() == plan(expires=END).to_json()
    for seconds in (0, 253_402_300_799):
        text = CANONICAL.replace('{"format"', f'{{"expires":{seconds},"format"')
        assert tn.Plan.from_json(text).to_json() == text


@pytest.mark.parametrize(
    ("terms", "error", "words"),
    [
        ({"serial": -1}, InvalidValueError, "serial must be an integer from 0 to 9007199254740991"),
        ({"serial": 2**53}, InvalidValueError, "serial must be an integer from 0"),
        ({"serial": True}, InvalidTypeError, "serial must be an integer from 0"),
        ({"serial": "1"}, InvalidTypeError, "serial must be an integer from 0"),
        ({"expires": 1893499200}, InvalidTypeError, "expires must be a datetime, got 1893499200"),
        ({"expires": date(2030, 1, 1)}, InvalidTypeError, "expires must be a datetime"),
        ({"expires": datetime(2030, 1, 1)}, InvalidValueError, "expires must have a time zone"),
        ({"expires": END.replace(microsecond=1)}, InvalidValueError, "of whole seconds from 1970"),
        ({"expires": END.replace(year=1969)}, InvalidValueError, "of whole seconds from 1970"),
        (
            {"expires": datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-3)))},
            InvalidValueError,
            "expires must be in the years 1 to 9999 of UTC",
        ),
    ],
)
def test_other_serials_and_expiries_are_refused(
    terms: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        plan(**terms)


@pytest.mark.parametrize("name", ["serial", "expires"])
@pytest.mark.parametrize("value", [None, True, -1, 1.0, "1", 2**63, [], "2030-01-01T12:00:00Z"])
def test_other_serials_and_expiries_are_no_plan(name: str, value: Any) -> None:
    with pytest.raises(CorruptDataError, match=f"the {name} of a plan must be an integer from 0"):
        tn.Plan.from_dict({**json.loads(CANONICAL), name: value})


def test_a_plan_cannot_be_changed() -> None:
    kept = plan()
    with pytest.raises(dataclasses.FrozenInstanceError):
        kept.oracle = tn.DirectEncoding(2.0, 3)  # type: ignore[misc]
    assert kept.oracle.epsilon == 1.5


@pytest.mark.parametrize(
    "who", [tn.Everyone(), tn.Bernoulli(0.5), tn.Personalized([0.5])], ids=repr
)
def test_copies_of_a_plan_are_equal(who: tn.Participation) -> None:
    original = plan(participation=who)
    for other in (
        copy.copy(original),
        copy.deepcopy(original),
        pickle.loads(pickle.dumps(original)),
        tn.Plan(original.oracle, original.participation),
    ):
        assert other == original
        assert other.fingerprint == original.fingerprint


@pytest.mark.parametrize("version", [0, 2, -1, 10**9, "1", 1.0, 1.5, True, None, [1], {}])
def test_an_unknown_version_is_named(version: Any) -> None:
    description = {**plan().to_dict(), "version": version}
    expected = f"the plan has version {json.dumps(version)}; this release of turnout reads 1"
    for read in (tn.Plan.from_dict, lambda given: tn.Plan.from_json(json.dumps(given))):
        with pytest.raises(UnsupportedVersionError) as caught:
            read(description)
        assert str(caught.value) == expected


def test_an_unknown_version_is_named_whatever_else_the_plan_holds() -> None:
    with pytest.raises(UnsupportedVersionError, match="the plan has version 7;"):
        tn.Plan.from_json('{"format": "turnout-plan", "version": 7, "new": {"things": []}}')


def edited(**changes: Any) -> str:
    """The JSON of a plan with entries of the oracle or the plan changed; ... leaves one out."""
    description = plan().to_dict()
    for name, value in changes.items():
        place = description["oracle"] if name in {"name", "epsilon", "domain"} else description
        if value is ...:
            place.pop(name)
        else:
            place[name] = value
    return json.dumps(description)


NO_PLANS: dict[str, Any] = {
    "nothing": "",
    "no JSON": "{",
    "no UTF-8": b"\xff\xfe\xfd",
    "null": "null",
    "a number": "1",
    "a list": "[]",
    "empty": "{}",
    "deep": "[" * 100_000,
    "deep and closed": "[" * 900 + "]" * 900,
    "deep label": edited(domain="DEEP").replace(
        '"DEEP"', '{"labels":["a",' + '{"tuple":[' * 2000 + "]}" * 2000 + "]}"
    ),
    "another format": edited(format="turnout-reports"),
    "no format": edited(format=...),
    "no version": edited(version=...),
    "no oracle": edited(oracle=...),
    "no participation": edited(participation=...),
    "more": edited(more=1),
    "oracle of text": edited(oracle="direct_encoding"),
    "unknown oracle": edited(name="telepathy"),
    "oracle without name": edited(name=...),
    "oracle with a list for a name": edited(name=["direct_encoding"]),
    "no epsilon": edited(epsilon=...),
    "epsilon of text": edited(epsilon="1.5"),
    "epsilon null": edited(epsilon=None),
    "epsilon true": edited(epsilon=True),
    "epsilon zero": edited(epsilon=0.0),
    "epsilon negative": edited(epsilon=-1.5),
    "epsilon nan": edited(epsilon=float("nan")),
    "epsilon infinite": edited(epsilon=float("inf")),
    "epsilon too large": edited(epsilon=45),
    "epsilon of 400 digits": edited(epsilon=10**400),
    "epsilon of 5000 digits": edited(epsilon="LONG").replace('"LONG"', "1" * 5000),
    "no domain": edited(domain=...),
    "domain of one": edited(domain={"labels": ["a"]}),
    "domain with duplicates": edited(domain={"labels": ["a", "a"]}),
    "domain with equal numbers": edited(domain={"labels": [1, True]}),
    "domain too large": edited(domain={"integers": 2**32}),
    "domain list": edited(domain=["a", "b"]),
    "rate zero": edited(participation={"kind": "bernoulli", "rate": 0.0}),
    "rate above one": edited(participation={"kind": "bernoulli", "rate": 1.5}),
    "unknown participation": edited(participation={"kind": "nobody"}),
}


NO_PLAN = r"not (a plan|the description|a label)|the plan (lacks|has unknown)|of a plan must be"


@pytest.mark.parametrize("text", NO_PLANS.values(), ids=NO_PLANS.keys())
def test_anything_else_is_no_plan(text: str | bytes) -> None:
    with pytest.raises(CorruptDataError, match=NO_PLAN) as caught:
        tn.Plan.from_json(text)
    assert not isinstance(caught.value, UnsupportedVersionError)
    assert len(str(caught.value)) < 1000


def test_descriptions_too_deep_or_too_long_to_show_are_no_plans() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    for description in (deep, 10**5000, {"format": "turnout-plan", "version": 1, "oracle": deep}):
        with pytest.raises(CorruptDataError, match="not a plan of turnout"):
            tn.Plan.from_dict(description)


@pytest.mark.parametrize("text", [None, 1, ["{}"], {"format": "turnout-plan"}])
def test_what_is_not_text_is_refused(text: Any) -> None:
    with pytest.raises(InvalidTypeError, match="text must be the JSON text of a plan, got"):
        tn.Plan.from_json(text)


@pytest.mark.parametrize("change", range(len(CANONICAL)))
def test_a_plan_cut_anywhere_is_refused(change: int) -> None:
    with pytest.raises(CorruptDataError, match="not a plan"):
        tn.Plan.from_json(CANONICAL[:change])


SIX = ["a", "b", "c", "d", "e", "f"]
MISMATCHES: dict[str, tuple[tn.Plan, tn.Plan, str]] = {
    "epsilon": (plan(1.5), plan(2.0), r"^x was made .*: epsilon 2\.0 instead of 1\.5$"),
    "epsilon in the last digit": (
        plan(1.5),
        plan(1.5000000000000002),
        r": epsilon 1\.5000000000000002 instead of 1\.5$",
    ),
    "labels": (
        plan(labels=["a", "b"]),
        plan(labels=["b", "a"]),
        r": domain .*'b'.* instead of .*'a'",
    ),
    "number of labels": (
        plan(labels=["a", "b"]),
        plan(labels=range(3)),
        r": domain Domain\.from_integers\(3\) instead of Domain\(\['a', 'b'\]\)",
    ),
    "type of a label": (
        plan(labels=[1, 2]),
        plan(labels=[1, 2.0]),
        r": domain .*2\.0.* instead of .*2\b",
    ),
    "a label that is not shown first": (
        plan(labels=SIX),
        plan(labels=[*SIX[:5], "g"]),
        r": domain .*'g' instead of 'f'",
    ),
    "rate": (
        plan(),
        plan(participation=tn.Bernoulli(0.5)),
        r": participation Bernoulli\(0\.5\) instead of Bernoulli\(0\.25\)$",
    ),
    "kind": (
        plan(),
        plan(participation=tn.Personalized([0.5])),
        r": participation Personalized\(\.\.\.\) instead of Bernoulli\(0\.25\)$",
    ),
    "a parameter of the oracle": (
        tn.Plan(tn.BinaryLocalHashing(1.0, 9, hashes=64), tn.Everyone()),
        tn.Plan(tn.BinaryLocalHashing(1.0, 9), tn.Everyone()),
        r": hashes None instead of 64$",
    ),
    "a parameter that we do not have": (
        tn.Plan(tn.BinaryLocalHashing(1.0, 9), tn.Everyone()),
        tn.Plan(tn.BinaryLocalHashing(1.0, 9, hashes=64), tn.Everyone()),
        r": hashes 64 instead of None$",
    ),
    "everyone is not a rate of one": (
        plan(participation=tn.Everyone()),
        plan(participation=tn.Bernoulli(1.0)),
        r": participation Bernoulli\(1\.0\) instead of Everyone\(\)$",
    ),
    "all at once": (
        plan(),
        plan(2.0, ["a", "b"], tn.Everyone()),
        r"epsilon 2\.0 instead of 1\.5; domain .*; participation Everyone\(\) instead of",
    ),
}


@pytest.mark.parametrize(("ours", "theirs", "message"), MISMATCHES.values(), ids=MISMATCHES.keys())
def test_another_plan_is_refused_and_what_differs_is_named(
    ours: tn.Plan, theirs: tn.Plan, message: str
) -> None:
    assert ours != theirs
    assert ours.fingerprint != theirs.fingerprint
    with pytest.raises(PlanMismatchError, match=message):
        ours._check_same(theirs, "x")
    ours._check_same(ours, "x")
    ours._check_same(tn.Plan.from_json(ours.to_json()), "x")


@pytest.mark.parametrize("oracle", [None, tn.DirectEncoding, tn.Domain(LABELS), "direct_encoding"])
def test_a_plan_needs_an_oracle(oracle: Any) -> None:
    with pytest.raises(InvalidTypeError, match="oracle must be an oracle, got"):
        tn.Plan(oracle, tn.Everyone())


@pytest.mark.parametrize("participation", [None, True, tn.Everyone, "everyone"])
def test_a_plan_needs_a_participation(participation: Any) -> None:
    with pytest.raises(InvalidTypeError, match="participation must be a rate, Everyone"):
        tn.Plan(tn.DirectEncoding(1.0, 2), participation)


def test_labels_that_json_cannot_hold_are_refused_by_name() -> None:
    kept = plan(labels=["a", b"bytes"])
    for write in (kept.to_json, kept.to_dict, lambda: kept.fingerprint):
        with pytest.raises(InvalidTypeError, match="label b'bytes' cannot be written to a file"):
            write()
