"""The client of browsers reads plans that are whole, and refuses all others in its own words."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from tests.serve.clients import KEY, needs_node, run, text_of

import turnout as tn
from turnout.signing import SigningKey

pytestmark = needs_node

END = datetime(2031, 1, 1, tzinfo=timezone.utc)
PLAN = tn.Plan(
    tn.SubsetSelection(1.0, ["no", "yes", "\U0001f600 é"]),
    tn.Bernoulli(1e-7),
    serial=7,
    expires=END,
)


def read(text: str, **given: Any) -> str:
    """Return the code and the message of the refusal, or nothing."""
    [result] = run([{"plan": text, "key": KEY.public_key, **given}])
    error = result.get("error")
    return f"{error['code']}: {error['message']}" if error else ""


def test_a_plan_of_python_is_read(tmp_path: Path) -> None:
    text = text_of(PLAN, tmp_path)
    [result] = run([{"plan": text, "key": KEY.public_key.upper(), "lastSerial": 7}])
    found = result["plan"]
    assert (found["serial"], found["expires"]) == (7, int(END.timestamp()))
    assert found["questions"][0]["labels"] == ["no", "yes", "\U0001f600 é"]
    assert read("\ufeff" + text).startswith("malformed")
    assert read(text_of(PLAN, tmp_path, None), key=None) == ""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"epsilon":1.0', '"epsilon":9.0', "fingerprint: "),
        ('"epsilon":1.0', '"epsilon":1.00', "not-canonical: "),
        ('"version": 1', '"version": 2', "version: the plan file has version 2"),
        ('-file"', '-document"', "malformed: not a plan file"),
        ('"fingerprint"', '"finger"', "members: the plan file lacks 'fingerprint'"),
        (
            '"signature": {',
            '"x": 1, "signature": {',
            "members: the plan file has unknown members 'x'",
        ),
        ('"signature": {', '"signature": {"x":1,', "malformed: not a signature"),
        ('"ed25519"', '"ed448"', "malformed: not a signature"),
        (
            '"version": 1,',
            '"version": 1, "version": 1,',
            "malformed: not JSON: a member is duplicated",
        ),
        (
            "turnout-plan-file",
            "turnout-plan-\u00e9",
            "malformed: not a plan file of turnout: it holds",
        ),
        ("\n}\n", "\n} {", "malformed: not JSON: more text"),
    ],
)
def test_what_was_altered_is_refused(old: str, new: str, words: str, tmp_path: Path) -> None:
    text = text_of(PLAN, tmp_path)
    changed = text.replace(old, new, 1)
    assert changed != text
    assert read(changed).startswith(words)


def test_signatures_of_others_and_of_nobody_are_refused(tmp_path: Path) -> None:
    text = text_of(PLAN, tmp_path)
    assert read(text_of(PLAN, tmp_path, None)).startswith("unsigned: ")
    assert read(text_of(PLAN, tmp_path, SigningKey(bytes(32)))).startswith("signer: ")
    value = json.loads(text)["signature"]["value"]
    for place in (0, 63, 64, 127):
        digit = "0" if value[place] != "0" else "1"
        other = value[:place] + digit + value[place + 1 :]
        assert read(text.replace(value, other)).startswith("signature: "), place
    # Under a key of small order some signatures fit nearly any message.
    for key in ("01" + "00" * 31, "ec" + "ff" * 30 + "7f", "01" + "00" * 30 + "80"):
        small = text.replace(KEY.public_key, key).replace(value, "01" + "00" * 63)
        assert read(small, key=key).startswith("signature: ")


def test_expired_and_older_plans_are_refused(tmp_path: Path) -> None:
    text = text_of(PLAN, tmp_path)
    moment = END.timestamp()
    assert read(text, now=moment - 1) == ""
    assert read(text, now=moment).startswith("expired: ")
    assert read(text, lastSerial=8).startswith("serial: the plan has serial 7, expected 8")
    assert read(
        text_of(tn.Plan(PLAN.oracle, PLAN.participation), tmp_path), lastSerial=0
    ).startswith("serial: the plan has no serial")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("subset_selection", "unheard_of", "unknown-kind: "),
        ('"epsilon":1.0', '"epsilon":43.0', "question: "),
        ('"epsilon":1.0', '"epsilon":-1.0', "question: "),
        ('"epsilon":1.0', '"epsilon":1e-12', "question: "),
        ('"subset_size":1', '"subset_size":3', "question: "),
        ('"subset_size":1', '"subset_size":1.0', "question: "),
        ('"subset_size":1', '"subset_size":1,"tail":1', "question: "),
        ('"labels":["no","yes"', '"labels":["no","no"', "question: "),
        ('"rate":1e-07', '"rate":1.5', "value: "),
        ('"kind":"bernoulli"', '"kind":"everyone"', "value: "),
        ('"serial":7', '"serial":9007199254740992', "value: "),
        ('"serial":7', '"serial":-7', "value: "),
        ('"serial":7', '"seriel":7', "members: "),
    ],
)
def test_plans_that_cannot_be_are_refused(old: str, new: str, words: str, tmp_path: Path) -> None:
    assert read(resealed(text_of(PLAN, tmp_path, None), old, new), key=None).startswith(words)


def test_personal_participation_is_refused_when_answers_are_reported(tmp_path: Path) -> None:
    personal = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Personalized([0.5, 0.25]))
    text = text_of(personal, tmp_path)
    assert read(text) == ""
    assert read(text, answers=[1]).startswith("personal-participation: ")


def resealed(text: str, old: str, new: str) -> str:
    """Change the text of a plan and its fingerprint with it."""
    document = json.loads(text)
    plan = text.partition('"plan": ')[2].partition(',\n  "fingerprint"')[0]
    changed = plan.replace(old, new, 1)
    assert changed != plan
    digest = hashlib.sha256(changed.encode()).hexdigest()
    return text.replace(plan, changed).replace(document["fingerprint"], digest)
