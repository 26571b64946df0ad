"""Trainings of the participation paper: data, model, noise and verdicts."""

from __future__ import annotations

import functools
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turnout_reproduce import Outcome, Scale, chosen, participation_training
from turnout_reproduce.participation_training import SECTIONS
from turnout_reproduce.studies.study import Picture, Study
from turnout_reproduce.studies.trainings import TrainingRecord

SHARED = Path(os.environ.get("TURNOUT_DATA", Path(__file__).parents[3] / "shared" / "data"))

#: Drawn once for all tests.
STAND_IN = functools.cache(participation_training._stand_in)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(participation_training, "_QUICK", (4, 2, 2))
    monkeypatch.setattr(participation_training, "_FULL", (2, 2, 2))
    monkeypatch.setattr(participation_training, "_stand_in", STAND_IN)


def run(number: int, **options: Any) -> Outcome:
    return chosen([f"participation/figure-{number}"])[0].run(Scale(**options))


def write_idx(place: Path, array: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
    place.write_bytes(
        struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()
    )


def test_gradients_are_those_of_the_loss() -> None:
    random = np.random.default_rng(1)
    images = random.integers(0, 256, (5, 2, 3)).astype(np.uint8)
    labels = np.array([0, 3, 1, 1, 2], np.uint8)
    model = participation_training._Linear(4, 6)
    parameters = {"weights": random.normal(0, 1, (6, 4)), "bias": random.normal(0, 1, 4)}
    found = model.per_example_gradients(parameters, images, labels)

    def losses(given: dict[str, Any]) -> Any:
        scores = (images.reshape(5, 6) / 255 - 0.5) @ given["weights"] + given["bias"]
        return np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(5), labels]

    for name, array in parameters.items():
        for place in np.ndindex(array.shape):
            moved = {key: value.copy() for key, value in parameters.items()}
            moved[name][place] += 1e-6
            slope = (losses(moved) - losses(parameters)) / 1e-6
            np.testing.assert_allclose(found[name][(slice(None), *place)], slope, atol=1e-5)
    # It says 1 of everything, which two of five are.
    one = {"weights": np.zeros((6, 4)), "bias": np.eye(4)[1]}
    assert model.accuracy(one, images, labels) == 0.4


@pytest.mark.usefixtures("short")
def test_noise_is_what_each_analysis_asks_for() -> None:
    first, second = run(6).settings["noise"], run(7).settings["noise"]
    expected = {"none": 0.0, "printed": 1.065, "sound": 2.37328, "wcs": 7.66512, "ols": 22.49746}
    assert first == pytest.approx(expected, abs=6e-6)
    expected = {"none": 0.0, "printed": 0.646, "sound": 0.80866, "wcs": 0.87387, "ols": 1.10354}
    assert second == pytest.approx(expected, abs=6e-6)


@pytest.mark.usefixtures("short")
def test_a_seed_decides_the_training() -> None:
    one, same, other = (run(7, seed=seed).to_dict() for seed in (5, 5, 6))
    assert one == same
    assert one["findings"] != other["findings"]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("gain", "verdict"),
    [((0.2, 0.01), "agrees"), ((0.02, 0.01), "differs"), ((-0.2, 0.01), "paper is wrong")],
)
def test_verdicts_are_those_of_the_gains(
    gain: tuple[float, float], verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(participation_training, "_gain", lambda *_: gain)
    claims = [finding for finding in run(6).findings if "better" in finding.what]
    assert len(claims) == 3
    assert {finding.verdict for finding in claims} == {verdict}


def test_gains_are_of_the_same_seeds() -> None:
    rows = [
        TrainingRecord("s", arm, 0.0, True, None, rounds, 0.0, 0.0, accuracies)
        for arm, last in (("a", (0.5, 0.9)), ("b", (0.4, 0.6)))
        for rounds, accuracies in ((1, (0.0, 0.0)), (2, last))
    ]
    study = Study(tuple(rows), {}, Picture((), ""))
    assert participation_training._gain(study, "a", "b") == pytest.approx((0.2, 0.1))


def test_emnist_is_read_from_the_folder(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    for part, number in (("train", 4), ("test", 2)):
        images = random.integers(0, 256, (number, 28, 28)).astype(np.uint8)
        write_idx(tmp_path / f"emnist-byclass-{part}-images-idx3-ubyte", images)
        labels = np.full(number, 61, np.uint8)
        write_idx(tmp_path / f"emnist-byclass-{part}-labels-idx1-ubyte", labels)
    data = participation_training._data(SECTIONS[0], Scale(data=tmp_path))
    assert (data.name, len(data.split.train), len(data.split.test)) == ("EMNIST", 4, 2)
    np.testing.assert_array_equal(data.split.test.images, images.transpose(0, 2, 1))


@pytest.mark.usefixtures("short")
def test_mnist_is_trained_with_the_network() -> None:
    pytest.importorskip("jax")
    if not SHARED.is_dir():
        pytest.skip("no data")
    outcome = run(7, data=SHARED, full=True)
    assert outcome.settings["model"] == "convolutional network"
    assert (outcome.settings["data"], outcome.settings["clients"]) == ("MNIST", 60)
    assert outcome.settings["client_rate"] * outcome.settings["sample_rate"] * 60_000 == (
        pytest.approx(70, rel=0.01)
    )
    # The printed noise is not that of these rates.
    assert list(outcome.settings["noise"]) == ["none", "sound", "wcs", "ols"]


def test_what_is_no_data_folder_gives_the_stand_in(tmp_path: Path) -> None:
    data = participation_training._data(SECTIONS[0], Scale(data=tmp_path))
    assert data.name == "drawn"
    assert len(data.split.train) == 23264 * 30
    assert set(np.unique(data.split.test.labels)) == set(range(62))
