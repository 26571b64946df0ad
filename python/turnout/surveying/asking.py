"""The function that surveys a table of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from turnout import _arguments
from turnout.accounting.values import positive, target_delta
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
    """Randomize columns of answers, and estimate shares, means or quantiles with intervals.

    Use it for a study, or if you own answers and must randomize them before you hand them over.
    Each answer is randomized separately, by the oracle with the smallest error, and only the
    reports are counted.

    Parameters
    ----------
    data
        A table (pandas, polars, Arrow), or the path of a CSV, Parquet or Arrow file: any data that
        :func:`turnout.pipeline.scan` accepts.
    column
        The column of the answers, one row for each person; or several columns. With several
        columns, each person either answers one, drawn at random, with the whole epsilon, or answers
        all, each with a part of it. The survey uses the way with the smaller error, and the result
        states which.
    epsilon
        The privacy of all reports of a person, in nats; a smaller number means more privacy.
    joint
        Whether one report contains the answers to several columns, for their joint table
        (:class:`turnout.JointTable`). ``estimate.conditional`` then computes the shares of one
        answer among those who gave another, and ``estimate.marginal`` those of one column. Only for
        columns of answers, not of numbers.
    by
        Columns of groups. They are **not protected**: only the answer is randomized.
    participation
        The probability with which each person is asked to report: a number, or a participation with
        one rate. By default all are asked. For a different probability of each person, see
        :func:`turnout.pipeline.scan`.
    labels
        The possible answers: a list or a :class:`turnout.Domain`; for several columns a dictionary
        by column. By default the distinct values of the column, which are then assumed to be
        public.
    bounds
        The bounds ``(low, high)`` of a column of numbers, to estimate its mean and quantiles; for
        several columns a dictionary. They are public, and are not taken from the data. Nothing is
        clipped.
    quantiles
        The probabilities of the quantiles of numbers, between 0 and 1: the quartiles by default.
        With no quantiles, ``()``, all reports serve the mean, whose error is then smaller.
    missing
        What a missing answer (a null, NaN, an empty text, and ``turnout.pipeline.MISSING_TEXTS``,
        such as ``NA``, ``n/a`` or ``<NA>``, unless they are in ``labels``) means: None refuses it,
        ``"drop"`` leaves the person out, a label (or a number) is reported instead. It may be a
        dictionary by column, whose key None is for all other columns. A single label must be a
        label of every column. A person without a group is refused, or left out if ``missing`` is
        ``"drop"`` for any column, unless the dictionary states a label for the column of groups.
    missing_values
        Additional texts that stand for a missing answer or group.
    trim
        Whether to remove white space around the texts of answers and groups.
    separator, encoding
        The format of CSV files, if it cannot be detected: the text between two fields, such as
        ``";"``, and the encoding, such as ``"cp1252"``.
    method
        The estimator, as in :meth:`turnout.Tally.estimate`; ``"hajek"`` for quantiles.
    trust
        ``"local"``: nobody is trusted. ``"aggregators"``: answers are counted under secret sharing,
        by the mechanism with the smallest error (:func:`turnout.distributed.recommend`). Its error
        is that of a trusted server. Use it if you can run parties that do not all collude.
    delta
        With ``trust="aggregators"``: the largest delta of the guarantee; no delta by default.
    parties
        With ``trust="aggregators"``: the number of parties that add up, 3 by default.
    seed
        For tests and simulations only.

    Returns
    -------
    SurveyResult or SurveyResults
        For one column, the table with intervals, a description in words, and the estimate. For
        several columns, a mapping from columns to these.

    Raises
    ------
    UnknownLabelError
        If an answer is not one of ``labels``.
    InvalidValueError
        If answers are missing and ``missing`` does not state what that means; if a column does not
        exist; if a number is outside the bounds; if there are fewer than two distinct answers; if
        labels are not stated and the column looks like numbers or identifiers; if an argument does
        not apply to this trust or these columns.
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
    Made with a seed: use for tests only, because anyone who knows the seed can remove the noise.
    The 2 labels come from the data and are treated as public; labels (--labels) states them.
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
        delta = target_delta(delta)
    columns = asked_columns(column)
    groups = group_columns("by", by, columns)
    given_labels = by_column("labels", labels, columns)
    given_bounds = by_column("bounds", bounds, columns)
    _arguments.instance("joint", joint, bool, "True or False")
    if joint and len(columns) < 2:
        raise InvalidValueError("joint needs several columns, but column names one")
    if joint and given_bounds:
        raise InvalidValueError("joint applies to columns of answers, but bounds apply to numbers")
    numbers = all(name in given_bounds for name in columns)
    _arguments.choice("method", method, tuple(MEAN_ESTIMATORS if numbers else ESTIMATORS))
    if quantiles is not None and not given_bounds:
        raise InvalidValueError("quantiles need a column with bounds")
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
            raise InvalidValueError("pass labels for answers or bounds for numbers, not both")
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
    """Perform :func:`survey` on columns that are already settled.

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
                "participation applies to local reports: aggregators count everyone who is asked"
            )
        if method != "hajek":
            raise InvalidValueError(
                f"method applies to local reports, got {method!r} for aggregators"
            )
        parties = 3 if parties is None else parties
        return aggregated(
            answers, questions, epsilon=epsilon, delta=delta, parties=parties, seed=seed
        )
    for argument, value in (("delta", delta), ("parties", parties)):
        if value is not None:
            raise InvalidValueError(
                f"{argument} applies to aggregators, got {value!r}: with 'local', nobody is trusted"
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
    """Return the quartiles if they can be estimated and no quantiles are stated."""
    if quantiles is not None:
        given = _arguments.items("quantiles", quantiles, "a sequence of shares")
        return tuple(_arguments.confidence("quantiles", each) for each in given)
    return QUANTILES if method == "hajek" else ()
