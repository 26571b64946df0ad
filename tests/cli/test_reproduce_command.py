"""``turnout reproduce``: the list, tables, files, refusals."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turnout_reproduce import EXPERIMENTS

Run = Callable[..., Any]


def test_the_list_names_everything_and_runs_nothing(turnout: Run, tmp_path: Path) -> None:
    result = turnout("reproduce", "--list", "-o", tmp_path / "none")
    assert result.exit_code == 0
    assert all(experiment.name in result.stdout for experiment in EXPERIMENTS)
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert not (tmp_path / "none").exists()


def test_tables_say_what_was_found_and_files_are_saved(turnout: Run, tmp_path: Path) -> None:
    result = turnout("reproduce", "sampling/figure-3", "-o", tmp_path)
    assert result.exit_code == 0, result.stderr
    for text in ("sampling/figure-3", "not printed", "paper is", "agrees", "±"):
        assert text in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "pictures and results.json are in" in result.stderr
    assert (tmp_path / "sampling" / "figure-3.png").stat().st_size > 10_000
    assert json.loads((tmp_path / "results.json").read_text())["seed"] == 1


def test_json_is_what_the_file_holds(turnout: Run, tmp_path: Path) -> None:
    result = turnout(
        "reproduce", "sampling/figure-3", "-o", tmp_path, "--json", "--seed", 4, "--quick"
    )
    assert json.loads(result.stdout) == json.loads((tmp_path / "results.json").read_text())
    assert json.loads(result.stdout)["seed"] == 4


@pytest.mark.parametrize("names", [(), ("nothing",), ("sampling/figure-9",)])
def test_unknown_names_are_wrong_usage(
    turnout: Run, tmp_path: Path, names: tuple[str, ...]
) -> None:
    result = turnout("reproduce", *names, "-o", tmp_path / "none")
    assert result.exit_code == 2
    assert not (tmp_path / "none").exists()


def test_without_its_distribution_one_line_names_the_pip_command(
    turnout: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in list(sys.modules):
        if module.partition(".")[0] == "turnout_reproduce":
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "turnout_reproduce", None)
    for options in (["--list"], ["all", "-o", "x"], ["--help"]):
        result = turnout("reproduce", *options)
        assert result.exit_code == 1
        assert result.stdout == ""
        assert result.stderr == (
            "error: turnout_reproduce is needed for this and is not installed: "
            "pip install 'turnout[reproduce]'\n"
        )
    assert "reproduce" in turnout("--help").stdout
