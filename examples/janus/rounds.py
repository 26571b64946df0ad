"""Rounds of turnout beside a Janus that is installed here: each with one or two of its servers."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from janus import SECONDS, Janus, Roles, free_port

VOTES = ["a"] * 30 + ["b"] * 20 + ["c"] * 10

#: Seconds that the times of reports are multiples of: a batch of a time is soon over.
PRECISION = 5


def turnout(*words: object) -> str:
    """Run a command of turnout to its end."""
    done = subprocess.run(
        [sys.executable, "-m", "turnout", *map(str, words)],
        capture_output=True,
        encoding="utf-8",
        timeout=4 * SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


@contextlib.contextmanager
def served(role: str, folder: Path, port: int) -> Iterator[None]:
    """Run a server of turnout as long as this lasts."""
    words = [folder / "task" / f"{role}.json", "--store", folder / f"{role}.db", "--port", port]
    command = [sys.executable, "-m", "turnout", "serve", "--task", *map(str, words)]
    log = folder / f"{role}.log"
    with log.open("w") as file, subprocess.Popen(command, stderr=file) as process:
        try:
            end = time.monotonic() + SECONDS
            while "Serving" not in log.read_text():
                if time.monotonic() > end or process.poll() is not None:
                    raise RuntimeError(f"the {role} does not start:\n{log.read_text()}")
                time.sleep(0.1)
            yield
        finally:
            process.terminate()


def moment(seconds: int) -> str:
    """Write a time as commands take it."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()


def run(
    theirs: tuple[str, ...],
    batches: str,
    janus: Mapping[str, Janus],
    folder: Path,
    *,
    epsilon: float = 20.0,
    roles: Roles | None = None,
    asked: tuple[str, str] = ("--labels", "a,b,c"),
    answers: Sequence[str] = VOTES,
) -> list[dict[str, Any]]:
    """Run one round, and give the number of reports and the sums of each batch.

    Of batches that the leader selects there are two.

    Parameters
    ----------
    theirs
        Which roles are Janus.
    batches
        ``"leader-selected"`` or ``"time-interval"``.
    janus
        The servers of Janus, by role.
    folder
        A new folder for the files of the round.
    epsilon
        The privacy of a report: of 20 there is hardly any noise.
    roles
        The client and collector of Janus, for rounds of votes where those are Janus.
    asked
        The option of what is asked.
    answers
        The answers of all people.
    """
    folder.mkdir()
    task, ports, ours = folder / "task", {}, []
    urls: list[object] = []
    for role in ("leader", "helper"):
        if role in theirs:
            urls += [f"--{role}", janus[role].address]
        else:
            ports[role] = free_port()
            ours.append(role)
            urls += [f"--{role}", f"http://127.0.0.1:{ports[role]}/"]
    turnout(
        *("task", "new", *asked, "--users", len(answers), "--epsilon", epsilon, *urls),
        *(
            "--batches",
            batches,
            "--time-precision",
            PRECISION,
            "--janus",
            ",".join(theirs),
            "-o",
            task,
        ),
    )
    for role in set(janus) - set(ours):
        janus[role].provision(task / f"{role}.yaml")
    people = folder / "people.csv"
    people.write_text("\n".join(["answer", *answers]) + "\n")

    def upload() -> None:
        if "client" in theirs:
            assert roles is not None
            roles.upload(task / "client.env", [ord(vote) - ord("a") for vote in VOTES])
        else:
            turnout("task", "upload", task / "client.json", people, "--column", "answer")

    with contextlib.ExitStack() as stack:
        for role in ours:
            stack.enter_context(served(role, folder, ports[role]))
        start = int(time.time()) // PRECISION * PRECISION
        upload()
        times = None
        if batches == "time-interval":
            times = start, (int(time.time()) // PRECISION + 1) * PRECISION
            time.sleep(max(0.0, times[1] - time.time()))
        if "collector" in theirs:
            assert roles is not None
            found = [roles.collect(task / "collector.env", times)]
            if batches == "leader-selected":
                upload()
                found.append(roles.collect(task / "collector.env"))
            return found
        interval: list[object] = []
        if times is not None:
            interval = ["--start", moment(times[0]), "--end", moment(times[1])]
        words = ["task", "result", task / "collector.json", *interval, "--wait", 2 * SECONDS]
        found = [batch(*words)]
        if batches == "leader-selected":
            upload()
            found.append(batch(*words, "--after", found[0]["batch"]))
    return found


def batch(*asked: object) -> dict[str, Any]:
    """Get a batch, and once more: it must be the same."""
    found: dict[str, Any] = json.loads(turnout(*asked, "--json"))
    again = json.loads(turnout(*asked, "--json"))
    for member in ("batch", "sums"):
        if again[member] != found[member]:
            raise RuntimeError(f"asked again, {member} is {again[member]}, not {found[member]}")
    return found


ROUNDS = (
    ("helper",),
    ("leader",),
    ("leader", "helper"),
    ("client", "collector"),
    ("helper", "client", "collector"),
    ("leader", "client", "collector"),
)


def main(given: argparse.Namespace) -> None:
    """Run every round, and show what it found."""
    roles = None if given.roles is None else Roles(given.roles)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        janus = {
            role: stack.enter_context(
                Janus(role, given.janus, given.schema, given.postgres, folder)
            )
            for role in ("helper", "leader")
        }
        print(f"{'Janus':<26}{'batches':<17}{'reports':>7}  sums, of a, b, c")
        for batches in ("leader-selected", "time-interval"):
            for number, theirs in enumerate(ROUNDS):
                if "client" in theirs and roles is None:
                    continue
                place = folder / f"{number}-{batches}"
                for found in run(theirs, batches, janus, place, roles=roles):
                    said = f"{', '.join(theirs):<26}{batches:<17}{found['reports']:>7}"
                    print(f"{said}  {found['sums']}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for option, variable, text, kind, needed in (
        ("janus", "TURNOUT_JANUS", "the program janus_aggregator", Path, True),
        ("schema", "TURNOUT_JANUS_SCHEMA", "the folder of its migrations, its db", Path, True),
        (
            "postgres",
            "TURNOUT_JANUS_POSTGRES",
            "postgresql:// of a user that may make databases",
            str,
            True,
        ),
        ("roles", "TURNOUT_JANUS_ROLES", "what roles/ is compiled to", Path, False),
    ):
        value = os.environ.get(variable)
        parser.add_argument(
            f"--{option}",
            type=kind,
            default=None if value is None else kind(value),
            required=needed and value is None,
            help=f"{text}; the variable {variable} if not given",
        )
    main(parser.parse_args())
