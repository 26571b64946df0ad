"""``turnout store``, and the commands that read a store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serve.test_taking import message_of, take
from typer.testing import CliRunner

import turnout as tn
from turnout.cli.app import app
from turnout.serve.checking import check
from turnout.serve.collection import Collection
from turnout.serve.storage.interface import Store
from turnout.serve.storage.opening import open_store

PLAN = tn.Plan(tn.DirectEncoding(2.0, ["no", "yes"]), tn.Bernoulli(0.5), serial=1)


def command(*words: object) -> Any:
    done = CliRunner().invoke(app, list(map(str, words)), env={"NO_COLOR": "1", "COLUMNS": "100"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def sent(plan: tn.Plan, number: int) -> list[bytes]:
    found = [plan.report("yes") for _ in range(number)]
    return [each for each in found if each is not None]


@pytest.fixture(params=["messages", "tally"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    PLAN.write(tmp_path / "plan.json")
    made = open_store(str(tmp_path / "reports.db"), request.param)
    take(Collection(tmp_path / "plan.json", made), made, sent(PLAN, 400), sent(PLAN, 20))
    yield made
    made.close()


def altered(store: Store, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(store.place)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def test_a_store_is_counted_again(store: Store) -> None:
    found = json.loads(command("store", "check", store.place, "--json").stdout)
    received = found["reports"]
    assert found == {
        "keep": store.keep,
        "questions": 1,
        "groups": 1,
        "reports": received,
        "asked": 0,
        "refused": 0,
    }
    assert received > 150
    words = {"messages": "match the messages", "tally": "match the remembered messages"}
    assert words[store.keep] in command("store", "check", store.place).stdout


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE tallies SET received = received + 1", "reports"),
        ("DELETE FROM fresh WHERE slice = 0", "remembered"),
        ("DELETE FROM messages WHERE number = 1", "the tally is of"),
        ("UPDATE messages SET lines = lines || char(10) || lines WHERE number = 1", "the tally"),
        ("UPDATE messages SET lines = 'hello'", "none of its plans"),
        ("UPDATE fresh SET records = zeroblob(length(records))", "not remembered as they are"),
        ("UPDATE tallies SET sums = zeroblob(16)", "does not fit its plan"),
        (
            "UPDATE tallies SET sums = CAST(substr(sums, 9) || substr(sums, 1, 8) AS BLOB)",
            "of other reports",
        ),
        ("UPDATE tallies SET sums = zeroblob(3)", "must be 16 bytes, got 3"),
    ],
)
def test_what_differs_is_told(store: Store, statement: str, said: str) -> None:
    altered(store, statement)
    of_messages = ("messages SET", "DELETE FROM messages", "fresh SET", "CAST")
    if store.keep == "tally" and any(each in statement for each in of_messages):
        check(store)
        return
    done = command("store", "check", store.place)
    assert done.exit_code == 1
    assert said in done.stderr


def test_commands_read_a_store_as_its_tally(store: Store, tmp_path: Path) -> None:
    reports = command("store", "check", store.place, "--json").stdout
    received = json.loads(reports)["reports"]
    assert command("store", "asked", store.place, 440).exit_code == 0
    estimate = json.loads(command("estimate", store.place, "--json").stdout)
    assert (estimate["received"], estimate["nodes"]) == (received, 440)
    target = tmp_path / "week.tally"
    assert command("tally", store.place, "-o", target).exit_code == 0
    assert json.loads(command("estimate", target, "--json").stdout) == estimate
    page = tmp_path / "page.html"
    assert command("report", store.place, "-o", page).exit_code == 0
    assert "440" in page.read_text()
    # The store and its tally are the same reports.
    both = command("tally", store.place, target, "-o", tmp_path / "both.tally")
    assert both.exit_code == 1
    assert "count twice" in both.stderr


def test_of_several_questions_the_plan_says_which(store: Store, tmp_path: Path) -> None:
    other = tn.Plan(tn.DirectEncoding(1.0, ["a", "b", "c"]), tn.Everyone())
    other.write(tmp_path / "other.json")
    take(Collection(tmp_path / "other.json", store), store, [message_of(other, "a")])
    refused = command("estimate", store.place)
    assert refused.exit_code == 1
    assert "holds 2 questions: pass --plan FILE to turnout tally to select one" in refused.stderr
    target = tmp_path / "other.tally"
    done = command("tally", store.place, "--plan", tmp_path / "other.json", "-o", target)
    assert done.exit_code == 0, done.stderr
    assert tn.Tally.from_bytes(target.read_bytes()).received == 1
    asked = command("store", "asked", store.place, 3)
    assert "contains 2 plans: pass --plan FILE" in asked.stderr
    done = command("store", "asked", store.place, 3, "--plan", tmp_path / "other.json")
    assert done.exit_code == 0
    assert json.loads(command("store", "check", store.place, "--json").stdout)["asked"] == 3


def test_groups_are_asked_apart(tmp_path: Path) -> None:
    groups = {"region": ["north", "south"], "year": [1, 2]}
    plan = tn.Plan(tn.DirectEncoding(1.0, 3), tn.Bernoulli(0.5), groups=groups)
    plan.write(tmp_path / "plan.json")
    store = open_store(str(tmp_path / "reports.db"), "messages")
    Collection(tmp_path / "plan.json", store)
    good = command("store", "asked", store.place, 7, "--group", "year=2", "--group", "region=north")
    assert good.exit_code == 0, good.stderr
    for words, said in [
        ((), "pass --group region=VALUE --group year=VALUE"),
        (("region=north",), "pass --group region=VALUE --group year=VALUE"),
        (("region=west", "year=1"), "listed values of 'region'"),
        (("region",), "COLUMN=VALUE"),
    ]:
        options = [part for word in words for part in ("--group", word)]
        refused = command("store", "asked", store.place, 7, *options)
        assert refused.exit_code == 1
        assert said in refused.stderr
    assert command("store", "check", store.place, "--json").stdout.count('"asked": 7') == 1
    store.close()


def test_no_fewer_are_asked_than_reported(store: Store, tmp_path: Path) -> None:
    received = json.loads(command("store", "check", store.place, "--json").stdout)["reports"]
    refused = command("store", "asked", store.place, received - 1)
    assert refused.exit_code == 1
    said = " ".join(refused.stderr.split())
    assert f"PEOPLE must be at least {received}, the number of reports of this plan" in said
    assert f"got {received - 1}" in said
    assert json.loads(command("store", "check", store.place, "--json").stdout)["asked"] == 0
    assert command("store", "asked", store.place, received).exit_code == 0
    # Reports of one group are not those of another.
    plan = tn.Plan(tn.DirectEncoding(1.0, ["no", "yes"]), tn.Everyone(), groups={"half": [1, 2]})
    plan.write(tmp_path / "halves.json")
    messages = [message_of(plan, "yes", 1) for _ in range(3)]
    take(Collection(tmp_path / "halves.json", store), store, messages)
    words = ("store", "asked", store.place, 2, "--plan", tmp_path / "halves.json", "--group")
    refused = command(*words, "half=1")
    assert "at least 3, the number of reports of this group" in " ".join(refused.stderr.split())
    assert command(*words, "half=2").exit_code == 0


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "week.tally"
    file.write_text("hello")
    for path, said in [(file, "is not a turnout store"), (tmp_path / "no.db", "No such file")]:
        refused = command("store", "check", path)
        assert refused.exit_code == 1
        assert said in refused.stderr


def test_a_database_is_read_too(database: Any, serving: Callable[..., Any], tmp_path: Path) -> None:
    server = serving(PLAN, store=database.address)
    server.send(sent(PLAN, 100))
    found = command("store", "check", database.address, "--json")
    received = json.loads(found.stdout)["reports"]
    assert received > 10
    target = tmp_path / "week.tally"
    assert command("tally", database.address, "-o", target).exit_code == 0
    assert tn.Tally.from_bytes(target.read_bytes()).received == received
    # A password in the address is shown nowhere.
    address = database.address.replace("turnout@", "turnout:secret@")
    estimate = json.loads(command("estimate", address, "--json").stdout)
    assert estimate["received"] == received
    assert "secret" not in command("estimate", address).stdout
    page, both = tmp_path / "page.html", tmp_path / "both.tally"
    assert command("report", address, "-o", page).exit_code == 0
    assert f"{received:,}" in page.read_text()
    for words in (
        ("report", address, target, "-o", page),
        ("report", address, address, "-o", page),
        ("tally", address, target, "-o", both),
    ):
        refused = command(*words)
        assert refused.exit_code == 1
        assert "count twice" in refused.stderr
        assert "secret" not in refused.stderr
    assert server.stop() == 0
