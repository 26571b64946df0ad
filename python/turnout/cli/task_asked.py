"""What the task of ``turnout task`` asks, of whom, and how an answer is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer

from turnout import Domain
from turnout._types import Array, Integers
from turnout.cli import options
from turnout.cli.answers import in_domain, settled
from turnout.cli.numbers import Mean, record_of_sum, rows_of_sum
from turnout.cli.question import OneList
from turnout.cli.showing.estimates import Wish
from turnout.distributed import VerifiedAggregation, VerifiedSum
from turnout.errors import InvalidValueError
from turnout.pipeline import scan
from turnout.pipeline.in_memory import read_columns
from turnout.reporting.frequencies import SHARES
from turnout.reporting.means import Means
from turnout.reporting.telling import Telling
from turnout.serve.tasks.files import Question


@dataclass(frozen=True, kw_only=True)
class Asked(OneList):
    """What is asked of whom, and what protects the answers.

    Attributes
    ----------
    users
        How many people are asked.
    epsilon
        Privacy of one report.
    delta
        The delta; 0 for noise without one.
    participation
        Probability that an answer takes part, which nobody sees.
    """

    mean: Mean = None
    users: Annotated[int, typer.Option("--users", "-n", min=1)]
    epsilon: options.Epsilon
    delta: Annotated[float, typer.Option("--delta", "-d", min=0.0, max=1.0)] = 0.0
    participation: Annotated[
        float, typer.Option("--participation", "-p", callback=options.check_rate)
    ] = 1.0

    def mechanism(self, *, janus: bool) -> Question:
        """Find the noise: the best one, or that of Janus."""
        labels = self.stated
        options.refuse_if(
            (
                labels is None and self.mean is None,
                "--labels",
                "say what can be answered: --labels, --labels-file, or --mean of numbers",
            ),
            (
                labels is not None and self.mean is not None,
                "--mean",
                "conflicts with --labels: choose one of them",
            ),
        )
        arguments: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "participation": self.participation,
            "noise": "discrete_laplace" if janus else None,
        }
        if self.mean is not None:
            return VerifiedSum(self.mean, self.users, as_vector=janus, **arguments)
        assert labels is not None
        return VerifiedAggregation(Domain(labels), self.users, none_counted=janus, **arguments)


class _Kind:
    """How the answers to one kind of question are read and told."""

    telling: Telling

    def read(self, question: Any, text: str) -> Any:
        """Read the answer of one person.

        Raises
        ------
        InvalidValueError
            If it is no answer to the question.
        """
        raise NotImplementedError

    def stated(self, domain: Any) -> Any:
        """Say what can be answered, as files are read."""
        raise NotImplementedError

    def measured(self, question: Any, column: Array) -> Integers:
        """Give the answers in a column of files as the question measures them."""
        raise NotImplementedError

    def more(self, estimate: Any, wish: Wish) -> dict[str, Any]:
        """Give what programs are told beside the estimates."""
        del estimate, wish
        return {}

    def rows(self, estimate: Any, wish: Wish) -> list[tuple[str, str]]:
        """Say it to people."""
        del estimate, wish
        return []


class _Votes(_Kind):
    telling = SHARES

    def read(self, question: VerifiedAggregation, text: str) -> Any:
        labels = [str(label) for label in question.domain.labels]
        if text not in labels:
            # What a person answers is not shown.
            raise InvalidValueError(
                f"--value must be one of the {question.domain.size:,} labels of the task, which "
                "its file lists; the answer is not repeated here"
            )
        return question.domain.labels[labels.index(text)]

    def stated(self, domain: Domain) -> list[str]:
        return [str(label) for label in domain.labels]

    def measured(self, question: Any, column: Array) -> Integers:
        del question
        return column.astype(np.int64)


class _Numbers(_Kind):
    telling = Means()

    def read(self, question: VerifiedSum, text: str) -> Any:
        low, high = question.domain.low, question.domain.high
        try:
            number = float(text)
        except ValueError:
            number = np.nan
        if not (low <= number <= high and number.is_integer()):
            # What a person answers is not shown.
            raise InvalidValueError(
                f"--value must be a whole number from {low:.0f} to {high:.0f}; the answer is not "
                "repeated here"
            )
        return number

    def stated(self, domain: Any) -> Any:
        return domain

    def measured(self, question: VerifiedSum, column: Array) -> Integers:
        return question._measured(column)

    def more(self, estimate: Any, wish: Wish) -> dict[str, Any]:
        return record_of_sum(estimate, wish.scope_of(estimate))

    def rows(self, estimate: Any, wish: Wish) -> list[tuple[str, str]]:
        return rows_of_sum(estimate, wish.scope_of(estimate))


_KINDS: Final[Mapping[str, _Kind]] = {
    VerifiedAggregation.name: _Votes(),
    VerifiedSum.name: _Numbers(),
}


def kind_of(question: Question) -> _Kind:
    """Find how answers to a question are read and told."""
    return _KINDS[question.name]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Which answers are sent.

    Attributes
    ----------
    value
        The answer of one person: a label, or a number.
    sources
        Files with a row for each person, for tests and simulations: one report for each.
    column
        The column of the files with the answers.
    """

    sources: Annotated[list[Path] | None, typer.Argument(metavar="[SOURCES]...")] = None
    value: Annotated[str | None, typer.Option(metavar="ANSWER")] = None
    column: Annotated[str | None, typer.Option("--column", "-c")] = None

    def __post_init__(self) -> None:
        """Refuse no answer, and two ways to give one."""
        options.refuse_if(
            (
                (self.value is None) == (not self.sources),
                "--value",
                "say the answer of one person, or name files with --column",
            ),
            (
                bool(self.sources) != (self.column is not None),
                "--column",
                "name the column of the answers in the files; it belongs to files alone",
            ),
        )

    def measured(self, question: Question) -> Integers:
        """Give the answers as the question measures them.

        Raises
        ------
        InvalidValueError
            If one is no answer to the question.
        """
        kind = kind_of(question)
        if self.value is not None:
            return question._measured([kind.read(question, self.value)])
        assert self.sources is not None
        assert self.column is not None
        answers = scan(self.sources, [self.column])
        answers, domains, _ = settled(answers, {self.column: kind.stated(question.domain)})
        [codes] = read_columns(in_domain(answers, domains[self.column]), domains).codes
        return kind.measured(question, codes)
