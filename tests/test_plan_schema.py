"""The schema of plan files beside the reader: what the one refuses the other refuses too."""

from __future__ import annotations

import copy
import hashlib
import json
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnout as tn
from turnout import _kinds
from turnout.collecting.plan_file import plan_file_text
from turnout.errors import CorruptDataError, TurnoutError
from turnout.frequency.adaptive import SecondRound
from turnout.frequency.attributes import PaddedOracle
from turnout.frequency.choice import oracle_classes
from turnout.signing import SigningKey

SCHEMA = tn.Plan.schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
KEY = SigningKey(bytes(range(32)))

ORACLES: list[tn.FrequencyOracle] = [
    tn.DirectEncoding(1.0, tn.Domain(["no", "yes", ("x", None, 1.5), True])),
    tn.SymmetricUnaryEncoding(1e-7, 3),
    tn.OptimizedUnaryEncoding(42.0, 70),
    tn.ThresholdHistogramEncoding(0.1, 3),
    tn.SummationHistogramEncoding(2.0, 3),
    tn.BinaryLocalHashing(1.0, 3),
    tn.BinaryLocalHashing(1.0, 3, hashes=16),
    tn.OptimizedLocalHashing(1.0, 1000),
    tn.OptimizedLocalHashing(1.0, 1000, buckets=5, hashes=16),
    tn.SubsetSelection(1.0, 100),
    tn.HadamardResponse(1.0, 2**32 - 1),
    tn.ProjectiveGeometryResponse(1.0, 1000),
    tn.CountMeanSketch(1.0, 10**6, hashes=8),
    tn.HadamardCountMeanSketch(1.0, 10**6, hashes=8),
    tn.Memoized(tn.DirectEncoding(4.0, 3), first_epsilon=1.0, question="?"),
    PaddedOracle(1.0, 3, oracle=tn.SubsetSelection(1.0, 3), own_probability=0.25),
    tn.JointTable(1.0, {"a": 2, "b": ["no", ("x", None)]}, oracle="subset_selection"),
    tn.HeavyHitters(1.0, length=3, alphabet="ab").rounds().current,
    SecondRound(5.0, 3, oracle=tn.DirectEncoding(4.0, 3), rates=[0.2, 0.25, 0.3]),
]
PARTICIPATIONS = [tn.Everyone(), tn.Bernoulli(5e-324), tn.Bernoulli(1), tn.Personalized([1.0])]
TERMS: list[dict[str, Any]] = [
    {},
    {"serial": 0},
    {"serial": 2**53 - 1, "expires": datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)},
    {"groups": {"region": ["north", None], "born": [date(1999, 12, 31)], "adult": [True, False]}},
]


def file_of(plan: tn.Plan, key: SigningKey | None = KEY) -> dict[str, Any]:
    description: dict[str, Any] = json.loads(plan_file_text(plan._described, key))
    return description


def sealed(description: Any) -> str:
    """The text of a file whose fingerprint is that of its plan and whose signature is left out."""
    if not (isinstance(description, dict) and "plan" in description):
        return json.dumps(description)
    plan = json.dumps(description["plan"], sort_keys=True, separators=(",", ":"))
    members = {**description, "plan": "PLAN"}
    if "fingerprint" in members and members["fingerprint"] == "RIGHT":
        members["fingerprint"] = hashlib.sha256(plan.encode()).hexdigest()
    return json.dumps(members).replace('"PLAN"', plan)


def reads(description: Any, path: Path) -> bool:
    path.write_text(sealed(description))
    try:
        tn.Plan.read(path)
    except CorruptDataError:
        return False
    return True


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


def test_every_oracle_of_turnout_is_in_it() -> None:
    own = {
        name for name, found in oracle_classes().items() if found.__module__.startswith("turnout.")
    }
    described = {each["properties"]["name"]["const"] for each in SCHEMA["$defs"]["oracle"]["oneOf"]}
    assert own <= described
    assert {oracle.name for oracle in ORACLES} == own


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda oracle: oracle.name)
@pytest.mark.parametrize("participation", PARTICIPATIONS, ids=repr)
def test_what_is_written_fits(oracle: tn.FrequencyOracle, participation: tn.Participation) -> None:
    if oracle._one_rate_because and participation.uniform_rate is None:
        participation = tn.Bernoulli(0.5)
    for key in (None, KEY):
        for terms in TERMS:
            VALIDATOR.validate(file_of(tn.Plan(oracle, participation, **terms), key))


LABEL = st.recursive(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.none(),
    ),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=4,
)
DOMAINS = st.one_of(
    st.lists(LABEL, min_size=2, max_size=6, unique=True).map(tn.Domain),
    st.sampled_from([2, 3, 2**20, 2**32 - 1]).map(tn.Domain.from_integers),
)


@settings(max_examples=150, deadline=None)
@given(
    epsilon=st.floats(1e-6, 42),
    domain=DOMAINS,
    rate=st.floats(0, 1, exclude_min=True),
    key=st.sampled_from([None, KEY]),
)
def test_whatever_is_written_fits(
    epsilon: float, domain: tn.Domain, rate: float, key: SigningKey | None
) -> None:
    oracle = tn.DirectEncoding if epsilon > 1e-3 else tn.BinaryLocalHashing
    if domain.size > 2**31 - 1:
        oracle = tn.HadamardResponse
    VALIDATOR.validate(file_of(tn.Plan(oracle(epsilon, domain), tn.Bernoulli(rate)), key))


def places(description: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all values inside a description."""
    found = [path]
    if isinstance(description, dict):
        for name, value in description.items():
            found += places(value, (*path, name))
    elif isinstance(description, list):
        for index, value in enumerate(description):
            found += places(value, (*path, index))
    return found


WRONG: list[Any] = [None, True, -1, 0, 0.5, 1, 1e300, 2**70, "", "x", "direct_encoding", [], {}]


def broken(description: dict[str, Any], place: tuple[Any, ...], how: str, value: Any) -> Any:
    result = copy.deepcopy(description)
    if not place:
        return {**result, "more": value} if how == "add" else value
    inner: Any = result
    for step in place[:-1]:
        inner = inner[step]
    if how == "drop":
        del inner[place[-1]]
    elif how.startswith("add") and isinstance(inner[place[-1]], dict):
        inner[place[-1]][how[4:] or "more"] = value
    else:
        inner[place[-1]] = value
    return result


@settings(max_examples=1500, deadline=None)
@given(data=st.data())
def test_what_the_schema_refuses_the_reader_refuses(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    oracle = data.draw(st.sampled_from(ORACLES))
    terms = data.draw(st.sampled_from(TERMS))
    possible = PARTICIPATIONS[:-1] if oracle._one_rate_because else PARTICIPATIONS
    plan = tn.Plan(oracle, data.draw(st.sampled_from(possible)), **terms)
    whole = {**file_of(plan, None), "fingerprint": "RIGHT"}
    description = broken(
        whole,
        data.draw(st.sampled_from(places(whole))),
        data.draw(st.sampled_from(["drop", "add", "change"])),
        data.draw(st.sampled_from(WRONG)),
    )
    path = tmp_path_factory.getbasetemp() / "plan-of-the-schema-test.json"
    shown = description
    if isinstance(description, dict) and description.get("fingerprint") == "RIGHT":
        shown = {**description, "fingerprint": "0" * 64}
    if reads(description, path):
        VALIDATOR.validate(shown)
    if json.dumps(description) == json.dumps(whole):
        assert reads(description, path)


#: What a schema can see, and both refuse.
BOTH: dict[str, tuple[tuple[Any, ...], str, Any]] = {
    "another format": (("format",), "change", "turnout-plan"),
    "another version": (("version",), "change", 2),
    "version true": (("version",), "change", True),
    "no plan": (("plan",), "drop", None),
    "no fingerprint": (("fingerprint",), "drop", None),
    "a short fingerprint": (("fingerprint",), "change", "ab"),
    "something more": ((), "add", 1),
    "more in the plan": (("plan",), "add", 1),
    "more in the oracle": (("plan", "oracle"), "add", 1),
    "more in the domain": (("plan", "oracle", "domain"), "add", 1),
    "more in the participation": (("plan", "participation"), "add", 1),
    "more in the signature": (("signature",), "add", 1),
    "no algorithm": (("signature", "algorithm"), "drop", None),
    "another algorithm": (("signature", "algorithm"), "change", "rsa"),
    "a short signature": (("signature", "value"), "change", "ab"),
    "signature null": (("signature",), "change", None),
    "an unknown oracle": (("plan", "oracle", "name"), "change", "telepathy"),
    "no epsilon": (("plan", "oracle", "epsilon"), "drop", None),
    "epsilon zero": (("plan", "oracle", "epsilon"), "change", 0.0),
    "epsilon as text": (("plan", "oracle", "epsilon"), "change", "1.0"),
    "one label": (("plan", "oracle", "domain"), "change", {"labels": ["a"]}),
    "labels of lists": (("plan", "oracle", "domain"), "change", {"labels": [["a"], ["b"]]}),
    "one integer": (("plan", "oracle", "domain"), "change", {"integers": 1}),
    "too many integers": (("plan", "oracle", "domain"), "change", {"integers": 2**32}),
    "size as text": (("plan", "oracle", "subset_size"), "change", "1"),
    "size as a fraction": (("plan", "oracle", "subset_size"), "change", 1.5),
    "rate zero": (("plan", "participation", "rate"), "change", 0.0),
    "rate above one": (("plan", "participation", "rate"), "change", 1.5),
    "no rate": (("plan", "participation", "rate"), "drop", None),
    "a serial as text": (("plan",), "add serial", "1"),
    "a negative serial": (("plan",), "add serial", -1),
    "a large serial": (("plan",), "add serial", 2**53),
    "a serial of null": (("plan",), "add serial", None),
    "an expiry as text": (("plan",), "add expires", "2030-01-01T00:00:00Z"),
    "an expiry before 1970": (("plan",), "add expires", -1),
    "an expiry after 9999": (("plan",), "add expires", 253_402_300_800),
    "another kind": (("plan", "participation", "kind"), "change", "nobody"),
}


@pytest.mark.parametrize(("place", "how", "value"), BOTH.values(), ids=BOTH.keys())
def test_schema_and_reader_refuse_alike(
    place: tuple[Any, ...], how: str, value: Any, tmp_path: Path
) -> None:
    plan = tn.Plan(tn.SubsetSelection(1.0, tn.Domain(["a", "b", "c"])), tn.Bernoulli(0.5))
    whole = file_of(plan)
    assert VALIDATOR.is_valid(whole)
    assert reads(whole, tmp_path / "plan.json")
    description = broken(whole, place, how, value)
    assert not VALIDATOR.is_valid(description)
    if place[:1] == ("plan",):
        # The reader is to see the fault itself, not that the fingerprint is another one.
        description = {**description, "fingerprint": "RIGHT"}
        description.pop("signature")
    assert not reads(description, tmp_path / "plan.json")


def test_an_oracle_of_ones_own_is_described() -> None:
    class Own(tn.DirectEncoding):
        name = "own_of_the_schema_test"

        def __init__(self, epsilon: float, domain: Any, *, extra: int | None = None) -> None:
            super().__init__(epsilon, domain)
            self._extra = extra

        def parameters(self) -> dict[str, Any]:
            return {"extra": self._extra}

    try:
        validator = jsonschema.Draft202012Validator(tn.Plan.schema())
        for extra in (None, 5):
            description = file_of(tn.Plan(Own(1.0, 3, extra=extra), tn.Everyone()))
            validator.validate(description)
            assert not VALIDATOR.is_valid(description)
        description["plan"]["oracle"]["extra"] = "five"
        assert not validator.is_valid(description)
    finally:
        _kinds.REGISTERED.pop(Own.name)
    with pytest.raises(TurnoutError):
        tn.Plan.from_dict(description["plan"])
