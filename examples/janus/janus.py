"""Janus on this machine: its processes, with a database of PostgreSQL for each role."""

from __future__ import annotations

import base64
import json
import os
import secrets
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

#: What both aggregators of Janus are told; addresses are of the loopback.
DATABASE = """\
database:
  url: "{database}"
  check_schema_version: false
health_check_listen_address: "127.0.0.1:{health}"
"""
AGGREGATOR = """\
listen_address: "127.0.0.1:{port}"
max_upload_batch_size: 100
max_upload_batch_write_delay_ms: 50
batch_aggregation_shard_count: 4
key_rotator:
  frequency_s: 3600
  hpke: {{}}
"""
CREATOR = """\
tasks_update_frequency_s: 1
aggregation_job_creation_interval_s: 1
min_aggregation_job_size: 1
max_aggregation_job_size: 500
batch_aggregation_shard_count: 4
"""
DRIVER = """\
job_discovery_interval_s: 1
max_concurrent_job_workers: 4
worker_lease_duration_s: 600
worker_lease_clock_skew_allowance_s: 60
maximum_attempts_before_failure: 10
batch_aggregation_shard_count: 4
"""

#: The processes of each role, and what each is told beside the database.
PROCESSES = {
    "helper": {"aggregator": AGGREGATOR},
    "leader": {
        "aggregator": AGGREGATOR,
        "aggregation_job_creator": CREATOR,
        "aggregation_job_driver": DRIVER,
        "collection_job_driver": DRIVER,
    },
}

SECONDS = 60.0

#: The order of Field128: sums are its elements, and what noise made negative is just below it.
ORDER = 2**66 * 4611686018427387897 + 1


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


class Janus:
    """An aggregator of Janus: as many processes as its role needs, and a database.

    Parameters
    ----------
    role
        ``"leader"`` or ``"helper"``.
    program
        The program ``janus_aggregator``.
    schema
        The folder of its migrations, SQL.
    postgres
        The address of a PostgreSQL, as a user that may make databases and extensions.
    folder
        Where its configuration and its logs are written.
    """

    def __init__(self, role: str, program: Path, schema: Path, postgres: str, folder: Path) -> None:
        self.role, self._program, self._postgres = role, program, postgres
        self._folder = folder / f"janus-{role}"
        self._folder.mkdir()
        self._database = f"janus_{role}_{secrets.token_hex(4)}"
        place = urlsplit(postgres)
        self._own = urlunsplit(place._replace(path=f"/{self._database}"))
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}/"
        key = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        self._environment = {**os.environ, "DATASTORE_KEYS": key, "RUST_LOG": "warn"}
        self._running: list[subprocess.Popen[bytes]] = []
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {self._database}".encode())
        with psycopg.connect(self._own) as connection:
            for file in sorted(schema.glob("*.up.sql")):
                connection.execute(file.read_bytes())

    def __enter__(self) -> Janus:
        """Start its processes, and wait until the aggregator answers."""
        try:
            for name, text in PROCESSES[self.role].items():
                command = [self._program, name, "--config-file", self._configured(name, text)]
                with (self._folder / f"{name}.log").open("wb") as log:
                    self._running.append(
                        subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
                    )
            end = time.monotonic() + SECONDS
            while not self._answers():
                if time.monotonic() > end or self._running[0].poll() is not None:
                    raise RuntimeError(f"Janus does not start:\n{self.log()}")
                time.sleep(0.1)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exception: Any) -> None:
        """End its processes, and remove its database."""
        self.stop()

    def stop(self) -> None:
        """End its processes, and remove its database."""
        for process in self._running:
            process.terminate()
        for process in self._running:
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running = []
        with psycopg.connect(self._postgres, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {self._database} WITH (FORCE)".encode())

    def provision(self, task: Path) -> None:
        """Give it a task: the file that ``turnout task new --janus`` wrote."""
        config = self._configured("janus_cli", "")
        done = subprocess.run(
            [self._program, "janus_cli", "--config-file", config, "provision-tasks", task],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=SECONDS,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"Janus does not take {task}:\n{done.stdout}")

    def log(self) -> str:
        """Give what its processes said."""
        return "\n".join(path.read_text() for path in sorted(self._folder.glob("*.log")))

    def _configured(self, name: str, text: str) -> Path:
        path = self._folder / f"{name}.yaml"
        head = DATABASE.format(database=self._own, health=free_port())
        path.write_text(head + text.format(port=self.port))
        return path

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True


@dataclass(frozen=True)
class Roles:
    """The client and the collector of Janus.

    Attributes
    ----------
    program
        What ``roles/`` beside this file is compiled to.
    """

    program: Path

    def upload(self, variables: Path, buckets: Sequence[int]) -> None:
        """Upload a report for each number of a bucket."""
        self._run(variables, ["upload"], "\n".join(map(str, buckets)))

    def collect(self, variables: Path, times: tuple[int, int] | None = None) -> dict[str, Any]:
        """Get a batch: its number of reports, and its sums without that of no vote."""
        interval = [] if times is None else [str(times[0]), str(times[1] - times[0])]
        said = self._run(variables, ["collect", *interval])
        found = dict(line.split(": ", 1) for line in said.splitlines())
        sums = json.loads(found["sums"])[:-1]
        sums = [each - ORDER if each > ORDER // 2 else each for each in sums]
        return {"reports": int(found["reports"]), "sums": sums}

    def _run(self, variables: Path, words: Sequence[str], given: str = "") -> str:
        """Run the program with the variables of a file."""
        named = dict(line.split("=", 1) for line in variables.read_text().splitlines())
        done = subprocess.run(
            [self.program, *words],
            env={**os.environ, **named},
            input=given,
            capture_output=True,
            timeout=4 * SECONDS,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
        return done.stdout
