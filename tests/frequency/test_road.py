"""The road of values to the kernel is short and runs one way."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import turnout

ROOT = Path(turnout.__file__).parent

ABOVE = {
    *("cli", "distributed", "federated", "pipeline", "planning", "ray", "reporting"),
    *("samplers", "weighting"),
}


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
