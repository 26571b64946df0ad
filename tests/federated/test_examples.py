"""The programs that train on handwritten digits, where what they need is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples/federated/digits"
DATA = Path(os.environ.get("TURNOUT_DATA", Path(__file__).parents[3] / "shared/data"))

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("library", ["jax", "torch"])
@pytest.mark.parametrize(("data", "rounds", "least"), [("digits", 80, 0.8), ("mnist", 20, 0.7)])
def test_a_network_learns(
    library: str, data: str, rounds: int, least: float, tmp_path: Path
) -> None:
    pytest.importorskip(library)
    if data == "digits":
        pytest.importorskip("sklearn")
    else:
        pytest.importorskip("turnout_reproduce")
        if not (DATA / "mnist-train-images-idx3-ubyte.gz").exists():
            pytest.skip("the files of MNIST are not in TURNOUT_DATA")
    picture = tmp_path / "history.png"
    done = subprocess.run(
        [
            sys.executable, FOLDER / f"with_{library}.py", data, "--folder", DATA, "--seed", "1",
            "--rounds", str(rounds), "--picture", picture,
        ],
        capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.search(r"accuracy ([\d.]+) on .* epsilon ([\d.]+) at delta", done.stdout)
    assert found is not None, done.stdout
    assert float(found[1]) > least
    assert float(found[2]) <= {"digits": 8.0, "mnist": 2.0}[data]
    assert picture.stat().st_size > 1000


def test_at_the_same_epsilon_less_trust_costs_accuracy() -> None:
    pytest.importorskip("sklearn")
    done = subprocess.run(
        [sys.executable, FOLDER / "equal_epsilon.py", "digits", "--seeds", "2"],
        capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = re.findall(r"^(.*?)  +noise +([\d.]+) .* accuracy ([\d.]+)", done.stdout, re.MULTILINE)
    noise = {name: float(value) for name, value, _ in found}
    accuracy = {name: float(value) for name, _, value in found}
    assert len(found) == 7
    central, participation = "central, as with Opacus", "random participation"
    # The noise that each accounting asks for, which is exact; what it costs, roughly.
    assert noise[central] < noise[participation] < noise["weak client sampling"]
    assert noise["weak client sampling"] < noise["only local sampling"]
    assert accuracy["no privacy"] > accuracy[participation] > 0.85
    assert accuracy[participation] > accuracy["each participant's noise"] + 0.1
    assert accuracy["each participant's noise"] > accuracy["every client's noise"]
