"""The device of ``examples/device``: built once, run on plans, its messages put together."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

import turnout as tn
from turnout.signing import SigningKey

ROOT = Path(__file__).parents[1]
KEY = SigningKey(bytes(range(32)))

Done = subprocess.CompletedProcess[str]


def built() -> Path:
    """The device, built by cargo as ``cargo test`` builds it."""
    cargo = shutil.which("cargo")
    assert cargo is not None, "cargo, the Rust build tool, is needed: https://rustup.rs"
    command = [cargo, "build", "--locked", "--profile", "test", "--package", "turnout-device"]
    done = subprocess.run(
        [*command, "--message-format", "json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, "cargo could not build the device"
    found = [json.loads(line).get("executable") for line in done.stdout.splitlines()]
    return Path(next(place for place in found if place))


class Device:
    """Runs the device on a plan, in an environment without Python."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program, self.path = program, folder / "plan.json"

    def __call__(
        self,
        plan: tn.Plan | Path,
        *arguments: object,
        lines: str = "",
        key: SigningKey | None = KEY,
    ) -> Done:
        path = plan if isinstance(plan, Path) else self.path
        if isinstance(plan, tn.Plan):
            plan.write(path, signing_key=key)
        return subprocess.run(
            [self._program, path, *map(str, arguments)],
            input=lines,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=900,
            check=False,
            env={"PATH": os.devnull},
        )


def gathered(plan: tn.Plan, done: Done, nodes: int) -> tn.Reports:
    """Put the messages together that the device sent."""
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "" or done.stdout.endswith("\n")
    reports: tn.Reports = plan.gather(done.stdout.splitlines(), nodes)
    return reports


def resealed(path: Path, old: str, new: str, plan: tn.Plan) -> Path:
    """Change the text of a plan and its fingerprint with it."""
    plan.write(path)
    text = plan.to_json()
    changed = text.replace(old, new)
    assert changed != text, old
    whole = path.read_text().replace(text, changed)
    path.write_text(whole.replace(plan.fingerprint, hashlib.sha256(changed.encode()).hexdigest()))
    return path
