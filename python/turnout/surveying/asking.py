"""One call from a table of answers to a table of shares, means and quantiles with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from turnout import _arguments
from turnout.accounting.values import positive, unit_interval
from turnout.bounds import Bounds
from turnout.domain import Domain, domain_of
from turnout.errors import InvalidValueError
from turnout.frequency.estimation.estimators import ESTIMATORS
from turnout.mean.estimators import ESTIMATORS as MEAN_ESTIMATORS
from turnout.participation import Participation, taking_part_in
from turnout.pipeline import Answers, collect, scan
from turnout.pipeline.found import FoundAnswers
from turnout.pipeline.scanning import asked_columns, by_column, group_columns
from turnout.surveying.aggregated import aggregated
from turnout.surveying.local import (
    Question,
    SpreadOf,
    best_scheme,
    counted,
    part_of,
    question_of,
    read,
    refuse_no_rows,
    together_of,
)
from turnout.surveying.results import SurveyResult, SurveyResults, together
from turnout.surveying.words import (
    about_aggregators,
    about_histogram,
    about_labels,
    about_left_out,
    about_seed,
    statement,
    statement_of_all,
    statement_of_left_out,
)

if TYPE_CHECKING:
    from typing_extensions import Required, TypedDict, Unpack

#: The quantiles that are estimated unless others are asked for.
QUANTILES: Final = (0.25, 0.5, 0.75)


if TYPE_CHECKING:

    class _Options(TypedDict, total=False):
        """What :func:`survey` takes beside the data and the columns, for its two overloads."""

        epsilon: Required[float]
        by: str | Sequence[str] | None
        participation: Participation | float | None
        labels: Any
        bounds: Any
        quantiles: Sequence[float] | None
        missing: Any
        missing_values: Sequence[str]
        trim: bool
        separator: str | None
        encoding: str | None
        method: str
        trust: str
        delta: float | None
        parties: int | None
        seed: int | None


@overload
def survey(data: Any, column: str, **options: Unpack[_Options]) -> SurveyResult: ...
@overload
def survey(
    data: Any, column: Sequence[str], *, joint: Literal[True], **options: Unpack[_Options]
) -> SurveyResult: ...
@overload
def survey(data: Any, column: Sequence[str], **options: Unpack[_Options]) -> SurveyResults: ...
def survey(
    data: Any,
    column: str | Sequence[str],
    *,
    epsilon: float,
    joint: bool = False,
    by: str | Sequence[str] | None = None,
    participation: Participation | float | None = None,
    labels: Any = None,
    bounds: Any = None,
    quantiles: Sequence[float] | None = None,
    missing: Any = None,
    missing_values: Sequence[str] = (),
    trim: bool = False,
    separator: str | None = None,
    encoding: str | None = None,
    method: str = "hajek",
    trust: str = "local",
    delta: float | None = None,
    parties: int | None = None,
    seed: int | None = None,
) -> SurveyResult | SurveyResults:
    """Randomize columns of answers and estimate how often each is given, with intervals.

    For a study, or for an owner of answers who must randomize them before handing them over: each
    answer is randomized by itself, by the oracle of smallest error, and only the reports are
    counted.

    Parameters
    ----------
    data
        A table (pandas, polars, Arrow), or the path of a CSV, Parquet or Arrow file: whatever
        :func:`turnout.pipeline.scan` takes.
    column
        The column of the answers, one row a person; or several columns. Of several each person
        answers one, drawn at random, with the whole epsilon, or all of them, each with its part:
        what has the smaller error, and the result says which.
    epsilon
        The privacy of all that a person reports, in nats; less is more.
    joint
        Whether the answers to several columns go into one report together: for their joint table
        (:class:`turnout.JointTable`), from which ``estimate.conditional`` and
        ``estimate.marginal`` make the shares of one answer among those who gave another, and of
        one column alone. Of answers only.
    by
        Columns of groups. They are **not protected**: only the answer is randomized.
    participation
        With which probability each person is asked to report: a number, or a participation with one
        rate; all by default. For probabilities of their own, see :func:`turnout.pipeline.scan`.
    labels
        The answers that can be given: a list or a :class:`turnout.Domain`; of several columns a
        dictionary by column. By default the different values of the column, which are then taken to
        be public.
    bounds
        For a column of numbers ``(low, high)``: then its mean and quantiles are estimated. Of
        several columns a dictionary. Public, and not taken from the data; nothing is clipped.
    quantiles
        Which quantiles of numbers, between 0 and 1: the quartiles by default. With none, ``()``,
        all reports are for the mean, whose error is then smaller.
    missing
        What a missing answer (a null, NaN, an empty text, and ``turnout.pipeline.MISSING_TEXTS``,
        such as ``NA``, ``n/a`` or ``<NA>``, where they are none of ``labels``) means:
        None refuses it, ``"drop"`` leaves the person out, a label (or a number) is reported
        instead. It may be a dictionary by column, whose None is for all others; a label by itself
        must be one of every column. A person without a group is refused, or left out wherever
        somebody is, unless the dictionary states a label of the column of groups.
    missing_values
        Further texts that stand for a missing answer or group.
    trim
        Whether white space around the texts of answers and groups is taken off.
    separator, encoding
        How CSV files are written, where they do not say so themselves: what stands between two
        fields, such as ``";"``, and the encoding, such as ``"cp1252"``.
    method
        The estimator, as in :meth:`turnout.Tally.estimate`; ``"hajek"`` for quantiles.
    trust
        ``"local"``: nobody is trusted. ``"aggregators"``: answers are counted under secret sharing,
        by the mechanism of smallest error (:func:`turnout.distributed.recommend`), whose error is
        that of a trusted server: for whoever runs parties that do not all collude.
    delta
        With ``trust="aggregators"``: a delta that the guarantee may have; none by default.
    parties
        With ``trust="aggregators"``: how many parties add up, 3 by default.
    seed
        For tests and simulations only.

    Returns
    -------
    SurveyResult or SurveyResults
        Of one column the table with intervals, what was done in words, and the estimate; of several
        a mapping from columns to these.

    Raises
    ------
    UnknownLabelError
        If an answer is none of ``labels``.
    InvalidValueError
        If answers are missing and nothing says what that means; if a column is not there; if a
        number is outside of the bounds; if there are fewer than two different answers; if labels
        are not stated and the column looks like numbers or identifiers; if an
        argument says nothing about this trust or these columns.
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
    2,000 people have an answer in 'vote' and ... reported, each through direct encoding at ...
    Whatever a person answered, no report is more than 7.3... times as likely as under another ...
    Made with a seed: fit for tests only, the noise can be computed again.
    The 2 labels are those of the data and are taken to be public; labels (--labels) states them.
    An owner of all answers...
    >>> result.estimate["no"].low < 0.75 < result.estimate["no"].high
    True
    >>> tn.survey(table, "vote", epsilon=2.0, by="region", seed=1).to_arrow().num_rows
    4
    >>> both = tn.survey(table, ["vote", "region"], epsilon=2.0, seed=1)
    >>> both["region"].estimate["N"].low < 0.5 < both["region"].estimate["N"].high
    True
    >>> together = tn.survey(table, ["region", "vote"], epsilon=2.0, joint=True, seed=1)
    >>> shares = together.estimate.conditional("vote", given="region")
    >>> shares["N", "yes"].low < 0.5 < shares["N", "yes"].high
    True
    >>> counted = tn.survey(table, "vote", epsilon=2.0, trust="aggregators", seed=1)
    >>> counted.estimate["no"].low < 0.75 < counted.estimate["no"].high
    True
    """
    _arguments.choice("trust", trust, ("local", "aggregators"))
    _arguments.seed(seed)
    # What is asked of all columns together, before it is shared out.
    epsilon = positive("epsilon", epsilon)
    if delta is not None:
        delta = float(unit_interval("delta", _arguments.number("delta", delta)))
    columns = asked_columns(column)
    groups = group_columns("by", by, columns)
    given_labels = by_column("labels", labels, columns)
    given_bounds = by_column("bounds", bounds, columns)
    _arguments.instance("joint", joint, bool, "True or False")
    if joint and len(columns) < 2:
        raise InvalidValueError("joint is of several columns, and column names one")
    if joint and given_bounds:
        raise InvalidValueError("joint is of columns of answers: bounds are of numbers")
    numbers = all(name in given_bounds for name in columns)
    _arguments.choice("method", method, tuple(MEAN_ESTIMATORS if numbers else ESTIMATORS))
    if quantiles is not None and not given_bounds:
        raise InvalidValueError("quantiles are of numbers: no column has bounds")
    probabilities = _quantiles(quantiles, method)
    answers = scan(
        data,
        columns,
        missing=missing,
        missing_values=missing_values,
        trim=trim,
        separator=separator,
        encoding=encoding,
        group_by=groups,
    )
    questions: dict[str, Question] = {}
    for name in columns:
        if name in given_labels and name in given_bounds:
            raise InvalidValueError("labels are of answers and bounds of numbers: give one of them")
        domain: Domain | Bounds
        found: FoundAnswers | None = None
        if name in given_bounds:
            domain = Bounds._from_pair(given_bounds[name])
        elif name in given_labels:
            domain = domain_of("labels", given_labels[name])
        else:
            answers, domain, found = answers._settled(name)
        questions[name] = question_of(answers, name, domain, probabilities, found)
    if joint:
        questions = together_of(questions)
    result = survey_columns(
        answers,
        questions,
        epsilon=epsilon,
        participation=participation,
        method=method,
        trust=trust,
        delta=delta,
        parties=parties,
        seed=seed,
    )
    if isinstance(result, SurveyResult) and not (isinstance(column, str) or joint):
        return SurveyResults(
            {columns[0]: result}, result.statement, epsilon, left_out=result.left_out
        )
    return result


def survey_columns(
    answers: Answers,
    questions: Mapping[str, Question],
    *,
    epsilon: float,
    participation: Participation | float | None = None,
    method: str = "hajek",
    trust: str = "local",
    delta: float | None = None,
    parties: int | None = None,
    seed: int | None = None,
) -> SurveyResult | SurveyResults:
    """Do what :func:`survey` does, of columns that are settled.

    Parameters
    ----------
    answers
        What :func:`turnout.pipeline.scan` made.
    questions
        What is asked in each of its columns.
    epsilon, participation, method, trust, delta, parties, seed
        As for :func:`survey`.

    Returns
    -------
    SurveyResult or SurveyResults
        As of :func:`survey`.

    Raises
    ------
    TurnoutError
        As :func:`survey`.
    """
    if method != "hajek" and any(isinstance(each, SpreadOf) for each in questions.values()):
        raise _arguments.invalid("method must be 'hajek' for quantiles", method)
    rate = taking_part_in(participation).uniform_rate
    if trust == "aggregators":
        if rate != 1.0:
            raise InvalidValueError(
                "participation is of local reports: aggregators count all that are asked"
            )
        if method != "hajek":
            raise InvalidValueError(f"method is of local reports, got {method!r} for aggregators")
        parties = 3 if parties is None else parties
        return aggregated(
            answers, questions, epsilon=epsilon, delta=delta, parties=parties, seed=seed
        )
    for argument, value in (("delta", delta), ("parties", parties)):
        if value is not None:
            raise InvalidValueError(
                f"{argument} is of aggregators, got {value!r}: nobody is trusted with 'local'"
            )
    if rate is None:
        raise InvalidValueError(
            f"participation must be one rate for all, got {participation!r}: with probabilities of "
            "their own, answers of turnout.pipeline.scan are counted by turnout.pipeline.collect"
        )
    return _local(answers, questions, epsilon, rate, method=method, seed=seed)


def _local(
    answers: Answers,
    questions: Mapping[str, Question],
    epsilon: float,
    rate: float,
    *,
    method: str,
    seed: int | None,
) -> SurveyResult | SurveyResults:
    """Randomize each answer by itself: those of one question block by block, however many."""
    asked = list(questions.values())
    if len(asked) > 1 or isinstance(asked[0], SpreadOf):
        found = read(answers, questions)
        nodes, left_out = found.groups.size, found.left_out
        scheme = best_scheme(asked, epsilon, nodes, rate)
        tallies = list(counted(asked, found, scheme, answers.group_by, seed))
    else:
        scheme = best_scheme(asked, epsilon, 0, rate)
        oracle = asked[0].randomizer(epsilon)
        tally = collect(answers, oracle, participation=scheme.within, seed=seed)
        nodes, left_out = tally.nodes, tally.left_out
        refuse_no_rows(nodes, left_out)
        tallies = [(oracle, tally)]
    results = {}
    for (name, question), (oracle, tally) in zip(questions.items(), tallies, strict=True):
        estimate = question.estimate(tally, method)
        notes = (
            *about_labels(question),
            *about_aggregators(estimate, tally, part_of(epsilon, len(questions))),
            *about_histogram(estimate, question, scheme),
        )
        asked_for = question.asked(name)
        lines = statement(asked_for, oracle, scheme.epsilon, nodes=nodes, received=tally.received)
        results[name] = SurveyResult(
            tally, estimate, name, answers.group_by, lines, notes, left_out=left_out
        )
    received = [tally.received for _, tally in tallies]
    ratios = [oracle.realized_ratio for oracle, _ in tallies]
    return together(
        results,
        tuple(statement_of_left_out(answers, nodes, left_out)),
        statement_of_all(list(questions), nodes, received, scheme, ratios),
        (*about_seed(seed), *about_left_out(left_out)),
        epsilon,
    )


def _quantiles(quantiles: Sequence[float] | None, method: str) -> tuple[float, ...]:
    """Take the quartiles where they can be estimated and nothing else is said."""
    if quantiles is not None:
        given = _arguments.items("quantiles", quantiles, "a sequence of shares")
        return tuple(_arguments.confidence("quantiles", each) for each in given)
    return QUANTILES if method == "hajek" else ()
