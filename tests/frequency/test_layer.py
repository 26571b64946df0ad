"""What is asked of a person knows nothing of what is built on it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import turnout

ROOT = Path(turnout.__file__).parent

ABOVE = {
    *("cli", "datasets", "distributed", "federated", "pipeline", "planning", "ray", "reporting"),
    *("reproduce", "samplers", "weighting"),
}


def imported(path: Path) -> Iterator[str]:
    """All that a file imports, in functions and for type checkers too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_no_file_of_frequency_imports_what_is_built_on_it() -> None:
    files = sorted((ROOT / "frequency").rglob("*.py"))
    assert len(files) > 50
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in imported(path)
        if name.startswith("turnout.") and name.split(".")[1] in ABOVE
    ]
    assert found == []


def test_values_reach_the_kernel_in_at_most_twelve_calls() -> None:
    oracle, values = turnout.DirectEncoding(1.0, 3), np.array([0, 1, 2])
    calls: list[str] = []
    reached = False

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal reached
        reached = reached or (event == "c_call" and argument.__name__ == "randomize")
        path = Path(frame.f_code.co_filename)
        if event == "call" and not reached and path.is_relative_to(ROOT):
            calls.append(f"{path.relative_to(ROOT)}: {frame.f_code.co_name}")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        oracle.randomize(values)
    finally:
        sys.setprofile(before)
    assert reached
    assert len(calls) <= 12, calls
    assert [call for call in calls if call.split("/")[0] in ABOVE] == []


def test_every_layer_above_is_there() -> None:
    assert {name for name in ABOVE if not (ROOT / name).is_dir()} == set()
