"""``turnout task`` and ``turnout serve --task``: what is refused, and in which words."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serve.tasks.processes import people
from tests.serve.tasks.rounds import Round
from tests.serve.tasks.test_rounds import SUMS
from typer.testing import CliRunner

from turnout import _core
from turnout.cli.app import app
from turnout.serve.storage.opening import open_store
from turnout.serve.tasks.files import ClientFile, CollectorFile, LeaderFile
from turnout.serve.tasks.reading import bytes_of
from turnout.serve.tasks.records import Records

NEW = ["task", "new", "--labels", "yes,no", "--users", "9", "--epsilon", "1"]
URLS = ["--leader", "https://a.example", "--helper", "https://b.example"]


def run(*words: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "200", "TERM": "dumb"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.stdout, " ".join(done.stderr.replace("│", " ").split())


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The folder of a task."""
    code, _, said = run(*NEW, *URLS, "-o", tmp_path / "task")
    assert (code, said) == (0, "")
    return tmp_path / "task"


def test_new_says_where_the_files_are(tmp_path: Path) -> None:
    code, shown, _ = run(
        *(*NEW, *URLS, "-o", tmp_path / "task", "--participation", 0.5, "--delta", 1e-6),
        *("--batch-reports", 8, "--batch-seconds", 60, "--min-batch", 3, "--time-precision", 10),
        *("--expires", "2100-01-01T00:00:00Z"),
    )
    assert code == 0
    for role in ("leader", "helper", "client", "collector"):
        assert str(tmp_path / "task" / f"{role}.json") in shown
    assert "of 8 reports, or of 3 or more after 60 s" in shown
    shown = run(*NEW, *URLS, "-o", tmp_path / "other")[1]
    assert "of 9 reports, or of 5 or more after 86,400 s" in shown
    expires = ("--expires", "2100-01-01T17:30:00Z")
    shown = run(*NEW, *URLS, *expires, "-o", tmp_path / "ends")[1]
    assert "of 9 reports, or of 5 or more when the time is over" in shown
    # Times of reports are in hours: whoever comes before the end is not too late.
    assert "2100-01-01T18:00:00Z" in shown
    leader = LeaderFile.read(tmp_path / "task" / "leader.json")
    assert (leader.batch_reports, leader.batch_seconds) == (8, 60)
    assert (leader.task.min_batch_size, leader.task.time_precision) == (3, 10)
    assert leader.task.interval is not None
    question = ClientFile.read(tmp_path / "task" / "client.json").question
    assert (question.participation, question.delta, question.users) == (0.5, 1e-6, 9)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*NEW, "--leader", "a.example", *URLS[2:]], "--leader must be an address"),
        ([*NEW, *URLS[:2], "--helper", URLS[1]], "must be two servers"),
        ([*NEW[:2], *NEW[4:], *URLS], "say what can be answered"),
        ([*NEW, *URLS, "--min-batch", 10], "from 1 to 9"),
        ([*NEW, *URLS, "--expires", "2001-01-01T00:00:00Z"], "in the future"),
        ([*NEW, *URLS, "--janus", "leader", "--batch-seconds", 9], "seconds must be left out"),
        ([*NEW, *URLS, "--janus", "leader,both"], "'both' is none of leader, helper, client"),
    ],
)
def test_a_task_that_cannot_be_is_refused(tmp_path: Path, words: list[str], said: str) -> None:
    code, _, error = run(*words, "-o", tmp_path / "task")
    assert code != 0
    assert said in error
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_is_over_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    away = ["--leader", "http://127.0.0.1:1", "--helper", "http://127.0.0.1:2"]
    run(*NEW, *away, "--expires", "2100-01-01T17:30:00Z", "-o", tmp_path / "task")
    end = datetime(2100, 1, 1, 18, tzinfo=timezone.utc).timestamp()
    monkeypatch.setattr(time, "time", lambda: end)
    client = tmp_path / "task" / "client.json"
    code, _, error = run("task", "upload", client, "--value", "yes")
    assert code == 1
    assert "this task accepted reports until 2100-01-01T18:00:00Z" in error
    # A moment before, the leader is asked.
    monkeypatch.setattr(time, "time", lambda: end - 1)
    assert "does not answer" in run("task", "upload", client, "--value", "yes")[2]


def test_addresses_without_tls_are_noted(tmp_path: Path) -> None:
    urls = ["--leader", "http://localhost:8001", "--helper", "http://b.example"]
    code, _, said = run(*NEW, *urls, "-o", tmp_path / "task")
    assert code == 0
    assert "http://b.example/ is without TLS: somebody between a client and the servers" in said
    assert "localhost" not in said


@pytest.mark.parametrize("theirs", ["leader", "helper", "leader,helper"])
def test_a_task_for_janus_has_the_files_that_its_operator_takes(
    tmp_path: Path, theirs: str
) -> None:
    code, shown, _ = run(*NEW, *URLS, "--janus", theirs, "-o", tmp_path / "task")
    assert code == 0
    for role in ("leader", "helper"):
        name = f"{role}.{'yaml' if role in theirs else 'json'}"
        assert str(tmp_path / "task" / name) in shown
    leads = "leader" in theirs
    said = "of 9 reports, as Janus makes them" if leads else "of 9 reports, or of 5 or"
    assert said in shown
    least = CollectorFile.read(tmp_path / "task" / "collector.json").task.min_batch_size
    assert least == (9 if leads else 5)


def test_participation_is_unseen_beside_janus_too(tmp_path: Path) -> None:
    code, shown, _ = run(*NEW, *URLS, "--janus", "helper", "-p", 0.1, "-o", tmp_path / "task")
    assert code == 0
    question = ClientFile.read(tmp_path / "task" / "client.json").question
    assert (question.participation, question.none_counted) == (0.1, True)
    assert "Prio3Histogram" in shown
    # Less noise than without the coin, and more than where no votes stay uncounted.
    assert 0.4 < question.parameter < 2.0  # type: ignore[operator]


def test_a_client_and_a_collector_of_janus_get_variables(tmp_path: Path) -> None:
    folder = tmp_path / "task"
    code, shown, _ = run(*NEW, *URLS, "--janus", "client,collector", "-o", folder)
    assert code == 0
    assert "Prio3Histogram" in shown
    names = ["client.env", "collector.env", "helper.json", "leader.json"]
    assert sorted(path.name for path in folder.iterdir()) == names
    told, asked = (
        dict(line.split("=", 1) for line in (folder / name).read_text().splitlines())
        for name in names[:2]
    )
    leader = LeaderFile.read(folder / "leader.json")
    assert told == {name: asked[name] for name in ("TASK_ID", "TASK_CONFIG")}
    assert told["TASK_ID"] == leader.task.name
    read = _core.DapTask.read(leader.task.id, bytes_of(told["TASK_CONFIG"]))
    assert read == leader.task.dap
    key = _core.HpkeKey(bytes_of(asked["HPKE_CONFIG"]), bytes_of(asked["HPKE_PRIVATE_KEY"]))
    assert key.config == leader.collector_config
    token = asked["AUTHORIZATION_BEARER_TOKEN"].encode()
    assert hashlib.sha256(token).hexdigest() == leader.collector_token_hash
    assert (folder / "collector.env").stat().st_mode & 0o077 == 0


def test_a_task_is_not_written_twice(task: Path) -> None:
    code, _, error = run(*NEW, *URLS, "-o", task)
    assert code == 1
    assert "exists already" in error


def test_answers_that_are_none_are_refused_and_not_shown(task: Path, tmp_path: Path) -> None:
    client = task / "client.json"
    code, _, error = run("task", "upload", client, "--value", "perhaps")
    assert (code, "perhaps" in error) == (1, False)
    assert "one of the 2 labels of the task" in error
    table = people(tmp_path, ["yes", "perhaps"])
    code, _, error = run("task", "upload", client, table, "--column", "vote")
    assert (code, "perhaps" in error) == (1, False)
    for words in ([], ["--value", "yes", table, "--column", "vote"], [table], ["--column", "vote"]):
        code, _, error = run("task", "upload", client, *words)
        assert code == 2, words
    assert (
        "Invalid value for --column: name the column of the answers"
        in run("task", "upload", client, table)[2]
    )


def test_which_batch_is_wanted_fits_the_task(task: Path, tmp_path: Path) -> None:
    run(*NEW, *URLS, "--batches", "time-interval", "-o", tmp_path / "timed")
    times = ["--start", "2030-01-01T00:00:00Z", "--end", "2030-01-01T01:00:00Z"]
    for folder, words, said in (
        (task, times, "the leader selects the batches"),
        (task, times[:2], "needs --end"),
        (tmp_path / "timed", [], "say which"),
        (tmp_path / "timed", [*times, "--after", "5f0c82d1"], "selects no batches"),
        (task, ["--after", "the first"], "must be the 8 digits and letters"),
        (tmp_path / "timed", ["--start", times[3], "--end", times[1]], "too early"),
        (tmp_path / "timed", [*times[:3], "2030-01-01T00:30:00Z"], "a multiple of 3,600 seconds"),
    ):
        code, _, error = run("task", "result", folder / "collector.json", *words)
        assert code == 2, words
        assert said in error


def test_a_server_is_of_a_collection_or_of_a_task(task: Path, tmp_path: Path) -> None:
    store = ["--store", tmp_path / "x.db"]
    leader = ["--task", task / "leader.json"]
    for words, code, said in (
        ([], 2, "say PLAN, or --task, or both"),
        ([*leader, "--task", task / "helper.json"], 1, "must name each task once"),
        (["plan.json", *leader], 1, "No such file"),
        (["plan.json", "--ca", "x"], 2, "belongs to --task"),
        ([*leader, "--keep", "tally"], 2, "belongs to a PLAN"),
        ([*leader, "--tls-key", "x"], 2, "belong together"),
        (["--task", task / "collector.json"], 1, "is the file of the collector"),
        (["--task", task / "client.json"], 1, "is the file of the client"),
        ([*leader, "--ca", tmp_path / "none"], 1, "No such file"),
        ([tmp_path / "none.json"], 1, "No such file"),
        ([task / "client.json"], 1, "client.json"),
    ):
        found, _, error = run("serve", *words, *store)
        assert (found, said in error) == (code, True), error
        assert not (tmp_path / "x.db").exists(), words


def test_the_store_of_an_aggregator_is_no_collection(task: Path, tmp_path: Path) -> None:
    path = tmp_path / "leader.db"
    with closing(open_store(str(path), "tally")) as store:
        Records(store, LeaderFile.read(task / "leader.json"))
    files = ["report", "-o", tmp_path / "r.html"], ["tally", "-o", tmp_path / "t"]
    for words in (["store", "check"], ["estimate"], *files):
        code, shown, error = run(*words, path)
        assert (code, shown) == (1, ""), words
        assert "get the result with turnout task result" in error, words


def test_the_result_is_shown_and_given_to_programs(
    begin: Callable[..., Round], tmp_path: Path
) -> None:
    round_ = begin()
    round_.client_file.write(tmp_path / "client.json")
    round_.collector_file.write(tmp_path / "collector.json")
    code, shown, _ = run("task", "upload", tmp_path / "client.json", "--value", "a", "--json")
    assert (code, json.loads(shown)) == (0, {"accepted": 1, "refused": {}})
    table = people(tmp_path, ["a", "a", "b", "b"])
    assert run("task", "upload", tmp_path / "client.json", table, "--column", "vote")[0] == 0
    round_.upload(np.array([-1]).tolist())
    code, _, error = run("task", "result", tmp_path / "collector.json", "--wait", 0)
    assert code == 1
    assert "the leader at https://leader.example/dap/ was not ready in time" in error
    assert "wait to be verified; ask again later, or wait longer" in error
    round_.step()
    code, shown, _ = run("task", "result", tmp_path / "collector.json", "--json")
    found: Any = json.loads(shown)
    assert (code, tuple(found["sums"]), found["reports"]) == (0, SUMS, 6)
    assert found["start"] < found["end"]
    code, shown, _ = run("task", "result", tmp_path / "collector.json")
    assert code == 0
    for word in ("reports", found["batch"], "epsilon 1", "a", "b", "c"):
        assert word in shown


def test_files_of_a_task_are_of_one_question(task: Path) -> None:
    path = task / "collector.json"
    found = json.loads(path.read_text())
    found["question"] = json.loads((task / "client.json").read_text())["question"]
    path.write_text(json.dumps(found))
    CollectorFile.read(path)
    found["task"]["vdaf"] = {"type": "Prio3Count"}
    path.write_text(json.dumps(found))
    code, _, error = run("task", "result", path)
    assert code == 1
    assert "measures something else" in error
