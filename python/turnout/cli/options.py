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
            raise InvalidValueError(f"{target}: is an input; name another file for the output")


def refuse_drawing_again(target: Path, kind: str) -> None:
    """Refuse to replace what was drawn for people before: somebody may have it already."""
    if target.exists():
        raise InvalidValueError(
            f"{target} is there already: to draw for the same people again spends epsilon again; "
            f"take another name, or --overwrite if nobody has the old {kind}"
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
    raise typer.BadParameter(f"{text!r} is no time with a time zone, such as 2030-12-31T00:00:00Z")


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
        help="Probability that a person who is asked reports; default 1, later as in the last "
        "round.",
    ),
]

# What people are asked

Column = Annotated[
    str, typer.Option("--column", "-c", help="Column with the answers; no other is read.")
]
Labels = Annotated[
    str | None, typer.Option(metavar="A,B,C", help="The possible answers, comma-separated.")
]
LabelsByColumn = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[COLUMN=]A,B,C",
        help="The possible answers of a column, comma-separated; repeatable.",
    ),
]
LabelsFile = Annotated[
    Path | None,
    typer.Option(
        help="The possible answers, one a line (UTF-8): for many, and for labels with commas."
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[COLUMN=]LABEL|drop",
        help="Count missing answers (in a column) as this label, or drop those people; of a column "
        "of groups: the group of who has none; repeatable.",
    ),
]
MissingValues = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="A text that means missing, beside empty fields, nulls, NaN and (where they are no "
        "label) what pandas takes for missing: NA, n/a, null, None; repeatable.",
    ),
]
Trim = Annotated[
    bool, typer.Option("--trim", help="Take white space off the texts of answers and groups.")
]
Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="IN...",
        help=(
            "CSV (also .csv.gz), Parquet or Arrow IPC files with one row a person; folders of "
            "them, Hive partitions too; quoted patterns."
        ),
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        metavar="CHARACTER",
        help="What stands between fields of CSV files, where that is not found out: ';' or tab.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="How CSV files are written, if not in UTF-8: cp1252."),
]
IdColumn = Annotated[
    str | None, typer.Option(help="Which person a row is of; it is not written anywhere.")
]
Duplicates = Annotated[
    Literal["refuse", "first"],
    typer.Option(
        metavar="refuse|first",
        help="With --id-column: what happens to a second row of a person.",
    ),
]
PseudonymKeyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="With --id-column: reports carry a keyed pseudonym; the file is made if need be.",
    ),
]
GroupBy = Annotated[
    list[str] | None,
    typer.Option(help="A column that is reported as it is, for a tally of each group."),
]
ProbabilityColumn = Annotated[
    str | None,
    typer.Option(help="Each person's own probability of reporting; public."),
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
        help="Nobody is in two of the inputs. By default people who keep permanent answers may be.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Level = Annotated[
    float,
    typer.Option("--interval", callback=check_level, help="Confidence level of the intervals."),
]
PublicKey = Annotated[
    str | None, typer.Option(metavar="HEX", help="Refuse a plan not signed by this key.")
]
Seed = Annotated[
    int | None, typer.Option(min=0, help="For tests only: whoever knows it can undo the noise.")
]
Sign = Annotated[
    Path | None, typer.Option(metavar="KEY", help="Sign the plan with this key; see turnout key.")
]
TableFile = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        callback=ending_in(*TABLE_SUFFIXES),
        help="Save the table, all of it: .csv, .parquet or .arrow.",
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
        help=f"Estimator: {', '.join(METHODS)}. hajek suits every participation; everyone is "
        "biased unless everyone reports. Of a distribution ems (default) or ml.",
    ),
]
Clip = Annotated[
    bool,
    typer.Option("--clip", help="Cut intervals of shares to 0 and 1, where no share is outside."),
]
Given = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Of questions asked together: shares among those who gave each answer to it; "
        "repeatable.",
    ),
]
Of = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="With --given: the question of the shares.")
]
Marginal = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Of several questions: the shares of this one, whatever is answered to the others; "
        "repeatable.",
    ),
]
Consistent = Annotated[
    bool,
    typer.Option(
        "--consistent", help="Make tables of two questions agree on what they have in common."
    ),
]
Simultaneous = Annotated[
    Literal["bonferroni", "sidak"] | None,
    typer.Option(help="Make the level hold for all intervals at once, not for each."),
]
Projection = Literal["none", "simplex", "norm_sub", "clip_normalize"]
Order = Annotated[
    Literal["frequency", "label", "domain"],
    typer.Option("--sort", help="Order of the labels."),
]
Over = Annotated[
    Literal["labels", "groups", "all"],
    typer.Option(help="Of a grouped tally: what --simultaneous holds for at once."),
]


def top_of(text: str) -> int | None:
    """Read how many labels are shown; None for all."""
    if text == "all":
        return None
    if not re.fullmatch("[1-9][0-9]{0,17}", text, re.ASCII):
        raise typer.BadParameter(f"{text} is neither a number of labels nor all")
    return int(text)


Top = Annotated[
    Any,
    typer.Option(
        metavar="N|all",
        parser=top_of,
        help="Show the labels with the largest shares only; --json has all.",
    ),
]
