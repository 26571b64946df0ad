"""What Node's own test runner tries of the client of browsers: its outbox, and altered plans."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.serve import clients
from tests.serve.clients import HERE, KEY, NODE, needs_node, text_of

import turnout as tn


def passes(name: str, **environment: str) -> None:
    assert NODE is not None
    done = subprocess.run(
        [NODE, "--test", HERE / name],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("version", "taken"), [("v18.20.4", False), ("v20.0.0", True), ("v100.1.0", True)]
)
def test_an_older_node_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, taken: bool
) -> None:
    program = tmp_path / "node"
    program.write_text(f"#!/bin/sh\necho {version}\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert clients.find_node() == (str(program) if taken else None)


@needs_node
def test_an_outbox_keeps_what_was_not_acknowledged(tmp_path: Path) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, ["no", "yes"]), tn.Everyone(), serial=3)
    text_of(plan, tmp_path)
    passes("outbox.test.mjs", PLAN_FILE=str(tmp_path / "plan.json"))


@needs_node
def test_altered_plans_are_read_or_refused_in_bounded_time() -> None:
    passes("fuzz.test.mjs")


@needs_node
def test_a_server_takes_what_an_outbox_sends(tmp_path: Path, run: Callable[..., Any]) -> None:
    plan = tn.Plan(tn.DirectEncoding(1.0, ["no", "yes"]), tn.Everyone())
    text_of(plan, tmp_path)
    server = run(tmp_path / "plan.json", tmp_path / "reports.db", ["--least", 1])
    try:
        passes("sends.test.mjs", PUBLIC_KEY=KEY.public_key, SERVER=server.address)
        assert server.results()["received"] == 3
    finally:
        server.kill()
