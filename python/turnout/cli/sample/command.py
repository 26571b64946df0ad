"""``turnout sample``: rows of a file in, one private record for each user out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer

from turnout import samplers
from turnout._extras import require
from turnout.cli import options
from turnout.cli.commands import command
from turnout.cli.running import messages, note, output
from turnout.cli.sample.integers import MOST_INTEGER, Integers
from turnout.cli.sample.mixed import TableRecords, read_table
from turnout.cli.sample.records import Records, read_records
from turnout.cli.sample.results import Drawn, quality, show_quality
from turnout.cli.sample.wanted import NUMBER_METHODS, TABLE, Method, Rows, Wanted, Way
from turnout.cli.tables import csv_of, print_estimates, print_json, tell, write_picture, write_table
from turnout.errors import EstimatorError, InvalidValueError, TurnoutError
from turnout.frequency.estimation.answer import ordered
from turnout.samplers.base import LARGEST_EPSILON

_ASSUME = "--assume"

#: More labels than this do not fit in a picture.
_MOST_BARS = 200

#: So many components describe public numbers, each with so many rows at least.
_COMPONENTS, _ROWS = 5, 50

_SAMPLERS: Final[dict[Method, Callable[..., samplers.PrivateSampler]]] = {
    "density": samplers.MollifiedDensity,
    "boosting": samplers.MollifiedBoosting,
    "minimax": samplers.MinimaxSampler,
    "randomized-response": samplers.RandomizedResponseSampler,
    "mollifier": samplers.FiniteMollifier,
    TABLE: samplers.TableSampler,
}

_check_epsilon = options.accepting(
    lambda value: 0 < value <= LARGEST_EPSILON, f"above 0 and at most {LARGEST_EPSILON:g}"
)
_check_jobs = options.accepting(
    lambda value: value != 0, "a number of processes, or -1 for all cores"
)


@dataclass(frozen=True, kw_only=True)
class _Output:
    """What is written.

    Attributes
    ----------
    target
        File of records: .csv, .parquet or .arrow.
    overwrite
        Replace a file of records that is there already.
    ids
        Write whose record it is; without ids records are sorted.
    with_quality
        Compare the records with the rows: for whoever holds these, it protects nobody.
    """

    target: options.TableFile = None
    overwrite: Annotated[bool, typer.Option("--overwrite")] = False
    ids: Annotated[bool, typer.Option("--ids/--no-ids")] = True
    with_quality: Annotated[bool, typer.Option("--quality")] = False
    plot: options.PictureFile = None
    as_json: options.AsJson = False

    def check(self, source: Path) -> None:
        """Refuse to lose the input, or records that somebody may have.

        Raises
        ------
        InvalidValueError
            If that would happen.
        """
        for path in (self.target, self.plot):
            if path is not None:
                options.refuse_overwriting_inputs(path, [source])
        if self.target is not None and not self.overwrite:
            options.refuse_drawing_again(self.target, "records")

    def refuse_for_tables(self, *, rounded: bool) -> None:
        """Refuse what is not for records of several types."""
        options.refuse_if(
            (
                rounded,
                "--round",
                "write bounds without a point, as in age=17:91: they ask for "
                "whole numbers where numbers and labels are together",
            ),
            (self.plot is not None, "--plot", "is for numbers alone, or labels alone"),
            (
                self.with_quality,
                "--quality",
                "is for numbers alone, or labels alone; in Python tn.samplers.quality compares "
                "tables",
            ),
        )

    def show(self, title: str, drawn: Drawn, estimate: Any, compared: Any) -> None:
        """Print the records, or the summary of those that are written."""
        if self.as_json:
            shares = {} if estimate is None else {"estimates": estimate.to_records()}
            more = {} if compared is None else {"quality": compared}
            print_json({**drawn.json_object(self.target), **shares, **more})
            return
        if self.target is None:
            typer.echo(csv_of(drawn.table), nl=False)
        below: list[Any] = [] if self.target is None else [drawn.preview()]
        if estimate is not None:
            codes = ordered(estimate, "frequency", 20)
            below.append(lambda console: print_estimates(console, estimate, codes, 0.95, None))
        if compared is not None:
            below.append(lambda console: show_quality(console, compared))
        tell(
            title,
            drawn.summary(self.target),
            *below,
            console=messages() if self.target is None else output(),
            picture=self.plot,
        )


@command
def sample(
    source: Annotated[Path, typer.Argument(metavar="IN")],
    *,
    rows: Rows,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", callback=_check_epsilon)],
    way: Way,
    written: _Output,
    jobs: Annotated[int, typer.Option("--jobs", "-j", callback=_check_jobs)] = 1,
    seed: Annotated[int | None, typer.Option(min=0, max=2**64 - 1)] = None,
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

    With both --bounds and --labels (or --method table) columns of several types make one record,
    and each must have one of the two. Bounds that are written as whole numbers ask for whole
    numbers, 2020-01-01:2024-12-31 for days. Records are drawn around the uniform distribution, or
    around that of the public rows of --reference.

    Without --output the records go to standard output as CSV, the summary to standard error.
    --plot shows what the records of all users tell together.

    [bold]Example:[/]

        turnout sample visits.csv --columns age,hours --epsilon 1 --rows-are user \
            --bounds age=17:90,hours=0:99 -o records.csv
        turnout sample visits.csv --columns age,sex,hours --epsilon 2 --rows-are user \
            --bounds age=17:90,hours=0.0:99.0 --labels sex=f,m -o records.csv

    Parameters
    ----------
    source
        CSV (also .csv.gz), Parquet or Arrow IPC file with rows of users.
    epsilon
        Privacy of a user's record; less is more.
    jobs
        Processes that draw, one if not given; -1 for all cores.
    seed
        For tests only: whoever knows the seed can undo the protection.
    """
    wanted = way.of(rows)
    written.check(source)
    records: Records | TableRecords
    sampler: samplers.PrivateSampler
    chosen: Method = TABLE
    because, integers = "", None
    if wanted.method == TABLE:
        written.refuse_for_tables(rounded=rows.rounded)
        records = read_table(source, wanted)
        data, sampler = records.data, _table_sampler(epsilon, wanted, records)
    else:
        records = read_records(source, wanted)
        integers = _integers(wanted, records) if rows.rounded else None
        if written.plot is not None:
            _check_picture_of(records)
        _check_one_value(wanted, records)
        chosen, because = _settled_method(epsilon, wanted, records)
        sampler = _make_sampler(chosen, epsilon, wanted, records, integers)
        data = records.data if integers is None else integers.nearest(records.values)
    draws = samplers.sample_population(
        sampler,
        data,
        records.users,
        n_jobs=jobs,
        progress=True,
        seed=seed,
    )
    if seed is not None:
        note("made with --seed: fit for tests only, the draws can be computed again")
    drawn = Drawn(wanted, records, chosen, because, draws, written.ids, integers)
    if written.target is not None:
        write_table(written.target, drawn.table)
    write_picture(written.plot, lambda: _picture(draws, wanted, integers))
    compared = None
    if written.with_quality and isinstance(records, Records):
        compared = quality(records, drawn.values)
    estimate = _estimated(draws, wanted) if wanted.one_value else None
    written.show(f"Records of the users of {source}", drawn, estimate, compared)


def _integers(wanted: Wanted, records: Records) -> Integers:
    """Find the integers that records may hold, column by column."""
    if records.domain is not None:
        raise typer.BadParameter("is for numbers, these are labels", param_hint="--round")
    bounds = wanted.bounds or {}
    for name, limits in bounds.items():
        if math.ceil(limits.low) > math.floor(limits.high):
            raise typer.BadParameter(
                f"there is no integer within the bounds of {name!r}", param_hint="--round"
            )
        if max(-limits.low, limits.high) > MOST_INTEGER:
            raise typer.BadParameter(
                f"the bounds of {name!r} must lie between -2^51 and 2^51: leave out --round for "
                "larger numbers",
                param_hint="--round",
            )
    return Integers.within([bounds[name] for name in wanted.columns if bounds])


def _settled_method(epsilon: float, wanted: Wanted, records: Records) -> tuple[Method, str]:
    """Name the method, and say why if it was chosen.

    Without a column of users every row is one of its own; what is known of the number of their rows
    is stated, never taken from the data.
    """
    if wanted.method is not None:
        return wanted.method, ""
    if records.domain is None:
        return NUMBER_METHODS[0], ""
    if wanted.reference is not None:
        return "mollifier", "; chosen for the public shares of --reference"
    known = 1 if wanted.user_column is None else wanted.known_records
    sampler = samplers.choose_sampler(epsilon, records.domain, records=known)
    rows = "many rows" if known is None else "one row" if known == 1 else f"about {known:,} rows"
    method: Method = "mollifier" if isinstance(sampler, samplers.FiniteMollifier) else "minimax"
    return method, f"; chosen for users with {rows} (--records, --method)"


def _make_sampler(
    method: Method, epsilon: float, wanted: Wanted, records: Records, integers: Integers | None
) -> samplers.PrivateSampler:
    """Make the sampler of a method, with a note if its reference is the standard normal."""
    arguments: dict[str, Any] = {} if records.domain is None else {"domain": records.domain}
    if wanted.reference is not None:
        arguments["reference"] = _public_reference(wanted.reference, records)
    elif wanted.bounds is not None:
        arguments["reference"] = samplers.Uniform(*np.transpose(_pairs(wanted, integers)))
    elif records.domain is None:
        note(
            "without --bounds records are drawn around the standard normal distribution: they will "
            "be numbers of about -3 to 3, whatever the columns hold; --bounds gives public ranges"
        )
        arguments["reference"] = samplers.StandardNormal(len(wanted.columns))
    if wanted.rounds is not None:
        arguments["n_rounds"] = wanted.rounds
    return _SAMPLERS[method](epsilon, **arguments)


def _table_sampler(epsilon: float, wanted: Wanted, records: TableRecords) -> samplers.TableSampler:
    """Make the sampler of a table."""
    reference = None
    if wanted.reference is not None:
        try:
            reference = records.public(wanted.reference)
        except TurnoutError as error:
            raise InvalidValueError(f"--reference: {error}") from error
    known = 1 if wanted.user_column is None else wanted.known_records
    return samplers.TableSampler(epsilon, records.given, reference=reference, records=known)


def _pairs(wanted: Wanted, integers: Integers | None) -> list[tuple[float, float]]:
    """Give the sides of the box that is drawn from; of integers it holds the cell of each."""
    if integers is not None:
        return integers.box()
    bounds = wanted.bounds or {}
    return [(bounds[name].low, bounds[name].high) for name in wanted.columns if bounds]


def _public_reference(path: Path, records: Records) -> Any:
    """Learn a reference from a file of public rows with the same columns.

    Of numbers it is a mixture of normal distributions, of labels the shares of the rows with one
    row more of each label.

    Raises
    ------
    InvalidValueError
        If the file has other columns, too few rows, or labels that nobody can
        have.
    """
    try:
        public = records.public(path)
    except TurnoutError as error:
        more = "" if records.domain is None else "; --labels states all"
        raise InvalidValueError(f"--reference: {error}{more}") from error
    least = 2 if records.domain is None else 1
    if len(public) < least:
        raise InvalidValueError(f"--reference: {path} needs at least {least} row(s)")
    if records.domain is None:
        mixture = require("sklearn.mixture", "samplers").GaussianMixture
        components = max(1, min(_COMPONENTS, len(public) // _ROWS))
        spread = 1e-6 * max(1e-12, float(public.var(axis=0).max()))
        return mixture(components, reg_covar=spread, random_state=0).fit(public)
    counts = np.bincount(public, minlength=records.domain.size) + 1.0
    return counts / counts.sum()


def _check_picture_of(records: Records) -> None:
    """Refuse what has no picture before anything is spent."""
    if records.domain is None and len(records.columns) > 2:
        raise typer.BadParameter(
            "is for one or two columns of numbers, or for labels", param_hint="--plot"
        )
    if records.domain is not None and records.domain.size > _MOST_BARS:
        raise typer.BadParameter(
            f"is for at most {_MOST_BARS} labels, there are {records.domain.size:,}",
            param_hint="--plot",
        )


def _estimated(draws: samplers.PopulationDraws, wanted: Wanted) -> Any:
    """Estimate what all records tell together.

    Of labels every user holds one value if every row is a user of its own, or if that is assumed.
    """
    if draws.draws.ndim == 1 and (wanted.one_value or wanted.user_column is None):
        try:
            return draws.estimate(assume="one_value")
        except EstimatorError:
            if wanted.one_value:
                raise
    return draws.estimate()


def _check_one_value(wanted: Wanted, records: Records) -> None:
    """Refuse to assume one value of numbers, and say how many users hold more of labels."""
    if not wanted.one_value:
        return
    if records.domain is None:
        raise typer.BadParameter("one-value is for labels, these are numbers", param_hint=_ASSUME)
    codes = records.values
    _, users = np.unique(records.users, return_inverse=True)
    order = np.lexsort((codes, users))
    same = users[order][1:] == users[order][:-1]
    several = np.unique(users[order][1:][same & (codes[order][1:] != codes[order][:-1])])
    if several.size:
        users_of = f"{several.size:,} users hold more than one"
        note(f"--assume one-value: {users_of}, so that what is estimated is not the truth")


def _picture(draws: samplers.PopulationDraws, wanted: Wanted, integers: Integers | None) -> Any:
    """Draw what all records tell together; return the first axes."""
    estimate: Any = _estimated(draws, wanted)
    if draws.draws.ndim == 1:
        axes = estimate.plot()
        axes.set_xlabel(", ".join(wanted.columns))
        return axes
    axes = estimate.plot(bounds=_pairs(wanted, integers) or None)
    first = np.ravel(np.asarray(axes, dtype=object))[0]
    first.set_xlabel(wanted.columns[0])
    if len(wanted.columns) == 2:
        first.set_ylabel(wanted.columns[1])
    return first
