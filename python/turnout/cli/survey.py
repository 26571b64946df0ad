"""``turnout survey``: a table of answers in, a table of shares with intervals out."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from turnout._extras import require
from turnout._files import atomic_write
from turnout._progress import doing
from turnout.cli import options
from turnout.cli.answers import (
    by_column,
    files_of,
    listed_files,
    scanned,
    settled,
    stated_labels,
)
from turnout.cli.commands import command
from turnout.cli.numbers import read_bounds
from turnout.cli.running import output
from turnout.cli.showing.estimates import Wish
from turnout.cli.showing.survey import print_survey, show_survey
from turnout.cli.tables import TABLE_SUFFIXES
from turnout.errors import InvalidValueError
from turnout.reporting import report as write_report
from turnout.surveying import SurveyResult, SurveyResults
from turnout.surveying.asking import QUANTILES, survey_columns
from turnout.surveying.local import question_of, together_of

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


@command
def survey(
    sources: options.Sources,
    *,
    column: Annotated[list[str], typer.Option("--column", "-c")],
    epsilon: options.Epsilon,
    joint: Annotated[list[str] | None, typer.Option(metavar="COLUMN")] = None,
    by: list[str] | None = None,
    participation: options.Participation = 1.0,
    labels: options.LabelsByColumn = None,
    labels_file: options.LabelsFile = None,
    bounds: Annotated[list[str] | None, typer.Option(metavar="[COLUMN=]LOW:HIGH")] = None,
    mean: Annotated[list[str] | None, typer.Option(metavar="[COLUMN=]LOW:HIGH")] = None,
    quantiles: Annotated[Any, typer.Option(metavar="A,B,C", parser=_shares)] = None,
    missing: options.Missing = None,
    missing_value: options.MissingValues = None,
    trim: options.Trim = False,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    trust: Literal["local", "aggregators"] = "local",
    delta: Annotated[float | None, typer.Option(callback=_check_delta)] = None,
    parties: Annotated[int | None, typer.Option(min=2)] = None,
    level: options.Level = 0.95,
    simultaneous: options.Simultaneous = None,
    clip: options.Clip = False,
    top: options.Top = str(_TOP),
    target: Annotated[Path | None, typer.Option("--output", "-o", metavar="OUT")] = None,
    page: Annotated[
        Path | None,
        typer.Option("--report", metavar="PAGE", callback=options.ending_in(".html", ".htm")),
    ] = None,
    title: str | None = None,
    overwrite: Annotated[bool, typer.Option("--overwrite")] = False,
    as_json: options.AsJson = False,
    seed: options.Seed = None,
) -> None:
    """Randomize the answers of columns and show how often each is given, with intervals.

    Each answer is randomized by itself, by the oracle of smallest error; only the reports are
    counted, and none is written to a file. To hand reports over, see turnout randomize. Of several
    columns each person answers one, drawn at random, or all with parts of epsilon, whichever has
    the smaller error. With --joint the answers to several columns go into one report, for the joint
    table of them.

    --output writes the tally, which turnout estimate, report and tally read: so that nobody is
    randomized again for another table or page. Of several columns OUT is a folder with a tally of
    each. --report writes the page for people, as turnout report does of a tally, with the sentence
    to publish.

    Without --labels the labels are those of the data, which are then taken to be public.

    [bold]Examples:[/]

        turnout survey answers.csv -c vote -e 1 --by region

        turnout survey people.parquet -c age -e 2 --bounds 0:120

        turnout survey answers.csv -c vote -c age -e 2 --bounds age=0:120

        turnout survey answers.csv -c sex --joint vote -e 2 -o joint.tally

        turnout survey answers.csv -c vote -e 1 --report vote.html --title "Your vote?"

    Parameters
    ----------
    column
        Column with the answers; repeatable.
    epsilon
        Privacy of all that a person reports; less is more.
    joint
        A further column, whose answer goes into the same report; repeatable.
    by
        A column of groups, which are not protected; repeatable.
    participation
        Probability that a person reports.
    bounds
        Mean and quantiles of a column of numbers; repeatable.
    mean
        The mean alone of a column of numbers, more precisely; repeatable.
    quantiles
        With --bounds: which quantiles, the quartiles if not given.
    trust
        local: nobody; aggregators: count under secret sharing, with far less error.
    delta
        With --trust aggregators: the guarantee may have a delta.
    parties
        With --trust aggregators: how many add up; 3.
    simultaneous
        Make the level hold for many intervals at once.
    target
        File for the tally; of several columns a folder.
    page
        The page, a file ending in .html.
    title
        The heading of the page: the question that was asked.
    overwrite
        Replace what is there already.
    """
    columns = [*column, *(joint or ())]
    options.refuse_if(
        (len(set(column)) < len(column), "--column", "names a column twice"),
        (len(set(columns)) < len(columns), "--joint", "names a column twice"),
        (bool(joint) and len(column) > 1, "--joint", "goes with one --column"),
        (
            bool(joint) and any((bounds, mean)),
            "--joint",
            "is of columns of answers, which have no bounds or mean",
        ),
        (
            target is not None and trust == "aggregators",
            "--output",
            "is for a tally of reports, and aggregators get none; --report writes the page",
        ),
        (title is not None and page is None, "--title", "needs --report"),
        (
            overwrite and target is None and page is None,
            "--overwrite",
            "needs --output or --report",
        ),
    )
    files = {} if target is None else _files(target, column)
    if target is not None:
        _refuse_unwritable(target, files, sources, overwrite=overwrite)
    if page is not None:
        _refuse_unwritable(page, {"": page}, sources, overwrite=overwrite, what="page")
        # Before anybody is randomized for a page that cannot be drawn.
        require("matplotlib", "cli")
    given: dict[str, dict[str, Any]] = {
        "--labels": stated_labels(labels, labels_file, columns),
        "--bounds": by_column("--bounds", bounds, column, read_bounds),
        "--mean": by_column("--mean", mean, column, read_bounds),
    }
    _refuse_contradictions(given, column)
    shares = not {*column} <= {*given["--bounds"], *given["--mean"]}
    options.refuse_if(
        (
            quantiles is not None and not given["--bounds"],
            "--quantiles",
            "are of numbers: needs --bounds",
        ),
        (clip and not shares, "--clip", "is for shares, and no column has any"),
        (top != _TOP and not shares, "--top", "is for labels, and no column has any"),
        (
            simultaneous is not None and {*column} <= {*given["--bounds"]},
            "--simultaneous",
            "is for shares and means alone",
        ),
    )
    asked = {name: bounds for each in given.values() for name, bounds in each.items()}
    answers = scanned(
        sources,
        columns,
        missing=missing,
        missing_values=missing_value,
        separator=separator,
        encoding=encoding,
        trim=trim,
        group_by=by,
    )
    answers, domains, found = settled(answers, asked)
    quantiles = quantiles or QUANTILES
    questions = {
        name: question_of(
            answers,
            name,
            domain,
            quantiles if name in given["--bounds"] else (),
            found.get(name),
        )
        for name, domain in domains.items()
    }
    result = survey_columns(
        answers,
        together_of(questions) if joint else questions,
        epsilon=epsilon,
        participation=participation,
        trust=trust,
        delta=delta,
        parties=parties,
        seed=seed,
    )
    wish = Wish("hajek", level, simultaneous, top=None if as_json else top, clip=clip)
    if clip:
        result = result.clip_intervals()
    _write_tallies(result, files)
    if page is not None:
        with doing("writing the page"):
            write_report(result, page, title=title, level=level, simultaneous=simultaneous, top=top)
    if as_json:
        print_survey(result, wish, listed_files(answers))
        return
    show_survey(result, wish, answers.source.file_rows)
    written = [*(("tally", file) for file in files.values()), *((("page", page),) if page else ())]
    for what, file in written:
        output().print(f"\nThe {what}: {file}", markup=False, soft_wrap=True)


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
                f"{target}: the output is a tally; turnout estimate makes a table of it, and "
                "turnout report a page",
                param_hint="--output",
            )
        return {columns[0]: target}
    files = {name: target / f"{_NO_NAME.sub('_', name)}.tally" for name in columns}
    if len({str(file).casefold() for file in files.values()}) < len(files):
        raise InvalidValueError(
            f"--output: the tallies of {', '.join(map(repr, columns))} would have one name; survey "
            "them one by one"
        )
    return files


def _refuse_unwritable(
    target: Path,
    files: Mapping[str, Path],
    sources: Sequence[str],
    *,
    overwrite: bool,
    what: str = "tally",
) -> None:
    """Refuse what cannot be written before anybody is randomized."""
    folder = target.parent
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "no such folder", str(folder))
    if len(files) == 1 and target.is_dir():
        raise IsADirectoryError(errno.EISDIR, f"a folder; name a file for the {what}", str(target))
    if len(files) > 1 and target.exists() and not target.is_dir():
        raise NotADirectoryError(
            errno.ENOTDIR, "no folder, and each column has a tally", str(target)
        )
    for file in files.values():
        options.refuse_overwriting_inputs(file, files_of(sources))
        if not overwrite:
            options.refuse_drawing_again(file, what)


def _write_tallies(result: SurveyResult | SurveyResults, files: Mapping[str, Path]) -> None:
    """Write the tally of each column."""
    for name, file in files.items():
        one = result[name] if isinstance(result, SurveyResults) else result
        if len(files) > 1:
            file.parent.mkdir(exist_ok=True)
        with atomic_write(file) as temporary:
            temporary.write_bytes(one.tally.to_bytes())


def _refuse_contradictions(given: Mapping[str, Mapping[str, Any]], columns: Sequence[str]) -> None:
    numbers = {**given["--bounds"], **given["--mean"]}
    for name in columns:
        if name in given["--bounds"] and name in given["--mean"]:
            raise typer.BadParameter(f"{name!r} has --bounds too", param_hint="--mean")
        if name in numbers and name in given["--labels"]:
            option = "--mean" if name in given["--mean"] else "--bounds"
            raise typer.BadParameter("is for numbers, which have no labels", param_hint=option)
