"""Starts the processes of a round on this machine, and reads what they say."""

from __future__ import annotations

import itertools
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from turnout.distributed import Party, Role, Round, TwoStageSampling

HERE = Path(__file__).parent

#: For how many seconds a process may say nothing; generous, for machines under load.
_PATIENCE = 600.0


class Process:
    """One process, its lines of JSON, and how it ended."""

    def __init__(self, script: str, *arguments: object) -> None:
        command = [sys.executable, HERE / script, *arguments]
        self._process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        self.name = " ".join(map(str, (script, *arguments)))
        self.killed = False
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._events.put(json.loads(line))
        self._events.put(None)

    def wait_for(self, *events: str) -> dict[str, Any]:
        """Wait for one of some events."""
        while True:
            try:
                event = self._events.get(timeout=_PATIENCE)
            except queue.Empty:
                raise TimeoutError(f"{self.name} says nothing") from None
            if event is None:
                raise ChildProcessError(f"{self.name} ended without saying {' or '.join(events)}")
            if event["event"] in events:
                return event

    def end(self) -> dict[str, Any]:
        """Wait for the end of the round in this process: "done" or "failed"."""
        event = self.wait_for("done", "failed")
        code = self._process.wait(_PATIENCE)
        if (code == 0) != (event["event"] == "done"):
            raise ChildProcessError(f"{self.name} ended with {code} after {event}")
        return event

    def tell(self, line: str) -> None:
        """Write a line to its standard input; one that has ended does not hear it."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def signal(self, number: int) -> None:
        """Send it a signal, to stop it or to let it go on."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once (SIGKILL), and wait until it is gone."""
        self.killed = True
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Leave nothing of it behind."""
        self.kill()
        self._reader.join()
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()


class Deployment:
    """The processes of one round.

    Parameters
    ----------
    round_
        The round; everybody gets it in a file.
    answers
        One item for each user whose device is started. Every device reads its own only.
    folder
        Where the files of this run are.
    user_processes
        Over how many processes the devices are spread.
    first_user
        The index of the first of these users.
    tls
        Whether the processes speak TLS, with certificates that are made for this run.
    options
        Further options of all processes.
    """

    def __init__(
        self,
        round_: Round,
        answers: Sequence[Any],
        folder: Path,
        *,
        user_processes: int = 2,
        first_user: int = 0,
        tls: bool = False,
        options: Sequence[object] = (),
    ) -> None:
        self.round = round_
        self.two_stage = isinstance(round_.mechanism, TwoStageSampling)
        self.user_processes = user_processes
        self._folder = folder
        parts = range(user_processes + 1)
        edges = [first_user + len(answers) * part // user_processes for part in parts]
        self._slices = [(first, last - first) for first, last in itertools.pairwise(edges)]
        (folder / "round.json").write_bytes(round_.to_bytes())
        listed = [None] * first_user + list(answers)
        (folder / "answers.json").write_text(json.dumps(listed), encoding="utf-8")
        self._options = ["--round", folder / "round.json", *options]
        self._users_options = [*self._options, "--answers", folder / "answers.json"]
        #: The collectors and the server by party; the processes of devices.
        self.processes: dict[Party, Process] = {}
        self.users: list[Process] = []
        self.book: list[dict[str, Any]] = []
        if tls:
            self._make_certificates()
            tls_options = ["--certificates", folder]
            self._options += tls_options
            self._users_options += tls_options

    def _make_certificates(self) -> None:
        """Make an authority, and a certificate for every process."""
        try:
            import trustme
        except ImportError:
            sys.exit("error: certificates need trustme: pip install trustme")
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(self._folder / "authority.pem"))
        names = [str(party).removeprefix("the ") for party in self._collectors()]
        names += ["server", *(f"users {first} {first + count}" for first, count in self._slices)]
        for name in names:
            issued = authority.issue_cert("127.0.0.1", common_name=name)
            issued.private_key_and_cert_chain_pem.write_to_path(str(self._folder / f"{name}.pem"))

    def _collectors(self) -> list[Party]:
        if self.two_stage:
            return [Party(Role.REPORTING_SERVER)]
        parties: int = self.round.mechanism._number_of_parties  # type: ignore[attr-defined]
        return [Party(Role.AGGREGATOR, index) for index in range(parties)]

    def __enter__(self) -> Deployment:
        """Start everything but the devices of one-stage rounds, which only send."""
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def _start(self) -> None:
        for party in self._collectors():
            if party.role is Role.AGGREGATOR:
                process = Process("aggregator.py", "--index", party.index, *self._options)
            else:
                process = Process("reporting_server.py", *self._options)
            self.processes[party] = process
        server = Process("server.py", *self._options)
        self.processes[Party(Role.SERVER)] = server
        listening = list(self.processes.values())
        if self.two_stage:
            for part in range(len(self._slices)):
                self._start_users(part)
            listening += self.users
        self.book = [process.wait_for("listening")["place"] for process in listening]
        for process in self.processes.values():
            process.tell(json.dumps(self.book))

    def _start_users(self, part: int) -> None:
        first, count = self._slices[part]
        arguments = ("--first", first, "--count", count, *self._users_options)
        self.users.append(Process("users.py", *arguments))

    def restart_users(self, part: int) -> Process:
        """Kill the devices of a part of two-stage sampling, and start them without their state."""
        self.users[part].close()
        self._start_users(part)
        started = self.users.pop()
        self.users[part] = started
        started.wait_for("listening")
        return started

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave no process behind."""
        self.close()

    def close(self) -> None:
        """End all processes."""
        for process in [*self.processes.values(), *self.users]:
            process.close()

    def report(self, parts: Sequence[int] | None = None) -> list[dict[str, Any]]:
        """Let the devices report, or those of some of the processes; say how these ended."""
        chosen = range(len(self._slices)) if parts is None else parts
        if not self.two_stage:
            for part in chosen:
                self._start_users(part)
        acting = self.users if self.two_stage else self.users[-len(chosen) :]
        for process in acting:
            process.tell(json.dumps(self.book))
        return [process.end() for process in acting]

    def kill(self, party: Party) -> None:
        """Kill the process of a party."""
        self.processes[party].kill()

    def close_collection(self) -> None:
        """Let the collectors wait for no more users."""
        for party in self._collectors():
            self.processes[party].tell("close")

    def ends(self) -> dict[Party, dict[str, Any]]:
        """Say how the round ended for the collectors and the server, but those that were killed.

        If a collector is lost, the server is told not to wait for it.
        """
        found: dict[Party, dict[str, Any]] = {}
        server = Party(Role.SERVER)
        for party in self._collectors():
            if not self.processes[party].killed:
                found[party] = self.processes[party].end()
        collected = [end for end in found.values() if end["event"] == "done"]
        if len(collected) < len(self._collectors()):
            self.processes[server].tell("give up")
        found[server] = self.processes[server].end()
        return found
