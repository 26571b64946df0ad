"""A PostgreSQL of the tests, on this machine, with nothing in it."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.serve.waiting import PATIENCE, free_port

#: Wait until it is done, however long it takes.
WAIT = ("-w", "-t", int(PATIENCE))


def binaries() -> Path | None:
    """The folder of PostgreSQL's programs; None if there are none."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "postgres").exists()), None)


class Database:
    """A server of PostgreSQL, which never runs as root.

    Attributes
    ----------
    address
        Where its database is.
    """

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._user = None
        if os.geteuid() == 0:
            users = {one.pw_name for one in pwd.getpwall()}
            self._user = "postgres" if "postgres" in users else "nobody"
        self.folder = Path(tempfile.mkdtemp(prefix="turnout-postgresql-"))
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self.port = free_port()
        self._data = self.folder / "data"
        self._run("initdb", "-D", self._data, "-U", "turnout", "-A", "trust", "--no-sync")
        self.start()
        self.address = f"postgresql://turnout@127.0.0.1:{self.port}/postgres"

    def _run(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            [str(self._programs / program), *map(str, arguments)],
            user=self._user,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=2 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stdout

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder}"
        log = self.folder / "log"
        self._run("pg_ctl", "start", *WAIT, "-D", self._data, "-o", options, "-l", log)

    def stop(self, how: str = "fast") -> None:
        self._run("pg_ctl", "stop", *WAIT, "-D", self._data, "-m", how)

    @contextlib.contextmanager
    def guarded(self, name: str, password: str) -> Iterator[None]:
        """Have a database more, for who knows the password, as long as this lasts."""
        rules = self._data / "pg_hba.conf"
        before = rules.read_text(encoding="utf-8")
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
            connection.execute(f"ALTER USER turnout PASSWORD '{password}'")
            rules.write_text(f"host {name} all 127.0.0.1/32 scram-sha-256\n{before}")
            connection.execute("SELECT pg_reload_conf()")
            yield
            rules.write_text(before)
            connection.execute("SELECT pg_reload_conf()")
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder)


def database() -> Iterator[Database]:
    """A running server, or none where PostgreSQL is not installed."""
    programs = binaries()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (on Debian: apt install postgresql)")
    pytest.importorskip("psycopg")
    made = Database(programs)
    yield made
    made.remove()
