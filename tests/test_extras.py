"""Optional dependencies: never imported with turnout, and named when they are missing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import turnout as tn
from turnout._extras import require
from turnout.errors import MissingExtraError

OPTIONAL = [
    "flwr",
    "httptools",
    "jax",
    "matplotlib",
    "narwhals",
    "pandas",
    "polars",
    "psycopg",
    "pyarrow",
    "rich",
    "scipy.stats",
    "sklearn",
    "starlette",
    "statsmodels",
    "torch",
    "typer",
    "uvicorn",
]


def loaded_after(program: str) -> list[str]:
    """The optional modules that a program of its own has loaded at its end."""
    tail = f"\nimport json, sys\nprint(json.dumps([m for m in {OPTIONAL!r} if m in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", program + tail],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    result: list[str] = json.loads(done.stdout)
    return result


def test_the_page_that_everybody_reads_first_names_every_extra() -> None:
    root = Path(__file__).parents[1]
    part = (root / "pyproject.toml").read_text(encoding="utf-8")
    part = part.split("[project.optional-dependencies]\n")[1].split("\n[")[0]
    extras = set(re.findall(r"^(\w+) = ", part, re.MULTILINE)) - {"docs", "test"}
    page = (root / "docs/start.rst").read_text(encoding="utf-8")
    table = re.findall(r"^((?:``\w+``(?:, )?)+)  ", page, re.MULTILINE)
    assert {name for row in table for name in re.findall(r"\w+", row)} == extras


def test_importing_all_of_turnout_imports_no_optional_dependency() -> None:
    assert loaded_after("from turnout import *") == []


def test_a_whole_collection_needs_no_optional_dependency() -> None:
    program = """
import numpy as np
import turnout as tn
domain = tn.Domain(["a", "b", "c"])
oracle = tn.DirectEncoding(1.0, domain)
for who in (tn.Everyone(), tn.Bernoulli(0.5), tn.Personalized(np.full(300, 0.5))):
    tally = oracle.tally(oracle.randomize(["a", "b", "c"] * 100, participation=who))
    tally = tn.Tally.from_bytes(tally.to_bytes())
    estimate = tally.estimate("hajek").project("simplex")
    estimate.interval(simultaneous="sidak")
    estimate.distance([0.2, 0.3, 0.5], "kl")
    estimate.to_records()
"""
    assert loaded_after(program) == []


def test_samplers_of_values_need_no_optional_dependency() -> None:
    program = """
import turnout as tn
for kind in ("FiniteMollifier", "MinimaxSampler", "RandomizedResponseSampler"):
    sampler = getattr(tn.samplers, kind)(1.0, 4)
    sampler.fit([0, 1, 1]).sample(1)
    tn.samplers.sample_population(sampler, [0, 1, 2, 3], [1, 1, 2, 3])
"""
    assert loaded_after(program) == []


def test_the_check_sees_what_is_imported() -> None:
    assert loaded_after("import turnout, rich, typer") == ["rich", "typer"]


def hide(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """Make a library look as if it were not installed."""
    for module in list(sys.modules):
        if module.partition(".")[0] == library:
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)


@pytest.mark.parametrize(
    ("module", "extra"),
    [
        ("matplotlib.pyplot", "plot"),
        ("pyarrow.parquet", "cli"),
        ("typer", "cli"),
        ("statsmodels.api", "demo"),
        ("no_such_library", "cli"),
        ("no_such_library.part", "cli"),
    ],
)
def test_a_missing_extra_names_the_pip_command(
    monkeypatch: pytest.MonkeyPatch, module: str, extra: str
) -> None:
    library = module.partition(".")[0]
    hide(monkeypatch, library)
    with pytest.raises(MissingExtraError) as caught:
        require(module, extra)
    assert str(caught.value) == (
        f"{library} is needed for this and is not installed: pip install 'turnout[{extra}]'"
    )
    assert caught.value.name == module
    assert isinstance(caught.value, ImportError)


def test_what_is_installed_is_imported() -> None:
    assert require("json", "cli") is json
    assert require("json.decoder", "cli").JSONDecoder is json.JSONDecoder


def test_a_library_that_is_broken_says_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Not our extra is missing but something that it needs: the pip command would not help.
    (tmp_path / "broken_library.py").write_text("import its_missing_part\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="its_missing_part") as caught:
        require("broken_library", "plot")
    assert not isinstance(caught.value, MissingExtraError)


def test_pictures_without_matplotlib_name_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, "matplotlib")
    estimate = tn.DirectEncoding(1.0, 2).simulate([5, 5], seed=1).estimate()
    with pytest.raises(MissingExtraError, match=r"pip install 'turnout\[plot\]'"):
        estimate.plot()


def test_text_columns_of_polars_need_no_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    polars = pytest.importorskip("polars")
    domain = tn.Domain(["a", "b"])
    columns = [polars.Series(["b", "a"]), polars.Series(["b", "a"], dtype=polars.Categorical)]
    hide(monkeypatch, "pyarrow")
    assert [domain.encode(column).tolist() for column in columns] == [[1, 0]] * 2


class ArrowOnly:
    """A column of some library that offers the Arrow C interface and nothing else."""

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        raise AssertionError("nobody can read this without pyarrow")


def test_arrow_columns_without_pyarrow_name_the_pip_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hide(monkeypatch, "pyarrow")
    with pytest.raises(
        (MissingExtraError, tn.errors.InvalidTypeError), match="pip install 'turnout"
    ):
        tn.Domain(["a", "b"]).encode(ArrowOnly())


def test_numpy_is_enough_for_numpy_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("pandas", "polars", "pyarrow"):
        hide(monkeypatch, library)
    assert tn.Domain(["a", "b"]).encode(np.array(["b", "a"])).tolist() == [1, 0]
