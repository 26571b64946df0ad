"""What is missing is the same for every command, and for Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import turnout as tn
from turnout.errors import InvalidValueError

GAPS = ["NA", "", "NaN", "nan", "None", "null", "N/A", "n/a", "<NA>", "#N/A", "-nan", "1.#IND"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    lines = ["vote,region", *["yes,N", "no,S"] * 40, *(f"{gap},N" for gap in GAPS)]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "a.csv"


@pytest.mark.parametrize("labels", [(), ("--labels", "no,yes")])
@pytest.mark.parametrize(
    "command",
    [
        "survey -c vote",
        "randomize -c vote",
        "aggregate -c vote --mechanism discrete-laplace",
        "sample -c vote",
    ],
)
def test_every_command_refuses_all_that_is_missing(
    path: Path, turnout: Any, command: str, labels: tuple[str, ...]
) -> None:
    name, *given = command.split()
    output = ("-o", path.parent / "out.parquet") if name in ("randomize", "sample") else ()
    options = (name, path, *given, "-e", 1, *labels, *output)
    result = turnout(*options)
    assert result.exit_code == 1, result.stdout
    found = " ".join(result.stderr.split())
    assert f"{len(GAPS)} " in found
    assert "missing" in found
    assert "--missing" in found
    assert "drop" in found
    assert turnout(*options, "--missing", "drop").exit_code == 0


def test_python_refuses_the_same(path: Path) -> None:
    oracle = tn.DirectEncoding(1.0, ["no", "yes"])
    refused: list[Any] = [
        lambda: oracle.collect(path, "vote"),
        lambda: tn.pipeline.randomize(tn.pipeline.scan(path, "vote"), oracle, path.parent / "out"),
        lambda: tn.pipeline.scan(path, "vote").domain(),
        lambda: tn.survey(path, "vote", epsilon=1.0),
    ]
    for call in refused:
        with pytest.raises(InvalidValueError, match=rf"{len(GAPS)} .*missing .*'drop'"):
            call()
    dropped = tn.pipeline.scan(path, "vote", missing="drop")
    assert oracle.collect(dropped).nodes == 80
    assert dropped.domain().labels == ("no", "yes")


def test_rows_without_a_group_are_refused_or_left_out(tmp_path: Path, turnout: Any) -> None:
    path = tmp_path / "a.csv"
    path.write_text("vote,region\n" + "yes,N\nno,S\n" * 40 + "yes,NA\nno,\n")
    options = ("survey", path, "-c", "vote", "-e", 1, "--by", "region")
    result = turnout(*options)
    assert result.exit_code == 1
    assert "2 rows have no group in 'region'" in " ".join(result.stderr.split())
    shown = turnout(*options, "--missing", "drop").stdout
    assert "80 people were asked" in " ".join(shown.split())
    with pytest.raises(InvalidValueError, match="2 rows have no group in 'region'"):
        tn.survey(path, "vote", epsilon=1.0, by="region")
