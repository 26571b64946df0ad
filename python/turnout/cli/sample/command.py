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
from turnout._types import Array
from turnout.cli import options
from turnout.cli.commands import command
from turnout.cli.running import messages, note, note_seed, output
from turnout.cli.sample.integers import MOST_INTEGER, Integers
from turnout.cli.sample.mixed import TableRecords, read_table
from turnout.cli.sample.records import Records, read_records
from turnout.cli.sample.results import Drawn, quality, show_quality, show_shares
from turnout.cli.sample.wanted import DENSITY, TABLE, Method, Rows, Wanted, Way
from turnout.cli.tables import (
    TABLE_SUFFIXES,
    csv_of,
    print_estimates,
    print_json,
    tell,
    write_picture,
    write_table,
)
from turnout.errors import EstimatorError, InvalidValueError, TurnoutError
from turnout.frequency.estimation.answer import ordered
from turnout.pipeline import sample as draw_records
from turnout.pipeline.job import Job
from turnout.samplers.base import LARGEST_EPSILON
from turnout.samplers.tables.collected_file import read_collected

_ASSUME = "--assume"

#: More labels than this do not fit in a picture.
_MOST_BARS = 200

#: So many components describe public numbers, each with so many rows at least.
_COMPONENTS, _ROWS = 5, 50

_SAMPLERS: Final[dict[Method, Callable[..., samplers.PrivateSampler]]] = {
    "density": samplers.MollifiedDensity,
    "minimax": samplers.MinimaxSampler,
    "randomized-response": samplers.RandomizedResponseSampler,
    "mollifier": samplers.FiniteMollifier,
    TABLE: samplers.TableSampler,
}

check_epsilon = options.accepting(
    lambda value: 0 < value <= LARGEST_EPSILON, f"above 0 and at most {LARGEST_EPSILON:g}"
)
_check_jobs = options.accepting(
    lambda value: value != 0, "a number of processes, or -1 for all cores"
)


def _check_target(target: Path | None) -> Path | None:
    """Accept a file of records, or a folder: what has no suffix."""
    if target is None or target.is_dir() or not target.suffix:
        return target
    return options.ending_in(*TABLE_SUFFIXES)(target)


@dataclass(frozen=True, kw_only=True)
class _Output:
    """What is written.

    Attributes
    ----------
    target
        File of records: .csv, .parquet or .arrow; or a folder, for a job that can be resumed.
    resume
        Continue the job in the folder, if there is one.
    overwrite
        Replace an existing file of records.
    ids
        Write whose record each is. Without ids, records are sorted.
    with_quality
        Compare the records with the real rows. The comparison is not private.
    """

    target: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT", callback=_check_target)
    ] = None
    resume: Annotated[bool, typer.Option("--resume")] = False
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
        if self.folder is not None:
            ids = "are left out by --no-ids in a file alone"
            options.refuse_if(
                (self.overwrite, "--overwrite", "needs a file as --output"),
                (not self.ids, "--no-ids", f"a folder says whose record it is: ids {ids}"),
            )
            return
        options.refuse_if((self.resume, "--resume", "needs a folder as --output"))
        if self.target is not None and not self.overwrite:
            options.refuse_drawing_again(self.target, "records")

    @property
    def folder(self) -> Path | None:
        """The folder of a job, if there is to be one."""
        target = self.target
        return target if target is not None and (target.is_dir() or not target.suffix) else None

    def refuse_for_tables(self, *, rounded: bool) -> None:
        """Refuse what is not for records of several types."""
        options.refuse_if(
            (
                rounded,
                "--round",
                f"is for --method {DENSITY}: bounds without a point, as in age=17:91, ask for "
                "whole numbers",
            ),
            (
                self.plot is not None,
                "--plot",
                f"is not for --method {TABLE}: turnout sample-report draws pictures of its records",
            ),
            (
                self.with_quality,
                "--quality",
                f"is not for --method {TABLE}: turnout sample-report compares its records",
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
        if isinstance(estimate, samplers.TableEstimate):
            below.append(lambda console: show_shares(console, estimate))
        elif estimate is not None:
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
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", callback=check_epsilon)],
    way: Way,
    written: _Output,
    jobs: Annotated[int, typer.Option("--jobs", "-j", callback=_check_jobs)] = 1,
    seed: Annotated[int | None, typer.Option(min=0, max=2**64 - 1)] = None,
) -> None:
    r"""Draw one private, realistic record for each person.

    All rows with the same value of --rows-are belong to one user. From a user's rows, however many,
    a single record is drawn. Its distribution is close to that of the user's rows and never far
    from a public one: no record is more than e^epsilon times as likely as if the user had entirely
    different rows. Each run on the same users spends epsilon again, so an existing file of records
    is replaced only with --overwrite. If OUT is a folder, records are written in parts. If a run is
    killed, the same command with --resume continues it, and no user is drawn twice. Until the job
    is complete, protect its folder like the rows.

    Each column needs --bounds or --labels. They are public, so never compute them from the data. If
    bounds are written as whole numbers, the records have whole numbers; 2020-01-01:2024-12-31 gives
    days. Records are drawn around the uniform distribution, or around that of --reference: public
    rows, or what turnout sample-reference collected.

    Name another --method for numbers alone or labels alone. Then columns need neither bounds nor
    labels. Without bounds, numbers are drawn around the standard normal, so they are from about -3
    to 3. Without labels, the distinct values of a column become the labels, and are treated as
    public.

    Without --output, the records go to standard output as CSV, and the summary to standard error.
    --plot draws estimates from the records of all users, with another --method than table.

    [bold]Example:[/]

        turnout sample visits.csv --columns age,hours --epsilon 1 --rows-are user \
            --bounds age=17:90,hours=0:99 -o records.csv
        turnout sample visits.csv --columns age,sex,hours --epsilon 2 --rows-are user \
            --bounds age=17:90,hours=0.0:99.0 --labels sex=f,m -o records.csv

    Parameters
    ----------
    source
        CSV (also .csv.gz), Parquet or Arrow IPC file with the rows of users.
    epsilon
        Privacy of a user's record; less is more.
    jobs
        The number of processes that draw; -1 for all cores. Default: 1.
    seed
        For tests only: anybody who knows the seed can undo the protection.
    """
    wanted = way.of(rows)
    written.check(source)
    records: Records | TableRecords
    sampler: samplers.PrivateSampler
    integers = None
    if wanted.method == TABLE:
        written.refuse_for_tables(rounded=way.rounded)
        records = read_table(source, wanted)
        data, sampler = records.data, table_sampler(epsilon, wanted, records)
        if wanted.one_value:
            _tell_of_several(records.codes, records.users)
    else:
        records = read_records(source, wanted)
        integers = _integers(wanted, records) if way.rounded else None
        if written.plot is not None:
            _check_picture_of(records)
        _check_one_value(wanted, records)
        sampler = _make_sampler(epsilon, wanted, records, integers)
        data = records.data if integers is None else integers.nearest(records.values)
    draws = _drawn(sampler, data, records.users, written, jobs=jobs, seed=seed)
    note_seed(seed, "repeat the draws")
    drawn = Drawn(wanted, records, draws, written.ids, integers)
    if written.target is not None and written.folder is None:
        write_table(written.target, drawn.table)
    write_picture(written.plot, lambda: _picture(draws, wanted, integers))
    compared = None
    if written.with_quality and isinstance(records, Records):
        compared = quality(records, drawn.values)
    estimate = _estimated(draws, wanted) if wanted.one_value else None
    written.show(f"Records of the users of {source}", drawn, estimate, compared)


def _drawn(
    sampler: samplers.PrivateSampler,
    data: Any,
    users: Array,
    written: _Output,
    *,
    jobs: int,
    seed: int | None,
) -> samplers.PopulationDraws:
    """Draw a record of each user, into a folder if there is to be one."""
    if written.folder is None:
        return samplers.sample_population(
            sampler, data, users, n_jobs=jobs, progress=True, seed=seed
        )
    if not isinstance(sampler, samplers.TableSampler):
        raise typer.BadParameter(
            f"{str(written.folder)!r} is a folder, which is for --method table: name a file that "
            f"ends in {', '.join(TABLE_SUFFIXES)}",
            param_hint="--output",
        )
    there = Job.read(written.folder)
    if written.resume and there is not None and there.complete:
        note(f"the job in {written.folder} is already complete; nobody was drawn")
    workers = None if jobs == -1 else jobs
    return draw_records(
        sampler,
        data,
        users,
        written.folder,
        seed=seed,
        resume=written.resume,
        workers=workers,
        progress=True,
    )


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


def _make_sampler(
    epsilon: float, wanted: Wanted, records: Records, integers: Integers | None
) -> samplers.PrivateSampler:
    """Make the sampler of numbers or labels alone; note if it is around the standard normal."""
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
    return _SAMPLERS[wanted.method](epsilon, **arguments)


def table_sampler(epsilon: float, wanted: Wanted, records: TableRecords) -> samplers.TableSampler:
    """Make the sampler of a table."""
    reference = None
    if wanted.reference is not None:
        try:
            reference = (
                read_collected(wanted.reference, records.parts)
                if wanted.collected
                else records.public(wanted.reference)
            )
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
    if isinstance(draws.sampler, samplers.TableSampler):
        return draws.estimate(assume="one_value")
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
    _tell_of_several(records.values, records.users)


def _tell_of_several(codes: Array, of: Array) -> None:
    """Say how many users hold more than one value."""
    _, users = np.unique(of, return_inverse=True)
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
