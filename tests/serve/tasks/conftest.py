"""Rounds whose parties end with the test."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serve.tasks.rounds import Round


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Round]]:
    """What begins a round, half an hour after a full hour: none ends while the test runs."""
    begun: list[Round] = []
    clock = time.time
    later = (1805 - clock()) % 3600
    monkeypatch.setattr(time, "time", lambda: clock() + later)

    def start(**more: Any) -> Round:
        one = Round(tmp_path, monkeypatch, **more)
        begun.append(one)
        return one

    yield start
    for one in begun:
        one.stop()
