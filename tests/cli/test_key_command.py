"""``turnout key``: keys that sign plans."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turnout.signing import SigningKey

Run = Callable[..., Any]


@pytest.mark.parametrize("command", ["new", "public"])
def test_the_help_has_an_example(command: str, turnout: Run) -> None:
    result = turnout("key", command, "--help")
    assert result.exit_code == 0
    assert f"turnout key {command} plans.key" in result.stdout
    assert "public" in turnout("key", "--help").stdout


def test_a_new_key_is_secret_and_its_public_half_is_printed(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "plans.key"
    result = turnout("key", "new", path)
    assert result.exit_code == 0
    key = SigningKey.read(path)
    assert key.public_key in result.stdout
    assert key._secret.hex() not in result.stdout
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert turnout("key", "public", path).stdout == key.public_key + "\n"


def test_a_key_is_not_replaced(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "plans.key"
    turnout("key", "new", path)
    before = path.read_bytes()
    result = turnout("key", "new", path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{path}: File exists" in result.stderr
    assert path.read_bytes() == before


def test_other_files_are_refused(tmp_path: Path, turnout: Run) -> None:
    path = tmp_path / "other"
    path.write_text("{}")
    path.chmod(0o600)
    for given, words in [(path, "not a signing key of turnout"), (tmp_path / "none", "No such")]:
        result = turnout("key", "public", given)
        assert (result.exit_code, result.stdout) == (1, "")
        assert words in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert turnout("key").exit_code == 2
    assert turnout("key", "new").exit_code == 2
