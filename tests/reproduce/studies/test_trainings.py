"""The study of accountings: its noise, its curves, and a run that is killed."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turnout.accounting import LocalSampling, WeakClientSampling, paper
from turnout.errors import CorruptDataError, InvalidTypeError, InvalidValueError, PlanMismatchError
from turnout.federated.checkpoint import read_checkpoint
from turnout_reproduce.datasets import ImageSplit
from turnout_reproduce.studies.study import Study
from turnout_reproduce.studies.trainings import TrainingRecord
from turnout_reproduce.training.scenarios import Arm, Scenario, arms_of

PAPER = Scenario("many clients", 23264, 30, client_rate=0.001, sample_rate=0.1)
EVERY_ARM = dict.fromkeys(["none", "unsound", "sound", "wcs", "ols"], 0.1)

#: A program that trains a small model slowly, so that it can be killed in the middle.
PROGRAM = """
import sys, time
import numpy as np
from turnout_reproduce.datasets import Images, ImageSplit
from turnout.federated.checkpoint import read_checkpoint
from turnout_reproduce.training.scenarios import Arm, Scenario
from turnout_reproduce.studies.trainings import compare_trainings

PAUSE = float(sys.argv[2])


class Linear:
    calls = 0

    def __init__(self, seed):
        self.seed = seed

    def initial_parameters(self):
        return {"weights": np.random.default_rng(self.seed).normal(0, 0.1, (16, 3))}

    def _outputs(self, parameters, images):
        scores = images.reshape(len(images), -1) / 255 @ parameters["weights"]
        odds = np.exp(scores - scores.max(1, keepdims=True))
        return odds / odds.sum(1, keepdims=True)

    def per_example_gradients(self, parameters, images, labels):
        time.sleep(PAUSE)
        Linear.calls += 1
        errors = self._outputs(parameters, images) - np.eye(3)[labels]
        return {"weights": (images.reshape(len(images), -1) / 255)[:, :, None] * errors[:, None]}

    def accuracy(self, parameters, images, labels):
        return float((self._outputs(parameters, images).argmax(1) == labels).mean())


def images(number, seed):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 3, number).astype(np.uint8)
    pixels = generator.integers(0, 200, (number, 4, 4))
    pixels[np.arange(number), labels] += 55
    return Images(pixels.astype(np.uint8), labels)


ARMS = [Arm("none", "no privacy", 0.0, 0.5, False), Arm("sound", "sound", 1.0, 0.5, True)]


def study(folder, rounds=40, data=ImageSplit(images(400, 1), images(200, 2)), arms=ARMS, **options):
    scenario = Scenario("small", 40, 10, client_rate=0.5, sample_rate=0.5)
    settings = dict(epsilon=1.0, delta=1e-6, rounds=rounds, every=4, seeds=[7, 8], progress=False)
    return compare_trainings(
        [(scenario, arms)], data, Linear, **{**settings, **options}, folder=folder
    )


if __name__ == "__main__":
    study(sys.argv[1])
"""


@pytest.fixture(scope="module")
def small() -> dict[str, Any]:
    """What the program defines, in this process and without pauses."""
    names: dict[str, Any] = {"__name__": "small"}
    given, sys.argv = sys.argv, ["small", "nowhere", "0"]
    try:
        exec(PROGRAM, names)
    finally:
        sys.argv = given
    return names


def test_noise_is_that_of_the_paper_where_the_paper_is_right() -> None:
    arms = {arm.name: arm for arm in arms_of(PAPER, 0.015, 1e-6, EVERY_ARM)}
    assert list(arms) == ["none", "sound", "wcs", "ols", "unsound"]
    assert arms["none"].noise_multiplier == 0.0
    # Printed as 7.65 and 22.4, rounded down.
    assert arms["wcs"].noise_multiplier == pytest.approx(7.66512, abs=1e-5)
    assert arms["ols"].noise_multiplier == pytest.approx(22.49746, abs=1e-5)
    assert arms["sound"].noise_multiplier == pytest.approx(2.37328, abs=1e-5)
    assert arms["unsound"].noise_multiplier == pytest.approx(2.37150, abs=1e-5)
    assert [arm.keeps_target for arm in arms.values()] == [False, True, True, True, False]
    for name in ("sound", "wcs", "ols"):
        assert arms[name].mechanism(PAPER).delta(0.015) <= 1e-6
    assert arms["unsound"].mechanism(PAPER).delta(0.015) > 1.004e-6


def test_other_ways_of_trust_have_the_noise_that_keeps_the_same_target() -> None:
    wanted = dict.fromkeys(["central", "sound", "wcs", "each", "every"], 0.1)
    scenario = Scenario("small", 400, 5, client_rate=0.5, sample_rate=0.2)
    arms = {arm.name: arm for arm in arms_of(scenario, 1.0, 1e-6, wanted, rounds=20)}
    assert all(arm.keeps_target for arm in arms.values())
    for arm in arms.values():
        assert arm.mechanism(scenario).compose(20).epsilon(1e-6) <= 1.0
    assert arms["central"].noise_multiplier < arms["sound"].noise_multiplier
    # Who sees the participants is protected from by the bound of weak client sampling alone.
    assert arms["each"].noise_multiplier == arms["wcs"].noise_multiplier
    assert arms["each"].mechanism(scenario) == WeakClientSampling(
        0.5, 0.2, arms["wcs"].noise_multiplier
    )
    assert arms["every"].noise_multiplier == arms["sound"].noise_multiplier
    plans = {name: arm.plan(scenario, 1.0, 7) for name, arm in arms.items()}
    assert plans["each"].mode == "participants_only"
    assert plans["each"].noise_multiplier == arms["each"].noise_multiplier
    # 400 noises add up to one that is 20 times as large.
    assert plans["every"].noise_multiplier == 20 * arms["every"].noise_multiplier
    central = plans["central"]
    assert (central.client_rate, central.sample_rate, central.local_size) == (1.0, 0.1, 2000)
    assert central.mechanism.delta(1.0) == pytest.approx(
        LocalSampling(0.1, central.noise_multiplier or 0).delta(1.0)
    )


def test_the_claimed_noise_is_the_largest_at_which_the_formula_says_delta() -> None:
    (arm,) = arms_of(PAPER, 0.015, 1e-6, {"unsound": 0.1})
    noises = np.geomspace(arm.noise_multiplier * (1 + 1e-6), 60, 50)
    assert all(paper.theorem_4_1_delta(0.015, 0.001, 0.1, 30, noise) <= 1e-6 for noise in noises)
    near = paper.theorem_4_1_delta(0.015, 0.001, 0.1, 30, arm.noise_multiplier)
    assert near == pytest.approx(1e-6, rel=1e-6)


def test_where_the_formula_asks_for_no_noise_there_is_no_such_arm() -> None:
    few = Scenario("few clients", 697, 1000, client_rate=0.1, sample_rate=0.001)
    arms = arms_of(few, 0.015, 1e-6, EVERY_ARM)
    assert [arm.name for arm in arms] == ["none", "sound", "wcs", "ols"]
    assert [round(arm.noise_multiplier, 5) for arm in arms[1:]] == pytest.approx(
        [0.80866, 0.87387, 1.10354], abs=1.1e-5
    )


def test_unknown_arms_and_impossible_scenarios_are_refused(small: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match=r"keys among none, central, .* got 'shuffle'"):
        arms_of(PAPER, 0.015, 1e-6, {"shuffle": 1.0})
    with pytest.raises(InvalidValueError, match="rounds must be 1 with the arm 'unsound', got 2"):
        arms_of(PAPER, 0.015, 1e-6, {"unsound": 1.0}, rounds=2)
    with pytest.raises(InvalidValueError, match="client_rate must be a probability"):
        Scenario("none", 10, 10, client_rate=0.0, sample_rate=0.5)
    with pytest.raises(InvalidValueError, match="clients must be an integer of at least 1"):
        Scenario("none", 0, 10, client_rate=0.5, sample_rate=0.5)
    data = ImageSplit(small["images"](399, 1), small["images"](10, 2))
    with pytest.raises(InvalidValueError, match="'small' needs 400 examples, got 399"):
        small["study"](None, data=data)


def test_a_study_learns_and_noise_costs_accuracy(small: dict[str, Any], tmp_path: Path) -> None:
    study: Study[TrainingRecord] = small["study"](tmp_path)
    free, noisy = ([row for row in study.records if row.arm == arm] for arm in ("none", "sound"))
    assert [row.rounds for row in free] == list(range(4, 41, 4))
    last = free[-1]
    assert last.accuracy > 0.8
    assert last.accuracy == pytest.approx(np.mean(last.accuracies))
    assert last.accuracy_error == pytest.approx(abs(np.diff(last.accuracies)[0]) / 2)
    assert [row.accuracy for row in noisy] != [row.accuracy for row in free]
    assert last.proven_delta is None
    assert noisy[0].proven_delta > 0
    with pytest.raises(InvalidValueError, match=r"no record with .*'ols'"):
        study.find(arm="ols")
    assert study.settings["seeds"] == [7, 8]
    json.dumps([study.settings, study.to_records()])


def test_what_was_done_is_not_done_again(small: dict[str, Any], tmp_path: Path) -> None:
    model = small["Linear"]
    model.calls = 0
    small["study"](tmp_path, rounds=20)
    half = model.calls
    first = small["study"](tmp_path)
    # Rounds without any participant ask for no gradients; there are 40 rounds of 4 trainings, and
    # each training that begins tries one client's gradients before it pays.
    assert 79 <= half <= 84
    assert half + 75 <= model.calls <= half + 84
    done = model.calls
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert small["study"](tmp_path).records == first.records
    assert model.calls == done
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    # Without a folder, and at one go, it is the same.
    assert small["study"](None).records == first.records


@pytest.mark.parametrize("lost", ["file", "line", "checkpoint"])
def test_what_is_lost_is_done_again(small: dict[str, Any], tmp_path: Path, lost: str) -> None:
    first = small["study"](tmp_path)
    path = tmp_path / "small-sound-7.json"
    content = json.loads(path.read_text())
    del content["accuracies"][3 if lost == "line" else -1]
    if lost == "file":
        path.unlink()
    else:
        path.write_text(json.dumps(content))
    if lost == "checkpoint":
        (tmp_path / "small-sound-7.checkpoint").unlink()
    assert small["study"](tmp_path).records == first.records


def test_a_folder_of_another_study_is_refused(small: dict[str, Any], tmp_path: Path) -> None:
    small["study"](tmp_path, rounds=4)
    with pytest.raises(PlanMismatchError, match=r"small-none-7\.json is of a study with other"):
        small["study"](tmp_path, clip=2.0)
    (tmp_path / "small-none-7.json").write_text("{")
    with pytest.raises(CorruptDataError, match=r"small-none-7\.json is damaged"):
        small["study"](tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX")
def test_a_killed_run_ends_with_the_same_bits(small: dict[str, Any], tmp_path: Path) -> None:
    program, folder = tmp_path / "program.py", tmp_path / "parts"
    program.write_text(PROGRAM)
    kills = 0
    # The second training is in the middle, then the third, then a fourth time from there.
    for name, entries in (("small-none-7", 2), ("small-sound-7", 3), ("small-sound-8", 2)):
        running = subprocess.Popen([sys.executable, program, folder, "0.02"])
        deadline = time.monotonic() + 600
        try:
            while running.poll() is None and time.monotonic() < deadline:
                path = folder / f"{name}.json"
                if path.exists() and len(json.loads(path.read_text())["accuracies"]) >= entries:
                    os.kill(running.pid, signal.SIGKILL)
                    kills += 1
                    break
                time.sleep(0.005)
        finally:
            running.kill()
            running.wait()
    assert kills == 3
    resumed = small["study"](folder)
    whole = small["study"](tmp_path / "whole")
    assert resumed.records == whole.records
    for arm in ("none", "sound"):
        for seed in (7, 8):
            name = f"small-{arm}-{seed}.checkpoint"
            ours, theirs = (
                read_checkpoint(folder / name),
                read_checkpoint(tmp_path / "whole" / name),
            )
            assert ours.round == theirs.round == 40
            for mine, other in zip(
                (ours.parameters, *ours.optimizer_state),
                (theirs.parameters, *theirs.optimizer_state),
                strict=True,
            ):
                assert mine.tobytes() == other.tobytes()


def test_the_picture_shows_what_is_unsound(small: dict[str, Any]) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib import pyplot

    arms = [small["ARMS"][0], Arm("unsound", "unsound: Theorem 4.1", 1.0, 0.5, False)]
    study: Study[TrainingRecord] = small["study"](None, rounds=8, arms=arms)
    (axes,) = study.plot()
    try:
        assert axes.get_xlabel() == "rounds"
        assert axes.get_ylabel() == "test accuracy"
        assert axes.get_title(loc="left").startswith("small: 40 clients with 10 examples")
        free, broken = axes.containers
        assert free.get_label() == "no privacy"
        assert broken.get_label().startswith("unsound: Theorem 4.1, σ = 1 (proven: δ = ")
        rows = [row.accuracy for row in study.records if row.arm == "none"]
        assert list(free.lines[0].get_ydata()) == rows
        with pytest.raises(InvalidTypeError, match="ax must be matplotlib axes, one for each of 1"):
            study.plot([axes, axes])
    finally:
        pyplot.close(axes.figure)


def test_errors_need_two_seeds(small: dict[str, Any]) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib import pyplot

    study: Study[TrainingRecord] = small["study"](None, rounds=4, seeds=[1])
    assert all(np.isnan(row.accuracy_error) for row in study.records)
    assert "±" not in study.table()
    (axes,) = study.plot()
    pyplot.close(axes.figure)


def test_the_script_trains_on_mnist_and_says_what_came_out(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    pytest.importorskip("matplotlib")
    root = Path(__file__).parents[3]
    data = Path(os.environ.get("TURNOUT_DATA", root.parent / "shared" / "data"))
    if not (data / "mnist-train-images-idx3-ubyte.gz").is_file():
        pytest.skip(f"MNIST is not in {data}: set TURNOUT_DATA to the folder with its files")
    # All images to train with, since the scenarios need them, and few to test with.
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("images-idx3", "labels-idx1"):
        (folder / f"train-{name}-ubyte.gz").symlink_to(data / f"mnist-train-{name}-ubyte.gz")
        header = [100, 28, 28] if name == "images-idx3" else [100]
        content = bytes([0, 0, 8, len(header)]) + struct.pack(f">{len(header)}I", *header)
        (folder / f"t10k-{name}-ubyte").write_bytes(content + bytes(int(np.prod(header))))
    script = root / "examples" / "federated" / "participation_study.py"
    if not script.is_file():
        pytest.skip("the examples are not here")
    options = ["--data", folder, "--output", tmp_path, "--rounds", "2", "--seeds", "1"]
    done = subprocess.run(
        [sys.executable, script, *map(str, options)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env={**os.environ, "MPLBACKEND": "agg", "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr
    assert "central, as with Opacus" in done.stdout
    assert (tmp_path / "accuracy.png").stat().st_size > 10_000
    rows = json.loads((tmp_path / "results.json").read_text())["records"]
    many, few = (
        {row["arm"]: row for row in rows if row["scenario"] == name and row["rounds"] == 2}
        for name in ("many clients", "few clients")
    )
    noise = {name: row["noise_multiplier"] for name, row in many.items()}
    assert noise["none"] == 0 < noise["sound"] < noise["wcs"] < noise["ols"]
    assert 0 < noise["central"] < noise["sound"] == noise["every"]
    assert noise["each"] == noise["wcs"]
    assert all(row["proven_delta"] <= 1e-6 for row in many.values() if row["keeps_target"])
    arms = ["none", "central", "sound", "wcs", "ols", "each", "every"]
    assert list(many) == list(few) == arms
    missing = subprocess.run(
        [sys.executable, script, "--data", str(tmp_path), "--output", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert missing.returncode == 2
    assert "train-images-idx3-ubyte.gz" in missing.stderr
