"""``turnout survey``: a table of answers in, a table of shares with intervals out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from turnout._files import atomic_write
from turnout.cli import options
from turnout.cli.answers import settled
from turnout.cli.columns import by_column
from turnout.cli.commands import command
from turnout.cli.input import Input, listed_files
from turnout.cli.numbers import read_bounds
from turnout.cli.output import Intervals
from turnout.cli.page import Page, say_written
from turnout.cli.question import Labels
from turnout.cli.showing.estimates import Wish
from turnout.cli.showing.survey import print_survey, show_survey
from turnout.cli.tables import TABLE_SUFFIXES
from turnout.errors import InvalidValueError
from turnout.pipeline import Answers
from turnout.surveying import SurveyResult, SurveyResults
from turnout.surveying.asking import QUANTILES, survey_columns
from turnout.surveying.local import Question, question_of, together_of

#: So many labels are shown.
_TOP: Final = 20

#: What the name of a file must not have on some system.
_NO_NAME: Final = re.compile(r"[/\\:*?\"<>|\x00-\x1f]|^\.")


_check_delta = options.accepting(lambda value: 0 <= value <= 1, "between 0 and 1")


def _shares(text: str) -> tuple[float, ...]:
    try:
        shares = tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not A,B,C, shares between 0 and 1") from error
    if not all(0.0 < share < 1.0 for share in shares):
        raise typer.BadParameter(f"{text!r} is not A,B,C, shares between 0 and 1")
    return shares


@dataclass(frozen=True, kw_only=True)
class _Question(Labels):
    """What is asked in which columns.

    Attributes
    ----------
    column
        Column with the answers; repeatable.
    joint
        Another column whose answer goes into the same report; repeatable.
    by
        A group column, which is not protected; repeatable.
    bounds
        Bounds of a numeric column: estimate its mean and quantiles; repeatable.
    mean
        Bounds of a numeric column: estimate its mean only, more precisely; repeatable.
    quantiles
        With --bounds: which quantiles to show. Default: the quartiles.
    """

    column: Annotated[list[str], typer.Option("--column", "-c")]
    joint: Annotated[list[str] | None, typer.Option(metavar="COLUMN")] = None
    by: list[str] | None = None
    bounds: Annotated[list[str] | None, typer.Option(metavar="[COLUMN=]LOW:HIGH")] = None
    mean: Annotated[list[str] | None, typer.Option(metavar="[COLUMN=]LOW:HIGH")] = None
    quantiles: Annotated[Any, typer.Option(metavar="A,B,C", parser=_shares)] = None

    def __post_init__(self) -> None:
        """Refuse what does not go together."""
        super().__post_init__()
        options.refuse_if(
            (len({*self.column}) < len(self.column), "--column", "names a column twice"),
            (len({*self.columns}) < len(self.columns), "--joint", "names a column twice"),
            (bool(self.joint) and len(self.column) > 1, "--joint", "needs exactly one --column"),
            (
                bool(self.joint) and any((self.bounds, self.mean)),
                "--joint",
                "applies to columns of answers, which have no --bounds or --mean",
            ),
        )

    @property
    def columns(self) -> list[str]:
        """The columns with answers."""
        return [*self.column, *(self.joint or ())]

    def read(self) -> _Asked:
        """Read what is stated of each column.

        Raises
        ------
        typer.BadParameter
            If it cannot be read, or contradicts itself.
        """
        asked = _Asked(
            self.of(self.columns),
            by_column("--bounds", self.bounds, self.column, read_bounds),
            by_column("--mean", self.mean, self.column, read_bounds),
        )
        for name in self.column:
            if name in asked.bounds and name in asked.mean:
                raise typer.BadParameter(f"{name!r} has --bounds too", param_hint="--mean")
            if name in asked.numbers and name in asked.labels:
                option = "--mean" if name in asked.mean else "--bounds"
                raise typer.BadParameter(
                    "has --bounds or --mean, so it has no --labels", param_hint=option
                )
        options.refuse_if(
            (
                self.quantiles is not None and not asked.bounds,
                "--quantiles",
                "needs --bounds: quantiles are computed from numbers",
            )
        )
        return asked

    def settle(self, data: Input, asked: _Asked) -> tuple[Answers, Mapping[str, Question]]:
        """Open the answers, and say what each column is asked for.

        Raises
        ------
        InvalidValueError
            If a column cannot be asked for it.
        OSError
            If a file cannot be read.
        """
        answers = data.scan(self.columns, group_by=tuple(self.by or ()))
        answers, domains, found = settled(answers, {**asked.labels, **asked.numbers})
        quantiles = self.quantiles or QUANTILES
        questions = {
            name: question_of(
                answers, name, domain, quantiles if name in asked.bounds else (), found.get(name)
            )
            for name, domain in domains.items()
        }
        return answers, together_of(questions) if self.joint else questions


@dataclass(frozen=True)
class _Asked:
    """What is stated of columns: labels, bounds of numbers, and bounds for a mean alone."""

    labels: Mapping[str, Any]
    bounds: Mapping[str, Any]
    mean: Mapping[str, Any]

    @property
    def numbers(self) -> dict[str, Any]:
        """The bounds of all columns of numbers."""
        return {**self.bounds, **self.mean}


@dataclass(frozen=True, kw_only=True)
class _Privacy:
    """How people are protected.

    Attributes
    ----------
    epsilon
        Privacy of everything that a person reports; smaller is more private.
    participation
        Probability that a person reports.
    trust
        Whom people trust. local: nobody. aggregators: servers that count under secret sharing, with
        far less error.
    delta
        With --trust aggregators: the delta of the guarantee.
    parties
        With --trust aggregators: the number of aggregators; 3 by default.
    """

    epsilon: options.Epsilon
    participation: options.Participation = 1.0
    trust: Literal["local", "aggregators"] = "local"
    delta: Annotated[float | None, typer.Option(callback=_check_delta)] = None
    parties: Annotated[int | None, typer.Option(min=2)] = None
    seed: options.Seed = None


@dataclass(frozen=True, kw_only=True)
class _View(Intervals):
    """How the result is looked at."""

    top: options.Top = str(_TOP)

    def check(self, columns: Sequence[str], asked: _Asked) -> None:
        """Refuse what no column has."""
        shares = not {*columns} <= {*asked.numbers}
        options.refuse_if(
            (self.clip and not shares, "--clip", "applies to shares, but no column has labels"),
            (
                self.top != _TOP and not shares,
                "--top",
                "applies to labels, but no column has labels",
            ),
            (
                self.simultaneous is not None and {*columns} <= {*asked.bounds},
                "--simultaneous",
                "applies only to shares and means",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class _Output(Page):
    """What is written.

    Attributes
    ----------
    target
        File for the tally; for several columns, a folder.
    """

    target: Annotated[Path | None, typer.Option("--output", "-o", metavar="OUT")] = None
    as_json: options.AsJson = False

    def _written(self) -> dict[str, Path | None]:
        return {"--output": self.target, **super()._written()}

    def files(self, columns: Sequence[str], data: Input) -> dict[str, Path]:
        """Say in which file the tally of each column goes, before anybody is randomized.

        Raises
        ------
        InvalidValueError, OSError
            If it cannot be written, or the page.
        """
        files = {} if self.target is None else _files(self.target, columns)
        if self.target is not None:
            self.refuse_unwritable(self.target, files, data.paths, "tally")
        self.check(data.paths)
        return files


@command
def survey(
    *, question: _Question, privacy: _Privacy, data: Input, view: _View, output: _Output
) -> None:
    """Randomize a table's answers and show the share of each answer, with intervals.

    Each answer is randomized with the oracle of smallest error. Only the reports are counted, and
    no report is written to a file; turnout randomize writes them. With several columns, each person
    answers one column drawn at random, or all columns with parts of epsilon, whichever has the
    smaller error. With --joint, the answers to several columns go into one report, which gives
    their joint table.

    --output writes the tally, so that you can make other tables and pages without randomizing
    anybody again: turnout estimate, report and tally read it. For several columns, OUT is a folder
    with one tally for each. --report writes a page for people, with the sentence to publish.

    Without --labels, the labels are taken from the data, and the command treats them as public.

    [bold]Examples:[/]

        turnout survey answers.csv -c vote -e 1 --by region

        turnout survey people.parquet -c age -e 2 --bounds 0:120

        turnout survey answers.csv -c vote -c age -e 2 --bounds age=0:120

        turnout survey answers.csv -c sex --joint vote -e 2 -o joint.tally

        turnout survey answers.csv -c vote -e 1 --report vote.html --title "Your vote?"
    """
    options.refuse_if(
        (
            output.target is not None and privacy.trust == "aggregators",
            "--output",
            "needs reports, which aggregators do not receive; pass --report for the page",
        )
    )
    files = output.files(question.column, data)
    asked = question.read()
    view.check(question.column, asked)
    answers, questions = question.settle(data, asked)
    result = survey_columns(answers, questions, **vars(privacy))
    if view.clip:
        result = result.clip_intervals()
    _write_tallies(result, files)
    output.write(result, level=view.level, simultaneous=view.simultaneous, top=view.top)
    wish = Wish("hajek", **{**vars(view), "top": None if output.as_json else view.top})
    if output.as_json:
        print_survey(result, wish, listed_files(answers.source.file_rows))
        return
    show_survey(result, wish, answers.source.file_rows)
    for file in files.values():
        say_written("tally", file)
    say_written("page", output.page)


def _files(target: Path, columns: Sequence[str]) -> dict[str, Path]:
    """Say in which file the tally of each column goes.

    Examples
    --------
    >>> _files(Path("out"), ["vote", "a/b"])["a/b"].name
    'a_b.tally'
    """
    if len(columns) == 1:
        suffix = target.suffix.lower()
        if suffix in (*TABLE_SUFFIXES, ".html", ".htm"):
            raise typer.BadParameter(
                f"{target}: the output is a tally and needs no file ending; turnout "
                "estimate turns it into a table, turnout report into a page",
                param_hint="--output",
            )
        return {columns[0]: target}
    files = {name: target / f"{_NO_NAME.sub('_', name)}.tally" for name in columns}
    if len({str(file).casefold() for file in files.values()}) < len(files):
        raise InvalidValueError(
            f"--output: the tallies of {', '.join(map(repr, columns))} would have the "
            "same name; survey these columns one by one"
        )
    return files


def _write_tallies(result: SurveyResult | SurveyResults, files: Mapping[str, Path]) -> None:
    """Write the tally of each column."""
    for name, file in files.items():
        one = result[name] if isinstance(result, SurveyResults) else result
        if len(files) > 1:
            file.parent.mkdir(exist_ok=True)
        with atomic_write(file) as temporary:
            temporary.write_bytes(one.tally.to_bytes())
