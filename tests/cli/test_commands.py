"""A command is a function whose options may come in objects."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from turnout.cli.app import _documented
from turnout.cli.commands import command, long_options
from turnout.errors import InvalidValueError


@dataclass(frozen=True, kw_only=True)
class Output:
    """What is written.

    Attributes
    ----------
    target
        A file
        of results.
    """

    target: Annotated[Path, typer.Option("--output", "-o")]
    overwrite: Annotated[bool, typer.Option("--overwrite")] = False


@dataclass(frozen=True, kw_only=True)
class Words:
    """What is said."""

    title: str | None = None

    def __post_init__(self) -> None:
        """Refuse a title that says nothing."""
        if self.title == "":
            raise InvalidValueError("title must be a text, got ''")


@command
def show(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="IN")],
    *,
    words: Words,
    output: Output,
) -> None:
    """Show what the options are."""
    typer.echo(f"{sorted(context.params)} {source} {words} {output}")


def test_objects_come_from_options_one_by_one() -> None:
    app = typer.Typer()
    app.command()(show)
    done = CliRunner().invoke(app, ["in.csv", "-o", "out.csv", "--overwrite", "--title", "Vote?"])
    names = ["overwrite", "source", "target", "title"]
    assert done.stdout == (
        f"{names} in.csv {Words(title='Vote?')} {Output(target=Path('out.csv'), overwrite=True)}\n"
    )


def test_an_object_that_refuses_is_a_refusal_of_the_command() -> None:
    app = typer.Typer()
    app.command()(show)
    done = CliRunner().invoke(app, ["in.csv", "-o", "out.csv", "--title", ""])
    assert done.exit_code == 1
    assert done.stderr == "error: --title must be a text, got ''\n"


def test_what_must_be_given_comes_first() -> None:
    assert list(inspect.signature(show).parameters) == [
        "context", "source", "target", "title", "overwrite",
    ]  # fmt: skip
    assert long_options(show) == ["--output", "--title", "--overwrite"]


def test_the_help_of_an_option_stands_in_the_docstring_of_its_object() -> None:
    assert _documented(Output) == ("What is written.", {"target": "A file of results."})


def test_an_option_that_two_objects_have_is_an_error() -> None:
    def twice(*, output: Output, target: str) -> None:
        """Take it twice."""

    with pytest.raises(ValueError, match="duplicate parameter name: 'target'"):
        command(twice)
