"""Choice of the shown questions: marginal or conditional shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnout import _arguments
from turnout.errors import InvalidTypeError, InvalidValueError
from turnout.frequency.attributes.estimate import AttributeEstimate
from turnout.frequency.estimation.estimate import FrequencyEstimate
from turnout.frequency.joint.conditional import ConditionalShares
from turnout.frequency.joint.pairs import PairEstimate, PairTables
from turnout.frequency.joint.table import JointEstimate, JointTable


def conditional_of(estimate: Any, given: Sequence[str], of: str) -> ConditionalShares:
    """Estimate the shares of the answers to one question given answers to others."""
    among = given[0] if len(given) == 1 else tuple(given)
    found: ConditionalShares = estimate.conditional(of, given=among)
    return found


def question_of(oracle: Any, given: Sequence[str], of: str | None) -> str:
    """Return the question of the shares, given the questions of the condition.

    Raises
    ------
    InvalidTypeError
        If the oracle does not ask questions together.
    InvalidValueError
        If the question is ambiguous, or one is not in the table.

    Examples
    --------
    >>> question_of(JointTable(1.0, {"sex": 2, "vote": 2}), ["sex"], None)
    'vote'
    """
    if not isinstance(oracle, (JointTable, PairTables)):
        raise InvalidTypeError(
            "given (--given) needs the tally of a joint table or of tables of two questions "
            f"(PairTables), got one of {oracle!r}"
        )
    questions = tuple(oracle.columns)
    for name in given:
        _arguments.choice("given", name, questions)
    if isinstance(oracle, PairTables) and len(given) > 1:
        raise InvalidValueError(
            f"given (--given) must name one question, got {_arguments.listed(given)}: "
            "tables of pairs have no information about three questions together"
        )
    others = [name for name in questions if name not in given]
    if not others:
        raise InvalidValueError(
            "given (--given) must leave out a question, whose shares are wanted, got all of "
            f"{_arguments.listed(questions)}"
        )
    if of is not None:
        return _arguments.choice("of", of, others)
    if len(others) > 1:
        raise InvalidValueError(f"of (--of) must name one question: {', '.join(map(repr, others))}")
    return others[0]


def marginal_of(estimate: Any, names: Sequence[str]) -> FrequencyEstimate:
    """Return the shares of some questions, summed over the others.

    Raises
    ------
    InvalidTypeError
        If the estimate is of one question.
    InvalidValueError
        If a question is not in it, is duplicated, or too many are named.

    Examples
    --------
    >>> import turnout as tn
    >>> pairs = tn.PairTables(1.0, {"sex": 2, "vote": 2, "age": 4})
    >>> people = {"sex": [0, 1] * 60, "vote": [1, 1] * 60, "age": [3, 2] * 60}
    >>> marginal_of(pairs.collect(people, seed=1).estimate(), ["age"]).domain.size
    4
    """
    if isinstance(estimate, JointEstimate):
        return estimate.marginal(*names)
    if not isinstance(estimate, AttributeEstimate):
        raise InvalidTypeError(
            "marginal (--marginal) needs the tally of several questions, got one of "
            f"{estimate.plan.oracle!r}"
        )
    for name in names:
        _arguments.choice("marginal", name, tuple(estimate.domain.columns))
    pairs = isinstance(estimate, PairEstimate)
    if pairs and len(names) == 2 and names[0] != names[1]:
        return estimate[names[0], names[1]]  # type: ignore[index]
    if len(names) > 1:
        most = "one question, or two different ones" if pairs else "one question"
        raise InvalidValueError(
            f"marginal (--marginal) must name {most}, got {_arguments.listed(names)}: "
            "more questions have no common table"
        )
    return estimate.marginal(names[0]) if isinstance(estimate, PairEstimate) else estimate[names[0]]


def check_consistent(oracle: Any) -> None:
    """Refuse an estimate without tables that can be made to agree.

    Raises
    ------
    InvalidTypeError
        If these are not tables of pairs.
    """
    if not isinstance(oracle, PairTables):
        raise InvalidTypeError(
            "consistent (--consistent) needs the tally of tables of two questions (PairTables), "
            f"got one of {oracle!r}"
        )
