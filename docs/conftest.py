"""What doctests of the pages use out of sight: a folder to work in, and the commands shown."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import sysconfig
from pathlib import Path
from typing import Any

import pytest


def shown(page: Path) -> list[list[str]]:
    """Take the ``$ turnout`` commands of a page in their order, continued lines joined."""
    text = re.sub(r"\\\n\s*", " ", page.read_text(encoding="utf-8"))
    return [shlex.split(line) for line in re.findall(r"^ +\$ turnout (.+)$", text, re.MULTILINE)]


@pytest.fixture(autouse=True)
def _pages(
    request: pytest.FixtureRequest,
    doctest_namespace: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Give a page ``new_folder()``, its commands by ``run_commands()``, and ``turnout`` on PATH."""
    # Where the environment is not activated, its programs are not on the path.
    programs = sysconfig.get_path("scripts")
    monkeypatch.setenv("PATH", programs + os.pathsep + os.environ.get("PATH", os.defpath))
    commands = iter(shown(request.node.path))

    def run_commands(count: int | None = None) -> None:
        from typer.testing import CliRunner

        from turnout.cli.app import app

        batch = list(itertools.islice(commands, count))
        assert len(batch) == count or (count is None and batch), "the page shows no more commands"
        for command in batch:
            result = CliRunner().invoke(app, command)
            assert result.exit_code == 0, f"turnout {shlex.join(command)}\n{result.output}"

    def new_folder() -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("MPLBACKEND", "Agg")

    doctest_namespace.update(run_commands=run_commands, new_folder=new_folder)
