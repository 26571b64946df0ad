"""The application around the commands: help, version, missing extras, termination, demo."""

from __future__ import annotations

import importlib.util
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnout as tn
from turnout import cli
from turnout.cli.app import run

Run = Callable[..., Any]


def test_version_is_the_packages(turnout: Run) -> None:
    result = turnout("--version")
    assert result.exit_code == 0
    assert result.stdout == f"turnout {tn.__version__}\n"


@pytest.mark.parametrize("command", ["randomize", "tally", "estimate", "demo"])
def test_every_command_explains_itself_with_an_example(turnout: Run, command: str) -> None:
    result = turnout(command, "--help")
    assert result.exit_code == 0
    assert "Example" in result.stdout
    assert f"turnout {command}" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_unknown_commands_are_wrong_usage(turnout: Run) -> None:
    assert turnout("randomise").exit_code == 2


@pytest.mark.parametrize("package", ["typer", "rich", "pyarrow"])
def test_a_missing_package_is_one_line_with_the_pip_command(
    package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else find_spec(name)
    )
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == (
        f"error: the command line needs {package}: pip install 'turnout[cli]'\n"
    )


def test_the_entry_point_runs_the_application(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(sys, "argv", ["turnout", "--version"])
    try:
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert stopped.value.code in (0, None)
    assert capsys.readouterr().out.startswith("turnout ")
    assert callable(run)


def test_demo_shows_results_and_saves_one_picture(tmp_path: Path, turnout: Run) -> None:
    pytest.importorskip("statsmodels")
    folder = tmp_path / "new" / "pictures"
    result = turnout("demo", "--output", folder, "--seed", 1)
    assert result.exit_code == 0
    for text in ("How do you rate your marriage?", "very good", "ε = 0.5", "truth", "6,366"):
        assert text in result.stdout
    assert "of the 42 intervals hold the truth" in result.stdout
    assert max(map(len, result.stdout.splitlines()[:-1])) <= 80
    (picture,) = folder.iterdir()
    assert result.stdout.endswith(f"The picture: {picture}\n")
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 20_000


def test_demo_repeats_with_a_seed_and_differs_without(tmp_path: Path, turnout: Run) -> None:
    pytest.importorskip("statsmodels")
    first, again, other = (
        turnout("demo", "-o", tmp_path, *options).stdout
        for options in (("--seed", 5), ("--seed", 5), ())
    )
    assert first == again
    assert first != other


def test_demo_without_statsmodels_says_what_to_install(
    tmp_path: Path, turnout: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] == "statsmodels":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    result = turnout("demo", "-o", tmp_path)
    assert result.exit_code == 1
    assert "pip install 'turnout[demo]'" in result.stderr
    assert list(tmp_path.iterdir()) == []
