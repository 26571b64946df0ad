"""A search and two rounds on a server that runs: each plan is made from the store, and found."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.serve.clients import HERE, KEY, NODE, needs_node
from tests.serve.conftest import Running
from tests.serve.test_store_command import command
from tests.serve.waiting import PATIENCE, until

import turnout as tn
from turnout.frequency.heavy_hitters import Search
from turnout.frequency.rounds import Rounds

Serve = Callable[..., Running]


class Browsers:
    """People who come back with the browser that they had.

    Attributes
    ----------
    kept
        What the browser of each person keeps, and the person's answer.
    """

    def __init__(self, server: Running) -> None:
        self.server, self.kept = server, list[dict[str, Any]]()

    def come(self, answers: Sequence[object]) -> list[str]:
        """Let new people come, and all who came before; say what became of each."""
        self.kept += [{"kept": {}, "answer": answer} for answer in answers]
        asked = {"server": self.server.address, "publicKey": KEY.public_key, "people": self.kept}
        assert NODE is not None
        done = subprocess.run(
            [NODE, HERE / "people.mjs"],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        found = json.loads(done.stdout)
        for person, now in zip(self.kept, found, strict=True):
            person["kept"] = now["kept"]
        return [now["state"] for now in found]


def run(*words: object) -> Any:
    done = command(*words)
    assert done.exit_code == 0, done.stderr
    return done


def plan_in_force(server: Running, serial: int, folder: Path) -> tn.Plan:
    """Wait for a plan as devices do."""
    got = folder / "got.json"

    def found() -> tn.Plan | None:
        got.write_bytes(server.client.get("/plan.json").content)
        plan = tn.Plan.read(got, public_key=KEY.public_key)
        return plan if plan.serial == serial else None

    return until(found)


def answered(server: Running, plan: tn.Plan, answers: Sequence[object]) -> list[bytes]:
    """Let devices in Python answer."""
    messages = [message for each in answers if (message := plan.report(each)) is not None]
    taken = server.send(messages).json()
    assert taken == {"accepted": len(messages), "duplicates": 0, "refused": {}}
    return messages


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "plans.key"
    KEY.write(path)
    return path


@needs_node
@pytest.mark.slow
def test_a_search_on_a_server_finds_what_is_frequent(
    serving: Serve, tmp_path: Path, key: Path
) -> None:
    state, plans, store = tmp_path / "search.json", tmp_path / "plans", tmp_path / "reports.db"
    options = ("--plans", plans, "--sign", key)
    # The noise is so small that no value is missed.
    search = ("-e", 10, "--bits", 8, "--step", 2, "--keep", 4, "--oracle", "direct-encoding")
    run("rounds", "hitters", *search, "-o", state, *options)
    server = serving(plans, "--public-key", KEY.public_key, store=store)
    browsers, groups = Browsers(server), Search.read(state).protocol.groups
    assert groups == 4
    for number in range(groups):
        plan = plan_in_force(server, number, tmp_path)
        # Who was asked before is not asked again, whoever comes.
        came = browsers.come([7, 200, 7, 33])
        assert came == ["earlier"] * 4 * number + ["sent"] * 4
        messages = answered(server, plan, [7] * 60 + [200] * 40 + list(range(20)))
        assert server.results()["received"] == len(messages) + 4
        kept = state.read_bytes()
        if number + 1 < groups:
            unsigned = command("rounds", "close", state, store, "--plans", plans)
            assert unsigned.exit_code == 1
            assert "pass --sign FILE with the same key" in " ".join(unsigned.stderr.split())
            assert state.read_bytes() == kept
        closed = json.loads(run("rounds", "close", state, store, *options, "--json").stdout)
        assert closed["round"] == number + 1
        # The round is over, and its messages are none of the next.
        again = command("rounds", "close", state, store, *options)
        assert again.exit_code == 1
        if number == 0:
            answered(server, plan, [255] * 50)
    assert closed["finished"]
    assert closed["plan_file"] is None
    found = json.loads(run("rounds", "show", state, "--json").stdout)
    shares = {each["label"]: each["frequency"] for each in found["estimates"]}
    assert sorted(shares, key=shares.__getitem__)[-2:] == [200, 7]
    # Each round has one answer of every value below 20: a few may be found too.
    assert shares.keys() <= {*range(20), 33, 200}
    assert found["nodes"] == groups * (60 + 40 + 20 + 4)
    assert server.stop() == 0


@needs_node
@pytest.mark.slow
def test_two_rounds_on_a_server_ask_more_of_who_holds_a_rare_answer(
    serving: Serve, tmp_path: Path, key: Path
) -> None:
    state, plans, store = tmp_path / "blood.json", tmp_path / "plans", tmp_path / "reports.db"
    options = ("--plans", plans, "--sign", key)
    rates = ("--first-rate", 0.2, "--second-rate", 0.2, "--low", 0.1, "--high", 0.8)
    run("rounds", "rare", "-e", 7, "--labels", "0,A,AB", *rates, "-o", state, *options)
    server = serving(plans, store=store)
    browsers = Browsers(server)
    first = plan_in_force(server, 0, tmp_path)
    assert browsers.come(["0"] * 4 + ["A"]) == ["sent"] * 5
    answered(server, first, ["0"] * 156 + ["A"] * 31 + ["AB"] * 8)
    run("rounds", "close", state, store, *options)
    second = plan_in_force(server, 1, tmp_path)
    came = browsers.come(["0"] * 10 + ["AB"] * 6)
    assert came[:5] == ["earlier"] * 5
    assert set(came[5:]) == {"silent", "sent"}
    answered(server, second, ["0"] * 630 + ["A"] * 128 + ["AB"] * 26)
    # Silence is an answer: how many were asked has to be said.
    unknown = command("rounds", "close", state, store, *options)
    assert unknown.exit_code == 1
    assert "turnout store asked" in unknown.stderr
    file = plans / "blood.round-1.json"
    run("store", "asked", store, 800, "--plan", file)
    run("rounds", "close", state, store, *options)
    shown = json.loads(run("rounds", "show", state, "--json", "--interval", 1 - 1e-7).stdout)
    assert (shown["finished"], shown["nodes"]) == (True, 1000)
    assert shown["spent"]["total"] <= 7
    for row, share in zip(shown["estimates"], (0.8, 0.16, 0.04), strict=True):
        assert row["low"] <= share <= row["high"]
    assert server.stop() == 0


def test_the_plan_of_the_open_round_is_written_again(tmp_path: Path, key: Path) -> None:
    state, plans = tmp_path / "search.json", tmp_path / "plans"
    options = ("--plans", plans, "--sign", key)
    run("rounds", "hitters", "-e", 4, "--bits", 8, "-o", state, *options)
    file = plans / "search.round-0.json"
    assert list(plans.iterdir()) == [file]
    assert not list(tmp_path.glob("search.round*"))
    written = file.read_bytes()
    other = tmp_path / "other.key"
    run("key", "new", other)
    for wrong in ((), ("--sign", other)):
        refused = command("rounds", "plan", state, "--plans", plans, *wrong)
        assert refused.exit_code == 1
        assert f"is signed by {KEY.public_key}" in " ".join(refused.stderr.split())
    file.unlink()
    again = json.loads(run("rounds", "plan", state, *options, "--json").stdout)
    assert again["plan_file"] == str(file)
    assert file.read_bytes() == written


@pytest.mark.parametrize(
    "begin",
    [
        ("hitters", "-e", 9, "--bits", 8, "--keep", 4),
        (
            *("rare", "-e", 8, "--labels", "A,B", "--first-rate", 0.5, "--second-rate", 0.25),
            *("--low", 0.4, "--high", 0.6),
        ),
    ],
)
def test_a_round_of_few_reports_stays_open(begin: tuple[object, ...], tmp_path: Path) -> None:
    state, tally = tmp_path / "state.json", tmp_path / "0.tally"
    run("rounds", *begin, "-o", state)
    kept = state.read_bytes()
    current = Rounds.read(state).current
    answer = "A" if begin[0] == "rare" else 1
    for people, said in ((0, ""), (49, "has 49 reports, and is closed with 50 or more")):
        tally.write_bytes(current.collect([answer] * people, seed=1).to_bytes())
        refused = command("rounds", "close", state, tally)
        assert refused.exit_code == 1
        assert said in " ".join(refused.stderr.split())
        assert state.read_bytes() == kept
    run("rounds", "close", state, tally, "--least", 49)
    tally.write_bytes(current.collect([answer] * 50, seed=1).to_bytes())
    state.write_bytes(kept)
    run("rounds", "close", state, tally)


def test_a_plan_is_out_only_where_its_round_is_in_the_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, plans = tmp_path / "search.json", tmp_path / "plans"
    run("rounds", "hitters", "-e", 9, "--bits", 8, "--keep", 4, "-o", state, "--plans", plans)
    tally = tmp_path / "0.tally"
    search = Search.read(state)
    tally.write_bytes(search.current.collect([5] * 400, seed=1).to_bytes())

    def ended(*_: object) -> None:
        raise OSError(28, "No space left on device")

    kept = state.read_bytes()
    monkeypatch.setattr(Search, "write", ended)
    assert command("rounds", "close", state, tally, "--plans", plans).exit_code == 1
    assert [path.name for path in plans.iterdir()] == ["search.round-0.json"]
    assert state.read_bytes() == kept
