"""The files of ``examples/serve`` do what they say; ``test_containers`` builds the image."""

from __future__ import annotations

import configparser
import contextlib
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml
from tests.serve.databases import Database
from tests.serve.waiting import PATIENCE

import turnout as tn
from turnout.serve.storage.opening import open_store

EXAMPLES = Path(__file__).parents[2] / "examples" / "serve"
PLAN = tn.Plan(tn.DirectEncoding(1.0, ["no", "yes"]), tn.Everyone())

COMPOSE = yaml.safe_load((EXAMPLES / "compose.yaml").read_text(encoding="utf-8"))
SERVICES = COMPOSE["services"]
SERVER = SERVICES["server-1"]


def unit() -> list[str]:
    """The command of the systemd unit."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(EXAMPLES / "turnout.service", encoding="utf-8")
    return shlex.split(parser["Service"]["ExecStart"])


def image(word: str) -> list[str]:
    """The command of the image, or its arguments by default."""
    text = (EXAMPLES / "Containerfile").read_text(encoding="utf-8")
    (line,) = re.findall(rf"^{word} (.*)$", text, re.MULTILINE)
    found: list[str] = json.loads(line)
    return found


def started(words: list[str], places: dict[str, str], **environment: str) -> str:
    """Run a command with other places, send it a message, and give what it says."""
    assert set(places) <= set(words)
    words = [places.get(word, word) for word in words]
    # The first word is the program, wherever it was installed.
    with subprocess.Popen(
        [sys.executable, "-m", "turnout", *words[1:]],
        env={**os.environ, **environment},
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if found := re.match(r"Serving http://[\d.]+:(\d+)", line):
                address = f"http://127.0.0.1:{found[1]}/reports"
                answer = httpx.post(address, content=message(), timeout=PATIENCE)
                assert answer.json() == {"accepted": 1, "duplicates": 0, "refused": {}}
                process.terminate()
        process.wait(PATIENCE)
    return said


def message() -> bytes:
    made = PLAN.report("yes")
    assert made is not None
    return made


@pytest.fixture
def plans(tmp_path: Path) -> str:
    """A folder with a plan."""
    folder = tmp_path / "plans"
    folder.mkdir()
    PLAN.write(folder / "plan.json")
    return str(folder)


@pytest.mark.slow
def test_the_command_of_the_unit_runs(plans: str, tmp_path: Path) -> None:
    words = unit()
    assert words[:2] == ["/opt/turnout/bin/turnout", "serve"]
    store = str(tmp_path / "reports.db")
    places = {"/etc/turnout/plans": plans, "/var/lib/turnout/reports.db": store, "8080": "0"}
    assert "ended; everything" in started(words, places)
    assert read(store) == 1


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    text = (EXAMPLES / "turnout.service").read_text(encoding="utf-8")
    target = tmp_path / "turnout.service"
    # It looks for the program too.
    target.write_text(text.replace("/opt/turnout/bin/turnout", sys.executable))
    command = ["systemd-analyze", "verify", "--man=no", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # Of 100: how much the server could do to the machine.
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_command_of_the_image_runs(plans: str, tmp_path: Path) -> None:
    words = [*image("ENTRYPOINT"), *image("CMD")]
    store = str(tmp_path / "reports.db")
    started(words, {"/plans": plans, "/data/reports.db": store, "8080": "0"})
    assert read(store) == 1


@pytest.mark.slow
def test_the_containers_run_on_one_postgresql_with_a_password(
    plans: str, database: Database
) -> None:
    said = SERVICES["database"]["environment"]
    # Both read the password at one place.
    assert said["POSTGRES_PASSWORD"].startswith("${PASSWORD:?")
    assert SERVER["environment"] == {"PGPASSWORD": "${PASSWORD}"}
    assert (said["POSTGRES_USER"], said["POSTGRES_DB"]) == ("turnout", "reports")
    address = SERVER["command"][1]
    here = address.replace("@database/", f"@127.0.0.1:{database.port}/")
    assert (address, here.count("127.0.0.1")) == ("postgresql://turnout@database/reports", 1)
    with database.guarded("reports", "a secret"):
        words = [*image("ENTRYPOINT"), *SERVER["command"]]
        places = {"/plans": plans, address: here, "8080": "0"}
        refused = started(words, places, PGPASSWORD="another")
        assert "password authentication failed" in refused
        assert "Serving" not in refused
        for _ in range(2):
            assert "Serving" in started(words, places, PGPASSWORD="a secret")
        assert read(here.replace("turnout@", "turnout:a%20secret@")) == 2


def test_the_containers_find_each_other() -> None:
    servers, proxy = [SERVICES["server-1"], SERVICES["server-2"]], SERVICES["proxy"]
    assert [{**each, "ports": None} for each in servers] == 2 * [{**SERVER, "ports": None}]
    ports = [each["ports"][0].split(":") for each in servers]
    assert {inside for _, _, inside in ports} == {image("ENTRYPOINT")[-1]}
    lines = (EXAMPLES / "two_servers.conf").read_text(encoding="utf-8").split("\n")
    assert lines == [*(f"server {host}:{port};" for host, port, _ in ports), ""]
    assert proxy["network_mode"] == "host"
    assert f":{image('ENTRYPOINT')[-1]}/health'" in SERVER["healthcheck"]["test"][-1]
    for service in SERVICES.values():
        assert set(service.get("depends_on", [])) <= SERVICES.keys()
        for needed in service.get("depends_on", []):
            assert "healthcheck" in SERVICES[needed]
    included = re.findall(r"include (\S+);", (EXAMPLES / "nginx.conf").read_text(encoding="utf-8"))
    mounted = [volume.split(":")[1] for volume in proxy["volumes"]]
    assert {f"/etc/nginx/{name}" for name in ["nginx.conf", *included]} <= set(mounted)
    for volume in proxy["volumes"]:
        source = volume.split(":")[0]
        assert not source.startswith("./") or (EXAMPLES / source).is_file()


def read(store: str) -> int:
    """How many messages are in a store."""
    opened = open_store(store)
    with opened.reading() as reading:
        found = reading.remembered()
    opened.close()
    return found


def test_the_bare_handler_of_the_benches_stores_what_it_is_sent(tmp_path: Path) -> None:
    """The handler stores what it is sent, or it would be no measure."""
    program = Path(__file__).parents[2] / "benches" / "bare_handler.py"
    sent = [message() for _ in range(3)]
    for unit, rows in (("rows", sent), ("requests", [b"\n".join(sent)])):
        store = tmp_path / f"{unit}.db"
        command = [sys.executable, str(program), str(store), unit]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            address = process.stderr.readline().split()[1]
            body = b"\n".join(sent)
            httpx.post(f"{address}/reports", content=body, timeout=PATIENCE).raise_for_status()
            # What was answered is on the disk.
            process.kill()
        with contextlib.closing(sqlite3.connect(store)) as connection:
            assert connection.execute("SELECT bytes FROM stored").fetchall() == [
                (one,) for one in rows
            ]
