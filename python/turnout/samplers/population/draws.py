"""Make one private draw for every user, and estimate from all draws together."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from turnout import _arguments
from turnout._extras import require
from turnout._one_thread import one_thread
from turnout._progress import track
from turnout._seeds import derived
from turnout._types import Array, Integers
from turnout.errors import InvalidTypeError, InvalidValueError, TurnoutError
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.samplers._arguments import LARGEST_NUMBER
from turnout.samplers.adapters import as_reference
from turnout.samplers.base import PointSampler, PrivateSampler
from turnout.samplers.population.answers import FinitePopulationEstimate, estimate_of_answers
from turnout.samplers.population.points import PopulationEstimate, estimate_of_points
from turnout.samplers.reference import check_support
from turnout.samplers.tables.columns import table_codes
from turnout.samplers.tables.estimates import TableEstimate, estimate_of_tables
from turnout.samplers.tables.frames import frame_of, read_frame, rows_of_frame
from turnout.samplers.tables.sampler import TableSampler

#: The sampler, the rows of a user and a seed.
_Job: TypeAlias = "tuple[PrivateSampler, Any, int | None]"

#: The draw of a user, or why there is none: an array, or of a TableSampler lists of values.
_Drawn: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class PopulationDraws:
    """One private draw of each user.

    Attributes
    ----------
    users
        The users, sorted; by type and text if they cannot be compared.
    draws
        Their draws, in the same order: of shape (n_users, n_features), or (n_users,) for samplers
        of one answer. For a :class:`TableSampler`, a frame of the same library as the data.
    sampler
        The sampler; copies of it were fitted on each user's rows, and it is not fitted itself.
    """

    users: Array
    draws: Any
    sampler: PrivateSampler

    @property
    def epsilon(self) -> float:
        """What a user's draw cost that user: for all of the user's rows, if that is the unit."""
        return self.sampler.epsilon

    @property
    def delta(self) -> float:
        """The delta that goes with :attr:`epsilon`: 0 unless the sampler has one."""
        return float(getattr(self.sampler, "delta", 0.0))

    def __len__(self) -> int:
        return len(self.draws)

    def estimate(
        self, *, assume: str | None = None
    ) -> PopulationEstimate | FrequencyEstimate | FinitePopulationEstimate | TableEstimate:
        """Estimate what the draws can tell about the population.

        Parameters
        ----------
        assume
            For samplers of one answer or of tables: ``"one_value"`` if every user holds one value,
            in all records. Then the law of a draw is known for each value, and the estimate undoes
            what the sampler does.

        Returns
        -------
        PopulationEstimate, FinitePopulationEstimate, TableEstimate or turnout.FrequencyEstimate
            For points, a density estimate of the mean law of the draws. For answers, unbiased
            frequencies with intervals, if the sampler is linear in the users' distributions
            (randomized response) or every user holds one value. Otherwise the mean law of the
            draws, with bounds on what it says about the users. For tables, the shares of each
            column's cells: with intervals if every user holds one value, otherwise with bounds that
            say why they are wide.

        Raises
        ------
        EstimatorError
            If the sampler or the number of dimensions has no such estimate.
        InvalidValueError
            If an argument is not one of the allowed values.
        """
        _arguments.choice("assume", assume, (None, "one_value"))
        if isinstance(self.sampler, TableSampler):
            return estimate_of_tables(self.sampler, self.draws, one_value=assume is not None)
        if self.draws.ndim == 1:
            return estimate_of_answers(self.sampler, self.draws, one_value=assume is not None)
        if assume is not None:
            raise _arguments.invalid("assume is for samplers of one answer or of tables", assume)
        return estimate_of_points(self.sampler, self.draws)

    def __repr__(self) -> str:
        return f"PopulationDraws({len(self)} users, {self.sampler!r})"


def sample_population(
    sampler: PrivateSampler,
    data: Any,
    users: Any,
    *,
    n_jobs: int | None = None,
    progress: bool = False,
    seed: int | None = None,
) -> PopulationDraws:
    """Draw one private record for each user.

    For each user, a copy of the sampler is fitted on all of the user's rows, makes a single draw,
    and is thrown away. So the release costs a user epsilon once, for the whole set of rows.

    Parameters
    ----------
    sampler
        Any sampler of this package. Copies of it are fitted; it is not changed.
    data
        The rows of all users: of shape (n_rows, n_features), or (n_rows,) for samplers of one
        answer. For :class:`TableSampler`, a frame.
    users
        The user of each row: one hashable value for each row. Rows of a user need not be together.
    n_jobs
        How many processes to use, as in joblib (comes with scikit-learn): -1 for all cores. By
        default only this process works.
    progress
        Whether to show a progress bar of users on standard error after two seconds. The command
        line shows it on a terminal.
    seed
        For tests and simulations only: every user gets a seed derived from it, so that the result
        is the same for any number of processes. It also sets the ``random_state`` of samplers
        that left it at None. Without a seed every process takes fresh randomness from the
        operating system.

    Returns
    -------
    PopulationDraws
        The users and one draw of each. Users are sorted, because the order of their rows may reveal
        something about the contents.

    Raises
    ------
    InvalidTypeError, InvalidValueError, TurnoutError
        If an argument cannot be used, or the sampler cannot be fitted on a user's rows: the message
        names the user, and nothing is returned. Such an error reveals something about that user's
        data; users who draw for themselves keep it to themselves. If a parameter of the sampler
        cannot be used, the message names only the parameter. If rows are outside the support of the
        reference, it names the first by its position in ``data``.
    MissingExtraError
        If several processes are asked for and joblib is not installed.

    Notes
    -----
    Each user is fitted on one thread; pass ``n_jobs`` to use several processes.

    The ids of the users are returned as they are. Neither the fact that somebody has rows nor the
    number of users is protected.
    """
    _arguments.instance("sampler", sampler, PrivateSampler, "a sampler of turnout.samplers")
    if sampler._seeds_noise and getattr(sampler, "random_state", None) is not None:
        raise InvalidValueError(
            "sampler must not have a random_state, because it would give all users "
            "the same noise; for a simulation, pass seed= to sample_population"
        )
    tables = isinstance(sampler, TableSampler)
    rows = rows_of_frame("data", data) if tables else _rows(data)
    names, places = grouped(users, len(rows))
    root = _arguments.seed(seed)
    workers = None if n_jobs is None else _workers(n_jobs)
    model = sampler.__sklearn_clone__()
    _check_parameters(model, rows)
    worker, data_of = model, rows
    if isinstance(model, TableSampler):
        # What is public is computed once, for all, and so are the cells of all rows.
        worker = model._prepared()
        data_of, library = codes_of_people(worker, rows, names, places)
    jobs = ((worker, data_of[own], derived(root, place)) for place, own in enumerate(places))
    draws: list[Any] = []
    for drawn in track(_worked(jobs, workers), "drawing", progress, total=len(names)):
        if isinstance(drawn, Exception):
            _refuse(model, names[len(draws)], drawn)
        draws.append(drawn)
    if isinstance(worker, TableSampler):
        return PopulationDraws(names, frame_of_people(worker, library, draws), model)
    return PopulationDraws(names, np.concatenate(draws), model)


def codes_of_people(
    worker: TableSampler, rows: Any, names: Array, places: list[npt.NDArray[np.intp]]
) -> tuple[Integers, Any]:
    """Return the cells of all rows, and the library of their frame; an error names the person."""
    columns = worker._public().columns
    try:
        table, library = read_frame("data", rows, columns)
        return table_codes(columns, "data", table), library
    except (InvalidTypeError, InvalidValueError):
        for name, own in zip(names, places, strict=True):
            try:
                table_codes(columns, "X", read_frame("X", rows[own], columns)[0])
            except (InvalidTypeError, InvalidValueError) as error:
                _refuse(worker, name, error)
        raise


def frame_of_people(worker: TableSampler, library: Any, draws: list[dict[str, list[Any]]]) -> Any:
    """Put the records of all people into one frame."""
    columns = worker._public().columns
    values = {
        column.name: [value for drawn in draws for value in drawn[column.name]]
        for column in columns
    }
    return frame_of(library, columns, values)


def seeded(sampler: Any, seed: int | None) -> Any:
    """Set the ``random_state`` of a sampler that takes one and has none."""
    if seed is None or not hasattr(sampler, "get_params"):
        return sampler
    if sampler.get_params(deep=False).get("random_state", 0) is None:
        sampler.set_params(random_state=seed % 2**32)
    return sampler


def _check_parameters(model: PrivateSampler, rows: Any) -> None:
    """Refuse parameters that no user's rows can be sampled with, and rows beyond the reference."""
    model._check_epsilon()
    given = getattr(model, "reference", None)
    if not isinstance(model, PointSampler) or given is None or rows.ndim == 1:
        return
    reference = as_reference(given, rows.shape[1])
    if rows.dtype.kind not in "iuf":
        return
    records = rows.astype(np.float64)
    # This check runs for all users at once, before the work of the first fit. fit refuses values
    # that are not numbers, or too large for a record.
    if (np.abs(records) <= LARGEST_NUMBER).all():
        check_support("data", records, reference)


def _rows(data: Any) -> Array:
    try:
        # Labels of several types in a list keep them.
        plain = isinstance(data, (list, tuple)) and not isinstance(data[0], (list, tuple))
        mixed = plain and len({type(entry) for entry in data}) > 1
        rows = np.array(data, dtype=object) if mixed else np.asarray(data)
    except Exception:
        # Anything can go wrong in the conversion of foreign objects; what it says shows entries.
        raise _arguments.mistyped(
            "data must be an array with one row for each record", _arguments.Private(data)
        ) from None
    if rows.ndim not in (1, 2):
        raise InvalidValueError(
            f"data must be of shape (n_rows, n_features) or (n_rows,), got shape {rows.shape}"
        )
    return rows


def grouped(users: Any, rows: int) -> tuple[Array, list[npt.NDArray[np.intp]]]:
    """Find the distinct users, sorted, and the rows of each."""
    given = _arguments.items("users", users, "one hashable value for each row", private=True)
    if len(given) != rows:
        raise InvalidValueError(
            f"users must have one entry for each of the {rows} rows of data, got {len(given)}"
        )
    if not given:
        raise InvalidValueError("data must have at least one row, got none")
    found: dict[Hashable, list[int]] = {}
    for row, user in enumerate(given):
        if _nobody(user):
            raise _arguments.invalid(f"users[{row}] must name a user", user)
        try:
            found.setdefault(user, []).append(row)
        except TypeError as error:
            raise _arguments.mistyped(
                f"users[{row}] must be hashable", _arguments.Private(user)
            ) from error
    found = {user: found[user] for user in _sorted(found)}
    if isinstance(users, np.ndarray):
        names = users[[places[0] for places in found.values()]]
    else:
        names = np.empty(len(found), dtype=object)
        names[:] = list(found)
        if len({type(name) for name in found}) == 1 and isinstance(names[0], (int, str, float)):
            names = np.array(list(found))
    return names, [np.array(places) for places in found.values()]


def _nobody(user: Any) -> bool:
    try:
        return user is None or bool(user != user)  # noqa: PLR0124 (NaN)
    except (TypeError, ValueError):
        # pandas' NA is neither equal nor unequal to itself.
        return True


def _sorted(users: Iterable[Any]) -> list[Any]:
    try:
        return sorted(users)
    except TypeError:
        return sorted(users, key=lambda user: (type(user).__name__, repr(user)))


def _workers(n_jobs: Any) -> int:
    count = _arguments.integer("n_jobs", n_jobs, least=-(2**15), most=2**15)
    if count == 0:
        raise InvalidValueError("n_jobs must be a number of processes or negative, got 0")
    if count == 1:
        return 1
    effective: int = require("joblib", "samplers").effective_n_jobs(count)
    return effective


def _worked(tasks: Iterator[_Job], workers: int | None) -> Iterator[_Drawn]:
    """Fit and draw for each user on one thread: for one user's rows, more threads only wait."""
    if workers in (None, 1):
        # What the first fit imports is limited from the second on.
        for some in (itertools.islice(tasks, 1), tasks):
            with one_thread():
                yield from itertools.starmap(_drawn, some)
        return
    joblib = require("joblib", "samplers")
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        parallel = joblib.Parallel(n_jobs=workers, return_as="generator")
    results = parallel(joblib.delayed(_drawn)(*task) for task in tasks)
    try:
        for drawn in results:  # noqa: UP028 (closed below, not here)
            yield drawn
    finally:
        # After a failure nobody waits for the others, and joblib need not say so.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.close()


def _drawn(model: PrivateSampler, rows: Array, seed: int | None) -> _Drawn:
    """Fit a copy and draw from it."""
    try:
        if isinstance(model, TableSampler):
            return model._record_of(rows, seed)
        one = seeded(model.__sklearn_clone__(), seed)
        return np.asarray(one.fit(rows).sample(1, seed=seed))
    except Exception as error:
        # A learner may raise anything; the caller says whose rows they were.
        return error


def _refuse(model: PrivateSampler, user: Any, failure: Exception) -> NoReturn:
    if _blames_parameter(model, failure):
        raise failure
    kind = next(
        (known for known in (InvalidTypeError, InvalidValueError) if isinstance(failure, known)),
        TurnoutError,
    )
    said = str(failure) if isinstance(failure, TurnoutError) else f"{failure!r}"
    shown = _arguments.shown(user.item() if isinstance(user, np.generic) else user)
    raise kind(f"no draw for user {shown}: {said}") from failure


def _blames_parameter(model: PrivateSampler, failure: Exception) -> bool:
    """Return whether an error is about a parameter of the sampler: its message begins with it."""
    if not isinstance(failure, (InvalidTypeError, InvalidValueError)):
        return False
    subject, must, _ = str(failure).partition(" must ")
    # A learner may fail on the rows of one user and not on those of another.
    return bool(must) and any(
        name in subject.split() and (name == "reference" or not hasattr(value, "fit"))
        for name, value in model.get_params(deep=False).items()
    )
