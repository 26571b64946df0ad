"""Records drawn by tasks of Ray are those that this machine would draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import turnout as tn
from turnout.pipeline import records


@pytest.mark.slow
def test_the_records_are_those_of_this_machine(
    ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "_PEOPLE", 8)
    rows = pd.DataFrame({"age": np.random.default_rng(1).integers(17, 91, 90), "sex": "f"})
    users = [row % 30 for row in range(90)]
    sampler = tn.samplers.TableSampler(3.0, {"age": (17, 91), "sex": ["f", "m"]})
    here = tn.pipeline.sample(sampler, rows, users, tmp_path / "here", seed=7)
    there = tn.ray.sample(sampler, rows, users, tmp_path / "there", seed=7)
    assert here.draws.equals(there.draws)
    assert here.users.tolist() == there.users.tolist()
    again = tn.ray.sample(sampler, rows, users, tmp_path / "here", resume=True)
    assert again.draws.equals(here.draws)
