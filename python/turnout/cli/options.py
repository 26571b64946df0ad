"""The options that several commands have, and the checks of what is given for options.

An option is called as the parameter of the command, unless its type says otherwise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from turnout.cli.tables import PICTURE_SUFFIXES, TABLE_SUFFIXES
from turnout.errors import InvalidValueError


def accepting(good: Callable[[Any], bool], expected: str) -> Callable[[Any], Any]:
    """Make what accepts the values of an option that are good, or none.

    Examples
    --------
    >>> accepting(lambda value: value > 0, "above 0")(3)
    3
    """

    def check(value: Any) -> Any:
        if value is not None and not good(value):
            raise typer.BadParameter(f"{value} is not {expected}")
        return value

    return check


check_positive = accepting(
    lambda value: math.isfinite(value) and value > 0, "a finite number above 0"
)
check_rate = accepting(lambda value: 0 < value <= 1, "above 0 and at most 1")
check_delta = accepting(lambda value: 0 < value < 1, "between 0 and 1")
check_level = accepting(lambda value: 0 < value < 1, "between 0 and 1 (0.95 stands for 95 %)")


def refuse_if(*rules: tuple[bool, str, str]) -> None:
    """Refuse the first option that is wrong: whether it is, how it is written, and why."""
    for wrong, option, reason in rules:
        if wrong:
            raise typer.BadParameter(reason, param_hint=option)


def refuse_given(context: typer.Context, names: Container[str], reason: str) -> None:
    """Refuse the first of some parameters that was written, even if it is what the default is."""
    for parameter in context.command.params:
        if parameter.name in names and was_given(context, parameter.name):
            raise typer.BadParameter(reason, param_hint=max(parameter.opts, key=len))


def refuse_overwriting_inputs(target: Path, inputs: list[Path]) -> None:
    """Refuse to write a result over a file that it is made from."""
    for source in inputs:
        if target.exists() and source.exists() and target.samefile(source):
            raise InvalidValueError(f"{target}: is an input file; choose another output file")


def refuse_drawing_again(target: Path, kind: str) -> None:
    """Refuse to replace reports or records that somebody may already have."""
    if target.exists():
        raise InvalidValueError(
            f"{target} already exists; randomizing the same people again would spend "
            "epsilon again. Choose another name, or pass --overwrite if nobody has "
            f"the old {kind}"
        )


def ending_in(*known: str) -> Callable[[Path | None], Path | None]:
    """Make what accepts the names of files that end so, or none."""

    def check(path: Path | None) -> Path | None:
        if path is not None and path.suffix.lower() not in known:
            raise typer.BadParameter(f"{path} does not end in {', '.join(known)}")
        return path

    return check


def moment(text: str) -> datetime:
    """Read a moment with its time zone."""
    try:
        # Python 3.10 does not read the Z.
        found = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
        if found.utcoffset() is not None:
            return found
    except ValueError:
        pass
    raise typer.BadParameter(
        f"{text!r} is not a time with a time zone, such as 2030-12-31T00:00:00Z"
    )


def was_given(context: typer.Context, name: str) -> bool:
    """Tell whether a parameter was written, even if it is what the default is."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


# How much is said, and by whom

Epsilon = Annotated[float, typer.Option("--epsilon", "-e", callback=check_positive)]
Participation = Annotated[
    float | None,
    typer.Option(
        "--participation",
        "-p",
        callback=check_rate,
        help="Probability that a person who is asked reports. Default: 1, or that of "
        "the round before.",
    ),
]

# What people are asked

Column = Annotated[
    str, typer.Option("--column", "-c", help="Column of the answers; no other column is read.")
]
Labels = Annotated[
    str | None, typer.Option(metavar="A,B,C", help="The possible answers, separated by commas.")
]
LabelsByColumn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[COLUMN=]A,B,C",
        help="The possible answers of a column, separated by commas; repeatable.",
    ),
]
LabelsFile = Annotated[
    Path | None,
    typer.Option(
        help="A UTF-8 file with one possible answer on each line, for many answers or "
        "labels with commas."
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[COLUMN=]LABEL|drop",
        help="What to do with missing answers: count them as this label, or drop "
        "these people. For a group column: the group of people without one. "
        "Repeatable.",
    ),
]
MissingValues = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="A text that means a missing answer. Empty fields, nulls, NaN, and NA, "
        "n/a, null and None (unless they are labels) always do. Repeatable.",
    ),
]
Trim = Annotated[bool, typer.Option("--trim", help="Remove white space around answers and groups.")]
Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="IN...",
        help=(
            "CSV, .csv.gz, Parquet or Arrow IPC files with one row for each person; "
            "folders of them, also Hive partitions; quoted patterns."
        ),
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        help="The separator of CSV files, such as ';' or tab, if it is not detected.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The encoding of CSV files, if it is not UTF-8: cp1252."),
]
IdColumn = Annotated[
    str | None,
    typer.Option(help="Column that identifies the person of a row; it is never written."),
]
Duplicates = Annotated[
    Literal["refuse", "first"],
    typer.Option(
        metavar="refuse|first",
        help="With --id-column: what to do with duplicate rows of a person.",
    ),
]
PseudonymKeyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="With --id-column: give reports a keyed pseudonym. The key file is made "
        "if it does not exist.",
    ),
]
GroupBy = Annotated[
    list[str] | None,
    typer.Option(help="A group column; it is written unprotected. Each group gets its own tally."),
]
ProbabilityColumn = Annotated[
    str | None,
    typer.Option(help="Column of each person's own probability of reporting, which is public."),
]


# What comes out

PictureFile = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        callback=ending_in(*PICTURE_SUFFIXES),
        help="Save a picture: .png, .svg or .pdf.",
    ),
]
DifferentPeople = Annotated[
    bool,
    typer.Option(
        "--different-people",
        help="State that nobody is in two inputs. By default, people with permanent "
        "answers may be.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Level = Annotated[
    float,
    typer.Option("--interval", callback=check_level, help="Confidence level of the intervals."),
]
PublicKey = Annotated[
    str | None, typer.Option(metavar="HEX", help="Refuse a plan that this key did not sign.")
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, help="For tests only: anyone who knows the seed can remove the noise."),
]
Sign = Annotated[
    Path | None,
    typer.Option(
        metavar="KEY", help="Sign the plan with this secret key; turnout key new makes one."
    ),
]
TableFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        callback=ending_in(*TABLE_SUFFIXES),
        help="Save the whole table as .csv, .parquet or .arrow.",
    ),
]


# How estimates are shown

#: The words of ``--method``, and what the estimators are called in Python, after the papers.
METHODS: Final = {
    "hajek": "hajek",
    "horvitz_thompson": "horvitz_thompson",
    "received": "c_hat",
    "expected": "g",
    "total": "T",
    "everyone": "c",
    "ems": "ems",
    "ml": "ml",
}


def _method(text: str) -> str:
    plain = text.replace("-", "_")
    if plain in METHODS:
        return METHODS[plain]
    if text in METHODS.values():
        return text
    raise typer.BadParameter(f"{text!r} is none of {', '.join(METHODS)}")


def method_word(name: str) -> str:
    """Give the word of ``--method`` for an estimator.

    Examples
    --------
    >>> method_word("c_hat"), method_word("hajek")
    ('received', 'hajek')
    """
    return next((word for word, own in METHODS.items() if own == name), name)


Method = Annotated[
    Any,
    typer.Option(
        metavar="NAME",
        parser=_method,
        help=f"Estimator: {', '.join(METHODS)}. hajek is right for every "
        "participation; everyone is biased unless everyone reports. For a "
        "distribution: ems (default) or ml.",
    ),
]
Clip = Annotated[
    bool,
    typer.Option("--clip", help="Clip the intervals of shares to the range from 0 to 1."),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="For joint questions: show shares among the people who gave each answer "
        "to this question; repeatable.",
    ),
]
Of = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="With --given: the question whose shares are shown."),
]
Marginal = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="For joint questions: show the shares of this question alone; repeatable.",
    ),
]
Consistent = Annotated[
    bool,
    typer.Option(
        "--consistent", help="Make tables of pairs of questions consistent with each other."
    ),
]
Simultaneous = Annotated[
    Literal["bonferroni", "sidak"] | None,
    typer.Option(help="Make the confidence level hold for all intervals at once."),
]
Projection = Literal["none", "simplex", "norm_sub", "clip_normalize"]
Order = Annotated[
    Literal["frequency", "label", "domain"],
    typer.Option("--sort", help="Order of the labels."),
]
Over = Annotated[
    Literal["labels", "groups", "all"],
    typer.Option(help="For a grouped tally: the intervals that --simultaneous covers."),
]


def top_of(text: str) -> int | None:
    """Read how many labels are shown; None for all."""
    if text == "all":
        return None
    if not re.fullmatch("[1-9][0-9]{0,17}", text, re.ASCII):
        raise typer.BadParameter(f"{text!r} is neither a number of labels nor all")
    return int(text)


Top = Annotated[
    Any,
    typer.Option(
        metavar="N|all",
        parser=top_of,
        help="Show only the labels with the largest shares; --json has all.",
    ),
]
