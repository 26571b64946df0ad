"""Every pair of several questions: a joint table of one pair from each person."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from turnout import _arguments
from turnout._types import Array
from turnout.accounting.values import positive
from turnout.domain import Domain
from turnout.errors import InvalidValueError
from turnout.frequency.attributes.base import AttributeCollection, OracleChoice
from turnout.frequency.choice import one_each
from turnout.frequency.joint.pair_tally import PairTally
from turnout.frequency.joint.table import JointTable
from turnout.products import MOST_CELLS, Questions, domains_of


class PairTables(AttributeCollection):
    """Report the answers to two of several questions, drawn at random, for all tables of two.

    Each person draws one pair of questions, whatever their answers, and reports the two answers
    together with the whole epsilon, as :class:`turnout.JointTable` does. So there is a joint table
    of every pair where one of all questions would have too many cells for the people there are, or
    more than 2^20. Of three questions and more together it knows nothing.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats.
    columns
        For each question its answers, or their number: at least three questions, whose tables of
        two have at most 2^20 cells together.
    oracle
        What randomizes: ``"auto"`` (default) for the one of smallest variance whose covariances are
        known, or a class such as :class:`turnout.DirectEncoding`.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    For one pair it is participation at the rate of the draw: with ``d`` questions each table has
    the reports of one in ``d (d - 1) / 2`` people.

    Examples
    --------
    >>> import turnout as tn
    >>> pairs = tn.PairTables(3.0, {"sex": ["f", "m"], "vote": ["no", "yes"], "age": 3})
    >>> list(pairs.oracles)
    ['sex × vote', 'sex × age', 'vote × age']
    >>> people = {
    ...     "sex": ["f"] * 9600 + ["m"] * 2400,
    ...     "vote": ["no", "yes"] * 6000,
    ...     "age": [0, 1, 2] * 4000,
    ... }
    >>> estimate = pairs.collect(people, seed=1).estimate()
    >>> estimate["vote", "sex"].table.round(1)
    array([[0.4, 0.4],
           [0.1, 0.1]])
    >>> estimate.marginal("age")[0].low < 1 / 3 < estimate.marginal("age")[0].high
    True
    """

    name = "pair_tables"
    tally_type = PairTally

    def __init__(
        self,
        epsilon: float,
        columns: Questions | Mapping[str, Domain | Sequence[Hashable] | int],
        *,
        oracle: OracleChoice = "auto",
    ) -> None:
        self._epsilon = positive("epsilon", epsilon)
        self._domain = Questions(domains_of("columns", columns))
        pairs = _pairs(self.columns)
        self._oracles = {
            name: JointTable(epsilon, {each: self.columns[each] for each in pair}, oracle=one)
            for (name, pair), (_, one) in zip(
                pairs.items(), one_each("oracle", oracle, tuple(pairs)), strict=True
            )
        }
        self._weights = dict.fromkeys(pairs, 1)
        self._places = tuple(itertools.combinations(range(len(self.columns)), 2))

    @property
    def choice(self) -> tuple[int, ...]:
        """All pairs are drawn alike."""
        return (1,) * len(self._oracles)

    @property
    def columns(self) -> Mapping[str, Domain]:
        """For each question its answers."""
        return self._domain.columns

    @property
    def pairs(self) -> Mapping[str, tuple[str, str]]:
        """For each table its name and the two questions."""
        return _pairs(self.columns)

    def answers_of(self, answers: Array, part: int) -> Array:
        """Put the codes of a pair together."""
        domain: Any = self.parts[part].domain
        combined: Array = domain.combined([answers[:, place] for place in self._places[part]])
        return combined

    def parameters(self) -> dict[str, Any]:
        """Name the oracle of each table's combinations."""
        return {"oracle": [table.parameters()["oracle"] for table in self.parts]}


def _pairs(columns: Mapping[str, Domain]) -> dict[str, tuple[str, str]]:
    """Name the tables of two questions, and refuse too few or too many of them."""
    if len(columns) < 3:
        raise InvalidValueError(
            f"columns must name at least 3 questions, got {len(columns)}: a turnout.JointTable has "
            "the table of two"
        )
    cells = sum(math.prod(pair) for pair in itertools.combinations(_sizes(columns), 2))
    if cells > MOST_CELLS:
        raise InvalidValueError(
            f"columns must have tables of two with at most {MOST_CELLS:,} cells together, got "
            f"{cells:,}: ask for fewer columns, or put answers together"
        )
    pairs = list(itertools.combinations(columns, 2))
    named = {" × ".join(pair): pair for pair in pairs}
    if len(named) < len(pairs):
        raise InvalidValueError(
            f"columns must have names whose pairs differ, got {_arguments.listed(tuple(columns))}"
        )
    return named


def _sizes(columns: Mapping[str, Domain]) -> list[int]:
    return [each.size for each in columns.values()]
