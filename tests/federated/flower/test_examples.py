"""The example projects: what flwr takes, and what they do with nodes in this process."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, RecordDict

EXAMPLES = Path(__file__).parents[3] / "examples" / "federated"


@pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")
@pytest.mark.parametrize("name", ["flower_training", "flower_frequency"])
def test_example_projects_are_accepted_by_flwr(name: str) -> None:
    from flwr.cli.build import build_fab_from_disk
    from flwr.cli.config_utils import load_and_validate

    config, warnings = load_and_validate(EXAMPLES / name / "pyproject.toml")
    assert not warnings
    assert build_fab_from_disk(EXAMPLES / name)
    for component in config["tool"]["flwr"]["app"]["components"].values():
        module = component.partition(":")[0]
        assert (EXAMPLES / name / f"{module.replace('.', '/')}.py").exists()


def apps_of(name: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    monkeypatch.syspath_prepend(EXAMPLES / name)
    return tuple(  # type: ignore[return-value]
        importlib.import_module(f"{name}.{side}").app for side in ("server", "client")
    )


def test_frequency(
    grid_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server, client = apps_of("flower_frequency", monkeypatch)
    server(grid_of([client] * 100), Context(1, 0, {}, RecordDict(), {}))
    printed = capsys.readouterr().out
    assert "of 100 nodes reported" in printed
    assert " never: " in printed


def test_training(
    grid_of: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    random = np.random.default_rng(0)
    for part, number in (("train", 2500), ("t10k", 50)):
        labels = random.integers(0, 10, number).astype(np.uint8)
        # Images of one number are alike, so that there is something to learn.
        images = np.zeros((number, 28, 28), np.uint8)
        images[np.arange(number), labels] = 255
        header = struct.pack(">IIII", 0x803, number, 28, 28)
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(header + images.tobytes())
        header = struct.pack(">II", 0x801, number)
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(header + labels.tobytes())
    monkeypatch.chdir(tmp_path)
    server, client = apps_of("flower_training", monkeypatch)
    config = {"data": str(tmp_path)}
    grid = grid_of([client] * 3)
    for context in grid.contexts:
        context.run_config = config
    server(grid, Context(1, 0, {}, RecordDict(), config))
    assert "epsilon = 2.000 at delta = 1e-05" in capsys.readouterr().out
    model = np.load("model.npz")
    assert model["weights"].shape == (784, 10)
    assert np.abs(model["weights"]).max() > 0.0
