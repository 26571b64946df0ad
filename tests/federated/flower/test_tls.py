"""A deployment over TLS: the commands of the documentation, and nodes that are refused."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from turnout.accounting import PrivacyLedger
from turnout.federated import RandomParticipationSGD

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "topics" / "flower.rst"
PROJECT = ROOT / "examples" / "federated" / "flower_training"
ROUNDS = 2
PLAN = RandomParticipationSGD(
    0.5, 0.5, 1.0, epsilon=2.0, delta=1e-5, rounds=ROUNDS, local_size=500, mode="always_send"
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("openssl") and shutil.which("ssh-keygen")),
        reason="the commands of the page need openssl and ssh-keygen",
    ),
]


def documented(folder: Path) -> Path:
    """Run the commands of the page that make certificates and keys."""
    folder.mkdir()
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    commands = [line.strip() for line in lines if re.match(r" +(openssl|ssh-keygen) ", line)]
    assert len(commands) == 5
    for command in commands:
        subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True)
    return folder


def test_digits_are_trained_over_tls_and_strangers_are_refused(
    processes: ModuleType, tmp_path: Path
) -> None:
    ours, other = documented(tmp_path / "ours"), documented(tmp_path / "other")
    with processes.running(tmp_path / "flower", certificates=ours) as flower:
        for number in range(2):
            flower.register(ours / f"node-{number}.key.pub")

        def connect(number: int, root: Path, key: Path, *more: str) -> None:
            options = ["--root-certificates", root, "--auth-supernode-private-key", key]
            flower.connect(number, *map(str, options), *more)

        for number in range(2):
            connect(number, ours / "root.pem", ours / f"node-{number}.key")
        # One that trusts another root, one whose key nobody registered, one that does not encrypt.
        connect(2, other / "root.pem", ours / "node-0.key", "--max-retries", "1")
        connect(3, ours / "root.pem", other / "node-0.key", "--max-retries", "1")
        flower.connect(4, "--insecure", "--max-retries", "1")

        written = tmp_path / "model.npz"
        config = f"rounds={ROUNDS} nodes=2 output='{written}'"
        output = flower.run_project("digits", PROJECT, tmp_path, config=config).wait()
        assert written.exists(), output
        assert "epsilon = 2.000 at delta = 1e-05" in output
        assert output.count("2 nodes are asked") == ROUNDS
        assert [flower.rounds(number) for number in range(5)] == [ROUNDS, ROUNDS, 0, 0, 0]
        reasons = ["CERTIFICATE_VERIFY_FAILED", "Failed to activate SuperNode", "Failed to init"]
        for number, reason in zip(range(2, 5), reasons, strict=True):
            processes.until(
                lambda: reason in flower.log(f"node-{number}"),  # noqa: B023 (called at once)
                lambda: flower.log(f"node-{number}"),  # noqa: B023
            )
    for number in range(2):
        entries = PrivacyLedger.read(flower.ledger(number)).entries
        assert {entry.mechanism for entry in entries} == {PLAN.mechanism}
    # The file holds the model whose accuracy the server measured after the last round.
    model = dict(np.load(written))
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(PROJECT)
        images, labels = importlib.import_module("flower_training.model").public_images()
    accuracy = np.mean((images @ model["weights"] + model["bias"]).argmax(axis=1) == labels)
    assert f"'accuracy': {accuracy}" in output.split("Global evaluation")[-1]
    assert np.abs(model["weights"]).max() > 0.0
