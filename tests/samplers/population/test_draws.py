"""One draw of each user."""

from __future__ import annotations

import builtins
import gzip
import importlib
import math
import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.neighbors import KernelDensity

from turnout.errors import (
    EstimatorError,
    InvalidTypeError,
    InvalidValueError,
    MissingExtraError,
    TurnoutError,
)
from turnout.samplers import (
    FiniteMollifier,
    MinimaxSampler,
    MollifiedDensity,
    PrivateSampler,
    StandardNormal,
    Uniform,
    sample_population,
)
from turnout.samplers.base import PointSampler
from turnout.samplers.population.points import PopulationEstimate
from turnout_reproduce.baselines import BernsteinSampler
from turnout_reproduce.boosting import MollifiedBoosting

Floats = Any


class Mean(PointSampler):
    """Not private: a draw is the mean of the rows, so that tests see whose rows they were."""

    calls: list[tuple[int, int]] = []  # noqa: RUF012 (shared on purpose)

    def __init__(self, epsilon: float = 1.0, *, random_state: Any = None, options: Any = None):
        self.epsilon = epsilon
        self.random_state = random_state
        self.options = options

    def _fit(self, records: Floats) -> None:
        if (records < 0).any():
            raise np.linalg.LinAlgError("negative")
        if (records > 1e6).any():
            raise InvalidValueError("records must be at most a million")
        self._center = records.mean(axis=0)

    def _draw(self, count: int, seed: int | None) -> Floats:
        self.calls.append((count, id(self)))
        self.random_state_used = self.random_state
        extra = 0.0 if seed is None else np.random.default_rng(seed).random() * 1e-9
        return np.tile(self._center + extra, (count, 1))

    def _log_density(self, records: Floats) -> Floats:
        return np.zeros(len(records))

    def guarantee(self) -> str:
        return "none"


def cheap(epsilon: float = 1.0) -> MollifiedDensity:
    return MollifiedDensity(epsilon, estimator=KernelDensity(bandwidth=0.5), proposals=64)


def test_every_user_gives_one_draw_from_all_own_rows() -> None:
    data = np.array([[1.0, 5.0], [10.0, 0.0], [3.0, 7.0], [20.0, 2.0], [5.0, 5.0], [7.0, 7.0]])
    users = ["b", "a", "b", "a", "c", "b"]
    Mean.calls.clear()
    template = Mean()
    result = sample_population(template, data, users)
    # Sorted: the order of rows may tell of what stands in them.
    assert result.users.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(result.draws, [[15.0, 1.0], [11 / 3, 19 / 3], [5.0, 5.0]])
    assert [count for count, _ in Mean.calls] == [1, 1, 1]
    assert len(result) == 3
    assert result.epsilon == 1.0
    assert not hasattr(template, "budget_")
    assert not hasattr(result.sampler, "budget_")
    assert result.sampler is not template


@pytest.mark.parametrize(
    "users",
    [
        [7, 3, 7],
        np.array([7, 3, 7], dtype=np.int16),
        np.array(["x", "y", "x"]),
        [("a", 1), ("b", 2), ("a", 1)],
        ["a", 2, "a"],
        (b"a", b"b", b"a"),
    ],
)
def test_users_have_any_names(users: Any) -> None:
    result = sample_population(Mean(), [[1.0], [2.0], [3.0]], users)
    assert set(result.users) == {users[0], users[1]}
    assert list(result.users) == sorted({users[0], users[1]}, key=lambda user: (str(user), user))
    np.testing.assert_allclose(result.draws, [[2.0], [2.0]])
    if isinstance(users, np.ndarray):
        assert result.users.dtype == users.dtype


def test_a_copy_is_fitted_and_parameters_are_copied() -> None:
    options = {"kept": [1]}
    inner = KernelDensity(bandwidth=0.25)
    template = MollifiedDensity(2.0, estimator=inner, proposals=64)
    result = sample_population(template, np.zeros((4, 1)), [0, 0, 1, 1], seed=1)
    assert result.sampler.get_params()["estimator__bandwidth"] == 0.25
    assert result.sampler.estimator is not inner  # type: ignore[attr-defined]
    assert not hasattr(inner, "tree_")
    other = sample_population(Mean(options=options), np.zeros((2, 1)), [0, 1])
    assert other.sampler.options == options  # type: ignore[attr-defined]
    assert other.sampler.options is not options  # type: ignore[attr-defined]


def test_the_same_seed_gives_the_same_draws_on_any_number_of_processes() -> None:
    generator = np.random.default_rng(1)
    users = generator.permutation(np.repeat(np.arange(12), 5))
    data = generator.normal(users[:, None] / 12, 0.1, (60, 1))
    one, many, two, other = (
        sample_population(cheap(), data, users, seed=seed, n_jobs=jobs).draws
        for seed, jobs in ((5, None), (5, 1), (5, 2), (6, 1))
    )
    np.testing.assert_array_equal(one, many)
    np.testing.assert_array_equal(one, two)
    assert (one != other).mean() > 0.9
    fresh = [sample_population(cheap(), data, users).draws for _ in range(2)]
    assert (fresh[0] != fresh[1]).mean() > 0.9
    # Two users with the same rows do not share a seed.
    same = sample_population(cheap(), np.zeros((20, 1)), np.repeat([0, 1], 10), seed=1).draws
    assert same[0] != same[1]


def test_a_seed_reaches_the_training() -> None:
    used: list[Any] = []

    class Spy(Mean):
        def __init__(self, epsilon: float = 1.0, *, random_state: Any = None) -> None:
            super().__init__(epsilon, random_state=random_state)

        def _fit(self, records: Floats) -> None:
            used.append(self.random_state)
            super()._fit(records)

    data = np.zeros((3, 1))
    sample_population(Spy(), data, [0, 1, 2])
    sample_population(Spy(), data, [0, 1, 2], seed=1)
    sample_population(Spy(random_state=9), data, [0, 1, 2], seed=1)
    assert used[:3] == [None] * 3
    assert len(set(used[3:6])) == 3
    assert all(isinstance(each, int) and each < 2**32 for each in used[3:6])
    assert used[6:] == [9, 9, 9]


@pytest.mark.parametrize("jobs", [None, 2])
def test_a_user_whose_rows_cannot_be_used_is_named(jobs: int | None) -> None:
    data = np.zeros((4, 1))
    data[3] = math.nan
    with pytest.raises(InvalidValueError, match=r"no draw for user 'd': X\[0, 0\] must be"):
        sample_population(cheap(), data, list("abcd"), n_jobs=jobs)


def test_errors_keep_their_kind() -> None:
    with pytest.raises(InvalidValueError, match="no draw for user 2: records must be at most"):
        sample_population(Mean(), [[1.0], [2e6], [-1.0]], [1, 2, 3])
    with pytest.raises(
        TurnoutError, match=r"no draw for user 3: LinAlgError\('negative'\)"
    ) as seen:
        sample_population(Mean(), [[1.0], [2.0], [-1.0]], np.array([1, 2, 3]))
    assert isinstance(seen.value.__cause__, np.linalg.LinAlgError)
    data = np.ones((3000, 1))
    data[1234] = 2e6
    with pytest.raises(InvalidValueError, match="no draw for user 'u1234':"):
        sample_population(Mean(), data, [f"u{place}" for place in range(3000)])


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (MollifiedDensity(0), "epsilon must be"),
        (MollifiedDensity(reference="x"), "reference must be"),
        (MollifiedDensity(reference=StandardNormal(2)), "reference must have the dimension"),
        (MollifiedDensity(reference=KernelDensity()), "reference must be fitted on public data"),
        (MollifiedDensity(proposals=1), "proposals must be"),
        (MollifiedBoosting(n_rounds=0), "n_rounds must be"),
        (MollifiedBoosting(weak_learner="x"), "weak_learner must be"),
        (MinimaxSampler(1.0, reference=KernelDensity(), low=0.0, high=3.0), "reference must"),
        (MinimaxSampler(1.0, reference=StandardNormal(1), low=2.0, high=3.0), "low must be"),
    ],
)
def test_no_user_is_blamed_for_a_parameter(sampler: PrivateSampler, message: str) -> None:
    with pytest.raises((InvalidTypeError, InvalidValueError)) as seen:
        sample_population(sampler, np.zeros((4, 1)), list("aabb"))
    assert str(seen.value).startswith(message)


def test_no_user_is_blamed_for_a_parameter_of_a_finite_sampler() -> None:
    for sampler, message in (
        (FiniteMollifier(1.0), "exactly one of domain_size and domain must be given"),
        (FiniteMollifier(1.0, 2, reference=[0.5, 0.5, 0.0]), "reference"),
    ):
        with pytest.raises((InvalidTypeError, InvalidValueError)) as seen:
            sample_population(sampler, [0, 1], list("ab"))
        assert str(seen.value).startswith(message)
    with pytest.raises(TurnoutError, match="no draw for user 'b'"):
        sample_population(FiniteMollifier(1.0, 2), [0, 2], list("ab"))


def test_parameters_are_checked_before_any_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a user was fitted")

    monkeypatch.setattr(MollifiedDensity, "fit", never)
    for sampler in (MollifiedDensity(math.inf), MollifiedDensity(reference=StandardNormal(3))):
        with pytest.raises(InvalidValueError):
            sample_population(sampler, np.zeros((2, 2)), [1, 2])


class Moody(KernelDensity):  # type: ignore[misc]
    """Fails on some rows only."""

    def fit(self, X: Floats, y: object = None, sample_weight: object = None) -> Moody:
        if len(X) == 2:
            raise InvalidValueError("estimator must have more than two rows")
        super().fit(X)
        return self


def test_a_user_whose_rows_an_estimator_refuses_is_named() -> None:
    sampler = MollifiedDensity(1.0, estimator=Moody(), proposals=64)
    with pytest.raises(InvalidValueError, match="no draw for user 'b': estimator must have"):
        sample_population(sampler, np.zeros((5, 1)), list("aaabb"))


def test_the_example_refuses_bad_arguments_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = Path(__file__).parents[3] / "examples" / "samplers" / "adult.py"
    row = "39, State-gov, 77516, Bachelors, 13, Single, Clerk, Not, White, Male, 0, 0, 40, Cuba, x"
    files = {
        "plain.csv": row.encode(),
        "good.gz": gzip.compress(f"{row}\n{row}\n".encode()),
        "cut.gz": gzip.compress(row.encode())[:-9],
        "other.gz": gzip.compress(b"a,b\n1,2\n"),
        "words.gz": gzip.compress(",".join("abcdefghijklmno").encode()),
    }
    for name, content in files.items():
        tmp_path.joinpath(name).write_bytes(content)
    for name, epsilon, message in (
        ("good.gz", "0", "epsilon must be"),
        ("good.gz", "nan", "epsilon must be"),
        ("plain.csv", "1", "plain.csv is not adult.data.gz"),
        ("cut.gz", "1", "cut.gz is not adult.data.gz"),
        ("other.gz", "1", "no row has 15 columns"),
        ("words.gz", "1", "words.gz is not adult.data.gz"),
        ("none.gz", "1", "is not there"),
    ):
        arguments = [str(script), "--data", str(tmp_path / name), "--epsilon", epsilon]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit) as seen:
            runpy.run_path(str(script), run_name="__main__")
        assert seen.value.code == 2
        assert message in capsys.readouterr().err


def test_bad_input_is_refused() -> None:
    data = np.zeros((2, 1))
    for wrong in (
        {"users": [1]},
        {"users": [1, None]},
        {"users": [1, math.nan]},
        {"data": np.zeros((2, 1, 1))},
        {"data": np.zeros((0, 1)), "users": []},
        {"n_jobs": 0},
        {"seed": -1},
    ):
        with pytest.raises(InvalidValueError):
            sample_population(**{"sampler": Mean(), "data": data, "users": [1, 2]} | wrong)
    for wrong in (
        {"sampler": KernelDensity()},
        {"sampler": Mean},
        {"users": "ab"},
        {"users": [[1], [2]]},
        {"users": 3},
        {"n_jobs": 1.5},
    ):
        with pytest.raises(InvalidTypeError):
            sample_population(**{"sampler": Mean(), "data": data, "users": [1, 2]} | wrong)


def test_joblib_is_needed_for_several_processes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "joblib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setitem(__import__("sys").modules, "joblib", None)
    assert len(sample_population(Mean(), [[1.0]], [1], n_jobs=1)) == 1
    with pytest.raises(MissingExtraError, match="samplers"):
        sample_population(Mean(), [[1.0]], [1], n_jobs=2)


def test_a_bar_is_shown_when_work_takes_long(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from turnout import _progress as progress

    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    monkeypatch.setattr(progress, "_BETWEEN", -1.0)
    monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name: None)
    data, users = np.zeros((600, 1)), np.arange(600)
    sample_population(Mean(), data, users, progress=True)
    lines = capfd.readouterr().err.splitlines()
    assert (lines[0], lines[-1]) == ("drawing: 0 of 600", "drawing: 600 of 600")
    sample_population(Mean(), data, users)
    assert capfd.readouterr().err == ""
    # Bars are for terminals: with rich, too, a file of logs gets lines.
    monkeypatch.undo()
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    monkeypatch.setattr(progress, "_written", [-1e9])
    sample_population(Mean(), data, users, progress=True)
    assert "drawing: 0 of" in capfd.readouterr().err


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_bar_hears_of_every_user(n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    population = importlib.import_module("turnout.samplers.population.draws")
    seen: list[int] = []

    def counted(work: Any, *_: Any, total: int) -> Any:
        for done, item in enumerate(work):
            seen.append(done)
            yield item
        assert len(seen) == total == 200

    monkeypatch.setattr(population, "track", counted)
    data, users = np.arange(400.0)[:, None], np.arange(400) // 2
    assert len(sample_population(Mean(), data, users, n_jobs=n_jobs, seed=3)) == 200
    # Who is named is the one whose rows they are.
    data[301] = 2e6
    seen.clear()
    with pytest.raises(InvalidValueError, match="no draw for user 150: records must be at most"):
        sample_population(Mean(), data, users, n_jobs=n_jobs)
    assert seen == list(range(151))


def test_every_fit_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    info = pytest.importorskip("threadpoolctl").threadpool_info
    threads: list[set[int]] = []

    class Counting(Mean):
        def fit(self, X: Any, y: Any = None) -> Any:
            threads.append({each["num_threads"] for each in info()})
            return super().fit(X, y)

    sample_population(Counting(), np.zeros((6, 1)), np.arange(6))
    assert threads == [{1}] * 6


def test_rows_beyond_the_reference_are_refused_before_the_first_fit() -> None:
    sampler = MollifiedDensity(
        1.0, reference=Uniform([0.0, 0.0], [1.0, 2.0]), estimator=Mean(), proposals=8
    )
    data = np.full((50, 2), 0.5)
    data[[7, 30]] = [[0.5, 2.5], [-1.0, 0.0]]
    Mean.calls.clear()
    with pytest.raises(
        InvalidValueError,
        match=r"^data must be within the support of the reference, Uniform\(\[0\.0, 0\.0\], "
        r"\[1\.0, 2\.0\]\): 2 of 50 records are outside, the first is data\[7\]\.",
    ):
        sample_population(sampler, data, np.arange(50))
    assert not Mean.calls


def test_a_number_too_large_for_a_record_is_not_said_to_be_beyond_the_reference() -> None:
    sampler = MollifiedDensity(1.0, reference=StandardNormal(1), estimator=Mean(), proposals=8)
    with pytest.raises(InvalidValueError, match=r"user 0: X\[0, 0\] must be between -1e100 and"):
        sample_population(sampler, [[1e200], [0.5]], [0, 1])


def test_draws_of_users_are_estimated() -> None:
    generator = np.random.default_rng(3)
    users = np.repeat(np.arange(60), 5)
    data = generator.normal(0.5, 0.2, (300, 1))
    draws = sample_population(cheap(2.0), data, users, seed=1)
    estimate = draws.estimate()
    assert isinstance(estimate, PopulationEstimate)
    assert estimate.users == 60
    assert estimate.band == (-1.0, 1.0)
    assert estimate.epsilon == 2.0
    assert estimate.density([[0.5]])[0] > estimate.density([[-1.5]])[0]
    with pytest.raises(InvalidValueError, match="assume is for samplers of one answer"):
        draws.estimate(assume="one_value")
    with pytest.raises(InvalidValueError, match="assume must be"):
        draws.estimate(assume="magic")
    with pytest.raises(EstimatorError, match="no public reference"):
        sample_population(Mean(), abs(data), users).estimate()


def test_bad_input_of_the_estimate_is_refused() -> None:
    draws = np.zeros((5, 1))
    reference = StandardNormal(1)
    for arguments in (
        (draws, StandardNormal(2), (-1, 1)),
        (draws, reference, (1, 2)),
        (np.full((5, 1), np.nan), reference, (-1, 1)),
    ):
        with pytest.raises(InvalidValueError):
            PopulationEstimate(*arguments)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="reference must be"):
        PopulationEstimate(draws, "normal", (-1, 1))
    with pytest.raises(InvalidValueError, match="reference must have the dimension of the data"):
        PopulationEstimate(np.zeros((5, 2)), stats.norm(), (-1, 1))
    with pytest.raises(EstimatorError, match="3 dimensions"):
        PopulationEstimate(np.zeros((5, 3)), StandardNormal(3), (-1, 1))
    estimate = PopulationEstimate(draws, reference, (-1, 1))
    for call in (estimate.density, estimate.standard_errors, estimate.interval):
        with pytest.raises(InvalidValueError):
            call([[0.0, 1.0]])
    with pytest.raises(InvalidValueError):
        estimate.interval([[0.0]], 1.0)
    # A single draw, and equal ones, are no reason to fail.
    one = PopulationEstimate([[0.3]], reference, (-1, 1))
    assert np.isfinite(one.density([[0.3]])).all()
    assert isinstance(Mean(), PrivateSampler)


def test_noise_that_all_users_would_share_is_refused() -> None:
    same = BernsteinSampler(1.0, bounds=(0.0, 1.0), degree=2, random_state=9)
    with pytest.raises(InvalidValueError, match="must not have a random_state, because it"):
        sample_population(same, np.zeros((4, 1)), [0, 0, 1, 1])
    without = BernsteinSampler(1.0, bounds=(0.0, 1.0), degree=2)
    data, users = np.zeros((4, 1)), [0, 0, 1, 1]
    first, again = (sample_population(without, data, users, seed=1) for _ in "ab")
    np.testing.assert_array_equal(first.draws, again.draws)
