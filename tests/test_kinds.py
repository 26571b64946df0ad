"""The table of kinds says where the classes are."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import kinds

import turnout as tn
from turnout import _core, _kinds, distribution, frequency, mean
from turnout.collecting.kind import Kind
from turnout.errors import EstimatorError, InvalidValueError


def named(base: type[Kind]) -> Iterator[type[Kind]]:
    """All classes of turnout below a class that have a name in plans of their own."""
    for kind in base.__subclasses__():
        if "name" in vars(kind) and kind.__module__.startswith("turnout."):
            yield kind
        yield from named(kind)


def test_the_table_holds_every_kind_by_its_name_and_module() -> None:
    for package in (distribution, frequency, mean):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)
    there = {kind.name: kind.__module__ for kind in named(Kind)}
    assert there == _kinds._MODULES


def test_every_name_finds_its_class() -> None:
    for name in _kinds._MODULES:
        kind = _kinds.found(name)
        assert kind is not None
        assert kind.name == name
        assert issubclass(kind, Kind)
    assert _kinds.found("telepathy") is None


@pytest.mark.parametrize("name", sorted(kinds.KINDS))
def test_an_estimate_from_no_reports_is_refused_in_plain_words(name: str) -> None:
    oracle = kinds.KINDS[name]
    if oracle.silent:
        pytest.skip("silence is an answer under this kind")
    plan = tn.Plan(oracle, tn.Bernoulli(0.5))
    with pytest.raises(EstimatorError, match="no reports were received") as refused:
        oracle.tally(plan.gather([], nodes=7)).estimate()
    assert not any(each in str(refused.value) for each in ("hajek", "divides", "coordinate"))


def test_a_kind_of_ones_own_is_found_when_it_is_defined() -> None:
    class Own(tn.DirectEncoding):
        name = "own_of_the_kinds_test"

    try:
        oracle = Own(1.0, 3)
        assert _kinds.known()[Own.name] is Own
        assert _kinds.from_dict(oracle.to_dict()) == oracle
    finally:
        _kinds.REGISTERED.pop(Own.name)
    assert _kinds.found(Own.name) is None


def test_a_name_is_taken_once() -> None:
    for name in ("direct_encoding", "square_wave"):
        with pytest.raises(InvalidValueError, match=f"got '{name}', the name of"):
            type("Own", (tn.DirectEncoding,), {"name": name})
    assert _kinds.found("direct_encoding") is tn.DirectEncoding


def test_an_installed_package_adds_kinds(tmp_path: Path) -> None:
    """A package that nobody imports is found by its entry point, also by the commands."""
    (tmp_path / "packaged.py").write_text(
        "import turnout as tn\nclass Packaged(tn.DirectEncoding):\n    name = 'packaged'\n"
    )
    information = tmp_path / "packaged-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: packaged\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[turnout.kinds]\npackaged = packaged:Packaged\n")
    plan = tn.Plan(tn.DirectEncoding(1.0, ["no", "yes"]), tn.Everyone())
    text = plan.to_json().replace('"direct_encoding"', '"packaged"')
    (tmp_path / "plan.json").write_text(_core.Plan.described(text.encode()).file())
    (tmp_path / "answers.csv").write_text("vote\n" + "no\nyes\n" * 50)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])

    def run(*arguments: str) -> Any:
        done = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, "PYTHONPATH": path},
            cwd=tmp_path,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    code = "import turnout as tn; print(type(tn.Plan.read('plan.json').oracle).__name__)"
    assert run("-c", code).strip() == "Packaged"
    code = "from turnout import _kinds; print('packaged' in _kinds.known())"
    assert run("-c", code).strip() == "True"
    run("-m", "turnout", "randomize", "answers.csv", "--column", "vote", "--plan", "plan.json",
        "-o", "reports.parquet")  # fmt: skip
    run("-m", "turnout", "tally", "reports.parquet", "-o", "vote.tally")
    found = json.loads(run("-m", "turnout", "estimate", "vote.tally", "--json"))
    assert {one["label"] for one in found["estimates"]} == {"no", "yes"}


@pytest.mark.parametrize("name", [*kinds.KINDS])
def test_whoever_is_not_drawn_sends_nothing(name: str) -> None:
    """No plan hides who takes part: a page would then have to send an empty message."""
    oracle = kinds.KINDS[name]
    plan = tn.Plan(oracle, tn.Bernoulli(1e-12))
    for answer in list(kinds.answers_of(oracle))[:20]:
        if plan.oracle.fresh:
            assert plan.report(answer) is None
        else:
            assert plan.oracle.client().message(plan, answer) is None
