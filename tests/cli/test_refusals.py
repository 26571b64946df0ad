"""What commands refuse is said in terms of options, never of arguments of Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import turnout as tn
from turnout.cli.app import app
from turnout.cli.commands import long_options

Run = Callable[..., Any]

#: Words of Python: an argument with its value, a call, a name of the package.
PYTHON = re.compile(r"(?<![-\w/.])[a-z]\w*=(?=[\w'\"\[(]|$|\s)|\w\(\)|\b(?:tn|turnout)\.[a-z]")

#: What commands are asked with the files that :func:`files` makes.
REFUSED = """
randomize people.csv -c answer -e 1 -o out.parquet
randomize people.csv -c answer -e 1 -o out.parquet --labels a,b --id-column person
randomize people.csv -c answer -e 1 -o out.parquet --labels a,b --missing c
randomize people.csv -c nothing -e 1 -o out.parquet
randomize people.csv -c answer -e 1 -o job/ --labels a,b --missing drop --id-column person
randomize people.csv -c answer -e 1 -o done/ --labels a,b --missing drop
randomize people.csv -c answer -e 2 -o done/ --labels a,b --missing drop --resume
randomize people.csv -c answer -e 1 -o job/ --labels a,b --missing drop --group-by nothing
randomize people.csv -c answer -e 1 -o out.parquet --labels a,b --mean 0:1
randomize people.csv -c person -e 1 -o out.parquet --mean 0:1
randomize people.csv -c answer -e 1 -o job/ --pseudonym-key nothing.key
randomize people.csv -c answer -e 1 -o job/ --labels a,b --probability-column person --missing drop
tally reports.parquet -o out.tally --duplicates refuse
tally reports.parquet -o out.tally --duplicates first
tally reports.parquet -o out.tally --group-by nothing
tally reports.parquet reports.parquet -o out.tally
tally mean.tally shares.tally -o out.tally
tally people.csv -o out.tally
estimate shares.tally --by region
estimate shares.tally --shrink --across
estimate mean.tally --method everyone
estimate mean.tally --project simplex
estimate people.csv
report shares.tally -o out.html --time day
report shares.tally -o out.html --method median
report shares.tally mean.tally -o out.html
survey people.csv -c answer -e 1
survey people.csv -c answer -e 1 --labels a
survey people.csv -c answer -e 1 --by nothing --missing drop
survey people.csv -c person -e 1 --mean 5:1
survey people.csv -c answer -e 1 --labels a,b --missing drop --by answer
plan --domain-size 1 --nodes 100 --epsilon 1
plan --domain-size 4 --nodes 100
plan --domain-size 4 --nodes 100 --epsilon 1 --target rmse --value 1e-9
plan --domain-size 4 --nodes 100 --epsilon 1 --report-bits 1 --oracle direct_encoding
plan --domain-size 4 --nodes 0 --epsilon 1
sample people.csv -c answer -e 1
sample people.csv -c person,answer -e 1
sample people.csv -c person -e 1 --bounds person=0:1
sample people.csv -c answer -e 1 --missing drop --rows-are nothing
aggregate people.csv -c answer -e 1 --missing drop -m skellam
aggregate people.csv -c answer -e 1 --delta 2 --missing drop
aggregate people.csv -c answer -e 1 --delta 1e-6 --missing drop -m skellam --honest-aggregators 9
aggregate people.csv -c answer -e 1 --missing drop -m discrete-laplace --max-colluding-users 90
aggregate people.csv -c answer -e 1 --delta 1e-6 --missing drop -m two-stage --reported 9
"""


def files(folder: Path) -> None:
    """Make the files that the commands are asked with."""
    rows = [f"{number},{'ab'[number % 2]}" for number in range(40)]
    (folder / "people.csv").write_text("\n".join(["person,answer", *rows, "1,", "2,"]))
    oracle, mean = tn.DirectEncoding(1.0, ["a", "b"]), tn.mean.Duchi(1.0)
    (folder / "shares.tally").write_bytes(oracle.simulate([5, 6], seed=1).to_bytes())
    (folder / "mean.tally").write_bytes(mean.collect([0.5] * 9, seed=1).to_bytes())


@pytest.mark.everyday
def test_refusals_speak_of_options(tmp_path: Path, turnout: Run, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    files(tmp_path)
    made = "randomize people.csv -c answer -e 1 --labels a,b --missing drop -o"
    for target in ("done/", "reports.parquet"):
        assert turnout(*made.split(), target).exit_code == 0
    for line in REFUSED.strip().splitlines():
        result = turnout(*line.split())
        assert result.exit_code in (1, 2), line
        # A line that ends in the frame of an error goes on in the next one.
        said = " ".join(re.sub("[─-╿]", " ", result.stderr).split())
        # These options take columns by their names: --bounds age=17:91.
        said = re.sub(r"--(bounds|labels) \w+=", "", said)
        assert not PYTHON.search(said), f"{line}: {said}"


def commands(of: Any) -> Iterator[Any]:
    """List the commands of a group and of the groups in it."""
    for each in of.commands.values():
        yield from commands(each) if hasattr(each, "commands") else (each,)


def test_refusals_know_every_option_of_every_command_by_its_name() -> None:
    for command in commands(get_command(app)):
        there = command.make_context(command.name, [], resilient_parsing=True).command.params
        names = {word for each in there for word in each.opts if word.startswith("--")}
        assert set(long_options(command.function())) == names, command.name


def test_an_option_with_a_short_form_is_refused_as_an_option(tmp_path: Path, turnout: Run) -> None:
    files(tmp_path)
    asked = ("survey", tmp_path / "people.csv", "-c", "answer", "-e", 1, "--labels", "a,b")
    refused = turnout(*asked, "--trust", "aggregators", "-p", 0.5)
    assert "error: --participation applies to local reports" in refused.stderr


def test_what_has_no_option_is_refused_by_its_value_alone(tmp_path: Path, turnout: Run) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "people.txt").write_text("answer\na\n")
    for source, what in (("empty", "has no file that ends in"), ("people.txt", "must end in")):
        line = ("randomize", tmp_path / source, "-c", "answer", "-e", 1, "-o", tmp_path / "out")
        assert turnout(*line).stderr.startswith(f"error: '{tmp_path / source}' {what} .parquet")
    refused = turnout("tally", tmp_path / "empty", "-o", tmp_path / "out.tally")
    assert refused.stderr.startswith(f"error: '{tmp_path / 'empty'}' holds no file of reports")
