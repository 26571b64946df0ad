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
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from janus import SECONDS, Janus, free_port

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
    theirs: str, batches: str, janus: dict[str, Janus], folder: Path, epsilon: float = 20.0
) -> list[dict[str, Any]]:
    """Run one round, and give what ``turnout task result --json`` says of each batch.

    Of batches that the leader selects there are two.

    Parameters
    ----------
    theirs
        Which servers are Janus: ``"leader"``, ``"helper"`` or ``"both"``.
    batches
        ``"leader-selected"`` or ``"time-interval"``.
    janus
        The servers of Janus, by role.
    folder
        A new folder for the files of the round.
    epsilon
        The privacy of a report: of 20 there is hardly any noise.
    """
    folder.mkdir()
    task, ports, ours = folder / "task", {}, []
    urls: list[object] = []
    for role in ("leader", "helper"):
        if theirs in (role, "both"):
            urls += [f"--{role}", janus[role].address]
        else:
            ports[role] = free_port()
            ours.append(role)
            urls += [f"--{role}", f"http://127.0.0.1:{ports[role]}/"]
    turnout(
        *("task", "new", "--labels", "a,b,c", "--users", len(VOTES), "--epsilon", epsilon, *urls),
        *("--batches", batches, "--time-precision", PRECISION, "--janus", theirs, "-o", task),
    )
    for role in set(janus) - set(ours):
        janus[role].provision(task / f"{role}.yaml")
    people = folder / "people.csv"
    people.write_text("\n".join(["vote", *VOTES]) + "\n")
    with contextlib.ExitStack() as stack:
        for role in ours:
            stack.enter_context(served(role, folder, ports[role]))
        start = int(time.time()) // PRECISION * PRECISION
        turnout("task", "upload", task / "client.json", people, "--column", "vote")
        interval: list[object] = []
        if batches == "time-interval":
            end = (int(time.time()) // PRECISION + 1) * PRECISION
            interval = ["--start", moment(start), "--end", moment(end)]
            time.sleep(max(0.0, end - time.time()))
        asked = ["task", "result", task / "collector.json", *interval, "--wait", 2 * SECONDS]
        found = [batch(*asked)]
        if batches == "leader-selected":
            turnout("task", "upload", task / "client.json", people, "--column", "vote")
            found.append(batch(*asked, "--next"))
    return found


def batch(*asked: object) -> dict[str, Any]:
    """Get a batch, and once more: it must be the same."""
    found: dict[str, Any] = json.loads(turnout(*asked, "--json"))
    again = json.loads(turnout(*(word for word in asked if word != "--next"), "--json"))
    if again["sums"] != found["sums"]:
        raise RuntimeError(f"asked again, the sums are {again['sums']}, not {found['sums']}")
    return found


def main(given: argparse.Namespace) -> None:
    """Run every round, and show what it found."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        janus = {
            role: stack.enter_context(
                Janus(role, given.janus, given.schema, given.postgres, folder)
            )
            for role in ("helper", "leader")
        }
        print(f"{'Janus':<8}{'batches':<17}{'reports':>7}  sums, of a, b, c")
        for batches in ("leader-selected", "time-interval"):
            for theirs in ("helper", "leader", "both"):
                for found in run(theirs, batches, janus, folder / f"{theirs}-{batches}"):
                    said = f"{theirs:<8}{batches:<17}{found['reports']:>7}  {found['sums']}"
                    print(said, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for option, variable, text, kind in (
        ("janus", "TURNOUT_JANUS", "the program janus_aggregator", Path),
        ("schema", "TURNOUT_JANUS_SCHEMA", "the folder of its migrations, its db", Path),
        (
            "postgres",
            "TURNOUT_JANUS_POSTGRES",
            "postgresql:// of a user that may make databases",
            str,
        ),
    ):
        value = os.environ.get(variable)
        parser.add_argument(
            f"--{option}",
            type=kind,
            default=None if value is None else kind(value),
            required=value is None,
            help=f"{text}; the variable {variable} if not given",
        )
    main(parser.parse_args())
