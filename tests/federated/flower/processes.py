"""Flower as it is run: a SuperLink, SuperNodes and ``flwr run`` as processes on loopback."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import turnout
from turnout.accounting import PrivacyLedger

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
PATIENCE = 1200.0


def until(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    """Poll until something is so; the deadline is for machines that are very busy."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {PATIENCE} seconds still waiting for {what()}")
        time.sleep(0.05)


def free_port() -> int:
    """A port that nobody listens at, nor gets from the operating system: those are above."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with contextlib.suppress(OSError), socket.socket() as trying:
            trying.bind(("127.0.0.1", port))
            return port


class Flower:
    """A SuperLink and its SuperNodes; :func:`running` ends all of them.

    With ``certificates``, a folder with ``root.pem``, ``superlink.pem`` and ``superlink.key``, they
    speak over TLS, and the SuperLink takes only nodes with a key that it knows.
    """

    def __init__(self, folder: Path, simulation: bool, certificates: Path | None) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.port = free_port()
        self.processes: list[subprocess.Popen[bytes]] = []
        self.certificates = certificates
        trusted, link = "insecure = true", ["--insecure"]
        if certificates is not None:
            trusted = f'root-certificates = "{certificates / "root.pem"}"'
            link = [
                *("--ssl-certfile", str(certificates / "superlink.pem")),
                *("--ssl-keyfile", str(certificates / "superlink.key")),
                *("--ssl-ca-certfile", str(certificates / "root.pem")),
                "--enable-supernode-auth",
            ]
        (self.home / "config.toml").write_text(
            f'[superlink]\ndefault = "test"\n[superlink.test]\n'
            f'address = "127.0.0.1:{self.port}"\n{trusted}\n'
        )
        package = str(Path(turnout.__file__).parents[1])
        self.environment = {
            **os.environ,
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([package, os.environ.get("PYTHONPATH", "")]),
            "FLWR_HOME": str(self.home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
            "OPENBLAS_NUM_THREADS": "1",
        }
        mode = ["--simulation"] if simulation else []
        self.superlink = self._start(
            "superlink",
            [
                "flower-superlink",
                *link,
                "--host",
                "127.0.0.1",
                "--port",
                str(self.port),
                "--disable-runtime-dependency-installation",
                *mode,
            ],
        )
        until(self._answers, lambda: self.log("superlink"))

    def _answers(self) -> bool:
        if self.superlink.poll() is not None:
            raise RuntimeError(self.log("superlink"))
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
            return True
        return False

    def _start(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(BIN / command[0]), *command[1:]],
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        self.processes.append(process)
        return process

    def log(self, name: str) -> str:
        """What a process printed."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def node(self, number: int, **more: str) -> subprocess.Popen[bytes]:
        """Start a SuperNode with a ledger and a file of answers, on loopback without TLS.

        ``more`` are further words of its configuration.
        """
        return self.connect(number, "--insecure", **more)

    def connect(self, number: int, *options: str, **more: str) -> subprocess.Popen[bytes]:
        """Start a SuperNode with these options."""
        PrivacyLedger(1000.0, 1e-5).write(self.ledger(number))
        answers = self.folder / f"answers-{number}.json"
        config = f'partition-id={number} turnout-ledger="{self.ledger(number)}"'
        for key, value in more.items():
            config += f' {key.replace("_", "-")}="{value}"'
        return self._start(
            f"node-{number}",
            [
                "flower-supernode",
                *options,
                *("--superlink", f"127.0.0.1:{self.port}"),
                *("--port", str(free_port())),
                *("--node-config", f'{config} turnout-answers="{answers}"'),
            ],
        )

    def register(self, key: Path) -> None:
        """Let the SuperLink know the public key of a node."""
        command = [str(BIN / "flwr"), "supernode", "register", str(key), "test"]
        done = subprocess.run(
            command, env=self.environment, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def ledger(self, number: int) -> Path:
        """The file of a node's ledger."""
        return self.folder / f"ledger-{number}.json"

    def rounds(self, number: int) -> int:
        """How many rounds a node's ledger holds."""
        return sum(entry.rounds for entry in PrivacyLedger.read(self.ledger(number)).entries)

    def submit(
        self,
        components: tuple[str, str],
        config: Mapping[str, Any],
        nodes: int | None = None,
        **files: str,
    ) -> Run:
        """Start a run of the trial project; ``nodes`` are those of a simulation.

        ``files`` are contents of its modules, in place of those in the folder.
        """
        number = len(list(self.folder.glob("run-*")))
        folder = self.folder / f"run-{number}"
        project = folder / "trial-project"
        shutil.copytree(
            HERE / "trial", project / "trial", ignore=shutil.ignore_patterns("__pycache__")
        )
        for name, text in files.items():
            (project / "trial" / f"{name}.py").write_text(text)
        values = {"folder": str(folder), **config}
        lines = [
            f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}"
            for key, value in values.items()
        ]
        (project / "pyproject.toml").write_text(
            "[project]\nname = 'trial-project'\nversion = '1.0.0'\ndescription = 'A trial'\n"
            "license = 'Apache-2.0'\ndependencies = ['flwr']\n"
            "[tool.flwr.app]\npublisher = 'trial'\n[tool.flwr.app.components]\n"
            f"serverapp = '{components[0]}'\nclientapp = '{components[1]}'\n"
            "[tool.flwr.app.config]\n" + "\n".join(lines)
        )
        return self.run_project(f"run-{number}", project, folder, nodes=nodes)

    def run_project(
        self, name: str, project: Path, folder: Path, *, nodes: int | None = None, config: str = ""
    ) -> Run:
        """Give a project to the SuperLink."""
        simulated = f"num-supernodes={nodes} client-resources-num-cpus=1 init-args-num-cpus=2"
        options = [] if nodes is None else ["--federation-config", simulated]
        if config:
            options += ["--run-config", config]
        process = self._start(
            f"{name}-log", ["flwr", "run", str(project), "test", "--stream", *options]
        )
        return Run(self, f"{name}-log", folder, process)

    def end(self) -> None:
        """End every process, those that Flower started too."""
        for process in reversed(self.processes):
            process.terminate()
        deadline = time.monotonic() + 15.0
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))
            process.kill()
            process.wait()
        for pid in self._descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _descendants(self) -> list[int]:
        """Processes that know this SuperLink's home, which only what it started does."""
        mark = f"FLWR_HOME={self.home}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found


class Run:
    """A run of a project."""

    def __init__(
        self, flower: Flower, name: str, folder: Path, process: subprocess.Popen[bytes]
    ) -> None:
        self.flower, self.name, self.folder, self.process = flower, name, folder, process

    def wait(self) -> str:
        """Wait for the end and give what was printed."""
        until(lambda: self.process.poll() is not None, self.output)
        return self.output()

    def output(self) -> str:
        """What was printed so far."""
        return self.flower.log(self.name)


@contextlib.contextmanager
def running(
    folder: Path, *, simulation: bool = False, certificates: Path | None = None
) -> Iterator[Flower]:
    """Run a SuperLink."""
    flower = Flower(folder, simulation, certificates)
    try:
        yield flower
    finally:
        flower.end()
