"""Tasks in flight, the tree, errors, and workers that die."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from turnout.errors import UnknownLabelError, WorkerLostError
from turnout.ray.cluster import MergeTree, get, prepare_worker, results


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 9, 28])
def test_tree_merges_all_in_order(ray: Any, count: int) -> None:
    merge = ray.remote(num_cpus=0)(lambda *values: "(" + "".join(values) + ")")
    tree = MergeTree(ray, merge, fan_in=3)
    letters = "abcdefghijklmnopqrstuvwxyzäö"[:count]
    for letter in letters:
        tree.add(ray.put(letter))
    value = tree.result()
    if count == 0:
        assert value is None
    else:
        assert value is not None
        assert value.replace("(", "").replace(")", "") == letters
        # A tree of fan-in three: no task merged more than three values.
        assert max(map(_width, _nodes(value)), default=0) <= 3


def _nodes(text: str) -> list[str]:
    """Every bracket and what is in it."""
    found, open_at = [], []
    for place, letter in enumerate(text):
        if letter == "(":
            open_at.append(place)
        elif letter == ")":
            found.append(text[open_at.pop() : place + 1])
    return found


def _width(bracket: str) -> int:
    """How many values a bracket has, each a letter or a bracket."""
    depth = width = 0
    for letter in bracket[1:-1]:
        width += depth == 0 and letter != ")"
        depth += (letter == "(") - (letter == ")")
    return width


def test_no_more_in_flight_than_allowed(ray: Any, tmp_path: Path) -> None:
    def at_work(folder: str) -> int:
        own, met = Path(folder, f"at-work-{time.monotonic_ns()}"), Path(folder, "met")
        own.touch()
        time.sleep(0.05)
        end = time.monotonic() + 300
        while (together := len(list(Path(folder).glob("at-work-*")))) < 2:
            # Until two have met once.
            if met.exists() or time.monotonic() > end:
                break
            time.sleep(0.01)
        else:
            met.touch()
        own.unlink()
        return together

    task = ray.remote(at_work)
    taken: list[int] = []

    def items() -> Any:
        for number in range(12):
            taken.append(number)
            yield number

    seen = []
    for _, together in results(ray, lambda _: task.remote(str(tmp_path)), items(), 2):
        seen.append(together)
        assert len(taken) <= len(seen) + 2
    assert len(seen) == 12
    assert max(seen) == 2


def test_error_of_a_task_is_the_error(ray: Any) -> None:
    def fail(number: int) -> int:
        if number == 3:
            raise UnknownLabelError("answers.parquet: value 'x' is not a label")
        return number

    task = ray.remote(fail)
    with pytest.raises(UnknownLabelError, match=r"answers\.parquet") as caught:
        list(results(ray, task.remote, range(8), 2))
    assert type(caught.value) is UnknownLabelError
    assert caught.value.__suppress_context__


def test_foreign_errors_keep_their_class_and_say_where(ray: Any) -> None:
    def fail() -> None:
        raise ZeroDivisionError("in the task")

    with pytest.raises(ZeroDivisionError) as caught:
        get(ray, ray.remote(fail).remote())
    assert type(caught.value) is ZeroDivisionError
    assert "in the task" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("seconds", "patience"), [(0.5, 600.0), (600.0, 3.0)], ids=["waited", "cancelled"]
)
def test_no_task_goes_on_after_the_end(
    ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, patience: float
) -> None:
    def slow(number: int, folder: str) -> int:
        if number == 0:
            return number
        Path(folder, f"begun-{number}").touch()
        try:
            for _ in range(round(100 * seconds)):
                time.sleep(0.01)
            Path(folder, f"whole-{number}").touch()
        finally:
            Path(folder, f"ended-{number}").touch()
        return number

    monkeypatch.setattr("turnout.ray.cluster._PATIENCE", patience)
    task = ray.remote(slow)
    with contextlib.closing(
        results(ray, lambda number: task.remote(number, str(tmp_path)), range(50), 3)
    ) as each:
        next(each)
        if seconds > patience:
            # What Ray cancels must run: else it may run all the same, unknown to Ray.
            while len(list(tmp_path.glob("begun-*"))) < 2:
                time.sleep(0.01)
    names = {path.name for path in tmp_path.iterdir()}
    begun = {name[6:] for name in names if name.startswith("begun")}
    assert {name[6:] for name in names if name.startswith("ended")} == begun
    assert len(begun) <= 3
    assert begun == {"1", "2"}
    whole = {name[6:] for name in names if name.startswith("whole")}
    assert whole == (begun if seconds < patience else set())


def test_killed_worker_is_replaced(ray: Any, tmp_path: Path) -> None:
    def die_once(number: int, folder: str) -> int:
        mark = Path(folder, f"{number}")
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    task = ray.remote(max_retries=2)(die_once)
    found = dict(results(ray, lambda n: task.remote(n, str(tmp_path)), range(4), 2))
    assert found == {number: number for number in range(4)}


def test_worker_that_always_dies(ray: Any) -> None:
    task = ray.remote(max_retries=0)(lambda: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(WorkerLostError, match="resume=True"):
        get(ray, task.remote())


def test_other_release_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    import turnout

    monkeypatch.setenv("RAYON_NUM_THREADS", "1")
    prepare_worker(turnout.__version__)
    with pytest.raises(turnout.TurnoutError, match="one release"):
        prepare_worker("0.0.0")
