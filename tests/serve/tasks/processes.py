"""Aggregators as processes of their own, on the loopback."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tests.serve.waiting import PATIENCE, free_port, until


def run(*words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "turnout", *map(str, words)],
        capture_output=True,
        encoding="utf-8",
        timeout=2 * PATIENCE,
        check=False,
    )
    assert not check or done.returncode == 0, done.stderr
    return done


class Parties:
    """A task whose aggregators are processes.

    Parameters
    ----------
    folder
        Where all files are.
    new
        Options of ``turnout task new``.
    certificate, key
        What the servers show; None to speak without TLS.
    ports
        Where the servers listen; by default where nobody does.
    """

    def __init__(
        self,
        folder: Path,
        *new: object,
        certificate: Path | None = None,
        key: Path | None = None,
        ports: dict[str, int] | None = None,
    ) -> None:
        self.folder, self.task = folder, folder / "task"
        self.ports = ports or {role: free_port() for role in ("leader", "helper")}
        self.tls: list[object] = []
        self.ca: list[object] = []
        scheme = "http"
        if certificate is not None:
            scheme, self.ca = "https", ["--ca", certificate]
            self.tls = ["--tls-certificate", certificate, "--tls-key", key]
        self.urls = {role: f"{scheme}://localhost:{port}/" for role, port in self.ports.items()}
        urls = [word for role, url in self.urls.items() for word in (f"--{role}", url)]
        self.made = run("task", "new", "--labels", "a,b,c", *urls, *new, "-o", self.task)
        self.running: dict[str, subprocess.Popen[str]] = {}

    def start(self, *roles: str, also: Sequence[object] = ()) -> None:
        """Start aggregators, which serve something else too, and wait until they answer."""
        for role in roles:
            words = ["serve", "--task", self.task / f"{role}.json", "--store"]
            words += [self.folder / f"{role}.db", "--port", self.ports[role], *self.tls]
            words += [*(self.ca if role == "leader" else []), *also]
            log = (self.folder / f"{role}.log").open("a")
            self.running[role] = subprocess.Popen(
                [sys.executable, "-m", "turnout", *map(str, words)], stderr=log, text=True
            )
            log.close()
        for role in roles:
            until(partial(self._answers, role), partial(self.log, role))

    def _answers(self, role: str) -> bool:
        assert self.running[role].poll() is None, self.log(role)
        try:
            socket.create_connection(("127.0.0.1", self.ports[role]), PATIENCE).close()
        except OSError:
            return False
        return True

    def log(self, role: str) -> str:
        return (self.folder / f"{role}.log").read_text()

    def kill(self, role: str, number: int = signal.SIGKILL) -> int:
        """End an aggregator; gives its exit code."""
        process = self.running.pop(role)
        os.kill(process.pid, number)
        return process.wait(PATIENCE)

    def stop(self) -> None:
        for role in list(self.running):
            self.kill(role)

    def upload(self, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        return run("task", "upload", self.task / "client.json", *words, *self.ca, check=check)

    def result(self, *words: object, check: bool = True) -> Any:
        """Get the result as an object; or, unchecked, what the command ended with."""
        wait = () if "--wait" in words else ("--wait", PATIENCE)
        words = ("task", "result", self.task / "collector.json", *words, *wait, *self.ca)
        done = run(*words, *(["--json"] if check else []), check=check)
        return json.loads(done.stdout) if check else done


def people(folder: Path, votes: Sequence[str]) -> Path:
    """Write a file with a row for each person."""
    path = folder / "people.csv"
    path.write_text("\n".join(["vote", *votes]) + "\n")
    return path
