"""``turnout sample``: rows of a file in, one private record for each user out."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from turnout.cli.answers import LabelsFile, MissingValues, stated_labels
from turnout.cli.options import (
    AsJson,
    PictureFile,
    TableFile,
    csv_of,
    print_json,
    save_picture,
    write_table,
)
from turnout.cli.running import (
    check_positive,
    messages,
    note,
    output,
    refuse_drawing_again,
    refuse_overwriting_inputs,
    refusing,
)
from turnout.cli.sample.methods import (
    check_one_value,
    check_picture_of,
    estimated,
    make_sampler,
    picture,
    settled_method,
)
from turnout.cli.sample.options import Method, Wanted, bounds_of, column_names
from turnout.cli.sample.records import Records, read_records
from turnout.cli.sample.results import Drawn, quality, show_quality
from turnout.cli.tables import print_estimates, tell
from turnout.frequency.estimation.answer import ordered
from turnout.samplers import sample_population
from turnout.samplers.base import LARGEST_EPSILON

Assumption = Literal["one-value"]

# The groups of options in the help.
_NUMBERS = "Columns of numbers"
_LABELS = "Columns of labels"


def _check_epsilon(value: float) -> float:
    if check_positive(value) > LARGEST_EPSILON:
        raise typer.BadParameter(f"{value} is above {LARGEST_EPSILON:g}")
    return value


def _check_jobs(value: int) -> int:
    if value == 0:
        raise typer.BadParameter("0 is neither a number of processes nor negative")
    return value


@refusing
def sample(
    source: Annotated[Path, typer.Argument(metavar="IN")],
    *,
    columns: Annotated[str, typer.Option("--columns", "-c", metavar="A,B")],
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", callback=_check_epsilon)],
    rows_are: Annotated[str | None, typer.Option(metavar="COLUMN")] = None,
    target: TableFile = None,
    overwrite: Annotated[bool, typer.Option("--overwrite")] = False,
    method: Annotated[Method | None, typer.Option("--method", "-m", metavar="NAME")] = None,
    known_records: Annotated[
        int | None, typer.Option("--records", metavar="N", min=1, rich_help_panel=_LABELS)
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=10_000, rich_help_panel=_NUMBERS)
    ] = None,
    ids: Annotated[bool, typer.Option("--ids/--no-ids")] = True,
    bounds: Annotated[
        str | None, typer.Option(metavar="A=LOW:HIGH,...", rich_help_panel=_NUMBERS)
    ] = None,
    rounded: Annotated[bool, typer.Option("--round", rich_help_panel=_NUMBERS)] = False,
    labels: Annotated[
        list[str] | None, typer.Option(metavar="[COLUMN=]A,B,C", rich_help_panel=_LABELS)
    ] = None,
    labels_file: LabelsFile = None,
    missing: Annotated[str | None, typer.Option(metavar="LABEL|drop")] = None,
    missing_value: MissingValues = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", callback=_check_jobs)] = 1,
    seed: Annotated[int | None, typer.Option(min=0, max=2**64 - 1)] = None,
    reference: Annotated[Path | None, typer.Option(metavar="FILE")] = None,
    assume: Annotated[Assumption | None, typer.Option(rich_help_panel=_LABELS)] = None,
    with_quality: Annotated[bool, typer.Option("--quality")] = False,
    as_json: AsJson = False,
    plot: PictureFile = None,
) -> None:
    r"""Draw one realistic record for each user that is safe to hand over.

    A user is all rows with the same value of --rows-are. From a user's rows, however many, a
    single record is drawn, from a distribution that is close to theirs and never far from a public
    one: no record is more than e^epsilon times as likely as if the user had entirely other rows.
    Every further run on the same users spends epsilon again; a file of records that is there is not
    replaced without --overwrite.

    Numbers are drawn around a public distribution: uniform within --bounds, which must not be
    computed from the data; without them the standard normal, and records are numbers of about -3
    to 3. Labels are those of --labels or --labels-file; without them the distinct values of each
    column are taken and treated as public. A column whose values all read as numbers is one of
    numbers, unless a method for labels is named.

    Without --output the records go to standard output as CSV, the summary to standard error.
    --plot shows what the records of all users tell together.

    [bold]Example:[/]

        turnout sample visits.csv --columns age,hours --epsilon 1 --rows-are user \
            --bounds age=17:90,hours=0:99 -o records.csv

    Parameters
    ----------
    source
        CSV (also .csv.gz), Parquet or Arrow IPC file with rows of users.
    columns
        Columns of a record, comma-separated: all of numbers, or all of labels.
    epsilon
        Privacy of a user's record; less is more.
    rows_are
        Column that says whose row it is; without it every row is a user of its own.
    target
        File of records: .csv or .parquet.
    overwrite
        Replace a file of records that is there already.
    method
        For numbers density (if not given) or boosting, for labels minimax, randomized-response or
        mollifier: by --records if not given.
    known_records
        About how many rows a user has, if that is public; many if not given.
    rounds
        Rounds of --method boosting, 10 if not given; time grows with them.
    ids
        Write whose record it is; without ids records are sorted.
    bounds
        Public range of every column; no value may be outside.
    rounded
        Write the nearest integers within bounds.
    labels
        The possible labels of a column; repeatable.
    missing
        Count missing values as this label, or drop rows that have one.
    jobs
        Processes that draw, one if not given; -1 for all cores.
    seed
        For tests only: whoever knows the seed can undo the protection.
    reference
        Draw around the distribution of these rows, which must be public.
    assume
        That every user holds one value: then shares are estimated, with intervals.
    with_quality
        Compare the records with the rows: for whoever holds these, it protects nobody.
    """
    names = column_names(columns)
    wanted = Wanted(
        names,
        rows_are,
        method,
        rounds,
        bounds_of(bounds, names),
        stated_labels(labels, labels_file, names),
        missing,
        tuple(missing_value or ()),
        known_records,
        reference,
        one_value=assume is not None,
    )
    wanted.check()
    for path in (target, plot):
        if path is not None:
            refuse_overwriting_inputs(path, [source])
    if target is not None and not overwrite:
        refuse_drawing_again(target, "records")
    records = read_records(source, wanted)
    if rounded:
        _check_rounding(wanted, records)
    if plot is not None:
        check_picture_of(records)
    check_one_value(wanted, records)
    chosen, because = settled_method(epsilon, wanted, records)
    draws = sample_population(
        make_sampler(chosen, epsilon, wanted, records),
        records.data,
        records.users,
        n_jobs=jobs,
        progress=True,
        seed=seed,
    )
    if seed is not None:
        note("made with --seed: fit for tests only, the draws can be computed again")
    drawn = Drawn(wanted, records, chosen, because, draws, ids, rounded)
    if target is not None:
        write_table(target, drawn.table)
    save_picture(plot, lambda: picture(draws, wanted))
    compared = quality(records, draws) if with_quality else None
    estimate = estimated(draws, wanted) if wanted.one_value else None
    if as_json:
        shares = {} if estimate is None else {"estimates": estimate.to_records()}
        more = {} if compared is None else {"quality": compared}
        print_json({**drawn.json_object(target), **shares, **more})
        return
    if target is None:
        typer.echo(csv_of(drawn.table), nl=False)
    below: list[Any] = [] if target is None else [drawn.preview()]
    if estimate is not None:
        codes = ordered(estimate, "frequency", 20)
        below.append(lambda console: print_estimates(console, estimate, codes, 0.95, None))
    if compared is not None:
        below.append(lambda console: show_quality(console, compared))
    tell(
        f"Records of the users of {source}",
        drawn.summary(target),
        *below,
        console=messages() if target is None else output(),
        picture=plot,
    )


def _check_rounding(wanted: Wanted, records: Records) -> None:
    if records.domain is not None:
        raise typer.BadParameter("is for numbers, these are labels", param_hint="--round")
    for name, bounds in (wanted.bounds or {}).items():
        if math.ceil(bounds.low) > math.floor(bounds.high):
            raise typer.BadParameter(
                f"there is no integer within the bounds of {name!r}", param_hint="--round"
            )
