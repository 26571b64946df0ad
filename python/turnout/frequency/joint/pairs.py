"""Joint tables of all pairs of questions: each person reports one pair."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from turnout import _arguments
from turnout._types import Array, Floats
from turnout.accounting.values import positive
from turnout.domain import Domain
from turnout.errors import EstimatorError, InvalidValueError
from turnout.frequency.attributes.estimate import AttributeEstimate, AttributeTally
from turnout.frequency.attributes.schemes import AttributeCollection
from turnout.frequency.choice import Factory, one_each
from turnout.frequency.estimation.estimate import SHRUNK, FrequencyEstimate
from turnout.frequency.estimation.estimators import Estimation
from turnout.frequency.estimation.projection import summing_to_one
from turnout.frequency.estimation.shrinkage import Shrinkage
from turnout.frequency.joint.agreeing import agreed, drawn_together, nearest
from turnout.frequency.joint.conditional import ConditionalShares
from turnout.frequency.joint.table import JointEstimate, JointMarginal, JointTable
from turnout.products import MOST_CELLS, Questions, domains_of

#: The first word of ``postprocessing`` of tables that agree.
CONSISTENT = "consistent"


@dataclass(frozen=True, eq=False, repr=False)
class PairEstimate(AttributeEstimate):
    """The shares in the tables of all pairs of questions, each from different people.

    :meth:`PairTally.estimate` returns it. Tables with a common question differ in its shares by
    their noise. :meth:`consistent` makes them agree; :meth:`marginal` estimates one question best.

    Examples
    --------
    >>> import turnout as tn
    >>> pairs = tn.PairTables(3.0, {"sex": ["f", "m"], "vote": ["no", "yes"], "age": 3})
    >>> people = {"sex": ["f", "m"] * 6000, "vote": ["no", "yes"] * 6000, "age": [0, 1] * 6000}
    >>> estimate = pairs.collect(people, seed=3).estimate()
    >>> shares = estimate.conditional("vote", given="sex")
    >>> shares["f", "no"].low < 1.0 < shares["f", "no"].high
    True
    """

    def __getitem__(self, name: str | tuple[str, str]) -> JointEstimate:
        """Return one table: by its name, or by its two questions in either order."""
        if isinstance(name, tuple):
            found = [key for key, pair in self._pairs.items() if set(pair) == set(name)]
            if len(name) != 2 or not found:
                raise KeyError(name)
            name = found[0]
        table: Any = self.estimates[name]
        made: JointEstimate = table
        return made

    @property
    def _pairs(self) -> Mapping[str, tuple[str, str]]:
        pairs: Mapping[str, tuple[str, str]] = self.plan.oracle.pairs
        return pairs

    def conditional(self, of: str, *, given: str) -> ConditionalShares:
        """Estimate how people who gave one answer answered another question.

        Parameters
        ----------
        of, given
            The question of the shares, and the question of the condition.

        Returns
        -------
        ConditionalShares
            As :meth:`JointEstimate.conditional` of the table of both.

        Raises
        ------
        InvalidValueError
            If a question does not exist, or both are the same.
        """
        for argument, name in (("of", of), ("given", given)):
            _arguments.choice(argument, name, tuple(self.domain.columns))
        if of == given:
            raise _arguments.invalid("of must be a question that is not in given", of)
        return self[of, given].conditional(of, given=given)

    def marginal(self, name: str) -> FrequencyEstimate:
        """Estimate the shares of the answers to one question, from all tables that have it.

        Each table is weighted by the inverse of its mean variance. A person is in one table, so the
        errors of two tables have the covariance ``-f (1 - f) / n`` of disjoint samples.

        Raises
        ------
        InvalidValueError
            If the question does not exist.
        EstimatorError
            If covariances are not known: see :attr:`JointEstimate.covariance`.
        """
        _arguments.choice("name", name, tuple(self.domain.columns))
        tables = [self[key] for key, pair in self._pairs.items() if name in pair]
        found = [table.marginal(name).estimation for table in tables]
        weights = 1.0 / np.array([each.variances.mean() for each in found])
        weights /= weights.sum()
        shares = weights @ np.array([each.frequencies for each in found])
        held = np.clip(shares, 0.0, 1.0)
        apart = held * (1.0 - held) / self.nodes * (1.0 - float(weights @ weights))
        variances = weights**2 @ np.array([each.variances for each in found])
        domain: Domain = self.domain.columns[name]
        return FrequencyEstimate._from_estimation(
            JointMarginal(self.plan, (name,), domain),
            self.method,
            self.nodes,
            self.received,
            Estimation(shares, np.maximum(variances - apart, 0.25 * variances)),
            left_out=self.left_out,
        )

    def consistent(self) -> PairEstimate:
        """Make the tables agree on their common questions.

        The shares of each question become those of :meth:`marginal`, by the smallest change of the
        cells; :meth:`project` and :meth:`shrink` then keep the tables in agreement. Intervals stay
        those of the original tables.

        Returns
        -------
        PairEstimate
            The same estimate, with ``postprocessing`` ``"consistent"``.

        Raises
        ------
        EstimatorError
            If covariances are not known: see :attr:`JointEstimate.covariance`. Also if tables were
            projected or shrunk separately: making them agree first has the smaller error.

        Examples
        --------
        >>> import turnout as tn
        >>> pairs = tn.PairTables(1.0, {"a": 2, "b": 3, "c": 4})
        >>> people = {"a": [0, 1] * 600, "b": [0, 1, 2] * 400, "c": [0, 1, 2, 3] * 300}
        >>> estimate = pairs.collect(people, seed=1).estimate().consistent()
        >>> rows = [estimate["a", other].table.sum(axis=1) for other in "bc"]
        >>> bool(abs(rows[0] - rows[1]).max() < 1e-12)
        True
        """
        if self.postprocessing != "none" and not self._agrees:
            verb = "shrink()" if self.postprocessing == SHRUNK else "project()"
            raise EstimatorError(
                f"make tables consistent first: consistent().{verb} has a smaller error "
                f"than {verb}.consistent(), and its tables are consistent too"
            )
        shares = {
            name: summing_to_one(self.marginal(name).frequencies) for name in self.domain.columns
        }
        return self._with_tables(
            CONSISTENT,
            lambda cells, _, first, second: (agreed(cells, shares[first], shares[second]), None),
        )

    def project(self, method: str) -> PairEstimate:
        """Post-process each table: see :meth:`turnout.FrequencyEstimate.project`.

        After :meth:`consistent` the tables stay in agreement. The shares of each question become
        those of ``marginal(name).project(method)``. Each table becomes the one nearest to the
        consistent table that has these shares and no cell below zero.

        Raises
        ------
        InvalidValueError, EstimatorError
            As :meth:`turnout.FrequencyEstimate.project`.
        """
        if not self._agrees or method == "none":
            return self._each(lambda estimate: estimate.project(method))
        agreeing = self.consistent()
        shares = {
            name: self.marginal(name).project(method).frequencies for name in self.domain.columns
        }
        return agreeing._with_tables(
            f"{CONSISTENT}_{method}",
            lambda cells, _, first, second: (nearest(cells, shares[first], shares[second]), None),
        )

    def shrink(self) -> PairEstimate:
        """Shrink within each table: see :meth:`turnout.FrequencyEstimate.shrink`.

        After :meth:`consistent` the tables stay in agreement: the shares of each question become
        those of ``marginal(name).shrink()``. The cells are shrunk towards each other and towards
        independence of the two questions. An unbiased estimate of the squared error determines how
        much of each is best (Stein 1981). ``shrinkage.weights["independence"]`` of a table is the
        weight of independence.

        Returns
        -------
        PairEstimate
            The same estimate, with ``postprocessing`` ``"consistent_empirical_bayes"``, or
            ``"empirical_bayes"`` of tables that do not agree. Intervals stay those of the original
            tables.

        Raises
        ------
        EstimatorError
            As :meth:`turnout.FrequencyEstimate.shrink`.

        Examples
        --------
        >>> import turnout as tn
        >>> pairs = tn.PairTables(1.0, {"a": 6, "b": 6, "c": 6})
        >>> people = {"a": list(range(6)) * 1000, "b": [0] * 3000 + [1] * 3000, "c": [2, 4] * 3000}
        >>> estimate = pairs.collect(people, seed=1).estimate().consistent().shrink()
        >>> bool(estimate["a", "b"].table.min() >= 0.0), estimate.postprocessing
        (True, 'consistent_empirical_bayes')
        """
        if not self._agrees:
            return self._each(lambda estimate: estimate.shrink())
        agreeing = self.consistent()
        shares = {}
        for name in self.domain.columns:
            found = self.marginal(name)
            errors = found.estimation.variances
            shares[name] = summing_to_one(found.frequencies), errors, found.shrink().frequencies
        return agreeing._with_tables(
            f"{CONSISTENT}_{SHRUNK}",
            lambda cells, variances, first, second: drawn_together(
                cells, variances, shares[first], shares[second]
            ),
        )

    @property
    def _agrees(self) -> bool:
        return self.postprocessing.startswith(CONSISTENT)

    def _with_tables(
        self, word: str, change: Callable[..., tuple[Floats, Shrinkage | None]]
    ) -> PairEstimate:
        """Change the tables: ``change`` is given cells, variances and the two questions."""
        made: dict[str, FrequencyEstimate] = {}
        for key, pair in self._pairs.items():
            table = self[key]
            agrees = self.postprocessing == CONSISTENT
            before = table.frequencies if agrees else table.estimation.frequencies
            shape = table.table.shape
            variances = table.estimation.variances.reshape(shape)
            cells, how = change(before.reshape(shape), variances, *pair)
            flat = cells.ravel()
            flat.flags.writeable = False
            made[key] = replace(table, frequencies=flat, postprocessing=word, shrinkage=how)
        return replace(self, estimates=made)


class PairTally(AttributeTally):
    """The number of reports that support each cell, for the tables of all pairs of questions.

    A mapping from names of tables, such as ``"sex × vote"``, to their :class:`JointTally`.
    """

    _estimate_type = PairEstimate
    # What is said of a question rests on all its tables.
    _estimate_answered = AttributeTally.estimate


class PairTables(AttributeCollection):
    """Report the answers to two randomly drawn questions, for the tables of all pairs.

    Each person draws one pair of questions, whatever their answers, and reports the two answers
    together with the whole epsilon, as :class:`turnout.JointTable` does. So there is a joint table
    of every pair, even if a table of all questions would have more than 2^20 cells, or too many for
    the number of people. It gives no information about three or more questions together.

    Parameters
    ----------
    epsilon
        The privacy parameter of a report, in nats.
    columns
        The answers to each question, or their number: at least three questions, whose tables of
        pairs have at most 2^20 cells together.
    oracle
        The oracle: ``"auto"`` (default) for the one of smallest variance whose covariances are
        known, or a class such as :class:`turnout.DirectEncoding`.

    Raises
    ------
    InvalidTypeError, InvalidValueError
        If an argument is of the wrong type or out of range.

    Notes
    -----
    For one pair the draw acts as participation at its rate: with ``d`` questions each table has the
    reports of one in ``d (d - 1) / 2`` people.

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
        oracle: Factory | str = "auto",
    ) -> None:
        self._epsilon = positive("epsilon", epsilon)
        self._domain = Questions(domains_of("columns", columns))
        self._pairs = pairs = _pairs(self.columns)
        self._oracles = {
            name: JointTable(epsilon, {each: self.columns[each] for each in pair}, oracle=one)
            for (name, pair), (_, one) in zip(
                pairs.items(), one_each("oracle", oracle, tuple(pairs)), strict=True
            )
        }
        self._weights = dict.fromkeys(pairs, 1)
        self._places = tuple(itertools.combinations(range(len(self.columns)), 2))

    @property
    def _choice(self) -> tuple[int, ...]:
        """All pairs are drawn alike."""
        return (1,) * len(self._oracles)

    @property
    def columns(self) -> Mapping[str, Domain]:
        """The answers to each question."""
        return self._domain.columns

    @property
    def pairs(self) -> Mapping[str, tuple[str, str]]:
        """For each table its name and the two questions."""
        return MappingProxyType(self._pairs)

    def _answers_of(self, answers: Array, part: int) -> Array:
        """Combine the codes of a pair."""
        domain: Any = self.parts[part].domain
        combined: Array = domain._combined([answers[:, place] for place in self._places[part]])
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
    sizes = [each.size for each in columns.values()]
    cells = sum(math.prod(pair) for pair in itertools.combinations(sizes, 2))
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
