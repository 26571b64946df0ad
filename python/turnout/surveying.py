"""One call from a table of answers to a table of shares with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from turnout import _arguments
from turnout._tables import Tabular
from turnout.bounds import Bounds
from turnout.collecting.groups.tally import GroupedTally
from turnout.domain import Domain, domain_of
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimators import ESTIMATORS
from turnout.mean.duchi import Duchi
from turnout.mean.estimators import ESTIMATORS as MEAN_ESTIMATORS
from turnout.mean.hybrid import Hybrid
from turnout.mean.piecewise import Piecewise
from turnout.participation import Participation, taking_part_in
from turnout.pipeline import Answers, collect, scan
from turnout.planning.choice import choose_oracle

__all__ = ["SurveyResult", "survey"]

#: Where counting by aggregators that do not collude has an error so many times smaller, it is said.
_FAR_BETTER: Final = 3.0


@dataclass(frozen=True, eq=False, repr=False)
class SurveyResult(Tabular):
    """The shares of the answers, or the mean, with intervals: of all people, or of each group.

    Made by :func:`turnout.survey`. It prints what was done; :meth:`to_pandas`, :meth:`to_polars`
    and :meth:`to_arrow` give the table, and :meth:`plot` draws it.

    Attributes
    ----------
    tally
        What the reports were counted to: a tally, or a :class:`turnout.GroupedTally`.
    estimate
        The estimate of it, with everything that it can do.
    column
        The column of the answers.
    by
        The columns of the groups.
    notes
        What a reader should know: where the labels come from, and whether another way would be far
        better.
    """

    tally: Any
    estimate: Any
    column: str
    by: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def _columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.estimate._columns  # type: ignore[no-any-return]

    @property
    def _group_columns(self) -> tuple[str, ...]:
        return self.by

    def to_records(self, level: float = 0.95, **options: Any) -> list[dict[str, Any]]:
        """List one dictionary for each answer, or mean, of each group.

        Parameters
        ----------
        level
            The confidence level of the intervals, between 0 and 1.
        **options
            ``simultaneous``, and others that the estimate's ``to_records`` takes.

        Returns
        -------
        list of dict
            As the estimate's ``to_records`` gives them.

        Raises
        ------
        InvalidTypeError, InvalidValueError
            If an argument is of the wrong type, or none of the allowed values.
        """
        records: list[dict[str, Any]] = self.estimate.to_records(level, **options)
        return records

    def plot(self, **options: Any) -> Any:
        """Draw the estimate: see its own ``plot``.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        """
        return self.estimate.plot(**options)

    def explain(self) -> str:
        """Say in a few lines what was done, what epsilon means, and how many people answered.

        Returns
        -------
        str
            One sentence a line.
        """
        oracle, nodes, received = self.tally.plan.oracle, self.tally.nodes, self.tally.received
        # Never less than it is.
        times = math.ceil(oracle.realized_ratio * 1000) / 1000
        lines = [
            f"{nodes:,} people were asked {self.column!r} and {received:,} answered, each through "
            f"{oracle.name.replace('_', ' ')} at epsilon {oracle.epsilon!r}.",
            f"Whatever a person answered, no report is more than {times:,.3f} times as likely as "
            "under another answer: that protects from whoever sees the reports and not the table.",
        ]
        return "\n".join([*lines, *self.notes])

    def __repr__(self) -> str:
        """Show what was done."""
        return self.explain()


def survey(
    data: Any,
    column: str,
    *,
    epsilon: float,
    by: str | Sequence[str] | None = None,
    participation: Participation | float | None = None,
    labels: Any = None,
    bounds: Any = None,
    missing: Any = None,
    missing_values: Sequence[str] = (),
    method: str = "hajek",
    trust: str = "local",
    seed: int | None = None,
) -> SurveyResult:
    """Randomize a column of answers and estimate how often each is given, with intervals.

    For a study, or for an owner of answers who must randomize them before handing them over: each
    answer is randomized by itself, by the oracle of smallest error, and only the reports are
    counted.

    Parameters
    ----------
    data
        A table (pandas, polars, Arrow), or the path of a CSV, Parquet or Arrow file: whatever
        :func:`turnout.pipeline.scan` takes.
    column
        The column of the answers, one row a person.
    epsilon
        The privacy of one report, in nats; less is more.
    by
        Columns of groups. They are **not protected**: only the answer is randomized.
    participation
        With which probability each person is asked to report: a number, or a participation; all by
        default.
    labels
        The answers that can be given: a list or a :class:`turnout.Domain`. By default the different
        values of the column, which are then taken to be public.
    bounds
        For a column of numbers ``(low, high)``: then the mean is estimated. Public, and not taken
        from the data; nothing is clipped.
    missing
        What a missing answer (a null, NaN, an empty text, and ``NA``, ``N/A``, ``NaN``, ``null`` or
        ``None`` where they are none of ``labels``) means: None refuses it, ``"drop"`` leaves the
        person out, a label (or a number) is reported instead.
    missing_values
        Further texts that stand for a missing answer or group.
    method
        The estimator, as in :meth:`turnout.Tally.estimate`.
    trust
        ``"local"``: nobody is trusted. Counting under secret sharing is
        :class:`turnout.distributed.NoisyAggregation`.
    seed
        For tests and simulations only.

    Returns
    -------
    SurveyResult
        The table of shares with intervals, what was done in words, and the estimate.

    Raises
    ------
    UnknownLabelError
        If an answer is none of ``labels``.
    InvalidValueError
        If answers are missing and nothing says what that means; if a column is not there; if a
        number is outside of the bounds; if there are fewer than two different answers.
    InvalidTypeError
        If an argument is of the wrong type.
    EstimatorError
        If nobody reported, or the method does not apply.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import turnout as tn
    >>> table = pa.table({"vote": ["yes", "no", "no", "no"] * 500, "region": ["N", "S"] * 1000})
    >>> result = tn.survey(table, "vote", epsilon=2.0, participation=0.5, seed=1)
    >>> print(result)  # doctest: +ELLIPSIS
    2,000 people were asked 'vote' and ... answered, each through direct encoding at epsilon 2.0.
    Whatever a person answered, no report is more than 7.3... times as likely as under another ...
    Made with a seed: fit for tests only, the noise can be computed again.
    The 2 labels are those of the data and are taken to be public; labels (--labels) states them.
    An owner of all answers...
    >>> result.estimate["no"].low < 0.75 < result.estimate["no"].high
    True
    >>> tn.survey(table, "vote", epsilon=2.0, by="region", seed=1).to_arrow().num_rows
    4
    """
    _arguments.choice("trust", trust, ("local",))
    _arguments.choice("method", method, tuple(ESTIMATORS if bounds is None else MEAN_ESTIMATORS))
    if labels is not None and bounds is not None:
        raise InvalidValueError("labels are of answers and bounds of numbers: give one of them")
    domain = None if labels is None else domain_of("labels", labels)
    answers = scan(data, column, missing=missing, missing_values=missing_values, group_by=by)
    public = bounds is None and domain is None
    asked: Domain | Bounds
    if bounds is not None:
        asked = Bounds.from_pair(bounds)
    elif domain is not None:
        asked = domain
    else:
        answers, asked = _from_data(answers)
    return survey_answers(
        answers,
        asked,
        epsilon=epsilon,
        participation=participation,
        method=method,
        seed=seed,
        labels_of_data=public,
    )


def survey_answers(
    answers: Answers,
    domain: Domain | Bounds,
    *,
    epsilon: float,
    participation: Participation | float | None = None,
    method: str = "hajek",
    seed: int | None = None,
    labels_of_data: bool = False,
) -> SurveyResult:
    """Do what :func:`survey` does, of answers that are scanned in a domain that is known.

    Parameters
    ----------
    answers
        What :func:`turnout.pipeline.scan` made: it knows column, groups and missing values, and
        whether each person has a probability.
    domain
        The answers, or the numbers, that can be given.
    epsilon, participation, method, seed
        As for :func:`survey`.
    labels_of_data
        Whether the labels are those of the data: then the result says so.

    Returns
    -------
    SurveyResult
        As of :func:`survey`.

    Raises
    ------
    TurnoutError
        As :func:`survey`.
    """
    oracle: Any
    if isinstance(domain, Bounds):
        oracle = _for_numbers(epsilon, domain)
    else:
        oracle = choose_oracle(epsilon, domain).oracle
    own = answers.probability_column is not None and participation is None
    taking_part = None if own else taking_part_in(participation)
    tally = collect(answers, oracle, participation=taking_part, seed=seed)
    estimate = tally.estimate(method)
    notes = []
    if seed is not None:
        notes.append("Made with a seed: fit for tests only, the noise can be computed again.")
    if labels_of_data:
        notes.append(
            f"The {domain.size:,} labels are those of the data and are taken to be public; "
            "labels (--labels) states them."
        )
    left_out = None if answers.rows is None else answers.rows - tally.nodes
    if answers.missing == "drop" and left_out != 0:
        rows = "Rows" if left_out is None else f"{left_out:,} rows"
        notes.append(f"{rows} without an answer were left out: who left it open is not protected.")
    columns = tally.names if isinstance(tally, GroupedTally) else ()
    if not isinstance(domain, Bounds):
        notes += _hints(estimate, tally, epsilon)
    return SurveyResult(tally, estimate, answers.column, tuple(columns), tuple(notes))


def _from_data(answers: Answers) -> tuple[Answers, Any]:
    domain = answers.domain()
    if answers.missing is not None and answers.missing not in ("drop", *domain.labels):
        # Nothing is missing, so that its label is none of the answers.
        answers = replace(answers, missing=None)
    return answers, domain


def _for_numbers(epsilon: float, bounds: Bounds) -> Any:
    """Choose the mechanism for means of the smallest worst-case variance."""
    pair = (bounds.low, bounds.high)
    found = [kind(epsilon, pair) for kind in (Duchi, Hybrid, Piecewise)]
    return min(found, key=lambda mechanism: mechanism.worst_variance)


def _hints(estimate: Any, tally: Any, epsilon: float) -> list[str]:
    """Say so where an owner of all answers would have a far smaller error in another way."""
    if isinstance(tally, GroupedTally) or not tally.nodes:
        return []
    error = float((estimate.standard_errors**2).mean() ** 0.5)
    # Discrete Laplace noise for counts of which a person changes two.
    central = 8.0**0.5 / epsilon / tally.nodes
    if error < _FAR_BETTER * central:
        return []
    return [
        "An owner of all answers, or aggregators that do not collude, would count with an error of "
        f"about {100 * central:.2g} points in place of {100 * error:.2g}: "
        "turnout.distributed.NoisyAggregation."
    ]
