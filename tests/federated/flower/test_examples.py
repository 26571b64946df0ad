"""The example projects: what flwr takes, and what they do with nodes in this process."""

from __future__ import annotations

import importlib
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
    server, client = apps_of("flower_training", monkeypatch)
    written = tmp_path / "model.npz"
    config = {"rounds": 20, "epsilon": 2.0, "nodes": 3, "output": str(written)}
    server(grid_of([client] * 3), Context(1, 0, {}, RecordDict(), config))
    assert "epsilon = 2.000 at delta = 1e-05" in capsys.readouterr().out
    model = dict(np.load(written))
    images, labels = importlib.import_module("flower_training.model").public_images()
    found = (images @ model["weights"] + model["bias"]).argmax(axis=1)
    # In 60 trainings the accuracy was 0.76 to 0.89; a guess gets 0.1.
    assert np.mean(found == labels) > 0.3
