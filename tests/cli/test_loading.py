"""A command is imported when it is chosen, and what is said of it before is what it says itself."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import typer

from turnout.cli.app import COMMANDS, Later

#: The modules that nothing on the way to a command's help may need.
HEAVY = {"matplotlib", "narwhals", "pandas", "polars", "pyarrow", "scipy", "sklearn", "statsmodels"}

#: The modules of turnout that stand between a person and the commands.
SKELETON = {
    "turnout",
    "turnout._extras",
    "turnout._progress",
    "turnout._public",
    "turnout._version",
    "turnout.cli",
    "turnout.cli.app",
    "turnout.errors",
}


def below(commands: Iterable[Any], *path: str) -> Iterator[tuple[str, Later]]:
    """All commands with the words that choose them."""
    for command in commands:
        words = (*path, command.name or "")
        if not isinstance(command, Later):
            yield from below(command.commands.values(), *words)
        else:
            assert isinstance(command, Later)
            yield " ".join(words), command


ALL = dict(below(COMMANDS))


def loaded_after(*lines: list[str]) -> set[str]:
    """The modules that a process has imported after the command lines."""
    program = f"""
import contextlib, io, json, sys
from turnout.cli import main
for line in {list(lines)!r}:
    sys.argv = ["turnout", *line]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        with contextlib.suppress(SystemExit):
            main()
print(json.dumps(sorted(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600
    )
    return set(json.loads(done.stdout))


def ours(loaded: set[str]) -> set[str]:
    return {name for name in loaded if name.partition(".")[0] == "turnout"}


@pytest.mark.parametrize(
    "line",
    [
        ["--version"],
        ["--help"],
        ["account", "--help"],
        ["randomise"],
        ["--no-such-option"],
    ],
    ids=" ".join,
)
def test_what_chooses_no_command_imports_none(line: list[str]) -> None:
    loaded = loaded_after(line)
    assert ours(loaded) == SKELETON
    assert {"numpy", *HEAVY}.isdisjoint(loaded)


def test_a_version_needs_no_formatting() -> None:
    assert "rich" not in loaded_after(["--version"])


def test_help_and_usage_errors_of_commands_import_nothing_heavy() -> None:
    others = [words.split() for words in ALL if words != "reproduce"]
    loaded = loaded_after(*([*words, "--help"] for words in others), ["plan", "--no-such-option"])
    assert "turnout.cli.demo" in loaded
    assert HEAVY.isdisjoint(loaded)
    assert "turnout_reproduce" not in loaded


@pytest.mark.parametrize("line", [["plan", "--no-such-option"], ["report", "x.tally", "--titel=x"]])
def test_options_that_a_command_has_not_are_refused_without_it(line: list[str]) -> None:
    loaded = loaded_after(line)
    assert ours(loaded) == SKELETON
    assert {"numpy", *HEAVY}.isdisjoint(loaded)


def said(refuse: Callable[[], object]) -> tuple[str, str | None]:
    with pytest.raises(typer.BadParameter.__mro__[1]) as refused:
        refuse()
    context = refused.value.ctx
    return refused.value.format_message(), context and plain(context.get_usage())


def plain(text: str) -> str:
    """Leave out the marks around arguments, which releases of Typer choose."""
    return re.sub(r"[{}\[\].]", "", text)


@pytest.mark.parametrize("words", ALL)
def test_they_are_refused_in_the_words_of_the_command(words: str) -> None:
    command = ALL[words]
    real = command.command()
    options = [one for one in real.params if one.param_type_name == "option"]
    valued = [one.opts[-1] for one in options if not one.is_flag]
    lines = [["--no-such-option"], ["x", "--jsom=1"], ["--helpp"]]
    lines += [[word, "--json", "--more"] for word in valued]
    for line in lines:
        early = said(lambda line=line: command._refuse_unknown_options(words, list(line), None))
        assert early == said(lambda line=line: real.make_context(words, list(line)))
    for line in [["--help"], ["-%"], ["--", "--more"], valued[:1]]:
        command._refuse_unknown_options(words, list(line), None)
    for one in options:
        right = [one.opts[-1]] if one.is_flag else [one.opts[-1], "--json"]
        command._refuse_unknown_options(words, ["x", *right], None)


def test_the_list_of_options_is_that_of_the_commands() -> None:
    place = Path(__file__).parents[1] / "usage.py"
    program = f"import runpy; print(runpy.run_path({str(place)!r})['usage'](), end='')"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    kept = files("turnout.cli").joinpath("usage.txt").read_text("utf-8")
    assert plain(kept) == plain(done.stdout), (
        "options of commands changed: make public-api writes them"
    )


def test_help_of_the_reproductions_imports_nothing_heavy() -> None:
    loaded = loaded_after(["reproduce", "--help"])
    assert "turnout_reproduce.command" in loaded
    assert HEAVY.isdisjoint(loaded)


def test_choosing_one_command_imports_no_other() -> None:
    commands = {command.module for command in ALL.values()}
    assert loaded_after(["key", "new", "--help"]) & commands == {"turnout.cli.key"}


@pytest.mark.parametrize("words", ALL)
def test_a_summary_is_the_first_paragraph_of_the_commands_own_help(words: str) -> None:
    command = ALL[words]
    text = inspect.getdoc(command.function()) or ""
    assert command.help == " ".join(text.split("\n\n")[0].split())


@pytest.mark.parametrize("words", ALL)
def test_every_parameter_of_a_command_says_what_it_is(words: str) -> None:
    command = ALL[words]
    found = command.make_context(words, [], resilient_parsing=True).command
    assert "Parameters" not in (found.help or "")
    assert [one.name for one in found.params if not getattr(one, "help", None)] == []
    listed = (inspect.getdoc(command.function()) or "").partition("Parameters\n----------\n")[2]
    names = {line for line in listed.splitlines() if line and not line.startswith(" ")}
    assert names <= {one.name for one in found.params}
