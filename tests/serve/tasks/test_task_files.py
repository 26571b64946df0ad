"""The files of a task: what is written is read, and nothing else is."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import math
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

import turnout as tn
from turnout import _core
from turnout.errors import CorruptDataError, InvalidValueError, UnsupportedVersionError
from turnout.serve.storage.opening import open_store
from turnout.serve.tasks.files import (
    ClientFile,
    CollectorFile,
    HelperFile,
    LeaderFile,
    read_aggregator,
)
from turnout.serve.tasks.making import NAMES, Batches, new_task, write_task
from turnout.serve.tasks.reading import bytes_of
from turnout.serve.tasks.records import Records
from turnout.serve.tasks.vdaf import Vdaf

KINDS: dict[str, Any] = {
    kind.role: kind for kind in (LeaderFile, HelperFile, ClientFile, CollectorFile)
}
MECHANISM = tn.distributed.VerifiedAggregation(["yes", "no"], 100, epsilon=1.0, delta=0.0)
COUNTED = dataclasses.replace(MECHANISM, none_counted=True)


def made(**more: Any) -> list[Any]:
    given = {"leader": "https://a.example", "helper": "https://b.example/x", **more}
    return new_task(COUNTED if "janus" in more else MECHANISM, **given)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The folder of a task."""
    folder = tmp_path / "task"
    write_task(made(), folder)
    return folder


def test_what_is_written_is_read(tmp_path: Path) -> None:
    files = made(batches=Batches(mode="time_interval", seconds=60, time_precision=60))
    write_task(files, tmp_path / "task")
    for file in files:
        found = KINDS[file.role].read(tmp_path / "task" / NAMES[file.role])
        assert found.to_dict() == file.to_dict()
        assert found.task == file.task
        assert found.task.dap.to_bytes() == file.task.dap.to_bytes()
    leader, helper, *_ = files
    assert read_aggregator(tmp_path / "task" / "helper.json").to_dict() == helper.to_dict()
    assert leader.noise == helper.noise
    assert leader.noise.parameter == MECHANISM.parameter
    assert (leader.task.min_batch_size, leader.batch_reports) == (50, 100)


def test_parties_share_no_secret_that_they_need_not(task: Path) -> None:
    texts = {role: (task / name).read_text() for role, name in NAMES.items()}
    read: Any = {role: json.loads(text) for role, text in texts.items()}
    secrets = {
        "leader": [read["leader"]["hpke_key"]["private_key"], read["leader"]["helper_token"]],
        "helper": [read["helper"]["hpke_key"]["private_key"]],
        "collector": [read["collector"]["hpke_key"]["private_key"], read["collector"]["token"]],
    }
    for owner, kept in secrets.items():
        for secret in kept:
            assert [role for role, text in texts.items() if secret in text] == [owner]
    assert "verify_key" not in read["client"]
    assert "verify_key" not in read["collector"]


def test_nothing_secret_is_shown(task: Path) -> None:
    for role, name in NAMES.items():
        shown = repr(KINDS[role].read(task / name))
        for key, value in json.loads((task / name).read_text()).items():
            if key in ("helper_token", "token", "verify_key"):
                assert value not in shown
            if key == "hpke_key":
                assert value["private_key"] not in shown


def test_a_task_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: object, path: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ClientFile, "write", fail)
    with pytest.raises(OSError, match="No space"):
        write_task(made(), tmp_path / "task")
    assert list(tmp_path.iterdir()) == []


def test_a_task_is_not_written_over_another(task: Path) -> None:
    before = (task / "leader.json").read_bytes()
    with pytest.raises(FileExistsError, match="take a new folder"):
        write_task(made(), task)
    assert (task / "leader.json").read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_files_that_others_can_read_are_refused(task: Path) -> None:
    for role in ("leader", "helper", "collector"):
        path = task / NAMES[role]
        path.chmod(0o644)
        with pytest.raises(InvalidValueError, match="other users can read this key: run chmod 600"):
            KINDS[role].read(path)


def test_the_file_of_another_role_is_named_whoever_can_read_it(task: Path) -> None:
    assert (task / "client.json").stat().st_mode & 0o044
    with pytest.raises(CorruptDataError, match="is the file of the client; expected that"):
        CollectorFile.read(task / "client.json")
    with pytest.raises(CorruptDataError, match=r"a server takes leader\.json or helper\.json"):
        read_aggregator(task / "collector.json")
    with pytest.raises(CorruptDataError, match="is the file of the client; a server takes"):
        read_aggregator(task / "client.json")


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "format": lambda found: found.update(format="x"),
    "more": lambda found: found.update(more=1),
    "no task": lambda found: found.pop("task"),
    "id": lambda found: found["task"].update(id="AAAA"),
    "address": lambda found: found["task"].update(leader="ftp://x"),
    "password": lambda found: found["task"].update(leader="https://me:x@host/"),
    "precision": lambda found: found["task"].update(time_precision=0),
    "mode": lambda found: found["task"].update(batch_mode="all"),
    "vdaf": lambda found: found["task"]["vdaf"].update(type="Prio4"),
    "length": lambda found: found["task"]["vdaf"].update(length=-1),
    "huge": lambda found: found["task"]["vdaf"].update(length=10**30),
    "noise": lambda found: found["noise"].update(parameter=0),
    "loud": lambda found: found["noise"].update(parameter=1e9),
    "nan": lambda found: found["noise"].update(parameter=float("nan")),
    "key": lambda found: found["hpke_key"].update(private_key="AAAA"),
    "verify": lambda found: found.update(verify_key="AAAA"),
    "token": lambda found: found.update(helper_token="a b"),
    "hash": lambda found: found.update(collector_token_hash="x"),
    "reports": lambda found: found.update(batch_reports=True),
    "interval": lambda found: found["task"].update(interval=[1]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_no_task_file_is_refused(task: Path, change: str) -> None:
    path = task / "leader.json"
    found = json.loads(path.read_text())
    CHANGES[change](found)
    path.write_text(json.dumps(found))
    with pytest.raises(CorruptDataError, match=r"leader\.json") as caught:
        read_aggregator(path)
    for secret in (found.get("helper_token"), found["hpke_key"]["private_key"]):
        assert secret in ("AAAA", "a b") or str(secret) not in str(caught.value)


def test_a_question_of_more_answers_than_prio3_counts_is_refused(task: Path) -> None:
    path = task / "client.json"
    found = json.loads(path.read_text())
    found["question"].update(domain={"integers": 2**24}, none_counted=True)
    path.write_text(json.dumps(found))
    with pytest.raises(CorruptDataError, match=r"client\.json: question: length must be"):
        ClientFile.read(path)


@pytest.mark.parametrize("config", ["AAAA", 1, "!", ""])
def test_a_key_of_the_helper_that_clients_cannot_use_is_refused(task: Path, config: Any) -> None:
    path = task / "client.json"
    found = json.loads(path.read_text())
    assert ClientFile.read(path).helper_config == HelperFile.read(task / "helper.json").key.config
    path.write_text(json.dumps({**found, "helper_hpke_config": config}))
    with pytest.raises(CorruptDataError, match=r"client\.json: .*helper_hpke_config"):
        ClientFile.read(path)


def test_a_later_version_is_named(task: Path) -> None:
    path = task / "leader.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(UnsupportedVersionError, match="has version 2"):
        read_aggregator(path)


@pytest.mark.parametrize("text", ["", "[]", "{", "plan", '{"format": "turnout-task"}'])
def test_what_is_no_document_is_refused(task: Path, text: str) -> None:
    path = task / "leader.json"
    path.write_text(text)
    with pytest.raises(CorruptDataError, match="is not a task file"):
        read_aggregator(path)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"leader": "a.example"}, "leader must be an address"),
        ({"leader": "https://b.example/x"}, "must be two servers"),
        ({"batches": Batches(mode="all")}, "mode must be one of"),
        ({"batches": Batches(least=101)}, "least must be an integer from 1 to 100"),
        ({"batches": Batches(time_precision=0)}, "time_precision"),
    ],
)
def test_a_task_that_cannot_be_is_refused(more: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        made(**more)


def test_both_aggregators_need_stores_of_their_own(tmp_path: Path) -> None:
    leader, helper, *_ = made()
    store = open_store(str(tmp_path / "one.db"), "tally")
    Records(store, leader)
    Records(store, leader)
    with pytest.raises(CorruptDataError, match="needs a store of its own"):
        Records(store, helper)
    store.close()


def test_every_instance_of_prio3_can_be_a_task() -> None:
    for description in (
        {"type": "Prio3Count"},
        {"type": "Prio3Sum", "max_measurement": 100},
        {"type": "Prio3SumVec", "length": 3, "max_measurement": 7, "chunk_length": 2},
        {"type": "Prio3Histogram", "length": 5, "chunk_length": 2},
        {"type": "Prio3MultihotCountVec", "length": 5, "chunk_length": 2, "max_weight": 2},
    ):
        vdaf = Vdaf.from_dict(description)
        assert vdaf.to_dict() == description
        assert vdaf.prio3.algorithm_id == vdaf.number
        public, shares = vdaf.prio3.shard(b"", [0] * _values(vdaf), bytes(16))
        assert len(public) + sum(map(len, shares)) < vdaf.report_bytes


def _values(vdaf: Vdaf) -> int:
    return vdaf.prio3.length if "Vec" in vdaf.kind else 1


def read_by_janus(path: Path) -> Any:
    """Read YAML, whose tags become a member ``!``."""

    class Tagged(yaml.SafeLoader):
        """Reads any tag."""

    def tagged(loader: Any, suffix: str, node: Any) -> Any:
        return {"!": suffix, **loader.construct_mapping(node, deep=True)}

    Tagged.add_multi_constructor("!", tagged)
    # The loader is a safe one with objects for tags.
    (found,) = yaml.load(path.read_text(), Tagged)
    return found


@pytest.mark.parametrize("mode", ["leader_selected", "time_interval"])
def test_what_janus_is_told_is_what_the_others_are_told(tmp_path: Path, mode: str) -> None:
    expires = datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc)
    files = made(janus=("leader", "helper"), batches=Batches(mode=mode), expires=expires)
    paths = write_task(files, tmp_path / "task", ("leader", "helper"))
    assert {path.stat().st_mode & 0o777 for role, path in paths.items() if role != "client"} == {
        0o600
    }
    leader, helper, _, collector = files
    found = {role: read_by_janus(paths[role]) for role in ("leader", "helper")}
    for role, told in found.items():
        assert told["task_id"] == leader.task.name
        assert told["role"] == role.capitalize()
        assert told["own_aggregator_endpoint"] == getattr(leader.task, role)
        assert bytes_of(told["vdaf_verify_key"]) == leader.verify_key
        assert bytes_of(told["task_info"]) == leader.task.info
        assert (told["task_start"], told["task_duration"]) == leader.task.interval
        assert told["min_batch_size"] == leader.task.min_batch_size
        assert told["vdaf"]["!"] == "Prio3Histogram"
        assert told["vdaf"]["length"] == MECHANISM.domain.size + 1
        strategy = told["vdaf"]["dp_strategy"]
        assert strategy["dp_strategy"] == "PureDpDiscreteLaplace"
        digits = strategy["budget"]["epsilon"]
        over, under = (sum(each << 32 * at for at, each in enumerate(one)) for one in digits)
        assert Fraction(over, under) * Fraction(MECHANISM.parameter) == 2
        config = told["collector_hpke_config"]
        assert config["id"] == collector.key.config_id
        assert collector.key.config.endswith(bytes_of(config["public_key"]))
        assert isinstance(told["batch_mode"], str) == (mode == "time_interval")
    token = found["leader"]["aggregator_auth_token"]
    assert token == {"type": "Bearer", "token": leader.helper_token}
    for told, secret in (
        (found["helper"]["aggregator_auth_token_hash"], leader.helper_token),
        (found["leader"]["collector_auth_token_hash"], collector.token),
    ):
        assert bytes_of(told["hash"]) == hashlib.sha256(secret.encode()).digest()
    assert helper.leader_token_hash != leader.helper_token


def test_only_noise_that_janus_draws_is_asked_of_it() -> None:
    wrong = tn.distributed.VerifiedAggregation(
        2, 100, epsilon=1.0, noise="discrete_gaussian", delta=1e-6, none_counted=True
    )
    urls = {"leader": "https://a.example", "helper": "https://b.example"}
    with pytest.raises(InvalidValueError, match="noise must be 'discrete_laplace' in a task with"):
        new_task(wrong, **urls, janus=("helper",))
    with pytest.raises(InvalidValueError, match="got Prio3MultihotCountVec: pass none_counted"):
        new_task(MECHANISM, **urls, janus=("helper",))


@pytest.mark.parametrize("janus", [(), ("helper",)])
def test_a_question_says_whether_no_votes_are_counted(
    tmp_path: Path, janus: tuple[str, ...]
) -> None:
    """Whoever reads the sums of a histogram sees about how many did not vote."""
    files = made(janus=janus) if janus else made()
    path = tmp_path / "client.json"
    wrong = dataclasses.replace(files[2], question=MECHANISM if janus else COUNTED)
    wrong.write(path)
    with pytest.raises(CorruptDataError, match="the vdaf of the task measures something else"):
        ClientFile.read(path)


def test_the_noise_of_janus_is_that_of_the_participation(tmp_path: Path) -> None:
    partly = dataclasses.replace(COUNTED, participation=0.1, parameter=None)
    urls = {"leader": "https://a.example", "helper": "https://b.example"}
    files = new_task(partly, **urls, janus=("helper",))
    path = write_task(files, tmp_path / "task", ("helper",))["helper"]
    digits = read_by_janus(path)["vdaf"]["dp_strategy"]["budget"]["epsilon"]
    over, under = (sum(each << 32 * at for at, each in enumerate(one)) for one in digits)
    # Janus divides two by it: the chance .1 of e^(2/scale), or else of 1, is e at most.
    loss = float(Fraction(over, under))
    assert math.log1p(0.1 * math.expm1(loss)) == pytest.approx(1.0, rel=1e-9)
    assert ClientFile.read(tmp_path / "task" / "client.json").question == partly


def test_a_verify_key_is_as_long_as_the_draft_says() -> None:
    leader, *_ = made()
    assert len(leader.verify_key) == 32
    assert _core.DAP_VERSION == "dap-18"
