"""What is asked in the columns of a survey, and the answers to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from turnout.bounds import Bounds
from turnout.domain import Domain
from turnout.errors import EstimatorError
from turnout.pipeline import Answers
from turnout.pipeline.in_memory import Columns, read_columns


@dataclass(frozen=True)
class Column:
    """What is asked in a column of a survey.

    Attributes
    ----------
    domain
        The answers, or the numbers, that can be given.
    labels_of_data
        Whether the labels are those of the data: then the result says so.
    quantiles
        Of numbers: which quantiles are listed beside the mean.
    """

    domain: Domain | Bounds
    labels_of_data: bool = False
    quantiles: tuple[float, ...] = ()


def read(answers: Answers, columns: Mapping[str, Column]) -> Columns:
    """Read the answers of all columns.

    Raises
    ------
    EstimatorError
        If there are none.
    """
    found = read_columns(answers, {name: column.domain for name, column in columns.items()})
    refuse_no_rows(found.groups.size, found.dropped)
    return found


def refuse_no_rows(nodes: int, dropped: int | None) -> None:
    """Refuse to estimate anything of nobody.

    Raises
    ------
    EstimatorError
        If there is nobody.
    """
    if not nodes:
        why = "" if not dropped else f", but {dropped:,} that were left out"
        raise EstimatorError(f"nothing can be estimated: there are no rows{why}")
